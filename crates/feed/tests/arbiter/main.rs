//! The arbiter from outside: scenes by hand, and a simulated pair of lossy lines compared with a
//! slow, obvious oracle.
#![allow(clippy::unwrap_used, clippy::panic)]

mod announced;
mod cycles;
mod faults;
mod messages;
mod mishaps;
mod net;
mod ops;
mod oracle;
mod outages;
mod properties;
mod runs;
mod scenes;
mod stalls;
