//! The FIX side of a decoded message: the consumers', that of DDS, or the channel's own session.

use super::config::Feed;
use super::feed_notice::{ExchangeState, FeedNotice};
use super::fix::{Fix, Kind, Made, find};
use crate::counts::FanCounts;
use crate::dds::channels;
use crate::fanout::hole::{Hole, Holes, Missing};
use crate::fanout::source_rings::{Put, SourceRings};
use crate::fanout::stamp::Stamp;
use crate::fanout::versions::{COUNT, Versions};
use crate::gateway::plan::Plan;
use crate::notice::{Limit, Notice, Notices};
use fanfare_fast::fix::write_value;
use fanfare_fast::{Fields, MessageView, Program, Value};
use fanfare_fix::codec::SharedBody;
use fanfare_fix::dict::{Dictionary, Version};
use fanfare_fix::tag;
use fanfare_wire::text::Escaped;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// The writer of messages for the consumers and for DDS.
pub(crate) struct Fan {
    fix: Fix,
    versions: Versions,
    /// The versions in use in this turn.
    in_use: u32,
    dds: usize,
    /// Whether the time of a message is the same on all lines.
    same_times: bool,
    /// The longest body.
    longest: usize,
    /// The bodies of the current message, each with the versions that it is for.
    bodies: Vec<(u32, Range<usize>)>,
    bytes: Vec<u8>,
    /// The versions in which the message is invalid although its template can be valid.
    lacking: u32,
    /// The holes before the next message.
    holes: Holes,
    /// The hole before the next message for DDS.
    dds_hole: Option<Hole>,
    msg_type: Vec<u8>,
    key: Vec<u8>,
    exchange: Option<ExchangeState>,
    limit: Limit,
    counts: FanCounts,
    notices: Notices,
}

/// The most bytes that a body takes in the ring besides itself: its record, and that of a hole.
const IN_RING: usize = 128;

/// The fields that serve as key, in order of preference: Symbol and SecurityID.
const KEYS: [u32; 2] = [tag::SYMBOL, 48];

/// The value that templates of some exchanges have in place of a Symbol.
const NO_SYMBOL: &[u8] = b"[N/A]";

impl Fan {
    /// Creates a fan. `dictionaries` replace the built-in ones, by version.
    pub(crate) fn new(
        feed: &Feed,
        program: &Arc<Program>,
        dictionaries: HashMap<&str, Arc<Dictionary>>,
        versions: Versions,
        plan: Plan<'_>,
    ) -> Self {
        let dictionary = |version: Version| match dictionaries.get(version.name()) {
            Some(own) => Arc::clone(own),
            None => Dictionary::built_in(version),
        };
        Self {
            fix: Fix::new(feed, program, dictionary),
            versions,
            in_use: 0,
            dds: feed.dds_place(),
            same_times: feed.same_times,
            longest: plan.message_bytes,
            bodies: Vec::with_capacity(COUNT),
            bytes: Vec::new(),
            lacking: 0,
            holes: Holes::default(),
            dds_hole: None,
            msg_type: Vec::new(),
            key: Vec::new(),
            exchange: None,
            limit: Limit::default(),
            counts: FanCounts::new(plan.counters, ""),
            notices: plan.notices.clone(),
        }
    }

    /// Reads which versions are in use. Returns their number.
    pub(crate) fn look(&mut self) -> usize {
        self.in_use = self.versions.in_use();
        self.in_use.count_ones() as usize
    }

    /// Processes one message. The stamp is without the symbol.
    pub(crate) fn message(
        &mut self,
        message: MessageView<'_>,
        source_rings: &mut SourceRings,
        stamp: Stamp<'_>,
    ) {
        let utc_nanos = stamp.ingress_nanos;
        match self.fix.kind(message) {
            Kind::Data => self.data(message, source_rings, stamp),
            Kind::Session(msg_type) => self.session(message, msg_type, utc_nanos),
            Kind::Empty => self.counts.empty.increment(1),
            Kind::Done => self.state(ExchangeState::Done, utc_nanos),
        }
    }

    /// Records that messages are missing after the last one.
    pub(crate) fn miss(&mut self, hole: &Hole) {
        self.holes.add(hole);
        Hole::join(&mut self.dds_hole, hole);
    }

    /// Writes the records of holes, until the ring is full.
    pub(crate) fn put_holes(&mut self, source_rings: &mut SourceRings) {
        if !self.holes.is_empty() {
            self.holes
                .drain(|hole| source_rings.put_hole(hole) == Put::Done);
        }
    }

    fn data(&mut self, message: MessageView<'_>, source_rings: &mut SourceRings, stamp: Stamp<'_>) {
        let dds = u32::from(source_rings.wants_symbol()) << self.dds;
        self.convert(message, self.in_use | dds);
        self.put_holes(source_rings);
        // Either each version receives the message, or none does.
        let room = self
            .bodies
            .iter()
            .map(|(_, body)| body.len() + IN_RING)
            .sum();
        if !self.holes.is_empty() || !source_rings.has_room(room) {
            self.counts.no_room.increment(1);
            return self.miss(&Hole::new(Missing::WorkersBehind, 1, stamp.ingress_nanos));
        }
        for (versions, range) in &self.bodies {
            let fields = self.bytes.get(range.clone()).unwrap_or_default();
            let Ok(body) = SharedBody::new(&self.msg_type, fields) else {
                self.lacking |= versions;
                continue;
            };
            let local = versions & self.in_use;
            if local != 0 && source_rings.put_for(local, &body) != Put::Done {
                self.lacking |= local;
            }
            if versions & dds != 0 {
                key(message, &mut self.key);
                let stamp = Stamp {
                    symbol: &self.key,
                    sent: if self.same_times { sent(message) } else { 0 },
                    hole: self.dds_hole.take(),
                    ..stamp
                };
                source_rings.put_to_dds(&body, stamp);
            }
        }
        let hole = Hole::new(Missing::NotFix, 1, stamp.ingress_nanos);
        let lacking = self.lacking & self.in_use;
        if lacking != 0 {
            self.counts.no_fix.increment(1);
            source_rings.put_hole_for(lacking, &hole);
        }
        if self.lacking & dds != 0 {
            Hole::join(&mut self.dds_hole, &hole);
        }
    }

    /// Converts the message for each version. Equal bodies are merged.
    fn convert(&mut self, message: MessageView<'_>, versions: u32) {
        self.bodies.clear();
        self.bytes.clear();
        self.lacking = 0;
        for version in (0..COUNT).filter(|version| versions >> version & 1 == 1) {
            let (msg_type, body) = match self.fix.convert(version, message, &self.notices) {
                Made::Body(msg_type, body) if body.len() <= self.longest => (msg_type, body),
                Made::Body(..) | Made::Lacking => {
                    self.lacking |= 1 << version;
                    self.counts.add(self.fix.tally());
                    continue;
                }
                Made::Never => {
                    self.counts.unfit.increment(1);
                    self.counts.add(self.fix.tally());
                    continue;
                }
            };
            self.msg_type.clear();
            self.msg_type.extend_from_slice(msg_type);
            let Self { bytes, bodies, .. } = self;
            let mut known = bodies.iter_mut();
            match known.find(|(_, range)| bytes.get(range.clone()) == Some(body)) {
                Some((versions, _)) => *versions |= 1 << version,
                None => {
                    let start = bytes.len();
                    bytes.extend_from_slice(body);
                    bodies.push((1 << version, start..bytes.len()));
                }
            }
            self.counts.add(self.fix.tally());
        }
    }

    /// Processes a message of the exchange's own session, which is not forwarded to consumers.
    fn session(&mut self, message: MessageView<'_>, msg_type: u8, utc_nanos: i64) {
        match msg_type {
            b'0' => self.counts.heartbeats.increment(1),
            b'4' => self.counts.sequence_resets.increment(1),
            b'5' => {
                self.counts.logouts.increment(1);
                if !matches!(self.exchange, Some(ExchangeState::LoggedOut(_))) {
                    let text = find(message.fields(), 58);
                    let text = text
                        .as_ref()
                        .and_then(|text| text.as_bytes())
                        .unwrap_or_default();
                    let text = Escaped::fields(text.get(..256).unwrap_or(text)).to_string();
                    self.state(ExchangeState::LoggedOut(text), utc_nanos);
                }
            }
            b'A' => {
                self.counts.logons.increment(1);
                self.state(ExchangeState::LoggedOn, utc_nanos);
            }
            _ => self.counts.others.increment(1),
        }
    }

    /// Reports a change of the exchange's session.
    fn state(&mut self, state: ExchangeState, utc_nanos: i64) {
        if state == ExchangeState::Done {
            self.counts.done.increment(1);
        }
        if self.exchange.as_ref() == Some(&state) {
            return;
        }
        if self.limit.lets(utc_nanos) {
            let state = FeedNotice::Exchange(state.clone());
            self.notices.send(Notice::Feed(state));
        }
        self.exchange = Some(state);
    }
}

/// Writes the key of a message: the first Symbol(55), or the first SecurityID(48), or nothing.
fn key(message: MessageView<'_>, key: &mut Vec<u8>) {
    key.clear();
    for tag in KEYS {
        if let Some(value) = first(message.fields(), tag)
            && value.as_bytes() != Some(NO_SYMBOL)
            && write_value(value, key)
            && !key.is_empty()
        {
            return;
        }
    }
}

/// Returns the hash of SendingTime(52), or 0 without one. The time is no part of the body.
fn sent(message: MessageView<'_>) -> u64 {
    match find(message.fields(), tag::SENDING_TIME) {
        Some(Value::Unsigned(time, _)) => channels::hash_of(&time.to_le_bytes()),
        Some(Value::Signed(time, _)) => channels::hash_of(&time.to_le_bytes()),
        Some(time) => time.as_bytes().map_or(0, channels::hash_of),
        None => 0,
    }
}

/// Returns the first value of a tag at any level.
fn first(fields: Fields<'_>, tag: u32) -> Option<Value<'_>> {
    fields.into_iter().find_map(|(field, value)| match value {
        Value::Group(inside) | Value::Template(_, inside) => first(inside, tag),
        Value::Sequence(mut entries) => entries.find_map(|entry| first(entry, tag)),
        Value::Absent => None,
        _ => Some(value).filter(|_| field.tag() == Some(tag)),
    })
}
