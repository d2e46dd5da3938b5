//! Live streams of DBN, sans-I/O: events to records that are encoded once for all clients, and the
//! other records of a stream.
//!
//! An [`Encoder`] appends the records of each event to a [`Batch`], in the order of the events. The
//! [`Tag`] of each record decides who receives it: a client receives a record if it has subscribed
//! to one of its schemas for its instrument.

mod batch;
mod control;
mod encoder;
mod intervals;
mod schema;
mod seen;
mod withheld;

pub use batch::{Batch, Tag};
pub use control::{
    Control, ErrorCode, SymbolType, SystemCode, error, is_for_record, length, mapping, metadata,
    no_record, system, with_ts_out,
};
pub use encoder::Encoder;
pub use intervals::end_of_all;
pub use schema::{LiveSchema, LiveSchemas};
