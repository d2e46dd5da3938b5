//! Checks that the gateway's threads allocate nothing between warm-up and end, and that idle
//! sessions take little memory.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

use fanfare_counting::{exempt_this_thread, totals};
use fanfare_engine::stop::Stop;
use fanfare_engine::udp::{Sender, SenderConfig};
use fanfare_fast::Program;
use fanfare_fast::generate::{ComplexOptions, Generator, SpectraOptions};
use fanfare_fix::codec::{Frame, FrameFinder};
use fanfare_gateway::{Config, DdsEnd, Gateway};
use fanfare_peers::fix::{framed, wire};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

fn start(change: impl FnOnce(&mut Config)) -> Gateway {
    exempt_this_thread();
    let mut config = Config::default();
    config.producers.port = 0;
    config.consumers.port = 0;
    change(&mut config);
    Gateway::start(&config, Stop::new()).unwrap()
}

/// Returns a whole message, with `|` for SOH.
fn message(sender: &str, seq: u64, msg_type: &str, body: &str) -> Vec<u8> {
    message_in("FIX.4.4", sender, seq, msg_type, body)
}

fn message_in(version: &str, sender: &str, seq: u64, msg_type: &str, body: &str) -> Vec<u8> {
    let time = fanfare_engine::clock::Clock::new().read().utc;
    let time = time.text(fanfare_wire::Precision::Millis);
    let fields = format!("35={msg_type}|49={sender}|56=PLANT|34={seq}|52={time}|{body}");
    wire(&framed(version, &fields))
}

/// A time longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Logs on without heartbeats, which a slow machine would count with the messages.
fn log_on(to: std::net::SocketAddr, name: &str) -> TcpStream {
    log_on_in(to, name, "FIX.4.4")
}

fn log_on_in(to: std::net::SocketAddr, name: &str, version: &str) -> TcpStream {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
        .write_all(&message_in(version, name, 1, "A", "98=0|108=0|141=Y|"))
        .unwrap();
    drain(&mut stream, 1);
    stream
}

/// Sends an unmarked message in two pieces. A connection allocates a buffer for partial messages
/// with the first of them, and how often one is cut in reading is a matter of chance.
fn in_pieces(to: std::net::SocketAddr, producer: &mut TcpStream, seq: &mut u64) -> TcpStream {
    *seq += 1;
    let whole = message("P", *seq, "W", "55=EURUSD|268=0|");
    let (front, rest) = whole.split_at(whole.len() / 2);
    producer.write_all(front).unwrap();
    // A Logon sent after it is answered once it has been read.
    let other = log_on(to, "Q");
    producer.write_all(rest).unwrap();
    other
}

/// Reads `messages` messages.
fn drain(stream: &mut TcpStream, messages: usize) {
    let finder = FrameFinder::new(1 << 16);
    let mut bytes = Vec::new();
    let mut got = 0;
    while got < messages {
        let mut chunk = [0; 1 << 14];
        let count = match stream.read(&mut chunk) {
            // With a time-out, a read that was stopped and continued is not restarted.
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            read => read.unwrap(),
        };
        assert!(count > 0, "closed");
        bytes.extend_from_slice(&chunk[..count]);
        while let Frame::Message { end, .. } = finder.find(&bytes) {
            bytes.drain(..end);
            got += 1;
        }
    }
}

/// Sends `count` marked messages and as many unmarked ones, with a TestRequest now and then, in
/// bursts, so that single messages and batches are sent.
fn traffic(producer: &mut TcpStream, consumers: &mut [TcpStream], seq: &mut u64, count: u64) {
    let mut out = Vec::new();
    for i in 0..count {
        for (msg_type, body) in [
            ("W", "20001=P-1|55=EURUSD|268=0|"),
            ("W", "55=EURUSD|268=0|"),
        ] {
            *seq += 1;
            out.extend_from_slice(&message("P", *seq, msg_type, body));
        }
        if i % 7 < 3 {
            producer.write_all(&out).unwrap();
            out.clear();
        }
    }
    producer.write_all(&out).unwrap();
    for consumer in consumers {
        drain(consumer, count as usize);
    }
}

/// Runs two gateways with DDS between them: producers at the first, consumers at the second.
fn over_dds() {
    let end = DdsEnd {
        domain: fanfare_peers::domain(),
        // The longest wait, because a message dropped on a busy machine would be missing here.
        wait_ms: 10_000,
        msg_types: vec!["W".to_owned()],
        ..DdsEnd::default()
    };
    let first = start(|c| c.dds.publish = Some(end.clone()));
    let second = start(|c| c.dds.subscribe = Some(end.clone()));
    let until = Instant::now() + PATIENCE;
    while first.count("dds_readers") + second.count("dds_writers") < 2 {
        assert!(Instant::now() < until, "the gateways did not meet");
        std::thread::yield_now();
    }
    let mut consumers: Vec<TcpStream> = (0..3)
        .map(|i| log_on(second.consumers(), &format!("C{i}")))
        .collect();
    let mut producer = log_on(first.producers(), "P");
    let mut seq = 1;
    let _other = in_pieces(first.producers(), &mut producer, &mut seq);
    traffic(&mut producer, &mut consumers, &mut seq, 1_000);
    let before = totals().allocations;
    traffic(&mut producer, &mut consumers, &mut seq, 3_000);
    assert_eq!(
        totals().allocations - before,
        0,
        "allocations of ours on the way over DDS"
    );
    for gateway in [first, second] {
        gateway.stop().raise();
        gateway.join().unwrap();
    }
}

/// Runs a feed that is encoded for consumers of two versions.
fn over_a_feed() {
    let port = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let group = format!("239.255.84.1:{port}");
    let text = format!("[feed]\ntemplates = \"builtin:complex\"\nlines = [\"{group}\"]\n");
    let feeds = Config::from_toml(&text).unwrap().feeds;
    let gateway = start(|config| config.feeds = feeds);
    let mut consumers: Vec<TcpStream> = ["FIX.4.4", "FIX.4.2", "FIX.4.2"]
        .iter()
        .enumerate()
        .map(|(i, version)| log_on_in(gateway.consumers(), &format!("C{i}"), version))
        .collect();
    let sender = Sender::open(&SenderConfig::new(group.parse().unwrap())).unwrap();
    let mut send = |messages: u64| {
        let options = ComplexOptions::default();
        let mut feed = Generator::complex(Program::complex(), messages, None, options);
        for i in 0..messages {
            let packet = feed.next_packet().unwrap().unwrap();
            sender.send(packet).unwrap();
            if i % 16 == 15 {
                consumers
                    .iter_mut()
                    .for_each(|consumer| drain(consumer, 16));
            }
        }
    };
    // The numbers begin again each time, which also has to be warmed up.
    send(1_600);
    send(1_600);
    let before = totals().allocations;
    send(1_600);
    let made = totals().allocations - before;
    assert_eq!(made, 0, "allocations on the way from FAST to FIX");
    gateway.stop().raise();
    gateway.join().unwrap();
}

/// Logs on and subscribes to everything: with changes, with snapshots, and conflated.
fn subscribers(to: std::net::SocketAddr) -> Vec<TcpStream> {
    let requests = [
        "264=5|265=1|20012=7|",
        "264=1|265=0|",
        "264=0|265=1|20010=conflated|20011=1|",
    ];
    let requests = requests.iter().enumerate();
    let subscribe = |(i, request): (usize, &&str)| {
        let (name, version) = (format!("S{i}"), ["FIX.4.4", "FIX.4.2"][i % 2]);
        let mut stream = log_on_in(to, &name, version);
        let body = format!("262=r|263=1|{request}267=3|269=0|269=1|269=2|146=1|55=*|");
        let request = message_in(version, &name, 2, "V", &body);
        stream.write_all(&request).unwrap();
        stream.set_nonblocking(true).unwrap();
        stream
    };
    requests.map(subscribe).collect()
}

/// Reads the available bytes. Returns their number.
fn read_all(streams: &mut [TcpStream]) -> usize {
    let mut room = vec![0; 1 << 16];
    let mut total = 0;
    for stream in streams {
        loop {
            match stream.read(&mut room) {
                Ok(count) => {
                    assert!(count > 0, "a subscriber was logged out");
                    total += count;
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => panic!("{e}"),
            }
        }
    }
    total
}

/// Runs a feed with snapshots that is a market, a reader of its events, and subscribers, and
/// another gateway that receives the market over DDS.
fn over_a_market() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    let groups = [85, 86].map(|last| format!("239.255.{last}.1:{port}"));
    let [line, snapshots] = &groups;
    let domain = fanfare_peers::domain();
    let text = format!(
        "[feed]\ntemplates = \"builtin:spectra\"\nlines = [\"{line}\"]\nchannel = \"one\"\n\
         mapping = \"builtin:spectra\"\n[feed.snapshot]\nlines = [\"{snapshots}\"]\n\
         [feed.edges]\ndomain = {domain}\nlease_ms = 60000\n"
    );
    let feeds = Config::from_toml(&text).unwrap().feeds;
    let edges = format!("[[edge]]\nchannel = \"one\"\ndomain = {domain}\nlease_ms = 60000\n");
    let edges = Config::from_toml(&edges).unwrap().edges;
    let mut gateway = start(|config| config.feeds = feeds);
    let mut edge = start(|config| config.edges = edges);
    let mut at_edge = edge.take_events().unwrap();
    let mut events = gateway.take_events().unwrap();
    let mut subscribers = subscribers(gateway.consumers());
    let mut sources = [false, true].map(|snapshots| {
        let to = groups[usize::from(snapshots)].parse().unwrap();
        let options = SpectraOptions {
            snapshots,
            // The first trade of an instrument allocates its last values.
            trades: 40,
            ..SpectraOptions::default()
        };
        let feed = Generator::spectra(Program::spectra(), 10_000, None, options);
        (Sender::open(&SenderConfig::new(to)).unwrap(), feed)
    });
    let mut sent = 0;
    let mut run = |messages: u64| {
        for _ in 0..messages {
            for (sender, feed) in &mut sources {
                sender.send(feed.next_packet().unwrap().unwrap()).unwrap();
            }
            sent += 1;
            // The number of messages of a turn is fixed, because a turn longer than all before
            // allocates.
            let until = Instant::now() + PATIENCE;
            while ["datagrams", "snapshot_packets"].map(|name| gateway.count(name)) != [sent; 2] {
                events.read(64, |_| {});
                assert!(Instant::now() < until, "nothing came");
            }
            while at_edge.read(64, |_| {}) > 0 {}
            read_all(&mut subscribers);
        }
        while events.read(64, |_| {}) > 0 {}
        read_all(&mut subscribers)
    };
    run(6_000);
    let before = totals().allocations;
    let sent = gateway.count("deliveries");
    run(3_000);
    let made = totals().allocations - before;
    assert_eq!(
        made, 0,
        "allocations on the way from FAST to events and subscribers"
    );
    let sent = gateway.count("deliveries") - sent;
    assert!(sent > 6_000, "{sent} messages to subscribers");
    assert!(gateway.count("market_events") > 3_000);
    assert!(edge.count("market_events") > 3_000);
    for gateway in [gateway, edge] {
        gateway.stop().raise();
        gateway.join().unwrap();
    }
}

/// Returns the body of the `n`th change of a book with a bid at 10: of its size, of a level beside
/// it, which comes and goes, or a trade.
fn change(n: u64) -> String {
    let entry = match n % 4 {
        1 => "279=0|269=0|55=A|270=9|271=5|".to_owned(),
        2 => format!("279=1|269=0|55=A|270=10|271={}|", 1 + n % 100),
        3 => "279=2|269=0|55=A|270=9|271=5|".to_owned(),
        _ => "279=0|269=2|55=A|270=10|271=1|".to_owned(),
    };
    format!("262=f1|268=1|{entry}")
}

/// Runs a feed that is a FIX session, whose venue is this thread, and a reader of its events.
fn over_a_session() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let text = format!(
        "[[feed]]\nchannel = \"venue\"\n[feed.book]\nkind = \"prices\"\n[feed.fix]\n\
         hosts = \"{at}\"\nsender = \"PLANT\"\ntarget = \"V\"\nversion = \"FIX.4.4\"\n\
         subscribe = [\"A\"]\nheartbeat_s = 3600\n"
    );
    let sessions = Config::from_toml(&text).unwrap().sessions;
    let mut gateway = start(|config| config.sessions = sessions);
    let mut events = gateway.take_events().unwrap();
    let (mut venue, _) = listener.accept().unwrap();
    venue.set_read_timeout(Some(PATIENCE)).unwrap();
    drain(&mut venue, 1);
    let logon = message("V", 1, "A", "98=0|108=3600|141=Y|");
    venue.write_all(&logon).unwrap();
    // The request.
    drain(&mut venue, 1);
    let book = "262=f1|55=A|268=2|269=0|270=10|271=1|269=1|270=20|271=1|";
    venue.write_all(&message("V", 2, "W", book)).unwrap();
    let mut sent = 1;
    let mut run = |messages: u64| {
        for _ in 0..messages {
            let before = gateway.count("market_events");
            let body = change(sent);
            venue
                .write_all(&message("V", sent + 2, "X", &body))
                .unwrap();
            sent += 1;
            // The number of messages of a turn is fixed, because a turn longer than all before
            // allocates.
            let until = Instant::now() + PATIENCE;
            while gateway.count("source_messages") < sent
                || gateway.count("market_events") == before
            {
                events.read(64, |_| {});
                assert!(Instant::now() < until, "nothing came");
            }
            while events.read(64, |_| {}) > 0 {}
        }
    };
    run(2_000);
    let before = totals().allocations;
    run(2_000);
    let made = totals().allocations - before;
    assert_eq!(made, 0, "allocations on the way from a session to events");
    assert_eq!(gateway.count("source_losses"), 0);
    assert_eq!(gateway.count("source_requests"), 1, "no book had a fault");
    gateway.stop().raise();
    gateway.join().unwrap();
}

/// One test, because the counters are of the whole process.
#[test]
fn no_allocation_after_warm_up_and_little_memory_for_an_idle_session() {
    let gateway = start(|_| {});
    let mut consumers: Vec<TcpStream> = (0..20)
        .map(|i| log_on(gateway.consumers(), &format!("C{i}")))
        .collect();
    let mut producer = log_on(gateway.producers(), "P");
    let mut seq = 1;
    let other = in_pieces(gateway.producers(), &mut producer, &mut seq);
    traffic(&mut producer, &mut consumers, &mut seq, 2_000);
    let before = totals().allocations;
    assert!(before > 0, "the counter counts");
    traffic(&mut producer, &mut consumers, &mut seq, 5_000);
    assert_eq!(
        totals().allocations - before,
        0,
        "allocations on receive and on send"
    );

    let before = totals().live_bytes;
    fanfare_engine::limits::raise_open_files(8192).unwrap();
    let idle: Vec<TcpStream> = (0..1000)
        .map(|i| log_on(gateway.consumers(), &format!("IDLE{i}")))
        .collect();
    let each = (totals().live_bytes - before) / idle.len() as i64;
    assert!(
        (100..64 << 10).contains(&each),
        "{each} bytes for an idle session"
    );
    println!("an idle session costs {each} bytes");
    gateway.stop().raise();
    gateway.join().unwrap();
    drop((idle, consumers, producer, other));
    over_dds();
    over_a_feed();
    over_a_market();
    over_a_session();
}
