//! A feed over DDS: an entity of Cyclone DDS for each topic.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::echo::Echo;
use super::received::{Counts, OfPublisher, Publishers, Received};
use super::{DONE, Distribution, DoneToken, Matches, done_qos, echo_name, for_each_topic};
use crate::fast::{Converted, Mapping, TemplateType};
use crate::sys::OnStatus;
use crate::{Domain, Error, Reader, Sample, Writer};

/// The publishing side.
#[derive(Debug)]
pub(super) struct Writers {
    /// The writers, by the index of the template.
    writers: Vec<Vec<Writer>>,
    distribution: Distribution,
    done: Writer,
    echoes: Vec<Reader>,
    pub(super) matches: Arc<Matches>,
    entities: u32,
}

impl Writers {
    pub(super) fn open(
        domain: &Domain,
        mapping: &Mapping,
        distribution: &Distribution,
        mut echo: Echo<'_>,
        listeners: &mut dyn FnMut(&TemplateType, &str) -> OnStatus,
    ) -> Result<Self, Error> {
        let matches = Arc::new(Matches::default());
        let mut all = Vec::new();
        let mut echoes = Vec::new();
        let qos = &distribution.qos;
        for index in (0..).take(mapping.program().templates().len()) {
            let template = mapping.by_index(index);
            let Some(template) = template.filter(|t| distribution.carries(t)) else {
                all.push(Vec::new());
                continue;
            };
            let t = &template.sample;
            all.push(for_each_topic(distribution, template, |name| {
                let topic = domain.topic(name, t, qos)?;
                let (mut count, mut tell) = (matches.listener(), listeners(template, name));
                let writer = topic.writer(qos).on_status(move |status| {
                    count(status);
                    tell(status);
                });
                writer.open()
            })?);
            if distribution.echo {
                let qos = distribution.echo_qos();
                echoes.extend(for_each_topic(distribution, template, |name| {
                    let topic = domain.topic(&echo_name(name), t, &qos)?;
                    let mut on_echo = echo.of(template);
                    let reader = topic
                        .reader(&qos)
                        .on_sample(move |s: Sample<'_>| on_echo(s.info.source_nanos));
                    reader.on_status(matches.echo_listener()).open()
                })?);
            }
        }
        let done = domain.topic_of::<DoneToken>(DONE, &done_qos())?;
        let done = done.writer(&done_qos()).on_status(matches.listener());
        let entities = all.iter().map(Vec::len).sum::<usize>() + echoes.len() + 1;
        Ok(Self {
            writers: all,
            distribution: distribution.clone(),
            done: done.open()?,
            echoes,
            matches,
            entities: u32::try_from(entities).unwrap_or(u32::MAX),
        })
    }

    /// Returns how many topics have a match, and their number.
    pub(super) fn matched(&self) -> (u32, u32) {
        (self.matches.count(), self.entities)
    }

    pub(super) fn failures(&self) -> Vec<Error> {
        self.echoes.iter().filter_map(|r| r.check().err()).collect()
    }

    #[inline]
    pub(super) fn writer(&self, sample: &Converted<'_>) -> Option<&Writer> {
        let writers = self.writers.get(sample.template.index as usize)?;
        writers.get(self.distribution.place(sample)?)
    }

    #[inline]
    pub(super) fn publish(&self, sample: &Converted<'_>) -> Result<bool, Error> {
        match self.writer(sample) {
            Some(writer) => writer.write(sample.cdr).map(|()| true),
            None => Ok(false),
        }
    }

    pub(super) fn finish(&self, token: &[u8], timeout: Duration) -> Result<bool, Error> {
        let end = Instant::now() + timeout;
        for writer in self.writers.iter().flatten() {
            writer.flush()?;
        }
        self.done.write(token)?;
        self.wait_for_acks(end.saturating_duration_since(Instant::now()))
    }

    pub(super) fn wait_for_acks(&self, timeout: Duration) -> Result<bool, Error> {
        let end = Instant::now() + timeout;
        let mut all = true;
        for writer in [&self.done]
            .into_iter()
            .chain(self.writers.iter().flatten())
        {
            let left = end.saturating_duration_since(Instant::now());
            all &= writer.wait_for_acks(left)?;
        }
        Ok(all)
    }
}

/// The subscribing side.
#[derive(Debug)]
pub(super) struct Readers {
    readers: Vec<Reader>,
    done: Reader,
    pub(super) matches: Arc<Matches>,
    entities: u32,
}

impl Readers {
    pub(super) fn open<F>(
        domain: &Domain,
        mapping: &Mapping,
        distribution: &Distribution,
        counts: &Arc<Counts>,
        on_sample: &Arc<F>,
    ) -> Result<Self, Error>
    where
        F: Fn(Received<'_>) + Send + Sync + 'static,
    {
        let matches = Arc::new(Matches::default());
        let mut readers = Vec::new();
        let mut echoes = 0;
        for template in mapping.types().filter(|t| distribution.carries(t)) {
            readers.extend(for_each_topic(distribution, template, |name| {
                let mut echo = None;
                if distribution.echo {
                    echoes += 1;
                    let qos = distribution.echo_qos();
                    let topic = domain.topic(&echo_name(name), &template.sample, &qos)?;
                    let writer = topic.writer(&qos).on_status(matches.echo_listener());
                    echo = Some(writer.open()?);
                }
                let mut handler = Handler {
                    topic: name.to_owned(),
                    template: template.clone(),
                    on_sample: Arc::clone(on_sample),
                    echo,
                    counts: Arc::clone(counts),
                    publishers: Publishers::new(Arc::clone(counts)),
                };
                let topic = domain.topic(name, &template.sample, &distribution.qos)?;
                let reader = topic
                    .reader(&distribution.qos)
                    .on_status(matches.listener());
                reader.on_sample(move |s| handler.take(s)).open()
            })?);
        }
        let all = Arc::clone(counts);
        let mut publishers = Publishers::new(Arc::clone(counts));
        let done = domain.topic_of::<DoneToken>(DONE, &done_qos())?;
        let done = done.reader(&done_qos()).on_status(matches.listener());
        let done = done.on_sample(move |s| all.token(publisher_of(&s, &mut publishers), &s));
        let done = done.open()?;
        Ok(Self {
            entities: u32::try_from(readers.len() + echoes + 1).unwrap_or(u32::MAX),
            readers,
            done,
            matches,
        })
    }

    pub(super) fn is_matched(&self) -> bool {
        self.matches.count() >= self.entities
    }

    pub(super) fn failures(&self) -> Vec<Error> {
        let all = self.readers.iter().chain([&self.done]);
        all.filter_map(|reader| reader.check().err()).collect()
    }

    /// Returns whether no topic is left that receives samples.
    pub(super) fn is_closed(&self) -> bool {
        !self.readers.is_empty() && self.readers.iter().all(|reader| reader.check().is_err())
    }
}

struct Handler<F> {
    topic: String,
    template: TemplateType,
    on_sample: Arc<F>,
    echo: Option<Writer>,
    counts: Arc<Counts>,
    publishers: Publishers,
}

impl<F: Fn(Received<'_>)> Handler<F> {
    fn take(&mut self, sample: Sample<'_>) {
        if let Some(echo) = &self.echo
            && echo
                .forward(sample.bytes(), sample.info.source_nanos)
                .is_err()
        {
            self.counts.echo_failed.fetch_add(1, Ordering::Release);
        }
        // Before the closure, during which the writer may leave.
        let publisher = publisher_of(&sample, &mut self.publishers);
        (self.on_sample)(Received {
            template: &self.template,
            topic: &self.topic,
            sample,
        });
        self.counts.sample(publisher);
    }
}

/// Returns the counts of a sample's publisher: a participant, which has a writer for each topic and
/// one for the token.
#[inline]
fn publisher_of<'a>(sample: &Sample<'_>, publishers: &'a mut Publishers) -> &'a OfPublisher {
    let participant = || Some(u128::from_be_bytes(sample.participant()?.0));
    publishers.of(sample.info.writer, participant)
}
