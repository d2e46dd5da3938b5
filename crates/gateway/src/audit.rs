//! The audit file: who logged on, who was refused, what was asked for, what operators did, as JSON
//! lines.
//!
//! Lines come through a bounded queue to a thread of their own, which writes them. Nobody waits for
//! the disk: what finds no room in the queue, and what the disk does not take, is counted, and a
//! line in the file says how many there were as soon as it can be written.

use crate::notice::{Notice, Notices};
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::counters::{Counter, Counters};
use fanfare_engine::stop::Reload;
use fanfare_fix::session::{Now, SessionId};
use fanfare_wire::text::Escaped;
use fanfare_wire::{Precision, UtcTimestamp};
use serde_json::{Map, Value};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::SystemTime;

/// The most lines that wait for the disk.
const CAPACITY: usize = 16_384;
/// Lines written in one turn.
const TURN: usize = 512;
/// The longest text of a peer in a line, in bytes.
const LONGEST: usize = 512;

/// The end that lines are given to, from any thread. Clones are the same file. Without a file,
/// nothing is made of them.
#[derive(Clone, Default)]
pub(crate) struct Audit(Option<End>);

#[derive(Clone)]
struct End {
    lines: SyncSender<Line>,
    left_out: Arc<AtomicU64>,
}

/// What a session asked for, and what became of it.
pub(crate) struct Request<'a> {
    /// The session, and its user.
    pub(crate) session: &'a SessionId,
    pub(crate) user: &'a str,
    /// MsgType(35).
    pub(crate) msg_type: &'a [u8],
    /// Its ID: MDReqID(262), SecurityReqID(320) …
    pub(crate) id: &'a [u8],
    /// What was asked for, in a few words.
    pub(crate) what: &'a str,
    /// Why it was refused; `None`: it was granted.
    pub(crate) refused: Option<&'a str>,
}

/// A client of DBN.
pub(crate) struct DbnPeer<'a> {
    /// The number of its session.
    pub(crate) session: u64,
    pub(crate) user: &'a str,
    pub(crate) peer: SocketAddr,
}

/// One line.
struct Line {
    at: SystemTime,
    event: &'static str,
    fields: Vec<(&'static str, String)>,
}

impl Line {
    fn new(event: &'static str) -> Self {
        Self {
            at: SystemTime::now(),
            event,
            fields: Vec::with_capacity(6),
        }
    }

    /// With a field; what is empty is left out.
    fn with(mut self, name: &'static str, value: impl Display) -> Self {
        let mut value = value.to_string();
        if value.len() > 2 * LONGEST {
            let end = (0..=2 * LONGEST)
                .rev()
                .find(|&end| value.is_char_boundary(end));
            value.truncate(end.unwrap_or(0));
            value.push('…');
        }
        if !value.is_empty() {
            self.fields.push((name, value));
        }
        self
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut object = Map::new();
        object.insert("time".to_owned(), Value::String(iso(self.at)));
        object.insert("event".to_owned(), Value::String(self.event.to_owned()));
        for (name, value) in &self.fields {
            object.insert((*name).to_owned(), Value::String(value.clone()));
        }
        out.extend_from_slice(Value::Object(object).to_string().as_bytes());
        out.push(b'\n');
    }
}

/// `2026-11-23T12:30:00.123456Z`.
pub(crate) fn iso(at: SystemTime) -> String {
    let nanos = at
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos();
    iso_of(UtcTimestamp::from_nanos(
        i64::try_from(nanos).unwrap_or(i64::MAX),
    ))
}

/// As `iso`.
pub(crate) fn iso_of(at: UtcTimestamp) -> String {
    let mut text = [0; 32];
    let len = at.write(Precision::Micros, &mut text);
    let text = String::from_utf8_lossy(text.get(..len).unwrap_or_default()).into_owned();
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default();
    format!(
        "{}-{}-{}T{}Z",
        part(0..4),
        part(4..6),
        part(6..8),
        part(9..len)
    )
}

impl Audit {
    /// Opens the file, appended to, with mode 0600. Returns the end for lines, and the agent that
    /// writes them.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(crate) fn open(
        path: &Path,
        counters: &Counters,
        notices: Notices,
        reload: Reload,
    ) -> io::Result<(Self, AuditWriter)> {
        let (sender, lines) = sync_channel(CAPACITY);
        let left_out = Arc::new(AtomicU64::new(0));
        let end = End {
            lines: sender,
            left_out: Arc::clone(&left_out),
        };
        let writer = AuditWriter {
            out: open(path)?,
            path: path.to_owned(),
            lines,
            left_out,
            untold: 0,
            buffer: Vec::new(),
            trouble: None,
            written: counters.add("audit_lines", "lines written to the audit file"),
            lost: counters.add("audit_lost", "lines that the audit file lacks"),
            notices,
            reload,
        };
        Ok((Self(Some(end)), writer))
    }

    fn send(&self, line: impl FnOnce() -> Line) {
        let Some(end) = &self.0 else {
            return;
        };
        if let Err(TrySendError::Full(_)) = end.lines.try_send(line()) {
            end.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A session has logged on.
    pub(crate) fn logon(&self, port: &str, session: &SessionId, user: &str, peer: SocketAddr) {
        self.send(|| of_session("logon", port, session, user, peer));
    }

    /// A session has ended.
    pub(crate) fn ended(
        &self,
        port: &str,
        session: &SessionId,
        user: &str,
        peer: SocketAddr,
        why: &dyn Display,
    ) {
        self.send(|| of_session("end", port, session, user, peer).with("why", why));
    }

    /// A Logon was refused.
    pub(crate) fn refused(
        &self,
        port: &str,
        session: &SessionId,
        user: &str,
        peer: SocketAddr,
        why: &dyn Display,
    ) {
        self.send(|| of_session("refusal", port, session, user, peer).with("why", why));
    }

    /// A session asked for something.
    pub(crate) fn request(&self, request: &Request<'_>) {
        let text = |bytes: &[u8]| {
            let clipped = bytes.get(..LONGEST).unwrap_or(bytes);
            Escaped::fields(clipped).to_string()
        };
        self.send(|| {
            Line::new("request")
                .with("session", request.session)
                .with("user", request.user)
                .with("msg_type", text(request.msg_type))
                .with("id", text(request.id))
                .with("what", Escaped::text(request.what))
                .with(
                    "outcome",
                    if request.refused.is_some() {
                        "refused"
                    } else {
                        "granted"
                    },
                )
                .with("why", Escaped::text(request.refused.unwrap_or_default()))
        });
    }

    /// Something happened at the port for DBN: a logon, the end of a session, a refusal, a request.
    pub(crate) fn dbn(&self, event: &'static str, who: &DbnPeer<'_>, what: &str, why: &str) {
        self.send(|| {
            Line::new(event)
                .with("port", "dbn")
                .with("session", who.session)
                .with("user", who.user)
                .with("peer", who.peer)
                .with("what", Escaped::text(what))
                .with("why", Escaped::text(why))
        });
    }

    /// The configuration was read again, or was not.
    pub(crate) fn reloaded(&self, outcome: &dyn Display) {
        self.send(|| Line::new("reload").with("outcome", outcome));
    }

    /// An operator did something.
    pub(crate) fn operator(&self, by: &str, command: &str, outcome: &dyn Display) {
        self.send(|| {
            Line::new("operator")
                .with("by", by)
                .with("command", Escaped::text(command))
                .with("outcome", outcome)
        });
    }
}

fn of_session(
    event: &'static str,
    port: &str,
    session: &SessionId,
    user: &str,
    peer: SocketAddr,
) -> Line {
    Line::new(event)
        .with("port", port)
        .with("session", session)
        .with("user", user)
        .with("peer", peer)
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.append(true).create(true).mode(0o600).open(path)
}

/// Writes the lines; for a thread that may wait for the disk.
pub(crate) struct AuditWriter {
    path: PathBuf,
    out: File,
    lines: Receiver<Line>,
    left_out: Arc<AtomicU64>,
    /// Lines that were lost and that no line of the file has told of.
    untold: u64,
    buffer: Vec<u8>,
    /// Why the file cannot be written, as the last notice said.
    trouble: Option<String>,
    written: Counter,
    lost: Counter,
    notices: Notices,
    reload: Reload,
}

impl AuditWriter {
    fn turn(&mut self) -> usize {
        let mut count = 0;
        self.buffer.clear();
        for line in self.lines.try_iter().take(TURN) {
            line.write(&mut self.buffer);
            count += 1;
        }
        let lost = self.left_out.swap(0, Ordering::Relaxed);
        self.lose(lost);
        if count == 0 && (self.untold == 0 || self.trouble.is_some()) {
            return 0;
        }
        self.write(count);
        count
    }

    fn lose(&mut self, lines: u64) {
        if lines > 0 {
            self.untold += lines;
            self.lost.increment(lines);
        }
    }

    /// Writes the lines of the buffer. A line in front of them counts those that were lost before.
    fn write(&mut self, count: usize) {
        let mut bytes = Vec::new();
        if self.trouble.is_some() {
            // The last line may have been cut.
            bytes.push(b'\n');
        }
        if self.untold > 0 {
            Line::new("lost")
                .with("lines", self.untold)
                .write(&mut bytes);
        }
        bytes.append(&mut self.buffer);
        match self.out.write_all(&bytes) {
            Ok(()) => {
                self.untold = 0;
                self.written.increment(count as u64);
                if self.trouble.take().is_some() {
                    self.tell("can be written again".to_owned());
                }
            }
            Err(error) => {
                self.lose(count as u64);
                self.fail(error.to_string());
            }
        }
    }

    fn fail(&mut self, error: String) {
        if self.trouble.as_ref() != Some(&error) {
            self.tell(format!("{error}; lines are lost, and counted"));
            self.trouble = Some(error);
        }
    }

    fn tell(&self, what: String) {
        let path = self.path.display().to_string();
        self.notices.send(Notice::Audit { path, what });
    }

    /// Goes on in a new file of the name, if the old one was renamed.
    fn reopen(&mut self) {
        match open(&self.path) {
            Ok(file) => self.out = file,
            Err(error) => self.tell(format!("{error}; goes on in the old file")),
        }
    }
}

impl Agent for AuditWriter {
    fn name(&self) -> &str {
        "audit"
    }

    fn do_work(&mut self, _now: Now) -> Result<usize, AgentError> {
        if self.reload.is_due() {
            self.reopen();
        }
        Ok(self.turn())
    }

    fn on_close(&mut self, _now: Now) {
        while self.turn() > 0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notice;
    use fanfare_fix::session::Version;

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let name = format!("fanfare-audit-{name}-{}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }

        fn lines(&self) -> Vec<Value> {
            let text = std::fs::read_to_string(&self.0).unwrap();
            let lines = text.lines().filter(|line| !line.is_empty());
            lines
                .map(|line| serde_json::from_str(line).unwrap())
                .collect()
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn begin(place: &Place) -> (Audit, AuditWriter, Reload, Counters) {
        let (counters, reload) = (Counters::new(), Reload::new());
        let (notices, _) = notice::channel();
        let (audit, writer) = Audit::open(&place.0, &counters, notices, reload.clone()).unwrap();
        (audit, writer, reload, counters)
    }

    #[test]
    fn each_event_is_a_line_and_what_peers_write_is_escaped() {
        let place = Place::new("lines");
        let (audit, mut writer, ..) = begin(&place);
        let session = SessionId::new(Version::Fix44, "PLANT", "A\n\x1b[2J");
        let peer = "10.0.0.1:5".parse().unwrap();
        audit.logon("consumers", &session, "desk", peer);
        audit.request(&Request {
            session: &session,
            user: "desk",
            msg_type: b"V",
            id: &[b'\n', 0x1b, 0xff, b'"'],
            what: &"x\n".repeat(5000),
            refused: Some("3: permission"),
        });
        audit.operator("control", "sessions logout DESK1", &"1 session");
        assert_eq!(writer.turn(), 3);
        let lines = place.lines();
        assert_eq!(lines.len(), 3);
        let time = lines[0]["time"].as_str().unwrap();
        assert!(
            time.ends_with('Z') && time.len() == "2026-11-23T12:30:00.123456Z".len(),
            "{time}"
        );
        assert_eq!(lines[0]["event"], "logon");
        assert_eq!(lines[0]["user"], "desk");
        assert_eq!(lines[1]["outcome"], "refused");
        let text = std::fs::read_to_string(&place.0).unwrap();
        assert!(!text.contains('\x1b') && text.len() < 4000, "{text}");
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&place.0).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn nobody_waits_for_the_file_and_what_is_lost_is_told() {
        let place = Place::new("full");
        let (audit, mut writer, _, counters) = begin(&place);
        for _ in 0..CAPACITY + 100 {
            audit.reloaded(&"x");
        }
        while writer.turn() > 0 {}
        let lost: Vec<Value> = place.lines();
        let lost = lost.iter().filter(|line| line["event"] == "lost");
        assert_eq!(
            lost.map(|line| line["lines"].clone()).collect::<Vec<_>>(),
            ["100"]
        );
        assert_eq!(crate::total(&counters, "audit_lost"), 100);
        assert_eq!(crate::total(&counters, "audit_lines"), CAPACITY as u64);
    }

    #[test]
    fn a_disk_that_is_full_costs_lines_and_no_more() {
        let place = Place::new("disk");
        let (audit, mut writer, _, counters) = begin(&place);
        writer.out = open(Path::new("/dev/full")).unwrap();
        audit.reloaded(&"one");
        assert_eq!(writer.turn(), 1);
        assert!(writer.trouble.is_some());
        writer.out = open(&place.0).unwrap();
        audit.reloaded(&"two");
        assert_eq!(writer.turn(), 1);
        let lines = place.lines();
        assert_eq!(lines[0]["lines"], "1");
        assert_eq!(lines[1]["outcome"], "two");
        assert_eq!(crate::total(&counters, "audit_lost"), 1);
        assert!(writer.trouble.is_none());
    }

    #[test]
    fn a_file_that_was_renamed_is_begun_anew() {
        let (place, moved) = (Place::new("old"), Place::new("moved"));
        let (audit, mut writer, reload, _) = begin(&place);
        let now = fanfare_engine::clock::Clock::new().read();
        audit.reloaded(&"one");
        writer.do_work(now).unwrap();
        std::fs::rename(&place.0, &moved.0).unwrap();
        audit.reloaded(&"two");
        writer.do_work(now).unwrap();
        reload.request();
        audit.reloaded(&"three");
        writer.do_work(now).unwrap();
        assert_eq!((moved.lines().len(), place.lines().len()), (2, 1));
    }
}
