//! Limits of decoders and encoders: each is reached, in every way of working, and named.

use fanfare_fast::{
    CodecError, Decoder, Encoder, ErrorCode, Limits, Message, Options, Program, Record, Visitor,
};

use crate::common::{hex, to_hex};
use crate::lanes::{kernels, oracle};

/// The result of every way of working with these limits, which is the same.
fn each_way<T: PartialEq + std::fmt::Debug>(
    limits: Limits,
    work: impl Fn(Options) -> Result<T, CodecError>,
) -> Result<T, String> {
    let options = Options {
        limits,
        ..Options::default()
    };
    let expected = work(oracle(options));
    for options in kernels(options) {
        assert_eq!(work(options), expected, "{:?}", options.kernel);
    }
    expected.map_err(|error| error.text().into_owned())
}

fn decoded(program: &Program, limits: Limits, bytes: &str) -> Result<usize, String> {
    let bytes = hex(bytes);
    each_way(limits, |options| {
        let mut decoder = Decoder::with_options(program.clone(), options);
        decoder.decode(&bytes, &mut Message::new())
    })
}

/// Encodes a message, as it is and by way of a record.
fn encoded(program: &Program, limits: Limits, message: &Message) -> Result<String, String> {
    let plain = each_way(limits, |options| {
        let mut out = Vec::new();
        let mut encoder = Encoder::with_options(program.clone(), options);
        encoder.encode(message, &mut out).map(|_| to_hex(&out))
    });
    let recorded = each_way(limits, |options| {
        let mut out = Vec::new();
        let mut encoder = Encoder::with_options(program.clone(), options);
        let record = Record::from(message.clone());
        encoder
            .encode_record(&record, &mut out)
            .map(|_| to_hex(&out))
    });
    assert_eq!(recorded, plain);
    plain
}

/// Decodes bytes without limits, and encodes what they hold with these.
fn again(program: &Program, limits: Limits, bytes: &str) -> Result<String, String> {
    let (mut message, bytes) = (Message::new(), hex(bytes));
    let mut decoder = Decoder::new(program.clone());
    assert_eq!(decoder.decode(&bytes, &mut message), Ok(bytes.len()));
    let plain = encoded(program, limits, &message);
    let by_rows = each_way(limits, |options| {
        let (mut record, mut out) = (Record::new(), Vec::new());
        let mut decoder = Decoder::new(program.clone());
        decoder.decode_record(&bytes, &mut record)?;
        let mut encoder = Encoder::with_options(program.clone(), options);
        encoder
            .encode_record(&record, &mut out)
            .map(|_| to_hex(&out))
    });
    assert_eq!(by_rows, plain);
    plain
}

const REFERENCES: &str = "<templates><template name='T' id='1'><uInt32 name='A'/><templateRef/>\
     </template><template name='U' id='2'><uInt32 name='B'/></template></templates>";
const TEXTS: &str = "<template name='T' id='1'><string name='A'/><string name='B'/></template>";
const ENTRIES: &str = "<template name='T' id='1'><uInt32 name='A'/>\
     <sequence name='S'><uInt32 name='V'><copy/></uInt32></sequence></template>";
const BITS: &str = "<template name='T' id='1'><group name='G' presence='optional'>\
     <bitGroup name='B'><uInt2 name='A'/><uInt3 name='C'/></bitGroup></group></template>";

/// Two references, one in the other.
const NESTED: &str = "c0 81 81 80 82 c0 82 83";
/// Three entries.
const THREE: &str = "c0 81 81 83 c0 81 80 c0 82";

/// Templates, limits, a message that is within them and one that is beyond, and what is wrong.
type Case = (&'static str, Limits, [&'static str; 2], &'static str);

fn cases() -> [Case; 8] {
    let all = Limits::default();
    [
        (
            TEXTS,
            Limits { message: 5, ..all },
            ["c0 81 41 c1 c2", "c0 81 41 c1 42 c2"],
            "limit exceeded: message too long",
        ),
        (
            TEXTS,
            Limits { text: 4, ..all },
            ["c0 81 41 41 41 c1 c2", "c0 81 c1 41 41 41 41 c1"],
            "limit exceeded: text too long",
        ),
        // A zero preamble is no part of the string.
        (
            TEXTS,
            Limits { text: 4, ..all },
            ["c0 81 00 00 61 62 e3 c2", "c0 81 00 00 61 62 63 e4 c2"],
            "limit exceeded: text too long",
        ),
        (
            ENTRIES,
            Limits { entries: 2, ..all },
            ["c0 81 81 82 c0 81 80", THREE],
            "limit exceeded: too many entries",
        ),
        (
            ENTRIES,
            Limits { fields: 8, ..all },
            ["c0 81 81 82 c0 81 80", THREE],
            "limit exceeded: too many fields",
        ),
        (
            REFERENCES,
            Limits { fields: 7, ..all },
            ["c0 81 81 c0 82 83", NESTED],
            "limit exceeded: too many fields",
        ),
        (
            REFERENCES,
            Limits {
                references: 1,
                ..all
            },
            ["c0 81 81 c0 82 83", NESTED],
            "limit exceeded: references nested too deeply",
        ),
        (
            BITS,
            Limits { fields: 5, ..all },
            ["c0 81", "e0 81 94"],
            "limit exceeded: too many fields",
        ),
    ]
}

#[test]
fn each_limit_has_a_name_of_its_own() {
    for (xml, limits, [within, beyond], text) in cases() {
        let program = Program::parse(xml).unwrap();
        let len = hex(within).len();
        assert_eq!(decoded(&program, limits, within), Ok(len), "{limits:?}");
        let refused = decoded(&program, limits, beyond);
        assert_eq!(refused, Err(text.to_owned()), "{limits:?}");
    }
}

#[test]
fn what_a_decoder_refuses_is_not_encoded() {
    for (xml, limits, [within, beyond], text) in cases() {
        let program = Program::parse(xml).unwrap();
        let done = again(&program, limits, within);
        assert_eq!(done, Ok(to_hex(&hex(within))), "{limits:?}");
        let refused = again(&program, limits, beyond);
        assert_eq!(refused, Err(text.to_owned()), "{limits:?}");
    }
}

#[test]
fn an_initial_value_that_is_not_in_the_stream_may_be_longer() {
    let limits = Limits {
        text: 4,
        ..Limits::default()
    };
    let too_long = "limit exceeded: text too long".to_owned();
    for (operator, beyond) in [
        ("default", "e0 81 41 42 43 44 c6"),
        ("copy", "e0 81 41 42 43 44 c6"),
        ("tail", "e0 81 c6"),
    ] {
        let program = Program::parse(&format!(
            "<template name='T' id='1'><string name='A'><{operator} value='ABCDE'/></string>\
             </template>"
        ))
        .unwrap();
        assert_eq!(decoded(&program, limits, "c0 81"), Ok(2), "{operator}");
        let done = again(&program, limits, "c0 81");
        assert_eq!(done, Ok("c0 81".to_owned()), "{operator}");
        let refused = decoded(&program, limits, beyond);
        assert_eq!(refused, Err(too_long.clone()), "{operator}");
        let refused = again(&program, limits, beyond);
        assert_eq!(refused, Err(too_long.clone()), "{operator}");
    }
}

/// All strings together are no field: what is wrong is not the length of the last one. An encoder
/// has no such limit.
#[test]
fn texts_are_added_up_by_decoders() {
    let program = Program::parse(TEXTS).unwrap();
    let limits = |texts| Limits {
        texts,
        ..Limits::default()
    };
    let (short, bytes) = (limits(7), "c0 81 c1 c2");
    assert_eq!(decoded(&program, limits(8), bytes), Ok(4));
    let refused = decoded(&program, short, bytes);
    assert_eq!(
        refused,
        Err("limit exceeded: too many bytes of text".to_owned())
    );
    assert_eq!(again(&program, short, bytes), Ok(bytes.to_owned()));
}

/// A message that the limit cuts inside the length of a sequence, or inside a string, is too long.
#[test]
fn what_the_limit_cuts_is_too_long() {
    let limits = |message| Limits {
        message,
        ..Limits::default()
    };
    let program = Program::parse(ENTRIES).unwrap();
    let too_long = Err("limit exceeded: message too long".to_owned());
    let long_length = "c0 81 81 01 00 82 c0 81";
    assert_eq!(decoded(&program, limits(4), long_length), too_long);
    let program = Program::parse(TEXTS).unwrap();
    assert_eq!(decoded(&program, limits(3), "c0 81 41 42 c3 c4"), too_long);
}

/// References inside each other, as many as a program likes: each is a call inside the encoder.
#[test]
fn messages_of_any_depth_are_refused() {
    let program = Program::parse(REFERENCES).unwrap();
    let [number, reference] = ["A", "templateRef"].map(|name| program.find("T", name).unwrap());
    let (number, reference) = (program.field(number), program.field(reference));
    let template = &program.templates()[0];
    let mut message = Message::new();
    message.begin_message(template);
    for _ in 0..1_000_000 {
        message.unsigned(number, 1);
        message.begin_template(reference, template);
    }
    for _ in 0..1_000_000 {
        message.end_template(reference);
    }
    let text = "limit exceeded: references nested too deeply";
    for limits in [Limits::default(), many_references()] {
        let refused = encoded(&program, limits, &message);
        assert_eq!(refused, Err(text.to_owned()), "{limits:?}");
    }
}

/// Returns limits with more references than can be in effect.
fn many_references() -> Limits {
    Limits {
        references: u32::MAX,
        ..Limits::default()
    }
}

/// A limit that would let a message exhaust the stack is not in effect.
#[test]
fn a_larger_limit_of_references_is_the_largest_one() {
    let (program, limits) = (Program::parse(REFERENCES).unwrap(), many_references());
    let nested = |depth: u32| {
        let between = "80 82 ".repeat(depth as usize - 1);
        format!("c0 81 81 {between}c0 82 83")
    };
    let within = nested(Limits::MAX_REFERENCES);
    let bytes = hex(&within);
    assert_eq!(decoded(&program, limits, &within), Ok(bytes.len()));
    let beyond = nested(Limits::MAX_REFERENCES + 1);
    let refused = decoded(&program, limits, &beyond);
    let text = "limit exceeded: references nested too deeply";
    assert_eq!(refused, Err(text.to_owned()));
    let options = Options {
        limits,
        ..Options::default()
    };
    let mut message = Message::new();
    let mut decoder = Decoder::with_options(program.clone(), options);
    decoder.decode(&bytes, &mut message).unwrap();
    let again = encoded(&program, limits, &message);
    assert_eq!(again, Ok(to_hex(&bytes)));
}

/// What the limit refuses when all of it is encoded leaves nothing in the previous values.
#[test]
fn records_that_are_refused_are_forgotten() {
    let program = Program::parse(ENTRIES).unwrap();
    let record = |bytes| {
        let mut record = Record::new();
        let mut decoder = Decoder::new(program.clone());
        decoder.decode_record(&hex(bytes), &mut record).unwrap();
        record
    };
    let within = "c0 81 81 82 c0 81 80";
    let (two, three) = (record(within), record(THREE));
    let options = Options {
        limits: Limits {
            message: 7,
            ..Limits::default()
        },
        ..Options::default()
    };
    for options in kernels(options).chain([oracle(options)]) {
        let mut encoder = Encoder::with_options(program.clone(), options);
        let mut out = Vec::new();
        let refused = encoder.encode_record_or_restore(&three, &mut out);
        assert_eq!(refused.unwrap_err().code, ErrorCode::Limit);
        encoder.encode_record_or_restore(&two, &mut out).unwrap();
        assert_eq!(to_hex(&out), within, "{:?}", options.kernel);
    }
}
