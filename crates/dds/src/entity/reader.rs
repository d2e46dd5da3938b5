//! The reader of a topic, and the samples that it takes.

use std::fmt;
use std::sync::Arc;

use super::{Sample, Topic};
use crate::sys::{self, Callbacks, Entity, OnData, OnSamples, OnStatus, RawSamples};
use crate::{Error, Qos, Status};

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
    pub(super) fn new(topic: &Topic, qos: &Qos) -> Self {
        Self {
            topic: topic.clone(),
            qos: qos.clone(),
            batch: 256,
            on_samples: None,
            on_data: None,
            on_status: None,
        }
    }

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
    /// Those of [`WriterBuilder::open`](crate::WriterBuilder::open).
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

    pub(super) const fn entity(&self) -> &Arc<Entity> {
        &self.entity
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
