//! FAST 1.1: templates, decoder and encoder.
//!
//! Template XML becomes a flat [`Program`] at load time ([`program`] describes it); a [`Decoder`]
//! and an [`Encoder`] execute it, each keeping the previous values of one stream. A decoder passes
//! the fields to a [`Visitor`]: the empty one ([`Ignore`]), one of your own, which is called field
//! by field before the message is complete, or a [`Message`] with access by tag, name and path.
//!
//! The codec does no I/O, reads no clock and starts no threads. It allocates only where a message
//! outgrows all messages before it; [`Decoder`] lists the exceptions.
//!
//! ```
//! use fanfare_fast::{Decoder, Encoder, Message, Program};
//!
//! let program = Program::parse(
//!     r#"<templates><template name="Quote" id="1">
//!            <uInt32 name="Seq" id="34"><increment/></uInt32>
//!            <string name="Symbol" id="55"><copy/></string>
//!            <decimal name="Bid" id="132" presence="optional"><delta/></decimal>
//!        </template></templates>"#,
//! )?;
//! let bytes = [0xf0, 0x81, 0x85, b'X' | 0x80, 0xfe, 0x81];
//! let mut message = Message::new();
//! let mut decoder = Decoder::new(program);
//! assert_eq!(decoder.decode(&bytes, &mut message)?, bytes.len());
//!
//! let quote = message.view(decoder.program()).unwrap();
//! assert_eq!(quote.get("Seq").unwrap().as_u64(), Some(5));
//! assert_eq!(quote.tag(55).unwrap().as_str(), Some("X"));
//!
//! let mut again = Vec::new();
//! Encoder::new(decoder.program().clone()).encode(&message, &mut again)?;
//! assert_eq!(again, bytes);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

// Generated code names this crate as its users do.
extern crate self as fanfare_fast;

mod bits;
pub mod builtin;
mod cell;
pub mod codegen;
mod decode;
mod dictionary;
mod encode;
mod error;
pub mod fix;
pub mod generate;
mod ids;
pub mod json;
mod level;
mod message;
mod node;
mod previous;
pub mod program;
mod record;
mod rows;
mod slots;
mod source;
mod state;
pub mod template;
mod text_ref;
mod trace;
pub mod typed;
pub mod value;
mod visitor;

pub use cell::Cell;
pub use decode::{Decoder, Limits, Options};
pub use encode::Encoder;
pub use error::{CodecError, ErrorCode, TemplateError};
pub use level::{Level, LevelEntries, Seat};
pub use message::{Entries, Fields, Message, MessageView, Value};
pub use previous::Previous;
pub use program::Program;
pub use record::Record;
pub use rows::{RowRef, Rows};
pub use source::{Scalar, Source};
pub use state::State;
pub use template::TemplateSet;
pub use text_ref::TextRef;
pub use trace::Step;
pub use value::Decimal;
pub use visitor::{Ignore, Visitor};
