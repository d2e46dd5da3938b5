//! A gateway with a feed of generated market data, in this process, so that its progress can be
//! queried.

use fanfare_engine::stop::Stop;
use fanfare_engine::udp::{Sender, SenderConfig};
use fanfare_fast::Program;
use fanfare_fast::generate::{Generator, SpectraOptions};
use fanfare_gateway::{Config, Gateway};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::common::groups;

/// Packets in flight at a time, so that no buffer overflows.
const WINDOW: u64 = 32;
/// More messages than any scenario takes.
const MANY: u64 = 1_000_000;
/// Messages of snapshots: each instrument has one among them.
const SNAPSHOTS: u64 = 3_000;

/// Lines of a feed, and their packets.
struct Line {
    sender: Sender,
    feed: Generator,
    sent: u64,
    /// The name of the gateway's counter of packets taken.
    count: &'static str,
}

impl Line {
    fn new(group: &str, snapshots: bool) -> Self {
        let options = SpectraOptions {
            snapshots,
            trades: 20,
            ..SpectraOptions::default()
        };
        let to = group.parse().unwrap();
        Self {
            sender: Sender::open(&SenderConfig::new(to)).unwrap(),
            feed: Generator::spectra(Program::spectra(), MANY, None, options),
            sent: 0,
            count: if snapshots {
                "snapshot_packets"
            } else {
                "datagrams"
            },
        }
    }

    fn send(&mut self, gateway: &Gateway, packets: u64) {
        for at in 1..=packets {
            let packet = self.feed.next_packet().unwrap().unwrap();
            self.sender.send(packet).unwrap();
            self.sent += 1;
            if at % WINDOW == 0 || at == packets {
                let (count, sent) = (self.count, self.sent);
                eventually(count, || gateway.count(count) >= sent);
            }
        }
    }
}

pub(super) struct Plant {
    gateway: Gateway,
    changes: Line,
    snapshots: Line,
}

impl Plant {
    pub(super) fn start() -> Self {
        Self::start_with("")
    }

    /// Starts a gateway with these tables in its configuration. Nothing is sent without a request:
    /// a broadcast may precede the response to the first one.
    pub(super) fn start_with(tables: &str) -> Self {
        let [line, snapshots] = groups();
        let text = format!(
            "mode = \"subscriptions\"\n{tables}[producers]\nport = 0\n[consumers]\nport = 0\n\
             [[feed]]\ntemplates = \"builtin:spectra\"\nlines = [\"{line}\"]\n\
             mapping = \"builtin:spectra\"\n[feed.book]\nstarts_empty = false\n\
             [feed.snapshot]\nlines = [\"{snapshots}\"]\n"
        );
        let config = Config::from_toml(&text).unwrap();
        Self {
            gateway: Gateway::start(&config, Stop::new()).unwrap(),
            changes: Line::new(&line, false),
            snapshots: Line::new(&snapshots, true),
        }
    }

    pub(super) fn consumers(&self) -> SocketAddr {
        self.gateway.consumers()
    }

    /// Sends more of the market's changes, and waits until they are taken.
    pub(super) fn changes(&mut self, packets: u64) {
        self.changes.send(&self.gateway, packets);
    }

    /// Sends snapshots, which recover all books.
    pub(super) fn snapshots(&mut self) {
        self.snapshots.send(&self.gateway, SNAPSHOTS);
    }

    pub(super) fn stop(self) {
        assert_eq!(self.gateway.count("kernel_drops"), 0);
        self.gateway.stop().raise();
        self.gateway.join().unwrap();
    }
}

/// Waits until `holds`, for the effect of other threads; fails after two minutes.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < until, "{what} did not happen");
        std::thread::yield_now();
    }
}
