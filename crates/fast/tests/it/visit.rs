//! What a visitor is told of rows, against what it is told field by field: each call, with its
//! field, in its order.

use fanfare_fast::program::{Field, TemplateProgram};
use fanfare_fast::{CodecError, Decimal, Decoder, Options, Program, Visitor};
use proptest::prelude::*;

use crate::drawn::{Dice, any_templates, stream_of};
use crate::lanes::{kernels, oracle};

/// Writes down every call.
#[derive(Default)]
struct Calls(Vec<String>);

impl Calls {
    fn note(&mut self, call: &str, field: &Field, value: impl std::fmt::Debug) {
        let id = field.id();
        self.0
            .push(format!("{call} {id:?} {} {value:?}", field.name()));
    }
}

impl Visitor for Calls {
    fn begin_message(&mut self, template: &TemplateProgram) {
        self.0.push(format!("message {}", template.index()));
    }

    fn end_message(&mut self, template: &TemplateProgram) {
        self.0.push(format!("end of {}", template.index()));
    }

    fn unsigned(&mut self, field: &Field, value: u64) {
        self.note("unsigned", field, value);
    }

    fn signed(&mut self, field: &Field, value: i64) {
        self.note("signed", field, value);
    }

    fn decimal(&mut self, field: &Field, value: Decimal) {
        self.note("decimal", field, value);
    }

    fn ascii(&mut self, field: &Field, value: &[u8]) {
        self.note("ascii", field, value);
    }

    fn unicode(&mut self, field: &Field, value: &[u8]) {
        self.note("unicode", field, value);
    }

    fn bytes(&mut self, field: &Field, value: &[u8]) {
        self.note("bytes", field, value);
    }

    fn absent(&mut self, field: &Field) {
        self.note("absent", field, ());
    }

    fn begin_sequence(&mut self, field: &Field, length: u32) {
        self.note("sequence", field, length);
    }

    fn begin_entry(&mut self, field: &Field, index: u32) {
        self.note("entry", field, index);
    }

    fn end_entry(&mut self, field: &Field) {
        self.note("end of entry", field, ());
    }

    fn end_sequence(&mut self, field: &Field) {
        self.note("end of sequence", field, ());
    }
}

/// All calls until the first error.
fn calls(program: &Program, stream: &[u8], options: Options) -> (Vec<String>, Option<CodecError>) {
    let mut decoder = Decoder::with_options(program.clone(), options);
    let (mut calls, mut at) = (Calls::default(), 0);
    while at < stream.len() {
        match decoder.decode(&stream[at..], &mut calls) {
            Ok(len) => at += len,
            Err(error) => return (calls.0, Some(error)),
        }
    }
    (calls.0, None)
}

fn compare(program: &Program, stream: &[u8]) -> Result<(), TestCaseError> {
    let expected = calls(program, stream, oracle(Options::default()));
    for options in kernels(Options::default()) {
        let told = calls(program, stream, options);
        prop_assert_eq!(&told, &expected, "{:?}", options.kernel);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Whole rows, mostly, of fields of all kinds, with gaps between their lanes.
    #[test]
    fn calls_are_the_same(xml in any_templates(), seed: u64, tame: bool) {
        let program = Program::parse(&xml).unwrap();
        let (stream, _) = stream_of(&program, Dice::new(seed, tame), 12);
        compare(&program, &stream)?;
        compare(&program, &stream[..stream.len() - stream.len().min(3)])?;
    }

    /// Runs of one kind, as long as those that are told at once and longer.
    #[test]
    fn calls_of_runs_are_the_same(
        runs in prop::collection::vec((0..6_usize, 1..12_usize), 1..6),
        seed: u64,
    ) {
        let kinds = [
            "<uInt32 name='F'><copy/></uInt32>",
            "<string name='F'><copy/></string>",
            "<int32 name='F'><delta/></int32>",
            "<decimal name='F'/>",
            "<uInt32 name='F'><constant value='7'/></uInt32>",
            "<string name='F'><constant value='seven'/></string>",
        ];
        let fields: String = runs.iter().map(|(kind, len)| kinds[*kind].repeat(*len)).collect();
        let fields = fields.replace(" name='F'><copy/>", " name='F'><copy dictionary='template'/>");
        let mut number = 0;
        let mut named = String::new();
        for piece in fields.split_inclusive("'F") {
            number += 1;
            named.push_str(piece);
            if piece.ends_with("'F") {
                named.push_str(&number.to_string());
            }
        }
        let xml = format!(
            "<templates><template name='A' id='1'>{named}<sequence name='S'>\
             <length name='N'/>{}</sequence></template></templates>",
            named.replace("'F", "'E"),
        );
        let program = Program::parse(&xml).unwrap();
        let tame = true;
        let (stream, _) = stream_of(&program, Dice::new(seed, tame), 8);
        compare(&program, &stream)?;
    }
}
