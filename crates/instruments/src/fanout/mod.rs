//! The fan-out benchmark: what a capture of the gateway's traffic says about its latency.

mod analysis;
mod matcher;
mod options;
mod report;
mod series;
#[cfg(test)]
mod tests;

pub use analysis::{AnalysisError, analyse};
pub use options::Options;
pub use report::Report;
