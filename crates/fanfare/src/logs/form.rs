//! A line of the program's log, in each of its formats.
//!
//! A line may contain text of a peer: control characters are escaped here, whatever their origin,
//! so that a line is one line and moves no cursor.

use fanfare_operator::iso;
use fanfare_wire::text::{JsonString, Shown, beginning};
use std::fmt::{self, Write as _};
use std::time::SystemTime;
use tracing::Level;
use tracing::field::{Field, Visit};

/// The format of all lines of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// For a terminal: `10:17:34.123 WARN session: …`. Times are UTC.
    Terminal {
        /// Whether levels are coloured.
        coloured: bool,
    },
    /// For files: `2026-11-25T10:17:34.123456Z WARN session: …`.
    Text,
    /// For the journal, which has its own times: `<4>session: …`.
    Journal,
    /// A JSON object.
    Json,
}

/// The content of a line.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// The message.
    pub(crate) text: String,
    /// Further fields: the name, the value, and whether it is a number or a boolean.
    pub(crate) fields: Vec<(&'static str, String, bool)>,
}

impl Record {
    pub(crate) fn of(event: &tracing::Event<'_>) -> Self {
        let mut record = Self::default();
        event.record(&mut record);
        record
    }

    fn put(&mut self, field: &Field, value: String, is_bare: bool) {
        let value = cut(value);
        match field.name() {
            "message" => self.text = value,
            name => self.fields.push((name, value, is_bare)),
        }
    }
}

/// The longest message, and the longest value of a field, in bytes. Of longer ones a line has the
/// beginning.
const LONGEST: usize = 16 << 10;

fn cut(value: String) -> String {
    let shown = beginning(&value, LONGEST);
    match value.len() - shown.len() {
        0 => value,
        more => format!("{shown} … ({more} bytes more)"),
    }
}

impl Visit for Record {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.to_string(), true);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.to_string(), true);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.to_string(), true);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.to_owned(), false);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"), false);
    }
}

impl Form {
    /// Formats the line of a record, with its end.
    pub(crate) fn line(self, time: SystemTime, level: Level, target: &str, of: &Record) -> String {
        let mut line = String::with_capacity(64 + of.text.len());
        // Writing to a String cannot fail.
        let _ = match self {
            Self::Json => json(&mut line, time, level, target, of),
            _ => self.text(&mut line, time, level, target, of),
        };
        line.push('\n');
        line
    }

    fn text(
        self,
        line: &mut String,
        time: SystemTime,
        level: Level,
        target: &str,
        of: &Record,
    ) -> fmt::Result {
        match self {
            Self::Terminal { coloured } => {
                write!(line, "{} ", iso(time).get(11..23).unwrap_or_default())?;
                match (level, coloured) {
                    (Level::INFO, _) => {}
                    (Level::ERROR, true) => line.write_str("\x1b[31mERROR\x1b[0m ")?,
                    (Level::WARN, true) => line.write_str("\x1b[33mWARN\x1b[0m ")?,
                    (level, _) => write!(line, "{level} ")?,
                }
            }
            Self::Journal => write!(line, "<{}>", priority(level))?,
            _ => write!(line, "{} {level} ", iso(time))?,
        }
        write!(line, "{target}: {}", Shown(&of.text))?;
        // A field whose value is in the message is not repeated.
        let fields = of.fields.iter();
        let mut unsaid = fields.filter(|(_, value, _)| !of.text.contains(value.as_str()));
        unsaid.try_for_each(|(name, value, is_bare)| match *is_bare || is_word(value) {
            true => write!(line, " {name}={}", Shown(value)),
            false => write!(line, " {name}={}", JsonString(value)),
        })
    }
}

fn json(
    line: &mut String,
    time: SystemTime,
    level: Level,
    target: &str,
    of: &Record,
) -> fmt::Result {
    let level = level.as_str().to_ascii_lowercase();
    let time = iso(time);
    write!(line, "{{\"time\":\"{time}\",\"level\":\"{level}\"")?;
    write!(line, ",\"target\":{}", JsonString(target))?;
    write!(line, ",\"message\":{}", JsonString(&of.text))?;
    for (name, value, is_bare) in &of.fields {
        match is_bare {
            true => write!(line, ",\"{name}\":{value}")?,
            false => write!(line, ",\"{name}\":{}", JsonString(value))?,
        }
    }
    line.write_char('}')
}

/// Returns the priority of the journal and of syslog.
const fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}

/// Returns whether a value needs no quotes among others.
fn is_word(value: &str) -> bool {
    !value.is_empty() && !value.contains(|char: char| char.is_whitespace() || "\"'=".contains(char))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_wire::text::is_unsafe;
    use std::time::Duration;

    fn record(text: &str, fields: &[(&'static str, &str, bool)]) -> Record {
        let fields = fields.iter();
        Record {
            text: text.to_owned(),
            fields: fields
                .map(|(name, value, bare)| (*name, (*value).to_owned(), *bare))
                .collect(),
        }
    }

    fn line(form: Form, level: Level, record: &Record) -> String {
        let time = SystemTime::UNIX_EPOCH + Duration::new(1_795_601_854, 123_456_789);
        let line = form.line(time, level, "session", record);
        let line = line.strip_suffix('\n').unwrap();
        assert!(!line.contains('\n'), "{line:?}");
        line.to_owned()
    }

    const FORMS: [Form; 4] = [
        Form::Terminal { coloured: false },
        Form::Text,
        Form::Journal,
        Form::Json,
    ];

    #[test]
    fn each_form_has_what_its_reader_needs() {
        let of = record(
            "A->B logged on",
            &[
                ("session", "A->B", false),
                ("peer", "[::1]:5", false),
                ("count", "3", true),
            ],
        );
        let told = FORMS.map(|form| line(form, Level::WARN, &of));
        let expected = [
            "10:17:34.123 WARN session: A->B logged on peer=[::1]:5 count=3",
            "2026-11-25T10:17:34.123456Z WARN session: A->B logged on peer=[::1]:5 count=3",
            "<4>session: A->B logged on peer=[::1]:5 count=3",
            "{\"time\":\"2026-11-25T10:17:34.123456Z\",\"level\":\"warn\",\"target\":\"session\",\
             \"message\":\"A->B logged on\",\"session\":\"A->B\",\"peer\":\"[::1]:5\",\"count\":3}",
        ];
        assert_eq!(told, expected);
        let terminal = Form::Terminal { coloured: true };
        assert!(line(terminal, Level::ERROR, &of).starts_with("10:17:34.123 \x1b[31mERROR\x1b[0m"));
        // An expected event is the line without a level.
        let plain = line(terminal, Level::INFO, &of);
        assert!(plain.starts_with("10:17:34.123 session: A->B"), "{plain}");
    }

    #[test]
    fn a_line_has_the_beginning_of_a_long_text() {
        let (short, long) = ("é".repeat(LONGEST / 2), "é".repeat(LONGEST));
        assert_eq!(cut(short.clone()), short);
        let told = cut(long);
        assert_eq!(told, format!("{short} … ({LONGEST} bytes more)"));
    }

    #[test]
    fn text_of_others_is_one_line_that_moves_no_cursor() {
        let evil = "a\n<3>forged\r\x1b[2J\u{202e}\u{9b}\"b\\n";
        let of = record(evil, &[("why", evil, false), ("peer", "x\ny z", false)]);
        for form in FORMS {
            let line = line(form, Level::INFO, &of);
            assert!(!line.contains(is_unsafe), "{line:?}");
            let Form::Json = form else { continue };
            let object: serde_json::Value = serde_json::from_str(&line).unwrap();
            assert_eq!(object["message"], evil);
            assert_eq!(object["peer"], "x\ny z");
        }
        let text = line(Form::Text, Level::INFO, &of);
        assert!(
            text.contains(r#"a\n<3>forged\r\u{1b}[2J\u{202e}\u{9b}"b\n peer="x\ny z""#),
            "{text}"
        );
    }
}
