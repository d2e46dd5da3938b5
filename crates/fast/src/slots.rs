//! Previous values in one array by slot, for the fused ops. Each has 64 bits and a stamp of
//! generation and state. A reset begins a new generation and touches no value.

use crate::previous::PreviousValues;
use crate::program::fused::Int;
use crate::program::{Program, Slot};
use crate::state::State;
use crate::text_ref::{SHORT, TextRef};
use crate::value::{Decimal, TextType};

/// The value of [`Value::extra`] for a string that is kept elsewhere.
const LONG: u8 = u8::MAX;

/// The first generation, and the distance from one to the next.
const FIRST: u32 = 1 << 8;

/// One previous value.
#[derive(Debug, Clone, Copy, Default)]
pub struct Value {
    /// An integer's pattern, a mantissa, or the bytes of a short string, the first one lowest.
    pub(crate) bits: u64,
    /// The generation, with the state in the lowest byte.
    pub(crate) stamp: u32,
    /// The exponent of a decimal, or the length of a string.
    extra: u8,
}

impl Value {
    /// Returns the length of a string that is kept here, or `None` for one that is kept elsewhere.
    #[inline(always)]
    pub(crate) const fn short_len(&self) -> Option<usize> {
        match self.extra {
            LONG => None,
            len => Some(len as usize),
        }
    }

    /// Returns true if the value was assigned with this stamp.
    #[inline(always)]
    pub(crate) const fn is_of(&self, stamp: u32) -> bool {
        self.stamp == stamp
    }

    /// Returns true if the value is of another generation than this stamp, and so undefined.
    #[inline(always)]
    pub(crate) const fn is_outdated(&self, stamp: u32) -> bool {
        (self.stamp ^ stamp) >= FIRST
    }

    /// Returns true if the value is empty, and of the generation of this stamp.
    #[inline(always)]
    pub(crate) const fn is_empty(&self, stamp: u32) -> bool {
        self.stamp == empty(stamp)
    }

    /// Makes the value empty, in the generation of this stamp.
    #[inline(always)]
    pub(crate) const fn set_empty(&mut self, stamp: u32) {
        self.stamp = empty(stamp);
    }

    /// Returns true if the string kept here is the one of `len` bytes in `bits`.
    #[inline(always)]
    pub(crate) const fn is_short(&self, bits: u64, len: usize) -> bool {
        self.bits == bits && self.extra == len as u8
    }

    /// Returns the length of a string that is kept here, is not empty and does not begin with NUL.
    #[inline(always)]
    pub(crate) const fn plain_len(&self) -> Option<usize> {
        match self.extra {
            len @ 1..=8 if self.bits as u8 != 0 => Some(len as usize),
            _ => None,
        }
    }

    /// Assigns a string of `len` bytes, at most eight.
    #[inline(always)]
    pub(crate) const fn set_short(&mut self, stamp: u32, bits: u64, len: usize) {
        *self = Self {
            bits,
            stamp,
            extra: len as u8,
        };
    }
}

/// Returns the stamp of an empty value of the same generation.
const fn empty(stamp: u32) -> u32 {
    stamp & !(FIRST - 1) | State::EMPTY.number() as u32
}

/// The previous values of one stream. They allocate only where a byte string grows beyond all its
/// predecessors.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slots {
    values: Vec<Value>,
    rest: Rest,
}

/// All of the slots but the values, which generated code keeps as an array.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rest {
    /// Strings longer than eight bytes, by their own slots.
    texts: Vec<Vec<u8>>,
    template: Option<u32>,
    /// The current generation, which is above the state in a stamp and never 0. Values of another
    /// generation are undefined.
    generation: u32,
    /// The state at [`PreviousValues::begin`], to undo all changes since, if that is asked for.
    saved: Saved,
    is_noting: bool,
}

#[derive(Debug, Clone, Default)]
struct Saved {
    values: Vec<Value>,
    template: Option<u32>,
    generation: u32,
    /// The texts that were overwritten, in their order: their slots and their lengths in `bytes`.
    texts: Vec<(u32, u32)>,
    bytes: Vec<u8>,
}

impl Slots {
    pub(crate) fn new(program: &Program) -> Self {
        Self {
            values: vec![Value::default(); program.columns()],
            rest: Rest {
                texts: vec![Vec::new(); program.text_slots()],
                generation: FIRST,
                ..Rest::default()
            },
        }
    }

    /// Returns the stamp of a value of this state.
    #[inline(always)]
    pub(crate) const fn stamp(&self, state: State) -> u32 {
        self.rest.stamp(state)
    }

    /// Returns true if a value with this stamp is undefined.
    #[inline(always)]
    pub(crate) const fn is_outdated(&self, stamp: u32) -> bool {
        self.rest.is_outdated(stamp)
    }

    #[inline(always)]
    pub(crate) fn value(&self, slot: u32) -> Option<&Value> {
        self.values.get(slot as usize)
    }

    #[inline(always)]
    pub(crate) fn value_mut(&mut self, slot: u32) -> Option<&mut Value> {
        self.values.get_mut(slot as usize)
    }

    /// Returns a string that is kept outside its slot.
    pub(crate) fn long_text(&self, text_slot: u32) -> Option<&[u8]> {
        self.rest.long_text(text_slot)
    }
}

impl Rest {
    /// Returns the stamp of a value of this state.
    #[inline(always)]
    pub(crate) const fn stamp(&self, state: State) -> u32 {
        self.generation | state.number() as u32
    }

    /// Returns true if a value with this stamp is undefined.
    #[inline(always)]
    pub(crate) const fn is_outdated(&self, stamp: u32) -> bool {
        stamp & !(FIRST - 1) != self.generation
    }

    /// Returns a string that is kept outside its slot.
    pub(crate) fn long_text(&self, text_slot: u32) -> Option<&[u8]> {
        self.texts.get(text_slot as usize).map(Vec::as_slice)
    }

    fn keep_text(&mut self, text_slot: u32) {
        let old = &self.texts[text_slot as usize];
        self.saved.texts.push((text_slot, old.len() as u32));
        self.saved.bytes.extend_from_slice(old);
    }
}

/// The previous values of one stream, borrowed in two parts.
pub(crate) struct SlotsMut<'s> {
    pub(crate) values: &'s mut [Value],
    pub(crate) rest: &'s mut Rest,
}

impl<'s> SlotsMut<'s> {
    #[inline(always)]
    pub(crate) const fn new(values: &'s mut [Value], rest: &'s mut Rest) -> Self {
        Self { values, rest }
    }

    /// Starts again with the first generation.
    #[cold]
    fn restamp(&mut self) {
        self.rest.generation = FIRST;
        for value in &mut *self.values {
            value.stamp = 0;
        }
    }

    #[inline(always)]
    fn set(&mut self, slot: Slot, state: State, bits: u64, extra: u8) {
        let stamp = self.rest.stamp(state);
        if let Some(value) = self.values.get_mut(slot.index()) {
            *value = Value { bits, stamp, extra };
        }
    }
}

/// Previous values in two parts, owned or borrowed.
pub(crate) trait Split {
    fn parts(&self) -> (&[Value], &Rest);

    fn split(&mut self) -> SlotsMut<'_>;

    /// Returns the previous value of an op, and the stamp that the op assigns.
    #[inline(always)]
    fn of(&mut self, int: &Int) -> Option<(&mut Value, u32)> {
        let SlotsMut { values, rest } = self.split();
        Some((values.get_mut(int.slot as usize)?, rest.stamp(int.state)))
    }

    /// Restores a previous value to what it was before, if there was one.
    #[inline(always)]
    fn restore(&mut self, int: &Int, before: Option<Value>) {
        if let (Some((slot, _)), Some(before)) = (self.of(int), before) {
            *slot = before;
        }
    }
}

impl Split for Slots {
    #[inline(always)]
    fn parts(&self) -> (&[Value], &Rest) {
        (&self.values, &self.rest)
    }

    #[inline(always)]
    fn split(&mut self) -> SlotsMut<'_> {
        SlotsMut {
            values: &mut self.values,
            rest: &mut self.rest,
        }
    }
}

impl Split for SlotsMut<'_> {
    #[inline(always)]
    fn parts(&self) -> (&[Value], &Rest) {
        (self.values, self.rest)
    }

    #[inline(always)]
    fn split(&mut self) -> SlotsMut<'_> {
        SlotsMut {
            values: self.values,
            rest: self.rest,
        }
    }
}

impl<S: Split> PreviousValues for S {
    fn template(&self) -> Option<u32> {
        self.parts().1.template
    }

    fn set_template(&mut self, template: Option<u32>) {
        self.split().rest.template = template;
    }

    #[inline(always)]
    fn reset(&mut self) {
        let mut all = self.split();
        match all.rest.generation.checked_add(FIRST) {
            Some(next) => all.rest.generation = next,
            None => all.restamp(),
        }
    }

    fn begin(&mut self) {
        let SlotsMut { values, rest } = self.split();
        rest.is_noting = true;
        let saved = &mut rest.saved;
        values.clone_into(&mut saved.values);
        (saved.template, saved.generation) = (rest.template, rest.generation);
        saved.texts.clear();
        saved.bytes.clear();
    }

    fn commit(&mut self) {
        self.split().rest.is_noting = false;
    }

    fn roll_back(&mut self) {
        let SlotsMut { values, rest } = self.split();
        rest.is_noting = false;
        let saved = &rest.saved;
        values.copy_from_slice(&saved.values);
        (rest.template, rest.generation) = (saved.template, saved.generation);
        // In reverse: the copy that was made first is the text before all changes.
        let mut bytes = &saved.bytes[..];
        for &(slot, len) in saved.texts.iter().rev() {
            let (before, old) = bytes.split_at(bytes.len() - len as usize);
            let text = &mut rest.texts[slot as usize];
            text.clear();
            text.extend_from_slice(old);
            bytes = before;
        }
    }

    #[inline(always)]
    fn state(&self, slot: Slot) -> State {
        let (values, rest) = self.parts();
        let stamp = values[slot.index()].stamp;
        match rest.is_outdated(stamp) {
            true => State::UNDEFINED,
            false => State::from_number(stamp as u8),
        }
    }

    #[inline(always)]
    fn int(&self, slot: Slot) -> u64 {
        self.parts().0[slot.index()].bits
    }

    fn decimal(&self, slot: Slot) -> Decimal {
        let value = self.parts().0[slot.index()];
        Decimal {
            mantissa: value.bits as i64,
            exponent: value.extra as i8,
        }
    }

    fn text(&self, slot: Slot, text_slot: u32) -> TextRef<'_> {
        let (values, rest) = self.parts();
        let value = &values[slot.index()];
        match value.short_len() {
            Some(len) => TextRef::short(value.bits, len),
            None => TextRef::long(&rest.texts[text_slot as usize]),
        }
    }

    #[inline(always)]
    fn set_empty(&mut self, slot: Slot) {
        self.split().set(slot, State::EMPTY, 0, 0);
    }

    #[inline(always)]
    fn set_int(&mut self, slot: Slot, state: State, value: u64) {
        self.split().set(slot, state, value, 0);
    }

    fn set_decimal(&mut self, slot: Slot, value: Decimal) {
        let (bits, extra) = (value.mantissa as u64, value.exponent as u8);
        self.split().set(slot, State::DECIMAL, bits, extra);
    }

    fn set_text(&mut self, slot: Slot, text_slot: u32, ty: TextType, value: &[u8]) {
        let mut all = self.split();
        if value.len() <= SHORT {
            let mut bits = [0; SHORT];
            bits[..value.len()].copy_from_slice(value);
            let len = value.len() as u8;
            return all.set(slot, State::text(ty), u64::from_le_bytes(bits), len);
        }
        if all.rest.is_noting {
            all.rest.keep_text(text_slot);
        }
        let text = &mut all.rest.texts[text_slot as usize];
        text.clear();
        text.extend_from_slice(value);
        all.set(slot, State::text(ty), 0, LONG);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::IntType;

    const INT: State = State::int(IntType::UInt32);

    fn slots() -> Slots {
        let xml = "<template name='T' id='1'><uInt32 name='A'><copy/></uInt32></template>";
        Slots::new(&Program::parse(xml).unwrap())
    }

    #[test]
    fn generations_that_begin_anew_leave_nothing_assigned() {
        let mut slots = slots();
        slots.set_int(Slot(0), INT, 7);
        let first = slots.values[0].stamp;
        slots.rest.generation = !(FIRST - 1);
        slots.reset();
        assert_eq!(
            slots.stamp(INT),
            first,
            "the stamps of the first generation"
        );
        assert_eq!(slots.state(Slot(0)), State::UNDEFINED);
        slots.set_int(Slot(0), INT, 8);
        assert_eq!((slots.state(Slot(0)), slots.int(Slot(0))), (INT, 8));
    }

    #[test]
    fn what_a_reset_at_the_last_generation_cleared_is_restored() {
        let mut slots = slots();
        slots.rest.generation = !(FIRST - 1);
        slots.set_int(Slot(0), INT, 7);
        slots.begin();
        slots.reset();
        slots.set_int(Slot(0), INT, 8);
        slots.roll_back();
        assert_eq!((slots.state(Slot(0)), slots.int(Slot(0))), (INT, 7));
    }
}
