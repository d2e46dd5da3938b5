//! A client: its session, its subscriptions, and the records that it missed.

use super::interest::Interest;
use super::records::{ERROR, SYSTEM, each, instrument};
use super::task::Task;
use super::wire::Wire;
use crate::users::dbn_seat::DbnReading;
use crate::users::grant::Grant;
use crate::users::roster::DbnSeated;
use crate::users::{DbnKey, User};
use fanfare_engine::poll::Interest as Readiness;
use fanfare_engine::tcp::Stream;
use fanfare_fix::session::Now;
use fanfare_market::dbn::live::{ErrorCode, SystemCode, Tag, error, metadata, system, with_ts_out};
use fanfare_wire::text::Escaped;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// The time that a client that is being closed has to read the reason, in nanoseconds.
pub(super) const FAREWELL: u64 = 2_000_000_000;
/// The most bytes that a client that is being closed may still send.
const DISCARDED: usize = 16 << 20;
/// The `rtype`s of records that are never dropped: errors, symbols, notices.
const KEPT: std::ops::RangeInclusive<u8> = ERROR..=SYSTEM;
/// The `rtype` of orders. After a dropped one, a book is wrong.
const MBO: u8 = 0xa0;

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
    /// The requests received before the session was started, one per line.
    pub(super) early: String,
    /// The number of requests in the second that began then.
    pub(super) requests: (u64, u32),
    /// The time at which a record was sent last.
    last_sent: u64,
    /// The most bytes that may be queued.
    limit: usize,
    is_warned: bool,
    /// Whether it is closed because it reads too slowly.
    pub(super) is_cut: bool,
    is_skipping: bool,
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
    /// Whether requests wait until the queue has capacity for their answers.
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
            early: String::new(),
            requests: (0, 0),
            last_sent: 0,
            limit,
            is_warned: false,
            is_cut: false,
            is_skipping: false,
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

    /// Returns the reason why its connection has ended.
    pub(super) fn gone(&self) -> &'static str {
        let usual = match self.phase {
            Phase::Ending { .. } => "closed",
            _ => "closed by the client",
        };
        self.dismissed.unwrap_or(usual)
    }

    /// Returns whether the client has not sent its first line.
    pub(super) const fn is_new(&self) -> bool {
        matches!(self.phase, Phase::Greeted { .. } | Phase::Denied { .. })
    }

    pub(super) const fn is_streaming(&self) -> bool {
        matches!(self.phase, Phase::Streaming)
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
        match (self.is_paused && self.is_streaming(), is_full) {
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
        self.last_sent = now.mono;
        match (self.ts_out, &mut self.held) {
            // The time of sending is appended when it is known.
            (_, Some(held)) => held.extend_from_slice(record),
            (false, None) => self.wire.put(record),
            (true, None) => {
                let mut out = Vec::with_capacity(record.len() + 8);
                with_ts_out(record, now.utc, &mut out);
                self.wire.put(&out);
            }
        }
    }

    /// Appends records of the past, before those that are held back.
    pub(super) fn put_past(&mut self, records: &[u8], now: Times) {
        let held = self.held.take();
        self.put_all(records, now);
        self.held = held;
    }

    /// Holds back the records from now on.
    pub(super) fn hold(&mut self) {
        self.held = Some(Vec::new());
    }

    /// Appends the records that were held back.
    pub(super) fn unhold(&mut self, now: Times) {
        if let Some(held) = self.held.take() {
            self.put_all(&held, now);
        }
    }

    /// Appends a notice, and the records that were held back.
    pub(super) fn release(&mut self, code: SystemCode, text: &str, now: Times) {
        let held = self.held.take();
        self.tell(code, text, now);
        self.held = held;
        self.unhold(now);
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
        if KEPT.contains(&rtype) {
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
            self.ends.get_or_insert((ErrorCode::Unset, why));
            self.is_cut = true;
        }
        self.is_skipping = true;
        false
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
        if self.skipped > 0 && self.has_room() {
            let text = format!(
                "{} records were skipped: the client reads too slowly",
                std::mem::take(&mut self.skipped)
            );
            let code = ErrorCode::SkippedRecordsAfterSlowReading;
            self.fail(code, &text, now);
            self.is_skipping = false;
            let is_again = |task: &Task| matches!(task, Task::Again);
            if !self.missed.is_empty() && !self.tasks.iter().any(is_again) {
                self.tasks.push_front(Task::Again);
            }
            return true;
        }
        match (self.has_room(), self.warns && !self.is_warned) {
            (true, _) => self.is_warned = false,
            (false, true) => {
                self.is_warned = true;
                let text = format!("{} bytes are queued for the client", self.wire.len());
                self.tell(SystemCode::SlowReaderWarning, &text, now);
                return true;
            }
            _ => {}
        }
        if now.mono >= self.next_heartbeat() {
            self.tell(SystemCode::Heartbeat, "Heartbeat", now);
            return true;
        }
        false
    }

    fn next_heartbeat(&self) -> u64 {
        self.last_sent.saturating_add(self.heartbeat)
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
pub(super) mod tests {
    use super::*;
    use fanfare_market::InstrumentId;
    use fanfare_market::dbn::live::{LiveSchema, LiveSchemas};
    use fanfare_wire::UtcTimestamp;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    const LIMIT: usize = 1 << 16;

    /// Returns a streaming client, and the remote end of its connection.
    pub(in crate::dbn) fn pair(warns: bool) -> (Client, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let stream = Stream::new(stream).unwrap();
        let mut client = Client::new(1, stream, LIMIT, Phase::Streaming);
        client.grant = Arc::new(Grant::everything());
        (client.warns, client.heartbeat) = (warns, u64::MAX);
        (client, other)
    }

    /// Returns orders of an instrument, each with its number.
    fn orders(instrument: u32, numbers: std::ops::Range<u64>) -> Vec<u8> {
        let mut out = Vec::new();
        for number in numbers {
            let mut record = [0; 56];
            (record[0], record[1]) = (14, MBO);
            record[4..8].copy_from_slice(&instrument.to_le_bytes());
            record[16..24].copy_from_slice(&number.to_le_bytes());
            out.extend(record);
        }
        out
    }

    /// Reads the available bytes, and checks that all records are whole.
    fn read(client: &mut Client, other: &mut TcpStream, all: &mut Vec<u8>) {
        other.set_nonblocking(true).unwrap();
        let mut room = vec![0; 1 << 16];
        loop {
            let left = client.wire.flush(1);
            match other.read(&mut room) {
                Ok(count) => all.extend_from_slice(&room[..count]),
                Err(_) if !left => return,
                Err(_) => std::thread::yield_now(),
            }
        }
    }

    #[test]
    fn requests_wait_while_their_answers_are_not_read() {
        let (mut client, mut other) = pair(false);
        let now = Times::default();
        let mut answers = 0;
        while client.takes_requests() {
            client.fail(ErrorCode::Unset, "why", now);
            answers += 1;
        }
        assert!(client.queued() <= LIMIT + 320);
        client.is_paused = true;
        assert_eq!(client.polls(true), Some(Readiness::Write));
        assert_eq!(client.polls(false), None);
        let mut received = Vec::new();
        read(&mut client, &mut other, &mut received);
        assert!(client.takes_requests());
        assert_eq!(received.len(), answers * 320);
        // Records that wait for the past count too.
        client.hold();
        while client.takes_requests() {
            client.fail(ErrorCode::Unset, "why", now);
        }
        assert!(client.queued() <= LIMIT + 320);
        client.unhold(now);
        client.phase = Phase::Ending { until: 0 };
        assert!(client.takes_requests() && client.polls(true) == Some(Readiness::ReadWrite));
    }

    #[test]
    fn utc_goes_back_only_with_the_systems_clock() {
        let mut times = Times::default();
        let reading = |utc| Now {
            mono: 7,
            utc: UtcTimestamp::from_nanos(utc),
        };
        let set = 5_000_000_000;
        for (read, utc) in [(set, set), (set - 900, set), (set + 1, set + 1), (9, 9)] {
            times.advance(reading(read));
            assert_eq!((times.mono, times.utc), (7, utc as u64));
        }
    }

    #[test]
    fn a_record_that_was_held_back_has_the_time_at_which_it_is_sent() {
        let (mut client, mut other) = pair(false);
        client.ts_out = true;
        let at = |utc| Times { mono: 1, utc };
        client.put(&orders(1, 0..1), at(10));
        client.hold();
        client.put_all(&orders(1, 3..5), at(20));
        client.put_past(&orders(1, 1..3), at(30));
        client.release(SystemCode::ReplayCompleted, "done", at(40));
        let mut received = Vec::new();
        read(&mut client, &mut other, &mut received);
        let sent = each(&received).map(|record| {
            let (_, time) = record.split_last_chunk().unwrap();
            u64::from_le_bytes(*time)
        });
        assert_eq!(sent.collect::<Vec<_>>(), [10, 30, 30, 40, 40, 40]);
    }

    fn text(record: &[u8]) -> String {
        let text = record[16..].split(|byte| *byte == 0).next().unwrap();
        String::from_utf8(text.to_vec()).unwrap()
    }

    #[test]
    fn what_is_left_out_is_told_and_adds_up() {
        for by_record in [false, true] {
            let (mut client, mut other) = pair(false);
            let (mut received, mut sent, now) = (Vec::new(), 0, Times::default());
            for _ in 0..3 {
                let mut uncounted = 0;
                while uncounted < 2_000 {
                    let records = orders(7, sent..sent + 1_000);
                    sent += 1_000;
                    match by_record {
                        false => client.send(&records, now),
                        true => each(&records).for_each(|record| {
                            let tag = Tag {
                                end: 0,
                                instrument: InstrumentId(7),
                                schemas: LiveSchema::Mbo.alone(),
                                entry: 0,
                            };
                            client.push(&tag, record, now);
                        }),
                    }
                    client.wire.flush(0);
                    assert!(client.wire.len() <= LIMIT + 320);
                    uncounted += std::mem::take(&mut client.uncounted);
                }
                assert!(client.missed.contains(&7));
                read(&mut client, &mut other, &mut received);
                assert!(client.look(now));
                assert!(matches!(client.tasks.pop_front(), Some(Task::Again)));
                client.missed.clear();
            }
            read(&mut client, &mut other, &mut received);
            let (mut count, mut told, mut last) = (0, 0, None);
            for record in each(&received) {
                if record[1] == 0x15 {
                    let text = text(record);
                    told += text.split(' ').next().unwrap().parse::<u64>().unwrap();
                    continue;
                }
                let number = u64::from_le_bytes(record[16..24].try_into().unwrap());
                assert!(last < Some(number), "in order, and none twice");
                last = Some(number);
                count += 1;
            }
            assert_eq!(count + told, sent);
            assert_eq!(received.len() as u64, count * 56 + 3 * 320);
        }
    }

    #[test]
    fn a_client_that_wants_every_record_is_warned_and_cut() {
        let (mut client, _other) = pair(true);
        let now = Times::default();
        while client.wire.len() <= LIMIT / 2 {
            client.send(&orders(7, 0..200), now);
        }
        assert!(client.look(now) && !client.look(now), "once");
        while client.ends.is_none() {
            client.send(&orders(7, 0..200), now);
        }
        assert!(client.ends.unwrap().1.contains("bytes are queued"));
    }

    #[test]
    fn what_a_user_may_not_see_of_statistics_is_not_sent() {
        let (mut client, _other) = pair(false);
        client.grant = Arc::new(Grant {
            entries: crate::service::EntryTypes::NONE.with(b'4'),
            ..Grant::everything()
        });
        let before = client.wire.len();
        for (entry, len) in [(b'7', before), (b'4', before + 56)] {
            let tag = Tag {
                end: 0,
                instrument: InstrumentId(7),
                schemas: LiveSchemas::ALL,
                entry,
            };
            client.push(&tag, &orders(7, 0..1), Times::default());
            assert_eq!((client.wire.len(), client.uncounted), (len, 0));
        }
    }
}
