//! Consumers: sessions that receive the fan-out and check it.

use std::net::SocketAddr;
use std::time::Duration;

use fanfare_engine::stop::Stop;
use fanfare_fix::codec::Message;
use fanfare_fix::session::SECOND;
use fanfare_fix::tag::FANOUT_ID;
use fanfare_wire::int;

use super::LoadError;
use super::order::{OrderCheck, OrderCounts, Reached};
use super::progress::Progress;
use super::sessions::{Refused, SessionOptions, Sessions, Task};
use crate::figures::{Figures, rate};

/// The sleep between two reads. A thread that sleeps outside of the poller is not woken by each
/// delivery, which would cost the gateway more than the delivery itself, and reads in batches.
const PAUSE: Duration = Duration::from_millis(10);
/// The bytes per session in one read after which the next follows at once: the load is heavy, and
/// the kernel's buffers would fill in a pause.
const HEAVY: usize = 8 << 10;
/// The time after the last expected message in which an excess one would come.
const GRACE: u64 = SECOND / 5;
/// The time after the last mark that a session lacked at the end of the run, in which a further one
/// would come.
const BEHIND: u64 = 2 * SECOND;
/// `Text(58)`.
const TEXT: u32 = 58;

/// The options of consumers.
#[derive(Debug, Clone)]
pub struct ConsumerOptions {
    /// The gateway's port for consumers.
    pub address: SocketAddr,
    /// Sessions.
    pub clients: usize,
    /// The prefix of CompIDs, followed by a number.
    pub name: String,
    /// The number of the first CompID.
    pub first: usize,
    /// The interval of progress, in messages of all sessions together; 0 is never.
    pub progress: u64,
    /// The number of messages of all sessions together to stop after.
    pub messages: Option<u64>,
    /// Whether the first mark of each producer must be its number 1: the consumers log on first.
    pub from_start: bool,
}

impl ConsumerOptions {
    /// Returns the options of `clients` sessions C1, C2 … of FIX.4.4, with progress every 1,000
    /// messages, until stopped.
    pub fn new(address: SocketAddr, clients: usize) -> Self {
        Self {
            address,
            clients,
            name: "C".to_owned(),
            first: 1,
            progress: 1_000,
            messages: None,
            from_start: false,
        }
    }
}

/// The results of the consumers.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsumerReport {
    /// Application messages of all sessions, except the News(B) by which the gateway announces
    /// missing ones.
    pub received: u64,
    /// Messages without a mark.
    pub unmarked: u64,
    /// Messages that the gateway announced as missing, of all sessions.
    pub told_missing: u64,
    /// News(B) that announce missing messages without a number.
    pub told_unknown: u64,
    /// The results of the check of the marks, all sessions together. `missing` includes the last
    /// marks, or all, that a session has not received although another one has.
    pub order: OrderCounts,
    /// Fewest and most messages of a session: equal unless something was lost.
    pub per_session: (u64, u64),
    /// Sessions that ended before the run did.
    pub ended: usize,
    /// Session and reason of the first that ended.
    pub first_ended: Option<(String, String)>,
    /// Sessions that could not log on.
    pub refused: usize,
    /// Expected messages that have not come: of `ConsumerOptions::messages`.
    pub short: u64,
    /// Messages between the logons and the logouts: those of the rate.
    pub timed: u64,
    /// Seconds from the first to the last of them.
    pub seconds: f64,
}

impl ConsumerReport {
    /// Returns whether nothing was lost, repeated or out of order, and every session logged on and
    /// stayed up.
    pub fn is_clean(&self) -> bool {
        let told = self.told_missing > 0 || self.told_unknown > 0;
        self.order.is_clean() && self.ended + self.refused == 0 && self.short == 0 && !told
    }

    /// Returns messages per second, from the first to the last between the logons and the logouts;
    /// 0 for fewer than two.
    pub fn rate(&self) -> f64 {
        rate(self.timed, self.seconds)
    }

    /// Returns the figures of `fanfare fanout consumers`.
    pub fn figures(&self) -> Figures {
        let mut figures = Figures::new("fanout consumers");
        figures.count("received", self.received);
        figures.add("rate_per_s", self.rate());
        figures.count("per_session_min", self.per_session.0);
        figures.count("per_session_max", self.per_session.1);
        figures.count("missing", self.order.missing);
        figures.count("told_missing", self.told_missing);
        figures.count("told_unknown", self.told_unknown);
        figures.count("reordered", self.order.reordered);
        figures.count("duplicates", self.order.duplicates);
        figures.count("unreadable_marks", self.order.unreadable);
        figures.count("unmarked", self.unmarked);
        figures.count("short", self.short);
        figures.count("sessions_ended", self.ended as u64);
        figures.count("sessions_refused", self.refused as u64);
        figures.set_ok(self.is_clean());
        figures
    }
}

/// Consumers' sessions, all logged on.
pub struct Consumers {
    options: ConsumerOptions,
    sessions: Sessions<Tally>,
    due: Due,
}

/// The marks that all sessions should have.
#[derive(Default)]
struct Due {
    /// The last ones of any session when all were logged on: a session may have logged on after
    /// them. None are in it if the first number of each producer is due.
    from: Option<Reached>,
    /// The last ones of any session when the run was over.
    to: Option<Reached>,
    /// The fewest that the sessions have lacked since then.
    lacking: u64,
    /// The time until which these are waited for.
    until: u64,
}

/// The counts so far.
#[derive(Default)]
struct Tally {
    received: u64,
    unmarked: u64,
    told_missing: u64,
    told_unknown: u64,
    /// Bytes of application messages in this read.
    bytes: usize,
    per_client: Vec<(u64, OrderCheck)>,
}

impl Consumers {
    /// Connects all sessions and logs them on. Those that are [refused](Self::refused) are omitted.
    ///
    /// # Errors
    /// [`LoadError`] of the first that cannot connect, if none can log on, or if `stop` is raised.
    pub fn connect(options: &ConsumerOptions, stop: &Stop) -> Result<Self, LoadError> {
        let who = SessionOptions::new(options.address, &options.name, options.first, 4 << 10);
        let checks = (0..options.clients).map(|_| (0, OrderCheck::new(options.from_start)));
        let tally = Tally {
            per_client: checks.collect(),
            ..Tally::default()
        };
        let mut sessions = Sessions::connect(&who, 0..options.clients, tally, stop)?;
        let clients = sessions.members().count();
        if let (0, Some((session, why))) = (clients, sessions.refused().first.clone()) {
            return Err(LoadError::Logon { session, why });
        }
        let options = ConsumerOptions {
            clients,
            ..options.clone()
        };
        Ok(Self {
            options,
            sessions,
            due: Due::default(),
        })
    }

    /// Returns the number of sessions logged on.
    pub const fn sessions(&self) -> usize {
        self.options.clients
    }

    /// Returns the sessions that could not log on.
    pub const fn refused(&self) -> &Refused {
        self.sessions.refused()
    }

    /// Receives until `stop` is raised, until the expected number has come, or until all sessions
    /// have ended. Then waits for sessions that lack marks which others have, and logs out.
    /// `progress` is called with the total each time it passes a multiple of
    /// [`ConsumerOptions::progress`].
    ///
    /// # Errors
    /// The host failed. Sessions that end are not an error: the report has them.
    pub fn run(
        mut self,
        stop: &Stop,
        progress: &mut dyn FnMut(u64),
    ) -> Result<ConsumerReport, LoadError> {
        let begun = self.sessions.task().received;
        let (mut first, mut last, mut timed) = (0, 0, 0);
        let mut done_at = None;
        let mut progress = Progress::new(self.options.progress, progress);
        while self.sessions.ended() < self.options.clients {
            let before = self.sessions.task().received;
            self.sessions.task().bytes = 0;
            self.sessions.read(self.options.clients)?;
            self.begin();
            let (now, received) = (self.sessions.now().mono, self.sessions.task().received);
            if received > before {
                first = if timed == 0 { now } else { first };
                (last, timed) = (now, received - begun);
                progress.pass(received);
            }
            if self
                .options
                .messages
                .is_some_and(|wanted| received >= wanted)
            {
                done_at = done_at.or(Some(now + GRACE));
            }
            let is_over = stop.is_raised() || done_at.is_some_and(|end| now >= end);
            if is_over && self.is_level(now) {
                break;
            }
            if self.sessions.task().bytes < HEAVY * self.options.clients {
                std::thread::sleep(PAUSE);
            }
        }
        let (ended, first_ended) = (self.sessions.ended(), self.sessions.first_ended());
        let there = self.there();
        self.sessions.close();
        progress.pass(self.sessions.task().received);
        let lacking = self.lacking(&there);
        let seconds = last.saturating_sub(first) as f64 / 1e9;
        Ok(self.report((ended, first_ended), lacking, (timed, seconds)))
    }

    /// Notes the marks so far, once: sessions may have logged on after them. What the first one
    /// had not read when the last one logged on is read by then.
    fn begin(&mut self) {
        if self.due.from.is_some() {
            return;
        }
        let tally = self.sessions.task();
        for (_, check) in &mut tally.per_client {
            check.forget_restarts();
        }
        self.due.from = Some(match self.options.from_start {
            true => Reached::default(),
            false => tally.reached(),
        });
    }

    /// Returns whether all sessions have the marks that any had at the first call, or have received
    /// no further ones of them for a while.
    fn is_level(&mut self, now: u64) -> bool {
        if self.due.to.is_none() {
            self.due.to = Some(self.sessions.task().reached());
            self.due.lacking = u64::MAX;
        }
        let there = self.there();
        let lacking = self.lacking(&there);
        if lacking < self.due.lacking {
            (self.due.lacking, self.due.until) = (lacking, now + BEHIND);
        }
        lacking == 0 || now >= self.due.until
    }

    /// Returns the sessions that have not ended.
    fn there(&mut self) -> Vec<usize> {
        let members = self.sessions.members();
        let there = members.filter(|member| !member.has_ended());
        there.map(|member| member.key.index()).collect()
    }

    /// Returns how many marks these sessions lack.
    fn lacking(&mut self, there: &[usize]) -> u64 {
        let (Some(from), Some(to)) = (&self.due.from, &self.due.to) else {
            return 0;
        };
        let all = &self.sessions.task().per_client;
        let checks = there.iter().filter_map(|index| all.get(*index));
        let lacking = checks.map(|(_, check)| to.lacking(check, from));
        lacking.fold(0, u64::saturating_add)
    }

    fn report(
        mut self,
        (ended, first_ended): (usize, Option<(String, String)>),
        lacking: u64,
        (timed, seconds): (u64, f64),
    ) -> ConsumerReport {
        let let_in: Vec<usize> = self.sessions.members().map(|m| m.key.index()).collect();
        let refused = self.sessions.refused().count;
        let Tally {
            received,
            unmarked,
            told_missing,
            told_unknown,
            ref per_client,
            ..
        } = *self.sessions.task();
        let mut order = OrderCounts::default();
        for (_, check) in per_client {
            order.add(check.counts());
        }
        order.missing = order.missing.saturating_add(lacking);
        let counts = || let_in.iter().filter_map(|i| Some(per_client.get(*i)?.0));
        let per_session = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        let short = self
            .options
            .messages
            .map_or(0, |wanted| wanted.saturating_sub(received));
        ConsumerReport {
            refused,
            received,
            unmarked,
            told_missing,
            told_unknown,
            order,
            per_session,
            ended,
            first_ended,
            short,
            timed,
            seconds,
        }
    }
}

impl Tally {
    /// Returns the last marks that any session has.
    fn reached(&self) -> Reached {
        Reached::of(self.per_client.iter().map(|(_, check)| check))
    }
}

impl Task for Tally {
    fn on_message(&mut self, index: usize, message: &Message<'_>) {
        self.bytes += message.bytes().len();
        match missing(message) {
            Some(Some(count)) => {
                self.told_missing = self.told_missing.saturating_add(count);
                return;
            }
            Some(None) => return self.told_unknown += 1,
            None => self.received += 1,
        }
        let Some((count, check)) = self.per_client.get_mut(index) else {
            return;
        };
        *count += 1;
        match message.get(FANOUT_ID) {
            Some(mark) => check.mark(mark),
            None => self.unmarked += 1,
        }
    }
}

/// Returns the number of messages that a News(B) of the gateway announces as missing, or
/// `Some(None)` if it has no number; `None` for any other message.
fn missing(message: &Message<'_>) -> Option<Option<u64>> {
    if message.msg_type() != b"B" {
        return None;
    }
    let mut words = message.get(TEXT)?.split(|byte| *byte == b' ');
    words.next()?.strip_prefix(b"missing=")?;
    let count = words.find_map(|word| word.strip_prefix(b"count="));
    Some(count.and_then(int::parse_u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_fix::codec::Decoder;

    fn tally(messages: &[&str]) -> Tally {
        let mut tally = Tally {
            per_client: vec![(0, OrderCheck::new(true))],
            ..Tally::default()
        };
        for message in messages {
            let mut bytes = format!("8=FIX.4.4|9={}|{message}", message.len()).replace('|', "\x01");
            let sum = bytes.bytes().fold(0, u8::wrapping_add);
            bytes.push_str(&format!("10={sum:03}\x01"));
            let mut decoder = Decoder::new();
            tally.on_message(0, &decoder.decode(bytes.as_bytes()).unwrap());
        }
        tally
    }

    #[test]
    fn what_the_gateway_says_is_missing_is_no_message_without_a_mark() {
        let tally = tally(&[
            "35=W|20001=P1-1|",
            "35=B|148=Messages missing|33=1|58=missing=slow-consumer count=50 first=2 last=51|",
            "35=B|33=1|58=missing=undecodable count=unknown from=20261122-10:00:00.000000|",
            "35=B|33=1|58=missing=feed-gap count=7 first=1 last=7|",
            "35=B|148=Rates|33=1|58=unchanged|",
            "35=W|55=A|",
        ]);
        assert_eq!((tally.told_missing, tally.told_unknown), (57, 1));
        assert_eq!((tally.received, tally.unmarked), (3, 2));
    }

    #[test]
    fn a_number_beyond_all_is_the_most_that_is_counted() {
        let most = format!("35=B|33=1|58=missing=feed-gap count={}|", u64::MAX);
        let tally = tally(&[&most, &most]);
        assert_eq!(tally.told_missing, u64::MAX);
    }
}
