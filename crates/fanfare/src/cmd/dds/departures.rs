//! Telling who of the other side fell silent, came back, or went.

use crate::print::note;
use fanfare_bus::distribute::Departures;
use std::time::{Duration, Instant};

/// Ends of one process go one after the other: what is told of is what no longer changes.
const SETTLED: Duration = Duration::from_millis(100);

/// Looks now and then, and tells what changed.
pub(crate) struct Watch {
    /// What the other side's ends are called.
    ends: &'static str,
    told: Departures,
    seen: Departures,
    since: Instant,
}

impl Watch {
    pub(crate) fn new(ends: &'static str) -> Self {
        Self {
            ends,
            told: Departures::default(),
            seen: Departures::default(),
            since: Instant::now(),
        }
    }

    /// Tells of changes that have settled.
    pub(crate) fn look(&mut self, now: Departures) {
        if now == self.told {
            return;
        }
        if now != self.seen {
            self.seen = now;
            self.since = Instant::now();
        }
        if self.since.elapsed() >= SETTLED {
            self.tell(now);
        }
    }

    /// Tells of all changes.
    pub(crate) fn tell(&mut self, now: Departures) {
        for line in lines(self.ends, self.told, now) {
            note!("fanfare: {line}");
        }
        self.told = now;
    }
}

fn lines(ends: &str, told: Departures, now: Departures) -> Vec<String> {
    let mut lines = Vec::new();
    let silent = now.silent.saturating_sub(told.silent);
    let gone = now.gone.saturating_sub(told.gone);
    if silent > 0 {
        lines.push(format!("{silent} {ends} lost by liveliness"));
    }
    if gone > silent {
        lines.push(format!("{gone} {ends} gone: closed, stopped or cut off"));
    }
    // Silent ones that go are not counted as silent any more.
    let back = (told.silent_now + silent).saturating_sub(now.silent_now + gone);
    if back > 0 {
        lines.push(format!("{back} {ends} alive again"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(told: [u32; 3], now: [u32; 3]) -> String {
        let of = |[gone, silent, silent_now]: [u32; 3]| Departures {
            gone,
            silent,
            silent_now,
        };
        lines("writers", of(told), of(now)).join("; ")
    }

    #[test]
    fn silence_return_and_departure_are_told_apart() {
        assert_eq!(said([0; 3], [0, 4, 4]), "4 writers lost by liveliness");
        assert_eq!(said([0, 4, 4], [0, 4, 0]), "4 writers alive again");
        assert_eq!(
            said([0, 4, 4], [4, 4, 0]),
            "4 writers gone: closed, stopped or cut off"
        );
        assert_eq!(
            said([0; 3], [4, 0, 0]),
            "4 writers gone: closed, stopped or cut off"
        );
        assert_eq!(said([0; 3], [4, 4, 0]), "4 writers lost by liveliness");
    }
}
