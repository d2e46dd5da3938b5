//! The schemas of intervals: bars of trades, and the best level at the end of each interval.

use super::batch::Batch;
use super::control::{SystemCode, system};
use super::schema::{LiveSchema, LiveSchemas};
use super::seen::{Seen, Views};
use crate::dbn::wire::{self, Bar, Header, Tick, flag};
use crate::event::{Event, Flags, InstrumentId, Kind};
use crate::price::Price;

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

/// The time after the end of an interval at which the clock ends it without an event, because
/// earlier events may still be on their way.
const GRACE: u64 = SECOND / 20;

/// The bars and quotes of one interval.
#[derive(Debug, Default)]
struct Interval {
    /// The beginning of the interval, or 0 before the first event.
    start: u64,
    bars: Vec<Option<Bar>>,
    /// The instruments with a bar.
    traded: Vec<InstrumentId>,
    quotes: Vec<Quoted>,
    /// The instruments whose quotes may have changed.
    changed: Vec<InstrumentId>,
}

/// The quote of an instrument as it was last written.
#[derive(Clone, Copy, Debug, Default)]
struct Quoted {
    /// The best level, as bytes, or zeros before the first one.
    level: [u8; 32],
    is_changed: bool,
    has_traded: bool,
}

/// The intervals in progress.
#[derive(Debug, Default)]
pub(super) struct Intervals {
    all: [Interval; INTERVALS.len()],
    /// The schemas that are written.
    wanted: LiveSchemas,
    /// The end of the interval that ends first.
    next_end: u64,
}

impl Intervals {
    pub(super) const fn want(&mut self, wanted: LiveSchemas) {
        self.wanted = wanted;
    }

    /// Returns when the clock ends an interval, in nanoseconds since 1970-01-01 UTC, or `None`
    /// before the first event.
    pub(super) fn next_end(&self) -> Option<u64> {
        (self.next_end != 0).then(|| self.next_end.saturating_add(GRACE))
    }

    /// Writes the intervals that have ended at `now`.
    pub(super) fn tick(&mut self, now: u64, views: &Views, batch: &mut Batch) -> usize {
        self.advance(now.saturating_sub(GRACE), views, batch)
    }

    /// Ends all intervals, because times may go back. Returns the number of values that could not
    /// be written.
    pub(super) fn begin_again(&mut self, views: &Views, batch: &mut Batch) -> usize {
        if self.next_end == 0 {
            return 0;
        }
        let lost = self.end(u64::MAX, views, batch);
        self.next_end = 0;
        lost
    }

    /// Ends the intervals that end at `time` or before it. Returns the number of values that could
    /// not be written.
    #[inline]
    pub(super) fn advance(&mut self, time: u64, views: &Views, batch: &mut Batch) -> usize {
        match self.next_end != 0 && time >= self.next_end {
            true => self.end(time, views, batch),
            false => 0,
        }
    }

    #[cold]
    fn end(&mut self, time: u64, views: &Views, batch: &mut Batch) -> usize {
        let mut lost = 0;
        for (interval, kept) in self.all.iter_mut().zip(&INTERVALS) {
            if time < interval.start + kept.length {
                continue;
            }
            lost += interval.write(kept, self.wanted, views, batch);
            interval.start = time - time % kept.length;
        }
        self.set_end();
        lost
    }

    fn set_end(&mut self) {
        let ends = self.all.iter().zip(&INTERVALS);
        let ends = ends.map(|(interval, kept)| interval.start + kept.length);
        self.next_end = ends.min().unwrap_or(0);
    }

    /// Applies an event of this time, after [`Self::advance`].
    #[inline]
    pub(super) fn take(&mut self, event: &Event, time: u64) {
        if self.next_end == 0 {
            for (interval, kept) in self.all.iter_mut().zip(&INTERVALS) {
                interval.start = time - time % kept.length;
            }
            self.set_end();
        }
        let is_trade = event.kind == Kind::Trade && !event.flags.has(Flags::SNAPSHOT);
        if is_trade && event.action == crate::event::Action::New && event.price.is_defined() {
            for interval in &mut self.all {
                interval.trade(event);
            }
        }
        let is_quote = matches!(event.kind, Kind::Level | Kind::Order | Kind::Clear);
        if is_trade || is_quote {
            for (interval, kept) in self.all.iter_mut().zip(&INTERVALS) {
                if kept
                    .quotes
                    .is_some_and(|(schema, _)| self.wanted.has(schema))
                {
                    interval.change(event.instrument, is_trade);
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

impl Interval {
    fn trade(&mut self, event: &Event) {
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

    fn change(&mut self, instrument: InstrumentId, has_traded: bool) {
        let Some(quoted) = place(&mut self.quotes, instrument) else {
            return;
        };
        quoted.has_traded |= has_traded;
        if !quoted.is_changed {
            quoted.is_changed = true;
            self.changed.push(instrument);
        }
    }

    /// Writes the records of the interval. Returns the number of values that could not be written.
    fn write(
        &mut self,
        kept: &Kept,
        wanted: LiveSchemas,
        views: &Views,
        batch: &mut Batch,
    ) -> usize {
        let end = self.start + kept.length;
        let bars = kept.bars.filter(|(schema, _)| wanted.has(*schema));
        for instrument in self.traded.drain(..) {
            let bar = self.bars.get_mut(instrument.0 as usize);
            let (Some(bar), Some((schema, rtype))) = (bar.and_then(Option::take), bars) else {
                continue;
            };
            let header = Header {
                source: views.seen(instrument).map_or(0, |seen| seen.source),
                instrument: instrument.0,
                ts_event: self.start,
            };
            wire::bar(header, rtype, &bar, &mut batch.bytes);
            batch.tag(instrument, schema.alone(), 0);
        }
        let mut lost = 0;
        let quotes = kept.quotes.filter(|(schema, _)| wanted.has(*schema));
        for instrument in self.changed.drain(..) {
            let Some(quoted) = self.quotes.get_mut(instrument.0 as usize) else {
                continue;
            };
            quoted.is_changed = false;
            if let (Some(of), Some(seen)) = (quotes, views.seen(instrument)) {
                lost += usize::from(!quoted.write((of, end), instrument, seen, views, batch));
            }
            quoted.has_traded = false;
        }
        for (schema, _) in bars.into_iter().chain(quotes) {
            let code = SystemCode::EndOfInterval;
            let text = format!("End of interval for {}", schema.name());
            system(code, &text, end, &mut batch.bytes);
            batch.tag(InstrumentId::ALL, schema.alone(), 0);
        }
        lost
    }
}

impl Quoted {
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
        let doubt = if seen.is_whole() {
            0
        } else {
            flag::MAYBE_BAD_BOOK
        };
        let tick = Tick {
            header: Header {
                source: seen.source,
                instrument: instrument.0,
                ts_event: trade.map_or(Event::NO_TIME, |trade| trade.ts_event),
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
