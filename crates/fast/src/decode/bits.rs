//! Bit groups of FAST 1.2: several small fields in one entity.

use super::input::{Input, Read};
use super::presence::PresenceMap;
use super::run::Run;
use crate::bits::visit_group;
use crate::error::{Bound, CodecError, ErrorCode};
use crate::previous::PreviousValues;
use crate::program::{BitsOp, IntOp};
use crate::visitor::Visitor;

impl<'a, P: PreviousValues> Run<'a, P> {
    /// Decodes a bit group with its operator, which works on all bits together.
    pub(super) fn bits<V: Visitor>(
        &mut self,
        op: &'a BitsOp,
        map: &mut PresenceMap<'a>,
        visitor: &mut V,
    ) -> Read<()> {
        let start = self.input.at;
        let whole = &op.whole;
        let read = |run: &mut Self, whole: &IntOp| {
            run.input
                .bits(op.width, whole.optional)
                .map_err(|error| error.in_field(whole.field))
        };
        let value = if V::TRACE {
            let has_bit = whole.operator.takes_bit(whole.optional);
            let previous = (whole.slot, 0, Some(whole.ty));
            let before = self.trace_before(whole.operator, previous, has_bit, map);
            let value = self.int_with(whole, map, read)?;
            let integer = value.map(i128::from);
            self.trace_after(whole.field, "", whole.operator, (before, integer), visitor);
            value
        } else {
            self.int_with(whole, map, read)?
        };
        let field = self.program.field(whole.field);
        let Some(value) = value else {
            visitor.absent(field);
            return Ok(());
        };
        if u128::from(value) >> op.width != 0 {
            return Err(CodecError::new(ErrorCode::R4, start).in_field(whole.field));
        }
        let members = op.members.end - op.members.start;
        let Some(left) = self.left.fields.checked_sub(members) else {
            return self.beyond(Bound::Fields, whole.field);
        };
        self.left.fields = left;
        visit_group(self.program, op, value, visitor);
        Ok(())
    }
}

impl Input<'_> {
    /// Reads a group of `width` bits. The first bit is the topmost data bit of the first byte, and
    /// the bits that are left of the last byte are zero. A nullable group is one more, as a number
    /// of whole bytes.
    fn bits(&mut self, width: u32, nullable: bool) -> Read<Option<u64>> {
        let start = self.at;
        let bytes = self.entity()?;
        if nullable && bytes == [0x80] {
            return Ok(None);
        }
        let len = width.div_ceil(7) as usize;
        let d2 = CodecError::new(ErrorCode::D2, start);
        // Eleven bytes at most: 64 bits, and the one more of NULL, which needs a byte of its own
        // only where all bits of the others are set.
        let one_more = nullable && bytes.len() == len + 1 && bytes[0] != 0;
        if bytes.len() != len && !one_more {
            return Err(d2);
        }
        let entity = bytes
            .iter()
            .fold(0_u128, |value, byte| value << 7 | u128::from(byte & 0x7f));
        let entity = entity.checked_sub(u128::from(nullable)).ok_or(d2)?;
        let padding = 7 * len as u32 - width;
        if entity >> padding >> width != 0 {
            return Err(d2);
        }
        if self.strict() && entity & ((1 << padding) - 1) != 0 {
            return Err(CodecError::new(ErrorCode::R8, start));
        }
        Ok(Some((entity >> padding) as u64))
    }
}
