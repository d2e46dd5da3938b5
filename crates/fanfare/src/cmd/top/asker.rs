//! Requests on a thread of their own: keys do not wait for a gateway that does not respond.

use super::source::Source;
use super::view::{Answers, Sort, View};
use std::io;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

/// The thread of the requests, with at most one of them pending.
pub(super) struct Asker {
    orders: SyncSender<Sort>,
    answers: Receiver<Result<Answers, String>>,
    /// The order of the sessions of the pending request.
    pending: Option<Sort>,
    is_wanted: bool,
}

impl Asker {
    /// Starts the thread, which ends with the asker.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(mut source: Source) -> io::Result<Self> {
        let (orders, taken) = mpsc::sync_channel(1);
        let (given, answers) = mpsc::sync_channel(1);
        let ask = move || {
            for sort in taken {
                let answer = Answers::ask(sort, &mut source);
                let answer = answer.map_err(|error| format!("{error:#}"));
                if given.send(answer).is_err() {
                    return;
                }
            }
        };
        let name = "requests".to_owned();
        thread::Builder::new().name(name).spawn(ask)?;
        Ok(Self {
            orders,
            answers,
            pending: None,
            is_wanted: false,
        })
    }

    /// Requests all data, after the response to a pending request.
    pub(super) const fn want(&mut self) {
        self.is_wanted = true;
    }

    /// Returns whether a request has no response yet.
    #[cfg(test)]
    pub(super) const fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Shows the response that has arrived, if any, and sends the next request. Returns whether the
    /// view has changed. Does not block.
    pub(super) fn turn(&mut self, view: &mut View) -> bool {
        let mut has_changed = false;
        if let Ok(answer) = self.answers.try_recv() {
            // The sessions are of the order in the title.
            has_changed = self.pending.take() == Some(view.sort);
            if has_changed {
                view.show(answer);
            }
        }
        if self.is_wanted && self.pending.is_none() && self.orders.try_send(view.sort).is_ok() {
            (self.pending, self.is_wanted) = (Some(view.sort), false);
        }
        has_changed
    }
}
