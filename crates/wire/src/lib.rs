//! Byte kernels and value types of the wire formats: sums and field scans, integers, `Decimal`,
//! `UtcTimestamp`. No I/O, no clock, no dependency.
#![deny(unsafe_code)]
