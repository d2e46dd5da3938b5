//! Orders from one process to another, each kept before it is sent.

use crate::contest::{Contest, Contestant, Figure};
use crate::peers::{Peers, Recipe, empty, figures, number};
use crate::settings;
use anyhow::{Context, Result};
use fanfare_peers::Program;
use std::path::PathBuf;
use std::process::Command;

/// The number of orders of a turn. Fanfare sends more, as a turn of 20,000 would take 5 ms.
const ORDERS: &str = "20000";
const OURS: &str = "1000000";

pub(crate) fn contest(peers: &Peers) -> Contest {
    let program: PathBuf = peers.fanfare().get_program().into();
    let ours = Contestant::new("Fanfare", "throughput run, journals", move || {
        let mut command = Command::new(&program);
        command.args([
            "throughput",
            "run",
            "--sessions",
            "1",
            "--runs",
            "1",
            "--at-least",
            "0",
        ]);
        let all = figures(command.args(["--messages", OURS, "--json"]))?;
        let rate = all["sessions_1_per_s"].as_f64();
        Ok(vec![rate.with_context(|| format!("no rate in {all}"))?])
    });
    let mut contest = Contest {
        id: "fix_kept".to_owned(),
        title: "FIX: orders a second, each kept".to_owned(),
        what: format!(
            "One session sends {ORDERS} orders (Fanfare {OURS}) to another process, which counts \
             them; the sender keeps each in its store before it is sent. Both sides are the same \
             project's. The clock is the receiver's, from its first order to its last; in QuickFIX \
             as many orders before that warm up. QuickFIX builds each order from its fields, \
             Fanfare sends bodies that it has prepared."
        ),
        source: "benches/src/kept.rs, benches/peers",
        figures: vec![Figure::higher("rate", "orders/s")],
        contestants: vec![ours],
        absent: Vec::new(),
    };
    let mut failed = Vec::new();
    let mut join = |name, how: &str, short: &str, command: Command| match pair(peers, short) {
        Ok(settings) => contest
            .contestants
            .push(theirs(name, how, command, settings)),
        Err(error) => failed.push(format!("{name}: {error:#}")),
    };
    match &peers.quickfix {
        Ok(program) => {
            let command = || Command::new(program);
            let how = |store| format!("{}, {store} store", peers.quickfix_version);
            join("QuickFIX, file", &how("file"), "quickfix-kept", command());
            join("QuickFIX, memory", &how("memory"), "quickfix", command());
        }
        Err(absent) => contest.absent.push(absent.clone()),
    }
    match &peers.java {
        Ok(java) => join(
            "QuickFIX/J, file",
            "2.3.2, file store",
            "quickfixj-kept",
            java.quickfixj(),
        ),
        Err(absent) => contest.absent.push(absent.clone()),
    }
    contest.absent.extend(failed);
    contest
}

/// The settings files of both sides; the sender's contains the port of the receiver.
struct Settings {
    receiver: PathBuf,
    sender: PathBuf,
    store: Option<PathBuf>,
}

/// Settings with a file store at the sender, if the name ends with `-kept`.
fn pair(peers: &Peers, name: &str) -> Result<Settings> {
    let receiver = peers.file(&format!("{name}-receive.cfg"));
    std::fs::write(&receiver, settings::acceptor(0, None, ("SELL", "BUY")))?;
    let store = name.ends_with("-kept");
    Ok(Settings {
        receiver,
        sender: peers.file(&format!("{name}-send.cfg")),
        store: store.then(|| peers.file(&format!("{name}-store"))),
    })
}

fn theirs(name: &'static str, how: &str, command: Command, settings: Settings) -> Contestant {
    let recipe = Recipe::from(command);
    Contestant::new(name, how, move || {
        let start = |what: &str, file: &PathBuf| {
            Program::start(recipe.command().arg(what).arg(file).arg(ORDERS))
        };
        let mut receiver = start("receive", &settings.receiver)?;
        let port = receiver.listens()?.port();
        if let Some(store) = &settings.store {
            empty(store)?;
        }
        let text = settings::initiator(port, settings.store.as_deref(), ("BUY", "SELL"));
        std::fs::write(&settings.sender, text)?;
        let mut sender = start("send", &settings.sender)?;
        let began = number(&mut receiver, "began")?;
        let ended = number(&mut receiver, "ended")?;
        sender.end();
        receiver.end();
        let orders: f64 = ORDERS.parse()?;
        Ok(vec![orders / ((ended - began) / 1e9)])
    })
}
