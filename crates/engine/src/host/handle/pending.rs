//! Results of requests by other threads.

use super::Shared;
use crate::host::HostError;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::time::Duration;

/// The result of a command that the host runs in a later duty cycle. Dropping it does not cancel
/// the command.
#[must_use = "says whether it was done"]
pub struct Pending<T> {
    pub(super) answer: Receiver<Result<T, HostError>>,
    pub(super) shared: Arc<Shared>,
}

impl<T> Pending<T> {
    /// Waits for the result.
    ///
    /// # Errors
    /// The host's error; [`HostError::Ended`] if the host ends without a response;
    /// [`HostError::OwnThread`] in a call of the host's handler, which would wait for itself.
    pub fn wait(mut self) -> Result<T, HostError> {
        match self.at_once() {
            Some(answer) => answer,
            None => self.answer.recv().unwrap_or(Err(HostError::Ended)),
        }
    }

    /// Waits for the result, for at most `patience`.
    ///
    /// # Errors
    /// As [`wait`](Self::wait); [`HostError::Late`] if the host has not responded by then.
    pub fn wait_for(mut self, patience: Duration) -> Result<T, HostError> {
        if let Some(answer) = self.at_once() {
            return answer;
        }
        match self.answer.recv_timeout(patience) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => Err(HostError::Late),
            Err(RecvTimeoutError::Disconnected) => Err(HostError::Ended),
        }
    }

    /// Returns the result if the host has run the command, without waiting.
    pub fn poll(&mut self) -> Option<Result<T, HostError>> {
        match self.answer.try_recv() {
            Ok(answer) => Some(answer),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(HostError::Ended)),
        }
    }

    /// Returns the result if the host has run the command; otherwise an error on the host's own
    /// thread, as a wait there would never end.
    fn at_once(&mut self) -> Option<Result<T, HostError>> {
        let answer = self.poll();
        if answer.is_none() && self.shared.lock().thread == Some(std::thread::current().id()) {
            return Some(Err(HostError::OwnThread));
        }
        answer
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").finish_non_exhaustive()
    }
}

/// The host's end of a [`Pending`].
pub(in super::super) struct Reply<T>(pub(super) SyncSender<Result<T, HostError>>);

impl<T> Reply<T> {
    /// Sends the result. A caller that is gone misses it.
    pub(in super::super) fn send(self, answer: Result<T, HostError>) {
        let _ = self.0.try_send(answer);
    }
}

/// A caller that waits until a session, or the last of several, is gone. A host that ends before
/// drops it, and the result of the caller is [`HostError::Ended`].
pub(in super::super) struct Removal(Reply<()>);

impl Removal {
    pub(super) fn new(reply: Reply<()>) -> Arc<Self> {
        Arc::new(Self(reply))
    }

    /// Notes that a session is gone. Responds if it is the last one.
    pub(in super::super) fn done(removal: Arc<Self>) {
        Self::answer(removal, Ok(()));
    }

    /// Responds with an error, as nothing was removed.
    pub(in super::super) fn fail(removal: Arc<Self>, error: HostError) {
        Self::answer(removal, Err(error));
    }

    fn answer(removal: Arc<Self>, answer: Result<(), HostError>) {
        if let Some(Self(reply)) = Arc::into_inner(removal) {
            reply.send(answer);
        }
    }
}
