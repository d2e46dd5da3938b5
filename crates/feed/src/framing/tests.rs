use super::*;
use proptest::prelude::*;

fn framed(header: Header, packets: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for p in packets {
        header.write(p.len(), &mut out).unwrap();
        out.extend_from_slice(p);
    }
    out
}

#[test]
fn headers_are_written_as_named() {
    let written = |h: Header, len| {
        let mut out = Vec::new();
        h.write(len, &mut out).map(|()| out)
    };
    assert_eq!(written(Header::U8, 255).unwrap(), [0xff]);
    assert_eq!(written(Header::U16Le, 258).unwrap(), [2, 1]);
    assert_eq!(written(Header::U16Be, 258).unwrap(), [1, 2]);
    assert_eq!(written(Header::U32Le, 258).unwrap(), [2, 1, 0, 0]);
    assert_eq!(written(Header::U32Be, 258).unwrap(), [0, 0, 1, 2]);
    assert_eq!(written(Header::Fast, 1).unwrap(), [0x81]);
    assert_eq!(written(Header::Fast, 942_755).unwrap(), [0x39, 0x45, 0xa3]);
    assert!(written(Header::None, 9).unwrap().is_empty());
    assert!(written(Header::U8, 256).is_err());
    assert!(written(Header::U16Be, 65_536).is_err());
}

#[test]
fn a_block_of_zero_bytes_is_d12_and_the_next_one_is_read() {
    for header in Header::ALL.into_iter().skip(1) {
        let mut bytes = Vec::new();
        header.write(0, &mut bytes).unwrap();
        let zero = header.split(&bytes, 100);
        assert_eq!(zero, Err(FrameErrorKind::ZeroBlock), "{header}");
        assert_eq!(zero.unwrap_err().code(), Some("D12"));
        header.write(1, &mut bytes).unwrap();
        bytes.push(7);
        let mut deframer = Deframer::new(header, 100);
        deframer.space()[..bytes.len()].copy_from_slice(&bytes);
        deframer.filled(bytes.len());
        assert!(deframer.has_packet().is_err());
        assert_eq!(deframer.next_packet().unwrap_err().offset, 0);
        assert_eq!(deframer.next_packet().unwrap().unwrap().bytes, [7]);
        assert_eq!(deframer.finish(), Ok(()));
    }
}

#[test]
fn a_block_size_may_be_overlong() {
    let bytes = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0x81, 7];
    assert_eq!(Header::Fast.split(&bytes, 9), Ok(Split::Packet(10..11)));
    let need = Ok(Split::Partial { need: 10 });
    assert_eq!(Header::Fast.split(&bytes[..9], 9), need);
    assert_eq!(
        Header::Fast.split(&[0, 0x80], 9),
        Err(FrameErrorKind::ZeroBlock)
    );
}

#[test]
fn a_block_size_over_32_bits_is_an_overflow() {
    let overflow = Err(FrameErrorKind::Overflow);
    assert_eq!(Header::Fast.split(&[0x10, 0, 0, 0, 0x80], 9), overflow);
    assert_eq!(Header::Fast.split(&[0; 10], 9), overflow);
    assert_eq!(
        Header::Fast.split(&[0x0f, 0x7f, 0x7f, 0x7f, 0xff], 9),
        Err(FrameErrorKind::TooLong {
            len: u32::MAX as usize,
            limit: 9
        })
    );
}

#[test]
fn the_limit_holds_before_the_body_is_there() {
    let four_gigabytes = [0xff, 0xff, 0xff, 0xff];
    assert_eq!(
        Header::U32Le.split(&four_gigabytes, 1_500),
        Err(FrameErrorKind::TooLong {
            len: u32::MAX as usize,
            limit: 1_500
        })
    );
}

#[test]
fn a_cut_last_packet_names_its_offset() {
    let bytes = framed(Header::U32Le, &[vec![1; 3], vec![2; 10]]);
    for cut in 8..bytes.len() {
        let mut deframer = Deframer::new(Header::U32Le, 100);
        deframer.space()[..cut].copy_from_slice(&bytes[..cut]);
        deframer.filled(cut);
        assert_eq!(deframer.next_packet().unwrap().unwrap().offset, 4);
        assert_eq!(deframer.next_packet(), Ok(None));
        let error = deframer.finish().unwrap_err();
        assert_eq!(error.offset, 7);
        let need = if cut < 11 { 4 } else { 14 };
        let have = cut - 7;
        assert_eq!(error.kind, FrameErrorKind::Truncated { need, have });
        let there = deframer.cut_packet().map(|p| (p.offset, p.bytes));
        let expected = (cut >= 11).then(|| (11, &bytes[11..cut]));
        assert_eq!(there, expected);
    }
}

#[test]
fn names_parse() {
    for header in Header::ALL {
        assert_eq!(header.to_string().parse(), Ok(header));
    }
    assert!("u64".parse::<Header>().unwrap_err().contains("u64"));
}

/// Cuts the whole stream at once, packet by packet, as an oracle.
fn cut_whole(header: Header, mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        match header.split(bytes, 1_000) {
            Ok(Split::Packet(r)) => {
                found.push(bytes[r.clone()].to_vec());
                bytes = &bytes[r.end..];
            }
            other => panic!("{other:?}"),
        }
    }
    found
}

proptest! {
    #[test]
    fn any_cutting_of_the_stream_gives_the_same_packets(
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..200), 0..40),
        which in 1usize..7,
        pieces in prop::collection::vec(1usize..300, 1..50),
    ) {
        let header = Header::ALL[which];
        let bytes = framed(header, &packets);
        prop_assert_eq!(&cut_whole(header, &bytes), &packets);
        let mut deframer = Deframer::new(header, 1_000);
        let (mut at, mut piece, mut found) = (0, pieces.iter().cycle(), Vec::new());
        while at < bytes.len() {
            let n = (*piece.next().unwrap()).min(bytes.len() - at);
            deframer.space()[..n].copy_from_slice(&bytes[at..at + n]);
            deframer.filled(n);
            at += n;
            while deframer.has_packet().unwrap() {
                let p = deframer.next_packet().unwrap().unwrap();
                prop_assert_eq!(&bytes[p.offset as usize..][..p.bytes.len()], p.bytes);
                found.push(p.bytes.to_vec());
            }
        }
        prop_assert_eq!(deframer.finish(), Ok(()));
        prop_assert_eq!(found, packets);
    }

    #[test]
    fn garbage_never_panics_and_never_grows(
        bytes in prop::collection::vec(any::<u8>(), 0..500), which in 0usize..7,
    ) {
        let mut deframer = Deframer::new(Header::ALL[which], 300);
        let capacity = deframer.buffer.capacity();
        deframer.space()[..bytes.len()].copy_from_slice(&bytes);
        deframer.filled(bytes.len());
        while let Ok(Some(p)) = deframer.next_packet() {
            prop_assert!(p.bytes.len() <= 300.max(bytes.len()));
        }
        let _ = deframer.finish();
        prop_assert_eq!(deframer.buffer.capacity(), capacity);
    }
}
