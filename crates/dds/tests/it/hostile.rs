//! Invalid input that must be refused, with a reason.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use fanfare_dds::cdr::CdrBuffer;
use fanfare_dds::types::{Kind, StructType};
use fanfare_dds::{Domain, DomainConfig, Error, Qos, Transport};

use crate::support::{
    domain_id, listening, pair, quote, quote_reader, quote_writer, take_quotes, topic_name,
    wait_until, write_quote,
};

#[test]
fn bytes_that_are_not_of_the_type_are_refused_by_the_writer() {
    let domain = Domain::open(&DomainConfig::new(domain_id())).unwrap();
    let qos = Qos::reliable();
    let topic = domain.topic(&topic_name("bytes"), &quote(), &qos).unwrap();
    let reader = topic.reader(&qos).open().unwrap();
    let writer = topic.writer(&qos).open().unwrap();
    let bad: [&[u8]; 5] = [
        b"",
        b"\0\x01",
        b"\0\x01\0\0\x01\0\0\0",
        b"\xff\xff\0\0aaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        b"\0\x01\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\xff\xff\xffabcd",
    ];
    for bytes in bad {
        let error = writer.write(bytes).unwrap_err();
        assert!(
            matches!(error, Error::SampleMismatch { .. }),
            "{bytes:?}: {error}"
        );
    }
    write_quote(&writer, &mut CdrBuffer::with_capacity(64), 1, 1.0);
    assert_eq!(take_quotes(&reader, 1), [(1, 1.0)]);
}

#[test]
fn another_type_under_the_same_name_does_not_match() {
    let (here, there) = pair();
    let name = topic_name("types");
    let qos = Qos::last_value();
    let other = StructType::new("Test::Quote").key("security", Kind::String(None));
    let stranger = there
        .topic(&name, &other, &qos)
        .unwrap()
        .writer(&qos)
        .open()
        .unwrap();
    let mut buffer = CdrBuffer::with_capacity(64);
    buffer.string(b"intruder");
    stranger.write(buffer.finish().unwrap()).unwrap();
    let reader = quote_reader(&here, &name, &qos);
    let good = quote_writer(&here, &name, &qos);
    write_quote(&good, &mut buffer, 1, 1.0);
    assert_eq!(take_quotes(&reader, 1), [(1, 1.0)]);
    assert!(!stranger_was_heard(&stranger));
}

/// Returns whether the stranger's writer was matched: a reliable reader that matched would owe an
/// acknowledgement.
fn stranger_was_heard(stranger: &fanfare_dds::Writer) -> bool {
    !stranger.wait_for_acks(Duration::from_millis(10)).unwrap()
}

#[test]
fn a_sample_that_is_too_long_is_dropped_before_it_is_whole() {
    let config = DomainConfig::new(domain_id());
    let short = DomainConfig {
        longest_sample: 100_000,
        ..config.clone()
    };
    let here = Domain::open(&short).unwrap();
    let there = Domain::open(&config).unwrap();
    let (name, qos) = (topic_name("long"), Qos::last_value());
    let t = StructType::new("Test::Blob")
        .key("id", Kind::UInt32)
        .member("load", Kind::Sequence(Box::new(Kind::Byte), None));
    let writer = there.topic(&name, &t, &qos).unwrap().writer(&qos);
    let writer = writer.open().unwrap();
    let reader = here.topic(&name, &t, &qos).unwrap().reader(&qos);
    let reader = reader.open().unwrap();
    let mut buffer = CdrBuffer::with_capacity(1 << 20);
    let mut blob = |id: u32, length: usize| {
        buffer.begin();
        buffer.u32(id);
        buffer.octets(&vec![1; length]);
        buffer.finish().unwrap().to_vec()
    };
    for (id, length) in [(1, 500_000), (2, 99_988), (3, 99_993), (4, 10)] {
        writer.write(&blob(id, length)).unwrap();
    }
    let (mut samples, mut came) = (reader.samples(4), Vec::new());
    wait_until("the last", || {
        reader.take(&mut samples).unwrap();
        came.extend(samples.iter().map(|s| s.cdr().unwrap().u32().unwrap()));
        came.contains(&4)
    });
    assert_eq!(came, [2, 4]);
    let own = here.topic(&name, &t, &qos).unwrap().writer(&qos);
    let refused = own.open().unwrap().write(&blob(5, 500_000));
    assert!(matches!(refused, Err(Error::Dds { .. })), "{refused:?}");
}

/// Returns the configuration of domain 1 with a change.
fn with(change: impl FnOnce(&mut DomainConfig)) -> DomainConfig {
    let mut config = DomainConfig::new(1);
    change(&mut config);
    config
}

#[test]
fn each_thread_is_told_its_own_reason() {
    let open = |interface: &str| {
        let refused = Domain::open(&with(|c| c.interface = interface.to_owned())).unwrap_err();
        let text = refused.to_string();
        assert!(text.contains(interface), "{interface}: {text}");
    };
    std::thread::scope(|scope| {
        for n in 0..4 {
            scope.spawn(move || (0..50).for_each(|_| open(&format!("nosuch{n}"))));
        }
    });
}

#[test]
fn what_cannot_be_opened_says_why() {
    let error = |c: DomainConfig| Domain::open(&c).unwrap_err().to_string();
    assert!(error(DomainConfig::new(233)).contains("0 to 232"));
    let on = |interface: &str| with(|c| c.interface = interface.to_owned());
    assert!(error(on("")).contains("no network interface"));
    let text = error(on("nosuch0"));
    assert!(text.contains("nosuch0"), "{text}");
    let text = error(on("198.51.100.1"));
    assert!(text.contains("198.51.100.1"), "{text}");
    let text = error(with(|c| c.extra_xml = "<Nonsense/>".to_owned()));
    assert!(text.contains("Nonsense"), "{text}");
    let tcp = with(|c| {
        c.transport = Transport::Tcp;
        c.peers.push("127.0.0.1".to_owned());
    });
    assert!(error(tcp).contains("ADDRESS:PORT"));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let tcp = with(|c| {
        c.transport = Transport::Tcp;
        c.tcp_port = port;
    });
    let text = error(tcp);
    assert!(text.contains("cannot listen on TCP port"), "{text}");
}

/// The library ends the process over peers like these.
#[test]
fn a_peer_that_is_no_host_is_refused() {
    for peer in [
        "no such host",
        "0.0.0.0",
        "127.0.0.1:0",
        "::1",
        "239.255.0.1",
        ":1",
        "a,b",
    ] {
        let refused = Domain::open(&with(|c| c.peers.push(peer.to_owned())));
        assert!(matches!(refused, Err(Error::Config(_))), "{peer:?}");
    }
}

#[test]
fn names_and_types_that_cannot_be_are_refused() {
    let domain = Domain::open(&DomainConfig::new(domain_id())).unwrap();
    let qos = Qos::default();
    let named = |name: &str| domain.topic(name, &quote(), &qos).map(|_| ());
    assert!(matches!(named(""), Err(Error::Name { .. })));
    assert!(matches!(named("a\0b"), Err(Error::Name { .. })));
    assert!(matches!(named("a b"), Err(Error::Dds { .. })));
    let empty = StructType::new("Empty");
    assert!(matches!(
        domain.topic("t", &empty, &qos),
        Err(Error::Type(_))
    ));
    let topic = domain.topic("t", &quote(), &qos).unwrap();
    let odd = topic.writer(&Qos::default().partition("a\0")).open();
    assert!(matches!(odd, Err(Error::Name { .. })));
}

/// The domain of the process below; not set in the test's own.
const SERVED: &str = "FANFARE_TEST_SERVED_DOMAIN";
/// The most descriptors of the process.
const DESCRIPTORS: usize = 256;

/// Returns the configuration of a domain over TCP.
fn tcp(id: u32) -> DomainConfig {
    DomainConfig {
        transport: Transport::Tcp,
        ..DomainConfig::new(id)
    }
}

/// The process of the test below: it serves a quote over TCP until its stdin closes.
#[test]
fn process_that_serves() {
    let Ok(id) = std::env::var(SERVED) else {
        return;
    };
    let (domain, number) = listening(&tcp(id.parse().unwrap()));
    let writer = quote_writer(&domain, "served", &Qos::last_value());
    write_quote(&writer, &mut CdrBuffer::with_capacity(64), 1, 2.0);
    println!("port {number}");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// A process that serves; dropping it kills it.
struct Serving {
    child: Child,
    port: u16,
    /// Open for what the process still prints.
    _out: BufReader<ChildStdout>,
}

impl Serving {
    fn start(id: u32) -> Self {
        let limited = format!("ulimit -n {DESCRIPTORS}; exec \"$0\" \"$@\"");
        let mut child = Command::new("sh")
            .args(["-c", &limited])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "hostile::process_that_serves", "--nocapture"])
            .env(SERVED, id.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let port = out.by_ref().lines().find_map(|line| {
            let line = line.unwrap();
            line.split_once("port ")?.1.parse().ok()
        });
        Self {
            child,
            port: port.unwrap(),
            _out: out,
        }
    }

    /// Returns the number of its open descriptors; `None` if it is gone.
    fn descriptors(&self) -> Option<usize> {
        let all = std::fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        all.ok().map(Iterator::count)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Each connection takes a descriptor, and any host that reaches the port opens any number of them.
#[test]
fn connections_are_outlived_when_no_descriptor_is_left() {
    let id = domain_id();
    let serving = Serving::start(id);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, serving.port));
    let mut held = Vec::new();
    wait_until("the last descriptor", || {
        // Beyond the limit nobody accepts, until the kernel queues no more.
        match TcpStream::connect_timeout(&address, Duration::from_millis(100)) {
            Ok(stream) => {
                held.push(stream);
                false
            }
            Err(_) => serving.descriptors().is_some_and(|n| n >= DESCRIPTORS),
        }
    });
    // Some send no RTPS before they close.
    for stream in held.iter_mut().step_by(2) {
        let _ = stream.write_all(&[b'x'; 64]);
    }
    drop(held);
    wait_until("free descriptors", || {
        serving.descriptors().is_some_and(|n| n < DESCRIPTORS / 2)
    });
    let mut config = tcp(id);
    config.peers.push(format!("127.0.0.1:{}", serving.port));
    let here = Domain::open(&config).unwrap();
    let reader = quote_reader(&here, "served", &Qos::last_value());
    assert_eq!(take_quotes(&reader, 1), [(1, 2.0)]);
}
