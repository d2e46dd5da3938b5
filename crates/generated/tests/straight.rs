//! Straight-line code against the op-by-op codec: types of each width with each operator, values at
//! their bounds, structures, limits and damage; the same messages, bytes and errors.

use std::path::Path;

use fanfare_fast::builtin::spectra;
use fanfare_fast::generate::{Generator, SpectraOptions};
use fanfare_fast::program::{Field, FieldKind, IntOp, Op, Program};
use fanfare_fast::template::OperatorKind;
use fanfare_fast::typed::{Feed, Members, Typed, TypedDecoder, TypedEncoder};
use fanfare_fast::value::{IntType, TextType};
use fanfare_fast::{
    Decimal, Decoder, Encoder, ErrorCode, Limits, Message, Options, Scalar, Source, codegen,
};
use fastrand::Rng;

use crate::rows::{damaged, line, scalar};
use crate::{EVERY, every};

#[allow(unreachable_pub, dead_code)]
mod structs {
    include!("straight.generated");
}

const ALL: &str = include_str!("straight.xml");

#[test]
fn the_generator_writes_the_straight_line_code_that_is_compiled_here() {
    assert!(codegen::generate(ALL).unwrap() == include_str!("straight.generated"));
    let code = |xml: &str| Program::parse(xml).unwrap().code();
    assert_eq!(structs::Messages::CODE, code(ALL));
    // Any other operator, value or slot is other code.
    for (one, other) in [
        ("<copy value='7'/>", "<copy value='8'/>"),
        ("<increment/>", "<copy/>"),
        ("key='s'", "key='u'"),
        ("scp:reset=\"yes\"", ""),
    ] {
        assert!(code(&ALL.replacen(one, other, 1)) != code(ALL), "{one}");
    }
}

/// What decimals do not take of a presence map is moved within a word, and may not leave it: nine
/// moves hide a bit too many (R8) at the end of a map of eight bytes.
#[test]
fn bodies_with_many_parts_are_not_straight() {
    let part = "<exponent><copy/></exponent><mantissa><copy/></mantissa>";
    let code = |decimals, bits| {
        let decimal = format!("<decimal name='D' presence='optional'>{part}</decimal>");
        let fields = decimal.repeat(decimals) + &"<int32 name='I'><copy/></int32>".repeat(bits);
        let xml = format!("<template name='T' id='1'>{fields}</template>");
        let code = codegen::generate(&xml).unwrap();
        !code.contains("const CODE: u64 = 0;")
    };
    assert!(code(8, 1) && code(8, 60));
    assert!(!code(9, 1) && !code(9, 45) && !code(9, 46));
}

/// Random values; those of constants are theirs.
struct Dice<'p>(Rng, &'p Program);

impl Dice<'_> {
    fn number(&mut self) -> i64 {
        let bits = [1, 3, 6, 7, 8, 14, 32, 33, 55, 56, 63];
        let most = 1_u64 << bits[self.0.usize(..bits.len())];
        let near = [0, 1, most / 2, most - 1, self.0.u64(..most)];
        near[self.0.usize(..near.len())] as i64
    }

    /// An integer of this type: one in three is at a bound of it.
    fn integer(&mut self, ty: IntType) -> Scalar<'static> {
        if self.0.usize(..3) == 0 {
            let bounds = [ty.min(), ty.min() + 1, ty.max() - 1, ty.max()];
            return integer(bounds[self.0.usize(..bounds.len())]);
        }
        let number = self.number();
        let number = match ty.is_signed() && self.0.bool() {
            true => !number,
            false => number,
        };
        match ty.holds(number.into()) {
            true => Scalar::Signed(number),
            false => Scalar::Signed(number & 7),
        }
    }
}

fn integer(value: i128) -> Scalar<'static> {
    match u64::try_from(value) {
        Ok(value) => Scalar::Unsigned(value),
        Err(_) => Scalar::Signed(value as i64),
    }
}

/// The only value of a constant, which may be absent.
fn constant(op: &IntOp) -> Scalar<'static> {
    match op.initial {
        None => Scalar::Absent,
        Some(value) if op.ty.is_signed() => Scalar::Signed(value as i64),
        Some(value) => Scalar::Unsigned(value),
    }
}

const TEXTS: [&[u8]; 12] = [
    b"A",
    b"AB",
    b"",
    b"\0",
    b"ABCD",
    b"ABCDEFGH",
    b"ABCDEFGHI",
    b"\0A",
    b"a string that is longer than any word",
    b"AC",
    b"A string of fifty bytes, all of them characters, 50",
    b"B",
];

impl Source for Dice<'_> {
    fn scalar(&mut self, field: &Field) -> Scalar<'_> {
        if field.optional() && self.0.usize(..3) == 0 {
            return Scalar::Absent;
        }
        let is_constant = |operator| operator == OperatorKind::Constant;
        match self.1.op(field.id()) {
            Op::Int(op) if is_constant(op.operator) => return constant(op),
            Op::Decimal(op) if is_constant(op.operator) => {
                return op.initial.map_or(Scalar::Absent, Scalar::Decimal);
            }
            Op::SplitDecimal {
                exponent, mantissa, ..
            } if self.0.bool()
                || is_constant(exponent.operator)
                || is_constant(mantissa.operator) =>
            {
                return Scalar::Decimal(Decimal {
                    mantissa: mantissa.initial.unwrap_or(5) as i64,
                    exponent: exponent.initial.map_or(-2, |exponent| exponent as i8),
                });
            }
            Op::Text(op) if is_constant(op.operator) => {
                let text = op.initial.map(|text| Scalar::Text(self.1.text(text)));
                return text.unwrap_or(Scalar::Absent);
            }
            _ => {}
        }
        match field.kind() {
            FieldKind::Int(ty) => self.integer(ty),
            FieldKind::Decimal => {
                let number = self.number();
                let mantissa = if self.0.bool() {
                    number
                } else {
                    -(number & 15)
                };
                let exponent = [0, -2, 63, -63, 5][self.0.usize(..5)];
                Scalar::Decimal(Decimal { mantissa, exponent })
            }
            FieldKind::Text(TextType::Unicode) => {
                let texts = ["\u{e9}", "", "AB", "gr\u{f6}\u{df}er als ein Wort"];
                Scalar::Text(texts[self.0.usize(..texts.len())].as_bytes())
            }
            _ => Scalar::Text(TEXTS[self.0.usize(..TEXTS.len())]),
        }
    }

    fn group(&mut self, _: &Field) -> bool {
        self.0.bool()
    }

    fn length(&mut self, field: &Field) -> Option<u32> {
        if field.optional() && self.0.usize(..4) == 0 {
            return None;
        }
        Some([0, 1, 2, 2, 7][self.0.usize(..5)])
    }

    fn template(&mut self, _: &Field) -> Option<u32> {
        Some(self.0.u32(..self.1.templates().len() as u32))
    }
}

/// A stream of random messages, of all templates or of one: those that can be encoded.
fn stream(program: &Program, seed: u64, template: Option<usize>, messages: usize) -> Vec<u8> {
    let mut dice = Dice(Rng::with_seed(seed), program);
    let options = scalar(Options::default());
    let mut encoder = Encoder::with_options(program.clone(), options);
    let (mut message, mut out) = (Message::new(), Vec::new());
    for _ in 0..messages {
        let all = program.templates().len();
        let template = template.unwrap_or_else(|| dice.0.usize(..all));
        let filled = message.fill(program, &program.templates()[template], &mut dice);
        // Some have a value that its operator cannot express.
        if filled.is_ok() {
            _ = encoder.encode_or_restore(&message, &mut out);
        }
    }
    out
}

/// Decodes streams into structs and encodes those, and op by op.
struct Both<F> {
    oracle: Decoder,
    typed: TypedDecoder<F>,
    message: Message,
    again: Message,
    encoders: Encoders<F>,
}

impl<F> Both<F>
where
    F: Feed + Clone,
    for<'m> F::Decoded<'m>: Typed<Feed = F>,
{
    fn new(options: Options) -> Self {
        let program = Program::parse(F::TEMPLATES).unwrap();
        Self {
            encoders: Encoders {
                oracle: Encoder::with_options(program.clone(), scalar(options)),
                typed: TypedEncoder::<F>::new(options).unwrap(),
                of_good_ones: Encoder::with_options(program.clone(), scalar(options)),
                restoring: TypedEncoder::<F>::new(options).unwrap(),
                message: Message::new(),
                dice: Rng::with_seed(7),
                counts: (0, 0),
            },
            oracle: Decoder::with_options(program, scalar(options)),
            typed: TypedDecoder::new(options).unwrap(),
            message: Message::new(),
            again: Message::new(),
        }
    }

    /// Strict and lenient.
    fn each() -> [Self; 2] {
        [true, false].map(|strict| Self::new(options(strict)))
    }

    /// Decodes a stream, and encodes what it holds; returns the first error of decoding, which is
    /// the same.
    fn decode(&mut self, stream: &[u8]) -> Option<ErrorCode> {
        self.oracle.reset();
        self.typed.reset();
        self.encoders.reset();
        let mut at = 0;
        while at < stream.len() {
            let len = self.oracle.decode(&stream[at..], &mut self.message);
            let program = self.oracle.program();
            let typed = self.typed.decode(&stream[at..]);
            let typed_len = typed.map(|(len, decoded)| {
                decoded.unwrap().write(program, &mut self.again);
                len
            });
            let path = |error: &fanfare_fast::CodecError| error.path(program);
            assert_eq!(typed_len, len, "at {at}: {:?}", len.as_ref().map_err(path));
            match len {
                Ok(len) => at += len,
                Err(error) => return Some(error.code),
            }
            if self.again != self.message {
                let lines = [&self.again, &self.message].map(|m| line(program, m));
                assert_eq!(lines[0], lines[1], "at {at}");
            }
            let feed = self.typed.messages();
            self.encoders.encode(feed);
            if self.encoders.dice.usize(..8) == 0 {
                self.encoders.encode_changed(feed.clone());
            }
        }
        None
    }
}

/// Encodes structs, and op by op.
struct Encoders<F> {
    oracle: Encoder,
    typed: TypedEncoder<F>,
    /// Encodes what the next one encodes, which restores what it had where that fails.
    of_good_ones: Encoder,
    restoring: TypedEncoder<F>,
    message: Message,
    dice: Rng,
    /// How many messages were encoded, and how many could not be.
    counts: (usize, usize),
}

impl<F> Encoders<F>
where
    F: Feed,
    for<'m> F::Decoded<'m>: Typed<Feed = F>,
{
    fn reset(&mut self) {
        self.oracle.reset();
        self.typed.reset();
        self.of_good_ones.reset();
        self.restoring.reset();
    }

    /// Encodes a struct, and the message of its values.
    fn encode(&mut self, feed: &F) {
        let decoded = feed.decoded().unwrap();
        let program = self.oracle.program();
        decoded.write(program, &mut self.message);
        let [mut bytes, mut expected] = [b"before".to_vec(), b"before".to_vec()];
        let expected_result = self.oracle.encode(&self.message, &mut expected);
        let result = self.typed.encode(&decoded, &mut bytes);
        if (result, &bytes) != (expected_result, &expected) {
            let shown = line(self.oracle.program(), &self.message);
            assert_eq!(result, expected_result, "{shown}");
            assert_eq!(bytes, expected, "{shown}");
        }
        self.counts.0 += 1;
        if result.is_err() {
            self.counts.1 += 1;
            assert_eq!(bytes, b"before");
            self.oracle.reset();
            self.typed.reset();
        }
        // It goes on as if the messages that failed had not been there.
        let [mut bytes, mut expected] = [b"before".to_vec(), b"before".to_vec()];
        let result = self.restoring.encode_or_restore(&decoded, &mut bytes);
        if result.is_ok() {
            let expected_result = self.of_good_ones.encode(&self.message, &mut expected);
            assert_eq!(expected_result, result);
        }
        assert_eq!(bytes, expected);
    }

    /// Encodes a struct with some members of other values, many of which no field can have.
    fn encode_changed(&mut self, mut feed: F) {
        let template = feed.decoded().unwrap().template();
        let program = self.oracle.program().clone();
        let fields = program.fields().iter().enumerate();
        let fields: Vec<_> = fields.filter(|(_, f)| f.template() == template).collect();
        for _ in 0..4 {
            if let Some((index, field)) = self.dice.choice(&fields) {
                self.change(&mut feed, *index, field.kind());
            }
        }
        self.encode(&feed);
    }

    fn change(&mut self, feed: &mut F, index: usize, kind: FieldKind) {
        const BEYOND: [&[u8]; 5] = [
            b"\xff",
            b"A\x80",
            b"\xc3\xa9",
            b"ABCDEFG\xe9",
            &[b'x'; 3000],
        ];
        let dice = &mut self.dice;
        if dice.usize(..4) == 0 {
            return feed.absent(index);
        }
        let shift = dice.u32(..64);
        let number = dice.u64(..) >> shift;
        match kind {
            FieldKind::Int(ty) if ty.is_signed() => feed.signed(index, number as i64),
            FieldKind::Int(_) => feed.unsigned(index, number),
            FieldKind::Decimal => {
                let (mantissa, exponent) = (number as i64, dice.i8(..));
                feed.decimal(index, Decimal { mantissa, exponent });
            }
            FieldKind::Text(_) => {
                let texts: Vec<_> = TEXTS.iter().chain(&BEYOND).collect();
                feed.text(index, texts[dice.usize(..texts.len())]);
            }
            FieldKind::Group => feed.begin_group(index),
            FieldKind::Sequence => feed.begin_sequence(index),
            FieldKind::TemplateRef => {}
        }
    }
}

fn options(strict: bool) -> Options {
    Options {
        strict,
        kernel: None,
        ..Options::default()
    }
}

/// The stream as it is, cut, and damaged; strict and lenient.
fn beside_all<F>([strict, lenient]: &mut [Both<F>; 2], stream: &[u8], random: &mut Rng)
where
    F: Feed + Clone,
    for<'m> F::Decoded<'m>: Typed<Feed = F>,
{
    assert_eq!(strict.decode(stream), None);
    let cut = &stream[..random.usize(..=stream.len())];
    for both in [strict, lenient] {
        both.decode(cut);
        for _ in 0..4 {
            both.decode(&damaged(stream, random));
        }
    }
}

#[test]
fn each_operator_of_each_type_is_the_same() {
    let program = Program::parse(ALL).unwrap();
    let mut both = Both::<structs::Messages>::each();
    let mut random = Rng::with_seed(1);
    let mut encoded = vec![0; program.templates().len()];
    for seed in 0..20 {
        for (template, bytes) in encoded.iter_mut().enumerate() {
            let stream = stream(&program, seed, Some(template), 8);
            *bytes += stream.len();
            if !stream.is_empty() {
                beside_all(&mut both, &stream, &mut random);
            }
        }
    }
    // One template refers to another that does not exist, and so cannot be encoded.
    let few = encoded.iter().filter(|bytes| **bytes < 100);
    assert_eq!(few.count(), 1, "{encoded:?}");
    for both in &both {
        let (all, failed) = both.encoders.counts;
        assert!(failed > 200 && failed < all / 4, "{failed} of {all}");
    }
}

/// The messages of a template that have the values of these sources, and where the last begins.
fn stream_of<S: Source>(
    program: &Program,
    id: u32,
    sources: impl IntoIterator<Item = S>,
) -> (Vec<u8>, usize) {
    let template = program.by_id(id).unwrap();
    let mut encoder = Encoder::with_options(program.clone(), scalar(Options::default()));
    let (mut message, mut out, mut last) = (Message::new(), Vec::new(), 0);
    for mut source in sources {
        message.fill(program, template, &mut source).unwrap();
        last = out.len();
        encoder.encode(&message, &mut out).unwrap();
    }
    (out, last)
}

/// Integers that reach the largest or the smallest value of their types; increments go one further.
struct Steps<'p> {
    program: &'p Program,
    is_up: bool,
    step: usize,
}

impl Source for Steps<'_> {
    fn scalar(&mut self, field: &Field) -> Scalar<'_> {
        let Op::Int(op) = self.program.op(field.id()) else {
            return Scalar::Absent;
        };
        let (near, bound, following) = match self.is_up {
            true => (op.ty.max() - 1, op.ty.max(), op.ty.min()),
            false => (op.ty.min() + 1, op.ty.min(), op.ty.min() + 1),
        };
        let steps = [0, bound / 2, near, bound];
        match (op.operator, steps.get(self.step)) {
            (OperatorKind::Constant, _) => constant(op),
            (_, Some(value)) => integer(*value),
            (OperatorKind::Increment, None) => integer(following),
            (_, None) => integer(bound),
        }
    }
}

/// Behind the largest value an increment goes on with the smallest one, and a delta goes no
/// further.
#[test]
fn integers_at_the_bounds_of_their_types_are_the_same() {
    let program = Program::parse(ALL).unwrap();
    for mut both in Both::<structs::Messages>::each() {
        // Those of odd identifiers are mandatory, the others optional.
        for (id, is_up) in (1..=12).flat_map(|id| [(id, true), (id, false)]) {
            let is_optional = id % 2 == 0;
            let steps = (0..5).map(|step| Steps {
                program: &program,
                is_up,
                step,
            });
            let (mut stream, last) = stream_of(&program, id, steps);
            // All is copied, but what a default or a constant that may be absent says; the
            // increments are not in the stream.
            let map = if is_optional { 0xb8 } else { 0xa0 };
            assert_eq!(stream[last], map, "template {id}");
            assert_eq!(both.decode(&stream), None);
            let delta = match (is_up, is_optional) {
                (true, false) => 0x81,
                (true, true) => 0x82,
                (false, _) => 0xff,
            };
            stream.extend([0x80, 0x80, delta, 0x80]);
            assert_eq!(both.decode(&stream), Some(ErrorCode::R4), "template {id}");
        }
    }
}

/// Decimals of one exponent, but for the one of this name.
struct Exponent(&'static str, i8);

impl Source for Exponent {
    fn scalar(&mut self, field: &Field) -> Scalar<'_> {
        if field.kind() != FieldKind::Decimal {
            return Scalar::Unsigned(1);
        }
        let exponent = if field.name() == self.0 { self.1 } else { -2 };
        Scalar::Decimal(Decimal {
            mantissa: 5,
            exponent,
        })
    }
}

/// Exponents that an increment or a delta takes beyond their bounds are R1; a lenient decoder lets
/// them pass.
#[test]
fn exponents_beyond_their_bounds_are_the_same() {
    let program = Program::parse(ALL).unwrap();
    let [mut strict, mut lenient] = Both::<structs::Messages>::each();
    for (name, exponent, delta) in [("P5", 63, 0x80), ("P6", 63, 0x81), ("P6", -63, 0xff)] {
        let (mut stream, _) = stream_of(&program, 33, [Exponent(name, exponent)]);
        assert_eq!(strict.decode(&stream), None);
        stream.extend([0x80, 0x80, 0x80, delta, 0x80]);
        assert_eq!(strict.decode(&stream), Some(ErrorCode::R1), "{name}");
        assert_eq!(lenient.decode(&stream), None, "{name}");
    }
}

/// An increment of the largest initial value wraps to the smallest. A delta beyond an initial value
/// at a bound is an error.
#[test]
fn initial_values_at_the_bounds_are_the_same() {
    for mut both in Both::<structs::Messages>::each() {
        // All values are implied, or have a delta of 0. Optional deltas are one higher: 0 is NULL.
        for (head, [none, less, more]) in [
            ([0xc0_u8, 0xad], [0x80_u8, 0xff, 0x81]),
            ([0xe2, 0xae], [0x81, 0xff, 0x82]),
        ] {
            let first = [&head[..], &[none; 3]].concat();
            let again = [&[head[0] & 0xbf][..], &[none; 3]].concat();
            assert_eq!(both.decode(&[&first[..], &again].concat()), None);
            for deltas in [[less, none, none], [none, more, none], [none, none, more]] {
                let stream = [&head[..], &deltas].concat();
                assert_eq!(both.decode(&stream), Some(ErrorCode::R4), "{deltas:?}");
            }
        }
    }
    let program = Program::parse(ALL).unwrap();
    let [mut both, _] = Both::<structs::Messages>::each();
    assert_eq!(both.decode(&[0xc0, 0xad, 0x80, 0x80, 0x80]), None);
    let shown = line(&program, &both.message);
    for bound in [i64::MIN.into(), i64::MAX.into(), u64::MAX.into()] {
        assert!(shown.contains(&i128::to_string(&bound)), "{shown}");
    }
}

/// An exponent that is 63 at first is incremented to 64; a lenient decoder lets it pass, as it does
/// a delta to -64.
#[test]
fn initial_parts_at_the_bounds_are_the_same() {
    let [mut strict, mut lenient] = Both::<structs::Messages>::each();
    let first = [&[0xc0_u8, 0xaf][..], &[0x80; 5]].concat();
    assert_eq!(strict.decode(&first), None);
    let again = [&first[..], &[0x80; 6]].concat();
    let below = [0xc0, 0xaf, 0x80, 0xff, 0x80, 0x80, 0x80];
    for stream in [&again[..], &below] {
        assert_eq!(strict.decode(stream), Some(ErrorCode::R1));
        assert_eq!(lenient.decode(stream), None);
    }
    // A delta that takes the mantissa of each of the three decimals out of an int64.
    for (at, delta) in [(2, 0xff), (4, 0x81), (6, 0x81)] {
        let mut stream = first.clone();
        stream[at] = delta;
        for both in [&mut strict, &mut lenient] {
            assert!(both.decode(&stream).is_some(), "{at}");
        }
    }
}

/// Each message was encoded alone: behind others, there are operators that cannot express it.
#[test]
fn messages_behind_any_others_are_encoded_alike() {
    let program = Program::parse(ALL).unwrap();
    let alone = (0..1_500).map(|seed| stream(&program, seed, None, 1));
    let alone: Vec<_> = alone.filter(|bytes| !bytes.is_empty()).collect();
    for mut both in Both::<structs::Messages>::each() {
        for bytes in &alone {
            both.typed.reset();
            both.typed.decode(bytes).unwrap();
            both.encoders.encode(both.typed.messages());
        }
        assert!(both.encoders.counts.1 > 20, "{:?}", both.encoders.counts);
    }
}

#[test]
fn templates_in_turn_are_the_same() {
    let program = Program::parse(ALL).unwrap();
    let mut both = Both::<structs::Messages>::each();
    let mut random = Rng::with_seed(2);
    for seed in 100..200 {
        let stream = stream(&program, seed, None, 30);
        beside_all(&mut both, &stream, &mut random);
    }
    let program = Program::parse(EVERY).unwrap();
    let mut both = Both::<every::Messages>::each();
    for seed in 0..200 {
        let stream = stream(&program, seed, None, 10);
        beside_all(&mut both, &stream, &mut random);
    }
}

#[test]
fn a_reference_to_a_template_that_does_not_exist_is_d8() {
    let program = Program::parse(ALL).unwrap();
    let template = program.by_id(44).unwrap().index();
    for mut both in Both::<structs::Messages>::each() {
        // No entry, B absent and the reference; an entry, which begins with one.
        for stream in [
            &[0xc0, 0xac, 0x80, 0x80, 0x80][..],
            &[0xc0, 0xac, 0x81, 0x82],
        ] {
            assert_eq!(both.decode(stream), Some(ErrorCode::D8));
        }
        let mut feed = structs::Messages::default();
        feed.begin_message(template);
        both.encoders.encode(&feed);
        assert_eq!(both.encoders.counts, (1, 1));
    }
}

#[test]
fn noise_is_the_same() {
    let (mut one, mut other) = (
        Both::<structs::Messages>::each(),
        Both::<every::Messages>::each(),
    );
    let mut random = Rng::with_seed(3);
    for round in 0..10_000 {
        // Stop bits at random, or nearly everywhere; small identifiers in front.
        let mut noise = vec![0xc0 | random.u8(..), 0x80 | random.u8(..45)];
        noise.extend((0..random.usize(..40)).map(|_| match round % 3 {
            0 => random.u8(..),
            1 => random.u8(..) | 0x80,
            _ => [0, 0x80, 0xff, 0x7f, 0x81, random.u8(..)][random.usize(..6)],
        }));
        for both in &mut one {
            both.decode(&noise);
        }
        for both in &mut other {
            both.decode(&noise);
        }
    }
}

#[test]
fn limits_are_the_same() {
    let program = Program::parse(ALL).unwrap();
    let mut random = Rng::with_seed(4);
    let streams: Vec<_> = (0..20)
        .map(|seed| stream(&program, seed, None, 20))
        .collect();
    let most = Limits::default();
    let mut reached = 0;
    for round in 0..90 {
        let mut limits = most;
        match round % 6 {
            0 => limits.message = random.usize(20..400),
            1 => limits.text = [3, 8, 9, 20, 40][random.usize(..5)],
            2 => limits.entries = random.u32(1..7),
            3 => limits.fields = random.u32(10..60),
            4 => limits.texts = random.usize(4..90),
            _ => limits.references = random.u32(..3),
        }
        let options = Options {
            limits,
            ..options(round % 4 < 2)
        };
        let mut both = Both::<structs::Messages>::new(options);
        for stream in &streams {
            let error = both.decode(stream);
            reached += usize::from(error == Some(ErrorCode::Limit));
        }
    }
    assert!(reached > 500, "{reached}");
}

#[test]
fn generated_feeds_are_the_same() {
    let mut random = Rng::with_seed(5);
    let mut both = Both::<spectra::Messages>::each();
    for snapshots in [false, true] {
        let contents = SpectraOptions {
            snapshots,
            trades: 10,
            ..SpectraOptions::default()
        };
        let mut generator = Generator::spectra(Program::spectra(), 300, None, contents);
        while let Some(packet) = generator.next_packet().unwrap() {
            beside_all(&mut both, packet, &mut random);
        }
    }
}

/// The builtin templates are of the shapes of the recorded feed's, and so decode it.
#[test]
fn recorded_market_data_is_the_same() {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/data/moex-spectra"
    );
    let [mut both, _] = Both::<spectra::Messages>::each();
    for file in ["increment_a.dat", "snapshot.dat"] {
        let Ok(stream) = std::fs::read(Path::new(folder).join(file)) else {
            // Not by a macro: what those print of a test that passes is not shown.
            use std::io::Write as _;
            _ = writeln!(std::io::stderr(), "skipped: no data in {folder}");
            return;
        };
        assert_eq!(both.decode(&stream), None);
    }
}
