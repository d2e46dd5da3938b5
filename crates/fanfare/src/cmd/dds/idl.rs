//! `fanfare dds idl`: the types of templates, and the type of FIX messages, for programs in
//! other languages.

use super::options::{TypeArgs, mapping};
use crate::cmd::fast::options::{TEMPLATES_HELP, TemplateReading};
use crate::print::Stdout;
use anyhow::Result;
use fanfare_dds::types::rust;
use fanfare_gateway::fix_message_type;
use std::io::Write;
use std::process::ExitCode;

/// Print the IDL of the types of templates: those that `publish` writes with the same options.
/// Cyclone DDS's idlc and Fast DDS's generator accept it.
///
/// A structure with optional fields begins with `present`: bit i is set if the i-th optional
/// member, counted from 0 in their order, is present.
///
/// --fix prints the type of the FIX messages of a gateway with `[dds.publish]`, which is one for
/// all topics. docs/gateway.md has its members.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(
        short,
        long,
        value_name = "TEMPLATES",
        required_unless_present = "fix",
        help = TEMPLATES_HELP
    )]
    templates: Option<String>,
    /// Print the type of a gateway's FIX messages, `Fanfare::FixMessage`.
    #[arg(
        long,
        conflicts_with_all = [
            "templates", "keyed", "key", "split", "exact_decimals", "module", "lenient",
        ]
    )]
    fix: bool,
    #[command(flatten)]
    types: TypeArgs,
    #[command(flatten)]
    reading: TemplateReading,
    /// Print Rust instead: a structure for each type, for programs that use the crate fanfare-dds.
    #[arg(long)]
    rust: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let option = if args.rust { " --rust" } else { "" };
    let (from, text) = match &args.templates {
        Some(templates) => {
            let mapping = mapping(templates, args.reading.reading(), &args.types)?;
            let text = match args.rust {
                true => mapping.rust()?,
                false => mapping.idl(),
            };
            (templates.as_str(), text)
        }
        None => {
            let of = fix_message_type();
            let text = match args.rust {
                true => rust(&[&of])?,
                false => of.idl(),
            };
            ("FIX messages", text)
        }
    };
    let mut out = Stdout;
    writeln!(out, "// From {from} by fanfare dds idl{option}.")?;
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
