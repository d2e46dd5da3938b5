//! Producers: sessions that send on schedule, regardless of responses.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fanfare_engine::host::{Peers, SessionKey};
use fanfare_engine::stop::Stop;
use fanfare_fix::session::{SECOND, SendError, StoreError};
use fanfare_fix::tag::FANOUT_ID;

use super::LoadError;
use super::sessions::{Refused, SessionOptions, Sessions, Task};
use super::template::Template;
use crate::figures::{Figures, rate};
use crate::histogram::Histogram;

/// The time from the last logon to the first message.
const LEAD: u64 = SECOND / 50;
/// The longest sleep between two polls of the connections.
const LONGEST_SLEEP: u64 = SECOND / 100;
/// The sleep while a session accepts no more, or until the kernel has taken the rest.
const PAUSE: Duration = Duration::from_micros(100);
/// The messages put into sessions before the sessions write, when behind the schedule.
const BATCH: usize = 512;
/// The least share of the requested rate that counts as achieved.
const ENOUGH: f64 = 0.98;

/// The options of producers.
#[derive(Debug, Clone)]
pub struct ProducerOptions {
    /// The gateway's port for producers.
    pub address: SocketAddr,
    /// Sessions.
    pub clients: usize,
    /// Messages that each session sends.
    pub messages: u64,
    /// Messages per second of each session; infinity for as fast as the gateway takes them.
    pub rate: f64,
    /// One in this number of messages, over all sessions, is marked for fan-out; 0 marks none.
    pub fanout: u64,
    /// The prefix of CompIDs, and of the producer's name in the marks, followed by a number.
    pub name: String,
    /// The number of the first CompID.
    pub first: usize,
    /// Threads over which the sessions are distributed.
    pub threads: usize,
}

impl ProducerOptions {
    /// Returns the options of `clients` sessions P1, P2 … of FIX.4.4 on one thread, 1,000 messages
    /// each at 100 per second, one in `clients` marked.
    pub fn new(address: SocketAddr, clients: usize) -> Self {
        Self {
            address,
            clients,
            messages: 1_000,
            rate: 100.0,
            fanout: clients as u64,
            name: "P".to_owned(),
            first: 1,
            threads: 1,
        }
    }

    /// Returns when message `n` (from 0, over all sessions in round-robin order) is due:
    /// nanoseconds after the start. Evenly spread, so that the gateway gets a steady rate.
    fn intended(&self, n: u64) -> u64 {
        (n as f64 / (self.rate * self.clients as f64) * 1e9) as u64
    }

    /// Returns whether message `n` (from 0, over all sessions) is marked: one in each `fanout`
    /// consecutive ones, not always at the same place. Otherwise with as many sessions as `fanout`
    /// all marks would come from one of them.
    fn is_marked(&self, n: u64) -> bool {
        let Some(block) = n.checked_div(self.fanout) else {
            return false;
        };
        n % self.fanout == self.fanout - 1 - block % self.fanout
    }
}

/// The results of the producers.
#[derive(Debug, Clone)]
pub struct ProducerReport {
    /// Messages due from all sessions that logged on.
    pub wanted: u64,
    /// Sessions that could not log on.
    pub refused: usize,
    /// Messages sent.
    pub sent: u64,
    /// Marked messages sent.
    pub marked: u64,
    /// The requested rate, messages per second of all sessions together.
    pub wanted_rate: f64,
    /// Seconds from the first to the last message.
    pub seconds: f64,
    /// Nanoseconds from the due time to the actual time of each message.
    pub lag: Histogram,
}

impl ProducerReport {
    /// Returns the achieved rate, messages per second of all sessions together; 0 for fewer than
    /// two messages.
    pub fn rate(&self) -> f64 {
        rate(self.sent, self.seconds)
    }

    /// Returns a sentence if the requested rate was missed: the load was lower than requested.
    pub fn warning(&self) -> Option<String> {
        let (rate, wanted) = (self.rate(), self.wanted_rate);
        (self.sent > 1 && wanted.is_finite() && rate < ENOUGH * wanted).then(|| {
            format!(
                "the producers reached {rate:.0} of {wanted:.0} messages/s: this machine or the \
                 gateway does not take the rate asked for"
            )
        })
    }

    /// Returns the figures of `fanfare fanout producers`.
    pub fn figures(&self) -> Figures {
        let mut figures = Figures::new("fanout producers");
        figures.count("sent", self.sent);
        figures.count("marked", self.marked);
        figures.add("rate_per_s", self.rate());
        figures.add("wanted_rate_per_s", self.wanted_rate);
        figures.add("lag_p50_us", self.lag.micros(50.0));
        figures.add("lag_p99_us", self.lag.micros(99.0));
        figures.add("lag_max_us", self.lag.micros(100.0));
        figures.count("sessions_refused", self.refused as u64);
        figures.set_ok(self.is_whole());
        figures
    }

    /// Returns whether all requested messages were sent.
    pub fn is_whole(&self) -> bool {
        self.sent == self.wanted && self.refused == 0
    }
}

/// Producers' sessions, all logged on.
pub struct Producers {
    options: ProducerOptions,
    /// The sessions of one thread each.
    lines: Vec<Sessions<Line>>,
    refused: Refused,
}

impl Producers {
    /// Connects all sessions and logs them on. Those that are [refused](Self::refused) are omitted,
    /// and the others rotate without them.
    ///
    /// # Errors
    /// [`LoadError`] of the first that cannot connect, if none can log on, or if `stop` is raised.
    pub fn connect(
        options: &ProducerOptions,
        template: Template,
        stop: &Stop,
    ) -> Result<Self, LoadError> {
        let max_send = template.body().len() + 1_024;
        let who = SessionOptions::new(options.address, &options.name, options.first, max_send);
        let template = Arc::new(template);
        let threads = options.threads.clamp(1, options.clients.max(1));
        let connect = |thread| {
            let line = Line::new(options.clone(), Arc::clone(&template));
            let numbers = (thread..options.clients).step_by(threads);
            Sessions::connect(&who, numbers, line, stop)
        };
        let mut lines = (0..threads).map(connect).collect::<Result<Vec<_>, _>>()?;
        let mut refused = Refused::default();
        lines.iter().for_each(|line| refused.add(line.refused()));
        let clients = close_ranks(&mut lines);
        if let (0, Some((session, why))) = (clients, refused.first.clone()) {
            return Err(LoadError::Logon { session, why });
        }
        let options = ProducerOptions {
            clients,
            ..options.clone()
        };
        Ok(Self {
            options,
            lines,
            refused,
        })
    }

    /// Returns the number of sessions logged on.
    pub fn sessions(&self) -> usize {
        self.options.clients
    }

    /// Returns the sessions that could not log on.
    pub fn refused(&self) -> &Refused {
        &self.refused
    }

    /// Sends all messages on schedule, or until `stop` is raised, and logs out.
    ///
    /// # Errors
    /// [`LoadError`] when a session ends during the run: the load is no longer the requested one.
    pub fn run(self, stop: &Stop) -> Result<ProducerReport, LoadError> {
        let Self {
            options,
            mut lines,
            refused,
        } = self;
        let start = lines.first_mut().map_or(0, |line| line.now().mono) + LEAD;
        let results = thread::scope(|scope| {
            let threads: Vec<_> = lines
                .into_iter()
                .map(|line| scope.spawn(move || run(line, start, stop)))
                .collect();
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect::<Vec<_>>()
        });
        let mut all = Sent::default();
        for result in results {
            all.merge(&result?);
        }
        Ok(ProducerReport {
            wanted: options.messages * options.clients as u64,
            refused: refused.count,
            sent: all.sent,
            marked: all.marked,
            wanted_rate: options.rate * options.clients as f64,
            seconds: all.last.saturating_sub(all.first) as f64 / 1e9,
            lag: all.lag,
        })
    }
}

/// Numbers the sessions that logged on without gaps, in their old order. Returns their number.
fn close_ranks(lines: &mut [Sessions<Line>]) -> usize {
    let mut numbers = Vec::new();
    for line in &mut *lines {
        numbers.extend(line.members().map(|member| member.number));
    }
    numbers.sort_unstable();
    for line in lines {
        let turns = line.members().map(|member| Turn {
            key: member.key,
            name: member.name.clone(),
            number: numbers.partition_point(|&number| number < member.number) as u64,
            marks: 0,
        });
        line.task().turns = turns.collect();
        line.task().options.clients = numbers.len();
    }
    numbers.len()
}

/// The results of one thread.
#[derive(Default)]
struct Sent {
    sent: u64,
    marked: u64,
    first: u64,
    last: u64,
    lag: Histogram,
}

impl Sent {
    fn count(&mut self, marked: bool, intended: u64, now: u64) {
        self.first = if self.sent == 0 { now } else { self.first };
        self.last = now;
        self.sent += 1;
        self.marked += u64::from(marked);
        self.lag.record(now.saturating_sub(intended));
    }

    fn merge(&mut self, other: &Self) {
        if other.sent > 0 {
            self.first = if self.sent == 0 {
                other.first
            } else {
                self.first.min(other.first)
            };
        }
        self.last = self.last.max(other.last);
        self.sent += other.sent;
        self.marked += other.marked;
        self.lag.merge(&other.lag);
    }
}

/// Runs the sessions of one thread until all is sent, or until `stop` is raised, and logs them out.
fn run(mut sessions: Sessions<Line>, start: u64, stop: &Stop) -> Result<Sent, LoadError> {
    sessions.task().start = Some(start);
    while !stop.is_raised() {
        sessions.turn()?;
        if let Some((session, why)) = sessions.first_ended() {
            return Err(LoadError::Ended { session, why });
        }
        if let Some((session, why)) = sessions.task().failed.take() {
            return Err(LoadError::Send { session, why });
        }
        match sessions.task().progress {
            Progress::Done { flushed: true } => break,
            Progress::Behind => {}
            Progress::Blocked | Progress::Done { .. } => thread::sleep(PAUSE),
            Progress::Until(due) => {
                let wait = due.saturating_sub(sessions.now().mono).min(LONGEST_SLEEP);
                thread::sleep(Duration::from_nanos(wait));
            }
        }
    }
    Ok(std::mem::take(&mut sessions.close().sent))
}

/// The sessions of one thread, with their part of the schedule.
struct Line {
    options: ProducerOptions,
    template: Arc<Template>,
    /// The start of the schedule; nothing is sent before it is known.
    start: Option<u64>,
    turns: Vec<Turn>,
    /// The next message: its round, and the index of its session.
    round: u64,
    index: usize,
    sent: Sent,
    /// The mark written last.
    mark: Vec<u8>,
    progress: Progress,
    /// The session that cannot send, and the reason.
    failed: Option<(String, String)>,
}

/// One of the sessions in rotation.
struct Turn {
    key: SessionKey,
    name: String,
    /// The session's number among all sessions of the run, from 0.
    number: u64,
    /// Marks so far.
    marks: u64,
}

/// The progress in the schedule.
enum Progress {
    /// The next message is due at this time.
    Until(u64),
    /// A session accepts no more for now.
    Blocked,
    /// More is due already.
    Behind,
    /// All messages are sent; `flushed` tells whether the kernel has them.
    Done { flushed: bool },
}

impl Task for Line {
    /// Puts due messages into their sessions, at most a batch, which the sessions then write.
    fn on_turn(&mut self, peers: &mut Peers<'_>) -> usize {
        let Some(start) = self.start else {
            return 0;
        };
        let now = peers.now().mono;
        for count in 0..BATCH {
            if self.round >= self.options.messages || self.turns.is_empty() {
                let flushed = self.turns.iter().all(|turn| peers.unsent(turn.key) == 0);
                self.progress = Progress::Done { flushed };
                return count;
            }
            let number = self.turns.get(self.index).map_or(0, |turn| turn.number);
            let n = self.round * self.options.clients as u64 + number;
            let due = start + self.options.intended(n);
            if due > now {
                self.progress = Progress::Until(due);
                return count;
            }
            if !self.send(peers, self.options.is_marked(n)) {
                self.progress = Progress::Blocked;
                return count;
            }
            self.sent.count(self.options.is_marked(n), due, now);
            self.index += 1;
            if self.index == self.turns.len() {
                (self.index, self.round) = (0, self.round + 1);
            }
        }
        self.progress = Progress::Behind;
        BATCH
    }
}

impl Line {
    fn new(options: ProducerOptions, template: Arc<Template>) -> Self {
        Self {
            options,
            template,
            start: None,
            turns: Vec::new(),
            round: 0,
            index: 0,
            sent: Sent::default(),
            mark: Vec::new(),
            progress: Progress::Behind,
            failed: None,
        }
    }

    /// Passes the next message to its session. Returns whether the session accepted it.
    fn send(&mut self, peers: &mut Peers<'_>, marked: bool) -> bool {
        let Some(turn) = self.turns.get_mut(self.index) else {
            return false;
        };
        let Some(mut peer) = peers.get(turn.key) else {
            return false;
        };
        let mark = &mut self.mark;
        if marked {
            write_mark(mark, &turn.name, turn.marks + 1);
        }
        let result = peer.send(self.template.msg_type(), |fields| {
            fields.raw(self.template.body());
            if marked {
                fields.field(FANOUT_ID, mark);
            }
        });
        match result {
            Ok(_) => {
                turn.marks += u64::from(marked);
                true
            }
            Err(SendError::Store(StoreError::Full)) => false,
            Err(error) => {
                self.failed = Some((turn.name.clone(), error.to_string()));
                false
            }
        }
    }
}

/// Writes the mark of a producer's message: its name and the number of the mark.
fn write_mark(mark: &mut Vec<u8>, producer: &str, number: u64) {
    mark.clear();
    // Writing to a Vec cannot fail.
    let _ = write!(mark, "{producer}-{number}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(clients: usize, fanout: u64) -> ProducerOptions {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        ProducerOptions {
            fanout,
            ..ProducerOptions::new(address, clients)
        }
    }

    #[test]
    fn one_message_in_each_block_is_marked_and_all_sessions_get_marks() {
        let options = options(50, 50);
        let mut by_session = [0; 50];
        for block in 0..100 {
            let marked: Vec<u64> = (block * 50..(block + 1) * 50)
                .filter(|n| options.is_marked(*n))
                .collect();
            assert_eq!(marked.len(), 1);
            by_session[(marked[0] % 50) as usize] += 1;
        }
        assert_eq!(by_session, [2; 50]);
        assert!(
            !ProducerOptions {
                fanout: 0,
                ..options
            }
            .is_marked(7)
        );
    }

    #[test]
    fn the_schedule_is_even_over_all_sessions() {
        let options = options(50, 50);
        assert_eq!(options.intended(0), 0);
        assert_eq!(options.intended(1), 200_000);
        assert_eq!(options.intended(5_000), SECOND);
        let fast = ProducerOptions {
            rate: f64::INFINITY,
            ..options
        };
        assert_eq!(fast.intended(1_000_000), 0);
    }

    #[test]
    fn marks_are_name_and_number() {
        let mut mark = Vec::new();
        write_mark(&mut mark, "P12", 345);
        assert_eq!(mark, b"P12-345");
        // The longest names that the command accepts stay distinct.
        write_mark(&mut mark, &"x".repeat(90), u64::MAX);
        assert_eq!(
            mark,
            format!("{}-18446744073709551615", "x".repeat(90)).as_bytes()
        );
    }
}
