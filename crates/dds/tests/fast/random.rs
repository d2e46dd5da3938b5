//! The comparison on random templates and messages.

use fanfare_dds::fast::TypeOptions;
use fanfare_fast::program::{Field, FieldKind};
use fanfare_fast::value::TextType;
use fanfare_fast::{Encoder, Message, Program, Scalar, Source};
use fastrand::Rng;
use proptest::prelude::*;

use crate::ways::compare;

/// Returns a field as XML, with `#` in place of its number.
fn scalar_field() -> impl Strategy<Value = String> {
    let ints = &[
        "uInt8", "int8", "uInt16", "int16", "uInt32", "int32", "uInt64", "int64",
    ][..];
    let ops = &["", "copy", "delta", "default", "increment", "constant"][..];
    let int = (
        prop::sample::select(ints),
        prop::sample::select(ops),
        0..3_u32,
    );
    let int = int.prop_map(|(ty, op, n)| field(ty, op, "7", n));
    let text_ops = &["", "copy", "default", "constant", "tail"][..];
    let texts = &["", "A", "ABCD", "ABCDEFGH"][..];
    let text = (
        prop::sample::select(text_ops),
        prop::sample::select(texts),
        0..3_u32,
    );
    let text = text.prop_map(|(op, value, n)| field("string", op, value, n));
    let bytes = (
        prop::sample::select(&["", "copy", "constant"][..]),
        0..3_u32,
    );
    let bytes = bytes.prop_map(|(op, n)| field("byteVector", op, "6162", n));
    let decimal_ops = &["", "copy", "delta", "constant"][..];
    let joint = (prop::sample::select(decimal_ops), 0..3_u32);
    let joint = joint.prop_map(|(op, n)| field("decimal", op, "2.5", n));
    let parts = prop::sample::select(
        &[
            "<constant value='-2'/>",
            "<default value='-1'/>",
            "",
            "<copy value='0'/>",
        ][..],
    );
    let split = (parts, any::<bool>()).prop_map(|(exponent, optional)| {
        let optional = if optional { " presence='optional'" } else { "" };
        format!(
            "<decimal name='F#'{optional}><exponent>{exponent}</exponent>\
             <mantissa><delta/></mantissa></decimal>"
        )
    });
    prop_oneof![6 => int, 3 => text, 1 => bytes, 1 => joint, 2 => split]
}

/// Returns a field of this type; `n` determines whether it is optional, and without an initial
/// value.
fn field(ty: &str, operator: &str, value: &str, n: u32) -> String {
    let optional = if n > 0 { " presence='optional'" } else { "" };
    let needs = matches!(operator, "constant") || (operator == "default" && n == 0);
    let value = if needs || n != 2 {
        format!(" value='{value}'")
    } else {
        String::new()
    };
    let inside = match operator {
        "" => String::new(),
        op => format!("<{op}{value}/>"),
    };
    format!("<{ty} name='F#'{optional}>{inside}</{ty}>")
}

fn fields() -> impl Strategy<Value = String> {
    let field = scalar_field().prop_recursive(2, 8, 4, |inner| {
        let inside = prop::collection::vec(inner.clone(), 1..4).prop_map(|all| all.concat());
        let nested = (inside, any::<bool>(), any::<bool>());
        let nested = nested.prop_map(|(inside, is_sequence, optional)| {
            let tag = if is_sequence { "sequence" } else { "group" };
            let optional = if optional { " presence='optional'" } else { "" };
            format!("<{tag} name='F#'{optional}>{inside}</{tag}>")
        });
        prop_oneof![12 => inner, 1 => nested]
    });
    prop::collection::vec(field, 0..12).prop_map(|all| all.concat())
}

/// Returns a template of scalars alone, one with any fields, and one that can be split, with a
/// sequence at its end that has a SecurityID.
fn templates() -> impl Strategy<Value = String> {
    let scalars = || prop::collection::vec(scalar_field(), 0..20).prop_map(|all| all.concat());
    let entry = (scalars(), scalar_field(), scalars());
    let keys = &["uInt32", "int32", "uInt8", "int64"][..];
    let ops = &["", "<copy/>", "<delta/>", "<constant value='3'/>"][..];
    let key = (
        prop::sample::select(keys),
        prop::sample::select(ops),
        any::<bool>(),
    );
    (scalars(), fields(), entry, key).prop_map(|(flat, any, (head, first, more), (ty, op, opt))| {
        let opt = if opt { " presence='optional'" } else { "" };
        let text = format!(
            "<templates><template name='A' id='1'><uInt32 name='F#'/>{flat}</template>\
             <template name='B' id='2'><uInt32 name='F#'/>{any}</template>\
             <template name='C' id='3'>{head}<sequence name='Entries'{opt}>{first}\
             <{ty} name='SecurityID'>{op}</{ty}>{more}</sequence></template></templates>"
        );
        let pieces = text.split('#').enumerate();
        let number = |(i, piece): (usize, &str)| match i {
            0 => piece.to_owned(),
            i => format!("{i}{piece}"),
        };
        pieces.map(number).collect()
    })
}

/// Random values that fit into lanes, that do not, and that change seldom.
struct Dice(Rng);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0.u64(..sides)
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.roll(all.len() as u64) as usize]
    }
}

impl Source for Dice {
    fn scalar(&mut self, field: &Field) -> Scalar<'_> {
        if field.optional() && self.roll(3) == 0 {
            return Scalar::Absent;
        }
        match field.kind() {
            _ if self.roll(3) == 0 => Scalar::Absent,
            FieldKind::Int(ty) if self.roll(20) == 0 => Scalar::Signed(ty.max() as i64),
            FieldKind::Int(ty) if ty.is_signed() => Scalar::Signed(self.pick(&[-3, 0, 5, 99])),
            FieldKind::Int(_) => Scalar::Unsigned(self.pick(&[0, 1, 2, 77])),
            FieldKind::Decimal => Scalar::Decimal(fanfare_fast::Decimal {
                mantissa: self.pick(&[0, 1, -25, 1_234_567, 1 << 40]),
                exponent: self.pick(&[0, -2, -2, 3, 40]),
            }),
            FieldKind::Text(TextType::Bytes) => Scalar::Text(self.pick(&[b"", b"\xff\0ab"])),
            FieldKind::Text(_) => Scalar::Text(self.pick(&[
                b"",
                b"A",
                b"A\0B",
                b"ABC",
                b"ABCD",
                b"ABCDEFG",
                b"ABCDEFGH",
            ])),
            _ => Scalar::Absent,
        }
    }

    fn group(&mut self, _: &Field) -> bool {
        self.roll(2) == 0
    }

    fn length(&mut self, field: &Field) -> Option<u32> {
        (!field.optional() || self.roll(4) > 0).then(|| self.roll(6) as u32)
    }
}

/// Returns a packet of messages of these templates.
fn random_packet(program: &Program, seed: u64) -> Vec<u8> {
    let mut dice = Dice(Rng::with_seed(seed));
    let mut encoder = Encoder::new(program.clone());
    let (mut message, mut bytes) = (Message::new(), Vec::new());
    for _ in 0..12 {
        let template = &program.templates()[dice.roll(3) as usize];
        if message.fill(program, template, &mut dice).is_ok() {
            let _ = encoder.encode_or_restore(&message, &mut bytes);
        }
    }
    bytes
}

proptest! {
    /// Rows, scalar program and visitor write the same as the slow conversion, for any templates.
    #[test]
    fn all_ways_agree_on_random_templates(
        xml in templates(),
        seed in any::<u64>(),
        exact_decimals in any::<bool>(),
        is_split in any::<bool>(),
    ) {
        let program = Program::parse(&xml).unwrap();
        let packet = random_packet(&program, seed);
        let split = is_split.then(|| "SecurityID".to_owned());
        let options = TypeOptions { exact_decimals, split, ..TypeOptions::default() };
        compare(program, &options, &[packet]);
    }
}
