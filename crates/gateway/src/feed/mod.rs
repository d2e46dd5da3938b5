//! A FAST feed: multicast lines arbitrated, decoded once, as FIX messages to the consumers and to
//! the bus; and its packets to a thread that publishes them as samples of their own types.

pub(crate) mod config;
mod fan;
pub(crate) mod fix;
pub mod lines;
mod numbers;
pub(crate) mod publish;
pub(crate) mod told;

use crate::bridge::Plan;
use crate::bridge::channels::Identity;
use crate::counts::FeedCounts;
use crate::hole::{Hole, Missing};
use crate::inlet::{Inlet, Stamp};
use crate::notice::{self, Notice, Notices};
use crate::versions::Versions;
use config::{Feed, FeedTopics};
use fan::Fan;
use fanfare_bus::Error as BusError;
use fanfare_bus::fast::{Mapping, MappingError, TemplateType};
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_fast::template::limits::MAX_BYTES;
use fanfare_fast::{Decoder, Message, Program, TemplateError};
use fanfare_feed::Gap;
use fanfare_fix::dict::{Dictionary, LoadError};
use fanfare_fix::session::Now;
pub(crate) use fix::Tally;
use lines::{Lines, LinesConfig, Packets};
use numbers::Numbers;
use publish::PacketRing;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The longest template file, in bytes: of UTF-16, as long as a document may be.
const MOST_TEMPLATES: u64 = 2 * MAX_BYTES as u64 + 2;

/// The longest dictionary, in bytes.
const MOST_DICTIONARY: u64 = 64 << 20;

/// The parts of the ring. A turn needs room for two of them, with several versions for three.
const PARTS: usize = 8;

/// Why a feed could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The template file could not be read.
    #[error("cannot read templates `{0}`")]
    Read(String, #[source] io::Error),
    /// No templates of this name are built in.
    #[error("there is no `{0}`: there are builtin:simple and builtin:complex")]
    NoBuiltin(String),
    /// It holds no templates that can be used.
    #[error("templates `{0}`")]
    Templates(String, #[source] TemplateError),
    /// A dictionary could not be read.
    #[error("cannot read dictionary `{0}`")]
    ReadDictionary(String, #[source] io::Error),
    /// It is none.
    #[error("dictionary `{0}`")]
    Dictionary(String, #[source] LoadError),
    /// The topics are to be keyed, and no template has the field.
    #[error("`feed.publish.keyed`: no template has a field {0:?} (`feed.publish.key`)")]
    Key(String),
    /// A template has no type on the bus.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// A line could not be received.
    #[error(transparent)]
    Line(#[from] io::Error),
    /// The bus could not be joined.
    #[error(transparent)]
    Bus(#[from] BusError),
}

/// Receives a feed and writes its messages to all outlets.
pub(crate) struct FeedSource {
    lines: Lines,
    desk: Desk,
    /// A part of the ring, in bytes.
    part: usize,
}

/// Where a feed's messages go.
pub(crate) struct Outlets {
    /// The consumers, and the bus.
    pub(crate) inlet: Inlet,
    /// The consumers' versions.
    pub(crate) versions: Versions,
    /// Topics: packets as they are.
    pub(crate) to_topics: Option<PacketRing>,
    /// Of the ring to the workers.
    pub(crate) ring_bytes: usize,
}

/// What becomes of a packet.
struct Desk {
    decoder: Decoder,
    message: Message,
    fan: Fan,
    channel: Vec<u8>,
    numbers: Numbers,
    inlet: Inlet,
    /// Takes the packets as they are, for the topics.
    to_topics: Option<PacketRing>,
    utc_nanos: i64,
    counts: FeedCounts,
}

impl FeedSource {
    /// Reads the dictionaries, and joins the lines.
    pub(crate) fn open(
        feed: &Feed,
        program: Arc<Program>,
        outlets: Outlets,
        plan: Plan<'_>,
    ) -> Result<Self, FeedError> {
        let fan = Fan::new(feed, &program, dictionaries(feed)?, outlets.versions, plan);
        let lines = LinesConfig {
            groups: feed.lines.clone(),
            interface: feed.interface,
            gap_timeout: Duration::from_millis(feed.gap_timeout_ms),
        };
        let lines = Lines::open(&lines, &program)?;
        if let Some(small) = lines.small_buffer() {
            plan.notices.tell(Notice::SmallBuffer(small));
        }
        Ok(Self {
            lines,
            desk: Desk {
                channel: feed.channel().into_bytes(),
                numbers: Numbers::new(&program),
                decoder: Decoder::new(program),
                message: Message::new(),
                fan,
                inlet: outlets.inlet,
                to_topics: outlets.to_topics,
                utc_nanos: 0,
                counts: FeedCounts::new(plan.counters),
            },
            part: outlets.ring_bytes / PARTS,
        })
    }
}

/// Reads the templates and dictionaries that a feed names, and makes the types of its topics.
pub(crate) fn check(feed: &Feed) -> Result<(), FeedError> {
    // What a lenient reading leaves out is told at the start.
    let (notices, _) = notice::channel();
    let program = Arc::new(templates(feed, &notices)?);
    lines::check(feed.lines.len(), &program)?;
    dictionaries(feed)?;
    if let Some(topics) = &feed.publish {
        mapping(topics, program)?;
    }
    Ok(())
}

/// The types of the templates' topics.
fn mapping(topics: &FeedTopics, program: Arc<Program>) -> Result<Mapping, FeedError> {
    let mapping = Mapping::new(program, &topics.types())?;
    match topics.keyed && !mapping.types().any(TemplateType::is_keyed) {
        true => Err(FeedError::Key(topics.key.clone())),
        false => Ok(mapping),
    }
}

/// The content of a file of at most `most` bytes.
fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::other(format!("it has more than {most} bytes"))),
        false => Ok(bytes),
    }
}

/// Reads templates from a file, or those that are built in.
pub(crate) fn templates(feed: &Feed, notices: &Notices) -> Result<Program, FeedError> {
    let name = &feed.templates;
    let cannot = |e| FeedError::Templates(name.clone(), e);
    let of_file;
    let text = match fanfare_fast::builtin::find(name) {
        Some(text) => text,
        None if name.starts_with("builtin:") => return Err(FeedError::NoBuiltin(name.clone())),
        None => {
            let bytes = read(Path::new(name), MOST_TEMPLATES);
            let bytes = bytes.map_err(|e| FeedError::Read(name.clone(), e))?;
            of_file = fanfare_fast::template::decode(&bytes).map_err(cannot)?;
            &of_file
        }
    };
    if !feed.lenient_templates {
        return Program::parse(text).map_err(cannot);
    }
    let (program, deviations) = Program::parse_lenient(text).map_err(cannot)?;
    if let Some(first) = deviations.first().first() {
        notices.tell(Notice::LeftOutOfTemplates {
            templates: name.clone(),
            what: first.clone(),
            more: deviations.count() - 1,
        });
    }
    Ok(program)
}

/// The dictionaries of the configuration, by version.
fn dictionaries(feed: &Feed) -> Result<HashMap<&str, Arc<Dictionary>>, FeedError> {
    let mut all = HashMap::new();
    for (version, file) in &feed.dictionaries {
        let name = file.display().to_string();
        let text = read(file, MOST_DICTIONARY)
            .and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other))
            .map_err(|e| FeedError::ReadDictionary(name.clone(), e))?;
        let dictionary = Dictionary::from_xml(&text).map_err(|e| FeedError::Dictionary(name, e))?;
        all.insert(version.as_str(), Arc::new(dictionary));
    }
    Ok(all)
}

impl Desk {
    /// Decodes one message, and writes it to the outlets unless it was delivered before. Returns
    /// its length.
    fn message(&mut self, bytes: &[u8], deliver: bool) -> Option<usize> {
        let Ok(len) = self.decoder.decode(bytes, &mut self.message) else {
            self.counts.bad_packets.increment(1);
            self.miss(Missing::Undecodable, 0);
            return None;
        };
        // Only the bus needs it.
        let mut number = None;
        if self.inlet.wants_symbol()
            && let Some(view) = self.message.view(self.decoder.program())
        {
            number = self.numbers.of(&view);
        }
        if deliver {
            self.counts.messages.increment(1);
            self.fan_out(number);
        }
        Some(len)
    }

    /// The message to the workers and to the bus; with its number and index in the feed.
    fn fan_out(&mut self, number: Option<(u64, u32)>) {
        let Some(view) = self.message.view(self.decoder.program()) else {
            return;
        };
        let identity = number.map(|(number, index)| Identity {
            channel: &self.channel,
            number,
            index,
            // Made where it is published: not on the way to the consumers.
            epoch: 0,
        });
        let stamp = Stamp {
            ingress_nanos: self.utc_nanos,
            identity: identity.unwrap_or_default(),
            ..Stamp::default()
        };
        self.fan.message(view, &mut self.inlet, stamp);
    }

    /// Notes that `count` messages are missing behind the last one; 0 if their number is not known.
    fn miss(&mut self, why: Missing, count: u64) {
        self.fan.miss(&Hole::new(why, count, self.utc_nanos));
    }
}

impl Packets for Desk {
    type Error = AgentError;

    fn packet(&mut self, bytes: &[u8], skip: u32) -> Result<bool, AgentError> {
        self.decoder.reset();
        self.numbers.begin();
        let (mut rest, mut messages) = (bytes, 0u32);
        while !rest.is_empty() {
            let Some(len) = self.message(rest, messages >= skip) else {
                break;
            };
            messages += 1;
            rest = rest.get(len..).unwrap_or_default();
        }
        if let (Some(ring), 1..) = (&mut self.to_topics, messages.saturating_sub(skip)) {
            ring.put(bytes, skip, messages - skip);
        }
        Ok(true)
    }

    fn gap(&mut self, gap: Gap) {
        self.counts.missing.increment(gap.count.into());
        self.fan.miss(&Hole {
            first: gap.first.into(),
            last: gap.last().into(),
            ..Hole::new(Missing::FeedGap, gap.count.into(), self.utc_nanos)
        });
    }
}

impl Agent for FeedSource {
    fn name(&self) -> &str {
        "feed"
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        // While the workers are behind, the kernel holds the datagrams, and counts what it drops.
        // A body for each version takes its own room. More than half is never sure to be there.
        let parts = if self.desk.fan.look() > 1 { 3 } else { 2 };
        if !self.desk.inlet.has_room(self.part * parts) {
            return Ok(0);
        }
        self.desk.utc_nanos = now.utc.nanos();
        let turn = self.lines.turn(now.mono, &mut self.desk)?;
        self.desk.counts.datagrams.increment(turn.datagrams as u64);
        let Desk { fan, inlet, .. } = &mut self.desk;
        fan.tell_holes(inlet);
        self.desk.inlet.wake();
        if let Some(topics) = &mut self.desk.to_topics {
            topics.wake();
        }
        Ok(turn.datagrams)
    }

    fn on_close(&mut self, _now: Now) {
        let counts = &self.desk.counts;
        counts.kernel_drops.set(self.lines.kernel_drops());
        // An error here says that a socket is gone, and what it held with it.
        counts.unread.set(self.lines.unread().unwrap_or(0));
    }

    fn wait_for<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.push(self.lines.descriptor());
    }

    fn next_timer(&self) -> Option<u64> {
        self.lines.next_timer()
    }
}
