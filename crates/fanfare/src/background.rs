//! Background writers: stdout, stderr and the file of the program's log are written by a thread
//! each, so that the threads that serve sessions never wait for a terminal, a blocked pipe, or a
//! disk.
//!
//! At most [`MOST`] bytes are queued for each stream, or one piece of any length. Further lines are
//! dropped; a line with their number takes their place when the stream accepts data again.

use crate::plural::counted;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The most bytes queued for one stream.
const MOST: usize = 4 << 20;
/// The longest wait of the process's end for a blocked stream.
const PATIENCE: Duration = Duration::from_secs(1);

/// A function that makes the line in the place of dropped lines, from their number and the reason.
pub(crate) type Gap = Box<dyn Fn(u64, &str) -> String + Send + Sync>;

/// The destination of a thread's lines.
pub(crate) trait Sink: Write + Send + 'static {
    /// Returns the interval of [`look`](Self::look) while there is nothing to write; `None`: never.
    fn period(&self) -> Option<Duration> {
        None
    }

    /// Does periodic work between lines.
    fn look(&mut self) {}
}

impl Sink for io::Stdout {}
impl Sink for io::Stderr {}

/// The queue of one stream.
pub(crate) struct Queue {
    started: OnceLock<Gap>,
    /// The reason why lines are dropped.
    why: &'static str,
    state: Mutex<State>,
    /// Notified when pieces are queued, or have been written.
    changed: Condvar,
}

struct State {
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Lines dropped behind those queued.
    left_out: u64,
    /// Pieces written so far.
    written: u64,
    is_writing: bool,
    /// Whether the thread has ended: the stream cannot be written any more.
    is_over: bool,
    /// The reason for that, until it is taken.
    failure: Option<io::Error>,
}

/// The queues of stdout and stderr.
pub(crate) static OUT: Queue = Queue::new("this stream was not read");
pub(crate) static ERR: Queue = Queue::new("this stream was not read");
/// The queue of the program's log, if it is a file.
pub(crate) static LOG: Queue = Queue::new("the disk was behind");

/// Writes all further lines of this process in the background. `gap` makes the lines in stderr for
/// dropped ones. Must be called before threads begin to serve.
pub(crate) fn begin(gap: Gap) -> io::Result<()> {
    OUT.start("stdout", io::stdout(), Box::new(plain_gap))?;
    ERR.start("stderr", io::stderr(), gap)
}

fn plain_gap(count: u64, why: &str) -> String {
    let lines = counted(count, "line");
    format!("fanfare: {lines} left out here: {why}\n")
}

/// Waits until everything is written, or a stream has been blocked for a second.
pub(crate) fn end() {
    OUT.drain();
    LOG.drain();
    ERR.drain();
}

impl Queue {
    const fn new(why: &'static str) -> Self {
        Self {
            started: OnceLock::new(),
            why,
            state: Mutex::new(State {
                waiting: VecDeque::new(),
                bytes: 0,
                left_out: 0,
                written: 0,
                is_writing: false,
                is_over: false,
                failure: None,
            }),
            changed: Condvar::new(),
        }
    }

    /// Returns whether the lines of this stream are written in the background.
    pub(crate) fn is_on(&self) -> bool {
        self.started.get().is_some()
    }

    pub(crate) fn start(&'static self, name: &str, to: impl Sink, gap: Gap) -> io::Result<()> {
        if self.started.set(gap).is_ok() {
            let thread = std::thread::Builder::new().name(name.to_owned());
            thread.spawn(move || self.serve(to))?;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        unpoisoned(self.state.lock())
    }

    /// Queues a line in the place of the dropped ones.
    fn put_gap(&self, state: &mut State) {
        let count = std::mem::take(&mut state.left_out);
        if count > 0 {
            let line = match self.started.get() {
                Some(gap) => gap(count, self.why),
                None => plain_gap(count, self.why),
            };
            state.put(line.into_bytes());
        }
    }

    /// Queues whole lines for the thread. Never blocks on the stream.
    pub(crate) fn push(&self, lines: Vec<u8>) {
        let mut state = self.lock();
        if state.is_over {
            return;
        }
        if state.bytes > 0 && state.bytes + weight(&lines) > MOST {
            state.left_out += lines.iter().filter(|&&byte| byte == b'\n').count() as u64;
            return;
        }
        self.put_gap(&mut state);
        state.put(lines);
        drop(state);
        self.changed.notify_all();
    }

    fn serve(&self, mut to: impl Sink) {
        let mut state = self.lock();
        loop {
            if state.waiting.is_empty() {
                self.put_gap(&mut state);
            }
            let Some(lines) = state.waiting.pop_front() else {
                let Some(period) = to.period() else {
                    state = unpoisoned(self.changed.wait(state));
                    continue;
                };
                let (waited, outcome) = unpoisoned(self.changed.wait_timeout(state, period));
                state = waited;
                if outcome.timed_out() {
                    drop(state);
                    to.look();
                    state = self.lock();
                }
                continue;
            };
            state.is_writing = true;
            drop(state);
            let outcome = to.write_all(&lines).and_then(|()| to.flush());
            state = self.lock();
            state.is_writing = false;
            state.bytes -= weight(&lines);
            state.written += 1;
            if let Err(error) = outcome {
                (state.is_over, state.failure) = (true, Some(error));
                state.waiting.clear();
                state.left_out = 0;
            }
            self.changed.notify_all();
            if state.is_over {
                return;
            }
        }
    }

    fn drain(&self) {
        if !self.is_on() {
            return;
        }
        let mut state = self.lock();
        let mut until = Instant::now() + PATIENCE;
        while state.is_writing || !state.waiting.is_empty() || state.left_out > 0 {
            let Some(rest) = until.checked_duration_since(Instant::now()) else {
                return;
            };
            let before = state.written;
            (state, _) = unpoisoned(self.changed.wait_timeout(state, rest));
            if state.is_over {
                return;
            }
            if state.written != before {
                until = Instant::now() + PATIENCE;
            }
        }
    }

    /// Returns once the reason why nothing can be written any more.
    pub(crate) fn take_failure(&self) -> Option<io::Error> {
        self.lock().failure.take()
    }
}

/// Returns the memory of queued lines, bytes.
fn weight(lines: &[u8]) -> usize {
    lines.len() + 64
}

impl State {
    fn put(&mut self, lines: Vec<u8>) {
        self.bytes += weight(&lines);
        self.waiting.push_back(lines);
    }
}

fn unpoisoned<T>(locked: Result<T, PoisonError<T>>) -> T {
    locked.unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// A stream that blocks until its valve opens.
    struct Gate(Arc<Valve>);

    /// Whether it is open, and the bytes written.
    type Valve = (Mutex<(bool, Vec<u8>)>, Condvar);

    impl Sink for Gate {}

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (gate, opened) = &*self.0;
            let mut gate = opened
                .wait_while(gate.lock().unwrap(), |gate| !gate.0)
                .unwrap();
            gate.1.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_stream_that_cannot_be_written_collects_nothing() {
        struct Full;
        impl Sink for Full {}
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::other("full"))
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let queue: &'static Queue = Box::leak(Box::new(Queue::new("this stream was not read")));
        queue.start("test", Full, Box::new(plain_gap)).unwrap();
        queue.push(b"lost\n".to_vec());
        queue.drain();
        assert_eq!(queue.take_failure().unwrap().to_string(), "full");
        queue.push(b"lost, too\n".to_vec());
        assert!(queue.lock().waiting.is_empty());
        assert!(queue.take_failure().is_none());
    }

    #[test]
    fn what_nobody_reads_is_counted_in_its_place() {
        let gate = Arc::new((Mutex::new((false, Vec::new())), Condvar::new()));
        let queue: &'static Queue = Box::leak(Box::new(Queue::new("this stream was not read")));
        let to = Gate(Arc::clone(&gate));
        queue.start("test", to, Box::new(plain_gap)).unwrap();
        let line = [&[b'x'; 999][..], b"\n"].concat();
        let pushed = 2 * MOST / weight(&line);
        (0..pushed).for_each(|_| queue.push(line.clone()));
        gate.0.lock().unwrap().0 = true;
        gate.1.notify_all();
        queue.drain();
        queue.push(b"later\n".to_vec());
        queue.drain();
        let text = String::from_utf8(gate.0.lock().unwrap().1.clone()).unwrap();
        let shown = text.lines().filter(|line| line.starts_with('x')).count();
        let left_out = pushed - shown;
        assert!(left_out > 0 && shown >= MOST / weight(&line));
        let end = format!(
            "x\nfanfare: {left_out} lines left out here: this stream was not read\nlater\n"
        );
        assert!(text.ends_with(&end), "{}", &text[text.len() - 200..]);
    }

    #[test]
    fn a_piece_above_the_limit_is_written_if_nothing_is_queued() {
        let gate = Arc::new((Mutex::new((false, Vec::new())), Condvar::new()));
        let queue: &'static Queue = Box::leak(Box::new(Queue::new("this stream was not read")));
        // Before the start nothing is taken from the queue.
        let long = [vec![b'x'; MOST], b"\n".to_vec()].concat();
        queue.push(long.clone());
        queue.push(b"behind\n".to_vec());
        queue
            .start("test", Gate(Arc::clone(&gate)), Box::new(plain_gap))
            .unwrap();
        gate.0.lock().unwrap().0 = true;
        gate.1.notify_all();
        queue.drain();
        let end = b"fanfare: 1 line left out here: this stream was not read\n";
        assert!(gate.0.lock().unwrap().1 == [&long[..], end].concat());
    }
}
