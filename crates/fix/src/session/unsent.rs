//! The application messages that no connection has transmitted.

/// The numbers of application messages that `send` has accepted and no connection has transmitted.
/// They wait for the ResendRequest(2) of the next one, and a reset discards them.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    runs: Vec<Run>,
}

/// Messages with neighbouring numbers.
#[derive(Debug)]
struct Run {
    first: u64,
    last: u64,
    /// The count of application messages among them.
    messages: u64,
}

/// The most runs. Each connection that is lost leaves one at most. Beyond them, the last run takes
/// further messages.
const MOST_RUNS: usize = 16;

impl Unsent {
    /// Adds `messages` application messages with numbers from `first` to `last`, which are higher
    /// than those of all others.
    pub(super) fn add(&mut self, first: u64, last: u64, messages: u64) {
        if messages == 0 {
            return;
        }
        let is_full = self.runs.len() >= MOST_RUNS;
        match self.runs.last_mut() {
            Some(run) if is_full || run.last + 1 == first => {
                run.last = last;
                run.messages += messages;
            }
            _ => self.runs.push(Run {
                first,
                last,
                messages,
            }),
        }
    }

    /// Removes the message of this number, which has been transmitted.
    pub(super) fn transmitted(&mut self, seq: u64) {
        let mut runs = self.runs.iter_mut();
        if let Some(run) = runs.find(|run| (run.first..=run.last).contains(&seq)) {
            // A repeated resend does not count again.
            run.first = seq + 1;
            run.messages -= 1;
            self.runs.retain(|run| run.messages > 0);
        }
    }

    /// Removes the messages from number `seq` on, and returns their count.
    pub(super) fn discard_from(&mut self, seq: u64) -> u64 {
        let mut discarded = 0;
        for run in self.runs.iter_mut().filter(|run| run.last >= seq) {
            let behind = match run.first >= seq {
                true => run.messages,
                false => run.messages.min(run.last - seq + 1),
            };
            run.last = seq.saturating_sub(1);
            run.messages -= behind;
            discarded += behind;
        }
        self.runs.retain(|run| run.messages > 0);
        discarded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_is_discarded_or_transmitted_once() {
        let mut unsent = Unsent::default();
        unsent.add(5, 5, 1);
        unsent.add(6, 6, 1);
        // Of these four, one is a Heartbeat(0).
        unsent.add(10, 13, 3);
        assert_eq!(unsent.runs.len(), 2);
        for seq in [5, 6, 5, 7, 9, 10] {
            unsent.transmitted(seq);
        }
        assert_eq!(unsent.discard_from(1), 2);
        assert_eq!(unsent.discard_from(1), 0);
        assert!(unsent.runs.is_empty());
    }

    #[test]
    fn messages_below_a_number_that_is_set_stay() {
        let mut unsent = Unsent::default();
        unsent.add(5, 8, 4);
        unsent.add(20, 21, 2);
        assert_eq!(unsent.discard_from(7), 4);
        assert_eq!(unsent.discard_from(1), 2);
    }

    #[test]
    fn any_number_of_lost_connections_takes_little_memory() {
        let mut unsent = Unsent::default();
        for first in (1..1_000).step_by(10) {
            unsent.add(first, first + 1, 2);
        }
        assert_eq!(unsent.runs.len(), MOST_RUNS);
        assert_eq!(unsent.discard_from(1), 200);
    }
}
