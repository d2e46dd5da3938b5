//! The commands: a folder for each group, a file for each command.

pub(crate) mod bench;
mod ctl;
mod dds;
mod demo;
mod fanout;
mod fast;
mod fix;
mod gateway;
mod history;
mod latency;
mod market;
mod plant;
mod replay;
mod shell;
mod store;
mod throughput;
mod top;

use clap::{CommandFactory, Subcommand};
use std::process::ExitCode;

/// The commands of `fanfare`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Benchmarks against a raw baseline of the same run.
    #[command(subcommand)]
    Bench(bench::Command),
    /// The whole plant at a small scale, on this machine alone, with one report at the end.
    Demo(demo::Args),
    /// The FIX fan-out gateway, its producers, its consumers, and its latency report.
    #[command(subcommand)]
    Fanout(fanout::Command),
    /// The FAST codec and the feed layer: generate, send, receive, decode, encode, explain.
    #[command(subcommand)]
    Fast(fast::Command),
    /// FIX sessions from settings files, and tools that inspect FIX.
    #[command(subcommand)]
    Fix(fix::Command),
    /// Round trips of orders: a server that acknowledges each, a client that measures.
    #[command(subcommand)]
    Latency(latency::Command),
    /// The market data of a feed: books, mappings, instruments, events.
    #[command(subcommand)]
    Market(market::Command),
    /// The log of a plant's market events: its segments, its events, books as of any moment.
    #[command(subcommand)]
    History(history::Command),
    /// The message stores of sessions: list, verify, export, repair, import, set numbers.
    #[command(subcommand)]
    Store(store::Command),
    /// Distribution over DDS: publish, subscribe, and the tools around it.
    #[command(subcommand)]
    Dds(dds::Command),
    Replay(replay::Args),
    /// Throughput over many FIX sessions, with every message persisted by its sender.
    #[command(subcommand)]
    Throughput(throughput::Command),
    /// The plant as a service, from a TOML file: FIX, FAST and DBN in; books, a log; FIX, DDS, DBN
    /// and Kafka out.
    ///
    /// `fanout server` and `dds bridge` are this service with configurations of their own, for FIX
    /// alone and for FIX over DDS; each also takes a file, with --config.
    Gateway(gateway::Args),
    Ctl(ctl::Args),
    Top(top::Args),
    Completions(shell::Completions),
    Man(shell::Man),
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Bench(command) => bench::run(command),
        Command::Demo(args) => demo::run(args),
        Command::Fanout(command) => fanout::run(command),
        Command::Fast(command) => fast::run(command),
        Command::Fix(command) => fix::run(command),
        Command::Latency(command) => latency::run(command),
        Command::Market(command) => market::run(command),
        Command::History(command) => history::run(command),
        Command::Store(command) => store::run(command),
        Command::Dds(command) => dds::run(command),
        Command::Replay(args) => replay::run(args),
        Command::Throughput(command) => throughput::run(command),
        Command::Gateway(args) => gateway::run(args),
        Command::Ctl(args) => ctl::run(args),
        Command::Top(args) => top::run(args),
        Command::Completions(args) => Ok(shell::completions(args, crate::Cli::command())),
        Command::Man(args) => shell::man(args, crate::Cli::command()),
    }
}
