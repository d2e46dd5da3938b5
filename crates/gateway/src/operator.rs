//! What an operator can ask for, whichever way the question comes.

use crate::audit::iso_of;
use crate::gateway_handle::GatewayHandle;
use crate::users::PortName;
use crate::users::roster::Seat;
use fanfare_engine::counters::Counters;
use fanfare_wire::text::Escaped;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// How long a reload may take until who asked for it is told that it is still under way.
const RELOAD: Duration = Duration::from_secs(60);
/// Text(58) of the Logouts that operators ask for, unless they say another.
const LOGGED_OUT: &str = "logged out by the operator";
/// The longest Text(58), in bytes.
const LONGEST_TEXT: usize = 256;
/// The most reloads that wait for whoever runs the gateway.
const RELOADS: usize = 16;

/// Answers operators, from any thread. Clones answer for the same gateway.
#[derive(Clone)]
pub struct Operator {
    gateway: GatewayHandle,
    reload: SyncSender<ReloadAsked>,
}

/// The operators' wishes that the configuration is read again, for whoever runs the gateway.
#[derive(Debug)]
pub struct Reloads(Receiver<ReloadAsked>);

impl Reloads {
    /// The next wish, if there is one.
    #[must_use]
    pub fn next(&self) -> Option<ReloadAsked> {
        self.0.try_recv().ok()
    }
}

/// An operator's wish that the configuration is read again.
#[derive(Debug)]
pub struct ReloadAsked(SyncSender<Result<String, String>>);

impl ReloadAsked {
    /// Says what became of it: what was changed, or why nothing was.
    pub fn answer(self, outcome: Result<String, String>) {
        // Who asked may be gone.
        let _ = self.0.try_send(outcome);
    }
}

/// A line of a client.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    /// Comes back in the answer.
    #[serde(default)]
    id: Value,
    command: Command,
    port: Option<PortName>,
    user: Option<String>,
    sender: Option<String>,
    target: Option<String>,
    text: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Command {
    Status,
    Counters,
    Sessions,
    Logout,
    Disconnect,
    Reload,
    Users,
    Lists,
    Limits,
}

type Outcome = Result<Value, String>;

impl Operator {
    /// For a running gateway. Whoever runs it looks after the reloads that are asked for; without
    /// [`Reloads`], they are refused.
    #[must_use]
    pub fn new(gateway: GatewayHandle) -> (Self, Reloads) {
        let (reload, reloads) = sync_channel(RELOADS);
        (Self { gateway, reload }, Reloads(reloads))
    }

    /// Does what a request asks for, and returns the result. Requests and results are those of
    /// the control socket (docs/control.md). Waits for sessions that it ends, for up to 3 s, and
    /// for a reload, for up to a minute.
    ///
    /// # Errors
    /// No such request, or why it was not done, for the operator to read.
    pub fn ask(&self, request: Value) -> Result<Value, String> {
        let ask = serde_json::from_value(request);
        self.run(&ask.map_err(|error| escaped(&error))?)
    }

    /// The counters of the gateway.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.gateway.shared().counters
    }

    /// Notes in the audit file what came of something that was asked.
    pub fn note(&self, asked: &str, outcome: &str) {
        self.gateway
            .shared()
            .audit
            .operator(asked, &Escaped::text(outcome));
    }

    /// The answer to a line of the control socket.
    pub(crate) fn answer(&self, line: &[u8]) -> Value {
        let ask: Ask = match serde_json::from_slice(line) {
            Ok(ask) => ask,
            Err(error) => return json!({ "ok": false, "error": escaped(&error) }),
        };
        let mut answer = match self.run(&ask) {
            Ok(result) => json!({ "ok": true, "result": result }),
            Err(error) => json!({ "ok": false, "error": error }),
        };
        if let (Some(answer), false) = (answer.as_object_mut(), ask.id.is_null()) {
            answer.insert("id".to_owned(), ask.id);
        }
        answer
    }

    fn run(&self, ask: &Ask) -> Outcome {
        ask.check()?;
        match ask.command {
            Command::Status => Ok(self.status()),
            Command::Counters => Ok(self.values()),
            Command::Sessions => Ok(self.sessions(ask)),
            Command::Logout | Command::Disconnect => self.end(ask),
            Command::Reload => self.reload(),
            Command::Users => Ok(self.users(ask)),
            Command::Lists => Ok(self.lists()),
            Command::Limits => Ok(self.limits()),
        }
    }

    fn status(&self) -> Value {
        let shared = self.gateway.shared();
        let ports = self.gateway.ports().map(|(name, port)| {
            let sessions = self.gateway.sessions(|seat| seat.port == name).len();
            let config = &port.rules.read().config;
            json!({
                "name": name.name(),
                "address": port.address.to_string(),
                "tls": config.tls.is_some(),
                "sessions": sessions,
                "most": config.max_sessions,
                "open": shared.users.read().takes_strangers(name),
            })
        });
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "uptime_s": shared.begun.elapsed().as_secs(),
            "ports": ports.collect::<Vec<_>>(),
            "users": shared.users.read().users().count(),
        })
    }

    fn values(&self) -> Value {
        let all = self.gateway.shared().counters.snapshot();
        let named = all.iter().map(|one| (one.label(), Value::from(one.value)));
        Value::Object(named.collect())
    }

    fn sessions(&self, ask: &Ask) -> Value {
        let mut seats = self.gateway.sessions(|seat| ask.wants(seat));
        seats.sort_by_cached_key(|seat| (seat.port, seat.id.to_string()));
        Value::Array(seats.iter().map(described).collect())
    }

    fn end(&self, ask: &Ask) -> Outcome {
        let what = ask.to_string();
        let outcome = self.end_sessions(ask);
        let told = match &outcome {
            Ok(ended) => format!("{} sessions", ended["sessions"]),
            Err(error) => format!("refused: {error}"),
        };
        self.gateway.shared().audit.operator(&what, &told);
        outcome
    }

    fn end_sessions(&self, ask: &Ask) -> Outcome {
        if ask.user.is_none() && ask.sender.is_none() {
            return Err(
                "which sessions? `sender`, `user` or both, with `target` and `port`".into(),
            );
        }
        let seats = self.gateway.sessions(|seat| ask.wants(seat));
        if seats.is_empty() {
            return Err("there is no such session".to_owned());
        }
        let text = ask.text.as_deref().unwrap_or(LOGGED_OUT);
        let text = (ask.command == Command::Logout).then_some(text);
        let forced = self.gateway.end(&seats, text);
        Ok(json!({ "sessions": seats.len(), "forced": forced }))
    }

    fn reload(&self) -> Outcome {
        let (answer, answered) = sync_channel(1);
        let asked = self.reload.try_send(ReloadAsked(answer));
        let outcome = match asked {
            Err(_) => Err("nobody reads the configuration again here".to_owned()),
            Ok(()) => answered
                .recv_timeout(RELOAD)
                .unwrap_or_else(|_| Err("no answer within a minute".to_owned())),
        };
        let told = outcome.as_ref().unwrap_or_else(|error| error);
        self.gateway.shared().audit.operator("reload", told);
        outcome.map(Value::String)
    }

    fn users(&self, ask: &Ask) -> Value {
        let shared = self.gateway.shared();
        let users = shared.users.read();
        let wanted = users.users().filter(|user| {
            let is_it = |name: &String| **name == *user.name;
            ask.user.as_ref().is_none_or(is_it)
        });
        let all = wanted.map(|user| {
            let ports = PortName::ALL.into_iter().filter(|&port| user.may_use(port));
            let sessions = user.sessions.iter();
            json!({
                "name": &*user.name,
                "ports": ports.map(PortName::name).collect::<Vec<_>>(),
                "comp_ids": sessions.map(|own| &*own.sender).collect::<Vec<_>>(),
                "password": user.password.is_some(),
                "certificates": user.certificates.is_some(),
                "all_instruments": user.grant.instruments.are_all(),
                "sessions": shared.roster.of_user(&user.name),
            })
        });
        Value::Array(all.collect())
    }

    fn lists(&self) -> Value {
        let users = self.gateway.shared().users.read();
        let lists = users.lists();
        let all = lists.map(|(name, names)| json!({ "name": name, "names": names.len() }));
        Value::Array(all.collect())
    }

    fn limits(&self) -> Value {
        let config = self.gateway.config();
        let limits = &config.limits;
        json!({
            "message_bytes": limits.message_bytes,
            "logon_timeout_s": limits.logon_timeout_s,
            "logon_bytes": limits.logon_bytes,
            "header_field_bytes": limits.header_field_bytes,
            "not_logged_on": limits.not_logged_on,
            "not_logged_on_per_address": limits.not_logged_on_per_address,
            "remembered_sessions": limits.remembered_sessions,
            "remembered_bytes": limits.remembered_bytes,
            "heartbeat_max_s": limits.heartbeat_max_s,
            "queue_bytes": config.slow_consumer.queue_bytes,
            "producers_max_sessions": config.producers.max_sessions,
            "consumers_max_sessions": config.consumers.max_sessions,
        })
    }
}

impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operator").finish_non_exhaustive()
    }
}

/// A parser's error may quote what a client sent.
fn escaped(error: &serde_json::Error) -> String {
    Escaped::text(&error.to_string()).to_string()
}

impl Ask {
    /// Checks that the line says nothing that the command has no use for.
    fn check(&self) -> Result<(), String> {
        let is_of_sessions = matches!(
            self.command,
            Command::Sessions | Command::Logout | Command::Disconnect
        );
        let has_user = is_of_sessions || self.command == Command::Users;
        for (name, is_there, may_be) in [
            ("port", self.port.is_some(), is_of_sessions),
            ("sender", self.sender.is_some(), is_of_sessions),
            ("target", self.target.is_some(), is_of_sessions),
            ("user", self.user.is_some(), has_user),
            ("text", self.text.is_some(), self.command == Command::Logout),
        ] {
            if is_there && !may_be {
                return Err(format!("this command takes no `{name}`"));
            }
        }
        let text = self.text.as_deref().unwrap_or_default();
        if text.len() > LONGEST_TEXT || text.chars().any(char::is_control) {
            return Err("`text` has up to 256 bytes of printable characters".to_owned());
        }
        Ok(())
    }

    fn wants(&self, seat: &Seat) -> bool {
        let is = |wanted: &Option<String>, own: &str| wanted.as_ref().is_none_or(|w| w == own);
        self.port.is_none_or(|port| port == seat.port)
            && is(&self.user, &seat.user)
            && is(&self.sender, &seat.id.target)
            && is(&self.target, &seat.id.sender)
    }
}

/// As the audit file has it.
impl std::fmt::Display for Ask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.command {
            Command::Logout => "logout",
            _ => "disconnect",
        })?;
        if let Some(port) = self.port {
            write!(f, " port={}", port.name())?;
        }
        for (name, value) in [
            ("user", &self.user),
            ("sender", &self.sender),
            ("target", &self.target),
            ("text", &self.text),
        ] {
            if let Some(value) = value {
                write!(f, " {name}={value}")?;
            }
        }
        Ok(())
    }
}

fn described(seat: &Arc<Seat>) -> Value {
    let reading = seat.reading();
    json!({
        "port": seat.port.name(),
        "session": seat.id.to_string(),
        "version": seat.id.version.begin_string(),
        "sender": Escaped::text(&seat.id.target).to_string(),
        "target": Escaped::text(&seat.id.sender).to_string(),
        "user": &*seat.user,
        "peer": seat.peer.to_string(),
        "since": iso_of(seat.since),
        "logged_on": reading.is_logged_on,
        "next_sender": reading.next_sender,
        "next_target": reading.next_target,
        "queued_bytes": reading.queued,
    })
}
