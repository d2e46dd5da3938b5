//! A reader of a topic, whose samples an agent takes in its turns.

use crate::counts::TopicCounts;
use crate::gateway::plan::Plan;
use crate::notice::{Notice, Notices};
use fanfare_dds::{Error, Qos, Reader, Samples, Topic};
use fanfare_engine::counters::Counter;
use fanfare_engine::poll::Waker;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A reader of a topic, with the samples taken last.
pub(crate) struct TopicReader {
    /// The reader, or `None` once it was closed because its writers had too many keys.
    reader: Option<Reader>,
    /// Whether the library has called since the last look.
    called: Arc<AtomicBool>,
    samples: Samples,
    notices: Notices,
}

impl TopicReader {
    /// Opens a reader that takes up to `most` samples at a time. Samples wake `waker`.
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
            notices: plan.notices.clone(),
        })
    }

    /// Takes the samples that have arrived, in place of the former ones, and returns them. A reader
    /// that was closed has none: it is removed, and counted in `closed`.
    pub(crate) fn take(&mut self, closed: &Counter) -> Result<&Samples, Error> {
        // After some samples there may be more, for which the library does not call again.
        let is_due = !self.samples.is_empty() || self.called.swap(false, Ordering::Acquire);
        if let (true, Some(reader)) = (is_due, &self.reader) {
            match reader.take(&mut self.samples) {
                Ok(_) => {}
                Err(error @ Error::ReaderClosed { .. }) => {
                    closed.increment(1);
                    let why = error.to_string();
                    self.notices.send(Notice::DdsClosed { why });
                    self.close();
                }
                Err(error) => return Err(error),
            }
        }
        Ok(&self.samples)
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

    /// Returns the samples taken last.
    pub(crate) const fn samples(&self) -> &Samples {
        &self.samples
    }
}
