use super::*;
use proptest::prelude::*;

fn wire(text: &str) -> Vec<u8> {
    text.bytes()
        .map(|byte| if byte == b'|' { SOH } else { byte })
        .collect()
}

/// Returns `body` with a right header and trailer.
fn message(body: &str) -> String {
    let text = format!("8=FIX.4.4|9={}|{body}", body.len());
    format!("{text}10={:03}|", byte_sum(&wire(&text)))
}

fn find(text: &str) -> Frame {
    FrameFinder::new(200).find(&wire(text))
}

fn garbled(text: &str) -> (usize, Garbled) {
    match find(text) {
        Frame::Garbled { start: 0, end, why } => (end, why),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn whole_messages_one_after_the_other() {
    let one = message("35=0|34=1|");
    let two = format!("{one}{}", message("35=1|112=x|"));
    assert_eq!(
        find(&two),
        Frame::Message {
            start: 0,
            end: one.len()
        }
    );
    let noisy = format!("x|=9{two}");
    assert_eq!(
        find(&noisy),
        Frame::Message {
            start: 4,
            end: 4 + one.len()
        }
    );
}

#[test]
fn every_prefix_is_partial_and_says_how_much_is_needed() {
    let one = message("35=0|34=1|");
    for len in 0..one.len() {
        match find(&one[..len]) {
            Frame::Partial { start: 0, need } => {
                assert_eq!(need.is_some(), len >= 15, "{len}");
                assert!(need.is_none_or(|need| need == one.len()));
            }
            other => panic!("{len}: {other:?}"),
        }
    }
    assert_eq!(
        find("noise"),
        Frame::Partial {
            start: 5,
            need: None
        }
    );
    assert_eq!(
        find("noise8"),
        Frame::Partial {
            start: 5,
            need: None
        }
    );
}

#[test]
fn a_wrong_length_drops_the_stretch_up_to_the_next_check_sum() {
    let next = message("35=0|34=2|");
    let short = "8=FIX.4.4|9=5|35=0|34=1|10=000|";
    let expected = (short.len(), Garbled::BadBodyLength);
    assert_eq!(garbled(&format!("{short}{next}")), expected);
    // 14 too long: the following good message goes with it.
    let long = "8=FIX.4.4|9=24|35=0|34=1|10=000|";
    let both = format!("{long}{next}");
    assert_eq!(garbled(&both), (both.len(), Garbled::BadBodyLength));
}

#[test]
fn a_length_that_is_none_drops_the_stretch_up_to_the_next_check_sum() {
    for length in ["", "x", "-5", "+5", "1.0", "99999999999999999999999"] {
        let text = format!("8=FIX.4.4|9={length}|35=0|10=000|");
        let expected = (text.len(), Garbled::BadBodyLength);
        assert_eq!(garbled(&format!("{text}{text}")), expected, "{length}");
    }
    for length in ["1000", "1000000000000000000", "9223372036854775807"] {
        let text = format!("8=FIX.4.4|9={length}|35=0|10=000|");
        let expected = (text.len(), Garbled::BodyLengthTooLarge);
        assert_eq!(garbled(&format!("{text}{text}")), expected, "{length}");
    }
}

#[test]
fn other_faults() {
    let good = message("35=0|34=1|");
    let at = good.len() - 4;
    let with_sum = |sum: &str| format!("{}{sum}|", &good[..at]);
    let whole = good.len();
    assert_eq!(garbled(&with_sum("000")), (whole, Garbled::BadCheckSum));
    assert_eq!(garbled(&with_sum("1x3")), (whole, Garbled::MissingCheckSum));
    assert_eq!(
        garbled(&with_sum("12")),
        (whole - 1, Garbled::MissingCheckSum)
    );
    assert_eq!(
        garbled(&with_sum("0123")),
        (whole + 1, Garbled::MissingCheckSum)
    );
    let order = message("34=1|35=0|");
    assert_eq!(
        garbled(&order),
        (order.len(), Garbled::ThirdFieldNotMsgType)
    );
    assert_eq!(
        garbled("8=|9=5|35=0|10=000|"),
        (19, Garbled::BadBeginString)
    );
    assert_eq!(
        garbled("8=FIX.4.4.4.4.4.44|9=5|10=000|"),
        (30, Garbled::BadBeginString)
    );
    assert_eq!(
        garbled("8=FIX.4.4|35=0|9=5|10=000|"),
        (26, Garbled::BadBodyLength)
    );
}

/// Returns a message, right or nearly so, followed by other bytes or cut short.
fn near_message() -> impl Strategy<Value = String> {
    let begin = prop_oneof![
        4 => Just("8=FIX.4.4|"),
        2 => Just("8=FIXT.1.1|"),
        1 => Just("8=ABCDEFGH|"),
        1 => Just("8=FIX|"),
        1 => Just("8=AB|DEFG|"),
        1 => Just("9=FIX.4.4|"),
        1 => Just("8=|"),
    ];
    let body = prop_oneof![4 => "35=D\\|(58=[a-z]{0,20}\\|){0,8}", 1 => "[|=0-9]{0,30}"];
    let off = prop_oneof![4 => Just(0), 1 => -3..4_isize];
    let sum = prop_oneof![4 => Just(None), 1 => "[0-9x|]{2,4}".prop_map(Some)];
    let behind = prop_oneof![Just(""), Just("8=FIX.4.4|9="), Just("|10=1|")];
    (begin, body, off, "0{0,4}", sum, behind).prop_map(|(begin, body, off, zeros, sum, behind)| {
        let length = body.len().saturating_add_signed(off);
        let text = format!("{begin}9={zeros}{length}|{body}");
        let sum = sum.unwrap_or_else(|| format!("{:03}", byte_sum(&wire(&text))));
        format!("{text}10={sum}|{behind}")
    })
}

fn located(finder: FrameFinder, bytes: &[u8]) -> Frame {
    finder.locate(bytes, &mut Sought::default())
}

fn located_slowly(finder: FrameFinder, bytes: &[u8]) -> Frame {
    finder.locate_slow(bytes, &mut Sought::default())
}

proptest! {
    #[test]
    fn the_plain_way_finds_what_the_slow_one_finds(
        text in near_message(),
        cut in 0..40_usize,
        flip in (0..200_usize, "[|=0-9x]"),
    ) {
        let finder = FrameFinder::new(150);
        let mut bytes = wire(&text);
        prop_assert_eq!(located(finder, &bytes), located_slowly(finder, &bytes));
        bytes.truncate(bytes.len().saturating_sub(cut));
        prop_assert_eq!(located(finder, &bytes), located_slowly(finder, &bytes));
        if let Some(byte) = bytes.get_mut(flip.0) {
            *byte = wire(&flip.1)[0];
        }
        prop_assert_eq!(located(finder, &bytes), located_slowly(finder, &bytes));
    }

    /// The pieces are those of whole streams, so that the notes about one stretch meet the next
    /// one.
    #[test]
    fn pieces_of_any_size_have_the_frames_of_the_whole(
        texts in prop::collection::vec(near_message(), 1..4),
        pieces in prop::collection::vec(1..30_usize, 1..40),
    ) {
        let finder = FrameFinder::new(150);
        let bytes = wire(&texts.concat());
        let (mut sought, mut from, mut len) = (Sought::default(), 0, 0);
        for piece in pieces.into_iter().cycle() {
            loop {
                let found = finder.find_further(&bytes[from..len], &mut sought);
                prop_assert_eq!(found, finder.find(&bytes[from..len]));
                match found {
                    Frame::Message { end, .. } | Frame::Garbled { end, .. } => from += end,
                    Frame::Partial { start, .. } => {
                        from += start;
                        break;
                    }
                }
            }
            if len == bytes.len() {
                break;
            }
            len = bytes.len().min(len + piece);
        }
    }
}

#[test]
fn an_endless_message_is_dropped_at_the_maximum() {
    let endless = format!("8=FIX.4.4|9=150|{}", "x".repeat(300));
    assert_eq!(garbled(&endless), (200, Garbled::TooLong));
    assert!(matches!(
        find(&endless[..199]),
        Frame::Partial { start: 0, .. }
    ));
}

/// Returns the outcome for a stretch that comes byte by byte, where bytes that were searched once
/// are overwritten afterwards.
fn trickled(text: &str, afterwards: u8) -> Frame {
    let finder = FrameFinder::new(200);
    let bytes = wire(text);
    let head = text.match_indices('|').nth(1).unwrap().0 + 1;
    let (mut sought, mut found) = (Sought::default(), finder.find(b""));
    for len in 1..=bytes.len() {
        let mut all = bytes[..len].to_vec();
        // The last three bytes of those before may be the front of `|10=`.
        let looked_at = all.get_mut(head..len.saturating_sub(4));
        looked_at.unwrap_or_default().fill(afterwards);
        found = finder.find_further(&all, &mut sought);
        if len < bytes.len() {
            assert_eq!(found, finder.find(&bytes[..len]), "{text} {len}");
        }
    }
    found
}

#[test]
fn each_byte_of_a_garbled_stretch_is_looked_at_once() {
    let long = "x".repeat(80);
    for text in [
        format!("8=FIX.4.4|9=5|{long}|10=000|"),
        format!("8=FIX.4.4|9=5|{long}|10=000{long}|"),
        format!("8=FIX.4.4|9=500|{long}|1|10|10=|"),
        format!("8=FIX.4.4|9=x|{long}|10=|"),
    ] {
        assert_eq!(trickled(&text, b'y'), find(&text));
        assert_eq!(trickled(&text, SOH), find(&text));
    }
}
