//! Bytes that may take as long to come as a pipe likes, until Ctrl-C.

use super::options::is_standard;
use crate::progress;
use anyhow::{Context, Result};
use fanfare_engine::poll::{Interest, Poller, Token};
use fanfare_engine::stop::Stop;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

/// How often Ctrl-C is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// A file, or stdin for `-`. Where it is a pipe, or a terminal, a read that waits when `stop` is
/// raised ends with [`ErrorKind::Interrupted`].
pub(super) fn open(path: &Path, stop: &Stop) -> Result<Box<dyn Read>> {
    let opened = if is_standard(path) {
        io::stdin().as_fd().try_clone_to_owned().map(File::from)
    } else {
        File::open(path)
    };
    let file = opened.with_context(|| format!("cannot open `{}`", path.display()))?;
    let poller = Poller::new(1)?;
    // A plain file, which nobody waits for, is none that it takes.
    if poller.add(&file, Token(0), Interest::Read).is_err() {
        return Ok(Box::new(progress::watch(file)));
    }
    let stop = stop.clone();
    Ok(Box::new(Pipe { file, poller, stop }))
}

/// A signal alone ends a read only if it comes while that waits: one that comes just before it
/// would be forgotten.
struct Pipe {
    file: File,
    poller: Poller,
    stop: Stop,
}

impl Read for Pipe {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        while self.poller.poll(Some(LOOK))? == 0 {
            if self.stop.is_raised() {
                return Err(ErrorKind::Interrupted.into());
            }
        }
        self.file.read(room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_wish_to_stop_that_is_older_than_the_read_ends_it() {
        let (from, mut to) = io::pipe().unwrap();
        let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&from));
        let stop = Stop::new();
        let mut pipe = open(Path::new(&path), &stop).unwrap();
        stop.raise();
        let mut room = [0; 8];
        let ended = pipe.read(&mut room).unwrap_err();
        assert_eq!(ended.kind(), ErrorKind::Interrupted);
        // What is there is read all the same.
        to.write_all(b"rest").unwrap();
        assert_eq!(pipe.read(&mut room).unwrap(), 4);
        drop(to);
        assert_eq!(pipe.read(&mut room).unwrap(), 0);
    }
}
