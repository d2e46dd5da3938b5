//! One message to 200 connections: by FIX engines, and by other ways to do it.

mod clients;
mod dialect;
mod multicast;

use crate::contest::{Contest, Contestant, Figure};
use crate::peers::{Found, Peers, Recipe, free_ports};
use crate::settings;
use anyhow::{Context, Result};
use clients::Clients;
use dialect::Dialect;
use fanfare_engine::cpu;
use fanfare_peers::Program;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::thread;

const CONSUMERS: usize = 200;

pub(crate) fn contest(peers: &Peers) -> Contest {
    let mut contest = Contest {
        id: "fan_out".to_owned(),
        title: "Fan-out: one message to 200 consumers".to_owned(),
        what: format!(
            "A producer sends a snapshot to a server on one processor. The server sends it to \
             {CONSUMERS} connections, which one thread reads on the other processor. The time runs \
             from before the producer's send until the last consumer has received the message; the \
             rate counts all deliveries with 64 messages in flight. For Cyclone DDS the \
             consumers are {CONSUMERS} DataReaders of one process."
        ),
        source: "benches/src/fan_out, benches/peers",
        figures: vec![
            Figure::lower("last p50", "us"),
            Figure::lower("last p99", "us"),
            Figure::higher("rate", "deliveries/s"),
        ],
        contestants: Vec::new(),
        absent: Vec::new(),
    };
    for (name, how, dialect, server) in servers(peers) {
        match server {
            Ok(server) => contest
                .contestants
                .push(contestant(name, &how, dialect, server)),
            Err(absent) => contest.absent.push(absent),
        }
    }
    match multicast::contestants(peers) {
        Ok(both) => contest.contestants.extend(both),
        Err(absent) => contest.absent.push(absent),
    }
    contest
}

/// How a server is started.
struct Server {
    command: Command,
    /// Whether it is told its ports, as options. They are chosen anew for each turn.
    takes_ports: bool,
}

/// The options of a server that is told its ports: of producers, of consumers.
const PORTS: [&str; 2] = ["--producer-port", "--consumer-port"];

type Entry = (&'static str, String, Dialect, Found<Server>);

fn servers(peers: &Peers) -> [Entry; 4] {
    let relay = peers.relay.as_ref().map(Command::new);
    let nats = peers.nats.as_ref().map(Command::new);
    [
        (
            "Fanfare",
            "fanout server, one worker".to_owned(),
            Dialect::Fix,
            Ok(ours(peers)),
        ),
        (
            "Plain C",
            "epoll, one send a connection, no protocol".to_owned(),
            Dialect::Plain,
            listening(relay),
        ),
        (
            "QuickFIX C++",
            format!(
                "{}, SocketAcceptor, memory store, SocketNodelay",
                peers.quickfix_version
            ),
            Dialect::Fix,
            quickfix(peers),
        ),
        (
            "NATS",
            "nats-server 2.15.3, core publish and subscribe".to_owned(),
            Dialect::Nats,
            listening(nats),
        ),
    ]
}

fn ours(peers: &Peers) -> Server {
    let mut command = peers.fanfare();
    command.args(["fanout", "server", "--quiet", "--log-level", "warn"]);
    Server {
        command,
        takes_ports: true,
    }
}

/// Returns a server whose port is found out when it listens.
fn listening(command: Result<Command, &String>) -> Found<Server> {
    let command = command.map_err(Clone::clone)?;
    Ok(Server {
        command,
        takes_ports: false,
    })
}

fn quickfix(peers: &Peers) -> Found<Server> {
    let program = peers.quickfix.clone()?;
    let file = peers.file("quickfix-relay.cfg");
    let names: Vec<String> = (0..CONSUMERS).map(dialect::consumer).collect();
    let others = names.iter().map(String::as_str);
    let others: Vec<&str> = [dialect::PRODUCER].into_iter().chain(others).collect();
    let text = settings::acceptor_of_many(dialect::SERVER, &others);
    std::fs::write(&file, text).map_err(|error| format!("QuickFIX C++: {error}"))?;
    let mut command = Command::new(program);
    command.arg("relay").arg(file);
    listening(Ok(command))
}

fn contestant(name: &'static str, how: &str, dialect: Dialect, server: Server) -> Contestant {
    let takes_ports = server.takes_ports;
    let recipe = Recipe::from(on_processor(0, server.command));
    Contestant::new(name, how, move || {
        let mut command = recipe.command();
        let told: Option<[u16; 2]> = takes_ports.then(free_ports).transpose()?;
        for (option, port) in PORTS.iter().zip(told.iter().flatten()) {
            command.arg(option).arg(port.to_string());
        }
        let mut server = Program::start(&mut command)?;
        let ports = match told {
            Some(ports) => ports,
            None => [server.listens()?.port(); 2],
        };
        let [producers, consumers] =
            ports.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let turn = thread::spawn(move || measure(dialect, producers, consumers));
        let figures = turn.join().ok().context("the clients panicked")?;
        server.end();
        figures
    })
}

/// The command, kept to one processor.
fn on_processor(cpu: usize, command: Command) -> Command {
    let mut pinned = Command::new("taskset");
    pinned.args(["--cpu-list", &cpu.to_string()]);
    pinned.arg(command.get_program()).args(command.get_args());
    pinned
}

fn measure(dialect: Dialect, producers: SocketAddr, consumers: SocketAddr) -> Result<Vec<f64>> {
    // With one processor both share it.
    let _ = cpu::pin_to(1);
    let mut clients = Clients::connect(dialect, producers, consumers, CONSUMERS)?;
    let times = clients.rounds()?;
    let rate = clients.saturate()?;
    let [p50, p99] = [50.0, 99.0].map(|at| fanfare_instruments::figures::percentile(&times, at));
    Ok(vec![p50 / 1e3, p99 / 1e3, rate])
}
