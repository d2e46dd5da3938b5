//! Notices as lines: a bounded number of bounded lines, and a sum of those suppressed. Peers that
//! reconnect repeatedly do not fill a disk with lines.

use crate::notice::Notice;
use fanfare_wire::text::beginning;
use std::fmt::Write as _;
use std::time::Duration;

/// The period over which lines of one kind are counted.
const WINDOW: Duration = Duration::from_secs(10);

/// The longest line, in bytes.
const LONGEST: usize = 512;

/// A filter that prints at most a fixed number of notices of one kind in ten seconds. After the
/// period, one more line has the number of suppressed notices and the last of them.
///
/// ```
/// use fanfare_gateway::{Digest, Notice, PeerEnd, Refusal};
/// use std::time::Duration;
///
/// let mut digest = Digest::new();
/// let refused = Notice::Ended {
///     session: None,
///     peer: "10.0.0.1:5000".parse()?,
///     end: PeerEnd::Refused(Refusal::Garbled),
///     left_out: 0,
/// };
/// let mut lines = Vec::new();
/// for _ in 0..1000 {
///     digest.take(Duration::ZERO, refused.clone(), &mut |_, line| lines.push(line.to_owned()));
/// }
/// digest.look(Duration::from_secs(10), &mut |_, line| lines.push(line.to_owned()));
/// assert_eq!(lines.len(), 21);
/// assert_eq!(
///     lines[20],
///     "and 980 more refusals in the last 10 s, the last: 10.0.0.1:5000 ended: \
///      first bytes are not a FIX message"
/// );
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Debug, Default)]
pub struct Digest([Window; KINDS.len()]);

/// The notices of one kind in ten seconds.
#[derive(Debug, Default)]
struct Window {
    begun: Option<Duration>,
    told: u32,
    more: u64,
    last: Option<Notice>,
}

/// The kinds of notices: the name, and the most lines in ten seconds.
const KINDS: [(&str, u32); 5] = [
    ("refusals", 20),
    ("Logons", 100),
    ("sessions ended", 100),
    ("notices of messages left out", 100),
    ("notices", 100),
];

fn kind(notice: &Notice) -> usize {
    match notice {
        Notice::Ended { session: None, .. } => 0,
        Notice::LoggedOn { .. } => 1,
        Notice::Ended { .. } => 2,
        Notice::LeftOut { .. } => 3,
        _ => 4,
    }
}

impl Digest {
    /// Creates a digest without notices.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls `tell` with a notice and its line, or counts it if its kind has used up its lines. The
    /// time `now` is monotonic.
    pub fn take(&mut self, now: Duration, notice: Notice, tell: &mut dyn FnMut(&Notice, &str)) {
        self.look(now, tell);
        let kind = kind(&notice);
        let (Some(window), Some((_, most))) = (self.0.get_mut(kind), KINDS.get(kind)) else {
            return;
        };
        window.begun.get_or_insert(now);
        if window.told < *most {
            window.told += 1;
            tell(&notice, &cut(notice.to_string()));
        } else {
            window.more += 1;
            window.last = Some(notice);
        }
    }

    /// Calls `tell` with the last notice of each kind whose ten seconds have passed, and their sum.
    pub fn look(&mut self, now: Duration, tell: &mut dyn FnMut(&Notice, &str)) {
        let is_over = |begun: Duration| now.saturating_sub(begun) >= WINDOW;
        self.sum_up(now, is_over, tell);
    }

    /// Calls `tell` with the last notices and the sums of all kinds, at the end.
    pub fn end(&mut self, now: Duration, tell: &mut dyn FnMut(&Notice, &str)) {
        self.sum_up(now, |_| true, tell);
    }

    fn sum_up(
        &mut self,
        now: Duration,
        is_over: impl Fn(Duration) -> bool,
        tell: &mut dyn FnMut(&Notice, &str),
    ) {
        for (window, (name, _)) in self.0.iter_mut().zip(KINDS) {
            let Some(begun) = window.begun.filter(|begun| is_over(*begun)) else {
                continue;
            };
            let Window { more, last, .. } = std::mem::take(window);
            let seconds = now.saturating_sub(begun).as_secs().max(1);
            if let Some(last) = last {
                let line =
                    format!("and {more} more {name} in the last {seconds} s, the last: {last}");
                tell(&last, &cut(line));
            }
        }
    }
}

/// Truncates a line to [`LONGEST`] bytes.
pub(crate) fn cut(mut line: String) -> String {
    if line.len() > LONGEST {
        let len = line.len();
        line.truncate(beginning(&line, LONGEST).len());
        let _ = write!(line, "… ({len} bytes)");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notice::PeerEnd;
    use fanfare_engine::host::Refusal;

    fn refused(port: u16) -> Notice {
        Notice::Ended {
            session: None,
            peer: ([10, 0, 0, 1], port).into(),
            end: PeerEnd::Refused(Refusal::NotLogon),
            left_out: 0,
        }
    }

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_flood_is_a_few_lines_and_a_sum_every_ten_seconds() {
        let mut digest = Digest::new();
        let mut lines = Vec::new();
        // 1,000 a second for 30 seconds.
        for i in 0..30_000 {
            let notice = refused(i as u16);
            digest.take(at(i), notice, &mut |_, line| lines.push(line.to_owned()));
        }
        digest.end(at(30_000), &mut |_, line| lines.push(line.to_owned()));
        assert_eq!(lines.len(), 3 * 21);
        let sums = lines.iter().filter_map(|line| line.strip_prefix("and "));
        let sum: u64 = sums
            .map(|l| l.split(' ').next().unwrap().parse::<u64>().unwrap())
            .sum();
        assert_eq!(sum + 60, 30_000, "what is left out is counted");
        let first = lines.iter().find(|line| line.starts_with("and ")).unwrap();
        assert!(first.contains("the last: 10.0.0.1:9999 ended"), "{first}");
    }

    #[test]
    fn one_kind_does_not_silence_another() {
        let mut digest = Digest::new();
        let mut count = 0;
        for i in 0..1000 {
            digest.take(at(0), refused(i), &mut |_, _| count += 1);
        }
        let error = "no".to_owned();
        digest.take(at(0), Notice::CannotAccept { error }, &mut |_, _| {
            count += 1;
        });
        assert_eq!(count, 21);
        // A window without suppressed notices ends without a line.
        digest.look(at(10_000), &mut |_, _| count += 1);
        digest.look(at(20_000), &mut |_, _| count += 1);
        assert_eq!(count, 22);
    }

    #[test]
    fn no_line_is_longer_than_the_limit() {
        let error = "ä".repeat(5000);
        let mut lines = Vec::new();
        let notice = Notice::CannotAccept { error };
        Digest::new().take(at(0), notice, &mut |_, line| lines.push(line.to_owned()));
        assert!(lines[0].len() < LONGEST + 32 && lines[0].ends_with(" bytes)"));
    }
}
