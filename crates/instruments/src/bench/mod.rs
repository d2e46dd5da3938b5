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
pub mod stamps;

use std::io;
use std::thread;

use fanfare_engine::agent::CrewError;
use fanfare_engine::cpu;
use fanfare_gateway::{DbnError, StartError};

/// Why a benchmark has come to nothing.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A socket, a process or a processor is not to be had.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The gateway cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// An agent of the gateway failed.
    #[error(transparent)]
    Crew(#[from] CrewError),
    /// The port for DBN cannot be opened.
    #[error(transparent)]
    Dbn(#[from] DbnError),
    /// DDS, or the C program that it is measured against.
    #[error(transparent)]
    Dds(#[from] fanfare_dds::Error),
    /// A message of the benchmark itself cannot be decoded or converted.
    #[error("the benchmark's own feed: {0}")]
    Feed(String),
    /// What was waited for has not come, or somebody has not taken part.
    #[error("{0}")]
    Missing(String),
}

/// Two processors.
#[derive(Debug, Clone, Copy, Default)]
pub struct Processors {
    /// For the thread that measures.
    pub here: Option<usize>,
    /// For what is measured.
    pub there: Option<usize>,
}

impl Processors {
    /// The last and the first of those that this thread may use; none if there is one only.
    ///
    /// # Errors
    /// The system does not say which these are.
    pub fn of_this_thread() -> io::Result<Self> {
        Ok(match cpu::allowed()?.as_slice() {
            [first, .., last] => Self {
                here: Some(*last),
                there: Some(*first),
            },
            _ => Self::default(),
        })
    }

    /// Whether there are two.
    pub const fn are_two(self) -> bool {
        self.here.is_some()
    }

    /// Has this thread run on the processor for measuring alone, if there is one.
    ///
    /// # Errors
    /// The system refuses.
    pub fn pin_here(self) -> io::Result<()> {
        self.here.map_or(Ok(()), cpu::pin_to)
    }
}

/// Runs `f` in a thread on that processor. The threads that are started there stay on it too.
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
