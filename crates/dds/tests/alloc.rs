//! Checks with a counting allocator, by thread, that decoding, converting, writing and taking
//! allocate nothing after warm-up. (Cyclone DDS has a pool of its own, which is not counted.)
#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fanfare_counting::allocations;
use fanfare_dds::cdr::integer_member;
use fanfare_dds::fast::{Converted, Converter, Mapping, TypeOptions};
use fanfare_dds::shm::{Config, Receiver, Sender, TopicSpec};
use fanfare_dds::types::{EnumType, Kind, StructType};
use fanfare_dds::{Domain, DomainConfig, Qos};
use fanfare_fast::generate::{ComplexOptions, Generator};
use fanfare_fast::{Decoder, Program, Record};

fn packets() -> Vec<Vec<u8>> {
    let mut feed = Generator::complex(Program::complex(), 8, None, ComplexOptions::default());
    let mut packets = Vec::new();
    while let Some(packet) = feed.next_packet().unwrap() {
        packets.push(packet.to_vec());
    }
    packets
}

/// Returns packets, and the converter of their samples.
fn conversion() -> (Vec<Vec<u8>>, Arc<Mapping>, (Decoder, Record), Converter) {
    let program = Arc::new(Program::complex());
    let mapping = Mapping::new(Arc::clone(&program), &TypeOptions::default()).unwrap();
    let mapping = Arc::new(mapping);
    let converter = Converter::new(Arc::clone(&mapping), 1 << 14);
    let decoder = (Decoder::new(program), Record::new());
    (packets(), mapping, decoder, converter)
}

/// Decodes a packet, and passes the samples of one topic to `write`.
fn convert(
    ((decoder, record), converter): (&mut (Decoder, Record), &mut Converter),
    packet: &[u8],
    mut write: impl FnMut(&[u8]),
) {
    decoder.reset();
    decoder.decode_record(packet, record).unwrap();
    let write = |s: Converted<'_>| {
        if s.template.name == "MarketData" {
            write(s.cdr);
        }
    };
    converter.samples(record, write).unwrap();
}

#[test]
fn a_message_goes_from_packet_to_reader_without_allocation() {
    let (packets, mapping, mut decoder, mut converter) = conversion();
    let domain = Domain::open(&DomainConfig::new(fanfare_peers::domain())).unwrap();
    let qos = Qos::best_effort();
    let t = &mapping.by_name("MarketData").unwrap().sample;
    let name = format!("alloc-{}", std::process::id());
    let topic = domain.topic(&name, t, &qos).unwrap();
    let heard = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&heard);
    let count = move |s: fanfare_dds::Sample<'_>| {
        counter.fetch_add(s.bytes().len() as u64, Ordering::Relaxed);
    };
    let _listening = topic.reader(&qos).on_sample(count).open().unwrap();
    let reader = topic.reader(&qos).open().unwrap();
    let writer = topic.writer(&qos).open().unwrap();
    let mut samples = reader.samples(16);
    let mut taken = 0;
    let mut round = || {
        for packet in &packets {
            let by = (&mut decoder, &mut converter);
            convert(by, packet, |cdr| writer.write(cdr).unwrap());
            taken += reader.take(&mut samples).unwrap();
            for sample in &samples {
                assert!(sample.cdr().unwrap().u32().is_ok());
            }
        }
    };
    round();
    assert_eq!(allocations(|| (0..50).for_each(|_| round())), 0);
    assert!(taken > 350 && heard.load(Ordering::Relaxed) > 0);
}

/// The walk that prints a sample builds a table of the literals of such an enumeration.
#[test]
fn a_member_behind_a_large_enumeration_is_found_without_allocation() {
    let literals = (0..100).map(|n| (format!("L{n}"), n)).collect();
    let named = Kind::Enum(Arc::new(EnumType {
        name: "Named".to_owned(),
        bit_bound: 32,
        literals,
    }));
    let t = StructType::new("T")
        .member("name", named)
        .member("n", Kind::UInt32);
    let sample = [0, 1, 0, 0, 99, 0, 0, 0, 7, 0, 0, 0];
    let mut found = None;
    let count = allocations(|| found = integer_member(&t, &sample, 1));
    assert_eq!((found, count), (Some(7), 0));
}

#[test]
fn a_message_goes_through_shared_memory_without_allocation() {
    let (packets, mapping, mut decoder, mut converter) = conversion();
    let t = &mapping.by_name("MarketData").unwrap().sample;
    let topics = [TopicSpec::new("MarketData", t, false)];
    // The smallest ring, and a sender that waits for its reader.
    let config = Config::new(fanfare_peers::domain()).unwrap().ring(0);
    let config = config.patience(Duration::from_secs(60));
    let channel = format!("alloc-{}", std::process::id());
    let mut sender = Sender::open(&config, &channel, &topics).unwrap();
    let mut receiver = Receiver::open(&config, &channel, &topics).unwrap();
    receiver.refresh();
    assert_eq!(receiver.senders(), 1);
    let (mut written, mut taken) = (0, 0);
    let mut round = |receiver: &mut Receiver| {
        for packet in &packets {
            convert((&mut decoder, &mut converter), packet, |cdr| {
                sender.write(0, 0, cdr).unwrap();
                written += cdr.len();
            });
            receiver.poll(|sample| taken += sample.bytes.len());
        }
    };
    round(&mut receiver);
    // Fewer polls than those after which the receiver lists the folder of the senders.
    assert!(packets.len() < 256);
    for _ in 0..100 {
        receiver.refresh();
        assert_eq!(allocations(|| round(&mut receiver)), 0);
    }
    // More than once around the ring of 64 KiB.
    assert!(
        taken == written && written > 1 << 18,
        "{taken} of {written}"
    );
}
