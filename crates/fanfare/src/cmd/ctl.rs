//! `fanfare ctl`: asks and steers a running gateway, at its control socket.

use anyhow::{Context, Result, bail};
use clap::{Args as ClapArgs, Subcommand};
use fanfare_gateway::PortName;
use fanfare_wire::text::Escaped;
use serde_json::{Map, Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use crate::print::say;

/// How long an answer may take: a reload waits for the sessions that it ends.
const PATIENCE: Duration = Duration::from_secs(90);

/// Options of `fanfare ctl`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The gateway's control socket: `control` of its configuration.
    #[arg(long, short, value_name = "PATH")]
    socket: PathBuf,
    /// Print the answer as JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Version, uptime, ports.
    Status,
    /// All counters.
    Counters,
    /// The sessions that are there, with numbers and queues as they were up to some seconds ago.
    Sessions(Which),
    /// Log sessions out.
    Logout {
        #[command(flatten)]
        which: Which,
        /// Text(58) of the Logout.
        #[arg(long)]
        text: Option<String>,
    },
    /// End sessions without a Logout.
    Disconnect(Which),
    /// Read the configuration again, as SIGHUP does.
    Reload,
    /// The users, without their secrets.
    Users {
        /// The user alone.
        user: Option<String>,
    },
    /// The named lists of instruments, and their sizes.
    Lists,
    /// The limits in force.
    Limits,
}

/// Which sessions; all, if nothing is said.
#[derive(Debug, ClapArgs)]
struct Which {
    /// Those with this SenderCompID(49) of their Logons.
    sender: Option<String>,
    /// Those with this TargetCompID(56).
    #[arg(long)]
    target: Option<String>,
    /// Those of this user.
    #[arg(long)]
    user: Option<String>,
    /// Those of one port: producers or consumers.
    #[arg(long, value_parser = port)]
    port: Option<PortName>,
}

fn port(text: &str) -> Result<PortName, String> {
    let all = [PortName::Producers, PortName::Consumers];
    let found = all.into_iter().find(|port| port.name() == text);
    found.ok_or_else(|| "producers or consumers".to_owned())
}

impl Which {
    fn fields(&self) -> Value {
        json!({
            "sender": self.sender,
            "target": self.target,
            "user": self.user,
            "port": self.port.map(PortName::name),
        })
    }
}

impl Command {
    fn request(&self) -> Value {
        let (name, more) = match self {
            Self::Status => ("status", json!({})),
            Self::Counters => ("counters", json!({})),
            Self::Sessions(which) => ("sessions", which.fields()),
            Self::Logout { which, text } => {
                let mut fields = which.fields();
                fields["text"] = json!(text);
                ("logout", fields)
            }
            Self::Disconnect(which) => ("disconnect", which.fields()),
            Self::Reload => ("reload", json!({})),
            Self::Users { user } => ("users", json!({ "user": user })),
            Self::Lists => ("lists", json!({})),
            Self::Limits => ("limits", json!({})),
        };
        let mut request = json!({ "command": name });
        if let (Some(request), Value::Object(more)) = (request.as_object_mut(), more) {
            request.extend(more.into_iter().filter(|(_, value)| !value.is_null()));
        }
        request
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let result = ask(args).with_context(|| args.socket.display().to_string())?;
    match result {
        result if args.json => say!("{result}"),
        Value::Array(rows) => table(&rows),
        Value::Object(fields) => list(&fields, ""),
        other => say!("{}", text(&other)),
    }
    Ok(ExitCode::SUCCESS)
}

/// The result of the command.
fn ask(args: &Args) -> Result<Value> {
    let mut stream = UnixStream::connect(&args.socket).context("cannot connect")?;
    stream.set_read_timeout(Some(PATIENCE))?;
    // An answer of "too many connections" may have come before.
    let sent = stream.write_all(format!("{}\n", args.command.request()).as_bytes());
    let mut line = String::new();
    let read = BufReader::new(stream).read_line(&mut line);
    read.and(sent).context("no answer")?;
    let mut answer: Value = serde_json::from_str(&line).context("no answer")?;
    match answer["ok"].as_bool() {
        Some(true) => Ok(answer["result"].take()),
        _ => bail!("{}", text(&answer["error"])),
    }
}

/// Objects with the same fields, one a line.
fn table(rows: &[Value]) {
    let Some(Value::Object(first)) = rows.first() else {
        return;
    };
    let names: Vec<&String> = first.keys().collect();
    let mut lines = vec![
        names
            .iter()
            .map(|name| name.replace('_', " "))
            .collect::<Vec<_>>(),
    ];
    lines.extend(
        rows.iter()
            .map(|row| names.iter().map(|name| text(&row[*name])).collect()),
    );
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..names.len()).map(width).collect();
    for line in &lines {
        let cells = line.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        say!("{}", cells.join("  ").trim_end());
    }
}

/// Fields, one a line.
fn list(fields: &Map<String, Value>, before: &str) {
    for (name, value) in fields {
        match value {
            Value::Array(rows) if rows.first().is_some_and(Value::is_object) => {
                for row in rows.iter().filter_map(Value::as_object) {
                    let own = row.get("name").map(text).unwrap_or_default();
                    list(row, &format!("{before}{own} "));
                }
            }
            _ if name == "name" => {}
            value => say!("{before}{}: {}", name.replace('_', " "), text(value)),
        }
    }
}

/// Without what moves a cursor, in the lines that it has.
fn escaped(text: &str) -> String {
    let lines = text.split('\n').map(|line| Escaped::text(line).to_string());
    lines.collect::<Vec<_>>().join("\n")
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => escaped(text),
        Value::Null => String::new(),
        Value::Bool(is) => if *is { "yes" } else { "no" }.to_owned(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
