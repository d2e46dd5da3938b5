//! The time that writers to DDS wait for subscribers, which is never longer than a stop may take.

use crate::notice::{Limit, Notice, Notices};
use fanfare_dds::{Error, ReturnCode, Writer};
use fanfare_engine::clock::monotonic;
use fanfare_engine::stop::Stop;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The longest wait of one call of a writer, and so the longest time until it notices a raised
/// stop.
const SLICE: Duration = Duration::from_millis(50);

/// The time that a stop waits for subscribers.
const FAREWELL: Duration = Duration::from_millis(400);

/// The longest turn of a thread whose writes all wait as long as they may, in slices: 30 s. A
/// thread that comes to no next turn within a minute counts as stuck.
const TURN_SLICES: u32 = 600;

/// The time of vain writes in a row after which a topic is stalled, in nanoseconds.
const STALLED: u64 = 10_000_000_000;

/// A limit on the time that writes wait for a subscriber that does not acknowledge: in slices, up
/// to the configured time, and after a stop for less.
///
/// A topic whose writes have been in vain for 10 s is stalled: a subscriber is there and takes
/// nothing. Its writes do not wait, so that the other topics of the thread keep their pace, until
/// every subscriber has acknowledged what was sent or is gone.
pub(crate) struct AckWait {
    /// The slices that a write waits.
    slices: u32,
    stop: Stop,
    notices: Notices,
    limit: Limit,
    /// The topics whose last write was in vain.
    vain: HashMap<String, Vain>,
    /// The deadline of the last samples, once the stop was noticed.
    until: Option<Instant>,
}

/// A topic whose last write was in vain.
struct Vain {
    /// The time of the first of these writes, in nanoseconds of the monotonic clock.
    since: u64,
    is_stalled: bool,
    /// Whether a notice says so.
    is_told: bool,
}

/// A sample that is to be written.
pub(crate) trait Attempt {
    /// The outcome of the writer.
    type Done;

    /// Writes the sample, and waits for subscribers for a [`slice`] at most.
    fn write(&mut self) -> Result<Self::Done, Error>;

    /// Returns the name of the topic.
    fn topic(&self) -> &str;

    /// Returns whether every subscriber has acknowledged all samples of the topic. Does not wait.
    fn is_acknowledged(&self) -> Result<bool, Error>;
}

/// A sample for a writer.
pub(crate) struct OfWriter<'a> {
    pub(crate) writer: &'a Writer,
    pub(crate) bytes: &'a [u8],
}

impl Attempt for OfWriter<'_> {
    type Done = ();

    fn write(&mut self) -> Result<(), Error> {
        self.writer.write(self.bytes)
    }

    fn topic(&self) -> &str {
        self.writer.topic().name()
    }

    fn is_acknowledged(&self) -> Result<bool, Error> {
        self.writer.wait_for_acks(Duration::ZERO)
    }
}

/// The outcome of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written<T> {
    Done(T),
    /// A subscriber did not acknowledge in time.
    InVain,
    /// The stop was raised first.
    Stopped,
}

impl AckWait {
    /// Creates a limit of `wait_ms` for a write while the gateway runs, in calls of [`slice`] each.
    pub(crate) fn new(wait_ms: u64, stop: Stop, notices: Notices) -> Self {
        let slices = Duration::from_millis(wait_ms)
            .as_nanos()
            .div_ceil(SLICE.as_nanos());
        Self {
            slices: u32::try_from(slices).unwrap_or(u32::MAX).max(1),
            stop,
            notices,
            limit: Limit::default(),
            vain: HashMap::new(),
            until: None,
        }
    }

    /// Returns how many samples of each of `rings` rings a turn writes: `most`, or fewer if so many
    /// could wait for more than half a minute, and at least one.
    pub(crate) fn samples_of_turn(&self, most: usize, rings: usize) -> usize {
        let waits = (TURN_SLICES / self.slices) as usize;
        most.min(waits / rings.max(1)).max(1)
    }

    /// Writes a sample. Sends a notice when its topic stalls, and when it no longer does. Allocates
    /// only after a write in vain.
    ///
    /// # Errors
    /// Returns the errors of the writer. A subscriber that does not acknowledge is not an error.
    pub(crate) fn write<A: Attempt>(&mut self, mut attempt: A) -> Result<Written<A::Done>, Error> {
        self.write_at(&mut attempt, monotonic)
    }

    fn write_at<A: Attempt>(
        &mut self,
        attempt: &mut A,
        now: impl FnOnce() -> u64,
    ) -> Result<Written<A::Done>, Error> {
        if self.is_stalled(attempt) && !attempt.is_acknowledged()? {
            return Ok(match self.stop.is_raised() {
                true => Written::Stopped,
                false => Written::InVain,
            });
        }
        for _ in 0..self.slices {
            if self.stop.is_raised() {
                return self.part(attempt);
            }
            if let Some(done) = self.try_once(attempt)? {
                return Ok(Written::Done(done));
            }
        }
        self.fail(attempt.topic(), now());
        Ok(Written::InVain)
    }

    /// Writes after the stop. No writer times out twice, and all of them together wait no longer
    /// than [`FAREWELL`].
    fn part<A: Attempt>(&mut self, attempt: &mut A) -> Result<Written<A::Done>, Error> {
        let until = *self.until.get_or_insert_with(|| Instant::now() + FAREWELL);
        if Instant::now() >= until {
            return Ok(Written::Stopped);
        }
        if let Some(done) = self.try_once(attempt)? {
            return Ok(Written::Done(done));
        }
        self.vain_of(attempt.topic(), 0).is_stalled = true;
        Ok(Written::Stopped)
    }

    /// Returns `None` if a subscriber did not acknowledge in time.
    fn try_once<A: Attempt>(&mut self, attempt: &mut A) -> Result<Option<A::Done>, Error> {
        match attempt.write() {
            Ok(done) => {
                self.succeed(attempt);
                Ok(Some(done))
            }
            Err(error) if in_vain(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn is_stalled(&self, attempt: &impl Attempt) -> bool {
        let vain = || self.vain.get(attempt.topic());
        !self.vain.is_empty() && vain().is_some_and(|vain| vain.is_stalled)
    }

    fn succeed(&mut self, attempt: &impl Attempt) {
        if self.vain.is_empty() {
            return;
        }
        let topic = attempt.topic();
        if self.vain.remove(topic).is_some_and(|vain| vain.is_told) {
            let topic = topic.to_owned();
            self.notices.send(Notice::DdsResumed { topic });
        }
    }

    /// Stalls a topic after a write in vain, if it is time.
    fn fail(&mut self, topic: &str, now: u64) {
        let vain = self.vain_of(topic, now);
        if vain.is_stalled || now.saturating_sub(vain.since) < STALLED {
            return;
        }
        vain.is_stalled = true;
        if !self.limit.lets(i64::try_from(now).unwrap_or(i64::MAX)) {
            return;
        }
        self.vain_of(topic, now).is_told = true;
        self.notices.send(Notice::DdsStalled {
            topic: topic.to_owned(),
            untold: self.limit.untold(),
        });
    }

    /// Returns a topic whose last write was in vain, the first time `now`.
    fn vain_of(&mut self, topic: &str, now: u64) -> &mut Vain {
        self.vain.entry(topic.to_owned()).or_insert(Vain {
            since: now,
            is_stalled: false,
            is_told: false,
        })
    }

    /// Returns the time left for acknowledgements of topics after the stop, or zero if a
    /// subscriber of one of them hangs.
    pub(crate) fn left(&mut self, is_of: impl Fn(&str) -> bool) -> Duration {
        let until = *self.until.get_or_insert_with(|| Instant::now() + FAREWELL);
        let hangs = |(topic, vain): (&String, &Vain)| vain.is_stalled && is_of(topic);
        match self.vain.iter().any(hangs) {
            false => until.saturating_duration_since(Instant::now()),
            true => Duration::ZERO,
        }
    }
}

/// Returns the longest wait of one call of a writer.
pub(crate) fn slice(wait_ms: u64) -> Duration {
    SLICE.min(Duration::from_millis(wait_ms))
}

fn in_vain(error: &Error) -> bool {
    matches!(
        error,
        Error::Dds {
            code: ReturnCode::Timeout | ReturnCode::OutOfResources,
            ..
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notice::{NoticeReceiver, channel};

    const SECOND: u64 = 1_000_000_000;

    /// A writer of a topic whose subscriber acknowledges after some tries.
    struct Fake {
        topic: &'static str,
        /// The tries that are in vain.
        after: usize,
        tries: usize,
        is_acknowledged: bool,
        /// A stop that is raised while a write waits.
        raises: Option<Stop>,
    }

    impl Fake {
        fn new(topic: &'static str, after: usize) -> Self {
            Self {
                topic,
                after,
                tries: 0,
                is_acknowledged: false,
                raises: None,
            }
        }

        fn hanging(topic: &'static str) -> Self {
            Self::new(topic, usize::MAX)
        }

        fn taking(topic: &'static str) -> Self {
            Self::new(topic, 0)
        }
    }

    impl Attempt for &mut Fake {
        type Done = usize;

        fn write(&mut self) -> Result<usize, Error> {
            self.tries += 1;
            if let Some(stop) = &self.raises {
                stop.raise();
            }
            match self.tries > self.after {
                true => Ok(self.tries),
                false => Err(full()),
            }
        }

        fn topic(&self) -> &str {
            self.topic
        }

        fn is_acknowledged(&self) -> Result<bool, Error> {
            Ok(self.is_acknowledged)
        }
    }

    fn full() -> Error {
        Error::Dds {
            action: "write".to_owned(),
            code: ReturnCode::Timeout,
            detail: String::new(),
        }
    }

    fn wait(wait_ms: u64, stop: &Stop) -> (AckWait, NoticeReceiver) {
        let (notices, received) = channel();
        (AckWait::new(wait_ms, stop.clone(), notices), received)
    }

    fn told(received: &NoticeReceiver) -> Vec<Notice> {
        received.iter().collect()
    }

    fn stalled(topic: &str, untold: u64) -> Notice {
        let topic = topic.to_owned();
        Notice::DdsStalled { topic, untold }
    }

    #[test]
    fn a_write_waits_as_often_as_its_time_has_slices() {
        let (mut wait, _received) = wait(120, &Stop::new());
        let mut attempt = |after| {
            let mut fake = Fake::new("T", after);
            (wait.write(&mut fake).unwrap(), fake.tries)
        };
        assert_eq!(attempt(0), (Written::Done(1), 1));
        assert_eq!(attempt(2), (Written::Done(3), 3));
        assert_eq!(attempt(3), (Written::InVain, 3));
    }

    #[test]
    fn no_time_is_one_try() {
        let (mut wait, _received) = wait(0, &Stop::new());
        assert_eq!(slice(0), Duration::ZERO);
        let written = wait.write(&mut Fake::taking("T"));
        assert_eq!(written.unwrap(), Written::Done(1));
        let written = wait.write(&mut Fake::hanging("T"));
        assert_eq!(written.unwrap(), Written::InVain);
    }

    #[test]
    fn after_ten_seconds_of_vain_writes_a_topic_waits_no_more_until_all_is_acknowledged() {
        let (mut wait, received) = wait(100, &Stop::new());
        let mut hung = Fake::hanging("HUNG");
        let at = |wait: &mut AckWait, fake: &mut Fake, now: u64| {
            let (before, mut fake) = (fake.tries, fake);
            let written = wait.write_at(&mut fake, || now).unwrap();
            (written, fake.tries - before)
        };
        for now in [1, 5 * SECOND, 10 * SECOND] {
            assert_eq!(at(&mut wait, &mut hung, now), (Written::InVain, 2));
        }
        assert_eq!(
            (told(&received), wait.left(|_| true).is_zero()),
            (vec![], false)
        );
        assert_eq!(
            at(&mut wait, &mut hung, 10 * SECOND + 1),
            (Written::InVain, 2)
        );
        assert_eq!(told(&received), [stalled("HUNG", 0)]);
        for _ in 0..100 {
            let late = 20 * SECOND;
            assert_eq!(at(&mut wait, &mut hung, late), (Written::InVain, 0));
            let mut other = Fake::new("OTHER", 1);
            assert_eq!(at(&mut wait, &mut other, late), (Written::Done(2), 2));
        }
        assert_eq!(
            (told(&received), wait.left(|_| true).is_zero()),
            (vec![], true)
        );
        hung.is_acknowledged = true;
        hung.after = 0;
        let written = at(&mut wait, &mut hung, 20 * SECOND).0;
        assert!(matches!(written, Written::Done(_)));
        let topic = "HUNG".to_owned();
        assert_eq!(told(&received), [Notice::DdsResumed { topic }]);
        // It begins anew.
        let mut hung = Fake::hanging("HUNG");
        for now in [21, 30] {
            let written = at(&mut wait, &mut hung, now * SECOND);
            assert_eq!(written, (Written::InVain, 2));
        }
        assert!(told(&received).is_empty());
    }

    #[test]
    fn a_turn_in_which_every_write_waits_ends_within_half_a_minute() {
        for (wait_ms, rings, samples) in [
            (0, 1, 256),
            (100, 1, 256),
            (100, 3, 100),
            (1_000, 1, 30),
            (1_000, 4, 7),
            (10_000, 1, 3),
            (10_000, 4, 1),
        ] {
            let (wait, _) = wait(wait_ms, &Stop::new());
            let found = wait.samples_of_turn(256, rings);
            assert_eq!(found, samples, "{wait_ms} ms, {rings} rings");
        }
    }

    #[test]
    fn a_write_that_succeeds_begins_the_ten_seconds_anew() {
        let (mut wait, received) = wait(50, &Stop::new());
        let mut at = |mut fake: Fake, now: u64| {
            let mut fake = &mut fake;
            wait.write_at(&mut fake, || now * SECOND).unwrap()
        };
        assert_eq!(at(Fake::hanging("T"), 1), Written::InVain);
        assert_eq!(at(Fake::taking("T"), 9), Written::Done(1));
        assert_eq!(at(Fake::hanging("T"), 11), Written::InVain);
        assert_eq!(at(Fake::hanging("T"), 20), Written::InVain);
        assert!(told(&received).is_empty());
        assert_eq!(at(Fake::hanging("T"), 21), Written::InVain);
        assert_eq!(told(&received), [stalled("T", 0)]);
    }

    #[test]
    fn many_topics_that_stall_at_once_are_told_as_a_number() {
        let (mut wait, received) = wait(0, &Stop::new());
        let topics = ["A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L"];
        let mut all = |topics: &[&'static str], now: u64| {
            for &topic in topics {
                let mut fake = &mut Fake::hanging(topic);
                wait.write_at(&mut fake, || now * SECOND).unwrap();
            }
        };
        all(&topics, 20);
        all(&["LATER"], 40);
        all(&topics, 40);
        let first: Vec<_> = topics.iter().take(10).map(|t| stalled(t, 0)).collect();
        assert_eq!(told(&received), first);
        all(&["LATER"], 50);
        let last = told(&received);
        assert_eq!(last, [stalled("LATER", 2)]);
        let text = last.first().unwrap().to_string();
        assert!(text.starts_with("DDS topic LATER: a subscriber takes nothing"));
        assert!(text.ends_with(" (and 2 more before)"), "{text}");
        // An end without a beginning is not told.
        let mut fake = Fake::taking("L");
        fake.is_acknowledged = true;
        let mut fake = &mut fake;
        let written = wait.write_at(&mut fake, || 50 * SECOND);
        assert_eq!(written.unwrap(), Written::Done(1));
        assert!(told(&received).is_empty());
    }

    #[test]
    fn after_a_stop_nobody_is_waited_for_twice_and_the_others_get_theirs() {
        let stop = Stop::new();
        let (mut wait, received) = wait(10_000, &stop);
        let mut hung = Fake::hanging("HUNG");
        hung.raises = Some(stop.clone());
        let mut hang = |wait: &mut AckWait| (wait.write(&mut hung).unwrap(), hung.tries);
        assert_eq!(hang(&mut wait), (Written::Stopped, 2));
        assert_eq!(hang(&mut wait), (Written::Stopped, 2));
        let other = |wait: &mut AckWait| wait.write(&mut Fake::taking("T")).unwrap();
        assert_eq!(other(&mut wait), Written::Done(1));
        assert_eq!(wait.left(|_| true), Duration::ZERO);
        wait.until = Some(Instant::now());
        assert_eq!(other(&mut wait), Written::Stopped);
        assert!(told(&received).is_empty());
    }

    #[test]
    fn a_topic_that_was_stalled_before_the_stop_is_not_waited_for() {
        let stop = Stop::new();
        let (mut wait, _received) = wait(0, &stop);
        let mut hung = Fake::hanging("HUNG");
        for now in [1, 11] {
            let mut hung = &mut hung;
            wait.write_at(&mut hung, || now * SECOND).unwrap();
        }
        stop.raise();
        assert_eq!(wait.write(&mut hung).unwrap(), Written::Stopped);
        assert_eq!((hung.tries, wait.left(|_| true)), (2, Duration::ZERO));
        assert!(!wait.left(|topic| topic == "OTHER").is_zero());
    }

    #[test]
    fn other_errors_are_errors() {
        struct Panicked;
        impl Attempt for Panicked {
            type Done = ();
            fn write(&mut self) -> Result<(), Error> {
                Err(Error::ListenerPanicked("T".to_owned()))
            }
            fn topic(&self) -> &str {
                "T"
            }
            fn is_acknowledged(&self) -> Result<bool, Error> {
                Ok(true)
            }
        }
        let (mut wait, _received) = wait(100, &Stop::new());
        assert!(wait.write(Panicked).is_err());
    }
}
