//! A counterparty as a child process, controlled by lines.

use std::fs;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fanfare_engine::process::{Missing, Process, Stream};

/// The longest wait for any response of a counterparty: three Java machines on a busy one take more
/// than a minute to start.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// A child process, killed on drop. It does not outlive the thread that started it, however that
/// ends.
#[derive(Debug)]
pub struct Program(Process);

impl Program {
    /// Starts the process; its stderr is that of this process.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Process::start_tied(command.stderr(Stdio::inherit())).map(Self)
    }

    /// Returns the next line that it prints.
    ///
    /// # Errors
    /// The process has ended, or prints nothing for three minutes.
    pub fn line(&mut self) -> Result<String, Missing> {
        let found = self.0.next_line(Some(Stream::Out), PATIENCE);
        found.map(|(_, line)| line.trim_end().to_owned())
    }

    /// Sends it a line.
    ///
    /// # Errors
    /// The process has ended.
    pub fn tell(&mut self, line: &str) -> io::Result<()> {
        match self.0.stdin() {
            Some(stdin) => writeln!(stdin, "{line}"),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Waits until it listens, and returns the address, whose port the kernel chose.
    ///
    /// # Errors
    /// The process ends, or does not listen within three minutes.
    pub fn listens(&mut self) -> io::Result<SocketAddr> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(port) = listening_port(self.0.id())? {
                return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
            }
            if let Some(status) = self.0.wait(Duration::ZERO)? {
                return Err(io::Error::other(format!("ended: {status}")));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    /// Closes its stdin, and waits for its end; kills it if it does not end.
    pub fn close(&mut self) {
        drop(self.0.stdin().take());
        if !matches!(self.0.wait(PATIENCE), Ok(Some(_))) {
            self.end();
        }
    }

    /// Kills the process.
    pub fn end(&mut self) {
        // The process may have ended.
        let _ = self.0.kill();
    }
}

/// Returns the listening port of the process, from the kernel's tables of sockets.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::env;

    /// The variable with which the test starts itself as the parent of a program.
    const PARENT: &str = "FANFARE_PEERS_TEST_PARENT";
    const NAME: &str = "program::tests::a_program_ends_with_a_parent_that_is_killed";

    #[test]
    fn a_program_ends_with_a_parent_that_is_killed() {
        if env::var_os(PARENT).is_some() {
            let _program = Program::start(Command::new("sleep").arg("600")).unwrap();
            writeln!(io::stderr(), "started").unwrap();
            loop {
                thread::park();
            }
        }
        let mut parent = Command::new(env::current_exe().unwrap());
        parent.args(["--exact", NAME]).env(PARENT, "");
        parent.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut parent = Process::start(&mut parent).unwrap();
        let started = |line: &str| (line == "started").then_some(());
        let started = parent.wait_line(Some(Stream::Err), PATIENCE, started);
        started.unwrap();
        parent.kill().unwrap();
        // The program holds the stream open until it has ended.
        assert_eq!(parent.rest(Stream::Err, PATIENCE).as_deref(), Ok(""));
    }
}
