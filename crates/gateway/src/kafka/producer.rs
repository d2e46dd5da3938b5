//! A topic of a broker, by librdkafka: one transactional producer, and consumers that read back the
//! contents of the topic.

use super::config::Kafka;
use super::options;
use super::read_back::{LOG, NUMBER, PATIENCE, ReadError, TopicReader};
use super::topic::{Held, Message, OpenTransaction, To, Topic, TopicError};
use rdkafka::Message as _;
use rdkafka::client::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time for which the library may report the errors that it has met.
const SAYS: Duration = Duration::from_millis(20);
/// The time that readers may wait for the outcome of a transaction whose writer is gone.
const TRANSACTION_MS: &str = "15000";
/// The number of messages between two polls for acknowledgements of the broker.
const LOOK: u64 = 256;
/// The time in which acknowledgements usually come. The library's own wait is at least 100 ms.
const SOON: Duration = Duration::from_millis(50);
/// The longest single wait for acknowledgements.
const BEAT: Duration = Duration::from_millis(1);

/// A topic of a broker.
pub(crate) struct KafkaTopic {
    config: Kafka,
    /// The ID of the log, as messages have it.
    log: String,
    producer: Option<BaseProducer<Reports>>,
    /// The reader between the look at the topic and its opening.
    reader: Option<TopicReader>,
    partitions: i32,
    put: u64,
    /// The offsets at which open transactions begin that hold up partitions, and the times since
    /// which they are known.
    blocked: BTreeMap<i32, (i64, Instant)>,
}

/// The reports of the library, which come while it is polled.
#[derive(Default)]
struct Reports {
    /// The last error, because the errors of calls say less.
    said: Mutex<String>,
    ends: Mutex<Ends>,
}

/// The ends of partitions, by the offsets of delivered messages.
#[derive(Default)]
struct Ends {
    /// The lowest offset of the next message.
    next: BTreeMap<i32, i64>,
    /// The partition whose offsets went back, and the offset that it went back to.
    back: Option<(i32, i64)>,
}

impl Ends {
    /// Records the offset of a message, which is negative if it is not known.
    fn pass(&mut self, partition: i32, offset: i64) {
        let next = self.next.entry(partition).or_default();
        if (0..*next).contains(&offset) {
            self.back = self.back.or(Some((partition, offset)));
        }
        *next = (*next).max(offset.saturating_add(1));
    }
}

impl Reports {
    fn take(&self) -> String {
        std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn ends(&self) -> MutexGuard<'_, Ends> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a failure of a message, unless a reason for it is known.
    fn undelivered(&self, error: &KafkaError) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.is_empty() {
            *said = error.to_string();
        }
    }
}

impl ClientContext for Reports {
    fn error(&self, error: KafkaError, reason: &str) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        // That no broker is left follows from an error that has the reason.
        let follows = error.rdkafka_error_code() == Some(RDKafkaErrorCode::AllBrokersDown);
        if !follows || said.is_empty() {
            reason.clone_into(&mut said);
        }
    }
}

impl ProducerContext for Reports {
    type DeliveryOpaque = ();

    /// Records the offset of a message, or why it was not delivered, which fails its transaction.
    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        match result {
            Ok(message) => self.ends().pass(message.partition(), message.offset()),
            Err((error, _)) => self.undelivered(error),
        }
    }
}

fn not_connected() -> TopicError {
    TopicError::Failed("not connected".to_owned())
}

impl KafkaTopic {
    /// `log` is the ID of the log that fills the topic.
    pub(crate) fn new(config: Kafka, log: u64) -> Self {
        Self {
            config,
            log: format!("{log:016x}"),
            producer: None,
            reader: None,
            partitions: 0,
            put: 0,
            blocked: BTreeMap::new(),
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

    /// Creates the producer, which is known to no broker yet.
    fn create(&mut self) -> Result<(), TopicError> {
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
        let producer = options.create_with_context(Reports::default());
        let producer: BaseProducer<Reports> = producer.map_err(|error| self.error(error))?;
        self.producer = Some(producer);
        Ok(())
    }

    /// Asks the broker for the number of partitions.
    fn count_partitions(&mut self) -> Result<(), TopicError> {
        let (Some(producer), topic) = (&self.producer, &self.config.topic) else {
            return Err(not_connected());
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
            let what = "the topic has no partitions".to_owned();
            return Err(TopicError::Failed(what));
        }
        self.partitions = partitions as i32;
        Ok(())
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
            Some(said) => TopicError::Failed(format!("{error} ({said})")),
            None => TopicError::Failed(error),
        }
    }

    fn read_error(&mut self, error: ReadError) -> TopicError {
        let (open, begun) = match error {
            ReadError::Library(error) => return self.error(error),
            ReadError::Shorter(partition) => return made_again(partition),
            ReadError::Open(open, begun) => (open, begun),
        };
        let before = std::mem::take(&mut self.blocked);
        for (partition, offset) in open {
            let same = before.get(&partition).filter(|known| known.0 == offset);
            let since = same.map_or(begun, |known| known.1);
            self.blocked.insert(partition, (offset, since));
        }
        let oldest = self.blocked.iter().min_by_key(|(_, (_, since))| *since);
        let Some((&partition, &(offset, since))) = oldest else {
            return TopicError::Failed("the topic's end cannot be read".to_owned());
        };
        let open = OpenTransaction {
            broker: self.config.brokers.first().cloned().unwrap_or_default(),
            topic: self.config.topic.clone(),
            partition,
            offset,
            age: since.elapsed(),
        };
        open.into()
    }

    fn send(&mut self, message: &Message<'_>, partition: Option<i32>) -> Result<(), TopicError> {
        let number = message.number.to_string();
        let header = |key, value| Header {
            key,
            value: Some(value),
        };
        let headers = OwnedHeaders::new().insert(header(NUMBER, number.as_str()));
        let mut headers = headers.insert(header(LOG, self.log.as_str()));
        if let Some(key) = message.what.header() {
            headers = headers.insert(header(key, "1"));
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
            return Err(not_connected());
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

/// Returns the error of a partition whose offsets went back.
fn made_again(partition: i32) -> TopicError {
    TopicError::Failed(format!(
        "partition {partition} has lost its end: the topic was made again, or its leader does not \
         have what was written to an earlier one"
    ))
}

impl Topic for KafkaTopic {
    fn look(&mut self) -> Result<Held, TopicError> {
        self.create()?;
        self.count_partitions()?;
        let reader = TopicReader::new(&self.config, self.options());
        let mut reader = reader.map_err(|error| self.error(error))?;
        let held = reader.look(self.partitions);
        let held = held.map_err(|error| self.read_error(error))?;
        self.reader = Some(reader);
        Ok(held)
    }

    fn open(&mut self) -> Result<Held, TopicError> {
        let (Some(producer), Some(mut reader)) = (&self.producer, self.reader.take()) else {
            return Err(not_connected());
        };
        // From here on, no other producer of this name adds anything.
        let begun = producer.init_transactions(PATIENCE);
        begun.map_err(|error| self.error(error))?;
        // It may have added to a new partition.
        self.count_partitions()?;
        let held = reader.finish(self.partitions);
        let held = held.map_err(|error| self.read_error(error))?;
        self.blocked.clear();
        if let Some(producer) = &self.producer {
            producer.context().ends().next.clone_from(reader.ends());
        }
        Ok(held)
    }

    fn begin(&mut self) -> Result<(), TopicError> {
        let Some(producer) = &self.producer else {
            return Err(not_connected());
        };
        let begun = producer.begin_transaction();
        begun.map_err(|error| self.error(error))
    }

    fn put(&mut self, message: &Message<'_>) -> Result<(), TopicError> {
        match message.to {
            To::Key(_) => self.send(message, None),
            To::First => self.send(message, Some(0)),
            To::All => {
                // Some may have been added.
                self.count_partitions()?;
                (0..self.partitions).try_for_each(|own| self.send(message, Some(own)))
            }
        }
    }

    fn commit(&mut self) -> Result<(), TopicError> {
        let Some(producer) = &self.producer else {
            return Err(not_connected());
        };
        let begun = Instant::now();
        while producer.in_flight_count() > 0 && begun.elapsed() < SOON {
            producer.poll(BEAT);
        }
        let flushed = producer.flush(PATIENCE);
        flushed.map_err(|error| self.error(error))?;
        // While nothing of it can be read yet.
        if let Some((partition, _)) = producer.context().ends().back {
            return Err(made_again(partition));
        }
        let done = producer.commit_transaction(PATIENCE);
        done.map_err(|error| self.error(error))?;
        // What the library has recovered from is no reason for a later failure.
        drop(producer.context().take());
        Ok(())
    }

    fn close(&mut self) {
        self.producer = None;
        self.reader = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_names_a_reason_rather_than_its_consequence() {
        let said = Reports::default();
        let tell = |code, reason| said.error(KafkaError::Global(code), reason);
        tell(RDKafkaErrorCode::AllBrokersDown, "1/1 brokers are down");
        tell(RDKafkaErrorCode::Authentication, "wrong password");
        tell(RDKafkaErrorCode::AllBrokersDown, "1/1 brokers are down");
        assert_eq!(said.take(), "wrong password");
    }

    #[test]
    fn a_message_that_was_not_delivered_is_the_reason_where_no_other_is_known() {
        let reports = Reports::default();
        let error = KafkaError::MessageProduction;
        reports.undelivered(&error(RDKafkaErrorCode::InvalidTimestamp));
        reports.undelivered(&error(RDKafkaErrorCode::PurgeQueue));
        let said = reports.take();
        assert!(said.contains("InvalidTimestamp"), "{said}");
    }

    #[test]
    fn a_partition_whose_offsets_go_back_has_lost_its_end() {
        let mut ends = Ends::default();
        ends.next.insert(0, 10);
        // Offsets have holes, may be unknown, and begin with 0 in a new partition.
        for (partition, offset) in [(0, 10), (0, 12), (0, -1001), (1, 0), (0, 13), (1, 1)] {
            ends.pass(partition, offset);
            assert_eq!(ends.back, None);
        }
        ends.pass(0, 13);
        ends.pass(1, 0);
        assert_eq!(ends.back, Some((0, 13)));
    }
}
