//! Benchmarks that the binary offers as `fanfare bench …`.

pub mod book;
pub mod codec;
pub mod datagrams;
pub mod dbn;
#[cfg(feature = "dds")]
pub mod dds;
pub mod events;
pub mod fanout;
pub mod history;
pub mod market;
pub mod pauses;
pub mod stamps;

use std::fs;
use std::io;
use std::thread;

use fanfare_engine::agent::CrewError;
use fanfare_engine::cpu;
use fanfare_engine::limits::raise_open_files;
use fanfare_gateway::{DbnError, StartError};

/// The error of a benchmark.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A socket, a process or a processor is not available.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The gateway cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// An agent of the gateway failed.
    #[error(transparent)]
    Crew(#[from] CrewError),
    /// The DBN port cannot be opened.
    #[error(transparent)]
    Dbn(#[from] DbnError),
    /// DDS, or the C program of the comparison, failed.
    #[error(transparent)]
    Dds(#[from] fanfare_dds::Error),
    /// A message of the benchmark itself cannot be decoded or converted.
    #[error("the benchmark's own feed: {0}")]
    Feed(String),
    /// An expected event has not come, or a participant is missing.
    #[error("{0}")]
    Missing(String),
}

/// Two processors, one for each side of a benchmark.
#[derive(Debug, Clone, Copy, Default)]
pub struct Processors {
    /// The processor of the thread that measures.
    pub here: Option<usize>,
    /// The processor of the measured program.
    pub there: Option<usize>,
}

impl Processors {
    /// Returns the last and the first processor that this thread may use; none if there is only
    /// one.
    ///
    /// # Errors
    /// The system call fails.
    pub fn of_this_thread() -> io::Result<Self> {
        Ok(match cpu::allowed()?.as_slice() {
            [first, .., last] => Self {
                here: Some(*last),
                there: Some(*first),
            },
            _ => Self::default(),
        })
    }

    /// Returns whether there are two.
    pub const fn are_two(self) -> bool {
        self.here.is_some()
    }

    /// Pins this thread to the processor for measuring, if there is one.
    ///
    /// # Errors
    /// The system call fails.
    pub fn pin_here(self) -> io::Result<()> {
        self.here.map_or(Ok(()), cpu::pin_to)
    }
}

/// Raises the limit of open files to `wanted`.
///
/// # Errors
/// The system allows fewer.
fn allow_files(wanted: u64) -> Result<(), BenchError> {
    let allowed = raise_open_files(wanted)?;
    match allowed >= wanted {
        true => Ok(()),
        false => Err(BenchError::Missing(format!(
            "{wanted} open files are needed, the system allows {allowed}"
        ))),
    }
}

/// Returns a size that the kernel states of this process, in KiB: `VmRSS` is the resident memory,
/// and `RssAnon` the part of it that is no file.
fn memory_kib(name: &str) -> Result<u64, BenchError> {
    let status = fs::read_to_string("/proc/self/status")?;
    memory_of(&status, name)
        .ok_or_else(|| BenchError::Missing(format!("/proc/self/status has no {name}")))
}

/// Returns the size of this name in the text of /proc/self/status, in KiB.
fn memory_of(status: &str, name: &str) -> Option<u64> {
    let mut sizes = status.lines().filter_map(|line| line.split_once(':'));
    let (_, size) = sizes.find(|(found, _)| *found == name)?;
    size.trim().strip_suffix(" kB")?.trim_end().parse().ok()
}

/// Runs `f` in a thread on that processor. The threads that it starts stay there too.
fn on<T: Send>(
    processor: Option<usize>,
    f: impl FnOnce() -> Result<T, BenchError> + Send,
) -> Result<T, BenchError> {
    let pinned = || {
        processor.map_or(Ok(()), cpu::pin_to)?;
        f()
    };
    let result = thread::scope(|scope| scope.spawn(pinned).join());
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_found_by_their_whole_name() {
        let status = "Name:\tx\nVmRSSX:\t 1 kB\nVmRSS:\t    9120 kB\nRssAnon:\t     256 kB\n";
        assert_eq!(memory_of(status, "VmRSS"), Some(9_120));
        assert_eq!(memory_of(status, "RssAnon"), Some(256));
        assert_eq!(memory_of(status, "Name"), None);
        assert_eq!(memory_of(status, "VmPeak"), None);
    }
}
