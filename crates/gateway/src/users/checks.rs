//! The checking of passwords on a thread of its own, one at a time, because each check takes tens
//! of milliseconds and 19 MiB.

use super::password::Hashed;
use fanfare_engine::poll::Waker;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// A password and the hash to verify it against.
pub(super) struct Check {
    pub(super) hash: Hashed,
    pub(super) password: Vec<u8>,
}

/// The thread of one port, which starts with the first password.
pub(super) struct Checker {
    waker: Waker,
    thread: Option<(SyncSender<Check>, Receiver<bool>)>,
}

impl Checker {
    /// Creates a checker that wakes `waker` with each result.
    pub(super) const fn new(waker: Waker) -> Self {
        Self {
            waker,
            thread: None,
        }
    }

    pub(super) const fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Starts a check. Only one runs at a time.
    ///
    /// # Errors
    /// Returns an error if the system cannot start a thread.
    pub(super) fn begin(&mut self, check: Check) -> io::Result<()> {
        if self.thread.is_none() {
            self.thread = Some(self.start()?);
        }
        let sent = self
            .thread
            .as_ref()
            .map(|(checks, _)| checks.try_send(check));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => {
                self.thread = None;
                Err(io::Error::other(
                    "the thread that checks passwords has ended",
                ))
            }
        }
    }

    fn start(&self) -> io::Result<(SyncSender<Check>, Receiver<bool>)> {
        let (checks, to_check) = sync_channel::<Check>(1);
        let (results, result) = sync_channel(1);
        let waker = self.waker.clone();
        let work = move || {
            for Check { hash, password } in to_check {
                if results.send(hash.is_of(&password)).is_err() {
                    return;
                }
                waker.wake();
            }
        };
        std::thread::Builder::new()
            .name("passwords".to_owned())
            .spawn(work)?;
        Ok((checks, result))
    }

    /// Returns the result of the check once it is available. Returns `Some(false)` as well if the
    /// thread has ended.
    pub(super) fn poll(&mut self) -> Option<bool> {
        use std::sync::mpsc::TryRecvError;
        let (_, results) = self.thread.as_ref()?;
        match results.try_recv() {
            Ok(result) => Some(result),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.thread = None;
                Some(false)
            }
        }
    }
}
