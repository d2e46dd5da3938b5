//! The tag=value encoding: frames, messages and fields, decoded and encoded.
//!
//! The bytes belong to the caller: the decoder looks into a receive buffer, and the encoder writes
//! into a send buffer. Neither allocates after its index has grown to the size of the messages at
//! hand.
//!
//! ```
//! use fanfare_fix::codec::{Decoder, Encoder, Next};
//! use fanfare_fix::tag;
//!
//! let mut buf = [0; 256];
//! let mut order = Encoder::new(&mut buf, b"FIX.4.4", b"D");
//! order.str(tag::SENDER_COMP_ID, "BUYSIDE").str(tag::TARGET_COMP_ID, "SELLSIDE");
//! order.u64(tag::MSG_SEQ_NUM, 7).str(55, "EURUSD").u64(38, 1_000_000);
//! let range = order.finish().unwrap();
//!
//! let mut decoder = Decoder::new();
//! match decoder.next(&buf[range]) {
//!     Next::Message { message, .. } => {
//!         assert_eq!(message.msg_type(), b"D");
//!         assert_eq!(message.str(55), Ok("EURUSD"));
//!         assert_eq!(message.u64(38), Ok(1_000_000));
//!     }
//!     other => panic!("{other:?}"),
//! }
//! ```

mod announced;
mod decode;
mod encode;
mod frame;
mod group;
mod groups;
mod message;
mod secrets;
mod shared;
mod writer;

pub(crate) use announced::Announced;
pub(crate) use decode::index_knowing;
pub use decode::{DecodeError, Decoder, Next};
pub use encode::Encoder;
pub(crate) use encode::Front;
pub(crate) use frame::announced_len;
pub use frame::{Frame, FrameFinder, Garbled, Sought};
pub use group::{Group, GroupSpec};
pub use groups::Groups;
pub use message::{Field, FieldError, FieldErrorKind, FieldSet, Message};
pub(crate) use secrets::overwrite_secrets;
pub use secrets::{is_secret, mask_secrets, secrets};
pub use shared::{SendingTime, SessionHeader, SharedBody, SharedFrame};
pub use writer::{EncodeError, FieldWriter};
