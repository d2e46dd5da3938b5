//! Gaps in the received numbers. Missing messages are requested once, while later ones wait in
//! order.

use std::collections::BTreeMap;

use super::Session;
use super::config::SECOND;
use super::event::{DisconnectReason, Event};
use super::now::Now;
use super::store::MessageStore;
use super::timers::NEVER;
use crate::codec::Message;

/// The time for which a message may be missing that the open request may not have asked for: the
/// last one of a part after a gap fill, and those that found no room.
const SHORT_OF_ONE: u64 = SECOND;

/// A gap in the numbers received, and the messages that wait after it.
#[derive(Debug)]
pub(super) struct Gap {
    /// The last missing number.
    end: u64,
    /// The last number that the open ResendRequest(2) requests.
    asked: u64,
    /// Whether the open ResendRequest(2) requests everything after its first number, too.
    open_ended: bool,
    /// The messages with higher numbers. `None` is the number of a message that has been dealt with
    /// already, the Logon(A), and only counts.
    held: BTreeMap<u64, Option<Vec<u8>>>,
    /// The number of bytes of the messages in `held`.
    bytes: usize,
    /// The highest number of a message that found no room in `held`; 0 for none.
    dropped: u64,
    /// The number of times that the gap was requested again.
    retries: u32,
    /// Whether the open request may have been answered before the missing messages were sent.
    unsure: bool,
}

impl Gap {
    /// Returns the count of the messages that wait after the gap.
    pub(super) fn messages(&self) -> u64 {
        self.held.values().flatten().count() as u64
    }
}

impl<S: MessageStore> Session<S> {
    /// Holds a message whose number is above the expected one. Opens a gap if there is none, and
    /// requests the missing messages unless `ask` is false because they come by themselves.
    #[cold]
    pub(super) fn too_high(
        &mut self,
        now: Now,
        seq: u64,
        message: Option<&Message<'_>>,
        ask: bool,
    ) {
        if self.gap.is_none() {
            self.open_gap(now, seq - 1, ask);
        }
        self.hold(seq, message);
    }

    fn open_gap(&mut self, now: Now, end: u64, ask: bool) {
        let gap = Gap {
            end,
            asked: end,
            open_ended: false,
            held: BTreeMap::new(),
            bytes: 0,
            dropped: 0,
            retries: 0,
            unsure: false,
        };
        self.gap = Some(Box::new(gap));
        let begin = self.store.next_target();
        self.notice(Event::GapDetected { begin, end });
        self.plan_gap_timeout(now);
        if ask {
            self.ask_for_gap(now);
        }
    }

    /// Requests the missing messages, or the first part of them.
    fn ask_for_gap(&mut self, now: Now) {
        let begin = self.store.next_target();
        let open_end = self.config.id.version.open_end();
        let chunk = self.config.resend_request_chunk;
        let Some(gap) = &mut self.gap else { return };
        let whole = chunk == 0 || gap.end - begin < chunk;
        gap.asked = if whole { gap.end } else { begin + chunk - 1 };
        let open = whole && !self.config.closed_resend_interval;
        gap.open_ended = open;
        gap.unsure = false;
        let end = if open { open_end } else { gap.asked };
        self.send_resend_request(now, begin, end);
    }

    fn hold(&mut self, seq: u64, message: Option<&Message<'_>>) {
        let limits = self.config.gap_queue;
        let Some(gap) = &mut self.gap else { return };
        if gap.held.contains_key(&seq) {
            return;
        }
        let len = message.map_or(0, |message| message.bytes().len());
        if gap.held.len() >= limits.messages || gap.bytes + len > limits.bytes {
            let is_first = gap.dropped == 0;
            gap.dropped = gap.dropped.max(seq);
            if is_first {
                self.notice(Event::QueueFull { seq });
            }
            return;
        }
        gap.bytes += len;
        gap.held
            .insert(seq, message.map(|message| message.bytes().to_vec()));
    }

    /// Removes the held message with the expected number, and returns it.
    #[cold]
    pub(super) fn take_held(&mut self) -> Option<Vec<u8>> {
        let expected = self.store.next_target();
        let gap = self.gap.as_mut()?;
        let held = gap.held.remove(&expected)??;
        gap.bytes -= held.len();
        Some(held)
    }

    /// Advances the gap after the expected number has moved.
    #[cold]
    pub(super) fn gap_advanced(&mut self, now: Now) {
        let mut expected = self.store.next_target();
        let Some(gap) = &mut self.gap else { return };
        let mut counted = expected;
        while let Some(entry) = gap.held.first_entry() {
            match (*entry.key(), entry.get()) {
                (seq, None) if seq == counted => counted += 1,
                (seq, _) if seq < counted => {}
                _ => break,
            }
            if let Some(bytes) = entry.remove() {
                gap.bytes -= bytes.len();
            }
        }
        if counted != expected {
            if let Err(error) = self.store.set_next_target(counted) {
                return self.end(now, DisconnectReason::Store(error));
            }
            expected = counted;
        }
        self.continue_gap(now, expected);
    }

    /// Requests the messages that are still missing and have not been requested. Closes the gap if
    /// there are none.
    pub(super) fn continue_gap(&mut self, now: Now, expected: u64) {
        let Some(gap) = &mut self.gap else { return };
        gap.retries = 0;
        if expected <= gap.end {
            let next_part = expected > gap.asked;
            self.plan_gap_timeout(now);
            if next_part {
                self.ask_for_gap(now);
            }
            return;
        }
        let held = gap.held.first_key_value().map(|(&seq, _)| seq);
        let end = match held {
            // Its turn has come.
            Some(seq) if seq <= expected => return,
            // A hole among those that waited.
            Some(seq) => seq - 1,
            // Those that found no room.
            None if gap.dropped >= expected => gap.dropped,
            None => {
                self.gap = None;
                self.timers.gap = NEVER;
                return self.notice(Event::GapClosed { next: expected });
            }
        };
        gap.end = end;
        // An open end has requested them already, unless the counterparty had answered it before it
        // sent them: the timeout, a short one, requests them again.
        let is_asked = held.is_none() && gap.open_ended && self.config.resend_request_timeout > 0;
        if is_asked {
            gap.asked = end;
        }
        gap.unsure = is_asked;
        let begin = expected;
        self.notice(Event::GapDetected { begin, end });
        self.plan_gap_timeout(now);
        if !is_asked {
            self.ask_for_gap(now);
        }
    }

    /// Handles a gap fill that has moved the expected number. A gap fill that is meant to end the
    /// requested part may name its last number as the next one. If that message does not come, it
    /// is requested soon, with the next part.
    pub(super) fn gap_filled(&mut self, now: Now) {
        let expected = self.store.next_target();
        let short_of_one = |gap: &Gap| gap.asked == expected && gap.asked < gap.end;
        if self.gap.as_deref().is_some_and(short_of_one) && self.is_logged_on() {
            let soon = now.mono.saturating_add(SHORT_OF_ONE);
            self.timers.gap = self.timers.gap.min(soon);
        }
    }

    fn plan_gap_timeout(&mut self, now: Now) {
        let is_unsure = self.gap.as_deref().is_some_and(|gap| gap.unsure);
        let most = if is_unsure { SHORT_OF_ONE } else { NEVER };
        self.timers.gap = match self.config.resend_request_timeout {
            timeout if timeout > 0 && self.is_logged_on() => {
                now.mono.saturating_add(timeout.min(most))
            }
            _ => NEVER,
        };
    }

    /// Requests a gap that makes no progress again, and then gives it up.
    pub(super) fn check_gap_timeout(&mut self, now: Now) {
        if now.mono < self.timers.gap {
            return;
        }
        let Some(gap) = &mut self.gap else {
            self.timers.gap = NEVER;
            return;
        };
        if self.store.next_target() > gap.end {
            // The messages are there and wait for the caller.
            return self.plan_gap_timeout(now);
        }
        if !gap.unsure {
            gap.retries += 1;
        }
        if gap.retries > self.config.resend_request_retries {
            let reason = DisconnectReason::ResendTimeout;
            return self.start_logout(now, b"Missing messages did not come", Some(reason));
        }
        self.ask_for_gap(now);
        self.plan_gap_timeout(now);
    }
}
