//! The standard header of sent messages.

use std::ops::Range;

use fanfare_wire::{Precision, UtcTimestamp};

use super::config::{Config, ExtraField};
use crate::codec::{Encoder, FieldWriter, Front, SendingTime};
use crate::tag;
use fanfare_wire::fields::SOH;

/// A field of a message to be sent.
pub(super) type OutField<'a> = (u32, &'a [u8]);

/// The standard header after MsgType(35), with fields in ascending order of tags.
pub(super) struct Head<'a> {
    pub(super) seq: u64,
    /// The OrigSendingTime(122), which makes the message a possible duplicate.
    pub(super) orig_time: Option<&'a [u8]>,
    /// The LastMsgSeqNumProcessed(369).
    pub(super) last_processed: Option<u64>,
    /// The fields of this message alone, ascending.
    pub(super) extra: &'a [OutField<'a>],
}

impl Head<'_> {
    #[inline]
    pub(super) fn write(&self, fixed: &Fixed, config: &Config, out: &mut FieldWriter<'_>) {
        let mut others = Others {
            config: &config.header_fields,
            extra: self.extra,
        };
        others.below(tag::MSG_SEQ_NUM, out);
        out.u64(tag::MSG_SEQ_NUM, self.seq);
        if self.orig_time.is_some() {
            others.below(tag::POSS_DUP_FLAG, out);
            out.char(tag::POSS_DUP_FLAG, b'Y');
        }
        others.below(tag::SENDER_COMP_ID, out);
        match fixed.is_complete() {
            true => out.raw(&fixed.sender),
            // Reports what is wrong with it.
            false => out.str(tag::SENDER_COMP_ID, &config.id.sender),
        };
        others.below(tag::SENDING_TIME, out);
        out.raw(fixed.time.field());
        others.below(tag::TARGET_COMP_ID, out);
        match fixed.is_complete() {
            true => out.raw(&fixed.target),
            false => out.str(tag::TARGET_COMP_ID, &config.id.target),
        };
        if let Some(time) = self.orig_time {
            others.below(tag::ORIG_SENDING_TIME, out);
            out.field(tag::ORIG_SENDING_TIME, time);
        }
        if let Some(seq) = self.last_processed {
            others.below(tag::LAST_MSG_SEQ_NUM_PROCESSED, out);
            out.u64(tag::LAST_MSG_SEQ_NUM_PROCESSED, seq);
        }
        others.below(u32::MAX, out);
    }
}

/// The fields of every header, encoded before they are needed, so that a message only copies them.
#[derive(Debug)]
pub(super) struct Fixed {
    /// The fields `49=…|` and `56=…|`, empty if a CompID cannot be encoded.
    sender: Vec<u8>,
    target: Vec<u8>,
    time: TimeField,
    /// The last whole header of the usual shape.
    last: Option<Last>,
}

impl Fixed {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            sender: comp_id(tag::SENDER_COMP_ID, &config.id.sender),
            target: comp_id(tag::TARGET_COMP_ID, &config.id.target),
            time: TimeField::new(UtcTimestamp::from_nanos(0), config.precision),
            last: None,
        }
    }

    /// Sets SendingTime(52) to `utc`. Many messages have the same time, and most the same second.
    #[inline]
    pub(super) fn set_time(&mut self, utc: UtcTimestamp, precision: Precision) {
        if !self.time.tells(utc) {
            self.time.set(utc, precision);
        }
    }

    /// Returns the front of a message with MsgSeqNum(34) `seq`, the time, and the fields of every
    /// message. Returns `None` if it cannot be made from the last message: then [`Head::write`]
    /// writes it, and [`remember`](Self::remember) keeps it.
    #[inline]
    pub(super) fn front(&mut self, msg_type: &[u8], seq: u64) -> Option<&Front> {
        let last = self.last.as_mut()?;
        let is_right = last.set_type(msg_type) && last.set_seq(seq) && last.set_time(&self.time);
        is_right.then_some(&last.front)
    }

    /// Remembers the front that the encoder has just written.
    pub(super) fn remember(&mut self, encoder: &Encoder<'_>, msg_type: &[u8], seq: u64) {
        self.last = encoder
            .front()
            .and_then(|front| Last::new(front, msg_type, seq, &self.time));
    }

    /// Returns the value of SendingTime(52), for OrigSendingTime(122).
    pub(super) fn time_text(&self) -> &[u8] {
        self.time.value()
    }

    #[inline]
    fn is_complete(&self) -> bool {
        !self.sender.is_empty() && !self.target.is_empty()
    }
}

/// A header from which the header of the next message is made. MsgSeqNum(34) is mostly one higher,
/// and SendingTime(52) differs now and then.
#[derive(Debug)]
struct Last {
    front: Front,
    /// The ranges of the values of MsgType(35), MsgSeqNum(34) and SendingTime(52).
    msg_type: Range<usize>,
    digits: Range<usize>,
    time: Range<usize>,
    seq: u64,
    /// The first instant of which `time` is the text.
    from: i64,
}

impl Last {
    fn new(mut front: Front, msg_type: &[u8], seq: u64, time: &TimeField) -> Option<Self> {
        let text = front.text_mut();
        let msg_type =
            value_of(text, b"\x0135=").filter(|place| text[place.clone()] == *msg_type)?;
        Some(Self {
            digits: value_of(text, b"\x0134=")?,
            time: value_of(text, b"\x0152=")
                .filter(|place| text[place.clone()] == *time.value())?,
            msg_type,
            seq,
            from: time.from,
            front,
        })
    }

    #[inline]
    fn set_type(&mut self, msg_type: &[u8]) -> bool {
        let Some(place) = self.front.text_mut().get_mut(self.msg_type.clone()) else {
            return false;
        };
        match (place, msg_type) {
            ([place], [letter]) if *letter != SOH => {
                *place = *letter;
                true
            }
            (place, msg_type) => place == msg_type,
        }
    }

    /// Sets MsgSeqNum(34) to `seq` if it is the same or one higher with as many digits, and returns
    /// whether it is.
    #[inline]
    fn set_seq(&mut self, seq: u64) -> bool {
        if seq == self.seq {
            return true;
        }
        let digits = self.front.text_mut().get_mut(self.digits.clone());
        if self.seq.checked_add(1) != Some(seq) || !digits.is_some_and(count_up) {
            // They may be wrong now: nothing is to be made of them any more.
            (self.seq, self.digits) = (0, 0..0);
            return false;
        }
        self.seq = seq;
        true
    }

    #[inline]
    fn set_time(&mut self, time: &TimeField) -> bool {
        if self.from == time.from {
            return true;
        }
        let value = time.value();
        let place = self.front.text_mut().get_mut(self.time.clone());
        let Some(place) = place.filter(|place| place.len() == value.len()) else {
            return false;
        };
        place.copy_from_slice(value);
        self.from = time.from;
        true
    }
}

/// Returns the range of the value of the first field that begins with `front`: a separator, a tag
/// and `=`.
fn value_of(text: &[u8], front: &[u8; 4]) -> Option<Range<usize>> {
    let begin = text.windows(4).position(|window| window == front)? + 4;
    let len = text.get(begin..)?.iter().position(|&byte| byte == SOH)?;
    Some(begin..begin + len)
}

/// Increments the number, and returns whether it still has as many digits. If not, all digits are
/// wrong.
#[inline]
fn count_up(digits: &mut [u8]) -> bool {
    for digit in digits.iter_mut().rev() {
        if *digit != b'9' {
            *digit += 1;
            return true;
        }
        *digit = b'0';
    }
    false
}

/// The field `52=…|`, of which within a second only the milliseconds are written anew.
#[derive(Debug)]
struct TimeField {
    text: [u8; TIME_ROOM],
    len: usize,
    /// The full second of the text, in nanoseconds since 1970.
    second: i64,
    /// The first instant that has this text, and the length of the time that has it, in
    /// nanoseconds.
    from: i64,
    lasts: u64,
}

/// The room for `52=YYYYMMDD-HH:MM:SS.nnnnnnnnn|`.
const TIME_ROOM: usize = 31;
/// The range of its milliseconds.
const MILLIS: Range<usize> = 21..24;

impl TimeField {
    fn new(utc: UtcTimestamp, precision: Precision) -> Self {
        let sending = SendingTime::new(utc, precision);
        let field = sending.field();
        let mut text = [0; TIME_ROOM];
        let len = field.len().min(TIME_ROOM);
        text[..len].copy_from_slice(&field[..len]);
        let nanos = utc.nanos();
        let lasts = match precision {
            Precision::Seconds => SECOND_NANOS,
            Precision::Millis => MILLI_NANOS,
            Precision::Micros => 1000,
            Precision::Nanos => 1,
        };
        Self {
            text,
            len,
            second: nanos.saturating_sub(nanos.rem_euclid(SECOND_NANOS)),
            from: nanos.saturating_sub(nanos.rem_euclid(lasts)),
            lasts: lasts as u64,
        }
    }

    /// Returns whether the text is that of `utc`.
    #[inline]
    fn tells(&self, utc: UtcTimestamp) -> bool {
        (utc.nanos().wrapping_sub(self.from) as u64) < self.lasts
    }

    #[inline]
    fn set(&mut self, utc: UtcTimestamp, precision: Precision) {
        match utc.nanos().checked_sub(self.second) {
            Some(nanos @ 0..SECOND_NANOS) if precision == Precision::Millis => {
                let millis = nanos as u32 / MILLI_NANOS as u32;
                let digit = |power: u32| b'0' + (millis / power % 10) as u8;
                self.text[MILLIS].copy_from_slice(&[digit(100), digit(10), digit(1)]);
                self.from = self.second + i64::from(millis) * MILLI_NANOS;
            }
            _ => *self = Self::new(utc, precision),
        }
    }

    #[inline]
    fn field(&self) -> &[u8] {
        self.text.get(..self.len).unwrap_or_default()
    }

    /// Returns the value without tag and separator.
    #[inline]
    fn value(&self) -> &[u8] {
        let end = self.len.saturating_sub(1);
        self.text.get(3..end).unwrap_or_default()
    }
}

const SECOND_NANOS: i64 = 1_000_000_000;
const MILLI_NANOS: i64 = 1_000_000;

fn comp_id(tag: u32, value: &str) -> Vec<u8> {
    let mut room = vec![0; value.len() + 16];
    let mut writer = FieldWriter::new(&mut room);
    writer
        .str(tag, value)
        .written()
        .map(<[u8]>::to_vec)
        .unwrap_or_default()
}

/// Two ascending lists of fields that are written as one. The second takes precedence.
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

/// Writes a field. RawData(96) is written with its length, as it may contain separators.
fn put(tag: u32, value: &[u8], out: &mut FieldWriter<'_>) {
    match tag {
        tag::RAW_DATA_LENGTH => {}
        tag::RAW_DATA => {
            out.data(tag::RAW_DATA_LENGTH, tag::RAW_DATA, value);
        }
        // Their length fields stand in front of them, as the caller gave them.
        tag::SECURE_DATA if !value.is_empty() => {
            out.raw(b"91=").raw(value).raw(b"\x01");
        }
        tag::XML_DATA if !value.is_empty() => {
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
    use crate::session::{SessionId, Version};
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
                if !field.tells(utc) {
                    field.set(utc, precision);
                }
                let anew = SendingTime::new(utc, precision);
                prop_assert_eq!(field.field(), anew.field());
            }
        }

        #[test]
        fn a_header_from_the_last_one_is_one_written_anew(
            steps in prop::collection::vec((any::<u8>(), any::<u8>(), any::<i64>()), 1..40),
            first in prop::sample::select(vec![1, 8, 98, 99_999, 99_999_997]),
            precision in prop::sample::select(vec![Precision::Millis, Precision::Micros]),
            sub_id in any::<bool>(),
        ) {
            let mut config = Config::new(SessionId::new(Version::Fix44, "ME", "YOU"));
            config.precision = precision;
            if sub_id {
                config.header_fields = vec![(50, b"34=DESK"[..].into())];
            }
            let mut fixed = Fixed::new(&config);
            let (mut seq, mut nanos) = (first, 1_795_178_096_123_000_000_i64);
            for (kind, count, step) in steps {
                let kinds: [&[u8]; 8] = [b"D", b"D", b"D", b"8", b"AE", b"CA", b"", b"\x01"];
                let msg_type = kinds[usize::from(kind % 8)];
                seq += [1, 1, 1, 1, 1, 0, 7, 100_000][usize::from(count % 8)];
                let most = [7000, 2_000_000, 3_000_000_000][usize::from(kind % 3)];
                nanos = nanos.saturating_add(step % most);
                let utc = UtcTimestamp::from_nanos(nanos);
                fixed.set_time(utc, precision);
                let mut room = [0; 256];
                let encoder = match fixed.front(msg_type, seq) {
                    Some(front) => Encoder::with_front(&mut room, front),
                    None => {
                        let encoder = anew(&mut room, &fixed, &config, msg_type, seq);
                        fixed.remember(&encoder, msg_type, seq);
                        encoder
                    }
                };
                let mut fresh = Fixed::new(&config);
                fresh.set_time(utc, precision);
                let mut other = [0; 256];
                let fresh = anew(&mut other, &fresh, &config, msg_type, seq);
                prop_assert_eq!(encoder.written(), fresh.written());
            }
        }
    }

    fn anew<'b>(
        room: &'b mut [u8],
        fixed: &Fixed,
        config: &Config,
        msg_type: &[u8],
        seq: u64,
    ) -> Encoder<'b> {
        let head = Head {
            seq,
            orig_time: None,
            last_processed: None,
            extra: &[],
        };
        let mut encoder = Encoder::new(room, b"FIX.4.4", msg_type);
        head.write(fixed, config, &mut encoder);
        encoder
    }

    #[test]
    fn a_long_header_is_written_anew_each_time() {
        let config = Config::new(SessionId::new(Version::Fix44, &"X".repeat(100), "YOU"));
        let mut fixed = Fixed::new(&config);
        let mut room = [0; 512];
        let encoder = anew(&mut room, &fixed, &config, b"D", 1);
        fixed.remember(&encoder, b"D", 1);
        assert!(fixed.front(b"D", 2).is_none());
    }
}
