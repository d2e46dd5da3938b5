//! Tests of followers of FIX sessions.

use super::*;
use fanfare_fix::codec::Decoder as FixDecoder;
use fanfare_fix::dict::{Dictionary, Version};
use fanfare_wire::byte_sum;

/// A session with its follower, and the events so far: kinds, and states as text.
struct Session {
    follower: SessionFollower,
    told: Vec<String>,
    /// MsgSeqNum(34), which begins again with each logon.
    seq: u64,
}

impl Session {
    fn new() -> Self {
        let mapping = Mapping::built_in("builtin:fix").unwrap();
        let mapper = mapping.for_fix(&Dictionary::built_in(Version::Fix44), 1);
        let market = MarketConfig {
            book: BookConfig::by_price(10).unwrap(),
            recovery: RecoveryConfig::new(Numbering::Instrument),
            has_natural_refresh: false,
            source: 1,
        };
        let config = FollowerConfig::new(market);
        let follower = SessionFollower::new(config, mapper.unwrap(), Instruments::new(10));
        Self {
            follower,
            told: Vec::new(),
            seq: 0,
        }
    }

    fn with(&mut self, work: impl FnOnce(&mut SessionFollower, &mut dyn FnMut(&Event))) {
        let told = &mut self.told;
        work(&mut self.follower, &mut |event| {
            told.push(match state::of_event(event) {
                Some(state) => state.to_string(),
                None => format!("{:?}", event.kind),
            });
        });
    }

    fn log_on(&mut self) {
        self.seq = 0;
        self.with(|follower, mut send| follower.logged_on(0, &mut send));
    }

    /// Brings a message, and returns what it brought.
    fn bring(&mut self, msg_type: &str, body: &str) -> String {
        self.seq += 1;
        // LastMsgSeqNumProcessed(369) is about the requests.
        let fields = format!("35={msg_type}|34={}|369=2|{body}", self.seq);
        let text = format!("8=FIX.4.4|9={}|{fields}", fields.len());
        let mut bytes = text.replace('|', "\x01").into_bytes();
        let sum = byte_sum(&bytes);
        bytes.extend(format!("10={sum:03}\x01").into_bytes());
        let mut decoder = FixDecoder::new();
        let message = decoder.decode(&bytes).unwrap();
        self.with(|follower, mut send| follower.message(0, 0, &message, &mut send));
        std::mem::take(&mut self.told).join(", ")
    }

    fn best(&self) -> i64 {
        let book = self.follower.market().book(InstrumentId(0)).unwrap();
        let best = book.depth(Side::Bid).next();
        best.map_or(0, |level| level.price.units() / 1_000_000_000)
    }
}

fn bid(price: u32) -> String {
    format!("55=A|268=1|269=0|270={price}|271=1|")
}

#[test]
fn a_snapshot_makes_a_book_live_and_the_next_one_replaces_it() {
    let mut session = Session::new();
    session.log_on();
    let change = "268=1|279=0|269=0|55=A|270=9|271=1|";
    let waits = session.bring("X", change);
    assert!(waits.starts_with("recovering"), "{waits}");
    assert_eq!(session.bring("W", &bid(10)), "Clear, Level, live");
    assert_eq!(session.bring("X", change), "Level");
    // It stays live, and no RptSeq(83) is expected.
    assert_eq!(
        session.bring("W", &format!("83=77|{}", bid(7))),
        "Clear, Level"
    );
    assert_eq!(session.best(), 7);
    assert_eq!(session.bring("W", "55=A|268=1|269=J|"), "Clear");
    assert_eq!(session.best(), 0);
}

#[test]
fn a_session_that_ends_leaves_stale_books_and_the_next_one_begins_without() {
    let mut session = Session::new();
    session.log_on();
    session.bring("W", &bid(10));
    session.with(|follower, mut send| follower.ended(5, &mut send));
    assert_eq!(std::mem::take(&mut session.told), ["stale"]);
    session.log_on();
    let told = std::mem::take(&mut session.told).join(", ");
    assert_eq!(told, "Clear, recovering: a snapshot is missing");
    // MsgSeqNum(34) begins again, and is lower than that of the book before.
    assert_eq!(session.bring("W", &bid(11)), "Clear, Level, live");
    session.with(|follower, mut send| follower.lost(6, &mut send));
    assert_eq!(std::mem::take(&mut session.told).len(), 2);
    assert_eq!(session.bring("W", &bid(12)), "Clear, Level, live");
}

#[test]
fn what_only_a_request_repairs_is_counted_and_what_the_counterparty_repairs_is_not() {
    let mut session = Session::new();
    session.log_on();
    session.bring("W", &bid(10));
    let before = session.follower.breaks();
    session.with(|follower, mut send| follower.doubt(InstrumentId(0), &mut send));
    session.with(|follower, mut send| follower.doubt(InstrumentId(0), &mut send));
    let told = std::mem::take(&mut session.told).join(", ");
    assert_eq!(
        told,
        "Clear, recovering: a snapshot is missing, after a fault"
    );
    assert_eq!(session.bring("W", &bid(10)), "Clear, Level, live");
    assert_eq!(session.follower.breaks(), before);
    let unknown = session.bring("X", "268=1|279=2|269=0|55=A|270=77|271=1|");
    assert!(unknown.contains("after a fault"), "{unknown}");
    assert!(session.follower.breaks() > before);
    // A value that no event can hold.
    assert_eq!(session.bring("W", &bid(10)), "Clear, Level, live");
    let before = session.follower.breaks();
    session.bring("X", "268=1|279=0|269=0|55=A|270=1.00000000001|271=1|");
    assert!(session.follower.breaks() > before);
}

#[test]
fn parts_of_a_snapshot_may_have_messages_of_the_session_between_them() {
    let mut session = Session::new();
    session.log_on();
    let part = |last: &str, price: u32| format!("893={last}|{}", bid(price));
    assert_eq!(session.bring("W", &bid(9)), "Clear, Level, live");
    session.bring("W", &part("N", 10));
    // A Heartbeat(0) has a number.
    session.seq += 1;
    assert_eq!(session.bring("W", &part("Y", 8)), "Clear, Level, Level");
    assert_eq!(session.best(), 10);
}
