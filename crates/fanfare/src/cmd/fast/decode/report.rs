//! The report of a decode run: figures as JSON, or a few lines of text.

use crate::cmd::fast::output::Format;
use crate::plural::counted;
use crate::print::{note, say};
use fanfare_feed::{Arbiter, Line};
use fanfare_instruments::figures::Figures;
use std::time::Duration;

/// The counts of a run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) messages: u64,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) errors: u64,
    pub(crate) kernel_drops: u64,
    /// The time from the arrival of the first datagram to the end of the work on the last.
    pub(crate) receiving: Duration,
    /// Packets read from each line.
    pub(crate) line_packets: [u64; Line::MAX],
}

/// The report at the end.
pub(crate) struct Report<'a> {
    pub(crate) counts: Counts,
    pub(crate) arbiter: Option<&'a Arbiter>,
    /// The time spent in the decoder, if it was measured.
    pub(crate) decoding: Option<Duration>,
}

impl Report<'_> {
    /// Prints the figures: as JSON on stdout unless the messages go there, else as text on stderr.
    pub(crate) fn print(&self, json: bool, format: Option<Format>) {
        if !json {
            return self.text();
        }
        let line = self.figures().to_json();
        match format {
            Some(_) => note!("{line}"),
            None => say!("{line}"),
        }
    }

    fn figures(&self) -> Figures {
        let mut figures = Figures::new("fast decode");
        let c = &self.counts;
        figures.set_ok(c.errors == 0);
        figures.count("messages", c.messages);
        figures.count("packets", c.packets);
        figures.count("bytes", c.bytes);
        figures.count("errors", c.errors);
        let stats = self.arbiter.map(Arbiter::stats).unwrap_or_default();
        figures.count("gaps", stats.gaps);
        figures.count("missing", stats.missing);
        figures.count("resets", stats.resets);
        let [a, b, ..] = c.line_packets;
        figures.count("line_a_packets", a);
        figures.count("line_b_packets", b);
        figures.count("duplicates", self.sum(|s| s.duplicate));
        figures.count("late", self.sum(|s| s.late));
        figures.count("refused", self.sum(|s| s.refused));
        figures.count("kernel_drops", c.kernel_drops);
        if !c.receiving.is_zero() {
            let received: u64 = c.line_packets.iter().sum();
            figures.add("rate_per_s", received as f64 / c.receiving.as_secs_f64());
        }
        for (line, name) in [(Line::A, "line_a"), (Line::B, "line_b")] {
            let Some(stats) = self.arbiter.map(|a| a.line(line)) else {
                continue;
            };
            figures.count(&format!("{name}_first"), stats.first);
            figures.count(&format!("{name}_lost"), stats.lost);
            let lateness = stats.lateness;
            figures.add(
                &format!("{name}_late_mean_us"),
                lateness.mean() as f64 / 1e3,
            );
            figures.add(&format!("{name}_late_max_us"), lateness.max as f64 / 1e3);
        }
        if let Some(nanos) = self.nanos_per_message() {
            figures.add("decode_ns", nanos);
        }
        figures
    }

    fn text(&self) {
        let c = &self.counts;
        note!(
            "{} in {} ({} bytes), {}",
            counted(c.messages, "message"),
            counted(c.packets, "packet"),
            c.bytes,
            counted(c.errors, "error")
        );
        if let Some(nanos) = self.nanos_per_message() {
            note!("decode: {nanos:.1} ns a message");
        }
        let Some(arbiter) = self.arbiter else {
            return;
        };
        let stats = arbiter.stats();
        note!(
            "{}, {} missing, {}, {} dropped by the kernel",
            counted(stats.gaps, "gap"),
            counted(stats.missing, "sequence number"),
            counted(stats.resets, "reset"),
            counted(c.kernel_drops, "datagram")
        );
        for (line, packets) in [(Line::A, c.line_packets[0]), (Line::B, c.line_packets[1])] {
            let s = arbiter.line(line);
            if packets > 0 {
                note!(
                    "line {line}: {packets} packets: {} first, {} duplicate, {} late, {} refused; \
                     {} sequence numbers lost; behind the other by {:.1} us (mean), {:.1} us (max)",
                    s.first,
                    s.duplicate,
                    s.late,
                    s.refused,
                    s.lost,
                    s.lateness.mean() as f64 / 1e3,
                    s.lateness.max as f64 / 1e3
                );
            }
        }
    }

    fn nanos_per_message(&self) -> Option<f64> {
        let nanos = self.decoding?.as_nanos() as f64;
        (self.counts.messages > 0).then(|| nanos / self.counts.messages as f64)
    }

    fn sum(&self, part: impl Fn(&fanfare_feed::LineStats) -> u64) -> u64 {
        let lines = (0..Line::MAX).filter_map(Line::new);
        let Some(arbiter) = self.arbiter else {
            return 0;
        };
        lines.map(|line| part(arbiter.line(line))).sum()
    }
}
