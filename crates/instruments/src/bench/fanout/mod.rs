//! The fan-out measured against plain sockets: the same bytes to as many loopback connections, once
//! from one thread with a send each and nothing else, once through the compared program.
//!
//! `Receivers` are the receiving end of both. The two alternate, so that fluctuations of the
//! machine affect both alike.

pub(in crate::bench) mod orders;
mod plant;
mod raw;
mod receivers;
pub(in crate::bench) mod rounds;
mod scale;
pub(in crate::bench) mod sessions;

pub use plant::{FanoutBench, Watcher, add_baseline};
use raw::Raw;
pub(in crate::bench) use receivers::Receivers;
pub use rounds::PERCENTILES;
pub(crate) use sessions::send_all;

/// Rounds of warm-up, which do not count.
const WARM_UP: usize = 100;

/// The message of the benchmark: a market data snapshot with four entries, without the header.
const SNAPSHOT: &[u8] = b"262=REQ1\x0155=EURUSD\x01268=4\x01\
269=0\x01270=1.23450\x01271=1000000\x01290=1\x01\
269=0\x01270=1.23440\x01271=2500000\x01290=2\x01\
269=1\x01270=1.23460\x01271=1500000\x01290=1\x01\
269=1\x01270=1.23470\x01271=3000000\x01290=2\x01";
