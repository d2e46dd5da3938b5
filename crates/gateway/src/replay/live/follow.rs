//! The records of a live stream as the messages of a feed, over all connections to its gateway. It
//! has no socket.
//!
//! A connection that follows another one requests the past from a little before its loss. Records
//! of levels have the whole book, so that those that come again change nothing in the end, and
//! trades that come again are left out. A book of orders begins anew with a snapshot.

use super::super::dbn::{DbnPlace, Messages};
use super::super::piece::{Mark, Piece};
use super::config::{LiveRequest, LiveSource, has_books};
use super::trades::Trades;
use fanfare_market::dbn::live::{Control, ErrorCode, LiveSchema, SystemCode, is_for_record};
use fanfare_market::dbn::{FromDbn, FromDbnError, Wrong};
use fanfare_market::{Event, Flags, Instruments, Kind};
use fanfare_wire::text::Escaped;

const SECOND: u64 = 1_000_000_000;

/// The number of pasts in a row that fail before the gateway is asked for the present.
const FAILURES: u32 = 3;

/// The time before the last record from which the past is requested, in nanoseconds: clocks differ,
/// and records of several schemas and feeds do not come in the order of their times.
const MARGIN: u64 = 5 * SECOND;

/// The converter of a live stream.
pub(super) struct Follow {
    from: FromDbn,
    table: Instruments,
    messages: Messages,
    trades: Trades,
    requests: Vec<LiveRequest>,
    latest: Option<Latest>,
    past: Past,
    /// The starts that the session is to request.
    asked: Vec<Option<u64>>,
    /// The starts of requests of which a past has not come completely.
    unfinished: Vec<Option<u64>>,
    /// The number of pasts that have not come completely.
    pending: usize,
    /// The numbers of accepted subscriptions of the session, and of refusals of symbols. One of
    /// which all symbols are refused is not accepted, and has no past.
    accepted: usize,
    no_symbols: usize,
    /// Whether the gateway has warned in this session that it sends more than is read: a past that
    /// comes at once makes it do so for each interval of its queue.
    is_warned: bool,
    /// Whether the gateway does not have the past that the last session requested.
    lacks_past: bool,
    /// The number of pasts in a row that ended with another error.
    failures: u32,
    /// Whether books are stale until the past has come.
    keeps_books: bool,
    refused: u64,
    notes: Vec<Note>,
}

/// The past that a session requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Past {
    /// That of the configuration.
    First,
    /// What came since the loss of the connection before.
    Since,
    /// None, because the gateway does not have it.
    None,
}

/// The latest times of records: of the exchange, and of arrival, in nanoseconds since 1970. A
/// gateway selects the past by either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Latest {
    times: [u64; 2],
    /// Whether they are of the own clock, as no record has come.
    is_own: bool,
}

/// A notice for operators.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// An event of the session.
    Event(String),
    /// Something that may need attention.
    Trouble(String),
    /// A subscription, or a part of it, is refused, for this reason.
    Refused(String),
    /// Records are lost, for this reason.
    Lost(String),
}

impl Follow {
    pub(super) fn new(source: &LiveSource, place: DbnPlace) -> Self {
        let mut from = FromDbn::new(place.source);
        if source.has(LiveSchema::Trades) {
            from.take_trades_apart();
        }
        Self {
            from,
            table: place.table(),
            messages: Messages::new(place, 0),
            trades: Trades::default(),
            requests: source.subscribe.clone(),
            latest: None,
            past: Past::First,
            asked: Vec::new(),
            unfinished: Vec::new(),
            pending: 0,
            accepted: 0,
            no_symbols: 0,
            is_warned: false,
            lacks_past: false,
            failures: 0,
            keeps_books: false,
            refused: 0,
            notes: Vec::new(),
        }
    }

    /// Returns the start of each request of the next session, in nanoseconds since 1970, or `None`
    /// for now. `utc` is the current time.
    pub(super) fn starts(&mut self, utc: u64) -> &[Option<u64>] {
        self.past = match self.latest {
            _ if self.lacks_past => Past::None,
            None => Past::First,
            Some(_) => Past::Since,
        };
        let starts = (0..self.requests.len()).map(|at| self.start(at, utc));
        self.asked = starts.collect();
        &self.asked
    }

    fn start(&self, at: usize, utc: u64) -> Option<u64> {
        let request = self.requests.get(at)?;
        let schema = request.schema().filter(|own| *own != LiveSchema::Mbo)?;
        match (self.past, self.latest) {
            (Past::None, _) => None,
            (Past::Since, Some(latest)) => {
                let unfinished = self.unfinished.get(at).copied().flatten();
                let start = latest.before_loss();
                let start = unfinished.map_or(start, |own| own.min(start));
                let has_trades = schema == LiveSchema::Trades || has_books(schema);
                Some(match self.trades.forgotten() {
                    0 => start,
                    forgotten if has_trades => start.max(forgotten + 1),
                    _ => start,
                })
            }
            _ => {
                let past = request.past_s.saturating_mul(SECOND);
                (past > 0).then(|| utc.saturating_sub(past))
            }
        }
    }

    /// Begins with the stream of a session that has requested the last [`Self::starts`].
    pub(super) fn begin(&mut self, utc: u64, piece: &mut Piece) {
        let has = |schema| self.requests.iter().any(|own| own.schema() == Some(schema));
        let (has_orders, has_trades) = (has(LiveSchema::Mbo), has(LiveSchema::Trades));
        self.keeps_books = self.past == Past::Since && !has_orders;
        self.from.begin_again(self.keeps_books);
        if !self.keeps_books {
            piece.marks.push(Mark::Restart(0));
        }
        self.unfinished = std::mem::take(&mut self.asked);
        self.pending = self.unfinished.iter().flatten().count();
        (self.accepted, self.no_symbols) = (0, 0);
        self.is_warned = false;
        match self.unfinished.iter().flatten().min() {
            Some(start) => self.trades.expect(*start),
            None => self.trades.settle(),
        }
        self.notes.push(match self.past {
            Past::Since if has_orders && !has_trades => Note::Lost(
                "the session is started: books begin anew with snapshots, and trades since the \
                 loss are missing, as there is no subscription to `trades`"
                    .to_owned(),
            ),
            Past::None if self.latest.is_some() => Note::Lost(
                "the session is started without the past: records since the loss are missing, and \
                 books begin anew"
                    .to_owned(),
            ),
            _ => Note::Event("the session is started".to_owned()),
        });
        self.lacks_past = false;
        self.latest.get_or_insert(Latest {
            times: [utc; 2],
            is_own: true,
        });
    }

    /// Reads the metadata or the next record. Returns its length in bytes, or `None` if it is
    /// incomplete.
    ///
    /// # Errors
    /// Returns the reason why the connection cannot go on.
    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        piece: &mut Piece,
    ) -> Result<Option<usize>, String> {
        let has_begun = self.from.version().is_some();
        let read = self.from.read(&mut self.table, bytes);
        self.pass(piece);
        match read {
            Ok(Some(len)) => {
                if has_begun && len > 0 {
                    self.control(bytes.get(..len).unwrap_or_default(), piece)?;
                }
                Ok(Some(len))
            }
            Ok(None) => Ok(None),
            Err(FromDbnError {
                why: Wrong::Instrument(why),
                ..
            }) if has_begun => {
                self.refused += 1;
                if self.refused.is_power_of_two() {
                    let what = format!("{} records are left out: {why}", self.refused);
                    self.notes.push(Note::Trouble(what));
                }
                Ok(bytes.first().map(|words| usize::from(*words) * 4))
            }
            Err(error) => Err(format!("the stream is damaged: {error}")),
        }
    }

    /// Passes on what has come completely. With `is_quiet`, nothing more is expected soon, and a
    /// message that is not marked as complete ends.
    pub(super) fn pass_on(&mut self, is_quiet: bool, piece: &mut Piece) {
        self.from.pass_on(is_quiet);
        self.pass(piece);
        if is_quiet {
            self.messages.finish(piece);
        }
    }

    /// Returns whether a message has begun whose end has not come.
    pub(super) fn is_open(&self) -> bool {
        self.messages.is_open() || self.from.has_open_message()
    }

    /// Ends the stream: books are stale.
    pub(super) fn lose(&mut self, piece: &mut Piece) {
        self.pass_on(true, piece);
        piece.marks.push(Mark::Stale);
    }

    /// Returns whether a subscription was not accepted because none of its symbols is known.
    pub(super) const fn lacks_symbols(&self) -> bool {
        self.no_symbols > 0 && self.accepted < self.requests.len()
    }

    /// Returns the number of records of all streams.
    pub(super) const fn records(&self) -> u64 {
        self.from.counts().records
    }

    /// Takes the notices for operators.
    pub(super) fn notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// Adds the events of the last record to their messages.
    fn pass(&mut self, piece: &mut Piece) {
        self.messages.introduce(&self.table, piece);
        for event in self.from.events() {
            if let Some(latest) = &mut self.latest {
                latest.see([event.ts_event, event.ts_recv]);
            }
            if event.kind != Kind::Trade || self.trades.is_new(event) {
                self.messages.take(*event, &self.table, piece);
            } else if event.flags.has(Flags::LAST) {
                self.messages.finish(piece);
            }
        }
    }

    /// Processes a message of the gateway.
    fn control(&mut self, record: &[u8], piece: &mut Piece) -> Result<(), String> {
        match Control::read(record) {
            Some(Control::Error { code, text }) => {
                return self.error(code, Escaped::new(text).to_string(), piece);
            }
            Some(Control::Notice { text, .. }) if is_for_record(record) => {
                self.notes.push(Note::Lost(Escaped::new(text).to_string()));
            }
            Some(Control::Notice {
                code,
                text,
                ts_event,
            }) => self.notice(code, text, ts_event, piece),
            None => {}
        }
        Ok(())
    }

    fn error(&mut self, code: ErrorCode, text: String, piece: &mut Piece) -> Result<(), String> {
        match code {
            ErrorCode::SkippedRecordsAfterSlowReading => {
                Err(format!("the gateway has left out records: {text}"))
            }
            ErrorCode::AuthFailed
            | ErrorCode::ApiKeyDeactivated
            | ErrorCode::ConnectionLimitExceeded => {
                Err(format!("the gateway ends the session: {text}"))
            }
            ErrorCode::SymbolResolutionFailed => {
                self.notes.push(Note::Refused(text));
                self.no_symbols += 1;
                self.try_complete(piece);
                Ok(())
            }
            ErrorCode::InvalidSubscription | ErrorCode::ReplayDataAgedOut if self.pending > 0 => {
                self.lacks_past = true;
                Err(format!("the gateway does not have the past: {text}"))
            }
            _ if self.pending > 0 => {
                // A plant that stops ends a past so, and has it again once it is started.
                self.failures += 1;
                self.lacks_past = self.failures >= FAILURES;
                Err(format!("the past has not come to its end: {text}"))
            }
            _ => {
                self.notes.push(Note::Refused(text));
                Ok(())
            }
        }
    }

    fn notice(&mut self, code: SystemCode, text: &[u8], time: u64, piece: &mut Piece) {
        match code {
            SystemCode::Heartbeat => {
                // Everything before it has come.
                if let Some(latest) = self.latest.as_mut().filter(|_| self.pending == 0) {
                    latest.see([time; 2]);
                }
            }
            SystemCode::EndOfInterval | SystemCode::UnsubscribeAck => {}
            SystemCode::SlowReaderWarning if std::mem::replace(&mut self.is_warned, true) => {}
            SystemCode::SubscriptionAck => {
                self.accepted += 1;
                self.try_complete(piece);
            }
            SystemCode::ReplayCompleted => {
                self.pending = self.pending.saturating_sub(1);
                self.try_complete(piece);
            }
            // That of version 1, which has no codes.
            SystemCode::Unset if text == b"Heartbeat" => {}
            SystemCode::SlowReaderWarning | SystemCode::Unset => {
                let text = Escaped::new(text).to_string();
                self.notes.push(Note::Trouble(text));
            }
        }
    }

    /// Completes the past once all accepted subscriptions have theirs. Which are accepted is known
    /// once each has its answer.
    fn try_complete(&mut self, piece: &mut Piece) {
        let asked = self.unfinished.iter().flatten().count();
        let come = asked.saturating_sub(self.pending);
        let answers = self.accepted + self.no_symbols;
        let are_answered = self.no_symbols > 0 && answers >= self.requests.len();
        if asked > 0 && (self.pending == 0 || are_answered && come >= self.accepted.min(asked)) {
            self.complete(piece);
        }
    }

    fn complete(&mut self, piece: &mut Piece) {
        (self.pending, self.failures) = (0, 0);
        // The last trade of the past may be held back, and be one that came before.
        self.from.pass_on(true);
        self.pass(piece);
        self.trades.settle();
        // The past of a subscription that is not accepted is requested again.
        if !self.lacks_symbols() {
            self.unfinished.clear();
        }
        if std::mem::take(&mut self.keeps_books) {
            self.from.tell_states(self.no_symbols == 0);
            self.pass(piece);
        }
        let what = "the past that was requested has come".to_owned();
        self.notes.push(Note::Event(what));
    }
}

impl Latest {
    /// Takes the times of a record, which may be unknown.
    fn see(&mut self, times: [u64; 2]) {
        let known = times.into_iter().filter(|time| *time != Event::NO_TIME);
        if let Some(first) = known.min()
            && std::mem::take(&mut self.is_own)
        {
            self.times = [first; 2];
        }
        for (latest, time) in self.times.iter_mut().zip(times) {
            if time != Event::NO_TIME {
                *latest = time.max(*latest);
            }
        }
    }

    /// Returns the time from which the past is requested after a loss.
    fn before_loss(self) -> u64 {
        let [event, received] = self.times;
        event.min(received).saturating_sub(MARGIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_feed::recovery::State;
    use fanfare_market::dbn::live::{error, no_record, system};
    use fanfare_market::dbn::{DbnConfig, Schema, Schemas, ToDbn};
    use fanfare_market::event::{Action, entry};
    use fanfare_market::instruments::{Definition, Name};
    use fanfare_market::state::{self, code};
    use fanfare_market::{InstrumentId, Price};

    const UTC: u64 = 1_000_000 * SECOND;

    /// Returns the converter of subscriptions to schemas with these pasts in seconds.
    fn follow(requests: &[(&str, u64)]) -> Follow {
        let request = |(schema, past_s): &(&str, u64)| LiveRequest {
            schema: (*schema).to_owned(),
            symbols: Vec::new(),
            stype_in: "raw_symbol".to_owned(),
            past_s: *past_s,
        };
        let source = LiveSource {
            hosts: Vec::new(),
            dataset: "X".to_owned(),
            key_file: None,
            key_env: None,
            subscribe: requests.iter().map(request).collect(),
            heartbeat_s: 30,
            retry_ms: 1_000,
            most_instruments: 2,
        };
        Follow::new(&source, DbnPlace::new(1, 10, 2))
    }

    /// Returns an event of the instrument of this number that arrives in this second.
    fn event(number: u32, kind: Kind, second: u64, size: i64) -> Event {
        Event {
            kind,
            instrument: InstrumentId(number),
            price: Price::from_units(5_000_000_000),
            size,
            entry: if kind == Kind::Level { entry::BID } else { 0 },
            flags: Flags::LAST,
            ts_event: UTC + second * SECOND,
            ts_recv: UTC + second * SECOND + 1,
            source: 1,
            ..Event::EMPTY
        }
    }

    fn live(number: u32, second: u64) -> Event {
        Event {
            id: code::LIVE,
            ..event(number, Kind::State, second, 0)
        }
    }

    /// Returns a stream with the records of these events.
    fn stream(events: &[Event]) -> Vec<u8> {
        let schemas = Schemas::new(&[Schema::Mbp10, Schema::Trades]).unwrap();
        let mut to_dbn = ToDbn::new(DbnConfig::new(schemas)).unwrap();
        let (mut table, mut bytes) = (Instruments::new(3), Vec::new());
        for symbol in ["A", "B", "C"] {
            let name = Name::of_symbol(symbol.as_bytes());
            table.define(&Definition::named(name)).unwrap();
        }
        to_dbn.metadata("X", 0, &mut bytes);
        for event in events {
            to_dbn.write(event, 0, &table, &mut bytes);
        }
        bytes
    }

    /// Reads bytes of a stream.
    fn read(follow: &mut Follow, mut bytes: &[u8]) -> Result<Piece, String> {
        let mut piece = Piece::default();
        while let Some(len) = follow.read(bytes, &mut piece)? {
            bytes = &bytes[len..];
        }
        assert!(bytes.is_empty());
        follow.pass_on(false, &mut piece);
        Ok(piece)
    }

    /// Begins with a session, whose stream begins with the records of these events.
    fn begin(follow: &mut Follow, events: &[Event]) -> (Vec<Mark>, Piece) {
        let mut piece = Piece::default();
        follow.begin(UTC, &mut piece);
        (piece.marks, read(follow, &stream(events)).unwrap())
    }

    fn completed(follow: &mut Follow) -> Piece {
        let mut bytes = Vec::new();
        system(SystemCode::ReplayCompleted, "done", UTC, &mut bytes);
        read(follow, &bytes).unwrap()
    }

    /// Returns the states that instruments have from now on.
    fn states(piece: &Piece) -> Vec<State> {
        piece.events.iter().filter_map(state::of_event).collect()
    }

    /// Returns the sizes of the trades.
    fn trades(piece: &Piece) -> Vec<i64> {
        let all = piece.events.iter();
        let all = all.filter(|event| event.kind == Kind::Trade);
        all.map(|event| event.size).collect()
    }

    #[test]
    fn the_past_is_requested_from_a_little_before_the_loss() {
        let mut follow = follow(&[("mbp-10", 0), ("trades", 10), ("definition", 0)]);
        let first = [None, Some(UTC - 10 * SECOND), None];
        assert_eq!(follow.starts(UTC), first);
        begin(&mut follow, &[event(0, Kind::Trade, 7, 1)]);
        let mut piece = Piece::default();
        follow.lose(&mut piece);
        assert_eq!(piece.marks, [Mark::Stale]);
        // The past of the trades has not come completely.
        let since = Some(UTC + 2 * SECOND);
        assert_eq!(follow.starts(UTC), [since, first[1], since]);
        begin(&mut follow, &[]);
        for _ in 0..3 {
            completed(&mut follow);
        }
        let mut bytes = Vec::new();
        system(
            SystemCode::Heartbeat,
            "Heartbeat",
            UTC + 60 * SECOND,
            &mut bytes,
        );
        read(&mut follow, &bytes).unwrap();
        assert_eq!(follow.starts(UTC), [Some(UTC + 55 * SECOND); 3]);
    }

    #[test]
    fn a_gateway_without_the_past_is_asked_for_the_present() {
        let mut follow = follow(&[("mbp-10", 0), ("trades", 0)]);
        assert_eq!(follow.starts(UTC), [None, None]);
        let (marks, _) = begin(&mut follow, &[]);
        assert_eq!(marks, [Mark::Restart(0)]);
        assert_eq!(
            follow.notes(),
            [Note::Event("the session is started".to_owned())]
        );
        let mut bytes = Vec::new();
        error(
            ErrorCode::SymbolResolutionFailed,
            "no\x1b X",
            UTC,
            &mut bytes,
        );
        read(&mut follow, &bytes).unwrap();
        assert_eq!(follow.notes(), [Note::Refused(r"no\u{1b} X".to_owned())]);

        assert!(follow.starts(UTC).iter().all(Option::is_some));
        begin(&mut follow, &[]);
        bytes.clear();
        error(ErrorCode::ReplayDataAgedOut, "gone", UTC, &mut bytes);
        let why = read(&mut follow, &bytes).err().unwrap();
        assert_eq!(why, "the gateway does not have the past: gone");
        assert_eq!(follow.starts(UTC), [None, None]);
        follow.notes();
        let (marks, _) = begin(&mut follow, &[]);
        assert_eq!(marks, [Mark::Restart(0)]);
        assert!(matches!(&follow.notes()[..], [Note::Lost(_)]));
        assert!(
            follow.starts(UTC).iter().all(Option::is_some),
            "the next loss"
        );
    }

    #[test]
    fn the_last_trade_of_a_past_that_is_held_back_counts_once() {
        let mut follow = follow(&[("trades", 0)]);
        follow.starts(UTC);
        let open = Event {
            flags: Flags::NONE,
            ..event(0, Kind::Trade, 2, 7)
        };
        let all = [event(0, Kind::Trade, 1, 5), open];
        let (_, mut piece) = begin(&mut follow, &all);
        follow.lose(&mut piece);
        assert_eq!(trades(&piece), [5, 7]);
        follow.starts(UTC);
        let (_, piece) = begin(&mut follow, &all);
        assert!(trades(&piece).is_empty());
        assert!(trades(&completed(&mut follow)).is_empty());
    }

    #[test]
    fn a_past_that_fails_is_requested_again_for_a_while() {
        let mut follow = follow(&[("mbp-10", 0)]);
        follow.starts(UTC);
        begin(&mut follow, &[event(0, Kind::Trade, 7, 1)]);
        let mut bytes = Vec::new();
        error(ErrorCode::Unset, "the gateway stops", UTC, &mut bytes);
        for failure in 1..=FAILURES {
            assert!(follow.starts(UTC)[0].is_some(), "{failure}");
            begin(&mut follow, &[]);
            let why = read(&mut follow, &bytes).err().unwrap();
            assert_eq!(why, "the past has not come to its end: the gateway stops");
        }
        assert_eq!(follow.starts(UTC), [None]);
        begin(&mut follow, &[]);
        assert!(follow.starts(UTC)[0].is_some());
    }

    #[test]
    fn a_subscription_without_a_known_symbol_has_no_past() {
        let mut follow = follow(&[("mbp-10", 0), ("trades", 0)]);
        follow.starts(UTC);
        let level = event(0, Kind::Level, 1, 10);
        let before = [event(0, Kind::Clear, 1, 0), live(0, 1), level];
        begin(&mut follow, &before);
        follow.starts(UTC);
        begin(&mut follow, &[]);
        let mut bytes = Vec::new();
        system(SystemCode::SubscriptionAck, "mbp-10", UTC, &mut bytes);
        error(ErrorCode::SymbolResolutionFailed, "X", UTC, &mut bytes);
        assert!(read(&mut follow, &bytes).unwrap().events.is_empty());
        assert!(follow.lacks_symbols());
        assert!(
            completed(&mut follow).events.is_empty(),
            "the subscription to books may be the one that is refused"
        );
        assert!(follow.starts(UTC).iter().all(Option::is_some));
        let (_, piece) = begin(&mut follow, &[live(0, 1), level]);
        assert!(!follow.lacks_symbols());
        assert_eq!(states(&piece), [], "the past has not come");
        assert_eq!(states(&completed(&mut follow)), [], "one is to come");
        assert_eq!(states(&completed(&mut follow)), [State::Live]);
    }

    #[test]
    fn a_slow_reader_is_told_once_a_session() {
        let mut follow = follow(&[("trades", 0)]);
        let mut warning = Vec::new();
        system(
            SystemCode::SlowReaderWarning,
            "7 bytes are queued",
            UTC,
            &mut warning,
        );
        for _ in 0..2 {
            follow.starts(UTC);
            begin(&mut follow, &[]);
            follow.notes();
            let told = [(); 3].map(|()| {
                read(&mut follow, &warning).unwrap();
                follow.notes().len()
            });
            assert_eq!(told, [1, 0, 0]);
            follow.lose(&mut Piece::default());
        }
    }

    #[test]
    fn a_record_that_the_gateway_cannot_write_is_lost() {
        let mut follow = follow(&[("trades", 0)]);
        follow.starts(UTC);
        begin(&mut follow, &[]);
        follow.notes();
        let mut bytes = Vec::new();
        no_record((1, InstrumentId(0)), "its size", UTC, &mut bytes);
        read(&mut follow, &bytes).unwrap();
        assert_eq!(
            follow.notes(),
            [Note::Lost("no record: its size".to_owned())]
        );
    }

    #[test]
    fn records_that_were_left_out_end_the_session() {
        let mut follow = follow(&[("trades", 0)]);
        follow.starts(UTC);
        begin(&mut follow, &[]);
        let mut bytes = Vec::new();
        let code = ErrorCode::SkippedRecordsAfterSlowReading;
        error(code, "7 records", UTC, &mut bytes);
        let why = read(&mut follow, &bytes).err().unwrap();
        assert_eq!(why, "the gateway has left out records: 7 records");
    }

    #[test]
    fn what_comes_again_after_a_loss_counts_once() {
        let mut follow = follow(&[("mbp-10", 0), ("trades", 0)]);
        follow.starts(UTC);
        let clear = event(0, Kind::Clear, 1, 0);
        let level = |second, size| event(0, Kind::Level, second, size);
        let trade = |second, size| event(0, Kind::Trade, second, size);
        let before = [clear, live(0, 1), level(1, 10), trade(2, 1), trade(3, 2)];
        let (_, piece) = begin(&mut follow, &before);
        assert_eq!(trades(&piece), [1, 2]);
        assert!(
            piece
                .events
                .iter()
                .all(|event| event.instrument == InstrumentId(10))
        );
        let mut lost = Piece::default();
        follow.lose(&mut lost);

        follow.starts(UTC);
        let change = Event {
            action: Action::Change,
            ..level(5, 30)
        };
        let since = [live(0, 2), level(2, 10), trade(3, 2), trade(4, 3), change];
        let (marks, piece) = begin(&mut follow, &since);
        assert!(marks.is_empty(), "{marks:?}");
        assert_eq!(trades(&piece), [3]);
        let is_clear = |event: &Event| event.kind == Kind::Clear;
        assert!(!piece.events.iter().any(is_clear), "the book goes on");
        let mut levels = piece
            .events
            .iter()
            .filter(|event| event.kind == Kind::Level);
        assert_eq!(levels.next_back().map(|event| event.size), Some(30));
        assert!(completed(&mut follow).events.is_empty(), "two are to come");
        let piece = completed(&mut follow);
        assert_eq!(states(&piece), [State::Live]);
    }

    #[test]
    fn an_instrument_beyond_the_limit_is_left_out() {
        let mut follow = follow(&[("trades", 0)]);
        follow.starts(UTC);
        let all = [0, 1, 2, 1].map(|number| event(number, Kind::Trade, 1, number.into()));
        let (_, piece) = begin(&mut follow, &all);
        assert_eq!(trades(&piece), [0, 1, 1]);
        let notes = follow.notes();
        let told = |note: &Note| matches!(note, Note::Trouble(what) if what.contains("is full"));
        assert!(notes.iter().any(told), "{notes:?}");
    }
}
