//! The program's log: the messages of a long-running command about its run, through `tracing`.
//!
//! Events of `tracing` become lines here, filtered by the levels of their targets, and are queued
//! for the thread of a stream ([`crate::background`]); logging never blocks. Targets are those of
//! [`LOG_TARGETS`]. Results and reports of a command are not part of the log: they go to stdout and
//! stderr.

mod file;
mod form;
mod options;

pub(crate) use crate::background::Gap;
pub(crate) use options::{Levels, LogArgs};

use crate::background::{self, ERR, LOG, Queue};
use crate::plural::counted;
use anyhow::{Context, Result};
use fanfare_engine::journal::Recovery;
use fanfare_engine::levels::{LogLevel, LogLevels};
use fanfare_engine::stop::Reload;
use fanfare_fix::codec::DecodeError;
use fanfare_fix::session::SessionId;
use fanfare_gateway::{LOG_TARGETS, LogFormat, LogTo, Notice, ProgramLog};
use file::FileLog;
use form::{Form, Record};
use std::io::IsTerminal;
use std::os::unix::fs::MetadataExt;
use std::sync::{LazyLock, OnceLock};
use std::time::SystemTime;
use tracing::span::{Attributes, Id};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};

static LEVELS: LazyLock<LogLevels> = LazyLock::new(|| LogLevels::new(&LOG_TARGETS));

/// The requests to open the file of the log again, SIGHUP among them.
static RELOAD: OnceLock<Reload> = OnceLock::new();

/// Returns the levels of this process's log.
pub(crate) fn levels() -> LogLevels {
    LEVELS.clone()
}

/// Makes the thread of the log open its file again, if it is one, as SIGHUP does.
pub(crate) fn reopen() {
    if let Some(reload) = RELOAD.get() {
        reload.request();
    }
}

/// Starts the log. From now on lines of this process are written in the background, and the message
/// of a panic is one line. Must be called once, before threads begin to serve.
///
/// # Errors
/// The file cannot be opened, or the thread cannot be started.
pub(crate) fn begin(settings: &ProgramLog) -> Result<()> {
    if let Some(level) = &settings.level {
        LEVELS.apply(level).context("the log's levels")?;
    }
    let form = form_of(settings);
    let (to, stderr) = match &settings.to {
        LogTo::File(path) => {
            let rotation = settings.rotate.rotation(ProgramLog::MAX_BYTES);
            let reload = Reload::on_hangup().context("cannot catch SIGHUP")?;
            let reload = RELOAD.get_or_init(|| reload).clone();
            let file = FileLog::open(path, rotation, reload, gap(form));
            let file = file.with_context(|| format!("cannot write the log {}", path.display()))?;
            LOG.start("log", file, gap(form))?;
            (&LOG, form_of(&ProgramLog::default()))
        }
        _ => (&ERR, form),
    };
    background::begin(gap(stderr))?;
    let program = Program { form, to };
    // A second log in a process would be a defect; the first one stays.
    let _ = tracing::subscriber::set_global_default(program);
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        tracing::error!(target: "program", "{text}");
        if LOG.is_on() || !LEVELS.is_on("program", LogLevel::Error) {
            let text = fanfare_wire::text::Escaped::text(&text).to_string();
            ERR.push(format!("fanfare: {text}\n").into_bytes());
        }
    }));
    Ok(())
}

fn form_of(settings: &ProgramLog) -> Form {
    let stderr = std::io::stderr();
    match (&settings.to, settings.format) {
        (_, LogFormat::Json) => Form::Json,
        (LogTo::Journald, _) => Form::Journal,
        (LogTo::File(_), _) => Form::Text,
        (LogTo::Stderr, _) if is_journal() => Form::Journal,
        (LogTo::Stderr, _) if stderr.is_terminal() => Form::Terminal {
            coloured: console::colors_enabled_stderr(),
        },
        (LogTo::Stderr, _) => Form::Text,
    }
}

/// Returns whether stderr is the journal's, by the device and inode in systemd's variable.
fn is_journal() -> bool {
    let said = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    let stderr = std::fs::metadata("/proc/self/fd/2");
    stderr.is_ok_and(|file| said == format!("{}:{}", file.dev(), file.ino()))
}

/// Returns the function that makes the line for dropped lines, in the log's format.
fn gap(form: Form) -> Gap {
    Box::new(move |count, why| {
        let record = Record {
            text: format!("{} left out here: {why}", counted(count, "line")),
            fields: vec![("left_out", count.to_string(), true)],
        };
        form.line(SystemTime::now(), Level::WARN, "program", &record)
    })
}

/// The subscriber that formats events as lines. This program has no spans.
struct Program {
    form: Form,
    to: &'static Queue,
}

impl Subscriber for Program {
    /// Levels change, so each event checks them.
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, what: &Metadata<'_>) -> bool {
        what.is_event() && LEVELS.is_on(what.target(), level_of(*what.level()))
    }

    fn event(&self, event: &Event<'_>) {
        let what = event.metadata();
        let record = Record::of(event);
        let line = self
            .form
            .line(SystemTime::now(), *what.level(), what.target(), &record);
        if std::ptr::eq(self.to, &raw const ERR) {
            crate::progress::clear();
        }
        self.to.push(line.into_bytes());
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

const fn level_of(level: Level) -> LogLevel {
    match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warn,
        Level::INFO => LogLevel::Info,
        Level::DEBUG => LogLevel::Debug,
        Level::TRACE => LogLevel::Trace,
    }
}

/// Logs an event whose level is known at run time only, of a target of this program.
macro_rules! tell {
    ($target:literal, $level:expr, $($rest:tt)*) => {
        match $level {
            LogLevel::Error => tracing::error!(target: $target, $($rest)*),
            LogLevel::Warn => tracing::warn!(target: $target, $($rest)*),
            LogLevel::Info => tracing::info!(target: $target, $($rest)*),
            _ => tracing::debug!(target: $target, $($rest)*),
        }
    };
}

/// Logs an event of a session, in these words.
pub(crate) fn session(level: LogLevel, session: &SessionId, words: &str) {
    let session = tracing::field::display(session);
    tell!("session", level, session, "{words}");
}

/// Logs that a connection did not become a session, in these words.
pub(crate) fn refused(words: &str) {
    tracing::warn!(target: "session", "{words}");
}

/// Logs that bytes of a session were skipped.
pub(crate) fn garbled(session: &SessionId, why: &DecodeError) {
    let words = format!("{session}: skipped bytes that are no message: {why}");
    self::session(LogLevel::Warn, session, &words);
}

/// Logs that a resend has a gap fill in place of application messages.
pub(crate) fn no_longer_kept(session: &SessionId, begin: u64, end: u64) {
    let words = format!("{session}: {}: gap fill", not_kept(begin, end));
    self::session(LogLevel::Warn, session, &words);
}

/// Returns which messages are no longer kept, in words.
pub(crate) fn not_kept(begin: u64, end: u64) -> String {
    match begin == end {
        true => format!("message {begin} is no longer kept"),
        false => format!("messages {begin} to {end} are no longer kept"),
    }
}

/// Logs that a message of a session has a broken field.
pub(crate) fn unreadable(session: &SessionId, seq: u64, why: &DecodeError) {
    let words = format!("{session}: the message with MsgSeqNum(34) {seq} cannot be read: {why}");
    self::session(LogLevel::Warn, session, &words);
}

/// Logs that the queue of messages that wait after a gap of a session is full.
pub(crate) fn queue_full(session: &SessionId, seq: u64) {
    let what = "the queue behind missing messages is full";
    let words = format!(
        "{session}: {what}: messages from {seq} on are dropped and will be requested again"
    );
    self::session(LogLevel::Warn, session, &words);
}

/// Logs that a reset of the numbers, or a lower next number, discarded messages that waited to be
/// sent.
pub(crate) fn discarded(session: &SessionId, messages: u64) {
    let messages = counted(messages, "message");
    let what = "a reset or a lower next number";
    let words = format!("{session}: {what} discarded {messages} that waited");
    self::session(LogLevel::Warn, session, &words);
}

/// Logs that a reset of the numbers discarded received messages that waited for missing ones.
pub(crate) fn held_discarded(session: &SessionId, messages: u64) {
    let messages = counted(messages, "message");
    let words = format!("{session}: a reset discarded {messages} received after missing ones");
    self::session(LogLevel::Warn, session, &words);
}

/// Logs that messages have no answer, in these words.
pub(crate) fn unanswered(words: &str) {
    tracing::error!(target: "session", "{words}");
}

/// Logs the recovery of a session's store at the start.
pub(crate) fn recovery(session: &SessionId, recovery: &Recovery) {
    let named = tracing::field::display(session);
    tracing::warn!(target: "files", session = named, "{session}: {recovery}");
}

/// Logs a notice of a gateway, in these words.
pub(crate) fn notice(notice: &Notice, words: &str) {
    let session = notice.session().map(tracing::field::display);
    let peer = notice.peer().map(tracing::field::display);
    macro_rules! at {
        ($target:literal) => {
            tell!($target, notice.level(), session, peer, "{words}")
        };
    }
    match notice.target() {
        "session" => at!("session"),
        "feed" => at!("feed"),
        "dds" => at!("dds"),
        "dbn" => at!("dbn"),
        "kafka" => at!("kafka"),
        "history" => at!("history"),
        "files" => at!("files"),
        "control" => at!("control"),
        _ => at!("program"),
    }
}
