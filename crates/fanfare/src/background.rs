//! Lines that a thread of their own writes: whoever serves sessions never waits for a terminal, a
//! pipe or a file that nobody reads.
//!
//! Up to [`MOST`] bytes wait for each stream. Beyond that lines are left out and counted; the
//! count stands where they would, as soon as the stream is read again.

use fanfare_wire::text::Escaped;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that may wait for one stream.
const MOST: usize = 4 << 20;
/// How long the end of the process waits for a stream that takes nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// One stream.
pub(crate) struct Queue {
    started: OnceLock<()>,
    state: Mutex<State>,
    /// There is something to write, or something was written.
    changed: Condvar,
}

struct State {
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Lines left out behind those that wait.
    left_out: u64,
    /// Pieces written so far.
    written: u64,
    is_writing: bool,
    failure: Option<io::Error>,
}

/// stdout and stderr.
pub(crate) static OUT: Queue = Queue::new();
pub(crate) static ERR: Queue = Queue::new();

/// From now on the lines of this process are written in the background, a panic's as well, which
/// is one line then. Call it before threads begin to serve.
pub(crate) fn begin() -> io::Result<()> {
    OUT.start("stdout", io::stdout())?;
    ERR.start("stderr", io::stderr())?;
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        ERR.push(format!("fanfare: {}\n", Escaped::text(&text)).into_bytes());
    }));
    Ok(())
}

/// Waits until everything is written, for as long as the streams take something.
pub(crate) fn end() {
    OUT.drain();
    ERR.drain();
}

impl Queue {
    const fn new() -> Self {
        Self {
            started: OnceLock::new(),
            state: Mutex::new(State {
                waiting: VecDeque::new(),
                bytes: 0,
                left_out: 0,
                written: 0,
                is_writing: false,
                failure: None,
            }),
            changed: Condvar::new(),
        }
    }

    /// Whether lines go this way.
    pub(crate) fn is_on(&self) -> bool {
        self.started.get().is_some()
    }

    fn start(&'static self, name: &str, to: impl Write + Send + 'static) -> io::Result<()> {
        if self.started.set(()).is_ok() {
            let thread = std::thread::Builder::new().name(name.to_owned());
            thread.spawn(move || self.serve(to))?;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands on whole lines; never waits for the stream.
    pub(crate) fn push(&self, lines: Vec<u8>) {
        let mut state = self.lock();
        if state.failure.is_some() {
            return;
        }
        if state.bytes + weight(&lines) > MOST {
            state.left_out += lines.iter().filter(|&&byte| byte == b'\n').count() as u64;
            return;
        }
        state.put_gap();
        state.put(lines);
        drop(state);
        self.changed.notify_all();
    }

    fn serve(&self, mut to: impl Write) {
        let mut state = self.lock();
        loop {
            if state.waiting.is_empty() {
                state.put_gap();
            }
            let Some(lines) = state.waiting.pop_front() else {
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
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
                state.failure = Some(error);
                state.waiting.clear();
                state.left_out = 0;
            }
            self.changed.notify_all();
            if state.failure.is_some() {
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
            let waited = self.changed.wait_timeout(state, rest);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if state.failure.is_some() {
                return;
            }
            if state.written != before {
                until = Instant::now() + PATIENCE;
            }
        }
    }

    /// Why nothing can be written any more, once.
    pub(crate) fn take_failure(&self) -> Option<io::Error> {
        self.lock().failure.take()
    }
}

/// What lines cost while they wait.
fn weight(lines: &[u8]) -> usize {
    lines.len() + 64
}

impl State {
    fn put(&mut self, lines: Vec<u8>) {
        self.bytes += weight(&lines);
        self.waiting.push_back(lines);
    }

    /// The line that stands for those left out.
    fn put_gap(&mut self) {
        let count = std::mem::take(&mut self.left_out);
        if count > 0 {
            let what = if count == 1 { "line" } else { "lines" };
            let line = format!("fanfare: {count} {what} left out here: nobody read\n");
            self.put(line.into_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// A stream that takes nothing until it is let.
    struct Gate(Arc<Valve>);

    /// Whether it is open, and what has passed.
    type Valve = (Mutex<(bool, Vec<u8>)>, Condvar);

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
    fn what_nobody_reads_is_counted_in_its_place() {
        let gate = Arc::new((Mutex::new((false, Vec::new())), Condvar::new()));
        let queue: &'static Queue = Box::leak(Box::new(Queue::new()));
        queue.start("test", Gate(Arc::clone(&gate))).unwrap();
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
        let end = format!("x\nfanfare: {left_out} lines left out here: nobody read\nlater\n");
        assert!(text.ends_with(&end), "{}", &text[text.len() - 200..]);
    }
}
