//! Mappings of feeds that change while datagrams arrive.

use crate::client::value;
use crate::feed::group;
use crate::market::{Books, generator, send_some};
use crate::service::{Market, all, books_of, follow, snapshots};
use crate::users::{PORTS, user};
use crate::{eventually, stop};
use fanfare_gateway::{Config, GatewayHandle};
use fanfare_market::mapping::SPECTRA;
use fanfare_peers::Scratch;
use std::collections::BTreeMap;
use std::error::Error;

/// Returns a mapping to which offers are statistics, so that books have only bids.
fn bids_alone() -> String {
    let all = SPECTRA.replace("269 = [\"0\", \"1\"]", "269 = \"0\"");
    assert_ne!(all, SPECTRA);
    all
}

/// The configuration of a gateway with one feed, whose mapping is in a file.
struct Site {
    mapping: Scratch,
    text: String,
    market: Market,
}

impl Site {
    fn new(name: &str, mapping: &str, first: u8) -> Self {
        let (line, lines) = (group(first), group(first + 1));
        let file = Scratch::new(name);
        file.write(mapping);
        let feed = crate::market::feed("one", line, lines);
        let path = file.display().to_string();
        let feed = feed.replace(
            "mapping = \"builtin:spectra\"",
            &format!("mapping = \"{path}\""),
        );
        let text = format!("mode = \"subscriptions\"\n{PORTS}open = true\n{feed}");
        Self {
            mapping: file,
            market: Market::with(&text, line, lines),
            text,
        }
    }

    fn reload(&self) -> String {
        reload(&self.market.gateway.handle(), &self.text)
    }
}

/// Reloads. Returns the report.
fn reload(gateway: &GatewayHandle, text: &str) -> String {
    let config = Config::from_toml(text).unwrap();
    gateway.reload(&config).unwrap().to_string()
}

#[test]
fn a_mapping_changes_while_datagrams_flow_and_books_are_those_of_the_new_one() {
    let mut site = Site::new("flow.toml", SPECTRA, 111);
    let mut fresh = Site::new("fresh.toml", &bids_alone(), 113);
    let mut readers = [&mut site, &mut fresh].map(|s| s.market.gateway.take_events().unwrap());
    let mut clients = [Books::default(), Books::default()];
    // Subscribed before any instrument exists.
    let mut session = site.market.client("FIXT.1.1", "1137=9|");
    session.send("V", &all("all", 1, 5));
    let mut feeds = [&site, &fresh].map(|_| [generator(false), generator(true)]);
    let mut sent = 0;
    for (site, feed) in [&site, &fresh].into_iter().zip(&mut feeds) {
        site.market.send(feed, 300);
        let gateway = &site.market.gateway;
        eventually("a live book", || gateway.count("instruments_live") > 0);
    }
    std::thread::scope(|scope| {
        let (gateway, text) = (site.market.gateway.handle(), &site.text);
        let file = &site.mapping;
        let reloading = scope.spawn(move || {
            let changed = "reloaded: changed mapping of one";
            for mapping in [bids_alone(), SPECTRA.to_owned()].iter().cycle().take(20) {
                file.write(mapping);
                assert_eq!(reload(&gateway, text), changed);
                assert_eq!(reload(&gateway, text), "reloaded: nothing has changed");
            }
            file.write(&(bids_alone() + "# the same\n"));
            assert_eq!(reload(&gateway, text), changed);
        });
        let ([changes, _], market) = (&mut feeds[0], &site.market);
        while !reloading.is_finished() {
            // The rest is sent after the last reload.
            let most = if sent < 1_000 { 100 } else { 0 };
            send_some(market.line, false, changes, most, &[&market.gateway]);
            sent += most;
        }
    });
    // The other gateway receives the same, and then both receive the rest.
    let ([changes, _], market) = (&mut feeds[1], &fresh.market);
    send_some(market.line, false, changes, sent, &[&market.gateway]);
    for (site, [changes, lines]) in [&site, &fresh].into_iter().zip(&mut feeds) {
        let (market, gateways) = (&site.market, [&site.market.gateway]);
        send_some(market.line, false, changes, usize::MAX, &gateways);
        send_some(market.snapshots, true, lines, usize::MAX, &gateways);
    }
    eventually("live books that are the same", || {
        for (books, reader) in clients.iter_mut().zip(&mut readers) {
            books.read(reader);
        }
        let [books, expected] = &clients;
        books.are_live(11) && books.by_name() == expected.by_name() && books.has_no_offers()
    });
    // The session continued, and has the same books.
    let mut late = site.market.client_named("D", "FIXT.1.1", "1137=9|");
    late.send("V", &all("late", 0, 5));
    let expected = books_of(snapshots(&mut late, 11));
    let mut followed = BTreeMap::new();
    eventually("the books of the later snapshot", || {
        follow(&mut session, &mut followed);
        let books = followed.iter();
        let levels = books.map(|(id, book)| (id.clone(), book.levels.clone()));
        levels.collect::<BTreeMap<_, _>>() == expected
    });
    stop(site.market.gateway);
    stop(fresh.market.gateway);
}

#[test]
fn a_reload_with_a_mistake_in_line_40_of_a_mapping_changes_nothing_and_names_the_line() {
    let users = Scratch::new("mapping-users.toml");
    users.write(user("a", "A", "p", ""));
    let mut site = Site::new("line40.toml", SPECTRA, 115);
    site.text = format!("users = \"{}\"\n{}", users.display(), site.text);
    assert_eq!(site.reload(), "reloaded: new user a");
    let count = site.market.live();
    users.write(user("b", "B", "p", ""));
    for (mistake, why) in [
        ("depht = 5", "depht"),
        ("size = 9999", "no field 9999"),
        ("kind = ", ""),
    ] {
        let mut lines: Vec<&str> = SPECTRA.lines().collect();
        assert_eq!(lines[39], "");
        lines[39] = mistake;
        site.mapping.write(lines.join("\n"));
        let config = Config::from_toml(&site.text).unwrap();
        let error = site.market.gateway.reload(&config).unwrap_err();
        let mut told: &dyn Error = &error;
        while let Some(source) = told.source() {
            told = source;
        }
        let told = told.to_string();
        let place = format!("{}:40: ", site.mapping.display());
        assert!(told.starts_with(&place) && told.contains(why), "{told}");
    }
    site.mapping.write(SPECTRA);
    let wrong = site.text.replace("mapping = \"", "mapping = \"builtin:");
    let config = Config::from_toml(&wrong).unwrap();
    assert!(site.market.gateway.reload(&config).is_err());
    // The user and the books are unchanged.
    let gateway = &site.market.gateway;
    assert_eq!(gateway.count("instruments_live") as usize, count);
    assert_eq!(site.reload(), "reloaded: new user b, removed user a");
    // The same mapping by another name is equal, and other keys of a feed require a restart.
    let path = site.mapping.display().to_string();
    site.text = site.text.replace(&path, "builtin:spectra");
    assert_eq!(site.reload(), "reloaded: nothing has changed");
    site.text = site
        .text
        .replace("most_instruments = 1000", "most_instruments = 10");
    let other = "reloaded: nothing has changed; only a new start changes feed";
    assert_eq!(site.reload(), other);
    let mut client = site.market.client("FIX.4.4", "");
    client.send("V", &all("r1", 0, 0));
    let whole = snapshots(&mut client, count);
    assert!(whole.values().any(|snapshot| snapshot.contains("|269=1|")));
    assert_eq!(value(whole.values().next().unwrap(), 262), Some("r1"));
    stop(site.market.gateway);
}

#[test]
fn a_reload_of_users_leaves_mappings_as_they_are() {
    let users = Scratch::new("mapping-of-users.toml");
    users.write(user("a", "A", "p", ""));
    let mut site = Site::new("of-users.toml", SPECTRA, 117);
    site.text = format!("users = \"{}\"\n{}", users.display(), site.text);
    let gateway = site.market.gateway.handle();
    let config = Config::from_toml(&site.text).unwrap();
    let reload_users = || gateway.reload_users(&config).unwrap().to_string();
    site.mapping.write(bids_alone());
    assert_eq!(reload_users(), "reloaded: new user a");
    assert_eq!(reload_users(), "reloaded: nothing has changed");
    // A mapping that is being edited keeps back no user.
    site.mapping.write("kind = ");
    users.write(user("b", "B", "p", ""));
    assert_eq!(reload_users(), "reloaded: new user b, removed user a");
    site.mapping.write(bids_alone());
    assert_eq!(site.reload(), "reloaded: changed mapping of one");
    stop(site.market.gateway);
}
