//! The kills in one folder: a process is started, killed and checked, again and again.

use super::child::{HAD, SENT, durability, id, options};
use super::counterparty::Counterparty;
use super::victim::{Report, Victim};
use fanfare_engine::journal::{Journal, Snapshot, folder_for};
use fanfare_fix::codec::Decoder;
use fanfare_fix::session::{Kind, MessageStore};
use fanfare_fix::tag;
use fanfare_wire::UtcTimestamp;
use fastrand::Rng;
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The totals of all kills.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) kills: u64,
    pub(crate) persisted: u64,
    pub(crate) received: u64,
    pub(crate) resent: u64,
    pub(crate) delivered: u64,
    pub(crate) before_logon: u64,
    pub(crate) torn: u64,
    pub(crate) segments: u64,
}

impl Totals {
    pub(crate) fn add(self, other: Self) -> Self {
        Self {
            kills: self.kills + other.kills,
            persisted: self.persisted + other.persisted,
            received: self.received + other.received,
            resent: self.resent + other.resent,
            delivered: self.delivered + other.delivered,
            before_logon: self.before_logon + other.before_logon,
            torn: self.torn + other.torn,
            segments: self.segments + other.segments,
        }
    }
}

/// The moment of the kill.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// This long after the start, whatever the process does then.
    After(Duration),
    /// When the process has reported this many messages.
    Persisted(usize),
    /// When this many messages have arrived over the wire.
    Received(usize),
    /// When everything has been requested again, and the process has resent this many messages.
    Resent(u64),
}

pub(crate) struct Lane {
    name: String,
    random: Rng,
    base: PathBuf,
    listener: TcpListener,
    durability: &'static str,
    party: Counterparty,
    /// The numbers of the counterparty's messages that the application had.
    had: BTreeSet<u64>,
    /// The next numbers out and in of the journal when it was last opened.
    next: (u64, u64),
}

/// The time in which a child must reach the moment of its kill.
const LIMIT: Duration = Duration::from_secs(60);
/// Messages to a process that has logged on, besides the occasional ones: on a busy machine its
/// moment may come before the first of those.
const GREETINGS: u32 = 4;
/// How many of the earlier messages are compared again after each kill; at the end all are.
const TAIL: u64 = 400;

impl Lane {
    pub(crate) fn new(seed: u64, folder: u64) -> Self {
        let mut random = Rng::with_seed(seed.wrapping_mul(0x1_0000_0001).wrapping_add(folder));
        let shm = PathBuf::from("/dev/shm");
        let base = if shm.is_dir() {
            shm
        } else {
            std::env::temp_dir()
        };
        let base = base.join(format!("fanfare-kills-{}-{folder}", std::process::id()));
        let _ = std::fs::remove_dir_all(&base);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let durabilities = ["none", "every", "5", "none"];
        Self {
            name: format!("seed {seed}, folder {folder}"),
            durability: durabilities[random.u64(..4) as usize],
            random,
            base,
            listener,
            party: Counterparty::new(),
            had: BTreeSet::new(),
            next: (1, 1),
        }
    }

    pub(crate) fn run(mut self, kills: u64, totals: &mut Totals) {
        for kill in 0..kills {
            let name = format!("{}, kill {kill}, {}", self.name, self.durability);
            let _named = Named(name);
            self.round(totals);
            totals.kills += 1;
        }
        self.check_all(totals);
    }

    /// Starts a process, kills it, and compares.
    fn round(&mut self, totals: &mut Totals) {
        let moment = match self.random.u64(..10) {
            0 | 1 => Moment::After(Duration::from_micros(self.random.u64(..12_000))),
            2..=5 => Moment::Persisted(1 + self.random.u64(..300) as usize),
            6 | 7 => Moment::Received(1 + self.random.u64(..200) as usize),
            _ => Moment::Resent(1 + self.random.u64(..200)),
        };
        self.party.start();
        let mut reports = Vec::new();
        let mut victim = Victim::start(&self.base, &self.listener, self.durability);
        self.watch(&mut victim, moment, &mut reports);
        victim.kill();
        reports.extend(victim.reports());
        while victim.read(self.party.received()) > 0 {}
        self.party.hear(self.next.0);
        // A connection that was not accepted was made by the killed process.
        while self.listener.accept().is_ok() {}
        totals.before_logon += u64::from(!self.party.is_logged_on);
        totals.received += self.party.seen.len() as u64;
        totals.resent += self.party.resent;
        self.check(&reports, totals);
    }

    /// Serves the process until the moment has come.
    fn watch(&mut self, victim: &mut Victim, moment: Moment, reports: &mut Vec<Report>) {
        let began = Instant::now();
        let again = matches!(moment, Moment::Resent(_));
        let (mut greeted, mut asked) = (false, false);
        loop {
            if victim.stream.is_none() {
                victim.accept(&self.listener);
            }
            let came = victim.read(self.party.received());
            self.party.hear(self.next.0);
            if self.party.is_logged_on && !greeted {
                greeted = true;
                (0..GREETINGS).for_each(|_| self.party.say());
            }
            if self.party.is_logged_on && again && !asked {
                asked = true;
                let last = self.party.known.len() as u64;
                let begin = 1 + self.random.u64(..1 + last);
                self.party.ask_for_resend(begin);
            } else if self.party.is_logged_on && self.random.u64(..8) == 0 {
                self.party.say();
            }
            let out = self.party.take_out();
            victim.write(&out);
            let fresh = victim.reports();
            let idle = came == 0 && fresh.is_empty();
            reports.extend(fresh);
            let is_now = match moment {
                Moment::After(time) => began.elapsed() >= time,
                Moment::Persisted(count) => reports.len() >= count,
                Moment::Received(count) => self.party.seen.len() >= count,
                Moment::Resent(count) => self.party.resent >= count || self.party.resend_done,
            };
            if is_now {
                return;
            }
            if idle {
                victim.check();
                assert!(began.elapsed() < LIMIT, "it hangs: {moment:?}");
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    }

    /// Opens the journal and compares it with the promises and the messages seen.
    fn check(&mut self, reports: &[Report], totals: &mut Totals) {
        let identity = id().to_string();
        let folder = folder_for(&self.base, &identity);
        let now = UtcTimestamp::from_nanos(1_795_168_800_000_000_000);
        let options = options(durability(self.durability));
        let (journal, recovery) = Journal::open(&folder, &identity, options, now).unwrap();
        assert_eq!((recovery.stretched, &recovery.loss), (0, &None));
        assert!(recovery.cut <= 1, "a kill leaves at most one: {recovery:?}");
        totals.torn += recovery.cut;
        let (out, expected) = (journal.next_sender(), journal.next_target());
        assert!(
            out >= self.next.0 && expected >= self.next.1,
            "numbers went back"
        );

        for report in reports.iter().filter(|report| report.what == SENT) {
            assert!(report.seq >= self.next.0, "{} was used before", report.seq);
            let stored = journal.first_from(report.seq).expect("it was promised");
            let found = (stored.seq, crc32fast::hash(stored.bytes));
            assert_eq!(found, (report.seq, report.crc), "it was promised");
            totals.persisted += 1;
        }
        if let Some(&last) = self.party.seen.last() {
            assert!(last < out, "{last} was sent, and {out} is next");
        }
        self.compare(&journal, self.next.0.saturating_sub(TAIL));
        self.check_delivery(reports, expected, totals);
        self.next = (out, expected);
    }

    /// Checks that each application message of the journal is unchanged, and that none seen is
    /// missing.
    fn compare(&mut self, journal: &Journal, from: u64) {
        let mut decoder = Decoder::new();
        let mut next = from;
        let mut stored = BTreeSet::new();
        while let Some(message) = journal.first_from(next) {
            let seq = message.seq;
            next = seq + 1;
            if message.kind == Kind::Admin {
                continue;
            }
            let decoded = decoder.decode(message.bytes).unwrap();
            assert_eq!(decoded.u64(tag::MSG_SEQ_NUM), Ok(seq));
            assert_eq!(
                decoded.get(tag::TEXT),
                Some(super::child::text(seq).as_bytes())
            );
            self.party.know(seq, message.bytes);
            stored.insert(seq);
        }
        for seq in self.party.known.range(from..).map(|(seq, _)| seq) {
            assert!(stored.contains(seq), "{seq} is lost");
        }
    }

    /// Checks that the application had each message that counts as received, exactly once.
    fn check_delivery(&mut self, reports: &[Report], expected: u64, totals: &mut Totals) {
        let mut before = 0;
        for report in reports.iter().filter(|report| report.what == HAD) {
            assert!(
                report.seq >= self.next.1,
                "{} came to the application twice",
                report.seq
            );
            assert!(
                report.seq <= expected,
                "{} does not count: {expected}",
                report.seq
            );
            assert!(report.seq > before, "{} after {before}", report.seq);
            before = report.seq;
            self.had.insert(report.seq);
            totals.delivered += 1;
        }
        for seq in self.party.sent.range(..expected) {
            assert!(self.had.contains(seq), "{seq} counts, and nobody had it");
        }
    }

    /// Checks everything at the end, and that the files are intact.
    fn check_all(&mut self, totals: &mut Totals) {
        let identity = id().to_string();
        let folder = folder_for(&self.base, &identity);
        let options = options(durability(self.durability));
        let now = UtcTimestamp::from_nanos(1_795_168_800_000_000_000);
        let (journal, recovery) = Journal::open(&folder, &identity, options, now).unwrap();
        assert!(recovery.is_unremarkable());
        self.compare(&journal, 0);
        journal.close().unwrap();
        let snapshot = Snapshot::take(&folder).unwrap();
        assert_eq!(snapshot.damages(), []);
        totals.segments += snapshot.segments().count() as u64;
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.base);
    }
}

/// Prints its place when the test fails.
struct Named(String);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("in {}", self.0);
        }
    }
}
