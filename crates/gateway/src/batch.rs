//! What a worker took from the ring in one go, and how it reaches one consumer: a single message
//! through a frame that holds the body once, several in one gathering write.

use crate::notice::PeerEnd;
use crate::peer::Live;
use crate::record;
use fanfare_engine::ring::BroadcastReader;
use fanfare_engine::tcp::{Connection, SendError};
use fanfare_fix::codec::{SendingTime, SharedBody, SharedFrame, SharedParts};
use fanfare_fix::session::Now;
use fanfare_wire::Precision;
use std::io::IoSlice;
use std::ops::Range;

/// Most messages of one batch. A consumer that has kept up gets them in one write.
const MAX_MESSAGES: usize = 16;

/// Header and trailer of a message at most, in bytes: what it takes besides its body.
pub(crate) const ENVELOPE: usize = 384;

/// Up to 16 messages, with everything that sending them takes. Allocates at the start only.
pub(crate) struct Batch {
    arena: Vec<u8>,
    records: Vec<Range<usize>>,
    frame: SharedFrame,
    parts: Vec<SharedParts>,
    times: Times,
}

/// What became of a batch at one consumer.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delivered {
    /// Messages given to its connection.
    pub(crate) sent: usize,
    /// Messages that found no room in its queue.
    pub(crate) unsent: usize,
}

impl Batch {
    /// For messages whose fields behind the header have at most `max_message` bytes.
    pub(crate) fn new(max_message: usize) -> Self {
        Self {
            arena: Vec::with_capacity(MAX_MESSAGES * (max_message + ENVELOPE)),
            records: Vec::with_capacity(MAX_MESSAGES),
            frame: SharedFrame::new(max_message),
            parts: vec![SharedParts::new(); MAX_MESSAGES],
            times: Times::default(),
        }
    }

    /// Takes what the ring has, up to a batch; gives the number of messages.
    pub(crate) fn fill(&mut self, ring: &mut BroadcastReader, now: Now) -> usize {
        self.arena.clear();
        self.records.clear();
        self.times = Times::at(now);
        ring.read(MAX_MESSAGES, |message| {
            let start = self.arena.len();
            self.arena.extend_from_slice(message.bytes);
            self.records.push(start..self.arena.len());
        });
        if let [only] = self.records.as_slice()
            && let Some(body) = self.arena.get(only.clone()).and_then(record::read)
            && self.frame.load(&body).is_err()
        {
            self.records.clear();
        }
        self.records.len()
    }

    /// Sends the batch to one consumer. A message that would make its queue longer than `limit`
    /// is not sent, nor any behind it, and takes no number.
    pub(crate) fn deliver(
        &mut self,
        now: Now,
        live: &mut Live,
        connection: &mut Connection,
        limit: usize,
    ) -> Result<Delivered, PeerEnd> {
        let time = self.times.with(live.session.config().precision);
        if self.records.len() == 1 && connection.queued() == 0 {
            let Ok(message) = live.session.send_shared(now, &mut self.frame, &time) else {
                return Ok(Delivered { sent: 0, unsent: 1 });
            };
            send(connection, &[IoSlice::new(message)])?;
            return Ok(Delivered { sent: 1, unsent: 0 });
        }
        let total = self.records.len();
        let mut sent = 0;
        while sent < total {
            let count = self.deliver_some(now, live, connection, limit, sent, &time)?;
            if count == 0 {
                break;
            }
            sent += count;
        }
        Ok(Delivered {
            sent,
            unsent: total - sent,
        })
    }

    /// One gathering write of as many messages from `first` on as the queue surely takes.
    fn deliver_some(
        &mut self,
        now: Now,
        live: &mut Live,
        connection: &mut Connection,
        limit: usize,
        first: usize,
        time: &SendingTime,
    ) -> Result<usize, PeerEnd> {
        let Self {
            arena,
            records,
            parts,
            ..
        } = self;
        let mut room = limit.saturating_sub(connection.queued());
        let mut slices = [IoSlice::new(&[]); 3 * MAX_MESSAGES];
        let mut count = 0;
        let waiting = records.get(first..).unwrap_or(&[]);
        for ((range, parts), slot) in waiting.iter().zip(parts).zip(slices.chunks_exact_mut(3)) {
            let Some(body) = arena.get(range.clone()).and_then(record::read) else {
                break;
            };
            let need = body.fields().len() + ENVELOPE;
            if need > room || !take_number(now, live, &body, time, parts) {
                break;
            }
            room -= need;
            slot.copy_from_slice(&[
                IoSlice::new(parts.header()),
                IoSlice::new(body.fields()),
                IoSlice::new(parts.trailer()),
            ]);
            count += 1;
        }
        if count > 0 {
            send(connection, slices.get(..3 * count).unwrap_or(&[]))?;
        }
        Ok(count)
    }
}

fn take_number(
    now: Now,
    live: &mut Live,
    body: &SharedBody<'_>,
    time: &SendingTime,
    parts: &mut SharedParts,
) -> bool {
    live.session
        .send_shared_parts(now, body, time, parts)
        .is_ok()
}

fn send(connection: &mut Connection, parts: &[IoSlice<'_>]) -> Result<(), PeerEnd> {
    match connection.send(parts) {
        Ok(_) => Ok(()),
        Err(SendError::Io(error)) => Err(PeerEnd::Broken(error.to_string())),
        Err(SendError::Overflow(full)) => Err(PeerEnd::SlowConsumer {
            queued: full.queued,
        }),
    }
}

/// `SendingTime(52)` of one moment in the precisions that sessions ask for, written when first
/// asked for.
#[derive(Default)]
struct Times {
    now: Option<Now>,
    texts: [Option<SendingTime>; 4],
}

impl Times {
    fn at(now: Now) -> Self {
        Self {
            now: Some(now),
            texts: [None; 4],
        }
    }

    fn with(&mut self, precision: Precision) -> SendingTime {
        let utc = self
            .now
            .map_or_else(|| fanfare_wire::UtcTimestamp::from_nanos(0), |n| n.utc);
        let place = match precision {
            Precision::Seconds => 0,
            Precision::Millis => 1,
            Precision::Micros => 2,
            Precision::Nanos => 3,
        };
        *self.texts[place].get_or_insert_with(|| SendingTime::new(utc, precision))
    }
}
