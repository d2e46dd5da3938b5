//! The feed layer: framing of files and datagrams, sequence numbers, arbitration of lines A and B,
//! gaps and their recovery.
//!
//! Everything here is sans-I/O and sans-clock: bytes and times (nanoseconds on any monotonic
//! clock) are arguments, so a test plays an hour of losses in a millisecond.
//!
//! ```
//! use fanfare_feed::{Arbiter, ArbiterConfig, Event, Line, Unit, Verdict};
//!
//! let mut arbiter = Arbiter::new(ArbiterConfig::default());
//! let packet = |sequence| Unit { sequence, count: 1, bytes: b"payload" };
//! // In order: the caller uses the bytes it has at hand.
//! assert_eq!(arbiter.receive(0, Line::A, packet(7)), Verdict::Deliver { skip: 0 });
//! // Line B has the same packet 3 µs later.
//! assert_eq!(arbiter.receive(3_000, Line::B, packet(7)), Verdict::Duplicate);
//! // Line A lost 8, so 9 waits until line B brings it.
//! assert_eq!(arbiter.receive(5_000, Line::A, packet(9)), Verdict::Held);
//! assert_eq!(arbiter.receive(8_000, Line::B, packet(8)), Verdict::Deliver { skip: 0 });
//! match arbiter.poll_event() {
//!     Some(Event::Unit(unit)) => assert_eq!(unit.sequence, 9),
//!     other => panic!("{other:?}"),
//! }
//! assert_eq!(arbiter.line(Line::A).lost, 1);
//! ```
#![forbid(unsafe_code)]

pub mod arbiter;
pub mod channel;
pub mod framing;
mod hold;
pub mod line;
pub mod missing;
pub mod numbers;
pub mod pace;
pub mod preamble;
mod recent;
pub mod recovery;
pub mod serial;

pub use arbiter::{
    Arbiter, ArbiterConfig, ArbiterStats, Delivery, Event, Gap, Refusal, Start, Unit, Verdict,
};
pub use channel::{Channel, ChannelConfig};
pub use framing::{Deframer, FrameError, FrameErrorKind, Header, Packet, Split};
pub use line::{Lateness, Line, LineStats};
pub use missing::Missing;
pub use numbers::{PacketNumbers, SequenceField, new_numbers};
pub use pace::Pace;
pub use preamble::{Preamble, TooShort};
