use super::*;
use proptest::prelude::*;

fn stamp() -> impl Strategy<Value = String> {
    let odd = prop::sample::select(vec![
        "20261121-10:00:00",
        "20261121-10:00:00.12",
        "20261121-10:00:00.1x3",
        "20261121-10:00:00,123",
        "20261121-10:00:60.500",
        "20261121-10:00:61.500",
        "20261121-10:00:0",
        "20261121 10:00:00.000",
        "00000000-00:00:00.000",
        "19700101-00:00:00",
        "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        "",
    ]);
    let usual = (0..3_u32, 0..1000_u32, 0..1_000_000_u32).prop_map(|(s, ms, us)| match us % 4 {
        0 => format!("20261121-10:00:0{s}.{ms:03}"),
        1 => format!("20261121-10:00:0{s}.{us:06}"),
        2 => format!("20261121-10:00:0{s}.{us:06}{us:06}"),
        _ => format!("20261121-10:00:0{s}"),
    });
    prop_oneof![1 => odd.prop_map(str::to_owned), 4 => usual]
}

/// Returns mostly one header after the other of the same two, and now and then others.
fn header() -> impl Strategy<Value = String> {
    let comp_ids = prop::sample::select(vec![
        ("YOU", "ME"),
        ("YOU", "ME"),
        ("YOU", "ME"),
        (
            "A LONG NAME OF SOMEBODY ELSE",
            "ANOTHER LONG NAME, LONGER YET, OF SOMEBODY ELSE",
        ),
        ("YOU", "HE"),
        ("", "ME"),
    ]);
    let behind = prop::sample::select(vec!["11=x|", "11=x|", "11=x|", "97=Y|11=x|", ""]);
    let seq = prop_oneof![5 => "[1-9][0-9]{0,5}", 1 => "[0-9]{0,12}", 1 => "x[0-9]"];
    let order = prop_oneof![5 => Just(true), 1 => Just(false)];
    (comp_ids, seq, stamp(), behind, order).prop_map(
        |((sender, target), seq, time, behind, is_usual)| match is_usual {
            true => format!("34={seq}|49={sender}|52={time}|56={target}|{behind}"),
            false => format!("49={sender}|56={target}|34={seq}|52={time}|{behind}"),
        },
    )
}

/// Returns a message with these fields after MsgType(35).
fn encoded(room: &mut [u8], fields: &str) -> std::ops::Range<usize> {
    let mut encoder = crate::codec::Encoder::new(room, b"FIX.4.4", b"D");
    encoder.raw(fields.replace('|', "\x01").as_bytes());
    encoder.finish().unwrap()
}

proptest! {
    #[test]
    fn the_last_time_parses_as_without(stamps in prop::collection::vec(stamp(), 1..20)) {
        let mut last = LastTime::NONE;
        for stamp in stamps {
            let text = stamp.as_bytes();
            prop_assert_eq!(last.parse(text), UtcTimestamp::parse(text), "{}", stamp);
        }
    }

    #[test]
    fn headers_are_read_as_without_the_last_one(
        headers in prop::collection::vec(header(), 1..30),
    ) {
        let id = SessionId::new(crate::session::Version::Fix44, "ME", "YOU");
        let mut last = LastHeader::NONE;
        for text in headers {
            let mut room = [0; 512];
            let range = encoded(&mut room, &text);
            let mut decoder = crate::codec::Decoder::new();
            let message = decoder.decode(&room[range]).unwrap();
            let mut none = LastHeader::NONE;
            let anew = Header::read(&message, &id, 40, &mut none);
            let read = Header::read(&message, &id, 40, &mut last);
            prop_assert_eq!(read, anew, "{}", text);
        }
    }

    #[test]
    fn same_texts_are_equal_texts(a in "[ab]{0,40}", b in "[ab]{0,40}", at in 0..40_usize) {
        prop_assert_eq!(same(a.as_bytes(), b.as_bytes()), a == b);
        prop_assert!(same(a.as_bytes(), a.as_bytes()));
        let mut other = a.clone().into_bytes();
        if let Some(byte) = other.get_mut(at) {
            *byte ^= 1;
            prop_assert!(!same(a.as_bytes(), &other));
        }
    }
}

#[test]
fn headers_in_the_usual_orders_are_found_as_by_the_scan() {
    let fields = "34=7|49=A|52=20261121-10:00:00.000|56=B|";
    let other = "49=A|56=B|34=7|52=20261121-10:00:00.000|";
    for (header, behind) in [
        (fields, "11=x|"),
        (fields, "97=Y|11=x|"),
        (fields, "50=S|43=Y|"),
        (fields, "50=LONG|43=Y|"),
        (fields, ""),
        (other, "11=x|"),
        (other, "122=20261121-09:00:00.000|"),
        ("34=|49=|52=|56=|", "11=x|"),
        ("49=A|56=B|52=20261121-10:00:00.000|34=7|", "11=x|"),
    ] {
        let mut room = [0; 256];
        let range = encoded(&mut room, &format!("{header}{behind}"));
        let mut decoder = crate::codec::Decoder::new();
        let message = decoder.decode(&room[range]).unwrap();
        assert_eq!(
            Found::read(&message, 3),
            Found::scan(&message, 3),
            "{header}{behind}"
        );
    }
}

#[test]
fn of_a_repeated_field_the_first_counts() {
    let header = "34=7|49=A|52=20261121-10:00:00.000|56=B|43=N|34=9|49=C|43=Y|11=x|";
    let mut room = [0; 256];
    let range = encoded(&mut room, header);
    let mut decoder = crate::codec::Decoder::new();
    let message = decoder.decode(&room[range]).unwrap();
    let found = Found::read(&message, 3);
    let values = (found.seq, found.sender, found.poss_dup);
    assert_eq!(values, (Some(&b"7"[..]), Some(&b"A"[..]), Some(&b"N"[..])));
}

#[test]
fn text_that_is_no_time_has_none() {
    let mut last = LastTime::NONE;
    for text in [
        &[0_u8; WHOLE][..],
        b"19700101-00:00:00",
        b"19700101-00:00:00.007",
    ] {
        assert_eq!(last.parse(text), UtcTimestamp::parse(text));
    }
}

#[test]
fn a_time_at_the_end_of_what_can_be_told() {
    let mut last = LastTime::NONE;
    for text in [&b"22620411-23:47:16.854"[..], b"22620411-23:47:16.855"] {
        assert_eq!(last.parse(text), UtcTimestamp::parse(text));
        assert_eq!(last.parse(text), UtcTimestamp::parse(text));
    }
}
