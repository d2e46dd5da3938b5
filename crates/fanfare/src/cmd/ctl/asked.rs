//! The commands as arguments, built from the command tables of the programs.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, Error, FromArgMatches, Id, Subcommand};
use fanfare_gateway::GatewayOperator;
use fanfare_operator::{Field, Form, HostOperator};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The default subcommand of a command that has others: `sessions list` is `sessions`.
const LIST: &str = "list";

/// A command with its fields.
#[derive(Debug)]
pub(super) struct Asked {
    name: String,
    fields: Map<String, Value>,
}

impl Asked {
    /// Returns the line for the control socket.
    pub(super) fn request(&self) -> Value {
        let mut request = Map::new();
        request.insert("command".to_owned(), self.name.clone().into());
        request.extend(self.fields.clone());
        Value::Object(request)
    }
}

/// A command of one program, or of both, as an argument.
struct Row {
    name: &'static str,
    about: &'static str,
    /// The fields that any program takes; one is required if all programs require it.
    takes: Vec<Field>,
}

impl Row {
    /// Returns the commands of all programs.
    fn all() -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for command in [GatewayOperator::commands(), HostOperator::commands()].concat() {
            let same = all.iter_mut().find(|row| row.name == command.name);
            match same {
                Some(row) => row.also_takes(command.takes),
                None => all.push(Self {
                    name: command.name,
                    about: command.about,
                    takes: command.takes.to_vec(),
                }),
            }
        }
        all
    }

    fn also_takes(&mut self, more: &[Field]) {
        for own in &mut self.takes {
            let same = more.iter().find(|field| field.name == own.name);
            own.is_needed &= same.is_some_and(|field| field.is_needed);
        }
        for field in more {
            if !self.takes.iter().any(|own| own.name == field.name) {
                self.takes.push(Field {
                    is_needed: false,
                    ..*field
                });
            }
        }
    }
}

/// A word with the words that may follow it.
#[derive(Default)]
struct Word {
    row: Option<Row>,
    next: BTreeMap<&'static str, Self>,
}

impl Word {
    fn all() -> Self {
        let mut all = Self::default();
        for row in Row::all() {
            let words = row.name.split(' ');
            let place = words.fold(&mut all, |at, word| at.next.entry(word).or_default());
            place.row = Some(row);
        }
        all
    }

    fn command(&self, name: &'static str) -> Command {
        let mut command = Command::new(name);
        let Some(row) = &self.row else {
            let words: Vec<&str> = self.next.keys().copied().collect();
            let command = command.about(format!("One of {}.", words.join(", ")));
            return self.with_next(command.subcommand_required(true));
        };
        command = with_fields(command.about(row.about), row);
        if self.next.is_empty() {
            return command;
        }
        let list = with_fields(Command::new(LIST).about(row.about), row);
        self.with_next(command.subcommand(list))
            .args_conflicts_with_subcommands(true)
    }

    fn with_next(&self, command: Command) -> Command {
        let next = self.next.iter();
        command.subcommands(next.map(|(name, word)| word.command(name)))
    }

    /// Returns the command that was given below this word.
    fn read(&self, matches: &ArgMatches) -> Option<Asked> {
        match matches.subcommand() {
            Some((LIST, below)) if self.row.is_some() => Some(asked(self.row.as_ref()?, below)),
            Some((name, below)) => self.next.get(name)?.read(below),
            None => Some(asked(self.row.as_ref()?, matches)),
        }
    }
}

fn with_fields(command: Command, row: &Row) -> Command {
    let first = row.takes.iter().filter(|field| field.is_first);
    // Their names are accepted, too.
    let first = first.map(|field| {
        let option = option(field, named(field)).conflicts_with(field.name);
        option.hide(true)
    });
    let own = row.takes.iter().map(|field| match field.is_first {
        true if field.is_needed => {
            argument(field, field.name.into()).required_unless_present(named(field))
        }
        true => argument(field, field.name.into()),
        false => option(field, field.name.into()).required(field.is_needed),
    });
    command.args(own).args(first)
}

/// Returns the identity of the option of a field that is also taken without its name.
fn named(field: &Field) -> Id {
    format!("--{}", field.name).into()
}

/// Returns a field as an option: `--name`.
fn option(field: &Field, id: Id) -> Arg {
    argument(field, id).long(field.name.replace('_', "-"))
}

fn argument(field: &Field, id: Id) -> Arg {
    let field = *field;
    let arg = Arg::new(id).help(field.about.trim_end_matches('.'));
    let read = move |text: &str| field.read(text).map_err(|error| error.text);
    let name = field.name.to_uppercase();
    match field.form {
        Form::Flag => arg.action(ArgAction::SetTrue),
        Form::OneOf(words) => {
            let words = PossibleValuesParser::new(words.iter().copied()).map(Value::String);
            arg.value_parser(words).value_name(name)
        }
        Form::Number => arg.value_parser(read).value_name("N"),
        // A moment may be a negative number.
        Form::Text(_) => arg
            .value_parser(read)
            .value_name(name)
            .allow_negative_numbers(true),
    }
}

fn asked(row: &Row, matches: &ArgMatches) -> Asked {
    let mut fields = Map::new();
    for field in &row.takes {
        let value = match field.form {
            Form::Flag => matches.get_flag(field.name).then_some(Value::Bool(true)),
            _ => {
                let given = matches.get_one::<Value>(field.name);
                let of_option = || {
                    let id = field.is_first.then(|| named(field))?;
                    matches.get_one::<Value>(id.as_str())
                };
                given.or_else(of_option).cloned()
            }
        };
        fields.extend(value.map(|value| (field.name.to_owned(), value)));
    }
    let name = row.name.to_owned();
    Asked { name, fields }
}

impl FromArgMatches for Asked {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let asked = Word::all().read(matches);
        asked.ok_or_else(|| Error::new(ErrorKind::MissingSubcommand))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for Asked {
    fn augment_subcommands(command: Command) -> Command {
        Word::all().with_next(command).subcommand_required(true)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        Word::all().next.contains_key(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(words: &[&str]) -> Result<Value, Error> {
        let command = Asked::augment_subcommands(Command::new("ctl"));
        let matches = command.try_get_matches_from([&["ctl"], words].concat())?;
        Asked::from_arg_matches(&matches).map(|asked| asked.request())
    }

    #[test]
    fn words_become_the_line_of_the_socket() {
        let is = |words: &[&str], line| assert_eq!(read(words).unwrap(), line, "{words:?}");
        is(&["status"], json!({ "command": "status" }));
        let sessions = json!({ "command": "sessions", "session": "DESK" });
        is(&["sessions", "DESK"], sessions.clone());
        is(&["sessions", "list", "DESK"], sessions);
        is(
            &["sessions", "logout", "DESK", "--text", "bye"],
            json!({ "command": "sessions logout", "session": "DESK", "text": "bye" }),
        );
        let books = json!({ "command": "books", "symbol": "SIZ6", "at": "-5.5" });
        is(&["books", "SIZ6", "--at", "-5.5"], books.clone());
        is(&["books", "--at", "-5.5", "--symbol", "SIZ6"], books);
        let users = json!({ "command": "users", "user": "desk" });
        is(&["users", "--user", "desk"], users);
        let worst = json!({ "command": "sessions", "sort": "lag" });
        is(&["sessions", "--sort", "lag"], worst);
        is(
            &[
                "sessions",
                "set-seq",
                "DESK",
                "--next-sender",
                "7",
                "--force",
            ],
            json!({
                "command": "sessions set-seq", "session": "DESK", "next_sender": 7, "force": true,
            }),
        );
    }

    #[test]
    fn completions_know_the_words_of_a_field() {
        let command = Asked::augment_subcommands(Command::new("ctl"));
        let sessions = command.find_subcommand("sessions").unwrap();
        let mut all = sessions.get_arguments();
        let sort = all.find(|arg| arg.get_id() == "sort").unwrap();
        let words = sort.get_possible_values();
        let words: Vec<_> = words.iter().map(|word| word.get_name()).collect();
        assert_eq!(words, ["name", "lag", "queue"]);
    }

    #[test]
    fn what_a_command_does_not_take_is_refused_before_it_is_sent() {
        for words in [
            &["shutdown"] as &[&str],
            &["status", "more"],
            &["sessions", "--port", "nowhere"],
            &["books"],
            &["books", "SIZ6", "--symbol", "SIZ6"],
            &["sessions", "logout", "A", "--text", "a\u{1}b"],
            &["sessions", "set-seq", "A", "--next-sender", "-1"],
            &[
                "sessions",
                "set-seq",
                "A",
                "--next-target",
                "18446744073709551616",
            ],
            &["sessions", "nonsense", "A"],
        ] {
            assert!(read(words).is_err(), "{words:?}");
        }
    }
}
