//! The audit file of a gateway: Logons, refusals, requests and the commands of operators.

use crate::notice::{Notice, Notices};
use fanfare_engine::counters::Counters;
use fanfare_engine::stop::Reload;
use fanfare_fix::session::SessionId;
use fanfare_operator::{AuditFile, AuditLine, AuditWriter};
use fanfare_wire::text::Escaped;
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

/// The longest text of a peer in a line, in bytes.
const LONGEST: usize = 512;

/// The writing end of the audit file, for any thread. Clones share the file. Without a file, lines
/// are discarded.
#[derive(Clone, Default)]
pub(crate) struct Audit(AuditFile);

/// A request of a session and its outcome.
pub(crate) struct Request<'a> {
    /// The session and its user.
    pub(crate) session: &'a SessionId,
    pub(crate) user: &'a str,
    /// MsgType(35).
    pub(crate) msg_type: &'a [u8],
    /// The ID of the request: MDReqID(262), SecurityReqID(320), ….
    pub(crate) id: &'a [u8],
    /// The fields of the request after its header, without secrets.
    pub(crate) what: &'a [u8],
    /// The reason for the refusal, or `None` if the request was granted.
    pub(crate) refused: Option<&'a str>,
}

/// A client of the DBN port.
pub(crate) struct DbnPeer<'a> {
    /// The number of its session.
    pub(crate) session: u64,
    pub(crate) user: &'a str,
    pub(crate) peer: SocketAddr,
}

impl Audit {
    /// Opens the file ([`AuditFile::open`]). A notice is sent when the file cannot be written.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened.
    pub(crate) fn open(
        path: &Path,
        counters: &Counters,
        notices: Notices,
        reload: Reload,
    ) -> io::Result<(Self, AuditWriter)> {
        let name = path.display().to_string();
        let tell = move |what| {
            let path = name.clone();
            notices.send(Notice::Audit { path, what });
        };
        let (file, writer) = AuditFile::open(path, counters, reload, tell)?;
        Ok((Self(file), writer))
    }

    fn send(&self, line: impl FnOnce() -> AuditLine) {
        self.0.send(line);
    }

    /// Records that a session has logged on.
    pub(crate) fn logon(&self, port: &str, session: &SessionId, user: &str, peer: SocketAddr) {
        self.send(|| of_session("logon", port, session, user, peer));
    }

    /// Records that a session has ended.
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

    /// Records that a Logon was refused.
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

    /// Records a request of a session.
    pub(crate) fn request(&self, request: &Request<'_>) {
        self.send(|| {
            AuditLine::new("request")
                .with("session", request.session)
                .with("user", request.user)
                .with("msg_type", text(request.msg_type))
                .with("id", text(request.id))
                .with("what", text(request.what))
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

    /// Records that a subscription of a user has ended because it is no longer permitted. Its
    /// request had this MsgType(35) and ID.
    pub(crate) fn revoked(&self, session: &SessionId, user: &str, msg_type: &[u8], id: &[u8]) {
        self.send(|| {
            AuditLine::new("revocation")
                .with("session", session)
                .with("user", user)
                .with("msg_type", text(msg_type))
                .with("id", text(id))
        });
    }

    /// Records an event of the DBN port: a logon, the end of a session, a refusal, a request or a
    /// revocation.
    pub(crate) fn dbn(&self, event: &'static str, who: &DbnPeer<'_>, what: &str, why: &str) {
        self.send(|| {
            AuditLine::new(event)
                .with("port", "dbn")
                .with("session", who.session)
                .with("user", who.user)
                .with("peer", who.peer)
                .with("what", Escaped::text(what))
                .with("why", Escaped::text(why))
        });
    }

    /// Records the outcome of a reload of the configuration.
    pub(crate) fn reloaded(&self, outcome: &dyn Display) {
        self.send(|| AuditLine::new("reload").with("outcome", outcome));
    }

    /// Records a command of an operator.
    pub(crate) fn operator(&self, by: &str, command: &str, outcome: &str) {
        self.0.operator(by, command, outcome);
    }
}

/// Returns a value of a request, escaped and clipped.
fn text(bytes: &[u8]) -> String {
    let clipped = bytes.get(..LONGEST).unwrap_or(bytes);
    Escaped::fields(clipped).to_string()
}

fn of_session(
    event: &'static str,
    port: &str,
    session: &SessionId,
    user: &str,
    peer: SocketAddr,
) -> AuditLine {
    AuditLine::new(event)
        .with("port", port)
        .with("session", session)
        .with("user", user)
        .with("peer", peer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notice;
    use fanfare_engine::agent::Agent;
    use fanfare_engine::clock::Clock;
    use fanfare_fix::session::Version;
    use fanfare_peers::Scratch;
    use serde_json::Value;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn each_event_is_a_line_and_what_peers_write_is_escaped() {
        let file = Scratch::new("audit");
        let (notices, _) = notice::channel();
        let opened = Audit::open(&file, &Counters::new(), notices, Reload::new());
        let (audit, mut writer) = opened.unwrap();
        let session = SessionId::new(Version::Fix44, "PLANT", "A\n\x1b[2J");
        let peer = "10.0.0.1:5".parse().unwrap();
        audit.logon("consumers", &session, "desk", peer);
        audit.request(&Request {
            session: &session,
            user: "desk",
            msg_type: b"V",
            id: &[b'\n', 0x1b, 0xff, b'"'],
            what: "x\n".repeat(5000).as_bytes(),
            refused: Some("3: permission"),
        });
        audit.operator("control", "sessions logout DESK1", "1 session");
        assert_eq!(writer.do_work(Clock::new().read()).unwrap(), 3);
        let text = file.text();
        let lines = text.lines().filter(|line| !line.is_empty());
        let lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
        let lines: Vec<_> = lines.collect();
        assert_eq!(lines.len(), 3);
        let time = lines[0]["time"].as_str().unwrap();
        assert!(
            time.ends_with('Z') && time.len() == "2026-11-23T12:30:00.123456Z".len(),
            "{time}"
        );
        assert_eq!(lines[0]["event"], "logon");
        assert_eq!(lines[0]["user"], "desk");
        assert_eq!(lines[1]["outcome"], "refused");
        assert!(!text.contains('\x1b') && text.len() < 4000, "{text}");
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
