//! Instruments from a file: CSV with a line of names, or TOML.

use super::column::Column;
use super::definition::{Definition, IdSource, SecurityId};
use super::{Change, Instruments};
use crate::mapping::time::{DateTime, Format};
use crate::price::Price;
use crate::text_error::TextError;
use crate::toml_text::{Problem, Table};
use fanfare_wire::{Decimal, int};

/// A column of a CSV file, or a key of a TOML one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Symbol,
    Id,
    Source,
    Maturity,
    Value(Column),
}

impl Key {
    fn all() -> impl Iterator<Item = Self> {
        let others = [Self::Symbol, Self::Id, Self::Source, Self::Maturity];
        others.into_iter().chain(Column::ALL.map(Self::Value))
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Symbol => "symbol",
            Self::Id => "id",
            Self::Source => "source",
            Self::Maturity => "maturity",
            Self::Value(column) => column.name(),
        }
    }
}

/// Sets the value of a key.
fn set<'t>(
    key: Key,
    text: &'t str,
    to: &mut Definition<'t>,
    status: &mut u16,
) -> Result<(), String> {
    let bytes = text.as_bytes();
    if bytes.is_empty() {
        return Ok(());
    }
    match key {
        Key::Symbol => to.name.symbol = bytes,
        Key::Id => to.name.id = SecurityId::parse(bytes),
        Key::Source => {
            let long = || format!("`{text}` has more than 4 characters");
            to.name.source = IdSource::parse(bytes).ok_or_else(long)?;
        }
        Key::Maturity => to.maturity = maturity(text)?,
        Key::Value(column) => set_value(column, text, to, status)?,
    }
    Ok(())
}

/// Sets the value of a column, which is not empty.
fn set_value<'t>(
    column: Column,
    text: &'t str,
    to: &mut Definition<'t>,
    status: &mut u16,
) -> Result<(), String> {
    let bytes = text.as_bytes();
    let price = || {
        let value = Decimal::parse(bytes).ok_or_else(|| format!("`{text}` is not a number"))?;
        Price::from_decimal(value).map_err(|error| error.to_string())
    };
    let small = |most: u64| match int::parse_u64(bytes) {
        Some(value) if value <= most => Ok(value),
        _ => Err(format!("`{text}` is not a number from 0 to {most}")),
    };
    match column {
        Column::Description => to.description = bytes,
        Column::Type => to.security_type = bytes,
        Column::Cfi => to.cfi = bytes,
        Column::Currency => to.currency = bytes,
        Column::Market => to.market = bytes,
        Column::Segment => to.segment = bytes,
        Column::Underlying => to.underlying = bytes,
        Column::MaturityMonth => to.maturity_month = bytes,
        Column::Tick => to.tick = price()?,
        Column::Multiplier => to.multiplier = price()?,
        Column::Strike => to.strike = price()?,
        Column::LowLimit => to.low_limit = price()?,
        Column::HighLimit => to.high_limit = price()?,
        Column::Depth => to.depth = small(u16::MAX.into())? as u16,
        Column::BookType => to.book_type = small(u8::MAX.into())? as u8,
        Column::Status => *status = small(u16::MAX.into())? as u16,
    }
    Ok(())
}

/// Parses `YYYYMMDD` or a UTCTimestamp.
fn maturity(text: &str) -> Result<u64, String> {
    let format = match text.len() {
        8 => Format::Date,
        _ => Format::Timestamp,
    };
    let time = DateTime::new(format, 0).read_text(text.as_bytes());
    time.ok_or_else(|| format!("`{text}` is neither YYYYMMDD nor YYYYMMDD-HH:MM:SS"))
}

/// Returns a fault of a line, of one of its columns unless that is empty.
fn fault(line: usize, column: &str, why: impl Into<String>) -> Problem {
    Problem {
        line,
        key: column.to_owned(),
        why: why.into(),
    }
}

/// Returns the columns that a line names.
fn columns(names: &Row) -> Result<Vec<Key>, Problem> {
    let mut columns = Vec::new();
    for name in &names.values {
        let why = match Key::all().find(|key| key.name() == name.as_str()) {
            None => "no such column",
            Some(key) if columns.contains(&key) => "the column occurs twice",
            Some(key) => {
                columns.push(key);
                continue;
            }
        };
        return Err(fault(names.line, name, why));
    }
    Ok(columns)
}

impl Instruments {
    /// Defines the instruments of a file: of TOML if its name ends in `.toml`, of CSV otherwise.
    /// Returns how many were new or changed.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Instruments::read_csv`] and [`Instruments::read_toml`].
    pub fn read_file(&mut self, name: &str, text: &str) -> Result<usize, TextError> {
        match name.ends_with(".toml") {
            true => self.read_toml(name, text),
            false => self.read_csv(name, text),
        }
    }

    /// Defines the instruments of a CSV file (RFC 4180). Its first line has the names of the
    /// columns: `symbol`, `id`, `source`, `description`, `type`, `cfi`, `currency`, `market`,
    /// `segment`, `underlying`, `maturity-month`, `tick`, `multiplier`, `strike`, `low-limit`,
    /// `high-limit`, `maturity` (`YYYYMMDD` or a UTCTimestamp), `depth`, `book-type` and `status`,
    /// in any order. `name` is the name of the file in errors. Returns how many were new or
    /// changed.
    ///
    /// # Errors
    ///
    /// Returns a [`TextError`] with the line: an invalid name or value, more or fewer values than
    /// names, or an instrument that is refused or defined by two lines. Instruments before the line
    /// are in the table.
    pub fn read_csv(&mut self, name: &str, text: &str) -> Result<usize, TextError> {
        let read = self.define_csv(text);
        read.map_err(|problem| TextError::new(name, problem))
    }

    fn define_csv(&mut self, text: &str) -> Result<usize, Problem> {
        let mut rows = Csv::new(text.strip_prefix('\u{feff}').unwrap_or(text));
        let Some(names) = rows.next().transpose()? else {
            let why = "the header line with the names of the columns is missing";
            return Err(fault(1, "", why));
        };
        let columns = columns(&names)?;
        let mut adding = Adding::new(self.len());
        for row in rows {
            let row = row?;
            let (have, want) = (row.values.len(), columns.len());
            if have != want {
                let why = format!("expected {want} values, one per column, found {have}");
                return Err(fault(row.line, "", why));
            }
            let (mut definition, mut status) = (Definition::default(), 0);
            for (key, text) in columns.iter().zip(&row.values) {
                set(*key, text, &mut definition, &mut status)
                    .map_err(|why| fault(row.line, key.name(), why))?;
            }
            let added = adding.add(self, &definition, status);
            added.map_err(|why| fault(row.line, "", why))?;
        }
        Ok(adding.changes)
    }

    /// Defines the instruments of a TOML file: tables `[[instrument]]` with the columns of
    /// [`Instruments::read_csv`] as keys. Returns how many were new or changed.
    ///
    /// # Errors
    ///
    /// Returns a [`TextError`] with line and key. Instruments before the line are in the table.
    pub fn read_toml(&mut self, name: &str, text: &str) -> Result<usize, TextError> {
        let read = self.define_toml(text);
        read.map_err(|problem| TextError::new(name, problem))
    }

    fn define_toml(&mut self, text: &str) -> Result<usize, Problem> {
        let mut root = Table::parse(text)?;
        let mut adding = Adding::new(self.len());
        for mut table in root.tables("instrument")? {
            let mut values = Vec::new();
            for key in Key::all() {
                if let Some(value) = table.text_or_number(key.name())? {
                    values.push((key, value));
                }
            }
            let (mut definition, mut status) = (Definition::default(), 0);
            for (key, value) in &values {
                set(*key, &value.text, &mut definition, &mut status)
                    .map_err(|why| table.problem_at(value.at, key.name(), why))?;
            }
            let added = adding.add(self, &definition, status);
            added.map_err(|why| table.problem("", why))?;
            table.finish()?;
        }
        root.finish()?;
        Ok(adding.changes)
    }
}

/// The addition of a file's instruments, each once.
struct Adding {
    /// Whether an instrument was in this file, by its number.
    seen: Vec<bool>,
    changes: usize,
}

impl Adding {
    fn new(before: usize) -> Self {
        Self {
            seen: vec![false; before],
            changes: 0,
        }
    }

    fn add(
        &mut self,
        to: &mut Instruments,
        definition: &Definition<'_>,
        status: u16,
    ) -> Result<(), String> {
        let found = to.find(&definition.name).map(|id| id.0 as usize);
        if found.is_some_and(|at| self.seen.get(at) == Some(&true)) {
            return Err(format!("{} occurs twice", definition.name));
        }
        let defined = to.define(definition).map_err(|error| error.to_string())?;
        to.set_status(defined.instrument, status);
        self.seen.resize(self.seen.len().max(to.len()), false);
        if let Some(seen) = self.seen.get_mut(defined.instrument.0 as usize) {
            *seen = true;
        }
        self.changes += usize::from(defined.change != Change::Same);
        Ok(())
    }
}

/// The rows of a CSV text.
struct Csv<'t> {
    rest: &'t str,
    line: usize,
}

struct Row {
    /// The line of the position, from 1.
    line: usize,
    values: Vec<String>,
}

impl<'t> Csv<'t> {
    const fn new(text: &'t str) -> Self {
        Self {
            rest: text,
            line: 1,
        }
    }

    /// Returns one value, and whether another one follows in this row.
    fn value(&mut self) -> Result<(String, bool), Problem> {
        let Some(mut rest) = self.rest.strip_prefix('"') else {
            let end = self.rest.find([',', '\n']).unwrap_or(self.rest.len());
            let (value, behind) = self.rest.split_at(end);
            self.rest = behind;
            let value = value.strip_suffix('\r').unwrap_or(value);
            if value.contains('"') {
                let why = "a quote inside a value that is not quoted";
                return Err(fault(self.line, "", why));
            }
            return Ok((value.to_owned(), self.ends_value()));
        };
        let mut value = String::new();
        let line = self.line;
        loop {
            let Some(end) = rest.find('"') else {
                return Err(fault(line, "", "a quoted value has no closing quote"));
            };
            let part = &rest[..end];
            value.push_str(part);
            self.line += part.matches('\n').count();
            rest = &rest[end + 1..];
            match rest.strip_prefix('"') {
                Some(behind) => {
                    value.push('"');
                    rest = behind;
                }
                None => break,
            }
        }
        self.rest = rest.strip_prefix('\r').unwrap_or(rest);
        match self.rest.chars().next() {
            None | Some(',' | '\n') => Ok((value, self.ends_value())),
            Some(_) => {
                let why = "a quoted value continues after its closing quote";
                Err(fault(self.line, "", why))
            }
        }
    }

    /// Consumes the end of a value. Returns true for a comma.
    fn ends_value(&mut self) -> bool {
        if let Some(rest) = self.rest.strip_prefix(',') {
            self.rest = rest;
            return true;
        }
        self.line += 1;
        self.rest = self.rest.strip_prefix('\n').unwrap_or(self.rest);
        false
    }
}

impl Iterator for Csv<'_> {
    type Item = Result<Row, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        // Empty lines are not rows.
        while let Some(rest) = self
            .rest
            .strip_prefix("\r\n")
            .or(self.rest.strip_prefix('\n'))
        {
            self.rest = rest;
            self.line += 1;
        }
        if self.rest.is_empty() {
            return None;
        }
        let (line, mut values) = (self.line, Vec::new());
        loop {
            match self.value() {
                Ok((value, goes_on)) => {
                    values.push(value.trim().to_owned());
                    if !goes_on {
                        return Some(Ok(Row { line, values }));
                    }
                }
                Err(error) => {
                    self.rest = "";
                    return Some(Err(error));
                }
            }
        }
    }
}
