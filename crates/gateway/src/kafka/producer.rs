//! A topic of a broker, by librdkafka: one transactional producer, and a consumer that reads back
//! the contents of the topic.

use super::config::Kafka;
use super::options;
use super::topic::{Held, Message, To, Topic, TopicError, What};
use rdkafka::Message as _;
use rdkafka::client::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Header, Headers, OwnedHeaders, Timestamp};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest wait for a broker's response.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time for which the library may report the errors that it has met.
const SAYS: Duration = Duration::from_millis(20);
/// The pause between two looks at an open transaction.
const PAUSE: Duration = Duration::from_millis(50);
/// The time that readers may wait for the outcome of a transaction whose writer is gone.
const TRANSACTION_MS: &str = "15000";
/// The number of messages between two polls for acknowledgements of the broker.
const LOOK: u64 = 256;
/// The messages that are first read back of each partition. The last of them are markers of
/// transactions, or may belong to an aborted one.
const TAIL: i64 = 256;

/// The header with the number of a message.
const NUMBER: &str = "number";

/// A topic of a broker.
pub(crate) struct KafkaTopic {
    config: Kafka,
    producer: Option<BaseProducer<Said>>,
    partitions: i32,
    put: u64,
}

/// The part of a partition that is read back.
struct Tail {
    partition: i32,
    /// The first offset of the partition.
    low: i64,
    /// The offset after its last message.
    high: i64,
    /// The offset from which it is read.
    from: i64,
}

/// The last error of the library, because the errors of calls say less.
#[derive(Default)]
struct Said(Mutex<String>);

impl Said {
    fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ClientContext for Said {
    fn error(&self, error: KafkaError, reason: &str) {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // That no broker is left follows from an error that has the reason.
        let follows = error.rdkafka_error_code() == Some(RDKafkaErrorCode::AllBrokersDown);
        if !follows || said.is_empty() {
            reason.clone_into(&mut said);
        }
    }
}

impl ProducerContext for Said {
    type DeliveryOpaque = ();

    /// Ignores the result, because a message that was not delivered fails its transaction.
    fn delivery(&self, _: &DeliveryResult<'_>, (): ()) {}
}

impl KafkaTopic {
    pub(crate) const fn new(config: Kafka) -> Self {
        Self {
            config,
            producer: None,
            partitions: 0,
            put: 0,
        }
    }

    /// Returns the options of both clients.
    fn options(&self) -> ClientConfig {
        let mut options = ClientConfig::new();
        for (key, value) in &self.config.options {
            options.set(key, value);
        }
        options.set("bootstrap.servers", self.config.brokers.join(","));
        options
    }

    fn connect(&mut self) -> Result<Held, TopicError> {
        let mut options = self.options();
        options
            .set("transactional.id", self.config.transactional_id())
            .set("transaction.timeout.ms", TRANSACTION_MS)
            // As Java's producers do, so that other producers of a key write to the same partition.
            .set("partitioner", "murmur2_random");
        let is_set = |key: &str| self.config.options.contains_key(key);
        if !is_set("queue.buffering.max.kbytes") {
            options.set("queue.buffering.max.kbytes", "65536");
        }
        // Two names of one option.
        if !is_set("linger.ms") && !is_set("queue.buffering.max.ms") {
            options.set("linger.ms", "5");
        }
        let producer = options.create_with_context(Said::default());
        let producer: BaseProducer<Said> = producer.map_err(|error| self.error(error))?;
        self.producer = Some(producer);
        let (Some(producer), topic) = (&self.producer, &self.config.topic) else {
            return Err(TopicError("not connected".to_owned()));
        };
        let known = producer.client().fetch_metadata(Some(topic), PATIENCE);
        let known = known.map_err(|error| self.error(error))?;
        let of_topic = known.topics().first();
        if let Some(error) = of_topic.and_then(|topic| topic.error()) {
            let error = KafkaError::MetadataFetch(error.into());
            return Err(self.error(error));
        }
        let partitions = of_topic.map_or(0, |topic| topic.partitions().len());
        if partitions == 0 {
            return Err(TopicError("the topic has no partitions".to_owned()));
        }
        self.partitions = partitions as i32;
        // From here on, no other producer of this name adds anything.
        let begun = producer.init_transactions(PATIENCE);
        begun.map_err(|error| self.error(error))?;
        self.read_back()
    }

    fn error(&self, error: KafkaError) -> TopicError {
        let said = self.producer.as_ref().map(|own| {
            own.poll(SAYS);
            own.context().take()
        });
        let error = match error {
            KafkaError::Transaction(error) => error.to_string(),
            KafkaError::ClientConfig(_, what, key, _) => options::words(&key, &what),
            error => error.to_string(),
        };
        match said.filter(|said| !said.is_empty()) {
            Some(said) => TopicError(format!("{error} ({said})")),
            None => TopicError(error),
        }
    }

    /// Reads the last messages of the topic.
    fn read_back(&self) -> Result<Held, TopicError> {
        let mut options = self.options();
        options
            .set("group.id", self.config.transactional_id())
            .set("enable.auto.commit", "false")
            .set("auto.offset.reset", "earliest")
            .set("enable.partition.eof", "true");
        if !self.config.options.contains_key("fetch.wait.max.ms") {
            // A reader at the end of a partition waits for more for this time.
            options.set("fetch.wait.max.ms", "10");
        }
        // A follower nearby may lack the end.
        options.remove("client.rack");
        let consumer = |level: &str| -> Result<BaseConsumer, TopicError> {
            let made = options.clone().set("isolation.level", level).create();
            made.map_err(|error| self.error(error))
        };
        let (whole, committed) = (consumer("read_uncommitted")?, consumer("read_committed")?);
        let tails = (0..self.partitions).map(|own| self.tail(own, &whole, &committed));
        let mut tails = tails.collect::<Result<Vec<Tail>, TopicError>>()?;
        let is_emptied = tails.iter().any(|tail| tail.low > 0);
        let (mut found, mut room) = (Found::default(), TAIL);
        tails.retain(|tail| tail.from > tail.low);
        while !tails.is_empty() {
            for tail in &mut tails {
                tail.from = tail.low.max(tail.high.saturating_sub(room));
            }
            let shown = self.read_tails(&committed, &tails, &mut found);
            let shown = shown.map_err(|error| self.error(error))?;
            tails.retain(|tail| tail.from > tail.low && !shown.contains(&tail.partition));
            room = room.saturating_mul(16);
        }
        Ok(found.held(is_emptied))
    }

    /// Returns the offsets of a partition, nothing of which is read yet, once all that it has is
    /// committed or aborted. Behind the open transaction of another producer no committed message
    /// can be read, also none of our own.
    fn tail(
        &self,
        partition: i32,
        whole: &BaseConsumer,
        committed: &BaseConsumer,
    ) -> Result<Tail, TopicError> {
        let offsets = |consumer: &BaseConsumer| {
            let offsets = consumer.fetch_watermarks(&self.config.topic, partition, PATIENCE);
            offsets.map_err(|error| self.error(error))
        };
        let (_, end) = offsets(whole)?;
        let until = Instant::now() + PATIENCE;
        loop {
            let (low, high) = offsets(committed)?;
            if high >= end {
                return Ok(Tail {
                    partition,
                    low,
                    high,
                    from: high,
                });
            }
            if Instant::now() >= until {
                return Err(TopicError(format!(
                    "partition {partition} has an open transaction of another producer, or one \
                     that a crash of a broker has left, behind which its end cannot be read"
                )));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Reads partitions from an offset to their ends. Returns those that have a message.
    fn read_tails(
        &self,
        consumer: &BaseConsumer,
        tails: &[Tail],
        found: &mut Found,
    ) -> Result<BTreeSet<i32>, KafkaError> {
        let mut places = TopicPartitionList::new();
        for tail in tails {
            let from = Offset::Offset(tail.from);
            places.add_partition_offset(&self.config.topic, tail.partition, from)?;
        }
        consumer.assign(&places)?;
        let ends = tails.iter().map(|tail| (tail.partition, tail.high));
        let (mut ends, mut shown) = (ends.collect::<BTreeMap<_, _>>(), BTreeSet::new());
        let mut until = Instant::now() + PATIENCE;
        while !ends.is_empty() {
            if Instant::now() >= until {
                let code = RDKafkaErrorCode::OperationTimedOut;
                return Err(KafkaError::MessageConsumption(code));
            }
            match consumer.poll(Duration::from_millis(100)) {
                Some(Ok(message)) => {
                    let partition = message.partition();
                    if found.take(&message) {
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

    fn send(&mut self, message: &Message<'_>, partition: Option<i32>) -> Result<(), TopicError> {
        let number = message.number.to_string();
        let mut headers = OwnedHeaders::new().insert(Header {
            key: NUMBER,
            value: Some(&number),
        });
        if let Some(key) = message.what.header() {
            headers = headers.insert(Header {
                key,
                value: Some("1"),
            });
        }
        let mut record = BaseRecord::<[u8], [u8]>::to(&self.config.topic)
            .payload(message.value)
            .headers(headers);
        if let To::Key(key) = message.to {
            record = record.key(key);
        }
        if let Some(partition) = partition {
            record = record.partition(partition);
        }
        if message.time > 0 {
            record = record.timestamp((message.time / 1_000_000).cast_signed());
        }
        let Some(producer) = &self.producer else {
            return Err(TopicError("not connected".to_owned()));
        };
        self.put += 1;
        if self.put.is_multiple_of(LOOK) {
            producer.poll(Duration::ZERO);
        }
        let until = Instant::now() + PATIENCE;
        loop {
            match producer.send(record) {
                Ok(()) => return Ok(()),
                Err((error, again)) => {
                    let code = error.rdkafka_error_code();
                    let is_full = code == Some(RDKafkaErrorCode::QueueFull);
                    if !is_full || Instant::now() > until {
                        return Err(self.error(error));
                    }
                    record = again;
                    producer.poll(Duration::from_millis(50));
                }
            }
        }
    }
}

impl Topic for KafkaTopic {
    fn open(&mut self) -> Result<Held, TopicError> {
        self.connect()
    }

    fn begin(&mut self) -> Result<(), TopicError> {
        let begun = self.producer.as_ref().map(Producer::begin_transaction);
        begun.unwrap_or(Ok(())).map_err(|error| self.error(error))
    }

    fn put(&mut self, message: &Message<'_>) -> Result<(), TopicError> {
        match message.to {
            To::Key(_) => self.send(message, None),
            To::First => self.send(message, Some(0)),
            To::All => (0..self.partitions).try_for_each(|own| self.send(message, Some(own))),
        }
    }

    fn commit(&mut self) -> Result<(), TopicError> {
        let Some(producer) = &self.producer else {
            return Err(TopicError("not connected".to_owned()));
        };
        let done = producer.commit_transaction(PATIENCE);
        done.map_err(|error| self.error(error))
    }

    fn close(&mut self) {
        self.producer = None;
    }
}

/// The messages that were read back.
#[derive(Default)]
struct Found {
    last: Option<u64>,
    /// The time of an event with that number, as its producer has set it.
    time: Option<u64>,
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
        let mut number = None;
        let (mut is_restart, mut is_lost) = (false, false);
        for header in headers.iter() {
            let value = header
                .value
                .and_then(|value| std::str::from_utf8(value).ok());
            match header.key {
                NUMBER => number = value.and_then(|value| value.parse::<u64>().ok()),
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
            (self.last, self.time) = (Some(number), None);
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

    fn held(self, is_emptied: bool) -> Held {
        let restarts = self.restarts.iter();
        let restarts = restarts
            .filter(|(_, number)| Some(*number) == self.last)
            .count();
        Held {
            last: self.last,
            time: self.time,
            restarts: restarts as u64,
            is_emptied: is_emptied && self.last.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::message::OwnedMessage;

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
    fn the_library_names_a_reason_rather_than_its_consequence() {
        let said = Said::default();
        let tell = |code, reason| said.error(KafkaError::Global(code), reason);
        tell(RDKafkaErrorCode::AllBrokersDown, "1/1 brokers are down");
        tell(RDKafkaErrorCode::Authentication, "wrong password");
        tell(RDKafkaErrorCode::AllBrokersDown, "1/1 brokers are down");
        assert_eq!(said.take(), "wrong password");
    }
}
