//! `fanfare completions` and `fanfare man`: shell completions and manual pages of the commands.

use anyhow::{Context, Result};
use clap::Command;
use clap_mangen::Man as Page;
use std::io;
use std::path::{Path, PathBuf};
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

pub(crate) fn completions(args: &Completions, command: Command) -> ExitCode {
    say!("{}", script(args.shell, command).trim_end());
    ExitCode::SUCCESS
}

fn script(shell: clap_complete::Shell, mut command: Command) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "fanfare", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

pub(crate) fn man(args: &Man, command: Command) -> Result<ExitCode> {
    let folder = &args.folder;
    let place = || format!("cannot write manual pages into {}", folder.display());
    std::fs::create_dir_all(folder).with_context(place)?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    write_pages(&command, folder).with_context(place)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a command, and those of the commands below it.
fn write_pages(command: &Command, folder: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        write_pages(below, folder)?;
    }
    page(command).generate_to(folder)?;
    Ok(())
}

/// Returns the page of a command. Its footer has the program's version, and its header the title
/// of the manual.
fn page(command: &Command) -> Page {
    let page = Page::new(command.clone());
    page.source(concat!("fanfare ", env!("CARGO_PKG_VERSION")))
        .manual("Fanfare")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use clap_complete::Shell;

    #[test]
    fn completions_have_no_option_that_a_shell_takes_for_a_pattern() {
        let fish = script(Shell::Fish, crate::Cli::command());
        assert!(fish.contains(" -s h "), "{fish}");
        assert!(!fish.contains(" -s ?"), "{fish}");
        for shell in [Shell::Bash, Shell::Zsh, Shell::Elvish, Shell::PowerShell] {
            let script = script(shell, crate::Cli::command());
            assert!(script.contains("-h") && !script.contains("-?"), "{shell}");
        }
    }

    #[test]
    fn the_footer_of_a_manual_page_names_the_program_and_its_version() {
        let mut command = crate::Cli::command();
        command.build();
        let ctl = command.find_subcommand("ctl").unwrap();
        let sessions = ctl.find_subcommand("sessions").unwrap();
        let logout = sessions.find_subcommand("logout").unwrap();
        let mut text = Vec::new();
        page(logout).render_title(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let version = env!("CARGO_PKG_VERSION");
        let end = format!("logout 1  \"fanfare {version}\" Fanfare");
        assert!(text.trim_end().ends_with(&end), "{text}");
    }
}
