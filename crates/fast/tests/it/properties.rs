//! Random templates, random messages, random bytes.

use fanfare_fast::program::{Field, FieldKind, Op};
use fanfare_fast::template::OperatorKind;
use fanfare_fast::value::TextType;
use fanfare_fast::{
    Decimal, Decoder, Encoder, ErrorCode, Message, Options, Program, Scalar, Source, json,
};
use fastrand::Rng;
use proptest::prelude::*;

use crate::common::{hex, to_hex};
use crate::lanes::{kernels, oracle};

const INTS: [&str; 8] = [
    "int8", "uInt8", "int16", "uInt16", "int32", "uInt32", "int64", "uInt64",
];

/// An operator element with a context; `initial` is a value of the field's type.
fn operator(
    kinds: &'static [&'static str],
    initial: &'static [&'static str],
    optional: bool,
) -> impl Strategy<Value = String> {
    let context = (0usize..5, 0usize..4, any::<bool>());
    (
        prop::sample::select(kinds),
        prop::sample::select(initial),
        context,
    )
        .prop_map(move |(kind, initial, (dictionary, key, with_value))| {
            if kind.is_empty() {
                return String::new();
            }
            let needed = kind == "constant" || (kind == "default" && !optional);
            let value = match with_value || needed {
                true => format!(" value='{initial}'"),
                false => String::new(),
            };
            if matches!(kind, "constant" | "default") {
                return format!("<{kind}{value}/>");
            }
            let dictionary = ["", "global", "template", "type", "mine"][dictionary];
            let dictionary = match dictionary {
                "" => String::new(),
                name => format!(" dictionary='{name}'"),
            };
            let key = if key == 0 { " key='k'" } else { "" };
            format!("<{kind}{value}{dictionary}{key}/>")
        })
}

const ANY: &[&str] = &["", "constant", "default", "copy", "delta"];
const INT: &[&str] = &["", "constant", "default", "copy", "delta", "increment"];
const TEXT: &[&str] = &["", "constant", "default", "copy", "delta", "tail"];

fn presence(optional: bool) -> &'static str {
    if optional { " presence='optional'" } else { "" }
}

fn scalar_field() -> impl Strategy<Value = String> {
    let named = |optional: bool| (Just(optional), 0usize..6);
    prop_oneof![
        any::<bool>().prop_flat_map(move |optional| {
            (
                named(optional),
                prop::sample::select(&INTS[..]),
                operator(INT, &["0", "1", "127"], optional),
            )
                .prop_map(|((optional, name), ty, op)| {
                    format!("<{ty} name='F{name}'{}>{op}</{ty}>", presence(optional))
                })
        }),
        any::<bool>().prop_flat_map(move |optional| {
            (
                named(optional),
                operator(ANY, &["0", "12000", "10.50"], optional),
            )
                .prop_map(|((optional, name), op)| {
                    format!(
                        "<decimal name='F{name}'{}>{op}</decimal>",
                        presence(optional)
                    )
                })
        }),
        any::<bool>().prop_flat_map(move |optional| {
            (
                named(optional),
                operator(INT, &["0", "-2"], optional),
                operator(INT, &["0", "7"], false),
            )
                .prop_map(|((optional, name), exponent, mantissa)| {
                    format!(
                        "<decimal name='F{name}'{}><exponent>{exponent}</exponent>\
                             <mantissa>{mantissa}</mantissa></decimal>",
                        presence(optional)
                    )
                })
        }),
        any::<bool>().prop_flat_map(move |optional| {
            (
                named(optional),
                0usize..3,
                operator(TEXT, &["", "41", "4142"], optional),
            )
                .prop_map(|((optional, name), ty, op)| {
                    let (element, charset) = [
                        ("string", ""),
                        ("string", " charset='unicode'"),
                        ("byteVector", ""),
                    ][ty];
                    format!(
                        "<{element} name='F{name}'{charset}{}>{op}</{element}>",
                        presence(optional)
                    )
                })
        }),
    ]
}

/// Fields, groups and sequences, with references to the templates H (static) and any (dynamic).
fn body() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        12 => scalar_field().boxed(),
        1 => Just("<templateRef name='H'/>".to_owned()).boxed(),
        1 => Just("<templateRef/>".to_owned()).boxed(),
    ];
    let field = leaf.prop_recursive(3, 20, 5, |inner| {
        let inside = prop::collection::vec(inner, 0..5).prop_map(|fields| fields.concat());
        prop_oneof![
            (inside.clone(), any::<bool>()).prop_map(|(inside, optional)| {
                format!("<group name='G'{}>{inside}</group>", presence(optional))
            }),
            any::<bool>().prop_flat_map(move |optional| {
                (
                    inside.clone(),
                    operator(
                        &["", "copy", "default", "delta", "increment"],
                        &["0", "2"],
                        optional,
                    ),
                )
                    .prop_map(move |(inside, op)| {
                        format!(
                            "<sequence name='S'{}><length name='N'>{op}</length>{inside}\
                                 </sequence>",
                            presence(optional)
                        )
                    })
            }),
        ]
    });
    prop::collection::vec(field, 0..10).prop_map(|fields| fields.concat())
}

/// Templates of all kinds of fields: A and B, with the references of [`body`].
pub(crate) fn templates() -> impl Strategy<Value = String> {
    (
        prop::collection::vec(scalar_field(), 0..4),
        body(),
        body(),
        any::<bool>(),
    )
        .prop_map(|(helper, first, second, reset)| {
            let reset = if reset { " reset='yes'" } else { "" };
            format!(
                "<templates><template name='H'>{}</template><template name='A' id='1'{reset}>\
                 {first}</template><template name='B' id='2'><typeRef name='Y'/>{second}\
                 </template></templates>",
                helper.concat()
            )
        })
}

/// Values from few to choose from, so that operators often find what they expect.
pub(crate) struct Dice<'p> {
    pub(crate) program: &'p Program,
    pub(crate) random: Rng,
    pub(crate) depth: u32,
}

impl Dice<'_> {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.random.u64(..sides)
    }

    /// An optional constant is there or not; another value would be D3.
    fn is_constant(&self, field: &Field) -> bool {
        let constant = OperatorKind::Constant;
        match self.program.op(field.id()) {
            Op::Int(op) => op.operator == constant,
            Op::Decimal(op) => op.operator == constant,
            Op::Text(op) => op.operator == constant,
            _ => false,
        }
    }
}

impl Source for Dice<'_> {
    fn scalar(&mut self, field: &Field) -> Scalar<'_> {
        if (field.optional() && self.roll(4) == 0) || self.is_constant(field) {
            return Scalar::Absent;
        }
        match (field.kind(), self.roll(5)) {
            (FieldKind::Int(ty), 0) if ty.is_signed() => Scalar::Signed(ty.min() as i64),
            (FieldKind::Int(ty), 1) => Scalar::Unsigned(ty.max() as u64),
            (FieldKind::Int(_), roll) => Scalar::Unsigned(roll),
            (FieldKind::Decimal, roll) => {
                let mut exponent = [0, -2, 3, 63, -63][roll as usize];
                if let Op::SplitDecimal { exponent: op, .. } = self.program.op(field.id())
                    && op.operator == OperatorKind::Constant
                {
                    // Any other number would be rescaled to it, as far as it can be.
                    exponent = op.initial.unwrap() as i8;
                }
                let mantissa = [7, 0, -5, i64::MAX, i64::MIN][self.roll(5) as usize];
                Scalar::Decimal(Decimal { mantissa, exponent })
            }
            (FieldKind::Text(TextType::Bytes), roll) => {
                Scalar::Text([&b""[..], b"\x80", b"A\xff", b"AB", b"BB"][roll as usize])
            }
            (FieldKind::Text(TextType::Unicode), roll) => {
                Scalar::Text(["", "é", "AB", "aé", "è"][roll as usize].as_bytes())
            }
            (_, 1) => {
                let texts = [&b"\0"[..], b"A\0", b"ABCDE", b"ABCDEFGH", b"ABCDEFGHI"];
                Scalar::Text(texts[self.roll(5) as usize])
            }
            (_, roll) => Scalar::Text([&b""[..], b"", b"A", b"ABC", b"ABD"][roll as usize]),
        }
    }

    fn group(&mut self, _: &Field) -> bool {
        self.roll(3) > 0
    }

    fn length(&mut self, field: &Field) -> Option<u32> {
        let absent = field.optional() && self.roll(4) == 0;
        (!absent).then(|| self.roll(4) as u32)
    }

    fn enter(&mut self, _: &Field, _: u32) {
        self.depth += 1;
    }

    fn leave(&mut self, _: &Field) {
        self.depth -= 1;
    }

    /// References end: deep down there is only the helper's sibling of fewest fields, Reset.
    fn template(&mut self, _: &Field) -> Option<u32> {
        let reset = self.program.by_id(120)?.index();
        if self.depth > 4 {
            Some(reset)
        } else {
            [1, 2].get(self.roll(2) as usize).copied()
        }
    }
}

fn line(program: &Program, message: &Message) -> String {
    let mut line = String::new();
    json::write_line(message.view(program).unwrap(), &mut line);
    line
}

/// The bytes of messages of A and B: of `count` messages, those that can be encoded.
fn encoded(program: &Program, seed: u64, count: usize) -> Vec<Vec<u8>> {
    let mut dice = Dice {
        program,
        random: Rng::with_seed(seed),
        depth: 0,
    };
    let mut encoder = Encoder::new(program.clone());
    let (mut message, mut all) = (Message::new(), Vec::new());
    for _ in 0..count {
        let template = &program.templates()[1 + dice.roll(2) as usize];
        message.fill(program, template, &mut dice).unwrap();
        let mut bytes = Vec::new();
        if encoder.encode_or_restore(&message, &mut bytes).is_ok() {
            all.push(bytes);
        }
    }
    all
}

/// Decodes the message at the front of `bytes`, up to `cut` at first, and as the oracle does, which
/// must be the same. The length of the message, or `None` behind an error.
fn decoded_in_pieces(
    whole: &mut Decoder,
    pieces: &mut Decoder,
    bytes: &[u8],
    cut: usize,
) -> Result<Option<usize>, TestCaseError> {
    let (mut message, mut other) = (Message::new(), Message::new());
    let first = pieces.decode_partial(&bytes[..cut.min(bytes.len())], &mut other);
    let second = match first {
        Ok(None) => pieces.decode_partial(bytes, &mut other),
        done => done,
    };
    match whole.decode(bytes, &mut message) {
        Ok(len) => {
            prop_assert_eq!(second, Ok(Some(len)));
            let program = whole.program();
            prop_assert_eq!(line(program, &message), line(program, &other));
            Ok(Some(len))
        }
        Err(error) => {
            let is_cut = error.code == ErrorCode::Truncated;
            prop_assert_eq!(second, if is_cut { Ok(None) } else { Err(error) });
            Ok(None)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn what_is_encoded_decodes_and_encodes_again(
        xml in templates(),
        seed: u64,
    ) {
        let program = Program::parse(&xml).unwrap();
        let mut dice = Dice { program: &program, random: Rng::with_seed(seed), depth: 0 };
        let mut encoder = Encoder::new(program.clone());
        let mut again = Encoder::new(program.clone());
        let mut by_ops = Encoder::with_options(program.clone(), oracle(Options::default()));
        let mut decoder = Decoder::new(program.clone());
        let mut slow = Decoder::with_options(program.clone(), oracle(Options::default()));
        let (mut message, mut decoded) = (Message::new(), Message::new());
        for _ in 0..12 {
            let template = &program.templates()[1 + dice.roll(2) as usize];
            message.fill(&program, template, &mut dice).unwrap();
            let (mut bytes, mut expected) = (Vec::new(), Vec::new());
            let result = encoder.encode_or_restore(&message, &mut bytes);
            prop_assert_eq!(by_ops.encode_or_restore(&message, &mut expected), result);
            prop_assert_eq!(to_hex(&bytes), to_hex(&expected));
            if let Err(error) = result {
                // What operators and shared keys can rule out; nothing else may fail.
                let legal = [ErrorCode::D3, ErrorCode::D4, ErrorCode::D6];
                prop_assert!(legal.contains(&error.code), "{error}");
                prop_assert!(bytes.is_empty());
                continue;
            }
            let result = decoder.decode(&bytes, &mut decoded);
            prop_assert_eq!(result, Ok(bytes.len()), "{}", to_hex(&bytes));
            let lines = [line(&program, &decoded), line(&program, &message)];
            prop_assert_eq!(&lines[0], &lines[1]);
            // A reader that keeps one member of a name, as serde_json does, loses nothing.
            let value: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
            for text in [&lines[0], &value.to_string()] {
                json::read_line(&program, text, &mut message).unwrap();
                prop_assert_eq!(&line(&program, &message), &lines[0]);
            }
            prop_assert_eq!(slow.decode(&bytes, &mut message), Ok(bytes.len()));
            prop_assert_eq!(&decoded, &message);
            let mut second = Vec::new();
            again.encode(&decoded, &mut second).unwrap();
            prop_assert_eq!(to_hex(&second), to_hex(&bytes));
        }
    }

    #[test]
    fn bytes_never_panic_and_what_decodes_partially_is_undone(
        xml in templates(),
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(0x80), Just(0x81), Just(0xc0),
                                                   Just(0xff), Just(0xe0)], 0..200),
        strict: bool,
        cut in 0usize..200,
        seed: u64,
        count in 1usize..5,
    ) {
        let program = Program::parse(&xml).unwrap();
        let options = Options { strict, ..Options::default() };
        let mut whole = Decoder::with_options(program.clone(), oracle(options));
        let mut pieces = Decoder::with_options(program.clone(), options);
        // Behind good messages, so that there are previous values.
        let mut good = encoded(&program, seed, count);
        let next = good.pop().unwrap_or_default();
        let bytes = [good.concat(), bytes].concat();
        let mut at = 0;
        while at < bytes.len() {
            let mut before = whole.clone();
            match decoded_in_pieces(&mut whole, &mut pieces, &bytes[at..], cut)? {
                Some(len) => at += len,
                None => {
                    // Previous values are as before the message that failed.
                    decoded_in_pieces(&mut before, &mut pieces, &next, cut)?;
                    break;
                }
            }
        }
    }

    #[test]
    fn text_never_makes_the_template_parser_panic(
        pieces in prop::collection::vec(prop::sample::select(&[
            "<template name='T' id='1'>", "</template>", "<templates>", "</templates>",
            "<uInt32 name='A'>", "</uInt32>", "<copy", " value='1'", "/>", "<length/>",
            "<sequence name='S'>", "</sequence>", "<decimal name='D'>", "</decimal>",
            "<exponent>", "</exponent>", "<!DOCTYPE x>", "&amp;", "\u{e9}", "<", "'",
        ][..]), 0..20),
    ) {
        let _ = Program::parse(&pieces.concat());
    }
}

/// A long string that a message has replaced before its reference to an unknown template is there
/// again: all of its bytes.
#[test]
fn a_long_string_is_restored_behind_an_error() {
    let copies = |names: [&str; 3]| names.map(|n| format!("<uInt32 name='{n}'><copy/></uInt32>"));
    let flat = copies(["A", "B", "C"]).concat();
    let program = Program::parse(&format!(
        "<templates><template name='T' id='1'><string name='S'><copy/></string><templateRef/>\
         </template><template name='E' id='2'/><template name='F' id='3'>{flat}</template>\
         </templates>"
    ))
    .unwrap();
    // So kernels keep previous values in columns.
    assert!(program.has_rows(2));
    let first = hex("e0 81 41 42 43 44 45 46 47 48 c9 c0 82");
    let replaced = hex("e0 81 61 62 63 64 65 66 67 68 69 6a eb c0 84");
    let implied = hex("c0 81 c0 82");
    let options = Options::default();
    for options in kernels(options).chain([oracle(options)]) {
        let mut decoder = Decoder::with_options(program.clone(), options);
        let mut message = Message::new();
        let mut decode = |bytes: &[u8]| {
            let len = decoder.decode_partial(bytes, &mut message);
            len.map(|len| (len, line(&program, &message)))
        };
        let (len, expected) = decode(&first).unwrap();
        assert_eq!(len, Some(first.len()));
        assert_eq!(decode(&replaced).unwrap_err().code, ErrorCode::D9);
        assert_eq!(decode(&implied), Ok((Some(implied.len()), expected)));
    }
}
