//! From captured packets to the byte streams of TCP.

mod frame;
mod stream;

pub use frame::{Endpoint, NoSegment, Segment, segment};
pub use stream::{Piece, Stream};
