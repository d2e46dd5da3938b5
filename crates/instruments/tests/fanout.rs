//! Tests of the whole path: producers, gateway, consumers, capture, report.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::net::{SocketAddr, TcpListener};
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
    let consumers = Consumers::connect(&ConsumerOptions {
        address: gateway.consumers(),
        ..consumers
    })
    .unwrap();
    let options = ProducerOptions {
        address: gateway.producers(),
        ..producers
    };
    let producers = Producers::connect(&options, Template::builtin()).unwrap();
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
    let consumers = Consumers::connect(&ConsumerOptions::new(address, 2)).unwrap();
    let options = ProducerOptions::new(gateway.producers(), 2);
    let producers = Producers::connect(&options, Template::builtin()).unwrap();
    stop.raise();
    let sent = producers.run(&stop).unwrap();
    assert_eq!((sent.sent, sent.rate()), (0, 0.0));
    assert_eq!(sent.figures().to_json()["ok"], false);
    let received = consumers.run(&stop, &mut |_| {}).unwrap();
    assert_eq!((received.received, received.ended), (0, 0));
    close(gateway);
}

#[test]
fn a_gateway_that_goes_away_is_told() {
    let gateway = gateway();
    let stop = Stop::new();
    let options = ConsumerOptions::new(gateway.consumers(), 3);
    let consumers = Consumers::connect(&options).unwrap();
    let address = gateway.producers();
    let endless = ProducerOptions {
        messages: u64::MAX / 8,
        ..ProducerOptions::new(address, 2)
    };
    let producers = Producers::connect(&endless, Template::builtin()).unwrap();
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
    let refused = Producers::connect(&nobody, Template::builtin());
    let refused = refused.err().unwrap();
    assert!(matches!(refused, LoadError::Connect { .. }), "{refused}");
    assert!(refused.to_string().contains("P1"), "{refused}");
}
