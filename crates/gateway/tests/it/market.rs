//! Feeds that are markets: events, their numbers and their books at the reading end.

use crate::feed::group;
use crate::{eventually, start, stop};
use fanfare_engine::udp::{Sender, SenderConfig};
use fanfare_fast::Program;
use fanfare_fast::generate::{Generator, SpectraOptions};
use fanfare_feed::recovery::State;
use fanfare_gateway::{Config, EventReader, Gateway, Mode};
use fanfare_market::instruments::Lookup;
use fanfare_market::{Book, BookConfig, Delivery, Event, InstrumentId, Kind, Side, state};
use std::collections::BTreeMap;
use std::net::SocketAddrV4;

/// The most instruments of a feed, which is the number of the second feed's first instrument.
const SECOND: u32 = 1000;

/// The books that a client builds of events: a book for each instrument, its name, and whether it
/// is live.
#[derive(Default)]
pub(crate) struct Books {
    pub(crate) books: BTreeMap<u32, (Option<Book>, String, bool)>,
    next: u64,
    lost: u64,
}

impl Books {
    fn take(&mut self, delivery: Delivery<'_>) {
        match delivery {
            Delivery::Lost { first, last } => {
                assert_eq!(first, self.next + 1);
                self.lost += last - first + 1;
                self.next = last;
                // Nothing is known until it is shown again.
                self.books.clear();
            }
            Delivery::End(_) | Delivery::Restart | Delivery::Watermark(_) => {}
            Delivery::Event(event, directory) => {
                assert_eq!(event.number, self.next + 1);
                self.next += 1;
                if event.instrument == InstrumentId::ALL {
                    return;
                }
                let known = directory.instrument(event.instrument).unwrap();
                assert_eq!(known.instrument, event.instrument);
                let name = known.definition.name.id.to_string();
                self.of_instrument(event, name);
            }
        }
    }

    fn of_instrument(&mut self, event: &Event, name: String) {
        let entry = self.books.entry(event.instrument.0);
        let (book, _, is_live) = entry.or_insert_with(|| (None, name, false));
        match (event.kind, state::of_event(event)) {
            (_, Some(state)) => *is_live = state == State::Live,
            (Kind::Clear, _) => {
                let book = book.insert(Book::new(&BookConfig::by_level(5).unwrap()));
                book.apply(event).unwrap();
            }
            (Kind::Level, _) => {
                if let Some(book) = book {
                    book.apply(event).unwrap();
                }
            }
            _ => {}
        }
    }

    pub(crate) fn read(&mut self, events: &mut EventReader) {
        while events.read(64, |delivery| self.take(delivery)) > 0 {}
    }

    /// Returns the books by the names of their instruments, which gateways may number differently.
    pub(crate) fn by_name(&self) -> BTreeMap<&str, &Option<Book>> {
        let all = self.books.values();
        all.map(|(book, name, _)| (name.as_str(), book)).collect()
    }

    pub(crate) fn are_live(&self, count: usize) -> bool {
        self.books.len() == count && self.books.values().all(|(_, _, is_live)| *is_live)
    }

    /// Returns true if there are bids, and no offers.
    pub(crate) fn has_no_offers(&self) -> bool {
        let books = || self.books.values().filter_map(|(book, ..)| book.as_ref());
        let has = |side| books().any(|book| book.depth(side).next().is_some());
        has(Side::Bid) && !has(Side::Offer)
    }
}

/// Returns a feed with these lines and snapshots, and its limit of instruments.
pub(crate) fn feed(channel: &str, line: SocketAddrV4, snapshots: SocketAddrV4) -> String {
    format!(
        "[[feed]]\ntemplates = \"builtin:spectra\"\nlines = [\"{line}\"]\n\
         channel = \"{channel}\"\nmapping = \"builtin:spectra\"\n\
         [feed.book]\nmost_instruments = {SECOND}\nstarts_empty = false\n\
         [feed.snapshot]\nlines = [\"{snapshots}\"]\n"
    )
}

pub(crate) fn gateway(text: &str, ring_bytes: usize) -> Gateway {
    start(|config| {
        config.feeds = Config::from_toml(text).unwrap().feeds;
        // A broadcast may precede the response to a client's first request.
        config.mode = Mode::Subscriptions;
        config.ring_bytes = ring_bytes;
        config.limits.message_bytes = ring_bytes / 8;
    })
}

/// Sends a generated market to a group, in order, no faster than the gateways process it.
pub(crate) fn send(to: SocketAddrV4, snapshots: bool, gateways: &[&Gateway]) {
    send_some(
        to,
        snapshots,
        &mut generator(snapshots),
        usize::MAX,
        gateways,
    );
}

/// Returns a generated market: its changes, or its snapshots, each of which agrees with as many
/// changes.
pub(crate) fn generator(snapshots: bool) -> Generator {
    let options = SpectraOptions {
        snapshots,
        trades: 20,
        ..SpectraOptions::default()
    };
    Generator::spectra(Program::spectra(), 3_000, None, options)
}

/// Sends the next packets of a market, no faster than the gateways process them.
pub(crate) fn send_some(
    to: SocketAddrV4,
    snapshots: bool,
    feed: &mut Generator,
    most: usize,
    gateways: &[&Gateway],
) {
    let sender = Sender::open(&SenderConfig::new(to)).unwrap();
    let name = if snapshots {
        "snapshot_packets"
    } else {
        "datagrams"
    };
    let before: Vec<u64> = gateways.iter().map(|gateway| gateway.count(name)).collect();
    let mut sent = 0;
    for _ in 0..most {
        let Some(packet) = feed.next_packet().unwrap() else {
            break;
        };
        sender.send(packet).unwrap();
        sent += 1;
        if sent % 64 == 0 {
            for (gateway, before) in gateways.iter().zip(&before) {
                eventually("the datagrams", || {
                    gateway.count(name) >= before + sent - 64
                });
            }
        }
    }
}

#[test]
fn a_reader_that_lost_events_ends_with_the_books_of_one_that_did_not() {
    let (line, snapshots) = (group(21), group(22));
    let both = feed("one", line, snapshots) + &feed("two", line, snapshots);
    let mut quick = gateway(&both, 1 << 22);
    let mut slow = gateway(&feed("one", line, snapshots), 1 << 16);
    let (mut reader, mut late) = (quick.take_events().unwrap(), slow.take_events().unwrap());
    assert!(quick.take_events().is_none());
    let (mut client, mut behind) = (Books::default(), Books::default());
    for is_snapshots in [false, true] {
        let to = if is_snapshots { snapshots } else { line };
        send(to, is_snapshots, &[&quick, &slow]);
        client.read(&mut reader);
    }
    eventually("every book is live", || {
        client.read(&mut reader);
        !client.books.is_empty() && client.are_live(client.books.len())
    });
    assert_eq!(client.lost, 0);
    let second: BTreeMap<_, _> = client.books.split_off(&SECOND);
    assert_eq!(second.len(), client.books.len());
    eventually("every book is live again", || {
        behind.read(&mut late);
        behind.are_live(second.len())
    });
    assert!(behind.lost > 0);
    assert!(client.books == behind.books);
    for ((first, (book, ..)), (number, (other, ..))) in client.books.iter().zip(&second) {
        assert_eq!(first + SECOND, *number);
        assert!(book == other && book.as_ref().is_some_and(|book| !book.is_empty()));
    }
    for gateway in [quick, slow] {
        assert_eq!(gateway.count("kernel_drops"), 0);
        stop(gateway);
    }
    client.read(&mut reader);
    behind.read(&mut late);
    assert!(reader.is_finished() && late.is_finished());
}

/// Returns a packet whose first presence map ends in a group of zeros, which is R7.
fn overlong(packet: &[u8]) -> Vec<u8> {
    let end = packet.iter().position(|byte| byte & 0x80 != 0).unwrap();
    let mut bytes = packet[..=end].to_vec();
    bytes[end] &= 0x7f;
    bytes.push(0x80);
    bytes.extend_from_slice(&packet[end + 1..]);
    bytes
}

/// The lines of changes and of snapshots have the setting of their feed.
#[test]
fn a_lenient_feed_takes_deviations_from_fast_on_all_of_its_lines() {
    let groups = [[23, 24], [25, 26]].map(|pair| pair.map(group));
    for (is_lenient, [line, snapshots]) in [false, true].into_iter().zip(groups) {
        let keys = format!("lenient = {is_lenient}\nchannel");
        let text = feed("one", line, snapshots).replacen("channel", &keys, 1);
        let mut gateway = gateway(&text, 1 << 22);
        let mut reader = gateway.take_events().unwrap();
        let mut books = Books::default();
        for (to, is_snapshots, bad) in [
            (line, false, "undecodable"),
            (snapshots, true, "snapshots_bad"),
        ] {
            let sender = Sender::open(&SenderConfig::new(to)).unwrap();
            let (mut packets, mut sent) = (generator(is_snapshots), 0);
            while let Some(packet) = packets.next_packet().unwrap().filter(|_| sent < 40) {
                sender.send(&overlong(packet)).unwrap();
                sent += 1;
            }
            let datagrams = if is_snapshots {
                "snapshot_packets"
            } else {
                "datagrams"
            };
            eventually("the datagrams", || gateway.count(datagrams) == sent);
            let refused = if is_lenient { 0 } else { sent };
            eventually(bad, || gateway.count(bad) == refused);
        }
        eventually("the first book", || {
            books.read(&mut reader);
            books.books.is_empty() != is_lenient
        });
        stop(gateway);
    }
}
