//! A FAST feed: multicast lines, arbitrated and decoded once. Its messages are forwarded as FIX
//! messages to the consumers and to DDS, and as samples of their own types to a thread that
//! publishes them.

pub(crate) mod config;
mod fan;
pub(crate) mod feed_notice;
pub(crate) mod fix;
pub(crate) mod lines;
pub(crate) mod meters;
pub(crate) mod publish;
mod watermarks;

use crate::bridge::Plan;
use crate::bridge::channels::Identity;
use crate::counts::FeedCounts;
use crate::edges::edge_feed::EdgeFeed;
use crate::history::RawInlets;
use crate::hole::{Hole, Missing};
use crate::market::config::FeedBook;
use crate::market::error::MarketError;
use crate::market::ring::EventRing;
use crate::market::{self, MarketFeed};
use crate::notice::{self, Notice, Notices};
use crate::replay::{FileMarket, ReplaySource};
use crate::source_rings::SourceRings;
use crate::stages::SourceStages;
use crate::stamp::Stamp;
use crate::versions::Versions;
use config::{Feed, FeedTopics};
use fan::Fan;
use fanfare_dds::Error as DdsError;
use fanfare_dds::fast::{Mapping, MappingError, TemplateType};
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::feed::{OpenError, Receiver};
use fanfare_engine::poll::Waker;
use fanfare_engine::settings::read_dictionary;
use fanfare_fast::template::limits::MAX_BYTES;
use fanfare_fast::{Decoder, Program, TemplateError};
use fanfare_feed::Gap;
use fanfare_feed::channel::{Delivered, Event, Fault};
use fanfare_fix::dict::{Dictionary, LoadError, Version};
use fanfare_fix::session::Now;
use fanfare_history::Source;
use feed_notice::FeedNotice;
pub(crate) use fix::Tally;
use meters::{LineMeters, Use};
use publish::SampleRing;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use watermarks::Watermarks;

/// The longest template file, in bytes: in UTF-16, the longest document allowed.
const MOST_TEMPLATES: u64 = 2 * MAX_BYTES as u64 + 2;

/// The number of parts of the ring. A turn needs two of them free, or three with several versions.
const PARTS: usize = 8;

/// The reason why a feed could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The template file could not be read.
    #[error("cannot read templates `{0}`")]
    Read(String, #[source] io::Error),
    /// No templates of this name are built in.
    #[error("unknown templates `{0}`: expected builtin:simple, builtin:complex or builtin:spectra")]
    NoBuiltin(String),
    /// The file has no usable templates.
    #[error("templates `{0}`")]
    Templates(String, #[source] TemplateError),
    /// A dictionary could not be read.
    #[error("cannot read dictionary `{0}`")]
    ReadDictionary(String, #[source] io::Error),
    /// The file is not a dictionary.
    #[error("dictionary `{0}`")]
    Dictionary(String, #[source] LoadError),
    /// The topics are to be keyed, and no template has the field.
    #[error("`feed.publish.keyed`: no template has a field {0:?} (`feed.publish.key`)")]
    Key(String),
    /// A template has no type on DDS.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// A line could not be received, or the lines cannot be arbitrated.
    #[error(transparent)]
    Lines(#[from] OpenError),
    /// DDS could not be joined.
    #[error(transparent)]
    Dds(#[from] DdsError),
    /// The feed cannot become a market.
    #[error("market of the feed")]
    Market(#[from] MarketError),
    /// All feeds together may have more instruments than the plant has numbers.
    #[error(
        "the sum of `feed.book.most_instruments` of all feeds is {0}: too many for the numbers of \
         the plant"
    )]
    Instruments(u64),
}

/// All feeds, which share one ring of market events.
pub(crate) struct Feeds {
    feeds: Vec<FeedSource>,
    /// The feeds that other gateways receive.
    edges: Vec<EdgeFeed>,
    /// The feeds that are files.
    files: Vec<FileMarket>,
    /// The log that replaces them.
    replay: Option<ReplaySource>,
    events: Option<EventRing>,
    /// The waker of the threads of replays.
    waker: Waker,
    watermarks: Option<Watermarks>,
}

/// The receiver of a feed, which writes its messages to all outlets.
pub(crate) struct FeedSource {
    receiver: Receiver,
    handler: FeedHandler,
    market: Option<MarketFeed>,
    stages: Option<SourceStages>,
    meters: LineMeters,
    /// The size of a part of the ring, in bytes.
    part: usize,
    /// Whether the last turn had to wait for the workers.
    waits: bool,
}

/// The outlets of a feed's messages.
pub(crate) struct Outlets {
    /// The consumers, and DDS.
    pub(crate) source_rings: SourceRings,
    /// The consumers' versions.
    pub(crate) versions: Versions,
    /// Topics of the templates' own types.
    pub(crate) to_topics: Option<SampleRing>,
    /// The size of the ring to the workers, in bytes.
    pub(crate) ring_bytes: usize,
}

/// The handler of a feed's messages.
struct FeedHandler {
    fan: Fan,
    channel: Vec<u8>,
    source_rings: SourceRings,
    to_topics: Option<SampleRing>,
    utc_nanos: i64,
    counts: FeedCounts,
}

/// The plant's numbers for the feeds that are markets, in the order of the configuration.
#[derive(Default)]
pub(crate) struct Places {
    feeds: u16,
    instruments: u64,
}

impl Places {
    /// Returns the number of the next feed, from 1, and the number of its first instrument.
    ///
    /// # Errors
    /// Returns an error if no numbers are left.
    pub(crate) fn next(&mut self, book: &FeedBook) -> Result<(u16, u32), FeedError> {
        let base = self.instruments;
        self.instruments += u64::from(book.most_instruments);
        self.feeds = self.feeds.saturating_add(1);
        match u32::try_from(self.instruments) {
            // `InstrumentId::ALL` is `u32::MAX`, and never the number of one instrument.
            Ok(_) => Ok((self.feeds, base as u32)),
            Err(_) => Err(FeedError::Instruments(self.instruments)),
        }
    }
}

impl FeedSource {
    /// Reads the dictionaries, and joins the lines.
    pub(crate) fn open(
        feed: &Feed,
        program: Arc<Program>,
        outlets: Outlets,
        market: Option<MarketFeed>,
        plan: Plan<'_>,
    ) -> Result<Self, FeedError> {
        let own = dictionaries(feed, plan.notices)?;
        let fan = Fan::new(feed, &program, own, outlets.versions, plan);
        let receiver = Receiver::open(feed.receiver(), Decoder::new(program))?;
        if let Some(small) = receiver.small_buffer() {
            plan.notices.send(Notice::SmallBuffer(small));
        }
        let channel = feed.channel();
        let counters = plan.counters;
        Ok(Self {
            meters: LineMeters::new(counters, &channel, Use::Changes, feed.lines.len()),
            receiver,
            handler: FeedHandler {
                counts: FeedCounts::new(counters, &channel),
                channel: channel.into_bytes(),
                fan,
                source_rings: outlets.source_rings,
                to_topics: outlets.to_topics,
                utc_nanos: 0,
            },
            stages: plan.stages.feed(&feed.channel(), market.is_some()),
            market,
            part: outlets.ring_bytes / PARTS,
            waits: false,
        })
    }
}

impl FeedSource {
    /// Also writes all datagrams to the raw log. `place` is the feed's number among the markets,
    /// from 1, or 0 if it is not one.
    pub(crate) fn log_to(&mut self, log: &mut RawInlets, place: u16) {
        self.receiver.set_tap(log.tap(Source::Line, place));
        if let Some(market) = &mut self.market {
            market.log_to(log, place);
        }
    }
}

/// Reads the templates and dictionaries that a feed names, and makes the types of its topics.
pub(crate) fn check(feed: &Feed) -> Result<(), FeedError> {
    // What a lenient reading ignores and dictionaries of other versions are reported at the start.
    let (notices, _) = notice::channel();
    let program = Arc::new(templates(feed, &notices)?);
    let checked = feed.receiver().channel.check(&program);
    checked.map_err(OpenError::from)?;
    dictionaries(feed, &notices)?;
    if feed.mapping.is_some() {
        market::check(feed, &program)?;
    }
    if let Some(topics) = &feed.publish {
        mapping(topics, program)?;
    }
    Ok(())
}

/// Returns the types of the templates' topics.
pub(crate) fn mapping(topics: &FeedTopics, program: Arc<Program>) -> Result<Mapping, FeedError> {
    let mapping = Mapping::new(program, &topics.types())?;
    match topics.keyed && !mapping.types().any(TemplateType::is_keyed) {
        true => Err(FeedError::Key(topics.key.clone())),
        false => Ok(mapping),
    }
}

/// Reads a file of at most `most` bytes.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::other(format!(
            "the file has more than {most} bytes"
        ))),
        false => Ok(bytes),
    }
}

/// Reads templates from a file, or returns those that are built in.
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
        notices.send(Notice::LeftOutOfTemplates {
            templates: name.clone(),
            what: first.clone(),
            more: deviations.count() - 1,
        });
    }
    Ok(program)
}

/// Reads the dictionaries of the configuration, by version. One of another built-in version is
/// used, with a notice.
fn dictionaries<'a>(
    feed: &'a Feed,
    notices: &Notices,
) -> Result<HashMap<&'a str, Arc<Dictionary>>, FeedError> {
    let mut all = HashMap::new();
    for (version, file) in &feed.dictionaries {
        let name = file.display().to_string();
        let text = read_dictionary(file).map_err(|e| FeedError::ReadDictionary(name.clone(), e))?;
        let dictionary =
            Dictionary::from_xml(&text).map_err(|e| FeedError::Dictionary(name.clone(), e))?;
        let found = Version::from_name(dictionary.version()).map(Version::name);
        // Not every file of FIX.5.0 names its service pack.
        if let Some(found) = found.filter(|found| !version.starts_with(found)) {
            notices.send(Notice::Feed(FeedNotice::Dictionary {
                dictionary: name,
                found,
                version: version.clone(),
            }));
        }
        all.insert(version.as_str(), Arc::new(dictionary));
    }
    Ok(all)
}

impl FeedHandler {
    fn take(&mut self, event: &mut Event<'_>) {
        match event {
            Event::Message(message) => self.message(message),
            Event::Bad(bad) if matches!(bad.fault, Fault::Refused(_)) => {
                self.counts.unusable.increment(1);
            }
            Event::Bad(_) => {
                self.counts.bad_packets.increment(1);
                self.fan
                    .miss(&Hole::new(Missing::Undecodable, 0, self.utc_nanos));
            }
            Event::Gap(gap) => self.gap(*gap),
            // Messages that may still arrive are not missing yet.
            Event::Recover(_) => {}
            Event::Reset { .. } => self.counts.restarts.increment(1),
        }
    }

    /// Writes a message to the workers and to DDS, then to the topics.
    fn message(&mut self, message: &mut Delivered<'_>) {
        self.counts.messages.increment(1);
        let &mut Delivered {
            ref mut record,
            program,
            number,
            index,
            ..
        } = message;
        // Its numbers are for DDS only.
        let number = number.filter(|_| self.source_rings.wants_symbol());
        let identity = number.map(|number| Identity {
            channel: &self.channel,
            number,
            index,
            // Computed by the publisher, not on the path to the consumers.
            epoch: 0,
        });
        let stamp = Stamp {
            ingress_nanos: self.utc_nanos,
            identity: identity.unwrap_or_default(),
            ..Stamp::default()
        };
        if let Some(view) = record.view(program) {
            self.fan.message(view, &mut self.source_rings, stamp);
        }
        if let Some(topics) = &mut self.to_topics {
            topics.put(record);
        }
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

/// Processes a message of a turn that is measured: first to FIX, then by `to_market`, which returns
/// when the market events were written.
fn measured(
    arrived: u64,
    stages: &mut SourceStages,
    handler: &mut FeedHandler,
    event: &mut Event<'_>,
    to_market: impl FnOnce(&Event<'_>) -> Option<u64>,
) {
    handler.source_rings.mark(arrived);
    if let Some(topics) = &mut handler.to_topics {
        topics.mark(arrived);
    }
    handler.take(event);
    if let Some(topics) = &mut handler.to_topics {
        topics.end_mark();
    }
    stages.end_fix(handler.source_rings.end_mark());
    stages.end_event(to_market(event));
}

impl FeedSource {
    /// Processes the datagrams that have arrived.
    fn turn(&mut self, now: Now, events: Option<&mut EventRing>) -> Result<usize, AgentError> {
        if self.meters.look(now, &self.receiver) {
            self.count();
        }
        // While the workers are behind, the kernel holds the datagrams, and counts those it drops.
        // The bodies of several versions need more of the ring. More than half of it is never
        // certain to be free.
        let parts = if self.handler.fan.look() > 1 { 3 } else { 2 };
        self.waits = !self.handler.source_rings.has_room(self.part * parts);
        if self.waits {
            return Ok(0);
        }
        self.handler.utc_nanos = now.utc.nanos();
        let (handler, market) = (&mut self.handler, &mut self.market);
        let mut market = market.as_mut().zip(events);
        let stages = &mut self.stages;
        if let Some(stages) = stages {
            stages.turn(now);
        }
        let turn = self.receiver.turn(now.mono, |mut event| {
            if let Some(stages) = stages
                && let Event::Message(message) = &event
                && let Some(arrived) = stages.decoded(message.received)
            {
                measured(arrived, stages, handler, &mut event, |event| {
                    if let Some((market, ring)) = &mut market {
                        ring.mark(arrived);
                        market.channel(now.mono, event, ring);
                        return ring.end_mark();
                    }
                    None
                });
                return Ok::<_, AgentError>(ControlFlow::Continue(()));
            }
            handler.take(&mut event);
            if let Some((market, ring)) = &mut market {
                market.channel(now.mono, &event, ring);
            }
            Ok::<_, AgentError>(ControlFlow::Continue(()))
        })?;
        let mut work = turn.datagrams;
        if let Some((market, ring)) = market {
            work += market.turn(now, turn.datagrams, ring)?;
        }
        self.handler
            .counts
            .datagrams
            .increment(turn.datagrams as u64);
        let FeedHandler {
            fan, source_rings, ..
        } = &mut self.handler;
        fan.put_holes(source_rings);
        self.handler.source_rings.wake();
        if let Some(topics) = &mut self.handler.to_topics {
            topics.wake();
        }
        Ok(work)
    }

    /// Returns whether messages that had arrived before the last turn are still to be processed.
    fn is_behind(&self) -> bool {
        self.waits || self.receiver.is_behind()
    }

    /// Sets the counters that are not counted on arrival.
    fn count(&self) {
        let counts = &self.handler.counts;
        counts.strangers.set(self.receiver.strangers());
        counts.kernel_drops.set(self.meters.drops());
    }

    fn close(&mut self, now: Now) {
        self.meters.set(now, &self.receiver, true);
        self.count();
        let counts = &self.handler.counts;
        let stats = self.receiver.channel().stats();
        counts.unusable.increment(stats.unnumbered_dropped);
        // An error here means that a socket is gone, with the bytes it held.
        counts.unread.set(self.receiver.unread().unwrap_or(0));
        if let Some(market) = &mut self.market {
            market.close(now);
        }
    }
}

impl Feeds {
    /// Collects the feeds, with `events` if one of them is a market, and the waker of its replay.
    pub(crate) fn new(
        feeds: Vec<FeedSource>,
        (edges, files, replay): (Vec<EdgeFeed>, Vec<FileMarket>, Option<ReplaySource>),
        events: Option<EventRing>,
        waker: Waker,
        has_watermarks: bool,
    ) -> Self {
        Self {
            watermarks: has_watermarks.then(|| Watermarks::new(!edges.is_empty())),
            feeds,
            edges,
            files,
            replay,
            events,
            waker,
        }
    }
}

impl Feeds {
    /// Shows instruments again, as requested by a reader of market events that has lost some.
    fn show(&mut self, now: Now) -> usize {
        let Some(ring) = &mut self.events else {
            return 0;
        };
        let feeds = self
            .feeds
            .iter_mut()
            .filter_map(|feed| feed.market.as_mut());
        let feeds = feeds.map(Market::Feed);
        let markets = feeds.chain(self.edges.iter_mut().map(Market::Edge));
        let markets = markets.chain(self.files.iter_mut().map(Market::File));
        let markets = markets.chain(self.replay.iter_mut().map(Market::Replay));
        if ring.is_asked() {
            markets.for_each(|mut market| market.show_all());
            return 1;
        }
        let mut showing = markets.filter_map(|mut market| {
            let is_showing = market.is_showing();
            is_showing.then_some(market)
        });
        let Some(mut market) = showing.next() else {
            return 0;
        };
        if !ring.wants_more() {
            return 0;
        }
        let shown = market.show(now, ring);
        if !market.is_showing() && showing.next().is_none() {
            ring.put_shown();
        }
        shown
    }
}

/// A feed with market events.
enum Market<'a> {
    Feed(&'a mut MarketFeed),
    Edge(&'a mut EdgeFeed),
    File(&'a mut FileMarket),
    Replay(&'a mut ReplaySource),
}

impl Market<'_> {
    fn show_all(&mut self) {
        match self {
            Self::Feed(feed) => feed.outlet().show_all(),
            Self::Edge(edge) => edge.outlet().show_all(),
            Self::File(file) => file.show_all(),
            Self::Replay(replay) => replay.show_all(),
        }
    }

    const fn is_showing(&mut self) -> bool {
        match self {
            Self::Feed(feed) => feed.outlet().is_showing(),
            Self::Edge(edge) => edge.outlet().is_showing(),
            Self::File(file) => file.is_showing(),
            Self::Replay(replay) => replay.is_showing(),
        }
    }

    fn show(&mut self, now: Now, ring: &mut EventRing) -> usize {
        match self {
            Self::Feed(feed) => feed.show(now, ring),
            Self::Edge(edge) => edge.show(now, ring),
            Self::File(file) => file.show(now, ring),
            Self::Replay(replay) => replay.show(ring),
        }
    }
}

impl Agent for Feeds {
    fn name(&self) -> &str {
        "feed"
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        let mut work = 0;
        for feed in &mut self.feeds {
            work += feed.turn(now, self.events.as_mut())?;
        }
        if let Some(events) = &mut self.events {
            for edge in &mut self.edges {
                work += edge.turn(now, events)?;
            }
            for file in &mut self.files {
                work += file.turn(now, events);
            }
            if let Some(replay) = &mut self.replay {
                work += replay.turn(now, events);
            }
        }
        work += self.show(now);
        if let Some(events) = &mut self.events {
            if let Some(watermarks) = &mut self.watermarks {
                let is_behind = self.feeds.iter().any(FeedSource::is_behind);
                watermarks.turn(now, is_behind, events);
            }
            events.wake();
        }
        Ok(work)
    }

    fn on_close(&mut self, now: Now) {
        self.feeds.iter_mut().for_each(|feed| feed.close(now));
        self.edges.iter_mut().for_each(EdgeFeed::count);
        self.files.iter().for_each(FileMarket::count);
        self.replay.iter().for_each(ReplaySource::count);
    }

    fn wait_for<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.push(self.waker.as_fd());
        for feed in &self.feeds {
            descriptors.push(feed.receiver.descriptor());
            if let Some(market) = &feed.market {
                market.wait_for(descriptors);
            }
        }
    }

    fn waker(&self) -> Option<&Waker> {
        Some(&self.waker)
    }

    fn next_timer(&self) -> Option<u64> {
        let feeds = self.feeds.iter().map(|feed| {
            let market = feed.market.as_ref().and_then(MarketFeed::next_timer);
            feed.receiver.next_timer().into_iter().chain(market).min()
        });
        let edges = self.edges.iter().filter_map(EdgeFeed::next_timer);
        let replay = self.replay.as_ref().and_then(ReplaySource::next_timer);
        let files = self.files.iter().filter_map(FileMarket::next_timer);
        let all = feeds.flatten().chain(edges).chain(files);
        let watermark = self.watermarks.as_ref().map(Watermarks::next_timer);
        all.chain(replay).chain(watermark).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn a_dictionary_of_another_version_is_used_and_named() {
        let file = format!("fanfare-dictionary-{}.xml", std::process::id());
        let file = std::env::temp_dir().join(file);
        std::fs::write(&file, "<fix major='4' minor='2'><fields/><messages/></fix>").unwrap();
        let text = format!(
            "[feed]\ntemplates = \"builtin:simple\"\nlines = [\"224.1.2.133:13014\"]\n\
             [feed.dictionaries]\n\"FIX.4.2\" = {file:?}\n\"FIX.4.4\" = {file:?}\n"
        );
        let config = Config::from_toml(&text).unwrap();
        let (notices, received) = notice::channel();
        let own = dictionaries(&config.feeds[0], &notices).unwrap();
        assert_eq!(own["FIX.4.4"].version(), "FIX.4.2");
        let told: Vec<_> = received.iter().map(|notice| notice.to_string()).collect();
        let expected = format!(
            "feed: {}: the dictionary is of FIX.4.2, the messages are of FIX.4.4",
            file.display()
        );
        assert_eq!(told, [expected]);
        std::fs::remove_file(file).unwrap();
    }
}
