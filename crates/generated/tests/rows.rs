//! Structs that are filled from rows and fill them, against the codec that goes field by field:
//! the same messages, bytes and errors, whatever the kernel and the bytes.

use fanfare_fast::builtin::{self, complex, simple};
use fanfare_fast::generate::{ComplexOptions, Generator};
use fanfare_fast::program::{Field, FieldKind};
use fanfare_fast::typed::{Feed, Typed, TypedDecoder, TypedEncoder};
use fanfare_fast::{
    Decimal, Decoder, Encoder, Message, Options, Program, Scalar, Source, codegen, json,
};
use fanfare_wire::lanes::LaneKernel;
use fastrand::Rng;

use crate::number;

#[allow(unreachable_pub, dead_code)]
pub(crate) mod structs {
    include!("rows.generated");
}

pub(crate) const ROWS: &str = include_str!("rows.xml");

#[test]
fn the_generator_writes_the_rows_that_are_compiled_here() {
    assert!(codegen::generate(ROWS).unwrap() == include_str!("rows.generated"));
    let program = Program::parse(ROWS).unwrap();
    let templates = program.templates().iter();
    let rows = templates.map(|t| (t.name(), program.has_rows(t.index())));
    let expected = ["Ints", "Book", "Maybe", "Legs"].map(|name| (name, true));
    assert_eq!(rows.take(4).collect::<Vec<_>>(), expected);
    assert_ne!(structs::Ints::LAYOUT, 0);
    assert_eq!(structs::Book::LAYOUT, structs::Legs::LAYOUT);
    assert_eq!(structs::Maybe::LAYOUT, 0, "its constant can be absent");
}

/// Values near the borders of what a row holds, and beyond them.
struct Dice(Rng);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0.u64(..sides)
    }
}

const TEXTS: [&[u8]; 8] = [
    b"B",
    b"",
    b"S",
    b"\0",
    b"AB",
    b"ABCD",
    b"ABCDE",
    b"A long one, indeed",
];

impl Source for Dice {
    fn scalar(&mut self, field: &Field) -> Scalar<'_> {
        if field.optional() && self.roll(3) == 0 {
            return Scalar::Absent;
        }
        let few = [2, 5, 64][self.roll(3) as usize];
        let value = match self.roll(3) {
            0 => number(&mut self.0) as i64,
            _ => self.roll(few) as i64,
        };
        let signed = if self.roll(2) == 0 { !value } else { value };
        match (field.name(), field.kind()) {
            ("Nine", _) => Scalar::Unsigned(9),
            ("Fixed" | "MsgType", _) => Scalar::Absent,
            ("Cents" | "Tick", _) => Scalar::Decimal(Decimal {
                mantissa: signed,
                exponent: if field.name() == "Tick" { -4 } else { -2 },
            }),
            (_, FieldKind::Int(ty)) => match ty.holds(signed.into()) {
                true => Scalar::Signed(signed),
                false => Scalar::Unsigned(few),
            },
            (_, FieldKind::Decimal) => Scalar::Decimal(Decimal {
                mantissa: signed,
                exponent: [0, -2, 63, -63][self.roll(4) as usize],
            }),
            _ => Scalar::Text(TEXTS[self.roll(TEXTS.len() as u64) as usize]),
        }
    }

    fn length(&mut self, field: &Field) -> Option<u32> {
        let is_absent = field.optional() && self.roll(4) == 0;
        (!is_absent).then(|| [0, 1, 2, 7, 8, 9, 20][self.roll(7) as usize])
    }
}

pub(crate) fn scalar(mut options: Options) -> Options {
    (options.kernel, options.oracle) = (None, true);
    options
}

/// Messages of random values, as the encoder writes them that goes field by field.
fn rolled(xml: &str, dice: &mut Dice, count: usize) -> Vec<u8> {
    let program = Program::parse(xml).unwrap();
    let mut encoder = Encoder::with_options(program.clone(), scalar(Options::default()));
    let (mut message, mut out) = (Message::new(), Vec::new());
    let mut done = 0;
    while done < count {
        let template = &program.templates()[dice.roll(4) as usize];
        message.fill(&program, template, dice).unwrap();
        // Some have a value that its operator cannot express.
        done += usize::from(encoder.encode_or_restore(&message, &mut out).is_ok());
    }
    out
}

pub(crate) fn line(program: &Program, message: &Message) -> String {
    let mut line = String::new();
    json::write_line(message.view(program).unwrap(), &mut line);
    line
}

/// Decodes a stream into structs and encodes those, beside the codec without lanes; how many
/// messages there are before the first error.
fn beside<F>(stream: &[u8], options: Options) -> usize
where
    F: Feed,
    for<'m> F::Decoded<'m>: Typed<Feed = F>,
{
    let program = Program::parse(F::TEMPLATES).unwrap();
    let mut oracle = Decoder::with_options(program.clone(), scalar(options));
    let mut typed = TypedDecoder::<F>::new(options).unwrap();
    let mut encoder = Encoder::with_options(program.clone(), scalar(options));
    let mut typed_encoder = TypedEncoder::<F>::new(options).unwrap();
    let (mut message, mut again) = (Message::new(), Message::new());
    let (mut expected, mut bytes) = (Vec::new(), Vec::new());
    let (mut at, mut count) = (0, 0);
    while at < stream.len() {
        let len = oracle.decode(&stream[at..], &mut message);
        let (typed_len, decoded) = match typed.decode(&stream[at..]) {
            Ok((len, decoded)) => (Ok(len), decoded),
            Err(error) => (Err(error), None),
        };
        assert_eq!(typed_len, len, "{:?} message {count}", options.kernel);
        let (Ok(len), Some(decoded)) = (len, decoded) else {
            break;
        };
        decoded.write(&program, &mut again);
        assert_eq!(line(&program, &again), line(&program, &message));
        let result = typed_encoder.encode(&decoded, &mut bytes);
        assert_eq!(result, encoder.encode(&message, &mut expected));
        assert_eq!(bytes, expected, "{:?} message {count}", options.kernel);
        if result.is_err() {
            break;
        }
        (at, count) = (at + len, count + 1);
    }
    count
}

/// With each kernel, without one, and lenient.
fn beside_all<F>(stream: &[u8]) -> usize
where
    F: Feed,
    for<'m> F::Decoded<'m>: Typed<Feed = F>,
{
    let kernels = LaneKernel::all().map(Some).chain([None]);
    let each = kernels.flat_map(|kernel| {
        [true, false].map(|strict| {
            let options = Options {
                kernel,
                strict,
                ..Options::default()
            };
            beside::<F>(stream, options)
        })
    });
    each.min().unwrap()
}

/// The stream with a few bytes changed.
pub(crate) fn damaged(stream: &[u8], random: &mut Rng) -> Vec<u8> {
    let mut stream = stream.to_vec();
    for _ in 0..=random.usize(..3) {
        let at = random.usize(..stream.len());
        stream[at] ^= 1 << random.u8(..8);
    }
    stream
}

#[test]
fn random_messages_are_the_same_in_structs() {
    let mut dice = Dice(Rng::with_seed(2));
    for _ in 0..60 {
        let stream = rolled(ROWS, &mut dice, 40);
        assert_eq!(beside_all::<structs::Messages>(&stream), 40);
        for _ in 0..4 {
            let stream = damaged(&stream, &mut dice.0);
            beside_all::<structs::Messages>(&stream);
        }
    }
}

#[test]
fn damaged_feeds_are_the_same_in_structs() {
    fn all<F>(mut generator: Generator)
    where
        F: Feed,
        for<'m> F::Decoded<'m>: Typed<Feed = F>,
    {
        let mut dice = Dice(Rng::with_seed(3));
        while let Some(packet) = generator.next_packet().unwrap() {
            assert!(beside_all::<F>(packet) > 0);
            beside_all::<F>(&damaged(packet, &mut dice.0));
            let cut = dice.roll(packet.len() as u64) as usize;
            beside_all::<F>(&packet[..cut]);
        }
    }
    all::<simple::Messages>(Generator::simple(Program::simple(), 1_000, 200));
    let contents = ComplexOptions::default();
    let complex = Generator::complex(Program::complex(), 150, None, contents);
    all::<complex::Messages>(complex);
    assert_eq!(builtin::SIMPLE, simple::Messages::TEMPLATES);
}
