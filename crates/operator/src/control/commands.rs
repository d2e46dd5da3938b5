//! The commands under way, for whose ends the end of the socket waits.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The commands of all connections.
#[derive(Default)]
pub(super) struct Commands {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    running: usize,
    /// Whether no command begins any more.
    is_over: bool,
}

/// A command under way, until it is dropped.
pub(super) struct Running<'a>(&'a Commands);

impl Commands {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a command. Returns `None` after [`end`](Self::end).
    pub(super) fn begin(&self) -> Option<Running<'_>> {
        let mut state = self.lock();
        if state.is_over {
            return None;
        }
        state.running += 1;
        Some(Running(self))
    }

    /// Lets no further command begin, and waits up to `longest` for those under way. Returns
    /// whether all have ended.
    pub(super) fn end(&self, longest: Duration) -> bool {
        let mut state = self.lock();
        state.is_over = true;
        let is_running = |state: &mut State| state.running > 0;
        let waited = self.ended.wait_timeout_while(state, longest, is_running);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.running == 0
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.lock().running -= 1;
        self.0.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_waits_for_commands_under_way_and_lets_no_other_begin() {
        let commands = Commands::default();
        let running = commands.begin().unwrap();
        assert!(!commands.end(Duration::ZERO));
        assert!(commands.begin().is_none());
        std::thread::scope(|scope| {
            let ended = scope.spawn(|| commands.end(Duration::from_secs(600)));
            drop(running);
            assert!(ended.join().unwrap());
        });
        assert!(commands.end(Duration::ZERO));
    }
}
