//! The agent that copies the log to a topic.

use super::LogEnd;
use super::config::{Kafka, KafkaBegin, KafkaFormat};
use super::form::{Form, time};
use super::topic::{End, Held, Message, Topic, TopicError};
use crate::counts::KafkaCounts;
use crate::notice::{Notice, Notices};
use crate::retry::Retry;
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_fix::session::Now;
use fanfare_history::{At, Log, LogError, Reader, Run, Start};
use fanfare_market::Delivery;
use fanfare_market::book::{BookConfig, ConfigError};
use std::mem;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The most messages of the feeds that are read in a turn.
const TURN: usize = 512;
/// The most messages of a transaction.
const MOST: u64 = 10_000;
/// The pause before a topic that cannot be written is retried, in nanoseconds.
const PATIENCE: u64 = 1_000_000_000;

/// The interval at which the log is polled, in nanoseconds.
const PACE: u64 = 5_000_000;
/// The longest single wait for the end of the log.
const LOOK: Duration = Duration::from_millis(2);
/// The time for which the rest of the log is sent at a stop.
const DRAIN: Duration = Duration::from_secs(10);

/// The reason why the sink must restart.
#[derive(Debug, thiserror::Error)]
enum SinkError {
    #[error(transparent)]
    Topic(#[from] TopicError),
    #[error("the log: {0}")]
    Log(#[from] LogError),
    #[error("books: {0}")]
    Book(#[from] ConfigError),
    #[error(
        "the topic has event {last}, but the log ends with event {end}: the topic belongs to \
         another log, or the end of this log was lost; name another topic"
    )]
    Ahead { last: u64, end: u64 },
    #[error(
        "the topic's event {last} is not the log's: the topic belongs to another log; name another \
         topic"
    )]
    Other { last: u64 },
    #[error(
        "the topic belongs to the log with the ID {found:016x}, and this log has {own:016x} (its \
         file `id`); name another topic"
    )]
    Foreign { found: u64, own: u64 },
}

/// The source of a sink.
pub(crate) struct Source {
    pub(crate) log: LogEnd,
    /// The books of a log that does not name its feeds.
    pub(crate) books: Vec<BookConfig>,
    pub(crate) notices: Notices,
}

/// The agent that reads the log and writes a topic.
pub(crate) struct KafkaSink<T> {
    config: Kafka,
    source: Source,
    topic: T,
    running: Option<Running>,
    retry: Retry,
    /// The number of the first event that the topic may lack. With `begin = "now"`, an empty topic
    /// begins with it.
    unsent: u64,
    /// Whether this run has begun an empty topic, and has not confirmed a message of it.
    has_begun: bool,
    /// Whether this run has found its position, so that the topic has had what is before `unsent`.
    is_placed: bool,
    /// The last number of a topic that was refused because the log ended before it. Events up to
    /// this number that the log has later are not those of the topic, unless it ends before.
    refused: Option<u64>,
    /// The transaction whose commit has failed, which may be in the topic nevertheless.
    unsure: Option<Transaction>,
    /// The time at which the log is polled next.
    next: u64,
    /// Whether the notice that the topic is written is still to be sent.
    is_silent: bool,
    /// The time for which the rest of the log is sent at a stop.
    pub(super) drain: Duration,
    counts: KafkaCounts,
}

/// A sink that is connected.
struct Running {
    reader: Reader,
    form: Form,
    /// The contents of the topic at the start.
    held: Held,
    /// The number of the last event that was read.
    seen: u64,
    pending: Transaction,
    /// The time of the first message of the transaction.
    since: u64,
}

/// The messages that are committed together.
#[derive(Default)]
struct Transaction {
    /// The number of messages.
    messages: u64,
    /// The number of events that they report as missing.
    gone: u64,
    /// The end of the topic behind them.
    end: End,
}

impl Transaction {
    /// Returns an empty transaction at this end of the topic.
    fn at(end: End) -> Self {
        Self {
            end,
            ..Self::default()
        }
    }

    /// Takes the contents, and leaves an empty transaction behind them.
    fn take(&mut self) -> Self {
        let next = Self::at(self.end);
        mem::replace(self, next)
    }
}

impl<T: Topic> KafkaSink<T> {
    pub(crate) fn new(config: Kafka, source: Source, topic: T, counts: KafkaCounts) -> Self {
        let unsent = source.log.written.load(Ordering::Acquire);
        Self {
            config,
            source,
            topic,
            running: None,
            retry: Retry::new(PATIENCE),
            unsent,
            has_begun: false,
            is_placed: false,
            refused: None,
            unsure: None,
            next: 0,
            is_silent: true,
            drain: DRAIN,
            counts,
        }
    }

    fn tell(&self, what: String) {
        let topic = self.config.topic.clone();
        self.source.notices.send(Notice::Kafka { topic, what });
    }

    /// Connects, and finds the position in the log.
    fn connect(&mut self) -> Result<Running, SinkError> {
        let log = Log::open(&self.source.log.folder)?;
        // A plant whose log the topic has goes on if this one is refused.
        let looked = self.topic.look()?;
        self.check(&log, looked)?;
        let held = self.topic.open()?;
        if held != looked {
            self.check(&log, held)?;
        }
        self.counts.blocked.set(0);
        // A transaction is whole in the topic, or not at all.
        let sent = self.unsure.take().filter(|unsure| held.end() >= unsure.end);
        if let Some(sent) = sent {
            self.count(&sent);
        }
        let held = self.placed(held);
        let (reader, gone) = self.reader(&log, held)?;
        if !self.goes_on(held) {
            let next = reader.next_number();
            self.unsent = held.last.map_or(next, |last| last + 1);
        }
        (self.has_begun, self.is_placed) = (held.last.is_none(), true);
        // The last event that the topic has is read again, so that a restart after it is not
        // missed.
        let books_at = held.last.unwrap_or_else(|| reader.next_number() - 1);
        let is_seeded = matches!(self.config.format, KafkaFormat::Dbn)
            && gone.as_ref().is_none_or(Range::is_empty)
            && books_at > 0;
        let before = match is_seeded {
            true => Some(log.as_of(At::Before(books_at + 1))?),
            false => None,
        };
        let run = before
            .as_ref()
            .map_or_else(|| reader.run(), |books| Some(&books.run));
        let mut form = Form::new(&self.config, self.books_of(run))?;
        if let (Some(encoder), Some(books)) = (form.encoder(), &before) {
            books.seed(encoder);
        }
        form.begin(reader.directory());
        let mut running = Running {
            seen: reader.next_number() - 1,
            reader,
            form,
            held,
            pending: Transaction::at(held.end()),
            since: 0,
        };
        if let Some(gone) = gone {
            self.say_gone(&gone, &mut running)?;
        }
        Ok(running)
    }

    /// Checks that the topic has the events of this log: by the log's ID, if the topic's last
    /// message has one, and by the time of the last event, which also tells apart copies of a log.
    fn check(&mut self, log: &Log, held: Held) -> Result<(), SinkError> {
        // Else it was made again, or emptied.
        let refused = self.refused.filter(|refused| held.last >= Some(*refused));
        self.refused = refused;
        let Some(last) = held.last else {
            return Ok(());
        };
        if refused.is_some() {
            return Err(SinkError::Other { last });
        }
        let own = self.source.log.id;
        if let Some(found) = held.log
            && found != own
        {
            return Err(SinkError::Foreign { found, own });
        }
        let mut reader = match log.reader(Start::Number(last)) {
            Ok(reader) => reader,
            // The log no longer shows it.
            Err(LogError::Gone { .. }) => return Ok(()),
            Err(LogError::NotYet { next, .. }) => {
                let end = next.saturating_sub(1);
                return Err(SinkError::Ahead { last, end });
            }
            Err(error) => return Err(error.into()),
        };
        let mut is_other = false;
        while reader.next_number() <= last {
            let read = reader.read(1, |delivery| {
                if let Delivery::Event(event, _) = delivery {
                    is_other |= held.is_of_another(event.number, time(event));
                }
            })?;
            if read == 0 {
                let end = reader.next_number().saturating_sub(1);
                return Err(SinkError::Ahead { last, end });
            }
        }
        match is_other {
            true => Err(SinkError::Other { last }),
            false => Ok(()),
        }
    }

    /// Returns the books of a run of the plant, and the numbers of the first instruments of its
    /// feeds, if the log names them.
    fn books_of(&self, run: Option<&Run>) -> (Vec<BookConfig>, Vec<u32>) {
        match run {
            Some(run) if !run.feeds.is_empty() => (run.books(), run.bases()),
            _ => (self.source.books.clone(), Vec::new()),
        }
    }

    /// Returns the contents of the topic, with the last event that this run has confirmed if
    /// retention has emptied the topic since.
    fn placed(&self, held: Held) -> Held {
        if !held.is_emptied {
            return held;
        }
        let is_known = self.is_placed && !self.has_begun && self.unsent > 1;
        let from = match is_known || self.config.begin == KafkaBegin::Now {
            true => "on from the first event that it has not had",
            false => "again from the start",
        };
        self.tell(format!(
            "retention has emptied the topic: it is written {from}"
        ));
        Held {
            last: is_known.then(|| self.unsent - 1),
            ..held
        }
    }

    /// Returns whether an empty topic begins with the first event that was not sent, so that what
    /// the log no longer has is reported: with `begin = "now"`, or if this run began it.
    fn goes_on(&self, held: Held) -> bool {
        let is_own = self.has_begun && !held.is_emptied;
        held.last.is_none() && (self.config.begin == KafkaBegin::Now || is_own)
    }

    /// Returns a reader of the events that the topic lacks, and the numbers that the log no longer
    /// has: an empty range if the log begins with the next event.
    fn reader(&self, log: &Log, held: Held) -> Result<(Reader, Option<Range<u64>>), SinkError> {
        let start = match held.last {
            Some(last) => Start::Number(last),
            None if self.goes_on(held) => Start::Number(self.unsent),
            None => Start::First,
        };
        match log.reader(start) {
            Ok(reader) => Ok((reader, None)),
            Err(LogError::Gone { wanted, first, .. }) => {
                let lacking = wanted + u64::from(held.last.is_some());
                Ok((log.reader(Start::Number(first))?, Some(lacking..first)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Puts the notice of events that the log no longer has into the topic.
    fn say_gone(&mut self, gone: &Range<u64>, running: &mut Running) -> Result<(), SinkError> {
        let (first, last) = (gone.start, gone.end - 1);
        let Running {
            form,
            held,
            pending,
            ..
        } = running;
        if gone.is_empty() {
            // The log no longer shows whether the plant was restarted behind the topic's end.
            if held.restarts == 0 {
                form.restart(last, &mut putter(&mut self.topic, pending))?;
            }
            return Ok(());
        }
        self.tell(format!("events {first} to {last} are no longer in the log"));
        form.lost(first, last, &mut putter(&mut self.topic, pending))?;
        pending.gone += last - first + 1;
        Ok(())
    }

    fn turn(&mut self, now: u64, is_end: bool) -> Result<usize, SinkError> {
        let mut running = match self.running.take() {
            Some(running) => running,
            None => self.connect()?,
        };
        let had_begun = running.pending.messages > 0;
        let from = running.held.last.unwrap_or(running.seen) + 1;
        let read = running.read(&mut self.topic)?;
        if mem::take(&mut self.is_silent) {
            self.tell(format!("is written from event {from} on"));
        }
        if !had_begun {
            running.since = now;
        }
        let is_due = now.saturating_sub(running.since) >= self.config.commit_ms * 1_000_000;
        let pending = running.pending.messages;
        if pending > 0 && (is_due || pending >= MOST || is_end && read == 0) {
            self.commit(&mut running)?;
        }
        if running.pending.messages == 0 {
            self.unsent = running.seen + 1;
        }
        self.running = Some(running);
        Ok(read)
    }

    /// Commits the transaction.
    fn commit(&mut self, running: &mut Running) -> Result<(), SinkError> {
        let sent = running.pending.take();
        if let Err(error) = self.topic.commit() {
            self.unsure = Some(sent);
            return Err(error.into());
        }
        self.has_begun = false;
        self.count(&sent);
        Ok(())
    }

    /// Commits the transaction at a stop, and leaves the rest of the log to the next start.
    fn leave(&mut self) -> Result<usize, SinkError> {
        let Some(mut running) = self.running.take() else {
            return Ok(0);
        };
        if running.pending.messages > 0 {
            self.commit(&mut running)?;
        }
        let written = self.source.log.written.load(Ordering::Acquire);
        let left = written.saturating_sub(running.seen + 1);
        if left > 0 {
            self.tell(format!(
                "is stopped {left} events before the end of the log: the next start goes on there"
            ));
        }
        self.unsent = running.seen + 1;
        Ok(0)
    }

    /// Counts a transaction that is in the topic.
    fn count(&self, sent: &Transaction) {
        self.counts.sent.increment(sent.messages);
        self.counts.gone.increment(sent.gone);
    }

    /// Sets the lag, which grows while the topic cannot be written.
    fn count_lag(&self) {
        let running = self.running.as_ref();
        let next = running.map_or(self.unsent, |running| running.seen + 1);
        let written = self.source.log.written.load(Ordering::Acquire);
        self.counts.lag.set(written.saturating_sub(next));
    }
}

/// Returns a function that adds messages to the transaction, which begins with the first one.
fn putter<'a, T: Topic>(
    topic: &'a mut T,
    pending: &'a mut Transaction,
) -> impl FnMut(&Message<'_>) -> Result<(), TopicError> + 'a {
    |message| {
        if pending.messages == 0 {
            topic.begin()?;
        }
        pending.messages += 1;
        pending.end.pass(message);
        topic.put(message)
    }
}

impl Running {
    /// Reads events into the transaction.
    fn read<T: Topic>(&mut self, topic: &mut T) -> Result<usize, SinkError> {
        let Self {
            reader,
            form,
            held,
            seen,
            pending,
            ..
        } = self;
        let last = held.last.unwrap_or(0);
        let mut done: Result<(), TopicError> = Ok(());
        let read = reader.read(TURN, |delivery| {
            if done.is_err() {
                return;
            }
            done = match delivery {
                Delivery::Event(event, table) => {
                    *seen = event.number;
                    let is_new = event.number > last;
                    form.event(event, table, is_new, &mut putter(topic, pending))
                }
                Delivery::Lost { last: until, .. } if until <= last => {
                    *seen = until;
                    Ok(())
                }
                Delivery::Lost { first, last: until } => {
                    *seen = until;
                    let first = first.max(last + 1);
                    pending.gone += until - first + 1;
                    form.lost(first, until, &mut putter(topic, pending))
                }
                Delivery::Restart if *seen == last && held.restarts > 0 => {
                    held.restarts -= 1;
                    Ok(())
                }
                Delivery::Restart => form.restart(*seen, &mut putter(topic, pending)),
                Delivery::End(_) | Delivery::Watermark(_) => Ok(()),
            };
        })?;
        done?;
        // A read ends where another run begins.
        form.begin_run(reader.run(), reader.directory())?;
        Ok(read)
    }
}

impl<T: Topic + Send> Agent for KafkaSink<T> {
    fn name(&self) -> &str {
        "kafka"
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        let mut read = 0;
        if !self.retry.waits(now) {
            self.next = now.mono + PACE;
            match self.turn(now.mono, false) {
                Ok(count) => {
                    self.retry.succeeded();
                    read = count;
                }
                Err(error) => self.fail(&error, now),
            }
        }
        self.count_lag();
        Ok(read)
    }

    /// Sends the rest of the log, if the topic accepts it in time. The next start goes on behind
    /// what was sent.
    fn on_close(&mut self, now: Now) {
        let begun = Instant::now();
        while self.running.is_some() {
            let is_end = self.source.log.writer.strong_count() == 0;
            let outcome = match begun.elapsed() < self.drain {
                true => self.turn(now.mono, is_end),
                false => self.leave(),
            };
            match outcome {
                Ok(0) if is_end => break,
                Ok(0) => std::thread::sleep(LOOK),
                Ok(_) => {}
                Err(error) => self.fail(&error, now),
            }
        }
        self.count_lag();
        self.topic.close();
    }

    fn next_timer(&self) -> Option<u64> {
        Some(self.retry.at.unwrap_or(self.next))
    }
}

impl<T: Topic> KafkaSink<T> {
    fn fail(&mut self, error: &SinkError, now: Now) {
        self.topic.close();
        self.running = None;
        self.counts.errors.increment(1);
        if let SinkError::Ahead { last, .. } = error {
            self.refused = Some(*last);
        }
        let age = match error {
            SinkError::Topic(TopicError::Blocked(open)) => open.age.as_secs(),
            _ => 0,
        };
        self.counts.blocked.set(age);
        if self.retry.failed(now) {
            self.is_silent = true;
            self.tell(error.to_string());
        }
    }
}
