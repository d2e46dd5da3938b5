//! Reconstructs the byte streams of TCP from captured packets.

mod frame;
mod stream;

pub use crate::ip::{Endpoint, NoSegment};
pub use frame::{Segment, segment};
pub use stream::{Piece, Stream};
