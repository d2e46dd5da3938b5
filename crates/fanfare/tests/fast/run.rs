//! Runs commands of `fanfare fast`.

use crate::common::{self, Running, Said};

/// Runs a command to its end.
pub(crate) fn run(args: &[&str]) -> Said {
    common::run(&[&["fast"], args].concat())
}

/// Starts a command, and waits for the lines of stderr that announce reception.
pub(crate) fn receiving(args: &[&str], lines: usize) -> Running {
    let mut running = Running::start(&mut common::fanfare(&[&["fast"], args].concat()));
    for _ in 0..lines {
        running.tells("receiving");
    }
    running
}
