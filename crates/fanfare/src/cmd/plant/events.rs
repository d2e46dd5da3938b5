//! The market events of a gateway, as JSON lines in a file.
//!
//! A thread of its own reads the ring and writes: a slow disk does not delay the feeds. Events that
//! the thread was too slow for become a line of its own, with the first and the last number.

use crate::plural::counted;
use anyhow::{Context, Result};
use fanfare_engine::agent::{Agent, AgentError, Crew};
use fanfare_engine::idle::Idle;
use fanfare_engine::poll::Waker;
use fanfare_engine::stop::{Reload, Stop};
use fanfare_fix::session::Now;
use fanfare_gateway::EventReader;
use fanfare_market::Delivery;
use fanfare_market::instruments::Lookup;
use fanfare_market::json;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Messages of one duty cycle.
const TURN: usize = 256;

/// The longest sleep of the thread; output is flushed after it.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// A file of market events that is being written.
pub(super) struct EventLog {
    crew: Crew,
    reload: Reload,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    written: AtomicU64,
    lost: AtomicU64,
    unwritten: AtomicU64,
}

/// The state of the thread.
struct Writer {
    events: EventReader,
    path: PathBuf,
    out: BufWriter<File>,
    line: String,
    reload: Reload,
    /// Whether a write has failed: nothing more is written.
    is_broken: bool,
    counts: Arc<Counts>,
}

impl EventLog {
    /// Appends to the file from now on.
    ///
    /// # Errors
    /// The file cannot be opened, or the thread cannot be started.
    pub(super) fn start(file: &Path, events: EventReader) -> Result<Self> {
        let counts = Arc::new(Counts::default());
        let reload = Reload::new();
        let writer = Writer {
            events,
            path: file.to_owned(),
            out: BufWriter::with_capacity(1 << 16, open(file)?),
            line: String::new(),
            reload: reload.clone(),
            is_broken: false,
            counts: Arc::clone(&counts),
        };
        let mut crew = Crew::new(Stop::new());
        crew.spawn(writer, Idle::Wait(LONGEST_SLEEP), None)?;
        Ok(Self {
            crew,
            reload,
            counts,
        })
    }

    /// Continues in a new file of the name, if the old one was renamed.
    pub(super) fn reopen(&self) {
        self.reload.request();
    }

    /// Writes the remaining events of a gateway that has ended. Returns a summary for the report.
    pub(super) fn stop(self) -> Result<String> {
        self.crew.stop().raise();
        self.crew.join()?;
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let written = counted(count(&self.counts.written), "event");
        let (lost, unwritten) = (count(&self.counts.lost), count(&self.counts.unwritten));
        Ok(match lost + unwritten {
            0 => format!("{written} written"),
            _ => format!(
                "{written} written, {lost} lost because the file was behind, {unwritten} because \
                 it could not be written"
            ),
        })
    }
}

fn open(path: &Path) -> Result<File> {
    let file = File::options().append(true).create(true).open(path);
    file.with_context(|| format!("cannot write market events to {}", path.display()))
}

impl Writer {
    fn turn(&mut self) -> usize {
        let Self {
            events,
            out,
            line,
            is_broken,
            counts,
            path,
            ..
        } = self;
        events.read(TURN, |delivery| {
            line.clear();
            match delivery {
                Delivery::End(_) | Delivery::Watermark(_) => return,
                Delivery::Restart => line.push_str(json::RESTART),
                Delivery::Event(event, directory) => {
                    let known = directory.instrument(event.instrument);
                    json::event(event, known.as_ref(), line);
                }
                Delivery::Lost { first, last } => {
                    counts.lost.fetch_add(last - first + 1, Ordering::Relaxed);
                    let lost = serde_json::json!({ "lost": { "first": first, "last": last } });
                    line.push_str(&lost.to_string());
                }
            }
            line.push('\n');
            if !*is_broken && let Err(error) = out.write_all(line.as_bytes()) {
                *is_broken = true;
                tracing::warn!(
                    target: "files",
                    "no more market events are written to {}: {error}",
                    path.display()
                );
            }
            if matches!(delivery, Delivery::Event(..)) {
                let count = match *is_broken {
                    true => &counts.unwritten,
                    false => &counts.written,
                };
                count.fetch_add(1, Ordering::Relaxed);
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.is_broken {
            true => Ok(()),
            false => self.out.flush(),
        }
    }

    fn reopen(&mut self) {
        let reopened = self
            .flush()
            .map_err(Into::into)
            .and_then(|()| open(&self.path));
        match reopened {
            Ok(file) => {
                self.out = BufWriter::with_capacity(1 << 16, file);
                self.is_broken = false;
            }
            Err(error) => {
                tracing::warn!(target: "files", "{error:#}; market events go on in the old file");
            }
        }
    }
}

impl Agent for Writer {
    fn name(&self) -> &str {
        "events"
    }

    fn do_work(&mut self, _now: Now) -> Result<usize, AgentError> {
        if self.reload.is_due() {
            self.reopen();
        }
        Ok(self.turn())
    }

    fn on_close(&mut self, _now: Now) {
        while self.turn() > 0 {}
        if let Err(error) = self.flush() {
            tracing::warn!(target: "files", "market events: {error}");
        }
    }

    fn before_sleep(&mut self) {
        self.events.waker().prepare_sleep();
        // An error is reported with the next line.
        let _ = self.flush();
    }

    fn waker(&self) -> Option<&Waker> {
        Some(self.events.waker())
    }
}
