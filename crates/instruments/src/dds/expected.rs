//! The samples that a subscriber should receive, made from the published file.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use fanfare_dds::cdr::CdrError;
use fanfare_dds::distribute::Distribution;
use fanfare_dds::fast::{Converter, Mapping};
use fanfare_fast::{CodecError, Decoder, Options, Record};

/// The most writers of a topic that are distinguished; the samples of others are wrong.
const WRITERS: usize = 1_024;

/// The expected samples of a file by topic, in order. Receive threads compare with them.
pub struct Expected {
    topics: HashMap<String, Mutex<Series>>,
    /// Samples on other topics.
    strangers: AtomicU64,
}

/// The result of the comparison of samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Samples equal to expected ones in every byte, and in order.
    pub equal: u64,
    /// Samples that were not expected, or out of order.
    pub wrong: u64,
    /// Expected samples that no writer sent.
    pub missing: u64,
}

/// One topic's samples, in order. Each writer may begin anywhere, as a late-joining reader sees it,
/// and omit samples, but not go back: a writer that restarts is another writer.
#[derive(Debug, Default)]
struct Series {
    bytes: Vec<u8>,
    /// The end of each sample.
    ends: Vec<usize>,
    came: Vec<bool>,
    /// The indexes of samples by hash, in order.
    places: HashMap<u64, Vec<usize>>,
    hash: RandomState,
    /// For each writer, the first sample that it has not written.
    next: HashMap<u64, usize>,
    equal: u64,
    wrong: u64,
}

/// The error of making the expected samples.
#[derive(Debug, thiserror::Error)]
pub enum ExpectedError {
    /// A message cannot be decoded.
    #[error("the message at byte {at}: {error}")]
    Message {
        /// The offset of the message in its packet.
        at: usize,
        /// The error of the decoder.
        error: CodecError,
    },
    /// A message cannot be converted.
    #[error("the message at byte {at}: {error}")]
    Sample {
        /// The offset of the message in its packet.
        at: usize,
        /// The error of the converter.
        error: CdrError,
    },
}

/// A maker of the samples of packets, in the same way as the publisher.
pub struct ExpectedReader<'a> {
    decoder: Decoder,
    record: Record,
    converter: Converter,
    distribution: &'a Distribution,
    /// The names of a template's topics.
    names: HashMap<u32, Vec<String>>,
    topics: HashMap<String, Series>,
}

impl Expected {
    /// Returns a reader without samples yet, which decodes with the publisher's options. Samples
    /// have at most `longest` bytes.
    pub fn reader<'a>(
        mapping: &Arc<Mapping>,
        options: Options,
        distribution: &'a Distribution,
        longest: usize,
    ) -> ExpectedReader<'a> {
        ExpectedReader {
            decoder: Decoder::with_options(Arc::clone(mapping.program()), options),
            record: Record::new(),
            converter: Converter::new(Arc::clone(mapping), longest),
            distribution,
            names: HashMap::new(),
            topics: HashMap::new(),
        }
    }

    /// Compares a sample of a writer with the next ones expected on its topic. A sample on a topic
    /// of which none is expected is wrong.
    pub fn compare(&self, topic: &str, writer: u64, sample: &[u8]) {
        let Some(series) = self.topics.get(topic) else {
            self.strangers.fetch_add(1, Ordering::Relaxed);
            return;
        };
        if let Ok(mut series) = series.lock() {
            series.compare(writer, sample);
        }
    }

    /// Returns the result of all comparisons so far.
    pub fn verdict(&self) -> Verdict {
        let mut all = Verdict {
            wrong: self.strangers.load(Ordering::Relaxed),
            ..Verdict::default()
        };
        for series in self.topics.values().filter_map(|s| s.lock().ok()) {
            all.equal += series.equal;
            all.wrong += series.wrong;
            all.missing += series.came.iter().filter(|came| !**came).count() as u64;
        }
        all
    }
}

impl Series {
    fn push(&mut self, sample: &[u8]) {
        let places = self.places.entry(self.hash.hash_one(sample));
        places.or_default().push(self.ends.len());
        self.bytes.extend_from_slice(sample);
        self.ends.push(self.bytes.len());
        self.came.push(false);
    }

    fn sample(&self, index: usize) -> Option<&[u8]> {
        let begin = index.checked_sub(1).map_or(0, |i| self.ends[i]);
        self.bytes.get(begin..*self.ends.get(index)?)
    }

    fn compare(&mut self, writer: u64, sample: &[u8]) {
        let next = self.next.get(&writer).copied();
        let place = match next {
            None if self.next.len() >= WRITERS => None,
            _ => self.find(next.unwrap_or(0), sample),
        };
        match place {
            Some(place) => {
                self.equal += 1;
                self.came[place] = true;
                self.next.insert(writer, place + 1);
            }
            None => self.wrong += 1,
        }
    }

    /// Returns the first index of a sample from `next` on.
    fn find(&self, next: usize, sample: &[u8]) -> Option<usize> {
        let places = self.places.get(&self.hash.hash_one(sample))?;
        let from = places.partition_point(|place| *place < next);
        let mut from = places[from..].iter().copied();
        from.find(|place| self.sample(*place) == Some(sample))
    }
}

impl ExpectedReader<'_> {
    /// Converts all messages of a packet. Their samples stay in memory.
    ///
    /// # Errors
    /// The bytes are not a message, or one of its samples is too long.
    pub fn packet(&mut self, bytes: &[u8]) -> Result<(), ExpectedError> {
        self.decoder.reset();
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = bytes.len() - rest.len();
            let message = self.decoder.decode_record(rest, &mut self.record);
            let len = message.map_err(|error| ExpectedError::Message { at, error })?;
            let kept = self.keep();
            kept.map_err(|error| ExpectedError::Sample { at, error })?;
            rest = rest.get(len..).unwrap_or_default();
        }
        Ok(())
    }

    /// Returns the expected samples of all packets.
    pub fn finish(self) -> Expected {
        let topics = self.topics.into_iter();
        let topics = topics.map(|(name, series)| (name, Mutex::new(series)));
        Expected {
            topics: topics.collect(),
            strangers: AtomicU64::new(0),
        }
    }

    /// Keeps the samples of the message decoded last, except those without a topic.
    fn keep(&mut self) -> Result<(), CdrError> {
        let (topics, names, distribution) = (&mut self.topics, &mut self.names, self.distribution);
        self.converter.samples(&self.record, |sample| {
            let template = sample.template;
            if !distribution.carries(template) {
                return;
            }
            let of_template = names
                .entry(template.index)
                .or_insert_with(|| distribution.topics(template));
            let place = distribution.place(&sample);
            if let Some(name) = place.and_then(|place| of_template.get(place)) {
                topics.entry(name.clone()).or_default().push(sample.cdr);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_dds::fast::TypeOptions;
    use fanfare_fast::Program;
    use fanfare_fast::generate::{ComplexOptions, Generator};

    fn series() -> Series {
        let mut series = Series::default();
        for sample in [&b"one"[..], b"", b"three", b"four", b"one"] {
            series.push(sample);
        }
        series
    }

    fn expected(series: Series) -> Expected {
        Expected {
            topics: HashMap::from([("T".to_owned(), Mutex::new(series))]),
            strangers: AtomicU64::new(0),
        }
    }

    fn verdict(series: Series) -> [u64; 3] {
        let v = expected(series).verdict();
        [v.equal, v.wrong, v.missing]
    }

    #[test]
    fn a_sample_of_a_topic_without_expected_ones_is_wrong() {
        let expected = expected(series());
        for topic in ["T", "U", "T"] {
            expected.compare(topic, 7, b"one");
        }
        let verdict = Verdict {
            equal: 2,
            wrong: 1,
            missing: 3,
        };
        assert_eq!(expected.verdict(), verdict);
    }

    #[test]
    fn a_gap_is_missing_and_a_stranger_is_wrong() {
        let mut series = series();
        for sample in [&b"one"[..], b"three", b"two", b"one", b"one"] {
            series.compare(7, sample);
        }
        assert_eq!(verdict(series), [3, 2, 2]);
    }

    #[test]
    fn the_topic_of_the_only_security_has_no_samples_of_others() {
        let program = Arc::new(Program::complex());
        let mapping = Mapping::new(Arc::clone(&program), &TypeOptions::default());
        let mapping = Arc::new(mapping.unwrap());
        let count = |securities| {
            let distribution = Distribution {
                securities,
                ..Distribution::default()
            };
            let mut reader = Expected::reader(&mapping, Options::default(), &distribution, 4096);
            let (program, options) = (Program::complex(), ComplexOptions::default());
            let mut feed = Generator::complex(program, 600, None, options);
            while let Some(packet) = feed.next_packet().unwrap() {
                reader.packet(packet).unwrap();
            }
            let all = reader.finish().topics;
            let series = all.get("MarketData_0").map(Mutex::lock);
            (all.len(), series.map(|series| series.unwrap().ends.len()))
        };
        let (topics, of_first) = count(1);
        assert_eq!(topics, 2);
        assert!(of_first.is_some_and(|count| count > 0));
        assert_eq!(count(100).1, of_first);
    }

    #[test]
    fn an_error_has_the_place_of_the_message_in_its_packet() {
        let xml = "<templates><template name=\"T\" id=\"1\"><string name=\"S\"/></template>\
                   </templates>";
        let program = Arc::new(Program::parse(xml).unwrap());
        let mapping = Arc::new(Mapping::new(program, &TypeOptions::default()).unwrap());
        let distribution = Distribution::default();
        let mut reader = Expected::reader(&mapping, Options::default(), &distribution, 16);
        // A short text, then one that is longer than a sample, or a template that does not exist.
        let long = [
            &[0xc0, 0x81, b'a' | 0x80, 0xc0, 0x81][..],
            &[b'x'; 40],
            &[b'y' | 0x80],
        ];
        let error = reader.packet(&long.concat()).unwrap_err().to_string();
        let why = "the message at byte 3: longer than the buffer of 16 bytes";
        assert_eq!(error, why);
        let unknown = [0xc0, 0x81, b'a' | 0x80, 0xc0, 0x82];
        let error = reader.packet(&unknown).unwrap_err().to_string();
        assert!(error.starts_with("the message at byte 3: "), "{error}");
    }

    #[test]
    fn nobody_goes_back_but_another_writer_may_begin_anywhere() {
        let mut series = series();
        for (writer, sample) in [
            (7, &b"three"[..]),
            (8, b"one"),
            (7, b""),
            (8, b""),
            (8, b"four"),
        ] {
            series.compare(writer, sample);
        }
        assert_eq!(verdict(series), [4, 1, 1]);
    }
}
