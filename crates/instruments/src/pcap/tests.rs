use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;

type Read = (Option<u64>, LinkType, Vec<u8>, u32);

fn read(bytes: &[u8]) -> (Vec<Read>, End) {
    let mut reader = Reader::new(bytes).unwrap();
    let mut packets = Vec::new();
    while let Some(p) = reader.next_packet().unwrap() {
        packets.push((p.time, p.link, p.data.to_vec(), p.wire_len));
    }
    (packets, reader.end().unwrap())
}

fn classic(magic: u32, big: bool, fraction: u32) -> Vec<u8> {
    let n32 = |v: u32| {
        if big {
            v.to_be_bytes()
        } else {
            v.to_le_bytes()
        }
    };
    let n16 = |v: u16| {
        if big {
            v.to_be_bytes()
        } else {
            v.to_le_bytes()
        }
    };
    let mut file = n32(magic).to_vec();
    file.extend(n16(2).into_iter().chain(n16(4)).chain([0; 8]));
    file.extend(n32(65_535).into_iter().chain(n32(113)));
    for (secs, body) in [(1, b"abc".as_slice()), (2, b"")] {
        let wire_len = body.len() as u32 + 9;
        for v in [secs, fraction, body.len() as u32, wire_len] {
            file.extend(n32(v));
        }
        file.extend(body);
    }
    file
}

/// Returns a pcapng block in the given byte order, padded.
fn block(big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let n32 = |v: u32| {
        if big {
            v.to_be_bytes()
        } else {
            v.to_le_bytes()
        }
    };
    let padded = body.len().next_multiple_of(4);
    let len = n32(padded as u32 + 12);
    let mut bytes = [n32(kind), len].concat();
    bytes.extend(body);
    bytes.resize(8 + padded, 0);
    bytes.extend(len);
    bytes
}

fn ng(big: bool, interfaces: &[Vec<u8>], packets: &[(u32, u64, &[u8])]) -> Vec<u8> {
    let n32 = |v: u32| {
        if big {
            v.to_be_bytes()
        } else {
            v.to_le_bytes()
        }
    };
    let mut body = n32(0x1a2b_3c4d).to_vec();
    body.extend([if big { 0 } else { 1 }, u8::from(big), 0, 0]);
    body.extend([0xff; 8]);
    let mut file = block(big, 0x0a0d_0d0a, &body);
    for interface in interfaces {
        file.extend(block(big, 1, interface));
    }
    for &(interface, stamp, data) in packets {
        let len = data.len() as u32;
        let fixed = [interface, (stamp >> 32) as u32, stamp as u32, len, len];
        let mut body = fixed.map(n32).concat();
        body.extend(data);
        file.extend(block(big, 6, &body));
    }
    file
}

/// Returns an interface description, little-endian: link type, no snap length, options.
fn interface(link: u16, options: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = link.to_le_bytes().to_vec();
    body.extend([0; 6]);
    for (code, value) in options {
        body.extend(code.to_le_bytes());
        body.extend((value.len() as u16).to_le_bytes());
        body.extend(*value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    body
}

#[test]
fn classic_in_both_byte_orders_and_units() {
    for (magic, unit) in [(0xa1b2_c3d4, 1_000), (0xa1b2_3c4d, 1)] {
        for big in [false, true] {
            let (packets, end) = read(&classic(magic, big, 5));
            assert_eq!(end, End::Complete);
            let first = (
                Some(SECOND + 5 * unit),
                LinkType::LINUX_SLL,
                b"abc".to_vec(),
                12,
            );
            assert_eq!(packets[0], first);
            assert_eq!(
                packets[1],
                (Some(2 * SECOND + 5 * unit), LinkType::LINUX_SLL, vec![], 9)
            );
            assert_eq!(packets.len(), 2);
        }
    }
}

#[test]
fn every_cut_gives_the_packets_before_it_and_the_offset() {
    let file = classic(0xa1b2_c3d4, false, 5);
    for len in 24..file.len() {
        let (packets, end) = read(&file[..len]);
        let whole = usize::from(len >= 24 + 19);
        assert_eq!(packets.len(), whole, "{len}");
        let offset = if whole == 1 { 43 } else { 24 };
        let expected = if len as u64 == offset {
            End::Complete
        } else {
            End::CutOff { offset }
        };
        assert_eq!(end, expected, "{len}");
    }
    for len in 4..24 {
        let error = Reader::new(&file[..len]).err().unwrap();
        assert!(
            matches!(error, PcapError::CutOffHeader(n) if n == len),
            "{error}"
        );
    }
}

#[test]
fn a_packet_length_beyond_reason_ends_the_file_without_allocating_it() {
    let mut file = classic(0xa1b2_c3d4, false, 5);
    file[43 + 8..43 + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    let (packets, end) = read(&file);
    assert_eq!(packets.len(), 1);
    assert!(matches!(end, End::Damaged { offset: 43, .. }), "{end}");
}

#[test]
fn what_is_no_capture_is_named() {
    let error = |bytes: &[u8]| Reader::new(bytes).err().unwrap().to_string();
    assert!(error(b"").contains("empty"));
    assert!(
        error(b"8=FIX.4.2").contains("not a pcap"),
        "{}",
        error(b"8=FIX.4.2")
    );
    assert!(error(b"\x1f\x8b\x08\x00aaaa").contains("gzip"));
    assert!(error(b"\xd4\xc3\xb2\xa1").contains("inside its header"));
    let mut version = classic(0xa1b2_c3d4, false, 5);
    version[4] = 3;
    assert!(error(&version).contains("3.4"));
}

#[test]
fn pcapng_with_interfaces_of_different_units_and_links() {
    let interfaces = [
        interface(1, &[]),
        interface(276, &[(9, &[9])]),
        interface(
            113,
            &[(2, b"eth0x"), (9, &[0x80 | 10]), (14, &7_i64.to_le_bytes())],
        ),
    ];
    let file = ng(
        false,
        &interfaces,
        &[(0, 3, b"x"), (1, 3, b"yy"), (2, 1536, b"zzz")],
    );
    let (packets, end) = read(&file);
    assert_eq!(end, End::Complete);
    let expected = [
        (Some(3_000), LinkType::ETHERNET, b"x".to_vec(), 1),
        (Some(3), LinkType::LINUX_SLL2, b"yy".to_vec(), 2),
        (
            Some(8 * SECOND + SECOND / 2),
            LinkType::LINUX_SLL,
            b"zzz".to_vec(),
            3,
        ),
    ];
    assert_eq!(packets, expected);
}

#[test]
fn pcapng_sections_of_different_byte_order() {
    let mut big = vec![0, 101];
    big.extend([0; 6]);
    let mut file = ng(true, &[big], &[(0, 1 << 33, b"big")]);
    file.extend(ng(false, &[interface(1, &[])], &[(0, 2, b"small")]));
    let (packets, end) = read(&file);
    assert_eq!(end, End::Complete);
    assert_eq!(
        packets[0],
        (Some((1 << 33) * 1_000), LinkType::RAW, b"big".to_vec(), 3)
    );
    assert_eq!(
        packets[1],
        (Some(2_000), LinkType::ETHERNET, b"small".to_vec(), 5)
    );
}

#[test]
fn simple_packets_have_no_stamp_and_unknown_blocks_are_passed_over() {
    let mut file = ng(false, &[interface(1, &[])], &[]);
    file.extend(block(false, 0xbad, b"whatever"));
    file.extend(block(false, 3, b"\x02\0\0\0hi"));
    let (packets, end) = read(&file);
    assert_eq!(packets, [(None, LinkType::ETHERNET, b"hi".to_vec(), 2)]);
    assert_eq!(end, End::Complete);
}

#[test]
fn damaged_pcapng_ends_where_the_damage_is() {
    let good = ng(false, &[interface(1, &[])], &[(0, 3, b"x")]);
    let at = good.len() as u64;
    let mut lengths = block(false, 6, &[0; 24]);
    lengths[4] = 40;
    lengths.extend([0; 40]);
    let too_long = block(false, 6, &[[0; 12], [0xff; 12]].concat());
    let unknown = block(
        false,
        6,
        &[[9, 0, 0, 0], [0; 4], [0; 4], [0; 4], [0; 4]].concat(),
    );
    for damage in [
        lengths,
        too_long,
        unknown,
        vec![0xff; 64],
        vec![6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ] {
        let (packets, end) = read(&[good.clone(), damage].concat());
        assert_eq!(packets.len(), 1);
        assert!(
            matches!(end, End::Damaged { offset, .. } if offset == at),
            "{end}"
        );
    }
    let (packets, end) = read(&good[..good.len() - 5]);
    assert!(packets.is_empty());
    assert!(matches!(end, End::CutOff { .. }), "{end}");
}

#[test]
fn what_the_writer_writes_the_reader_reads() {
    let mut writer = Writer::new(Vec::new(), LinkType::RAW, 65_535).unwrap();
    writer
        .packet(1_795_230_732_123_456_789, b"hello", 7)
        .unwrap();
    writer.packet(0, &vec![7; 400_000], 0).unwrap();
    assert!(writer.packet(u64::MAX, b"", 0).is_err());
    let (packets, end) = read(&writer.into_inner());
    assert_eq!(end, End::Complete);
    let first = (
        Some(1_795_230_732_123_456_789),
        LinkType::RAW,
        b"hello".to_vec(),
        7,
    );
    assert_eq!(packets[0], first);
    assert_eq!(packets[1].2.len(), 400_000);
}

proptest! {
    #[test]
    fn no_damage_of_pcapng_makes_it_panic_or_go_on_for_ever(
        flips in prop::collection::vec((any::<u16>(), any::<u8>()), 1..20),
        len in any::<u16>(),
    ) {
        let options: &[(u16, &[u8])] = &[(9, &[0xff]), (14, &[0x7f; 8])];
        let interfaces = [interface(1, &[]), interface(276, options)];
        let mut file = ng(false, &interfaces, &[(0, 3, b"x"), (0, 1 << 40, b"yy")]);
        file.extend(ng(true, &[], &[]));
        for (at, value) in flips {
            let at = usize::from(at) % file.len();
            file[at] = value;
        }
        file.truncate(usize::from(len) % (file.len() + 50));
        let Ok(mut reader) = Reader::new(&file[..]) else { return Ok(()) };
        let mut packets = 0;
        while reader.next_packet().unwrap().is_some() {
            packets += 1;
        }
        prop_assert!(packets <= file.len() / 16 && reader.end().is_some());
    }
}
