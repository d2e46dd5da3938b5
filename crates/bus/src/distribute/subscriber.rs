//! The subscribing side.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{DONE, Distribution, DoneToken, Matches, done_qos, echo_name, for_each_topic};
use crate::fast::{Mapping, TemplateType};
use crate::{Domain, Error, Reader, Sample, Writer};

/// A sample that a subscriber received.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// The type of the template.
    pub template: &'a TemplateType,
    /// The topic it came on.
    pub topic: &'a str,
    /// The sample.
    pub sample: Sample<'a>,
}

/// Receives the samples of a feed.
#[derive(Debug)]
pub struct Subscriber {
    readers: Vec<Reader>,
    done: Reader,
    matches: Arc<Matches>,
    entities: u32,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    received: AtomicU64,
    echo_failed: AtomicU64,
    /// What the tokens announced, and how many came.
    announced: AtomicU64,
    tokens: AtomicU64,
}

impl Subscriber {
    /// Opens all topics; `on_sample` is called for each sample in a receive thread, after the
    /// echo goes out.
    ///
    /// # Errors
    /// As [`Domain::topic`] and the opening of readers.
    pub fn open<F>(
        domain: &Domain,
        mapping: &Mapping,
        distribution: &Distribution,
        on_sample: F,
    ) -> Result<Self, Error>
    where
        F: Fn(Received<'_>) + Send + Sync + 'static,
    {
        let matches = Arc::new(Matches::default());
        let counts = Arc::new(Counts::default());
        let on_sample = Arc::new(on_sample);
        let mut readers = Vec::new();
        let mut echoes = 0;
        for template in mapping.types().filter(|t| distribution.carries(t)) {
            readers.extend(for_each_topic(distribution, template, |name| {
                let mut echo = None;
                if distribution.echo {
                    echoes += 1;
                    let qos = distribution.echo_qos();
                    let topic = domain.topic(&echo_name(name), &template.sample, &qos)?;
                    echo = Some(topic.writer(&qos).on_status(matches.listener()).open()?);
                }
                let handler = Handler {
                    topic: name.to_owned(),
                    template: template.clone(),
                    on_sample: Arc::clone(&on_sample),
                    echo,
                    counts: Arc::clone(&counts),
                };
                let topic = domain.topic(name, &template.sample, &distribution.qos)?;
                let reader = topic
                    .reader(&distribution.qos)
                    .on_status(matches.listener());
                reader.on_sample(move |s| handler.take(s)).open()
            })?);
        }
        let all = Arc::clone(&counts);
        let done = domain
            .topic_of::<DoneToken>(DONE, &done_qos())?
            .reader(&done_qos());
        let done = done.on_status(matches.listener()).on_sample(move |s| {
            if let Ok(token) = s.value::<DoneToken>() {
                all.announced.fetch_add(token.samples, Ordering::Release);
                all.tokens.fetch_add(1, Ordering::Release);
            }
        });
        Ok(Self {
            entities: u32::try_from(readers.len() + echoes + 1).unwrap_or(u32::MAX),
            readers,
            done: done.open()?,
            matches,
            counts,
        })
    }

    /// Whether every topic, echoes included, has a publisher.
    pub fn is_matched(&self) -> bool {
        self.matches.matched() >= self.entities
    }

    /// How often another side's policies did not fit.
    pub fn incompatible(&self) -> u32 {
        self.matches.incompatible()
    }

    /// Samples received.
    pub fn received(&self) -> u64 {
        self.counts.received.load(Ordering::Acquire)
    }

    /// Echoes that could not be written.
    pub fn echo_failed(&self) -> u64 {
        self.counts.echo_failed.load(Ordering::Acquire)
    }

    /// Publishers that said they are done, and the samples they say they wrote in all.
    pub fn announced(&self) -> (u64, u64) {
        let tokens = self.counts.tokens.load(Ordering::Acquire);
        (tokens, self.counts.announced.load(Ordering::Acquire))
    }

    /// Says whether a listener panicked.
    ///
    /// # Errors
    /// [`Error::ListenerPanicked`] with the topic.
    pub fn check(&self) -> Result<(), Error> {
        for reader in self.readers.iter().chain([&self.done]) {
            reader.check()?;
        }
        Ok(())
    }
}

struct Handler<F> {
    topic: String,
    template: TemplateType,
    on_sample: Arc<F>,
    echo: Option<Writer>,
    counts: Arc<Counts>,
}

impl<F: Fn(Received<'_>)> Handler<F> {
    fn take(&self, sample: Sample<'_>) {
        if let Some(echo) = &self.echo
            && echo
                .forward(sample.bytes(), sample.info.source_nanos)
                .is_err()
        {
            self.counts.echo_failed.fetch_add(1, Ordering::Release);
        }
        (self.on_sample)(Received {
            template: &self.template,
            topic: &self.topic,
            sample,
        });
        self.counts.received.fetch_add(1, Ordering::Release);
    }
}
