//! A FAST feed: multicast lines arbitrated, decoded once, as FIX messages to the consumers and to
//! the bus; and its packets to a thread that publishes them as samples of their own types.

mod body;
pub(crate) mod config;
pub mod lines;
mod numbers;
pub(crate) mod publish;

use crate::bridge::Plan;
use crate::bridge::channels::Identity;
use crate::counts::FeedCounts;
use crate::hole::{Hole, Holes, Missing};
use crate::inlet::{Inlet, Put, Stamp};
use crate::notice::{self, Notice, Notices};
use body::Body;
use config::Feed;
use fanfare_bus::Error as BusError;
use fanfare_bus::fast::{Mapping, MappingError};
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_fast::{Decoder, Message, Program, TemplateError};
use fanfare_feed::Gap;
use fanfare_fix::codec::SharedBody;
use fanfare_fix::session::Now;
use lines::{Lines, LinesConfig, Packets};
use numbers::Numbers;
use publish::PacketRing;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

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
    channel: Vec<u8>,
    numbers: Numbers,
    inlet: Inlet,
    /// What is missing in front of the next message.
    holes: Holes,
    /// To whom packets go besides, as they are.
    to_topics: Option<PacketRing>,
    utc_nanos: i64,
    counts: FeedCounts,
}

impl FeedSource {
    /// Joins the lines; messages go to `inlet`, packets to `to_topics`.
    pub(crate) fn open(
        feed: &Feed,
        program: Arc<Program>,
        (inlet, to_topics): (Inlet, Option<PacketRing>),
        ring_bytes: usize,
        plan: Plan<'_>,
    ) -> Result<Self, FeedError> {
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
                body: Body::default(),
                msg_type: feed.msg_type.clone().into_bytes(),
                inlet,
                holes: Holes::default(),
                to_topics,
                utc_nanos: 0,
                counts: FeedCounts::new(plan.counters),
            },
            room: ring_bytes / PART,
        })
    }
}

/// Looks whether the files that a feed names are there and can be used.
pub(crate) fn check(feed: &Feed) -> Result<(), FeedError> {
    // What a lenient reading leaves out is told at the start.
    let (notices, _) = notice::channel();
    let program = Arc::new(templates(feed, &notices)?);
    if let Some(topics) = &feed.publish {
        Mapping::new(program, &topics.types())?;
    }
    Ok(())
}

/// Reads templates from a file, or those that are built in.
pub(crate) fn templates(feed: &Feed, notices: &Notices) -> Result<Program, FeedError> {
    let name = &feed.templates;
    let cannot = |e| FeedError::Templates(name.clone(), e);
    let of_file;
    let text = match fanfare_fast::builtin::find(name) {
        Some(text) => text,
        None => {
            let read = std::fs::read(name).map_err(|e| FeedError::Read(name.clone(), e))?;
            of_file = fanfare_fast::template::decode(&read).map_err(cannot)?;
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

impl Desk {
    /// Decodes one message, gives it to everybody unless it was delivered before; its length.
    fn message(&mut self, bytes: &[u8], deliver: bool) -> Option<usize> {
        let Ok(len) = self.decoder.decode(bytes, &mut self.message) else {
            self.counts.bad_packets.increment(1);
            self.miss(Missing::Undecodable, 0);
            return None;
        };
        // Nobody asks but the bus.
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

    /// The message as FIX, to the workers and to the bus; with its number and index in the feed.
    fn fan_out(&mut self, number: Option<(u64, u32)>) {
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
        let identity = number.map(|(number, index)| Identity {
            channel: &self.channel,
            number,
            index,
            // Made where it is published: not on the way to the consumers.
            epoch: 0,
        });
        let stamp = Stamp {
            ingress_nanos: self.utc_nanos,
            symbol: self.body.key(),
            identity: identity.unwrap_or_default(),
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
        let turn = self.lines.turn(now.mono, &mut self.desk)?;
        self.desk.counts.datagrams.increment(turn.datagrams as u64);
        self.desk.tell_holes();
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
