//! Bars and quotes of intervals, read with the crate `dbn`.

use crate::live::{SECOND, encoder, event, order, read, trade};
use dbn::{BboMsg, OhlcvMsg, SymbolMappingMsg, SystemMsg};
use fanfare_market::dbn::live::{Batch, Encoder, LiveSchema, LiveSchemas, end_of_all};
use fanfare_market::event::entry;
use fanfare_market::state::code;
use fanfare_market::watermark::ClockCourse;
use fanfare_market::{Event, Flags, InstrumentId, Instruments, Kind, Watermark};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[test]
fn bars_and_quotes_end_with_their_intervals() {
    let (mut encoder, table) = encoder();
    let mut batch = Batch::default();
    let wanted = [LiveSchema::Ohlcv1S, LiveSchema::Ohlcv1M, LiveSchema::Bbo1S];
    encoder.want(wanted.into_iter().collect(), &table);
    let events = [
        Event {
            id: code::LIVE,
            ..event(Kind::State, 100)
        },
        order(1, entry::BID, 90, 5),
        trade(100, 100, 1),
        trade(100, 103, 2),
        Event {
            flags: Flags::SNAPSHOT,
            ..trade(100, 1_000, 99)
        },
        trade(100, 99, 3),
        trade(102, 50, 4),
    ];
    for event in &events {
        encoder.event(event, &table, &mut batch);
    }
    encoder.watermark(Watermark::unknown(103 * SECOND - 1), &mut batch);
    assert_eq!(encoder.ended(), 103 * SECOND - 1);
    encoder.watermark(Watermark::unknown(103 * SECOND + SECOND / 2), &mut batch);
    let (mut bars, mut quotes, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    read(&batch, LiveSchemas::ALL, false, |record| {
        if let Some(bar) = record.get::<OhlcvMsg>() {
            let prices = [bar.open, bar.high, bar.low, bar.close];
            bars.push((bar.hd.rtype, bar.hd.ts_event / SECOND, prices, bar.volume));
        } else if let Some(quote) = record.get::<BboMsg>() {
            let level = &quote.levels[0];
            quotes.push((
                quote.ts_recv / SECOND,
                quote.price,
                quote.size,
                level.bid_px,
            ));
        } else if let Some(end) = record.get::<SystemMsg>() {
            ends.push((end.hd.ts_event / SECOND, end.msg().unwrap().to_owned()));
        } else {
            assert!(record.get::<SymbolMappingMsg>().is_some());
        }
    });
    assert_eq!(
        bars,
        [(0x20, 100, [100, 103, 99, 99], 6), (0x20, 102, [50; 4], 4)]
    );
    assert_eq!(quotes, [(101, 99, 3, 90), (103, 50, 4, 90)]);
    assert_eq!(ends.len(), 6, "{ends:?}");
    assert_eq!(ends[0], (101, "End of interval for ohlcv-1s".to_owned()));
    batch.clear();
    encoder.watermark(Watermark::unknown(200 * SECOND), &mut batch);
    read(&batch, LiveSchema::Ohlcv1M.alone(), true, |record| {
        if let Some(bar) = record.get::<dbn::WithTsOut<OhlcvMsg>>() {
            assert_eq!(
                (bar.rec.volume, bar.rec.open, bar.rec.close, bar.ts_out),
                (10, 100, 50, 99)
            );
        }
    });
}

#[test]
fn the_end_of_a_stream_ends_the_intervals_of_its_last_events() {
    const DAY: u64 = 86_400 * SECOND;
    let (mut encoder, table) = encoder();
    let mut batch = Batch::default();
    let wanted = [
        LiveSchema::Ohlcv1S,
        LiveSchema::Ohlcv1M,
        LiveSchema::Ohlcv1H,
        LiveSchema::Ohlcv1D,
    ];
    encoder.want(wanted.into_iter().collect(), &table);
    // On both sides of midnight.
    for second in [86_399, 86_400] {
        encoder.event(&trade(second, 100, second as i64), &table, &mut batch);
    }
    encoder.watermark(
        Watermark::unknown(end_of_all(86_400 * SECOND + 7)),
        &mut batch,
    );
    assert_eq!(encoder.ended(), 2 * DAY);
    let mut bars = Vec::new();
    read(&batch, LiveSchemas::ALL, false, |record| {
        if let Some(bar) = record.get::<OhlcvMsg>() {
            bars.push((bar.hd.rtype, bar.volume));
        }
    });
    bars.sort_unstable();
    let all = [0x20, 0x21, 0x22, 0x23].map(|rtype| [(rtype, 86_399), (rtype, 86_400)]);
    assert_eq!(bars, all.concat());
    assert_eq!(
        [0, 1, DAY - 1, DAY].map(end_of_all),
        [DAY, DAY, DAY, 2 * DAY]
    );
}

/// An event that arrived in this millisecond.
fn at(millis: u64, instrument: u32, event: Event) -> Event {
    Event {
        instrument: InstrumentId(instrument),
        ts_recv: millis * (SECOND / 1_000),
        ..event
    }
}

/// A bar: its second, its instrument, and its volume.
type Volumes = BTreeMap<(u64, u32), u64>;

fn volumes(batch: &Batch, into: &mut Volumes) -> Vec<String> {
    let mut texts = Vec::new();
    read(batch, LiveSchema::Ohlcv1S.alone(), false, |record| {
        if let Some(bar) = record.get::<OhlcvMsg>() {
            let place = (bar.hd.ts_event / SECOND, bar.hd.instrument_id);
            assert_eq!(into.insert(place, bar.volume), None, "{place:?}");
        } else if let Some(notice) = record.get::<SystemMsg>() {
            texts.push(notice.msg().unwrap().to_owned());
        }
    });
    texts
}

#[test]
fn events_of_several_sockets_are_in_the_intervals_of_their_times() {
    let (mut encoder, table) = encoder();
    let mut batch = Batch::default();
    let wanted = [LiveSchema::Ohlcv1S, LiveSchema::Bbo1S];
    encoder.want(wanted.into_iter().collect(), &table);
    let events = [
        at(100_100, 0, trade(1, 100, 1)),
        at(100_200, 0, order(1, entry::BID, 90, 5)),
        at(101_100, 0, order(2, entry::BID, 91, 5)),
        at(101_200, 0, trade(1, 101, 2)),
        at(100_900, 1, trade(1, 70, 3)),
        at(100_950, 1, order(3, entry::BID, 60, 5)),
    ];
    for event in &events {
        encoder.event(event, &table, &mut batch);
    }
    let mut bars = Volumes::new();
    assert!(volumes(&batch, &mut bars).is_empty() && bars.is_empty());
    encoder.watermark(Watermark::unknown(101 * SECOND), &mut batch);
    encoder.watermark(Watermark::unknown(102 * SECOND), &mut batch);
    volumes(&batch, &mut bars);
    let expected = [((100, 0), 1), ((100, 1), 3), ((101, 0), 2)];
    assert_eq!(bars, BTreeMap::from(expected));
    let mut quotes = Vec::new();
    read(&batch, LiveSchema::Bbo1S.alone(), false, |record| {
        if let Some(quote) = record.get::<BboMsg>() {
            let instrument = quote.hd.instrument_id;
            let bid = quote.levels[0].bid_px;
            quotes.push((quote.ts_recv / SECOND, instrument, quote.price, bid));
        }
    });
    let expected = [(101, 0, 100, 90), (101, 1, 70, 60), (102, 0, 101, 91)];
    assert_eq!(quotes, expected);
}

#[test]
fn a_trade_after_the_end_of_its_interval_is_reported() {
    let (mut encoder, table) = encoder();
    let mut batch = Batch::default();
    encoder.want(LiveSchema::Ohlcv1S.alone(), &table);
    encoder.event(&at(100_100, 0, trade(1, 100, 1)), &table, &mut batch);
    encoder.watermark(Watermark::unknown(101 * SECOND), &mut batch);
    encoder.event(&at(100_900, 0, trade(1, 100, 2)), &table, &mut batch);
    encoder.event(&at(101_100, 0, trade(1, 100, 4)), &table, &mut batch);
    encoder.watermark(Watermark::unknown(102 * SECOND), &mut batch);
    let mut bars = Volumes::new();
    let texts = volumes(&batch, &mut bars);
    assert_eq!(bars, BTreeMap::from([((100, 0), 1), ((101, 0), 6)]));
    let end = "End of interval for ohlcv-1s";
    let late =
        "trades in these bars of ohlcv-1s that belong to earlier ones, which had been sent: 1";
    assert_eq!(texts, [end, late, end]);
}

#[test]
fn a_restart_ends_intervals_once_and_times_may_go_back() {
    let (mut encoder, table) = encoder();
    let mut batch = Batch::default();
    encoder.want(LiveSchema::Ohlcv1S.alone(), &table);
    encoder.event(&at(200_100, 0, trade(1, 100, 1)), &table, &mut batch);
    encoder.restart(&table, &mut batch);
    assert_eq!(encoder.ended(), u64::MAX, "none is in progress");
    encoder.event(&at(100_100, 0, trade(1, 100, 2)), &table, &mut batch);
    encoder.watermark(Watermark::unknown(101 * SECOND), &mut batch);
    let mut bars = Volumes::new();
    let texts = volumes(&batch, &mut bars);
    assert_eq!(bars, BTreeMap::from([((100, 0), 2), ((200, 0), 1)]));
    assert_eq!(texts, ["End of interval for ohlcv-1s"; 2]);
    let names = batch.tags().iter();
    let names = names.filter(|tag| tag.schemas == LiveSchemas::ALL);
    assert_eq!(names.count(), 2, "the symbol is written again");
}

#[test]
fn a_clock_that_is_set_back_ends_intervals_at_once() {
    let (mut encoder, table) = encoder();
    let mut batch = Batch::default();
    let wanted = [LiveSchema::Ohlcv1S, LiveSchema::Ohlcv1M];
    encoder.want(wanted.into_iter().collect(), &table);
    // Ahead for two seconds, and back.
    let seconds = [100, 101, 90_000, 90_001, 104, 105];
    for (second, size) in seconds.into_iter().zip(1..) {
        let trade = at(second * 1_000 + 500, 0, trade(1, 100, size));
        encoder.event(&trade, &table, &mut batch);
        encoder.watermark(Watermark::unknown((second + 1) * SECOND), &mut batch);
        let ended = match second {
            104 => u64::MAX,
            second => (second + 1) * SECOND,
        };
        assert_eq!(encoder.ended(), ended);
    }
    let mut bars = Vec::new();
    read(&batch, LiveSchema::Ohlcv1S.alone(), false, |record| {
        if let Some(bar) = record.get::<OhlcvMsg>() {
            bars.push((bar.hd.ts_event / SECOND, bar.volume));
        }
    });
    // The trade in front of the first watermark of the new time is in the bar that was open.
    let [seconds, sizes] = [[100, 101, 90_000, 90_001, 90_002, 105], [1, 2, 3, 4, 5, 6]];
    let expected: Vec<_> = seconds.into_iter().zip(sizes).collect();
    assert_eq!(bars, expected);
}

#[test]
fn a_small_step_back_ends_nothing_and_hours_ahead_end_with_the_hour() {
    let (mut encoder, table) = encoder();
    let (mut batch, mut bars) = (Batch::default(), Volumes::new());
    encoder.want(LiveSchema::Ohlcv1S.alone(), &table);
    encoder.event(&at(106_500, 0, trade(1, 100, 7)), &table, &mut batch);
    encoder.watermark(Watermark::unknown(106 * SECOND + 600), &mut batch);
    encoder.watermark(Watermark::unknown(106 * SECOND - 600), &mut batch);
    assert!(volumes(&batch, &mut bars).is_empty());
    // The clock was ahead between two watermarks, or the clock of another gateway is: the first
    // watermark of the next hour ends everything.
    encoder.event(&at(90_002_500, 0, trade(1, 100, 8)), &table, &mut batch);
    encoder.watermark(Watermark::unknown(107 * SECOND), &mut batch);
    encoder.watermark(Watermark::unknown(3_599 * SECOND), &mut batch);
    volumes(&batch, &mut bars);
    let mut expected = BTreeMap::from([((106, 0), 7)]);
    assert_eq!(bars, expected);
    batch.clear();
    encoder.watermark(Watermark::unknown(3_600 * SECOND), &mut batch);
    volumes(&batch, &mut bars);
    expected.insert((90_002, 0), 8);
    assert_eq!(bars, expected);
}

/// Returns the volumes of days after trades in the second hour of a day, a step of the clock, and
/// what `rest` writes.
fn days(step: Watermark, rest: impl Fn(&mut Encoder, &Instruments, &mut Batch)) -> Vec<u64> {
    let (mut encoder, table) = encoder();
    let mut batch = Batch::default();
    encoder.want(LiveSchema::Ohlcv1D.alone(), &table);
    for second in [3_700, 3_800] {
        let event = at(second * 1_000, 0, trade(1, 100, 2));
        encoder.event(&event, &table, &mut batch);
    }
    encoder.watermark(step, &mut batch);
    rest(&mut encoder, &table, &mut batch);
    let mut volumes = Vec::new();
    read(&batch, LiveSchema::Ohlcv1D.alone(), false, |record| {
        volumes.extend(record.get::<OhlcvMsg>().map(|bar| bar.volume));
    });
    volumes
}

#[test]
fn a_watermark_says_whether_the_clock_was_set_back() {
    let mark = |clock| Watermark {
        time: 3_700 * SECOND,
        clock,
    };
    let back = mark(ClockCourse::SetBack(7_200 * SECOND));
    assert_eq!(
        days(back, |_, _, _| {}),
        [4],
        "its readers have seen no earlier one"
    );
    assert_eq!(days(mark(ClockCourse::Unknown), |_, _, _| {}), [0; 0]);
    // Below an earlier one, which the writer of the watermark judges.
    let forward = mark(ClockCourse::Forward);
    let below = Watermark {
        time: 3_600 * SECOND,
        ..forward
    };
    let again = |encoder: &mut Encoder, _: &Instruments, batch: &mut Batch| {
        encoder.watermark(below, batch);
    };
    assert_eq!(days(forward, again), [0; 0]);
    // The step may be among what was lost.
    let lost = |encoder: &mut Encoder, table: &Instruments, batch: &mut Batch| {
        encoder.lose_all();
        again(encoder, table, batch);
    };
    assert_eq!(days(forward, lost), [4]);
}

#[test]
fn a_past_ends_all_intervals_where_it_joins_a_stream_without_any() {
    let forward = |second: u64| Watermark {
        time: second * SECOND,
        clock: ClockCourse::Forward,
    };
    let back = Watermark {
        clock: ClockCourse::SetBack(3_801 * SECOND),
        ..forward(100)
    };
    // The clock was set back and ahead again, with no event behind the step.
    let ended = std::cell::Cell::new(0);
    let live = days(forward(3_801), |encoder, _, batch| {
        assert_eq!(encoder.ended(), 3_801 * SECOND);
        encoder.watermark(back, batch);
        encoder.watermark(forward(3_802), batch);
        ended.set(encoder.ended());
    });
    let joins = |up_to| {
        days(forward(3_801), |encoder, _, batch| {
            encoder.end_intervals(up_to, batch);
        })
    };
    assert_eq!((live, joins(ended.get())), (vec![4], vec![4]));
    assert_eq!(joins(3_802 * SECOND), [0; 0]);
}

#[test]
fn a_watermark_of_an_earlier_time_behind_a_restart_ends_intervals_once() {
    let (mut encoder, table) = encoder();
    let mut batch = Batch::default();
    encoder.want(LiveSchema::Ohlcv1S.alone(), &table);
    encoder.event(&at(200_100, 0, trade(1, 100, 1)), &table, &mut batch);
    encoder.watermark(Watermark::unknown(200 * SECOND), &mut batch);
    // The restart is taken with the next event, which its watermark precedes.
    encoder.watermark(Watermark::unknown(100 * SECOND), &mut batch);
    encoder.restart(&table, &mut batch);
    assert_eq!(encoder.ended(), u64::MAX, "none is in progress");
    encoder.event(&at(100_100, 0, trade(1, 100, 2)), &table, &mut batch);
    encoder.watermark(Watermark::unknown(101 * SECOND), &mut batch);
    let mut bars = Volumes::new();
    let texts = volumes(&batch, &mut bars);
    assert_eq!(texts, ["End of interval for ohlcv-1s"; 2]);
    assert_eq!(bars, BTreeMap::from([((100, 0), 2), ((200, 0), 1)]));
}

#[test]
fn times_at_the_end_of_their_range_end_no_interval_early() {
    let (mut encoder, table) = encoder();
    let mut batch = Batch::default();
    let wanted = [LiveSchema::Ohlcv1S, LiveSchema::Ohlcv1D, LiveSchema::Bbo1S];
    encoder.want(wanted.into_iter().collect(), &table);
    for time in [u64::MAX - 2, u64::MAX - 1] {
        let event = Event {
            ts_recv: time,
            ..trade(1, 100, 1)
        };
        encoder.event(&event, &table, &mut batch);
    }
    encoder.restart(&table, &mut batch);
    let mut bars = Volumes::new();
    volumes(&batch, &mut bars);
    assert_eq!(bars.into_values().collect::<Vec<_>>(), [2]);
}

proptest! {
    /// With watermarks or without them, each trade is in the bar of its own second, however the
    /// events of several sockets are mixed.
    #[test]
    fn bars_are_those_of_the_trades_in_each_second(
        steps in prop::collection::vec((0_u64..700, 0_u64..900, 0_u32..2, 1_i64..9), 1..100),
        has_watermarks in any::<bool>(),
    ) {
        let (mut encoder, table) = encoder();
        let mut batch = Batch::default();
        encoder.want(LiveSchema::Ohlcv1S.alone(), &table);
        let (mut bars, mut expected) = (Volumes::new(), Volumes::new());
        // The first event begins the first interval.
        let mut now = 100_000;
        for (step, ago, instrument, size) in steps {
            now += step;
            let arrival = (now - ago).max(100_000);
            *expected.entry((arrival / 1_000, instrument)).or_default() += size as u64;
            encoder.event(&at(arrival, instrument, trade(1, 5, size)), &table, &mut batch);
            if has_watermarks {
                encoder.watermark(Watermark::unknown((now - 900) * (SECOND / 1_000)), &mut batch);
            }
        }
        encoder.watermark(Watermark::unknown((now + 1_000) * (SECOND / 1_000)), &mut batch);
        let texts = volumes(&batch, &mut bars);
        prop_assert_eq!(bars, expected);
        prop_assert!(texts.iter().all(|text| text.starts_with("End of interval")));
    }
}
