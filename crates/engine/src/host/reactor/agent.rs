//! The host's duty cycle, its sleep and its end.

use super::{DIRECT, ENDING, Host, SCAN};
use crate::agent::{Agent, AgentError};
use crate::host::handler::Handler;
use crate::host::hosted::Hosted;
use crate::host::peer::SessionKey;
use fanfare_fix::session::{Config, Now, SECOND};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// The longest time that a stop waits for counterparties that read slowly, in nanoseconds. Service
/// managers kill a process that takes much longer. A longer `Config::logout_timeout` takes
/// precedence.
const LONGEST_STOP: u64 = 20 * SECOND;

/// Returns the longest time that a stop waits for the logout of a session, in nanoseconds.
fn longest_stop(config: &Config) -> u64 {
    let most = config.longest_logout().min(LONGEST_STOP);
    most.max(config.logout_timeout)
}

impl<H: Handler> Agent for Host<H> {
    fn name(&self) -> &str {
        &self.name
    }

    fn on_start(&mut self, _now: Now) -> Result<(), AgentError> {
        self.remote.begin();
        Ok(())
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        self.turn = self.turn.wrapping_add(1);
        if self.bench.log.is_some() && self.is_held(now) {
            // No timeout is checked while nothing is read. The log is checked again soon.
            self.next_scan = now.mono + SCAN;
            return Ok(0);
        }
        let mut work = match self.bench.handler.handler.is_due() {
            true => self.application(now),
            false => 0,
        };
        let directly = self.live.len() <= DIRECT;
        work += match directly {
            true => self.receive_directly(now),
            false => self.poll(now)?,
        };
        work += self.resend(now);
        work += self.application(now);
        work += self.take_requests(now);
        let scans = self.scans(now, work);
        if directly && (scans || self.asks(work)) {
            work += self.poll(now)?;
        }
        if scans {
            work += self.timers(now);
        }
        if directly && work == 0 && !self.sleeps {
            // The work between two reads is what a message waits for; a read in the middle halves
            // it.
            work += self.receive_directly(now);
        }
        self.busy = work > 0;
        Ok(work)
    }

    /// Logs every session out and waits for the responses. No Logon is accepted meanwhile.
    fn on_close(&mut self, now: Now) {
        self.end_requests(now);
        self.closing = true;
        for number in 0..self.next_port {
            self.stop_listening(number, now);
        }
        self.sleeps = true;
        self.watch_as_needed(now);
        self.call_on_close(now);
        let mut longest = 0;
        for index in 0..self.hosted.len() {
            let Some(hosted) = self.hosted.get_mut(index) else {
                break;
            };
            if hosted.link.is_some() {
                longest = longest.max(longest_stop(hosted.session.config()));
                hosted.session.logout(now, "");
                self.write(SessionKey(index), now);
            }
        }
        let deadline = now.mono.saturating_add(longest).saturating_add(ENDING);
        while !self.is_quiet() {
            let now = self.clock.read();
            // The log may delay the end, but not beyond the deadline.
            self.is_held(now);
            let asked = self.poll(now);
            self.timers(now);
            let resent = self.resend(now);
            if asked.is_err() || now.mono >= deadline {
                break;
            }
            if matches!(asked, Ok(0))
                && resent == 0
                && self.poller.poll(Some(Duration::from_millis(1))).is_err()
            {
                break;
            }
        }
    }

    fn wait_for<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.push(self.poller.as_fd());
    }

    fn before_sleep(&mut self) {
        self.remote.prepare_sleep();
        if !self.sleeps {
            self.sleeps = true;
            let now = self.clock.read();
            self.watch_as_needed(now);
        }
    }

    fn after_sleep(&mut self) {
        self.remote.awake();
    }

    fn next_timer(&self) -> Option<u64> {
        if self.held {
            return Some(self.next_scan);
        }
        let of_session = |hosted: &Hosted| match &hosted.connector {
            // A connection attempt under way is polled at each scan.
            Some(connector) if hosted.link.is_none() && !hosted.is_stopped => {
                Some(connector.due().max(self.next_scan))
            }
            _ => hosted.session.poll_timeout(),
        };
        let sessions = self.hosted.iter().filter_map(of_session);
        let slots = self.slots.iter().filter_map(|(_, slot)| slot.deadline());
        let ports = self.ports.values().filter_map(|own| own.port.deadline());
        // Nothing was done, so that their handlers had no room: that is asked again at the scan.
        let pending = (!self.bench.pending.is_empty()).then_some(self.next_scan);
        sessions
            .chain(pending)
            .chain(slots)
            .chain(ports)
            .chain(self.bench.handler.handler.next_turn())
            .min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_fix::session::{SessionId, Version};

    #[test]
    fn a_stop_waits_as_long_as_a_service_manager_permits() {
        let mut config = Config::new(SessionId::new(Version::Fix44, "US", "PEER"));
        for (timeout, longest) in [(1, 11), (4, 40), (5, 40), (60, 60)] {
            config.logout_timeout = timeout * SECOND / 2;
            assert_eq!(longest_stop(&config), longest * SECOND / 2, "{timeout}");
        }
    }
}
