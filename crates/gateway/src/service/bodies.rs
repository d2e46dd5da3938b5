//! Bodies of messages that are written once and sent to many: those of one turn.

use crate::versions;
use fanfare_fix::codec::{EncodeError, FieldWriter, SharedBody};
use fanfare_fix::dict::Dictionary;
use fanfare_market::to_fix::WriteError;
use fanfare_market::{Event, Kind, ToFix};
use fanfare_wire::byte_sum;
use std::ops::Range;
use std::sync::Arc;

/// The place of a body among those of the turn.
pub(crate) type BodyId = u32;

/// Room at the start, in bytes.
const ROOM: usize = 1 << 16;

/// The bodies of a turn. Allocates only where a turn has more than any before it.
pub(crate) struct Bodies {
    room: Vec<u8>,
    used: usize,
    all: Vec<Body>,
    /// Of all bodies: conflated subscriptions keep them where a body is left out.
    trades: Vec<Event>,
    /// The longest body.
    most: usize,
}

/// A body, and what of an instrument it says.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    msg_type: &'static [u8],
    range: Range<usize>,
    sum: u8,
    /// RptSeq(83) of its first and its last entry.
    pub(crate) numbers: (u32, u32),
    /// Its trades.
    trades: Range<usize>,
}

/// Why a body was not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyError {
    /// It is longer than messages may be.
    TooLong,
    /// The version cannot say it.
    Write(WriteError),
    /// A value holds the separator of fields, or is empty.
    Encode(EncodeError),
}

impl Bodies {
    /// For bodies of at most `most` bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            room: vec![0; ROOM],
            used: 0,
            all: Vec::with_capacity(64),
            trades: Vec::with_capacity(64),
            most,
        }
    }

    /// Forgets the bodies of the turn before.
    pub(crate) fn clear(&mut self) {
        self.used = 0;
        self.all.clear();
        self.trades.clear();
    }

    /// Writes a body; `fill` may be called again with more room.
    pub(crate) fn put(
        &mut self,
        msg_type: &'static [u8],
        numbers: (u32, u32),
        mut fill: impl FnMut(&mut FieldWriter<'_>) -> Result<(), WriteError>,
    ) -> Result<BodyId, BodyError> {
        loop {
            let room = self.room.get_mut(self.used..).unwrap_or_default();
            let len = room.len().min(self.most);
            let is_all = len == self.most;
            let mut writer = FieldWriter::new(room.get_mut(..len).unwrap_or_default());
            let done = fill(&mut writer);
            match writer.written() {
                Err(EncodeError::BufferFull) if is_all => return Err(BodyError::TooLong),
                Err(EncodeError::BufferFull) => {
                    let longer = (self.room.len() * 2).max(self.used + ROOM);
                    self.room.resize(longer, 0);
                    continue;
                }
                Err(error) => return Err(BodyError::Encode(error)),
                Ok(written) => {
                    done.map_err(BodyError::Write)?;
                    let range = self.used..self.used + written.len();
                    let sum = byte_sum(written);
                    self.used = range.end;
                    self.all.push(Body {
                        msg_type,
                        range,
                        sum,
                        numbers,
                        trades: 0..0,
                    });
                    return Ok((self.all.len() - 1) as BodyId);
                }
            }
        }
    }

    /// Keeps the trades among the entries of a body.
    pub(crate) fn keep_trades(&mut self, id: BodyId, entries: &[Event]) {
        let from = self.trades.len();
        let trades = entries.iter().filter(|event| event.kind == Kind::Trade);
        self.trades.extend(trades);
        if let Some(body) = self.all.get_mut(id as usize) {
            body.trades = from..self.trades.len();
        }
    }

    /// The trades of a body of this turn.
    pub(crate) fn trades(&self, id: BodyId) -> &[Event] {
        let body = self.all.get(id as usize);
        let trades = body.and_then(|body| self.trades.get(body.trades.clone()));
        trades.unwrap_or_default()
    }

    /// A body of this turn, and what it says.
    pub(crate) fn get(&self, id: BodyId) -> Option<(&Body, SharedBody<'_>)> {
        let body = self.all.get(id as usize)?;
        let fields = self.room.get(body.range.clone())?;
        let shared = SharedBody::with_sum(body.msg_type, fields, body.sum).ok()?;
        Some((body, shared))
    }
}

/// The versions that market data is served in, by their place among [`versions::VERSIONS`].
pub(crate) struct Writers([Option<Writer>; versions::COUNT]);

/// What writes the messages of a version.
pub(crate) struct Writer {
    pub(crate) to_fix: ToFix,
    pub(crate) dictionary: Arc<Dictionary>,
}

impl Writers {
    pub(crate) const fn new() -> Self {
        Self([const { None }; versions::COUNT])
    }

    /// Makes the writer of a version, when its first session logs on. Allocates.
    pub(crate) fn open(&mut self, version: usize) {
        if let (Some(place @ None), Some(of)) =
            (self.0.get_mut(version), versions::VERSIONS.get(version))
        {
            let dictionary = Dictionary::built_in(*of);
            *place = Some(Writer {
                to_fix: ToFix::with(Arc::clone(&dictionary)),
                dictionary,
            });
        }
    }

    /// The writer of a version.
    pub(crate) fn get(&self, version: usize) -> Option<&Writer> {
        self.0.get(version)?.as_ref()
    }
}
