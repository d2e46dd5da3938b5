//! A stream of packets cut into pieces gives what it gives whole, and never more than the limit.
#![no_main]

use fanfare_feed::{Deframer, Header, Preamble, Split};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 300;

fuzz_target!(|data: &[u8]| {
    let Some(([header, piece, preamble], stream)) = data.split_first_chunk::<3>() else {
        return;
    };
    let header = Header::ALL[1 + usize::from(*header) % (Header::ALL.len() - 1)];
    let preambles = [Preamble::Seq32Le, Preamble::Seq32Be, Preamble::Cme];
    let preamble = preambles[usize::from(*preamble) % preambles.len()];
    let mut deframer = Deframer::new(header, LIMIT);
    let (mut whole, mut rest) = (stream, stream);
    loop {
        while let Ok(true) = deframer.has_packet() {
            let packet = deframer.next_packet().unwrap().unwrap();
            let Ok(Split::Packet(body)) = header.split(whole, LIMIT) else {
                panic!("a packet that the whole stream does not have");
            };
            assert!(packet.bytes.len() <= LIMIT);
            assert_eq!(packet.bytes, &whole[body.clone()]);
            assert_eq!(
                preamble.split(packet.bytes).is_ok(),
                body.len() >= preamble.len()
            );
            whole = &whole[body.end..];
        }
        if rest.is_empty() || deframer.has_packet().is_err() {
            break;
        }
        let n = (usize::from(*piece) + 1)
            .min(rest.len())
            .min(deframer.space().len());
        deframer.space()[..n].copy_from_slice(&rest[..n]);
        deframer.filled(n);
        rest = &rest[n..];
    }
    let complete = !matches!(header.split(whole, LIMIT), Ok(Split::Packet(_)));
    assert!(
        whole.is_empty() || complete,
        "a packet was left in the stream"
    );
    let _ = deframer.finish();
});
