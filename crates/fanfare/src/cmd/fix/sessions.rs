//! What both sides do with a settings file.

use crate::print::note;
use anyhow::{Context, Result, ensure};
use fanfare_engine::agent::Crew;
use fanfare_engine::counters::Counters;
use fanfare_engine::host::{LogOptions, LogTap, MessageLog};
use fanfare_engine::idle::Idle;
use fanfare_engine::limits::raise_open_files;
use fanfare_engine::settings::{DictionaryFiles, SessionSettings, Settings};
use fanfare_engine::stop::Reload;
use fanfare_fix::dict::DictionaryValidator;
use fanfare_fix::session::{Role, SessionId};
use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Longest sleep of a thread that has nothing to do.
pub(super) const NAP: Duration = Duration::from_millis(20);
/// Room in front of a body that is as long as a message may be.
pub(super) const HEADER_ROOM: usize = 4 << 10;
/// Descriptors of a session: its socket, and of its journal the lock, a file, and the next one.
const DESCRIPTORS: u64 = 4;
/// Those of the process itself.
const SPARE_DESCRIPTORS: u64 = 100;

/// The sessions of this role in a settings file; what has no effect is named.
pub(super) fn read(path: &Path, role: Role) -> Result<Vec<SessionSettings>> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    let settings = Settings::parse(&text).with_context(|| name.to_string())?;
    for remark in &settings.remarks {
        note!("{name}: {remark}");
    }
    let kind = match role {
        Role::Acceptor => "acceptor",
        Role::Initiator => "initiator",
    };
    let mut sessions = settings.sessions;
    sessions.retain(|session| {
        let is_ours = session.role == role;
        if !is_ours {
            let id = &session.config.id;
            note!("{name}: session {id} is no {kind}, it is left out");
        }
        is_ours
    });
    ensure!(
        !sessions.is_empty(),
        "{name} has no session with ConnectionType={kind}"
    );
    // If that fails, opening the first descriptor too many reports it.
    let _ = raise_open_files(descriptors(&sessions));
    Ok(sessions)
}

/// Descriptors that are needed when all sessions have a connection, and each port as many more as
/// it may have.
fn descriptors(sessions: &[SessionSettings]) -> u64 {
    let of = |session: &SessionSettings| Some((session.listen?, session.port_limits.connections));
    let ports: BTreeMap<SocketAddr, usize> = sessions.iter().filter_map(of).collect();
    let not_logged_on: usize = ports.values().sum();
    sessions.len() as u64 * DESCRIPTORS + not_logged_on as u64 + SPARE_DESCRIPTORS
}

/// Sessions whose stores have lost messages start all the same.
pub(super) fn accept_loss(sessions: &mut [SessionSettings]) {
    for session in sessions {
        session.store.accept_loss();
    }
}

/// The first folder that a session names: there is one log for all.
pub(super) fn log_folder(sessions: &[SessionSettings]) -> Option<PathBuf> {
    let mut folders = sessions.iter().filter_map(|session| session.log.clone());
    let folder = folders.next()?;
    if folders.any(|other| other != folder) {
        let path = folder.join("messages.log");
        note!("one message log for all sessions: {}", path.display());
    }
    Some(folder)
}

/// Prints what the message log lacks, if it lacks anything.
pub(super) fn tell_losses(counters: &Counters) {
    let lost = counters.snapshot().into_iter().filter(|reading| {
        matches!(&*reading.label, "log_lost_bytes" | "log_unwritten_bytes") && reading.value > 0
    });
    for reading in lost {
        note!("{} {}", reading.value, reading.description);
    }
}

/// A message log in this folder, written by a thread of the crew.
pub(super) fn message_log(
    folder: &Path,
    lossy: bool,
    reload: &Reload,
    counters: &Counters,
    crew: &mut Crew,
) -> Result<LogTap> {
    let options = LogOptions {
        lossy,
        ..LogOptions::default()
    };
    let cannot = || format!("cannot write a message log in {}", folder.display());
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(folder);
    made.with_context(cannot)?;
    let path = folder.join("messages.log");
    let (tap, log) = MessageLog::open(&path, options, counters).with_context(cannot)?;
    crew.spawn(log.reopen_on(reload.clone()), Idle::Sleep(NAP), None)?;
    Ok(tap)
}

/// The dictionaries of a session.
pub(super) fn validator(
    files: &DictionaryFiles,
    id: &SessionId,
) -> Result<Arc<DictionaryValidator>> {
    let read = |path: &Path| std::fs::read_to_string(path);
    let validator = files.load(&read).with_context(|| format!("session {id}"))?;
    Ok(Arc::new(validator))
}
