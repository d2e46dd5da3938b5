//! Deduplication of a feed with several publishers: each sample is taken from the first that brings
//! it.

use fanfare_dds::cdr::integer_member;
use fanfare_dds::distribute::{Distribution, Received};
use fanfare_dds::fast::Mapping;
use fanfare_fast::program::FieldId;
use fanfare_feed::SequenceField;
use fanfare_gateway::{Channels, Identity, Verdict, epoch};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The least number of samples of a topic that are remembered.
const WINDOW: usize = 14_336;

/// The same for topics with keys, which are fewer, and have more samples each: up to 8,192 of them
/// come one instance after the other.
const KEYED_WINDOW: usize = 57_344;

/// The set of samples that have come. A sample is identified by its topic, its sequence number and
/// all its bytes.
pub(crate) struct Once {
    topics: HashMap<String, Mutex<Channels>>,
    /// By the index of the template: the member of its samples that is the sequence number.
    numbers: Vec<Option<usize>>,
    dropped: AtomicU64,
}

impl Once {
    /// Creates the set for the topics of a feed. Returns `None` if no template has a sequence
    /// number: samples of such a feed cannot be distinguished.
    pub(crate) fn new(mapping: &Mapping, distribution: &Distribution) -> Option<Self> {
        let program = mapping.program();
        let wanted = SequenceField::Auto.find(program);
        let number = |index| {
            let template = mapping.by_index(index)?;
            let fields = program.template_fields(program.templates().get(index as usize)?);
            // The mask and the key may precede the members of the fields.
            let front = template.sample.members.len().checked_sub(fields.len())?;
            let is_wanted = |field: &FieldId| wanted.contains(field);
            Some(front + fields.iter().position(is_wanted)?)
        };
        let topics = mapping.types().flat_map(|t| distribution.topics(t));
        let window = match distribution.keyed {
            true => KEYED_WINDOW,
            false => WINDOW,
        };
        let numbers: Vec<_> = (0..).take(program.templates().len()).map(number).collect();
        numbers.iter().any(Option::is_some).then(|| Self {
            topics: topics
                .map(|topic| (topic, Mutex::new(Channels::of_window(window))))
                .collect(),
            numbers,
            dropped: AtomicU64::new(0),
        })
    }

    /// Returns whether a sample is to be taken, and counts one that another publisher has brought.
    /// A sample without a sequence number is always taken.
    pub(crate) fn takes(&self, received: &Received<'_>) -> bool {
        let (template, bytes) = (received.template, received.sample.bytes());
        let place = self.numbers.get(template.index as usize).copied().flatten();
        let number = place.and_then(|place| integer_member(&template.sample, bytes, place));
        let channels = self.topics.get(received.topic).map(Mutex::lock);
        let (Some(number), Some(Ok(mut channels))) = (number, channels) else {
            return true;
        };
        let identity = Identity {
            // There is one feed only.
            channel: b"feed",
            epoch: epoch(b"", bytes),
            number,
            index: 0,
        };
        // Samples of a keyed topic come one instance after the other.
        let info = &received.sample.info;
        let verdict = channels.take_written(&identity, info.writer, info.source_nanos);
        let is_new = verdict == Verdict::New;
        if !is_new {
            self.dropped.fetch_add(1, Ordering::Release);
        }
        is_new
    }

    /// Returns the number of samples that were not taken.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Acquire)
    }
}
