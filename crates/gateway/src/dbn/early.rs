//! The requests that a client sends before it starts its session.

use std::collections::VecDeque;

/// The most requests that are queued.
const MOST: usize = 10_000;
/// The limit of their bytes, in lines of the longest kind.
const LONGEST: usize = 64;

/// Requests that are queued until the session is started.
#[derive(Debug, Default)]
pub(super) struct Early {
    lines: VecDeque<Box<str>>,
    /// The bytes of all of them.
    bytes: usize,
}

impl Early {
    /// Queues a line. `longest` is the length of the longest line that a client may send.
    ///
    /// # Errors
    /// Returns the limit that the line exceeds.
    pub(super) fn push(&mut self, line: &str, longest: usize) -> Result<(), String> {
        if self.lines.len() >= MOST {
            return Err(format!("more than {MOST} requests before start_session"));
        }
        let most = LONGEST * longest;
        if self.bytes + line.len() > most {
            return Err(format!(
                "requests of more than {most} bytes before start_session"
            ));
        }
        self.bytes += line.len();
        self.lines.push_back(line.into());
        Ok(())
    }

    /// Removes the first line.
    pub(super) fn pop(&mut self) -> Option<Box<str>> {
        let line = self.lines.pop_front()?;
        self.bytes -= line.len();
        Some(line)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_limited_in_number_and_in_bytes() {
        let mut early = Early::default();
        for _ in 0..MOST {
            early.push("a", 1_000).unwrap();
        }
        let why = early.push("a", 1_000).unwrap_err();
        assert_eq!(why, "more than 10000 requests before start_session");
        assert_eq!(early.pop().as_deref(), Some("a"));
        early.push("b", 1_000).unwrap();
        let mut early = Early::default();
        for _ in 0..LONGEST {
            early.push("four", 4).unwrap();
        }
        let why = early.push("four", 4).unwrap_err();
        assert!(why.contains("more than 256 bytes"), "{why}");
        while early.pop().is_some() {}
        assert!(early.is_empty() && early.bytes == 0);
    }
}
