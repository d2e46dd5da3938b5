//! `fanfare gateway`: the plant as a service, from one file.

use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::cmd::plant;

/// Options of `fanfare gateway`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// TOML configuration; docs/gateway.md has every key, examples/gateway.toml is one that works.
    config: PathBuf,
    /// Print only what is trouble.
    #[arg(long, short)]
    quiet: bool,
    /// Check the configuration and the files that it names, and end.
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let config = plant::read(&args.config)?;
    if args.check {
        let place = || args.config.display().to_string();
        config.check_files().with_context(place)?;
        return Ok(ExitCode::SUCCESS);
    }
    plant::run(&config, args.quiet, &|| plant::read(&args.config))
}
