//! A client: its session, its subscriptions, and the records that it missed.

use super::early::Early;
use super::interest::Interest;
use super::records::{ERROR, SYSTEM, each, instrument};
use super::task::{Task, awaited};
use super::threads::Owner;
use super::wire::Wire;
use crate::users::dbn_seat::DbnReading;
use crate::users::grant::Grant;
use crate::users::roster::DbnSeated;
use crate::users::{DbnKey, Requests, User};
use fanfare_engine::host::network_of;
use fanfare_engine::poll::Interest as Readiness;
use fanfare_engine::tcp::Stream;
use fanfare_fix::session::Now;
use fanfare_market::InstrumentId;
use fanfare_market::dbn::live::{
    ErrorCode, LiveSchemas, SystemCode, Tag, error, is_for_record, metadata, system, with_ts_out,
};
use fanfare_market::instruments::Instrument;
use fanfare_wire::text::Escaped;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// The time that a client that is being closed has to read the reason, in nanoseconds.
pub(super) const FAREWELL: u64 = 2_000_000_000;
/// The most bytes that a client that is being closed may still send.
const DISCARDED: usize = 16 << 20;
/// The `rtype`s of records that are never dropped: errors, symbols, notices but for those in the
/// place of a record.
const KEPT: std::ops::RangeInclusive<u8> = ERROR..=SYSTEM;
/// The `rtype` of orders. After a dropped one, a book is wrong.
const MBO: u8 = 0xa0;

/// The end of a connection.
pub(super) struct End {
    pub(super) why: &'static str,
    /// Whether it is other than the end of a session by its client or an operator.
    pub(super) is_trouble: bool,
}

impl End {
    /// Returns the end of a connection that the gateway closes for this reason.
    pub(super) const fn trouble(why: &'static str) -> Self {
        Self {
            why,
            is_trouble: true,
        }
    }
}

/// The phase of a session.
pub(super) enum Phase {
    /// The challenge was sent.
    Greeted { challenge: String, until: u64 },
    /// The key was wrong, which is reported to the client at this time.
    Denied { at: u64 },
    /// The client is authenticated, and the session is not started.
    Ready { until: u64 },
    /// Records are sent.
    Streaming,
    /// Queued bytes are sent, and then the connection is closed.
    Ending { until: u64 },
}

/// The times of a turn.
#[derive(Clone, Copy, Default)]
pub(super) struct Times {
    /// Monotonic nanoseconds.
    pub(super) mono: u64,
    /// Nanoseconds since 1970.
    pub(super) utc: u64,
}

/// Two measurements of the offset to UTC differ by less than this, in nanoseconds.
const SAME: u64 = 1_000_000;

impl Times {
    /// Takes a later reading of the clock. UTC goes back only if the system's clock was set back.
    pub(super) fn advance(&mut self, now: Now) {
        let utc = now.utc.nanos().unsigned_abs();
        let behind = self.utc.saturating_sub(utc);
        self.utc = if behind < SAME {
            utc.max(self.utc)
        } else {
            utc
        };
        self.mono = now.mono;
    }
}

/// A client of the port.
pub(super) struct Client {
    /// The number of the session.
    pub(super) session: u64,
    pub(super) wire: Wire,
    pub(super) inbox: Vec<u8>,
    /// The bytes received since the client is being closed.
    discarded: usize,
    pub(super) phase: Phase,
    /// The key and the user, or `None` if clients need not be users.
    pub(super) user: Option<(DbnKey, Arc<User>)>,
    pub(super) grant: Arc<Grant>,
    /// Its place among the sessions, once it has authenticated.
    pub(super) seat: Option<DbnSeated>,
    pub(super) ts_out: bool,
    pub(super) zstd: bool,
    pub(super) warns: bool,
    /// The interval of heartbeats, in nanoseconds.
    pub(super) heartbeat: u64,
    pub(super) interest: Interest,
    pub(super) tasks: VecDeque<Task>,
    /// Records that arrive while the past is being sent, if it is.
    held: Option<Vec<u8>>,
    /// The requests received before the session was started.
    pub(super) early: Early,
    /// The requests of the current second.
    pub(super) requests: Requests,
    /// The time at which a record was sent last.
    last_sent: u64,
    /// The most bytes that may be queued.
    limit: usize,
    is_warned: bool,
    /// Whether it is closed because it reads too slowly.
    pub(super) is_cut: bool,
    is_skipping: bool,
    /// The bytes of records that are never dropped, appended since the queue has been full.
    beyond: usize,
    /// The number of dropped records that no error has reported.
    skipped: u64,
    /// The instruments of which orders were dropped.
    pub(super) missed: BTreeSet<u32>,
    /// The number of records dropped since the last look.
    pub(super) uncounted: u64,
    /// The number of all dropped records.
    left_out: u64,
    /// The readiness for which its socket is polled, or `None` if it is not polled.
    pub(super) polled: Option<Readiness>,
    /// Whether requests wait for another turn, or until the queue has capacity for their answers.
    pub(super) is_paused: bool,
    /// The reason for which it is closed at the next look.
    pub(super) ends: Option<(ErrorCode, String)>,
    /// The action of an operator that ended it.
    pub(super) dismissed: Option<&'static str>,
}

impl Client {
    pub(super) fn new(session: u64, stream: Stream, limit: usize, phase: Phase) -> Self {
        Self {
            session,
            wire: Wire::new(stream),
            inbox: Vec::new(),
            discarded: 0,
            phase,
            user: None,
            grant: Arc::new(Grant::nothing()),
            seat: None,
            ts_out: false,
            zstd: false,
            warns: false,
            heartbeat: 0,
            interest: Interest::default(),
            tasks: VecDeque::new(),
            held: None,
            early: Early::default(),
            requests: Requests::default(),
            last_sent: 0,
            limit,
            is_warned: false,
            is_cut: false,
            is_skipping: false,
            beyond: 0,
            skipped: 0,
            missed: BTreeSet::new(),
            uncounted: 0,
            left_out: 0,
            polled: Some(Readiness::Read),
            is_paused: false,
            ends: None,
            dismissed: None,
        }
    }

    /// Returns the user's name, or an empty text if it has no user.
    pub(super) fn user_name(&self) -> &str {
        self.user.as_ref().map_or("", |(_, user)| &user.name)
    }

    /// Returns the owner of its replays.
    pub(super) fn owner(&self) -> Owner {
        match &self.user {
            Some((_, user)) => Owner::User(Arc::clone(&user.name)),
            None => Owner::Network(network_of(self.wire.peer())),
        }
    }

    /// Returns whether the client has authenticated.
    pub(super) const fn has_authenticated(&self) -> bool {
        self.seat.is_some()
    }

    /// Records its state for operators.
    pub(super) fn note(&self) {
        let Some(seated) = &self.seat else {
            return;
        };
        seated.seat().set(DbnReading {
            is_started: self.is_streaming(),
            schemas: self.interest.any,
            instruments: self.interest.some.len() as u64,
            queued: self.queued() as u64,
            skipped: self.left_out,
        });
    }

    /// Reports to the client why it is refused.
    pub(super) fn refuse(&mut self, why: &str, now: Times) {
        // These characters would end the field.
        let why = why.replace(['|', '\n'], " ");
        let line = format!("success=0|error={}\n", Escaped::text(&why));
        self.wire.put(line.as_bytes());
        let until = now.mono + FAREWELL;
        self.phase = Phase::Ending { until };
    }

    /// Discards the bytes of a client that is being closed. Beyond a limit the connection is
    /// closed, although the client may not have read the reason.
    pub(super) fn discard(&mut self) {
        self.discarded += self.inbox.len();
        self.inbox.clear();
        if self.discarded > DISCARDED {
            self.wire.mark_broken();
        }
    }

    /// Returns the end of its connection, which is closed.
    pub(super) const fn gone(&self) -> End {
        let (why, is_trouble) = match (self.dismissed, &self.phase) {
            (Some(why), _) => (why, false),
            (None, Phase::Ending { .. }) => ("closed", true),
            (None, _) => ("closed by the client", self.is_new()),
        };
        End { why, is_trouble }
    }

    /// Returns whether the client has not sent its first line.
    pub(super) const fn is_new(&self) -> bool {
        matches!(self.phase, Phase::Greeted { .. } | Phase::Denied { .. })
    }

    pub(super) const fn is_streaming(&self) -> bool {
        matches!(self.phase, Phase::Streaming)
    }

    /// Pauses its requests until another turn if some have not been processed, unless it is being
    /// closed.
    pub(super) fn pause_if(&mut self, is_whole: bool) {
        let waits = is_whole || self.is_streaming() && !self.early.is_empty();
        self.is_paused = waits && !self.is_ending();
    }

    const fn is_ending(&self) -> bool {
        matches!(self.phase, Phase::Ending { .. })
    }

    /// Reports that its user may have no more instruments.
    pub(super) fn refuse_more(&mut self, now: Times) {
        let most = self.grant.subscriptions;
        let text = format!("no more than {most} instruments are permitted at a time");
        self.fail(ErrorCode::InvalidSubscription, &text, now);
    }

    /// Recomputes the schemas of all its subscriptions, of which some have ended.
    pub(super) fn sum_up(&mut self) {
        self.interest.sum_up();
        let starting = self.tasks.iter().map(Task::schema);
        self.interest.any = starting.fold(self.interest.any, LiveSchemas::with);
    }

    /// Returns the schemas with which its subscriptions to all instruments take this one from now
    /// on, if it does not have it.
    pub(super) fn grows_by(
        &self,
        instrument: InstrumentId,
        known: Option<Instrument<'_>>,
    ) -> LiveSchemas {
        let symbol = known.map_or(&b""[..], |known| known.definition.name.symbol);
        let left_out = self.interest.left_out(instrument);
        let permitted = self.interest.permitted.without(left_out);
        permitted.without(awaited(&self.tasks, symbol, instrument))
    }

    /// Starts the stream with its metadata.
    pub(super) fn begin(&mut self, dataset: &str, now: Times) {
        if self.zstd {
            self.wire.pack();
        }
        let mut out = Vec::new();
        metadata(dataset, now.utc, self.ts_out, &mut out);
        self.wire.put(&out);
        self.phase = Phase::Streaming;
        self.last_sent = now.mono;
    }

    /// Returns the number of queued bytes.
    fn queued(&self) -> usize {
        self.wire.len() + self.held.as_ref().map_or(0, Vec::len)
    }

    /// Returns whether its next request may be processed. A client that sends requests and reads no
    /// answers is not read either, so that its answers are limited as its records are.
    pub(super) fn takes_requests(&self) -> bool {
        !self.is_streaming() || self.queued() <= self.limit
    }

    /// Returns the readiness for which its socket is to be polled. `is_full` is whether the socket
    /// has not accepted all queued bytes.
    pub(super) const fn polls(&self, is_full: bool) -> Option<Readiness> {
        match (self.is_paused && !self.is_ending(), is_full) {
            (false, false) => Some(Readiness::Read),
            (false, true) => Some(Readiness::ReadWrite),
            (true, true) => Some(Readiness::Write),
            (true, false) => None,
        }
    }

    /// Returns the number of instruments of subscriptions that are starting.
    pub(super) fn starting(&self) -> usize {
        self.tasks.iter().map(Task::instruments).sum()
    }

    /// Returns whether the queue has capacity for catching up.
    pub(super) fn has_room(&self) -> bool {
        self.wire.len() <= self.limit / 2 && !self.wire.is_broken()
    }

    /// Returns whether each record must be examined: the client wants all instruments for some
    /// schemas and does not have them yet, or has other subscriptions too.
    pub(super) fn is_mixed(&self) -> bool {
        let all_alone = self.interest.some.is_empty() && self.tasks.is_empty();
        !(self.interest.all.is_empty() || all_alone && self.missed.is_empty())
    }

    /// Appends a notice.
    pub(super) fn tell(&mut self, code: SystemCode, text: &str, now: Times) {
        let mut out = Vec::new();
        system(code, &Escaped::text(text).to_string(), now.utc, &mut out);
        self.put(&out, now);
    }

    /// Appends an error.
    pub(super) fn fail(&mut self, code: ErrorCode, text: &str, now: Times) {
        let mut out = Vec::new();
        error(code, &Escaped::text(text).to_string(), now.utc, &mut out);
        self.put(&out, now);
    }

    /// Appends a record.
    pub(super) fn put(&mut self, record: &[u8], now: Times) {
        match (self.ts_out, &mut self.held) {
            // The time of sending is appended when it is known.
            (_, Some(held)) => return held.extend_from_slice(record),
            (false, None) => self.wire.put(record),
            (true, None) => {
                let mut out = Vec::with_capacity(record.len() + 8);
                with_ts_out(record, now.utc, &mut out);
                self.wire.put(&out);
            }
        }
        self.last_sent = now.mono;
    }

    /// Appends records of the past, before those that are held back.
    pub(super) fn put_past(&mut self, records: &[u8], now: Times) {
        let held = self.held.take();
        self.put_all(records, now);
        self.held = held;
    }

    /// Holds back the records from now on, after those that are held back already.
    pub(super) fn hold(&mut self) {
        self.held.get_or_insert_default();
    }

    /// Removes the records that were held back, and holds back no others.
    pub(super) fn drop_held(&mut self) {
        self.held = None;
    }

    /// Appends the records that were held back, unless a replay has records to send before them.
    pub(super) fn unhold_if_over(&mut self, now: Times) {
        let precedes = |task: &Task| matches!(task, Task::Replay(replay) if !replay.is_past());
        if !self.tasks.iter().any(precedes) {
            self.unhold(now);
        }
    }

    /// Appends the records that were held back.
    pub(super) fn unhold(&mut self, now: Times) {
        if let Some(held) = self.held.take() {
            self.put_all(&held, now);
        }
    }

    /// Appends a notice, and the records that were held back.
    pub(super) fn release(&mut self, code: SystemCode, text: &str, now: Times) {
        self.tell_first(code, text, now);
        self.unhold(now);
    }

    /// Appends an error about the past, and the records that were held back, which follow it.
    pub(super) fn release_failed(&mut self, code: ErrorCode, text: &str, now: Times) {
        let held = self.held.take();
        self.fail(code, text, now);
        self.held = held;
        self.unhold(now);
    }

    /// Reports that its replays end, in front of the records that were held back.
    pub(super) fn end_replays(&mut self, why: &str, now: Times) {
        let is_replay = |task: &Task| matches!(task, Task::Replay(_));
        if self.tasks.iter().any(is_replay) {
            let text = format!("{why}: the replay ends here");
            self.release_failed(ErrorCode::Unset, &text, now);
        }
    }

    /// Appends a notice, before the records that are held back.
    fn tell_first(&mut self, code: SystemCode, text: &str, now: Times) {
        let held = self.held.take();
        self.tell(code, text, now);
        self.held = held;
    }

    /// Appends consecutive records, whatever the length of the queue.
    pub(super) fn put_all(&mut self, records: &[u8], now: Times) {
        for record in each(records) {
            self.put(record, now);
        }
    }

    /// Appends a record that the client wants, or drops it.
    pub(super) fn push(&mut self, tag: &Tag, record: &[u8], now: Times) {
        if tag.entry != 0 && !self.grant.entries.has(tag.entry) {
            return;
        }
        match self.takes(record, record.len()) {
            true => self.put(record, now),
            false => self.skip(record),
        }
    }

    /// Returns whether the queue has capacity for `len` bytes of a record.
    fn takes(&mut self, record: &[u8], len: usize) -> bool {
        let rtype = record.get(1).copied().unwrap_or_default();
        if KEPT.contains(&rtype) && !is_for_record(record) {
            self.keep(len);
            return true;
        }
        if self.is_skipping || rtype == MBO && self.missed.contains(&instrument(record)) {
            return false;
        }
        let waits = self.queued() + len;
        if waits <= self.limit {
            return true;
        }
        if self.warns {
            let why = format!("{waits} bytes are queued for a client that wants every record");
            self.cut(why);
        }
        self.is_skipping = true;
        false
    }

    /// Counts `len` bytes of a record that is never dropped. A client that leaves as many of them
    /// beyond its limit as the limit is ended.
    fn keep(&mut self, len: usize) {
        let waits = self.queued() + len;
        if waits <= self.limit {
            self.beyond = 0;
            return;
        }
        self.beyond += len;
        if self.beyond > self.limit {
            let why = format!("{waits} bytes are queued for a client that reads too slowly");
            self.cut(why);
        }
    }

    /// Ends the client at the next look, because it reads too slowly.
    fn cut(&mut self, why: String) {
        self.ends.get_or_insert((ErrorCode::Unset, why));
        self.is_cut = true;
    }

    fn skip(&mut self, record: &[u8]) {
        self.skipped += 1;
        self.uncounted += 1;
        self.left_out += 1;
        if record.get(1) == Some(&MBO) {
            self.missed.insert(instrument(record));
        }
    }

    /// Sends records that already contain their time, as far as the queue has capacity.
    pub(super) fn send(&mut self, records: &[u8], now: Times) {
        if records.is_empty() {
            return;
        }
        self.last_sent = now.mono;
        let sent = match self.is_skipping {
            true => 0,
            false => self.wire.send(records),
        };
        if sent == records.len() || self.wire.is_broken() {
            return;
        }
        if !self.is_skipping && self.wire.len() + records.len() - sent <= self.limit {
            return self.wire.put(records.get(sent..).unwrap_or_default());
        }
        let mut end = 0;
        for record in each(records) {
            let start = end;
            end += record.len();
            if end <= sent {
                continue;
            }
            // A record whose first bytes were sent must be completed.
            let rest = record.get(sent.saturating_sub(start)..).unwrap_or_default();
            match start < sent || self.takes(record, rest.len()) {
                true => self.wire.put(rest),
                false => self.skip(record),
            }
        }
    }

    /// Reports dropped records once the queue has capacity, warns a client that asked for it, and
    /// sends a heartbeat if nothing else was sent. Returns whether there was anything to do.
    pub(super) fn look(&mut self, now: Times) -> bool {
        if let Phase::Denied { at } = self.phase
            && now.mono >= at
        {
            self.refuse("authentication failed", now);
            return true;
        }
        if !self.is_streaming() {
            return false;
        }
        // A report would be held back too, and no room is made for it.
        let is_due = self.held.is_none() || self.is_skipping && self.queued() <= self.limit / 2;
        if self.skipped > 0 && self.has_room() && is_due {
            let text = format!(
                "{} records were skipped: the client reads too slowly",
                std::mem::take(&mut self.skipped)
            );
            let code = ErrorCode::SkippedRecordsAfterSlowReading;
            self.fail(code, &text, now);
            self.is_skipping = false;
            let is_again = |task: &Task| matches!(task, Task::Again);
            if !self.missed.is_empty() && !self.tasks.iter().any(is_again) {
                // Behind the replay that precedes the records that are held back.
                let at = usize::from(self.held.is_some()).min(self.tasks.len());
                self.tasks.insert(at, Task::Again);
            }
            return true;
        }
        match (self.has_room(), self.warns && !self.is_warned) {
            (true, _) => self.is_warned = false,
            (false, true) => {
                self.is_warned = true;
                let text = format!("{} bytes are queued for the client", self.wire.len());
                self.tell_first(SystemCode::SlowReaderWarning, &text, now);
                return true;
            }
            _ => {}
        }
        if now.mono >= self.next_heartbeat() {
            self.tell_first(SystemCode::Heartbeat, "Heartbeat", now);
            return true;
        }
        false
    }

    /// Returns the time of the next heartbeat. There is none while bytes are queued.
    fn next_heartbeat(&self) -> u64 {
        match self.wire.len() {
            0 => self.last_sent.saturating_add(self.heartbeat),
            _ => u64::MAX,
        }
    }

    /// Returns the time of the client's next work that no record or byte triggers.
    pub(super) fn next_timer(&self, stall: u64) -> u64 {
        let stalled = self.wire.stalled().map(|since| since.saturating_add(stall));
        let phase = match self.phase {
            Phase::Greeted { until, .. } | Phase::Ready { until } | Phase::Ending { until } => {
                until
            }
            Phase::Denied { at } => at,
            Phase::Streaming => self.next_heartbeat(),
        };
        phase.min(stalled.unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
pub(super) mod tests;
