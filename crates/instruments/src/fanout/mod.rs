//! The fan-out benchmark: the latency in a capture of the gateway's traffic.

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
