//! The topic as seen by the sink, so that tests need no broker.

/// A message for a topic.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message<'a> {
    pub(crate) to: To<'a>,
    /// The number of the event, or for a notice that of the event before it.
    pub(crate) number: u64,
    /// Nanoseconds since 1970, or 0 if unknown.
    pub(crate) time: u64,
    pub(crate) what: What,
    pub(crate) value: &'a [u8],
}

/// The destination of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) enum To<'a> {
    /// The partition of the key.
    Key(&'a [u8]),
    /// The first partition, without a key.
    First,
    /// Each partition, without a key.
    All,
}

/// The subject of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Event,
    /// Events up to its number are missing.
    Lost,
    /// The plant was restarted.
    Restart,
}

impl What {
    /// Returns the name of the header that marks it.
    pub(crate) const fn header(self) -> Option<&'static str> {
        match self {
            Self::Event => None,
            Self::Lost => Some("lost"),
            Self::Restart => Some("restart"),
        }
    }
}

/// The contents of a topic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// The highest number.
    pub(crate) last: Option<u64>,
    /// The milliseconds since 1970 at which its event arrived, if the topic shows them.
    pub(crate) time: Option<u64>,
    /// The number of restart messages with that number.
    pub(crate) restarts: u64,
    /// Whether messages existed, and retention has removed all of them.
    pub(crate) is_emptied: bool,
}

impl Held {
    /// Returns whether the event with this number, which arrived at this time in nanoseconds (0 if
    /// unknown), shows that the topic has the events of another log.
    pub(crate) fn is_of_another(&self, number: u64, time: u64) -> bool {
        let is_known = self.last == Some(number) && time > 0;
        is_known && self.time.is_some_and(|own| own != time / 1_000_000)
    }

    /// Returns the end of the topic.
    pub(crate) fn end(self) -> End {
        End {
            last: self.last.unwrap_or(0),
            restarts: self.restarts,
        }
    }
}

/// The end of a topic, to which each message adds something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct End {
    /// The highest number, 0 if there is none.
    last: u64,
    /// The number of restart messages with that number.
    restarts: u64,
}

impl End {
    /// Moves the end behind a message.
    pub(crate) fn pass(&mut self, message: &Message<'_>) {
        if message.number > self.last {
            (self.last, self.restarts) = (message.number, 0);
        }
        self.restarts += u64::from(message.what == What::Restart);
    }
}

/// The reason why a topic cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct TopicError(pub(super) String);

/// A topic and its only producer.
pub(crate) trait Topic {
    /// Connects, ends what another producer of the name has begun, and returns the contents of the
    /// topic.
    fn open(&mut self) -> Result<Held, TopicError>;

    /// Begins a transaction.
    fn begin(&mut self) -> Result<(), TopicError>;

    /// Adds a message to the transaction.
    fn put(&mut self, message: &Message<'_>) -> Result<(), TopicError>;

    /// Commits the transaction: readers see all of its messages or none. After an error, either may
    /// be the case.
    fn commit(&mut self) -> Result<(), TopicError>;

    /// Disconnects, and aborts an open transaction.
    fn close(&mut self);
}
