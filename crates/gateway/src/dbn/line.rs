//! The lines that clients send: fields of `key=value`, separated by `|`.

use fanfare_market::dbn::live::{LiveSchema, SymbolType};
use std::collections::HashSet;

/// The symbol that stands for all instruments.
const ALL: &str = "ALL_SYMBOLS";
/// The most symbols of a request. Clients of Databento divide longer lists.
const SYMBOLS: usize = 2_000;
/// The intervals of heartbeats that a client may request, in seconds.
const HEARTBEATS: std::ops::RangeInclusive<u64> = 1..=1_800;

/// The response to a challenge, with the parameters of the session.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Auth<'a> {
    pub(super) answer: &'a str,
    pub(super) dataset: &'a str,
    pub(super) ts_out: bool,
    pub(super) zstd: bool,
    /// The interval of heartbeats in seconds, if the client requests one.
    pub(super) heartbeat: Option<u64>,
    /// Whether a slow client is warned, and disconnected at the limit, instead of having records
    /// dropped.
    pub(super) warns: bool,
    pub(super) client: &'a str,
}

/// A subscription, or the end of one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request<'a> {
    pub(super) ends: bool,
    pub(super) schema: LiveSchema,
    pub(super) by: SymbolType,
    /// The symbols, or `None` for all instruments.
    pub(super) symbols: Option<Vec<&'a str>>,
    pub(super) snapshot: bool,
    /// The start in nanoseconds since 1970, or `None` for now.
    pub(super) start: Option<u64>,
    pub(super) id: Option<u32>,
}

/// A line of an authenticated client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Request(Request<'a>),
    Start,
}

/// The fields of a line.
struct Fields<'a> {
    all: Vec<(&'a str, &'a str)>,
    /// A key that occurs twice.
    twice: Option<&'a str>,
}

impl<'a> Fields<'a> {
    fn of(line: &'a str) -> Self {
        let parts = line.split('|');
        let fields = parts.map(|part| part.split_once('=').unwrap_or((part, "")));
        let all: Vec<_> = fields.filter(|(key, _)| !key.is_empty()).collect();
        let mut keys = HashSet::new();
        let twice = all.iter().find(|(key, _)| !keys.insert(*key));
        Self {
            twice: twice.map(|(key, _)| *key),
            all,
        }
    }

    /// Refuses a key that occurs twice: one of its values would be ignored.
    fn check(&self) -> Result<(), String> {
        match self.twice {
            Some(key) => Err(format!("the key `{key}` occurs twice")),
            None => Ok(()),
        }
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        let (_, value) = self.all.iter().find(|(own, _)| *own == key)?;
        Some(value)
    }

    fn need(&self, key: &str) -> Result<&'a str, String> {
        let value = self.get(key).filter(|value| !value.is_empty());
        value.ok_or_else(|| format!("`{key}` is missing"))
    }

    /// Parses a field with 0 or 1.
    fn flag(&self, key: &str, absent: bool) -> Result<bool, String> {
        match self.get(key) {
            None | Some("") => Ok(absent),
            Some("0") => Ok(false),
            Some("1") => Ok(true),
            Some(other) => Err(format!("`{key}` must be 0 or 1, not `{other}`")),
        }
    }

    fn number<T: std::str::FromStr>(&self, key: &str) -> Result<Option<T>, String> {
        let text = self.get(key).filter(|text| !text.is_empty());
        let number = text.map(|text| {
            let parsed = text.parse();
            parsed.map_err(|_| format!("`{key}` must be a number, not `{text}`"))
        });
        number.transpose()
    }
}

/// Parses the first line of a client. Unknown fields are ignored.
///
/// # Errors
/// Returns the fault of the line.
pub(super) fn auth(line: &str) -> Result<Auth<'_>, String> {
    let fields = Fields::of(line);
    fields.check()?;
    let answer = fields.need("auth")?;
    let encoding = fields.get("encoding").unwrap_or("dbn");
    if encoding != "dbn" {
        return Err(format!("`encoding` must be dbn, not `{encoding}`"));
    }
    let zstd = match fields.get("compression") {
        None | Some("" | "none") => false,
        Some("zstd") => true,
        Some(other) => return Err(format!("`compression` must be none or zstd, not `{other}`")),
    };
    let heartbeat = fields.number("heartbeat_interval_s")?;
    if let Some(seconds) = heartbeat.filter(|seconds| !HEARTBEATS.contains(seconds)) {
        return Err(format!(
            "`heartbeat_interval_s` must be between 1 and 1800, not {seconds}"
        ));
    }
    let warns = match fields.get("slow_reader_behavior") {
        None | Some("" | "skip") => false,
        Some("warn") => true,
        Some(other) => {
            return Err(format!(
                "`slow_reader_behavior` must be skip or warn, not `{other}`"
            ));
        }
    };
    Ok(Auth {
        answer,
        dataset: fields.need("dataset")?,
        ts_out: fields.flag("ts_out", false)?,
        zstd,
        heartbeat,
        warns,
        client: fields.get("client").unwrap_or_default(),
    })
}

/// The reason why a line was refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// The line is not a request, and the session cannot continue.
    Line(String),
    /// The subscription is not possible.
    Subscription(String),
}

/// Parses a line of an authenticated client. Unknown fields are ignored.
///
/// # Errors
/// Returns the fault of the line.
pub(super) fn line(line: &str) -> Result<Line<'_>, Wrong> {
    let fields = Fields::of(line);
    if fields.get("start_session").is_some() {
        fields.check().map_err(Wrong::Line)?;
        return Ok(Line::Start);
    }
    let ends = fields.get("unsubscribe").is_some();
    if !ends && fields.get("schema").is_none() {
        let why = "expected a subscription or start_session".to_owned();
        return Err(Wrong::Line(why));
    }
    request(&fields, ends)
        .map(Line::Request)
        .map_err(Wrong::Subscription)
}

fn request<'a>(fields: &Fields<'a>, ends: bool) -> Result<Request<'a>, String> {
    fields.check()?;
    let name = fields.need("schema")?;
    let schema = LiveSchema::of_name(name).ok_or_else(|| {
        let all = LiveSchema::ALL.map(LiveSchema::name).join(", ");
        format!("unknown schema `{name}`: expected one of {all}")
    })?;
    let by = match fields.get("stype_in").unwrap_or("raw_symbol") {
        "raw_symbol" => SymbolType::RawSymbol,
        "instrument_id" => SymbolType::InstrumentId,
        other => {
            return Err(format!(
                "`stype_in` must be raw_symbol or instrument_id, not `{other}`"
            ));
        }
    };
    let symbols = fields.need("symbols")?;
    let symbols = match symbols.split(',').any(|symbol| symbol == ALL) {
        true => None,
        false => {
            let each = symbols.split(',').filter(|symbol| !symbol.is_empty());
            Some(each.collect::<Vec<_>>())
        }
    };
    if symbols.as_ref().is_some_and(Vec::is_empty) {
        return Err("`symbols` is missing".to_owned());
    }
    if let Some(count) = symbols.as_ref().map(Vec::len).filter(|len| *len > SYMBOLS) {
        return Err(format!("`symbols` must be at most {SYMBOLS}, not {count}"));
    }
    let snapshot = fields.flag("snapshot", false)?;
    let start = fields.number("start")?;
    if snapshot && schema != LiveSchema::Mbo {
        return Err(format!(
            "snapshot=1 needs schema mbo, not {schema}",
            schema = schema.name()
        ));
    }
    if snapshot && start.is_some() {
        return Err("`snapshot` and `start` exclude each other".to_owned());
    }
    Ok(Request {
        ends,
        schema,
        by,
        symbols,
        snapshot,
        start,
        id: fields.number("id")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stock_clients_first_lines_are_read() {
        let told = auth(
            "auth=ab-cde|dataset=FANFARE|encoding=dbn|ts_out=1|compression=zstd|\
             heartbeat_interval_s=7|slow_reader_behavior=warn|client=Python 1.2|details=x",
        );
        let told = told.unwrap();
        assert_eq!(
            (told.answer, told.dataset, told.client),
            ("ab-cde", "FANFARE", "Python 1.2")
        );
        assert!(told.ts_out && told.zstd && told.warns && told.heartbeat == Some(7));
        let plain = auth("auth=a|dataset=F").unwrap();
        assert!(!plain.ts_out && !plain.zstd && !plain.warns && plain.heartbeat.is_none());
        for (wrong, why) in [
            ("dataset=F", "`auth` is missing"),
            ("auth=a", "`dataset` is missing"),
            ("auth=a|dataset=F|encoding=csv", "`encoding`"),
            ("auth=a|dataset=F|compression=lz4", "`compression`"),
            ("auth=a|dataset=F|ts_out=2", "`ts_out`"),
            (
                "auth=a|dataset=F|heartbeat_interval_s=0",
                "between 1 and 1800",
            ),
            ("auth=a|dataset=F|heartbeat_interval_s=x", "a number"),
            ("auth=a|dataset=F|slow_reader_behavior=wait", "skip or warn"),
            (
                "auth=a|dataset=F|dataset=G",
                "the key `dataset` occurs twice",
            ),
        ] {
            assert!(auth(wrong).unwrap_err().contains(why), "{wrong}");
        }
    }

    #[test]
    fn requests_are_read_and_wrong_ones_say_why() {
        let Ok(Line::Request(all)) =
            line("schema=mbo|stype_in=raw_symbol|symbols=ALL_SYMBOLS|snapshot=1|is_last=1|id=3")
        else {
            panic!("no request");
        };
        assert!(all.snapshot && !all.ends && all.symbols.is_none() && all.id == Some(3));
        let Ok(Line::Request(some)) =
            line("unsubscribe|schema=trades|stype_in=instrument_id|symbols=1,2,|is_last=1")
        else {
            panic!("no request");
        };
        assert!(some.ends && some.by == SymbolType::InstrumentId);
        assert_eq!(some.symbols.as_deref(), Some(["1", "2"].as_slice()));
        let of = |count: usize| format!("schema=trades|symbols={}", ["A"].repeat(count).join(","));
        assert!(line(&of(SYMBOLS)).is_ok());
        let Err(Wrong::Subscription(why)) = line(&of(SYMBOLS + 1)) else {
            panic!("too many symbols");
        };
        assert_eq!(why, "`symbols` must be at most 2000, not 2001");
        for start in ["start_session", "start_session=0"] {
            assert_eq!(line(start), Ok(Line::Start));
        }
        assert!(matches!(line("hello"), Err(Wrong::Line(_))));
        let twice = "the key `start_session` occurs twice".to_owned();
        assert_eq!(
            line("start_session=0|start_session=1"),
            Err(Wrong::Line(twice))
        );
        for (wrong, why) in [
            ("schema=cmbp-1|symbols=A", "unknown schema `cmbp-1`"),
            ("schema=mbo|symbols=A|stype_in=parent", "not `parent`"),
            (
                "schema=mbo|symbols=ES.c.0|stype_in=continuous",
                "not `continuous`",
            ),
            ("schema=mbo", "`symbols` is missing"),
            ("schema=mbo|symbols=,", "`symbols` is missing"),
            ("schema=trades|symbols=A|snapshot=1", "needs schema mbo"),
            (
                "schema=mbo|symbols=A|snapshot=1|start=0",
                "exclude each other",
            ),
            ("schema=mbo|symbols=A|start=x", "`start` must be a number"),
            ("schema=mbo|symbols=A|snapshot=x", "0 or 1"),
            (
                "schema=trades|schema=mbo|symbols=A",
                "the key `schema` occurs twice",
            ),
            (
                "unsubscribe|schema=mbo|symbols=A|symbols=B",
                "the key `symbols` occurs twice",
            ),
        ] {
            match line(wrong) {
                Err(Wrong::Subscription(told)) => assert!(told.contains(why), "{wrong}: {told}"),
                other => panic!("{wrong}: {other:?}"),
            }
        }
    }
}
