//! Commands of the group.

use crate::common::{self, Running, Said};

/// Runs to the end.
pub(crate) fn run(args: &[&str]) -> Said {
    common::run(&[&["fast"], args].concat())
}

/// Starts, and waits for the lines of stderr that say it receives.
pub(crate) fn receiving(args: &[&str], lines: usize) -> Running {
    let mut running = Running::start(&mut common::fanfare(&[&["fast"], args].concat()));
    for _ in 0..lines {
        running.tells("receiving");
    }
    running
}
