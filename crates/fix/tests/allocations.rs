//! After warm-up a session allocates nothing, neither receiving nor sending.
#![allow(clippy::expect_used, reason = "a test may fail")]

use fanfare_counting::allocations;
use fanfare_fix::codec::{SendingTime, SharedBody, SharedFrame};
use fanfare_fix::session::{
    Config, Event, Limits, MemoryStore, MessageStore, Now, SECOND, Scratch, Session, SessionId,
    Version,
};
use fanfare_fix::tag;
use fanfare_wire::{Decimal, UtcTimestamp};

/// Two sessions that talk to each other over buffers of their own.
struct Pair<A, B> {
    buy: Session<A>,
    sell: Session<B>,
    scratch: Scratch,
    now: Now,
    wire: Vec<u8>,
    delivered: u64,
}

impl<A: MessageStore, B: MessageStore> Pair<A, B> {
    fn new(buy: A, sell: B) -> Self {
        let config = |sender, target| Config::new(SessionId::new(Version::Fix44, sender, target));
        // The two take turns with decoders of their own.
        let knowing = Config {
            data_fields: vec![(5010, 5011)],
            ..config("SELL", "BUY")
        };
        let utc = UtcTimestamp::from_nanos(1_795_168_800 * SECOND as i64);
        let mut pair = Self {
            buy: Session::initiator(config("BUY", "SELL"), buy),
            sell: Session::acceptor(knowing, sell),
            scratch: Scratch::default(),
            now: Now { mono: 0, utc },
            wire: Vec::with_capacity(1 << 16),
            delivered: 0,
        };
        pair.buy.connected(pair.now);
        pair.sell.connected(pair.now);
        pair.carry();
        assert!(pair.buy.is_logged_on() && pair.sell.is_logged_on());
        pair
    }

    /// Carries bytes until both are silent. An order is answered with a report.
    fn carry(&mut self) {
        while !(self.buy.poll_transmit().is_empty() && self.sell.poll_transmit().is_empty()) {
            carry(
                &mut self.buy,
                &mut self.sell,
                &mut self.wire,
                &mut self.scratch,
                self.now,
            );
            carry(
                &mut self.sell,
                &mut self.buy,
                &mut self.wire,
                &mut self.scratch,
                self.now,
            );
        }
        self.delivered = self.sell.store().next_target() - 1;
    }

    fn pass(&mut self, nanos: u64) {
        let utc = UtcTimestamp::from_nanos(self.now.utc.nanos() + nanos as i64);
        self.now = Now {
            mono: self.now.mono + nanos,
            utc,
        };
        self.buy.handle_timeout(self.now);
        self.sell.handle_timeout(self.now);
        self.carry();
    }

    fn order(&mut self, id: u64) {
        let now = self.now;
        let sent = self.buy.send(now, b"D", |order| {
            order
                .u64(tag::CL_ORD_ID, id)
                .str(55, "EURUSD")
                .char(54, b'1');
            order.decimal(44, Decimal::new(108_456, -5)).u64(38, 100);
        });
        assert!(sent.is_ok());
        self.carry();
    }
}

fn carry<A: MessageStore, B: MessageStore>(
    from: &mut Session<A>,
    to: &mut Session<B>,
    wire: &mut Vec<u8>,
    scratch: &mut Scratch,
    now: Now,
) {
    wire.clear();
    while !from.poll_transmit().is_empty() {
        wire.extend_from_slice(from.poll_transmit());
        from.transmitted(from.poll_transmit().len());
    }
    let mut at = 0;
    loop {
        let step = to.handle_bytes(now, scratch, &wire[at..]);
        at += step.consumed;
        match step.event {
            Some(Event::App(app)) if app.message.msg_type() == b"D" => {
                let id = app.message.get(tag::CL_ORD_ID).unwrap_or_default();
                let sent = to.send(now, b"8", |report| {
                    report
                        .field(tag::CL_ORD_ID, id)
                        .char(150, b'0')
                        .char(39, b'0');
                });
                assert!(sent.is_ok());
            }
            None if step.consumed == 0 => break,
            _ => {}
        }
    }
}

/// One test, so that no other thread counts.
#[test]
fn no_allocation_after_warm_up() {
    let small = Limits {
        messages: 500,
        bytes: 64 << 10,
    };
    let mut pair = Pair::new(MemoryStore::new(small), MemoryStore::new(small));
    let mut trade = |from: u64| (from..from + 3_000).for_each(|id| pair.order(id));
    trade(0);
    assert_eq!(
        allocations(|| trade(3_000)),
        0,
        "orders and reports, both kept"
    );
    assert!(pair.delivered > 6_000);

    // Heartbeats, TestRequests and their answers.
    pair.pass(40 * SECOND);
    let quiet = allocations(|| (0..1_000).for_each(|_| pair.pass(10 * SECOND)));
    assert_eq!(quiet, 0, "heartbeats");

    let mut pair = Pair::new(
        MemoryStore::without_resends(256 << 10),
        MemoryStore::without_resends(256 << 10),
    );
    let mut trade = |from: u64| (from..from + 1_000).for_each(|id| pair.order(id));
    trade(0);
    assert_eq!(
        allocations(|| trade(1_000)),
        0,
        "orders and reports, none kept"
    );

    fan_out(MemoryStore::new(small));
    fan_out(MemoryStore::without_resends(256 << 10));
}

fn fan_out(store: impl MessageStore) {
    let mut pair = Pair::new(MemoryStore::without_resends(256 << 10), store);
    let mut frame = SharedFrame::new(1024);
    let mut out = [0; 512];
    let fields = b"55=EURUSD\x01268=1\x01269=0\x01270=1.08\x01";
    let body = SharedBody::new(b"W", fields).expect("a body");
    let mut spread = |rounds: u64| {
        for _ in 0..rounds {
            let time = SendingTime::new(pair.now.utc, fanfare_wire::Precision::Millis);
            frame.load(&body).expect("it fits");
            let message = pair
                .sell
                .send_shared(pair.now, &mut frame, &time)
                .expect("logged on");
            pair.wire.clear();
            pair.wire.extend_from_slice(message);
            let step = pair
                .buy
                .handle_bytes(pair.now, &mut pair.scratch, &pair.wire);
            assert!(matches!(step.event, Some(Event::App(_))));
            let len = pair
                .sell
                .send_shared_into(pair.now, &body, &time, &mut out)
                .expect("logged on");
            pair.wire.clear();
            pair.wire.extend_from_slice(&out[..len]);
            let step = pair
                .buy
                .handle_bytes(pair.now, &mut pair.scratch, &pair.wire);
            assert!(matches!(step.event, Some(Event::App(_))));
        }
    };
    spread(2_000);
    assert_eq!(allocations(|| spread(2_000)), 0, "one body to many");
}
