//! Samples as lines on stdout, printed by a thread of its own: the receive thread, which also
//! acknowledges samples and sends echoes, never waits for the reader of the output.

use super::outlet::Outlet;
use super::waiting::{MOST_BYTES, MOST_ITEMS, Waiting, Weighed};
use crate::print::Remarks;
use anyhow::{Context, Result, anyhow};
use fanfare_dds::cdr::to_json;
use fanfare_dds::distribute::Received;
use fanfare_dds::types::StructType;
use fanfare_engine::stop::Stop;
use fanfare_wire::text::{JsonString, Shown};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// The longest wait for a sample, whose coming and the end interrupt it.
const LOOK: Duration = Duration::from_secs(1);

/// The samples that were not printed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unprinted {
    /// Samples that the reader of stdout was too slow for: the oldest ones in the queue.
    pub(crate) left_out: u64,
    /// Samples that do not have the form of their type.
    pub(crate) unreadable: u64,
}

struct Line {
    topic: String,
    t: Arc<StructType>,
    bytes: Vec<u8>,
}

impl Weighed for Line {
    fn bytes(&self) -> usize {
        self.topic.len() + self.bytes.len()
    }
}

/// The handle of the receive threads.
pub(crate) struct Printer(Arc<Waiting<Line>>);

/// The printing thread; it ends when the [`Printer`] is dropped.
pub(crate) struct Printing(JoinHandle<Unprinted>);

/// Starts the thread, which drops its queue when Ctrl-C comes and the output is not read.
pub(crate) fn start(stop: &Stop) -> Result<(Printer, Printing)> {
    let waiting = Arc::new(Waiting::new(MOST_ITEMS, MOST_BYTES));
    let (outlet, lines) = (Outlet::new(stop)?, Arc::clone(&waiting));
    let thread = Builder::new()
        .name("print".to_owned())
        .spawn(move || print_all(&lines, outlet))
        .context("cannot start the printing thread")?;
    Ok((Printer(waiting), Printing(thread)))
}

impl Printer {
    /// Queues a sample; does not block.
    pub(crate) fn print(&self, received: &Received<'_>) {
        self.0.push(Line {
            topic: received.topic.to_owned(),
            t: Arc::clone(&received.template.sample),
            bytes: received.sample.bytes().to_vec(),
        });
    }
}

impl Drop for Printer {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Printing {
    /// Waits until everything is printed. The printer must have been dropped.
    pub(crate) fn finish(self) -> Result<Unprinted> {
        let ended = self.0.join();
        ended.map_err(|_| anyhow!("the printing thread panicked"))
    }
}

/// Prints all samples. Returns the numbers of those that were not printed.
fn print_all(waiting: &Waiting<Line>, mut outlet: Outlet) -> Unprinted {
    let (mut unprinted, mut remarks) = (Unprinted::default(), Remarks::default());
    loop {
        let line = match waiting.pop(LOOK) {
            Some(line) => line,
            None if waiting.is_over() => break,
            None => continue,
        };
        match to_json(&line.t, &line.bytes) {
            Ok(json) => {
                let topic = JsonString(&line.topic);
                let line = format!("{{\"topic\": {topic}, \"sample\": {json}}}\n");
                unprinted.left_out += u64::from(!outlet.print(&line));
            }
            Err(error) => {
                unprinted.unreadable += 1;
                let topic = Shown(&line.topic);
                remarks.push(format_args!(
                    "fanfare: a sample of topic {topic} is not readable: {error}"
                ));
            }
        }
    }
    unprinted.left_out += waiting.dropped();
    unprinted
}
