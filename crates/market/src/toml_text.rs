//! The reading of TOML texts key by key, with the line of each fault.

use std::borrow::Cow;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// A fault of a text, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The line, from 1.
    pub(crate) line: usize,
    /// The key with the names of the tables around it, or empty if it concerns no key.
    pub(crate) key: String,
    pub(crate) why: String,
}

/// The keys of a table that were not taken yet.
pub(crate) struct Table<'t> {
    source: &'t str,
    /// Its name, with those of the tables around it.
    path: String,
    at: usize,
    keys: Vec<(String, usize, Node<'t>)>,
}

/// A value, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scalar<'t> {
    pub(crate) text: Cow<'t, str>,
    pub(crate) at: usize,
    /// Whether it is a number rather than a string.
    pub(crate) is_number: bool,
}

/// A value with its position.
type Node<'t> = (DeValue<'t>, Range<usize>);

fn node_of(value: toml::Spanned<DeValue<'_>>) -> Node<'_> {
    let span = value.span();
    (value.into_inner(), span)
}

fn line_of(source: &str, at: usize) -> usize {
    let before = source.as_bytes().get(..at).unwrap_or(source.as_bytes());
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

impl<'t> Table<'t> {
    /// Parses a whole text.
    pub(crate) fn parse(source: &'t str) -> Result<Self, Problem> {
        match DeTable::parse(source) {
            Ok(table) => Ok(Self::new(source, String::new(), 0, table.into_inner())),
            Err(error) => Err(Problem {
                line: line_of(source, error.span().map_or(0, |span| span.start)),
                key: String::new(),
                why: error.message().to_owned(),
            }),
        }
    }

    fn new(source: &'t str, path: String, at: usize, table: DeTable<'t>) -> Self {
        let keys = table.into_iter().map(|(key, value)| {
            let at = key.span().start;
            (key.into_inner().into_owned(), at, node_of(value))
        });
        let mut keys: Vec<_> = keys.collect();
        keys.sort_by_key(|(_, at, _)| *at);
        Self {
            source,
            path,
            at,
            keys,
        }
    }

    /// Returns a fault of the table, or of one of its keys.
    pub(crate) fn problem(&self, key: &str, why: impl Into<String>) -> Problem {
        self.problem_at(self.at, key, why)
    }

    /// Returns a fault at a position.
    pub(crate) fn problem_at(&self, at: usize, key: &str, why: impl Into<String>) -> Problem {
        Problem {
            line: line_of(self.source, at),
            key: self.name_of(key),
            why: why.into(),
        }
    }

    fn name_of(&self, key: &str) -> String {
        match (self.path.is_empty(), key.is_empty()) {
            (true, _) => key.to_owned(),
            (false, true) => self.path.clone(),
            (false, false) => format!("{}.{key}", self.path),
        }
    }

    fn take(&mut self, key: &str) -> Option<(usize, Node<'t>)> {
        let found = self.keys.iter().position(|(name, ..)| name == key)?;
        let (_, at, node) = self.keys.remove(found);
        Some((at, node))
    }

    /// Returns the tables `[[key]]`, or none if the key is absent.
    pub(crate) fn tables(&mut self, key: &str) -> Result<Vec<Self>, Problem> {
        let Some((at, (value, _))) = self.take(key) else {
            return Ok(Vec::new());
        };
        let wrong = |table: &Self| table.problem_at(at, key, format!("expected [[{key}]]"));
        let DeValue::Array(values) = value else {
            return Err(wrong(self));
        };
        let mut tables = Vec::new();
        for (value, span) in values.into_iter().map(node_of) {
            let DeValue::Table(table) = value else {
                return Err(wrong(self));
            };
            tables.push(Self::new(self.source, self.name_of(key), span.start, table));
        }
        Ok(tables)
    }

    /// Returns the table of a key.
    pub(crate) fn table(&mut self, key: &str) -> Result<Option<Self>, Problem> {
        match self.take(key) {
            None => Ok(None),
            Some((at, (DeValue::Table(table), _))) => {
                Ok(Some(Self::new(self.source, self.name_of(key), at, table)))
            }
            Some((at, (other, _))) => {
                let why = format!("expected a table, found {}", described(&other));
                Err(self.problem_at(at, key, why))
            }
        }
    }

    /// Returns a table, or a value that stands for its key `short`.
    pub(crate) fn table_or(&mut self, key: &str, short: &str) -> Result<Option<Self>, Problem> {
        let found = self.keys.iter().find(|(name, ..)| name == key);
        if matches!(found, None | Some((_, _, (DeValue::Table(_), _)))) {
            return self.table(key);
        }
        let taken = self.take(key).map(|(at, node)| Self {
            source: self.source,
            path: self.name_of(key),
            at,
            keys: vec![(short.to_owned(), at, node)],
        });
        Ok(taken)
    }

    /// Returns the string of a key.
    pub(crate) fn text(&mut self, key: &str) -> Result<Option<Scalar<'t>>, Problem> {
        match self.text_or_number(key)? {
            Some(value) if value.is_number => {
                Err(self.problem_at(value.at, key, "expected a string, found a number"))
            }
            value => Ok(value),
        }
    }

    /// Returns the string or number of a key, as text.
    pub(crate) fn text_or_number(&mut self, key: &str) -> Result<Option<Scalar<'t>>, Problem> {
        let Some((_, node)) = self.take(key) else {
            return Ok(None);
        };
        self.scalar(key, node).map(Some)
    }

    /// Returns the strings and numbers of a key: one, or a list.
    pub(crate) fn list(&mut self, key: &str) -> Result<Option<Vec<Scalar<'t>>>, Problem> {
        let Some((_, node)) = self.take(key) else {
            return Ok(None);
        };
        self.scalars(key, node).map(Some)
    }

    fn scalars(&self, key: &str, node: Node<'t>) -> Result<Vec<Scalar<'t>>, Problem> {
        match node {
            (DeValue::Array(values), span) => {
                let all = values
                    .into_iter()
                    .map(|value| self.scalar(key, node_of(value)));
                let all: Vec<_> = all.collect::<Result<_, _>>()?;
                match all.is_empty() {
                    true => Err(self.problem_at(span.start, key, "the list is empty")),
                    false => Ok(all),
                }
            }
            node => Ok(vec![self.scalar(key, node)?]),
        }
    }

    fn scalar(&self, key: &str, (value, span): Node<'t>) -> Result<Scalar<'t>, Problem> {
        let (text, is_number) = match value {
            DeValue::String(text) => (text, false),
            DeValue::Integer(number) if number.radix() == 10 => {
                (number.as_str().to_owned().into(), true)
            }
            DeValue::Float(number) => (number.as_str().to_owned().into(), true),
            other => {
                let why = format!("expected a string or a number, found {}", described(&other));
                return Err(self.problem_at(span.start, key, why));
            }
        };
        let at = span.start;
        Ok(Scalar {
            text,
            at,
            is_number,
        })
    }

    /// Returns the Boolean of a key, or false if absent.
    pub(crate) fn flag(&mut self, key: &str) -> Result<bool, Problem> {
        match self.take(key) {
            None => Ok(false),
            Some((_, (DeValue::Boolean(value), _))) => Ok(value),
            Some((at, (other, _))) => {
                let why = format!("expected true or false, found {}", described(&other));
                Err(self.problem_at(at, key, why))
            }
        }
    }

    /// Returns all remaining keys, with their positions, and their values as lists.
    pub(crate) fn rest(&mut self) -> Result<Vec<(String, usize, Vec<Scalar<'t>>)>, Problem> {
        let keys = std::mem::take(&mut self.keys);
        let all = keys.into_iter().map(|(key, at, node)| {
            let values = self.scalars(&key, node)?;
            Ok((key, at, values))
        });
        all.collect()
    }

    /// Checks that the table has no other keys.
    pub(crate) fn finish(&self) -> Result<(), Problem> {
        match self.keys.first() {
            None => Ok(()),
            Some((key, at, _)) => Err(self.problem_at(*at, key, "no such key")),
        }
    }
}

fn described(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::Table(_) => "a table",
        DeValue::Array(_) => "a list",
        DeValue::Boolean(_) => "a Boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Integer(number) if number.radix() != 10 => "an integer that is not decimal",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::String(_) => "a string",
    }
}
