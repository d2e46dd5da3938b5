//! The plan of a segment: the properties of its lanes.

use super::columns::{Vector, fits};
use std::sync::atomic::{AtomicU64, Ordering};

/// The most lanes of a segment, with the gaps between its columns.
pub const MAX_LANES: usize = 32;

/// The most vectors of a segment.
pub(super) const MAX_GROUPS: usize = MAX_LANES / 16;

/// The operator of a lane (section 6.3 of FAST 1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneOperator {
    /// No operator. The value is always in the stream.
    None,
    /// A constant that may be absent. It has a presence bit, and is never in the stream.
    Constant,
    /// An initial value, if there is none in the stream.
    Default,
    /// The previous value, if there is none in the stream.
    Copy,
    /// One more than the previous value, if there is none in the stream.
    Increment,
    /// A difference to the previous value, which is always in the stream.
    Delta,
}

/// The type of the values of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneKind {
    /// An integer from 0 to this number.
    Unsigned(u64),
    /// An integer between these numbers.
    Signed(i64, i64),
    /// An ASCII string.
    Text,
}

/// The properties of a lane.
#[derive(Clone, Copy, Debug)]
pub struct Lane {
    /// The column of the lane.
    pub column: u32,
    /// The type of its values.
    pub kind: LaneKind,
    /// The operator of the lane.
    pub operator: LaneOperator,
    /// Whether the value can be absent.
    pub optional: bool,
    /// The initial value. A string is packed.
    pub initial: Option<u64>,
    /// Whether the lane is an exponent that can be absent. The next lane is then its mantissa,
    /// which is in the stream only if the exponent has a value.
    pub leads: bool,
}

/// The lanes of a segment, as masks and vectors.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Plan {
    /// A number above 0 that differs for every plan, but is the same for its copies.
    pub(super) identity: u64,
    /// The place of the columns: the index of the block, and the offset in its flags.
    pub(super) block: u32,
    pub(super) shift: u32,
    pub(super) groups: u32,
    /// The number of halves of vectors in use.
    pub(super) eights: u32,
    /// The number of vectors if all lanes are mandatory unsigned integers and strings that are
    /// copied, incremented, or have no operator; 0 otherwise.
    pub(super) plain: u32,
    /// The number of bits at the front of the presence map that belong to another segment.
    pub(super) skipped_bits: u32,
    /// The number of presence bits of the lanes.
    pub(super) bit_count: u32,
    /// The lanes of the segment. The other lanes of the window are not its own.
    pub(super) all: u64,
    pub(super) bit: u64,
    /// The lanes that are in the stream if their bit is set.
    pub(super) bit_stream: u64,
    /// The lanes that are always in the stream.
    pub(super) always: u64,
    pub(super) constant: u64,
    pub(super) default: u64,
    /// The lanes with copy or increment.
    pub(super) implied: u64,
    pub(super) increment: u64,
    pub(super) delta: u64,
    pub(super) optional: u64,
    pub(super) initial: u64,
    /// The lanes whose entities are signed: signed integers and deltas.
    pub(super) signed: u64,
    /// The optional integers, which are one more in the stream than their value.
    pub(super) nullable: u64,
    pub(super) text: u64,
    /// The exponents that decide whether their mantissas are there.
    pub(super) leads: u64,
    /// The lanes that use a previous value: copy, increment and delta.
    pub(super) kept: u64,
    /// The bits of a presence map that add entities, as its bytes are in the stream: each bit of
    /// the first mask adds one, and each bit of the second another one. `always_count` entities are
    /// there without them.
    pub(super) counted: [u64; 2],
    pub(super) always_count: u32,
    /// The bit with the number `always_count`.
    pub(super) always_bit: u64,
    /// The bits of a map that belong to no lane, in the same order.
    pub(super) excess: u64,
    /// The presence bits after the skipped ones, of a map whose bytes have their bits reversed.
    pub(super) turned_bits: u64,
    /// The lanes that have no value without their bit: constants, and defaults without an initial
    /// value.
    pub(super) without: u64,
    /// The lanes of the window that are not the segment's.
    pub(super) others: u64,
    pub(super) initials: [Vector; MAX_GROUPS],
    /// The smallest values, and the differences of the largest values to them.
    pub(super) low: [Vector; MAX_GROUPS],
    pub(super) range: [Vector; MAX_GROUPS],
    /// Some of the masks as lanes of all ones or zeros, for kernels without mask registers.
    pub(super) wide: Wide,
}

/// Masks as lanes.
#[derive(Clone, Debug)]
pub(super) struct Wide {
    pub(super) signed: [Vector; MAX_GROUPS],
    pub(super) nullable: [Vector; MAX_GROUPS],
    pub(super) delta: [Vector; MAX_GROUPS],
    pub(super) increment: [Vector; MAX_GROUPS],
    /// The lanes with a previous value, if all of them have it, and those of others.
    pub(super) previous: [Vector; MAX_GROUPS],
}

/// Returns a mask as lanes.
fn wide(mask: u64) -> [Vector; MAX_GROUPS] {
    let lane = |lane: usize| -((mask >> lane & 1) as i32);
    std::array::from_fn(|group| Vector(std::array::from_fn(|i| lane(16 * group + i))))
}

/// The limits within which sums cannot overflow unnoticed, which are those of [`fits`].
const LOW: i64 = -(1 << 30);
const HIGH_SIGNED: i64 = (1 << 30) - 1;
const HIGH: u64 = (1 << 31) - 1;

impl Plan {
    /// Returns the plan of these lanes. Returns `None` if their columns do not ascend or are too
    /// far apart, if an initial value does not fit, or if previous values decide whether a mantissa
    /// is there. If the segment begins with its presence map, the first `skipped_bits` (0 or 1)
    /// bits of the map belong to others.
    pub fn new(lanes: &[Lane], skipped_bits: u32) -> Option<Self> {
        let (first, last) = (lanes.first()?.column, lanes.last()?.column);
        let base = first & !15;
        let ascend = lanes.windows(2).all(|pair| pair[0].column < pair[1].column);
        let span = last.checked_sub(base)? + 1;
        let near = span as usize <= MAX_LANES && base % 64 + span <= 64;
        let paired = lanes
            .iter()
            .zip(lanes.iter().skip(1).map(Some).chain([None]))
            .all(|(lane, next)| {
                let known = matches!(lane.operator, LaneOperator::None | LaneOperator::Default);
                let follows = |next: &Lane| known && next.column == lane.column + 1;
                !lane.leads || next.is_some_and(follows)
            });
        // Sums with it must not overflow unnoticed either.
        let initial = |lane: &Lane| match (lane.initial, lane.kind) {
            (Some(initial), LaneKind::Signed(..)) => {
                (LOW..=HIGH_SIGNED).contains(&(initial as i64))
            }
            (Some(initial), LaneKind::Unsigned(_)) => initial <= HIGH,
            (initial, _) => initial.is_none_or(fits),
        };
        if !ascend || !near || !paired || !lanes.iter().all(initial) {
            return None;
        }
        let mut plan = Self::empty(base, span);
        let mut mantissa = false;
        for lane in lanes {
            plan.add((lane.column - base) as usize, lane, mantissa);
            mantissa = lane.leads;
        }
        plan.bit_count = plan.bit.count_ones();
        plan.kept = plan.implied | plan.delta;
        plan.without = plan.default & !plan.initial | plan.constant;
        plan.others = !plan.all;
        plan.skipped_bits = skipped_bits & 1;
        plan.turned_bits = 0xfefe_fefe_fefe_fefe & !(u64::from(plan.skipped_bits) << 1);
        plan.wide = Wide {
            signed: wide(plan.signed),
            nullable: wide(plan.nullable),
            delta: wide(plan.delta),
            increment: wide(plan.increment),
            previous: wide(plan.kept | plan.others),
        };
        let elaborate = plan.signed | plan.optional | plan.default | plan.constant | plan.leads;
        plan.plain = if elaborate == 0 { plan.groups } else { 0 };
        plan.count();
        Some(plan)
    }

    fn empty(base: u32, span: u32) -> Self {
        let zero = [Vector::default(); MAX_GROUPS];
        static PLANS: AtomicU64 = AtomicU64::new(1);
        Self {
            identity: PLANS.fetch_add(1, Ordering::Relaxed),
            block: base / 64,
            shift: base % 64,
            groups: span.div_ceil(16),
            eights: span.div_ceil(8),
            plain: 0,
            skipped_bits: 0,
            bit_count: 0,
            all: 0,
            bit: 0,
            bit_stream: 0,
            always: 0,
            constant: 0,
            default: 0,
            implied: 0,
            increment: 0,
            delta: 0,
            optional: 0,
            initial: 0,
            signed: 0,
            nullable: 0,
            text: 0,
            leads: 0,
            kept: 0,
            counted: [0; 2],
            always_count: 0,
            always_bit: 0,
            excess: 0,
            turned_bits: 0,
            without: 0,
            others: 0,
            initials: zero,
            low: zero,
            // Whatever is in other people's columns is in range.
            range: [Vector([-1; 16]); MAX_GROUPS],
            wide: Wide {
                signed: zero,
                nullable: zero,
                delta: zero,
                increment: zero,
                previous: zero,
            },
        }
    }

    /// Computes the masks that count entities.
    fn count(&mut self) {
        self.always_count = self.always.count_ones();
        let mut number = self.skipped_bits;
        let place = |number: u32| match number {
            0..56 => 1_u64 << (8 * (number / 7) + 6 - number % 7),
            _ => 0,
        };
        for lane in 0..MAX_LANES {
            let bit = 1_u64 << lane;
            let leads = self.leads & bit != 0;
            if self.bit & bit != 0 {
                if self.bit_stream & bit != 0 {
                    self.counted[0] |= place(number);
                }
                // With an initial value the mantissa is always there.
                if leads && self.initial & bit == 0 {
                    self.counted[1] |= place(number);
                }
                number += 1;
            }
            if leads && (self.bit & bit == 0 || self.initial & bit != 0) {
                self.always_count += 1;
            }
        }
        self.always_bit = 1 << self.always_count;
        self.excess = (number..56).fold(0, |excess, number| excess | place(number));
    }

    fn add(&mut self, index: usize, lane: &Lane, is_mantissa: bool) {
        let bit = 1_u64 << index;
        let set = |mask: &mut u64, when: bool| *mask |= if when { bit } else { 0 };
        let operator = lane.operator;
        let implied = matches!(operator, LaneOperator::Copy | LaneOperator::Increment);
        let in_stream = implied || operator == LaneOperator::Default;
        let always = matches!(operator, LaneOperator::None | LaneOperator::Delta);
        let is_text = lane.kind == LaneKind::Text;
        self.all |= bit;
        set(
            &mut self.bit,
            in_stream || operator == LaneOperator::Constant,
        );
        set(&mut self.bit_stream, in_stream);
        set(&mut self.always, always && !is_mantissa);
        set(&mut self.constant, operator == LaneOperator::Constant);
        set(&mut self.default, operator == LaneOperator::Default);
        set(&mut self.implied, implied);
        set(&mut self.increment, operator == LaneOperator::Increment);
        set(&mut self.delta, operator == LaneOperator::Delta);
        set(&mut self.optional, lane.optional);
        set(&mut self.initial, lane.initial.is_some());
        let signed = matches!(lane.kind, LaneKind::Signed(..));
        set(&mut self.signed, signed || operator == LaneOperator::Delta);
        set(&mut self.nullable, lane.optional && !is_text);
        set(&mut self.text, is_text);
        set(&mut self.leads, lane.leads);
        let (low, high) = match lane.kind {
            LaneKind::Unsigned(max) => (0, max.min(HIGH)),
            LaneKind::Signed(min, max) => (min.max(LOW), max.min(HIGH_SIGNED) as u64),
            LaneKind::Text => (0, (1 << 28) - 1),
        };
        let (group, at) = (index / 16, index % 16);
        self.initials[group].0[at] = lane.initial.unwrap_or(0) as i32;
        self.low[group].0[at] = low as i32;
        self.range[group].0[at] = high.wrapping_sub(low as u64) as i32;
    }

    const fn column(&self) -> u32 {
        64 * self.block + self.shift
    }

    /// Returns the index of the first vector in its block.
    #[inline(always)]
    pub(super) const fn first(&self) -> usize {
        (self.shift / 16) as usize
    }

    /// Returns the lane of a column of the segment.
    pub const fn lane_of(&self, column: u32) -> u8 {
        (column - self.column()) as u8
    }

    /// Returns the least and the greatest value that a decoder may leave in this lane, or `None` if
    /// the lane is not the segment's.
    #[inline]
    pub fn limits(&self, lane: usize) -> Option<(i64, i64)> {
        let of = |vectors: &[Vector]| vectors.get(lane / 16).map(|vector| vector.0[lane % 16]);
        let (low, range) = (i64::from(of(&self.low)?), of(&self.range)? as u32);
        if self.all >> lane & 1 == 0 {
            return None;
        }
        Some(match self.constant >> lane & 1 {
            0 => (low, low + i64::from(range)),
            _ => (of(&self.initials)?.into(), of(&self.initials)?.into()),
        })
    }

    /// Returns whether a decoder may leave a row in which these lanes have a value.
    pub const fn may_hold(&self, present: u64) -> bool {
        let absent = self.all & !present;
        absent & !(self.optional | self.leads << 1) == 0
    }

    /// Returns the lanes that hold strings.
    #[inline]
    pub const fn text(&self) -> u64 {
        self.text
    }

    /// Returns the number of presence bits of the segment.
    #[inline]
    pub const fn bits(&self) -> u32 {
        self.bit_count
    }
}
