//! FIX tag=value, FIX.4.0 to FIX.4.4 and FIXT.1.1 with 5.0 to 5.0SP2, without I/O, clock or thread.
//!
//! | module | what it gives |
//! |---|---|
//! | [`codec`] | frames out of bytes, messages by tag without a copy, an encoder |
//! | [`session`] | the session: bytes and time in, bytes and events out |
//! | [`dict`] | dictionaries, built in or from XML, and the checks that they make |
//! | [`text`] | messages out of logs and pasted text, with what is wrong with them |
//!
//! Who wants a session with its sockets, timers and files begins with `fanfare_engine::host`: an
//! initiator or an acceptor in ten lines. This crate is for those with a loop of their own, and for
//! those who only read and write messages:
//!
//! ```
//! use fanfare_fix::codec::{Decoder, Encoder, tags};
//!
//! let mut room = [0; 256];
//! let mut news = Encoder::new(&mut room, b"FIX.4.4", b"B");
//! news.str(tags::SENDER_COMP_ID, "DESK").str(tags::TARGET_COMP_ID, "ALL");
//! news.u64(tags::MSG_SEQ_NUM, 1).str(148, "Open").u64(33, 1).str(58, "Good morning");
//! let range = news.finish()?;
//!
//! let mut decoder = Decoder::new();
//! let message = decoder.decode(&room[range]).unwrap();
//! assert_eq!((message.msg_type(), message.str(58)), (&b"B"[..], Ok("Good morning")));
//! # Ok::<(), fanfare_fix::codec::EncodeError>(())
//! ```
//!
//! After warm-up nothing here allocates, on receive and on send.
#![forbid(unsafe_code)]

pub mod codec;
pub mod dict;
pub mod session;
pub mod text;
