//! The model of the screen: the last responses, and the display options.

use super::source::Source;
use anyhow::Result;
use serde_json::{Value, json};
use std::time::Duration;

/// The number of sessions requested: more than fit on a screen.
const SESSIONS: u64 = 200;
/// The number of notices requested.
const NOTICES: u64 = 50;

/// The order of the sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Lag,
    Queue,
    Name,
}

impl Sort {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Lag => "lag",
            Self::Queue => "queue",
            Self::Name => "name",
        }
    }

    pub(super) const fn next(self) -> Self {
        match self {
            Self::Lag => Self::Queue,
            Self::Queue => Self::Name,
            Self::Name => Self::Lag,
        }
    }
}

/// The responses to one round of requests.
#[derive(Debug)]
pub(super) struct Answers {
    status: Value,
    lines: Value,
    sessions: Value,
    stages: Value,
    notices: Value,
}

impl Answers {
    /// Requests all data, with the sessions in this order. Waits for the responses.
    ///
    /// # Errors
    /// There is no response, or the program is not a gateway.
    pub(super) fn ask(sort: Sort, source: &mut Source) -> Result<Self> {
        let order = json!({ "sort": sort.name(), "limit": SESSIONS });
        Ok(Self {
            status: source.ask("status", &json!({}))?,
            lines: source.ask("lines", &json!({}))?,
            sessions: source.ask("sessions", &order)?,
            stages: source.ask("stages", &json!({}))?,
            notices: source.ask("notices", &json!({ "limit": NOTICES }))?,
        })
    }
}

/// The last responses, and the options that keys change.
#[derive(Debug)]
pub(super) struct View {
    pub(super) status: Value,
    pub(super) lines: Value,
    pub(super) sessions: Value,
    pub(super) stages: Value,
    pub(super) notices: Value,
    /// Why the responses are out of date.
    pub(super) trouble: Option<String>,
    pub(super) sort: Sort,
    /// The number of sessions scrolled off the top.
    pub(super) scrolled: usize,
    pub(super) is_paused: bool,
    /// Seconds between two frames.
    pub(super) seconds: u64,
}

impl View {
    pub(super) const fn new(seconds: u64) -> Self {
        Self {
            status: Value::Null,
            lines: Value::Null,
            sessions: Value::Null,
            stages: Value::Null,
            notices: Value::Null,
            trouble: None,
            sort: Sort::Lag,
            scrolled: 0,
            is_paused: false,
            seconds,
        }
    }

    pub(super) const fn interval(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    /// Shows responses, or why there are none.
    pub(super) fn show(&mut self, answer: Result<Answers, String>) {
        match answer {
            Ok(Answers {
                status,
                lines,
                sessions,
                stages,
                notices,
            }) => {
                (self.status, self.lines, self.sessions) = (status, lines, sessions);
                (self.stages, self.notices, self.trouble) = (stages, notices, None);
            }
            Err(trouble) => self.trouble = Some(trouble),
        }
        self.scroll(0);
    }

    /// Scrolls down the list of sessions by this many rows.
    pub(super) fn scroll(&mut self, by: isize) {
        let last = self.rows().len().saturating_sub(1);
        self.scrolled = self.scrolled.saturating_add_signed(by).min(last);
    }

    /// Returns the sessions.
    pub(super) fn rows(&self) -> &[Value] {
        self.sessions["sessions"]
            .as_array()
            .map_or(&[], Vec::as_slice)
    }
}
