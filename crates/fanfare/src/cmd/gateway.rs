//! `fanfare gateway`: the plant as a service, from one file.

use anyhow::{Context, Result, bail};
use console::Term;
use fanfare_gateway::{LONGEST_PASSWORD, hash_password};
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::cmd::plant::{self, When};
use crate::logs::LogArgs;
use crate::print::say;

/// Options of `fanfare gateway`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// TOML configuration; docs/gateway.md, docs/dbn.md and docs/kafka.md describe every key,
    /// examples/gateway.toml is a working one. It may be a pipe, but a reload needs a regular file,
    /// and the files that it names always have to be regular ones.
    #[arg(required_unless_present = "hash_password")]
    config: Option<PathBuf>,
    /// Log warnings and errors only.
    #[arg(long, short)]
    quiet: bool,
    /// Check the configuration and the files that it names, and exit.
    #[arg(long)]
    check: bool,
    /// Read a password from stdin, print its argon2 hash for `password` of a `[[user]]`, and exit.
    #[arg(long, conflicts_with_all = ["config", "check"])]
    hash_password: bool,
    #[command(flatten)]
    log: LogArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let Some(path) = args.config.as_deref() else {
        say!("{}", hash(&password()?)?);
        return Ok(ExitCode::SUCCESS);
    };
    let config = plant::read(path, When::Start)?;
    if args.check {
        let place = || path.display().to_string();
        plant::check(&config).with_context(place)?;
        return Ok(ExitCode::SUCCESS);
    }
    let path: PathBuf = Path::to_owned(path);
    let reread = || plant::read(&path, When::Reload);
    plant::run(&config, args.quiet, &args.log, &reread)
}

fn hash(password: &[u8]) -> Result<String> {
    hash_password(password).map_err(anyhow::Error::msg)
}

/// Reads a line from stdin, without echo on a terminal, and returns it without its line feed.
fn password() -> Result<Vec<u8>> {
    let terminal = Term::stderr();
    if io::stdin().is_terminal() && terminal.is_term() {
        let ask = |what: &str| {
            terminal.write_str(what)?;
            terminal.read_secure_line()
        };
        let first = ask("Password: ").context("cannot read a password")?;
        if first != ask("Again: ").context("cannot read a password")? {
            bail!("the passwords differ");
        }
        return Ok(first.into_bytes());
    }
    let mut text = Vec::new();
    let most = LONGEST_PASSWORD as u64 + 3;
    let read = io::stdin().take(most).read_to_end(&mut text);
    read.context("cannot read a password from stdin")?;
    let line = text.strip_suffix(b"\n").unwrap_or(&text);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.contains(&b'\n') {
        bail!("a password must be one line");
    }
    Ok(line.to_vec())
}
