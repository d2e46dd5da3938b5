//! The counters of the lines of a feed.

use crate::counts::LineCounts;
use fanfare_engine::counters::Counters;
use fanfare_engine::feed::Receiver;
use fanfare_feed::Line;
use fanfare_fix::session::Now;

/// The interval at which the counters are set and the kernel's drops are read, in nanoseconds,
/// because the latter is a system call for each line.
const LOOK: u64 = 100_000_000;
const ASK: u64 = 1_000_000_000;

/// The use of the lines of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Changes, and all other messages of the feed.
    Changes,
    /// Snapshots: the lines at this index in the configuration, from 0.
    Snapshots(usize),
}

/// Returns the owner of the counters of a line.
pub(crate) fn owner(channel: &str, what: Use, line: usize) -> String {
    let line = Line::new(line).unwrap_or(Line::A);
    match what {
        Use::Changes => format!("{channel} {line}"),
        Use::Snapshots(0) => format!("{channel} snapshots {line}"),
        Use::Snapshots(place) => format!("{channel} snapshots{} {line}", place + 1),
    }
}

/// The counters of the lines of one receiver.
pub(crate) struct LineMeters {
    lines: Vec<LineCounts>,
    due: u64,
    ask: u64,
}

impl LineMeters {
    pub(crate) fn new(counters: &Counters, channel: &str, what: Use, lines: usize) -> Self {
        let line = |line| LineCounts::new(counters, &owner(channel, what, line));
        Self {
            lines: (0..lines).map(line).collect(),
            due: 0,
            ask: 0,
        }
    }

    /// Sets the counters, if it is due. Returns whether it was. Allocates nothing.
    #[inline]
    pub(crate) fn look(&mut self, now: Now, receiver: &Receiver) -> bool {
        let is_due = now.mono >= self.due;
        if is_due {
            self.due = now.mono + LOOK;
            let asks = now.mono >= self.ask;
            if asks {
                self.ask = now.mono + ASK;
            }
            self.set(now, receiver, asks);
        }
        is_due
    }

    /// Returns the datagrams of all lines that the kernel dropped.
    pub(crate) fn drops(&self) -> u64 {
        self.lines.iter().map(|line| line.drops.value()).sum()
    }

    /// Sets the counters. With `asks`, also reads what the kernel dropped.
    pub(crate) fn set(&self, now: Now, receiver: &Receiver, asks: bool) {
        let arbiter = receiver.channel().arbiter();
        for (index, (counts, own)) in self.lines.iter().zip(receiver.line_counts()).enumerate() {
            let Some(line) = Line::new(index) else {
                continue;
            };
            let stats = arbiter.line(line);
            let late = stats.lateness;
            for (counter, value) in [
                (&counts.packets, own.datagrams),
                (&counts.bytes, own.bytes),
                (&counts.first, stats.first),
                (&counts.duplicate, stats.duplicate),
                (&counts.late, stats.late),
                (&counts.refused, stats.refused),
                (&counts.lost, stats.lost),
                (&counts.behind, late.count),
                (&counts.behind_ns, late.sum),
                (&counts.behind_max, late.max),
            ] {
                counter.set(value);
            }
            if own.last != 0 {
                let silence = now.mono.saturating_sub(own.last);
                let heard = now.utc.nanos().unsigned_abs().saturating_sub(silence);
                counts.heard.set(heard / 1_000_000);
            }
            if asks {
                counts.drops.set(receiver.kernel_drops_of(index));
            }
        }
    }
}
