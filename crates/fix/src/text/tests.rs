//! Tests with whole texts, and with the same texts in pieces.

use super::*;
use proptest::prelude::*;

const ORDER: &str = "8=FIX.4.4|9=48|35=D|49=A|56=B|34=2|52=20261120-10:00:00|55=IBM|10=017|";

const ALPHABET: &[u8] = b"8=FIX.4|9=10\x01^A\n3\xff";

/// Returns what is found in `text`, one line for each message: prefix, message with `|`, flaws. The
/// second part is what was skipped.
fn scan(text: &[u8], piece: usize) -> (Vec<String>, Skipped) {
    let mut scanner = Scanner::new(300);
    let mut found = Vec::new();
    for part in text.chunks(piece.max(1)) {
        scanner.push(part);
        take(&mut scanner, &mut found);
        assert!(scanner.buffer.len() - scanner.from < 300 + KEPT);
    }
    scanner.finish();
    take(&mut scanner, &mut found);
    assert_eq!(scanner.from, scanner.buffer.len());
    (found, scanner.skipped())
}

fn take(scanner: &mut Scanner, found: &mut Vec<String>) {
    while let Some(next) = scanner.next() {
        let prefix = String::from_utf8_lossy(next.prefix);
        let wire = String::from_utf8_lossy(next.message.bytes()).replace('\x01', "|");
        let flaws: Vec<_> = next.flaws.iter().map(Flaw::to_string).collect();
        found.push(format!("{prefix}>{wire}>{}", flaws.join("; ")));
    }
}

fn lines(text: &str) -> Vec<String> {
    scan(text.as_bytes(), usize::MAX).0
}

#[test]
fn every_separator_is_understood() {
    let expected = [format!(">{ORDER}>")];
    for separator in ["\x01", "|", "^A", "<SOH>", "\\x01", "\\u0001", "\u{2401}"] {
        assert_eq!(lines(&ORDER.replace('|', separator)), expected);
    }
}

#[test]
fn messages_know_their_lines_however_the_text_is_cut() {
    let cut = &ORDER[..30];
    let text = format!("a\n\n{ORDER}{ORDER}\nx8=FIX.4.4 {ORDER}\r\n{cut}\n\n\nlast {ORDER}");
    for piece in [1, 2, 7, 50, usize::MAX] {
        let (mut scanner, mut lines) = (Scanner::new(300), Vec::new());
        let mut take = |scanner: &mut Scanner| {
            while let Some(found) = scanner.next() {
                lines.push(found.line);
            }
        };
        for part in text.as_bytes().chunks(piece) {
            scanner.push(part);
            take(&mut scanner);
        }
        scanner.finish();
        take(&mut scanner);
        assert_eq!(lines, [3, 3, 4, 5, 8], "{piece}");
    }
}

#[test]
fn prefixes_stay_and_garbage_is_counted() {
    let text = format!(
        "starting\n\n2026-11-20 10:00:00 [in] {ORDER} ok\r\n  \nx8=FIX.4.4 is up\n\
         out: {ORDER}{ORDER}"
    );
    let (found, skipped) = scan(text.as_bytes(), usize::MAX);
    let expected = [
        format!("2026-11-20 10:00:00 [in]>{ORDER}>"),
        format!("out:>{ORDER}>"),
        format!(">{ORDER}>"),
    ];
    assert_eq!(found, expected);
    let (bytes, lines) = (8 + 2 + 14, 3);
    assert_eq!(skipped, Skipped { bytes, lines });
}

#[test]
fn wrong_numbers_are_told_and_not_fatal() {
    let wrong = ORDER.replace("10=017", "10=000").replace("9=48", "9=7");
    let flaws = "BodyLength(9) is 7, expected 48; CheckSum(10) is 000, expected 220";
    let found = lines(&format!("{wrong}{ORDER}"));
    assert_eq!(found, [format!(">{wrong}>{flaws}"), format!(">{ORDER}>")]);
    let none = ORDER.replace("9=48|35=D|", "");
    let found = lines(&none);
    assert!(
        found[0].contains("second field is not BodyLength(9); the third field is not MsgType(35)"),
        "{found:?}"
    );
    let odd = ORDER.replace("017", "01x");
    assert!(lines(&odd)[0].ends_with("CheckSum(10) is 01x, expected 017"));
}

#[test]
fn a_message_without_its_end_is_what_there_is() {
    let cut = &ORDER[..ORDER.len() - 10];
    let told = "CheckSum(10) is missing: the message is truncated";
    for text in [
        cut.to_owned(),
        format!("{cut}\n{ORDER}"),
        format!("{cut}|{ORDER}"),
    ] {
        for separator in ["|", "\x01"] {
            let found = lines(&text.replace('|', separator));
            assert!(found[0].ends_with(told), "{found:?}");
            assert!(found[0].contains("|55=I|"), "{found:?}");
            assert_eq!(found.len(), text.matches("8=").count(), "{found:?}");
        }
    }
    // The last separator may be missing.
    assert_eq!(lines(ORDER.trim_end_matches('|')), [format!(">{ORDER}>")]);
    let quoted = format!("\"{}\"", ORDER.trim_end_matches('|'));
    assert_eq!(lines(&quoted), [format!("\">{ORDER}>")]);
}

#[test]
fn a_separator_in_a_value_is_part_of_it_in_text() {
    let text = "8=FIX.4.2|9=15|35=B|148=a|b c|10=129|";
    assert_eq!(lines(text), [format!(">{text}>")]);
    let mut scanner = Scanner::default();
    scanner.push(text.as_bytes());
    scanner.finish();
    let found = scanner.next().unwrap();
    assert_eq!(found.message.get(148), Some(&b"a|b c"[..]));
}

#[test]
fn data_with_separators_and_lines_is_one_value() {
    let fields = "35=B|95=8|96=a|10=1\nb|";
    let text = format!("8=FIX.4.2|9={}|{fields}", fields.len());
    let sum = text.replace('|', "\x01").bytes().fold(0, u8::wrapping_add);
    let text = format!("{text}10={sum:03}|").replace('|', "\x01");
    let mut scanner = Scanner::default();
    scanner.push(text.as_bytes());
    scanner.finish();
    let found = scanner.next().unwrap();
    assert_eq!(found.message.get(96), Some(&b"a\x0110=1\nb"[..]));
    assert_eq!(found.flaws, []);
}

/// Returns a message with a whole message in a data field.
fn nested() -> String {
    let inner = "8=FIX.4.4|9=5|35=0|10=161|";
    let fields = format!("35=B|95={}|96={inner}|", inner.len());
    let text = format!("8=FIX.4.2|9={}|{fields}", fields.len());
    let sum = text.replace('|', "\x01").bytes().fold(0, u8::wrapping_add);
    format!("{text}10={sum:03}|")
}

#[test]
fn a_length_that_is_wrong_says_nothing_of_other_lines() {
    let wrong = ORDER.replace("9=48", "9=999");
    let text = format!("{wrong} {ORDER}\n{}", nested());
    let found = lines(&text);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].starts_with(&format!(">{wrong}>BodyLength(9)")));
    let right = [format!(">{ORDER}>"), format!(">{}>", nested())];
    assert_eq!(found[1..], right);
}

/// The end of each message must not be searched for, as no length leads to one.
#[test]
fn many_lengths_on_one_line_are_followed_once() {
    const COUNT: usize = 9_100;
    let one = "8=FIX.4.4|9=999999|1=x";
    let (mut scanner, mut found) = (Scanner::new(100_000), Vec::new());
    scanner.push(one.repeat(COUNT).as_bytes());
    take(&mut scanner, &mut found);
    // Those of the last lengths that were followed; any other would wait for as much text.
    assert_eq!(found.len(), 200_024 / one.len());
    scanner.finish();
    take(&mut scanner, &mut found);
    assert_eq!(found.len(), COUNT);
    assert!(found[0].starts_with(&format!(">{one}|>")));
    assert!(found.iter().all(|line| *line == found[0]));
}

#[test]
fn a_wrong_length_of_data_is_told_and_all_fields_are_there() {
    for length in [2, 5, 500] {
        let text = format!("8=FIX.4.4|9=9|35=A|95={length}|96=***|58=x|10=000|");
        let found = lines(&text.replace('|', "\x01"));
        assert!(
            found[0].contains("not have the length announced"),
            "{found:?}"
        );
        let mut scanner = Scanner::default();
        scanner.push(text.as_bytes());
        scanner.finish();
        let found = scanner.next().unwrap();
        assert_eq!(found.message.get(58), Some(&b"x"[..]), "{length}");
        assert_eq!(found.message.get(96), Some(&b"***"[..]));
    }
    // The next message has its data again.
    let good = "8=FIX.4.4|9=17|35=A|95=3|96=a|b|10=055|";
    let both = format!("8=FIX.4.4|9=9|35=A|95=2|96=***|10=000|{good}").replace('|', "\x01");
    let mut scanner = Scanner::default();
    scanner.push(both.as_bytes());
    assert!(scanner.next().is_some());
    assert_eq!(
        scanner.next().unwrap().message.get(96),
        Some(&b"a\x01b"[..])
    );
}

#[test]
fn an_endless_line_is_bounded() {
    let endless = format!("8=FIX.4.4|9=5|58={}", "x".repeat(5_000));
    let (found, skipped) = scan(endless.as_bytes(), 7);
    assert_eq!((found.len(), skipped.lines), (0, 1));
    assert_eq!(skipped.bytes, endless.len() as u64);
    let (found, _) = scan(format!("{endless}{ORDER}").as_bytes(), 1_000);
    assert_eq!(found.len(), 1);
    let prefix = found[0].split('>').next().unwrap();
    assert_eq!(prefix, "x".repeat(MAX_PREFIX));
}

#[test]
fn a_field_whose_tag_ends_in_8_is_no_start_wherever_the_text_is_cut() {
    let text = format!(
        "8=FIX.4.4|9=4{}{}",
        ORDER.replace('|', "\x01"),
        "z".repeat(255)
    );
    let whole = scan(text.as_bytes(), usize::MAX);
    for piece in 1..20 {
        assert_eq!(scan(text.as_bytes(), piece), whole);
    }
}

#[test]
fn nothing_is_found_in_nothing() {
    assert_eq!(scan(b"", 1), (Vec::new(), Skipped::default()));
    assert_eq!(scan(b"  \n\n", 1), (Vec::new(), Skipped::default()));
    // A field whose tag ends in 8.
    assert_eq!(lines("58=FIX.4.4|9=1|"), [""; 0]);
    assert_eq!(lines("8=FIX"), [""; 0]);
    assert_eq!(lines("8=FIX.4.4.4.4.4.4.4|9=1|"), [""; 0]);
}

proptest! {
    #[test]
    fn pieces_of_any_size_give_the_same(
        parts in prop::collection::vec((0_usize..17, 0_usize..80), 0..12),
        piece in 1_usize..40,
    ) {
        let soh = ORDER.replace('|', "\x01");
        let long = "z".repeat(400);
        let text: String = parts.into_iter().map(|(kind, cut)| match kind {
            0 => ORDER.to_owned(),
            1 => soh.clone(),
            2 => ORDER.replace('|', "^A"),
            3 => soh[..cut.min(soh.len())].to_owned(),
            4 => ORDER[..cut.min(ORDER.len())].to_owned(),
            5 => soh.replace("9=48", "9=200"),
            6 => "\n".to_owned(),
            7 => format!("time {cut}: "),
            8 => "8=FIX".to_owned(),
            9 => "|10=".to_owned(),
            10 => "8=FIX.4.4|9=5|35=0|".to_owned(),
            11 => long[..cut * 5].to_owned(),
            12 => "\x01".to_owned(),
            13 => ORDER.replace("9=48", "9=200"),
            14 => ORDER.replace("9=48", "9=999").replace('|', "\\x01"),
            15 => nested(),
            _ => ORDER.replace('|', "<SOH>"),
        }).collect();
        prop_assert_eq!(scan(text.as_bytes(), piece), scan(text.as_bytes(), usize::MAX));
    }

    #[test]
    fn no_bytes_are_too_odd(
        text in prop::collection::vec(prop::sample::select(ALPHABET.to_vec()), 0..400),
        piece in 1_usize..40,
    ) {
        prop_assert_eq!(scan(&text, piece), scan(&text, usize::MAX));
    }
}

#[test]
fn data_fields_that_it_is_told_of_may_hold_separators() {
    let text = b"8=FIX.4.4\x019=5\x0135=D\x016032=11\x016033=a\x0158=forged\x0154=1\x0110=000\x01";
    let values = |mut scanner: Scanner| {
        scanner.push(text);
        scanner.finish();
        let found = scanner.next().unwrap();
        let shown = |tag| {
            let value = found.message.get(tag)?;
            Some(String::from_utf8_lossy(value).replace('\x01', "|"))
        };
        [6033, 58, 54].map(shown)
    };
    let value = |text: &str| Some(text.to_owned());
    let standard = [value("a"), value("forged"), value("1")];
    assert_eq!(values(Scanner::default()), standard);
    let own = [value("a|58=forged"), None, value("1")];
    assert_eq!(values(Scanner::knowing(&[(6032, 6033)])), own);
}
