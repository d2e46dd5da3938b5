//! Checks with a counting allocator, by thread, that hot paths do not allocate after warm-up.
#![allow(clippy::unwrap_used, reason = "a test")]

use fanfare_counting as counting;
use fanfare_engine::agent::Agent;
use fanfare_engine::clock::Clock;
use fanfare_engine::counters::Counters;
use fanfare_engine::host::{Acceptor, Handler, Host, Initiator, Peer, Peers, Store, StoreKind};
use fanfare_engine::journal::{Journal, Options};
use fanfare_engine::outbound::Outbound;
use fanfare_engine::poll::{Interest, Poller, Token};
use fanfare_engine::ring::{Broadcast, Policy, spsc};
use fanfare_engine::tcp::{Inbox, Received, Stream};
use fanfare_fix::session::{AppMessage, Config, Entry, Kind, MessageStore, SessionId, Version};
use fanfare_wire::UtcTimestamp;
use std::io::IoSlice;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

/// Runs `turn` often, and returns the allocations after the first few times.
fn allocations(mut turn: impl FnMut(usize)) -> u64 {
    (0..100).for_each(&mut turn);
    counting::allocations(|| (100..2_100).for_each(&mut turn))
}

#[test]
fn the_counter_counts() {
    assert!(allocations(|i| drop(std::hint::black_box(vec![0u8; i]))) >= 2_000);
}

#[test]
fn rings() {
    let body = [b'x'; 300];
    for policy in [Policy::Gate, Policy::Lap] {
        let mut writer = Broadcast::new(1 << 14, 2, policy);
        let mut readers = [writer.subscribe().unwrap(), writer.subscribe().unwrap()];
        let count = allocations(|i| {
            writer.push(1, &body[..i % 300]).unwrap();
            let batches = readers.each_mut().map(|reader| reader.read(8, |_| {}));
            assert!(batches.iter().all(|batch| batch.read == 1));
        });
        assert_eq!(count, 0, "{policy:?}");
    }
    let (mut producer, mut consumer) = spsc(1 << 14);
    let count = allocations(|i| {
        producer.push(1, &body[..i % 300]).unwrap();
        assert_eq!(consumer.read(8, |_| {}), 1);
    });
    assert_eq!(count, 0);
}

#[test]
fn counters_and_histograms() {
    let counters = Counters::new();
    let (count, histogram) = (counters.add("a", "a"), counters.add_histogram("", "b", "b"));
    let allocated = allocations(|i| {
        count.increment(1);
        histogram.record(1 << (i % 64));
    });
    assert_eq!(allocated, 0);
    assert_eq!(counters.histograms()[0].distribution.count(), 2_100);
}

#[test]
fn journal_turns() {
    let folder = std::env::temp_dir().join(format!("fanfare-alloc-{}", std::process::id()));
    let now = UtcTimestamp::from_nanos(0);
    let options = Options {
        segment_bytes: 64 << 10,
        max_segments: 4,
        ..Options::default()
    };
    let (mut journal, _) = Journal::open(&folder, "A->B", options, now).unwrap();
    let count = allocations(|i| {
        while journal.awaits_segment() {
            std::thread::yield_now();
        }
        let len = 100 + i % 100;
        journal.reserve(len).unwrap()[3..len].fill(b'x');
        journal
            .commit(
                3..len,
                Entry {
                    kind: Kind::App,
                    transmit: true,
                },
            )
            .unwrap();
        journal.set_next_target(i as u64).unwrap();
        journal.sync().unwrap();
        let waiting = journal.unsent().len();
        journal.sent(waiting);
        assert_eq!(
            journal.first_from(i as u64 + 1).map(|stored| stored.seq),
            Some(i as u64 + 1)
        );
    });
    let oldest = journal.first_from(0).unwrap().seq;
    assert!(
        oldest > 1 && journal.stalls() == 0,
        "segments came and went"
    );
    drop(journal);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(count, 0);
}

#[test]
fn tcp_turns() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let near = Stream::new(near).unwrap();
    let far = Stream::new(listener.accept().unwrap().0).unwrap();
    let mut inbox = Inbox::new();
    let mut poller = Poller::new(8).unwrap();
    poller.add(&far, Token(1), Interest::Read).unwrap();
    let sent = Counters::new().add("sent", "messages");
    let mut buffer = vec![0; 1 << 16];
    let message = [b'x'; 300];
    let count = allocations(|i| {
        near.send(&[IoSlice::new(&message[..i % 200]), IoSlice::new(&message)])
            .unwrap();
        sent.increment(1);
        poller.poll(Some(Duration::from_secs(9))).unwrap();
        assert_eq!(poller.events().count(), 1);
        let filled = inbox.fill(&mut buffer, |room| far.receive(room));
        let (received, bytes) = filled.unwrap();
        assert!(matches!(received, Received::Bytes(_)));
        // Every other duty cycle leaves some bytes for the next one.
        inbox.keep(&bytes[bytes.len() - (i % 2) * 7..]);
    });
    assert_eq!(count, 0);
    assert!(
        poller.change(&near, Token(2), Interest::Read).is_err(),
        "near was never added"
    );
}

#[test]
fn a_queue_that_fills_and_empties_again() {
    let mut queue = Outbound::new(1 << 20);
    let message = vec![b'x'; 100_000];
    let mut cycle = |_| {
        while queue.push(&message).is_ok() {}
        while !queue.is_empty() {
            queue.consume(70_001);
        }
    };
    (0..3).for_each(&mut cycle);
    assert_eq!(counting::allocations(|| (0..3).for_each(&mut cycle)), 0);
}

/// Lets the helper thread finish the next segment, for which it has ample time outside a test.
fn segment_is_ready(peer: &mut Peer<'_>) {
    while matches!(peer.session().store(), Store::Journal(journal) if journal.awaits_segment()) {
        std::thread::yield_now();
    }
}

/// A handler that sends an order in each requested duty cycle; it counts and responds to messages.
struct Trader {
    orders: usize,
    received: usize,
    answers: bool,
    /// Whether the first session's segment has been allocated.
    is_ready: bool,
}

impl Handler for Trader {
    fn on_message(&mut self, peer: &mut Peer<'_>, message: &AppMessage<'_>) {
        self.received += 1;
        if self.answers {
            segment_is_ready(peer);
            let id = message.message.get(11).unwrap();
            peer.send(b"8", |body| {
                body.field(11, id).char(39, b'0');
            })
            .unwrap();
        }
    }

    fn on_turn(&mut self, peers: &mut Peers<'_>) -> usize {
        let mut sent = 0;
        if !self.is_ready
            && let Some(mut peer) = peers.logged_on().next()
        {
            segment_is_ready(&mut peer);
            self.is_ready = true;
        }
        for mut peer in peers.logged_on().take(self.orders) {
            segment_is_ready(&mut peer);
            peer.send(b"D", |body| {
                body.str(11, "order").str(55, "EUR/USD").u64(38, 1_000_000);
            })
            .unwrap();
            sent += 1;
        }
        self.orders -= sent;
        sent
    }
}

#[test]
fn orders_and_answers_through_two_hosts_with_journals() {
    let base = std::env::temp_dir().join(format!("fanfare-alloc-host-{}", std::process::id()));
    let options = Options {
        segment_bytes: 128 << 10,
        ..Options::default()
    };
    let store = StoreKind::Journal(base.clone(), options);
    let config = |us, them| Config::new(SessionId::new(Version::Fix44, us, them));
    let trader = |answers| {
        Host::new(Trader {
            orders: 0,
            received: 0,
            answers,
            is_ready: false,
        })
        .unwrap()
    };
    let (mut buy, mut sell) = (trader(false), trader(true));
    let listen = (Ipv4Addr::LOCALHOST, 0).into();
    let acceptor = Acceptor::new(listen).session_with(config("SELL", "BUY"), store.clone());
    let address = sell.listen(acceptor).unwrap();
    let initiator = Initiator::new(config("BUY", "SELL"), vec![address]).store(store);
    buy.initiate(initiator).unwrap();
    let mut clock = Clock::new();
    let id = SessionId::new(Version::Fix44, "BUY", "SELL");
    let mut handle = buy.handle().session(&id).unwrap();
    // Every other order is sent from outside.
    let count = allocations(|turn| {
        match turn % 2 {
            0 => buy.handler().orders = 1,
            _ => {
                while !buy.handler().is_ready {
                    buy.do_work(clock.read()).unwrap();
                }
                handle
                    .send(b"D", |body| {
                        body.str(11, "order").str(55, "EUR/USD");
                    })
                    .map(drop)
                    .unwrap();
            }
        }
        buy.handler().is_ready = false;
        while buy.handler().received <= turn {
            let now = clock.read();
            buy.do_work(now).unwrap();
            sell.do_work(now).unwrap();
        }
    });
    drop((buy, sell));
    for session in std::fs::read_dir(&base).unwrap() {
        let files = std::fs::read_dir(session.unwrap().path()).unwrap().count();
        assert!(files > 3, "the segments of both sides have changed");
    }
    std::fs::remove_dir_all(&base).unwrap();
    assert_eq!(count, 0);
}
