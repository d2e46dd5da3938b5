//! Resends, in bounded parts, on one ordered path with everything new.

use std::ops::Range;

use super::Session;
use super::config::{Config, Limits};
use super::event::{DisconnectReason, Event, SendError};
use super::inbound::Scratch;
use super::kept_message::{self, KeptMessage, Parts, Resend};
use super::now::Now;
use super::outgoing_header::{Head, OutField};
use super::store::{Again, Kind, MessageStore, Search, StoreError, Stored};
use super::timers::NEVER;
use crate::codec::Encoder;
use crate::{msg_type, tag};

/// A resend under way. Messages sent meanwhile are kept in the store and follow, in order, after
/// the requested part. They are new to the counterparty, and are transmitted unchanged.
#[derive(Debug)]
pub(super) struct Replay {
    /// The next number to be handled.
    cursor: u64,
    /// The last number requested.
    end: u64,
    /// The first and the last of the numbers before `end` that nobody has requested.
    hole: Option<(u64, u64)>,
    /// The first number that was never transmitted.
    live_from: u64,
    /// The first number of a gap fill that is not yet written.
    fill_from: Option<u64>,
    /// The last message that was decided on.
    decided: Option<(u64, Resend)>,
    /// Whether the first part is to be written before further bytes are handled.
    begins: bool,
    /// The buffer for headers and gap fills.
    head: Vec<u8>,
    /// The count of application messages sent again, and of numbers filled.
    messages: u64,
    filled: u64,
    /// Whether the counterparty has requested a resend. If not, messages only wait for their rate.
    asked: bool,
    /// The first and the last of the numbers of requests that came while the store had no room for
    /// what was decided.
    postponed: Option<(u64, u64)>,
    /// The count of new application messages that wait.
    pub(super) waiting: usize,
}

impl Replay {
    /// Returns a state without a resend, whose new messages begin with number `next`.
    pub(super) fn of_new(next: u64) -> Self {
        Self {
            cursor: next,
            end: next - 1,
            hole: None,
            live_from: next,
            fill_from: None,
            decided: None,
            begins: false,
            head: Vec::new(),
            messages: 0,
            filled: 0,
            asked: false,
            postponed: None,
            waiting: 0,
        }
    }

    /// Returns whether nothing was requested and no message below number `next` waits.
    pub(super) fn is_empty(&self, next: u64) -> bool {
        !self.asked && self.cursor >= next
    }

    /// Moves the cursor to `next`. A gap fill will cover the numbers in between.
    fn skip_to(&mut self, next: u64) {
        self.fill_from.get_or_insert(self.cursor);
        self.cursor = next;
    }

    /// Returns whether everything requested has been sent.
    fn is_live(&self) -> bool {
        self.cursor > self.end && self.fill_from.is_none()
    }

    /// Sets the numbers to those of a resend of `begin` to `end` and of what earlier requests still
    /// wait for.
    fn request(&mut self, begin: u64, end: u64) {
        // What is requested again is decided on again.
        self.decided = None;
        // What waits has not been sent: nobody can have missed it.
        let (begin, end) = (begin.min(self.live_from), end.min(self.live_from - 1));
        let owed = self.fill_from.take().unwrap_or(self.cursor);
        if owed > self.end {
            (self.cursor, self.end, self.hole) = (begin, end, None);
            return;
        }
        let (first, last) = self.hole.unwrap_or((1, 0));
        let unasked = [
            (self.end + 1, begin.saturating_sub(1)),
            (end + 1, owed.saturating_sub(1)),
            (first, last.min(begin.saturating_sub(1))),
            (first.max(end + 1), last),
        ];
        // Of several holes, which only a third request makes, the longest remains.
        let holes = unasked.into_iter().filter(|(first, last)| first <= last);
        self.hole = holes.max_by_key(|(first, last)| last - first);
        self.cursor = begin.min(owed);
        self.end = end.max(self.end);
    }

    /// Returns the numbers of a request together with those of postponed ones, and of all between.
    fn with_postponed(&mut self, begin: u64, end: u64) -> (u64, u64) {
        match self.postponed.take() {
            Some((first, last)) => (first.min(begin), last.max(end)),
            None => (begin, end),
        }
    }

    /// Returns whether the application message with this number is sent again. One that nobody has
    /// decided on is.
    fn is_wanted(&self, seq: u64) -> bool {
        self.decided != Some((seq, Resend::Fill))
    }

    /// Returns the last number before the hole, or else the last one requested.
    fn last_of_part(&self) -> u64 {
        self.hole.map_or(self.end, |(first, _)| first - 1)
    }
}

/// The progress of a part of a resend.
enum Progress {
    /// One step is done.
    More,
    /// The next message has to wait for its rate.
    Paced,
    /// Everything is sent, new messages included.
    Done,
}

/// The limits of a part that has only new messages, which are transmitted unchanged at little cost.
const LIVE_CHUNK: Limits = Limits {
    messages: 256,
    bytes: 64 << 10,
};

/// The bytes that the header of a gap fill or a resent message needs more than the original.
const RESEND_ROOM: usize = 512;

impl<S: MessageStore> Session<S> {
    /// Sends `begin..=end` again, together with what a resend under way has not sent yet.
    pub(super) fn start_replay(&mut self, now: Now, begin: u64, end: u64) {
        let lost = self.store.dropped().min(end);
        if begin <= lost {
            self.notice(Event::NoLongerKept { begin, end: lost });
        }
        let is_running = self.replay.is_some();
        self.join_replay(now, begin, end);
        // The next part of a resend that is under way comes in its turn: one read can bring
        // thousands of requests, and other sessions of the thread wait for the end of it. The gap
        // fill of a store that keeps nothing comes at once, as nothing can wait behind it.
        let has_room = self.store.unsent_len() < self.config.resend_chunk.bytes;
        if is_running || !has_room && self.store.keeps() {
            return;
        }
        match &mut self.replay {
            Some(replay) if self.config.ask_resend && self.store.keeps() => replay.begins = true,
            _ => self.replay_chunk(now, &mut send_all),
        }
    }

    /// Makes a request a part of the resend under way, or begins one. If the store has no room for
    /// what is decided, the request is postponed to the next part, so that nobody is asked twice.
    fn join_replay(&mut self, now: Now, begin: u64, end: u64) {
        let next = self.store.next_sender();
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
        let (begin, end) = replay.with_postponed(begin, end);
        let settled = self.settle(now, &mut replay);
        let needed_from = match &settled {
            Ok(()) => {
                replay.request(begin, end);
                replay.asked = true;
                replay.cursor
            }
            Err(_) => {
                replay.postponed = Some((begin, end));
                replay.cursor.min(replay.live_from).min(begin)
            }
        };
        self.store.retain_from(Some(needed_from));
        self.replay = Some(replay);
        if let Err(error) = settled {
            self.replay_failed(now, &error);
        }
    }

    /// Makes postponed requests a part of the resend. Returns false if they have to wait on.
    fn join_postponed(&mut self, now: Now) -> bool {
        let postponed = |session: &Self| session.replay.as_ref().and_then(|own| own.postponed);
        let Some((begin, end)) = postponed(self) else {
            return true;
        };
        self.join_replay(now, begin, end);
        postponed(self).is_none()
    }

    /// Returns whether the first part of a resend is to be written by
    /// [`resend_part`](Self::resend_part) before further bytes are handled: a Logout(5) among them
    /// would end the session without it.
    #[inline]
    pub fn begins_resend(&self) -> bool {
        let replay = self.replay.as_ref();
        replay.is_some_and(|replay| replay.begins) && self.notices.is_empty()
    }

    /// Writes the next part of a resend where the application decides on its messages: see
    /// [`Config::ask_resend`]. Does nothing in another session, nor unless a part is due, which is
    /// when [`is_due_at_once`](Self::is_due_at_once) returns true. A caller of `handle_bytes` calls
    /// it after each event when [`begins_resend`](Self::begins_resend) returns true.
    ///
    /// `decide` is called for the kept application messages in the order of their numbers, once for
    /// each time that a message is to be sent again, except for those of
    /// [`Config::gap_filled_types`]. It is not called for messages that waited behind the resend
    /// and are new to the counterparty. Neighbouring messages that are not sent again, those of the
    /// session layer among them, become one gap fill, unless another ResendRequest(2) comes in
    /// between. If `decide` panics, the session stays as it was, and the message is undecided.
    ///
    /// ```
    /// use fanfare_fix::session::*;
    ///
    /// /// Orders that are older than this are not sent again, in nanoseconds.
    /// const STALE: u64 = 5 * SECOND;
    ///
    /// fn write_part(session: &mut Session<MemoryStore>, now: Now, scratch: &mut Scratch) {
    ///     session.resend_part(now, scratch, |kept| {
    ///         let is_order = matches!(kept.msg_type(), b"D" | b"G");
    ///         match is_order && kept.age().is_none_or(|age| age > STALE) {
    ///             true => Resend::Fill,
    ///             false => Resend::Send,
    ///         }
    ///     });
    /// }
    /// ```
    pub fn resend_part(
        &mut self,
        now: Now,
        scratch: &mut Scratch,
        mut decide: impl FnMut(&mut KeptMessage<'_>) -> Resend,
    ) {
        self.confirm(now);
        if !self.config.ask_resend || now.mono < self.replay_due_at() {
            return;
        }
        scratch.know(&self.config.data_fields);
        let decoder = &mut scratch.decoder;
        self.replay_chunk(now, &mut |config: &Config, stored: Stored<'_>| {
            decide(&mut KeptMessage {
                id: &config.id,
                seq: stored.seq,
                bytes: stored.bytes,
                now,
                decoder: &mut *decoder,
            })
        });
    }

    /// Returns whether the next part is one that the application decides on.
    pub(super) fn is_undecided(&self) -> bool {
        let replay = self.replay.as_ref();
        self.config.ask_resend && replay.is_some_and(|replay| !replay.is_live())
    }

    /// Returns whether any message may be refused.
    fn has_decisions(&self) -> bool {
        self.config.ask_resend || !self.config.gap_filled_types.is_empty()
    }

    /// Writes what is decided and not yet written, so that a further request asks nobody again.
    fn settle(&mut self, now: Now, replay: &mut Replay) -> Result<(), SendError> {
        if !self.has_decisions() {
            return Ok(());
        }
        self.fixed.set_time(now.utc, self.config.precision);
        let (seq, is_sent) = match replay.decided {
            Some((seq, Resend::Send)) if seq >= replay.cursor => (seq, true),
            _ => (replay.cursor, false),
        };
        if seq > replay.cursor {
            replay.skip_to(seq);
        }
        self.fill_up_to(now, replay, seq)?;
        match is_sent {
            true => self.send_again(now, replay),
            false => Ok(()),
        }
    }

    /// Decides on the application message that the requested part has come to, unless that was
    /// done. Until then the resend is part of the session, so that a panic of `decide` changes
    /// nothing.
    fn decide_next(&mut self, decide: &mut impl FnMut(&Config, Stored<'_>) -> Resend) {
        let Some(replay) = &mut self.replay else {
            return;
        };
        let last = replay.last_of_part();
        if replay.cursor > last {
            return;
        }
        let Search::Kept(stored) = self.store.search_from(replay.cursor) else {
            return;
        };
        let seq = stored.seq;
        let is_decided = replay.decided.is_some_and(|(decided, _)| decided == seq);
        if is_decided || stored.kind != Kind::App || seq > last {
            return;
        }
        let filled = &self.config.gap_filled_types;
        let is_filled = !filled.is_empty() && {
            let msg_type = kept_message::msg_type(stored.bytes);
            filled.iter().any(|filled| **filled == *msg_type)
        };
        let decision = match is_filled {
            true => Resend::Fill,
            false => decide(&self.config, stored),
        };
        replay.decided = Some((seq, decision));
    }

    /// Ends a resend under way. New application messages that wait for it or for their rate now
    /// wait for the next connection.
    pub(super) fn drop_replay(&mut self) {
        let Some(replay) = self.replay.take() else {
            return;
        };
        self.store.retain_from(None);
        let first = replay.cursor.max(replay.live_from);
        let last = self.store.next_sender() - 1;
        self.unsent.add(first, last, replay.waiting as u64);
    }

    /// Returns when the next part may be written: when the previous one has been transmitted, and,
    /// for new messages, when their rate allows it.
    #[inline]
    pub(super) fn replay_due_at(&self) -> u64 {
        match &self.replay {
            Some(replay)
                if self.is_connected() && (replay.begins || self.store.unsent_len() == 0) =>
            {
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
    pub(super) fn replay_chunk(
        &mut self,
        now: Now,
        decide: &mut impl FnMut(&Config, Stored<'_>) -> Resend,
    ) {
        let mut steps = 0;
        if let Some(replay) = &mut self.replay {
            replay.begins = false;
        }
        if !self.join_postponed(now) {
            return;
        }
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
            if self.has_decisions() {
                self.decide_next(decide);
            }
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

    /// Ends the session because of an error of a resend. A full store is no failure while bytes
    /// wait, as their transmission makes room.
    fn replay_failed(&mut self, now: Now, error: &SendError) {
        let reason = match *error {
            SendError::Store(StoreError::Full) if self.store.unsent_len() > 0 => return,
            SendError::Store(StoreError::Full) => DisconnectReason::TransmitFull,
            SendError::Store(error) => DisconnectReason::Store(error),
            _ => DisconnectReason::Store(StoreError::TooLong),
        };
        self.end(now, reason);
    }

    /// Handles one kept message, ends the requested part, or sends one new message.
    fn replay_step(&mut self, now: Now, replay: &mut Replay) -> Result<Progress, SendError> {
        let last = replay.last_of_part();
        if replay.cursor > last {
            self.fill_up_to(now, replay, last + 1)?;
            let Some((_, unasked)) = replay.hole.take() else {
                return self.replay_live(now, replay);
            };
            replay.cursor = unasked + 1;
            return Ok(Progress::More);
        }
        self.fixed.set_time(now.utc, self.config.precision);
        match self.store.search_from(replay.cursor) {
            Search::Kept(stored)
                if stored.seq <= last
                    && stored.kind == Kind::App
                    && replay.is_wanted(stored.seq) =>
            {
                let seq = stored.seq;
                if seq > replay.cursor {
                    replay.fill_from.get_or_insert(replay.cursor);
                    replay.cursor = seq;
                }
                if replay.fill_from.is_some() {
                    self.fill_up_to(now, replay, seq)?;
                } else {
                    self.send_again(now, replay)?;
                }
            }
            Search::Kept(stored) if stored.seq <= last => {
                let (seq, is_refused) = (stored.seq, stored.kind == Kind::App);
                if is_refused {
                    // One that was never transmitted waits no longer.
                    self.unsent.transmitted(seq);
                }
                replay.skip_to(seq + 1);
            }
            Search::NoneBelow(next) => replay.skip_to(next.min(last + 1)),
            Search::Kept(_) | Search::Nothing => replay.skip_to(last + 1),
        }
        self.store
            .retain_from(Some(replay.cursor.min(replay.live_from)));
        Ok(Progress::More)
    }

    /// Sends one message that is new since the resend began, unchanged.
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

    /// Writes the pending gap fill, if there is one, from its first number to `next`.
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

    /// Sends the kept message at the cursor again, with PossDupFlag(43), its old SendingTime(52) as
    /// OrigSendingTime(122), and a new SendingTime(52). The store transmits the body from where it
    /// is kept.
    fn send_again(&mut self, now: Now, replay: &mut Replay) -> Result<(), SendError> {
        let Search::Kept(stored) = self.store.search_from(replay.cursor) else {
            return Err(SendError::Store(StoreError::NotKept));
        };
        let parts = Parts::of(stored.bytes, &self.config.header_fields);
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
        self.unsent.transmitted(replay.cursor);
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
        match again.kept {
            Some(_) => self.behind = 0,
            None => self.behind += head.len() + tail.len(),
        }
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

/// Sends everything again.
pub(super) fn send_all(_: &Config, _: Stored<'_>) -> Resend {
    Resend::Send
}

/// The header of a message that is sent in place of an earlier one.
struct Copied<'a> {
    seq: u64,
    msg_type: &'a [u8],
    /// The OrigSendingTime(122). A gap fill has none of an earlier message, and takes its own
    /// SendingTime(52).
    orig_time: Option<&'a [u8]>,
    others: &'a [OutField<'a>],
}

#[cfg(test)]
mod tests;
