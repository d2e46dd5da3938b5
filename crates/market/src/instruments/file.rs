//! Instruments from a file: CSV with a line of names, or TOML.

use super::definition::{Definition, IdSource, SecurityId};
use super::{Change, Instruments};
use crate::mapping::time::{DateTime, Format};
use crate::price::Price;
use crate::toml_text::{Problem, Table};
use core::fmt;
use fanfare_wire::{Decimal, int};

/// The reason why a file of instruments was not read. Instruments before the line are in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The name of the file given by the caller.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column or key, or empty if it concerns none.
    pub key: String,
    /// The fault.
    pub why: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.why)
    }
}

impl core::error::Error for FileError {}

/// The names of columns and keys of values, apart from names and times.
pub(crate) const VALUES: [&str; 16] = [
    "description",
    "type",
    "cfi",
    "currency",
    "market",
    "segment",
    "underlying",
    "maturity-month",
    "tick",
    "multiplier",
    "strike",
    "low-limit",
    "high-limit",
    "depth",
    "book-type",
    "status",
];

/// The names of the other columns and keys.
const NAMES: [&str; 4] = ["symbol", "id", "source", "maturity"];

/// Returns the names of all columns and keys.
fn columns() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().chain(VALUES)
}

/// Sets the value of a column.
fn set<'t>(
    column: &str,
    text: &'t str,
    to: &mut Definition<'t>,
    status: &mut u16,
) -> Result<(), String> {
    let bytes = text.as_bytes();
    if bytes.is_empty() {
        return Ok(());
    }
    let price = || {
        let value = Decimal::parse(bytes).ok_or_else(|| format!("`{text}` is not a number"))?;
        Price::from_decimal(value).map_err(|error| error.to_string())
    };
    let small = |most: u64| match int::parse_u64(bytes) {
        Some(value) if value <= most => Ok(value),
        _ => Err(format!("`{text}` is not a number from 0 to {most}")),
    };
    match column {
        "symbol" => to.name.symbol = bytes,
        "id" => to.name.id = SecurityId::parse(bytes),
        "source" => {
            let long = || format!("`{text}` has more than 4 characters");
            to.name.source = IdSource::parse(bytes).ok_or_else(long)?;
        }
        "description" => to.description = bytes,
        "type" => to.security_type = bytes,
        "cfi" => to.cfi = bytes,
        "currency" => to.currency = bytes,
        "market" => to.market = bytes,
        "segment" => to.segment = bytes,
        "underlying" => to.underlying = bytes,
        "maturity-month" => to.maturity_month = bytes,
        "tick" => to.tick = price()?,
        "multiplier" => to.multiplier = price()?,
        "strike" => to.strike = price()?,
        "low-limit" => to.low_limit = price()?,
        "high-limit" => to.high_limit = price()?,
        "maturity" => to.maturity = maturity(text)?,
        "depth" => to.depth = small(u16::MAX.into())? as u16,
        "book-type" => to.book_type = small(u8::MAX.into())? as u8,
        "status" => *status = small(u16::MAX.into())? as u16,
        _ => return Err("no such column".to_owned()),
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

impl Instruments {
    /// Defines the instruments of a file: of TOML if its name ends in `.toml`, of CSV otherwise.
    /// Returns how many were new or changed.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Instruments::read_csv`] and [`Instruments::read_toml`].
    pub fn read_file(&mut self, name: &str, text: &str) -> Result<usize, FileError> {
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
    /// Returns a [`FileError`] with the line: an invalid name or value, more or fewer values than
    /// names, or an instrument that is refused or defined by two lines.
    pub fn read_csv(&mut self, name: &str, text: &str) -> Result<usize, FileError> {
        let mut rows = Csv::new(text.strip_prefix('\u{feff}').unwrap_or(text));
        let error = |line, key: &str, why: String| FileError {
            file: name.to_owned(),
            line,
            key: key.to_owned(),
            why,
        };
        let row = |row: Option<Result<Row, (usize, &str)>>| match row {
            Some(Err((line, why))) => Err(error(line, "", why.to_owned())),
            Some(Ok(row)) => Ok(Some(row)),
            None => Ok(None),
        };
        let Some(names) = row(rows.next())? else {
            return Err(error(
                1,
                "",
                "the header line with the names of the columns is missing".to_owned(),
            ));
        };
        for (at, column) in names.values.iter().enumerate() {
            let why = match () {
                () if !columns().any(|known| known == column.as_str()) => "no such column",
                () if names.values[..at].contains(column) => "the column occurs twice",
                () => continue,
            };
            return Err(error(names.line, column, why.to_owned()));
        }
        let mut adding = Adding::new(self.len());
        while let Some(values) = row(rows.next())? {
            let (have, want) = (values.values.len(), names.values.len());
            if have != want {
                let why = format!("expected {want} values, one per column, found {have}");
                return Err(error(values.line, "", why));
            }
            let (mut definition, mut status) = (Definition::default(), 0);
            for (column, text) in names.values.iter().zip(&values.values) {
                set(column, text, &mut definition, &mut status)
                    .map_err(|why| error(values.line, column, why))?;
            }
            let added = adding.add(self, &definition, status);
            added.map_err(|why| error(values.line, "", why))?;
        }
        Ok(adding.changes)
    }

    /// Defines the instruments of a TOML file: tables `[[instrument]]` with the columns of
    /// [`Instruments::read_csv`] as keys. Returns how many were new or changed.
    ///
    /// # Errors
    ///
    /// Returns a [`FileError`] with line and key.
    pub fn read_toml(&mut self, name: &str, text: &str) -> Result<usize, FileError> {
        let error = |problem: Problem| FileError {
            file: name.to_owned(),
            line: problem.line,
            key: problem.key,
            why: problem.why,
        };
        let mut root = Table::parse(text).map_err(error)?;
        let mut adding = Adding::new(self.len());
        for mut table in root.tables("instrument").map_err(error)? {
            let mut values = Vec::new();
            for column in columns() {
                if let Some(value) = table.text_or_number(column).map_err(error)? {
                    values.push((column, value));
                }
            }
            let (mut definition, mut status) = (Definition::default(), 0);
            for (column, value) in &values {
                set(column, &value.text, &mut definition, &mut status)
                    .map_err(|why| error(table.problem_at(value.at, column, why)))?;
            }
            let added = adding.add(self, &definition, status);
            added.map_err(|why| error(table.problem("", why)))?;
            table.finish().map_err(error)?;
        }
        root.finish().map_err(error)?;
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
    fn value(&mut self) -> Result<(String, bool), (usize, &'static str)> {
        let Some(mut rest) = self.rest.strip_prefix('"') else {
            let end = self.rest.find([',', '\n']).unwrap_or(self.rest.len());
            let (value, behind) = self.rest.split_at(end);
            self.rest = behind;
            let value = value.strip_suffix('\r').unwrap_or(value);
            if value.contains('"') {
                return Err((self.line, "a quote inside a value that is not quoted"));
            }
            return Ok((value.to_owned(), self.ends_value()));
        };
        let mut value = String::new();
        let line = self.line;
        loop {
            let Some(end) = rest.find('"') else {
                return Err((line, "a quoted value has no closing quote"));
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
            Some(_) => Err((
                self.line,
                "a quoted value continues after its closing quote",
            )),
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
    type Item = Result<Row, (usize, &'static str)>;

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
