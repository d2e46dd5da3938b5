//! Traces and listings.

use fanfare_fast::{Decoder, ErrorCode, explain};

use crate::common::{hex, program};

const TEMPLATE: &str = "<uInt32 name='Seq' id='34'><increment/></uInt32>\
    <string name='S' presence='optional'><tail value='AB'/></string>\
    <decimal name='Px'><exponent><default value='-2'/></exponent><mantissa><delta/></mantissa>\
    </decimal><sequence name='E'><byteVector name='B'><copy key='k' dictionary='mine'/>\
    </byteVector></sequence><group name='G' presence='optional'><int8 name='I'/></group>";

#[test]
fn a_trace_tells_each_step() {
    let mut decoder = Decoder::new(program(TEMPLATE));
    let bytes = hex("e0 81 85 8a 81 c0 81 07 90 c3 82 80");
    let mut text = String::new();
    assert_eq!(
        explain::explain(&mut decoder, &bytes, 100, &mut text),
        Ok(8)
    );
    let error = explain::explain(&mut decoder, &bytes[8..11], 108, &mut text).unwrap_err();
    let lines: Vec<String> = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        lines,
        [
            "100 e0 presence map 1100000",
            "101 81 template 1 T",
            "102 85 Seq(34): increment, bit 1, previous undefined = 5",
            "103 S: tail, bit 0, previous undefined = \"AB\"",
            "103 Px exponent: default, bit 0 = -2",
            "103 8a Px mantissa: delta, previous undefined = 10",
            "Px = 10e-2",
            "104 81 E length: none = 1",
            "E[0]",
            "105 c0 presence map 1000000",
            "106 81 07 B: copy, bit 1, previous undefined = 0x07",
            "G: bit 0 = absent",
            "108 90 presence map 0010000",
            "109 template 1 T (as before)",
            "109 Seq(34): increment, bit 0, previous 5 = 6",
            "109 c3 S: tail, bit 1, previous \"AB\" = \"AC\"",
            "110 Px exponent: default, bit 0 = -2",
            "110 82 Px mantissa: delta, previous 10 = 12",
            "Px = 12e-2",
        ]
    );
    assert_eq!((error.code, error.offset), (ErrorCode::Truncated, 3));
}

#[test]
fn a_listing_shows_what_a_program_does() {
    let mut text = String::new();
    explain::list(&program(TEMPLATE), &mut text);
    assert_eq!(
        text,
        "template T id 1, presence bits 5\n\
         \u{20} Seq(34): uInt32, increment [global Seq]\n\
         \u{20} S: optional string, tail \"AB\" [global S]\n\
         \u{20} Px: decimal, exponent default -2, mantissa delta [global Px.mantissa]\n\
         \u{20} E: sequence, length none\n\
         \u{20}   B: byteVector, copy [\"mine\" k]\n\
         \u{20} G: optional group\n\
         \u{20}   I: int8, none\n\
         template Reset id 120, resets the dictionaries and the identifier, presence bits 1\n"
    );
}
