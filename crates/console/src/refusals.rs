//! The lines of refused requests in the audit file: the address of each peer, and few lines in a
//! flood of requests.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;
use tokio::time::Instant;

/// The most addresses counted each on its own.
const ADDRESSES: usize = 256;
/// The time after which an address that is quiet may be forgotten.
const QUIET: Duration = Duration::from_secs(3_600);

/// Refused requests by address. At most 256 addresses are counted each on its own; further ones are
/// counted together, until one of the others has been quiet for an hour.
#[derive(Default)]
pub(crate) struct Refusals(HashMap<Option<IpAddr>, Count>);

struct Count {
    so_far: u64,
    last: Instant,
}

impl Refusals {
    /// Counts a refused request of an address, or of the Unix socket. Returns the number so far if
    /// it is to be noted: the first, and then every doubling.
    pub(crate) fn count(&mut self, address: Option<IpAddr>, now: Instant) -> Option<u64> {
        let is_new = !self.0.contains_key(&address);
        if is_new && self.0.len() > ADDRESSES {
            self.0.retain(|_, own| now - own.last < QUIET);
        }
        let is_full = is_new && self.0.len() > ADDRESSES;
        let key = if is_full { None } else { address };
        let count = self.0.entry(key).or_insert(Count {
            so_far: 0,
            last: now,
        });
        count.so_far += 1;
        count.last = now;
        count.so_far.is_power_of_two().then_some(count.so_far)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    fn address(at: u128) -> Option<IpAddr> {
        Some(Ipv6Addr::from(at).into())
    }

    #[test]
    fn each_address_is_noted_whatever_others_have_done() {
        let (mut refusals, now) = (Refusals::default(), Instant::now());
        let noted = (0..1_000).filter_map(|_| refusals.count(address(1), now));
        assert_eq!(
            noted.collect::<Vec<_>>(),
            [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
        );
        assert_eq!(refusals.count(address(2), now), Some(1));
    }

    #[test]
    fn many_addresses_take_little_memory_and_few_lines() {
        let (mut refusals, now) = (Refusals::default(), Instant::now());
        let noted = (0..100_000).filter_map(|at| refusals.count(address(at), now));
        assert!(noted.count() < 300);
        assert!(refusals.0.len() <= ADDRESSES + 2);
        // Quiet ones make room.
        assert_eq!(refusals.count(address(1 << 90), now + QUIET), Some(1));
    }
}
