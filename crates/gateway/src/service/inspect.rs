//! Queries of operators about subscriptions. A worker processes a few subscriptions at a time,
//! between messages.

use super::client::{Client, Subscription};
use super::{Core, NOWHERE, Pattern};
use fanfare_engine::host::Peers;
use fanfare_engine::poll::Waker;
use fanfare_fix::session::SessionId;
use fanfare_market::InstrumentId;
use fanfare_market::instruments::{Directory, Lookup};
use fanfare_wire::text::{Escaped, unescape};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// The number of subscriptions that are examined in one turn.
const OF_TURN: usize = 64;
/// The most queries that are queued for one worker.
const WAITING: usize = 16;
/// The time limit of a response.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most symbols of a subscription that are named.
const SYMBOLS: usize = 8;

/// The subscriptions that an operator selects.
#[derive(Debug, Clone, Default)]
pub(crate) struct WantedSubscriptions {
    /// The sessions, or all if absent.
    pub(crate) sessions: Option<Arc<HashSet<SessionId>>>,
    /// The symbol that they must include.
    pub(crate) symbol: Option<String>,
}

/// A position in the list of a worker: the session, and its subscription.
pub(crate) type At = (u32, u32);

/// A query of an operator.
struct Question {
    wanted: WantedSubscriptions,
    after: Option<At>,
    limit: usize,
    answer: SyncSender<Found>,
}

/// A page of a worker's subscriptions.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The number of all that match, including those before and after the page.
    pub(crate) total: u64,
    pub(crate) rows: Vec<(At, Value)>,
    pub(crate) has_more: bool,
}

/// The requesting end, for any thread.
#[derive(Clone)]
pub(crate) struct Inspector {
    questions: SyncSender<Question>,
    is_asked: Arc<AtomicBool>,
    waker: Option<Waker>,
}

/// The responding end, of a worker.
pub(super) struct Inspection {
    questions: Receiver<Question>,
    is_asked: Arc<AtomicBool>,
    sender: SyncSender<Question>,
    running: Option<Running>,
}

/// A query that is being processed.
struct Running {
    question: Question,
    next: At,
    found: Found,
}

impl Inspection {
    pub(super) fn new() -> Self {
        let (sender, questions) = sync_channel(WAITING);
        Self {
            questions,
            is_asked: Arc::default(),
            sender,
            running: None,
        }
    }

    /// Returns the requesting end.
    pub(super) fn inspector(&self) -> Inspector {
        Inspector {
            questions: self.sender.clone(),
            is_asked: Arc::clone(&self.is_asked),
            waker: None,
        }
    }

    /// Returns whether a query is being processed.
    pub(super) const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Continues with a query, if there is one. Returns the amount of work done.
    #[inline]
    pub(super) fn turn(
        &mut self,
        core: &Core,
        peers: &mut Peers<'_>,
        directory: &Directory,
    ) -> usize {
        if self.running.is_none() && !self.is_asked.load(Ordering::Acquire) {
            return 0;
        }
        self.go_on(core, peers, directory)
    }

    #[cold]
    fn go_on(&mut self, core: &Core, peers: &mut Peers<'_>, directory: &Directory) -> usize {
        if self.running.is_none() {
            // Before the queue is read: a query from here on sets the flag again.
            self.is_asked.store(false, Ordering::Release);
            self.running = self.questions.try_recv().ok().map(|question| Running {
                question,
                next: (0, 0),
                found: Found::default(),
            });
        }
        let Some(mut running) = self.running.take() else {
            return 0;
        };
        match running.look(core, peers, directory) {
            true => {
                // The requester may have timed out, and other queries may be queued.
                let _ = running.question.answer.try_send(running.found);
                self.is_asked.store(true, Ordering::Release);
            }
            false => self.running = Some(running),
        }
        1
    }
}

impl Running {
    /// Examines some more subscriptions. Returns whether these were all.
    fn look(&mut self, core: &Core, peers: &mut Peers<'_>, directory: &Directory) -> bool {
        let mut left = OF_TURN;
        while let Some(place) = core.clients.get(self.next.0 as usize) {
            let Some(client) = place.as_deref() else {
                self.next = (self.next.0 + 1, 0);
                continue;
            };
            if left == 0 {
                return false;
            }
            left -= 1;
            let id = peers.get(client.key).map(|peer| peer.id().clone());
            let id = id.filter(|id| {
                let sessions = self.question.wanted.sessions.as_ref();
                sessions.is_none_or(|sessions| sessions.contains(id))
            });
            let (Some(id), true) = (id, (self.next.1 as usize) < client.subscriptions.len()) else {
                self.next = (self.next.0 + 1, 0);
                continue;
            };
            if let Some(own) = client.get(self.next.1) {
                self.take(core, client, &id, own, directory);
            }
            self.next.1 += 1;
        }
        true
    }

    fn take(
        &mut self,
        core: &Core,
        client: &Client,
        id: &SessionId,
        own: &Subscription,
        directory: &Directory,
    ) {
        let wanted = self.question.wanted.symbol.as_ref();
        let has = |symbol: &String| has(core, own, symbol.as_bytes(), directory);
        // The symbol may be as it is, or as the rows show it.
        let fits = |symbol: &String| has(symbol) || unescape(symbol).is_some_and(|it| has(&it));
        if !wanted.is_none_or(fits) {
            return;
        }
        self.found.total += 1;
        if self.question.after.is_some_and(|after| self.next <= after) {
            return;
        }
        if self.found.rows.len() >= self.question.limit {
            self.found.has_more = true;
            return;
        }
        let row = row(client, id, own, self.next.1, directory);
        self.found.rows.push((self.next, row));
    }
}

/// Returns whether a subscription has an instrument of this symbol.
fn has(core: &Core, own: &Subscription, symbol: &[u8], directory: &Directory) -> bool {
    if own.patterns.iter().any(|pattern| pattern.fits(symbol)) {
        return true;
    }
    let of_symbol: Vec<InstrumentId> = directory.of_symbol(symbol).collect();
    own.places.iter().any(|place| {
        let class = core.classes.get(place.class);
        class.is_some_and(|class| of_symbol.contains(&class.instrument))
    })
}

fn row(
    client: &Client,
    id: &SessionId,
    own: &Subscription,
    number: u32,
    directory: &Directory,
) -> Value {
    let text = |bytes: &[u8]| Escaped::new(bytes).to_string();
    let symbols = own.named.iter().take(SYMBOLS).map(|instrument| {
        let known = directory.instrument(*instrument);
        known.map(|known| text(known.definition.name.symbol))
    });
    let patterns = own.patterns.iter().map(|pattern| match pattern {
        Pattern::Symbol(symbol) => text(symbol),
        Pattern::Prefix(prefix) => text(prefix) + "*",
    });
    let behind = client
        .behind
        .iter()
        .filter(|part| part.subscription == number);
    let spec = &own.spec;
    let entries = (b' '..=b'~').filter(|entry| spec.entries.has(*entry));
    let instruments = own.places.iter().filter(|place| **place != NOWHERE);
    json!({
        "session": id.to_string(),
        "request": text(own.request()),
        "patterns": patterns.collect::<Vec<_>>(),
        "symbols": symbols.flatten().collect::<Vec<_>>(),
        "instruments": instruments.count(),
        "depth": spec.depth,
        "entries": entries.map(char::from).collect::<String>(),
        "by_order": spec.by_order,
        "contract": own.contract.name(),
        "interval_ms": spec.interval,
        "goes_on": own.goes_on,
        "behind": behind.count(),
        "conflated": own.losses.conflated,
        "skipped": own.losses.skipped,
    })
}

/// The reason why a worker has not responded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoAnswer {
    /// The queue of queries is full.
    #[error("the queue of requests to a worker is full")]
    Busy,
    /// The query timed out.
    #[error("a worker did not answer in time")]
    Late,
}

impl Inspector {
    /// Returns the same inspector, which wakes the worker by `waker`.
    pub(crate) fn woken_by(self, waker: Waker) -> Self {
        let waker = Some(waker);
        Self { waker, ..self }
    }

    /// Queries up to `limit` subscriptions after `after`, and waits for the response.
    ///
    /// # Errors
    /// Returns the reason why there is no response.
    pub(crate) fn ask(
        &self,
        wanted: &WantedSubscriptions,
        after: Option<At>,
        limit: usize,
    ) -> Result<Found, NoAnswer> {
        let (answer, answered) = sync_channel(1);
        let question = Question {
            wanted: wanted.clone(),
            after,
            limit,
            answer,
        };
        let sent = self.questions.try_send(question);
        sent.map_err(|_| NoAnswer::Busy)?;
        self.is_asked.store(true, Ordering::Release);
        self.waker.iter().for_each(Waker::wake);
        answered.recv_timeout(PATIENCE).map_err(|_| NoAnswer::Late)
    }
}
