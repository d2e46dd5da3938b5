//! Decoded messages on stdout: as text, as lines of JSON, as FIX.

use crate::print::{Remarks, Stdout};
use crate::progress;
use clap::ValueEnum;
use fanfare_fast::{
    CodecError, Entries, Fields, MessageView, Program, TemplateError, Value, fix, json,
};
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};

/// The format of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One line per message, human-readable.
    Text,
    /// One JSON object per line, which `fanfare fast encode` reads. The second field of a name in
    /// an object is NAME#2, the third NAME#3.
    Json,
    /// One FIX message (tag=value, SOH) per line: the fields whose ids are numbers.
    Fix,
}

/// A writer of messages and errors; it writes no messages if there is no format.
pub(crate) struct Output {
    format: Option<Format>,
    out: BufWriter<Box<dyn Write>>,
    line: String,
    fix: Vec<u8>,
    begin_string: String,
    remarks: Remarks,
}

impl Output {
    pub(crate) fn new(format: Option<Format>) -> Self {
        if format.is_some() {
            progress::give_way();
        }
        Self {
            format,
            out: BufWriter::with_capacity(1 << 16, Box::new(Stdout)),
            line: String::new(),
            fix: Vec::new(),
            begin_string: "FIX.4.4".to_owned(),
            remarks: Remarks::default(),
        }
    }

    /// Sets the BeginString(8) of FIX messages; the default is FIX.4.4.
    pub(crate) fn with_begin_string(mut self, begin_string: &str) -> Self {
        begin_string.clone_into(&mut self.begin_string);
        self
    }

    /// Redirects all output to stderr, if stdout has another use.
    pub(crate) fn on_stderr(mut self) -> Self {
        self.out = BufWriter::new(Box::new(io::stderr()));
        self
    }

    /// Returns whether messages are wanted at all.
    pub(crate) fn wants_messages(&self) -> bool {
        self.format.is_some()
    }

    /// Writes a message, if they are wanted. Returns false if it has no such form.
    pub(crate) fn message(&mut self, view: MessageView<'_>) -> io::Result<bool> {
        let Some(format) = self.format else {
            return Ok(true);
        };
        self.line.clear();
        match format {
            Format::Text => text_line(view, &mut self.line),
            Format::Json => json::write_line(view, &mut self.line),
            Format::Fix => return self.fix_message(view),
        }
        self.line.push('\n');
        self.out.write_all(self.line.as_bytes())?;
        Ok(true)
    }

    fn fix_message(&mut self, view: MessageView<'_>) -> io::Result<bool> {
        self.fix.clear();
        match fix::write_message(view, self.begin_string.as_bytes(), &mut self.fix) {
            Ok(()) => {
                self.fix.push(b'\n');
                self.out.write_all(&self.fix)?;
                Ok(true)
            }
            Err(error) => {
                let name = view.template().name();
                self.remark(format_args!("fanfare: {name} cannot be FIX: {error}"));
                Ok(false)
            }
        }
    }

    /// Writes a line about an error or a gap to stderr: the first ones are shown, all are counted
    /// elsewhere.
    pub(crate) fn remark(&mut self, text: std::fmt::Arguments<'_>) {
        self.remarks.push(text);
    }

    /// Writes an error of the codec; `base` is the offset of its bytes in the file.
    pub(crate) fn codec_error(
        &mut self,
        error: &CodecError,
        program: &Program,
        base: u64,
    ) -> io::Result<()> {
        if self.format == Some(Format::Json) {
            self.line.clear();
            json::write_error(error, program, base as usize, &mut self.line);
            self.line.push('\n');
            return self.out.write_all(self.line.as_bytes());
        }
        self.out.flush()?;
        let text = error.describe(program, base);
        self.remark(format_args!("fanfare: {text}"));
        Ok(())
    }

    /// Writes an error of a line of JSON that cannot be encoded; `line` counts from 1.
    pub(crate) fn line_error(
        &mut self,
        error: &CodecError,
        program: &Program,
        line: u64,
        text: Option<&str>,
    ) -> io::Result<()> {
        let text = text.map_or_else(|| error.text(), Into::into);
        let json = serde_json::json!({
            "error": error.code.as_str(), "offset": error.offset,
            "template": error.template_name(program), "field": error.path(program),
            "message": text, "line": line,
        });
        writeln!(self.out, "{json}")
    }

    /// Writes any other error with a code: of a template document, a packet, a line.
    pub(crate) fn error(&mut self, code: &str, offset: u64, text: &str) -> io::Result<()> {
        if self.format != Some(Format::Json) {
            self.out.flush()?;
            self.remark(format_args!("fanfare: {code} at byte {offset}: {text}"));
            return Ok(());
        }
        let line = serde_json::json!({
            "error": code, "offset": offset, "template": null, "field": null, "message": text,
        });
        writeln!(self.out, "{line}")
    }

    /// Writes an error of a packet that has no place in a file: in JSON, its offset is 0.
    pub(crate) fn packet_error(&mut self, code: &str, text: &str) -> io::Result<()> {
        if self.format == Some(Format::Json) {
            return self.error(code, 0, text);
        }
        self.out.flush()?;
        self.remark(format_args!("fanfare: {code}: {text}"));
        Ok(())
    }

    /// Writes an error of the template document with this text.
    pub(crate) fn template_error(&mut self, text: &str, error: &TemplateError) -> io::Result<()> {
        let before = text
            .split_inclusive('\n')
            .take(error.line.saturating_sub(1) as usize);
        let column = error.column.saturating_sub(1) as usize;
        let offset = before.map(str::len).sum::<usize>() + column;
        let line = serde_json::json!({
            "error": error.code.as_str(), "offset": offset, "template": null, "field": null,
            "message": error.message, "line": error.line, "column": error.column,
        });
        writeln!(self.out, "{line}")?;
        self.flush()
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Formats a message as `MarketData MsgSeqNum=5 MDEntries=[{MDUpdateAction=0 …} {…}]`; absent
/// fields are omitted.
fn text_line(view: MessageView<'_>, out: &mut String) {
    out.push_str(view.template().name());
    text_fields(view.fields(), " ", out);
}

fn text_fields(fields: Fields<'_>, before_first: &str, out: &mut String) {
    let mut before = before_first;
    for (field, value) in fields {
        if !value.is_absent() {
            out.push_str(before);
            before = " ";
            out.push_str(field.name());
            out.push('=');
            text_value(value, out);
        }
    }
}

fn text_value(value: Value<'_>, out: &mut String) {
    match value {
        Value::Absent => {}
        Value::Unsigned(v, _) => _ = write!(out, "{v}"),
        Value::Signed(v, _) => _ = write!(out, "{v}"),
        Value::Decimal(v) => _ = write!(out, "{v}"),
        Value::Ascii(text) | Value::Unicode(text) => {
            _ = write!(out, "{:?}", String::from_utf8_lossy(text));
        }
        Value::Bytes(bytes) => write_hex(bytes, out),
        Value::Group(fields) => braces(fields, out),
        Value::Sequence(entries) => text_entries(entries, out),
        Value::Template(template, fields) => {
            out.push_str(template.name());
            braces(fields, out);
        }
    }
}

/// Appends bytes as `0x00ff`.
pub(super) fn write_hex(bytes: &[u8], out: &mut String) {
    out.push_str("0x");
    for byte in bytes {
        _ = write!(out, "{byte:02x}");
    }
}

fn text_entries(entries: Entries<'_>, out: &mut String) {
    out.push('[');
    for (i, entry) in entries.enumerate() {
        if i > 0 {
            out.push(' ');
        }
        braces(entry, out);
    }
    out.push(']');
}

fn braces(fields: Fields<'_>, out: &mut String) {
    out.push('{');
    text_fields(fields, "", out);
    out.push('}');
}
