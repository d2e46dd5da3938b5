//! What a subscriber should receive, made from the file that is published.

use super::input::{self, Packets};
use super::publish::SAMPLE;
use anyhow::{Context, Result};
use fanfare_bus::distribute::Distribution;
use fanfare_bus::fast::{Converter, Mapping};
use fanfare_engine::stop::Stop;
use fanfare_fast::Decoder;
use fanfare_feed::Header;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// How many samples of a topic may be missing in a row before what comes is called wrong.
const LOOK_AHEAD: usize = 1_000;

/// The samples of a file by topic, in order. Receive threads compare with them.
pub(crate) struct Expected {
    topics: HashMap<String, Mutex<Series>>,
}

/// How samples compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Samples equal to the expected ones in every byte.
    pub(crate) equal: u64,
    /// Samples that are no expected ones, or out of order.
    pub(crate) wrong: u64,
    /// Expected samples that did not come.
    pub(crate) missing: u64,
}

/// One topic's samples, one behind the other.
#[derive(Debug, Default)]
struct Series {
    bytes: Vec<u8>,
    /// Where each sample ends.
    ends: Vec<usize>,
    next: usize,
    verdict: Verdict,
}

impl Expected {
    /// Converts all messages of `file`, which stay in memory, as the publisher does.
    pub(crate) fn read(
        file: &Path,
        header: Header,
        mapping: &Arc<Mapping>,
        distribution: &Distribution,
        stop: &Stop,
    ) -> Result<Self> {
        let mut reading = Reading {
            decoder: Decoder::new(Arc::clone(mapping.program())),
            converter: Converter::new(Arc::clone(mapping), SAMPLE),
            distribution,
            names: HashMap::new(),
            topics: HashMap::new(),
        };
        input::file(file, header, stop, &mut reading)?;
        let topics = reading.topics.into_iter();
        let topics = topics.map(|(name, series)| (name, Mutex::new(series)));
        Ok(Self {
            topics: topics.collect(),
        })
    }

    /// Compares a sample with the next one expected on its topic.
    pub(crate) fn compare(&self, topic: &str, sample: &[u8]) {
        if let Some(Ok(mut series)) = self.topics.get(topic).map(Mutex::lock) {
            series.compare(sample);
        }
    }

    /// How all samples so far compared.
    pub(crate) fn verdict(&self) -> Verdict {
        let mut all = Verdict::default();
        for series in self.topics.values().filter_map(|s| s.lock().ok()) {
            all.equal += series.verdict.equal;
            all.wrong += series.verdict.wrong;
            all.missing += series.verdict.missing + (series.ends.len() - series.next) as u64;
        }
        all
    }
}

impl Series {
    fn push(&mut self, sample: &[u8]) {
        self.bytes.extend_from_slice(sample);
        self.ends.push(self.bytes.len());
    }

    fn sample(&self, index: usize) -> Option<&[u8]> {
        let begin = index.checked_sub(1).map_or(0, |i| self.ends[i]);
        self.bytes.get(begin..*self.ends.get(index)?)
    }

    fn compare(&mut self, sample: &[u8]) {
        let ahead = (self.next..self.ends.len()).take(LOOK_AHEAD);
        match ahead.into_iter().find(|i| self.sample(*i) == Some(sample)) {
            Some(found) => {
                self.verdict.equal += 1;
                self.verdict.missing += (found - self.next) as u64;
                self.next = found + 1;
            }
            None => self.verdict.wrong += 1,
        }
    }
}

struct Reading<'a> {
    decoder: Decoder,
    converter: Converter,
    distribution: &'a Distribution,
    /// Names of a template's topics.
    names: HashMap<u32, Vec<String>>,
    topics: HashMap<String, Series>,
}

impl Packets for Reading<'_> {
    fn packet(&mut self, bytes: &[u8], _: u32) -> Result<bool> {
        self.decoder.reset();
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = bytes.len() - rest.len();
            let message = self.converter.decode(&mut self.decoder, rest);
            let len = message.with_context(|| format!("at byte {at} of a packet"))?;
            self.keep()?;
            rest = rest.get(len..).unwrap_or_default();
        }
        Ok(true)
    }
}

impl Reading<'_> {
    /// The samples of the message decoded last, but those that have no topic.
    fn keep(&mut self) -> Result<()> {
        let (topics, names, distribution) = (&mut self.topics, &mut self.names, self.distribution);
        self.converter.samples(|sample| {
            let template = sample.template;
            if !distribution.carries(template) {
                return;
            }
            let of_template = names
                .entry(template.index)
                .or_insert_with(|| distribution.topics(template));
            let name = match of_template.as_slice() {
                [only] => Some(only),
                many => sample
                    .key
                    .and_then(|key| many.get(usize::try_from(key).ok()?)),
            };
            if let Some(name) = name {
                topics.entry(name.clone()).or_default().push(sample.cdr);
            }
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_missing_and_a_stranger_is_wrong() {
        let mut series = Series::default();
        for sample in [&b"one"[..], b"", b"three", b"four"] {
            series.push(sample);
        }
        series.compare(b"one");
        series.compare(b"three");
        series.compare(b"two");
        series.compare(b"one");
        let verdict = Verdict {
            equal: 2,
            wrong: 2,
            missing: 1,
        };
        assert_eq!((series.verdict, series.next), (verdict, 3));
    }
}
