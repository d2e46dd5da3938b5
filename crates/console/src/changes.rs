//! `/api/v1/changes`: the stream of changes, as server-sent events.
//!
//! A reader that is too slow or reconnects too late learns how many changes it has missed. Each
//! reader buffers one piece of up to 64 KiB; the changes are stored once, for all readers.

use crate::token::Pass;
use axum::body::{Bytes, HttpBody};
use axum::http::HeaderValue;
use fanfare_operator::{Change, Changes, Since};
use hyper::body::Frame;
use std::convert::Infallible;
use std::fmt::Write;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep, sleep};

/// The interval at which changes are polled.
const LOOK: Duration = Duration::from_millis(100);
/// The longest time without an event.
const SILENCE: Duration = Duration::from_secs(15);
/// Most changes in one piece, and the length in bytes at which a piece is sent.
const PIECE: usize = 256;
const PIECE_BYTES: usize = 64 << 10;

/// The kinds of events that every reader is sent.
const ALWAYS: [&str; 2] = ["hello", "missed"];

/// The changes that a reader requests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The last change that the reader has seen; `None` for new changes only.
    after: Option<u64>,
    /// The kinds requested; empty for all.
    kinds: Vec<String>,
}

impl Wanted {
    /// Reads the parameters of a request to a program with changes of the `known` kinds. The header
    /// Last-Event-ID takes precedence over `after`.
    ///
    /// # Errors
    /// Returns the reason why a parameter cannot be used.
    pub(crate) fn read(
        last: Option<&HeaderValue>,
        query: Vec<(String, String)>,
        known: &[&str],
    ) -> Result<Self, String> {
        let (mut after, mut kinds) = (None, None);
        for (name, value) in query {
            let is_again = match &*name {
                "after" => after.replace(number(&value)?).is_some(),
                "kinds" => kinds.replace(split(&value, known)?).is_some(),
                _ => return Err("`changes` takes `after` and `kinds`".to_owned()),
            };
            if is_again {
                return Err(format!("parameter `{name}` occurs twice"));
            }
        }
        let last = last.map(|id| number(id.to_str().unwrap_or_default()));
        Ok(Self {
            after: last.transpose()?.or(after),
            kinds: kinds.unwrap_or_default(),
        })
    }
}

/// Returns the number of a change.
fn number(text: &str) -> Result<u64, String> {
    let why = "`after`, or Last-Event-ID, must be the id of an event, a number";
    text.parse().map_err(|_| why.to_owned())
}

/// Returns the kinds of a list with commas.
fn split(list: &str, known: &[&str]) -> Result<Vec<String>, String> {
    let is_known = |kind: &str| known.is_empty() || known.contains(&kind) || ALWAYS.contains(&kind);
    match list.split(',').find(|kind| !is_known(kind)) {
        Some(kind) => {
            let known = known.join(", ");
            Err(format!("unknown kind `{kind}`: expected one of {known}"))
        }
        None => Ok(list.split(',').map(str::to_owned).collect()),
    }
}

/// The body of the response, which ends when the reader leaves, or is no longer permitted.
pub(crate) struct ChangeStream {
    changes: Changes,
    /// The number of the last change that was sent or passed over.
    after: u64,
    /// The kinds requested; empty for all.
    kinds: Vec<String>,
    /// The first event, which has the start of the stream.
    hello: Option<String>,
    /// The permission of a reader that needs the token.
    pass: Option<Pass>,
    timer: Pin<Box<Sleep>>,
    spoke: Instant,
    _permit: OwnedSemaphorePermit,
}

impl ChangeStream {
    /// Makes a stream of the changes requested.
    pub(crate) fn new(
        changes: Changes,
        wanted: Wanted,
        pass: Option<Pass>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let (first, next) = changes.range();
        let after = wanted.after.unwrap_or(next - 1);
        // With an ID, so that a client that reconnects before the first change misses none.
        let hello =
            format!("id: {after}\nevent: hello\ndata: {{\"first\":{first},\"next\":{next}}}\n\n");
        Self {
            changes,
            after,
            kinds: wanted.kinds,
            hello: Some(hello),
            pass,
            timer: Box::pin(sleep(LOOK)),
            spoke: Instant::now(),
            _permit: permit,
        }
    }

    /// Returns the changes that are due.
    fn piece(&mut self) -> Option<String> {
        if let Some(hello) = self.hello.take() {
            return Some(hello);
        }
        let mut text = String::new();
        // Changes of other kinds are passed over at once.
        while text.is_empty() {
            let Since { missed, changes } = self.changes.since(self.after, PIECE);
            if missed > 0 {
                // Writing to a string cannot fail.
                let _ = write!(text, "event: missed\ndata: {{\"count\":{missed}}}\n\n");
            } else if changes.is_empty() {
                return None;
            }
            for Change { id, kind, data } in changes {
                self.after = id;
                if self.kinds.is_empty() || self.kinds.iter().any(|own| own == kind) {
                    let _ = write!(text, "id: {id}\nevent: {kind}\ndata: {data}\n\n");
                }
                if text.len() >= PIECE_BYTES {
                    break;
                }
            }
        }
        Some(text)
    }
}

impl HttpBody for ChangeStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            if self.pass.as_ref().is_some_and(Pass::is_over) {
                return Poll::Ready(None);
            }
            let now = Instant::now();
            let mut piece = self.piece();
            if piece.is_none() && now - self.spoke >= SILENCE {
                // Kinds that were not requested have passed; an ID without data is no event.
                piece = Some(format!(":\nid: {}\n\n", self.after));
            }
            if let Some(piece) = piece {
                self.spoke = now;
                return Poll::Ready(Some(Ok(Frame::data(piece.into()))));
            }
            if self.timer.is_elapsed() {
                self.timer.as_mut().reset(now + LOOK);
            }
            ready!(self.timer.as_mut().poll(context));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};
    use std::sync::Arc;
    use tokio::sync::Semaphore;

    fn stream(changes: &Changes, after: Option<u64>, kinds: &[&str]) -> ChangeStream {
        let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let kinds = kinds.iter().map(|&kind| kind.to_owned()).collect();
        ChangeStream::new(changes.clone(), Wanted { after, kinds }, None, permit)
    }

    fn push(changes: &Changes, kind: &'static str, text: &str) {
        changes.push(kind, Map::from_iter([("a".to_owned(), json!(text))]));
    }

    #[tokio::test]
    async fn a_reader_gets_what_it_has_not_seen() {
        let changes = Changes::default();
        push(&changes, "line", "b\nc");
        push(&changes, "session", "d");
        let mut new = stream(&changes, None, &[]);
        assert_eq!(
            new.piece().unwrap(),
            "id: 2\nevent: hello\ndata: {\"first\":1,\"next\":3}\n\n"
        );
        assert_eq!(new.piece(), None);
        let mut old = stream(&changes, Some(0), &[]);
        old.piece();
        let expected = "id: 1\nevent: line\ndata: {\"a\":\"b\\nc\"}\n\n\
                        id: 2\nevent: session\ndata: {\"a\":\"d\"}\n\n";
        assert_eq!(old.piece().unwrap(), expected);
        let mut some = stream(&changes, Some(0), &["session"]);
        some.piece();
        assert_eq!(some.piece().unwrap().matches("id: ").count(), 1);
    }

    #[tokio::test]
    async fn changes_that_are_not_wanted_hold_up_none_that_are() {
        let changes = Changes::default();
        (0..PIECE * 10).for_each(|_| push(&changes, "line", "x"));
        push(&changes, "session", "d");
        let mut some = stream(&changes, Some(0), &["session"]);
        some.piece();
        let expected = format!("id: {}\nevent: session\n", PIECE * 10 + 1);
        assert!(some.piece().unwrap().starts_with(&expected));
        assert_eq!(some.piece(), None);
    }

    #[test]
    fn a_request_is_for_kinds_that_there_are() {
        let known = ["line", "session"];
        let read = |query: &[(&str, &str)], last: Option<&'static str>| {
            let query = query
                .iter()
                .map(|&(name, value)| (name.into(), value.into()));
            let last = last.map(HeaderValue::from_static);
            Wanted::read(last.as_ref(), query.collect(), &known)
        };
        let wanted = |after, kinds: &[&str]| {
            let kinds = kinds.iter().map(|&kind| kind.to_owned()).collect();
            Ok::<_, String>(Wanted { after, kinds })
        };
        assert_eq!(read(&[], None), wanted(None, &[]));
        let some = [("after", "7"), ("kinds", "session,missed")];
        assert_eq!(read(&some, None), wanted(Some(7), &["session", "missed"]));
        assert_eq!(read(&[("after", "7")], Some("9")), wanted(Some(9), &[]));
        for (query, last, why) in [
            (
                &[("kinds", "lines")][..],
                None,
                "expected one of line, session",
            ),
            (&[("kinds", "")], None, "unknown kind ``"),
            (
                &[("after", "1"), ("after", "2")],
                None,
                "`after` occurs twice",
            ),
            (
                &[("kinds", "line"), ("kinds", "line")],
                None,
                "`kinds` occurs twice",
            ),
            (&[("after", "x")], Some("9"), "a number"),
            (&[], Some("x"), "a number"),
            (&[("kind", "line")], None, "takes `after` and `kinds`"),
        ] {
            let error = read(query, last).unwrap_err();
            assert!(error.contains(why), "{why} in {error}");
        }
    }

    #[tokio::test]
    async fn a_reader_who_was_too_slow_is_told_how_many_it_has_missed() {
        let changes = Changes::default();
        (0..20_000).for_each(|_| push(&changes, "line", "x"));
        let mut late = stream(&changes, Some(1), &[]);
        late.piece();
        let piece = late.piece().unwrap();
        let missed = 20_000 - 16_384 - 1;
        assert!(piece.starts_with(&format!("event: missed\ndata: {{\"count\":{missed}}}\n\n")));
        assert_eq!(piece.matches("id: ").count(), PIECE);
        assert_eq!(late.piece().unwrap().matches("event: missed").count(), 0);
    }
}
