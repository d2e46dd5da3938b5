//! `fanfare store import`: the file store of another engine.

use crate::plural::counted;
use crate::print::say;
use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use fanfare_engine::clock::Clock;
use fanfare_engine::journal::{QuickFixStore, folder_for, import};
use fanfare_fix::session::{SessionId, Version};
use fanfare_wire::UtcTimestamp;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The suffixes of the names of a store's files.
const SUFFIXES: [&str; 6] = [
    ".body",
    ".header",
    ".seqnums",
    ".senderseqnums",
    ".targetseqnums",
    ".session",
];

/// Options of `fanfare store import`.
#[derive(ClapArgs)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// One of the files, or their name without its suffix: OLD/FIX.4.4-BUY-SELL.
    #[arg(value_name = "FILE")]
    from: PathBuf,
    /// FileStorePath of the sessions here; the folder of the session is created in it.
    #[arg(long, value_name = "DIR")]
    into: PathBuf,
    /// The session as `fanfare store list` names it, if the files' name is ambiguous:
    /// FIX.4.4:BUY->SELL, FIX.4.4:BUY/SUB->SELL, FIX.4.4:BUY->SELL:QUALIFIER.
    #[arg(long, value_name = "NAME")]
    session: Option<SessionId>,
    /// One JSON object: {"session", "path", "messages", "lost", "set_back",
    /// "next_sender", "next_target"}.
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
The command reads the file stores of QuickFIX (C++) and QuickFIX/J: messages, numbers and the time \
of creation. The engine must not run; its files are not changed. Passwords are masked. An \
incomplete message is counted, and a resend has a gap fill in its place.";

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let prefix = without_suffix(&args.from);
    let mut store = QuickFixStore::open(&prefix)?;
    let session = match &args.session {
        Some(session) => session.clone(),
        None => named(&prefix).with_context(|| {
            let from = prefix.display();
            format!(
                "{from}: expected the name VERSION-SENDER-TARGET; --session names the session of \
                 other files"
            )
        })?,
    };
    let created = store.created().map(|text| {
        UtcTimestamp::parse(text.as_bytes()).with_context(|| {
            format!(
                "{}.session: expected a time, found `{text}`",
                prefix.display()
            )
        })
    });
    let created = created
        .transpose()?
        .unwrap_or_else(|| Clock::new().read().utc);
    let name = session.store_name();
    let folder = folder_for(&args.into, &name);
    let done = import(&mut store, &folder, &name, created)?;
    if args.json {
        say!(
            "{}",
            json!({
                "session": session.to_string(),
                "path": folder.to_string_lossy(),
                "messages": done.messages,
                "lost": done.lost,
                "set_back": done.set_back,
                "next_sender": done.next_sender,
                "next_target": done.next_target,
            })
        );
        return Ok(ExitCode::SUCCESS);
    }
    say!(
        "{session}: {} in {}",
        counted(done.messages, "message"),
        folder.display()
    );
    say!(
        "  next out {}, next in {}",
        done.next_sender,
        done.next_target
    );
    if done.set_back > 0 {
        let left = counted(done.set_back, "message");
        say!(
            "  {left} from {} on not imported: the next number is lower",
            done.next_sender
        );
    }
    if done.lost > 0 {
        let lost = counted(done.lost, "message");
        say!("  {lost} incomplete: a resend has a gap fill in their place");
    }
    Ok(ExitCode::SUCCESS)
}

fn without_suffix(path: &Path) -> PathBuf {
    let text = path.as_os_str().to_string_lossy();
    let ends = SUFFIXES.iter().find_map(|suffix| text.strip_suffix(suffix));
    ends.map_or_else(|| path.to_owned(), PathBuf::from)
}

/// Returns the session of files named `VERSION-SENDER-TARGET`, if the name is unambiguous.
fn named(prefix: &Path) -> Option<SessionId> {
    let name = prefix.file_name()?.to_str()?;
    let mut parts = name.split('-');
    let (version, sender, target) = (parts.next()?, parts.next()?, parts.next()?);
    let is_all = parts.next().is_none() && !sender.is_empty() && !target.is_empty();
    let version = Version::parse(version.as_bytes()).filter(|_| is_all)?;
    Some(SessionId::new(version, sender, target))
}
