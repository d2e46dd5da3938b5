//! The writer of a topic.

use std::fmt;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use super::Topic;
use crate::cdr::{CdrBuffer, CdrType};
use crate::keys::{Keys, Refusal};
use crate::sys::{self, Callbacks, Ending, OnStatus, Sink};
use crate::{Error, Qos, ReturnCode, Status};

/// A builder of a writer.
pub struct WriterBuilder {
    topic: Topic,
    qos: Qos,
    on_status: Option<OnStatus>,
}

impl WriterBuilder {
    pub(super) fn new(topic: &Topic, qos: &Qos) -> Self {
        Self {
            topic: topic.clone(),
            qos: qos.clone(),
            on_status: None,
        }
    }

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
    /// [`SampleInfo::disposed`](crate::SampleInfo::disposed) is set, or see that on its samples
    /// that they have not taken.
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

#[cfg(all(test, feature = "cyclone"))]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::types::{Kind, StructType};
    use crate::{Domain, DomainConfig, LONGEST_KEY, Overflow};

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
