//! Generated code: it is what the generator writes now, it compiles, and it decodes and encodes
//! what the untyped codec does. To renew a `.generated` file:
//! `fanfare fast codegen -t builtin:NAME -o crates/fast/templates/NAME.generated`, or for `every`,
//! which is here, with its file. Empty a file first whose code does not compile any more.
#![allow(clippy::unwrap_used, clippy::panic)]

use fanfare_fast::builtin::{complex, simple, spectra};
use fanfare_fast::typed::{Dynamic, Feed, Members, Typed, TypedDecoder, TypedEncoder};
use fanfare_fast::{
    Decimal, Decoder, Encoder, Message, Options, Program, builtin, codegen, generate,
};
use fanfare_wire::lanes::LaneKernel;
use fastrand::Rng;

mod rows;
mod straight;

#[allow(unreachable_pub, dead_code)]
mod every {
    include!("every.generated");
}

const EVERY: &str = include_str!("every.xml");

/// Code for other templates, or of another version, is not let read rows.
#[test]
fn layouts_are_told_apart() {
    let [simple, complex, every] = [builtin::SIMPLE, builtin::COMPLEX, EVERY].map(|xml| {
        let program = Program::parse(xml).unwrap();
        assert_eq!(program.layout(), Program::parse(xml).unwrap().layout());
        program.layout()
    });
    assert!(simple == simple::Messages::LAYOUT && complex == complex::Messages::LAYOUT);
    assert!(simple != complex && simple != every && complex != every);
    assert_eq!(
        every::Messages::LAYOUT,
        0,
        "none of its templates is one of rows"
    );
}

#[test]
fn the_generator_writes_what_is_compiled_here() {
    let generated = |xml: &str| codegen::generate(xml).unwrap();
    assert!(generated(builtin::SIMPLE) == include_str!("../../fast/templates/simple.generated"));
    assert!(generated(builtin::COMPLEX) == include_str!("../../fast/templates/complex.generated"));
    assert!(generated(builtin::SPECTRA) == include_str!("../../fast/templates/spectra.generated"));
    assert!(generated(EVERY) == include_str!("every.generated"));
    assert!(codegen::generate("<templates><nonsense/></templates>").is_err());
}

#[test]
fn members_of_messages_have_different_names() {
    let templates = ["Template", "MDEntry", "MdEntry"];
    let templates = templates.map(|name| format!("<template name='{name}'/>"));
    let code = codegen::generate(&format!("<templates>{}</templates>", templates.concat()));
    let code = code.unwrap();
    let members = "pub struct Messages {\n    template: u32,\n    template2: Template,\n    \
                   md_entry: MDEntry,\n    md_entry2: MdEntry,\n    reset: Reset,\n}";
    for line in [
        members,
        "            template2: Template::default(),",
        "            md_entry2: MdEntry::default(),",
        "            0 => self.template2.straight(stream, values, 0, at, map),",
        "            2 => self.md_entry2.straight(stream, values, 0, at, map),",
        "            2 => Decoded::MdEntry(&self.md_entry2),",
    ] {
        assert!(code.contains(line), "{line} in {code}");
    }
}

/// A struct of such a name would hide what generated code means by it. Two names make one, too.
#[test]
fn structs_have_no_names_that_generated_code_uses() {
    let names = ["Decoded", "ExactSizeIterator", "Messages", "SLOTS"];
    let templates = names.map(|name| format!("<template name='{name}'/>"));
    let group = "<template name='S'><group name='LOTS'><int32 name='I'/></group></template>";
    let xml = format!("<templates>{}{group}</templates>", templates.concat());
    let code = codegen::generate(&xml).unwrap();
    for name in [
        "Decoded2",
        "ExactSizeIterator2",
        "Messages2",
        "SLOTS2",
        "SLOTS3",
    ] {
        assert!(code.contains(&format!("pub struct {name} {{")), "{name}");
    }
    assert!(!code.contains("pub struct SLOTS {") && !code.contains("pub struct Decoded {"));
}

/// Decodes packets into structs and encodes those: the same bytes.
fn there_and_back<F>(packets: &[Vec<u8>]) -> usize
where
    F: Feed,
    for<'m> F::Decoded<'m>: Typed<Feed = F>,
{
    // From rows with each kernel, and by straight-line code.
    let kernels = LaneKernel::all().map(Some).chain([None]);
    let counts = kernels.map(|kernel| {
        let options = Options {
            kernel,
            ..Options::default()
        };
        there_and_back_with::<F>(options, packets)
    });
    counts.reduce(|one, other| one.min(other)).unwrap()
}

fn there_and_back_with<F>(options: Options, packets: &[Vec<u8>]) -> usize
where
    F: Feed,
    for<'m> F::Decoded<'m>: Typed<Feed = F>,
{
    let mut decoder = TypedDecoder::<F>::new(options).unwrap();
    let mut encoder = TypedEncoder::<F>::new(options).unwrap();
    let mut messages = 0;
    for packet in packets {
        decoder.reset();
        encoder.reset();
        let (mut rest, mut again) = (&packet[..], Vec::new());
        while !rest.is_empty() {
            let (len, decoded) = decoder.decode(rest).unwrap();
            encoder.encode(&decoded.unwrap(), &mut again).unwrap();
            rest = &rest[len..];
            messages += 1;
        }
        assert_eq!(&again, packet);
    }
    messages
}

fn packets(mut generator: generate::Generator) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    while let Some(packet) = generator.next_packet().unwrap() {
        packets.push(packet.to_vec());
    }
    packets
}

#[test]
fn simple_comes_back_byte_for_byte() {
    let packets = packets(generate::Generator::simple(Program::simple(), 2_000, 1024));
    let messages = there_and_back::<simple::Messages>(&packets);
    assert_eq!(messages, 2_001);
}

#[test]
fn complex_comes_back_byte_for_byte() {
    let options = generate::ComplexOptions::default();
    let generator = generate::Generator::complex(Program::complex(), 2_000, None, options);
    let messages = there_and_back::<complex::Messages>(&packets(generator));
    assert_eq!(messages, 2_001);
}

#[test]
fn spectra_comes_back_byte_for_byte() {
    for snapshots in [false, true] {
        let options = generate::SpectraOptions {
            snapshots,
            trades: 10,
            ..generate::SpectraOptions::default()
        };
        let generator = generate::Generator::spectra(Program::spectra(), 2_000, None, options);
        let messages = there_and_back::<spectra::Messages>(&packets(generator));
        assert_eq!(messages, 2 * 2_001, "with the Resets");
    }
}

/// Two encoders, one by way of rows, one by straight-line code: the same bytes or errors.
struct Both<F> {
    rows: TypedEncoder<F>,
    straight: TypedEncoder<F>,
}

impl<F: Feed> Both<F> {
    fn new() -> Self {
        let with = |kernel| {
            let options = Options {
                kernel,
                ..Options::default()
            };
            TypedEncoder::<F>::new(options).unwrap()
        };
        Self {
            rows: with(Options::default().kernel),
            straight: with(None),
        }
    }

    fn encode(&mut self, message: &impl Typed<Feed = F>) {
        let (mut bytes, mut expected) = (Vec::new(), Vec::new());
        let result = self.rows.encode(message, &mut bytes);
        assert_eq!(result, self.straight.encode(message, &mut expected));
        assert_eq!(bytes, expected);
        if result.is_err() {
            self.rows.reset();
            self.straight.reset();
        }
    }
}

/// Numbers near the borders of what a row holds.
fn number(random: &mut Rng) -> u64 {
    let shift = [64, 63, 60, 36, 33, 32, 31][random.usize(..7)];
    let base = 1_u64.checked_shl(64 - shift).unwrap_or(0);
    base.wrapping_sub(random.u64(..2)) & u64::from(u32::MAX)
}

#[test]
fn structs_are_encoded_alike_in_rows_and_by_straight_line_code() {
    let mut random = Rng::with_seed(1);
    let mut both = Both::<complex::Messages>::new();
    let mut data = complex::MarketData::default();
    for round in 0..3_000 {
        let mut next = || number(&mut random);
        data.msg_seq_num = next() as u32;
        data.sending_time = next() as u32;
        data.trade_date = next() as u32;
        data.md_entries.clear();
        for _ in 0..next() % 4 {
            let entry = data.md_entries.add();
            entry.md_price_level = (next() % 3 > 0).then(|| next() as u32);
            entry.security_id = next() as u32;
            entry.rpt_seq = next() as u32;
            entry.md_entry_px = Decimal {
                mantissa: next() as i64 - next() as i64,
                exponent: (next() % 130) as i8,
            };
            entry.trade_volume = (next() % 3 > 0).then(|| next() as u32);
            match next() % 5 {
                0 => entry.trade_condition.clear(),
                1 => entry.trade_condition.insert().set(b"LONGER"),
                2 => entry.trade_condition.insert().set("\u{e9}".as_bytes()),
                _ => entry.trade_condition.insert().set(b"W"),
            }
        }
        both.encode(&data);
        if round % 7 == 0 {
            both.encode(&complex::Done::default());
        }
    }
    let mut both = Both::<every::Messages>::new();
    for _ in 0..20 {
        both.encode(&full());
        both.encode(&every::EveryType::default());
    }
}

#[test]
fn values_stand_in_their_members() {
    let options = generate::ComplexOptions::default();
    let generator = generate::Generator::complex(Program::complex(), 5, None, options);
    let packets = packets(generator);
    let mut decoder = TypedDecoder::<complex::Messages>::new(Options::default()).unwrap();
    let (len, decoded) = decoder.decode(&packets[4]).unwrap();
    assert_eq!(len, packets[4].len());
    let Some(complex::Decoded::MarketData(data)) = decoded else {
        panic!("{decoded:?}");
    };
    assert_eq!((data.msg_seq_num, data.trade_date), (5, 20_100_209));
    assert_eq!(complex::MarketData::MESSAGE_TYPE, b"X");
    assert_eq!(data.md_entries.len(), 5);
    let last = &data.md_entries[4];
    assert_eq!((last.md_price_level, last.security_id), (Some(4), 5));
    let price = Decimal {
        mantissa: 29,
        exponent: 0,
    };
    assert_eq!(last.md_entry_px, price);
    assert_eq!(last.trade_condition.get().unwrap().as_str(), Some("W"));
}

/// An `EveryType` with values everywhere.
fn full() -> every::EveryType {
    let mut m = every::EveryType {
        i8: -8,
        u8: Some(200),
        i16: Some(-30_000),
        u16: 60_000,
        i32: i32::MIN,
        type_: Some(6),
        i64: Some(i64::MAX / 2),
        u64: u64::MAX,
        px: Decimal {
            mantissa: -1234,
            exponent: -2,
        },
        ascii: "head".into(),
        uni: "größer".into(),
        maybe: Some(9),
        ..every::EveryType::default()
    };
    m.opt_ascii.insert().set(b"there");
    m.raw.insert().set(&[0, 1, 255]);
    m.group.inner = 7;
    let bits = m.bits.insert();
    (bits.flag, bits.small, bits.wide) = (1, Some(-16), 1_000_000);
    let group = m.opt_group.insert();
    group.text.set(b"deep");
    for x in [1, 1, -5] {
        group.deep.add().x = x;
    }
    for id in 0..3 {
        let entry = m.entries.add();
        entry.id = id;
        if id > 0 {
            let leg = entry.legs.insert().add();
            leg.note.insert().set(b"note");
        }
    }
    m
}

#[test]
fn every_type_is_written_and_read() {
    let mut encoder = TypedEncoder::<every::Messages>::new(Options::default()).unwrap();
    let mut decoder = TypedDecoder::<every::Messages>::new(Options::default()).unwrap();
    let absent = every::EveryType {
        // A tail cannot become shorter.
        ascii: "tail".into(),
        uni: "only what must be".into(),
        ..every::EveryType::default()
    };
    for message in [full(), absent, full()] {
        let mut bytes = Vec::new();
        encoder.encode(&message, &mut bytes).unwrap();
        let (len, decoded) = decoder.decode(&bytes).unwrap();
        assert_eq!(len, bytes.len());
        assert_eq!(decoded, Some(every::Decoded::EveryType(&message)));
    }
}

#[test]
fn a_dynamic_reference_holds_any_message() {
    let program = Program::parse(EVERY).unwrap();
    // A carrier of a carrier of two messages.
    let (mut inner, mut middle) = (Message::new(), Message::new());
    full().write(&program, &mut inner);
    let carrier = |message: &Message, more: usize| {
        let mut carrier = every::Carrier {
            number: 5,
            template_ref: Dynamic(message.clone()),
            ..every::Carrier::default()
        };
        for _ in 0..more {
            carrier.more.add().template_ref = Dynamic(message.clone());
        }
        carrier
    };
    carrier(&inner, 1).write(&program, &mut middle);
    let outer = carrier(&middle, 2);
    let mut bytes = Vec::new();
    let mut encoder = TypedEncoder::<every::Messages>::new(Options::default()).unwrap();
    encoder.encode(&outer, &mut bytes).unwrap();
    let mut decoder = TypedDecoder::<every::Messages>::new(Options::default()).unwrap();
    let (len, decoded) = decoder.decode(&bytes).unwrap();
    assert_eq!(len, bytes.len());
    assert_eq!(decoded, Some(every::Decoded::Carrier(&outer)));
    // The untyped codec agrees.
    let mut message = Message::new();
    let mut untyped = Decoder::new(program);
    assert_eq!(untyped.decode(&bytes, &mut message), Ok(bytes.len()));
    let mut again = Vec::new();
    let mut untyped = Encoder::new(untyped.program().clone());
    untyped.encode(&message, &mut again).unwrap();
    assert_eq!(again, bytes);
}

#[test]
fn nothing_is_decoded_at_first() {
    let messages = simple::Messages::default();
    assert_eq!(messages.decoded(), None);
    let mut messages = messages;
    messages.begin_message(4);
    assert!(matches!(messages.decoded(), Some(simple::Decoded::Done(_))));
}
