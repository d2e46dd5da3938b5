//! A parsed mapping file, checked in itself, but not yet against templates.

use super::keys::{EventKey, MessageKey};
use super::time::{DateTime, Format, offset};
use crate::event::Kind;
use crate::instruments::{Column, IdSource};
use crate::toml_text::{Problem, Scalar, Table};

/// A mapping file.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) unknown: Unknown,
    pub(super) source: IdSource,
    /// Whether fields that a message does not have are an error.
    pub(super) is_strict: bool,
    pub(super) messages: Vec<MessageMap>,
}

/// The treatment of instruments that were never defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Unknown instruments are added to the table, until that is full.
    Add,
    /// Entries of unknown instruments are ignored and counted.
    Count,
}

/// The reference to a field: a tag or a name.
#[derive(Clone, Debug)]
pub(super) struct FieldRef {
    pub(super) name: String,
    pub(super) tag: Option<u32>,
    pub(super) place: Problem,
}

/// Alternative fields, of which the first that is present is used.
pub(super) type Refs = Vec<FieldRef>;

/// Fields, each with the values that it may have.
pub(super) type Conditions = Vec<(FieldRef, Vec<String>)>;

/// The purpose of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// Entries that change books, trades and statistics.
    Changes,
    /// A snapshot of one instrument.
    Snapshot,
    /// Definitions of instruments.
    Definition,
    /// SecurityTradingStatus(326) of an instrument.
    Status,
    /// TradSesStatus(340) of all instruments.
    SessionStatus,
    /// A reset of the decoder.
    Reset,
    /// A restart of the sequence numbers.
    SequenceReset,
    /// The beginning of the feed.
    Logon,
    /// The end of the feed.
    Logout,
    /// A sign that the feed is alive.
    Heartbeat,
    /// The end of a generator's feed.
    Done,
    /// None: the message is ignored.
    Ignore,
}

pub(super) const DOES: [(&str, Does); 12] = [
    ("changes", Does::Changes),
    ("snapshot", Does::Snapshot),
    ("definition", Does::Definition),
    ("status", Does::Status),
    ("session-status", Does::SessionStatus),
    ("reset", Does::Reset),
    ("sequence-reset", Does::SequenceReset),
    ("logon", Does::Logon),
    ("logout", Does::Logout),
    ("heartbeat", Does::Heartbeat),
    ("done", Does::Done),
    ("ignore", Does::Ignore),
];

impl Does {
    /// Returns the word for it in mapping files.
    pub fn name(self) -> &'static str {
        let found = DOES.iter().find(|(_, does)| *does == self);
        found.map_or("", |(name, _)| name)
    }

    /// Returns whether the message controls the channel, and is never passed on.
    pub const fn is_control(self) -> bool {
        matches!(
            self,
            Self::Reset
                | Self::SequenceReset
                | Self::Logon
                | Self::Logout
                | Self::Heartbeat
                | Self::Done
        )
    }

    const fn has_entries(self) -> bool {
        matches!(self, Self::Changes | Self::Snapshot | Self::Definition)
    }

    const fn has_instrument(self) -> bool {
        self.has_entries() || matches!(self, Self::Status)
    }

    const fn has_status(self) -> bool {
        matches!(self, Self::Status | Self::SessionStatus)
    }

    /// Returns whether messages of this purpose can have the key.
    const fn has(self, key: MessageKey) -> bool {
        match key {
            MessageKey::Number => true,
            MessageKey::Next => matches!(self, Self::SequenceReset),
            MessageKey::Status => self.has_status(),
            MessageKey::Last
            | MessageKey::Total
            | MessageKey::RptSeq
            | MessageKey::LastFragment
            | MessageKey::FirstFragment
            | MessageKey::Fragment => matches!(self, Self::Snapshot),
        }
    }
}

/// The mapping of a message.
#[derive(Clone, Debug)]
pub(super) struct MessageMap {
    pub(super) place: Problem,
    pub(super) of: Binding,
    pub(super) is_optional: bool,
    pub(super) does: Does,
    pub(super) entries: Option<FieldRef>,
    pub(super) fields: Vec<(MessageKey, Refs)>,
    pub(super) sent: Option<TimeMap>,
    pub(super) id: Refs,
    pub(super) source: Refs,
    pub(super) symbol: Refs,
    pub(super) carries: bool,
    pub(super) events: Vec<EventMap>,
    pub(super) definition: Vec<(Column, Refs)>,
    pub(super) maturity: Option<TimeMap>,
    /// The values with which a definition closes its instrument.
    pub(super) closed: Conditions,
    /// The values with which a definition has only what changes.
    pub(super) partial: Conditions,
}

/// The selection of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    /// By the template's name.
    Template(String),
    /// By its identifier.
    Id(u32),
    /// By MsgType(35), which is a constant in templates.
    MsgType(String),
}

impl std::fmt::Display for Binding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Template(name) => write!(f, "template {name}"),
            Self::Id(id) => write!(f, "template {id}"),
            Self::MsgType(text) => write!(f, "MsgType(35) {text}"),
        }
    }
}

/// A time of one or two fields.
#[derive(Clone, Debug)]
pub(super) struct TimeMap {
    pub(super) fields: Refs,
    pub(super) dates: Refs,
    pub(super) how: DateTime,
}

/// The mapping of an entry.
#[derive(Clone, Debug)]
pub(super) struct EventMap {
    /// The kind of event, or `None` if the entry is ignored.
    pub(super) kind: Option<Kind>,
    pub(super) when: Conditions,
    pub(super) with: Vec<Refs>,
    pub(super) without: Vec<Refs>,
    /// The fields, including those of `[message.entry]`.
    pub(super) fields: Vec<(EventKey, Refs)>,
    pub(super) time: Option<TimeMap>,
    pub(super) entry_type: Option<u8>,
    pub(super) hashes_id: bool,
}

const KINDS: [(&str, Option<Kind>); 7] = [
    ("level", Some(Kind::Level)),
    ("order", Some(Kind::Order)),
    ("trade", Some(Kind::Trade)),
    ("statistic", Some(Kind::Statistic)),
    ("status", Some(Kind::Status)),
    ("clear", Some(Kind::Clear)),
    ("ignore", None),
];

/// Returns the word for a kind of event in mapping files.
pub(super) fn kind_name(kind: Option<Kind>) -> &'static str {
    let found = KINDS.iter().find(|(_, other)| *other == kind);
    found.map_or("", |(name, _)| name)
}

pub(super) fn parse(text: &str) -> Result<Document, Problem> {
    let mut root = Table::parse(text)?;
    let zone = match root.text("utc-offset")? {
        None => 0,
        Some(value) => read_offset(&root, &value)?,
    };
    let _ = root.text("name")?;
    let (unknown, source) = instruments(&mut root)?;
    let is_strict = match choice(&mut root, "absent", &[("error", true), ("ignore", false)])? {
        Some((is_strict, _)) => is_strict,
        None => true,
    };
    let mut messages: Vec<MessageMap> = Vec::new();
    for table in root.tables("message")? {
        let message = message(table, zone)?;
        if let Some(other) = messages.iter().find(|other| other.of == message.of) {
            let line = other.place.line;
            let why = format!("duplicate: {} is mapped on line {line} too", message.of);
            return Err(Problem {
                why,
                ..message.place
            });
        }
        messages.push(message);
    }
    root.finish()?;
    if messages.is_empty() {
        return Err(root.problem("message", "missing: a mapping needs [[message]]"));
    }
    Ok(Document {
        unknown,
        source,
        is_strict,
        messages,
    })
}

fn read_offset(table: &Table<'_>, value: &Scalar<'_>) -> Result<i32, Problem> {
    let wrong = || {
        let why = format!("`{}` is not an offset such as +03:00 or Z", value.text);
        table.problem_at(value.at, "utc-offset", why)
    };
    offset(&value.text).ok_or_else(wrong)
}

fn instruments(root: &mut Table<'_>) -> Result<(Unknown, IdSource), Problem> {
    let Some(mut table) = root.table("instruments")? else {
        return Ok((Unknown::Add, IdSource::NONE));
    };
    let words = [("add", Unknown::Add), ("count", Unknown::Count)];
    let unknown = choice(&mut table, "unknown", &words)?;
    let source = match table.text_or_number("source")? {
        None => IdSource::NONE,
        Some(value) => IdSource::parse(value.text.as_bytes()).ok_or_else(|| {
            let why = format!("`{}` has more than 4 characters", value.text);
            table.problem_at(value.at, "source", why)
        })?,
    };
    table.finish()?;
    Ok((unknown.map_or(Unknown::Add, |(unknown, _)| unknown), source))
}

/// Returns the value of a key, which must be one of these words, and its position.
fn choice<T: Copy>(
    table: &mut Table<'_>,
    key: &str,
    words: &[(&str, T)],
) -> Result<Option<(T, usize)>, Problem> {
    let Some(value) = table.text(key)? else {
        return Ok(None);
    };
    match words.iter().find(|(word, _)| *word == value.text) {
        Some((_, chosen)) => Ok(Some((*chosen, value.at))),
        None => {
            let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let all = all.join(", ");
            let why = format!("unknown value `{}`: expected one of {all}", value.text);
            Err(table.problem_at(value.at, key, why))
        }
    }
}

/// Checks that fragments have an end, and numbers that show gaps.
fn check_fragments(table: &Table<'_>, message: &MessageMap) -> Result<(), Problem> {
    let has = |key| message.field(key).is_some();
    let (last, number) = (MessageKey::LastFragment, MessageKey::Number);
    if (has(MessageKey::Fragment) || has(MessageKey::FirstFragment)) && !has(last) {
        let why = "missing: the field that marks the last fragment of a snapshot";
        return Err(table.problem(last.name(), why));
    }
    if has(last) && !has(number) {
        let why = "missing: a lost fragment cannot be detected without numbers";
        return Err(table.problem(number.name(), why));
    }
    Ok(())
}

fn message(mut table: Table<'_>, zone: i32) -> Result<MessageMap, Problem> {
    let of = binding(&mut table)?;
    let Some((does, _)) = choice(&mut table, "does", &DOES)? else {
        return Err(table.problem("does", "missing: what the message does"));
    };
    let is_optional = table.flag("optional")?;
    let mut message = MessageMap {
        place: table.problem("", ""),
        of,
        is_optional,
        does,
        entries: None,
        fields: Vec::new(),
        sent: time(&mut table, "sent", zone)?,
        id: Vec::new(),
        source: Vec::new(),
        symbol: Vec::new(),
        carries: false,
        events: Vec::new(),
        definition: Vec::new(),
        maturity: None,
        closed: Vec::new(),
        partial: Vec::new(),
    };
    for key in MessageKey::ALL.into_iter().filter(|key| does.has(*key)) {
        if let Some(refs) = refs(&mut table, key.name())? {
            message.fields.push((key, refs));
        }
    }
    check_fragments(&table, &message)?;
    let status = MessageKey::Status;
    if does.has_status() && message.field(status).is_none() {
        return Err(table.problem(status.name(), "missing: the field with the status"));
    }
    if does.has_entries() {
        message.entries = refs(&mut table, "entries")?.and_then(|refs| refs.into_iter().next());
    }
    if does.has_instrument() {
        instrument(&mut table, &mut message)?;
    }
    match does {
        Does::Changes | Does::Snapshot => events(&mut table, &mut message, zone)?,
        Does::Definition => definition(&mut table, &mut message, zone)?,
        _ => {}
    }
    table.finish()?;
    Ok(message)
}

impl MessageMap {
    fn field(&self, key: MessageKey) -> Option<&Refs> {
        let found = self.fields.iter().find(|(other, _)| *other == key);
        found.map(|(_, refs)| refs)
    }
}

fn binding(table: &mut Table<'_>) -> Result<Binding, Problem> {
    let template = table.text_or_number("template")?;
    let msg_type = table.text_or_number("msg-type")?;
    match (template, msg_type) {
        (Some(template), None) => match template.is_number {
            false => Ok(Binding::Template(template.text.into_owned())),
            true => template.text.parse().map(Binding::Id).map_err(|_| {
                let why = format!("`{}` is not the identifier of a template", template.text);
                table.problem_at(template.at, "template", why)
            }),
        },
        (None, Some(msg_type)) => Ok(Binding::MsgType(msg_type.text.into_owned())),
        (Some(_), Some(both)) => {
            let why = "a message must have either template or msg-type, not both";
            Err(table.problem_at(both.at, "msg-type", why))
        }
        (None, None) => Err(table.problem("", "missing: template or msg-type")),
    }
}

/// Parses the fields of a key: one, or a list of which the first one that is present is used.
fn refs(table: &mut Table<'_>, key: &str) -> Result<Option<Refs>, Problem> {
    let Some(values) = table.list(key)? else {
        return Ok(None);
    };
    let fields = values.iter().map(|value| field(table, key, value));
    fields.collect::<Result<_, _>>().map(Some)
}

/// Parses a list of fields, each of which is used.
fn each(table: &mut Table<'_>, key: &str) -> Result<Vec<Refs>, Problem> {
    let found = refs(table, key)?.unwrap_or_default();
    Ok(found.into_iter().map(|field| vec![field]).collect())
}

fn field(table: &Table<'_>, key: &str, value: &Scalar<'_>) -> Result<FieldRef, Problem> {
    let name = value.text.as_ref();
    let tag = name.parse().ok().filter(|tag| *tag != 0);
    if name.is_empty() || value.is_number && tag.is_none() {
        let why = format!("`{name}` is neither a tag nor a name");
        return Err(table.problem_at(value.at, key, why));
    }
    Ok(FieldRef {
        name: name.to_owned(),
        tag,
        place: table.problem_at(value.at, key, ""),
    })
}

/// Parses `{ field = 52, format = "…" }`, with optional `date` and `utc-offset`. A field alone is a
/// UTCTimestamp.
fn time(parent: &mut Table<'_>, key: &str, zone: i32) -> Result<Option<TimeMap>, Problem> {
    let Some(mut table) = parent.table_or(key, "field")? else {
        return Ok(None);
    };
    let Some(fields) = refs(&mut table, "field")? else {
        return Err(table.problem("field", "missing: the field with the time"));
    };
    let format = match table.text("format")? {
        None => Format::Timestamp,
        Some(name) => Format::from_name(&name.text).ok_or_else(|| {
            let all = Format::names();
            let why = format!("unknown format `{}`: expected one of {all}", name.text);
            table.problem_at(name.at, "format", why)
        })?,
    };
    let zone = match table.text("utc-offset")? {
        None => zone,
        Some(value) => read_offset(&table, &value)?,
    };
    let dates = refs(&mut table, "date")?.unwrap_or_default();
    if !dates.is_empty() && !format.is_of_day() {
        return Err(table.problem("date", "the format includes a date already"));
    }
    table.finish()?;
    Ok(Some(TimeMap {
        fields,
        dates,
        how: DateTime::new(format, zone),
    }))
}

fn instrument(table: &mut Table<'_>, message: &mut MessageMap) -> Result<(), Problem> {
    let Some(mut names) = table.table("instrument")? else {
        return Err(table.problem("instrument", "missing: where the instrument is"));
    };
    message.id = refs(&mut names, "id")?.unwrap_or_default();
    message.source = refs(&mut names, "source")?.unwrap_or_default();
    message.symbol = refs(&mut names, "symbol")?.unwrap_or_default();
    message.carries = names.flag("carry")?;
    if message.id.is_empty() && message.symbol.is_empty() {
        return Err(names.problem("", "missing: id or symbol"));
    }
    names.finish()
}

fn events(table: &mut Table<'_>, message: &mut MessageMap, zone: i32) -> Result<(), Problem> {
    let mut common = Vec::new();
    let mut common_time = None;
    if let Some(mut entry) = table.table("entry")? {
        event_fields(&mut entry, &mut common)?;
        common_time = time(&mut entry, "time", zone)?;
        entry.finish()?;
    }
    for mut event in table.tables("event")? {
        let Some((kind, _)) = choice(&mut event, "kind", &KINDS)? else {
            return Err(event.problem("kind", "missing: what becomes of the entry"));
        };
        let mut fields = common.clone();
        event_fields(&mut event, &mut fields)?;
        let own_time = time(&mut event, "time", zone)?;
        let ids = [("number", false), ("hash", true)];
        let hashes_id = choice(&mut event, "id-text", &ids)?;
        message.events.push(EventMap {
            kind,
            when: conditions(&mut event, "when")?,
            with: each(&mut event, "with")?,
            without: each(&mut event, "without")?,
            fields,
            time: own_time.or_else(|| common_time.clone()),
            entry_type: entry_type(&mut event)?,
            hashes_id: hashes_id.is_some_and(|(hashes, _)| hashes),
        });
        event.finish()?;
    }
    match message.events.is_empty() {
        true => Err(table.problem("event", "missing: what becomes of the entries")),
        false => Ok(()),
    }
}

fn event_fields(table: &mut Table<'_>, fields: &mut Vec<(EventKey, Refs)>) -> Result<(), Problem> {
    for key in EventKey::ALL {
        if let Some(refs) = refs(table, key.name())? {
            fields.retain(|(other, _)| *other != key);
            fields.push((key, refs));
        }
    }
    Ok(())
}

fn entry_type(table: &mut Table<'_>) -> Result<Option<u8>, Problem> {
    let Some(value) = table.text_or_number("entry-type")? else {
        return Ok(None);
    };
    match value.text.as_bytes() {
        [byte] if byte.is_ascii_graphic() => Ok(Some(*byte)),
        _ => {
            let why = format!("`{}` is not one character", value.text);
            Err(table.problem_at(value.at, "entry-type", why))
        }
    }
}

/// Parses `{ 269 = ["0", "1"] }`.
fn conditions(parent: &mut Table<'_>, key: &str) -> Result<Conditions, Problem> {
    let Some(mut table) = parent.table(key)? else {
        return Ok(Vec::new());
    };
    let mut conditions = Vec::new();
    for (key, at, values) in table.rest()? {
        let is_number = key.bytes().all(|byte| byte.is_ascii_digit());
        let name = Scalar {
            text: key.clone().into(),
            at,
            is_number,
        };
        let field = field(&table, &key, &name)?;
        let values = values.into_iter().map(|value| value.text.into_owned());
        conditions.push((field, values.collect()));
    }
    Ok(conditions)
}

fn definition(table: &mut Table<'_>, message: &mut MessageMap, zone: i32) -> Result<(), Problem> {
    let Some(mut fields) = table.table("definition")? else {
        return Ok(());
    };
    for key in Column::ALL {
        if let Some(refs) = refs(&mut fields, key.name())? {
            message.definition.push((key, refs));
        }
    }
    message.maturity = maturity(&mut fields, zone)?;
    message.closed = conditions(&mut fields, "closed")?;
    message.partial = conditions(&mut fields, "partial")?;
    fields.finish()
}

/// Parses `{ date = 541, time = 1079, format = "HHMMSSmmm" }`: a date with an optional time of day.
fn maturity(parent: &mut Table<'_>, zone: i32) -> Result<Option<TimeMap>, Problem> {
    let Some(mut table) = parent.table_or("maturity", "date")? else {
        return Ok(None);
    };
    let Some(dates) = refs(&mut table, "date")? else {
        return Err(table.problem("date", "missing: the field with the date"));
    };
    let fields = refs(&mut table, "time")?.unwrap_or_default();
    let format = match table.text("format")? {
        None => Format::TimeOnly,
        Some(name) => match Format::from_name(&name.text) {
            Some(format) if format.is_of_day() => format,
            _ => {
                let why = format!("`{}` is not a format of a time without a date", name.text);
                return Err(table.problem_at(name.at, "format", why));
            }
        },
    };
    table.finish()?;
    Ok(Some(TimeMap {
        fields,
        dates,
        how: DateTime::new(format, zone),
    }))
}
