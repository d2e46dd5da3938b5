//! DDS domains that no other test is in.

use std::cell::RefCell;
use std::net::{Ipv4Addr, UdpSocket};
use std::ops::RangeInclusive;

/// Domains whose ports are below those that the system picks for anybody (32,768 and up): in the
/// others a stranger's socket may be where the first participant is looked for.
const QUIET: RangeInclusive<u32> = 1..=100;
/// The rest, for the case that there are that many tests at the same time.
const OTHERS: RangeInclusive<u32> = 101..=229;

thread_local! {
    /// What holds the domains of this thread: of a test, which has one.
    static HELD: RefCell<Vec<UdpSocket>> = const { RefCell::new(Vec::new()) };
}

/// A DDS domain id, 1 to 229, that no other caller in this process or another has until this
/// thread ends: that of a test. It is held by a socket at a port of the domain that RTPS does not
/// use (DDSI-RTPS 9.6.1.1), so that nothing is left behind, however the process ends.
///
/// # Panics
/// All domains are taken.
#[must_use]
#[allow(clippy::panic, reason = "for tests")]
pub fn domain() -> u32 {
    for id in QUIET.chain(OTHERS) {
        let port = u16::try_from(7_400 + 250 * id + 9).unwrap_or(u16::MAX);
        if let Ok(socket) = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)) {
            HELD.with_borrow_mut(|held| held.push(socket));
            return id;
        }
    }
    panic!("other tests hold all DDS domains");
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_caller_gets_another() {
        let (first, second) = (super::domain(), super::domain());
        assert_ne!(first, second);
        assert!((1..=229).contains(&first) && (1..=229).contains(&second));
    }
}
