//! A topic of a broker, by librdkafka: one transactional producer, and a consumer that reads back
//! the contents of the topic.

use super::config::Kafka;
use super::topic::{Held, Message, To, Topic, TopicError, What};
use rdkafka::client::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Header, Headers, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest wait for a broker's response.
const PATIENCE: Duration = Duration::from_secs(10);
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

/// The last error of the library, because the errors of calls say less.
#[derive(Default)]
struct Said(Mutex<String>);

impl Said {
    fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ClientContext for Said {
    fn error(&self, _: KafkaError, reason: &str) {
        reason.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
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
        for (key, value) in [("queue.buffering.max.kbytes", "65536"), ("linger.ms", "5")] {
            if !self.config.options.contains_key(key) {
                options.set(key, value);
            }
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
        self.read_back().map_err(|error| self.error(error))
    }

    fn error(&self, error: KafkaError) -> TopicError {
        let said = self.producer.as_ref().map(|own| own.context().take());
        let error = match error {
            KafkaError::Transaction(error) => error.to_string(),
            error => error.to_string(),
        };
        match said.filter(|said| !said.is_empty()) {
            Some(said) => TopicError(format!("{error} ({said})")),
            None => TopicError(error),
        }
    }

    /// Reads the last messages of the topic.
    fn read_back(&self) -> Result<Held, KafkaError> {
        let mut options = self.options();
        options
            .set("group.id", self.config.transactional_id())
            .set("enable.auto.commit", "false")
            .set("isolation.level", "read_committed")
            .set("enable.partition.eof", "true");
        let consumer: BaseConsumer = options.create()?;
        let (mut found, mut is_emptied) = (Found::default(), false);
        for partition in 0..self.partitions {
            let topic = &self.config.topic;
            let (low, high) = consumer.fetch_watermarks(topic, partition, PATIENCE)?;
            let (mut from, mut room) = (high, TAIL);
            while from > low {
                from = low.max(high.saturating_sub(room));
                if self.read_tail(&consumer, partition, from, &mut found)? {
                    break;
                }
                room = room.saturating_mul(16);
            }
            is_emptied |= high > 0;
        }
        Ok(found.held(is_emptied))
    }

    /// Reads a partition from an offset to its end. Returns whether there is a message.
    fn read_tail(
        &self,
        consumer: &BaseConsumer,
        partition: i32,
        from: i64,
        found: &mut Found,
    ) -> Result<bool, KafkaError> {
        let mut place = TopicPartitionList::new();
        place.add_partition_offset(&self.config.topic, partition, Offset::Offset(from))?;
        consumer.assign(&place)?;
        let until = Instant::now() + PATIENCE;
        let mut any = false;
        while Instant::now() < until {
            match consumer.poll(Duration::from_millis(100)) {
                Some(Ok(message)) => any |= found.take(&message),
                Some(Err(KafkaError::PartitionEOF(of))) if of == partition => return Ok(any),
                Some(Err(KafkaError::PartitionEOF(_))) | None => {}
                Some(Err(error)) => return Err(error),
            }
        }
        Err(KafkaError::MessageConsumption(
            RDKafkaErrorCode::OperationTimedOut,
        ))
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
        let mut is_restart = false;
        for header in headers.iter() {
            let value = header
                .value
                .and_then(|value| std::str::from_utf8(value).ok());
            match header.key {
                NUMBER => number = value.and_then(|value| value.parse::<u64>().ok()),
                key => is_restart |= Some(key) == What::Restart.header(),
            }
        }
        let Some(number) = number else {
            return false;
        };
        self.last = self.last.max(Some(number));
        if is_restart && message.partition() == 0 {
            self.restarts.insert((message.offset(), number));
        }
        true
    }

    fn held(self, had_any: bool) -> Held {
        let restarts = self.restarts.iter();
        let restarts = restarts
            .filter(|(_, number)| Some(*number) == self.last)
            .count();
        Held {
            last: self.last,
            restarts: restarts as u64,
            is_emptied: had_any && self.last.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::message::{OwnedMessage, Timestamp};

    /// Returns a message of the first partition with these headers.
    fn message(offset: i64, headers: &[(&str, &str)]) -> OwnedMessage {
        let headers = (!headers.is_empty()).then(|| {
            let insert = |all: OwnedHeaders, (key, value): &(&str, &str)| {
                all.insert(Header {
                    key,
                    value: Some(*value),
                })
            };
            headers.iter().fold(OwnedHeaders::new(), insert)
        });
        let (topic, time) = ("events".to_owned(), Timestamp::NotAvailable);
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
            restarts: 1,
            is_emptied: false,
        };
        assert_eq!(found.held(true), held);
    }
}
