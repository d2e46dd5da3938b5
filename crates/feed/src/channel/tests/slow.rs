//! The channel compared with a slow, obvious one.

use super::*;
use crate::arbiter::{self, Refusal, Start, Unit};
use fanfare_fast::Message;
use proptest::prelude::*;

/// The slow channel: numbers are read by a decoder of its own, packets wait as bytes, and are
/// decoded when they are delivered.
struct Slow {
    decoder: Decoder,
    arbiter: Arbiter,
}

impl Slow {
    fn messages(&mut self, bytes: &[u8]) -> Vec<(u32, u64)> {
        self.decoder.reset();
        let (mut at, mut all) = (0, Vec::new());
        let mut message = Message::new();
        while at < bytes.len() {
            at += self.decoder.decode(&bytes[at..], &mut message).unwrap();
            let view = message.view(self.decoder.program()).unwrap();
            let number = view.tag(34).and_then(|v| v.as_u64()).unwrap();
            let price = view.tag(44).and_then(|v| v.as_u64()).unwrap_or_default();
            all.push((number as u32, price));
        }
        all
    }

    fn receive(&mut self, line: Line, now: u64, bytes: &[u8], out: &mut Vec<String>) {
        let messages = self.messages(bytes);
        let unit = Unit {
            sequence: messages[0].0,
            count: in_order(&messages) as u32,
            bytes,
        };
        match self.arbiter.receive(now, line, unit) {
            Verdict::Deliver { skip } => tell(&messages, skip, out),
            Verdict::Refused(why) => out.push(format!("bad {why} at 0")),
            _ => {}
        }
        self.drain(out);
    }

    fn drain(&mut self, out: &mut Vec<String>) {
        loop {
            let (bytes, skip) = match self.arbiter.poll_event() {
                None => return,
                Some(arbiter::Event::Unit(unit)) => (unit.bytes.to_vec(), unit.skip),
                Some(arbiter::Event::Gap(gap)) => {
                    out.push(format!("gap {}-{}", gap.first, gap.last()));
                    continue;
                }
                Some(arbiter::Event::Reset { next, .. }) => {
                    out.push(format!("reset {next} false"));
                    continue;
                }
                Some(arbiter::Event::Recover(_)) => continue,
            };
            let messages = self.messages(&bytes);
            tell(&messages, skip, out);
        }
    }
}

/// Returns the number of messages at the front whose numbers follow each other.
fn in_order(messages: &[(u32, u64)]) -> usize {
    let follow = |two: &&[(u32, u64)]| two[0].0.wrapping_add(1) == two[1].0;
    1 + messages.windows(2).take_while(follow).count()
}

fn tell(messages: &[(u32, u64)], skip: u32, out: &mut Vec<String>) {
    let front = &messages[..in_order(messages)];
    let kept = front.iter().filter(|(n, _)| n - messages[0].0 >= skip);
    out.extend(kept.map(|(n, price)| match price {
        0 => format!("News {n}.0 text"),
        price => format!("Quote {n}.0 {price}"),
    }));
    if front.len() < messages.len() {
        out.push(format!("bad {} at 0", Refusal::Order));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Packets of one to nine messages on two lines with losses, duplicates and delays, with a far
    /// number in between, and with a packet that has another message, whose number does not follow.
    #[test]
    fn the_channel_delivers_what_the_slow_way_does(
        sizes in prop::collection::vec(1_usize..10, 1..60),
        lost in prop::collection::vec(0_u8..8, 240),
        delay in 0_usize..12,
        odd in prop::option::of((0_usize..60, 1_u32..3_000_000)),
        inside in prop::option::of((
            0_usize..60,
            prop_oneof![2_u32..5, 50_000_u32..70_000, 2..u32::MAX - 100],
        )),
    ) {
        let mut packets = Vec::new();
        let mut next = 100;
        for (i, size) in sizes.iter().enumerate() {
            packets.push(match i % 5 {
                4 => news(next, "text"),
                _ => quotes(next, 50 + i as u32, size - 1),
            });
            next += if i % 5 == 4 { 1 } else { *size as u32 };
        }
        let arbitration = ArbiterConfig {
            gap_timeout: 20,
            start: Start::First { wait: 3 },
            hold_back: 8,
            ..ArbiterConfig::default()
        };
        let mut config = ChannelConfig::new(2);
        config.arbiter = arbitration;
        let mut channel = channel(config);
        let decoder = Decoder::new(program());
        let mut slow = Slow { decoder, arbiter: Arbiter::new(arbitration) };
        let (mut fast, mut obvious) = (Vec::new(), Vec::new());
        for step in 0..packets.len() + delay {
            let now = step as u64;
            for (line, at) in [(Line::A, Some(step)), (Line::B, step.checked_sub(delay))] {
                let Some(packet) = at.and_then(|at| packets.get(at)) else {
                    continue;
                };
                let mut chance = lost[(2 * step + line.index()) % lost.len()];
                let stray = odd.filter(|(i, _)| *i == step).map(|(_, n)| quotes(n, 7, 0));
                if let Some(stray) = &stray {
                    fast.extend(told(channel.receive(datagram(line, now, stray))));
                    slow.receive(line, now, stray, &mut obvious);
                }
                let extended = inside.filter(|(i, _)| *i == step).map(|(_, beyond)| {
                    let last = slow.messages(packet).last().unwrap().0;
                    [&packet[..], &quotes(last.wrapping_add(beyond), 7, 0)].concat()
                });
                if let Some(extended) = &extended {
                    fast.extend(told(channel.receive(datagram(line, now, extended))));
                    slow.receive(line, now, extended, &mut obvious);
                }
                while chance > 0 {
                    fast.extend(told(channel.receive(datagram(line, now, packet))));
                    slow.receive(line, now, packet, &mut obvious);
                    chance = if chance == 7 { 1 } else { 0 };
                }
            }
            slow.arbiter.handle_timeout(now);
            slow.drain(&mut obvious);
            fast.extend(told(channel.handle_timeout(now)));
        }
        slow.arbiter.flush();
        slow.drain(&mut obvious);
        fast.extend(told(channel.finish()));
        prop_assert_eq!(fast, obvious);
    }
}
