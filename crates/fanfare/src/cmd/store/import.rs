//! `fanfare store import`: the file store of another engine.

use crate::plural::counted;
use crate::print::say;
use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use fanfare_engine::clock::Clock;
use fanfare_engine::journal::{QuickFixStore, folder_for, import};
use fanfare_fix::codec::{Decoder, Message};
use fanfare_fix::session::{SessionId, SubIds, Version};
use fanfare_fix::{msg_type, tag};
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
incomplete message is counted, and a resend has a gap fill in its place. Files whose first message \
is of another session than their name, or than --session, are not imported.";

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
    check_session(&mut store, &prefix, &session, args.session.is_some())?;
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

/// The messages in which the IDs of the session are searched.
const LOOKED_AT: usize = 1_000;

/// Checks that the first message of the store is of this session. The files' name may be read in
/// several ways: QuickFIX/J joins a CompID and its SubID with `_`.
fn check_session(
    store: &mut QuickFixStore,
    prefix: &Path,
    session: &SessionId,
    is_given: bool,
) -> Result<()> {
    let numbers: Vec<u64> = store.messages().take(LOOKED_AT).collect();
    let (mut decoder, mut bytes) = (Decoder::new(), Vec::new());
    for seq in numbers {
        if !store.read(seq, &mut bytes)? {
            continue;
        }
        let Ok(message) = decoder.decode(&bytes) else {
            continue;
        };
        let Some(found) = session_of(&message, session) else {
            let version = message.begin_string().escape_ascii();
            bail!(
                "{}: its messages have BeginString(8) {version}",
                prefix.display()
            );
        };
        // The application may set the SubIDs of a message, and a name that is given need not have
        // those of a Logon.
        let may_have_more = is_given || message.msg_type() != msg_type::LOGON;
        if found == *session || may_have_more && is_within(session, &found) {
            return Ok(());
        }
        bail!(
            "{}: its messages are of session {found}, not of {session}: import them with \
             --session '{found}'",
            prefix.display()
        );
    }
    Ok(())
}

/// Returns the session that a message of our side names, with the qualifier of `session`.
fn session_of(message: &Message<'_>, session: &SessionId) -> Option<SessionId> {
    let id = |tag| String::from_utf8_lossy(message.get(tag).unwrap_or_default());
    let version = Version::parse(message.begin_string())?;
    let (sender, target) = (id(tag::SENDER_COMP_ID), id(tag::TARGET_COMP_ID));
    let qualifier = session.sub.as_ref().map(|sub| sub.qualifier.clone());
    Some(
        SessionId::new(version, &sender, &target).with_sub_ids(SubIds {
            sender: id(tag::SENDER_SUB_ID).into(),
            sender_location: id(tag::SENDER_LOCATION_ID).into(),
            target: id(tag::TARGET_SUB_ID).into(),
            target_location: id(tag::TARGET_LOCATION_ID).into(),
            qualifier: qualifier.unwrap_or_default(),
        }),
    )
}

/// Returns whether all IDs that `session` names are those of `found`.
fn is_within(session: &SessionId, found: &SessionId) -> bool {
    let comp_ids = |id: &SessionId| (id.version, id.sender.clone(), id.target.clone());
    let none = SubIds::default();
    let (own, theirs) = (session.sub.as_deref(), found.sub.as_deref());
    let named = own.unwrap_or(&none).found_in(theirs.unwrap_or(&none));
    comp_ids(session) == comp_ids(found) && named.is_some()
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
