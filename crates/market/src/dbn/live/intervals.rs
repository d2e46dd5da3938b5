//! The schemas of intervals: bars of trades, and the best level at the end of each interval.

use super::batch::Batch;
use super::control::{SystemCode, no_record, system};
use super::schema::{LiveSchema, LiveSchemas};
use super::seen::{Seen, Views};
use crate::dbn::wire::{self, Bar, Header, Tick, flag};
use crate::event::{Event, Flags, InstrumentId, Kind};
use crate::price::Price;
use crate::watermark::{ClockCourse, ClockSteps, Watermark};

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;

/// An interval: its length, the record of bars and that of quotes.
struct Kept {
    length: u64,
    bars: Option<(LiveSchema, u8)>,
    quotes: Option<(LiveSchema, u8)>,
}

const INTERVALS: [Kept; 4] = [
    Kept {
        length: SECOND,
        bars: Some((LiveSchema::Ohlcv1S, 0x20)),
        quotes: Some((LiveSchema::Bbo1S, 0xc3)),
    },
    Kept {
        length: MINUTE,
        bars: Some((LiveSchema::Ohlcv1M, 0x21)),
        quotes: Some((LiveSchema::Bbo1M, 0xc4)),
    },
    Kept {
        length: 60 * MINUTE,
        bars: Some((LiveSchema::Ohlcv1H, 0x22)),
        quotes: None,
    },
    Kept {
        length: 24 * 60 * MINUTE,
        bars: Some((LiveSchema::Ohlcv1D, 0x23)),
        quotes: None,
    },
];

/// Returns the watermark of a stream that has ended: all intervals with events up to `time` end by
/// it. Both are in nanoseconds since 1970.
#[must_use]
pub const fn end_of_all(time: u64) -> u64 {
    // All shorter ones end with the longest one.
    let longest = INTERVALS[INTERVALS.len() - 1].length;
    (time / longest + 1).saturating_mul(longest)
}

/// The time after the end of an interval at which an event ends it if no watermark did, so that
/// earlier events may still follow. At most the length of the shortest interval.
const ALLOWED_LATENESS: u64 = SECOND;

/// The bars and quotes of one interval, and those so far of the next one.
///
/// Events near the end of an interval are not in the order of their times, because they come from
/// several sockets: a trade is in the interval of its time, and the interval is written once no
/// earlier event follows.
#[derive(Debug, Default)]
struct Interval {
    /// The beginning of the interval, or 0 before the first event.
    start: u64,
    trades: Trades,
    next_trades: Trades,
    quotes: Vec<Quoted>,
    /// The instruments whose quotes may have changed.
    changed: Vec<InstrumentId>,
    next_changed: Vec<InstrumentId>,
    /// The quotes of the interval that were written because their instruments have later events.
    early: Batch,
}

/// The trades of an interval.
#[derive(Debug, Default)]
struct Trades {
    bars: Vec<Option<Bar>>,
    /// The instruments with a bar.
    traded: Vec<InstrumentId>,
    /// The number of trades of earlier intervals, which were written without them.
    late: u64,
}

/// The quote of an instrument as it was last written.
#[derive(Clone, Copy, Debug, Default)]
struct Quoted {
    /// The best level, as bytes, or zeros before the first one.
    level: [u8; 32],
    changed: Changed,
    has_traded: bool,
}

/// The interval in which a quote may have changed since it was last written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Changed {
    #[default]
    Not,
    Now,
    Next,
}

/// The intervals in progress.
#[derive(Debug, Default)]
pub(super) struct Intervals {
    all: [Interval; INTERVALS.len()],
    /// The schemas that are written.
    wanted: LiveSchemas,
    /// The end of the interval that ends first.
    next_end: u64,
    /// The latest watermark since the last event, or 0.
    ended: u64,
    /// The clock, by watermarks of which the course is not known.
    steps: ClockSteps,
    /// Whether a step of the clock may be among lost events.
    is_unsure: bool,
}

impl Intervals {
    pub(super) const fn want(&mut self, wanted: LiveSchemas) {
        self.wanted = wanted;
    }

    /// Returns the latest watermark since the last event, 0 without one, or `u64::MAX` if no
    /// interval is in progress.
    pub(super) const fn ended(&self) -> u64 {
        match self.has_begun() {
            true => self.ended,
            false => u64::MAX,
        }
    }

    /// Notes that events and watermarks were lost.
    pub(super) const fn lose(&mut self) {
        self.is_unsure = true;
    }

    /// Returns whether intervals are in progress.
    pub(super) const fn has_begun(&self) -> bool {
        self.next_end != 0
    }

    /// Lets the intervals that an event of the past has begun begin at the next event.
    pub(super) const fn put_off(&mut self) {
        self.next_end = 0;
        self.steps.begin_again();
    }

    /// Ends all intervals, because times may go back. Returns the number of values that could not
    /// be written.
    pub(super) fn begin_again(&mut self, views: &Views, batch: &mut Batch) -> usize {
        self.steps.begin_again();
        if self.next_end == 0 {
            return 0;
        }
        let mut lost = 0;
        for (interval, kept) in self.all.iter_mut().zip(&INTERVALS) {
            lost += interval.end(kept, self.wanted, views, batch);
            lost += interval.end_begun(kept, self.wanted, views, batch);
        }
        (self.next_end, self.ended) = (0, 0);
        lost
    }

    /// Ends the intervals that end at this watermark or before it, or all of them if the clock was
    /// set back, as no later watermark would end them for as long. Returns the number of values
    /// that could not be written.
    pub(super) fn watermark(&mut self, mark: Watermark, views: &Views, batch: &mut Batch) -> usize {
        let time = mark.time;
        let is_unsure = std::mem::take(&mut self.is_unsure);
        let is_back = match mark.clock {
            ClockCourse::SetBack(_) => true,
            ClockCourse::Forward if !is_unsure => false,
            ClockCourse::Forward | ClockCourse::Unknown => self.steps.is_back(time),
        };
        let lost = match is_back {
            true => self.begin_again(views, batch),
            false => self.advance(time, views, batch),
        };
        self.steps.take(time, is_back);
        self.ended = if is_back { time } else { self.ended.max(time) };
        lost
    }

    /// Returns whether an interval ends at `time` or before it.
    #[inline]
    const fn has_end_by(&self, time: u64) -> bool {
        self.next_end != 0 && time >= self.next_end
    }

    /// Ends the intervals that end at `time` or before it. Returns the number of values that could
    /// not be written.
    #[inline]
    pub(super) fn advance(&mut self, time: u64, views: &Views, batch: &mut Batch) -> usize {
        if self.has_end_by(time) {
            return self.end(time, views, batch);
        }
        0
    }

    #[cold]
    fn end(&mut self, time: u64, views: &Views, batch: &mut Batch) -> usize {
        let mut lost = 0;
        for (interval, kept) in self.all.iter_mut().zip(&INTERVALS) {
            if time < interval.end_of(kept) {
                continue;
            }
            lost += interval.end(kept, self.wanted, views, batch);
            if time >= interval.end_of(kept) {
                lost += interval.end_begun(kept, self.wanted, views, batch);
                interval.start = time - time % kept.length;
            }
        }
        self.set_end();
        lost
    }

    fn set_end(&mut self) {
        let ends = self.all.iter().zip(&INTERVALS);
        let ends = ends.map(|(interval, kept)| interval.end_of(kept));
        self.next_end = ends.min().unwrap_or(0);
    }

    /// Prepares for an event of this time, before the book has it: ends the intervals of which no
    /// event is expected any more, and writes the instrument's quotes of those that end before the
    /// event. Returns the number of values that could not be written.
    #[inline]
    pub(super) fn prepare(
        &mut self,
        instrument: InstrumentId,
        time: u64,
        views: &Views,
        batch: &mut Batch,
    ) -> usize {
        if !self.has_end_by(time) {
            return 0;
        }
        self.pass(instrument, time, views, batch)
    }

    #[cold]
    fn pass(
        &mut self,
        instrument: InstrumentId,
        time: u64,
        views: &Views,
        batch: &mut Batch,
    ) -> usize {
        let mut lost = self.advance(time.saturating_sub(ALLOWED_LATENESS), views, batch);
        for (interval, kept) in self.all.iter_mut().zip(&INTERVALS) {
            let end = interval.end_of(kept);
            let quotes = kept.quotes.filter(|(schema, _)| self.wanted.has(*schema));
            if let Some(quotes) = quotes.filter(|_| time >= end) {
                let early = &mut interval.early;
                let quoted = interval.quotes.get_mut(instrument.0 as usize);
                let quoted = quoted.filter(|own| own.changed == Changed::Now);
                let was_written =
                    quoted.is_none_or(|own| own.end((quotes, end), instrument, views, early));
                lost += usize::from(!was_written);
            }
        }
        lost
    }

    /// Applies an event of this time, after [`Self::prepare`].
    #[inline]
    pub(super) fn take(&mut self, event: &Event, time: u64) {
        self.steps.event(time);
        self.ended = 0;
        if self.next_end == 0 {
            for (interval, kept) in self.all.iter_mut().zip(&INTERVALS) {
                interval.start = time - time % kept.length;
            }
            self.set_end();
        }
        let is_trade = event.kind == Kind::Trade && !event.flags.has(Flags::SNAPSHOT);
        if is_trade && event.action == crate::event::Action::New && event.price.is_defined() {
            for (interval, kept) in self.all.iter_mut().zip(&INTERVALS) {
                let is_next = time >= interval.end_of(kept);
                let trades = match is_next {
                    true => &mut interval.next_trades,
                    false => &mut interval.trades,
                };
                trades.late += u64::from(time < interval.start);
                trades.take(event);
            }
        }
        if is_trade || event.kind.is_of_book() {
            for (interval, kept) in self.all.iter_mut().zip(&INTERVALS) {
                if kept
                    .quotes
                    .is_some_and(|(schema, _)| self.wanted.has(schema))
                {
                    let is_next = time >= interval.end_of(kept);
                    interval.change(event.instrument, is_trade, is_next);
                }
            }
        }
    }
}

/// Returns the entry of an instrument in a list that grows as needed.
fn place<T: Clone + Default>(list: &mut Vec<T>, instrument: InstrumentId) -> Option<&mut T> {
    let at = instrument.0 as usize;
    if at >= list.len() {
        list.resize(at + 1, T::default());
    }
    list.get_mut(at)
}

impl Trades {
    fn take(&mut self, event: &Event) {
        let volume = match event.size {
            Event::NO_SIZE => 0,
            size => u64::try_from(size).unwrap_or(0),
        };
        let price = event.price;
        let Some(bar) = place(&mut self.bars, event.instrument) else {
            return;
        };
        match bar {
            Some(bar) => {
                bar.high = bar.high.max(price);
                bar.low = bar.low.min(price);
                bar.close = price;
                bar.volume = bar.volume.saturating_add(volume);
            }
            None => {
                *bar = Some(Bar {
                    open: price,
                    high: price,
                    low: price,
                    close: price,
                    volume,
                });
                self.traded.push(event.instrument);
            }
        }
    }

    /// Writes the bars of the interval that begins at `start`, and removes them. Without a schema
    /// they are only removed.
    fn end(
        &mut self,
        bars: Option<(LiveSchema, u8)>,
        start: u64,
        views: &Views,
        batch: &mut Batch,
    ) {
        for instrument in self.traded.drain(..) {
            let bar = self.bars.get_mut(instrument.0 as usize);
            let (Some(bar), Some((schema, rtype))) = (bar.and_then(Option::take), bars) else {
                continue;
            };
            let header = Header {
                source: views.seen(instrument).map_or(0, |seen| seen.source),
                instrument: instrument.0,
                ts_event: start,
            };
            wire::bar(header, rtype, &bar, &mut batch.bytes);
            batch.tag(instrument, schema.alone(), 0);
        }
        let late = std::mem::take(&mut self.late);
        if let Some((schema, _)) = bars.filter(|_| late > 0) {
            let text = format!(
                "trades in these bars of {} that belong to earlier ones, which had been sent: \
                 {late}",
                schema.name()
            );
            system(SystemCode::Unset, &text, start, &mut batch.bytes);
            batch.tag(InstrumentId::ALL, schema.alone(), 0);
        }
    }
}

impl Interval {
    fn change(&mut self, instrument: InstrumentId, has_traded: bool, is_next: bool) {
        let Some(quoted) = place(&mut self.quotes, instrument) else {
            return;
        };
        quoted.has_traded |= has_traded;
        if quoted.changed == Changed::Not {
            let (changed, list) = match is_next {
                true => (Changed::Next, &mut self.next_changed),
                false => (Changed::Now, &mut self.changed),
            };
            quoted.changed = changed;
            list.push(instrument);
        }
    }

    /// Returns the end of the interval. Times may come from a file, and be any.
    const fn end_of(&self, kept: &Kept) -> u64 {
        self.start.saturating_add(kept.length)
    }

    /// Ends the interval, which was the next one, if an event of it was taken. Returns the number
    /// of values that could not be written.
    fn end_begun(
        &mut self,
        kept: &Kept,
        wanted: LiveSchemas,
        views: &Views,
        batch: &mut Batch,
    ) -> usize {
        match self.trades.traded.is_empty() && self.changed.is_empty() {
            true => 0,
            false => self.end(kept, wanted, views, batch),
        }
    }

    /// Writes the records of the interval, and begins the next one. Returns the number of values
    /// that could not be written.
    fn end(&mut self, kept: &Kept, wanted: LiveSchemas, views: &Views, batch: &mut Batch) -> usize {
        let end = self.end_of(kept);
        let bars = kept.bars.filter(|(schema, _)| wanted.has(*schema));
        self.trades.end(bars, self.start, views, batch);
        let mut lost = 0;
        let quotes = kept.quotes.filter(|(schema, _)| wanted.has(*schema));
        batch.append(&mut self.early);
        for instrument in self.changed.drain(..) {
            let quoted = self.quotes.get_mut(instrument.0 as usize);
            let Some(quoted) = quoted.filter(|own| own.changed == Changed::Now) else {
                continue;
            };
            match quotes {
                Some(of) => lost += usize::from(!quoted.end((of, end), instrument, views, batch)),
                None => (quoted.changed, quoted.has_traded) = (Changed::Not, false),
            }
        }
        for (schema, _) in bars.into_iter().chain(quotes) {
            let code = SystemCode::EndOfInterval;
            let text = format!("End of interval for {}", schema.name());
            system(code, &text, end, &mut batch.bytes);
            batch.tag(InstrumentId::ALL, schema.alone(), 0);
        }
        self.begin_next(end);
        lost
    }

    fn begin_next(&mut self, start: u64) {
        self.start = start;
        std::mem::swap(&mut self.trades, &mut self.next_trades);
        std::mem::swap(&mut self.changed, &mut self.next_changed);
        for instrument in &self.changed {
            if let Some(quoted) = self.quotes.get_mut(instrument.0 as usize) {
                quoted.changed = Changed::Now;
            }
        }
    }
}

impl Quoted {
    /// Writes the quote at the end of an interval, and begins the next one. Returns false if it
    /// cannot be written, which a notice reports.
    fn end(
        &mut self,
        of: ((LiveSchema, u8), u64),
        instrument: InstrumentId,
        views: &Views,
        batch: &mut Batch,
    ) -> bool {
        let seen = views.seen(instrument);
        let is_written = seen.is_none_or(|seen| self.write(of, instrument, seen, views, batch));
        (self.changed, self.has_traded) = (Changed::Not, false);
        if !is_written {
            let ((schema, _), end) = of;
            let why = format!(
                "instrument_id {}: {}: a size of the best level is not from 0 to 4294967294",
                instrument.0,
                schema.name()
            );
            let of = (seen.map_or(0, |seen| seen.source), instrument);
            no_record(of, &why, end, &mut batch.bytes);
            batch.tag(instrument, schema.alone(), 0);
        }
        is_written
    }

    /// Writes the quote if it has changed, or there were trades. Returns false if it cannot be
    /// written.
    fn write(
        &mut self,
        ((schema, rtype), end): ((LiveSchema, u8), u64),
        instrument: InstrumentId,
        seen: &Seen,
        views: &Views,
        batch: &mut Batch,
    ) -> bool {
        let trade = seen.trade;
        let ts_event = trade.map_or(Event::NO_TIME, |trade| trade.ts_event);
        let doubt = if seen.is_whole() {
            0
        } else {
            flag::MAYBE_BAD_BOOK
        };
        let tick = Tick {
            header: Header {
                source: seen.source,
                instrument: instrument.0,
                ts_event: wire::known_time(ts_event, end),
            },
            price: trade.map_or(Price::UNDEFINED, |trade| trade.price),
            size: trade.map_or(0, |trade| u32::try_from(trade.size).unwrap_or(u32::MAX)),
            flags: flag::LAST | doubt,
            action: 0,
            side: b'N',
            ts_recv: end,
            sequence: seen.rpt_seq,
        };
        let start = batch.bytes.len();
        let written = wire::quote(&tick, rtype, views.book(instrument), &mut batch.bytes);
        let level = batch.bytes.last_chunk::<32>().copied().unwrap_or_default();
        if written.is_err() || level == self.level && !self.has_traded {
            batch.bytes.truncate(start);
            return written.is_ok();
        }
        self.level = level;
        batch.tag(instrument, schema.alone(), 0);
        true
    }
}
