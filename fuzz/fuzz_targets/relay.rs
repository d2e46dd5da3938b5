//! Any instruments, steps and snapshots of any plants: an edge takes them without a panic, and
//! keeps its limits.
#![no_main]

use fanfare_feed::Line;
use fanfare_feed::arbiter::ArbiterConfig;
use fanfare_feed::recovery::{Numbering, RecoveryConfig};
use fanfare_market::follower::FollowerConfig;
use fanfare_market::relay::{Edge, EdgeConfig, Relayed, Step};
use fanfare_market::{BookConfig, Event, Instruments, MarketConfig};
use libfuzzer_sys::fuzz_target;

/// The most instruments.
const LIMIT: usize = 20;

fuzz_target!(|data: &[u8]| {
    let mut rest = data;
    let Some([shape]) = take::<1>(&mut rest) else {
        return;
    };
    let mut edge = edge(shape);
    let mut now = 0;
    while let Some([call, origin, gap]) = take::<3>(&mut rest) {
        now += u64::from(gap) << 20;
        let origin = u64::from(origin % 8);
        if act(&mut edge, now, (call, origin), &mut rest).is_none() {
            return;
        }
        assert!(edge.instruments().len() <= LIMIT);
        assert!(edge.plants() <= Line::MAX);
    }
});

fn edge(shape: u8) -> Edge {
    let numbering = match shape & 1 {
        0 => Numbering::Channel,
        _ => Numbering::Instrument,
    };
    let market = MarketConfig {
        book: BookConfig::by_price(20).expect("a small book"),
        recovery: RecoveryConfig {
            starts_empty: shape & 2 == 0,
            most_instruments: LIMIT,
            ..RecoveryConfig::new(numbering)
        },
        has_natural_refresh: false,
        source: 1,
    };
    let config = EdgeConfig {
        follower: FollowerConfig::new(market),
        arbiter: ArbiterConfig::default(),
    };
    Edge::new(config, Instruments::new(LIMIT))
}

/// Calls the edge as the bytes say; `None` if they are incomplete, or no sample of a plant.
fn act(edge: &mut Edge, now: u64, (call, origin): (u8, u64), rest: &mut &[u8]) -> Option<()> {
    let send = &mut |_: &Event| {};
    match call % 5 {
        0 => {
            edge.instrument(now, origin, text(rest)?, send);
        }
        1 => {
            let steps = all(rest, Step::from_bytes)?;
            let events = all(rest, Event::from_bytes)?;
            edge.steps(now, origin, &steps, &events, send);
        }
        2 => {
            let [flags, last] = take::<2>(rest)?;
            let instrument = text(rest)?;
            let events = all(rest, Event::from_bytes)?;
            let snapshot = Relayed {
                instrument,
                is_closed: flags & 1 == 1,
                last: (flags & 2 == 0).then_some(last.into()),
                received: now,
                events: &events,
            };
            edge.snapshot(now, origin, &snapshot, send);
        }
        3 => edge.gone(now, origin, send),
        _ => edge.handle_timeout(now, send),
    }
    Some(())
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, behind) = rest.split_first_chunk::<N>()?;
    *rest = behind;
    Some(*taken)
}

fn text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let [len] = take::<1>(rest)?;
    let (text, behind) = rest.split_at_checked(len.into())?;
    *rest = behind;
    Some(text)
}

/// Takes a few of them, all of which a sample has to have right.
fn all<const N: usize, T>(
    rest: &mut &[u8],
    read: impl Fn(&[u8; N]) -> Option<T>,
) -> Option<Vec<T>> {
    let [count] = take::<1>(rest)?;
    (0..count % 16).map(|_| read(&take::<N>(rest)?)).collect()
}
