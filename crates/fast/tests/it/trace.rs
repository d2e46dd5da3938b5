//! What a tracing visitor is told.

use fanfare_fast::{Decoder, Step, Visitor};

use crate::common::{hex, program, to_hex};

#[derive(Default)]
struct Trace(Vec<String>);

impl Visitor for Trace {
    const TRACE: bool = true;

    fn step(&mut self, step: Step<'_>) {
        self.0.push(match step {
            Step::PresenceMap { offset, bytes } => format!("{offset} {} map", to_hex(bytes)),
            Step::Template {
                offset,
                bytes,
                template,
            } => {
                format!("{offset} {} {}", to_hex(bytes), template.name())
            }
            Step::Field {
                field,
                part,
                operator,
                bit,
                previous,
                offset,
                bytes,
                integer,
            } => {
                format!(
                    "{offset} {} {}.{part} {} {bit:?} {previous:?} {integer:?}",
                    to_hex(bytes),
                    field.name(),
                    operator.name()
                )
            }
        });
    }
}

#[test]
fn each_step_is_told_with_its_bytes_and_the_state_before() {
    let program = program(
        "<uInt32 name='Seq'><increment/></uInt32>\
         <string name='S' presence='optional'><tail value='AB'/></string>\
         <decimal name='Px'><exponent><default value='-2'/></exponent><mantissa><delta/>\
         </mantissa></decimal>\
         <sequence name='E'><byteVector name='B'><copy/></byteVector></sequence>",
    );
    let mut decoder = Decoder::new(program);
    let mut trace = Trace::default();
    let bytes = hex("e0 81 85 8a 81 c0 81 07 90 c3 82 80");
    assert_eq!(decoder.decode(&bytes, &mut trace), Ok(8));
    assert_eq!(decoder.decode(&bytes[8..], &mut trace), Ok(4));
    assert_eq!(
        trace.0,
        [
            "0 e0 map",
            "1 81 T",
            "2 85 Seq. increment Some(true) Some(Undefined) Some(5)",
            "3  S. tail Some(false) Some(Undefined) None",
            "3  Px.exponent default Some(false) None Some(-2)",
            "3 8a Px.mantissa delta None Some(Undefined) Some(10)",
            "4 81 E.length none None None Some(1)",
            "5 c0 map",
            "6 81 07 B. copy Some(true) Some(Undefined) None",
            "0 90 map",
            "1  T",
            "1  Seq. increment Some(false) Some(Int(5)) Some(6)",
            "1 c3 S. tail Some(true) Some(Text([65, 66])) None",
            "2  Px.exponent default Some(false) None Some(-2)",
            "2 82 Px.mantissa delta None Some(Int(10)) Some(12)",
            "3 80 E.length none None None Some(0)",
        ]
    );
}
