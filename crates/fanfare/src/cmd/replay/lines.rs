//! The destinations of replayed datagrams.

use crate::cmd::fast::options::address_and_port;
use crate::line::{Line, Reach};
use crate::usage::misuse;
use anyhow::{Error, Result, ensure};
use std::net::SocketAddrV4;
use std::path::Path;
use std::str::FromStr;

/// The most lines; each has a socket.
const MOST_LINES: usize = 256;

/// A rule `FROM=TO`, or `FROM` alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rule {
    from: From,
    /// The destination; the address of the capture if there is none.
    to: Option<SocketAddrV4>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    /// All datagrams of a file, the first being 1.
    File(usize),
    /// Datagrams sent to this address.
    Address(SocketAddrV4),
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (from, to) = match text.split_once('=') {
            Some((from, to)) => (from, Some(address_and_port(to)?)),
            None => (text, None),
        };
        let from = match from.trim().parse() {
            Ok(0) => return Err("the number of a file must be at least 1".to_owned()),
            Ok(file) => From::File(file),
            Err(_) => From::Address(address_and_port(from)?),
        };
        Ok(Self { from, to })
    }
}

/// The lines that datagrams are sent to.
pub(super) struct Lines {
    reach: Reach,
    rules: Vec<Rule>,
    /// For each rule, whether it has matched a datagram.
    used: Vec<bool>,
    lines: Vec<Line>,
}

impl Lines {
    /// Checks the rules against the number of files.
    pub(super) fn new(reach: Reach, rules: &[Rule], files: usize) -> Result<Self> {
        for (at, rule) in rules.iter().enumerate() {
            if let From::File(file) = rule.from
                && file > files
            {
                misuse!("--line {file}=…: no file {file} is given");
            }
            let before = rules.get(..at).unwrap_or_default();
            if before.iter().any(|other| other.from == rule.from) {
                misuse!("--line: {} occurs twice", rule.from);
            }
            if let Some(Err(why)) = rule.to.map(|to| reach.check(to)) {
                misuse!("{why}");
            }
        }
        Ok(Self {
            reach,
            rules: rules.to_vec(),
            used: vec![false; rules.len()],
            lines: Vec::new(),
        })
    }

    /// Refuses a file without addresses for which no line is given.
    pub(super) fn check_file(&self, number: usize, path: &Path) -> Result<()> {
        let has_line = |rule: &Rule| rule.from == From::File(number) && rule.to.is_some();
        ensure!(
            self.rules.iter().any(has_line),
            "the packets of `{}` have no addresses: give one with --line {number}=ADDRESS:PORT",
            path.display()
        );
        Ok(())
    }

    /// Returns the line of a datagram of a file that was sent `to`, if it has one.
    pub(super) fn of(&mut self, file: usize, to: Option<SocketAddrV4>) -> Result<Option<usize>> {
        let target = if self.rules.is_empty() {
            to.filter(|to| to.ip().is_multicast())
        } else {
            let address = to.map(From::Address);
            let by = |from: From| self.rules.iter().position(|rule| rule.from == from);
            let rule = address.and_then(by).or_else(|| by(From::File(file)));
            rule.and_then(|at| {
                self.used[at] = true;
                self.rules[at].to.or(to)
            })
        };
        target.map(|target| self.to(target)).transpose()
    }

    fn to(&mut self, target: SocketAddrV4) -> Result<usize> {
        if let Some(at) = self.lines.iter().position(|line| line.to() == target) {
            return Ok(at);
        }
        ensure!(
            self.lines.len() < MOST_LINES,
            "the captures have more than {MOST_LINES} lines: choose with --line"
        );
        self.reach.check(target).map_err(Error::msg)?;
        self.lines.push(Line::open(self.reach, target)?);
        Ok(self.lines.len() - 1)
    }

    pub(super) fn send(&mut self, line: usize, datagrams: &[&[u8]]) -> Result<()> {
        let line = self.lines.get_mut(line);
        line.map_or(Ok(()), |line| line.send_all(datagrams))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter()
    }

    /// Returns the sources of the command line that are not in the files.
    pub(super) fn unused(&self) -> impl Iterator<Item = String> {
        let unused = self
            .rules
            .iter()
            .zip(&self.used)
            .filter(|(_, used)| !**used);
        unused.map(|(rule, _)| rule.from.to_string())
    }
}

impl std::fmt::Display for From {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(file) => write!(f, "file {file}"),
            Self::Address(address) => address.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_of_a_file_or_an_address() {
        let [a, b] = ["239.1.1.1:7", "127.0.0.1:8"].map(|text| text.parse().unwrap());
        let rule = |from, to| Ok(Rule { from, to });
        assert_eq!("2=239.1.1.1:7".parse(), rule(From::File(2), Some(a)));
        assert_eq!("239.1.1.1:7".parse(), rule(From::Address(a), None));
        assert_eq!(
            "239.1.1.1:7=127.0.0.1:8".parse(),
            rule(From::Address(a), Some(b))
        );
        for wrong in [
            "",
            "=",
            "0=239.1.1.1:7",
            "1=",
            "1=239.1.1.1",
            "239.1.1.1:0",
            "::1",
            "-1",
        ] {
            assert!(wrong.parse::<Rule>().is_err(), "{wrong}");
        }
    }
}
