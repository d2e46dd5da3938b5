//! Domain, topic, writer, reader, waitset: handles that may be dropped in any order.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::cdr::{CdrBuffer, CdrError, CdrReader, CdrType};
use crate::discovery::{self, Discovery, Endpoint};
use crate::guid::Guid;
use crate::keys::{Keys, Refusal};
use crate::shm::Taken;
use crate::sys::{
    self, Callbacks, Ending, Entity, OnData, OnSamples, OnStatus, RawInfo, RawSamples, Sink,
};
use crate::types::{Fault, StructType, TypeError};
use crate::{DomainConfig, Error, Qos, ReturnCode, Status};

/// A domain, joined as one participant. It may be cloned cheaply and shared between threads, and is
/// closed with its last user.
#[derive(Debug, Clone)]
pub struct Domain {
    participant: Arc<Entity>,
    id: u32,
}

impl Domain {
    /// Joins a domain. Each call is a participant with sockets and threads of its own.
    ///
    /// # Errors
    /// The configuration is invalid ([`Error::DomainId`], [`Error::Config`]) or not possible on
    /// this machine ([`Error::Dds`], with the reason from Cyclone DDS, such as an unknown
    /// interface).
    pub fn open(config: &DomainConfig) -> Result<Self, Error> {
        Ok(Self {
            participant: sys::open(config)?,
            id: config.id,
        })
    }

    /// Returns the domain id on the network.
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Makes a topic of a name, the type of its samples, and default policies.
    ///
    /// # Errors
    /// [`Error::Type`] for a type that DDS cannot carry, [`Error::Name`] for an invalid name,
    /// [`Error::Dds`] when the domain has the topic with another type.
    pub fn topic(&self, name: &str, t: &StructType, qos: &Qos) -> Result<Topic, Error> {
        Ok(Topic {
            entity: sys::topic(&self.participant, name, t, qos)?,
            participant: Arc::clone(&self.participant),
            name: name.into(),
            t: Arc::new(t.clone()),
        })
    }

    /// Makes a topic of a Rust type.
    ///
    /// # Errors
    /// Those of [`topic`](Self::topic).
    pub fn topic_of<T: CdrType>(&self, name: &str, qos: &Qos) -> Result<Topic, Error> {
        let Some(t) = T::structure() else {
            return Err(Error::Type(TypeError {
                path: std::any::type_name::<T>().to_owned(),
                why: Fault::Unsupported("topics of anything but structures"),
            }));
        };
        self.topic(name, &t, qos)
    }

    /// Returns the discovery of the domain's other participants, their writers and readers.
    ///
    /// # Errors
    /// [`Error::Dds`].
    pub fn discovery(&self) -> Result<Discovery, Error> {
        Discovery::new(&self.participant)
    }

    /// Makes the topic of a writer or reader of another program, with the type that it announced,
    /// requested on the network for at most `timeout`.
    ///
    /// # Errors
    /// [`Error::NoType`] if it announced none, [`Error::TypeUnanswered`] if no participant
    /// describes it in time, [`Error::Type`] for types that this crate does not read; otherwise
    /// those of [`topic`](Self::topic).
    pub fn found_topic(&self, endpoint: &Endpoint, timeout: Duration) -> Result<Topic, Error> {
        let t = discovery::type_of(&self.participant, endpoint, timeout)?;
        let qos = Qos::default();
        let info = endpoint.type_info()?;
        let entity = sys::found_topic(&self.participant, &endpoint.topic, info, timeout, &qos)?;
        Ok(Topic {
            entity,
            participant: Arc::clone(&self.participant),
            name: endpoint.topic.as_str().into(),
            t: Arc::new(t),
        })
    }

    /// Makes a waitset without readers.
    ///
    /// # Errors
    /// [`Error::Dds`] when the library has no resources for it.
    pub fn waitset(&self) -> Result<WaitSet, Error> {
        Ok(WaitSet(sys::RawWaitSet::new(&self.participant)?))
    }
}

/// A named stream of samples of one type. It may be cloned cheaply and shared between threads.
#[derive(Debug, Clone)]
pub struct Topic {
    entity: Arc<Entity>,
    participant: Arc<Entity>,
    name: Arc<str>,
    t: Arc<StructType>,
}

impl Topic {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the type of its samples.
    pub fn sample_type(&self) -> &StructType {
        &self.t
    }

    /// Returns a builder of a writer with these policies.
    pub fn writer(&self, qos: &Qos) -> WriterBuilder {
        WriterBuilder {
            topic: self.clone(),
            qos: qos.clone(),
            on_status: None,
        }
    }

    /// Returns a builder of a reader with these policies.
    pub fn reader(&self, qos: &Qos) -> ReaderBuilder {
        ReaderBuilder {
            topic: self.clone(),
            qos: qos.clone(),
            batch: 256,
            on_samples: None,
            on_data: None,
            on_status: None,
        }
    }
}

/// A builder of a writer.
pub struct WriterBuilder {
    topic: Topic,
    qos: Qos,
    on_status: Option<OnStatus>,
}

impl WriterBuilder {
    /// Calls `f` with events, in a thread of Cyclone DDS. `f` must not wait. If it panics it is not
    /// called again, and writing fails with [`Error::ListenerPanicked`].
    #[must_use]
    pub fn on_status(mut self, f: impl FnMut(Status) + Send + 'static) -> Self {
        self.on_status = Some(Box::new(f));
        self
    }

    /// Opens the writer.
    ///
    /// # Errors
    /// [`Error::Dds`] for policies that contradict each other; [`Error::Name`] for a bad partition.
    pub fn open(self) -> Result<Writer, Error> {
        let callbacks = Callbacks::of_writer(self.on_status);
        let t = &self.topic;
        let topic = (&t.entity, &*t.name);
        let entity = sys::writer(topic, &t.participant, &self.qos, callbacks)?;
        let most = self.qos.most_instances();
        Ok(Writer {
            sink: Sink::new(entity)?,
            keys: t.t.is_keyed().then(|| Mutex::new(Keys::new(most))),
            topic: self.topic,
        })
    }
}

impl fmt::Debug for WriterBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriterBuilder")
            .field("topic", &self.topic)
            .finish_non_exhaustive()
    }
}

/// Writes samples. A writer may be shared between threads, whose writes are serialized.
#[derive(Debug)]
pub struct Writer {
    sink: Sink,
    keys: Option<Mutex<Keys>>,
    topic: Topic,
}

impl Writer {
    /// Writes one sample: CDR bytes with their header, as [`CdrBuffer::finish`] returns them. They
    /// are copied once and sent by this thread before the call returns (unless batching). If the
    /// topic has no key, this crate neither allocates nor locks here; if it has one, the key is
    /// looked up under a lock, and a new one may allocate. Cyclone DDS takes the sample from its
    /// pool.
    ///
    /// # Errors
    /// [`Error::SampleMismatch`] for bytes that are not of the topic's type; [`Error::TooManyKeys`]
    /// for a new key beyond the limit of [instances](Qos::instances) that the writer has not
    /// [unregistered](Self::unregister), and [`Error::LongKey`] for one that is too long, which
    /// readers would close for; [`Error::Dds`] with [`ReturnCode::Timeout`] when a reliable reader
    /// kept the history full for longer than the policy permits; [`Error::ListenerPanicked`].
    #[inline]
    pub fn write(&self, cdr: &[u8]) -> Result<(), Error> {
        self.write_at(cdr, None)
    }

    /// Writes a sample on behalf of another writer, such as an echo. Its source time, in
    /// nanoseconds since 1970, is preserved.
    ///
    /// # Errors
    /// Those of [`write`](Self::write).
    #[inline]
    pub fn forward(&self, cdr: &[u8], source_nanos: i64) -> Result<(), Error> {
        self.write_at(cdr, Some(source_nanos))
    }

    #[inline]
    fn write_at(&self, cdr: &[u8], source_nanos: Option<i64>) -> Result<(), Error> {
        let new = self.admit(cdr, false)?;
        let written = self.sink.write(cdr, source_nanos);
        self.take_back(new, &written);
        match written {
            Some(Ok(())) => match self.sink.writer().callbacks() {
                Some(callbacks) if callbacks.has_panicked() => self.listener_panicked(),
                _ => Ok(()),
            },
            Some(Err(code)) => Err(Error::Dds {
                action: format!("write to topic {:?}", self.topic.name()),
                code,
                detail: String::new(),
            }),
            None => Err(Error::SampleMismatch {
                topic: self.topic.name().to_owned(),
            }),
        }
    }

    /// Returns the keys, if the topic has any.
    #[inline]
    fn keys(&self) -> Option<MutexGuard<'_, Keys>> {
        self.keys.as_ref()?.lock().ok()
    }

    /// Admits the key of a sample, or a key `alone`; returns its hash if it is new.
    #[inline]
    fn admit(&self, cdr: &[u8], alone: bool) -> Result<Option<u64>, Error> {
        let Some(mut keys) = self.keys() else {
            return Ok(None);
        };
        let admitted = keys.admit(self.topic.sample_type(), cdr, alone);
        admitted.map_err(|refusal| self.refused(refusal, keys.most()))
    }

    #[cold]
    fn refused(&self, refusal: Refusal, limit: u32) -> Error {
        let topic = self.topic.name().to_owned();
        match refusal {
            Refusal::Mismatch => Error::SampleMismatch { topic },
            Refusal::Long(length) => Error::LongKey { topic, length },
            Refusal::Full => Error::TooManyKeys { topic, limit },
        }
    }

    /// Forgets a new key if it was not written. After a time-out the library may keep it.
    #[inline]
    fn take_back(&self, new: Option<u64>, written: &Option<Result<(), ReturnCode>>) {
        let is_kept = matches!(written, Some(Ok(()) | Err(ReturnCode::Timeout)));
        if let (Some(key), false) = (new, is_kept)
            && let Some(mut keys) = self.keys()
        {
            keys.take_back(key);
        }
    }

    /// Disposes of an instance. `key` is the CDR of its key alone: the key members in order, as
    /// [`CdrBuffer`] writes them. Readers receive a sample without data whose
    /// [`SampleInfo::disposed`] is set, or see that on its samples that they have not taken.
    ///
    /// # Errors
    /// Those of [`write`](Self::write); [`Error::SampleMismatch`] for bytes that are no key.
    pub fn dispose(&self, key: &[u8]) -> Result<(), Error> {
        self.end(key, Ending::Dispose)
    }

    /// Unregisters an instance, which this writer no longer writes, and frees its resources. By the
    /// default of the specification ([autodispose](Qos::autodispose)) this disposes of the instance
    /// too.
    ///
    /// # Errors
    /// Those of [`dispose`](Self::dispose).
    pub fn unregister(&self, key: &[u8]) -> Result<(), Error> {
        self.end(key, Ending::Unregister)
    }

    fn end(&self, key: &[u8], how: Ending) -> Result<(), Error> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = i64::try_from(now.unwrap_or_default().as_nanos()).unwrap_or(i64::MAX);
        let ended = match how {
            Ending::Dispose => {
                let new = self.admit(key, true)?;
                let ended = self.sink.end(key, how, now);
                self.take_back(new, &ended);
                ended
            }
            Ending::Unregister => {
                let hash = self.key_alone(key)?;
                let ended = self.sink.end(key, how, now);
                if let (Some(Ok(())), Some(hash), Some(mut keys)) = (&ended, hash, self.keys()) {
                    keys.take_back(hash);
                }
                ended
            }
        };
        match ended {
            Some(Ok(())) => Ok(()),
            Some(Err(code)) => Err(Error::Dds {
                action: format!("end an instance of topic {:?}", self.topic.name()),
                code,
                detail: String::new(),
            }),
            None => Err(Error::SampleMismatch {
                topic: self.topic.name().to_owned(),
            }),
        }
    }

    /// Returns the hash of a key alone, if the topic has keys.
    fn key_alone(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        let Some(keys) = self.keys() else {
            return Ok(None);
        };
        let hash = keys.key(self.topic.sample_type(), key, true);
        hash.map(Some)
            .map_err(|refusal| self.refused(refusal, keys.most()))
    }

    /// Writes a typed value, by way of `buffer`.
    ///
    /// # Errors
    /// [`Error::Cdr`] when `buffer` is too small for it; otherwise those of [`write`](Self::write).
    #[inline]
    pub fn write_value<T: CdrType>(&self, value: &T, buffer: &mut CdrBuffer) -> Result<(), Error> {
        buffer.begin();
        value.write_cdr(buffer);
        self.write(buffer.finish()?)
    }

    /// Sends the samples that batching holds back.
    ///
    /// # Errors
    /// [`Error::Dds`].
    pub fn flush(&self) -> Result<(), Error> {
        self.sink.flush()
    }

    /// Waits until every matched reliable reader has acknowledged everything; returns `false` if
    /// `timeout` was too short.
    ///
    /// # Errors
    /// [`Error::Dds`].
    pub fn wait_for_acks(&self, timeout: Duration) -> Result<bool, Error> {
        self.sink.wait_for_acks(sys::nanos(timeout))
    }

    /// Returns the topic.
    pub const fn topic(&self) -> &Topic {
        &self.topic
    }

    #[cold]
    fn listener_panicked(&self) -> Result<(), Error> {
        Err(Error::ListenerPanicked(self.topic.name().to_owned()))
    }
}

/// A builder of a reader.
pub struct ReaderBuilder {
    topic: Topic,
    qos: Qos,
    batch: usize,
    on_samples: Option<OnSamples>,
    on_data: Option<OnData>,
    on_status: Option<OnStatus>,
}

impl ReaderBuilder {
    /// Sets the most samples that [`on_sample`](Self::on_sample) takes at a time; 256 by default.
    #[must_use]
    pub const fn batch(mut self, samples: usize) -> Self {
        self.batch = samples;
        self
    }

    /// Calls `f` with each sample that has data, in the receive thread of Cyclone DDS: the path
    /// with the least latency. `f` must not wait, and must not write to this same topic through
    /// this domain object. It may drop the reader. If it panics it is not called again, samples are
    /// discarded as they arrive, and [`Reader::take`] reports that. Replaces
    /// [`on_data`](Self::on_data).
    #[must_use]
    pub fn on_sample(mut self, mut f: impl FnMut(Sample<'_>) + Send + 'static) -> Self {
        self.on_data = None;
        self.on_samples = Some(Box::new(move |samples| {
            let all = (0..samples.len()).filter_map(|i| samples.get(i));
            for (info, cdr) in all.filter(|(info, _)| info.valid) {
                f(Sample::new(info, cdr));
            }
        }));
        self
    }

    /// Calls `f` when samples have arrived, in the receive thread of Cyclone DDS, and leaves them
    /// to [`Reader::take`] in another thread, which `f` wakes. `f` must not wait. It is called once
    /// more, in a thread of its own, when the reader was closed ([`Error::ReaderClosed`]). Replaces
    /// [`on_sample`](Self::on_sample).
    #[must_use]
    pub fn on_data(mut self, f: impl FnMut() + Send + 'static) -> Self {
        self.on_samples = None;
        self.on_data = Some(Box::new(f));
        self
    }

    /// Calls `f` with events, in a thread of Cyclone DDS. `f` must not wait.
    #[must_use]
    pub fn on_status(mut self, f: impl FnMut(Status) + Send + 'static) -> Self {
        self.on_status = Some(Box::new(f));
        self
    }

    /// Opens the reader.
    ///
    /// # Errors
    /// Those of [`WriterBuilder::open`].
    pub fn open(self) -> Result<Reader, Error> {
        let room = |f| (f, RawSamples::with_capacity(self.batch));
        let limit = self.qos.most_instances();
        let samples = self.on_samples.map(room);
        let callbacks = Callbacks::of_reader(samples, self.on_data, self.on_status, limit);
        let t = &self.topic;
        let topic = (&t.entity, &*t.name);
        let qos = self.qos.instances(limit);
        let entity = sys::reader(topic, &t.participant, &qos, callbacks)?;
        Ok(Reader {
            entity,
            topic: self.topic,
        })
    }
}

impl fmt::Debug for ReaderBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaderBuilder")
            .field("topic", &self.topic)
            .finish_non_exhaustive()
    }
}

/// Takes samples, or, opened with [`ReaderBuilder::on_sample`], passes them to a closure in a
/// thread of Cyclone DDS. A reader may be shared between threads; a sample goes to the thread that
/// takes it.
#[derive(Debug)]
pub struct Reader {
    entity: Arc<Entity>,
    topic: Topic,
}

impl Reader {
    /// Returns a reusable array for up to `n` samples (1 to 65,536).
    pub fn samples(&self, n: usize) -> Samples {
        Samples {
            raw: RawSamples::with_capacity(n),
            owner: None,
        }
    }

    /// Takes the samples that have arrived into `samples`, in place of its former ones, and returns
    /// their number. Never waits and never allocates.
    ///
    /// # Errors
    /// [`Error::Dds`]; [`Error::ReaderClosed`]; [`Error::ListenerPanicked`].
    #[inline]
    pub fn take(&self, samples: &mut Samples) -> Result<usize, Error> {
        self.check()?;
        // Samples of another reader are returned while that reader's domain is still held.
        samples.raw.release();
        if !samples.are_of(&self.entity) {
            samples.owner = Some(Arc::clone(&self.entity));
        }
        samples.raw.take(self.entity.handle())
    }

    /// Takes the samples that have arrived into `samples`, behind those that are there, as far as
    /// there is room, and returns the number of new ones. Samples of another reader are replaced.
    /// Never waits and never allocates. A take with less room than the reader holds leaves an
    /// arbitrary part: samples are handed out one instance after the other.
    ///
    /// # Errors
    /// [`Error::Dds`]; [`Error::ReaderClosed`]; [`Error::ListenerPanicked`].
    #[inline]
    pub fn take_more(&self, samples: &mut Samples) -> Result<usize, Error> {
        if !samples.are_of(&self.entity) {
            return self.take(samples);
        }
        self.check()?;
        samples.raw.take_more(self.entity.handle())
    }

    /// Checks that this reader was not closed, and that no closure of it panicked. Does not wait.
    ///
    /// # Errors
    /// [`Error::ReaderClosed`]; [`Error::ListenerPanicked`].
    #[inline]
    pub fn check(&self) -> Result<(), Error> {
        let Some(callbacks) = self.entity.callbacks() else {
            return Ok(());
        };
        if let Some((why, writer)) = callbacks.overflow() {
            return Err(Error::ReaderClosed {
                topic: self.topic.name().to_owned(),
                why,
                writer,
            });
        }
        if callbacks.has_panicked() {
            return Err(Error::ListenerPanicked(self.topic.name().to_owned()));
        }
        Ok(())
    }

    /// Returns the topic.
    pub const fn topic(&self) -> &Topic {
        &self.topic
    }
}

/// Samples taken from a reader, on loan until the next take.
#[derive(Debug)]
pub struct Samples {
    // Dropped before the owner: samples live in the pool of the reader's domain.
    raw: RawSamples,
    owner: Option<Arc<Entity>>,
}

impl Samples {
    /// Returns the number of samples.
    pub const fn len(&self) -> usize {
        self.raw.len()
    }

    /// Returns whether there are no samples.
    pub const fn is_empty(&self) -> bool {
        self.raw.len() == 0
    }

    /// Returns the samples to the reader's pool.
    pub fn clear(&mut self) {
        self.raw.release();
        self.owner = None;
    }

    /// Returns to the reader's pool the samples for whose index `is_kept` returns `false`. The
    /// others move together, in their order. Does not allocate.
    pub fn keep(&mut self, is_kept: impl FnMut(usize) -> bool) {
        self.raw.keep(is_kept);
    }

    fn are_of(&self, reader: &Arc<Entity>) -> bool {
        let owner = self.owner.as_ref();
        owner.is_some_and(|owner| Arc::ptr_eq(owner, reader))
    }

    /// Returns a sample by its index, from 0 in the order of arrival.
    pub fn get(&self, i: usize) -> Option<Sample<'_>> {
        self.raw.get(i).map(|(info, cdr)| Sample::new(info, cdr))
    }

    /// Returns the samples in the order of arrival.
    pub const fn iter(&self) -> SampleIter<'_> {
        SampleIter {
            samples: self,
            at: 0,
        }
    }
}

impl<'a> IntoIterator for &'a Samples {
    type Item = Sample<'a>;
    type IntoIter = SampleIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// An iterator over taken samples in the order of arrival; see [`Samples::iter`].
#[derive(Debug, Clone)]
pub struct SampleIter<'a> {
    samples: &'a Samples,
    at: usize,
}

impl<'a> Iterator for SampleIter<'a> {
    type Item = Sample<'a>;

    fn next(&mut self) -> Option<Sample<'a>> {
        let sample = self.samples.get(self.at)?;
        self.at += 1;
        Some(sample)
    }
}

/// One sample.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// Its time, writer and instance.
    pub info: SampleInfo,
    bytes: &'a [u8],
    /// The handle of the reader; 0 over shared memory.
    reader: i32,
}

/// The metadata of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleInfo {
    /// The writer's time of the sample, in nanoseconds since 1970.
    pub source_nanos: i64,
    /// The instance, a number local to this process.
    pub instance: u64,
    /// The writer, a number local to this process.
    pub writer: u64,
    /// Whether the instance has a living writer and is not disposed.
    pub alive: bool,
    /// Whether the instance was disposed.
    pub disposed: bool,
    /// Whether there is data; otherwise only the state of the instance has changed.
    pub has_data: bool,
}

impl<'a> Sample<'a> {
    /// Makes a sample that was received through shared memory.
    pub(crate) const fn of_shm(taken: &Taken<'a>) -> Self {
        let info = SampleInfo {
            source_nanos: taken.source_nanos,
            instance: taken.topic as u64,
            writer: taken.sender,
            alive: true,
            disposed: false,
            has_data: true,
        };
        Self {
            info,
            bytes: taken.bytes,
            reader: 0,
        }
    }

    const fn new(info: RawInfo, bytes: &'a [u8]) -> Self {
        let reader = info.reader;
        let info = SampleInfo {
            source_nanos: info.source_nanos,
            instance: info.instance,
            writer: info.writer,
            alive: info.alive,
            disposed: info.disposed,
            has_data: info.valid,
        };
        Self {
            info,
            bytes,
            reader,
        }
    }

    /// Returns the participant of the writer, over DDS and unless the writer is gone.
    pub(crate) fn participant(&self) -> Option<Guid> {
        sys::participant_of(self.reader, self.info.writer)
    }

    /// Returns the bytes with their CDR header; empty when the sample has no data.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns a cursor at the first member.
    ///
    /// # Errors
    /// [`CdrError`] when the sample has no data or no known representation.
    pub fn cdr(&self) -> Result<CdrReader<'a>, CdrError> {
        CdrReader::new(self.bytes)
    }

    /// Returns the sample as a Rust value.
    ///
    /// # Errors
    /// [`CdrError`] for bytes that are no such value.
    pub fn value<T: CdrType>(&self) -> Result<T, CdrError> {
        T::read_cdr(&mut self.cdr()?)
    }
}

/// Waits for any of several readers of one domain, in one thread at a time.
#[derive(Debug)]
pub struct WaitSet(sys::RawWaitSet);

impl WaitSet {
    /// Adds a reader and returns its number for [`wait`](Self::wait), from 0 up.
    ///
    /// # Errors
    /// [`Error::Dds`] for a reader of another domain object.
    pub fn attach(&mut self, reader: &Reader) -> Result<usize, Error> {
        self.0.attach(sys::RawCondition::new(&reader.entity)?)
    }

    /// Waits until at least one reader has samples or `timeout` has passed, and calls `ready` with
    /// the number of each reader that has.
    ///
    /// # Errors
    /// [`Error::Dds`].
    pub fn wait(&mut self, timeout: Duration, ready: impl FnMut(usize)) -> Result<(), Error> {
        self.0.wait(sys::nanos(timeout), ready)
    }
}

#[cfg(all(test, feature = "cyclone"))]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::types::Kind;
    use crate::{LONGEST_KEY, Overflow};

    /// A million long keys could take a gigabyte. The writer is one that does not know keys, as
    /// those of other programs.
    #[test]
    fn a_key_that_is_too_long_closes_the_reader() {
        let config = DomainConfig::new(fanfare_peers::domain());
        let open = || Domain::open(&config).unwrap();
        let (here, there) = (open(), open());
        let t = StructType::new("Test::Named").key("name", Kind::String(None));
        let qos = Qos::last_value();
        let topic = |domain: &Domain| domain.topic("long", &t, &qos).unwrap();
        let reader = topic(&here).reader(&qos).open().unwrap();
        let mut writer = topic(&there).writer(&qos).open().unwrap();
        writer.keys = None;
        let write = |len: usize| {
            let mut buffer = CdrBuffer::with_capacity(4 << 10);
            buffer.string(&b"x".repeat(len));
            writer.write(buffer.finish().unwrap()).unwrap();
        };
        let end = Instant::now() + Duration::from_secs(60);
        let wait = |done: &mut dyn FnMut() -> bool| {
            while !done() {
                assert!(Instant::now() < end, "waited a minute");
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        let longest = LONGEST_KEY as usize - 4 - 4 - 1;
        write(longest);
        let mut samples = reader.samples(4);
        wait(&mut || reader.take(&mut samples).unwrap() == 1);
        write(longest + 1);
        wait(&mut || reader.check().is_err());
        let told = reader.check().unwrap_err().to_string();
        let why = Overflow::Key(LONGEST_KEY + 1).to_string();
        assert!(told.contains(&why), "{told}");
    }
}
