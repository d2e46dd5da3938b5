//! The time that the counterparty takes to answer a TestRequest(1).

/// The longest TestReqID(112) whose answer is measured, in bytes.
const LONGEST: usize = 16;

/// The last TestRequest(1) of a connection, and the time of the last measured answer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RoundTrip {
    id: [u8; LONGEST],
    len: u8,
    /// The time at which it was sent, while it is unanswered.
    sent: Option<u64>,
    took: Option<u64>,
}

impl RoundTrip {
    /// Starts to measure the answer to a TestRequest(1) that has been written. An earlier one that
    /// is still unanswered is no longer measured.
    pub(super) fn asked(&mut self, id: &[u8], mono: u64) {
        self.sent = None;
        if let Some(own) = self.id.get_mut(..id.len()) {
            own.copy_from_slice(id);
            (self.len, self.sent) = (id.len() as u8, Some(mono));
        }
    }

    /// Ends the measurement with a Heartbeat(0) that has this TestReqID(112), if that is the one
    /// measured.
    pub(super) fn answered(&mut self, id: &[u8], mono: u64) {
        let is_own = self.id.get(..self.len.into()) == Some(id);
        if let Some(sent) = self.sent.take_if(|_| is_own) {
            self.took = Some(mono.saturating_sub(sent));
        }
    }

    /// Returns how long the last answer took, in nanoseconds, or `None` before the first.
    pub(super) const fn took(&self) -> Option<u64> {
        self.took
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_the_last_request_is_measured() {
        let mut trip = RoundTrip::default();
        trip.answered(b"", 5);
        assert_eq!(trip.took(), None);
        trip.asked(b"ONE", 10);
        trip.answered(b"ONE ", 20);
        assert_eq!(trip.took(), None);
        trip.answered(b"ONE", 30);
        trip.answered(b"ONE", 40);
        assert_eq!(trip.took(), Some(20));
        trip.asked(b"TWO", 50);
        trip.asked(b"THREE", 60);
        trip.answered(b"TWO", 70);
        assert_eq!(trip.took(), Some(20));
        trip.answered(b"THREE", 90);
        assert_eq!(trip.took(), Some(30));
        trip.asked(b"more than sixteen", 100);
        trip.answered(b"more than sixteen", 101);
        trip.answered(b"THREE", 102);
        assert_eq!(trip.took(), Some(30));
    }
}
