//! The publishing side.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{DONE, Distribution, DoneToken, Matches, done_qos, echo_name, for_each_topic};
use crate::cdr::CdrBuffer;
use crate::fast::{Converted, Mapping, TemplateType};
use crate::{Domain, Error, Reader, Writer};

/// Gets the round trips of one topic, in nanoseconds, in a receive thread.
pub type RoundTrips = Box<dyn FnMut(u64) + Send>;

/// Writes the samples of a feed to their topics.
#[derive(Debug)]
pub struct Publisher {
    /// By the index of the template.
    outlets: Vec<Vec<Writer>>,
    done: Writer,
    _echoes: Vec<Reader>,
    matches: Arc<Matches>,
    entities: u32,
    echoed: Arc<AtomicU64>,
    written: u64,
    without_topic: u64,
}

impl Publisher {
    /// Opens all topics. With echo on, `round_trips` is asked once for each topic what to do with
    /// its round trips: from the write to the arrival of the echo here.
    ///
    /// # Errors
    /// As [`Domain::topic`] and the opening of writers.
    pub fn open(
        domain: &Domain,
        mapping: &Mapping,
        distribution: &Distribution,
        mut round_trips: impl FnMut(&TemplateType) -> RoundTrips,
    ) -> Result<Self, Error> {
        let matches = Arc::new(Matches::default());
        let echoed = Arc::new(AtomicU64::new(0));
        let mut outlets = Vec::new();
        let mut echoes = Vec::new();
        let qos = &distribution.qos;
        for index in (0..).take(mapping.program().templates().len()) {
            let template = mapping.by_index(index);
            let Some(template) = template.filter(|t| distribution.carries(t)) else {
                outlets.push(Vec::new());
                continue;
            };
            let t = &template.sample;
            let writers = for_each_topic(distribution, template, |name| {
                let topic = domain.topic(name, t, qos)?;
                topic.writer(qos).on_status(matches.listener()).open()
            })?;
            outlets.push(writers);
            if distribution.echo {
                let qos = distribution.echo_qos();
                echoes.extend(for_each_topic(distribution, template, |name| {
                    let topic = domain.topic(&echo_name(name), t, &qos)?;
                    let on_echo = on_echo(round_trips(template), Arc::clone(&echoed));
                    let reader = topic.reader(&qos).on_sample(on_echo);
                    reader.on_status(matches.listener()).open()
                })?);
            }
        }
        let done = domain.topic_of::<DoneToken>(DONE, &done_qos())?;
        let done = done
            .writer(&done_qos())
            .on_status(matches.listener())
            .open()?;
        let entities = outlets.iter().map(Vec::len).sum::<usize>() + echoes.len() + 1;
        Ok(Self {
            outlets,
            done,
            _echoes: echoes,
            matches,
            entities: u32::try_from(entities).unwrap_or(u32::MAX),
            echoed,
            written: 0,
            without_topic: 0,
        })
    }

    /// Whether every topic, echoes included, has a subscriber.
    pub fn is_matched(&self) -> bool {
        self.matches.matched() >= self.entities
    }

    /// How often another side's policies did not fit: those do not match and never will.
    pub fn incompatible(&self) -> u32 {
        self.matches.incompatible()
    }

    /// Writes a sample to its topic; `false` when it has none, which is counted: a security
    /// beyond those that have topics.
    ///
    /// # Errors
    /// As [`Writer::write`].
    #[inline]
    pub fn publish(&mut self, sample: &Converted<'_>) -> Result<bool, Error> {
        let writers = self.outlets.get(sample.template.index as usize);
        let writer = writers.and_then(|w| match w.as_slice() {
            [only] => Some(only),
            many => many.get(usize::try_from(sample.key?).ok()?),
        });
        let Some(writer) = writer else {
            self.without_topic += 1;
            return Ok(false);
        };
        writer.write(sample.cdr)?;
        self.written += 1;
        Ok(true)
    }

    /// Samples written.
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Samples that had no topic.
    pub const fn without_topic(&self) -> u64 {
        self.without_topic
    }

    /// Echoes that came back.
    pub fn echoed(&self) -> u64 {
        self.echoed.load(Ordering::Acquire)
    }

    /// Says that this is all, and waits until every subscriber has it.
    ///
    /// # Errors
    /// As [`Writer::write`].
    pub fn finish(&self, timeout: Duration) -> Result<bool, Error> {
        for writer in self.outlets.iter().flatten() {
            writer.flush()?;
        }
        let token = DoneToken {
            samples: self.written,
        };
        let mut buffer = CdrBuffer::with_capacity(16);
        self.done.write_value(&token, &mut buffer)?;
        let mut all = self.done.wait_for_acks(timeout)?;
        for writer in self.outlets.iter().flatten() {
            all &= writer.wait_for_acks(timeout)?;
        }
        Ok(all)
    }
}

fn on_echo(
    mut round_trip: RoundTrips,
    echoed: Arc<AtomicU64>,
) -> impl FnMut(crate::Sample<'_>) + Send + 'static {
    move |sample| {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let sent = u64::try_from(sample.info.source_nanos).unwrap_or(0);
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        // Counted first: the closure may wake who waits for the count.
        echoed.fetch_add(1, Ordering::Release);
        round_trip(now.saturating_sub(sent));
    }
}
