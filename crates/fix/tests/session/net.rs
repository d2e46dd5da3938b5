//! Two sessions on a bad network, under virtual time: connections are lost, bytes are late and
//! cut anywhere, messages come twice or in the wrong order, either side restarts with the store
//! that survived. In the end each application message has been delivered once, in order.
//!
//! `FANFARE_SEEDS=10000` runs more seeds, `FANFARE_SEED=7` just that one. Where the stores are, a
//! [`Shelf`] says: the tests of the engine run the same storm over journals.

use std::collections::VecDeque;

use fanfare_fix::session::{
    Config, Event, Limits, MessageStore, Now, Rate, SECOND, Scratch, SendLimit, Session, SessionId,
    Version,
};
use fanfare_fix::tag;
use fanfare_wire::UtcTimestamp;
use fastrand::Rng;

use crate::fields::first_message;

const MILLIS: u64 = SECOND / 1_000;
/// How long the network is bad.
const STORM: u64 = 60 * SECOND;
/// When everything has to be delivered.
const END: u64 = 4_000 * SECOND;

/// Where a side has its store, and finds it again when it restarts.
pub(crate) trait Shelf {
    type Store: MessageStore;

    /// The shelf of one side (0 or 1) of the run with this seed.
    fn new(seed: u64, side: usize) -> Self;

    /// A fresh store.
    fn open(&mut self) -> Self::Store;

    /// The store as it is after a restart.
    fn reopen(&mut self, before: Self::Store) -> Self::Store;
}

/// Runs `default_seeds` seeds, or the number in the environment.
pub(crate) fn storm<S: Shelf>(default_seeds: u64) {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let seeds = match number("FANFARE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("FANFARE_SEEDS").unwrap_or(default_seeds),
    };
    let lanes = std::thread::available_parallelism().map_or(1, usize::from);
    let run_lane = |lane| {
        let mut totals = Totals::default();
        for seed in seeds.clone().skip(lane).step_by(lanes) {
            let outcome = std::panic::catch_unwind(|| Net::<S>::new(seed).run());
            match outcome {
                Ok(Ok(run)) => totals.add(&run),
                Ok(Err(failure)) => panic!("FANFARE_SEED={seed}: {failure}"),
                Err(_) => panic!("FANFARE_SEED={seed}: see above"),
            }
        }
        totals
    };
    let totals = std::thread::scope(|scope| {
        let run_lane = &run_lane;
        let lanes: Vec<_> = (0..lanes)
            .map(|lane| scope.spawn(move || run_lane(lane)))
            .collect();
        let mut totals = Totals::default();
        lanes
            .into_iter()
            .for_each(|lane| totals.add(&lane.join().unwrap()));
        totals
    });
    println!("{totals:?}");
    // The storm has to have been one.
    if totals.runs >= 100 {
        let Totals {
            connections,
            duplicates,
            restarts,
            crashes,
            gaps,
            ..
        } = totals;
        for (what, count) in [
            ("connections", connections),
            ("duplicates", duplicates),
            ("restarts", restarts),
            ("crashes", crashes),
            ("gaps", gaps),
        ] {
            assert!(count > totals.runs / 2, "too few {what}: {totals:?}");
        }
    }
}

#[derive(Debug, Default)]
struct Totals {
    runs: u64,
    connections: u64,
    messages: u64,
    duplicates: u64,
    restarts: u64,
    crashes: u64,
    gaps: u64,
}

impl Totals {
    fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.connections += other.connections;
        self.messages += other.messages;
        self.duplicates += other.duplicates;
        self.restarts += other.restarts;
        self.crashes += other.crashes;
        self.gaps += other.gaps;
    }
}

struct Random(Rng);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0.u64(..limit)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }
}

/// One side.
struct Side<S: Shelf> {
    config: Config,
    acceptor: bool,
    shelf: S,
    /// Taken only to be restarted.
    session: Option<Session<S::Store>>,
    connected: bool,
    /// Received and not yet consumed.
    received: Vec<u8>,
    /// Written and not yet a whole message.
    written: Vec<u8>,
    /// Until when its socket takes nothing.
    blocked: u64,
    /// On the way to this side; `None` is the end of the connection.
    pipe: VecDeque<(u64, Option<Vec<u8>>)>,
    /// Messages to send, and sent.
    total: u64,
    sent: u64,
    next_send: u64,
    delivered: Vec<u64>,
    /// Number of the last message written, and how often numbers may still go back: once for each
    /// resend. Anything else would be live traffic that overtook a resend.
    last_seq: u64,
    may_go_back: u64,
}

impl<S: Shelf> Side<S> {
    fn new(config: Config, acceptor: bool, total: u64, mut shelf: S) -> Self {
        let store = shelf.open();
        let mut side = Self {
            config,
            acceptor,
            shelf,
            session: None,
            connected: false,
            received: Vec::new(),
            written: Vec::new(),
            blocked: 0,
            pipe: VecDeque::new(),
            total,
            sent: 0,
            next_send: 0,
            delivered: Vec::new(),
            last_seq: 0,
            may_go_back: 0,
        };
        side.start(store);
        side
    }

    fn start(&mut self, store: S::Store) {
        let config = self.config.clone();
        self.session = Some(match self.acceptor {
            true => Session::acceptor(config, store),
            false => Session::initiator(config, store),
        });
    }

    fn session(&mut self) -> &mut Session<S::Store> {
        self.session
            .as_mut()
            .expect("there is always one between two calls")
    }

    fn watch_order(&mut self, message: &[u8]) {
        let at = message
            .windows(4)
            .position(|w| w == b"\x0134=")
            .expect("MsgSeqNum");
        let digits = message[at + 4..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit());
        let seq = digits.fold(0, |seq, digit| seq * 10 + u64::from(digit - b'0'));
        if seq <= self.last_seq {
            assert!(self.may_go_back > 0, "{seq} after {}", self.last_seq);
            self.may_go_back -= 1;
        }
        self.last_seq = seq;
    }

    /// The process dies, and starts again with what the store has.
    fn restart(&mut self) {
        let session = self
            .session
            .take()
            .expect("there is always one between two calls");
        let store = self.shelf.reopen(session.into_store());
        self.start(store);
    }
}

struct Net<S: Shelf> {
    random: Random,
    mono: u64,
    sides: [Side<S>; 2],
    scratch: Scratch,
    next_chaos: u64,
    reconnect: u64,
    totals: Totals,
}

impl<S: Shelf> Net<S> {
    fn new(seed: u64) -> Self {
        let mut random = Random(Rng::with_seed(seed));
        let version = random.pick(&Version::ALL);
        let next_expected = random.one_in(3);
        let mut side = |sender, target, acceptor: bool| {
            let mut config = Config::new(SessionId::new(version, sender, target));
            config.heart_bt_int = 5;
            config.next_expected = next_expected;
            config.last_processed = random.one_in(3);
            config.queue_offline = random.one_in(2);
            config.resend_request_chunk = random.pick(&[0, 1, 3, 10]);
            config.resend_request_timeout = 7 * SECOND;
            config.resend_chunk.messages = random.pick(&[1, 3, 256]);
            config.gap_queue = Limits {
                messages: random.pick(&[1, 5, 1_000]),
                bytes: random.pick(&[300, 1 << 20]),
            };
            if random.one_in(3) {
                let messages = random.pick(&[1, 5, 20]);
                let interval = random.pick(&[100, 1_000]) * MILLIS;
                let queue = random.pick(&[0, 2, 50]);
                let rate = Rate { messages, interval };
                config.send_limit = Some(SendLimit { rate, queue });
            }
            let total = 20 + random.below(100);
            Side::new(config, acceptor, total, S::new(seed, acceptor.into()))
        };
        let sides = [side("BUY", "SELL", false), side("SELL", "BUY", true)];
        Self {
            random,
            mono: SECOND,
            sides,
            scratch: Scratch::default(),
            next_chaos: 2 * SECOND,
            reconnect: SECOND,
            totals: Totals {
                runs: 1,
                ..Totals::default()
            },
        }
    }

    fn now(&self) -> Now {
        let utc = UtcTimestamp::from_nanos((1_795_168_800 * SECOND + self.mono) as i64);
        Now {
            mono: self.mono,
            utc,
        }
    }

    fn run(mut self) -> Result<Totals, String> {
        while !self.is_complete() {
            self.mono = self.next_time();
            if self.mono > END {
                return Err(format!("not delivered: {}", self.state()));
            }
            self.chaos();
            self.connect();
            for side in 0..2 {
                self.deliver(side);
                self.send(side);
                self.time_out(side);
                self.pump(side);
            }
            self.check()?;
        }
        self.totals.messages = self.sides.iter().map(|side| side.total).sum();
        Ok(self.totals)
    }

    fn is_complete(&self) -> bool {
        let delivered = |a: &Side<S>, b: &Side<S>| b.delivered.len() as u64 == a.total;
        let [a, b] = &self.sides;
        self.mono > STORM && delivered(a, b) && delivered(b, a)
    }

    /// Every delivery so far was in order, each number once.
    fn check(&self) -> Result<(), String> {
        for side in &self.sides {
            let last = side.delivered.len();
            if last > 0 && side.delivered[last - 1] != last as u64 {
                return Err(format!("wrong delivery: {}", self.state()));
            }
        }
        Ok(())
    }

    fn state(&self) -> String {
        self.sides
            .iter()
            .map(|side| {
                let session = side.session.as_ref().expect("there is one");
                format!(
                    "\n{:?}, sent {} of {}, numbers {} {}, delivered {:?}",
                    session.state(),
                    side.sent,
                    side.total,
                    MessageStore::next_target(session.store()),
                    MessageStore::next_sender(session.store()),
                    side.delivered,
                )
            })
            .collect()
    }

    /// When the next thing happens: at least a nanosecond later, so that time passes.
    fn next_time(&mut self) -> u64 {
        let mut next = u64::MAX;
        let storm = self.mono < STORM;
        if storm {
            next = next.min(self.next_chaos);
        }
        if !self.sides[0].connected && !self.sides[1].connected {
            next = next.min(self.reconnect);
        }
        for side in &mut self.sides {
            if let Some((at, _)) = side.pipe.front() {
                next = next.min(*at);
            }
            if side.sent < side.total {
                next = next.min(side.next_send);
            }
            if !side.connected {
                continue;
            }
            if let Some(due) = side.session().poll_timeout() {
                next = next.min(due);
            }
            if !side.session().poll_transmit().is_empty() {
                next = next.min(side.blocked);
            }
        }
        if next == u64::MAX {
            self.mono + SECOND
        } else {
            next.max(self.mono + 1)
        }
    }

    /// Something bad.
    fn chaos(&mut self) {
        if self.mono < self.next_chaos || self.mono > STORM {
            return;
        }
        self.next_chaos = self.mono + self.random.below(5 * SECOND);
        let side = self.random.below(2) as usize;
        match self.random.below(6) {
            0..=2 => self.cut(),
            3 => {
                self.totals.restarts += 1;
                self.cut();
                self.sides[side].restart();
            }
            4 => {
                let now = self.now();
                self.sides[side].session().logout(now, "bye");
            }
            _ => {
                let now = self.now();
                if self.sides[side].session().is_logged_on() {
                    let _ = self.sides[side].session().test_request(now, b"STORM");
                }
            }
        }
    }

    /// The connection is lost; some of what was on its way still arrives.
    fn cut(&mut self) {
        let now = self.now();
        for side in 0..2 {
            if self.random.one_in(2) {
                let arrives = self.random.below(1 + self.sides[side].pipe.len() as u64) as usize;
                for _ in 0..arrives {
                    if let Some((_, Some(bytes))) = self.sides[side].pipe.pop_front() {
                        self.receive(side, &bytes);
                    }
                }
            }
        }
        for side in 0..2 {
            self.sides[side].pipe.clear();
            self.hang_up(side, now);
        }
    }

    /// This side's end of the connection is gone.
    fn hang_up(&mut self, side: usize, now: Now) {
        let end = &mut self.sides[side];
        if !end.connected {
            return;
        }
        end.session().disconnected(now);
        while end.session().poll_event().is_some() {}
        end.connected = false;
        end.received.clear();
        end.written.clear();
        self.reconnect = self.mono + self.random.below(3 * SECOND);
    }

    fn connect(&mut self) {
        let up = self.sides[0].connected || self.sides[1].connected;
        if up || self.mono < self.reconnect {
            return;
        }
        self.totals.connections += 1;
        let now = self.now();
        for side in &mut self.sides {
            side.pipe.clear();
            side.connected = true;
            side.last_seq = 0;
            // NextExpectedMsgSeqNum asks for a resend without a message.
            side.may_go_back = u64::from(side.config.next_expected);
            side.session().connected(now);
        }
    }

    fn deliver(&mut self, side: usize) {
        while let Some((at, _)) = self.sides[side].pipe.front()
            && *at <= self.mono
        {
            match self.sides[side].pipe.pop_front() {
                Some((_, Some(bytes))) => self.receive(side, &bytes),
                _ => {
                    let now = self.now();
                    self.hang_up(side, now);
                }
            }
        }
    }

    fn receive(&mut self, side: usize, bytes: &[u8]) {
        if !self.sides[side].connected {
            return;
        }
        self.sides[side].received.extend_from_slice(bytes);
        self.handle(side);
    }

    /// Lets the session work on what was received; the application may die of a message.
    fn handle(&mut self, side: usize) {
        let now = self.now();
        let storm = self.mono < STORM;
        let end = &mut self.sides[side];
        let Some(session) = &mut end.session else {
            return;
        };
        let (mut at, mut over, mut crashed) = (0, false, false);
        loop {
            let step = session.handle_bytes(now, &mut self.scratch, &end.received[at..]);
            at += step.consumed;
            match step.event {
                Some(Event::App(app)) => {
                    if storm && self.random.one_in(100) {
                        crashed = true;
                        break;
                    }
                    self.totals.duplicates += u64::from(app.poss_dup);
                    end.delivered
                        .push(app.message.u64(tag::CL_ORD_ID).expect("a number"));
                }
                Some(Event::GapDetected { .. }) => self.totals.gaps += 1,
                Some(Event::ResendRequested { .. }) => end.may_go_back += 1,
                Some(Event::Disconnect(_)) => over = true,
                Some(_) => {}
                None if step.consumed == 0 => break,
                None => {}
            }
        }
        end.received.drain(..at);
        if crashed {
            self.totals.crashes += 1;
            end.restart();
            end.connected = false;
            end.received.clear();
            end.written.clear();
            self.sides[1 - side]
                .pipe
                .push_back((self.mono + MILLIS, None));
            self.reconnect = self.mono + self.random.below(3 * SECOND);
        } else if over {
            self.finish(side);
        }
    }

    /// The session has ended by itself: what it still has to say goes out, then the connection
    /// is closed.
    fn finish(&mut self, side: usize) {
        self.pump_bytes(side);
        let at = self.sides[1 - side]
            .pipe
            .back()
            .map_or(self.mono, |last| last.0);
        self.sides[1 - side].pipe.push_back((at + MILLIS, None));
        let now = self.now();
        self.hang_up(side, now);
    }

    fn send(&mut self, side: usize) {
        let now = self.now();
        let end = &mut self.sides[side];
        if end.sent == end.total || self.mono < end.next_send {
            return;
        }
        end.next_send = self.mono + self.random.below(SECOND);
        let burst = 1 + self.random.below(5);
        for _ in 0..burst.min(end.total - end.sent) {
            let id = end.sent + 1;
            let sent = end.session().send(now, b"D", |body| {
                body.u64(tag::CL_ORD_ID, id).str(55, "EURUSD");
            });
            end.sent += u64::from(sent.is_ok());
        }
    }

    fn time_out(&mut self, side: usize) {
        let now = self.now();
        let end = &mut self.sides[side];
        if end.connected
            && end
                .session()
                .poll_timeout()
                .is_some_and(|due| due <= now.mono)
        {
            end.session().handle_timeout(now);
        }
    }

    /// Takes events and bytes.
    fn pump(&mut self, side: usize) {
        let mut over = false;
        while let Some(event) = self.sides[side].session().poll_event() {
            over |= matches!(event, Event::Disconnect(_));
            let resend = matches!(event, Event::ResendRequested { .. });
            self.sides[side].may_go_back += u64::from(resend);
        }
        if over && self.sides[side].connected {
            return self.finish(side);
        }
        self.pump_bytes(side);
    }

    /// Writes whole messages to the other side: late, cut in two, doubled, or swapped.
    fn pump_bytes(&mut self, side: usize) {
        if !self.sides[side].connected {
            return;
        }
        let storm = self.mono < STORM;
        let now = self.now();
        let end = &mut self.sides[side];
        end.session().sync(now);
        while !end.session().poll_transmit().is_empty() && end.blocked <= self.mono {
            let len = end.session().poll_transmit().len();
            let part = (1 + self.random.below(700)).min(len as u64) as usize;
            let bytes = end.session().poll_transmit()[..part].to_vec();
            end.session().transmitted(part);
            end.written.extend_from_slice(&bytes);
            if storm && self.random.one_in(10) {
                end.blocked = self.mono + self.random.below(SECOND);
            }
        }
        let written = std::mem::take(&mut end.written);
        let mut messages = Vec::new();
        let mut rest = written.as_slice();
        while let Some((message, behind)) = first_message(rest) {
            end.watch_order(message);
            messages.push(message.to_vec());
            rest = behind;
        }
        end.written = rest.to_vec();
        for at in 0..messages.len() {
            if storm && at > 0 && self.random.one_in(60) {
                messages.swap(at - 1, at);
            }
        }
        for message in messages {
            let copies = if storm && self.random.one_in(200) {
                2
            } else {
                1
            };
            for _ in 0..copies {
                self.put(1 - side, &message);
            }
        }
    }

    fn put(&mut self, side: usize, message: &[u8]) {
        let last = self.sides[side].pipe.back().map_or(0, |last| last.0);
        let late = match self.random.below(20) {
            0 => self.random.below(3 * SECOND),
            _ => self.random.below(20 * MILLIS),
        };
        let at = last.max(self.mono + late);
        let cut = self.random.below(message.len() as u64) as usize;
        let pipe = &mut self.sides[side].pipe;
        pipe.push_back((at, Some(message[..cut].to_vec())));
        pipe.push_back((at, Some(message[cut..].to_vec())));
    }
}
