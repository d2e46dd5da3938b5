//! Message bodies that are encoded once in a turn and sent to many sessions.

use crate::fanout::versions;
use fanfare_fix::codec::{EncodeError, FieldWriter, SharedBody};
use fanfare_fix::dict::Dictionary;
use fanfare_market::to_fix::WriteError;
use fanfare_market::{Event, Kind, ToFix};
use fanfare_wire::byte_sum;
use std::ops::Range;
use std::sync::Arc;

/// The index of a body among those of the turn.
pub(crate) type BodyId = u32;

/// The initial capacity of the buffer, in bytes.
const ROOM: usize = 1 << 16;

/// The bodies of a turn. Allocates only if a turn has more than any before it.
pub(crate) struct Bodies {
    room: Vec<u8>,
    used: usize,
    all: Vec<Body>,
    /// The trades of all bodies. Conflated subscriptions keep those of a body that they skip.
    trades: Vec<Event>,
    /// The longest body allowed.
    most: usize,
}

/// A body, and the part of an instrument's history that it contains.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    msg_type: &'static [u8],
    range: Range<usize>,
    sum: u8,
    /// RptSeq(83) of its first and its last entry, or of those that a snapshot stands for.
    pub(crate) numbers: (u32, u32),
    /// The range of its trades.
    trades: Range<usize>,
}

impl Body {
    /// Returns whether it is of market data, which has MDReqID(262).
    pub(crate) fn has_request(&self) -> bool {
        matches!(self.msg_type, b"W" | b"X")
    }
}

/// The reason why a body was not encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyError {
    /// The body is longer than messages may be.
    TooLong,
    /// The version cannot express it.
    Write(WriteError),
    /// A value contains the separator of fields, or is empty.
    Encode(EncodeError),
}

impl Bodies {
    /// Creates a buffer for bodies of at most `most` bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            room: vec![0; ROOM],
            used: 0,
            all: Vec::with_capacity(64),
            trades: Vec::with_capacity(64),
            most,
        }
    }

    /// Clears the bodies of the previous turn.
    pub(crate) fn clear(&mut self) {
        self.used = 0;
        self.all.clear();
        self.trades.clear();
    }

    /// Encodes a body. `fill` may be called again with a larger buffer.
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

    /// Sets RptSeq(83) of the first change for which a snapshot stands.
    pub(crate) fn begin_at(&mut self, id: BodyId, first: u32) {
        if let Some(body) = self.all.get_mut(id as usize) {
            body.numbers.0 = first;
        }
    }

    /// Keeps the trades among the changes of a body, or among those for which a snapshot stands.
    pub(crate) fn keep_trades(&mut self, id: BodyId, entries: &[Event]) {
        let from = self.trades.len();
        let trades = entries.iter().filter(|event| event.kind == Kind::Trade);
        self.trades.extend(trades);
        if let Some(body) = self.all.get_mut(id as usize) {
            body.trades = from..self.trades.len();
        }
    }

    /// Returns the trades of a body of this turn.
    pub(crate) fn trades(&self, id: BodyId) -> &[Event] {
        let body = self.all.get(id as usize);
        let trades = body.and_then(|body| self.trades.get(body.trades.clone()));
        trades.unwrap_or_default()
    }

    /// Returns a body of this turn with its encoded fields.
    pub(crate) fn get(&self, id: BodyId) -> Option<(&Body, SharedBody<'_>)> {
        let body = self.all.get(id as usize)?;
        let fields = self.room.get(body.range.clone())?;
        let shared = SharedBody::with_sum(body.msg_type, fields, body.sum).ok()?;
        Some((body, shared))
    }
}

/// The writers of the versions in which market data is served, by their index in
/// [`versions::VERSIONS`].
pub(crate) struct Writers([Option<Writer>; versions::COUNT]);

/// The writer of the messages of a version.
pub(crate) struct Writer {
    pub(crate) to_fix: ToFix,
    pub(crate) dictionary: Arc<Dictionary>,
}

impl Writers {
    pub(crate) const fn new() -> Self {
        Self([const { None }; versions::COUNT])
    }

    /// Creates the writer of a version when its first session logs on. Allocates.
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

    /// Returns the writer of a version.
    pub(crate) fn get(&self, version: usize) -> Option<&Writer> {
        self.0.get(version)?.as_ref()
    }
}
