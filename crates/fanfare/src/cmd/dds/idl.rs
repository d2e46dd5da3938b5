//! `fanfare dds idl`: the types of templates, for programs in other languages.

use super::options::{TypeArgs, mapping};
use crate::cmd::fast::options::TEMPLATES_HELP;
use crate::print::Stdout;
use anyhow::Result;
use std::io::Write;
use std::process::ExitCode;

/// Print the IDL of the types of templates: those that `publish` writes with the same options.
/// Cyclone DDS's idlc and Fast DDS's generator accept it.
///
/// A structure with optional fields begins with `present`: bit i is set if the i-th optional
/// member, counted from 0 in their order, is present.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(short, long, value_name = "TEMPLATES", help = TEMPLATES_HELP)]
    templates: String,
    #[command(flatten)]
    types: TypeArgs,
    /// Print Rust instead: a structure for each type, for programs that use the crate fanfare-dds.
    #[arg(long)]
    rust: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mapping = mapping(&args.templates, &args.types)?;
    let (text, option) = match args.rust {
        true => (mapping.rust()?, " --rust"),
        false => (mapping.idl(), ""),
    };
    let mut out = Stdout;
    writeln!(
        out,
        "// From {} by fanfare dds idl{option}.",
        args.templates
    )?;
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
