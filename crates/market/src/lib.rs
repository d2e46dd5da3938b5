//! The market of a feed: events, instruments, books and states, built from its messages.
//!
//! Everything here is sans-I/O and does not read a clock. Decoded messages and times (nanoseconds)
//! are arguments, and events are passed to the caller.
//!
//! A trade of a FAST feed becomes an event as a [`Mapping`] states:
//!
//! ```
//! use fanfare_fast::{Decoder, Program, Record};
//! use fanfare_market::{Instruments, Mapping};
//! use std::sync::Arc;
//!
//! let program = Arc::new(Program::parse(
//!     r#"<template name="Trade" id="1"><string name="Symbol" id="55"/>
//!          <decimal name="LastPx" id="31"/><uInt32 name="LastQty" id="32"/></template>"#,
//! )?);
//! let mapping = Mapping::parse(
//!     "trades.toml",
//!     r#"[[message]]
//!        template = "Trade"
//!        does = "changes"
//!        instrument = { symbol = 55 }
//!        event = [{ kind = "trade", price = 31, size = 32, entry-type = "2" }]"#,
//! )?;
//! let mut mapper = mapping.for_templates(&program, 0)?;
//! let (mut table, mut record) = (Instruments::new(1000), Record::new());
//! let bytes = [0xc0, 0x81, b'X' | 0x80, 0xfe, 0x00, 0xfb, 0x8a];
//! Decoder::new(program).decode_record(&bytes, &mut record)?;
//! mapper.record(&mut table, 0, &record)?;
//! let trade = mapper.events()[0];
//! assert_eq!((trade.price.to_string(), trade.size), ("1.23".to_owned(), 10));
//! assert_eq!(table.by_symbol(b"X"), Some(trade.instrument));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod book;
pub mod dbn;
mod delivery;
pub mod event;
pub mod follower;
pub mod fragments;
pub mod instruments;
pub mod json;
mod last;
pub mod mapping;
pub mod market;
mod newest;
pub mod price;
mod refresh;
pub mod relay;
mod snapshot;
pub mod snapshot_fault;
pub mod state;
mod text_error;
pub mod to_fix;
mod toml_text;
mod values;
pub mod view;
pub mod watermark;

pub use book::{Book, BookConfig, Books, Fault, Side};
pub use delivery::Delivery;
pub use event::{Action, Event, Flags, InstrumentId, Kind};
pub use follower::{Follower, FollowerConfig, FollowerStats, SessionFollower};
pub use fragments::{FragmentConfig, FragmentStats, Fragments};
pub use instruments::Instruments;
pub use last::LastValues;
pub use mapping::{FastMapper, FixMapper, Mapping};
pub use market::{Market, MarketConfig, MarketStats};
pub use price::{Price, PriceError};
pub use snapshot_fault::{SnapshotFault, SnapshotWhy};
pub use text_error::TextError;
pub use to_fix::ToFix;
pub use values::Values;
pub use view::View;
pub use watermark::Watermark;
