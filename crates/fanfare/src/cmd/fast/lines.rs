//! Lines of a file or a pipe, of bounded length.

use super::options::{named, open};
use anyhow::{Context, Result, bail};
use fanfare_engine::stop::Stop;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// The longest line read, bytes.
pub(crate) const LINE_LIMIT: usize = 64 << 20;

/// The content in a line's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line, without its end.
    Text,
    /// A line longer than [`LINE_LIMIT`], which is omitted.
    TooLong,
    /// The end of the file, or Ctrl-C while waiting for more.
    End,
}

/// The lines of a file.
pub(crate) struct LineFile {
    input: BufReader<Box<dyn Read>>,
    name: String,
    /// The current line.
    text: Vec<u8>,
    /// The number of lines read.
    count: u64,
}

impl LineFile {
    /// Opens a file. A wait for a pipe ends when `stop` is raised.
    pub(crate) fn open(path: &Path, stop: &Stop) -> Result<Self> {
        Ok(Self {
            input: BufReader::with_capacity(1 << 16, Box::new(open(path, stop)?)),
            name: path.display().to_string(),
            text: Vec::new(),
            count: 0,
        })
    }

    /// Returns the bytes of the line that [`next`](Self::next) found, without LF or CR LF, and
    /// without a byte order mark.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Advances to the next line; `before_waiting` is called before each read, which may block on a
    /// pipe.
    pub(crate) fn next(&mut self, mut before_waiting: impl FnMut() -> Result<()>) -> Result<Line> {
        self.text.clear();
        let mut is_long = false;
        loop {
            if self.input.buffer().is_empty() {
                before_waiting()?;
            }
            let bytes = match self.input.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Line::End),
                Err(error) => {
                    let (number, name) = (self.count + 1, &self.name);
                    return Err(error).context(format!("cannot read line {number} of `{name}`"));
                }
            };
            let is_end = bytes.is_empty();
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(bytes.len(), |end| end + 1);
            let part = bytes.get(..taken).unwrap_or_default();
            is_long |= self.text.len() + part.len() > LINE_LIMIT;
            if !is_long {
                self.text.extend_from_slice(part);
            }
            self.input.consume(taken);
            if end.is_some() || (is_end && (is_long || !self.text.is_empty())) {
                self.trim();
                self.count += 1;
                return Ok(if is_long { Line::TooLong } else { Line::Text });
            }
            if is_end {
                return Ok(Line::End);
            }
        }
    }

    fn trim(&mut self) {
        for end in [b"\n", b"\r"] {
            if self.text.ends_with(end) {
                self.text.pop();
            }
        }
        if self.count == 0 && self.text.starts_with(b"\xef\xbb\xbf") {
            self.text.drain(..3);
        }
    }
}

/// Refuses to write a file that is also read.
pub(crate) fn refuse_input(written: &Path, read: &[&Path]) -> Result<()> {
    if read.iter().any(|read| is_same_file(read, written)) {
        bail!("cannot write `{}`: it is also the input", written.display());
    }
    Ok(())
}

/// Returns whether two names refer to one file, so that writing one destroys the other.
fn is_same_file(read: &Path, written: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let found = |path: &Path| std::fs::metadata(path).ok().filter(|data| data.is_file());
    let (Some(read), Some(written)) = (found(named(read)), found(written)) else {
        return false;
    };
    (read.dev(), read.ino()) == (written.dev(), written.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Vec<(Line, Vec<u8>)> {
        let input: Box<dyn Read> = Box::new(io::Cursor::new(bytes.to_vec()));
        let mut file = LineFile {
            input: BufReader::with_capacity(1 << 16, input),
            name: "x".to_owned(),
            text: Vec::new(),
            count: 0,
        };
        let mut all = Vec::new();
        loop {
            match file.next(|| Ok(())).unwrap() {
                Line::End => return all,
                Line::TooLong => all.push((Line::TooLong, Vec::new())),
                Line::Text => all.push((Line::Text, file.text().to_vec())),
            }
        }
    }

    #[test]
    fn ends_and_marks_are_no_part_of_a_line() {
        let text = |text: &[u8]| (Line::Text, text.to_vec());
        let read = lines(b"\xef\xbb\xbfa\r\n\nb\n\xef\xbb\xbfc");
        let expected = [text(b"a"), text(b""), text(b"b"), text(b"\xef\xbb\xbfc")];
        assert_eq!(read, expected);
        assert_eq!(lines(b""), []);
    }

    #[test]
    fn a_line_that_is_too_long_is_one_line() {
        let mut bytes = vec![b'x'; LINE_LIMIT + 1];
        bytes.extend_from_slice(b"\nshort");
        let read = lines(&bytes);
        assert_eq!(read[0].0, Line::TooLong);
        assert_eq!(read[1], (Line::Text, b"short".to_vec()));
        assert_eq!(read.len(), 2);
    }
}
