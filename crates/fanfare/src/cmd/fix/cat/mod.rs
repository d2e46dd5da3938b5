//! `fanfare fix cat`: FIX from a log, a stream or a capture, human- or machine-readable.

mod capture;
mod filter;
mod json;
mod names;
mod pieces;
mod printer;

pub(super) use names::{Names, read_dictionary};
pub(in crate::cmd) use pieces::{Kind, Pieces};
pub(super) use printer::Printer;

use crate::plural::counted;
use crate::print::note;
use anyhow::{Context, Result, bail};
use clap::{Args as ClapArgs, ValueEnum};
use fanfare_engine::stop::Stop;
use fanfare_fix::text::Scanner;
use filter::Filter;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of `fanfare fix cat`.
#[derive(ClapArgs)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// A log, a stream or a capture, - for stdin.
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// Only messages with a field of this value, anywhere in them: 55=IBM, Symbol=IBM, Side=Buy,
    /// MsgType=NewOrderSingle. May be repeated: all must match.
    #[arg(long, value_name = "TAG=VALUE")]
    grep: Vec<String>,
    /// One JSON object per message, on one line (the messages are the output here, not figures):
    /// {"message", "version", "fields": {NAME: VALUE, "NAME.name": MEANING, GROUP: [{...}]},
    /// "faults", "prefix"}. A field without a name is keyed by its tag; a repeated one is NAME#2;
    /// bytes that are not UTF-8 are {"hex": ...}.
    #[arg(long)]
    json: bool,
    /// QuickFIX XML or FIX Orchestra XML: its names override the built-in ones, which follow the
    /// version of each message, as its groups do in messages of its version, and its data fields
    /// may have any bytes. May be given more than once.
    #[arg(long, value_name = "FILE")]
    dictionary: Vec<PathBuf>,
    /// Print secrets, which are masked by as many `*` otherwise: Password(554), NewPassword(925),
    /// EncryptedPassword(1402), EncryptedNewPassword(1404), and every field of a Logon that is not
    /// known to be harmless, such as RawData(96).
    #[arg(long)]
    show_secrets: bool,
    /// Use of colours; auto: on a terminal, unless NO_COLOR is set.
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    color: Colour,
}

const HELP: &str = "\
The input is a raw stream, a log whose lines have any text in front of 8=FIX, or a pcap or pcapng \
capture, whose TCP streams are reassembled. The separator of fields is SOH, | or ^A (also <SOH>, \
\\x01, \\u0001). The faults of a message (BodyLength, CheckSum, a truncated end, the count of a \
group) are printed below it, each after a !, and the output continues. Text outside messages is \
skipped, and counted on stderr at the end. The exit status is 1 if the input has no message.";

/// The condition for colours.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Colour {
    Auto,
    Always,
    Never,
}

impl Colour {
    pub(super) fn is_on(self) -> bool {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => std::io::stdout().is_terminal() && !set("NO_COLOR") && !dumb,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let names = Names::with(&args.dictionary)?;
    let filter = match Filter::parse(&args.grep, &names) {
        Ok(filter) => filter,
        Err(why) => {
            note!("fanfare: {why}");
            return Ok(ExitCode::from(2));
        }
    };
    let data_fields = names.data_fields();
    let stop = Stop::on_interrupt().context("cannot catch Ctrl-C")?;
    let printer = Printer::new(names, args.json, args.color.is_on()).only(filter);
    let mut printer = printer.showing_secrets(args.show_secrets);
    let mut input = Pieces::open(&args.file, stop.clone())?;
    let name = input.name().to_owned();
    let skipped = match input.kind().with_context(|| name.clone())? {
        Kind::Text => text(&mut input, &mut printer, &data_fields),
        Kind::Capture => capture::print(&mut input, &mut printer, &data_fields),
    };
    let skipped = skipped.with_context(|| name.clone())?;
    let counts = printer.finish()?;
    if counts.messages == 0 && !stop.is_raised() {
        bail!("no FIX message in {name}{}", because(skipped.bytes));
    }
    let is_odd = skipped.bytes > 0 || counts.faulty > 0 || counts.shown < counts.messages;
    if is_odd || stop.is_raised() {
        note!(
            "{}, {} shown, {} with faults; {} on {} skipped",
            counted(counts.messages, "message"),
            counts.shown,
            counts.faulty,
            counted(skipped.bytes, "other byte"),
            counted(skipped.lines, "line")
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn because(bytes: u64) -> String {
    match bytes {
        0 => ": the input is empty".to_owned(),
        bytes => format!(": {}", counted(bytes, "other byte")),
    }
}

fn text(
    input: &mut Pieces,
    printer: &mut Printer,
    data_fields: &[(u32, u32)],
) -> Result<fanfare_fix::text::Skipped> {
    let mut scanner = Scanner::knowing(data_fields);
    while let Some(piece) = input.next_piece()? {
        scanner.push(&piece);
        printer.all_of(&mut scanner, None)?;
        // The reader of a growing log sees each message as it comes.
        if input.is_drained() {
            printer.flush()?;
        }
    }
    scanner.finish();
    printer.all_of(&mut scanner, None)?;
    Ok(scanner.skipped())
}
