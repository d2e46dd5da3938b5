//! Instruments that prove latency: packet captures, wire-to-wire matching, histograms, reports.
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
