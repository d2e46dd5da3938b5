//! Samples as lines on stdout, printed by a thread of its own: the receive thread, which also
//! acknowledges samples and sends echoes, never waits for the reader of the output.

use super::outlet::Outlet;
use crate::print::note;
use anyhow::{Context, Result, anyhow};
use fanfare_dds::cdr::to_json;
use fanfare_dds::distribute::Received;
use fanfare_dds::types::StructType;
use fanfare_engine::stop::Stop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

/// Samples that are queued to be printed; those beyond are dropped and counted.
const QUEUE: usize = 65_536;

/// The samples that were not printed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unprinted {
    /// Samples that the reader of stdout was too slow for.
    pub(crate) left_out: u64,
    /// Samples that do not have the form of their type.
    pub(crate) unreadable: u64,
}

struct Line {
    topic: String,
    t: Arc<StructType>,
    bytes: Vec<u8>,
}

/// The handle of the receive threads.
#[derive(Clone)]
pub(crate) struct Printer {
    lines: SyncSender<Line>,
    left_out: Arc<AtomicU64>,
}

/// The printing thread; it ends when the last [`Printer`] is dropped.
pub(crate) struct Printing {
    /// Returns the number of unreadable samples.
    thread: JoinHandle<u64>,
    left_out: Arc<AtomicU64>,
}

/// Starts the thread, which drops its queue when Ctrl-C comes and the output is not read.
pub(crate) fn start(stop: &Stop) -> Result<(Printer, Printing)> {
    let (lines, waiting) = sync_channel(QUEUE);
    let left_out = Arc::new(AtomicU64::new(0));
    let (outlet, unprinted) = (Outlet::new(stop)?, Arc::clone(&left_out));
    let thread = Builder::new()
        .name("print".to_owned())
        .spawn(move || print_all(&waiting, outlet, &unprinted))
        .context("cannot start the printing thread")?;
    let printer = Printer {
        lines,
        left_out: Arc::clone(&left_out),
    };
    Ok((printer, Printing { thread, left_out }))
}

impl Printer {
    /// Queues a sample; does not block.
    pub(crate) fn print(&self, received: &Received<'_>) {
        let line = Line {
            topic: received.topic.to_owned(),
            t: Arc::clone(&received.template.sample),
            bytes: received.sample.bytes().to_vec(),
        };
        if self.lines.try_send(line).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Printing {
    /// Waits until everything is printed. All printers must have been dropped.
    pub(crate) fn finish(self) -> Result<Unprinted> {
        let ended = self.thread.join();
        let unreadable = ended.map_err(|_| anyhow!("the printing thread panicked"))?;
        let left_out = self.left_out.load(Ordering::Relaxed);
        Ok(Unprinted {
            left_out,
            unreadable,
        })
    }
}

/// Prints all samples. Returns the number of those that are unreadable.
fn print_all(waiting: &Receiver<Line>, mut outlet: Outlet, left_out: &AtomicU64) -> u64 {
    let mut unreadable = 0;
    for line in waiting {
        match to_json(&line.t, &line.bytes) {
            Ok(json) => {
                let topic = line.topic;
                let line = format!("{{\"topic\": \"{topic}\", \"sample\": {json}}}\n");
                if !outlet.print(&line) {
                    left_out.fetch_add(1, Ordering::Relaxed);
                }
            }
            Err(error) => {
                unreadable += 1;
                let topic = line.topic;
                note!("fanfare: a sample of topic {topic} is not readable: {error}");
            }
        }
    }
    unreadable
}
