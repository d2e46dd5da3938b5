//! `fanfare fast codegen`: typed Rust structs for a template set.

use super::generate::{cannot_write, create};
use super::options::{TEMPLATES_HELP, TemplateReading, load_with_text};
use anyhow::{Context, Result};
use fanfare_fast::codegen;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Print a Rust module with typed structs for a template set, and the code that decodes and encodes
/// them.
///
/// The module depends on fanfare-fast alone. A build script does the same with
/// `fanfare_fast::codegen::generate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(short, long, value_name = "TEMPLATES", help = TEMPLATES_HELP)]
    templates: String,
    #[command(flatten)]
    reading: TemplateReading,
    /// File to write, - for stdout.
    #[arg(short, long, value_name = "FILE.rs", default_value = "-")]
    output: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let (program, xml) = load_with_text(&args.templates, args.reading.reading())?;
    let code = codegen::generate_from(&program, &xml);
    let mut out = create(&args.output, &[Path::new(&args.templates)])?;
    let written = out.write_all(code.as_bytes()).and_then(|()| out.flush());
    written.with_context(|| cannot_write(&args.output))?;
    Ok(ExitCode::SUCCESS)
}
