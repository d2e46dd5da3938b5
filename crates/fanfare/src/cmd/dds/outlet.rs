//! Lines on stdout that Ctrl-C can interrupt while the output is not read, as with a stopped pager.

use crate::print;
use anyhow::Result;
use fanfare_engine::poll::{Interest, Poller, Token};
use fanfare_engine::stop::Stop;
use std::io::{ErrorKind, Write, stdout};
use std::time::Duration;

/// The bytes that a writable pipe takes at once (POSIX, PIPE_BUF on Linux).
const PIECE: usize = 4_096;
/// The interval at which Ctrl-C is polled.
const LOOK: Duration = Duration::from_millis(50);

/// Stdout, with a test of whether it takes more.
pub(crate) struct Outlet {
    /// `None` for a plain file, which always takes more.
    poller: Option<Poller>,
    stop: Stop,
    is_unread: bool,
}

impl Outlet {
    pub(crate) fn new(stop: &Stop) -> Result<Self> {
        let poller = Poller::new(1)?;
        let taken = poller.add(stdout(), Token(0), Interest::Write);
        Ok(Self {
            poller: taken.is_ok().then_some(poller),
            stop: stop.clone(),
            is_unread: false,
        })
    }

    /// Returns whether something could not be printed because nobody reads stdout.
    pub(crate) const fn is_unread(&self) -> bool {
        self.is_unread
    }

    /// Prints a line, which ends with a line feed. Returns `false` if Ctrl-C came while stdout took
    /// no more, possibly within the line.
    pub(crate) fn print(&mut self, line: &str) -> bool {
        line.as_bytes().chunks(PIECE).all(|piece| {
            let is_ready = self.wait();
            if is_ready {
                let mut out = stdout();
                let printed = out.write_all(piece).and_then(|()| out.flush());
                let error = printed.as_ref().err();
                self.is_unread |= error.is_some_and(|e| e.kind() == ErrorKind::BrokenPipe);
                print::keep(printed);
            }
            is_ready
        })
    }

    /// Waits until stdout takes more or has an error to report.
    fn wait(&mut self) -> bool {
        let Some(poller) = &mut self.poller else {
            return true;
        };
        loop {
            let is_over = self.stop.is_raised();
            let patience = if is_over { Duration::ZERO } else { LOOK };
            if !matches!(poller.poll(Some(patience)), Ok(0)) {
                return true;
            }
            if is_over {
                return false;
            }
        }
    }
}
