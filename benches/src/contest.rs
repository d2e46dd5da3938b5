//! Contests: several ways to do the same, which take turns.

use anyhow::Result;
use fanfare_engine::stop::Stop;
use fanfare_instruments::figures::median;

/// What one turn of a contestant measures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    /// More is better.
    pub(crate) is_rate: bool,
}

impl Figure {
    pub(crate) const fn lower(name: &'static str, unit: &'static str) -> Self {
        Self {
            name,
            unit,
            is_rate: false,
        }
    }

    pub(crate) const fn higher(name: &'static str, unit: &'static str) -> Self {
        Self {
            name,
            unit,
            is_rate: true,
        }
    }
}

type Measure = Box<dyn FnMut() -> Result<Vec<f64>>>;

/// One way to do it.
pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    /// Its version, and how it is configured.
    pub(crate) how: String,
    measure: Measure,
}

impl Contestant {
    /// `measure` returns the figures of one turn, in the order of the contest's.
    pub(crate) fn new(
        name: &'static str,
        how: &str,
        measure: impl FnMut() -> Result<Vec<f64>> + 'static,
    ) -> Self {
        Self {
            name,
            how: how.to_owned(),
            measure: Box::new(measure),
        }
    }
}

/// What is compared. The first contestant is Fanfare.
pub(crate) struct Contest {
    pub(crate) id: String,
    pub(crate) title: String,
    /// What is done, in two sentences.
    pub(crate) what: String,
    /// Where the harness is.
    pub(crate) source: &'static str,
    pub(crate) figures: Vec<Figure>,
    pub(crate) contestants: Vec<Contestant>,
    /// Who does not take part, and why.
    pub(crate) absent: Vec<String>,
}

/// The figures of one contestant, by round: `None` for a turn that failed.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) how: String,
    turns: Vec<Option<Vec<f64>>>,
}

/// A contest that was held.
pub(crate) struct Outcome {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) what: String,
    pub(crate) source: &'static str,
    pub(crate) figures: Vec<Figure>,
    pub(crate) rows: Vec<Row>,
    pub(crate) absent: Vec<String>,
    /// Turns of the rows that failed, and why.
    pub(crate) failed: Vec<String>,
    /// Whether a turn of Fanfare failed, in any of its configurations.
    missed: bool,
}

/// The name of the contestant with which all others are compared.
const OURS: &str = "Fanfare";

/// Returns whether a contestant is Fanfare in any configuration, as `Fanfare, pinned` is.
fn is_ours(name: &str) -> bool {
    let rest = name.strip_prefix(OURS);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(", "))
}

/// A contestant without a good turn is not tried again after this many.
const TRIES: usize = 2;

impl Contest {
    /// Lets all contestants take turns; each round begins with another one. One without a good turn
    /// is absent. Returns `None` if `stop` is raised.
    pub(crate) fn run(mut self, rounds: usize, stop: &Stop) -> Option<Outcome> {
        let mut rows: Vec<Row> = self.contestants.iter().map(Row::of).collect();
        let mut reasons: Vec<Option<String>> = vec![None; rows.len()];
        let count = self.contestants.len();
        for turn in (0..rounds).flat_map(|round| (0..count).map(move |at| (round + at) % count)) {
            if stop.is_raised() {
                return None;
            }
            let taken = (
                self.contestants.get_mut(turn),
                rows.get_mut(turn),
                reasons.get_mut(turn),
            );
            let (Some(contestant), Some(row), Some(reason)) = taken else {
                continue;
            };
            if row.good() > 0 || row.turns.len() < TRIES {
                let measured = (contestant.measure)();
                let failure = measured.as_ref().err();
                *reason = failure.map(|error| format!("{error:#}")).or(reason.take());
                row.turns.push(measured.ok());
            }
        }
        // The last turns may have failed by the interrupt.
        (!stop.is_raised()).then(|| self.outcome(rows, reasons))
    }

    fn outcome(mut self, mut rows: Vec<Row>, reasons: Vec<Option<String>>) -> Outcome {
        let missed = rows
            .iter()
            .any(|row| is_ours(row.name) && row.good() < row.turns.len());
        let mut failed = Vec::new();
        for (row, reason) in rows.iter().zip(reasons) {
            let Some(reason) = reason else { continue };
            match row.good() {
                0 => self.absent.push(format!("{}: {reason}", row.name)),
                good => {
                    let (bad, all) = (row.turns.len() - good, row.turns.len());
                    failed.push(format!("{}: {bad} of {all} turns, {reason}", row.name));
                }
            }
        }
        rows.retain(|row| row.good() > 0);
        Outcome {
            failed,
            missed,
            id: self.id,
            title: self.title,
            what: self.what,
            source: self.source,
            figures: self.figures,
            rows,
            absent: self.absent,
        }
    }
}

impl Row {
    fn of(contestant: &Contestant) -> Self {
        Self {
            name: contestant.name,
            how: contestant.how.clone(),
            turns: Vec::new(),
        }
    }

    /// The number of turns that did not fail.
    fn good(&self) -> usize {
        self.turns.iter().flatten().count()
    }

    /// A figure by round.
    fn by_round(&self, figure: usize) -> impl Iterator<Item = Option<f64>> {
        let turns = self.turns.iter();
        turns.map(move |turn| turn.as_ref()?.get(figure).copied())
    }

    /// A figure of all turns that did not fail.
    pub(crate) fn turns(&self, figure: usize) -> Vec<f64> {
        self.by_round(figure).flatten().collect()
    }

    pub(crate) fn median(&self, figure: usize) -> f64 {
        median(self.turns(figure))
    }

    /// The least and the largest of a figure.
    pub(crate) fn spread(&self, figure: usize) -> (f64, f64) {
        let turns = self.turns(figure);
        let least = turns.iter().copied().fold(f64::INFINITY, f64::min);
        let most = turns.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (least, most)
    }
}

impl Outcome {
    pub(crate) fn has_fanfare(&self) -> bool {
        self.rows.first().is_some_and(|row| row.name == OURS)
    }

    /// Returns whether Fanfare has taken all its turns, in all its configurations.
    pub(crate) fn is_whole(&self) -> bool {
        self.has_fanfare() && !self.missed
    }

    /// How many times better Fanfare is than a row in a figure: the median over the turns of
    /// theirs divided by ours, or of ours divided by theirs where more is better.
    pub(crate) fn times(&self, row: &Row, figure: usize) -> f64 {
        let Some(ours) = self.rows.first().filter(|_| self.has_fanfare()) else {
            return f64::NAN;
        };
        let is_rate = self
            .figures
            .get(figure)
            .is_some_and(|figure| figure.is_rate);
        let turns = row.by_round(figure).zip(ours.by_round(figure));
        let times = turns.filter_map(|(theirs, ours)| match is_rate {
            true => Some(ours? / theirs?),
            false => Some(theirs? / ours?),
        });
        median(times.collect())
    }

    /// Rows that are ahead of Fanfare in a figure, each with its value as a share of Fanfare's.
    pub(crate) fn ahead(&self) -> Vec<String> {
        let mut found = Vec::new();
        for row in self.rows.iter().filter(|row| !is_ours(row.name)) {
            for (at, figure) in self.figures.iter().enumerate() {
                let times = self.times(row, at);
                if times < 1.0 {
                    let share = if figure.is_rate { 1.0 / times } else { times };
                    found.push(format!(
                        "{}: {} is ahead in {} ({share:.2} of Fanfare's)",
                        self.title, row.name, figure.name
                    ));
                }
            }
        }
        found
    }
}

#[cfg(test)]
impl Contest {
    /// A contest in the time of a turn.
    pub(crate) fn of_a_test(title: &str, contestants: Vec<Contestant>) -> Self {
        Self {
            id: "id".to_owned(),
            title: title.to_owned(),
            what: "What is done.".to_owned(),
            source: "source",
            figures: vec![Figure::lower("time", "ns")],
            contestants,
            absent: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_rounds_count_alike() {
        let mut turns = [5.0, 10.0].into_iter();
        let contestants = vec![
            Contestant::new("Fanfare", "", || Ok(vec![10.0])),
            Contestant::new("Peer", "", move || Ok(turns.next().into_iter().collect())),
        ];
        let contest = Contest::of_a_test("title", contestants);
        let outcome = contest.run(2, &Stop::new()).unwrap();
        let peer = &outcome.rows[1];
        assert_eq!((peer.median(0), outcome.times(peer, 0)), (7.5, 0.75));
        assert!(outcome.ahead()[0].contains("Peer is ahead in time (0.75 of Fanfare's)"));
    }

    #[test]
    fn a_contest_is_whole_if_fanfare_has_taken_all_turns_in_each_configuration() {
        let held = |name: &'static str, is_good: fn(usize) -> bool| {
            let mut turn = 0;
            let other = Contestant::new(name, "", move || {
                turn += 1;
                anyhow::ensure!(is_good(turn), "it broke");
                Ok(vec![10.0])
            });
            let ours = Contestant::new("Fanfare", "", || Ok(vec![10.0]));
            let contest = Contest::of_a_test("title", vec![ours, other]);
            contest.run(3, &Stop::new()).unwrap()
        };
        let cases: [fn(usize) -> bool; 2] = [|turn| turn == 1, |_| false];
        for is_good in cases {
            assert!(!held("Fanfare, pinned", is_good).is_whole());
            assert!(held("Fanfare's peer", is_good).is_whole());
        }
        assert!(held("Fanfare, pinned", |_| true).is_whole());
    }

    #[test]
    fn an_interrupted_contest_has_no_outcome() {
        let (stop, mut turns) = (Stop::new(), 0);
        let interrupt = stop.clone();
        let ours = Contestant::new("Fanfare", "", move || {
            turns += 1;
            assert!(turns < 3, "a turn after the interrupt");
            if turns == 2 {
                interrupt.raise();
            }
            Ok(vec![10.0])
        });
        let contest = Contest::of_a_test("title", vec![ours]);
        assert!(contest.run(3, &stop).is_none());
    }

    #[test]
    fn contestants_take_turns_and_failures_are_told() {
        let (mut round, mut tries) = (0, 0);
        let contestants = vec![
            Contestant::new("Fanfare", "", || Ok(vec![10.0, 40.0])),
            Contestant::new("Slow", "", || Ok(vec![20.0, 10.0])),
            Contestant::new("Fast", "", || Ok(vec![5.0, 80.0])),
            Contestant::new("Frail", "", move || {
                round += 1;
                anyhow::ensure!(round != 2, "it broke");
                Ok(vec![30.0, 1.0])
            }),
            Contestant::new("Broken", "", move || {
                tries += 1;
                anyhow::bail!("try {tries}")
            }),
        ];
        let mut contest = Contest::of_a_test("title", contestants);
        contest.figures.push(Figure::higher("rate", "1/s"));
        contest.absent.push("Nobody: not to be had".to_owned());
        let outcome = contest.run(3, &Stop::new()).unwrap();
        assert_eq!(outcome.absent, ["Nobody: not to be had", "Broken: try 2"]);
        assert_eq!(outcome.failed, ["Frail: 1 of 3 turns, it broke"]);
        assert!(outcome.is_whole());
        let frail = &outcome.rows[3];
        assert_eq!(
            (frail.turns(0), outcome.times(frail, 0)),
            (vec![30.0; 2], 3.0)
        );
        let slow = &outcome.rows[1];
        assert_eq!((slow.median(0), slow.spread(1)), (20.0, (10.0, 10.0)));
        assert_eq!((outcome.times(slow, 0), outcome.times(slow, 1)), (2.0, 4.0));
        assert_eq!(outcome.ahead().len(), 2);
        assert!(outcome.ahead()[0].contains("Fast is ahead in time (0.50 of Fanfare's)"));
        assert!(outcome.ahead()[1].contains("Fast is ahead in rate (2.00 of Fanfare's)"));
    }
}
