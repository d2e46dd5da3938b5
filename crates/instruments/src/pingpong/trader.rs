//! The side that sends orders and measures the time until their reports.

use std::collections::VecDeque;
use std::net::SocketAddr;

use fanfare_engine::clock::Clock;
use fanfare_engine::host::{Handler, Peer, Peers, Refusal};
use fanfare_fix::session::{AppMessage, DisconnectReason, LogonFault, SendError, StoreError};
use fanfare_fix::{msg_type, tag};

use super::orders::write_order;
use crate::histogram::Histogram;

/// The schedule of orders.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// An order after the report of the one before: one in flight.
    PingPong,
    /// This many orders per second on schedule, regardless of reports; an order's time counts from
    /// when it was due, so that its delay is included.
    OpenLoop(f64),
}

/// The most orders without a report under [`Pace::OpenLoop`]; further ones are sent late, and their
/// time counts all the same.
const MOST_IN_FLIGHT: usize = 1 << 16;

/// A sender of as many orders as it was [allowed](Self::allow), which records their round trips:
/// from before the order is encoded until its report was decoded and checked by the session.
#[derive(Debug)]
pub struct Trader {
    pace: Pace,
    clock: Clock,
    allowed: u64,
    sent: u64,
    received: u64,
    /// The number of the next round trips that are not recorded.
    skip: u64,
    /// The time at which the order with number `schedule.1` was due.
    schedule: (u64, u64),
    /// The times at which each order without a report was sent, or was due.
    in_flight: VecDeque<u64>,
    round_trips: Histogram,
    span: Option<(u64, u64)>,
    logged_on: bool,
    trouble: Option<String>,
    /// The fault in the server's Logon.
    fault: Option<LogonFault>,
}

impl Trader {
    /// Creates a trader that may not send yet.
    pub fn new(pace: Pace) -> Self {
        Self {
            pace,
            clock: Clock::new(),
            allowed: 0,
            sent: 0,
            received: 0,
            skip: 0,
            schedule: (0, 0),
            in_flight: VecDeque::with_capacity(match pace {
                Pace::PingPong => 1,
                Pace::OpenLoop(_) => MOST_IN_FLIGHT,
            }),
            round_trips: Histogram::new(),
            span: None,
            logged_on: false,
            trouble: None,
            fault: None,
        }
    }

    /// Allows it to send `orders` more. The round trips of the first `skip` of them are not
    /// recorded.
    pub fn allow(&mut self, orders: u64, skip: u64) {
        self.allowed += orders;
        self.skip = skip;
        self.schedule = (0, self.sent);
    }

    /// Returns whether all orders have their reports.
    pub fn is_done(&self) -> bool {
        self.received == self.allowed
    }

    /// Returns the number of reports received.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Returns whether an order has no report yet.
    pub fn is_waiting(&self) -> bool {
        self.sent > self.received
    }

    /// Returns whether the session is logged on.
    pub fn is_logged_on(&self) -> bool {
        self.logged_on
    }

    /// Returns the failure that ended the run, if there was one.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Returns the fault in the server's Logon, if that ended the session.
    pub fn logon_fault(&self) -> Option<LogonFault> {
        self.fault
    }

    /// Returns the round trips in nanoseconds, without those that were skipped.
    pub fn round_trips(&self) -> &Histogram {
        &self.round_trips
    }

    /// Removes the round trips so far.
    pub fn clear(&mut self) {
        self.round_trips.clear();
    }

    /// Returns the seconds from the first order that counts to the last report.
    pub fn seconds(&self) -> f64 {
        self.span.map_or(0.0, |(from, to)| (to - from) as f64 / 1e9)
    }

    /// Returns the time at which the next order counts as sent, if it is due now.
    fn due(&mut self) -> Option<u64> {
        if self.sent == self.allowed || self.trouble.is_some() {
            return None;
        }
        match self.pace {
            Pace::PingPong => self.in_flight.is_empty().then(|| self.clock.read().mono),
            Pace::OpenLoop(rate) => {
                let now = self.clock.read().mono;
                self.scheduled(now, rate)
            }
        }
    }

    /// Returns the time at which the next order was due, if that is not after `now`. The schedule
    /// begins with the first call.
    fn scheduled(&mut self, now: u64, rate: f64) -> Option<u64> {
        if self.schedule.0 == 0 {
            self.schedule.0 = now;
        }
        let after = (self.sent - self.schedule.1) as f64 / rate * 1e9;
        let due = self.schedule.0.saturating_add(after as u64);
        (due <= now && self.in_flight.len() < MOST_IN_FLIGHT).then_some(due)
    }

    fn order(&mut self, peer: &mut Peer<'_>, due: u64) -> bool {
        let (number, time) = (self.sent + 1, peer.now().utc);
        let sent = peer.send(msg_type::NEW_ORDER_SINGLE, |order| {
            write_order(order, number, time);
        });
        match sent {
            Ok(_) => {
                self.sent = number;
                self.in_flight.push_back(due);
            }
            Err(SendError::Store(StoreError::Full)) => {}
            Err(error) => self.trouble = Some(format!("order {number}: {error}")),
        }
        sent.is_ok()
    }

    /// Takes the report of the order that was sent, or due, at `due`.
    fn take(&mut self, due: u64, now: u64) {
        self.received += 1;
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        self.round_trips.record(now.saturating_sub(due));
        let (first, _) = *self.span.get_or_insert((due, now));
        self.span = Some((first, now));
    }
}

impl Handler for Trader {
    fn on_turn(&mut self, peers: &mut Peers<'_>) -> usize {
        let Some(mut due) = self.due() else { return 0 };
        let Some(mut peer) = peers.logged_on().next() else {
            return 0;
        };
        let before = self.sent;
        while self.order(&mut peer, due) {
            match self.due() {
                Some(next) => due = next,
                None => break,
            }
        }
        (self.sent - before) as usize
    }

    fn on_message(&mut self, _peer: &mut Peer<'_>, message: &AppMessage<'_>) {
        let report = &message.message;
        if report.msg_type() != msg_type::EXECUTION_REPORT {
            return;
        }
        let (expected, now) = (self.received + 1, self.clock.read().mono);
        match (self.in_flight.pop_front(), report.opt_u64(tag::CL_ORD_ID)) {
            // A server may omit the order's id: reports come in order.
            (Some(due), Ok(None)) => self.take(due, now),
            (Some(due), Ok(Some(number))) if number == expected => self.take(due, now),
            _ => self.trouble = Some(format!("the report of order {expected} did not come next")),
        }
    }

    fn on_logon(&mut self, _peer: &mut Peer<'_>) {
        self.logged_on = true;
    }

    fn on_disconnect(&mut self, _peer: &mut Peer<'_>, reason: DisconnectReason) {
        self.logged_on = false;
        if let DisconnectReason::BadLogon(fault) = reason {
            self.fault = Some(fault);
        }
        if !self.is_done() || self.allowed == 0 {
            self.trouble.get_or_insert(format!("session: {reason}"));
        }
    }

    fn on_refused(&mut self, address: SocketAddr, why: &Refusal) {
        self.trouble.get_or_insert(format!("{address}: {why}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn send_due(trader: &mut Trader, now: u64) -> usize {
        let mut count = 0;
        while trader.sent < trader.allowed
            && let Some(due) = trader.scheduled(now, 1000.0)
        {
            trader.sent += 1;
            trader.in_flight.push_back(due);
            count += 1;
        }
        count
    }

    #[test]
    fn an_order_that_had_to_wait_counts_from_when_it_was_due() {
        let mut trader = Trader::new(Pace::OpenLoop(1000.0));
        trader.allow(10, 0);
        let start = 77 * MS;
        assert_eq!(send_due(&mut trader, start), 1);
        assert_eq!(send_due(&mut trader, start + MS / 2), 0);
        // The thread was suspended: orders due meanwhile are sent late.
        assert_eq!(send_due(&mut trader, start + 5 * MS), 5);
        let dues: Vec<u64> = trader
            .in_flight
            .iter()
            .map(|due| (due - start) / MS)
            .collect();
        assert_eq!(dues, [0, 1, 2, 3, 4, 5]);
        while let Some(due) = trader.in_flight.pop_front() {
            trader.take(due, start + 6 * MS);
        }
        assert_eq!(trader.round_trips().min(), Some(MS));
        assert_eq!(trader.round_trips().max(), Some(6 * MS));
        // The schedule continues unshifted.
        assert_eq!(send_due(&mut trader, start + 6 * MS), 1);
        assert_eq!(send_due(&mut trader, start + 100 * MS), 3);
        assert!(!trader.is_done() && trader.is_waiting());
    }

    #[test]
    fn no_more_than_the_limit_is_in_flight_and_the_rest_is_late() {
        let mut trader = Trader::new(Pace::OpenLoop(1000.0));
        trader.allow(u64::MAX / 2, 0);
        let start = MS;
        assert_eq!(send_due(&mut trader, start), 1);
        let hour = start + 3_600_000 * MS;
        assert_eq!(send_due(&mut trader, hour), MOST_IN_FLIGHT - 1);
        let first = trader.in_flight.pop_front().unwrap();
        trader.take(first, hour);
        assert_eq!(send_due(&mut trader, hour), 1);
        let late = hour - trader.in_flight.back().unwrap();
        assert_eq!(late, (3_600_000 - MOST_IN_FLIGHT as u64) * MS);
    }

    #[test]
    fn skipped_round_trips_are_not_recorded() {
        let mut trader = Trader::new(Pace::PingPong);
        trader.allow(3, 2);
        for now in [5, 6, 9] {
            trader.take(1, now);
        }
        assert_eq!(
            (trader.round_trips().len(), trader.round_trips().min()),
            (1, Some(8))
        );
        assert_eq!((trader.received(), trader.is_done()), (3, true));
        trader.clear();
        assert!(trader.round_trips().is_empty());
    }
}
