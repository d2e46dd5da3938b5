//! Events as CSV (RFC 4180), with lines that end in LF.

use super::Sink;
use super::output::Output;
use super::row::{NAMES, Row, tell_escaped};
use anyhow::Result;
use fanfare_market::Price;
use fanfare_market::event::Event;
use fanfare_market::instruments::{Directory, Lookup};
use std::fmt::{Display, Write as _};
use std::io::{self, BufWriter, Write};

pub(super) struct Csv {
    out: BufWriter<Output>,
    line: String,
    /// The rows whose names are not UTF-8.
    escaped: u64,
}

impl Csv {
    pub(super) fn new(output: Output) -> Result<Self> {
        let mut out = BufWriter::with_capacity(1 << 16, output);
        writeln!(out, "{}", NAMES.join(","))?;
        Ok(Self {
            out,
            line: String::new(),
            escaped: 0,
        })
    }

    fn put(&mut self, row: &Row<'_>) -> Result<()> {
        self.escaped += u64::from(row.is_escaped);
        let line = &mut self.line;
        line.clear();
        let _ = write!(line, "{}", row.number);
        value(line, row.ts_recv);
        value(line, row.ts_event);
        value(line, row.feed);
        value(line, row.instrument);
        text(line, row.symbol.as_deref());
        text(line, row.security_id.as_deref());
        text(line, Some(row.kind));
        text(line, row.action);
        text(line, row.entry.map(String::from).as_deref());
        value(line, row.level);
        value(line, row.price.map(Price::from_units));
        value(line, row.size);
        value(line, row.id);
        value(line, row.rpt_seq);
        value(line, Some(row.snapshot));
        value(line, Some(row.last));
        text(line, row.security_id_source.as_deref());
        value(line, row.lost);
        text(line, row.definition.as_deref());
        line.push('\n');
        Ok(self.out.write_all(line.as_bytes())?)
    }
}

fn value(line: &mut String, value: Option<impl Display>) {
    line.push(',');
    if let Some(value) = value {
        let _ = write!(line, "{value}");
    }
}

fn text(line: &mut String, text: Option<&str>) {
    line.push(',');
    let text = text.unwrap_or_default();
    if text.contains([',', '"', '\n', '\r']) {
        line.extend(["\"", &text.replace('"', "\"\""), "\""]);
    } else {
        line.push_str(text);
    }
}

impl Sink for Csv {
    fn event(&mut self, event: &Event, table: &Directory) -> Result<()> {
        let known = table.instrument(event.instrument);
        self.put(&Row::new(event, known.as_ref()))
    }

    fn lost(&mut self, first: u64, last: u64) -> Result<()> {
        self.put(&Row::lost(first, last))
    }

    fn finish(self: Box<Self>) -> Result<Output> {
        tell_escaped(self.escaped);
        Ok(self
            .out
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_marks_are_quoted() {
        let mut line = String::new();
        text(&mut line, Some("a,b"));
        text(&mut line, Some("say \"a\"\n"));
        text(&mut line, None);
        value(&mut line, Some(7));
        assert_eq!(line, ",\"a,b\",\"say \"\"a\"\"\n\",,7");
    }
}
