//! A topic as the sink sees it, so that tests have one without a broker.

/// A message for a topic.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message<'a> {
    pub(crate) to: To<'a>,
    /// The number of the event; for a notice, that of the event before it.
    pub(crate) number: u64,
    /// Nanoseconds since 1970, 0: unknown.
    pub(crate) time: u64,
    pub(crate) what: What,
    pub(crate) value: &'a [u8],
}

/// Where a message goes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum To<'a> {
    /// To the partition of the key.
    Key(&'a [u8]),
    /// To the first partition, without a key.
    First,
    /// To each partition, without a key.
    All,
}

/// What a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Event,
    /// Events up to its number are missing.
    Lost,
    /// The plant was started again.
    Restart,
}

impl What {
    /// The name of the header that says so.
    pub(crate) const fn header(self) -> Option<&'static str> {
        match self {
            Self::Event => None,
            Self::Lost => Some("lost"),
            Self::Restart => Some("restart"),
        }
    }
}

/// What a topic holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// The highest number.
    pub(crate) last: Option<u64>,
    /// Messages of restarts with that number.
    pub(crate) restarts: u64,
    /// Messages were there, and retention has removed all of them.
    pub(crate) is_emptied: bool,
}

/// Why a topic cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct TopicError(pub(super) String);

/// A topic and its one producer.
pub(crate) trait Topic {
    /// Connects; ends what another producer of the name has begun, and says what the topic holds.
    fn open(&mut self) -> Result<Held, TopicError>;

    /// Begins a transaction.
    fn begin(&mut self) -> Result<(), TopicError>;

    /// Adds a message to the transaction.
    fn put(&mut self, message: &Message<'_>) -> Result<(), TopicError>;

    /// Commits the transaction: readers see all of its messages or none. After an error, either may
    /// be the case.
    fn commit(&mut self) -> Result<(), TopicError>;

    /// Disconnects; a transaction that was begun is given up.
    fn close(&mut self);
}
