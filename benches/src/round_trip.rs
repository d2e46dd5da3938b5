//! An order and its report: one client, and the acceptors of each project.

use crate::contest::{Contest, Contestant, Figure};
use crate::peers::{Found, Peers, Recipe, figures, free_ports, java_program, source};
use crate::settings;
use anyhow::{Context, Result};
use fanfare_peers::{Absent, Program, jars, java};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Orders of a turn that warm up, and that are measured.
const WARM_UP: &str = "20000";
const ORDERS: &str = "20000";
/// What Artio reaches into, as its documents say.
const OPENED: [&str; 2] = [
    "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
];
const ARTIO: &str = "0.175, threads that spin, yield, then park, no log of messages; its report \
                     lacks ClOrdID(11), LeavesQty(151), CumQty(14) and AvgPx(6)";
const SERVER: [&str; 6] = ["latency", "server", "--port", "0", "--log-level", "warn"];

/// Returns the contests of acceptors that sleep between orders, and of those that stay awake.
pub(crate) fn contests(peers: &Peers) -> [Contest; 2] {
    [
        contest(
            peers,
            ("fix_round_trip", ""),
            "blocks in the kernel until an order comes",
            asleep(peers),
        ),
        contest(
            peers,
            ("fix_round_trip_awake", ", awake"),
            "looks for the next order without sleeping, Artio for some time",
            awake(peers),
        ),
    ]
}

fn contest(peers: &Peers, (id, mode): (&str, &str), waits: &str, servers: Vec<Server>) -> Contest {
    let mut contest = Contest {
        id: id.to_owned(),
        title: format!("FIX: round trip of an order and its report{mode}"),
        what: format!(
            "`fanfare latency client` sends {ORDERS} orders, each when the report of the one \
             before has come, after {WARM_UP} that warm up, over loopback. The acceptor that \
             answers is each project's own, with an application that makes the report; it {waits}."
        ),
        source: "benches/src/round_trip.rs, benches/peers",
        figures: vec![Figure::lower("p50", "us"), Figure::lower("p99", "us")],
        contestants: Vec::new(),
        absent: Vec::new(),
    };
    for (name, how, server) in servers {
        match server {
            Ok(server) => {
                let contestant = contestant(peers, name, &how, server);
                contest.contestants.push(contestant);
            }
            Err(absent) => contest.absent.push(absent),
        }
    }
    contest
}

/// A function that returns the command of a server, for each turn anew.
type Start = Box<dyn Fn() -> Result<Command>>;

/// Name, configuration, and how it is started.
type Server = (&'static str, String, Found<Start>);

/// Returns the start of a server by the same command in each turn.
fn always(command: Command) -> Start {
    let recipe = Recipe::from(command);
    Box::new(move || Ok(recipe.command()))
}

fn ours(peers: &Peers, name: &'static str, own: &[&str]) -> Server {
    let mut server = peers.fanfare();
    server.args(SERVER).args(own);
    let how = ["latency server"].iter().chain(own).copied();
    (name, how.collect::<Vec<_>>().join(" "), Ok(always(server)))
}

fn asleep(peers: &Peers) -> Vec<Server> {
    let quickfix = |store| {
        let program = peers.quickfix.clone()?;
        answers(peers, Command::new(program), ("quickfix-answer", store))
    };
    let quickfixj = || {
        let java = peers.java.clone()?;
        answers(peers, java.quickfixj(), ("quickfixj-answer", ""))
    };
    let go = || -> Found<Start> {
        let program = peers.go.clone()?;
        let file = peers.file("quickfixgo-answer.cfg");
        // It knows a session by the port of its settings: the kernel may not pick another.
        let start = move || -> Result<Command> {
            let [port] = free_ports()?;
            settings_file(&file, port, None)?;
            let mut command = Command::new(&program);
            command.arg("answer").arg(&file);
            Ok(command)
        };
        Ok(Box::new(start))
    };
    let quickfix_version = &peers.quickfix_version;
    let threaded = |store| format!("{quickfix_version}, threaded acceptor, {store} store");
    vec![
        ours(peers, "Fanfare", &["--sleep"]),
        ("QuickFIX C++", threaded("memory"), quickfix("")),
        (
            "QuickFIX, file",
            threaded("file"),
            quickfix("quickfix-answers"),
        ),
        ("QuickFIX/J", "2.3.2, memory store".to_owned(), quickfixj()),
        ("QuickFIX/Go", "0.9.7, memory store".to_owned(), go()),
    ]
}

fn awake(peers: &Peers) -> Vec<Server> {
    let philadelphia = peers.java.clone().map(|java| {
        let mut command = java.philadelphia();
        command.arg("answer");
        always(command)
    });
    let single = "2.0.0, one thread, no store";
    vec![
        ours(peers, "Fanfare", &[]),
        ours(peers, "Fanfare, pinned", &["--pin", "0"]),
        ("Philadelphia", single.to_owned(), philadelphia),
        ("Artio", ARTIO.to_owned(), artio(peers)),
    ]
}

fn artio(peers: &Peers) -> Found<Start> {
    let found = || -> Result<Start, Absent> {
        let jars = jars(&peers.file("artio"), &source("artio/pom.xml"))?;
        let file = source("artio/Artio.java");
        let classes = java(&peers.file("artio-classes"), &file, &jars)?;
        let mut command = java_program(&jars, &classes, &OPENED, "Artio");
        command.arg(peers.file("artio-state"));
        Ok(always(command))
    };
    found().map_err(|absent| format!("Artio: {absent}"))
}

/// Returns the start of a server that answers orders by settings of its own, with a file store if
/// one is named.
fn answers(peers: &Peers, mut command: Command, (name, store): (&str, &str)) -> Found<Start> {
    let file = peers.file(&format!("{name}{store}.cfg"));
    let written = || -> Result<()> {
        let kept = !store.is_empty();
        let folder = kept.then(|| peers.empty(store)).transpose()?;
        settings_file(&file, 0, folder.as_deref())
    };
    written().map_err(|error| format!("{name}: {error:#}"))?;
    command.arg("answer").arg(&file);
    Ok(always(command))
}

/// Returns a server that the client measures.
fn contestant(peers: &Peers, name: &'static str, how: &str, start: Start) -> Contestant {
    let client: PathBuf = peers.fanfare().get_program().into();
    Contestant::new(name, how, move || {
        let mut server = Program::start(&mut start()?)?;
        let port = server.listens()?.port().to_string();
        let mut client = Command::new(&client);
        client.args(["latency", "client", "127.0.0.1", &port, ORDERS]);
        let all = figures(client.args(["--warm-up", WARM_UP, "--json"]))?;
        server.end();
        let figure = |name: &str| all[name].as_f64().context("no figure of the client");
        Ok(vec![figure("p50_us")?, figure("p99_us")?])
    })
}

/// Writes the settings of an acceptor for the client's session. `store` is the folder of its file
/// store; `None` is a memory store.
fn settings_file(file: &Path, port: u16, store: Option<&Path>) -> Result<()> {
    let text = settings::acceptor(port, store, ("SERVER", "CLIENT"));
    std::fs::write(file, text).with_context(|| file.display().to_string())
}
