//! Instruments that prove latency: packet captures, wire-to-wire matching, histograms, reports.
#![forbid(unsafe_code)]

pub mod figures;
pub mod histogram;
pub mod pcap;
