//! Topics of unknown types: discovered, requested, and printed.

use std::path::Path;
use std::time::{Duration, Instant};

use fanfare_dds::Domain;
use fanfare_dds::cdr::to_json;
use fanfare_dds::discovery::{Endpoint, EndpointKind};

use crate::{Peer, PeerCommand, canonical, config, python, same_config, wait_until};

/// Final, appendable and mutable; nested, optional, enumerated, bounded, arrays, unions, bitmasks.
#[test]
fn samples_of_a_python_programs_own_types_are_read_field_by_field() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/foreign.py");
    let command = PeerCommand {
        program: python(),
        args: vec![script.to_str().unwrap().to_owned()],
        config: same_config,
    };
    let config = config();
    let mut peer = Peer::start(&command, &config);
    let sent = peer.until("ready");
    assert_eq!(sent.len(), 5);
    let domain = Domain::open(&config).unwrap();
    for line in sent {
        let (name, json) = line.split_once(' ').unwrap();
        let writer = find(&domain, &format!("Foreign_{name}"));
        assert_eq!(writer.type_name, format!("Foreign::{name}"));
        assert!(writer.reliable);
        let topic = domain
            .found_topic(&writer, Duration::from_secs(60))
            .unwrap();
        let reader = topic.reader(&writer.reader_qos(16)).open().unwrap();
        let mut room = reader.samples(4);
        wait_until("the sample", || reader.take(&mut room).unwrap() > 0);
        let sample = room.iter().next().unwrap();
        let got = to_json(topic.sample_type(), sample.bytes()).unwrap();
        assert_eq!(canonical(&got), canonical(json), "{name}");
    }
}

fn find(domain: &Domain, topic: &str) -> Endpoint {
    let mut discovery = domain.discovery().unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        discovery.update().unwrap();
        let mut all = discovery.endpoints();
        if let Some(found) = all.find(|e| e.topic == topic && e.kind == EndpointKind::Writer) {
            return found.clone();
        }
        assert!(Instant::now() < end, "waited a minute for topic {topic}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
