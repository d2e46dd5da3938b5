//! The round-trip part of `fanfare bench dds`.
//!
//! Where the two threads that wake each other run decides more than what they do: on one
//! processor a wake-up is a change of threads, on two it is an interrupt to a processor that
//! sleeps, three times as long here. The scheduler picks one or the other for each pair by itself
//! and may change its mind at any time. So both programs are measured in both places, in slices
//! that take turns, and all processes are started anew in each round.

use super::dds::{Args, config, median_of, on, wait};
use super::dds_ends::{Child, End, Ours};
use anyhow::Result;
use fanfare_instruments::figures::{Figures, median};
use fanfare_instruments::raw_dds::{CProgram, Role};

/// Slices of each program in a round; one before them warms up.
const SLICES: usize = 8;

/// Where the ends run.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// In front of the figures' names.
    prefix: &'static str,
    here: Option<usize>,
    there: Option<usize>,
}

/// Medians of the slices, nanoseconds.
#[derive(Debug, Default)]
struct Slices {
    raw: Vec<f64>,
    ours: Vec<f64>,
}

/// Adds p50 of both programs, the median of the ratios of slices that follow each other, and the
/// tenths below and above which few of these ratios lie: with the ends on two processors, and
/// (`one_core_`) on one.
pub(super) fn figures(args: &Args, figures: &mut Figures) -> Result<()> {
    let (here, there) = super::processors()?;
    let mut places = vec![Place {
        prefix: "",
        here,
        there,
    }];
    if here.is_some() {
        places.push(Place {
            prefix: "one_core_",
            here,
            there: here,
        });
    }
    let mut slices: Vec<_> = places.iter().map(|_| Slices::default()).collect();
    for number in 0..args.rounds {
        for (place, slices) in places.iter().zip(&mut slices) {
            on(place.here, || round(args, *place, number, slices))?;
        }
    }
    for (place, slices) in places.iter().zip(slices) {
        slices.add(place.prefix, figures);
    }
    Ok(())
}

/// All ends anew, then slices of both programs in turns; who goes first changes from slice to
/// slice and from round to round.
fn round(args: &Args, place: Place, number: usize, slices: &mut Slices) -> Result<()> {
    let (raw_at, ours_at) = (args.domain, args.domain + 1);
    let _raw_pong = Child::start(End::RawPong, raw_at, place.there)?;
    let _pong = Child::start(End::Pong, ours_at, place.there)?;
    let mut raw = CProgram::open(&config(raw_at), Role::Ping, false)?;
    let ours = Ours::ping(&config(ours_at))?;
    wait("the other process", || {
        raw.is_matched() && ours.is_matched()
    })?;
    let trips = (args.round_trips / SLICES as u32).max(10);
    for slice in 0..=SLICES {
        let ours_first = (number + slice).is_multiple_of(2);
        let (mut raw_p50, mut p50) = (0.0, 0.0);
        for is_ours in [ours_first, !ours_first] {
            if is_ours {
                ours.start(trips);
                wait("the echoes", || ours.done() >= trips)?;
                p50 = median_of(&ours.round_trips());
            } else {
                raw.ping(trips);
                wait("the C program's echoes", || {
                    raw.round_trips().len() >= trips as usize
                })?;
                raw_p50 = median_of(raw.round_trips());
            }
        }
        if slice > 0 {
            slices.raw.push(raw_p50);
            slices.ours.push(p50);
        }
    }
    Ok(())
}

impl Slices {
    fn add(self, prefix: &str, figures: &mut Figures) {
        let pairs = self.ours.iter().zip(&self.raw);
        let mut ratios: Vec<f64> = pairs.map(|(ours, raw)| ours / raw).collect();
        ratios.sort_by(f64::total_cmp);
        let tenth = ratios.len() / 10;
        let end = ratios.len().saturating_sub(1 + tenth);
        let at = |i: usize| ratios.get(i).copied().unwrap_or(f64::NAN);
        let (low, high) = (at(tenth), at(end));
        let mut add = |name: &str, value| figures.add(&format!("{prefix}{name}"), value);
        add("raw_roundtrip_p50_us", median(self.raw) / 1e3);
        add("roundtrip_p50_us", median(self.ours) / 1e3);
        add("ratio_p50", median(ratios));
        add("ratio_p50_low", low);
        add("ratio_p50_high", high);
    }
}
