//! Messages that a consumer does not receive: a News(B) stands in the place of those missing.

use fanfare_fix::codec::FieldWriter;
use fanfare_fix::session::Version;
use fanfare_wire::{Precision, UtcTimestamp};
use std::fmt;
use std::io::{self, Cursor, Write};

/// MsgType(35) of the message that stands for a hole.
pub(crate) const NEWS: &[u8] = b"B";

/// `Headline(148)` of the News(B).
const HEADLINE: &str = "Messages missing";

/// The bit in the kind of a ring record that marks a hole. The other bits are the versions of the
/// sessions that a message or a hole is for, as in [`crate::fanout::versions`].
pub(crate) const HOLE: u32 = 1 << 31;

/// The length of the record of a hole.
pub(crate) const RECORD: usize = 49;

/// The reason why messages are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// The consumer did not read, its queue was full, and the policy is to leave messages out.
    SlowConsumer,
    /// No line of the feed delivered them.
    FeedGap,
    /// A packet of the feed could not be decoded from some position on. The number of messages in
    /// its rest is unknown.
    Undecodable,
    /// Messages of the feed that cannot be expressed in FIX.
    NotFix,
    /// The gateway's workers were behind, and their ring was full.
    WorkersBehind,
    /// Another gateway numbered them, and they did not arrive over DDS.
    DdsGap,
    /// Another gateway's messages that arrived over DDS after later ones of it. They follow.
    DdsLate,
    /// Trades that exceeded the buffer of a conflated subscription while its client was behind.
    Trades,
}

impl Missing {
    const ALL: [Self; 8] = [
        Self::SlowConsumer,
        Self::FeedGap,
        Self::Undecodable,
        Self::NotFix,
        Self::WorkersBehind,
        Self::DdsGap,
        Self::DdsLate,
        Self::Trades,
    ];

    /// Returns the word for the reason in the News(B).
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::SlowConsumer => "slow-consumer",
            Self::FeedGap => "feed-gap",
            Self::Undecodable => "undecodable",
            Self::NotFix => "not-fix",
            Self::WorkersBehind => "workers-behind",
            Self::DdsGap => "dds-gap",
            Self::DdsLate => "dds-late",
            Self::Trades => "trades",
        }
    }

    /// Returns the reason that a word states, if it is one of [`word`](Self::word).
    pub(crate) fn from_word(word: &[u8]) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|why| why.word().as_bytes() == word)
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SlowConsumer => "its queue is full",
            Self::FeedGap => "no line of the feed delivered them",
            Self::Undecodable => "the rest of a packet could not be decoded",
            Self::NotFix => "they cannot be represented in FIX",
            Self::WorkersBehind => "the workers were behind",
            Self::DdsGap => "they were not received over DDS",
            Self::DdsLate => "they were received over DDS after later ones",
            Self::Trades => "more trades than a conflated subscription holds",
        })
    }
}

/// Messages that are missing in one place, for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hole {
    pub(crate) why: Missing,
    /// The number of messages, or 0 if unknown.
    pub(crate) count: u64,
    /// The numbers of the first and the last, or 0 if they have none: of the feed, or for
    /// `SlowConsumer` the gateway's count of the messages for this session.
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// The feed that the numbers are of, as the hash of its name, or 0 if they are of none. It
    /// stays in the process.
    pub(crate) feed: u64,
    /// The times at which the first and the last were missed, in nanoseconds since 1970.
    pub(crate) from: i64,
    pub(crate) to: i64,
}

impl Hole {
    /// Creates a hole of `count` messages, or 0 if unknown, without numbers.
    pub(crate) fn new(why: Missing, count: u64, nanos: i64) -> Self {
        Self {
            why,
            count,
            first: 0,
            last: 0,
            feed: 0,
            from: nanos,
            to: nanos,
        }
    }

    /// Extends the hole by messages that are missing after it for the same reason, with none
    /// delivered in between. It has no numbers any more if theirs are of another feed, are not
    /// above its own, as behind a restart, or are unknown.
    pub(crate) fn grow(&mut self, behind: &Self) {
        let known = self.count > 0 && behind.count > 0;
        let sum = self.count.saturating_add(behind.count);
        self.count = if known { sum } else { 0 };
        let ascends = self.first > 0 && behind.first > self.last && self.feed == behind.feed;
        (self.first, self.last) = if ascends {
            (self.first, behind.last)
        } else {
            (0, 0)
        };
        self.to = behind.to;
    }

    /// Adds a hole to the one before it in the same place, if there is one, which keeps its reason.
    pub(crate) fn join(known: &mut Option<Self>, behind: &Self) {
        match known {
            Some(known) => known.grow(behind),
            None => *known = Some(*behind),
        }
    }

    /// Writes the record of the ring into `room`.
    pub(crate) fn write(&self, room: &mut [u8]) {
        let why = Missing::ALL.iter().position(|why| *why == self.why);
        let numbers = [self.count, self.first, self.last, self.feed].map(u64::to_le_bytes);
        let times = [self.from, self.to].map(i64::to_le_bytes);
        if let Some((first, rest)) = room.split_first_mut() {
            *first = why.unwrap_or(0) as u8;
            for (place, bytes) in rest.chunks_exact_mut(8).zip(numbers.iter().chain(&times)) {
                place.copy_from_slice(bytes);
            }
        }
    }

    /// Parses a record, or returns `None` if it is not a hole.
    pub(crate) fn read(record: &[u8]) -> Option<Self> {
        let (&why, rest) = record.split_first()?;
        let mut numbers = rest.as_chunks::<8>().0.iter();
        let mut next = || numbers.next().map(|bytes| u64::from_le_bytes(*bytes));
        Some(Self {
            why: *Missing::ALL.get(usize::from(why))?,
            count: next()?,
            first: next()?,
            last: next()?,
            feed: next()?,
            from: next()?.cast_signed(),
            to: next()?.cast_signed(),
        })
    }

    /// Writes the fields of the News(B). It has one Text(58) with words of the form `name=value`,
    /// because FIX.4.0 allows only one, and has no Headline(148).
    pub(crate) fn body(&self, version: Version, writer: &mut FieldWriter<'_>) {
        if version > Version::Fix40 {
            writer.str(HEADLINE_TAG, HEADLINE);
        }
        let mut text = Cursor::new([0; LONGEST_TEXT]);
        // The longest line fits, as the tests show.
        let _ = self.line(&mut text);
        let (text, len) = (text.get_ref(), text.position() as usize);
        writer.u64(LINES_OF_TEXT, 1);
        writer.field(TEXT, text.get(..len).unwrap_or_default());
    }

    fn line(&self, to: &mut impl Write) -> io::Result<()> {
        write!(to, "missing={}", self.why.word())?;
        match self.count {
            0 => write!(to, " count=unknown")?,
            count => write!(to, " count={count}")?,
        }
        if self.first > 0 {
            write!(to, " first={} last={}", self.first, self.last)?;
        }
        for (name, nanos) in [("from", self.from), ("to", self.to)] {
            let time = UtcTimestamp::from_nanos(nanos).text(Precision::Micros);
            write!(to, " {name}={time}")?;
        }
        Ok(())
    }
}

/// The most bytes of the Text(58) of a hole.
const LONGEST_TEXT: usize = 240;

/// `Headline(148)`, `LinesOfText(33)`, `Text(58)`.
const HEADLINE_TAG: u32 = 148;
const LINES_OF_TEXT: u32 = 33;
const TEXT: u32 = 58;

/// Holes in one place, at most one for each reason, so that their number is bounded.
#[derive(Debug, Default)]
pub(crate) struct Holes([Option<Hole>; Missing::ALL.len()]);

impl Holes {
    /// Adds messages that are missing after all others here.
    pub(crate) fn add(&mut self, hole: &Hole) {
        let place = Missing::ALL.iter().position(|why| *why == hole.why);
        if let Some(known) = place.and_then(|place| self.0.get_mut(place)) {
            Hole::join(known, hole);
        }
    }

    /// Returns the hole of one reason.
    pub(crate) fn of(&self, why: Missing) -> Option<&Hole> {
        self.0.iter().flatten().find(|hole| hole.why == why)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// Calls `tell` with each hole, in the order in which they began, and removes it if that
    /// returns `true`. The first `false` ends the iteration.
    pub(crate) fn drain(&mut self, mut tell: impl FnMut(&Hole) -> bool) {
        loop {
            let open = self.0.iter_mut().filter(|place| place.is_some());
            let first = open.min_by_key(|place| place.as_ref().map(|hole| hole.from));
            match first {
                Some(place) if place.as_ref().is_some_and(&mut tell) => *place = None,
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_fix::codec::{Decoder, Encoder};
    use fanfare_fix::dict::{self, Dictionary, Switches};

    fn hole(why: Missing, first: u64, last: u64, from: i64) -> Hole {
        Hole {
            count: last - first + 1,
            first,
            last,
            to: from + 1,
            ..Hole::new(why, 1, from)
        }
    }

    fn text(hole: &Hole, version: Version) -> String {
        let mut room = [0; 512];
        let mut writer = FieldWriter::new(&mut room);
        hole.body(version, &mut writer);
        String::from_utf8_lossy(writer.written().unwrap()).replace('\x01', "|")
    }

    #[test]
    fn what_is_written_to_the_ring_is_read_back() {
        for why in Missing::ALL {
            let hole = Hole {
                feed: 3,
                ..hole(why, 7, u64::MAX, -5)
            };
            let mut room = [0; RECORD];
            hole.write(&mut room);
            assert_eq!(Hole::read(&room), Some(hole));
            assert_eq!(Hole::read(&room[..RECORD - 1]), None);
            assert_eq!(Missing::from_word(why.word().as_bytes()), Some(why));
        }
        assert_eq!(Hole::read(&[9; RECORD]), None);
        assert_eq!(Hole::read(&[]), None);
    }

    #[test]
    fn the_text_has_reason_number_range_and_times() {
        let hole = hole(Missing::FeedGap, 1001, 1012, 1_500_000_000);
        assert_eq!(
            text(&hole, Version::Fix44),
            "148=Messages missing|33=1|58=missing=feed-gap count=12 first=1001 last=1012 \
             from=19700101-00:00:01.500000 to=19700101-00:00:01.500000|"
        );
        let unknown = Hole::new(Missing::Undecodable, 0, 0);
        let told = text(&unknown, Version::Fix40);
        assert!(told.starts_with("33=1|58=missing=undecodable count=unknown from="));
    }

    /// Returns the fields of a News(B) after the header of a version.
    fn message(version: dict::Version, begin: Version) -> Vec<u8> {
        let mut body = vec![0; 1024];
        let mut encoder = Encoder::new(&mut body, begin.begin_string().as_bytes(), NEWS);
        encoder.str(49, "A").str(56, "B").u64(34, 2);
        let time = UtcTimestamp::from_nanos(0).text(begin.precision());
        encoder.str(52, time.as_str());
        hole(Missing::FeedGap, 1, 2, 3).body(begin, &mut encoder);
        let range = encoder.finish().unwrap();
        assert!(range.len() > 80, "{version:?}");
        body[range].to_vec()
    }

    #[test]
    fn every_version_has_the_message_with_these_fields() {
        use dict::Version::{Fix40, Fix41, Fix42, Fix43, Fix44, Fix50, Fix50Sp1, Fix50Sp2, Fixt11};
        let plain = [
            (Fix40, Version::Fix40),
            (Fix41, Version::Fix41),
            (Fix42, Version::Fix42),
            (Fix43, Version::Fix43),
            (Fix44, Version::Fix44),
        ];
        let over = [Fix50, Fix50Sp1, Fix50Sp2].map(|version| (version, Version::Fixt11));
        for (version, begin) in plain.into_iter().chain(over) {
            let mut dictionary = Dictionary::built_in(version);
            if begin == Version::Fixt11 {
                let transport = Dictionary::built_in(Fixt11);
                dictionary = std::sync::Arc::new(dictionary.over(&transport).unwrap());
            }
            let bytes = message(version, begin);
            let mut decoder = Decoder::new();
            let message = decoder.decode(&bytes).unwrap();
            let fault = dictionary.validate(&message, Switches::default());
            assert!(fault.is_ok(), "{version:?}: {fault:?}");
        }
    }

    #[test]
    fn the_longest_text_fits() {
        let longest = Hole {
            first: u64::MAX,
            last: u64::MAX,
            count: u64::MAX,
            ..Hole::new(Missing::WorkersBehind, 1, i64::MAX)
        };
        assert!(text(&longest, Version::Fixt11).contains(" to="));
    }

    #[test]
    fn holes_of_one_reason_grow_together_and_others_stay_apart() {
        let mut holes = Holes::default();
        holes.add(&hole(Missing::FeedGap, 5, 6, 20));
        holes.add(&hole(Missing::SlowConsumer, 1, 1, 10));
        holes.add(&hole(Missing::FeedGap, 9, 9, 30));
        let mut told = Vec::new();
        holes.drain(|hole| {
            told.push((hole.why, hole.count, hole.first, hole.last, hole.to));
            told.len() < 3
        });
        assert_eq!(
            told,
            [
                (Missing::SlowConsumer, 1, 1, 1, 11),
                (Missing::FeedGap, 3, 5, 9, 31)
            ]
        );
        assert!(holes.is_empty());
        holes.add(&Hole::new(Missing::Undecodable, 0, 1));
        holes.add(&Hole::new(Missing::Undecodable, 3, 2));
        assert_eq!(holes.of(Missing::Undecodable).unwrap().count, 0, "unknown");
        holes.drain(|_| false);
        assert!(!holes.is_empty(), "not told, not forgotten");
    }

    #[test]
    fn numbers_that_do_not_ascend_or_are_of_several_feeds_are_no_range() {
        let first = hole(Missing::FeedGap, 10, 20, 1);
        let unnumbered = Hole::new(Missing::FeedGap, 1, 2);
        let before = hole(Missing::FeedGap, 3, 4, 2);
        let of_other = Hole {
            feed: 2,
            ..hole(Missing::FeedGap, 500, 501, 2)
        };
        for (one, behind) in [
            (first, unnumbered),
            (unnumbered, first),
            (first, before),
            (first, first),
            (first, of_other),
        ] {
            let mut both = one;
            both.grow(&behind);
            assert_eq!((both.first, both.last), (0, 0));
            assert_eq!(both.count, one.count + behind.count);
            assert!(!text(&both, Version::Fix44).contains("first="));
        }
    }
}
