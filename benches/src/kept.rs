//! Orders from one process to another, each kept before it is sent.

use crate::contest::{Contest, Contestant, Figure};
use crate::peers::{Peers, figures, number};
use crate::round_trip::file_store;
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
             project's."
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
            join(
                "QuickFIX, file",
                "C++ 1.15.1, file store",
                "quickfix-kept",
                command(),
            );
            join(
                "QuickFIX, memory",
                "C++ 1.15.1, memory store",
                "quickfix",
                command(),
            );
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

/// Settings of the side that receives, and of the other, up to its port.
struct Settings {
    receiver: PathBuf,
    sender: PathBuf,
    text: String,
    store: Option<PathBuf>,
}

/// With a file store at the sender, if the name says so.
fn pair(peers: &Peers, name: &str) -> Result<Settings> {
    let common = "StartTime=00:00:00\nEndTime=00:00:00\nUseDataDictionary=N\nResetOnLogon=Y\n\
                  SocketNodelay=Y\nSocketTcpNoDelay=Y\nHeartBtInt=30\n";
    let session = |us, them| {
        format!("[SESSION]\nBeginString=FIX.4.4\nSenderCompID={us}\nTargetCompID={them}\n")
    };
    let receiver = peers.file(&format!("{name}-receive.cfg"));
    let text = format!(
        "[DEFAULT]\nConnectionType=acceptor\nSocketAcceptAddress=127.0.0.1\nSocketAcceptPort=0\n\
         SocketReuseAddress=Y\n{common}{}",
        session("SELL", "BUY")
    );
    std::fs::write(&receiver, text)?;
    let store = name
        .ends_with("-kept")
        .then(|| peers.file(&format!("{name}-store")));
    let kept = store.as_deref().map(file_store).unwrap_or_default();
    Ok(Settings {
        receiver,
        sender: peers.file(&format!("{name}-send.cfg")),
        text: format!(
            "[DEFAULT]\nConnectionType=initiator\nSocketConnectHost=127.0.0.1\n\
             ReconnectInterval=1\n{common}{kept}{}SocketConnectPort=",
            session("BUY", "SELL")
        ),
        store,
    })
}

fn theirs(name: &'static str, how: &str, command: Command, settings: Settings) -> Contestant {
    let program: PathBuf = command.get_program().into();
    let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    Contestant::new(name, how, move || {
        let start = |what: &str, file: &PathBuf| {
            let mut command = Command::new(&program);
            Program::start(command.args(&args).arg(what).arg(file).arg(ORDERS))
        };
        let mut receiver = start("receive", &settings.receiver)?;
        let port = receiver.listens()?.port();
        if let Some(store) = &settings.store {
            if store.exists() {
                std::fs::remove_dir_all(store)?;
            }
            std::fs::create_dir_all(store)?;
        }
        std::fs::write(&settings.sender, format!("{}{port}\n", settings.text))?;
        let mut sender = start("send", &settings.sender)?;
        let began = number(&mut sender, "began")?;
        let ended = number(&mut receiver, "ended")?;
        sender.end();
        receiver.end();
        let orders: f64 = ORDERS.parse()?;
        Ok(vec![orders / ((ended - began) / 1e9)])
    })
}
