//! The standard header of what we send.

use std::ops::Range;

use fanfare_wire::{Precision, UtcTimestamp};

use super::config::{Config, ExtraField};
use crate::codec::{FieldWriter, SendingTime, tags};

/// A field of a message to be sent.
pub(super) type OutField<'a> = (u32, &'a [u8]);

/// The standard header behind MsgType(35), fields in ascending order of tags.
pub(super) struct Head<'a> {
    pub(super) seq: u64,
    /// OrigSendingTime(122), which makes the message a PossDup.
    pub(super) orig_time: Option<&'a [u8]>,
    /// LastMsgSeqNumProcessed(369).
    pub(super) last_processed: Option<u64>,
    /// Fields of this message alone, ascending.
    pub(super) extra: &'a [OutField<'a>],
}

impl Head<'_> {
    #[inline]
    pub(super) fn write(&self, fixed: &Fixed, config: &Config, out: &mut FieldWriter<'_>) {
        let mut others = Others {
            config: &config.header_fields,
            extra: self.extra,
        };
        others.below(tags::MSG_SEQ_NUM, out);
        out.u64(tags::MSG_SEQ_NUM, self.seq);
        if self.orig_time.is_some() {
            others.below(tags::POSS_DUP_FLAG, out);
            out.char(tags::POSS_DUP_FLAG, b'Y');
        }
        others.below(tags::SENDER_COMP_ID, out);
        match fixed.is_complete() {
            true => out.raw(&fixed.sender),
            // Reports what is wrong with it.
            false => out.str(tags::SENDER_COMP_ID, &config.id.sender),
        };
        others.below(tags::SENDING_TIME, out);
        out.raw(fixed.time.field());
        others.below(tags::TARGET_COMP_ID, out);
        match fixed.is_complete() {
            true => out.raw(&fixed.target),
            false => out.str(tags::TARGET_COMP_ID, &config.id.target),
        };
        if let Some(time) = self.orig_time {
            others.below(tags::ORIG_SENDING_TIME, out);
            out.field(tags::ORIG_SENDING_TIME, time);
        }
        if let Some(seq) = self.last_processed {
            others.below(tags::LAST_MSG_SEQ_NUM_PROCESSED, out);
            out.u64(tags::LAST_MSG_SEQ_NUM_PROCESSED, seq);
        }
        others.below(u32::MAX, out);
    }
}

/// The fields of every header, encoded before they are needed: a message only copies them.
#[derive(Debug)]
pub(super) struct Fixed {
    /// `49=…|` and `56=…|`, empty if a CompID cannot be encoded.
    sender: Vec<u8>,
    target: Vec<u8>,
    time: TimeField,
    /// The moment that `time` tells.
    at: UtcTimestamp,
}

impl Fixed {
    pub(super) fn new(config: &Config) -> Self {
        let at = UtcTimestamp::from_nanos(0);
        Self {
            sender: comp_id(tags::SENDER_COMP_ID, &config.id.sender),
            target: comp_id(tags::TARGET_COMP_ID, &config.id.target),
            time: TimeField::new(at, config.precision),
            at,
        }
    }

    /// Makes SendingTime(52) that of `utc`. Many messages of one turn have the same, and most of
    /// one second.
    #[inline]
    pub(super) fn set_time(&mut self, utc: UtcTimestamp, precision: Precision) {
        if self.at != utc {
            self.time.set(utc, precision);
            self.at = utc;
        }
    }

    /// SendingTime(52) without its tag, for OrigSendingTime(122).
    pub(super) fn time_text(&self) -> &[u8] {
        let field = self.time.field();
        field
            .get(3..field.len().saturating_sub(1))
            .unwrap_or_default()
    }

    #[inline]
    fn is_complete(&self) -> bool {
        !self.sender.is_empty() && !self.target.is_empty()
    }
}

/// `52=…|`, of which within a second only the milliseconds are written anew.
#[derive(Debug)]
struct TimeField {
    text: [u8; TIME_ROOM],
    len: usize,
    /// The full second of the text, in nanoseconds since 1970.
    second: i64,
}

/// Room for `52=YYYYMMDD-HH:MM:SS.nnnnnnnnn|`.
const TIME_ROOM: usize = 31;
/// Where its milliseconds stand.
const MILLIS: Range<usize> = 21..24;

impl TimeField {
    fn new(utc: UtcTimestamp, precision: Precision) -> Self {
        let sending = SendingTime::new(utc, precision);
        let field = sending.field();
        let mut text = [0; TIME_ROOM];
        let len = field.len().min(TIME_ROOM);
        text[..len].copy_from_slice(&field[..len]);
        Self {
            text,
            len,
            second: utc
                .nanos()
                .saturating_sub(utc.nanos().rem_euclid(SECOND_NANOS)),
        }
    }

    #[inline]
    fn set(&mut self, utc: UtcTimestamp, precision: Precision) {
        match utc.nanos().checked_sub(self.second) {
            Some(nanos @ 0..SECOND_NANOS) if precision == Precision::Millis => {
                let millis = nanos as u32 / 1_000_000;
                let digit = |power: u32| b'0' + (millis / power % 10) as u8;
                self.text[MILLIS].copy_from_slice(&[digit(100), digit(10), digit(1)]);
            }
            _ => *self = Self::new(utc, precision),
        }
    }

    #[inline]
    fn field(&self) -> &[u8] {
        self.text.get(..self.len).unwrap_or_default()
    }
}

const SECOND_NANOS: i64 = 1_000_000_000;

fn comp_id(tag: u32, value: &str) -> Vec<u8> {
    let mut room = vec![0; value.len() + 16];
    let mut writer = FieldWriter::new(&mut room);
    writer
        .str(tag, value)
        .written()
        .map(<[u8]>::to_vec)
        .unwrap_or_default()
}

/// Two ascending lists of fields, written as one; the second takes precedence.
pub(super) struct Others<'a> {
    pub(super) config: &'a [ExtraField],
    pub(super) extra: &'a [OutField<'a>],
}

impl Others<'_> {
    /// Writes the fields whose tags are below `limit`.
    #[inline]
    pub(super) fn below(&mut self, limit: u32, out: &mut FieldWriter<'_>) {
        if self.config.is_empty() && self.extra.is_empty() {
            return;
        }
        loop {
            let config = self.config.first().map_or(u32::MAX, |field| field.0);
            let extra = self.extra.first().map_or(u32::MAX, |field| field.0);
            if config.min(extra) >= limit {
                return;
            }
            if config < extra {
                if let Some(((tag, value), rest)) = self.config.split_first() {
                    put(*tag, value, out);
                    self.config = rest;
                }
                continue;
            }
            if let Some(((tag, value), rest)) = self.extra.split_first() {
                put(*tag, value, out);
                self.extra = rest;
            }
            if config == extra {
                self.config = self.config.get(1..).unwrap_or_default();
            }
        }
    }
}

/// RawData(96) brings its length, as it may hold separators.
fn put(tag: u32, value: &[u8], out: &mut FieldWriter<'_>) {
    match tag {
        tags::RAW_DATA_LENGTH => {}
        tags::RAW_DATA => {
            out.data(tags::RAW_DATA_LENGTH, tags::RAW_DATA, value);
        }
        // Their length fields stand in front of them, as the caller gave them.
        tags::SECURE_DATA if !value.is_empty() => {
            out.raw(b"91=").raw(value).raw(b"\x01");
        }
        tags::XML_DATA if !value.is_empty() => {
            out.raw(b"213=").raw(value).raw(b"\x01");
        }
        _ => {
            out.field(tag, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_time_set_is_a_time_made_anew(
            steps in prop::collection::vec((any::<u8>(), any::<i64>()), 1..20),
            precision in prop::sample::select(vec![
                Precision::Seconds,
                Precision::Millis,
                Precision::Micros,
                Precision::Nanos,
            ]),
        ) {
            let mut nanos = 1_795_178_096_123_000_000_i64;
            let mut field = TimeField::new(UtcTimestamp::from_nanos(nanos), precision);
            for (kind, step) in steps {
                nanos = match kind % 4 {
                    0 => step,
                    1 => nanos.saturating_add(step % 3_000_000_000),
                    _ => nanos.saturating_add(step % 100_000_000),
                };
                let utc = UtcTimestamp::from_nanos(nanos);
                field.set(utc, precision);
                let anew = SendingTime::new(utc, precision);
                prop_assert_eq!(field.field(), anew.field());
            }
        }
    }
}
