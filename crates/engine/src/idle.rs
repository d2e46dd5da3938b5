//! Idle strategies: what a thread does when its agents have no work.

use std::time::Duration;

/// An idle strategy, from the lowest latency to the lowest use of the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// Look for work again at once. Takes a whole CPU, for a thread that has one to itself.
    Spin,
    /// Let other threads run first. Takes a whole CPU if no other thread wants it.
    Yield,
    /// Spin 100 times, yield 100 times, then sleep, from 50 µs doubling to 1 ms.
    BackOff,
    /// Sleep this long.
    Sleep(Duration),
    /// Sleep in the kernel until a descriptor of the agents is ready, their next timer is due, or
    /// this time has passed. A wake-up takes 25–50 µs; an idle thread uses no processor.
    Wait(Duration),
}

/// Spins and yields of [`Idle::BackOff`] before it sleeps.
const ROUNDS: u32 = 100;
const FIRST_SLEEP: Duration = Duration::from_micros(50);
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// An [`Idle`] strategy with its count of duty cycles without work.
#[derive(Debug)]
pub(crate) struct Idler {
    strategy: Idle,
    idle_rounds: u32,
}

/// The next step of an idle thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Continue,
    Spin,
    Yield,
    Sleep(Duration),
    Wait(Duration),
}

impl Idler {
    /// Starts as after work.
    pub(crate) const fn new(strategy: Idle) -> Self {
        Self {
            strategy,
            idle_rounds: 0,
        }
    }

    pub(crate) fn step(&mut self, work: usize) -> Step {
        if work > 0 {
            self.idle_rounds = 0;
            return Step::Continue;
        }
        let round = self.idle_rounds;
        self.idle_rounds = round.saturating_add(1);
        match self.strategy {
            Idle::Spin => Step::Spin,
            Idle::Yield => Step::Yield,
            Idle::BackOff if round < ROUNDS => Step::Spin,
            Idle::BackOff if round < 2 * ROUNDS => Step::Yield,
            Idle::BackOff => {
                let doublings = (round - 2 * ROUNDS).min(10);
                Step::Sleep((FIRST_SLEEP * (1 << doublings)).min(LONGEST_SLEEP))
            }
            Idle::Sleep(time) => Step::Sleep(time),
            Idle::Wait(time) => Step::Wait(time),
        }
    }
}

impl Step {
    pub(crate) fn take(self) {
        match self {
            Self::Continue => {}
            Self::Spin => std::hint::spin_loop(),
            Self::Yield => std::thread::yield_now(),
            Self::Sleep(time) | Self::Wait(time) => std::thread::sleep(time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backing_off_spins_then_yields_then_sleeps_longer_and_work_resets_it() {
        let mut idler = Idler::new(Idle::BackOff);
        let steps: Vec<Step> = (0..210).map(|_| idler.step(0)).collect();
        assert!(steps[..100].iter().all(|&step| step == Step::Spin));
        assert!(steps[100..200].iter().all(|&step| step == Step::Yield));
        assert_eq!(steps[200], Step::Sleep(FIRST_SLEEP));
        assert_eq!(steps[201], Step::Sleep(2 * FIRST_SLEEP));
        assert_eq!(steps[209], Step::Sleep(LONGEST_SLEEP));
        assert_eq!(idler.step(3), Step::Continue);
        assert_eq!(idler.step(0), Step::Spin);
    }
}
