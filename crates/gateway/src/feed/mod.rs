//! A FAST feed: multicast lines arbitrated, decoded once, as FIX messages to the consumers and to
//! the bus, and as samples of their own types to DDS topics.

mod body;
mod both;
pub(crate) mod config;
pub mod lines;

use crate::counts::FeedCounts;
use crate::hole::{Hole, Holes, Missing};
use crate::inlet::{Inlet, Put, Stamp};
use crate::notice::{Notice, Notices};
use body::Body;
use both::Both;
use config::{Feed, FeedTopics};
use fanfare_bus::distribute::Publisher;
use fanfare_bus::fast::{Converter, Mapping, MappingError};
use fanfare_bus::{Error as BusError, ReturnCode};
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_fast::{Decoder, Message, Program, TemplateError};
use fanfare_feed::Gap;
use fanfare_fix::codec::SharedBody;
use fanfare_fix::session::Now;
use lines::{Lines, LinesConfig, Packets};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

/// The longest sample.
const SAMPLE: usize = 1 << 20;

/// Room that a turn wants in the ring, as a part of it.
const PART: usize = 4;

/// Why a feed could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The template file could not be read.
    #[error("cannot read templates `{0}`")]
    Read(String, #[source] std::io::Error),
    /// It holds no templates that can be used.
    #[error("templates `{0}`")]
    Templates(String, #[source] TemplateError),
    /// A template has no type on the bus.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// A line could not be received.
    #[error(transparent)]
    Line(#[from] std::io::Error),
    /// The bus could not be joined.
    #[error(transparent)]
    Bus(#[from] BusError),
}

/// Receives a feed and gives its messages to everybody.
pub(crate) struct FeedSource {
    lines: Lines,
    desk: Desk,
    /// Bytes of the ring that must be free before a turn.
    room: usize,
}

/// What becomes of a packet.
struct Desk {
    decoder: Decoder,
    message: Message,
    body: Body,
    msg_type: Vec<u8>,
    inlet: Inlet,
    /// What is missing in front of the next message.
    holes: Holes,
    topics: Option<Topics>,
    utc_nanos: i64,
    counts: FeedCounts,
    notices: Notices,
}

/// The topics of the templates.
struct Topics {
    converter: Converter,
    publisher: Publisher,
    /// The template that says that the feed is over.
    last: Option<u32>,
    /// Whether every topic had a subscriber at the last look.
    matched: bool,
}

impl FeedSource {
    /// Reads the templates, joins the lines, opens the topics.
    pub(crate) fn open(
        feed: &Feed,
        inlet: Inlet,
        ring_bytes: usize,
        counts: FeedCounts,
        notices: Notices,
    ) -> Result<Self, FeedError> {
        let program = Arc::new(templates(&feed.templates)?);
        let lines = LinesConfig {
            groups: feed.lines.clone(),
            interface: feed.interface,
            gap_timeout: Duration::from_millis(feed.gap_timeout_ms),
        };
        let lines = Lines::open(&lines, &program)?;
        if let Some(small) = lines.small_buffer() {
            notices.tell(Notice::SmallBuffer(small));
        }
        let topics = feed.publish.as_ref();
        let topics = topics.map(|t| Topics::open(t, &program)).transpose()?;
        Ok(Self {
            lines,
            desk: Desk {
                decoder: Decoder::new(program),
                message: Message::new(),
                body: Body::default(),
                msg_type: feed.msg_type.clone().into_bytes(),
                inlet,
                holes: Holes::default(),
                topics,
                utc_nanos: 0,
                counts,
                notices,
            },
            room: ring_bytes / PART,
        })
    }
}

fn templates(name: &str) -> Result<Program, FeedError> {
    let of_file;
    let text = match fanfare_fast::builtin::find(name) {
        Some(text) => text,
        None => {
            let read = std::fs::read(name).map_err(|e| FeedError::Read(name.to_owned(), e))?;
            of_file = fanfare_fast::template::decode(&read)
                .map_err(|e| FeedError::Templates(name.to_owned(), e))?;
            &of_file
        }
    };
    Program::parse(text).map_err(|e| FeedError::Templates(name.to_owned(), e))
}

impl Topics {
    fn open(topics: &FeedTopics, program: &Arc<Program>) -> Result<Self, FeedError> {
        let mapping = Arc::new(Mapping::new(Arc::clone(program), &topics.types())?);
        let distribution = topics.distribution();
        let domain = topics.participant().open()?;
        // Without echo nobody asks for round trips.
        let publisher = Publisher::open(&domain, &mapping, &distribution, |_| Box::new(|_| {}))?;
        Ok(Self {
            last: program.by_name(&distribution.end).map(|t| t.index()),
            converter: Converter::new(mapping, SAMPLE),
            publisher,
            matched: false,
        })
    }

    /// Tells when all topics have a subscriber, and when they no longer have.
    fn look(&mut self, notices: &Notices) {
        let matched = self.publisher.is_matched();
        if matched != self.matched {
            self.matched = matched;
            notices.tell(Notice::FeedTopics { matched });
        }
    }

    /// Writes the samples of the message just decoded.
    fn publish(&mut self, counts: &FeedCounts) -> Result<(), BusError> {
        let Self {
            converter,
            publisher,
            last,
            ..
        } = self;
        if last.is_some() && converter.template() == *last {
            // The token tells subscribers; nobody is waited for.
            return publisher.finish(Duration::ZERO).map(|_| ());
        }
        let mut failed = None;
        let converted = converter.samples(|sample| match publisher.publish(&sample) {
            Ok(true) => counts.samples.increment(1),
            // Which of the two the publisher knows.
            Ok(false) => {}
            Err(BusError::Dds {
                code: ReturnCode::Timeout | ReturnCode::OutOfResources,
                ..
            }) => counts.unsent.increment(1),
            Err(error) => failed = Some(error),
        });
        if converted.is_err() {
            counts.unsent.increment(1);
        }
        counts.no_topic.set(publisher.without_topic());
        counts.refused.set(publisher.refused());
        failed.map_or(Ok(()), Err)
    }
}

impl Desk {
    /// Decodes one message, gives it to everybody unless it was delivered before; its length.
    fn message(&mut self, bytes: &[u8], deliver: bool) -> Result<Option<usize>, BusError> {
        let decoded = match &mut self.topics {
            Some(topics) => {
                let mut both = Both(&mut self.message, topics.converter.by_field());
                self.decoder.decode(bytes, &mut both)
            }
            None => self.decoder.decode(bytes, &mut self.message),
        };
        let Ok(len) = decoded else {
            self.counts.bad_packets.increment(1);
            self.miss(Missing::Undecodable, 0);
            return Ok(None);
        };
        if deliver {
            self.counts.messages.increment(1);
            self.fan_out();
            if let Some(topics) = &mut self.topics {
                topics.publish(&self.counts)?;
            }
        }
        Ok(Some(len))
    }

    /// The message as FIX, to the workers and to the bus.
    fn fan_out(&mut self) {
        let Some(view) = self.message.view(self.decoder.program()) else {
            return;
        };
        if self.body.load(view).is_err() {
            self.counts.no_fix.increment(1);
            return self.miss(Missing::NotFix, 1);
        }
        self.tell_holes();
        let msg_type = self.body.msg_type().unwrap_or(&self.msg_type);
        let Ok(body) = SharedBody::new(msg_type, self.body.fields()) else {
            self.counts.no_fix.increment(1);
            return self.miss(Missing::NotFix, 1);
        };
        let stamp = Stamp {
            ingress_nanos: self.utc_nanos,
            symbol: self.body.key(),
            ..Stamp::default()
        };
        if !self.holes.is_empty() || self.inlet.put(&body, stamp) != Put::Done {
            self.counts.no_room.increment(1);
            self.miss(Missing::WorkersBehind, 1);
        }
    }

    /// So many messages are missing behind the last one, or a number that is not known (0).
    fn miss(&mut self, why: Missing, count: u64) {
        self.holes.add(&Hole::new(why, count, self.utc_nanos));
    }

    /// Tells the consumers what is missing, as far as the ring has room.
    fn tell_holes(&mut self) {
        if !self.holes.is_empty() {
            let inlet = &mut self.inlet;
            self.holes.drain(|hole| inlet.put_hole(hole) == Put::Done);
        }
    }
}

impl Packets for Desk {
    type Error = AgentError;

    fn packet(&mut self, bytes: &[u8], mut skip: u32) -> Result<bool, AgentError> {
        self.decoder.reset();
        let mut rest = bytes;
        while !rest.is_empty() {
            let Some(len) = self.message(rest, skip == 0)? else {
                break;
            };
            skip = skip.saturating_sub(1);
            rest = rest.get(len..).unwrap_or_default();
        }
        Ok(true)
    }

    fn gap(&mut self, gap: Gap) {
        self.counts.missing.increment(gap.count.into());
        self.holes.add(&Hole {
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
        if !self.desk.inlet.has_room(self.room) {
            return Ok(0);
        }
        self.desk.utc_nanos = now.utc.nanos();
        if let Some(topics) = &mut self.desk.topics {
            topics.look(&self.desk.notices);
        }
        let turn = self.lines.turn(now.mono, &mut self.desk)?;
        self.desk.counts.datagrams.increment(turn.datagrams as u64);
        self.desk.tell_holes();
        self.desk.inlet.wake();
        Ok(turn.datagrams)
    }

    fn on_close(&mut self, _now: Now) {
        let drops = self.lines.kernel_drops();
        self.desk.counts.kernel_drops.set(drops);
    }

    fn wait_for<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.push(self.lines.descriptor());
    }

    fn next_timer(&self) -> Option<u64> {
        self.lines.next_timer()
    }
}
