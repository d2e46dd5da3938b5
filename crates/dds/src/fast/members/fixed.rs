//! Rows whose members are at places that do not depend on the message.

use fanfare_fast::RowRef;

use super::super::fields::to_double;
use super::{Start, Step, Write, decimal, lane, there};
use crate::cdr::{CdrBuffer, HEADER, Pen};

/// Members at fixed places: as long as strings have at most three characters, each takes eight
/// bytes with its length and its NUL.
#[derive(Debug)]
pub(super) struct Fixed {
    alignment: usize,
    /// Constants, zeros everywhere else, and eight zeros after the end.
    image: Box<[u8]>,
    /// The end, or the start of the last member if that is a string.
    end: usize,
    last_text: Option<u8>,
    /// The members, by size.
    bytes: Box<[Spot]>,
    halves: Box<[Spot]>,
    words: Box<[Spot]>,
    longs: Box<[Spot]>,
    texts: Box<[Spot]>,
    doubles: Box<[(Spot, Option<i8>)]>,
    exacts: Box<[(Spot, Option<i8>)]>,
}

/// The place of a lane.
#[derive(Debug, Clone, Copy)]
struct Spot {
    lane: u8,
    at: u32,
    /// Its bit in the mask of its structure.
    bit: u64,
}

/// Spots being collected.
#[derive(Default)]
struct Spots {
    ints: [Vec<Spot>; 4],
    texts: Vec<Spot>,
    doubles: Vec<(Spot, Option<i8>)>,
    exacts: Vec<(Spot, Option<i8>)>,
}

impl Fixed {
    /// Makes the places; `None` if they depend on the message.
    pub(super) fn new(steps: &[Step], start: Start) -> Option<Self> {
        let alignments = || steps.iter().map(|step| step.write.alignment());
        let alignment = alignments().next()?;
        let front = match start {
            Start::At(front) => front,
            Start::Anywhere if alignments().all(|a| a <= alignment) => 0,
            Start::Anywhere => return None,
        };
        let small_behind_text = |pair: &[Step]| match pair {
            [a, b] => matches!(a.write, Write::Text) && b.write.alignment() < 4,
            _ => false,
        };
        if steps.windows(2).any(small_behind_text) {
            return None;
        }
        let room = |step: &Step| match &step.write {
            Write::AlwaysText(bytes) | Write::AlwaysOctets(bytes) => bytes.len() + 16,
            _ => 16,
        };
        let room = steps.iter().map(room).sum::<usize>() + front + 32;
        let mut out = CdrBuffer::with_capacity(room);
        (0..front).for_each(|_| out.u8(0));
        out.align(alignment);
        let front = out.len();
        let mut spots = Spots::default();
        for step in steps {
            out.with_pen(|pen| spots.add(step, front - HEADER, pen));
        }
        let (mut end, mut last_text) = (out.len() - front, None);
        if let Some(step) = steps.last().filter(|s| matches!(s.write, Write::Text)) {
            end -= 8;
            last_text = Some(step.lane);
        }
        out.u64(0);
        out.u64(0);
        let [bytes, halves, words, longs] = spots.ints.map(Vec::into_boxed_slice);
        Some(Self {
            alignment,
            image: out.written(front..out.len()).into(),
            end,
            last_text,
            bytes,
            halves,
            words,
            longs,
            texts: spots.texts.into(),
            doubles: spots.doubles.into(),
            exacts: spots.exacts.into(),
        })
    }

    /// Writes the members, if the row's strings permit it and the buffer has capacity, and returns
    /// the bits of the optional members that are present.
    #[inline(always)]
    pub(super) fn write(&self, row: RowRef<'_>, pen: &mut Pen<'_>) -> Option<u64> {
        if !self.has_short_texts(row) {
            return None;
        }
        pen.align(self.alignment);
        let room = pen.room(self.image.len())?;
        room.copy_from_slice(&self.image);
        let mut mask = put::<4>(&self.words, row, room);
        mask |= put::<1>(&self.bytes, row, room);
        mask |= put::<2>(&self.halves, row, room);
        mask |= put::<8>(&self.longs, row, room);
        for spot in &self.texts {
            let there = there(row, spot.lane);
            mask |= spot.bit & there;
            spot.put(short_text(lane(row, spot.lane, there)).unwrap_or(1), room);
        }
        for (spot, exponent) in &self.doubles {
            let there = there(row, spot.lane);
            mask |= spot.bit & there;
            let value = decimal(row, spot.lane, *exponent, there);
            spot.put(to_double(value).to_bits(), room);
        }
        for (spot, exponent) in &self.exacts {
            let there = there(row, spot.lane);
            mask |= spot.bit & there;
            let value = decimal(row, spot.lane, *exponent, there);
            spot.put(value.mantissa as u64, room);
            let behind = Spot {
                at: spot.at + 8,
                ..*spot
            };
            behind.put_part::<4>(i64::from(value.exponent) as u64, room);
        }
        pen.advance(self.end + self.last_text.map_or(0, |lane| text_len(row, lane)));
        Some(mask)
    }

    #[inline(always)]
    fn has_short_texts(&self, row: RowRef<'_>) -> bool {
        let value = |spot: &Spot| lane(row, spot.lane, there(row, spot.lane));
        let any = self.texts.iter().fold(0, |any, spot| any | value(spot));
        // Mostly of one character or none.
        any < 0x80
            || self
                .texts
                .iter()
                .all(|spot| short_text(value(spot)).is_some())
    }
}

impl Spots {
    /// Adds a member, and reserves its bytes.
    fn add(&mut self, step: &Step, front: usize, pen: &mut Pen<'_>) {
        let spot = |at: usize| Spot {
            lane: step.lane,
            at: (at - front) as u32,
            bit: step.bit,
        };
        match &step.write {
            Write::Int(size, _) => {
                pen.word(0, (*size).into());
                let spot = spot(pen.at() - usize::from(*size));
                self.ints[size.trailing_zeros() as usize % 4].push(spot);
            }
            Write::Text => {
                pen.word(0, 4);
                self.texts.push(spot(pen.at() - 4));
                pen.word(0, 4);
            }
            Write::Double(exponent) => {
                pen.word(0, 8);
                self.doubles.push((spot(pen.at() - 8), *exponent));
            }
            Write::Exact(exponent) => {
                pen.word(0, 8);
                self.exacts.push((spot(pen.at() - 8), *exponent));
                pen.word(0, 4);
            }
            constant => constant.constant(pen),
        }
    }
}

impl Spot {
    #[inline(always)]
    fn put(&self, value: u64, room: &mut [u8]) {
        self.put_part::<8>(value, room);
    }

    /// Writes the lowest bytes of a value.
    #[inline(always)]
    fn put_part<const SIZE: usize>(&self, value: u64, room: &mut [u8]) {
        let at = self.at as usize;
        if let (Some(room), Some(bytes)) = (
            room.get_mut(at..at + SIZE),
            value.to_le_bytes().first_chunk::<SIZE>(),
        ) {
            room.copy_from_slice(bytes);
        }
    }
}

/// Writes integers of one size; returns the bits of the optional ones that are present.
#[inline(always)]
fn put<const SIZE: usize>(spots: &[Spot], row: RowRef<'_>, room: &mut [u8]) -> u64 {
    let mut mask = 0;
    for spot in spots {
        let there = there(row, spot.lane);
        mask |= spot.bit & there;
        spot.put_part::<SIZE>(lane(row, spot.lane, there), room);
    }
    mask
}

/// Returns a string of up to three characters, as its lane holds it, with its length and its NUL.
/// `None` for a longer one, and for one with a NUL inside, which ends it.
#[inline(always)]
fn short_text(packed: u64) -> Option<u64> {
    if packed < 0x80 {
        return Some(packed << 32 | (1 + u64::from(packed != 0)));
    }
    let (chars, len) = RowRef::chars(packed as i32);
    let has_nul = chars.get(..len).is_none_or(|chars| chars.contains(&0));
    let word = u64::from(u32::from_le_bytes(chars));
    (len < 4 && !has_nul).then_some(word << 32 | (len as u64 + 1))
}

/// Returns how many bytes such a string takes.
#[inline(always)]
fn text_len(row: RowRef<'_>, at: u8) -> usize {
    let packed = lane(row, at, there(row, at));
    short_text(packed).map_or(5, |word| 4 + (word & 0xff) as usize)
}
