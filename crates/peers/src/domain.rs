//! DDS domains for the exclusive use of one test.

use std::cell::RefCell;
use std::net::{Ipv4Addr, UdpSocket};
use std::ops::RangeInclusive;

/// Domains whose ports are below the system's ephemeral ports (32,768 and up): in the others a
/// foreign socket may have the port of the first participant.
const QUIET: RangeInclusive<u32> = 1..=100;
/// The other domains, for many simultaneous tests.
const OTHERS: RangeInclusive<u32> = 101..=229;

thread_local! {
    /// The sockets that hold the domains of this thread, that is, of a test.
    static HELD: RefCell<Vec<UdpSocket>> = const { RefCell::new(Vec::new()) };
}

/// Returns a DDS domain id from 1 to 229. No other caller, in this process or another, receives it
/// before the calling thread ends. The ports of the first participant are free in the domain.
///
/// A socket at a port of the domain that RTPS does not use (DDSI-RTPS 9.6.1.1) reserves the domain.
/// The system closes it however the process ends.
///
/// # Panics
/// All domains are taken.
#[must_use]
#[allow(clippy::panic, reason = "for tests")]
pub fn domain() -> u32 {
    for id in QUIET.chain(OTHERS) {
        let first = u16::try_from(7_400 + 250 * id).unwrap_or(u16::MAX - 11);
        let Ok(socket) = UdpSocket::bind((Ipv4Addr::LOCALHOST, first + 9)) else {
            continue;
        };
        // A participant of the last holder may be closing on another thread.
        let is_free = |port: u16| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok();
        if is_free(first + 10) && is_free(first + 11) {
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
