//! Lines about connections that did not log on, or messages without an answer. A counterparty can
//! cause any number of them, so only some are written, and the others are counted.

use std::time::{Duration, Instant};

/// The window in which lines are counted.
const WINDOW: Duration = Duration::from_secs(10);
/// The most lines that are written in a window.
const MOST: u32 = 20;

/// A limiter that writes the first lines of each window. At the end of the window it writes the
/// number of the others, and the last one.
pub(super) struct Refusals {
    /// What the lines have in common, as the summary names it.
    what: &'static str,
    begun: Option<Instant>,
    written: u32,
    more: u64,
    last: String,
}

impl Refusals {
    /// Returns a limiter of lines about `what`.
    pub(super) const fn of(what: &'static str) -> Self {
        Self {
            what,
            begun: None,
            written: 0,
            more: 0,
            last: String::new(),
        }
    }

    /// Writes a line, or counts it.
    pub(super) fn take(&mut self, now: Instant, line: String, write: &mut dyn FnMut(&str)) {
        self.look(now, write);
        self.begun.get_or_insert(now);
        if self.written < MOST {
            self.written += 1;
            write(&line);
        } else {
            self.more += 1;
            self.last = line;
        }
    }

    /// Returns whether lines were counted and not written.
    pub(super) const fn has_more(&self) -> bool {
        self.more > 0
    }

    /// Starts a new window if the current one is over, and writes the summary of the current one.
    pub(super) fn look(&mut self, now: Instant, write: &mut dyn FnMut(&str)) {
        let is_over = |begun: Instant| now.saturating_duration_since(begun) >= WINDOW;
        if self.begun.is_some_and(is_over) {
            self.end(write);
        }
    }

    /// Writes the summary of the current window.
    pub(super) fn end(&mut self, write: &mut dyn FnMut(&str)) {
        let what = self.what;
        let Self { more, last, .. } = std::mem::replace(self, Self::of(what));
        if more > 0 {
            write(&format!("and {more} more {what}, the last: {last}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_is_summed_up_and_the_next_window_has_lines_again() {
        let (begun, mut refusals) = (Instant::now(), Refusals::of("without a logon"));
        let mut lines = Vec::new();
        for number in 0..1_000_u64 {
            let now = begun + Duration::from_millis(number);
            let line = format!("stranger {number}");
            refusals.take(now, line, &mut |line| lines.push(line.to_owned()));
        }
        assert_eq!(lines.len(), 20);
        assert!(refusals.has_more());
        refusals.look(begun + WINDOW, &mut |line| lines.push(line.to_owned()));
        let expected = "and 980 more without a logon, the last: stranger 999";
        assert_eq!(lines.pop().as_deref(), Some(expected));
        assert!(!refusals.has_more());
        let mut one = Vec::new();
        let later = begun + 2 * WINDOW;
        refusals.take(later, "again".to_owned(), &mut |line| {
            one.push(line.to_owned());
        });
        refusals.end(&mut |line| one.push(line.to_owned()));
        assert_eq!(one, ["again"]);
    }
}
