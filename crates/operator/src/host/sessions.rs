//! The sessions of a host.

use super::HostOperator;
use crate::ask::Ask;
use crate::command::{Field, Form};
use crate::error::{OperatorError, Outcome};
use crate::row::Row;
use fanfare_engine::host::{HostError, SessionInfo, Steer};
use fanfare_fix::session::{Role, SECOND, SessionId, SessionIdError, State};
use fanfare_wire::text::Escaped;
use serde_json::{Value, json};
use std::fmt::Display;
use std::time::Duration;

const WANTED: Field = Field::text(
    "session",
    "The session as `sessions` prints it, or the CompID of its counterparty.",
)
.first();
const SESSION: Field = WANTED.needed();
const TEXT: Field = Field::new("text", "Text(58) of the Logout.", Form::Text(256));

pub(super) const COMMANDS: &[Row<HostOperator>] = &[
    Row::look(
        "sessions",
        "The sessions, with their states and numbers.",
        &[WANTED],
        list,
    ),
    Row::act(
        "sessions logout",
        "Log a session out; it may log on again, and an initiator does.",
        &[SESSION, TEXT],
        |operator, ask| {
            steer(
                operator,
                ask,
                Steer::LogOut(text(ask, "logged out by the operator")),
            )
        },
    ),
    Row::act(
        "sessions test-request",
        "Send a TestRequest(1) to a session; `sessions` shows the time to its answer.",
        &[SESSION],
        |operator, ask| steer(operator, ask, Steer::TestRequest),
    ),
    Row::act(
        "sessions disconnect",
        "End the connection of a session without a Logout; it may log on again.",
        &[SESSION],
        |operator, ask| steer(operator, ask, Steer::Disconnect),
    ),
    Row::act(
        "sessions reset",
        "Start both directions of a session at 1 again, by a Logon with ResetSeqNumFlag(141) if \
         it is logged on.",
        &[SESSION, Field::DISCARD],
        |operator, ask| {
            let force = ask.flag("force");
            steer(operator, ask, Steer::Reset { force })
        },
    ),
    Row::act(
        "sessions set-seq",
        "Set numbers of a session.",
        &[
            SESSION,
            Field::NEXT_SENDER,
            Field::NEXT_TARGET,
            Field::FORCE,
        ],
        set_seq,
    ),
    Row::act(
        "sessions stop",
        "Log a session out and refuse it, until `start` or the end of the program.",
        &[SESSION, TEXT],
        |operator, ask| {
            steer(
                operator,
                ask,
                Steer::Stop(text(ask, "stopped by the operator")),
            )
        },
    ),
    Row::act(
        "sessions start",
        "Let a stopped session log on again; an initiator connects at once.",
        &[SESSION],
        |operator, ask| steer(operator, ask, Steer::Start),
    ),
    Row::act(
        "sessions add",
        "Create a session from a template of the settings, as its Logon would.",
        &[Field::text("session", "The session: FIX.4.4:OURS->THEIRS.")
            .first()
            .needed()],
        add,
    ),
    Row::act(
        "sessions remove",
        "Log a session out and remove it; its store stays, and a template creates it again.",
        &[SESSION],
        remove,
    ),
];

/// The time for a host to respond, longer than a session takes to log out.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most sessions that an error names.
const NAMED: usize = 5;

/// Returns all sessions, in no particular order.
pub(super) fn all(operator: &HostOperator) -> Result<Vec<SessionInfo>, OperatorError> {
    let mut sessions = Vec::new();
    let mut next = Some(0);
    while let Some(from) = next {
        let page = operator.host.page(from).wait_for(PATIENCE);
        let mut page = page.map_err(|error| failed(&error))?;
        sessions.append(&mut page.sessions);
        next = page.next;
    }
    Ok(sessions)
}

fn list(operator: &HostOperator, ask: &Ask) -> Outcome {
    let mut sessions = all(operator)?;
    if let Some(wanted) = ask.text("session") {
        sessions.retain(|session| is(wanted, &session.id));
    }
    sessions.sort_by_cached_key(|session| session.id.to_string());
    Ok(Value::Array(sessions.iter().map(described).collect()))
}

fn described(session: &SessionInfo) -> Value {
    json!({
        "session": session.id.to_string(),
        "role": match session.role {
            Role::Acceptor => "acceptor",
            Role::Initiator => "initiator",
        },
        "state": match (session.is_stopped, session.state) {
            (true, State::Idle | State::Ended) => "stopped",
            (_, State::Idle) => "not connected",
            (_, State::AwaitingLogon | State::AwaitingDecision) => "logging on",
            (_, State::LoggedOn) => "logged on",
            (_, State::LoggingOut) => "logging out",
            (_, State::Ended) => "ending",
        },
        "next_sender": session.next_sender,
        "next_target": session.next_target,
        "peer": session.peer.map(|peer| peer.to_string()),
        "silent_s": session.silent.map(|nanos| nanos / SECOND),
        "round_trip_us": session.round_trip.map(|nanos| nanos / 1000),
        "queued_bytes": session.queued,
        "port": session.port.map(|port| port.to_string()),
        "made_by_template": session.is_made,
    })
}

/// Returns whether a session is the one named.
fn is(wanted: &str, id: &SessionId) -> bool {
    *wanted == *id.target || *wanted == id.to_string()
}

/// Returns the session that the request names.
fn wanted(operator: &HostOperator, ask: &Ask) -> Result<SessionId, OperatorError> {
    let wanted = ask.text("session").unwrap_or_default();
    let sessions = all(operator)?;
    let name = |session: &SessionInfo| session.id.to_string();
    let mut found: Vec<&SessionInfo> = sessions.iter().filter(|own| is(wanted, &own.id)).collect();
    match (found.pop(), found.len()) {
        (Some(session), 0) => Ok(session.id.clone()),
        (Some(last), more) => {
            let mut names: Vec<String> = found.into_iter().map(name).collect();
            names.push(name(last));
            let why = format!(
                "{} sessions match: {}; name one of them",
                more + 1,
                some_of(names)
            );
            Err(OperatorError::usage(why))
        }
        (None, _) => {
            let names: Vec<String> = sessions.iter().map(name).collect();
            let wanted = Escaped::text(wanted);
            Err(OperatorError::absent(match names.len() {
                0 => format!("unknown session {wanted}: the program has no session"),
                _ => format!("unknown session {wanted}; sessions: {}", some_of(names)),
            }))
        }
    }
}

/// Returns the first names, and the number of the others.
fn some_of(mut names: Vec<String>) -> String {
    names.sort_unstable();
    let first = names.get(..NAMED).unwrap_or(&names).join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

fn text(ask: &Ask, otherwise: &str) -> String {
    ask.text("text").unwrap_or(otherwise).to_owned()
}

fn steer(operator: &HostOperator, ask: &Ask, wish: Steer) -> Outcome {
    let id = wanted(operator, ask)?;
    match operator.host.steer(&id, wish).wait_for(PATIENCE) {
        Ok(()) => Ok(json!({ "session": id.to_string() })),
        Err(error) => Err(failed(&error)),
    }
}

fn set_seq(operator: &HostOperator, ask: &Ask) -> Outcome {
    let (sender, target) = (ask.number("next_sender"), ask.number("next_target"));
    if sender.is_none() && target.is_none() {
        let why = "a number is missing: expected `next_sender`, `next_target` or both";
        return Err(OperatorError::usage(why));
    }
    let force = ask.flag("force");
    let wish = Steer::SetNumbers {
        sender,
        target,
        force,
    };
    let mut done = steer(operator, ask, wish)?;
    done["next_sender"] = json!(sender);
    done["next_target"] = json!(target);
    Ok(done)
}

fn add(operator: &HostOperator, ask: &Ask) -> Outcome {
    let id = plain(ask.text("session").unwrap_or_default()).map_err(OperatorError::usage)?;
    match operator.host.make(None, &id).wait_for(PATIENCE) {
        Ok(made) => Ok(json!({ "session": made.to_string() })),
        Err(error) => Err(failed(&error)),
    }
}

fn remove(operator: &HostOperator, ask: &Ask) -> Outcome {
    let id = wanted(operator, ask)?;
    match operator.host.remove(&id).wait_for(PATIENCE) {
        Ok(()) => Ok(json!({ "session": id.to_string() })),
        Err(error) => Err(failed(&error)),
    }
}

/// Parses a session as it is printed, which must have no SubIDs, LocationIDs and qualifier. The
/// error is the sentence for the operator.
fn plain(name: &str) -> Result<SessionId, String> {
    let wrong = |why: &dyn Display| format!("session {}: {why}", Escaped::text(name));
    let id: SessionId = name
        .parse()
        .map_err(|error: SessionIdError| wrong(&error))?;
    match id.sub {
        None => Ok(id),
        Some(_) => Err(wrong(
            &"expected CompIDs alone, such as FIX.4.4:OURS->THEIRS",
        )),
    }
}

fn failed(error: &HostError) -> OperatorError {
    let text = error.to_string();
    match error {
        HostError::Unknown(_) => OperatorError::absent(text),
        HostError::Number(_) => OperatorError::usage(text),
        HostError::Lower { .. } => OperatorError::failed(format!(
            "{text}: stop the session with `sessions stop`, or set `force`"
        )),
        HostError::Missing(_) => OperatorError::failed(format!("{text}; set `force` to do so")),
        _ => OperatorError::failed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_fix::session::Version;

    #[test]
    fn a_session_to_be_added_is_named_as_it_is_printed_by_its_comp_ids() {
        let id = SessionId::new(Version::Fix44, "OURS", "THEIRS");
        assert_eq!(plain(&id.to_string()), Ok(id));
        for (wrong, why) in [
            ("FIX.4.9:A->B", "unknown version at byte 0"),
            (
                "FIX.4.4:A->\n",
                "not escaped as in the display of a session at byte 11",
            ),
            ("FIX.4.4:A->B/C", "expected CompIDs alone"),
            ("FIX.4.4:A->B:1", "expected CompIDs alone"),
        ] {
            let told = plain(wrong).unwrap_err();
            let begin = format!("session {}: ", Escaped::text(wrong));
            assert!(told.starts_with(&begin) && told.contains(why), "{told}");
        }
    }
}
