//! The round trip of a sample.
//!
//! The processors of the two threads that wake each other matter more than their code: on one
//! processor a wake-up is a thread switch, on two it is an interrupt to a sleeping processor, three
//! times as long here. The scheduler chooses for each pair, and may change its choice at any time.
//! So both programs are measured in both placements, in slices that alternate, and all processes
//! are restarted in each round.

use fanfare_dds::Qos;

use super::ends::Ours;
use super::other::End;
use super::{DdsBench, config, wait};
use crate::bench::{BenchError, Processors, on};
use crate::figures::{Figures, median, percentile};
use crate::raw_dds::{CProgram, Role};

/// Slices of each program in a round; one before them is a warm-up.
const SLICES: usize = 8;

/// Medians of the slices, nanoseconds.
#[derive(Debug, Default)]
struct Slices {
    raw: Vec<f64>,
    ours: Vec<f64>,
}

impl DdsBench<'_> {
    /// Adds p50 of both programs, the median of the ratios of adjacent slices, and the first and
    /// last deciles of these ratios: with the ends on two processors, and (`one_core_`) on one.
    ///
    /// # Errors
    /// A process or an end of DDS cannot be opened, or an echo does not come.
    pub fn add_round_trips(&self, figures: &mut Figures) -> Result<(), BenchError> {
        let two = self.processors;
        let one = Processors {
            there: two.here,
            ..two
        };
        let mut places = vec![("", two, Slices::default())];
        if two.are_two() {
            places.push(("one_core_", one, Slices::default()));
        }
        for number in self.turns(self.rounds) {
            for (_, place, slices) in &mut places {
                on(place.here, || self.round(place.there, number, slices))?;
            }
        }
        for (prefix, _, slices) in places {
            slices.add(prefix, figures);
        }
        Ok(())
    }

    /// Starts all ends anew, then measures slices of both programs in alternation; the first one
    /// changes from slice to slice and from round to round.
    fn round(
        &self,
        there: Option<usize>,
        number: usize,
        slices: &mut Slices,
    ) -> Result<(), BenchError> {
        let (raw_at, ours_at) = (self.domain, self.domain + 1);
        let _raw_pong = self.child_on(there, End::RawPong, raw_at)?;
        let _pong = self.child_on(there, End::Pong, ours_at)?;
        let mut raw = CProgram::open(&config(raw_at), Role::Ping, false)?;
        let ours = Ours::ping(&config(ours_at), &Qos::reliable())?;
        wait("the other process", || {
            raw.is_matched() && ours.is_matched()
        })?;
        let trips = (self.round_trips / SLICES as u32).max(10);
        for slice in 0..=SLICES {
            let ours_first = (number + slice).is_multiple_of(2);
            let (mut raw_p50, mut p50) = (0.0, 0.0);
            for is_ours in [ours_first, !ours_first] {
                if is_ours {
                    p50 = percentile(&of(&ours, trips)?, 50.0);
                } else {
                    raw.ping(trips);
                    wait("the C program's echoes", || {
                        raw.round_trips().len() >= trips as usize
                    })?;
                    raw_p50 = percentile(raw.round_trips(), 50.0);
                }
            }
            if slice > 0 {
                slices.raw.push(raw_p50);
                slices.ours.push(p50);
            }
        }
        Ok(())
    }
}

/// Makes `n` round trips. Returns their nanoseconds.
pub(super) fn of(ours: &Ours, n: u32) -> Result<Vec<u64>, BenchError> {
    ours.start(n);
    wait("the echoes", || ours.done() >= n)?;
    Ok(ours.round_trips())
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
