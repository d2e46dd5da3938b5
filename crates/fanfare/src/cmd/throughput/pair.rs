//! One run: an acceptor and an initiator as two processes.

use anyhow::{Context, Result, bail};
use fanfare_engine::stop::Stop;
use fanfare_instruments::throughput::{Orders, Outcome, persisted};
use std::path::Path;
use std::time::Duration;

use super::acceptor::LISTENING;
use super::options::{Load, Store};
use crate::children::Fanfare;

/// The time limit for a process to become ready.
const READY: Duration = Duration::from_secs(60);
/// The slowest rate within the time limit, in orders per second.
const SLOWEST: u64 = 10_000;
/// The time limit for the acceptor to end after the initiator.
const END: Duration = Duration::from_secs(60);

/// Runs both, with the journals in `base`, which is removed afterwards. Returns `None` if `stop`
/// was raised before all was sent.
pub(super) fn run(
    sessions: usize,
    load: &Load,
    store: &Store,
    orders: &Orders,
    base: &Path,
    stop: &Stop,
) -> Result<Option<Outcome>> {
    let outcome = exchange(sessions, load, store, base, stop);
    let outcome = outcome.and_then(|outcome| {
        let Some(mut outcome) = outcome.filter(|_| !store.is_none()) else {
            return Ok(outcome);
        };
        let found = persisted(base, orders);
        outcome.persisted =
            Some(found.context("cannot read the orders that the initiator has kept")?);
        Ok(Some(outcome))
    });
    if base.exists() {
        std::fs::remove_dir_all(base)
            .with_context(|| format!("cannot remove {}", base.display()))?;
    }
    outcome
}

fn exchange(
    sessions: usize,
    load: &Load,
    store: &Store,
    base: &Path,
    stop: &Stop,
) -> Result<Option<Outcome>> {
    let count = sessions.to_string();
    let mut args = vec!["throughput", "acceptor", "--port", "0"];
    args.extend(["--sessions", &count]);
    let load_args = load.args();
    args.extend(load_args.iter().map(String::as_str));
    let mut acceptor = Fanfare::start(&args, stop)?;
    let addresses = acceptor.wait_line(READY, |line| {
        line.strip_prefix(LISTENING).map(str::to_owned)
    })?;
    let ports = addresses.split(' ').filter_map(|at| at.rsplit(':').next());
    let mut args = vec!["throughput", "initiator", "127.0.0.1"];
    args.extend(ports);
    args.extend(["--sessions", &count]);
    args.extend(load_args.iter().map(String::as_str));
    let store_args = store.args(base);
    args.extend(store_args.iter().map(String::as_str));
    let initiator = Fanfare::start(&args, stop)?;
    let limit = READY + Duration::from_secs(load.messages * sessions as u64 / SLOWEST);
    let (sent, told) = initiator.figures_and_words(limit)?;
    if !sent.is_ok() {
        // The acceptor may be waiting for sessions that will not come.
        let _ = acceptor.interrupt();
    }
    let received = acceptor.figures(END)?;
    if stop.is_raised() && !(sent.is_ok() && received.is_ok()) {
        return Ok(None);
    }
    if !sent.is_ok() {
        bail!("the initiator: {told}");
    }
    Ok(Some(Outcome::of(&received)))
}
