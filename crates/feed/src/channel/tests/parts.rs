//! A property: a packet with messages of new runs is as several packets, one for each run.

use super::*;
use crate::arbiter::Start;
use crate::line::LineStats;
use proptest::prelude::*;
use std::ops::ControlFlow;

/// A silence of all lines after which a feed may restart, in ns.
const SILENCE: u64 = 1_000;

/// A packet that a feed sends.
#[derive(Debug, Clone)]
struct Sent {
    /// The count of its messages, and of those of each new run behind a SequenceReset in it.
    sizes: Vec<usize>,
    /// What its first number is after: the number before it, or a jump.
    jump: Jump,
    /// Whether all lines are silent in front of it.
    is_silent: bool,
}

#[derive(Debug, Clone, Copy)]
enum Jump {
    None,
    Ahead(u32),
    /// Back to this number, without an announcement.
    Back(u32),
    /// A stray number, which the next packet does not follow.
    Stray(u32),
}

fn jumps() -> impl Strategy<Value = Jump> {
    let far = prop::sample::select(vec![3, 2_000, 70_000, 1 << 25]);
    prop_oneof![
        16 => Just(Jump::None),
        1 => far.clone().prop_map(Jump::Ahead),
        1 => (1_u32..60).prop_map(Jump::Back),
        1 => far.prop_map(Jump::Stray),
    ]
}

fn packets() -> impl Strategy<Value = Vec<Sent>> {
    let front = 1_usize..9;
    let news = prop_oneof![
        4 => prop::collection::vec(1_usize..9, 0),
        1 => prop::collection::vec(1_usize..9, 1..3),
    ];
    let sent = (front, news, jumps(), prop::bool::weighted(0.05));
    let sent = sent.prop_map(|(front, mut sizes, jump, is_silent)| {
        sizes.insert(0, front);
        Sent {
            sizes,
            jump,
            is_silent,
        }
    });
    prop::collection::vec(sent, 1..60)
}

/// A line: how it brings each packet, from one of them on and up to another one.
#[derive(Debug, Clone)]
struct Way {
    delay: u64,
    from: usize,
    out: std::ops::Range<usize>,
    /// For each packet, whether the line loses it, brings it late, or twice.
    fates: Vec<u8>,
}

fn ways() -> impl Strategy<Value = Way> {
    let from = prop_oneof![4 => Just(0_usize), 1 => 0_usize..60];
    let out = (0_usize..80, 0_usize..20).prop_map(|(from, len)| from..from + len);
    let fates = prop::collection::vec(0_u8..16, 60);
    let delay = prop_oneof![Just(0_u64), 0_u64..60, Just(3 * SILENCE)];
    (delay, from, out, fates).prop_map(|(delay, from, out, fates)| Way {
        delay,
        from,
        out,
        fates,
    })
}

/// The parts of each packet, up to each SequenceReset in it and behind the last one, and the time
/// at which it is sent.
fn write(all: &[Sent], keeps: bool) -> Vec<(u64, Vec<Vec<u8>>)> {
    let (mut next, mut price, mut now) = (100, 1, 0);
    let mut write = |sent: &Sent| {
        now += 10 + if sent.is_silent { 2 * SILENCE } else { 0 };
        let before = next;
        next = match sent.jump {
            Jump::None => next,
            Jump::Ahead(by) | Jump::Stray(by) => next + by,
            Jump::Back(to) => to,
        };
        let mut parts: Vec<Vec<u8>> = Vec::new();
        for size in &sent.sizes {
            if let Some(front) = parts.last_mut() {
                front.extend(sequence_reset(next, 1));
                next = 1;
            }
            price += 1;
            parts.push(quotes(next, price, size - 1));
            next += *size as u32;
        }
        if keeps {
            parts[0].splice(0..0, RESET.iter().copied());
        }
        if matches!(sent.jump, Jump::Stray(_)) {
            next = before;
        }
        (now, parts)
    };
    all.iter().map(&mut write).collect()
}

/// The times at which lines bring packets, by their indexes.
fn arrivals(sent: &[(u64, Vec<Vec<u8>>)], ways: &[Way]) -> Vec<(u64, Line, usize)> {
    let mut all = Vec::new();
    for (way, line) in ways.iter().zip(0..) {
        let line = Line::new(line).unwrap();
        for (index, (time, _)) in sent.iter().enumerate() {
            let fate = way.fates[index];
            if fate == 0 || index < way.from || way.out.contains(&index) {
                continue;
            }
            let time = time + way.delay;
            let late = if fate == 1 { 25 } else { 0 };
            all.push((time + late, line, index));
            if fate == 2 {
                all.push((time + 35, line, index));
            }
        }
    }
    all.sort_by_key(|(time, ..)| *time);
    all
}

/// The output of a channel: its events, and its counters except those of decoding.
#[derive(Debug, PartialEq)]
struct Told {
    events: Vec<String>,
    counts: [u64; 4],
    packets: [u64; Line::MAX],
    lines: Vec<LineStats>,
}

/// Receives each packet as one datagram, or each of its parts as a datagram of its own.
fn deliver(
    mut channel: Channel,
    sent: &[(u64, Vec<Vec<u8>>)],
    arrivals: &[(u64, Line, usize)],
    splits: bool,
) -> Told {
    let mut events = Vec::new();
    for &(now, line, index) in arrivals {
        while let Some(time) = channel.poll_timeout().filter(|time| *time <= now) {
            let timed = told(channel.handle_timeout(time));
            assert!(!timed.is_empty() || channel.poll_timeout() != Some(time));
            events.extend(timed);
        }
        let parts = &sent[index].1;
        if splits {
            for (place, part) in parts.iter().enumerate() {
                // Parts of a packet do not confirm each other.
                if place > 0 && channel.arbiter.refuses_rest(line) {
                    continue;
                }
                events.extend(told(channel.receive(datagram(line, now, part))));
            }
            continue;
        }
        let whole = parts.concat();
        let all = channel.receive(datagram(line, now, &whole));
        let taken = all.try_for_each(|event| {
            events.push(text(event));
            Ok::<_, ()>(ControlFlow::Continue(()))
        });
        assert_eq!(taken, Ok(ControlFlow::Continue(())));
    }
    events.extend(told(channel.finish()));
    let stats = channel.stats();
    let lines = (0..Line::MAX).filter_map(Line::new);
    Told {
        events,
        counts: [
            stats.delivered,
            stats.delivered_bytes,
            stats.bad,
            stats.unnumbered_dropped,
        ],
        packets: stats.packets,
        lines: lines.map(|line| *channel.arbiter().line(line)).collect(),
    }
}

proptest! {
    // `PROPTEST_CASES` sets the number of cases.

    /// Lines lose, repeat, delay and reorder packets, are silent or not there at first, jump far
    /// and back, and have few places for packets that wait.
    #[test]
    fn messages_behind_a_reset_are_as_a_packet_of_their_own(
        sent in packets(),
        ways in prop::collection::vec(ways(), 1..4),
        (keeps, as_it_comes) in any::<(bool, bool)>(),
        hold_back in prop::sample::select(vec![1, 2, 5, 1024]),
        wait in prop::sample::select(vec![0, 30]),
        recovery in prop::sample::select(vec![0, 20]),
    ) {
        let sent = write(&sent, keeps);
        let arrivals = arrivals(&sent, &ways);
        let mut config = ChannelConfig::new(ways.len());
        config.as_it_comes = as_it_comes;
        config.arbiter.hold_back = hold_back;
        config.arbiter.gap_timeout = 20;
        config.arbiter.recovery_timeout = recovery;
        config.arbiter.stale_timeout = SILENCE;
        config.arbiter.restart_timeout = SILENCE;
        config.arbiter.start = Start::First { wait };
        let new = || match keeps {
            true => keeping(TEMPLATES, config.clone()),
            false => channel(config.clone()),
        };
        let whole = deliver(new(), &sent, &arrivals, false);
        let split = deliver(new(), &sent, &arrivals, true);
        prop_assert_eq!(whole, split);
    }
}

#[test]
fn an_undecodable_packet_begins_no_run_of_a_line_alone() {
    let mut config = ChannelConfig::new(1);
    config.preamble = Preamble::Seq32Be;
    config.as_it_comes = true;
    let mut channel = channel(config);
    let packets = [
        (1, news(1, "a")),
        (90_000_000, vec![0xc0, 0xff]),
        (2, news(2, "b")),
        (80_000_000, news(3, "c")),
    ];
    let packets = packets.map(|(number, body)| {
        let mut packet = Vec::new();
        Preamble::Seq32Be.write(number, &mut packet);
        packet.extend(body);
        (Line::A, packet)
    });
    let all = all_told(&mut channel, packets);
    assert_eq!(all[0], "News 1.0 a");
    assert!(all[1].starts_with("bad ") && all[1].ends_with(" at 4"));
    let rest = ["News 2.0 b", "reset 80000000 false", "News 80000000.0 c"];
    assert_eq!(all[2..], rest);
    assert_eq!(channel.stats().bad, 1);
}
