//! The status of the program.

use super::HostOperator;
use super::sessions::all;
use crate::ask::Ask;
use crate::error::Outcome;
use crate::row::Row;
use fanfare_fix::session::State;
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(super) const COMMANDS: &[Row<HostOperator>] = &[
    Row::look("status", "Version, uptime, ports.", &[], status),
    Row::look("counters", "All counters.", &[], counters),
    Row::act(
        "config reload",
        "Open the message log and read the certificates again, as SIGHUP does.",
        &[],
        |operator, _| {
            operator.reload.request();
            Ok("requested; the result is reported on stderr".into())
        },
    ),
];

fn status(operator: &HostOperator, _ask: &Ask) -> Outcome {
    let sessions = all(operator)?;
    let is_on = |state: State| state == State::LoggedOn;
    // By address; initiators have none.
    let mut ports: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for session in &sessions {
        let name = session
            .port
            .map_or("initiators".to_owned(), |at| at.to_string());
        let (there, logged_on) = ports.entry(name).or_default();
        *there += 1;
        *logged_on += usize::from(is_on(session.state));
    }
    let ports = ports.iter().map(|(name, (there, logged_on))| {
        json!({ "name": name, "sessions": there, "logged_on": logged_on })
    });
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "uptime_s": operator.begun.elapsed().as_secs(),
        "sessions": sessions.len(),
        "logged_on": sessions.iter().filter(|session| is_on(session.state)).count(),
        "ports": ports.collect::<Vec<_>>(),
    }))
}

fn counters(operator: &HostOperator, _ask: &Ask) -> Outcome {
    let all = operator.counters.sums();
    let named = all.iter().map(|one| (one.label(), Value::from(one.value)));
    Ok(Value::Object(named.collect()))
}
