//! The topic as seen by the sink, so that tests need no broker.

use std::time::Duration;

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
    /// The ID of the log that it is from, which versions up to 0.3.0 do not write.
    pub(crate) log: Option<u64>,
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
pub(crate) enum TopicError {
    #[error("{0}")]
    Failed(String),
    #[error(transparent)]
    Blocked(#[from] OpenTransaction),
}

/// A transaction of another producer, behind which the end of a partition cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenTransaction {
    /// The broker for the commands of an operator: `HOST:PORT`.
    pub(crate) broker: String,
    pub(crate) topic: String,
    pub(crate) partition: i32,
    /// The offset of its first message.
    pub(crate) offset: i64,
    /// The time for which it has been seen.
    pub(crate) age: Duration,
}

impl OpenTransaction {
    /// The longest time for which brokers let a producer keep a transaction open, unless their
    /// `transaction.max.timeout.ms` is set.
    const LONGEST: Duration = Duration::from_secs(900);
}

impl std::error::Error for OpenTransaction {}

impl std::fmt::Display for OpenTransaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            broker,
            topic,
            partition,
            offset,
            age,
        } = self;
        let age_s = age.as_secs();
        write!(
            f,
            "nothing can be written: partition {partition} has an open transaction of another \
             producer from offset {offset} on, behind which its end cannot be read, seen for \
             {age_s} s: "
        )?;
        let of = format!("--topic {topic} --partition {partition}");
        let tool = format!("kafka-transactions.sh --bootstrap-server {broker}");
        match *age < Self::LONGEST {
            true => write!(
                f,
                "it ends with its producer, or is one that a crash of a broker has left, which \
                 `{tool} find-hanging {of}` lists after 15 minutes"
            ),
            false => write!(
                f,
                "no producer may have one for so long by default, so a crash of a broker has left \
                 it: `{tool} abort {of} --start-offset {offset}` ends it"
            ),
        }
    }
}

/// A topic and its only producer.
pub(crate) trait Topic {
    /// Connects, and returns the committed contents of the topic. Other producers of the name are
    /// left alone.
    fn look(&mut self) -> Result<Held, TopicError>;

    /// Ends what other producers of the name have begun, after which they write nothing, and
    /// returns the contents of the topic.
    fn open(&mut self) -> Result<Held, TopicError>;

    /// Begins a transaction.
    fn begin(&mut self) -> Result<(), TopicError>;

    /// Adds a message to the transaction.
    fn put(&mut self, message: &Message<'_>) -> Result<(), TopicError>;

    /// Commits the transaction: readers see all of its messages or none. After an error, either may
    /// be the case.
    fn commit(&mut self) -> Result<(), TopicError>;

    /// Disconnects, and leaves an open transaction to be aborted.
    fn close(&mut self);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_that_no_producer_can_have_is_told_with_the_command_that_ends_it() {
        let mut open = OpenTransaction {
            broker: "kafka:9092".to_owned(),
            topic: "market".to_owned(),
            partition: 2,
            offset: 501,
            age: Duration::from_secs(899),
        };
        let tool = "kafka-transactions.sh --bootstrap-server kafka:9092";
        let find = format!("`{tool} find-hanging --topic market --partition 2`");
        let abort = format!("`{tool} abort --topic market --partition 2 --start-offset 501`");
        let text = open.to_string();
        assert!(text.contains("from offset 501 on"), "{text}");
        assert!(text.contains("for 899 s"), "{text}");
        assert!(text.contains(&find) && !text.contains("abort"), "{text}");
        open.age = Duration::from_secs(900);
        let text = open.to_string();
        assert!(text.contains(&abort), "{text}");
    }
}
