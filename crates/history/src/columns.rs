//! Records with their events by columns, which compress well.
//!
//! Records that are no events come first: for each record its kind and, by base 128, its length and
//! its bytes; for events only their count. Ten columns follow, with one value for each event:
//! mostly the difference to the event before, or to the one before of the same instrument, as an
//! unsigned number (0, -1, 1, -2, ... are 0, 1, 2, 3, ...). A column begins with the number of
//! bytes of its largest value (u8), followed by the lowest bytes of all values, then the next ones.

use crate::format::{Kind, Records, push_record, u32_at};
use fanfare_market::Event;

/// The number of places for the last values of instruments.
const PLACES: usize = 4096;

/// The columns, by their contents.
const INSTRUMENT: usize = 0;
const MARKS: usize = 1;
const LEVEL: usize = 2;
const NUMBER: usize = 3;
const TS_EVENT: usize = 4;
const TS_RECV: usize = 5;
const ID: usize = 6;
const PRICE: usize = 7;
const SIZE: usize = 8;
const RPT_SEQ: usize = 9;
const COLUMNS: usize = 10;

/// Buffers for both directions; they grow with the largest block.
#[derive(Debug)]
pub(crate) struct Columns {
    values: [Vec<u64>; COLUMNS],
    before: Before,
}

/// The values that differences are to.
#[derive(Debug)]
struct Before {
    number: u64,
    ts_event: u64,
    ts_recv: u64,
    instrument: u32,
    /// The last identifiers, by kind.
    ids: [u64; 16],
    /// The last prices, by instrument and entry.
    prices: Vec<u64>,
    /// The last RptSeq(83), by instrument.
    rpt_seqs: Vec<u32>,
}

impl Before {
    fn reset(&mut self, first: u64, time: u64) {
        self.number = first.wrapping_sub(1);
        (self.ts_event, self.ts_recv) = (time, time);
        self.instrument = 0;
        self.ids.fill(0);
        self.prices.fill(0);
        self.rpt_seqs.fill(0);
    }
}

/// The error of bytes that are no records by columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

impl Default for Columns {
    fn default() -> Self {
        Self {
            values: Default::default(),
            before: Before {
                number: 0,
                ts_event: 0,
                ts_recv: 0,
                instrument: 0,
                ids: [0; 16],
                prices: vec![0; PLACES],
                rpt_seqs: vec![0; PLACES],
            },
        }
    }
}

const fn zigzag(value: u64) -> u64 {
    let value = value.cast_signed();
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

const fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

/// Returns the place of the last price, separate for each side of an instrument.
const fn price_place(instrument: u32, entry: u8) -> usize {
    (instrument as usize * 2 + (entry & 1) as usize) & (PLACES - 1)
}

const fn place_of(instrument: u32) -> usize {
    instrument as usize & (PLACES - 1)
}

impl Columns {
    /// Writes the records of a block into `out`, which is emptied first. `first` and `time` are
    /// those of its header.
    pub(crate) fn write(&mut self, records: &[u8], first: u64, time: u64, out: &mut Vec<u8>) {
        self.before.reset(first, time);
        self.values.iter_mut().for_each(Vec::clear);
        out.clear();
        out.extend_from_slice(&[0; 4]);
        let mut rest = records;
        while let Some((kind, bytes)) = (Records(rest)).next() {
            let code = rest.first().copied().unwrap_or_default();
            out.push(code);
            if kind == Some(Kind::Events) {
                let events = bytes.as_chunks::<{ Event::SIZE }>().0;
                put_number(out, events.len() as u64);
                events.iter().for_each(|event| self.take(event));
            } else {
                put_number(out, bytes.len() as u64);
                out.extend_from_slice(bytes);
            }
            rest = rest
                .get(8 + bytes.len().next_multiple_of(8)..)
                .unwrap_or(&[]);
        }
        let skeleton = (out.len() - 4) as u32;
        crate::format::put(out, 0, &skeleton.to_le_bytes());
        for values in &self.values {
            put_column(values, out);
        }
    }

    fn take(&mut self, event: &[u8; Event::SIZE]) {
        let words = event.as_chunks::<8>().0;
        let word = |at: usize| words.get(at).map_or(0, |word| u64::from_le_bytes(*word));
        let [number, ts_event, ts_recv, id, price, size] = [0, 1, 2, 3, 4, 5].map(word);
        let (instrument, rpt_seq) = (word(6) as u32, (word(6) >> 32) as u32);
        let (marks, level) = (word(7) as u32, (word(7) >> 32) as u32);
        let before = &mut self.before;
        let entry = (marks >> 16) as u8;
        let last_id = &mut before.ids[(marks & 15) as usize];
        let last_price = &mut before.prices[price_place(instrument, entry)];
        let last_rpt_seq = &mut before.rpt_seqs[place_of(instrument)];
        let row = [
            zigzag(u64::from(instrument).wrapping_sub(before.instrument.into())),
            marks.into(),
            level.into(),
            zigzag(number.wrapping_sub(before.number).wrapping_sub(1)),
            zigzag(ts_event.wrapping_sub(before.ts_event)),
            zigzag(ts_recv.wrapping_sub(before.ts_recv)),
            zigzag(id.wrapping_sub(*last_id)),
            zigzag(price.wrapping_sub(*last_price)),
            zigzag(size),
            zigzag(u64::from(rpt_seq).wrapping_sub((*last_rpt_seq).into())),
        ];
        (*last_id, *last_price, *last_rpt_seq) = (id, price, rpt_seq);
        before.number = number;
        (before.ts_event, before.ts_recv) = (ts_event, ts_recv);
        before.instrument = instrument;
        for (values, value) in self.values.iter_mut().zip(row) {
            values.push(value);
        }
    }

    /// Decodes the bytes that [`Self::write`] wrote into `out`, which is emptied first. The records
    /// are at most `most` bytes, and so are the events alone.
    ///
    /// # Errors
    /// The bytes are no records.
    pub(crate) fn read(
        &mut self,
        bytes: &[u8],
        (first, time): (u64, u64),
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        let (skeleton, mut columns) = bytes
            .get(4..)
            .and_then(|rest| rest.split_at_checked(u32_at(bytes, 0) as usize))
            .ok_or(Malformed)?;
        let count = events_of(skeleton, most)?;
        for values in &mut self.values {
            columns = get_column(columns, count, values).ok_or(Malformed)?;
        }
        self.before.reset(first, time);
        out.clear();
        let (mut rest, mut at) = (skeleton, 0);
        while let Some((code, len, behind)) = next_record(rest) {
            if code == Kind::Events as u8 {
                out.extend_from_slice(&(Kind::Events as u32).to_le_bytes());
                out.extend_from_slice(&((len * Event::SIZE) as u32).to_le_bytes());
                (at..at + len).for_each(|at| self.give(at, out));
                at += len;
                rest = behind;
            } else {
                let (bytes, behind) = behind.split_at_checked(len).ok_or(Malformed)?;
                push_coded(out, code, bytes);
                rest = behind;
            }
            if out.len() > most {
                return Err(Malformed);
            }
        }
        Ok(())
    }

    #[inline]
    fn give(&mut self, at: usize, out: &mut Vec<u8>) {
        let value = |column: usize| {
            let values = self.values.get(column);
            values.and_then(|own| own.get(at)).copied().unwrap_or(0)
        };
        let before = &mut self.before;
        let back = |column: usize, last: u64| last.wrapping_add(unzigzag(value(column)));
        let instrument = back(INSTRUMENT, before.instrument.into()) as u32;
        let marks = value(MARKS) as u32;
        let last_id = &mut before.ids[(marks & 15) as usize];
        let last_price = &mut before.prices[price_place(instrument, (marks >> 16) as u8)];
        let last_rpt_seq = &mut before.rpt_seqs[place_of(instrument)];
        *last_id = back(ID, *last_id);
        *last_price = back(PRICE, *last_price);
        *last_rpt_seq = back(RPT_SEQ, (*last_rpt_seq).into()) as u32;
        before.number = back(NUMBER, before.number.wrapping_add(1));
        before.ts_event = back(TS_EVENT, before.ts_event);
        before.ts_recv = back(TS_RECV, before.ts_recv);
        before.instrument = instrument;
        let words = [
            before.number,
            before.ts_event,
            before.ts_recv,
            *last_id,
            *last_price,
            unzigzag(value(SIZE)),
            u64::from(instrument) | u64::from(*last_rpt_seq) << 32,
            u64::from(marks) | value(LEVEL) << 32,
        ];
        out.extend_from_slice(words.map(u64::to_le_bytes).as_flattened());
    }
}

/// Appends a record of a kind that may be unknown.
fn push_coded(out: &mut Vec<u8>, code: u8, bytes: &[u8]) {
    let start = out.len();
    push_record(out, Kind::End, &[bytes]);
    crate::format::put(out, start, &u32::from(code).to_le_bytes());
}

/// Returns the number of events of all records, at most as many as `most` bytes hold.
fn events_of(skeleton: &[u8], most: usize) -> Result<usize, Malformed> {
    let (mut rest, mut count) = (skeleton, 0usize);
    while let Some((code, len, behind)) = next_record(rest) {
        if code == Kind::Events as u8 {
            count = count.checked_add(len).ok_or(Malformed)?;
            rest = behind;
        } else {
            rest = behind.get(len..).ok_or(Malformed)?;
        }
        if count > most / Event::SIZE {
            return Err(Malformed);
        }
    }
    if rest.is_empty() {
        Ok(count)
    } else {
        Err(Malformed)
    }
}

/// Returns the code of the next record, its length or count, and the rest.
fn next_record(skeleton: &[u8]) -> Option<(u8, usize, &[u8])> {
    let (&code, rest) = skeleton.split_first()?;
    let (len, rest) = get_number(rest)?;
    Some((code, usize::try_from(len).ok()?, rest))
}

fn put_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn get_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (at, byte) in bytes.iter().enumerate().take(5) {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, bytes.get(at + 1..)?));
        }
    }
    None
}

fn put_column(values: &[u64], out: &mut Vec<u8>) {
    let all = values.iter().fold(0, |all, value| all | value);
    let width = 8 - all.leading_zeros() / 8;
    out.push(width as u8);
    for byte in 0..width {
        out.extend(values.iter().map(|value| (value >> (8 * byte)) as u8));
    }
}

/// Reads `count` values, and returns the rest.
fn get_column<'a>(bytes: &'a [u8], count: usize, values: &mut Vec<u64>) -> Option<&'a [u8]> {
    let (&width, mut rest) = bytes.split_first()?;
    values.clear();
    values.resize(count, 0);
    if width > 8 {
        return None;
    }
    for byte in 0..width {
        let (plane, behind) = rest.split_at_checked(count)?;
        for (value, low) in values.iter_mut().zip(plane) {
            *value |= u64::from(*low) << (8 * byte);
        }
        rest = behind;
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn records(seed: u64, messages: usize) -> Vec<u8> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (mut out, mut bytes, mut number) = (Vec::new(), Vec::new(), 5);
        for _ in 0..messages {
            if rng.u8(..) < 20 {
                let text: Vec<u8> = (0..rng.usize(..40)).map(|_| rng.u8(..)).collect();
                push_record(&mut out, Kind::Instrument, &[&text]);
                continue;
            }
            bytes.clear();
            for _ in 0..rng.usize(..6) {
                let mut event = Event::EMPTY.to_bytes();
                let far = rng.u8(..) < 8;
                for byte in &mut event {
                    if far || rng.u8(..) < 10 {
                        *byte = rng.u8(..);
                    }
                }
                number += 1;
                event[..8].copy_from_slice(&u64::to_le_bytes(number));
                bytes.extend_from_slice(&event);
            }
            push_record(&mut out, Kind::Events, &[&bytes]);
        }
        out
    }

    proptest! {
        #[test]
        fn records_come_back(seed: u64, messages in 0usize..50) {
            let plain = records(seed, messages);
            let (mut columns, mut coded, mut back) = (Columns::default(), Vec::new(), Vec::new());
            columns.write(&plain, 6, 99, &mut coded);
            let most = plain.len();
            prop_assert_eq!(columns.read(&coded, (6, 99), most, &mut back), Ok(()));
            prop_assert_eq!(&back, &plain);
            // Other bytes are refused, or are some records: never a panic, nor more than requested.
            let mut rng = fastrand::Rng::with_seed(seed);
            for _ in 0..20 {
                let mut damaged = coded.clone();
                let at = rng.usize(..damaged.len());
                damaged[at] = rng.u8(..);
                damaged.truncate(rng.usize(..=damaged.len()));
                if columns.read(&damaged, (6, 99), most, &mut back).is_ok() {
                    prop_assert!(back.len() <= most);
                }
            }
        }
    }
}
