//! Any bytes as a capture: the same packets and the same end however the file is read, and the end
//! is in the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pcap::{End, MAX_PACKET, Reader};
use std::io::{self, Read};

// Its crate needs the whole gateway.
#[path = "../../crates/instruments/src/pcap/mod.rs"]
#[allow(dead_code, unused_imports)]
mod pcap;

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, file) = input;
    let whole = read(file);
    let pieces = Pieces {
        rest: file,
        len: usize::from(piece) + 1,
    };
    assert_eq!(whole, read(pieces));
    match whole.and_then(|(_, end)| end) {
        Some(End::CutOff { offset } | End::Damaged { offset, .. }) => {
            assert!(offset <= file.len() as u64);
        }
        _ => {}
    }
});

/// A file of which each read returns a few bytes.
struct Pieces<'a> {
    rest: &'a [u8],
    len: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let len = room.len().min(self.len);
        self.rest.read(&mut room[..len])
    }
}

/// The time, link type, bytes and length of a packet.
type Packet = (Option<u64>, u16, Vec<u8>, u32);

/// The packets and their end; `None` if the file is not a capture.
fn read(file: impl Read) -> Option<(Vec<Packet>, Option<End>)> {
    let mut reader = Reader::new(file).ok()?;
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet().expect("memory can be read") {
        assert!(packet.data.len() <= MAX_PACKET);
        let data = packet.data.to_vec();
        packets.push((packet.time, packet.link.0, data, packet.wire_len));
    }
    assert!(reader.end().is_some());
    Some((packets, reader.end()))
}
