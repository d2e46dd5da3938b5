//! Decoders of crates.io, which run in this process: `fastlib`.

use super::{Sum, contestant};
use crate::contest::Contestant;
use anyhow::{Context, Result};
use fastlib::{MessageFactory, Value};
use std::rc::Rc;

/// The decoder of `fastlib` with a visitor, which must add up to `sum`.
pub(super) fn fastlib(templates: &str, packets: Rc<Vec<Vec<u8>>>, sum: Sum) -> Result<Contestant> {
    let decoder = fastlib::Decoder::new_from_xml(&for_fastlib(templates));
    let mut decoder = decoder.context("fastlib: templates")?;
    let pass = move |sum: &mut Sum| decode(&mut decoder, &packets, sum);
    contestant("fastlib", "0.3.8 of crates.io, visitor", sum, pass)
}

impl MessageFactory for Sum {
    fn start_template(&mut self, _: u32, _: &str) {}
    fn stop_template(&mut self) {}

    fn set_value(&mut self, _: u32, _: &str, value: Option<Value>) {
        match value {
            Some(Value::UInt32(v)) => self.add(v.into()),
            Some(Value::UInt64(v)) => self.add(v),
            Some(Value::Int32(v)) => self.add(i64::from(v) as u64),
            Some(Value::Int64(v)) => self.add(v as u64),
            Some(Value::Decimal(v)) => {
                self.add(v.mantissa as u64);
                self.add(i64::from(v.exponent) as u64);
            }
            Some(Value::ASCIIString(v)) => self.add(v.len() as u64),
            _ => {}
        }
    }

    fn start_sequence(&mut self, _: u32, _: &str, _: u32) {}
    fn start_sequence_item(&mut self, _: u32) {}
    fn stop_sequence_item(&mut self) {}
    fn stop_sequence(&mut self) {}
    fn start_group(&mut self, _: &str) {}
    fn stop_group(&mut self) {}
    fn start_template_ref(&mut self, _: &str, _: bool) {}
    fn stop_template_ref(&mut self) {}
}

/// The same templates as far as this feed goes, as fastlib takes them: no comment in front of the
/// root element, no integers below 32 bits (they look the same on the wire), and no optional
/// exponent without a default value (NetChgPrevDay(451) is always present here).
fn for_fastlib(templates: &str) -> String {
    let root = templates.find("<templates").unwrap_or_default();
    let body = templates.get(root..).unwrap_or_default();
    let exponent = ("<exponent><default/>", "<exponent><default value=\"0\"/>");
    let changes = [("uInt8", "uInt32"), ("uInt16", "uInt32"), exponent];
    let change = |text: String, (from, to)| text.replace(from, to);
    changes.into_iter().fold(body.to_owned(), change)
}

fn decode(decoder: &mut fastlib::Decoder, packets: &[Vec<u8>], sum: &mut Sum) -> Result<()> {
    for packet in packets {
        decoder.reset();
        let mut rest = packet.as_slice();
        while !rest.is_empty() {
            let len = decoder.decode_buffer(rest, sum).context("fastlib")?;
            rest = rest.get(len as usize..).unwrap_or_default();
            sum.messages += 1;
        }
    }
    Ok(())
}
