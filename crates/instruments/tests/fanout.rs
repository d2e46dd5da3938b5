//! Tests of the whole path: producers, gateway, consumers, capture, report.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::thread;

use fanfare_engine::stop::Stop;
use fanfare_gateway::{Config, Gateway};
use fanfare_instruments::capture::{Capture, CaptureError, CaptureOptions};
use fanfare_instruments::fanout::{Options, Report, analyse};
use fanfare_instruments::load::{
    ConsumerOptions, ConsumerReport, Consumers, LoadError, ProducerOptions, ProducerReport,
    Producers, Template,
};

fn gateway() -> Gateway {
    let mut config = Config::default();
    (config.producers.port, config.consumers.port) = (0, 0);
    Gateway::start(&config, Stop::new()).unwrap()
}

fn close(gateway: Gateway) {
    gateway.stop().raise();
    gateway.join().unwrap();
}

/// Runs consumers until they have the expected messages, with producers beside them.
fn run(
    gateway: &Gateway,
    consumers: ConsumerOptions,
    producers: ProducerOptions,
) -> (ConsumerReport, ProducerReport, Vec<u64>) {
    let (stop, mut told) = (Stop::new(), Vec::new());
    let consumers = ConsumerOptions {
        address: gateway.consumers(),
        ..consumers
    };
    let consumers = Consumers::connect(&consumers, &stop).unwrap();
    let options = ProducerOptions {
        address: gateway.producers(),
        ..producers
    };
    let producers = Producers::connect(&options, Template::builtin(), &stop).unwrap();
    let received = thread::scope(|scope| {
        let consumers = scope.spawn(|| consumers.run(&stop, &mut |total| told.push(total)));
        let sent = producers.run(&stop).unwrap();
        (consumers.join().unwrap().unwrap(), sent)
    });
    (received.0, received.1, told)
}

fn nowhere() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn consumers(clients: usize, messages: u64) -> ConsumerOptions {
    let options = ConsumerOptions::new(nowhere(), clients);
    ConsumerOptions {
        messages: Some(messages),
        from_start: true,
        progress: 100,
        ..options
    }
}

fn producers(clients: usize, messages: u64, rate: f64, fanout: u64) -> ProducerOptions {
    let options = ProducerOptions::new(nowhere(), clients);
    ProducerOptions {
        messages,
        rate,
        fanout,
        ..options
    }
}

/// Returns a capture of both ports, or `None` without the permission.
fn captured(
    gateway: &Gateway,
    name: &str,
    run: impl FnOnce(),
) -> Option<Result<Report, Box<dyn std::error::Error>>> {
    let ports = [gateway.producers().port(), gateway.consumers().port()];
    let file = std::env::temp_dir().join(format!("fanfare-{name}-{}.pcap", ports[0]));
    let capture = match Capture::start(CaptureOptions::new(&file, &ports)) {
        Ok(capture) => capture,
        Err(CaptureError::Privilege { .. } | CaptureError::Library { .. }) => {
            run();
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    run();
    let stats = capture.stop().unwrap();
    assert_eq!(stats.dropped, 0);
    let options = Options {
        in_port: ports[0],
        out_port: ports[1],
        skip: 0,
    };
    let report = std::fs::File::open(&file).map_err(Into::into);
    let report = report.and_then(|file| Ok(analyse(file, options)?));
    std::fs::remove_file(&file).unwrap();
    Some(report)
}

#[test]
fn every_marked_message_reaches_every_consumer_once_and_in_order() {
    let gateway = gateway();
    let report = captured(&gateway, "whole", || {
        let (received, sent, told) = run(&gateway, consumers(20, 800), producers(5, 40, 200.0, 5));
        assert_eq!((sent.sent, sent.marked, sent.lag.len()), (200, 40, 200));
        assert_eq!((received.received, received.unmarked), (800, 0));
        assert_eq!(
            (received.order.in_order, received.per_session),
            (800, (40, 40))
        );
        assert!(received.is_clean(), "{received:?}");
        assert_eq!(told, [100, 200, 300, 400, 500, 600, 700, 800]);
    });
    if let Some(report) = report {
        let report = report.unwrap();
        assert_eq!(
            (report.incoming.messages, report.outgoing.messages),
            (200, 800)
        );
        assert_eq!(
            (report.latency.len(), report.unmatched, report.undelivered),
            (800, 0, 0)
        );
        assert!(report.warnings.is_empty(), "{:?}", report.warnings);
    }
    close(gateway);
}

#[test]
fn without_a_rate_the_producers_send_as_fast_as_the_gateway_takes_it() {
    let gateway = gateway();
    let options = ProducerOptions {
        threads: 2,
        ..producers(4, 2_000, f64::INFINITY, 8)
    };
    let (received, sent, _) = run(&gateway, consumers(3, 3_000), options);
    assert_eq!((sent.sent, sent.marked), (8_000, 1_000));
    assert!(sent.warning().is_none());
    assert!(received.is_clean(), "{received:?}");
    close(gateway);
}

#[test]
fn a_stop_ends_both_sides_with_the_report_so_far() {
    let gateway = gateway();
    let stop = Stop::new();
    let address = gateway.consumers();
    let consumers = Consumers::connect(&ConsumerOptions::new(address, 2), &stop).unwrap();
    let options = ProducerOptions::new(gateway.producers(), 2);
    let producers = Producers::connect(&options, Template::builtin(), &stop).unwrap();
    stop.raise();
    let sent = producers.run(&stop).unwrap();
    assert_eq!((sent.sent, sent.rate()), (0, 0.0));
    assert_eq!(sent.figures().to_json()["ok"], false);
    let received = consumers.run(&stop, &mut |_| {}).unwrap();
    assert_eq!((received.received, received.ended), (0, 0));
    close(gateway);
}

/// A gateway's side of the session of a consumer.
struct Scripted {
    stream: TcpStream,
    /// SenderCompID(49) of the consumer.
    name: String,
    /// SendingTime(52) of the consumer's last message that was waited for.
    time: String,
    number: u32,
}

impl Scripted {
    /// Accepts a session, and logs it on.
    fn accept(listener: &TcpListener) -> Self {
        let (stream, _) = listener.accept().unwrap();
        let mut session = Self {
            stream,
            name: String::new(),
            time: String::new(),
            number: 1,
        };
        session.wait("A");
        session.send("A", "98=0|108=30|141=Y|");
        session
    }

    /// Waits for a message of this type, which comes alone.
    fn wait(&mut self, msg_type: &str) {
        let (mut bytes, mut piece) = (Vec::new(), [0; 1_024]);
        loop {
            let count = self.stream.read(&mut piece).unwrap();
            assert!(count > 0, "no 35={msg_type}");
            bytes.extend_from_slice(&piece[..count]);
            let text = String::from_utf8_lossy(&bytes).replace('\x01', "|");
            let is_whole = text.contains("|10=") && text.ends_with('|');
            if let Some((_, rest)) = text.split_once(&format!("|35={msg_type}"))
                && is_whole
            {
                let field = |tag: &str| {
                    let (_, rest) = rest.split_once(&format!("|{tag}=")).unwrap();
                    rest.split('|').next().unwrap().to_owned()
                };
                (self.name, self.time) = (field("49"), field("52"));
                return;
            }
        }
    }

    fn send(&mut self, msg_type: &str, fields: &str) {
        let (number, name, time) = (self.number, &self.name, &self.time);
        let body = format!("35={msg_type}|49=FANFARE|56={name}|34={number}|52={time}|{fields}");
        let mut text = format!("8=FIX.4.4|9={}|{body}", body.len()).replace('|', "\x01");
        let sum = text.bytes().fold(0, u8::wrapping_add);
        text += &format!("10={sum:03}\x01");
        self.stream.write_all(text.as_bytes()).unwrap();
        self.number += 1;
    }
}

#[test]
fn messages_during_the_logout_are_not_of_the_rate() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (logged_on, go) = channel();
    let gateway = thread::spawn(move || {
        let mut session = Scripted::accept(&listener);
        go.recv().unwrap();
        (0..2).for_each(|_| session.send("W", "55=A|"));
        session.wait("5");
        (0..3).for_each(|_| session.send("W", "55=A|"));
        session.send("5", "");
        session
    });
    let options = ConsumerOptions {
        messages: Some(2),
        ..ConsumerOptions::new(address, 1)
    };
    let stop = Stop::new();
    let consumers = Consumers::connect(&options, &stop).unwrap();
    logged_on.send(()).unwrap();
    let received = consumers.run(&stop, &mut |_| {}).unwrap();
    drop(gateway.join().unwrap());
    assert_eq!((received.received, received.timed), (5, 2));
    assert_eq!(received.per_session, (5, 5));
    let figures = received.figures().to_json();
    assert_eq!(figures["figures"]["per_session_max"], 5, "{figures}");
}

#[test]
fn marks_that_never_come_to_a_session_are_missing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (logged_on, go) = channel();
    let gateway = thread::spawn(move || {
        let mut sessions = [(); 3].map(|()| Scripted::accept(&listener));
        go.recv().unwrap();
        for (session, last) in sessions.iter_mut().zip([3, 1, 0]) {
            (1..=last).for_each(|mark| session.send("W", &format!("55=A|20001=P1-{mark}|")));
        }
        for session in &mut sessions {
            session.wait("5");
            session.send("5", "");
        }
        sessions
    });
    let options = ConsumerOptions {
        messages: Some(4),
        from_start: true,
        ..ConsumerOptions::new(address, 3)
    };
    let stop = Stop::new();
    let consumers = Consumers::connect(&options, &stop).unwrap();
    logged_on.send(()).unwrap();
    let received = consumers.run(&stop, &mut |_| {}).unwrap();
    drop(gateway.join().unwrap());
    assert_eq!((received.received, received.short), (4, 0));
    assert_eq!(received.per_session, (0, 3));
    assert_eq!(received.order.missing, 2 + 3);
    assert!(!received.is_clean(), "{received:?}");
}

#[test]
fn a_stop_ends_the_wait_for_logons() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let stop = Stop::new();
    stop.raise();
    let consumers = Consumers::connect(&ConsumerOptions::new(address, 300), &stop);
    assert!(matches!(consumers.err(), Some(LoadError::Interrupted)));
    let options = ProducerOptions::new(address, 300);
    let producers = Producers::connect(&options, Template::builtin(), &stop);
    assert!(matches!(producers.err(), Some(LoadError::Interrupted)));
}

#[test]
fn a_gateway_that_goes_away_is_told() {
    let gateway = gateway();
    let stop = Stop::new();
    let options = ConsumerOptions::new(gateway.consumers(), 3);
    let consumers = Consumers::connect(&options, &stop).unwrap();
    let address = gateway.producers();
    let endless = ProducerOptions {
        messages: u64::MAX / 8,
        ..ProducerOptions::new(address, 2)
    };
    let producers = Producers::connect(&endless, Template::builtin(), &stop).unwrap();
    close(gateway);
    let ended = producers.run(&stop).unwrap_err();
    assert!(matches!(ended, LoadError::Ended { .. }), "{ended}");
    let received = consumers.run(&stop, &mut |_| {}).unwrap();
    assert_eq!(received.ended, 3);
    assert!(!received.is_clean() && received.first_ended.is_some());
    // No other test listens on this address, so that none takes the freed port.
    let free = TcpListener::bind("127.0.0.77:0").and_then(|gone| gone.local_addr());
    let nobody = ProducerOptions {
        address: free.unwrap(),
        ..endless
    };
    let refused = Producers::connect(&nobody, Template::builtin(), &stop);
    let refused = refused.err().unwrap();
    assert!(matches!(refused, LoadError::Connect { .. }), "{refused}");
    assert!(refused.to_string().contains("P1"), "{refused}");
}
