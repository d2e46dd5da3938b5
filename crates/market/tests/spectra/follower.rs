//! The recording as datagrams, over two lossy lines of changes and two of snapshots, through the
//! channels and the built-in mapping.

use super::recording::{Recording, content, folder, recording};
use super::seeds;
use fanfare_fast::{Cell, Decoder, Program, Record};
use fanfare_feed::Line;
use fanfare_feed::channel::{Channel, ChannelConfig, Datagram, Event as ChannelEvent};
use fanfare_feed::recovery::{Numbering, RecoveryConfig, ReplayConfig, State};
use fanfare_market::instruments::SecurityId;
use fanfare_market::{
    BookConfig, Event, Follower, FollowerConfig, InstrumentId, Instruments, Mapping, MarketConfig,
};
use fastrand::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A packet of a file, and the number of its message.
type Packet = (u64, Vec<u8>);

struct Files {
    program: Arc<Program>,
    /// The packets of changes on either line, by number.
    changes: BTreeMap<u64, Vec<u8>>,
    /// The packets of the snapshot lines, each with the message of the channel that it follows.
    snapshots: Vec<Packet>,
}

fn packets(program: &Arc<Program>, name: &str) -> Vec<Packet> {
    let decoder = Decoder::new(Arc::clone(program));
    let mut channel = Channel::new(decoder, ChannelConfig::new(1)).unwrap();
    let bytes = std::fs::read(folder().join(name)).unwrap();
    let (mut rest, mut packets) = (&bytes[..], Vec::new());
    while !rest.is_empty() {
        let (len, numbers) = channel.cut(Line::A, rest);
        packets.push((numbers.first.unwrap().into(), rest[..len].to_vec()));
        rest = &rest[len..];
    }
    packets
}

fn files() -> Files {
    let xml = std::fs::read_to_string(folder().join("templates.xml")).unwrap();
    let program = Arc::new(Program::parse(&xml).unwrap());
    let mut changes: BTreeMap<_, _> = packets(&program, "increment_a.dat").into_iter().collect();
    changes.extend(packets(&program, "increment_b.dat"));
    let last = program
        .find("DefaultSnapshotMessage", "LastMsgSeqNumProcessed")
        .unwrap();
    let (mut decoder, mut due) = (Decoder::new(Arc::clone(&program)), 0);
    let mut snapshots = packets(&program, "snapshot.dat");
    for (number, bytes) in &mut snapshots {
        let (mut rest, mut record) = (&bytes[..], Record::new());
        while !rest.is_empty() {
            let len = decoder.decode_record(rest, &mut record).unwrap();
            rest = &rest[len..];
            if let Cell::Unsigned(last) = record.get(&program, last, 0) {
                due = last;
            }
        }
        *number = due;
    }
    Files {
        program,
        changes,
        snapshots,
    }
}

struct Run<'a> {
    recording: &'a Recording,
    files: &'a Files,
    follower: Follower,
    changes: Channel,
    snapshots: Channel,
    rng: Rng,
    loss: f64,
    now: u64,
    numbers: u64,
    compared: u64,
}

const MILLISECOND: u64 = 1_000_000;

impl<'a> Run<'a> {
    fn new(recording: &'a Recording, files: &'a Files, seed: u64, loss: f64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let has_replay = rng.u8(0..3) == 0;
        let market = MarketConfig {
            book: BookConfig::by_level(5).unwrap(),
            recovery: RecoveryConfig::new(Numbering::Instrument),
            source: 1,
            has_natural_refresh: rng.bool(),
        };
        let config = FollowerConfig {
            replay: has_replay.then(|| ReplayConfig {
                most: 20,
                pause: 50 * MILLISECOND,
                ..ReplayConfig::default()
            }),
            ..FollowerConfig::new(market)
        };
        let mapping = Mapping::built_in(Mapping::name_for(&files.program)).unwrap();
        let mapper = mapping.for_templates(&files.program, 1).unwrap();
        let channel = || {
            let decoder = Decoder::new(Arc::clone(&files.program));
            Channel::new(decoder, ChannelConfig::new(2)).unwrap()
        };
        Self {
            recording,
            files,
            follower: Follower::new(config, mapper, Instruments::new(1_000)),
            changes: channel(),
            snapshots: channel(),
            rng,
            loss,
            now: 0,
            numbers: 0,
            compared: 0,
        }
    }

    /// Delivers a packet over both lines, of changes or of snapshots, unless it is lost.
    fn bring(&mut self, is_change: bool, bytes: &[u8]) {
        for line in [Line::A, Line::B] {
            if self.rng.f64() < self.loss {
                continue;
            }
            let datagram = Datagram {
                line,
                now: self.now,
                received: self.now,
                offset: 0,
                bytes,
            };
            let (follower, numbers, now) = (&mut self.follower, &mut self.numbers, self.now);
            let send = &mut |event: &Event| {
                *numbers += 1;
                assert_eq!(event.number, *numbers);
            };
            let mut events = match is_change {
                true => self.changes.receive(datagram),
                false => self.snapshots.receive(datagram),
            };
            while let Some(event) = events.next() {
                assert!(!matches!(event, ChannelEvent::Bad(_)));
                match is_change {
                    true => follower.channel(now, &event, send),
                    false => follower.snapshot_lines(0, now, &event, send),
                }
            }
        }
        self.time_passes();
        self.check();
    }

    fn time_passes(&mut self) {
        let (follower, numbers, now) = (&mut self.follower, &mut self.numbers, self.now);
        let send = &mut |event: &Event| {
            *numbers += 1;
            assert_eq!(event.number, *numbers);
        };
        let mut events = self.changes.handle_timeout(now);
        while let Some(event) = events.next() {
            follower.channel(now, &event, send);
        }
        let mut events = self.snapshots.handle_timeout(now);
        while let Some(event) = events.next() {
            follower.snapshot_lines(0, now, &event, send);
        }
        follower.handle_timeout(now, send);
    }

    /// Simulates a replay that responds in part, or refuses.
    fn replay(&mut self) {
        let Some(range) = self.follower.poll_request(self.now) else {
            return;
        };
        if self.rng.u8(0..4) == 0 {
            return self.follower.replay_refused(self.now);
        }
        let mut decoder = Decoder::new(Arc::clone(&self.files.program));
        let mut record = Record::new();
        for number in range {
            if self.rng.u8(0..10) == 0 {
                continue;
            }
            let Some(mut rest) = self.files.changes.get(&number.into()).map(Vec::as_slice) else {
                continue;
            };
            while !rest.is_empty() {
                let len = decoder.decode_record(rest, &mut record).unwrap();
                rest = &rest[len..];
            }
            let numbers = &mut self.numbers;
            let send = &mut |event: &Event| {
                *numbers += 1;
                assert_eq!(event.number, *numbers);
            };
            self.follower.replayed(
                self.now,
                number,
                self.now,
                std::slice::from_ref(&record),
                send,
            );
        }
        self.follower.replay_done();
        self.check();
    }

    /// Checks that every live book equals that of the obvious program.
    fn check(&mut self) {
        for number in 0..self.follower.instruments().len() as u32 {
            let id = InstrumentId(number);
            let market = self.follower.market();
            if market.state(id) != Some(State::Live) {
                continue;
            }
            let name = self.follower.instruments().get(id).unwrap().definition.name;
            let SecurityId::Number(security) = name.id else {
                panic!("{name:?}");
            };
            let key = (
                self.recording.ids[&(security as i64)],
                market.position(id).unwrap(),
            );
            // The obvious program has no books before the first snapshot.
            if let Some(truth) = self.recording.truth.get(&key) {
                // Without a level, no book was created.
                let book = market.book(id).map(content).unwrap_or_default();
                assert_eq!(&book, truth, "{key:?}");
                self.compared += 1;
            }
        }
    }

    fn run(&mut self, most: usize) {
        let files = self.files;
        let start = self.rng.usize(0..2_000);
        let mut snapshots = files.snapshots.iter().peekable();
        for (number, bytes) in files.changes.iter().skip(start).take(most) {
            self.now += MILLISECOND;
            self.bring(true, bytes);
            while let Some((_, bytes)) = snapshots.next_if(|(due, _)| due <= number) {
                // Messages from before the start have passed.
                if self.now > MILLISECOND {
                    self.bring(false, bytes);
                }
            }
            self.replay();
        }
    }
}

#[test]
fn without_loss_every_instrument_is_live_in_the_end() {
    let Some(recording) = recording() else {
        return;
    };
    let files = files();
    let mut run = Run::new(&recording, &files, 1, 0.0);
    run.run(usize::MAX);
    let market = run.follower.market();
    let stats = (
        run.follower.stats(),
        market.stats(),
        run.follower.mapper().counts(),
    );
    assert_eq!(
        (stats.0.bad, stats.1.faults, stats.2.faults),
        (0, 0, 0),
        "{stats:?}"
    );
    let ids = 0..run.follower.instruments().len() as u32;
    let live = ids.filter(|id| market.state(InstrumentId(*id)) == Some(State::Live));
    assert_eq!(live.count(), recording.instruments as usize);
    assert!(run.compared > 50_000, "{}", run.compared);
}

#[test]
fn with_loss_what_is_live_is_right() {
    let Some(recording) = recording() else {
        return;
    };
    let files = files();
    let (mut replayed, mut recovered) = (0, 0);
    for seed in seeds(200) {
        let outcome = std::panic::catch_unwind(|| {
            let mut run = Run::new(&recording, &files, seed, 0.3);
            run.run(if seed < 5 { usize::MAX } else { 1_000 });
            let market = run.follower.market();
            assert_eq!(market.stats().faults, 0);
            assert!(run.compared > 200, "{}", run.compared);
            (run.follower.stats().late, market.recovery_stats().recovered)
        });
        let (late, back) = outcome.unwrap_or_else(|_| panic!("FANFARE_SEED={seed}: see above"));
        replayed += late;
        recovered += back;
    }
    assert!(replayed > 10 && recovered > 100, "{replayed}, {recovered}");
}
