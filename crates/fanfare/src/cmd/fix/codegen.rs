//! `fanfare fix codegen`: typed messages of dictionaries as Rust code.

use super::cat::read_dictionary;
use crate::cmd::fast::{cannot_write, create};
use crate::print::note;
use anyhow::{Context, Result, bail};
use fanfare_fix::codegen;
use fanfare_fix::dict::{Dictionary, Version, check_xml};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Print typed messages of dictionaries as Rust code.
///
/// The code has a reader and a builder for each message, an enum for each list of values, and a
/// function that returns the message received. It needs the crate fanfare-fix alone. A build script
/// generates it with `fanfare_fix::codegen::generate`, whose documentation describes it; the
/// chapter "Typed messages" of the guide shows both.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// QuickFIX-style XML, FIX Orchestra XML, or builtin:VERSION such as builtin:FIX.4.4. Several
    /// dictionaries, each of another version, become one module each.
    #[arg(value_name = "DICTIONARY", required = true)]
    dictionaries: Vec<String>,
    /// Messages by name or MsgType(35), separated by commas; of several dictionaries, each that has
    /// a message generates it. [default: all messages]
    #[arg(short, long, value_name = "NAME", value_delimiter = ',')]
    message: Vec<String>,
    /// The dictionary that provides the header for dictionaries without one, such as FIX.5.0SP2.
    #[arg(long, value_name = "DICTIONARY", default_value = "builtin:FIXT.1.1")]
    transport: String,
    /// File to write, - for stdout.
    #[arg(short, long, value_name = "FILE.rs", default_value = "-")]
    output: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut dictionaries = Vec::new();
    for name in &args.dictionaries {
        dictionaries.push(with_header(load(name)?, name, &args.transport)?);
    }
    let mut chosen = Vec::new();
    for (dictionary, name) in dictionaries.iter().zip(&args.dictionaries) {
        let wanted = args.message.iter().map(String::as_str);
        let own: Vec<&str> = wanted.filter(|name| has(dictionary, name)).collect();
        if own.is_empty() && !args.message.is_empty() {
            let wanted = args.message.join(", ");
            bail!("{name} has no message with the name or MsgType(35) {wanted}");
        }
        chosen.push(own);
    }
    if let Some(unknown) = args.message.iter().find(|name| {
        let mut known = dictionaries.iter();
        !known.any(|dictionary| has(dictionary, name))
    }) {
        bail!("no dictionary has a message with the name or MsgType(35) {unknown}");
    }
    let parts: Vec<(&Dictionary, &[&str])> = dictionaries
        .iter()
        .zip(&chosen)
        .map(|(dictionary, own)| (&**dictionary, &**own))
        .collect();
    let code = codegen::generate(&parts)?;
    let read = args.dictionaries.iter().chain([&args.transport]);
    let read: Vec<&Path> = read.map(Path::new).collect();
    let mut out = create(&args.output, &read)?;
    let written = out.write_all(code.as_bytes()).and_then(|()| out.flush());
    written.with_context(|| cannot_write(&args.output))?;
    Ok(ExitCode::SUCCESS)
}

fn load(name: &str) -> Result<Arc<Dictionary>> {
    if let Some(version) = name.strip_prefix("builtin:") {
        let Some(version) = Version::from_name(version) else {
            let known = Version::ALL.map(Version::name).join(", ");
            bail!("{name} is not built in: expected one of {known}");
        };
        return Ok(Dictionary::built_in(version));
    }
    let text = read_dictionary(Path::new(name))?;
    let dictionary = Dictionary::from_xml(&text).with_context(|| name.to_owned())?;
    for twice in check_xml(&text).with_context(|| name.to_owned())? {
        note!("{name}: {twice}: the first counts");
    }
    Ok(Arc::new(dictionary))
}

/// Returns the dictionary, merged with its transport if it has no header.
fn with_header(
    dictionary: Arc<Dictionary>,
    name: &str,
    transport: &str,
) -> Result<Arc<Dictionary>> {
    if !dictionary.schema().header.is_empty() {
        return Ok(dictionary);
    }
    let over = dictionary.over(&*load(transport)?);
    let over = over.with_context(|| format!("{name} does not go over {transport}"))?;
    Ok(Arc::new(over))
}

/// Returns whether the dictionary has a message with this name or MsgType(35).
fn has(dictionary: &Dictionary, name: &str) -> bool {
    let messages = &dictionary.schema().messages;
    messages.contains_key(name) || messages.values().any(|message| message.name == name)
}
