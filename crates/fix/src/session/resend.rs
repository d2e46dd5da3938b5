//! Answering a ResendRequest: in bounded parts, on one ordered path with everything new.

use std::ops::Range;

use fanfare_wire::fields::{SOH, parse_tag};

use super::Session;
use super::config::Limits;
use super::event::{DisconnectReason, Event, SendError};
use super::now::Now;
use super::outgoing_header::{Head, OutField};
use super::store::{Again, Kind, MessageStore, Search, StoreError};
use super::timers::NEVER;
use crate::codec::Encoder;
use crate::{msg_type, tag};

/// A resend under way. What is sent meanwhile is kept in the store and follows, in order, when the
/// part asked for is done; it is new to the counterparty and goes as it is.
#[derive(Debug)]
pub(super) struct Replay {
    /// The number to look at next.
    cursor: u64,
    /// Last number asked for.
    end: u64,
    /// First number that was never transmitted.
    live_from: u64,
    /// First number of a gap fill that is not yet written.
    fill_from: Option<u64>,
    /// Where headers and gap fills are encoded.
    head: Vec<u8>,
    /// Application messages sent again, and numbers filled.
    messages: u64,
    filled: u64,
    /// The counterparty has asked for a resend; otherwise messages only wait for their rate.
    asked: bool,
    /// New application messages that wait.
    pub(super) waiting: usize,
}

impl Replay {
    /// Returns a state without a resend; new messages begin with number `next`.
    pub(super) fn of_new(next: u64) -> Self {
        Self {
            cursor: next,
            end: next - 1,
            live_from: next,
            fill_from: None,
            head: Vec::new(),
            messages: 0,
            filled: 0,
            asked: false,
            waiting: 0,
        }
    }

    /// Returns whether nothing was asked for and nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        !self.asked && self.waiting == 0
    }

    /// Moves the cursor to `next`; a gap fill will cover the numbers in between.
    fn skip_to(&mut self, next: u64) {
        self.fill_from.get_or_insert(self.cursor);
        self.cursor = next;
    }

    /// Returns whether all that was asked for has been sent.
    fn is_live(&self) -> bool {
        self.cursor > self.end && self.fill_from.is_none()
    }
}

/// How far a part of a resend got.
enum Progress {
    /// One step done.
    More,
    /// What is next has to wait for its rate.
    Paced,
    /// Everything sent, what came meanwhile included.
    Done,
}

/// Limits of a part that has only new messages, which are transmitted unchanged at little cost.
const LIVE_CHUNK: Limits = Limits {
    messages: 256,
    bytes: 64 << 10,
};

/// What the header of a gap fill and of a resent message needs more than the original.
const RESEND_ROOM: usize = 512;

impl<S: MessageStore> Session<S> {
    /// Sends `begin..=end` again. A resend that is already under way goes on from there.
    pub(super) fn start_replay(&mut self, now: Now, begin: u64, end: u64) {
        let next = self.store.next_sender();
        let is_running = self.replay.is_some();
        let mut replay = match self.replay.take() {
            Some(mut running) => {
                // What was new and has been transmitted by now is new no more.
                running.live_from = match self.store.keeps() {
                    true => running.live_from.max(running.cursor),
                    false => next,
                };
                running
            }
            None => Box::new(Replay::of_new(next)),
        };
        replay.asked = true;
        // What waits has not been sent: nobody can have missed it.
        replay.cursor = begin.min(replay.live_from);
        replay.end = end.min(replay.live_from - 1);
        replay.fill_from = None;
        self.store.retain_from(Some(begin.min(replay.live_from)));
        self.replay = Some(replay);
        // The next part of a resend that is under way comes in its turn: one read can bring
        // thousands of requests, and other sessions of the thread wait for the end of it. The gap
        // fill of a store that keeps nothing comes at once, as nothing can wait behind it.
        let has_room = self.store.unsent_len() < self.config.resend_chunk.bytes;
        if !is_running && (has_room || !self.store.keeps()) {
            self.replay_chunk(now);
        }
    }

    pub(super) fn drop_replay(&mut self) {
        if self.replay.take().is_some() {
            self.store.retain_from(None);
        }
    }

    /// Returns when the next part may be written: when the one before has been transmitted, and new
    /// messages when their rate allows it.
    #[inline]
    pub(super) fn replay_due_at(&self) -> u64 {
        match &self.replay {
            Some(replay) if self.is_connected() && self.store.unsent_len() == 0 => {
                if replay.is_live() && replay.waiting > 0 {
                    self.paced_until()
                } else {
                    0
                }
            }
            _ => NEVER,
        }
    }

    /// Writes the next part of a resend.
    pub(super) fn replay_chunk(&mut self, now: Now) {
        let mut steps = 0;
        loop {
            let is_live = self.replay.as_ref().is_some_and(|replay| replay.is_live());
            let limits = match is_live {
                true => LIVE_CHUNK,
                false => self.config.resend_chunk,
            };
            let is_enough =
                steps >= limits.messages.max(1) || self.store.unsent_len() >= limits.bytes;
            if !self.is_connected() || (is_enough && steps > 0) {
                return;
            }
            steps += 1;
            // Out of the session while it works, so that both can be written to.
            let Some(mut replay) = self.replay.take() else {
                return;
            };
            let result = self.replay_step(now, &mut replay);
            match result {
                Ok(Progress::More) => self.replay = Some(replay),
                Ok(Progress::Paced) => {
                    self.replay = Some(replay);
                    return;
                }
                Ok(Progress::Done) => return self.replay_done(&replay),
                Err(error) => {
                    self.replay = Some(replay);
                    return self.replay_failed(now, &error);
                }
            }
        }
    }

    fn replay_done(&mut self, replay: &Replay) {
        self.store.retain_from(None);
        if replay.asked {
            self.notice(Event::ResendDone {
                messages: replay.messages,
                filled: replay.filled,
            });
        }
    }

    /// A full store is no failure while bytes wait: their transmission makes room.
    fn replay_failed(&mut self, now: Now, error: &SendError) {
        let reason = match *error {
            SendError::Store(StoreError::Full) if self.store.unsent_len() > 0 => return,
            SendError::Store(StoreError::Full) => DisconnectReason::TransmitFull,
            SendError::Store(error) => DisconnectReason::Store(error),
            _ => DisconnectReason::Store(StoreError::TooLong),
        };
        self.end(now, reason);
    }

    /// Looks at one kept message, or ends the part asked for, or sends one new message.
    fn replay_step(&mut self, now: Now, replay: &mut Replay) -> Result<Progress, SendError> {
        if replay.cursor > replay.end {
            self.fill_up_to(now, replay, replay.end + 1)?;
            return self.replay_live(now, replay);
        }
        self.fixed.set_time(now.utc, self.config.precision);
        match self.store.search_from(replay.cursor) {
            Search::Kept(stored) if stored.seq <= replay.end && stored.kind == Kind::App => {
                let seq = stored.seq;
                if seq > replay.cursor {
                    replay.fill_from.get_or_insert(replay.cursor);
                    replay.cursor = seq;
                }
                if replay.fill_from.is_some() {
                    self.fill_up_to(now, replay, seq)?;
                } else {
                    self.resend(now, replay)?;
                }
            }
            Search::Kept(stored) if stored.seq <= replay.end => replay.skip_to(stored.seq + 1),
            Search::NoneBelow(next) => replay.skip_to(next.min(replay.end + 1)),
            Search::Kept(_) | Search::Nothing => replay.skip_to(replay.end + 1),
        }
        self.store
            .retain_from(Some(replay.cursor.min(replay.live_from)));
        Ok(Progress::More)
    }

    /// Returns the messages that are new since the resend began, as they are.
    fn replay_live(&mut self, now: Now, replay: &mut Replay) -> Result<Progress, SendError> {
        let from = replay.cursor.max(replay.live_from);
        self.store.retain_from(Some(from));
        let stored = match self.store.search_from(from) {
            Search::Kept(stored) => stored,
            Search::NoneBelow(next) => {
                replay.cursor = next;
                return Ok(Progress::More);
            }
            Search::Nothing => return Ok(Progress::Done),
        };
        let (seq, is_app, len) = (stored.seq, stored.kind == Kind::App, stored.bytes.len());
        replay.cursor = seq;
        if is_app && self.paced_until() > now.mono {
            return Ok(Progress::Paced);
        }
        self.transmit_again(now, b"", Some((seq, 0..len)), b"")?;
        if is_app {
            replay.waiting = replay.waiting.saturating_sub(1);
            if let Some(window) = &mut self.send_window {
                window.note(now.mono);
            }
        }
        // `end` and `live_from` follow, so that the cursor stays in this part.
        replay.cursor += 1;
        replay.end = replay.end.max(replay.cursor - 1);
        Ok(Progress::More)
    }

    /// Writes the gap fill that is pending, if one is: from its first number to `next`.
    fn fill_up_to(&mut self, now: Now, replay: &mut Replay, next: u64) -> Result<(), SendError> {
        let Some(seq) = replay.fill_from else {
            return Ok(());
        };
        self.fixed.set_time(now.utc, self.config.precision);
        let gap_fill = Copied {
            seq,
            msg_type: msg_type::SEQUENCE_RESET,
            orig_time: None,
            others: &[],
        };
        let mut encoder = self.begin_copy(&mut replay.head, &gap_fill);
        encoder
            .u64(tag::NEW_SEQ_NO, next)
            .char(tag::GAP_FILL_FLAG, b'Y');
        let range = encoder.finish().map_err(SendError::Encode)?;
        let message = replay.head.get(range).unwrap_or_default();
        self.transmit_again(now, message, None, b"")?;
        replay.fill_from = None;
        replay.filled += next - seq;
        Ok(())
    }

    /// Sends the kept message at the cursor again: PossDupFlag(43), its old SendingTime(52) as
    /// OrigSendingTime(122), a new SendingTime. The store transmits the body from where it is kept.
    fn resend(&mut self, now: Now, replay: &mut Replay) -> Result<(), SendError> {
        let Search::Kept(stored) = self.store.search_from(replay.cursor) else {
            return Err(SendError::Store(StoreError::NotKept));
        };
        let parts = Parts::of(stored.bytes);
        let resent = Copied {
            seq: stored.seq,
            msg_type: parts.msg_type,
            orig_time: Some(parts.sending_time),
            others: &parts.others,
        };
        let encoder = self.begin_copy(&mut replay.head, &resent);
        let (head, trailer) = encoder
            .finish_around(parts.body)
            .map_err(SendError::Encode)?;
        let kept = (stored.seq, parts.body_at..parts.body_at + parts.body.len());
        let head = replay.head.get(head).unwrap_or_default();
        self.transmit_again(now, head, Some(kept), &trailer)?;
        replay.messages += 1;
        replay.cursor += 1;
        Ok(())
    }

    fn transmit_again(
        &mut self,
        now: Now,
        head: &[u8],
        kept: Option<(u64, Range<usize>)>,
        tail: &[u8],
    ) -> Result<(), SendError> {
        let again = Again { head, kept, tail };
        self.store
            .transmit_again(&again)
            .map_err(SendError::Store)?;
        self.timers.last_sent = now.mono;
        Ok(())
    }

    /// Begins a message that was sent before, or a gap fill in its place, in `room`. The caller has
    /// set the time.
    fn begin_copy<'r>(&self, room: &'r mut Vec<u8>, copied: &Copied<'_>) -> Encoder<'r> {
        let last_processed = self.store.next_target() - 1;
        let head = Head {
            seq: copied.seq,
            orig_time: copied.orig_time.or(Some(self.fixed.time_text())),
            last_processed: self.config.last_processed.then_some(last_processed),
            extra: copied.others,
        };
        let others = copied.others.iter().map(|field| field.1.len() + 12);
        let len = RESEND_ROOM + self.header_room() + others.sum::<usize>();
        if room.len() < len {
            room.resize(len, 0);
        }
        let begin_string = self.config.id.version.begin_string().as_bytes();
        let mut encoder = Encoder::new(room, begin_string, copied.msg_type);
        head.write(&self.fixed, &self.config, &mut encoder);
        encoder
    }
}

/// The header of a message that is sent in the place of one sent before.
struct Copied<'a> {
    seq: u64,
    msg_type: &'a [u8],
    /// OrigSendingTime(122); a gap fill has none before its own.
    orig_time: Option<&'a [u8]>,
    others: &'a [OutField<'a>],
}

/// One of our own messages, taken apart for a resend.
struct Parts<'a> {
    msg_type: &'a [u8],
    sending_time: &'a [u8],
    /// Header fields that neither the session nor the resend writes itself.
    others: Vec<OutField<'a>>,
    /// All fields behind the header, up to the trailer, and where they begin.
    body: &'a [u8],
    body_at: usize,
}

impl<'a> Parts<'a> {
    fn of(message: &'a [u8]) -> Self {
        // The trailer is `10=ddd|`.
        let end = message.len().saturating_sub(7);
        let mut rest = message.get(..end).unwrap_or_default();
        let mut parts = Self {
            msg_type: b"",
            sending_time: b"",
            others: Vec::new(),
            body: b"",
            body_at: 0,
        };
        while let Some((tag, value, behind)) = split_field(rest) {
            match tag {
                tag::MSG_TYPE => parts.msg_type = value,
                tag::SENDING_TIME => parts.sending_time = value,
                tag::BEGIN_STRING
                | tag::BODY_LENGTH
                | tag::MSG_SEQ_NUM
                | tag::POSS_DUP_FLAG
                | tag::SENDER_COMP_ID
                | tag::TARGET_COMP_ID
                | tag::ORIG_SENDING_TIME
                | tag::LAST_MSG_SEQ_NUM_PROCESSED => {}
                _ if tag::is_header(tag) => parts.others.push((tag, value)),
                _ => break,
            }
            rest = behind;
        }
        parts.others.sort_by_key(|field| field.0);
        parts.body = rest;
        parts.body_at = end - rest.len();
        parts
    }
}

fn split_field(bytes: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let equals = bytes.iter().position(|&byte| byte == b'=')?;
    let end = bytes.iter().position(|&byte| byte == SOH)?;
    let value = bytes.get(equals + 1..end)?;
    Some((
        parse_tag(bytes.get(..equals)?),
        value,
        bytes.get(end + 1..)?,
    ))
}

#[cfg(test)]
mod tests;
