//! DDS for the plant: decoded messages are published to any participant of RTPS.
//!
//! The implementation is Eclipse Cyclone DDS; this crate is a thin safe layer over it. Samples are
//! CDR bytes: the application fills a [`cdr::CdrBuffer`] and passes its bytes to a [`Writer`]; a
//! [`Reader`] takes samples into arrays that it allocated once and lends their bytes. Types are
//! described at run time ([`types`]), so no IDL compiler is needed; the same description prints as
//! IDL for programs written in other languages.
//!
//! Without the feature `cyclone`, which is on by default, the C library is not built: types, CDR
//! and shared memory work, and opening a domain fails with [`Error::NotBuiltIn`].
//!
//! Entities keep their parents alive and close before them, in whatever order they are dropped.
//!
//! ```
//! use fanfare_dds::{cdr::CdrBuffer, types::{Kind, StructType}, Domain, DomainConfig, Qos};
//!
//! # fn main() -> Result<(), fanfare_dds::Error> {
//! let quote = StructType::new("Example::Quote")
//!     .key("security", Kind::UInt32)
//!     .member("price", Kind::Float64);
//! let domain = Domain::open(&DomainConfig::new(77))?;
//! let topic = domain.topic("quotes", &quote, &Qos::reliable())?;
//! let reader = topic.reader(&Qos::reliable()).open()?;
//! let writer = topic.writer(&Qos::reliable()).open()?;
//!
//! let mut sample = CdrBuffer::with_capacity(64);
//! sample.begin();
//! sample.u32(7);
//! sample.f64(99.5);
//! writer.write(sample.finish()?)?;
//!
//! let mut samples = reader.samples(16);
//! reader.take(&mut samples)?;
//! for sample in &samples {
//!     let mut cdr = sample.cdr()?;
//!     assert_eq!((cdr.u32()?, cdr.f64()?), (7, 99.5));
//! }
//! # assert_eq!(samples.len(), 1);
//! # Ok(())
//! # }
//! ```
#![deny(unsafe_code)]

pub mod cdr;
mod config;
pub mod discovery;
pub mod distribute;
mod entity;
mod error;
pub mod fast;
mod guid;
mod keys;
mod qos;
pub mod shm;
mod status;
#[cfg(feature = "cyclone")]
#[allow(unsafe_code)]
mod sys;
#[cfg(not(feature = "cyclone"))]
#[allow(unsafe_code)]
#[path = "sys/absent.rs"]
mod sys;
pub mod types;
mod warnings;

pub use config::{DomainConfig, Transport};
pub use entity::{
    Domain, Reader, ReaderBuilder, Sample, SampleInfo, SampleIter, Samples, Topic, WaitSet, Writer,
    WriterBuilder,
};
pub use error::{Error, Overflow, ReturnCode};
pub use keys::AsItIs;
pub use qos::{
    Durability, History, INSTANCES, LONGEST_KEY, Liveliness, Ownership, Qos, Reliability,
};
pub use status::{Policy, Status};
pub use warnings::Warnings;
