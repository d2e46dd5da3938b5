//! FIX tag=value, FIX.4.0 to FIX.4.4 and FIXT.1.1 with 5.0 to 5.0SP2, without I/O, clock or thread.
//!
//! | module | content |
//! |---|---|
//! | [`codec`] | frames out of bytes, messages by tag without a copy, an encoder |
//! | [`session`] | the session: bytes and time in, bytes and events out |
//! | [`dict`] | dictionaries, built in or from XML, and validation by them |
//! | [`codegen`], [`typed`] | typed messages in Rust from a dictionary, and their library |
//! | [`text`] | messages out of logs and pasted text, with their flaws |
//! | [`tag`], [`msg_type`], [`values`] | the words of the standard as constants |
//!
//! A session with its sockets, timers and files is in `fanfare_engine::host`: an initiator or an
//! acceptor in ten lines. This crate is for programs with a loop of their own, and for programs
//! that only read and write messages:
//!
//! ```
//! use fanfare_fix::codec::{Decoder, Encoder};
//! use fanfare_fix::{msg_type, tag};
//!
//! let mut room = [0; 256];
//! let mut news = Encoder::new(&mut room, b"FIX.4.4", msg_type::NEWS);
//! news.str(tag::SENDER_COMP_ID, "DESK").str(tag::TARGET_COMP_ID, "ALL");
//! news.u64(tag::MSG_SEQ_NUM, 1).str(tag::HEADLINE, "Open");
//! news.u64(tag::NO_LINES_OF_TEXT, 1).str(tag::TEXT, "Good morning");
//! let range = news.finish()?;
//!
//! let mut decoder = Decoder::new();
//! let message = decoder.decode(&room[range]).unwrap();
//! assert_eq!((message.msg_type(), message.str(tag::TEXT)), (msg_type::NEWS, Ok("Good morning")));
//! # Ok::<(), fanfare_fix::codec::EncodeError>(())
//! ```
//!
//! After warm-up nothing in this crate allocates on receive and on send.
#![forbid(unsafe_code)]

pub mod codec;
pub mod codegen;
pub mod dict;
pub mod session;
pub mod text;
pub mod typed;
mod vocabulary;

/// The snippets of the guide's chapter.
#[cfg(doctest)]
#[allow(rustdoc::invalid_codeblock_attributes)]
#[doc = include_str!("../../../docs/guide/typed-messages.md")]
struct Guide;

pub use vocabulary::{msg_type, tag, values};
