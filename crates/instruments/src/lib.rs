//! Instruments that prove latency: packet captures, wire-to-wire matching, histograms, reports.
//!
//! [`load`] has producers and consumers that check what they receive, [`capture`] writes the
//! traffic between them to a file, and [`fanout`] pairs each incoming message of a capture with its
//! deliveries. [`mod@bench`] has the benchmarks of the binary, each beside a raw baseline of the
//! same run.
//!
//! The report on a capture, as text, as a page and as JSON:
//!
//! ```no_run
//! use fanfare_instruments::fanout::{Options, analyse};
//!
//! let report = analyse(std::fs::File::open("run.pcap")?, Options::default())?;
//! print!("{report}");
//! std::fs::write("run.html", report.to_html("run.pcap"))?;
//! println!("{}", report.figures().to_json());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

pub mod bench;
pub mod capture;
pub mod dds;
pub mod fanout;
pub mod figures;
pub mod histogram;
pub mod ip;
pub mod load;
pub mod messages;
pub mod page;
pub mod pcap;
pub mod pingpong;
pub mod plot;
#[cfg(feature = "dds")]
pub mod raw_dds;
pub mod subscriber;
pub mod tcp;
#[cfg(test)]
mod testing;
pub mod throughput;
pub mod udp;
