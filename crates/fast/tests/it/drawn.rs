//! Templates and messages drawn at random, for decoding and encoding in lanes.

use std::ops::RangeInclusive;

use fanfare_fast::program::{Field, FieldKind, IntOp, Op};
use fanfare_fast::template::OperatorKind;
use fanfare_fast::value::{IntType, TextType};
use fanfare_fast::{Decimal, Encoder, Message, Program, Scalar, Source};
use fastrand::Rng;
use proptest::prelude::*;

/// Those of 64 bits last.
const INTS: [&str; 8] = [
    "int8", "uInt8", "int16", "uInt16", "int32", "uInt32", "int64", "uInt64",
];

/// Numbers near the borders of what a lane holds, of the types, and of the lengths of entities.
const NUMBERS: [i64; 32] = [
    0,
    1,
    2,
    9,
    63,
    64,
    127,
    128,
    255,
    8191,
    8192,
    16_383,
    16_384,
    65_535,
    (1 << 20) - 1,
    1 << 20,
    (1 << 21) - 1,
    1 << 21,
    (1 << 27) - 1,
    1 << 27,
    (1 << 28) - 1,
    1 << 28,
    (1 << 30) - 1,
    1 << 30,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 34,
    (1 << 55) - 1,
    1 << 55,
    1 << 62,
    i64::MAX,
];

fn presence(optional: bool) -> &'static str {
    if optional { " presence='optional'" } else { "" }
}

/// An operator with an initial value or none.
fn operator(
    kinds: &'static [&'static str],
    values: &'static [&'static str],
) -> impl Strategy<Value = (String, bool)> {
    (
        prop::sample::select(kinds),
        prop::sample::select(values),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(kind, value, with_value, optional)| {
            let needed = kind == "constant" || (kind == "default" && !optional);
            let value = match with_value || needed {
                true => format!(" value='{value}'"),
                false => String::new(),
            };
            match kind {
                "" => (String::new(), optional),
                _ => (format!("<{kind}{value}/>"), optional),
            }
        })
}

const INT: &[&str] = &[
    "",
    "copy",
    "copy",
    "default",
    "delta",
    "increment",
    "constant",
];

/// Initial values of integers.
const INITIAL: &[&str] = &["0", "1", "127"];

fn int() -> impl Strategy<Value = String> {
    let ty = prop_oneof![3 => Just("uInt32"), 1 => prop::sample::select(&INTS[..])];
    (ty, operator(INT, INITIAL)).prop_map(int_field)
}

/// An integer that fits a lane: one of 64 bits as a difference.
fn lane_int() -> impl Strategy<Value = String> {
    let differences: &[&str] = &["delta", "increment"];
    let short = (prop::sample::select(&INTS[..6]), operator(INT, INITIAL));
    let long = (
        prop::sample::select(&INTS[6..]),
        operator(differences, INITIAL),
    );
    prop_oneof![9 => short, 1 => long].prop_map(int_field)
}

fn int_field((ty, (op, optional)): (&'static str, (String, bool))) -> String {
    format!("<{ty} name='F#'{}>{op}</{ty}>", presence(optional))
}

fn text() -> impl Strategy<Value = String> {
    let kinds: &[&str] = &["", "copy", "default", "constant", "tail"];
    operator(kinds, &["", "A", "ABCD", "ABCDE"]).prop_map(text_field)
}

/// A string that fits a lane.
fn lane_text() -> impl Strategy<Value = String> {
    let kinds: &[&str] = &["", "copy", "default", "constant"];
    operator(kinds, &["", "A", "ABCD"]).prop_map(text_field)
}

fn text_field((op, optional): (String, bool)) -> String {
    format!("<string name='F#'{}>{op}</string>", presence(optional))
}

fn decimal() -> impl Strategy<Value = String> {
    let exponents: &[&str] = &["", "default", "copy", "constant", "delta", "increment"];
    let mantissas: &[&str] = &["", "delta", "copy", "default", "increment"];
    let part = operator(mantissas, &["0", "7"]);
    (operator(exponents, &["0", "-2", "63"]), part, 0..3_u32).prop_map(
        |((exponent, optional), (mantissa, _), kind)| {
            let inside = match kind {
                0 => String::new(),
                _ => {
                    let mantissa = mantissa.replace("<default/>", "");
                    let exponent = match optional {
                        true => exponent,
                        false => exponent.replace("<default/>", ""),
                    };
                    in_parts(&exponent, &mantissa)
                }
            };
            decimal_field((inside, optional))
        },
    )
}

/// A decimal that fits lanes: with one that can be absent, neither a previous value nor a bit of
/// its mantissa says whether it is.
fn lane_decimal() -> impl Strategy<Value = String> {
    type Operators = &'static [&'static str];
    let split = |exponents: Operators, mantissas: Operators, optional: bool| {
        let parts = (
            prop::sample::select(exponents),
            prop::sample::select(mantissas),
        );
        parts.prop_map(move |(exponent, mantissa)| (in_parts(exponent, mantissa), optional))
    };
    let mandatory = split(
        &[
            "",
            "<copy/>",
            "<copy value='0'/>",
            "<constant value='-2'/>",
            "<default value='0'/>",
            "<delta/>",
            "<increment/>",
            "<increment value='63'/>",
        ],
        &[
            "",
            "<delta/>",
            "<copy/>",
            "<copy value='7'/>",
            "<default value='0'/>",
            "<increment/>",
        ],
        false,
    );
    let optional = split(
        &["", "<default/>", "<default value='-2'/>"],
        &["", "<delta/>", "<delta value='7'/>"],
        true,
    );
    let whole = any::<bool>().prop_map(|optional| (String::new(), optional));
    prop_oneof![mandatory, optional, whole].prop_map(decimal_field)
}

fn in_parts(exponent: &str, mantissa: &str) -> String {
    format!("<exponent>{exponent}</exponent><mantissa>{mantissa}</mantissa>")
}

fn decimal_field((inside, optional): (String, bool)) -> String {
    let presence = presence(optional);
    format!("<decimal name='F#'{presence}>{inside}</decimal>")
}

/// What is in a lane only as a constant.
fn bytes(kinds: &'static [&'static str]) -> impl Strategy<Value = String> {
    let operator = prop::sample::select(kinds);
    (operator, any::<bool>()).prop_map(|(op, is_unicode)| match is_unicode {
        true => format!("<string name='F#' charset='unicode'><{op} value='e'/></string>"),
        false => format!("<byteVector name='F#'><{op} value='ff'/></byteVector>"),
    })
}

fn fields() -> impl Strategy<Value = String> {
    let bytes = bytes(&["constant", "default"]);
    let field = prop_oneof![50 => int(), 20 => text(), 20 => decimal(), 1 => bytes];
    prop::collection::vec(field, 0..24).prop_map(|fields| fields.concat())
}

fn lane_fields(count: RangeInclusive<usize>) -> impl Strategy<Value = Vec<String>> {
    let bytes = bytes(&["constant"]);
    let field = prop_oneof![50 => lane_int(), 20 => lane_text(), 20 => lane_decimal(), 1 => bytes];
    prop::collection::vec(field, count)
}

/// Names the fields of a document, each differently.
#[derive(Default)]
struct Names(usize);

impl Names {
    fn named(&mut self, fields: &str) -> String {
        let mut text = String::new();
        for piece in fields.split_inclusive('#') {
            self.0 += 1;
            text.push_str(&piece.replace('#', &self.0.to_string()));
        }
        text
    }
}

fn reset(resets: bool) -> &'static str {
    if resets { " reset='yes'" } else { "" }
}

/// Templates that are hardly ever flat: A with a sequence, B that shares the previous values of
/// A's first fields, C with more behind a sequence.
pub(crate) fn templates() -> impl Strategy<Value = String> {
    (fields(), fields(), fields(), any::<bool>()).prop_map(|(head, entry, tail, resets)| {
        let mut names = Names::default();
        let (head, entry) = (names.named(&head), names.named(&entry));
        let (tail, reset) = (names.named(&tail), reset(resets));
        let sequence = format!("<sequence name='S'><length name='N'/>{entry}</sequence>");
        format!(
            "<templates><template name='A' id='1'{reset}>{head}{sequence}</template>\
             <template name='B' id='2'>{head}</template>\
             <template name='C' id='3'>{head}{sequence}{tail}</template></templates>"
        )
    })
}

/// Templates of which A is flat, with a sequence, and of any width. B, flat too if it is long
/// enough, and C share previous values with it.
pub(crate) fn flat_templates() -> impl Strategy<Value = String> {
    flat_templates_of(3..=30)
}

/// Templates as those of [`flat_templates`], with `count` fields on each level.
pub(crate) fn flat_templates_of(count: RangeInclusive<usize>) -> impl Strategy<Value = String> {
    let fields = || lane_fields(count.clone());
    (fields(), fields(), 0..4_usize, any::<bool>())
        .prop_map(|(head, entry, blocks, resets)| flat_document(&head, &entry, blocks, resets))
        .prop_filter("a template that is flat", |xml| is_flat(xml))
}

fn flat_document(head: &[String], entry: &[String], blocks: usize, resets: bool) -> String {
    let mut names = Names::default();
    let head: Vec<String> = head.iter().map(|field| names.named(field)).collect();
    let entry: String = entry.iter().map(|field| names.named(field)).collect();
    let kept: Vec<&str> = head.iter().map(String::as_str).filter(keeps).collect();
    // Columns that do not ascend make it no segment.
    let backwards: String = kept.iter().rev().copied().collect();
    // Each group takes a vector of columns, so that those of A begin behind it.
    let group = |n| format!("<group name='G{n}'><uInt32 name='P{n}'><copy/></uInt32></group>");
    let groups: String = (0..blocks).map(group).collect();
    let filler = match blocks {
        0 => String::new(),
        _ => format!("<template name='P' id='9'>{groups}</template>"),
    };
    let (head, kept, reset) = (head.concat(), kept.concat(), reset(resets));
    format!(
        "<templates>{filler}<template name='A' id='1'{reset}>{head}\
         <sequence name='S'><length name='N'/>{entry}</sequence></template>\
         <template name='B' id='2'>{kept}</template>\
         <template name='C' id='3'>{backwards}</template></templates>"
    )
}

/// Returns whether all lanes of a field have previous values.
fn keeps(field: &&str) -> bool {
    let operators = ["<copy", "<delta", "<increment"];
    !field.starts_with("<decimal") && operators.iter().any(|operator| field.contains(operator))
}

fn is_flat(xml: &str) -> bool {
    let program = Program::parse(xml).unwrap();
    program.has_rows(program.by_name("A").unwrap().index())
}

/// Templates of which most are flat.
pub(crate) fn any_templates() -> impl Strategy<Value = String> {
    prop_oneof![1 => templates(), 2 => flat_templates()]
}

/// Values that operators often expect, or that nearly fit.
pub(crate) struct Dice {
    pub(crate) random: Rng,
    /// Only what every lane holds, and no value absent.
    pub(crate) tame: bool,
}

impl Dice {
    pub(crate) fn new(seed: u64, tame: bool) -> Self {
        let random = Rng::with_seed(seed);
        Self { random, tame }
    }

    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.random.usize(..sides)
    }

    pub(crate) fn number(&mut self) -> i64 {
        if self.tame {
            return 1 + self.roll(3) as i64;
        }
        let few = [3, 8, NUMBERS.len()][self.roll(3)];
        NUMBERS[self.roll(few)]
    }
}

impl Source for Dice {
    fn scalar(&mut self, field: &Field) -> Scalar<'_> {
        if field.optional() && !self.tame && self.roll(3) == 0 {
            return Scalar::Absent;
        }
        match field.kind() {
            FieldKind::Int(IntType::UInt64) if !self.tame && self.roll(8) == 0 => {
                Scalar::Unsigned([1 << 63, u64::MAX][self.roll(2)])
            }
            FieldKind::Int(ty) => {
                let number = self.number();
                let number = if ty.is_signed() && self.roll(2) == 0 {
                    !number
                } else {
                    number
                };
                match ty.holds(number.into()) {
                    true => Scalar::Signed(number),
                    false => Scalar::Unsigned(1),
                }
            }
            FieldKind::Decimal => {
                let exponent = [0, -2, 3, 63, -63][self.roll(if self.tame { 2 } else { 5 })];
                let sign = [1, -1][self.roll(2)];
                let mantissa = sign * self.number();
                Scalar::Decimal(Decimal { mantissa, exponent })
            }
            FieldKind::Text(TextType::Ascii) => Scalar::Text(
                [&b"A"[..], b"A", b"B", b"", b"\0", b"AB", b"ABCD", b"ABCDE"]
                    [self.roll(if self.tame { 3 } else { 8 })],
            ),
            FieldKind::Text(TextType::Unicode) => Scalar::Text(b"e"),
            FieldKind::Text(TextType::Bytes) => Scalar::Text(b"\xff"),
            _ => Scalar::Absent,
        }
    }

    fn group(&mut self, _: &Field) -> bool {
        self.tame || self.roll(4) > 0
    }

    fn length(&mut self, field: &Field) -> Option<u32> {
        let is_absent = field.optional() && !self.tame && self.roll(4) == 0;
        (!is_absent).then(|| self.roll(5) as u32)
    }
}

/// Dice that know the constants of a program: no message with another value can be encoded.
pub(crate) struct Fitting<'d> {
    pub(crate) program: &'d Program,
    pub(crate) dice: &'d mut Dice,
}

impl Source for Fitting<'_> {
    fn scalar(&mut self, field: &Field) -> Scalar<'_> {
        if let Some(constant) = constant(self.program, field) {
            let is_absent = field.optional() && !self.dice.tame && self.dice.roll(3) == 0;
            return if is_absent { Scalar::Absent } else { constant };
        }
        let exponent = constant_exponent(self.program, field);
        match (self.dice.scalar(field), exponent) {
            (Scalar::Decimal(Decimal { mantissa, .. }), Some(exponent)) => {
                Scalar::Decimal(Decimal { mantissa, exponent })
            }
            (scalar, _) => scalar,
        }
    }

    fn group(&mut self, field: &Field) -> bool {
        self.dice.group(field)
    }

    fn length(&mut self, field: &Field) -> Option<u32> {
        self.dice.length(field)
    }
}

/// Returns the only value that a field has.
fn constant<'p>(program: &'p Program, field: &Field) -> Option<Scalar<'p>> {
    const CONSTANT: OperatorKind = OperatorKind::Constant;
    match *program.op(field.id()) {
        Op::Int(op) if op.operator == CONSTANT => Some(match (op.ty.is_signed(), op.initial?) {
            (true, bits) => Scalar::Signed(bits as i64),
            (false, bits) => Scalar::Unsigned(bits),
        }),
        Op::Decimal(op) if op.operator == CONSTANT => op.initial.map(Scalar::Decimal),
        Op::Text(op) if op.operator == CONSTANT => {
            op.initial.map(|text| Scalar::Text(program.text(text)))
        }
        _ => None,
    }
}

/// Returns the only exponent that the values of a decimal have.
fn constant_exponent(program: &Program, field: &Field) -> Option<i8> {
    match *program.op(field.id()) {
        Op::SplitDecimal {
            exponent:
                IntOp {
                    operator: OperatorKind::Constant,
                    initial: Some(bits),
                    ..
                },
            ..
        } => i8::try_from(bits as i64).ok(),
        _ => None,
    }
}

/// Returns a stream of messages of these templates, and where they begin.
pub(crate) fn stream_of(
    program: &Program,
    mut dice: Dice,
    messages: usize,
) -> (Vec<u8>, Vec<usize>) {
    let mut encoder = Encoder::new(program.clone());
    let (mut message, mut bytes, mut starts) = (Message::new(), Vec::new(), Vec::new());
    for _ in 0..messages {
        // The last one is Reset.
        let template = &program.templates()[dice.roll(program.templates().len() - 1)];
        let dice = &mut dice;
        let mut source = Fitting { program, dice };
        if message.fill(program, template, &mut source).is_ok() {
            let start = bytes.len();
            if encoder.encode_or_restore(&message, &mut bytes).is_ok() {
                starts.push(start);
            }
        }
    }
    (bytes, starts)
}
