//! The recent notices, for queries after the program's log was read.

use super::page::Page;
use super::{render, tell};
use crate::notice::digest::cut;
use crate::notice::{Notice, Taken};
use fanfare_engine::clock;
use fanfare_history::moment::utc;
use fanfare_operator::Changes;
use fanfare_wire::text::Escaped;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most notices that are kept.
const KEPT: usize = 1_000;

/// The notices received, for any thread. Clones share them.
#[derive(Clone)]
pub(crate) struct NoticeBoard {
    kept: Arc<Mutex<Kept>>,
    changes: Changes,
}

#[derive(Default)]
struct Kept {
    last: u64,
    left_out: u64,
    notices: VecDeque<Noted>,
}

struct Noted {
    id: u64,
    time: u64,
    is_trouble: bool,
    kind: &'static str,
    text: String,
}

impl Noted {
    fn object(&self) -> Map<String, Value> {
        render::object([
            ("id", json!(self.id)),
            ("time", json!(utc(self.time))),
            ("trouble", json!(self.is_trouble)),
            ("kind", json!(self.kind)),
            ("text", json!(self.text)),
        ])
    }
}

impl NoticeBoard {
    pub(super) fn new(changes: Changes) -> Self {
        Self {
            kept: Arc::default(),
            changes,
        }
    }

    /// Keeps an item received.
    pub(crate) fn take(&self, taken: Taken<'_>) {
        match taken {
            Taken::Notice(notice) => self.note(notice),
            Taken::LeftOut(count) => self.lock().left_out += count,
        }
    }

    fn note(&self, notice: &Notice) {
        self.tell_session(notice);
        let mut kept = self.lock();
        kept.last += 1;
        let noted = Noted {
            id: kept.last,
            time: clock::utc(),
            is_trouble: notice.is_trouble(),
            kind: notice.kind(),
            text: text(notice),
        };
        // A session that logs on, or ends in order, is reported as such.
        let is_routine = !noted.is_trouble && matches!(noted.kind, "logged_on" | "ended");
        if !is_routine {
            self.changes.push("notice", noted.object());
        }
        kept.notices.push_back(noted);
        if kept.notices.len() > KEPT {
            kept.notices.pop_front();
        }
    }

    /// Returns the notices with numbers above `after`, the newest first.
    pub(crate) fn list(&self, page: &Page) -> Result<Value, String> {
        let after = page.after_number()?;
        let kept = self.lock();
        let newest = kept.notices.iter().rev();
        let wanted: Vec<_> = newest.take_while(|own| own.id > after).collect();
        let shown = wanted.iter().take(page.limit);
        Ok(json!({
            "total": wanted.len(),
            "next": null,
            "left_out": kept.left_out,
            "notices": shown.map(|own| own.object()).collect::<Vec<_>>(),
        }))
    }

    fn tell_session(&self, notice: &Notice) {
        let (session, peer, what) = match notice {
            Notice::LoggedOn { session, peer } => (session, peer, "on"),
            Notice::Ended {
                session: Some(session),
                peer,
                ..
            } => (session, peer, "off"),
            _ => return,
        };
        let fields = [
            ("what", json!(what)),
            ("session", json!(session.to_string())),
            ("peer", json!(peer.to_string())),
        ];
        tell(&self.changes, "session", render::object(fields));
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the line of a notice, escaped, and truncated if it is too long.
fn text(notice: &Notice) -> String {
    cut(Escaped::text(&notice.to_string()).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kafka(what: &str) -> Notice {
        Notice::Kafka {
            topic: "T".to_owned(),
            what: what.to_owned(),
        }
    }

    #[test]
    fn the_newest_come_first_and_the_oldest_go() {
        let board = NoticeBoard::new(Changes::default());
        for number in 0..KEPT + 5 {
            board.note(&kafka(&format!("\u{1b}[2J{number}")));
        }
        board.take(Taken::LeftOut(7));
        let page = |after: Option<&str>| Page {
            after: after.map(str::to_owned),
            limit: 2,
        };
        let all = board.list(&page(None)).unwrap();
        assert_eq!((&all["total"], &all["left_out"]), (&json!(KEPT), &json!(7)));
        assert_eq!(all["notices"].as_array().unwrap().len(), 2);
        let newest = &all["notices"][0];
        assert_eq!(newest["id"], json!(KEPT + 5));
        assert_eq!(newest["text"], r"kafka T: \u{1b}[2J1004");
        let none = board.list(&page(Some("1005"))).unwrap();
        assert_eq!((&none["total"], &none["notices"]), (&json!(0), &json!([])));
        board.list(&page(Some("x"))).unwrap_err();
        board.note(&kafka(&"ä".repeat(10_000)));
        let long = board.list(&page(None)).unwrap();
        let text = long["notices"][0]["text"].as_str().unwrap();
        assert!(text.len() < 1_024 && text.ends_with(" bytes)"), "{text}");
    }

    #[test]
    fn sessions_that_come_and_go_are_told_as_such() {
        let changes = Changes::default();
        let board = NoticeBoard::new(changes.clone());
        let session = fanfare_fix::session::SessionId::new(
            fanfare_fix::session::Version::Fix44,
            "PLANT",
            "DESK",
        );
        let peer = "127.0.0.1:5".parse().unwrap();
        board.note(&Notice::LoggedOn { session, peer });
        board.note(&kafka("x"));
        let kinds: Vec<_> = changes
            .since(0, 9)
            .changes
            .iter()
            .map(|own| own.kind)
            .collect();
        assert_eq!(kinds, ["session", "notice"]);
    }
}
