//! A FAST feed whose replay responds in FIX: lost messages return as X, written from their events,
//! and the books equal those of a follower that lost nothing.

use fanfare_fast::generate::{Generator, SpectraOptions};
use fanfare_fast::{Decoder, Program, Record};
use fanfare_feed::Line;
use fanfare_feed::channel::{Channel, ChannelConfig, Datagram};
use fanfare_feed::recovery::{Numbering, RecoveryConfig, ReplayConfig, State};
use fanfare_fix::codec::{Decoder as FixDecoder, Encoder};
use fanfare_fix::dict::{Dictionary, Version};
use fanfare_market::{
    BookConfig, Event, FastMapper, FixMapper, Follower, FollowerConfig, InstrumentId, Instruments,
    Mapping, MarketConfig, ToFix,
};
use std::sync::Arc;

const MESSAGES: u64 = 400;

fn mapping(name: &str) -> Mapping {
    Mapping::built_in(name).unwrap()
}

fn mapper(program: &Arc<Program>) -> FastMapper {
    let mapping = mapping("builtin:spectra");
    mapping.for_templates(program, 0).unwrap()
}

fn fix_mapper() -> FixMapper {
    let dictionary = Dictionary::built_in(Version::Fix50Sp2);
    mapping("builtin:fix").for_fix(&dictionary, 0).unwrap()
}

fn packets(program: &Arc<Program>, snapshots: bool, seed: u64) -> Vec<Vec<u8>> {
    let options = SpectraOptions {
        seed,
        snapshots,
        ..SpectraOptions::default()
    };
    let mut feed = Generator::spectra(Arc::clone(program), MESSAGES, None, options);
    let mut all = Vec::new();
    while let Some(packet) = feed.next_packet().unwrap() {
        all.push(packet.to_vec());
    }
    all
}

/// A follower of the channels of its lines.
struct Side {
    follower: Follower,
    channels: [Channel; 2],
    now: u64,
}

impl Side {
    fn new(program: &Arc<Program>) -> Self {
        let market = MarketConfig {
            book: BookConfig::by_level(5).unwrap(),
            recovery: RecoveryConfig {
                starts_empty: false,
                ..RecoveryConfig::new(Numbering::Instrument)
            },
            source: 0,
            has_natural_refresh: false,
        };
        let config = FollowerConfig {
            replay: Some(ReplayConfig::default()),
            ..FollowerConfig::new(market)
        };
        let follower = Follower::new(config, mapper(program), Instruments::new(100));
        let channel = || {
            let decoder = Decoder::new(Arc::clone(program));
            let mut config = ChannelConfig::new(1);
            config.as_it_comes = true;
            config.arbiter.gap_timeout = 0;
            Channel::new(decoder, config).unwrap()
        };
        Self {
            follower: follower.with_fix(fix_mapper()),
            channels: [channel(), channel()],
            now: 0,
        }
    }

    fn take(&mut self, is_snapshot: bool, bytes: &[u8]) {
        self.now += 1_000_000;
        let [changes, snapshots] = &mut self.channels;
        let channel = if is_snapshot { snapshots } else { changes };
        let datagram = Datagram {
            line: Line::A,
            now: self.now,
            received: self.now,
            offset: 0,
            bytes,
        };
        let mut events = channel.receive(datagram);
        while let Some(event) = events.next() {
            match is_snapshot {
                true => self
                    .follower
                    .snapshot_lines(0, self.now, &event, &mut |_| {}),
                false => self.follower.channel(self.now, &event, &mut |_| {}),
            }
        }
    }

    /// Responds to requests with the messages of the service.
    fn replay(&mut self, service: &mut Service) -> u64 {
        let mut answered = 0;
        let mut decoder = FixDecoder::new();
        while let Some(range) = self.follower.poll_request(self.now) {
            for number in range {
                let bytes = service.message(number);
                let message = decoder.decode(&bytes).unwrap();
                let follower = &mut self.follower;
                follower.replayed_fix(self.now, number, self.now, &message, &mut |_| {});
                answered += 1;
            }
            self.follower.replay_done();
        }
        answered
    }
}

/// A service that has all messages, and returns them in FIX.
struct Service {
    packets: Vec<(u32, Vec<u8>)>,
    decoder: Decoder,
    mapper: FastMapper,
    table: Instruments,
    to_fix: ToFix,
}

impl Service {
    fn new(program: &Arc<Program>, packets: &[Vec<u8>]) -> Self {
        let mut this = Self {
            packets: Vec::new(),
            decoder: Decoder::new(Arc::clone(program)),
            mapper: mapper(program),
            table: Instruments::new(100),
            to_fix: ToFix::new(Version::Fix50Sp2),
        };
        for packet in packets {
            // Done has no number.
            if let Some(number) = this.map(packet) {
                this.packets.push((number, packet.clone()));
            }
        }
        this
    }

    /// Maps a packet, whose last message has the number.
    fn map(&mut self, packet: &[u8]) -> Option<u32> {
        let (mut rest, mut record, mut number) = (packet, Record::new(), None);
        self.decoder.reset();
        while !rest.is_empty() {
            let len = self.decoder.decode_record(rest, &mut record).unwrap();
            rest = &rest[len..];
            let outcome = self.mapper.record(&mut self.table, 0, &record);
            number = outcome.unwrap().number.or(number);
        }
        number.map(|number| number as u32)
    }

    fn message(&mut self, number: u32) -> Vec<u8> {
        let found = self.packets.iter().find(|(known, _)| *known == number);
        let packet = found.unwrap().1.clone();
        self.map(&packet);
        let mut room = vec![0; 1 << 16];
        let mut message = Encoder::new(&mut room, b"FIXT.1.1", b"X");
        message.u64(1181, number.into());
        let events: &[Event] = self.mapper.events();
        self.to_fix
            .changes(&self.table, b"", events, &mut message)
            .unwrap();
        let range = message.finish().unwrap();
        room[range].to_vec()
    }
}

#[test]
fn what_a_replay_in_fix_brings_is_as_if_nothing_had_been_lost() {
    let program: Arc<Program> = Program::spectra().into();
    for seed in 1..=20 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let changes = packets(&program, false, seed);
        let snapshots = packets(&program, true, seed);
        let mut service = Service::new(&program, &changes);
        let (mut all, mut some) = (Side::new(&program), Side::new(&program));
        let mut answered = 0;
        for (at, packet) in changes.iter().enumerate() {
            // Only the first cycle of snapshots: from then on, all recovery is by the replay.
            if at < 30 {
                all.take(true, &snapshots[at]);
                some.take(true, &snapshots[at]);
            }
            all.take(false, packet);
            if at < 30 || at + 3 > changes.len() || rng.f32() > 0.2 {
                some.take(false, packet);
            }
            if rng.u8(0..8) == 0 {
                answered += some.replay(&mut service);
            }
        }
        answered += some.replay(&mut service);
        assert!(answered > 30, "{answered}");
        let stats = some.follower.replay_stats().unwrap();
        assert_eq!(stats.given_up, 0);
        let mut live = 0;
        for number in 0..all.follower.instruments().len() as u32 {
            let id = InstrumentId(number);
            let (one, other) = (all.follower.market(), some.follower.market());
            assert_eq!(one.state(id), other.state(id));
            assert_eq!(one.position(id), other.position(id));
            assert!(one.book(id) == other.book(id));
            live += u32::from(one.state(id) == Some(State::Live));
        }
        assert!(live > 5, "{live}");
    }
}
