//! `fanfare fix initiator`: the initiator sessions of a settings file.

mod application;
mod outgoing;

use super::NAP;
use super::cat::{Colour, Names, Printer};
use super::operators::Operators;
use super::sessions::{self, Losses, Running};
use crate::logs::LogArgs;
use crate::supervisor;
use anyhow::{Context, Result};
use application::{Application, Patience};
use clap::Args as ClapArgs;
use fanfare_engine::agent;
use fanfare_engine::clock::Clock;
use fanfare_engine::host::Host;
use fanfare_engine::idle::Idle;
use fanfare_engine::settings::Endpoints;
use fanfare_engine::stop::{Reload, Stop};
use fanfare_fix::session::{Config, Role, SECOND};
use fanfare_wire::UtcTimestamp;
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of `fanfare fix initiator`.
#[derive(ClapArgs)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Settings in the format of QuickFIX: sections DEFAULT and SESSION, Key=Value.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Messages to send, - for stdin.
    #[arg(value_name = "MESSAGES", default_value = "-")]
    messages: PathBuf,
    /// Log out when all is sent, and nothing has been received for this many seconds. A session
    /// whose connection is lost meanwhile logs on again first.
    #[arg(long, value_name = "SECONDS", default_value_t = 1)]
    wait: u32,
    /// Stay logged on when all is sent, until Ctrl-C.
    #[arg(long, conflicts_with = "wait")]
    stay: bool,
    /// Give up, with exit status 1, when not logged on for this many seconds, also after all was
    /// sent, or when messages wait and nothing is transmitted for as long [default: never].
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    give_up: Option<u32>,
    /// Print each message received as one JSON object, as `fanfare fix cat --json` does.
    #[arg(long)]
    json: bool,
    /// QuickFIX XML or FIX Orchestra XML, for the names of fields and values that are printed, and
    /// for data fields in MESSAGES, as those of DataDictionary. May be repeated.
    #[arg(long, value_name = "FILE")]
    dictionary: Vec<PathBuf>,
    /// Use of colours; auto: on a terminal, unless NO_COLOR is set.
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    color: Colour,
    #[command(flatten)]
    losses: Losses,
    #[command(flatten)]
    operators: Operators,
    /// Of sessions, log errors only, and print no totals.
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    log: LogArgs,
}

const HELP: &str = "\
MESSAGES has a message on each line, with SOH or | between the fields: a whole message (8=FIX…), \
with any text in front of it, or fields that begin with MsgType (35=D|11=1|55=IBM). Blank lines \
and lines that begin with # are skipped; a raw stream of messages needs no lines. The fields of a \
message have up to 61,440 bytes. The session generates BeginString, BodyLength, MsgSeqNum, the \
CompIDs, SendingTime and CheckSum; other header fields and the body are sent unchanged, and \
messages of the session layer are omitted. With several sessions, a message is sent by the one \
with its SenderCompID and TargetCompID, SubIDs and LocationIDs, and a message without these by the \
first.

Received messages are printed as by `fanfare fix cat`: application messages, Rejects, and Logouts \
with a Text. After a refused connection, the session connects to the next of \
SocketConnectHost, SocketConnectHost1, … after ReconnectInterval, and after a broken one to the \
first again. The exit status is 1 if a \
message was not sent, was requested again and the session's store no longer has it, or may not \
have arrived, as the counterparty did not answer the Logout (LogoutTimeout). Without --give-up \
the run does not end while a counterparty that got messages ends the connection without a Logout \
and does not come back, or does not read. SIGHUP \
opens the message log at its path again and reads the certificate files again, for new \
connections.

Settings of an initiator: BeginString, SenderCompID, TargetCompID, HeartBtInt, SocketConnectHost \
and -Port (followed by 1, 2, … for failover), ReconnectInterval, SocketLocalHost (the address of \
this machine to connect from), Username, Password, \
FileStorePath, FileLogPath, ResetOnLogon, -Logout, -Disconnect, StartTime, EndTime and the other \
hours, DataDictionary and the Validate… switches. TLS: CERTIFICATION_AUTHORITIES_FILE (trusted \
authorities; switches TLS on, SocketUseSSL=N off again), CLIENT_CERTIFICATE_FILE with \
CLIENT_CERTIFICATE_KEY_FILE (for servers that request one), SNIHostName (the name in the server's \
certificate, if it differs from the host's). A setting that is not supported is reported, not \
ignored; docs/settings.md describes all keys.";

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    args.log.begin(sessions::levels(args.quiet))?;
    let mut sessions = sessions::read(&args.config, Role::Initiator)?;
    for session in &mut sessions {
        args.losses.accept_in(session);
    }
    let stop = Stop::on_interrupt().context("cannot catch Ctrl-C")?;
    let reload = Reload::on_hangup().context("cannot catch SIGHUP")?;
    let endpoints = Endpoints::of(sessions).with_context(|| args.config.display().to_string())?;
    let names = Names::with(&args.dictionary)?;
    let mut data_fields = names.data_fields();
    let own = endpoints.initiators.iter().map(|own| &own.session);
    data_fields.extend(own.flat_map(|own| &own.data_fields));
    let printer = Printer::new(names, args.json, args.color.is_on());
    let patience = Patience {
        wait: (!args.stay).then_some(u64::from(args.wait) * SECOND),
        give_up: args.give_up.map(|seconds| u64::from(seconds) * SECOND),
    };
    let input = outgoing::read(&args.messages, data_fields, stop.clone())?;
    let application = Application::new(input, printer, patience, args.quiet, stop.clone());
    let mut host = Host::new(application)?;
    let running = Running::begin(&mut host, &endpoints, &args.operators, reload)?;
    let now = Clock::new().read().utc;
    for initiator in endpoints.initiators {
        let id = initiator.session.id.clone();
        let opens = opening(&initiator.session, now);
        let key = host.initiate(initiator)?;
        host.handler().add(id, key, opens);
    }
    supervisor::ready("connecting");
    let ended = agent::run(&mut host, Idle::Wait(NAP), &stop);
    running.end()?;
    ended.map_err(anyhow::Error::from_boxed)?;
    host.handler().finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the time at which the hours of a session begin, or `None` within them.
fn opening(config: &Config, now: UtcTimestamp) -> Option<UtcTimestamp> {
    let schedules = [&config.schedule, &config.logon_schedule];
    let closed = schedules.into_iter().flatten();
    let closed = closed.filter(|schedule| !schedule.is_open(now));
    closed.map(|schedule| schedule.next_change(now)).max()
}
