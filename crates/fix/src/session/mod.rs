//! The FIX session as a state machine without I/O and without a clock.

mod now;

pub use now::Now;
