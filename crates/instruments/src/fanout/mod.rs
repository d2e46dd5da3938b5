//! The fan-out benchmark: what a capture of the gateway's traffic says about its latency.

mod analysis;
mod matcher;
mod report;
mod series;
#[cfg(test)]
mod tests;

pub use analysis::{AnalysisError, Options, analyse};
pub use report::Report;
