//! Forged announcements of participants that do not exist, as any host on the network can send
//! them.

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanfare_dds::cdr::CdrBuffer;
use fanfare_dds::{Domain, DomainConfig, Qos, Warnings};

use crate::support::{
    domain_id, quote_reader, quote_writer, take_quotes, topic_name, wait_until, write_quote,
};

/// The least number of participants.
const STRANGERS: u32 = 3_000;

/// Returns an announcement of a participant (DDSI-RTPS 8.5.3, 9.6.2) that can be reached at `port`
/// of this host, with a lease of two seconds.
fn announcement(number: u32, port: u16) -> Vec<u8> {
    with_lease(number, port, &[2, 0, 0, 0, 0, 0, 0, 0])
}

/// Returns an announcement with these bytes of a lease.
fn with_lease(number: u32, port: u16, lease: &[u8]) -> Vec<u8> {
    let mut prefix = *b"\xff\xfefaker!____";
    prefix[8..].copy_from_slice(&number.to_be_bytes());
    let mut packet = b"RTPS\x02\x01\x01\x10".to_vec();
    packet.extend(prefix);
    let mut guid = prefix.to_vec();
    guid.extend([0, 0, 1, 0xc1]);
    let mut locator = 1_u32.to_le_bytes().to_vec();
    locator.extend(u32::from(port).to_le_bytes());
    locator.extend([0; 12]);
    locator.extend([127, 0, 0, 1]);
    let parameters: [(u16, &[u8]); 7] = [
        (0x15, &[2, 1, 0, 0]),
        (0x16, &[1, 0x10, 0, 0]),
        (0x50, &guid),
        // All endpoints of discovery.
        (0x58, &[0x3f, 0x0c, 0, 0]),
        (0x31, &locator),
        (0x32, &locator),
        (0x02, lease),
    ];
    let mut data = vec![0, 0, 16, 0];
    data.extend([0, 1, 0, 0xc7, 0, 1, 0, 0xc2]);
    data.extend([0, 0, 0, 0, 1, 0, 0, 0]);
    data.extend([0, 3, 0, 0]);
    for (id, value) in parameters {
        data.extend(id.to_le_bytes());
        data.extend((value.len() as u16).to_le_bytes());
        data.extend(value);
    }
    data.extend([1, 0, 0, 0]);
    // DATA with a payload, little endian.
    packet.extend([0x15, 5]);
    packet.extend((data.len() as u16).to_le_bytes());
    packet.extend(data);
    packet
}

/// Cyclone DDS discards such an announcement, and its own log is the only trace of it.
#[test]
fn an_announcement_that_is_not_readable_is_told_until_the_listener_ends() {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&told);
    let warnings = Warnings::new(move |text| kept.lock().unwrap().push(text.to_owned()));
    let id = domain_id();
    let _domain = Domain::open(&DomainConfig::new(id)).unwrap();
    let meta = 7_400 + 250 * u16::try_from(id).unwrap() + 10;
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let own = socket.local_addr().unwrap().port();
    // Lengths of parameters are multiples of 4 (DDSI-RTPS 9.4.2.11).
    let packet = with_lease(7, own, &[2, 0, 0, 0, 0, 0]);
    let is_told = |text: &String| text.contains("deserialization failed");
    wait_until("the warning", || {
        socket.send_to(&packet, ("127.0.0.1", meta)).unwrap();
        std::thread::sleep(Duration::from_millis(4));
        told.lock().unwrap().iter().any(is_told)
    });
    drop(warnings);
    // A thread of the library may be about to call it.
    wait_until("the end of the listener", || Arc::strong_count(&told) == 1);
}

/// They take memory for as long as their announcements continue, and nothing else: Cyclone DDS has
/// no limit of them.
#[test]
fn announcements_of_thousands_who_are_not_there_are_outlived() {
    let id = domain_id();
    let domain = Domain::open(&DomainConfig::new(id)).unwrap();
    let mut discovery = domain.discovery().unwrap();
    // They discover each other before the flood: an announcement that is lost in it is repeated
    // only after half a minute.
    let name = topic_name("beside");
    let other = Domain::open(&DomainConfig::new(id)).unwrap();
    let reader = quote_reader(&domain, &name, &Qos::last_value());
    let writer = quote_writer(&other, &name, &Qos::last_value());
    let mut buffer = CdrBuffer::with_capacity(64);
    write_quote(&writer, &mut buffer, 1, 2.0);
    assert_eq!(take_quotes(&reader, 1), [(1, 2.0)]);
    // The first participant of a host listens on this port (DDSI-RTPS 9.6.1.1).
    let meta = 7_400 + 250 * u16::try_from(id).unwrap() + 10;
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let own = socket.local_addr().unwrap().port();
    let (mut numbers, mut heard_of) = (0.., BTreeSet::new());
    // Some are lost in the flood, on a busy machine most: it takes more then.
    wait_until("the strangers", || {
        for number in numbers.by_ref().take(20) {
            let packet = announcement(number, own);
            socket.send_to(&packet, ("127.0.0.1", meta)).unwrap();
        }
        std::thread::sleep(Duration::from_millis(4));
        discovery.update().unwrap();
        heard_of.extend(discovery.participants().map(|p| p.guid));
        numbers.start >= STRANGERS && heard_of.len() > 1_000
    });
    write_quote(&writer, &mut buffer, 2, 3.0);
    assert_eq!(take_quotes(&reader, 1), [(2, 3.0)]);
    wait_until("the end of those who say nothing", || {
        discovery.update().unwrap();
        discovery.participants().count() <= 1
    });
}
