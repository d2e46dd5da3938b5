//! A log replayed by a gateway: its events cannot be turned back into the datagrams of a venue.

use super::Args;
use super::pace::Speed;
use super::raw::RawSource;
use crate::cmd::plant;
use crate::logs::LogArgs;
use crate::usage::misuse;
use anyhow::Result;
use fanfare_gateway::{Config, Mode, PortConfig, Replay, Speed as Times, Turns};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The default port for consumers.
const PORT: u16 = 3001;

/// Returns the folder of a log or the file of DBN, if the input is one.
pub(super) fn folder(args: &Args) -> Result<Option<PathBuf>> {
    let Some(folder) = args.files.iter().find(|file| is_of_events(file)) else {
        if args.port.is_some() {
            misuse!("--port needs a log or DBN to replay");
        }
        return Ok(None);
    };
    let shown = folder.display();
    if args.files.len() > 1 {
        misuse!("`{shown}` is a log or DBN, which must be the only file");
    }
    let is_plain = args.line.is_empty() && args.every.is_none() && args.header.is_none();
    if !is_plain || args.json || args.reach.is_set() {
        misuse!(
            "`{shown}` is a log or DBN, which a gateway replays to sessions: --line, --header, \
             --every, --interface, --ttl and --json are of captures and packets"
        );
    }
    if !folder.is_dir() && (args.from.is_some() || args.to.is_some()) {
        misuse!("`{shown}` is DBN, which is always read whole: --from and --to need a log");
    }
    Ok(Some(folder.clone()))
}

/// Returns whether the path is the folder of a log of market events, or a file of DBN.
fn is_of_events(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    (path.is_dir() && !RawSource::is_at(path))
        || name.ends_with(".dbn")
        || name.ends_with(".dbn.zst")
}

/// Runs a gateway that replays the log, until Ctrl-C.
pub(super) fn run(args: &Args, path: PathBuf) -> Result<ExitCode> {
    let speed = match args.speed {
        Speed::Max => Times::Max,
        Speed::Times(times) if (0.001..=1e6).contains(&times) => {
            Times::Thousandths((times * 1e3).round() as u32)
        }
        Speed::Times(_) => {
            misuse!("--speed of a log must be `max` or a number between 0.001 and 1000000")
        }
    };
    let config = Config {
        producers: PortConfig::on_port(0),
        consumers: PortConfig::on_port(args.port.unwrap_or(PORT)),
        mode: Mode::Subscriptions,
        replay: Some(Replay {
            log: path.is_dir().then(|| path.clone()),
            dbn: (!path.is_dir()).then_some(path),
            speed,
            from: args.from,
            to: args.to,
            turns: args.times.map_or_else(Turns::default, Turns),
        }),
        ..Config::default()
    };
    plant::run(&config, false, &LogArgs::default(), &|| Ok(config.clone()))
}
