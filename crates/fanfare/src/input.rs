//! Input that may block, as a pipe does, until Ctrl-C.

use crate::progress;
use fanfare_engine::poll::{self, Interest, Poller, Token};
use fanfare_engine::stop::Stop;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

/// The interval at which Ctrl-C is polled.
const LOOK: Duration = Duration::from_millis(50);

/// A file, or stdin for `-`. On a pipe or a terminal, a read that is blocked when `stop` is raised
/// ends with [`ErrorKind::Interrupted`]. Reads of a FIFO wait for its writer, not its opening.
pub(crate) struct Input {
    from: Box<dyn Read + Send>,
    /// The poller of an input that may block. A signal interrupts a read only if it comes while
    /// that blocks: one that comes just before would be lost.
    pipe: Option<Poller>,
    stop: Stop,
}

impl Input {
    pub(crate) fn open(path: &Path, stop: &Stop) -> io::Result<Self> {
        let file = if is_standard(path) {
            File::from(io::stdin().as_fd().try_clone_to_owned()?)
        } else {
            poll::open(path)?
        };
        let poller = Poller::new(1)?;
        // The poller refuses a plain file, which never blocks.
        let is_pipe = poller.add(&file, Token(0), Interest::Read).is_ok();
        let from: Box<dyn Read + Send> = match is_pipe {
            true => Box::new(file),
            false => Box::new(progress::watch(file)),
        };
        Ok(Self {
            from,
            pipe: is_pipe.then_some(poller),
            stop: stop.clone(),
        })
    }

    /// Returns whether a read would block now.
    pub(crate) fn would_wait(&mut self) -> bool {
        let pipe = self.pipe.as_mut();
        pipe.is_some_and(|pipe| matches!(pipe.poll(Some(Duration::ZERO)), Ok(0)))
    }
}

impl Read for Input {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let Some(pipe) = &mut self.pipe else {
            return self.from.read(room);
        };
        loop {
            while pipe.poll(Some(LOOK))? == 0 {
                if self.stop.is_raised() {
                    return Err(ErrorKind::Interrupted.into());
                }
            }
            match self.from.read(room) {
                // Another reader of the pipe has taken the bytes.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}

/// Returns true if the path is `-`, which stands for stdin or stdout.
pub(crate) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use std::io::Write;
    use std::process::Command;

    #[test]
    fn a_wish_to_stop_that_is_older_than_the_read_ends_it() {
        let (from, mut to) = io::pipe().unwrap();
        let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&from));
        let stop = Stop::new();
        let mut pipe = Input::open(Path::new(&path), &stop).unwrap();
        assert!(pipe.would_wait());
        stop.raise();
        let mut room = [0; 8];
        let ended = pipe.read(&mut room).unwrap_err();
        assert_eq!(ended.kind(), ErrorKind::Interrupted);
        // Bytes that are available are read without waiting for more.
        to.write_all(b"rest").unwrap();
        assert!(!pipe.would_wait());
        assert_eq!(pipe.read(&mut room).unwrap(), 4);
        drop(to);
        assert_eq!(pipe.read(&mut room).unwrap(), 0);
    }

    #[test]
    fn a_fifo_is_opened_at_once_and_waits_for_its_writer() {
        let folder = Scratch::new("fifo").unwrap();
        let path = folder.file("fifo");
        let made = Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let stop = Stop::new();
        let mut fifo = Input::open(&path, &stop).unwrap();
        assert!(fifo.would_wait());
        stop.raise();
        let mut room = [0; 8];
        let ended = fifo.read(&mut room).unwrap_err();
        assert_eq!(ended.kind(), ErrorKind::Interrupted);
        let mut to = File::options().write(true).open(&path).unwrap();
        assert!(fifo.would_wait(), "the writer has written nothing");
        to.write_all(b"late").unwrap();
        assert_eq!(fifo.read(&mut room).unwrap(), 4);
        drop(to);
        assert_eq!(fifo.read(&mut room).unwrap(), 0);
    }
}
