//! A reader of a topic, whose samples an agent takes in its turns.

use crate::counts::TopicCounts;
use crate::gateway::plan::Plan;
use crate::notice::{Notice, Notices};
use fanfare_dds::{Error, Qos, Reader, Samples, Topic};
use fanfare_engine::counters::Counter;
use fanfare_engine::poll::Waker;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A reader of a topic, with the samples taken last, and those that were kept.
pub(crate) struct TopicReader {
    /// The reader, or `None` once it was closed because its writers had too many keys.
    reader: Option<Reader>,
    /// Whether the library has called since the last look.
    called: Arc<AtomicBool>,
    /// Whether the last take returned samples: there may be more, for which the library does not
    /// call again.
    has_more: bool,
    samples: Samples,
    notices: Notices,
}

impl TopicReader {
    /// Opens a reader with room for `most` samples. Samples wake `waker`.
    pub(crate) fn open(
        topic: &Topic,
        qos: &Qos,
        most: usize,
        waker: &Waker,
        plan: Plan<'_>,
    ) -> Result<Self, Error> {
        let called = Arc::new(AtomicBool::new(true));
        let (flag, bell) = (Arc::clone(&called), waker.clone());
        let counts = TopicCounts::new(plan.counters, topic.name(), "dds_writers");
        let reader = topic.reader(qos).on_data(move || {
            flag.store(true, Ordering::Release);
            bell.wake();
        });
        let reader = reader.on_status(counts.listener(plan.notices)).open()?;
        Ok(Self {
            samples: reader.samples(most),
            reader: Some(reader),
            called,
            has_more: false,
            notices: plan.notices.clone(),
        })
    }

    /// Takes the samples that have arrived, in place of the former ones, and returns them. A reader
    /// that was closed has none: it is removed, and counted in `closed`.
    pub(crate) fn take(&mut self, closed: &Counter) -> Result<&Samples, Error> {
        self.samples.clear();
        self.take_more(closed)?;
        Ok(&self.samples)
    }

    /// Takes the samples that have arrived beside those that are there, and returns the places of
    /// the new ones. A reader that was closed has no new ones: it is removed, and counted in
    /// `closed`.
    pub(crate) fn take_more(&mut self, closed: &Counter) -> Result<Range<usize>, Error> {
        let first = self.samples.len();
        let is_due = self.has_more || self.called.swap(false, Ordering::Acquire);
        if let (true, Some(reader)) = (is_due, &self.reader) {
            self.has_more = false;
            match reader.take_more(&mut self.samples) {
                Ok(count) => self.has_more = count > 0,
                Err(error @ Error::ReaderClosed { .. }) => {
                    closed.increment(1);
                    let why = error.to_string();
                    self.notices.send(Notice::DdsClosed { why });
                    self.reader = None;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(first..self.samples.len())
    }

    /// Keeps the samples for whose place `is_kept` returns `true`, which move together.
    pub(crate) fn keep(&mut self, is_kept: impl FnMut(usize) -> bool) {
        self.samples.keep(is_kept);
        if self.samples.is_empty() {
            // A closed reader ends with its last sample.
            self.samples.clear();
        }
    }

    /// Closes the reader, which has no samples from then on.
    pub(crate) fn close(&mut self) {
        self.samples.clear();
        self.reader = None;
    }

    /// Returns whether the reader was closed.
    pub(crate) const fn is_closed(&self) -> bool {
        self.reader.is_none()
    }

    /// Returns the samples taken last, behind those that were kept.
    pub(crate) const fn samples(&self) -> &Samples {
        &self.samples
    }
}
