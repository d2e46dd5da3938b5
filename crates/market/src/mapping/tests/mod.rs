//! Mappings compiled, refused and applied.

mod closing;
mod errors;
mod fast;
mod fix;
mod parts;
mod random;

use super::{BUILT_IN, FIX, Mapping};
use fanfare_fast::Program;
use std::sync::Arc;

fn program(xml: &str) -> Arc<Program> {
    Arc::new(Program::parse(xml).unwrap())
}

/// A template with all fields that a mapping can use.
const QUOTES: &str = r#"<templates>
  <template name="Quotes" id="1"><uInt32 name="MsgSeqNum" id="34"/>
    <uInt64 name="SendingTime" id="52" presence="optional"/>
    <sequence name="MDEntries"><length name="NoMDEntries" id="268"/>
      <string name="MDEntryType" id="269"/><string name="Symbol" id="55" presence="optional"/>
      <decimal name="MDEntryPx" id="270" presence="optional"/>
      <decimal name="MDEntrySize" id="271" presence="optional"/>
      <uInt32 name="MDPriceLevel" id="1023" presence="optional"/>
      <uInt64 name="RptSeq" id="83" presence="optional"/>
      <uInt32 name="MDUpdateAction" id="279" presence="optional"/>
      <byteVector name="Blob" id="9000" presence="optional"/>
    </sequence>
    <string name="Tail" id="9001" presence="optional"/>
  </template>
  <template name="Other" id="2"><uInt32 name="X"/></template>
</templates>"#;

const MAPPING: &str = r#"
[[message]]
template = 1
does = "changes"
number = 34
sent = { field = 52, format = "epoch-ms" }
entries = 268
instrument = { symbol = 55, carry = true }
entry = { type = 269, action = 279, price = 270, size = 271, level = 1023, rpt-seq = 83 }

[[message.event]]
kind = "level"
when = { 269 = ["0", "1"] }

[[message.event]]
kind = "ignore"
when = { 269 = "9" }

[[message.event]]
kind = "trade"
when = { MDEntryType = "2", 1023 = 7 }
"#;

/// Returns the error of loading a mapping against [`QUOTES`].
fn refused(text: &str) -> String {
    let mapping = match Mapping::parse("m.toml", text) {
        Ok(mapping) => mapping,
        Err(error) => return error.to_string(),
    };
    let error = mapping.for_templates(&program(QUOTES), 0).unwrap_err();
    error.to_string()
}

#[test]
fn the_built_in_mappings_fit_the_built_in_templates() {
    for (name, templates) in [
        ("builtin:spectra", fanfare_fast::builtin::SPECTRA),
        ("builtin:complex", fanfare_fast::builtin::COMPLEX),
    ] {
        let program = program(templates);
        assert_eq!(Mapping::name_for(&program), name);
        let (_, text) = BUILT_IN.iter().find(|(other, _)| *other == name).unwrap();
        let mapping = Mapping::parse(name, text).unwrap_or_else(|error| panic!("{error}"));
        let mapper = mapping.for_templates(&program, 0);
        mapper.unwrap_or_else(|error| panic!("{error}"));
        // Their times are integers, unlike those of standard FIX.
        let fix = Mapping::parse("fix.toml", FIX).unwrap_or_else(|error| panic!("{error}"));
        let error = fix.for_templates(&program, 0).unwrap_err();
        assert!(error.why.starts_with("SendingTime(52) of "), "{error}");
    }
    assert!(Mapping::built_in("builtin:other").is_none());
}
