//! Encoding messages in lanes and by fused ops against encoding them op by op: the same bytes and
//! errors, also of messages that are not what their template says.

use fanfare_fast::program::Field;
use fanfare_fast::{
    CodecError, Decimal, Encoder, Entries, Fields, Limits, Message, Options, Program, Record,
    Value, Visitor,
};
use proptest::prelude::*;

use crate::common::to_hex;
use crate::drawn::{Dice, Fitting, flat_templates, templates};
use crate::lanes::{kernels, oracle};
use crate::properties;

/// Repeats the calls that filled a message, with a slip here and there.
struct Slips<'m> {
    program: &'m Program,
    dice: &'m mut Dice,
    /// One call in so many is another one.
    rarity: usize,
    to: Message,
    /// There is more than the template has.
    is_surplus: bool,
}

impl<'m> Slips<'m> {
    fn level(&mut self, fields: Fields<'_>) {
        for (field, value) in fields {
            match self.dice.roll(self.rarity) {
                0 => self.slip(field, value),
                _ => self.value(field, value),
            }
        }
    }

    fn value(&mut self, field: &Field, value: Value<'_>) {
        match value {
            Value::Absent => self.to.absent(field),
            Value::Unsigned(value, _) => self.to.unsigned(field, value),
            Value::Signed(value, _) => self.to.signed(field, value),
            Value::Decimal(value) => self.to.decimal(field, value),
            Value::Ascii(text) | Value::Unicode(text) | Value::Bytes(text) => {
                self.to.bytes(field, text);
            }
            Value::Group(inside) | Value::Template(_, inside) => {
                self.to.begin_group(field);
                self.level(inside);
                self.to.end_group(field);
            }
            Value::Sequence(entries) => self.sequence(field, entries.len() as u32, entries),
        }
    }

    fn sequence(&mut self, field: &Field, count: u32, entries: Entries<'_>) {
        self.to.begin_sequence(field, count);
        for (index, entry) in (0..).zip(entries) {
            match self.dice.roll(4 * self.rarity) {
                0 => self.to.begin_group(field),
                1 => {
                    let other = self.any_field();
                    self.is_surplus |= other.id() != field.id();
                    self.to.begin_entry(other, index);
                }
                _ => self.to.begin_entry(field, index),
            }
            self.level(entry);
            self.to.end_entry(field);
        }
        self.to.end_sequence(field);
    }

    fn any_field(&mut self) -> &'m Field {
        let all = self.program.fields();
        &all[self.dice.roll(all.len())]
    }

    fn slip(&mut self, field: &Field, value: Value<'_>) {
        let number = self.dice.number();
        match (self.dice.roll(9), value) {
            (0, _) => {}
            (1, _) => self.to.absent(field),
            (2, _) => self.to.unsigned(field, number as u64),
            (3, _) => self.to.signed(field, !number),
            (4, _) => {
                let exponent = [0, -2, 63, 64, -64][self.dice.roll(5)];
                let mantissa = number;
                self.to.decimal(field, Decimal { mantissa, exponent });
            }
            (5, _) => {
                let texts = [
                    "",
                    "\0",
                    "A\0",
                    "ABCD",
                    "ABCDE",
                    "12345678",
                    "é",
                    "123456789",
                ];
                self.to.ascii(field, texts[self.dice.roll(8)].as_bytes());
            }
            (6, value) => {
                self.is_surplus = true;
                self.value(field, value);
                self.value(field, value);
            }
            (7, Value::Sequence(entries)) => {
                let count = entries.len() as u32;
                let counts = [0, count.wrapping_sub(1), count + 1, u32::MAX];
                let other = counts[self.dice.roll(4)];
                self.is_surplus |= other < count;
                self.sequence(field, other, entries);
            }
            (7, value) => {
                self.is_surplus = true;
                self.to.begin_group(field);
                self.value(field, value);
            }
            (_, value) => {
                let other = self.any_field();
                let level = |field: &Field| (field.template(), field.parent());
                self.is_surplus |= level(other) != level(field);
                self.value(other, value);
            }
        }
    }
}

/// The encoder that is the oracle, and those of all kernels and without.
struct All {
    slow: Encoder,
    others: Vec<Encoder>,
    /// The bytes of the last message.
    last: Vec<u8>,
}

impl All {
    fn new(program: &Program, options: Options) -> Self {
        let with = |options| Encoder::with_options(program.clone(), options);
        Self {
            slow: with(oracle(options)),
            others: kernels(options).map(with).collect(),
            last: Vec::new(),
        }
    }

    /// All encode the message alike.
    fn encode(
        &mut self,
        message: &Message,
        encode: impl Fn(&mut Encoder, &Message, &mut Vec<u8>) -> Result<usize, CodecError>,
    ) -> Result<bool, TestCaseError> {
        let mut expected = b"before".to_vec();
        let result = encode(&mut self.slow, message, &mut expected);
        self.last = expected[b"before".len()..].to_vec();
        for encoder in &mut self.others {
            let mut out = b"before".to_vec();
            prop_assert_eq!(encode(encoder, message, &mut out), result, "{:?}", message);
            prop_assert_eq!(to_hex(&out), to_hex(&expected));
        }
        Ok(result.is_ok())
    }

    fn reset(&mut self) {
        self.slow.reset();
        self.others.iter_mut().for_each(Encoder::reset);
    }
}

type Way = fn(&mut Encoder, &Message, &mut Vec<u8>) -> Result<usize, CodecError>;

fn record_or_restore(
    encoder: &mut Encoder,
    message: &Message,
    out: &mut Vec<u8>,
) -> Result<usize, CodecError> {
    encoder.encode_record_or_restore(&Record::from(message.clone()), out)
}

/// Encodes many messages of these templates, most of them with slips, if they are to have any.
fn compare(
    program: &Program,
    dice: &mut Dice,
    rarity: Option<usize>,
    options: Options,
) -> Result<(), TestCaseError> {
    let mut all = All::new(program, options);
    let mut restoring = All::new(program, options);
    let mut of_good_ones = Encoder::with_options(program.clone(), oracle(options));
    let mut message = Message::new();
    for _ in 0..30 {
        // The last one is Reset.
        let template = &program.templates()[dice.roll(program.templates().len() - 1)];
        let mut source = Fitting { program, dice };
        if message.fill(program, template, &mut source).is_err() {
            continue;
        }
        let view = message.view(program).unwrap();
        let mut slips = Slips {
            program,
            dice,
            rarity: rarity.unwrap_or(1 << 40),
            to: Message::new(),
            is_surplus: false,
        };
        slips.to.begin_message(template);
        slips.level(view.fields());
        let (slipped, is_surplus) = (slips.to, slips.is_surplus);
        let is_done = all.encode(&slipped, Encoder::encode)?;
        prop_assert!(!(is_done && is_surplus), "{:?}", slipped);
        if !is_done {
            all.reset();
        }
        // What was restored is what the next message depends on: it is as if the one that failed
        // had not been there.
        let ways: [Way; 2] = [Encoder::encode_or_restore, record_or_restore];
        if restoring.encode(&slipped, ways[dice.roll(2)])? {
            let mut out = Vec::new();
            of_good_ones.encode(&slipped, &mut out).unwrap();
            prop_assert_eq!(to_hex(&out), to_hex(&restoring.last));
        }
    }
    Ok(())
}

/// Templates of which some are encoded in lanes, with identifiers of any length.
fn flat() -> impl Strategy<Value = String> {
    const IDS: &[u32] = &[1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, u32::MAX];
    (flat_templates(), prop::sample::select(IDS))
        .prop_map(|(xml, id)| xml.replace("id='1'", &format!("id='{id}'")))
}

fn any_templates() -> impl Strategy<Value = String> {
    prop_oneof![1 => templates(), 3 => flat(), 2 => properties::templates()]
}

/// An error behind what was done in lanes has the offset that it has field by field, where a
/// presence map has all its room until it is complete.
#[test]
fn errors_in_entries_have_their_offset() {
    let field = |n: usize| format!("<uInt32 name='F{n}'><copy/></uInt32>");
    let head: String = (0..20).map(field).collect();
    let program = Program::parse(&format!(
        "<template name='T' id='1'>{head}<sequence name='S'><length name='N'/>\
         <uInt32 name='A'><copy/></uInt32><uInt32 name='B'/><uInt8 name='C'/></sequence></template>"
    ))
    .unwrap();
    assert!(program.has_rows(0));
    let mut all = All::new(&program, Options::default());
    let mut message = Message::new();
    for last in [9, 255, 256] {
        let template = &program.templates()[0];
        message.begin_message(template);
        let (sequence, fields) = program.template_fields(template).split_last().unwrap();
        for id in fields {
            message.unsigned(program.field(*id), 7);
        }
        let sequence = program.field(*sequence);
        message.begin_sequence(sequence, 2);
        for index in 0..2 {
            message.begin_entry(sequence, index);
            for (id, value) in program.children(sequence.id()).iter().zip([1, 2, last]) {
                message.unsigned(program.field(*id), if index == 1 { value } else { 3 });
            }
            message.end_entry(sequence);
        }
        message.end_sequence(sequence);
        let is_done = all.encode(&message, Encoder::encode).unwrap();
        assert_eq!(is_done, last < 256);
    }
}

/// Fields in another order than that of the template are encoded as those in its order, alike.
#[test]
fn fields_are_found_in_any_order() {
    let xml = "<template name='T' id='1'><uInt32 name='A'/><uInt32 name='B' presence='optional'/>\
               <sequence name='S'><uInt32 name='X'/><uInt32 name='Y'/></sequence></template>";
    let program = Program::parse(xml).unwrap();
    let field = |path| program.field(program.find("T", path).unwrap());
    let mut message = Message::new();
    message.begin_message(&program.templates()[0]);
    message.begin_sequence(field("S"), 1);
    message.begin_entry(field("S"), 0);
    message.unsigned(field("S.Y"), 2);
    message.unsigned(field("S.X"), 1);
    message.end_entry(field("S"));
    message.end_sequence(field("S"));
    message.unsigned(field("A"), 3);
    let mut all = All::new(&program, Options::default());
    assert!(all.encode(&message, Encoder::encode).unwrap());
    assert_eq!(to_hex(&all.last), "c0 81 83 80 81 81 82");
    // One field too many, which a search passes over.
    message.unsigned(field("S.X"), 4);
    assert!(!all.encode(&message, Encoder::encode).unwrap());
}

fn options() -> impl Strategy<Value = Options> {
    (any::<bool>(), 0..5_usize).prop_map(|(strict, limited)| Options {
        strict,
        limits: Limits {
            message: if limited == 1 { 30 } else { 1 << 16 },
            text: if limited == 2 { 4 } else { 1 << 16 },
            entries: if limited == 3 { 2 } else { 1 << 16 },
            fields: if limited == 4 { 12 } else { 1 << 20 },
            ..Limits::default()
        },
        ..Options::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn messages_are_encoded_alike(
        xml in any_templates(),
        seed: u64,
        tame: bool,
        options in options(),
    ) {
        let program = Program::parse(&xml).unwrap();
        compare(&program, &mut Dice::new(seed, tame), None, options)?;
    }

    #[test]
    fn what_is_no_message_is_refused_alike(
        xml in any_templates(),
        seed: u64,
        tame: bool,
        rarity in prop::sample::select(&[3_usize, 20, 60][..]),
        options in options(),
    ) {
        let program = Program::parse(&xml).unwrap();
        compare(&program, &mut Dice::new(seed, tame), Some(rarity), options)?;
    }
}
