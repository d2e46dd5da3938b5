//! The journal of received messages.

use super::*;
use crate::journal::{Found, Snapshot, folder_for};

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    fn new(test: &str) -> Self {
        let name = format!("fanfare-received-{test}-{}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    /// Returns a seller that keeps received messages.
    fn seller(&self) -> (Host<Diary>, SocketAddr) {
        let options = journal::Options {
            segment_bytes: 64 << 10,
            ..journal::Options::default()
        };
        let store = StoreKind::BothWays(self.0.clone(), options);
        acceptor(Acceptor::new(LOOPBACK).session_with(config("SELL", "BUY"), store))
    }

    /// Returns the numbers and ClOrdIDs of the messages kept.
    fn kept(&self) -> Vec<String> {
        let folder = folder_for(&self.0, "FIX.4.4:SELL->BUY").join("received");
        let snapshot = Snapshot::take(&folder).unwrap();
        let records = snapshot.records().filter_map(|found| match found {
            Found::Good(record) if !record.bytes.is_empty() => {
                let text = String::from_utf8_lossy(record.bytes).into_owned();
                let id = text.split("\x0111=").nth(1).unwrap();
                let id = id.split('\x01').next().unwrap();
                Some(format!("{} {id}", record.seq))
            }
            Found::Good(_) => None,
            other => panic!("{other:?}"),
        });
        records.collect()
    }
}

#[test]
fn messages_are_kept_under_their_numbers_before_the_application_sees_them() {
    let folder = Folder::new("kept");
    let (mut sell, address) = folder.seller();
    let mut world = World::new();
    let mut buy = initiator("BUY", &[address]);
    world.run(&mut [&mut buy, &mut sell]);
    order(&mut buy, world.now, "one");
    world.run(&mut [&mut buy, &mut sell]);
    // A heartbeat, which has a number too.
    world.wait(31);
    world.run(&mut [&mut buy, &mut sell]);
    sell.handler().bomb = Some("two");
    order(&mut buy, world.now, "two");
    world.run(&mut [&mut buy, &mut sell]);
    assert_eq!(sell.panics(), 1);
    let kept = folder.kept();
    assert_eq!(kept[0], "2 one");
    assert!(kept.len() == 2 && kept[1].ends_with(" two"), "{kept:?}");
    // The message is repeated, and is stored once.
    sell.handler().bomb = None;
    world.wait(5);
    world.run(&mut [&mut buy, &mut sell]);
    assert!(lines(&mut sell).contains(&"BUY: D two again".to_owned()));
    assert_eq!(folder.kept(), kept);
    // Another process continues from here.
    drop(sell);
    let (mut sell, _) = folder.seller();
    assert_eq!(folder.kept(), kept);
    let now = world.now;
    sell.on_close(now);
}

#[test]
fn the_counterparty_is_told_why_a_message_is_not_kept() {
    let folder = Folder::new("told");
    let (mut sell, address) = folder.seller();
    let mut world = World::new();
    let mut caller = TcpStream::connect(address).unwrap();
    let order = format!("11=long|58={}|", "x".repeat(60_000));
    for message in [
        greetings::of_buy("A", 1, "98=0|108=30|"),
        greetings::of_buy("D", 2, &order),
    ] {
        caller.write_all(message.as_bytes()).unwrap();
        world.run(&mut [&mut sell]);
    }
    let said = String::from_utf8(rest(caller)).unwrap();
    let why = "\x0158=store: the message is larger than the store\x01";
    assert!(
        said.contains("\x0135=5\x01") && said.contains(why),
        "{said}"
    );
}

#[test]
fn passwords_are_not_kept() {
    let folder = Folder::new("secrets");
    let (mut sell, address) = folder.seller();
    let mut world = World::new();
    let mut buy = initiator("BUY", &[address]);
    world.run(&mut [&mut buy, &mut sell]);
    let now = world.now;
    let mut peers = handler_peers(&mut buy, now);
    let sent = peers.get(SessionKey(0)).unwrap().send(b"BE", |body| {
        body.str(11, "u").str(553, "me").str(554, "open sesame");
    });
    assert_eq!(sent, Ok(2));
    buy.flush_touched(now);
    world.run(&mut [&mut buy, &mut sell]);
    assert_eq!(folder.kept(), ["2 u"]);
    let path = folder_for(&folder.0, "FIX.4.4:SELL->BUY").join("received");
    for file in std::fs::read_dir(path).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(11).any(|part| part == b"open sesame"));
    }
}

#[test]
fn what_is_kept_begins_again_with_the_numbers() {
    let folder = Folder::new("reset");
    let (mut sell, address) = folder.seller();
    let mut world = World::new();
    let resetting = || {
        let mut session = config("BUY", "SELL");
        session.reset_on_logon = true;
        initiating(Initiator::new(session, vec![address]))
    };
    for id in ["first", "second"] {
        let mut buy = resetting();
        world.run(&mut [&mut buy, &mut sell]);
        order(&mut buy, world.now, id);
        world.run(&mut [&mut buy, &mut sell]);
        assert_eq!(folder.kept(), [format!("2 {id}")]);
        log_out(&mut buy, world.now);
        world.run(&mut [&mut buy, &mut sell]);
        world.wait(5);
    }
}

/// Sends orders, one at a time.
fn orders(world: &mut World, buy: &mut Host<Diary>, sell: &mut Host<Diary>, ids: &[&str]) {
    for id in ids {
        order(buy, world.now, id);
        world.run(&mut [buy, sell]);
    }
}

#[test]
fn messages_are_kept_after_the_expected_number_was_lowered() {
    for target in [2, 4] {
        let folder = Folder::new(&format!("lowered-{target}"));
        let (mut sell, address) = folder.seller();
        let mut world = World::new();
        let mut buy = initiator("BUY", &[address]);
        world.run(&mut [&mut buy, &mut sell]);
        orders(&mut world, &mut buy, &mut sell, &["one", "two", "three"]);
        assert_eq!(folder.kept(), ["2 one", "3 two", "4 three"]);
        let now = world.now;
        let mut peers = handler_peers(&mut sell, now);
        let session = peers.get(SessionKey(0)).unwrap().session;
        session.change_next_target(now, target).unwrap();
        let mut peers = handler_peers(&mut buy, now);
        let session = peers.get(SessionKey(0)).unwrap().session;
        session.change_next_sender(now, target).unwrap();
        orders(&mut world, &mut buy, &mut sell, &["four", "five"]);
        let kept = folder.kept();
        let new = [format!("{target} four"), format!("{} five", target + 1)];
        assert_eq!(kept[..3], ["2 one", "3 two", "4 three"]);
        assert_eq!(kept[3..], new);
        // Another process continues from here.
        drop(sell);
        let (mut sell, _) = folder.seller();
        assert_eq!(folder.kept(), kept);
        sell.on_close(now);
    }
}

#[test]
fn messages_are_kept_after_a_live_reset_that_one_was_under_way_to() {
    let folder = Folder::new("live");
    let (mut sell, address) = folder.seller();
    let mut world = World::new();
    let mut buy = initiator("BUY", &[address]);
    world.run(&mut [&mut buy, &mut sell]);
    orders(&mut world, &mut buy, &mut sell, &["one", "two"]);
    let now = world.now;
    order(&mut buy, now, "under way");
    let mut peers = handler_peers(&mut sell, now);
    peers
        .get(SessionKey(0))
        .unwrap()
        .session()
        .reset_sequence(now)
        .unwrap();
    sell.flush_touched(now);
    world.run(&mut [&mut buy, &mut sell]);
    assert!(lines(&mut sell).contains(&"BUY: D under way".to_owned()));
    orders(&mut world, &mut buy, &mut sell, &["three", "four"]);
    assert_eq!(folder.kept(), ["4 under way", "2 three", "3 four"]);
}

#[test]
fn a_session_that_keeps_none_has_no_memory_for_a_journal() {
    let session = size_of::<fanfare_fix::session::Session<Store>>();
    let beside = size_of::<hosted::Hosted>() - session;
    assert!(beside < 640, "{beside} bytes");
}
