//! Answering a ResendRequest: in bounded parts, on one ordered path with everything new.

use fanfare_wire::fields::{SOH, parse_tag};

use super::event::{DisconnectReason, Event, SendError};
use super::head::{Head, OutField};
use super::now::Now;
use super::state::Session;
use super::store::{Entry, Kind, MessageStore, StoreError};
use super::timers::NEVER;
use crate::codec::{Encoder, msg_types, tags};

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
    /// The message to be sent again, out of the store.
    message: Vec<u8>,
    /// Application messages sent again, and numbers filled.
    messages: u64,
    filled: u64,
    /// The counterparty has asked for a resend; otherwise messages only wait for their rate.
    asked: bool,
    /// New application messages that wait.
    pub(super) waiting: usize,
}

impl Replay {
    /// Nothing to be sent again; what is new from number `next` on waits.
    pub(super) fn of_new(next: u64) -> Self {
        Self {
            cursor: next,
            end: next - 1,
            live_from: next,
            fill_from: None,
            message: Vec::new(),
            messages: 0,
            filled: 0,
            asked: false,
            waiting: 0,
        }
    }

    /// Whether nothing was asked for and nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        !self.asked && self.waiting == 0
    }

    /// Whether all that was asked for has been sent.
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

/// What the header of a gap fill and of a resent message needs more than the original.
const RESEND_ROOM: usize = 512;

impl<S: MessageStore> Session<S> {
    /// Sends `begin..=end` again. A resend that is already under way goes on from there.
    pub(super) fn start_replay(&mut self, now: Now, begin: u64, end: u64) {
        let next = self.store.next_sender();
        let mut replay = match self.replay.take() {
            Some(mut running) => {
                // What was new and has been transmitted by now is new no more.
                running.live_from = running.live_from.max(running.cursor);
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
        // Who asks again and again and does not read gets no more than this.
        if self.store.unsent().len() < self.config.resend_chunk.bytes {
            self.replay_chunk(now);
        }
    }

    pub(super) fn drop_replay(&mut self) {
        if self.replay.take().is_some() {
            self.store.retain_from(None);
        }
    }

    /// When the next part may be written: when the one before has been transmitted, and new
    /// messages when their rate allows it.
    #[inline]
    pub(super) fn replay_due_at(&self) -> u64 {
        match &self.replay {
            Some(replay) if self.is_connected() && self.store.unsent().is_empty() => {
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
        let limits = self.config.resend_chunk;
        for _ in 0..limits.messages.max(1) {
            if !self.is_connected() {
                return;
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
            if self.store.unsent().len() >= limits.bytes {
                return;
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

    /// No room is no fault while there are bytes to be transmitted, which make room. Otherwise
    /// what was sent before is given up for what is new; if even that does not fit, it is over.
    fn replay_failed(&mut self, now: Now, error: &SendError) {
        let Some(replay) = &self.replay else { return };
        let reason = match *error {
            SendError::Store(StoreError::Full) if !self.store.unsent().is_empty() => return,
            SendError::Store(StoreError::Full) if replay.cursor < replay.live_from => {
                return self.store.retain_from(Some(replay.live_from));
            }
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
        match self.store.first_from(replay.cursor) {
            Some(stored) if stored.seq <= replay.end && stored.kind == Kind::App => {
                let seq = stored.seq;
                replay.message.clear();
                replay.message.extend_from_slice(stored.bytes);
                if seq > replay.cursor {
                    replay.fill_from.get_or_insert(replay.cursor);
                    replay.cursor = seq;
                }
                self.fill_up_to(now, replay, seq)?;
                self.resend(now, seq, &replay.message)?;
                replay.messages += 1;
                replay.cursor = seq + 1;
            }
            Some(stored) if stored.seq <= replay.end => {
                replay.fill_from.get_or_insert(replay.cursor);
                replay.cursor = stored.seq + 1;
            }
            _ => {
                replay.fill_from.get_or_insert(replay.cursor);
                replay.cursor = replay.end + 1;
            }
        }
        self.store
            .retain_from(Some(replay.cursor.min(replay.live_from)));
        Ok(Progress::More)
    }

    /// What is new since the resend began, as it is.
    fn replay_live(&mut self, now: Now, replay: &mut Replay) -> Result<Progress, SendError> {
        let seq = replay.cursor.max(replay.live_from);
        self.store.retain_from(Some(seq));
        let Some(stored) = self.store.first_from(seq) else {
            return Ok(Progress::Done);
        };
        replay.cursor = stored.seq;
        let is_app = stored.kind == Kind::App;
        if is_app && self.paced_until() > now.mono {
            return Ok(Progress::Paced);
        }
        replay.message.clear();
        replay.message.extend_from_slice(stored.bytes);
        let len = replay.message.len();
        let place = self.store.reserve(len).map_err(SendError::Store)?;
        let room = place
            .get_mut(..len)
            .ok_or(SendError::Store(StoreError::TooLong))?;
        room.copy_from_slice(&replay.message);
        self.store
            .commit(0..len, Entry::Copy)
            .map_err(SendError::Store)?;
        self.timers.last_sent = now.mono;
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
        let gap_fill = Copied {
            seq,
            msg_type: msg_types::SEQUENCE_RESET,
            orig_time: None,
            others: &[],
            room: RESEND_ROOM,
        };
        self.write_copy(now, &gap_fill, |encoder| {
            encoder
                .u64(tags::NEW_SEQ_NO, next)
                .char(tags::GAP_FILL_FLAG, b'Y');
        })?;
        replay.fill_from = None;
        replay.filled += next - seq;
        Ok(())
    }

    /// Sends a kept message again: PossDupFlag(43), its old SendingTime(52) as
    /// OrigSendingTime(122), a new SendingTime.
    fn resend(&mut self, now: Now, seq: u64, message: &[u8]) -> Result<(), SendError> {
        let parts = Parts::of(message);
        let resent = Copied {
            seq,
            msg_type: parts.msg_type,
            orig_time: Some(parts.sending_time),
            others: &parts.others,
            room: message.len() + RESEND_ROOM,
        };
        self.write_copy(now, &resent, |encoder| {
            encoder.raw(parts.body);
        })
    }

    /// Encodes a message that was sent before, or a gap fill in its place.
    fn write_copy(
        &mut self,
        now: Now,
        copied: &Copied<'_>,
        body: impl FnOnce(&mut Encoder<'_>),
    ) -> Result<(), SendError> {
        self.fixed.set_time(now.utc, self.config.precision);
        let last_processed = self.store.next_target() - 1;
        let head = Head {
            seq: copied.seq,
            orig_time: copied.orig_time.or(Some(self.fixed.time_text())),
            last_processed: self.config.last_processed.then_some(last_processed),
            extra: copied.others,
        };
        let room = copied.room + self.header_room();
        let place = self.store.reserve(room).map_err(SendError::Store)?;
        let begin_string = self.config.id.version.begin_string().as_bytes();
        let mut encoder = Encoder::new(place, begin_string, copied.msg_type);
        head.write(&self.fixed, &self.config, &mut encoder);
        body(&mut encoder);
        let range = encoder.finish().map_err(SendError::Encode)?;
        self.store
            .commit(range, Entry::Copy)
            .map_err(SendError::Store)?;
        self.timers.last_sent = now.mono;
        Ok(())
    }
}

/// The header of a message that is sent in the place of one sent before.
struct Copied<'a> {
    seq: u64,
    msg_type: &'a [u8],
    /// OrigSendingTime(122); a gap fill has none before its own.
    orig_time: Option<&'a [u8]>,
    others: &'a [OutField<'a>],
    room: usize,
}

/// One of our own messages, taken apart for a resend.
struct Parts<'a> {
    msg_type: &'a [u8],
    sending_time: &'a [u8],
    /// Header fields that neither the session nor the resend writes itself.
    others: Vec<OutField<'a>>,
    /// All fields behind the header, up to the trailer.
    body: &'a [u8],
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
        };
        while let Some((tag, value, behind)) = split_field(rest) {
            match tag {
                tags::MSG_TYPE => parts.msg_type = value,
                tags::SENDING_TIME => parts.sending_time = value,
                tags::BEGIN_STRING
                | tags::BODY_LENGTH
                | tags::MSG_SEQ_NUM
                | tags::POSS_DUP_FLAG
                | tags::SENDER_COMP_ID
                | tags::TARGET_COMP_ID
                | tags::ORIG_SENDING_TIME
                | tags::LAST_MSG_SEQ_NUM_PROCESSED => {}
                _ if tags::is_header(tag) => parts.others.push((tag, value)),
                _ => break,
            }
            rest = behind;
        }
        parts.others.sort_by_key(|field| field.0);
        parts.body = rest;
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
