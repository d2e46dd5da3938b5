//! The codec against slow and obvious oracles, and its faults on outside bytes.

use fanfare_fix::codec::{
    DecodeError, Decoder, EncodeError, Encoder, FieldErrorKind, FieldWriter, Frame, FrameFinder,
    Garbled, Next, SendingTime, SessionHeader, SharedBody, SharedFrame,
};
use fanfare_wire::{DataFields, Decimal, FieldIndex, Kernel, Precision, UtcTimestamp, byte_sum};
use proptest::prelude::*;

fn wire(text: &str) -> Vec<u8> {
    text.bytes()
        .map(|byte| if byte == b'|' { 1 } else { byte })
        .collect()
}

fn readable(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|&byte| if byte == 1 { '|' } else { char::from(byte) })
        .collect()
}

/// `body` with a right header and trailer.
fn message(body: &str) -> Vec<u8> {
    let mut bytes = wire(&format!("8=FIX.4.4|9={}|{body}", body.len()));
    let sum = byte_sum(&bytes);
    bytes.extend(wire(&format!("10={sum:03}|")));
    bytes
}

/// All outcomes of a stream that is read in pieces of these lengths, each with its bytes.
fn outcomes(stream: &[u8], pieces: &[usize], max_len: usize) -> Vec<(Vec<u8>, Option<Garbled>)> {
    let finder = FrameFinder::new(max_len);
    let (mut found, mut buffer, mut rest) = (Vec::new(), Vec::new(), stream);
    let mut pieces = pieces.iter().copied().cycle();
    loop {
        match finder.find(&buffer) {
            Frame::Message { start, end } => {
                found.push((buffer[start..end].to_vec(), None));
                buffer.drain(..end);
            }
            Frame::Garbled { start, end, why } => {
                assert!(end > start && end <= buffer.len());
                found.push((buffer[start..end].to_vec(), Some(why)));
                buffer.drain(..end);
            }
            Frame::Partial { start, need } => {
                assert!(need.is_none_or(|need| need > buffer.len()));
                buffer.drain(..start);
                assert!(buffer.len() < finder.max_len());
                if rest.is_empty() {
                    return found;
                }
                let piece = pieces.next().unwrap_or(1).clamp(1, rest.len());
                buffer.extend_from_slice(&rest[..piece]);
                rest = &rest[piece..];
            }
        }
    }
}

/// What is on a bad line: good messages, wrong lengths and sums, noise.
fn stretch() -> impl Strategy<Value = Vec<u8>> {
    let good = || "35=[0-9A-Z]\\|58=[a-z=]{0,30}\\|".prop_map(|body| message(&body));
    prop_oneof![
        4 => good(),
        1 => (good(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(mut bytes, at, byte)| {
            let at = at.index(bytes.len());
            bytes[at] = byte;
            bytes
        }),
        1 => (good(), any::<prop::sample::Index>()).prop_map(|(mut bytes, at)| {
            bytes.truncate(at.index(bytes.len()));
            bytes
        }),
        1 => "(8=FIX.4.4\\|)?(9=[0-9]{0,4}\\|)?(35=)?[0-9a-z=|]{0,40}(\\|10=[0-9]{3}\\|)?"
            .prop_map(|text| wire(&text)),
    ]
}

/// 2026-11-20, 12:34:56.123.
const TIME: UtcTimestamp = UtcTimestamp::from_nanos(1_795_178_096_123_000_000);

proptest! {
    #[test]
    fn outcomes_do_not_depend_on_how_the_stream_is_cut(
        stretches in prop::collection::vec(stretch(), 0..12),
        pieces in prop::collection::vec(1..100_usize, 1..8),
        max_len in 64..300_usize,
    ) {
        let stream = stretches.concat();
        let whole = outcomes(&stream, &[stream.len()], max_len);
        prop_assert_eq!(&outcomes(&stream, &[1], max_len), &whole);
        prop_assert_eq!(&outcomes(&stream, &pieces, max_len), &whole);
    }

    #[test]
    fn good_messages_are_found_wherever_only_noise_is_between(
        bodies in prop::collection::vec("35=[0-9A-Z]\\|(5[0-9]=[A-Za-z=]{1,90}\\|){0,6}", 1..8),
        noise in "[a-z|=]{0,20}",
    ) {
        let messages: Vec<Vec<u8>> = bodies.iter().map(|body| message(body)).collect();
        let stream = messages.join(&wire(&noise)[..]);
        let found = outcomes(&stream, &[7, 100], 4096);
        let expected: Vec<_> = messages.into_iter().map(|bytes| (bytes, None)).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn decoder_and_finder_agree_on_any_bytes(bytes in prop::collection::vec(stretch(), 0..4)) {
        let bytes = bytes.concat();
        let mut decoder = Decoder::with(FrameFinder::new(200), FieldIndex::new());
        match (decoder.next(&bytes), FrameFinder::new(200).find(&bytes)) {
            (Next::Message { skipped, message, end }, Frame::Message { start, end: to }) => {
                prop_assert_eq!((skipped, end), (start, to));
                prop_assert_eq!(message.bytes(), &bytes[start..to]);
                prop_assert_eq!(message.tags().last(), Some(&10));
            }
            (Next::Malformed { skipped, end, .. }, Frame::Message { start, end: to }) => {
                prop_assert_eq!((skipped, end), (start, to));
            }
            (Next::Partial { skipped, need }, Frame::Partial { start, need: n }) => {
                prop_assert_eq!((skipped, need), (start, n));
            }
            (Next::Garbled { skipped, why, end }, Frame::Garbled { start, why: w, end: to }) => {
                prop_assert_eq!((skipped, end, why), (start, to, w));
            }
            (next, frame) => prop_assert!(false, "{:?} and {:?}", next, frame),
        }
    }

    #[test]
    fn a_message_view_is_what_splitting_gives(
        body in "35=[A-Z]\\|([0-9a-z]{1,6}=[0-9a-z=]{0,9}\\|){0,20}",
    ) {
        let bytes = message(&body);
        let text = readable(&bytes);
        let split: Vec<(&str, &str)> =
            text.split_terminator('|').map(|field| field.split_once('=').unwrap()).collect();
        for kernel in Kernel::ALL {
            let index = FieldIndex::with(DataFields::none(), kernel);
            let mut decoder = Decoder::with(FrameFinder::default(), index);
            let message = decoder.decode(&bytes).unwrap();
            prop_assert_eq!(message.len(), split.len());
            for (field, &(tag, value)) in message.fields().zip(&split) {
                prop_assert_eq!(field.tag_bytes(), tag.as_bytes());
                prop_assert_eq!(field.value, value.as_bytes());
                prop_assert_eq!(field.tag, tag.parse().unwrap_or(0));
                prop_assert!(text[field.offset as usize..].starts_with(tag));
                if field.tag == 0 {
                    continue;
                }
                let first = split.iter().find(|(other, _)| other.parse() == Ok(field.tag));
                let first = first.map(|(_, value)| value.as_bytes());
                prop_assert_eq!(message.get(field.tag), first);
            }
        }
    }

    #[test]
    fn encoded_and_decoded_all_values_are_the_same(
        int: i64, seq: u64, decimal in (any::<i64>(), -20..=0_i8), nanos in 0..i64::MAX,
        text in "[ -~]{1,200}", data: Vec<u8>, flag: bool, tag in 5000..999_999_999_u32,
    ) {
        let decimal = Decimal::new(decimal.0, decimal.1);
        let time = UtcTimestamp::from_nanos(nanos);
        let mut buf = vec![0; 1024];
        let mut encoder = Encoder::new(&mut buf, b"FIXT.1.1", b"AE");
        encoder.i64(1, int).u64(34, seq).decimal(44, decimal).str(58, &text).bool(43, flag);
        encoder.timestamp(60, time, Precision::Nanos).data(95, 96, &data).char(54, b'1');
        encoder.str(tag, &text);
        let range = encoder.finish().unwrap();
        let mut decoder = Decoder::new();
        let message = decoder.decode(&buf[range]).unwrap();
        prop_assert_eq!(message.begin_string(), b"FIXT.1.1");
        prop_assert_eq!(message.msg_type(), b"AE");
        prop_assert_eq!(message.i64(1), Ok(int));
        prop_assert_eq!(message.u64(34), Ok(seq));
        prop_assert_eq!(message.decimal(44), Ok(decimal));
        prop_assert_eq!(message.str(58), Ok(&text[..]));
        prop_assert_eq!(message.str(tag), Ok(&text[..]));
        prop_assert_eq!(message.bool(43), Ok(flag));
        prop_assert_eq!(message.timestamp(60), Ok(time));
        prop_assert_eq!(message.get(96), Some(&data[..]));
        prop_assert_eq!(message.char(54), Ok(b'1'));
    }

    #[test]
    fn a_value_of_any_bytes_is_written_as_it_is_or_refused(value: Vec<u8>) {
        let mut buf = vec![0; value.len() + 40];
        let mut encoder = Encoder::new(&mut buf, b"FIX.4.2", b"D");
        encoder.field(58, &value);
        let refused = if value.is_empty() {
            Some(EncodeError::Empty { tag: 58 })
        } else {
            value.contains(&1).then_some(EncodeError::Separator { tag: 58 })
        };
        match (encoder.finish(), refused) {
            (Ok(range), None) => {
                let mut decoder = Decoder::new();
                prop_assert_eq!(decoder.decode(&buf[range]).unwrap().get(58), Some(&value[..]));
            }
            (finished, refused) => prop_assert_eq!(finished.err(), refused),
        }
    }

    #[test]
    fn too_short_a_buffer_is_reported(len in 0..260_usize, text in "[a-z]{1,100}") {
        let encode = |buf: &mut [u8]| {
            let mut encoder = Encoder::new(buf, b"FIX.4.4", b"D");
            encoder.u64(34, 7).str(58, &text).decimal(44, Decimal::new(125, -2));
            encoder.char(54, b'1').u64(38, 12_345_678).decimal(6, Decimal::new(-12_345_678, -7));
            encoder.bool(10_000, true).i64(1128, -1).timestamp(60, TIME, Precision::Millis);
            encoder.str(1, &text[..text.len().min(2)]);
            encoder.finish()
        };
        let mut large = [0; 300];
        let range = encode(&mut large).unwrap();
        let body = format!(
            "35=D|34=7|58={text}|44=1.25|54=1|38=12345678|6=-1.2345678|10000=Y|1128=-1|\
             60=20261120-12:34:56.123|1={}|",
            &text[..text.len().min(2)],
        );
        prop_assert_eq!(&large[range.clone()], message(&body));
        let mut small = vec![0; len];
        match encode(&mut small) {
            Ok(found) => prop_assert_eq!(&small[found], &large[range]),
            Err(fault) => {
                prop_assert_eq!(fault, EncodeError::BufferFull);
                prop_assert!(len < range.len() + 6);
            }
        }
    }

    #[test]
    fn shared_bodies_are_what_the_encoder_writes(
        text in "[a-z]{1,1200}", seq: u64, nanos in 0..i64::MAX, target in "[A-Z]{1,30}",
    ) {
        let time = UtcTimestamp::from_nanos(nanos);
        let mut buf = vec![0; 4096];
        let mut encoder = Encoder::new(&mut buf, b"FIX.4.4", b"W");
        encoder.str(49, "PLANT").str(56, &target).u64(34, seq);
        encoder.timestamp(52, time, Precision::Micros).str(58, &text);
        let range = encoder.finish().unwrap();
        let expected = &buf[range];

        let fields = wire(&format!("58={text}|"));
        let body = SharedBody::new(b"W", &fields).unwrap();
        let header = SessionHeader::new(b"FIX.4.4", b"PLANT", target.as_bytes()).unwrap();
        let sending = SendingTime::new(time, Precision::Micros);
        let mut frame = SharedFrame::new(fields.len());
        frame.load(&body).unwrap();
        prop_assert_eq!(frame.patch(&header, seq, &sending), expected);

        let mut whole = vec![0; expected.len()];
        prop_assert_eq!(header.write(&mut whole, seq, &sending, &body), Ok(expected.len()));
        prop_assert_eq!(&whole[..], expected);
        let short = whole.len() - 1;
        let full = header.write(&mut whole[..short], seq, &sending, &body);
        prop_assert_eq!(full, Err(EncodeError::BufferFull));

        let mut buf = vec![0; 4096];
        let mut encoder = Encoder::with_header(&mut buf, &header, b"W", seq, &sending);
        encoder.str(58, &text);
        let range = encoder.finish().unwrap();
        prop_assert_eq!(&buf[range], expected);
    }
}

#[test]
fn body_length_of_each_width() {
    for len in [1, 2, 80, 95, 990, 1000, 9990, 100_000] {
        let mut buf = vec![0; len + 100];
        let mut encoder = Encoder::new(&mut buf, b"FIX.4.4", b"B");
        encoder.str(58, &"x".repeat(len));
        let range = encoder.finish().unwrap();
        let mut decoder = Decoder::with(FrameFinder::new(200_000), FieldIndex::new());
        let message = decoder.decode(&buf[range]).unwrap();
        assert_eq!(message.u64(9), Ok(len as u64 + 4 + 5));
    }
}

#[test]
fn typed_access_names_tag_offset_and_kind() {
    let bytes = message("35=D|34=x|38=99999999999999999999|43=y|44=1.2.3|52=today|54=12|58=|");
    let mut decoder = Decoder::new();
    let message = decoder.decode(&bytes).unwrap();
    let at = |tag: &str| readable(&bytes).find(tag).unwrap() as u32;
    let fault = |error: fanfare_fix::codec::FieldError| (error.tag, error.offset, error.kind);
    assert_eq!(
        message.u64(34).map_err(fault),
        Err((34, at("34="), FieldErrorKind::Format))
    );
    assert_eq!(
        message.i64(38).map_err(fault),
        Err((38, at("38="), FieldErrorKind::Range))
    );
    assert_eq!(
        message.decimal(38).map_err(fault),
        Err((38, at("38="), FieldErrorKind::Range))
    );
    assert_eq!(
        message.bool(43).map_err(fault),
        Err((43, at("43="), FieldErrorKind::Format))
    );
    assert_eq!(
        message.decimal(44).map_err(fault),
        Err((44, at("44="), FieldErrorKind::Format))
    );
    assert_eq!(
        message.timestamp(52).map_err(fault),
        Err((52, at("52="), FieldErrorKind::Format))
    );
    assert_eq!(
        message.char(54).map_err(fault),
        Err((54, at("54="), FieldErrorKind::Format))
    );
    assert_eq!(
        message.str(58).map_err(fault),
        Err((58, at("58="), FieldErrorKind::Empty))
    );
    assert_eq!(
        message.str(1).map_err(fault),
        Err((1, bytes.len() as u32, FieldErrorKind::Missing))
    );
    assert_eq!(message.opt_str(1), Ok(None));
    let text = message.u64(34).unwrap_err().to_string();
    assert_eq!(
        text,
        "tag 34 has a value of the wrong format (at offset 20)"
    );
}

#[test]
fn broken_fields_in_a_right_frame_are_malformed() {
    let mut decoder = Decoder::new();
    for body in [
        "35=D|58|",
        "35=D||58=a|",
        "35=D|95=99|96=abc|",
        "35=D|95=11|96=abc|",
    ] {
        let bytes = message(body);
        match decoder.next(&bytes) {
            Next::Malformed {
                skipped: 0,
                error: DecodeError::Field(_),
                end,
            } => {
                assert_eq!(end, bytes.len(), "{body}");
            }
            other => panic!("{body}: {other:?}"),
        }
    }
}

/// Two legs, the first with two nested SubIDs, the second with none; then an ordinary field.
const GROUPS: &str = "35=AE|453=2|448=A|447=D|802=2|523=x|803=1|523=y|803=2|448=B|447=D|55=EURUSD|";

#[test]
fn groups_by_definition_end_where_their_members_end() {
    let bytes = message(GROUPS);
    let mut decoder = Decoder::new();
    let message = decoder.decode(&bytes).unwrap();
    let parties = message
        .group_with(453, &(448, &[447, 802, 523, 803][..]))
        .unwrap();
    let entries: Vec<_> = parties.collect();
    assert_eq!(entries.len(), 2);
    assert_eq!(
        (entries[0].get(448), entries[1].get(448)),
        (Some(&b"A"[..]), Some(&b"B"[..]))
    );
    assert_eq!(entries[1].get(55), None);
    let subs = entries[0].group_with(802, &(523, &[803][..])).unwrap();
    let subs: Vec<_> = subs
        .map(|sub| (sub.str(523).unwrap(), sub.u64(803).unwrap()))
        .collect();
    assert_eq!(subs, [("x", 1), ("y", 2)]);
    assert_eq!(
        entries[1]
            .group_with(802, &(523, &[803][..]))
            .unwrap()
            .len(),
        0
    );
}

#[test]
fn groups_without_a_definition_are_divided_by_their_first_field() {
    let bytes = message(GROUPS);
    let mut decoder = Decoder::new();
    let message = decoder.decode(&bytes).unwrap();
    let parties: Vec<_> = message.group(453).unwrap().collect();
    assert_eq!(parties.len(), 2);
    assert_eq!(parties[0].group(802).unwrap().delimiter(), 523);
    assert_eq!(parties[0].group(802).unwrap().len(), 2);
    // Nothing tells that the last entry has ended.
    assert_eq!(parties[1].get(55), Some(&b"EURUSD"[..]));
    assert_eq!(parties[1].get(10), None);
    assert_eq!(message.group(268).unwrap().len(), 0);
}

#[test]
fn a_wrong_count_is_an_error() {
    let spec = &(448, &[447][..]);
    let mut decoder = Decoder::new();
    let cases = [
        ("453=3|448=A|448=B|", FieldErrorKind::GroupCount),
        ("453=1|448=A|448=B|", FieldErrorKind::GroupCount),
        ("453=0|448=A|", FieldErrorKind::GroupCount),
        ("453=1|447=D|448=A|", FieldErrorKind::GroupCount),
        ("453=1|55=A|", FieldErrorKind::GroupCount),
        (
            "453=18446744073709551615|448=A|",
            FieldErrorKind::GroupCount,
        ),
        ("453=x|448=A|", FieldErrorKind::Format),
    ];
    for (group, kind) in cases {
        let bytes = message(&format!("35=D|{group}"));
        let message = decoder.decode(&bytes).unwrap();
        let error = message.group_with(453, spec).unwrap_err();
        assert_eq!((error.tag, error.kind), (453, kind), "{group}");
    }
    let bytes = message("35=D|453=0|55=A|");
    assert_eq!(
        decoder
            .decode(&bytes)
            .unwrap()
            .group_with(453, spec)
            .unwrap()
            .len(),
        0
    );
}

#[test]
fn the_body_is_what_stands_between_header_and_trailer() {
    let mut decoder = Decoder::new();
    let bytes = message("35=W|49=A|56=B|34=7|52=x|55=EURUSD|268=0|93=3|89=abc|");
    assert_eq!(
        readable(decoder.decode(&bytes).unwrap().body()),
        "55=EURUSD|268=0|"
    );
    let bytes = message("35=0|49=A|56=B|34=7|");
    assert_eq!(readable(decoder.decode(&bytes).unwrap().body()), "");
    // User-defined fields belong to the header where one of its fields follows.
    for (fields, body) in [
        ("5001=x|50=D|115=C|5002=y|55=E|", "5002=y|55=E|"),
        ("5001=x|55=E|50=D|", "5001=x|55=E|50=D|"),
        ("5001=x|", "5001=x|"),
        ("5001=x|50=D|", ""),
    ] {
        let bytes = message(&format!("35=W|49=A|56=B|34=7|52=x|{fields}"));
        assert_eq!(readable(decoder.decode(&bytes).unwrap().body()), body);
    }
}

#[test]
fn constant_headers_refuse_what_cannot_be_sent() {
    let long = [b'x'; 300];
    assert_eq!(
        SessionHeader::new(b"", b"A", b"B").err(),
        Some(EncodeError::Empty { tag: 8 })
    );
    assert_eq!(
        SessionHeader::new(b"F", b"A", b"").err(),
        Some(EncodeError::Empty { tag: 56 })
    );
    let separator = SessionHeader::new(b"F", b"A\x01", b"B").err();
    assert_eq!(separator, Some(EncodeError::Separator { tag: 49 }));
    assert_eq!(
        SessionHeader::new(b"F", &[b'x'; 700], b"B").err(),
        Some(EncodeError::BufferFull)
    );
    let begin = SessionHeader::new(&long, b"A", b"B").err();
    assert_eq!(begin, Some(EncodeError::BeginStringTooLong));
    assert!(SharedBody::new(b"", b"").is_err());
    let body = SharedBody::new(b"W", &long).unwrap();
    assert_eq!(
        SharedFrame::new(299).load(&body),
        Err(EncodeError::BufferFull)
    );
}

#[test]
fn the_fields_of_the_frame_are_refused_in_a_body() {
    let all: [fn(&mut FieldWriter<'_>, u32); 3] = [
        |out, tag| _ = out.str(tag, "122"),
        |out, tag| _ = out.u64(tag, 122),
        |out, tag| _ = out.char(tag, b'1'),
    ];
    for tag in [8, 9, 10] {
        for write in all {
            let mut buf = [0; 100];
            let mut encoder = Encoder::new(&mut buf, b"FIX.4.4", b"B");
            write(&mut encoder, tag);
            encoder.str(58, "x");
            assert_eq!(encoder.finish(), Err(EncodeError::Frame { tag }));
        }
    }
}

#[test]
fn bare_fields_are_written_for_a_body() {
    let mut buf = [0; 64];
    let mut writer = FieldWriter::new(&mut buf);
    writer.str(55, "EURUSD").u64(268, 0);
    assert_eq!(readable(writer.written().unwrap()), "55=EURUSD|268=0|");
    assert_eq!(
        writer.field(0, b"x").written(),
        Err(EncodeError::BadTag { tag: 0 })
    );
}

#[test]
fn the_longest_header_lead_and_trailer_fit_into_the_envelope() {
    let name = "X".repeat(103);
    let header = SessionHeader::new(b"FIXT.1.1", name.as_bytes(), name.as_bytes()).unwrap();
    let time = SendingTime::new(UtcTimestamp::from_nanos(1), Precision::Nanos);
    let (lead, fields) = (
        wire(&format!("262={}|", "r".repeat(91))),
        vec![b'x'; 40_000],
    );
    assert_eq!(lead.len(), 96);
    let body = SharedBody::new(b"12345678", &fields).unwrap();
    let body = body.led_by(&lead).unwrap();
    let mut out = vec![0; fields.len() + SharedBody::ENVELOPE];
    let len = header.write(&mut out, u64::MAX, &time, &body).unwrap();
    assert!(len > fields.len() + 384, "{len}");
}
