//! Decoding in lanes against decoding field by field: the same messages, errors and previous
//! values, whatever the bytes.

use fanfare_fast::generate::{ComplexOptions, Generator, PACKET_SIZE, SpectraOptions};
use fanfare_fast::program::{Place, Reading};
use fanfare_fast::{
    Cell, CodecError, Decoder, Encoder, ErrorCode, Limits, Message, Options, Program, Record, json,
};
use fanfare_wire::lanes::LaneKernel;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::common::{program, to_hex};
use crate::drawn::{Dice, any_templates, flat_templates_of, stream_of};

/// What a decoder makes of a stream, message after message, until its first error.
fn decoded(
    program: &Program,
    stream: &[u8],
    options: Options,
) -> (Vec<String>, Option<CodecError>) {
    let mut decoder = Decoder::with_options(program.clone(), options);
    let (mut message, mut lines, mut at) = (Message::new(), Vec::new(), 0);
    while at < stream.len() {
        match decoder.decode(&stream[at..], &mut message) {
            Ok(len) => at += len,
            Err(error) => return (lines, Some(error)),
        }
        lines.push(line(program, &message));
    }
    (lines, None)
}

/// What a record shows, as a message.
fn message_of(record: &Record, program: &Program) -> Message {
    let (mut record, mut message) = (record.clone(), Message::new());
    record.view(program).unwrap().visit(&mut message);
    assert_eq!(
        record.view(program).unwrap().template().index(),
        message.template_index().unwrap()
    );
    message
}

/// The same by way of records.
fn recorded(
    program: &Program,
    stream: &[u8],
    options: Options,
) -> (Vec<String>, Option<CodecError>) {
    let mut decoder = Decoder::with_options(program.clone(), options);
    let (mut record, mut lines, mut at) = (Record::new(), Vec::new(), 0);
    while at < stream.len() {
        match decoder.decode_record(&stream[at..], &mut record) {
            Ok(len) => at += len,
            Err(error) => return (lines, Some(error)),
        }
        let mut line = String::new();
        json::write_line(record.clone().view(program).unwrap(), &mut line);
        // Rows, and what they have become, tell a visitor the same.
        let as_message = Record::from(message_of(&record, program));
        for record in [&record, &as_message] {
            let mut told = Message::new();
            record.visit(program, &mut told);
            let mut same = String::new();
            json::write_line(told.view(program).unwrap(), &mut same);
            assert_eq!(same, line);
        }
        lines.push(line);
    }
    (lines, None)
}

fn line(program: &Program, message: &Message) -> String {
    let mut line = String::new();
    json::write_line(message.view(program).unwrap(), &mut line);
    line
}

/// The same options with each kernel that this processor has, and without.
pub(crate) fn kernels(options: Options) -> impl Iterator<Item = Options> {
    let kernels = LaneKernel::all().map(Some).chain([None]);
    kernels.map(move |kernel| Options { kernel, ..options })
}

/// The same options, for the slow way.
pub(crate) fn oracle(options: Options) -> Options {
    Options {
        kernel: None,
        oracle: true,
        ..options
    }
}

/// All must agree on everything.
fn compare(program: &Program, stream: &[u8], options: Options) -> Result<(), TestCaseError> {
    let expected = decoded(program, stream, oracle(options));
    for options in kernels(options) {
        let with = || format!("{:?} {}", options.kernel, to_hex(stream));
        let message = decoded(program, stream, options);
        prop_assert_eq!(&message, &expected, "{}", with());
        let record = recorded(program, stream, options);
        prop_assert_eq!(&record, &expected, "{}", with());
    }
    Ok(())
}

/// Reads every field of the rows by its place, which must be what a message gives; the number of
/// rows.
fn read_by_place(program: &Program, stream: &[u8]) -> Result<usize, TestCaseError> {
    let mut decoders = [program, program].map(|program| Decoder::new(program.clone()));
    let (mut record, mut message, mut at, mut count) = (Record::new(), Message::new(), 0, 0);
    while at < stream.len() {
        let Ok(len) = decoders[0].decode_record(&stream[at..], &mut record) else {
            break;
        };
        decoders[1].decode(&stream[at..], &mut message).unwrap();
        at += len;
        let Some(rows) = record.rows() else {
            continue;
        };
        let template = rows.template_index();
        prop_assert!(program.has_rows(template));
        let expected = Record::from(message.clone());
        let entries = rows.entries().map(|entries| entries.len());
        if let Some(sequence) = program.rows_sequence(template) {
            let length = entries.map_or(Cell::Absent, |entries| Cell::Sequence(entries as u32));
            prop_assert_eq!(expected.get(program, sequence, 0), length);
        }
        count += 1 + entries.unwrap_or(0);
        for field in program.fields().iter().filter(|f| f.template() == template) {
            let Some(place) = program.place(field.id()) else {
                prop_assert!(false, "{} has no place", field.name());
                continue;
            };
            prop_assert_eq!(place.in_entry, field.parent().is_some());
            let several = if place.in_entry {
                entries.unwrap_or(0)
            } else {
                1
            };
            for entry in 0..several {
                let row = rows.row(&place, entry).unwrap();
                let found = row.cell(program, &place);
                prop_assert_eq!(row.has(&place), found != Cell::Absent);
                prop_assert_eq!(&found, &expected.get(program, field.id(), entry));
            }
            prop_assert!(!place.in_entry || rows.row(&place, several).is_none());
        }
    }
    Ok(count)
}

/// Encodes the records of a stream again, which must give the same bytes.
fn encoded_again(program: &Program, stream: &[u8], options: Options) -> Result<(), TestCaseError> {
    for options in kernels(options) {
        encoded_again_with(program, stream, options)?;
    }
    Ok(())
}

fn encoded_again_with(
    program: &Program,
    stream: &[u8],
    options: Options,
) -> Result<(), TestCaseError> {
    let mut decoder = Decoder::new(program.clone());
    let (mut lanes, mut plain) = (
        Encoder::with_options(program.clone(), options),
        Encoder::with_options(program.clone(), oracle(options)),
    );
    let (mut record, mut at) = (Record::new(), 0);
    let (mut out, mut expected) = (Vec::new(), Vec::new());
    while at < stream.len() {
        let Ok(len) = decoder.decode_record(&stream[at..], &mut record) else {
            break;
        };
        at += len;
        let other = plain.encode_record(&record, &mut expected);
        prop_assert_eq!(lanes.encode_record(&record, &mut out), other);
        prop_assert_eq!(to_hex(&out), to_hex(&expected));
        if other.is_err() {
            break;
        }
    }
    Ok(())
}

fn strictness() -> impl Strategy<Value = Options> {
    (any::<bool>(), 0..5_usize).prop_map(|(strict, limited)| {
        let limits = Limits::default();
        let limits = match limited {
            1 => Limits {
                fields: 60,
                ..limits
            },
            2 => Limits {
                texts: 40,
                entries: 3,
                ..limits
            },
            3 => Limits {
                text: 3,
                message: 40,
                ..limits
            },
            4 => Limits {
                message: 40,
                ..limits
            },
            _ => limits,
        };
        Options {
            strict,
            limits,
            ..Options::default()
        }
    })
}

/// Returns how many eights of lanes the messages of a template take, and how many their entries.
fn eights(program: &Program, template: u32) -> [usize; 2] {
    let mut eights = [0, 0];
    let fields = program.fields().iter();
    for field in fields.filter(|field| field.template() == template) {
        let Some(place) = program.place(field.id()) else {
            continue;
        };
        if place.lane != Place::NO_LANE {
            let last = usize::from(place.lane) + usize::from(place.reading == Reading::Decimal);
            let most = &mut eights[usize::from(place.in_entry)];
            *most = (last / 8 + 1).max(*most);
        }
    }
    eights
}

/// Where no template is flat, the tests below say nothing about kernels.
#[test]
fn most_templates_are_flat_and_of_all_widths() {
    const CASES: usize = 300;
    let mut runner = TestRunner::deterministic();
    let (mut flat, mut widths) = (0, [[0; 5]; 2]);
    for _ in 0..CASES {
        let xml = any_templates().new_tree(&mut runner).unwrap().current();
        let program = Program::parse(&xml).unwrap();
        let template = program.by_name("A").unwrap().index();
        if program.has_rows(template) {
            flat += 1;
            for (widths, eights) in widths.iter_mut().zip(eights(&program, template)) {
                widths[eights] += 1;
            }
        }
    }
    assert!(2 * flat >= CASES, "{flat} of {CASES}");
    for widths in widths {
        assert!(widths[1..].iter().all(|count| *count > 0), "{widths:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn messages_are_the_same(
        xml in any_templates(),
        seed: u64,
        tame: bool,
        options in strictness(),
    ) {
        let program = Program::parse(&xml).unwrap();
        let (bytes, _) = stream_of(&program, Dice::new(seed, tame), 10);
        compare(&program, &bytes, options)?;
        encoded_again(&program, &bytes, options)?;
        read_by_place(&program, &bytes)?;
    }

    /// Of templates that no kernel finds too long.
    #[test]
    fn what_fits_stays_in_rows(xml in flat_templates_of(3..=12), seed: u64) {
        let program = Program::parse(&xml).unwrap();
        let (stream, starts) = stream_of(&program, Dice::new(seed, true), 60);
        let ends = starts.iter().skip(1).copied().chain([stream.len()]);
        let longest = starts.iter().zip(ends).map(|(start, end)| end - start).max();
        // A stream may be longer than a message may be.
        let limits = Limits { message: longest.unwrap_or_default(), ..Limits::default() };
        for kernel in LaneKernel::all() {
            for limits in [Limits::default(), limits] {
                let (all, in_rows) = counted(&program, &stream, kernel, limits);
                prop_assert!(all > 0);
                prop_assert_eq!(all, in_rows, "{:?} {}", kernel, to_hex(&stream));
            }
        }
    }

    #[test]
    fn errors_are_the_same(
        xml in any_templates(),
        seed: u64,
        tame: bool,
        options in strictness(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0u8..8), 1..6),
    ) {
        let program = Program::parse(&xml).unwrap();
        let (mut bytes, _) = stream_of(&program, Dice::new(seed, tame), 4);
        for (place, bit) in flips {
            if !bytes.is_empty() {
                let place = place.index(bytes.len());
                bytes[place] ^= 1 << bit;
                compare(&program, &bytes, options)?;
                encoded_again(&program, &bytes, options)?;
            }
        }
    }

    #[test]
    fn noise_is_the_same(
        xml in any_templates(),
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(0x80), Just(0x81),
                                                   Just(0xe0), Just(0xff), Just(0)], 0..120),
        strict: bool,
    ) {
        let program = Program::parse(&xml).unwrap();
        let start = [0xff, 0x81];
        let options = Options { strict, ..Options::default() };
        compare(&program, &[&start[..], &bytes].concat(), options)?;
    }

    #[test]
    fn cut_streams_are_the_same(
        xml in any_templates(),
        seed: u64,
        tame: bool,
        step in 1usize..12,
    ) {
        let program = Program::parse(&xml).unwrap();
        let (bytes, _) = stream_of(&program, Dice::new(seed, tame), 3);
        for cut in (seed as usize % step..bytes.len()).step_by(step) {
            compare(&program, &bytes[..cut], Options::default())?;
        }
    }

    #[test]
    fn pieces_are_the_same(
        xml in any_templates(),
        seed: u64,
        tame: bool,
        step in 1usize..40,
    ) {
        let program = Program::parse(&xml).unwrap();
        let (bytes, _) = stream_of(&program, Dice::new(seed, tame), 8);
        let expected = decoded(&program, &bytes, oracle(Options::default()));
        let mut decoder = Decoder::new(program.clone());
        let (mut message, mut lines, mut at, mut end) = (Message::new(), Vec::new(), 0, 0);
        while at < bytes.len() {
            match decoder.decode_partial(&bytes[at..end], &mut message).unwrap() {
                Some(len) => {
                    at += len;
                    lines.push(line(&program, &message));
                }
                None => end = (end + step).min(bytes.len()),
            }
        }
        prop_assert_eq!(lines, expected.0);
    }
}

/// How many messages of templates of rows there are, and how many of them a kernel left in rows:
/// it did all of those, the entries included.
fn counted(program: &Program, stream: &[u8], kernel: LaneKernel, limits: Limits) -> (usize, usize) {
    let options = Options {
        kernel: Some(kernel),
        limits,
        ..Options::default()
    };
    let mut decoder = Decoder::with_options(program.clone(), options);
    let (mut record, mut at, mut all, mut in_rows) = (Record::new(), 0, 0, 0);
    while at < stream.len() {
        at += decoder.decode_record(&stream[at..], &mut record).unwrap();
        let template = record.template_index().unwrap();
        all += usize::from(program.has_rows(template));
        in_rows += usize::from(record.rows().is_some());
    }
    (all, in_rows)
}

/// Without this, kernels that do nothing would pass all other tests.
#[test]
fn kernels_do_what_is_regular() {
    let inside = |kind: &str, operator: &str| {
        let field = |n| format!("<{kind} name='{n}' presence='optional'>{operator}</{kind}>");
        (0..5).map(field).collect::<String>()
    };
    let ints = ["int8", "uInt8", "int16", "uInt16", "int32", "uInt32"];
    let kinds = ints.iter().chain(&["string"]);
    let operators = ["", "<copy/>", "<default/>", "<delta/>", "<increment/>"];
    let parts = "<exponent><default/></exponent><mantissa><delta/></mantissa>";
    let decimals = [("decimal", ""), ("decimal", parts)];
    let all = kinds.flat_map(|kind| operators.map(|operator| (*kind, operator)));
    for (kind, operator) in all.chain(decimals) {
        if kind == "string" && matches!(operator, "<delta/>" | "<increment/>") {
            continue;
        }
        let fields = inside(kind, operator);
        let mandatory = fields.replace(" presence='optional'", "");
        let text = match operator {
            "<default/>" => fields.clone(),
            _ if operator == parts => fields.clone(),
            _ => fields.clone() + &mandatory.replace("name='", "name='M"),
        };
        let entry = fields.replace("name='", "name='E");
        let program = Program::parse(&format!(
            "<templates><template name='A' id='1'>{text}<sequence name='S'><length name='N'/>\
             <uInt32 name='X'><copy/></uInt32>{entry}</sequence></template></templates>"
        ))
        .unwrap();
        let (stream, starts) = stream_of(&program, Dice::new(7, true), 40);
        for kernel in LaneKernel::all() {
            let counts = counted(&program, &stream, kernel, Limits::default());
            assert_eq!(counts, (starts.len(), starts.len()), "{kernel:?} {text}");
        }
        assert!(starts.len() == 40, "{kind} {operator}");
    }
}

/// A record of other templates is refused, whatever it is held as.
#[test]
fn foreign_records_are_refused() {
    let xml = |ty: &str| {
        let fields: String = ["A", "B", "C"]
            .iter()
            .map(|name| format!("<{ty} name='{name}'><copy/></{ty}>"))
            .collect();
        format!("<template name='T' id='1'>{fields}</template>")
    };
    let [own, same, other] = ["uInt32", "uInt32", "int32"].map(|ty| {
        let program = Program::parse(&xml(ty)).unwrap();
        assert!(program.has_rows(0));
        program
    });
    let bytes = [0xf8, 0x81, 0x82, 0x83, 0x84];
    let kernels = LaneKernel::all().map(Some).chain([None]);
    for kernel in kernels {
        let options = Options {
            kernel,
            ..Options::default()
        };
        let mut record = Record::new();
        let mut decoder = Decoder::with_options(own.clone(), options);
        decoder.decode_record(&bytes, &mut record).unwrap();
        assert_eq!(record.rows().is_some(), kernel.is_some());
        let mut out = Vec::new();
        let error = Encoder::new(other.clone()).encode_record(&record, &mut out);
        assert_eq!(error.unwrap_err().code, ErrorCode::Foreign);
        let mut message = Message::new();
        decoder.reset();
        decoder.decode(&bytes, &mut message).unwrap();
        let error = Encoder::new(other.clone()).encode(&message, &mut out);
        assert_eq!(error.unwrap_err().code, ErrorCode::Foreign);
        assert!(out.is_empty());
        let mut encoder = Encoder::new(same.clone());
        encoder.encode_record(&record, &mut out).unwrap();
        assert_eq!(out, bytes);
        encoder.reset();
        out.clear();
        encoder.encode(&message, &mut out).unwrap();
        assert_eq!(out, bytes);
    }
}

/// A message too short for rows, and one with a sequence.
const WHOLE: [(&str, &[u8], bool); 2] = [
    (
        "<uInt32 name='A'/><uInt32 name='B' presence='optional'/>",
        &[0xc0, 0x81, 0x85, 0x86],
        false,
    ),
    (
        "<uInt32 name='A'/><uInt32 name='B'/><sequence name='S'><length name='N'/>\
         <uInt32 name='C'><copy/></uInt32><uInt32 name='D'><copy/></uInt32>\
         <uInt32 name='E' presence='optional'><default/></uInt32></sequence>",
        &[0xc0, 0x81, 0x85, 0x88, 0x82, 0xe0, 0xaa, 0x83, 0x80],
        true,
    ),
];

/// Without its last byte, or forgotten, a message is not encoded.
#[test]
fn only_whole_records_are_encoded() {
    for (fields, bytes, has_rows) in WHOLE {
        let program = program(fields);
        for options in kernels(Options::default()) {
            let mut decoder = Decoder::with_options(program.clone(), options);
            let (mut record, mut out) = (Record::new(), Vec::new());
            let mut encode = |record: &Record| {
                out.clear();
                let mut encoder = Encoder::with_options(program.clone(), options);
                let encoded = encoder.encode_record(record, &mut out);
                encoded.map(|_| out.clone()).map_err(|error| error.code)
            };
            assert_eq!(encode(&record), Err(ErrorCode::Input));
            let cut = decoder.decode_record(&bytes[..bytes.len() - 1], &mut record);
            assert_eq!(cut.unwrap_err().code, ErrorCode::Truncated);
            assert_eq!(encode(&record), Err(ErrorCode::Input));
            decoder.reset();
            decoder.decode_record(bytes, &mut record).unwrap();
            let is_in_rows = has_rows && options.kernel.is_some();
            assert_eq!(record.rows().is_some(), is_in_rows);
            assert_eq!(encode(&record).as_deref(), Ok(bytes));
            let as_message = Record::from(message_of(&record, &program));
            assert_eq!(encode(&as_message).as_deref(), Ok(bytes));
            for mut record in [record, as_message] {
                assert!(record.view(&program).is_some());
                record.clear();
                assert_eq!(encode(&record), Err(ErrorCode::Input));
                shows_nothing(&mut record, &program);
            }
        }
    }
}

fn shows_nothing(record: &mut Record, program: &Program) {
    assert_eq!(record.template_index(), None);
    for field in program.fields() {
        assert_eq!(record.get(program, field.id(), 0), Cell::Absent);
    }
    let mut told = Message::new();
    record.visit(program, &mut told);
    assert_eq!(told.template_index(), None);
    assert!(record.view(program).is_none());
}

#[test]
fn a_record_shows_no_older_message_behind_an_error() {
    for (fields, bytes, _) in WHOLE {
        let program = program(fields);
        for options in kernels(Options::default()) {
            let mut decoder = Decoder::with_options(program.clone(), options);
            let mut record = Record::new();
            decoder.decode_record(bytes, &mut record).unwrap();
            assert!(record.view(&program).is_some());
            decoder.decode_record(bytes, &mut record).unwrap();
            let unknown = decoder.decode_record(&[0xc0, 0xff], &mut record);
            assert_eq!(unknown.unwrap_err().code, ErrorCode::D9);
            shows_nothing(&mut record, &program);
        }
    }
}

/// The generated feeds, every message cut at every byte, every bit of it turned.
#[test]
fn generated_feeds_are_the_same() {
    let options = ComplexOptions::default();
    let spectra = |snapshots| {
        let options = SpectraOptions {
            snapshots,
            trades: 10,
            ..SpectraOptions::default()
        };
        Generator::spectra(Program::spectra(), 40, None, options)
    };
    // Rows at least: all but Done and quote requests, with the entries of each.
    for (program, mut generator, expected) in [
        (
            Program::simple(),
            Generator::simple(Program::simple(), 60, PACKET_SIZE),
            60,
        ),
        (
            Program::complex(),
            Generator::complex(Program::complex(), 103, None, options),
            400,
        ),
        (Program::spectra(), spectra(false), 0),
        (Program::spectra(), spectra(true), 0),
    ] {
        let mut rows = 0;
        while let Some(packet) = generator.next_packet().unwrap() {
            compare(&program, packet, Options::default()).unwrap();
            encoded_again(&program, packet, Options::default()).unwrap();
            rows += read_by_place(&program, packet).unwrap();
            let packet = &packet[..packet.len().min(120)];
            for cut in 0..packet.len() {
                compare(&program, &packet[..cut], Options::default()).unwrap();
            }
            let mut turned = packet.to_vec();
            for bit in (0..8 * packet.len()).step_by(19) {
                turned[bit / 8] ^= 1 << (bit % 8);
                compare(&program, &turned, Options::default()).unwrap();
                turned[bit / 8] ^= 1 << (bit % 8);
            }
        }
        assert!(
            LaneKernel::best().is_none() || rows >= expected,
            "{rows} rows"
        );
    }
}

/// Values of more than four bytes, in most messages or in few: where most are such, a decoder does
/// without lanes from a reset on, and its records are no rows; the messages are the same.
#[test]
fn lanes_are_left_where_most_is_irregular() {
    const FEED: &str = "<template name='T' id='1'><uInt32 name='A'><copy/></uInt32>\
        <uInt32 name='B'/><uInt32 name='C'/></template>";
    let program = std::sync::Arc::new(Program::parse(FEED).unwrap());
    let last = program.find("T", "C").unwrap();
    let small = [0xe0, 0x81, 0x85, 0x86, 0x87];
    let large = [0xe0, 0x81, 0x85, 0x86, 0x01, 0x00, 0x00, 0x00, 0x87];
    for kernel in LaneKernel::all() {
        let cases = [
            (1, 1, false),
            (1, 2, true),
            (1, 3, true),
            (20, 1, false),
            (20, 20, true),
        ];
        for (in_packet, share, stays) in cases {
            let options = Options {
                kernel: Some(kernel),
                ..Options::default()
            };
            let mut decoder = Decoder::with_options(program.clone(), options);
            let mut record = Record::new();
            for number in 0..10_000 {
                if number % in_packet == 0 {
                    decoder.reset();
                }
                let (bytes, value) = match number % share {
                    0 => (&large[..], (1 << 28) + 7),
                    _ => (&small[..], 7),
                };
                let len = decoder.decode_record(bytes, &mut record).unwrap();
                assert_eq!(len, bytes.len());
                assert_eq!(record.get(&program, last, 0), Cell::Unsigned(value));
            }
            decoder.reset();
            decoder.decode_record(&small, &mut record).unwrap();
            let case = format!("{kernel:?}, one of {share}, {in_packet} in a packet");
            assert_eq!(record.rows().is_some(), stays, "{case}");
        }
    }
}
