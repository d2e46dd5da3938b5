//! Tests of packets that came in part, and whose replay responds in FIX.

use super::*;
use fanfare_fix::codec::Decoder as FixDecoder;
use fanfare_fix::dict::{Dictionary, Version};
use fanfare_wire::byte_sum;

impl Feed {
    /// Takes the responses of a replay in FIX from now on.
    fn with_fix(mut self) -> Self {
        let mapping = Mapping::built_in("builtin:fix").unwrap();
        let mapper = mapping.for_fix(&Dictionary::built_in(Version::Fix50Sp2), 0);
        self.follower = self.follower.with_fix(mapper.unwrap());
        self
    }

    /// Brings a message of the replay in FIX that has these entries.
    fn replay_in_fix(&mut self, number: u32, entries: &[Entry]) {
        let write = |entry: &Entry| {
            let [action, kind, id, rpt_seq, level, _, price, size] = *entry;
            let kind = char::from(kind);
            let book = format!("1023={level}|270={price}|271={size}");
            format!("279={action}|269={kind}|48={id}|{book}|83={rpt_seq}|")
        };
        let group: Vec<String> = entries.iter().map(write).collect();
        let body = format!("268={}|{}", group.len(), group.concat());
        self.replay_message(number, "X", &body);
    }

    /// Brings a message of the replay in FIX of this type, with these fields.
    fn replay_message(&mut self, number: u32, msg_type: &str, body: &str) {
        let fields = format!("35={msg_type}|34={number}|{body}");
        let text = format!("8=FIXT.1.1|9={}|{fields}", fields.len());
        let mut bytes = text.replace('|', "\x01").into_bytes();
        let sum = byte_sum(&bytes);
        bytes.extend(format!("10={sum:03}\x01").into_bytes());
        let mut decoder = FixDecoder::new();
        let message = decoder.decode(&bytes).unwrap();
        let send = &mut |event: &Event| {
            self.trades += u32::from(event.kind == Kind::Trade);
            if matches!(event.kind, Kind::Definition | Kind::Status) {
                self.replayed.push(*event);
            }
        };
        self.follower.replayed_fix(0, number, 0, &message, send);
    }
}

#[test]
fn a_replay_in_fix_passes_on_each_trade_of_a_packet_that_came_in_part_once() {
    for has_snapshot in [false, true] {
        let mut feed = Feed::new(1, Preamble::Seq32Be, Numbering::Instrument).with_fix();
        feed.bring(Line::A, &packet(1, &[&message(1, &[trade(FIRST, 1)])]));
        let first = message(2, &[trade(FIRST, 2)]);
        feed.bring(Line::A, &packet(2, &[&first, UNKNOWN]));
        assert_eq!((feed.trades, feed.missing()), (2, vec![(2, 3)]));
        assert_eq!(feed.follower.poll_request(0), Some(2..3));
        if has_snapshot {
            let empty = Event {
                flags: Flags::SNAPSHOT.with(Flags::LAST),
                rpt_seq: 4,
                ..Event::EMPTY
            };
            feed.snapshot(2, &[empty]);
        }
        let rest = [trade(FIRST, 3), bid(0, FIRST, 4, 50)];
        feed.replay_in_fix(2, &[trade(FIRST, 2), rest[0], rest[1]]);
        assert!(feed.missing().is_empty() && feed.is_live(FIRST));
        assert_eq!(feed.trades, 3, "the one that was missing");
    }
}

#[test]
fn a_replay_in_fix_does_not_complete_a_packet_that_came_in_part_without_rpt_seq() {
    let mut feed = Feed::new(1, Preamble::Seq32Be, Numbering::Channel).with_fix();
    let both = [trade(FIRST, 1), trade(SECOND, 1)];
    feed.bring(Line::A, &packet(1, &[&message(1, &both)]));
    feed.show(FIRST, 1);
    feed.show(SECOND, 1);
    assert!(feed.is_live(SECOND));
    let first = message(2, &[trade(FIRST, 2)]);
    feed.bring(Line::A, &packet(2, &[&first, UNKNOWN]));
    assert_eq!(feed.follower.poll_request(0), Some(2..3));
    let rest = [trade(SECOND, 2), bid(0, SECOND, 3, 50)];
    feed.replay_in_fix(2, &[trade(FIRST, 2), rest[0], rest[1]]);
    // The trade of the rest is passed on. Its level is in no book, so that none may be live.
    assert_eq!((feed.trades, feed.missing()), (4, vec![(2, 3)]));
    assert!(!feed.is_live(FIRST) && !feed.is_live(SECOND));
    // The edges have nothing of the packet that came in part.
    let mut late = Vec::new();
    feed.follower.steps().unwrap().parts(100, |steps, _| {
        let own = steps.iter().filter(|step| step.is_late);
        late.extend(own.map(|step| (step.number, step.events)));
    });
    assert_eq!(late, [(2, 3)]);
    feed.show(SECOND, 2);
    assert!(feed.is_live(SECOND));
}

#[test]
fn a_replay_in_fix_brings_the_definitions_and_statuses_of_a_packet_that_came_in_part() {
    for (msg_type, body, kind) in [
        ("d", "48=9|", Kind::Definition),
        ("f", "48=1|326=17|", Kind::Status),
    ] {
        let mut feed = Feed::new(1, Preamble::Seq32Be, Numbering::Channel).with_fix();
        feed.bring(Line::A, &packet(1, &[&message(1, &[trade(FIRST, 1)])]));
        let first = message(2, &[trade(FIRST, 2)]);
        feed.bring(Line::A, &packet(2, &[&first, UNKNOWN]));
        assert_eq!(feed.follower.poll_request(0), Some(2..3));
        feed.replay_message(2, msg_type, body);
        let kinds: Vec<Kind> = feed.replayed.iter().map(|event| event.kind).collect();
        assert_eq!((kinds, feed.missing()), (vec![kind], vec![(2, 3)]));
    }
}

#[test]
fn values_of_a_replay_in_fix_that_no_event_can_hold_are_counted() {
    let mut feed = Feed::new(1, Preamble::None, Numbering::Instrument).with_fix();
    feed.bring(Line::A, &message(1, &[bid(0, FIRST, 1, 50)]));
    feed.bring(Line::A, &message(3, &[bid(1, FIRST, 3, 50)]));
    assert_eq!(feed.follower.poll_request(0), Some(2..3));
    let body = "268=1|279=1|269=0|48=1|1023=1|270=1x|271=5|83=2|";
    feed.replay_message(2, "X", body);
    assert!(!feed.is_live(FIRST));
    let fix = feed.follower.fix_mapper().unwrap();
    let instruments = feed.follower.instruments();
    let [fault] = fix.faults() else {
        panic!("{:?}", fix.faults());
    };
    let why = fix.describe(fault, instruments);
    assert!(why.contains("270"), "{why}");
    assert_eq!(feed.follower.mapper().counts().faults, 0);
    assert_eq!(feed.follower.counts().faults, 1);
}
