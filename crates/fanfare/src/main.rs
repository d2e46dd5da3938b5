//! `fanfare`: the one binary of the ticker plant. It parses arguments, wires the crates, prints.
#![forbid(unsafe_code)]

mod address;
mod background;
mod children;
mod cmd;
#[cfg(test)]
mod documented;
mod input;
mod line;
mod logs;
mod plural;
mod print;
mod progress;
mod range;
#[cfg(test)]
mod reopened;
mod scratch;
mod supervisor;
mod usage;

use clap::{Arg, ArgAction, Command, CommandFactory, FromArgMatches, Parser};
use std::process::ExitCode;
use std::sync::LazyLock;

/// The version, and the optional features of this build.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let features = [
        ("capture", cfg!(feature = "capture")),
        ("dds", cfg!(feature = "dds")),
        ("kafka", cfg!(feature = "kafka")),
        ("parquet", cfg!(feature = "parquet")),
        ("top", cfg!(feature = "top")),
    ];
    let of = |built: bool| {
        let own = features.iter().filter(|(_, is)| *is == built);
        let names: Vec<&str> = own.map(|(name, _)| *name).collect();
        match names.is_empty() {
            true => "none".to_owned(),
            false => names.join(", "),
        }
    };
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "{version}\nfeatures: {}\nnot built in: {}",
        of(true),
        of(false)
    )
});

/// An open ticker plant: FIX, FAST and DBN market data in, decoded once, fanned out to FIX
/// sessions, DDS topics, DBN clients, Kafka and files, with the latency measured and shown.
///
/// Exit status: 0 done, 1 failed (one sentence on stderr states why), 2 wrong usage.
#[derive(Parser)]
#[command(name = "fanfare", version)]
#[command(long_version = VERSION.as_str(), arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: cmd::Command,
}

/// Returns the command line as it is parsed: `-?` is help, as -h is. Completions and manual pages
/// are without it: shells take a plain `?` for a pattern.
fn accepted() -> Command {
    let help = Arg::new("help_too").short('?').global(true).hide(true);
    Cli::command().arg(help.action(ArgAction::HelpShort))
}

fn parse() -> Cli {
    let mut command = accepted();
    let matches = command.get_matches_mut();
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command).exit())
}

fn main() -> ExitCode {
    let cli = parse();
    if !children::parent_is_alive() {
        // The variable may be left over in a shell. The child of a killed command has no reader.
        let parent = children::PARENT;
        print::note!("fanfare: the process named by {parent} in the environment has ended");
        return ExitCode::FAILURE;
    }
    // If the signal of a file-size limit cannot be caught, it ends the process, as by default.
    let _ = fanfare_engine::stop::outlive_file_limit();
    let code = match cmd::run(&cli.command) {
        Ok(code) => print::printed(code),
        Err(e) if print::is_unread(&e) => ExitCode::SUCCESS,
        Err(e) => {
            print::note!("fanfare: {e:#}");
            usage::status_of(&e)
        }
    };
    progress::clear();
    background::end();
    code
}

#[cfg(test)]
mod tests {
    use super::{Cli, accepted};
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        accepted().debug_assert();
    }

    /// Collects every command, by the words that lead to it.
    fn commands(of: &clap::Command, words: &[String], all: &mut Vec<Vec<String>>) {
        for command in of.get_subcommands().filter(|c| c.get_name() != "help") {
            let words = [words, &[command.get_name().to_owned()]].concat();
            commands(command, &words, all);
            all.push(words);
        }
    }

    #[test]
    fn a_question_mark_is_help_for_every_command() {
        let mut all = vec![vec!["fanfare".to_owned()]];
        commands(&Cli::command(), &["fanfare".to_owned()], &mut all);
        assert!(all.len() > 40, "{}", all.len());
        for mut words in all {
            let help = |words: &[String]| {
                let asked = accepted().try_get_matches_from(words).err().unwrap();
                assert_eq!(
                    asked.kind(),
                    clap::error::ErrorKind::DisplayHelp,
                    "{words:?}"
                );
                asked.to_string()
            };
            words.push("-?".to_owned());
            let told = help(&words);
            words.pop();
            words.push("-h".to_owned());
            assert_eq!(told, help(&words), "{words:?}");
        }
    }
}
