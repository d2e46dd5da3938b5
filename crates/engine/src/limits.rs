//! Limits of the process.

use crate::sys::process;
use std::io;

/// Raises the soft limit of open descriptors towards `wanted`, and the hard limit if this process
/// may. Returns the resulting soft limit, which can be less than `wanted`. Never lowers a limit.
///
/// # Errors
/// The limits cannot be read.
pub fn raise_open_files(wanted: u64) -> io::Result<u64> {
    let (soft, hard) = process::open_files()?;
    if soft >= wanted {
        return Ok(soft);
    }
    if hard < wanted && process::limit_open_files(wanted, wanted).is_ok() {
        return Ok(wanted);
    }
    let reachable = wanted.min(hard);
    match process::limit_open_files(reachable, hard) {
        Ok(()) => Ok(reachable),
        Err(_) => Ok(soft),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_never_lowered() {
        let (before, _) = process::open_files().unwrap();
        assert_eq!(raise_open_files(1).unwrap(), before);
        assert!(raise_open_files(before).unwrap() >= before);
        assert_eq!(process::open_files().unwrap().0, before);
    }
}
