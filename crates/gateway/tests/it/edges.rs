//! Gateways that serve a feed which others receive, with market events over DDS.

use crate::client::{Client, value};
use crate::feed::group;
use crate::history::symbols;
use crate::market::{feed, generator, send_some};
use crate::service::{all, books_of, follow, snapshots};
use crate::{eventually, start, stop};
use fanfare_fast::generate::Generator;
use fanfare_gateway::{Config, Gateway, Mode};
use fanfare_history::{At, Log};
use fanfare_peers::{Scratch, domain};
use std::collections::BTreeMap;
use std::net::SocketAddrV4;

/// Long enough that no gateway on a busy machine seems silent: those that end take their leave.
const LEASE: &str = "lease_ms = 60000\n";

fn gateway(text: &str) -> Gateway {
    let parsed = Config::from_toml(text).unwrap();
    start(|config| {
        config.feeds = parsed.feeds;
        // A broadcast may precede the response to a client's first request.
        config.mode = Mode::Subscriptions;
        (config.edges, config.history) = (parsed.edges, parsed.history);
        config.ring_bytes = 1 << 22;
        config.limits.message_bytes = 1 << 19;
    })
}

/// Gateways on the same lines that publish in a domain.
struct Site {
    plants: Vec<Gateway>,
    /// The configuration of each of them.
    text: String,
    domain: u32,
    line: SocketAddrV4,
    snapshots: SocketAddrV4,
    feed: [Generator; 2],
}

impl Site {
    fn new(first: u8, plants: usize) -> Self {
        let (line, snapshots, domain) = (group(first), group(first + 1), domain());
        let text = feed("one", line, snapshots)
            + &format!("[feed.edges]\ndomain = {domain}\nsnapshots_ms = 50\n{LEASE}");
        Self {
            plants: (0..plants).map(|_| gateway(&text)).collect(),
            text,
            domain,
            line,
            snapshots,
            feed: [generator(false), generator(true)],
        }
    }

    fn edge(&self) -> Gateway {
        self.edge_with("")
    }

    /// Starts an edge with additional tables.
    fn edge_with(&self, tables: &str) -> Gateway {
        gateway(&format!(
            "[[edge]]\nchannel = \"one\"\ndomain = {}\n{LEASE}\
             [edge.book]\nmost_instruments = 1000\nstarts_empty = false\n{tables}",
            self.domain
        ))
    }

    /// Sends the next changes, and as many snapshots.
    fn send(&mut self, most: usize) {
        let plants: Vec<&Gateway> = self.plants.iter().collect();
        let [changes, snapshots] = &mut self.feed;
        send_some(self.line, false, changes, most, &plants);
        send_some(self.snapshots, true, snapshots, most, &plants);
    }
}

/// Waits until a gateway has this many live instruments.
fn are_live(gateway: &Gateway, count: u64) {
    eventually("live books", || {
        let count_of = |name| gateway.count(name);
        let live = count_of("instruments_live");
        live > 0 && live >= count && count_of("instruments_recovering") == 0
    });
}

fn client(gateway: &Gateway, name: &str) -> Client {
    Client::log_on_in(gateway.consumers(), name, "FIXT.1.1", "1137=9|")
}

/// Returns the books of a gateway by a snapshot of each.
fn books(gateway: &Gateway, count: usize) -> BTreeMap<String, crate::service::Levels> {
    let mut client = client(gateway, "BOOKS");
    client.send("V", &all("books", 0, 0));
    books_of(snapshots(&mut client, count))
}

/// Waits until the edge has the books of the first plant, and subscribes to all of them.
fn watched(site: &Site, edge: &Gateway) -> Client {
    are_live(&site.plants[0], 1);
    are_live(edge, site.plants[0].count("instruments_live"));
    let mut watcher = client(edge, "WATCHER");
    watcher.send("V", &all("w", 1, 0));
    watcher
}

#[test]
fn the_end_of_one_of_two_plants_is_not_seen_at_an_edge() {
    let mut site = Site::new(61, 2);
    let edge = site.edge();
    eventually("both plants", || edge.count("edge_plants") == 2);
    site.send(500);
    let mut watcher = watched(&site, &edge);
    let mut rebuilt = BTreeMap::new();
    follow(&mut watcher, &mut rebuilt);
    let mut states = 0;
    site.send(300);
    stop(site.plants.remove(0));
    eventually("one plant", || edge.count("edge_plants") == 1);
    site.send(usize::MAX);
    are_live(&site.plants[0], 1);
    let count = site.plants[0].count("instruments_live");
    are_live(&edge, count);
    let expected = books(&site.plants[0], count as usize);
    eventually("the books of the plant", || {
        states += follow(&mut watcher, &mut rebuilt);
        let levels = rebuilt
            .iter()
            .map(|(id, book)| (id.clone(), book.levels.clone()));
        levels.collect::<BTreeMap<_, _>>() == expected
    });
    assert_eq!(books(&edge, count as usize), expected);
    assert_eq!(
        (edge.count("edge_unbrought"), edge.count("edge_unreadable")),
        (0, 0)
    );
    assert_eq!(states, 0, "no instrument was anything but live");
    // Without a plant, books are unchanged, and reported as such.
    stop(site.plants.remove(0));
    eventually("stale books", || edge.count("instruments_stale") == count);
    let mut late = client(&edge, "LATE");
    late.send("V", &all("l", 1, 0));
    assert_eq!(books_of(snapshots(&mut late, count as usize)), expected);
    stop(edge);
}

#[test]
fn an_edge_that_comes_late_has_every_snapshot_at_once() {
    let mut site = Site::new(63, 1);
    site.send(usize::MAX);
    are_live(&site.plants[0], 1);
    let count = site.plants[0].count("instruments_live");
    let edge = site.edge();
    are_live(&edge, count);
    let expected = books(&site.plants[0], count as usize);
    assert_eq!(books(&edge, count as usize), expected);
    let mut definitions = client(&edge, "X");
    definitions.send("x", "320=all|559=4|");
    let page = definitions.receive().unwrap();
    assert_eq!(
        value(&page, 393),
        Some(count.to_string().as_str()),
        "{page}"
    );
    stop(edge);
    site.plants.into_iter().for_each(stop);
}

#[test]
fn snapshots_of_more_instruments_than_their_topic_may_have_are_told() {
    let mut site = Site::new(193, 0);
    let text = format!("{}instances = 1\n", site.text);
    site.plants.push(gateway(&text));
    site.send(500);
    let plant = &site.plants[0];
    let told = "beyond a limit of their topic";
    eventually("a notice", || {
        let mut notices = plant.notices();
        notices.any(|notice| notice.to_string().contains(told))
    });
    eventually("the count", || plant.count("edge_beyond") > 0);
    assert_eq!(plant.count("edge_untaken"), 0);
    site.plants.into_iter().for_each(stop);
}

#[test]
fn books_of_another_kind_are_told_and_left_out() {
    let mut site = Site::new(65, 1);
    let edge = gateway(&format!(
        "[[edge]]\nchannel = \"one\"\ndomain = {}\n{LEASE}[edge.book]\ndepth = 7\n",
        site.domain
    ));
    site.send(100);
    eventually("a notice", || {
        let mut notices = edge.notices();
        notices.any(|notice| notice.to_string().contains("books of another kind"))
    });
    assert_eq!(edge.count("instruments_live"), 0);
    stop(edge);
    site.plants.into_iter().for_each(stop);
}

#[test]
fn a_plant_with_other_books_changes_nothing_at_an_edge() {
    let mut site = Site::new(67, 1);
    // It also knows an instrument that the first one does not.
    let file = Scratch::new("edges-extra.csv");
    file.write("symbol\nEXTRA\n");
    let book = format!(
        "[feed.book]\ndepth = 7\ninstruments = \"{}\"\n",
        file.display()
    );
    let other = gateway(&site.text.replace("[feed.book]\n", &book));
    site.plants.push(other);
    let edge = site.edge();
    let mut told = 0;
    let mut is_told = || {
        let notices = edge.notices();
        let of_books = notices.filter(|n| n.to_string().contains("books of another kind"));
        told += of_books.count();
        told > 0
    };
    site.send(500);
    eventually("the notice", &mut is_told);
    let mut watcher = watched(&site, &edge);
    let mut rebuilt = BTreeMap::new();
    follow(&mut watcher, &mut rebuilt);
    site.plants.drain(1..).for_each(stop);
    site.send(usize::MAX);
    are_live(&site.plants[0], 1);
    let count = site.plants[0].count("instruments_live");
    are_live(&edge, count);
    let expected = books(&site.plants[0], count as usize);
    let mut states = 0;
    eventually("the books of the plant", || {
        states += follow(&mut watcher, &mut rebuilt);
        let levels = rebuilt
            .iter()
            .map(|(id, book)| (id.clone(), book.levels.clone()));
        levels.collect::<BTreeMap<_, _>>() == expected
    });
    assert_eq!(states, 0, "no instrument was anything but live");
    assert_eq!(edge.count("edge_plants"), 1);
    is_told();
    assert_eq!(told, 1);
    stop(edge);
    site.plants.into_iter().for_each(stop);
}

#[test]
fn of_plants_that_each_lack_an_instrument_one_is_used() {
    let mut site = Site::new(119, 0);
    let _files = ["FIRST", "SECOND"].map(|symbol| {
        let file = Scratch::new("edges.csv");
        file.write(format!("symbol\n{symbol}\n"));
        let book = format!("[feed.book]\ninstruments = \"{}\"\n", file.display());
        let text = site.text.replace("[feed.book]\n", &book);
        site.plants.push(gateway(&text));
        file
    });
    let edge = site.edge();
    eventually("both plants", || edge.count("edge_plants") == 2);
    site.send(500);
    eventually("an instrument that the first one lacks", || {
        edge.count("edge_lacking") == 1
    });
    site.send(usize::MAX);
    are_live(&site.plants[0], 1);
    are_live(&edge, site.plants[0].count("instruments_live"));
    stop(edge);
    site.plants.into_iter().for_each(stop);
}

#[test]
fn instruments_of_an_edge_keep_their_numbers_in_its_log() {
    let mut site = Site::new(69, 1);
    let folder = Scratch::new("edge");
    let history = format!("[history]\nfolder = \"{}\"\n", folder.display());
    let mut known = Vec::new();
    for run in 0..2 {
        let edge = site.edge_with(&history);
        // The second one comes late, and has the instruments in the order of their snapshots.
        if run == 0 {
            eventually("the plant", || edge.count("edge_plants") == 1);
            site.send(usize::MAX);
        }
        are_live(&site.plants[0], 1);
        let count = site.plants[0].count("instruments_live");
        are_live(&edge, count);
        stop(edge);
        let end = Log::open(&folder).unwrap().as_of(At::End).unwrap();
        let now = symbols(end.directory());
        if run == 0 {
            known.clone_from(&now);
        }
        assert!(now.len() > 1 && now == known, "{now:?}, {known:?}");
    }
    site.plants.into_iter().for_each(stop);
}
