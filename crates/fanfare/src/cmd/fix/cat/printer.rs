//! Messages on stdout.

use super::filter::Filter;
use super::json;
use super::names::Names;
use crate::print::Out;
use anyhow::Result;
use fanfare_fix::codec::Message;
use fanfare_fix::dict::{DataType, Dictionary, Line, Pretty, Printable, lines};
use fanfare_fix::text::{Found, Scanner};
use fanfare_wire::text::SafeJson;
use std::io::{self, Write};

pub(in crate::cmd::fix) struct Printer {
    out: Out,
    names: Names,
    filter: Filter,
    json: bool,
    colour: bool,
    shows_secrets: bool,
    /// The buffer in which a message with secrets is masked.
    masked: Vec<u8>,
    counts: Counts,
}

/// The counts of messages.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) messages: u64,
    /// Messages that the filter accepted.
    pub(super) shown: u64,
    /// Messages shown with errors.
    pub(super) faulty: u64,
}

impl Printer {
    /// Creates a printer of all messages, with `*` for passwords.
    pub(in crate::cmd::fix) fn new(names: Names, json: bool, colour: bool) -> Self {
        Self {
            out: Out::default(),
            names,
            filter: Filter::default(),
            json,
            colour,
            shows_secrets: false,
            masked: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Restricts it to messages that match the filter.
    pub(super) fn only(mut self, filter: Filter) -> Self {
        self.filter = filter;
        self
    }

    /// Prints passwords too, if `wanted`.
    pub(super) fn showing_secrets(mut self, wanted: bool) -> Self {
        self.shows_secrets = wanted;
        self
    }

    /// Prints a message as received from the wire, immediately.
    pub(in crate::cmd::fix) fn received(&mut self, message: &Message<'_>) -> Result<()> {
        let found = Found {
            prefix: b"",
            message: *message,
            flaws: &[],
            line: 0,
        };
        self.message(&found, None)?;
        Ok(self.flush()?)
    }

    /// Prints all messages of the scanner; `prefix` replaces theirs.
    pub(super) fn all_of(&mut self, scanner: &mut Scanner, prefix: Option<&str>) -> Result<()> {
        while let Some(found) = scanner.next() {
            self.message(&found, prefix)?;
        }
        Ok(())
    }

    pub(in crate::cmd::fix) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    pub(super) fn finish(mut self) -> io::Result<Counts> {
        self.out.flush()?;
        Ok(self.counts)
    }

    fn message(&mut self, found: &Found<'_>, prefix: Option<&str>) -> Result<()> {
        self.counts.messages += 1;
        let dictionary = self.names.of(&found.message)?;
        if !self.filter.takes(&found.message) {
            return Ok(());
        }
        let mut room = std::mem::take(&mut self.masked);
        let shown = Found {
            message: match self.shows_secrets {
                true => found.message,
                false => found.message.masked(&mut room),
            },
            ..*found
        };
        let printed = self.print(&shown, prefix, &dictionary);
        self.masked = room;
        Ok(printed?)
    }

    fn print(
        &mut self,
        found: &Found<'_>,
        prefix: Option<&str>,
        dictionary: &Dictionary,
    ) -> io::Result<()> {
        let lines = lines(dictionary, &found.message);
        let mut faults: Vec<String> = found.flaws.iter().map(ToString::to_string).collect();
        faults.extend(wrong_counts(&lines, dictionary));
        self.counts.shown += 1;
        self.counts.faulty += u64::from(!faults.is_empty());
        let prefix = prefix.map_or_else(|| Printable(found.prefix).to_string(), str::to_owned);
        if self.json {
            let object = json::object(found, &prefix, dictionary, &lines, &faults);
            writeln!(self.out, "{}", SafeJson(object))
        } else {
            self.pretty(found, &prefix, dictionary, &faults)
        }
    }

    fn pretty(
        &mut self,
        found: &Found<'_>,
        prefix: &str,
        dictionary: &Dictionary,
        faults: &[String],
    ) -> io::Result<()> {
        let (dim, red, plain) = if self.colour {
            ("\x1b[2m", "\x1b[31m", "\x1b[0m")
        } else {
            ("", "", "")
        };
        let out = &mut self.out;
        if self.counts.shown > 1 {
            writeln!(out)?;
        }
        if !prefix.is_empty() {
            writeln!(out, "{dim}{prefix}{plain}")?;
        }
        let message = Pretty::new(dictionary, found.message).colour(self.colour);
        write!(out, "{message}")?;
        for fault in faults {
            writeln!(out, "  {red}! {fault}{plain}")?;
        }
        Ok(())
    }
}

/// Returns the groups with more or fewer entries than their count.
fn wrong_counts(lines: &[Line<'_>], dictionary: &Dictionary) -> Vec<String> {
    let mut faults = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let behind = lines.get(at + 1..).unwrap_or_default();
        let members = behind.iter().take_while(|member| member.depth > line.depth);
        let begins = |member: &&Line<'_>| member.depth == line.depth + 1 && member.entry.is_some();
        let entries = members.filter(begins).count();
        let is_count = dictionary.data_type(line.field.tag) == Some(DataType::NumInGroup);
        let value = std::str::from_utf8(line.field.value).unwrap_or_default();
        if (entries > 0 || is_count) && value.parse() != Ok(entries) {
            let name = line.name.unwrap_or("?");
            let (tag, value) = (line.field.tag, Printable(line.field.value));
            faults.push(format!(
                "{name}({tag}) is {value}, {entries} entries follow"
            ));
        }
    }
    faults
}
