//! A counterparty as a child process: lines in, lines out.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for anything that a counterparty does: three Java machines on a busy one take more
/// than a minute to start.
const PATIENCE: Duration = Duration::from_secs(180);

/// What a counterparty tells, line by line.
#[derive(Debug)]
pub struct Lines {
    lines: Receiver<String>,
    seen: Vec<String>,
}

/// The counterparty ended, or said nothing more for three minutes; with what it had said.
#[derive(Debug)]
pub struct Stopped {
    /// All lines so far.
    pub seen: Vec<String>,
    /// What was waited for.
    pub wanted: String,
}

impl Lines {
    /// Lines that come through a channel.
    #[must_use]
    pub fn new(lines: Receiver<String>) -> Self {
        let seen = Vec::new();
        Self { lines, seen }
    }

    /// Waits for a line that fits, from those that come from now on, and gives it.
    ///
    /// # Errors
    /// None comes.
    pub fn wait(&mut self, wanted: &str, fits: impl Fn(&str) -> bool) -> Result<String, Stopped> {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if fits(&line) {
                        return Ok(line);
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return Err(Stopped {
                        seen: self.seen.clone(),
                        wanted: wanted.to_owned(),
                    });
                }
            }
        }
    }
}

/// A child process; killed when dropped.
#[derive(Debug)]
pub struct Program {
    child: Child,
    /// Its output.
    pub lines: Lines,
}

impl Program {
    /// Starts it; its errors go to this process's.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (send, receive) = channel();
        if let Some(out) = child.stdout.take() {
            thread::spawn(move || {
                let mut lines = BufReader::new(out).lines();
                while let Some(Ok(line)) = lines.next()
                    && send.send(line).is_ok()
                {}
            });
        }
        let lines = Lines::new(receive);
        Ok(Self { child, lines })
    }

    /// Sends it a line.
    ///
    /// # Errors
    /// It has ended.
    pub fn tell(&mut self, line: &str) -> io::Result<()> {
        match &mut self.child.stdin {
            Some(stdin) => writeln!(stdin, "{line}"),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// The port of the address it listens on, which the kernel chose, once it listens.
    ///
    /// # Errors
    /// It ends, or does not listen within three minutes.
    pub fn listens(&mut self) -> io::Result<SocketAddr> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(port) = listening_port(self.child.id())? {
                return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(io::Error::other(format!("ended: {status}")));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

impl Program {
    /// Kills it.
    pub fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.end();
    }
}

/// From the kernel's tables of sockets, those that the process has open.
fn listening_port(process: u32) -> io::Result<Option<u16>> {
    let mut sockets = Vec::new();
    for file in fs::read_dir(format!("/proc/{process}/fd"))?.flatten() {
        let Ok(target) = fs::read_link(file.path()) else {
            continue;
        };
        let target = target.to_string_lossy();
        let inode = target.strip_prefix("socket:[");
        sockets.extend(
            inode
                .and_then(|rest| rest.strip_suffix(']'))
                .map(str::to_owned),
        );
    }
    for table in ["tcp", "tcp6"] {
        let text = fs::read_to_string(format!("/proc/{process}/net/{table}"))?;
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            // Local address and port, state (0A is LISTEN) and inode.
            if let [_, local, _, "0A", _, _, _, _, _, inode, ..] = words[..]
                && sockets.iter().any(|known| known == inode)
                && let Some((_, port)) = local.rsplit_once(':')
            {
                return Ok(u16::from_str_radix(port, 16).ok());
            }
        }
    }
    Ok(None)
}
