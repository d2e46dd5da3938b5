//! Parsing of lines into sections, and typed values of a section.

use super::{SettingsError, SettingsFault, keys};
use std::fmt::Display;
use std::ops::RangeInclusive;

/// The sections of a file.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) default: Entries,
    pub(super) sessions: Vec<Entries>,
}

/// One section.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// The line of its header.
    pub(super) line: usize,
    /// Whether it is `[DEFAULT]` itself, as a template.
    pub(super) is_default: bool,
    pub(super) entries: Vec<Entry>,
}

/// One setting.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) line: usize,
    pub(super) key: String,
    pub(super) value: String,
}

pub(super) fn read(text: &str) -> Result<File, SettingsError> {
    // Editors of Windows begin a file with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut file = File::default();
    // The section of the next settings: none yet, the default, or the last session.
    let mut in_session = None;
    for (line, content) in (1..).zip(text.lines().map(str::trim)) {
        let fault = |fault| SettingsError { line, fault };
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        if content.eq_ignore_ascii_case("[DEFAULT]") {
            in_session = Some(false);
            file.default.line = line;
            continue;
        }
        if content.eq_ignore_ascii_case("[SESSION]") {
            in_session = Some(true);
            let entries = Vec::new();
            file.sessions.push(Entries {
                line,
                is_default: false,
                entries,
            });
            continue;
        }
        let (key, value) = content
            .split_once('=')
            .filter(|(key, _)| !key.trim().is_empty() && !key.starts_with('['))
            .ok_or_else(|| fault(SettingsFault::NotALine))?;
        let section = match in_session {
            Some(true) => file.sessions.last_mut(),
            Some(false) => Some(&mut file.default),
            None => None,
        };
        let section = section.ok_or_else(|| fault(SettingsFault::NoSection))?;
        let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
        if section.find(&key).is_some() {
            return Err(fault(SettingsFault::Twice(key)));
        }
        let mut others = section.entries.iter();
        let other = others.find(|own| own.value != value && keys::are_same_of_tls(&own.key, &key));
        if let Some(other) = other {
            return Err(fault(SettingsFault::TwoSpellings(other.key.clone(), key)));
        }
        section.entries.push(Entry { line, key, value });
    }
    if file.has_default_template()? {
        file.sessions.push(Entries {
            line: file.default.line,
            is_default: true,
            entries: Vec::new(),
        });
    }
    if file.sessions.is_empty() {
        let (line, fault) = (text.lines().count().max(1), SettingsFault::NoSession);
        return Err(SettingsError { line, fault });
    }
    Ok(file)
}

impl File {
    /// Returns whether `[DEFAULT]` is a template besides the sessions (`DynamicSessions`).
    fn has_default_template(&self) -> Result<bool, SettingsError> {
        let key = "DynamicSessions";
        let inside = self.sessions.iter().find_map(|session| session.find(key));
        if let Some(entry) = inside {
            let place = "must be in [DEFAULT], or in a section with AcceptorTemplate=Y";
            return Err(entry.wrong(place));
        }
        let nothing = Entries::default();
        let section = Section {
            own: &self.default,
            default: &nothing,
        };
        section.flag(key, false)
    }
}

impl Entries {
    pub(super) fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    fn find(&self, key: &str) -> Option<&Entry> {
        let mut entries = self.entries.iter();
        entries.find(|entry| entry.key.eq_ignore_ascii_case(key))
    }
}

impl Entry {
    /// Returns the error of an invalid value; `expected` is a predicate, such as "must be Y or N".
    /// A secret is not shown.
    pub(super) fn wrong(&self, expected: impl Display) -> SettingsError {
        let value = match keys::is_secret(&self.key) {
            true => "***",
            false => self.value.as_str(),
        };
        let fault = SettingsFault::Value {
            key: self.key.clone(),
            value: value.to_owned(),
            expected: expected.to_string(),
        };
        let line = self.line;
        SettingsError { line, fault }
    }

    /// Parses the value by `parse`, whose error describes a valid one.
    pub(super) fn parse<T, E: Display>(
        &self,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, SettingsError> {
        parse(&self.value).map_err(|why| self.wrong(why))
    }
}

/// A session's section, with the default settings beneath. Keys are found in any case.
#[derive(Clone, Copy)]
pub(super) struct Section<'a> {
    pub(super) own: &'a Entries,
    pub(super) default: &'a Entries,
}

impl<'a> Section<'a> {
    pub(super) fn find(&self, key: &str) -> Option<&'a Entry> {
        let other = keys::other_name(key);
        let find = |entries: &'a Entries| {
            let entry = entries.find(key);
            entry.or_else(|| other.and_then(|other| entries.find(other)))
        };
        find(self.own).or_else(|| find(self.default))
    }

    /// Returns the setting with one of these names. The session's own setting overrides the default
    /// one, whichever of the names each has.
    pub(super) fn find_any(&self, names: &[&str]) -> Option<&'a Entry> {
        let find = |entries: &'a Entries| names.iter().find_map(|name| entries.find(name));
        find(self.own).or_else(|| find(self.default))
    }

    /// Returns all settings of the session: its own, followed by the default ones that it does not
    /// override.
    pub(super) fn effective(&self) -> impl Iterator<Item = &'a Entry> {
        let (own, default) = (self.own, self.default);
        let is_inherited = |entry: &&Entry| own.find(&entry.key).is_none();
        let inherited = default.entries.iter().filter(is_inherited);
        own.entries.iter().chain(inherited)
    }

    /// Returns all settings whose keys are `key`, or `key` followed by a number, in the order of
    /// the file.
    pub(super) fn numbered(&self, key: &str) -> Vec<&'a Entry> {
        let is_meant = |entry: &&Entry| keys::is_numbered(&entry.key, key);
        let own = self.own.entries.iter().filter(is_meant);
        let inherited = self.default.entries.iter().filter(is_meant);
        let inherited = inherited.filter(|entry| self.own.find(&entry.key).is_none());
        inherited.chain(own).collect()
    }

    pub(super) fn need(&self, key: &'static str) -> Result<&'a Entry, SettingsError> {
        self.find(key).ok_or_else(|| self.missing(key))
    }

    pub(super) fn missing(&self, key: &'static str) -> SettingsError {
        let fault = SettingsFault::Missing(key);
        let line = self.own.line;
        SettingsError { line, fault }
    }

    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        self.find(key).map(|entry| entry.value.as_str())
    }

    /// Returns the value of a switch, `Y` or `N`.
    pub(super) fn flag(&self, key: &str, default: bool) -> Result<bool, SettingsError> {
        match self.find(key) {
            None => Ok(default),
            Some(entry) => match entry.value.as_str() {
                "Y" | "y" => Ok(true),
                "N" | "n" => Ok(false),
                _ => Err(entry.wrong("must be Y or N")),
            },
        }
    }

    /// Returns a whole number.
    pub(super) fn number(
        &self,
        key: &str,
        default: u64,
        range: RangeInclusive<u64>,
    ) -> Result<u64, SettingsError> {
        let Some(entry) = self.find(key) else {
            return Ok(default);
        };
        let value = entry.value.parse().ok().filter(|v| range.contains(v));
        value.ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            entry.wrong(format!("must be between {least} and {most}"))
        })
    }
}
