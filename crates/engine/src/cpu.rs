//! Pinning threads to CPUs.

use crate::sys::process;
use std::io;

/// Restricts the calling thread to one CPU.
///
/// # Errors
/// The CPU does not exist or is not allowed for this process.
pub fn pin_to(cpu: usize) -> io::Result<()> {
    process::pin_to(cpu).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("cannot pin the thread to CPU {cpu}: {error}"),
        )
    })
}

/// Returns the CPUs that the calling thread may run on, ascending.
///
/// # Errors
/// Those of the system call; none is expected.
pub fn allowed() -> io::Result<Vec<usize>> {
    process::allowed_cpus()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_pinned_to_a_cpu_it_may_use() {
        std::thread::spawn(|| {
            let cpu = *allowed().unwrap().last().unwrap();
            pin_to(cpu).unwrap();
            assert_eq!(allowed().unwrap(), [cpu]);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_named() {
        let error = pin_to(100_000).unwrap_err().to_string();
        assert!(error.contains("CPU 100000"), "{error}");
    }
}
