//! `fanfare completions` and `fanfare man`: shell completions and manual pages of the commands.

use anyhow::{Context, Result};
use clap::Command;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::print::say;

/// Print the completions of a shell, to be sourced or saved where the shell looks for them:
/// `fanfare completions bash > ~/.local/share/bash-completion/completions/fanfare`.
#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: clap_complete::Shell,
}

/// Write a manual page for each command into a folder: fanfare.1, fanfare-gateway.1 and so on.
#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// The folder, such as ~/.local/share/man/man1; it is created if it does not exist.
    folder: PathBuf,
}

pub(crate) fn completions(args: &Completions, mut command: Command) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "fanfare", &mut script);
    say!("{}", String::from_utf8_lossy(&script).trim_end());
    ExitCode::SUCCESS
}

pub(crate) fn man(args: &Man, command: Command) -> Result<ExitCode> {
    let folder = &args.folder;
    let place = || format!("cannot write manual pages into {}", folder.display());
    std::fs::create_dir_all(folder).with_context(place)?;
    clap_mangen::generate_to(command, folder).with_context(place)?;
    Ok(ExitCode::SUCCESS)
}
