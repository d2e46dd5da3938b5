//! Byte kernels and value types of the wire formats: sums and field scans, integers, `Decimal`, and
//! `UtcTimestamp`. The crate has no I/O, no clock and no dependency.
//!
//! ```
//! use fanfare_wire::{Decimal, FieldIndex, Precision, UtcTimestamp};
//!
//! let mut index = FieldIndex::new();
//! let indexed = index.index(b"55=EURUSD\x0144=1.25\x01");
//! assert!(indexed.fault.is_none());
//! assert_eq!(index.tags(), [55, 44]);
//!
//! let price = Decimal::parse(b"1.25").unwrap();
//! assert_eq!(price, Decimal::new(125, -2));
//!
//! let time = UtcTimestamp::parse(b"20261120-12:34:56.123").unwrap();
//! assert_eq!(time.text(Precision::Seconds).as_str(), "20261120-12:34:56");
//! ```
#![deny(unsafe_code)]

pub mod data;
mod decimal;
pub mod fields;
pub mod int;
pub mod lanes;
pub mod names;
pub mod stopbit;
mod sum;
pub mod text;
mod time;
pub mod xml;

pub use data::DataFields;
pub use decimal::Decimal;
pub use fields::{FieldIndex, Indexed, Kernel};
pub use sum::byte_sum;
pub use time::{Precision, TimestampText, UtcTimestamp};
