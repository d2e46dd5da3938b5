//! The progress of a command that takes more than a second: a bar on stderr if that is a terminal,
//! nothing otherwise.

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The time before the bar appears.
const AFTER: Duration = Duration::from_secs(1);
const BYTES: &str = "{bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
const EVENTS: &str = "{bar:30} {pos} of {len}, {rate}, {eta} left";
const FILES: &str = "{bar:30} {pos} of {len} files, {eta} left";

/// Whether the bar is on the terminal.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);
static WORK: Mutex<Work> = Mutex::new(Work::new());

/// The work of this process, done and to do.
struct Work {
    begun: Option<Instant>,
    done: u64,
    total: u64,
    template: &'static str,
    is_silent: bool,
    bar: Option<ProgressBar>,
}

/// A file whose reading is the work.
pub(crate) struct Watched(File);

/// Makes the reading of a file part of the work, if its length is known.
pub(crate) fn watch(file: File) -> Watched {
    if let Ok(metadata) = file.metadata()
        && metadata.is_file()
    {
        begin(metadata.len(), BYTES);
    }
    Watched(file)
}

/// Makes files that are not read through [`watch`] part of the work; a file is one step.
pub(crate) fn begin_files(count: usize) {
    begin(count as u64, FILES);
}

/// Makes bytes that are not read through [`watch`] part of the work.
pub(crate) fn begin_bytes(count: u64) {
    begin(count, BYTES);
}

/// Makes events part of the work.
pub(crate) fn begin_events(count: u64) {
    begin(count, EVENTS);
}

fn begin(total: u64, template: &'static str) {
    let mut work = work();
    work.begin(total, template, Instant::now());
    work.is_silent |= !io::stderr().is_terminal();
}

/// Adds to the work done. Reads the clock.
pub(crate) fn advance(by: u64) {
    let mut work = work();
    work.advance(by, Instant::now());
    IS_SHOWN.store(work.bar.is_some(), Ordering::Relaxed);
}

/// Sets the files done to `now`, if more than `done`. Reads the clock only then.
pub(crate) fn advance_to(done: &mut usize, now: usize) {
    if now > *done {
        advance((now - *done) as u64);
        *done = now;
    }
}

/// Removes the bar from the terminal, before other output is printed there.
pub(crate) fn clear() {
    if IS_SHOWN.load(Ordering::Relaxed) {
        work().clear();
        IS_SHOWN.store(false, Ordering::Relaxed);
    }
}

/// Hides the bar from now on if stdout is a terminal, for a command that prints to it all the time.
pub(crate) fn give_way() {
    static IS_TERMINAL: OnceLock<bool> = OnceLock::new();
    if *IS_TERMINAL.get_or_init(|| io::stdout().is_terminal()) {
        work().is_silent = true;
        clear();
    }
}

fn work() -> MutexGuard<'static, Work> {
    WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Work {
    const fn new() -> Self {
        Self {
            begun: None,
            done: 0,
            total: 0,
            template: BYTES,
            is_silent: false,
            bar: None,
        }
    }

    fn begin(&mut self, total: u64, template: &'static str, now: Instant) {
        self.begun.get_or_insert(now);
        self.total += total;
        self.template = template;
    }

    fn advance(&mut self, by: u64, now: Instant) {
        self.done += by;
        let begun = self.begun.unwrap_or(now);
        if self.is_silent || now.duration_since(begun) < AFTER {
            return;
        }
        if self.done >= self.total {
            return self.clear();
        }
        let (total, template) = (self.total, self.template);
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template(template);
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.with_style(style.with_key("rate", rate))
                .with_elapsed(now.duration_since(begun))
        });
        bar.set_length(total);
        bar.set_position(self.done);
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Formats the rate as a whole number.
fn rate(state: &ProgressState, out: &mut dyn fmt::Write) {
    // A formatting error only hides the rate.
    let _ = write!(out, "{}/s", HumanCount(state.per_sec() as u64));
}

impl Read for Watched {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read(room)?;
        advance(count as u64);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_comes_after_a_second_and_goes_at_the_end() {
        let (mut work, begin) = (Work::new(), Instant::now());
        let at = |millis| begin + Duration::from_millis(millis);
        work.begin(60, FILES, begin);
        work.begin(40, FILES, begin);
        work.advance(10, at(999));
        assert!(work.bar.is_none());
        work.advance(10, at(1_000));
        let bar = work.bar.clone().unwrap();
        assert_eq!((bar.position(), bar.length()), (20, Some(100)));
        // Other output was printed meanwhile.
        work.clear();
        work.advance(79, at(2_000));
        assert_eq!(work.bar.as_ref().unwrap().position(), 99);
        work.advance(1, at(3_000));
        assert!(work.bar.is_none());
        work.is_silent = true;
        work.begin(100, BYTES, begin);
        work.advance(1, at(4_000));
        assert!(work.bar.is_none());
    }
}
