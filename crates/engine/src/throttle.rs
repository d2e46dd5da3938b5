//! The throttling of clients that send wrong passwords and keys.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

/// The time for which no password is checked after the first wrong one, in nanoseconds. It doubles
/// after each further one, up to the longest.
const FIRST: u64 = 250_000_000;
const LONGEST: u64 = 32_000_000_000;
/// The time after which wrong passwords are forgotten, counted from the last one.
const FORGOTTEN: u64 = 600_000_000_000;
/// The most users and addresses that are remembered. At the limit, the one whose last wrong
/// password is the oldest is forgotten.
const MOST: usize = 16_384;

/// The senders of wrong passwords, by user and address: see
/// [`network_of`](crate::host::network_of). For one thread.
///
/// After a wrong password none of the same user from the same address is checked for 0.25 s. The
/// time doubles with each further wrong one up to 32 s, until one is right, or for 10 minutes.
/// 16,384 users and addresses are remembered; beyond these, the one with the oldest wrong password
/// is forgotten.
///
/// ```
/// use fanfare_engine::throttle::Throttle;
/// use std::net::IpAddr;
/// use std::sync::Arc;
///
/// let mut throttle = Throttle::default();
/// let (user, address): (Arc<str>, IpAddr) = ("desk".into(), "192.0.2.1".parse()?);
/// throttle.failed(&user, address, 0);
/// assert_eq!(throttle.wait(&user, address, 50_000_000), Some(200_000_000));
/// throttle.succeeded(&user, address);
/// assert_eq!(throttle.wait(&user, address, 50_000_000), None);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Default)]
pub struct Throttle(HashMap<(Arc<str>, IpAddr), Wrong>);

struct Wrong {
    count: u32,
    last: u64,
}

impl Wrong {
    const fn until(&self) -> u64 {
        let doublings = self.count.saturating_sub(1);
        let delay = if doublings < 10 {
            FIRST << doublings
        } else {
            LONGEST
        };
        self.last + if delay < LONGEST { delay } else { LONGEST }
    }
}

impl Throttle {
    /// Returns for how long no password of this user from this address is checked, in nanoseconds;
    /// `None` if one is. `now` is monotonic, in nanoseconds.
    #[must_use]
    pub fn wait(&self, user: &Arc<str>, address: IpAddr, now: u64) -> Option<u64> {
        // Avoids the look-up in an empty map.
        if self.0.is_empty() {
            return None;
        }
        let wrong = self.0.get(&(Arc::clone(user), address))?;
        wrong.until().checked_sub(now).filter(|&left| left > 0)
    }

    /// Records a wrong password. Takes time linear in the number of users and addresses at the
    /// limit, and allocates.
    pub fn failed(&mut self, user: &Arc<str>, address: IpAddr, now: u64) {
        let key = (Arc::clone(user), address);
        if self.0.len() >= MOST && !self.0.contains_key(&key) {
            self.make_room(now);
        }
        let wrong = self.0.entry(key).or_insert(Wrong {
            count: 0,
            last: now,
        });
        if now.saturating_sub(wrong.last) >= FORGOTTEN {
            wrong.count = 0;
        }
        wrong.count = wrong.count.saturating_add(1);
        wrong.last = now;
    }

    /// Records a correct password.
    pub fn succeeded(&mut self, user: &Arc<str>, address: IpAddr) {
        if !self.0.is_empty() {
            self.0.remove(&(Arc::clone(user), address));
        }
    }

    fn make_room(&mut self, now: u64) {
        self.0
            .retain(|_, wrong| now.saturating_sub(wrong.last) < FORGOTTEN);
        if self.0.len() < MOST {
            return;
        }
        let oldest = self.0.iter().min_by_key(|(_, wrong)| wrong.last);
        if let Some(key) = oldest.map(|(key, _)| key.clone()) {
            self.0.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn each_wrong_password_doubles_the_wait_up_to_a_limit() {
        let mut throttle = Throttle::default();
        let user: Arc<str> = "desk".into();
        assert_eq!(throttle.wait(&user, HERE, 0), None);
        let mut now = 1;
        for expected in [250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 32_000] {
            throttle.failed(&user, HERE, now);
            let wait = throttle.wait(&user, HERE, now).unwrap();
            assert_eq!(wait, expected * 1_000_000);
            now += wait;
            assert_eq!(throttle.wait(&user, HERE, now), None);
        }
        let other: Arc<str> = "other".into();
        throttle.failed(&user, HERE, now);
        assert_eq!(throttle.wait(&other, HERE, now), None);
        let there = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(throttle.wait(&user, there, now), None);
        throttle.succeeded(&user, HERE);
        assert_eq!(throttle.wait(&user, HERE, now), None);
    }

    #[test]
    fn what_is_long_ago_is_forgotten() {
        let mut throttle = Throttle::default();
        let user: Arc<str> = "desk".into();
        (0..50).for_each(|_| throttle.failed(&user, HERE, 1));
        throttle.failed(&user, HERE, 1 + FORGOTTEN);
        assert_eq!(throttle.wait(&user, HERE, 1 + FORGOTTEN), Some(FIRST));
    }

    #[test]
    fn memory_is_bounded() {
        let mut throttle = Throttle::default();
        let user: Arc<str> = "desk".into();
        let address = |i: u32| IpAddr::V4(Ipv4Addr::from_bits(i));
        for i in 0..=MOST as u32 {
            throttle.failed(&user, address(i), u64::from(i));
        }
        assert_eq!(throttle.0.len(), MOST);
        assert_eq!(throttle.wait(&user, address(0), 1), None);
        assert!(throttle.wait(&user, address(1), 1).is_some());
    }
}
