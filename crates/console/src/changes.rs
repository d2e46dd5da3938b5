//! `/api/v1/changes`: the stream of changes, as server-sent events.
//!
//! A reader that is too slow or reconnects too late learns how many changes it has missed. Each
//! reader buffers one piece of up to 64 KiB; the changes are stored once, for all readers.

use axum::body::{Bytes, HttpBody};
use fanfare_operator::{Change, Changes};
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

/// The body of the response, which ends when the reader leaves.
pub(crate) struct ChangeStream {
    changes: Changes,
    /// The number of the last change sent.
    after: u64,
    /// The kinds requested; empty for all.
    kinds: Vec<String>,
    /// The first event, which has the start of the stream.
    hello: Option<String>,
    timer: Pin<Box<Sleep>>,
    spoke: Instant,
    _permit: OwnedSemaphorePermit,
}

impl ChangeStream {
    /// Makes a stream of the changes after this number, or of new changes only.
    pub(crate) fn new(
        changes: Changes,
        after: Option<u64>,
        kinds: Vec<String>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let (first, next) = changes.range();
        let after = after.unwrap_or(next - 1);
        // With an ID, so that a client that reconnects before the first change misses none.
        let hello =
            format!("id: {after}\nevent: hello\ndata: {{\"first\":{first},\"next\":{next}}}\n\n");
        Self {
            changes,
            after,
            kinds,
            hello: Some(hello),
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
        let since = self.changes.since(self.after, PIECE);
        if since.missed > 0 {
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "event: missed\ndata: {{\"count\":{}}}\n\n",
                since.missed
            );
        }
        for Change { id, kind, data } in since.changes {
            self.after = id;
            if self.kinds.is_empty() || self.kinds.iter().any(|own| own == kind) {
                let _ = write!(text, "id: {id}\nevent: {kind}\ndata: {data}\n\n");
            }
            if text.len() >= PIECE_BYTES {
                break;
            }
        }
        (!text.is_empty()).then_some(text)
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
        ChangeStream::new(changes.clone(), after, kinds, permit)
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
