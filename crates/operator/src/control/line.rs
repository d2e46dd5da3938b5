//! Lines of bounded length from a socket.

use std::io::{self, Read};

/// The longest line, in bytes.
const LONGEST: usize = 64 << 10;

/// The result of a read.
pub(super) enum Line<'a> {
    /// A line, without its end.
    Whole(&'a [u8]),
    /// A line longer than permitted, after which the connection is unusable.
    TooLong,
    /// No line within the timeout.
    Nothing,
    /// The peer has gone.
    End,
}

/// The lines of one connection.
pub(super) struct Lines<R> {
    from: R,
    bytes: Vec<u8>,
    /// The number of bytes at the front that belong to the last line.
    taken: usize,
    is_broken: bool,
}

impl<R: Read> Lines<R> {
    pub(super) const fn new(from: R) -> Self {
        Self {
            from,
            bytes: Vec::new(),
            taken: 0,
            is_broken: false,
        }
    }

    /// Returns whether a line was too long.
    pub(super) const fn is_broken(&self) -> bool {
        self.is_broken
    }

    pub(super) fn next(&mut self) -> Line<'_> {
        self.bytes.drain(..std::mem::take(&mut self.taken));
        let mut looked_at = 0;
        loop {
            let fresh = self.bytes.get(looked_at..).unwrap_or_default();
            let end = fresh.iter().position(|&byte| byte == b'\n');
            let end = end.map(|end| looked_at + end);
            looked_at = end.unwrap_or(self.bytes.len());
            if looked_at > LONGEST {
                self.is_broken = true;
                return Line::TooLong;
            }
            if let Some(end) = end {
                self.taken = end + 1;
                return Line::Whole(self.bytes.get(..end).unwrap_or_default());
            }
            let mut chunk = [0; 4096];
            match self.from.read(&mut chunk) {
                Ok(0) => return Line::End,
                Ok(read) => self
                    .bytes
                    .extend_from_slice(chunk.get(..read).unwrap_or_default()),
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => return Line::Nothing,
                    _ => return Line::End,
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_and_have_a_longest() {
        let long = vec![b'x'; LONGEST + 4096];
        let text = [b"one\n\ntwo\n".as_slice(), &long].concat();
        let mut lines = Lines::new(text.as_slice());
        for expected in ["one", "", "two"] {
            let Line::Whole(line) = lines.next() else {
                panic!("no line");
            };
            assert_eq!(line, expected.as_bytes());
        }
        assert!(matches!(lines.next(), Line::TooLong) && lines.is_broken());
        for (len, is_whole) in [(LONGEST, true), (LONGEST + 1, false)] {
            let text = [vec![b'x'; len].as_slice(), b"\n"].concat();
            let mut lines = Lines::new(text.as_slice());
            assert_eq!(matches!(lines.next(), Line::Whole(_)), is_whole, "{len}");
        }
        let mut cut = Lines::new(b"no end".as_slice());
        assert!(matches!(cut.next(), Line::End));
    }
}
