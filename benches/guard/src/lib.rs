//! Nothing: the benchmark beside it is the package.
#![forbid(unsafe_code)]
