//! Notes on the peer's writers and readers that lose their liveliness, regain it, or leave.

use std::time::{Duration, Instant};

use fanfare_dds::distribute::Departures;

/// The writers and readers of one process leave one after the other: a note is delayed until
/// nothing has changed for this long.
const SETTLED: Duration = Duration::from_millis(100);

/// A watch that compares the departures with those noted before, and notes the changes.
#[derive(Debug)]
pub struct DepartureWatch {
    /// `writers` or `readers`.
    ends: &'static str,
    tell: fn(&str),
    lost: u32,
    told: Departures,
    seen: Departures,
    since: Instant,
}

impl DepartureWatch {
    /// Creates a watch of `writers` or `readers`; each note is a line for `tell`.
    pub fn new(ends: &'static str, tell: fn(&str)) -> Self {
        Self {
            ends,
            tell,
            lost: 0,
            told: Departures::default(),
            seen: Departures::default(),
            since: Instant::now(),
        }
    }

    /// Notes changes that have settled.
    pub fn look(&mut self, now: Departures) {
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

    /// Returns the number that lost their liveliness without leaving at once.
    pub fn lost(&self, now: Departures) -> u32 {
        self.lost + lost(self.told, now)
    }

    /// Notes all changes.
    pub fn tell(&mut self, now: Departures) {
        self.lost += lost(self.told, now);
        for line in lines(self.ends, self.told, now) {
            (self.tell)(&line);
        }
        self.told = now;
    }
}

/// Returns the number of writers lost. Writers that are closed, or whose participant has left, lose
/// their liveliness for a moment before they leave: those are not lost.
fn lost(told: Departures, now: Departures) -> u32 {
    let silent = now.silent.saturating_sub(told.silent);
    silent.saturating_sub(now.gone.saturating_sub(told.gone))
}

fn lines(ends: &str, told: Departures, now: Departures) -> Vec<String> {
    let mut lines = Vec::new();
    let silent = now.silent.saturating_sub(told.silent);
    let gone = now.gone.saturating_sub(told.gone);
    let lost = lost(told, now);
    if lost > 0 {
        lines.push(format!("{lost} {ends} lost by liveliness"));
    }
    if gone > 0 {
        lines.push(format!("{gone} {ends} gone: closed, stopped or cut off"));
    }
    // Writers that leave are no longer counted as not alive.
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
        // Closed writers lose their liveliness first.
        for silent in 0..=5 {
            let told = said([0; 3], [5, silent, 0]);
            assert_eq!(told, "5 writers gone: closed, stopped or cut off");
        }
    }
}
