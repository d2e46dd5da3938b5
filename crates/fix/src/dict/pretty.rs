//! Messages for people: every field with its name and the meaning of its value, groups indented.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::dictionary::{DictGroup, Dictionary, Version};
use crate::codec::{Field, GroupSpec, Message};
use crate::tag;
use fanfare_wire::text::Escaped;

/// A field of a message with its place in the groups.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// The number of groups around the field.
    pub depth: usize,
    /// The number of the entry that the field begins, from 1.
    pub entry: Option<usize>,
    /// The field.
    pub field: Field<'a>,
    /// The name of the field, if the dictionary knows it.
    pub name: Option<&'a str>,
    /// The meaning of the value, if the field has a list of values.
    pub meaning: Option<&'a str>,
}

/// Returns a message's fields in order, as the dictionary sees them. Any message is accepted:
/// unknown fields have no name, and a group ends before the first field that is not in it. The call
/// allocates.
pub fn lines<'a>(dictionary: &'a Dictionary, message: &Message<'a>) -> Vec<Line<'a>> {
    let fields: Vec<Field<'a>> = message.fields().collect();
    let mut walk = Walk {
        dictionary,
        fields: &fields,
        lines: Vec::with_capacity(fields.len()),
    };
    let msg_type = msg_type(message);
    let mut at = 0;
    while let Some(field) = fields.get(at) {
        walk.push(field, 0, None);
        at = match dictionary.group(msg_type, field.tag) {
            Some(group) => walk.group(group, at + 1, 1),
            None => at + 1,
        };
    }
    walk.lines
}

/// Returns MsgType(35), even if it is not the third field.
fn msg_type<'a>(message: &Message<'a>) -> &'a [u8] {
    message.get(tag::MSG_TYPE).unwrap_or_default()
}

struct Walk<'a, 'b> {
    dictionary: &'a Dictionary,
    fields: &'b [Field<'a>],
    lines: Vec<Line<'a>>,
}

impl<'a> Walk<'a, '_> {
    fn push(&mut self, field: &Field<'a>, depth: usize, entry: Option<usize>) {
        self.lines.push(Line {
            depth,
            entry,
            field: *field,
            name: self.dictionary.field_name(field.tag),
            meaning: match field.tag {
                tag::MSG_TYPE => self.dictionary.message_name(field.value),
                tag => self.dictionary.value_name(tag, field.value),
            },
        });
    }

    /// Adds the lines of a group's entries from `at` on, and returns the position after them.
    fn group(&mut self, group: DictGroup<'a>, mut at: usize, depth: usize) -> usize {
        let mut entry = 0;
        let mut seen: Vec<u32> = Vec::new();
        while let Some(field) = self.fields.get(at).filter(|f| group.has_member(f.tag)) {
            let begins = entry == 0 || field.tag == group.delimiter() || seen.contains(&field.tag);
            if begins {
                entry += 1;
                seen.clear();
            }
            seen.push(field.tag);
            self.push(field, depth, begins.then_some(entry));
            at = match group.nested(field.tag) {
                Some(nested) => self.group(nested, at + 1, depth + 1),
                None => at + 1,
            };
        }
        at
    }
}

/// A printer that writes a message over several lines, by its [`lines`].
#[derive(Debug, Clone, Copy)]
pub struct Pretty<'a> {
    dictionary: &'a Dictionary,
    message: Message<'a>,
    colour: bool,
}

impl<'a> Pretty<'a> {
    /// Returns a printer of a message in plain text.
    pub fn new(dictionary: &'a Dictionary, message: Message<'a>) -> Self {
        Self {
            dictionary,
            message,
            colour: false,
        }
    }

    /// Sets whether the text has the colours of a terminal, as ANSI escapes.
    #[must_use]
    pub fn colour(self, colour: bool) -> Self {
        Self { colour, ..self }
    }

    fn paint(&self, f: &mut fmt::Formatter<'_>, code: &str, text: &str) -> fmt::Result {
        // The names of a dictionary file are text from outside, too.
        let text = Escaped::text(text);
        if self.colour {
            write!(f, "\x1b[{code}m{text}\x1b[0m")
        } else {
            write!(f, "{text}")
        }
    }
}

const BOLD: &str = "1";
const DIM: &str = "2";
const GREEN: &str = "32";
const CYAN: &str = "36";

impl fmt::Display for Pretty<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let msg_type = msg_type(&self.message);
        let name = self.dictionary.message_name(msg_type).unwrap_or("Unknown");
        self.paint(f, BOLD, name)?;
        writeln!(f, "({})", Printable(msg_type))?;
        for line in lines(self.dictionary, &self.message) {
            let indent = 2 + 4 * line.depth;
            match line.entry {
                Some(number) => {
                    let mark = format!("[{number}]");
                    self.paint(f, DIM, &format!("{mark:>width$} ", width = indent - 1))?;
                }
                None => write!(f, "{:indent$}", "")?,
            }
            self.paint(f, CYAN, line.name.unwrap_or("?"))?;
            let tag = Printable(line.field.tag_bytes());
            write!(f, "({tag}) = {}", Printable(line.field.value))?;
            if let Some(meaning) = line.meaning {
                f.write_str(" ")?;
                self.paint(f, GREEN, meaning)?;
            }
            f.write_str("\n")?;
        }
        Ok(())
    }
}

/// A message or a part of one as text, with `|` for SOH, and with unsafe characters escaped as by
/// [`Escaped`].
#[derive(Debug, Clone, Copy)]
pub struct Printable<'a>(
    /// The bytes.
    pub &'a [u8],
);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Escaped::fields(self.0))
    }
}

/// Returns the built-in dictionary with the names of a message: that of BeginString(8), or, over
/// FIXT.1.1, that of ApplVerID(1128) or DefaultApplVerID(1137), or else the newest. Its header and
/// session messages are those of the transport.
pub fn names_of(message: &Message<'_>) -> Arc<Dictionary> {
    names_for(message, None)
}

/// Returns the same dictionary as [`names_of`]. For a message over FIXT.1.1 that names no version,
/// `default` is the DefaultApplVerID(1137) that its session has agreed on in its Logon(A).
pub fn names_for(message: &Message<'_>, default: Option<Version>) -> Arc<Dictionary> {
    let begin_string = std::str::from_utf8(message.begin_string()).unwrap_or("");
    match Version::from_name(begin_string) {
        Some(Version::Fixt11) | None => {}
        Some(version) => return Dictionary::built_in(version),
    }
    let named = message
        .get(tag::APPL_VER_ID)
        .or_else(|| message.get(tag::DEFAULT_APPL_VER_ID));
    let version = named.and_then(Version::from_appl_ver_id).or(default);
    match version.unwrap_or(Version::Fix50Sp2) {
        Version::Fix50 => names_over_transport(Version::Fix50, 0),
        Version::Fix50Sp1 => names_over_transport(Version::Fix50Sp1, 1),
        Version::Fix50Sp2 => names_over_transport(Version::Fix50Sp2, 2),
        version => Dictionary::built_in(version),
    }
}

fn names_over_transport(version: Version, slot: usize) -> Arc<Dictionary> {
    static LOADED: [OnceLock<Arc<Dictionary>>; 3] = [const { OnceLock::new() }; 3];
    let load = || {
        let application = Dictionary::built_in(version);
        let transport = Dictionary::built_in(Version::Fixt11);
        let merged = application.merged(transport.schema().clone());
        merged.map_or(application, Arc::new)
    };
    match LOADED.get(slot) {
        Some(cell) => Arc::clone(cell.get_or_init(load)),
        None => load(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Decoder;

    fn pretty(begin_string: &str, fields: &[u8], colour: bool) -> String {
        let mut bytes = format!("8={begin_string}\x019={}\x01", fields.len()).into_bytes();
        bytes.extend(fields.iter().map(|b| if *b == b'|' { 1 } else { *b }));
        let sum = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        bytes.extend(format!("10={sum:03}\x01").into_bytes());
        let mut decoder = Decoder::new();
        let message = decoder.decode(&bytes).unwrap();
        let names = names_of(&message);
        let text = Pretty::new(&names, message).colour(colour).to_string();
        // The frame's numbers are not what is tested.
        let is_frame = |line: &str| line.contains("(9)") || line.contains("(10)");
        text.lines()
            .filter(|line| !is_frame(line))
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn groups_are_indented() {
        let fields = b"35=D|453=2|448=A|447=D|802=1|523=X|803=1|448=B|54=1|9999=z|";
        let expected = "\
NewOrderSingle(D)
  BeginString(8) = FIX.4.4
  MsgType(35) = D NewOrderSingle
  NoPartyIDs(453) = 2
  [1] PartyID(448) = A
      PartyIDSource(447) = D Proprietary
      NoPartySubIDs(802) = 1
      [1] PartySubID(523) = X
          PartySubIDType(803) = 1 Firm
  [2] PartyID(448) = B
  Side(54) = 1 Buy
  ?(9999) = z";
        assert_eq!(pretty("FIX.4.4", fields, false), expected);
    }

    #[test]
    fn names_come_from_transport_and_application() {
        let logon = pretty("FIXT.1.1", b"35=A|98=0|108=30|1137=9|", false);
        assert!(
            logon.contains("DefaultApplVerID(1137) = 9 FIX50SP2"),
            "{logon}"
        );
        let order = pretty("FIXT.1.1", b"35=D|1128=7|54=2|", false);
        assert!(order.contains("Side(54) = 2 Sell"), "{order}");
    }

    #[test]
    fn values_can_not_steer_the_terminal() {
        let text = pretty(
            "FIX.4.2",
            b"35=0|112=\x1b[2J\xff\\\xc2\x9b\xe2\x80\xae|",
            false,
        );
        let expected = r"TestReqID(112) = \u{1b}[2J\xff\\\u{9b}\u{202e}";
        assert!(text.contains(expected), "{text}");
        let coloured = pretty("FIX.4.2", b"35=0|112=x|", true);
        assert!(
            coloured.contains("\x1b[36mTestReqID\x1b[0m(112) = x"),
            "{coloured}"
        );
    }
}
