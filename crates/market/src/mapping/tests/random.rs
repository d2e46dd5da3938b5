//! Random templates, mappings and messages, for which the fast path must equal the slow one.

use crate::instruments::Instruments;
use crate::mapping::{FastMapper, Mapping};
use fanfare_fast::program::{Field, FieldKind, Op};
use fanfare_fast::template::OperatorKind;
use fanfare_fast::{Decimal, Decoder, Encoder, Message, Program, Record, Scalar, Source};
use fastrand::Rng;
use std::sync::Arc;

/// Returns one of these.
fn pick<'a>(random: &mut Rng, all: &[&'a str]) -> &'a str {
    all[random.usize(..all.len())]
}

/// Returns a field of a template, with an operator that its type can have.
fn field(random: &mut Rng, types: &[&str], name: &str, tag: u32) -> String {
    let ty = pick(random, types);
    let is_decimal = ty == "decimal";
    let operators: &[&str] = match ty {
        "string" => &["", "<copy/>", "<copy/>", "<default/>"],
        _ if is_decimal => &[
            "",
            "<delta/>",
            "<exponent><constant value='-2'/></exponent><mantissa><delta/></mantissa>",
            "<exponent><default value='0'/></exponent><mantissa><delta/></mantissa>",
        ],
        _ => &[
            "",
            "<copy/>",
            "<delta/>",
            "<increment/>",
            "<constant value='1'/>",
        ],
    };
    // Lanes have the first ones.
    let operators = match types {
        [_] if !is_decimal => &operators[..3],
        _ => operators,
    };
    let operator = pick(random, operators);
    let is_optional = random.u8(..3) == 0 || operator == "<default/>";
    let presence = if is_optional {
        " presence='optional'"
    } else {
        ""
    };
    format!("<{ty} name='{name}' id='{tag}'{presence}>{operator}</{ty}>")
}

const INTS: &[&str] = &["uInt32", "uInt32", "uInt32", "int32", "uInt64", "int64"];

/// The share of a template that is as in most feeds.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    /// None of it.
    Any,
    /// All of it, in a message of changes.
    Changes,
    /// All of it, in a snapshot.
    Snapshot,
}

/// Returns a field that no mapping uses, and that moves those after it.
fn noise(random: &mut Rng, number: u32, shape: Shape) -> String {
    if shape != Shape::Any && random.bool() {
        return field(random, &["uInt32"], "Noise", 9000 + number);
    }
    let inner = field(random, &["uInt32", "string"], "Inner", 9100 + number);
    match random.u8(..12) {
        0 => format!("<group name='G{number}'>{inner}</group>"),
        1 => format!("<group name='G{number}' presence='optional'>{inner}</group>"),
        2 => format!("<sequence name='S{number}'><length name='N{number}'/>{inner}</sequence>"),
        3 | 4 => field(
            random,
            &["string", "uInt64", "decimal"],
            "Noise",
            9000 + number,
        ),
        _ => String::new(),
    }
}

/// The fields of entries, with the types that they may have.
const FIELDS: [(&[&str], &str, u32); 10] = [
    (
        &["uInt32", "uInt32", "int32", "string"],
        "MDUpdateAction",
        279,
    ),
    (INTS, "SecurityID", 48),
    (&["string"], "Symbol", 55),
    (INTS, "RptSeq", 83),
    (
        &["decimal", "decimal", "decimal", "int32"],
        "MDEntryPx",
        270,
    ),
    (&["int32", "int64", "uInt64", "decimal"], "MDEntrySize", 271),
    (&["uInt32", "int32"], "MDPriceLevel", 1023),
    (&["uInt32", "int64", "string"], "MDEntryID", 278),
    (&["uInt32", "uInt64"], "MDEntryTime", 273),
    (&["uInt32"], "MDEntryDate", 272),
];

/// Returns a template, with its fields in any order. A plain one has the fields of most feeds.
fn template(random: &mut Rng, shape: Shape) -> String {
    let is_plain = shape != Shape::Any;
    let sending: &[&str] = if is_plain {
        &["uInt32"]
    } else {
        &["uInt32", "uInt64"]
    };
    let mut head = vec![
        field(random, &["uInt32"], "MsgSeqNum", 34),
        field(random, sending, "SendingTime", 52),
        field(random, &["uInt32"], "TradeDate", 75),
        noise(random, 1, shape),
        noise(random, 2, shape),
    ];
    let mut entry = vec![
        field(random, &["string"], "MDEntryType", 269),
        noise(random, 3, shape),
        noise(random, 4, shape),
    ];
    let mut either = |random: &mut Rng, field: String, is_of_snapshot: bool| match random.u8(..6) {
        _ if is_of_snapshot && shape == Shape::Snapshot => head.push(field),
        0 if !is_plain => head.push(field),
        1 if !is_plain => {}
        _ => entry.push(field),
    };
    for (types, name, tag) in FIELDS {
        let types = match (is_plain, tag) {
            (true, 269 | 55) => &["string"],
            (true, 270) => &["decimal"],
            (true, _) => &["uInt32"],
            (false, _) => types,
        };
        let made = match tag {
            48 if is_plain => "<uInt32 name='SecurityID' id='48'><copy/></uInt32>".to_owned(),
            _ => field(random, types, name, tag),
        };
        either(random, made, matches!(tag, 48 | 55 | 83));
    }
    let source = match random.u8(..4) {
        0 if !is_plain => field(random, &["uInt32", "string"], "SecurityIDSource", 22),
        1 => String::new(),
        _ => "<uInt32 name='SecurityIDSource' id='22'><constant value='8'/></uInt32>".to_owned(),
    };
    either(random, source, true);
    for tag in [893, 7944, 5010] {
        if shape != Shape::Changes && random.u8(..4) == 0 {
            head.push(field(random, &["uInt32", "string"], "Fragment", tag));
        }
    }
    // RptSeq(83) of the message, for entries that have none.
    if random.u8(..4) == 0 {
        let types = if is_plain { &["uInt32"] } else { INTS };
        head.push(field(random, types, "RptSeq", 83));
    }
    random.shuffle(&mut head);
    random.shuffle(&mut entry);
    let (head, entry) = (head.concat(), entry.concat());
    let body = match random.u8(..8) {
        // The message is the entry.
        0 => format!("{head}{entry}"),
        _ => format!(
            "{head}<sequence name='MDEntries'><length name='NoMDEntries' id='268'/>{entry}\
             </sequence>"
        ),
    };
    format!("<template name='T' id='1'>{body}</template>")
}

/// The rules, some of which are left out.
const RULES: [&str; 7] = [
    "kind = \"level\"\nwhen = { 269 = [\"0\", \"1\"] }\nlevel = 1023\n",
    "kind = \"order\"\nwhen = { 269 = \"0\" }\nwith = [1023]\nid = 278\nid-text = \"hash\"\n",
    "kind = \"trade\"\nwhen = { 269 = \"2\" }\nid = 278\n",
    "kind = \"trade\"\nwhen = { 269 = \"2\", 1023 = 1 }\nentry-type = \"5\"\n",
    "kind = \"ignore\"\nwhen = { 269 = \"3\" }\n",
    "kind = \"clear\"\nwhen = { 269 = \"J\" }\n",
    "kind = \"statistic\"\n",
];

/// The formats of times, the most usual ones first.
const TIMES: [&str; 7] = [
    "day-s",
    "HHMMSS",
    "epoch-s",
    "HHMMSSmmm",
    "YYYYMMDDHHMMSSmmm",
    "YYYYMMDD",
    "day-ms",
];

/// Returns a mapping of the template, which need not fit it.
fn mapping(random: &mut Rng, xml: &str, shape: Shape) -> String {
    let is_plain = shape != Shape::Any;
    let times = if is_plain { &TIMES[..3] } else { &TIMES };
    let time = pick(random, times);
    let sent = pick(random, times);
    let date = pick(
        random,
        &[", date = 75", ", date = 272", ", date = [272, 75]", ""],
    );
    let sent_date = pick(random, &[", date = 75", ""]);
    // Times with a date use no other.
    let is_of_day = |format: &str| format.starts_with("day") || format.starts_with("HH");
    let date = if is_of_day(time) { date } else { "" };
    let sent_date = if is_of_day(sent) { sent_date } else { "" };
    let has_entries = xml.contains("MDEntries");
    let is_snapshot = match shape {
        Shape::Any => has_entries && random.u8(..3) == 0,
        shape => has_entries && shape == Shape::Snapshot,
    };
    let does = match is_snapshot {
        true => {
            "does = \"snapshot\"\nrpt-seq = 83\ntotal = 75\nlast = 34\nlast-fragment = 893\n\
             first-fragment = 7944\nfragment = 5010"
        }
        false => "does = \"changes\"",
    };
    let mut text = format!(
        "absent = \"ignore\"\nutc-offset = \"{}\"\n[instruments]\nunknown = \"{}\"\n\
         source = \"8\"\n[[message]]\ntemplate = 1\n{does}\nnumber = 34\n",
        pick(random, &["Z", "+03:00"]),
        pick(random, &["add", "add", "count"]),
    );
    if random.u8(..4) != 0 {
        text += &format!("sent = {{ field = 52, format = \"{sent}\"{sent_date} }}\n");
    }
    if has_entries {
        text += "entries = 268\n";
    }
    text += pick(
        random,
        &[
            "instrument = { id = 48, source = 22, symbol = 55 }\n",
            "instrument = { id = 48, source = 22, symbol = 55 }\n",
            "instrument = { id = 48 }\n",
            "instrument = { id = 48, symbol = 55, carry = true }\n",
        ],
    );
    text += "[message.entry]\ntype = 269\naction = 279\nprice = 270\nsize = 271\nrpt-seq = 83\n";
    if random.u8(..5) != 0 {
        text += &format!("time = {{ field = 273, format = \"{time}\"{date} }}\n");
    }
    for rule in RULES {
        if random.u8(..3) != 0 || rule.contains("statistic") {
            text += &format!("[[message.event]]\n{rule}");
        }
    }
    text
}

/// A source of values that are mostly valid.
struct Dice<'p> {
    program: &'p Program,
    random: Rng,
    /// The percentage of arbitrary values.
    wild: u8,
}

impl Dice<'_> {
    fn usual(&mut self, tag: Option<u32>) -> u64 {
        let random = &mut self.random;
        match tag {
            Some(279) => random.u64(..3),
            Some(48) => random.u64(1..6),
            Some(1023) => random.u64(1..20),
            Some(75 | 272) => 20_261_100 + random.u64(20..25),
            Some(893 | 7944) => random.u64(..2),
            Some(273) => random.u64(1..3) * 10_000 + random.u64(..60),
            Some(52) => 43_000 + random.u64(..60),
            _ => random.u64(..1000),
        }
    }
}

impl Source for Dice<'_> {
    fn scalar(&mut self, field: &Field) -> Scalar<'_> {
        let is_constant = match self.program.op(field.id()) {
            Op::Int(op) => op.operator == OperatorKind::Constant,
            _ => false,
        };
        if is_constant || field.optional() && self.random.u8(..4) == 0 {
            return Scalar::Absent;
        }
        let is_wild = self.random.u8(..100) < self.wild;
        let value = self.usual(field.tag());
        let odd = [0, 1, -1, 70_000, 1 << 33, i64::MAX, i64::MIN, i64::MAX - 1];
        let odd = odd[self.random.usize(..odd.len())];
        match field.kind() {
            FieldKind::Int(ty) if is_wild => {
                let value = i128::from(odd);
                match ty.is_signed() {
                    true => Scalar::Signed(value.clamp(ty.min(), ty.max()) as i64),
                    false => Scalar::Unsigned((odd.cast_unsigned()).min(ty.max() as u64)),
                }
            }
            FieldKind::Int(_) => Scalar::Unsigned(value),
            FieldKind::Decimal => {
                let exponent = match self.program.op(field.id()) {
                    Op::SplitDecimal { .. } => -2,
                    _ if is_wild => [-10, 9, 63, -63, -9][self.random.usize(..5)],
                    _ if field.tag() == Some(271) => 0,
                    _ => self.random.i8(-9..=0),
                };
                let mantissa = if is_wild { odd } else { value as i64 };
                Scalar::Decimal(Decimal::new(mantissa, exponent))
            }
            _ if field.tag() == Some(269) && !is_wild => {
                let texts: [&[u8]; 6] = [b"0", b"1", b"2", b"3", b"J", b"7"];
                Scalar::Text(texts[self.random.usize(..6)])
            }
            _ if matches!(field.tag(), Some(893 | 7944)) && !is_wild => {
                Scalar::Text([&b"Y"[..], b"N", b"1"][self.random.usize(..3)])
            }
            _ if is_wild => {
                let texts: [&[u8]; 5] = [b"", b"longer than eight bytes", b"AB", b"007", b"A\0"];
                Scalar::Text(texts[self.random.usize(..5)])
            }
            _ => Scalar::Text([&b"A"[..], b"1", b"BRZ6"][self.random.usize(..3)]),
        }
    }

    fn group(&mut self, _: &Field) -> bool {
        self.random.bool()
    }

    fn length(&mut self, _: &Field) -> Option<u32> {
        Some(self.random.u32(..6))
    }
}

/// One mapper for each path, with a table of its own.
struct Ways {
    fast: (FastMapper, Instruments),
    slow: (FastMapper, Instruments),
}

impl Ways {
    /// Maps a message by both paths. Returns whether it took the fast one.
    fn compare(&mut self, ts_recv: u64, record: &Record, message: &Message) -> bool {
        let (fast, table) = &mut self.fast;
        let (slow, other) = &mut self.slow;
        let outcome = fast.record(table, ts_recv, record);
        assert_eq!(outcome, slow.message(other, ts_recv, message));
        assert_eq!(fast.events(), slow.events());
        assert_eq!(fast.faults(), slow.faults());
        assert_eq!(fast.counts(), slow.counts());
        assert_eq!(table.len(), other.len());
        assert_eq!(table.refused(), other.refused());
        outcome.is_ok() && !fast.has_walked(ts_recv)
    }
}

/// The number of messages, of those in rows, and of those that took the fast path.
#[derive(Default, Debug)]
struct Taken {
    messages: u64,
    fast_in_rows: u64,
    fast_in_levels: u64,
    snapshots: u64,
}

fn shape_of(seed: u64) -> Shape {
    match seed % 3 {
        0 => Shape::Any,
        1 => Shape::Changes,
        _ => Shape::Snapshot,
    }
}

fn play(seed: u64, taken: &mut Taken) {
    let mut random = Rng::with_seed(seed);
    let xml = template(&mut random, shape_of(seed));
    let text = mapping(&mut random, &xml, shape_of(seed));
    let program = Arc::new(Program::parse(&xml).unwrap_or_else(|error| panic!("{error}: {xml}")));
    let mapping = Mapping::parse("m.toml", &text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let Ok(mut fast) = mapping.for_templates(&program, 7) else {
        return;
    };
    let mut slow = mapping.for_templates(&program, 7).unwrap();
    let keeps_numbers = random.bool();
    fast.keep_numbers(keeps_numbers);
    slow.keep_numbers(keeps_numbers);
    let limit = random.usize(4..8);
    let mut ways = Ways {
        fast: (fast, Instruments::new(limit)),
        slow: (slow, Instruments::new(limit)),
    };
    let mut encoder = Encoder::new(program.clone());
    let mut decoder = Decoder::new(program.clone());
    let (mut message, mut record) = (Message::new(), Record::new());
    let wild = [0, 0, 1, 10][random.usize(..4)];
    let mut dice = Dice {
        program: &program,
        random,
        wild,
    };
    let mut bytes = Vec::new();
    for number in 0..30 {
        message
            .fill(&program, &program.templates()[0], &mut dice)
            .unwrap();
        bytes.clear();
        if encoder.encode_or_restore(&message, &mut bytes).is_err() {
            continue;
        }
        assert_eq!(
            decoder.decode_record(&bytes, &mut record),
            Ok(bytes.len()),
            "{xml}"
        );
        // Some have no time of arrival.
        let ts_recv = match seed % 8 {
            7 => 0,
            _ => 1_795_000_000_000_000_000 + number,
        };
        let is_fast = ways.compare(ts_recv, &record, &message);
        taken.messages += 1;
        taken.fast_in_rows += u64::from(is_fast && record.rows().is_some());
        taken.fast_in_levels += u64::from(is_fast && record.level().is_some());
        taken.snapshots += u64::from(is_fast && text.contains("snapshot"));
    }
}

/// Runs `FANFARE_SEEDS` seeds, by default 1,000.
#[test]
fn random_messages_give_the_same_in_both_ways() {
    let seeds = std::env::var("FANFARE_SEEDS").ok();
    let seeds = seeds.and_then(|seeds| seeds.parse().ok()).unwrap_or(1000);
    let mut taken = Taken::default();
    for seed in 0..seeds {
        let before = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            play(seed, &mut taken);
        }));
        if let Err(panic) = before {
            let mut random = Rng::with_seed(seed);
            let xml = template(&mut random, shape_of(seed));
            let text = mapping(&mut random, &xml, shape_of(seed));
            println!("seed {seed}\n{xml}\n{text}");
            std::panic::resume_unwind(panic);
        }
    }
    println!("{taken:?}");
    // The test is about the fast path, which has to be taken often enough.
    assert!(taken.fast_in_rows * 100 > taken.messages, "{taken:?}");
    assert!(taken.fast_in_levels * 20 > taken.messages, "{taken:?}");
    assert!(taken.snapshots * 50 > taken.messages, "{taken:?}");
}
