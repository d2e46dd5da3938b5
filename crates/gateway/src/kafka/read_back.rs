//! The contents of a topic, read back by consumers of librdkafka.

use super::config::Kafka;
use super::topic::{Held, What};
use rdkafka::Message as _;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Headers, Timestamp};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// The longest wait for a broker's response, and for the ends of open transactions.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two looks at open transactions.
const PAUSE: Duration = Duration::from_millis(50);
/// The messages that are first read back of each partition. The last of them are markers of
/// transactions, or may belong to an aborted one.
const TAIL: i64 = 256;

/// The header with the number of a message.
pub(super) const NUMBER: &str = "number";
/// The header with the ID of the log that it is from.
pub(super) const LOG: &str = "log";

/// The reason why a topic cannot be read.
#[derive(Debug)]
pub(super) enum ReadError {
    Library(KafkaError),
    /// The partitions with open transactions, the offsets at which these begin, and the time since
    /// which they are waited for.
    Open(Vec<(i32, i64)>, Instant),
    /// A partition that ends before an offset that it had.
    Shorter(i32),
}

impl From<KafkaError> for ReadError {
    fn from(error: KafkaError) -> Self {
        Self::Library(error)
    }
}

/// The part of a partition that is read back.
struct Tail {
    partition: i32,
    /// The first offset that was not read before.
    low: i64,
    /// The offset after its last message.
    high: i64,
    /// The offset from which it is read.
    from: i64,
}

/// A reader of a topic's ends. It reads twice: first what is there, then what was added.
pub(super) struct TopicReader {
    topic: String,
    whole: BaseConsumer,
    committed: BaseConsumer,
    found: Found,
    /// The offsets up to which partitions are known.
    ends: BTreeMap<i32, i64>,
}

impl TopicReader {
    /// Creates a reader with the options of both clients.
    pub(super) fn new(config: &Kafka, mut options: ClientConfig) -> Result<Self, KafkaError> {
        options
            .set("group.id", config.transactional_id())
            .set("enable.auto.commit", "false")
            .set("auto.offset.reset", "earliest")
            .set("enable.partition.eof", "true");
        if !config.options.contains_key("fetch.wait.max.ms") {
            // A reader at the end of a partition waits for more for this time.
            options.set("fetch.wait.max.ms", "10");
        }
        // A follower nearby may lack the end.
        options.remove("client.rack");
        let consumer = |level: &str| -> Result<BaseConsumer, KafkaError> {
            options.clone().set("isolation.level", level).create()
        };
        Ok(Self {
            topic: config.topic.clone(),
            whole: consumer("read_uncommitted")?,
            committed: consumer("read_committed")?,
            found: Found::default(),
            ends: BTreeMap::new(),
        })
    }

    /// Returns the offsets up to which partitions were read.
    pub(super) const fn ends(&self) -> &BTreeMap<i32, i64> {
        &self.ends
    }

    /// Reads what is committed in front of any open transaction.
    pub(super) fn look(&mut self, partitions: i32) -> Result<Held, ReadError> {
        let tails = (0..partitions).map(|own| self.tail(own));
        let tails = tails.collect::<Result<Vec<Tail>, KafkaError>>()?;
        self.read(tails)
    }

    /// Reads what was added, once all that partitions have now is committed or aborted. Behind the
    /// open transaction of another producer no committed message can be read, also none of our own.
    pub(super) fn finish(&mut self, partitions: i32) -> Result<Held, ReadError> {
        let ends = (0..partitions).map(|own| {
            let offsets = self.offsets(&self.whole, own);
            offsets.map(|(_, end)| (own, end))
        });
        let mut waiting = ends.collect::<Result<Vec<(i32, i64)>, KafkaError>>()?;
        let begun = Instant::now();
        let mut tails = Vec::new();
        loop {
            let mut open = Vec::new();
            for (partition, end) in std::mem::take(&mut waiting) {
                let tail = self.tail(partition)?;
                if tail.high >= end {
                    tails.push(tail);
                } else {
                    open.push((partition, tail.high));
                    waiting.push((partition, end));
                }
            }
            if waiting.is_empty() {
                return self.read(tails);
            }
            if begun.elapsed() >= PATIENCE {
                return Err(ReadError::Open(open, begun));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Returns the first offset of a partition and the one after its last message, as a consumer
    /// sees them.
    fn offsets(&self, consumer: &BaseConsumer, partition: i32) -> Result<(i64, i64), KafkaError> {
        consumer.fetch_watermarks(&self.topic, partition, PATIENCE)
    }

    /// Returns the committed part of a partition, nothing of which is read yet.
    fn tail(&self, partition: i32) -> Result<Tail, KafkaError> {
        let (low, high) = self.offsets(&self.committed, partition)?;
        Ok(Tail {
            partition,
            low,
            high,
            from: high,
        })
    }

    /// Reads each partition backwards, from its end to a message of Fanfare or to what was read
    /// before.
    fn read(&mut self, mut tails: Vec<Tail>) -> Result<Held, ReadError> {
        let is_emptied = tails.iter().any(|tail| tail.low > 0);
        let ends = tails.iter().map(|tail| (tail.partition, tail.high));
        let ends: Vec<(i32, i64)> = ends.collect();
        for tail in &mut tails {
            let read = self.ends.get(&tail.partition);
            tail.low = read.map_or(tail.low, |read| tail.low.max(*read));
            if tail.high < tail.low {
                return Err(ReadError::Shorter(tail.partition));
            }
        }
        let mut room = TAIL;
        tails.retain(|tail| tail.from > tail.low);
        while !tails.is_empty() {
            for tail in &mut tails {
                tail.from = tail.low.max(tail.high.saturating_sub(room));
            }
            let shown = self.read_tails(&tails)?;
            tails.retain(|tail| tail.from > tail.low && !shown.contains(&tail.partition));
            room = room.saturating_mul(16);
        }
        self.ends.extend(ends);
        Ok(self.found.held(is_emptied))
    }

    /// Reads partitions from an offset to their ends. Returns those that have a message.
    fn read_tails(&mut self, tails: &[Tail]) -> Result<BTreeSet<i32>, KafkaError> {
        let mut places = TopicPartitionList::new();
        for tail in tails {
            let from = Offset::Offset(tail.from);
            places.add_partition_offset(&self.topic, tail.partition, from)?;
        }
        self.committed.assign(&places)?;
        let ends = tails.iter().map(|tail| (tail.partition, tail.high));
        let (mut ends, mut shown) = (ends.collect::<BTreeMap<_, _>>(), BTreeSet::new());
        let mut until = Instant::now() + PATIENCE;
        while !ends.is_empty() {
            if Instant::now() >= until {
                let code = RDKafkaErrorCode::OperationTimedOut;
                return Err(KafkaError::MessageConsumption(code));
            }
            match self.committed.poll(Duration::from_millis(100)) {
                Some(Ok(message)) => {
                    let partition = message.partition();
                    // The library panics at a header whose name is not UTF-8, which is not ours.
                    let take = || self.found.take(&message);
                    if catch_unwind(AssertUnwindSafe(take)).unwrap_or(false) {
                        shown.insert(partition);
                    }
                    // What comes behind an end is no progress.
                    let Some(end) = ends.get(&partition) else {
                        continue;
                    };
                    until = Instant::now() + PATIENCE;
                    if message.offset() + 1 >= *end {
                        ends.remove(&partition);
                    }
                }
                Some(Err(KafkaError::PartitionEOF(of))) => {
                    ends.remove(&of);
                }
                Some(Err(error)) => return Err(error),
                None => {}
            }
        }
        Ok(shown)
    }
}

/// The messages that were read back.
#[derive(Default)]
struct Found {
    last: Option<u64>,
    /// The time of an event with that number, as its producer has set it.
    time: Option<u64>,
    /// The ID of the log in a message with that number.
    log: Option<u64>,
    /// The offsets and numbers of restarts in the first partition. A tail may be read again from an
    /// earlier offset.
    restarts: BTreeSet<(i64, u64)>,
}

impl Found {
    /// Records a message. Returns false if Fanfare did not write it.
    fn take(&mut self, message: &impl rdkafka::Message) -> bool {
        let Some(headers) = message.headers() else {
            return false;
        };
        let (mut number, mut log) = (None, None);
        let (mut is_restart, mut is_lost) = (false, false);
        for header in headers.iter() {
            let value = header
                .value
                .and_then(|value| std::str::from_utf8(value).ok());
            match header.key {
                NUMBER => number = value.and_then(|value| value.parse::<u64>().ok()),
                LOG => log = value.and_then(|value| u64::from_str_radix(value, 16).ok()),
                key => {
                    is_restart |= Some(key) == What::Restart.header();
                    is_lost |= Some(key) == What::Lost.header();
                }
            }
        }
        let Some(number) = number else {
            return false;
        };
        if Some(number) > self.last {
            (self.last, self.time, self.log) = (Some(number), None, None);
        }
        if Some(number) == self.last {
            self.log = log.or(self.log);
        }
        // A notice has the time at which it was written.
        if let Timestamp::CreateTime(time) = message.timestamp()
            && Some(number) == self.last
            && !is_restart
            && !is_lost
        {
            self.time = u64::try_from(time).ok();
        }
        if is_restart && message.partition() == 0 {
            self.restarts.insert((message.offset(), number));
        }
        true
    }

    fn held(&self, is_emptied: bool) -> Held {
        let restarts = self.restarts.iter();
        let restarts = restarts
            .filter(|(_, number)| Some(*number) == self.last)
            .count();
        Held {
            last: self.last,
            time: self.time,
            log: self.log,
            restarts: restarts as u64,
            is_emptied: is_emptied && self.last.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::message::{Header, OwnedHeaders, OwnedMessage};

    /// Returns a message of the first partition with these headers.
    fn message(offset: i64, headers: &[(&str, &str)]) -> OwnedMessage {
        message_at(offset, headers, Timestamp::NotAvailable)
    }

    fn message_at(offset: i64, headers: &[(&str, &str)], time: Timestamp) -> OwnedMessage {
        let headers = (!headers.is_empty()).then(|| {
            let insert = |all: OwnedHeaders, (key, value): &(&str, &str)| {
                all.insert(Header {
                    key,
                    value: Some(*value),
                })
            };
            headers.iter().fold(OwnedHeaders::new(), insert)
        });
        let topic = "events".to_owned();
        OwnedMessage::new(None, None, topic, time, 0, offset, headers)
    }

    #[test]
    fn a_tail_that_is_read_again_has_the_same_messages() {
        let mut found = Found::default();
        let foreign = [message(3, &[]), message(4, &[("trace", "7")])];
        let own = [
            message(1, &[("number", "7")]),
            message(2, &[("number", "7"), ("restart", "1")]),
        ];
        for _ in 0..2 {
            assert!(!foreign.iter().any(|message| found.take(message)));
        }
        for _ in 0..2 {
            assert!(own.iter().all(|message| found.take(message)));
        }
        let held = Held {
            last: Some(7),
            time: None,
            log: None,
            restarts: 1,
            is_emptied: false,
        };
        assert_eq!(found.held(true), held);
    }

    #[test]
    fn the_time_is_that_of_the_last_event_as_its_producer_has_set_it() {
        let mut found = Found::default();
        let mut take = |number: &str, header: &str, time| {
            let headers = [("number", number), (header, "1")];
            assert!(found.take(&message_at(1, &headers, time)));
            found.time
        };
        assert_eq!(take("7", "", Timestamp::CreateTime(5)), Some(5));
        assert_eq!(take("6", "", Timestamp::CreateTime(4)), Some(5));
        assert_eq!(take("7", "restart", Timestamp::CreateTime(9)), Some(5));
        assert_eq!(take("8", "lost", Timestamp::CreateTime(9)), None);
        assert_eq!(take("9", "", Timestamp::LogAppendTime(9)), None);
    }

    #[test]
    fn the_log_is_that_of_the_last_number() {
        let mut found = Found::default();
        let mut take = |offset, headers: &[(&str, &str)]| {
            assert!(found.take(&message(offset, headers)));
            found.held(false).log
        };
        // 0.3.0 wrote none.
        assert_eq!(take(1, &[("number", "7")]), None);
        let id = "00000000000000a7";
        assert_eq!(take(2, &[("number", "8"), ("log", id)]), Some(0xa7));
        assert_eq!(take(3, &[("number", "8"), ("restart", "1")]), Some(0xa7));
        assert_eq!(take(0, &[("number", "3"), ("log", "b")]), Some(0xa7));
        assert_eq!(take(4, &[("number", "9"), ("log", "?")]), None);
    }
}
