//! `fanfare market check`: checks a mapping against templates, and lists the use of each field.

use super::options::{MAPPING_HELP, named_mapping, version};
use crate::cmd::fast::options::{TEMPLATES_HELP, TemplateReading, load};
use crate::plural::counted;
use crate::print::{note, say};
use anyhow::Result;
use fanfare_fix::dict::{Dictionary, Version};
use fanfare_market::mapping::{MessageReport, Report};
use serde_json::json;
use std::process::ExitCode;

/// Check a mapping against templates or a version of FIX, and list the use of each field.
///
/// A field becomes part of events, is a condition, drives the channel, or is ignored; fields that
/// the mapping names and a template does not have are missing. An error names file, line and key,
/// and the exit status is 1.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(value_name = "MAPPING", help = MAPPING_HELP)]
    mapping: String,
    #[arg(
        short, long, value_name = "TEMPLATES", help = TEMPLATES_HELP,
        required_unless_present = "fix"
    )]
    templates: Option<String>,
    /// Check against FIX messages of this version instead: FIX.4.2, FIX.4.4, FIX.5.0SP2 and so on.
    #[arg(long, value_name = "VERSION", conflicts_with = "templates", value_parser = version)]
    fix: Option<Version>,
    #[command(flatten)]
    reading: TemplateReading,
    /// Omit fields that are ignored.
    #[arg(long)]
    used: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let report = report(args)?;
    if args.json {
        say!("{}", as_json(&report, args.used));
    } else {
        report
            .messages
            .iter()
            .for_each(|message| list(message, args.used));
    }
    let fields = report.messages.iter().flat_map(|message| &message.fields);
    let (used, ignored): (Vec<_>, Vec<_>) = fields.partition(|field| !field.uses.is_empty());
    let missing: usize = report
        .messages
        .iter()
        .map(|message| message.missing.len())
        .sum();
    note!(
        "{}: {}, {} used, {} ignored, {missing} missing, no error",
        args.mapping,
        counted(report.messages.len() as u64, "message"),
        counted(used.len() as u64, "field"),
        ignored.len()
    );
    Ok(ExitCode::SUCCESS)
}

fn report(args: &Args) -> Result<Report> {
    if let Some(version) = args.fix {
        let mapping = named_mapping(&args.mapping)?;
        let dictionary = Dictionary::built_in(version);
        return Ok(mapping.for_fix(&dictionary, 0)?.report());
    }
    let templates = args.templates.as_deref().unwrap_or_default();
    let program = load(templates, args.reading.reading())?;
    let mapping = named_mapping(&args.mapping)?;
    Ok(mapping.for_templates(&program, 0)?.report())
}

fn does(message: &MessageReport) -> &'static str {
    message
        .does
        .map_or("ignored: not in the mapping", |does| does.name())
}

fn list(message: &MessageReport, only_used: bool) {
    say!("{}: {}", message.name, does(message));
    for field in &message.fields {
        if only_used && field.uses.is_empty() {
            continue;
        }
        let name = format!("{:indent$}{}", "", field.name, indent = 2 + 2 * field.depth);
        let uses = match field.uses.is_empty() {
            true => "ignored".to_owned(),
            false => field.uses.join("; "),
        };
        say!("{name:<40} {uses}");
    }
    for missing in &message.missing {
        say!("  {missing:<38} missing");
    }
    say!("");
}

fn as_json(report: &Report, only_used: bool) -> serde_json::Value {
    let messages = report.messages.iter().map(|message| {
        let fields = message.fields.iter();
        let fields = fields.filter(|field| !only_used || !field.uses.is_empty());
        let fields = fields
            .map(|field| json!({"name": field.name, "depth": field.depth, "uses": field.uses}));
        json!({
            "name": message.name,
            "does": message.does.map(|does| does.name()),
            "fields": fields.collect::<Vec<_>>(),
            "missing": message.missing,
        })
    });
    json!({"ok": true, "messages": messages.collect::<Vec<_>>()})
}
