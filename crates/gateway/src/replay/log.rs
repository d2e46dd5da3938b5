//! A log as a source, read by a thread of its own, so that the disk delays no other thread.

use super::config::{Replay, Turns};
use super::dbn::{self, ALONE, DbnPlace, DbnPlay};
use super::error::ReplayError;
use super::file::DbnFileError;
use super::piece::{Mark, Piece, Step};
use fanfare_engine::poll::Waker;
use fanfare_feed::recovery::{Lack, State};
use fanfare_history::{At, Log, LogError, Reader, Run, Start};
use fanfare_market::instruments::Directory;
use fanfare_market::state::to_event;
use fanfare_market::view::Seen;
use fanfare_market::{Delivery, Event, Flags, InstrumentId, Kind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;

/// A part of a log, before its thread starts.
pub(crate) struct OpenReplay {
    source: Source,
    /// The number of the first event, and the number after the last one.
    first: u64,
    end: u64,
    /// The run of the plant that wrote the first event.
    run: Run,
    /// The state before the first event.
    known: Known,
    /// The offset added to the numbers of the log.
    shift: u64,
    turns: Turns,
}

/// The source of the replay.
enum Source {
    Log(Log),
    Dbn(PathBuf, DbnPlace),
}

/// Instruments, and the events that bring a reader to a moment, of one instrument each.
#[derive(Default)]
struct Known {
    instruments: Vec<Box<[u8]>>,
    events: Vec<Vec<Event>>,
    /// How many of `events`, from the first on, are of instruments whose books are unknown because
    /// of damage.
    hidden: usize,
    /// Whether a number is left out behind them, so that readers lose these books, and those of the
    /// instruments that they do not know yet.
    jumps: bool,
    time: u64,
}

impl OpenReplay {
    /// Finds the part of the log. `own` is the folder of the gateway's own log.
    pub(crate) fn open(replay: &Replay, own: Option<&Path>) -> Result<Self, ReplayError> {
        let Some(folder) = &replay.log else {
            return Self::of_dbn(replay);
        };
        let log = Log::open(folder)?;
        let same = |own: &Path| own.canonicalize().ok() == folder.canonicalize().ok();
        if own.is_some_and(|own| own.exists() && same(own)) {
            return Err(ReplayError::OwnLog);
        }
        let place = |moment| log.place(moment);
        let start = replay.from.map_or(Ok(Start::First), place)?;
        let first = log.reader(start)?.next_number();
        let end = match replay.to.map(place).transpose()? {
            None => u64::MAX,
            Some(Start::Number(number)) => number,
            Some(time) => log.reader(time)?.next_number(),
        };
        let end = end.min(log.extent()?.next);
        if first >= end {
            return Err(ReplayError::Nothing {
                log: folder.display().to_string(),
                first,
                end,
            });
        }
        let run = log.run_of(first)?;
        let known = Known::before(&log, first, &run)?;
        let mut replay = Self {
            source: Source::Log(log),
            first,
            end,
            run,
            known,
            shift: 0,
            turns: replay.turns,
        };
        replay.number_from(1);
        Ok(replay)
    }

    /// Opens a file of DBN, whose events are numbered from 1.
    fn of_dbn(replay: &Replay) -> Result<Self, ReplayError> {
        let path = replay.path();
        Ok(Self {
            run: dbn::run(path)?,
            ..Self::of_file(path, ALONE, replay.turns)
        })
    }

    /// Opens a file of DBN with its numbers among feeds.
    pub(super) fn of_file(path: &Path, place: DbnPlace, turns: Turns) -> Self {
        Self {
            source: Source::Dbn(path.to_owned(), place),
            first: 1,
            end: u64::MAX,
            run: Run::default(),
            known: Known::default(),
            shift: 0,
            turns,
        }
    }

    /// Returns the run of the plant that wrote it.
    pub(crate) const fn run(&self) -> &Run {
        &self.run
    }

    /// Returns the number of its first event, which belongs to the state before its part.
    pub(crate) fn number(&self) -> u64 {
        self.first + self.shift - self.known.count()
    }

    /// Returns the instruments that are known before its first event, encoded.
    pub(super) fn instruments(&self) -> &[Box<[u8]>] {
        &self.known.instruments
    }

    /// Moves its numbers to `next` or above, because those below are in use.
    pub(crate) fn number_from(&mut self, next: u64) {
        let least = (next + self.known.count()).saturating_sub(self.first);
        self.shift = self.shift.max(least);
    }

    /// Returns the offset of its numbers from those of the log.
    pub(crate) const fn shift(&self) -> u64 {
        self.shift
    }

    /// Starts the thread, which wakes the thread of the feeds by `waker`.
    pub(super) fn start(self, pieces: SyncSender<Step>, waker: Waker) -> std::io::Result<()> {
        let player = Player {
            part: self,
            pieces,
            waker,
            piece: Piece::default(),
            clock: 0,
            next: 1,
        };
        let thread = std::thread::Builder::new().name("replay".to_owned());
        thread.spawn(move || player.run()).map(drop)
    }
}

impl Known {
    /// Returns the state before the event with this number. It has only instruments if another run
    /// was in force, if the log begins here, or if retention has removed the rest.
    fn before(log: &Log, first: u64, run: &Run) -> Result<Self, LogError> {
        // A reader takes the instruments in front of its first event without showing them.
        let defined = || Ok(Self::of(log.reader(Start::Number(first))?.directory(), 0));
        if first <= 1 {
            return defined();
        }
        let before = match log.as_of(At::Before(first)) {
            Err(LogError::Gone { .. }) => return defined(),
            before => before?,
        };
        let mut known = Self::of(before.directory(), before.time);
        if before.run.number != run.number {
            return Ok(known);
        }
        for instrument in before.lost() {
            known.jumps = true;
            if instrument != InstrumentId::ALL {
                let source = before.source_of(instrument);
                known.events.push(vec![unknown(instrument, source)]);
            }
        }
        known.hidden = known.events.len();
        for instrument in before.view.numbers() {
            if let Some(seen) = before.view.get(instrument) {
                known.show(seen, instrument, before.source_of(instrument));
            }
        }
        if !before.of_all.is_empty() {
            known.events.push(before.of_all.clone());
        }
        for event in known.events.iter_mut().flatten() {
            if event.ts_recv == Event::NO_TIME {
                event.ts_recv = before.time;
            }
            mark_shown(event);
        }
        Ok(known)
    }

    /// Returns the state at a time of these instruments, without events.
    fn of(directory: &Directory, time: u64) -> Self {
        let all = directory.iter();
        Self {
            instruments: all.map(|(_, bytes)| bytes.into()).collect(),
            time,
            ..Self::default()
        }
    }

    /// Adds the events that show an instrument, without a book if that is hidden.
    fn show(&mut self, seen: &Seen, instrument: InstrumentId, source: u16) {
        let mut events = Vec::new();
        if self.jumps && !seen.is_lost() && seen.book.is_none() {
            // After the jump, an empty book has to be shown, too.
            events.push(empty(instrument, source));
        }
        seen.show(instrument, source, &mut |event| {
            if !(seen.is_lost() && event.kind.is_of_book()) {
                events.push(*event);
            }
        });
        self.events.push(events);
    }

    /// Assigns numbers from `number` on.
    fn number_from(&mut self, mut number: u64) {
        for (at, events) in self.events.iter_mut().enumerate() {
            if self.jumps && at == self.hidden {
                number += 1;
            }
            for event in events {
                event.number = number;
                number += 1;
            }
        }
    }

    /// Returns how many numbers the events take, with the jump.
    fn count(&self) -> u64 {
        let events = self.events.iter().map(|events| events.len() as u64);
        events.sum::<u64>() + u64::from(self.jumps)
    }
}

/// Returns an event of an instrument with an empty book, with which its snapshot begins.
pub(super) const fn empty(instrument: InstrumentId, source: u16) -> Event {
    Event {
        instrument,
        source,
        flags: Flags::SNAPSHOT,
        ..Event::EMPTY
    }
}

/// Returns an event of an instrument without a book.
fn unknown(instrument: InstrumentId, source: u16) -> Event {
    Event {
        instrument,
        source,
        flags: Flags::LAST,
        ..to_event(State::Recovering(Lack::Snapshot))
    }
}

/// Marks an event that shows a last value or status as one that is not new.
pub(super) const fn mark_shown(event: &mut Event) {
    if matches!(event.kind, Kind::Trade | Kind::Statistic | Kind::Status) {
        event.flags = event.flags.with(Flags::SNAPSHOT);
    }
}

/// The state of the thread.
struct Player {
    part: OpenReplay,
    pieces: SyncSender<Step>,
    waker: Waker,
    piece: Piece,
    /// The latest time of arrival so far.
    clock: u64,
    /// The number after the last event.
    next: u64,
}

/// The reason why it ends early.
enum Ended {
    Log(LogError),
    Dbn(DbnFileError),
    /// A run of the plant with other feeds begins with this event.
    OtherFeeds(u64, u64),
    /// The gateway has ended.
    Gone,
}

impl From<DbnFileError> for Ended {
    fn from(error: DbnFileError) -> Self {
        Self::Dbn(error)
    }
}

impl From<LogError> for Ended {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

impl Player {
    fn run(mut self) {
        let last = match self.play() {
            Ok(()) => Step::Done,
            Err(Ended::Gone) => return,
            Err(Ended::Log(error)) => Step::Failed(error.to_string()),
            Err(Ended::Dbn(error)) => Step::Failed(error.to_string()),
            Err(Ended::OtherFeeds(run, number)) => Step::Failed(format!(
                "run {run} of the plant, which begins with event {number}, has other feeds or \
                 books: it is replayed alone, with from = {number}"
            )),
        };
        // The gateway may have ended.
        let _ = self.flush();
        let _ = self.pieces.send(last);
        self.waker.wake();
    }

    fn play(&mut self) -> Result<(), Ended> {
        for turn in 0..self.part.turns.0 {
            if turn > 0 {
                self.part.number_from(self.next);
                self.piece.marks.push(Mark::Again);
                self.piece.marks.push(Mark::Restart(0));
            }
            self.clock = self.part.known.time;
            self.show();
            match &self.part.source {
                Source::Log(log) => {
                    let reader = log.reader(Start::Number(self.part.first))?;
                    self.turn(reader)?;
                }
                Source::Dbn(path, place) => {
                    let play = DbnPlay::open(path, *place, self.part.shift)?;
                    self.dbn(play)?;
                }
            }
            if self.next == self.part.first + self.part.shift {
                // A part without events would be repeated without end or pause.
                break;
            }
        }
        Ok(())
    }

    /// Sends the state before the part, with the numbers before its own.
    fn show(&mut self) {
        let first = self.part.number();
        let known = &mut self.part.known;
        known.number_from(first);
        for instrument in &known.instruments {
            self.piece.instrument(instrument);
        }
        for events in &known.events {
            // Due with the first event.
            self.piece.message(0, events, false);
        }
        self.next = self.part.first + self.part.shift;
    }

    fn dbn(&mut self, mut play: DbnPlay) -> Result<(), Ended> {
        loop {
            let more = play.read(&mut self.piece);
            if let Some(last) = self.piece.events.last() {
                self.next = last.number + 1;
            }
            let is_over = !matches!(more, Ok(true));
            if self.piece.is_full() || is_over {
                self.flush()?;
            }
            if !more? {
                return Ok(());
            }
        }
    }

    /// Sends the part.
    fn turn(&mut self, mut reader: Reader) -> Result<(), Ended> {
        reader.stop_before(self.part.end);
        let mut run = self.part.run.number;
        let (mut events, mut restarted) = (Vec::new(), false);
        loop {
            let mut continues = false;
            let read = self.message(&mut reader, (&mut events, &mut continues), &mut restarted)?;
            if let Some(new) = reader.run().filter(|new| new.number != run) {
                let is_first = events.is_empty() && reader.next_number() == self.part.first;
                run = new.number;
                if new.feeds != self.part.run.feeds && !is_first {
                    return Err(Ended::OtherFeeds(run, reader.next_number()));
                }
                if std::mem::take(&mut restarted) {
                    let start = new.start;
                    self.piece.marks.push(Mark::Restart(start));
                }
            }
            if !events.is_empty() && std::mem::take(&mut restarted) {
                self.piece.marks.push(Mark::Restart(0));
            }
            self.put(&mut events, continues);
            events.clear();
            if self.piece.is_full() || read == 0 {
                self.flush()?;
            }
            if read == 0 {
                return Ok(());
            }
        }
    }

    /// Adds events of one message, and changes their numbers in the log to those of the replay.
    /// `continues` is set if others of the message follow.
    fn put(&mut self, events: &mut [Event], continues: bool) {
        let mut from = 0;
        for at in 0..events.len() {
            let Some(number) = events.get(at).map(|event| event.number + self.part.shift) else {
                break;
            };
            if number > self.next {
                // Events may be missing within a message, too.
                let before = events.get(from..at).unwrap_or_default();
                self.piece.message(self.clock, before, true);
                from = at;
            }
            self.next = number + 1;
            if let Some(event) = events.get_mut(at) {
                event.number = number;
            }
        }
        let rest = events.get(from..).unwrap_or_default();
        self.piece.message(self.clock, rest, continues);
    }

    /// Reads one record: events of one message, of which others may follow, or an instrument.
    fn message(
        &mut self,
        reader: &mut Reader,
        (events, continues): (&mut Vec<Event>, &mut bool),
        restarted: &mut bool,
    ) -> Result<usize, LogError> {
        let (piece, clock) = (&mut self.piece, &mut self.clock);
        // One to which the clock was set back, and the last one.
        let mut marks = [None; 2];
        let read = reader.read_with(
            1,
            |instrument| piece.instrument(instrument),
            |delivery| match delivery {
                Delivery::Event(event, _) => {
                    if event.ts_recv != Event::NO_TIME {
                        *clock = event.ts_recv.max(*clock);
                    }
                    events.push(*event);
                    *continues = true;
                }
                Delivery::End(_) => *continues = false,
                Delivery::Restart => *restarted = true,
                Delivery::Watermark(mark) => marks = [marks[1], Some(mark)],
                // The next number shows it.
                Delivery::Lost { .. } => {}
            },
        )?;
        // They precede the events.
        let marks = marks.into_iter().flatten();
        piece.marks.extend(marks.map(Mark::Watermark));
        Ok(read)
    }

    fn flush(&mut self) -> Result<(), Ended> {
        let piece = std::mem::take(&mut self.piece);
        let sent = self.pieces.send(Step::Piece(piece));
        self.waker.wake();
        sent.map_err(|_| Ended::Gone)
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Speed;
    use super::super::piece;
    use super::*;
    use crate::test_log::{feed, instrument, named};
    use fanfare_history::{Moment, Writer, WriterConfig};
    use fanfare_market::dbn::{DbnConfig, Schemas, ToDbn};
    use fanfare_market::event::entry;
    use fanfare_market::instruments::Definition;
    use fanfare_market::{BookConfig, Price, Side, View};
    use fanfare_peers::Scratch;

    /// Begins a log of one feed.
    fn begin(folder: &Scratch) -> Writer {
        let feeds = vec![feed(BookConfig::by_price(5).unwrap())];
        let (writer, _) = Writer::open(folder, WriterConfig::default(), feeds, 1).unwrap();
        writer
    }

    /// Opens a log to be replayed `turns` times, from an event to its end.
    fn part_of(folder: &Scratch, from: Option<u64>, turns: u64) -> OpenReplay {
        let replay = Replay {
            log: Some(folder.to_path_buf()),
            dbn: None,
            speed: Speed::Max,
            from: from.map(Moment::Number),
            to: None,
            turns: Turns(turns),
        };
        OpenReplay::open(&replay, None).unwrap()
    }

    /// Replays a log `turns` times, from an event to its end.
    fn pieces_of(folder: &Scratch, from: Option<u64>, turns: u64) -> Vec<Piece> {
        let (sender, pieces) = piece::channel();
        let part = part_of(folder, from, turns);
        part.start(sender, Waker::detached().unwrap()).unwrap();
        let mut all = Vec::new();
        for step in pieces {
            match step {
                Step::Piece(piece) => all.push(piece),
                Step::Done => break,
                Step::Failed(why) => panic!("{why}"),
            }
        }
        all
    }

    #[test]
    fn the_records_of_a_long_message_continue_it() {
        let folder = Scratch::new("parts");
        let mut writer = begin(&folder);
        for (number, continues) in [(1, true), (2, false), (3, false)] {
            let event = Event {
                number,
                ..Event::EMPTY
            };
            writer.part(&[event.to_bytes()], continues).unwrap();
        }
        writer.close().unwrap();
        let mut seen = Vec::new();
        for piece in pieces_of(&folder, None, 1) {
            let mut numbers = piece.events.iter().map(|event| event.number);
            seen.extend(piece.marks.iter().filter_map(|mark| match mark {
                Mark::Message { continues, .. } => Some((numbers.next(), *continues)),
                _ => None,
            }));
        }
        assert_eq!(seen, [(Some(1), true), (Some(2), false), (Some(3), false)]);
    }

    #[test]
    fn a_file_without_events_is_read_once() {
        let path = Scratch::new("no-events.dbn");
        let to_dbn = ToDbn::new(DbnConfig::new(Schemas::MIXED)).unwrap();
        let mut bytes = Vec::new();
        to_dbn.metadata("TEST", 0, &mut bytes);
        path.write(bytes);
        let (sender, pieces) = piece::channel();
        let part = OpenReplay::of_file(&path, ALONE, Turns(3));
        part.start(sender, Waker::detached().unwrap()).unwrap();
        let is_again = |step: &Step| match step {
            Step::Piece(piece) => piece.marks.contains(&Mark::Again),
            Step::Done => false,
            Step::Failed(why) => panic!("{why}"),
        };
        assert!(!pieces.iter().any(|step| is_again(&step)));
    }

    #[test]
    fn instruments_that_were_written_before_the_first_event_are_replayed() {
        let folder = Scratch::new("parts-known");
        let mut writer = begin(&folder);
        for number in 0..2 {
            let known = instrument(number, Definition::default());
            writer.instrument(&known).unwrap();
            writer.commit().unwrap();
        }
        let event = Event {
            number: 1,
            ..Event::EMPTY
        };
        writer.events(&[event.to_bytes()]).unwrap();
        writer.close().unwrap();
        let pieces = pieces_of(&folder, None, 1);
        let marks: Vec<_> = pieces.iter().flat_map(|piece| &piece.marks).collect();
        assert!(
            matches!(
                marks[..],
                [
                    Mark::Instrument(_),
                    Mark::Instrument(_),
                    Mark::Message { .. }
                ]
            ),
            "{marks:?}"
        );
    }

    /// A level of a book.
    const LEVEL: Event = Event {
        kind: Kind::Level,
        entry: entry::BID,
        price: Price::from_units(7),
        size: 1,
        ..Event::EMPTY
    };

    /// Returns the event of an instrument with this number, in the form of the log.
    fn numbered((number, at, event): (u64, u32, Event)) -> [u8; Event::SIZE] {
        let event = Event {
            number,
            instrument: InstrumentId(at),
            source: 1,
            flags: Flags::LAST,
            ..event
        };
        event.to_bytes()
    }

    /// Writes events of four instruments, of which damage hides the book of the first one. The last
    /// one is named behind event 12, where its book begins.
    fn write_hidden(writer: &mut Writer) {
        for (number, symbol) in (0..).zip(["hidden", "shown", "empty"]) {
            let known = instrument(number, named(symbol));
            writer.instrument(&known).unwrap();
        }
        let (live, stale) = (to_event(State::Live), to_event(State::Stale));
        // Numbers that are left out are lost.
        for (number, at, event) in [
            (1, 0, LEVEL),
            (2, 1, LEVEL),
            (4, 0, LEVEL),
            (5, 0, stale),
            (6, 1, Event::EMPTY),
            (7, 1, LEVEL),
            (8, 1, live),
            (9, 2, Event::EMPTY),
            (10, 2, live),
            (11, 0, live),
            (12, 0, Event::EMPTY),
            (13, 3, Event::EMPTY),
            (14, 3, LEVEL),
            (15, 3, live),
        ] {
            if number == 13 {
                writer.instrument(&instrument(3, named("new"))).unwrap();
            }
            writer.events(&[numbered((number, at, event))]).unwrap();
        }
    }

    /// Applies the pieces to a view as outlets do. Returns which of the four instruments have a
    /// snapshot after each event, by turns.
    fn snapshots(pieces: &[Piece], view: &mut View) -> Vec<Vec<[bool; 4]>> {
        let (mut next, mut turns) = (u64::MAX, vec![Vec::new()]);
        for piece in pieces {
            let mut events = piece.events.iter();
            for mark in &piece.marks {
                match mark {
                    Mark::Again => turns.push(Vec::new()),
                    Mark::Restart(_) => view.restart(),
                    Mark::Message { events: count, .. } => {
                        for event in events.by_ref().take(*count as usize) {
                            if event.number > next {
                                view.lose_all();
                            }
                            next = event.number + 1;
                            view.apply(event);
                            let seen = [0, 1, 2, 3].map(|at| view.get(InstrumentId(at)));
                            let all = seen.map(|seen| seen.is_some_and(Seen::has_snapshot));
                            turns.last_mut().unwrap().push(all);
                        }
                    }
                    _ => {}
                }
            }
        }
        turns
    }

    #[test]
    fn books_that_damage_hides_are_unknown_until_they_are_shown() {
        let folder = Scratch::new("parts-hidden");
        let mut writer = begin(&folder);
        write_hidden(&mut writer);
        writer.close().unwrap();
        let mut view: View = View::new(vec![BookConfig::by_price(5).unwrap()]);
        let turns = snapshots(&pieces_of(&folder, Some(11), 2), &mut view);
        assert_eq!(turns.len(), 2);
        for mut all in turns {
            // After the events that show what is known, and after those of the part.
            let shown = [false, true, true, false];
            let cleared = [true, true, true, false];
            all.dedup();
            assert_eq!(all[all.len() - 3..], [shown, cleared, [true; 4]]);
        }
        let seen = view.get(InstrumentId(1)).unwrap();
        let best = seen.book.as_ref().unwrap().depth(Side::Bid).next().unwrap();
        assert_eq!(best.price, Price::from_units(7));
    }

    #[test]
    fn a_log_whose_beginning_is_gone_begins_behind_a_number_that_is_left_out() {
        let folder = Scratch::new("parts-gone");
        let mut writer = begin(&folder);
        for number in [1, 2] {
            writer.events(&[numbered((number, 0, LEVEL))]).unwrap();
            writer.roll().unwrap();
        }
        writer.close().unwrap();
        std::fs::remove_file(folder.join("0000000001.log")).unwrap();
        let part = part_of(&folder, None, 1);
        assert_eq!((part.first, part.number()), (2, 1));
        assert_eq!((part.known.jumps, part.known.count()), (true, 1));
    }

    #[test]
    fn books_are_hidden_by_missing_events_until_a_clear_in_every_turn() {
        let folder = Scratch::new("parts-begun");
        let mut writer = begin(&folder);
        for (number, symbol) in (0..).zip(["seen", "later", "last"]) {
            let known = instrument(number, named(symbol));
            writer.instrument(&known).unwrap();
        }
        let (clear, live) = (Event::EMPTY, to_event(State::Live));
        // Number 4 is left out, and within a message an event has no kind.
        for event in [
            (1, 0, clear),
            (2, 0, LEVEL),
            (3, 0, live),
            (5, 1, clear),
            (6, 1, LEVEL),
            (7, 1, live),
        ] {
            writer.events(&[numbered(event)]).unwrap();
        }
        let message = [(8, 0, clear), (9, 0, LEVEL), (10, 2, clear), (11, 2, LEVEL)];
        let mut message = message.map(numbered);
        message[1][56] = 0;
        writer.events(&message).unwrap();
        // The last one begins without a Clear.
        for event in [(12, 2, live), (13, 3, LEVEL), (14, 3, live)] {
            writer.events(&[numbered(event)]).unwrap();
        }
        writer.close().unwrap();
        let pieces = pieces_of(&folder, None, 3);
        let mut view: View = View::new(vec![BookConfig::by_price(5).unwrap()]);
        let turns = snapshots(&pieces, &mut view);
        assert_eq!(turns.len(), 3);
        let none = [false; 4];
        let [seen, later, last] = [0, 1, 2].map(|own| [0, 1, 2, 3].map(|at| at == own));
        for mut all in turns {
            all.dedup();
            assert_eq!(all, [none, seen, none, later, none, last]);
        }
        let events = pieces.iter().flat_map(|piece| &piece.events);
        let numbers: Vec<_> = events.map(|event| event.number).collect();
        assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    }
}
