//! Bit groups of FAST 1.2.

use super::output::{Output, PresenceWriter};
use super::run::{Level, Run, Written};
use crate::error::ErrorCode;
use crate::node::Content;
use crate::previous::PreviousValues;
use crate::program::{BitsOp, IntOp, Op};

impl<'a, P: PreviousValues> Run<'a, P> {
    /// Encodes a bit group with its operator.
    #[inline(never)]
    pub(super) fn bits(
        &mut self,
        op: &'a BitsOp,
        level: &mut Level<'a>,
        map: &mut PresenceWriter,
    ) -> Written {
        let id = op.whole.field;
        let found = self.find(level, id);
        let value =
            match found.map(|(index, node)| (index, node.end(index), self.message.content(node))) {
                Some((index, end, Content::Group)) => {
                    let inside = Level::new(self.message, index + 1, end);
                    Some(
                        self.members(op, inside)
                            .map_err(|error| error.in_field(id))?,
                    )
                }
                None | Some((_, _, Content::Absent)) => None,
                Some(_) => return self.fail(ErrorCode::D1, id),
            };
        let write = |run: &mut Self, whole: &IntOp, value: Option<u64>| {
            run.out.bits(value, op.width, whole.optional);
        };
        self.int_with(&op.whole, value, map, write)
    }

    /// Returns the members side by side in one number, the first one topmost.
    fn members(&mut self, op: &BitsOp, mut level: Level<'a>) -> Written<u64> {
        let members = self.program.ops(op.members);
        self.count_fields(members.len() as u32)?;
        let mut value = 0_u64;
        for member in members {
            let Op::Int(member) = member else { continue };
            let width = self.program.field(member.field).bits().unwrap_or_default();
            let entity = match self.content(&mut level, member.field) {
                Content::Int(bits) => {
                    let number = member.ty.widen(bits);
                    number + i128::from(member.optional && number >= 0)
                }
                Content::Absent if member.optional => 0,
                Content::Absent => return self.fail(ErrorCode::D6, member.field),
                _ => return self.fail(ErrorCode::D1, member.field),
            };
            let (low, high) = match member.ty.is_signed() {
                true => (-(1_i128 << (width - 1)), 1_i128 << (width - 1)),
                false => (0, 1_i128 << width),
            };
            if entity < low || entity >= high {
                return self.fail(ErrorCode::R4, member.field);
            }
            let bits = (entity as u64) << (64 - width) >> (64 - width);
            value = value.checked_shl(width).unwrap_or_default() | bits;
        }
        self.check_all_used(op.members, level)?;
        Ok(value)
    }
}

impl Output {
    /// Appends a group of `width` bits, the topmost first, with zeros after them to whole bytes. A
    /// nullable group is one more, as a number.
    fn bits(&mut self, value: Option<u64>, width: u32, nullable: bool) {
        let Some(value) = value else {
            return self.null();
        };
        let len = width.div_ceil(7);
        let entity = (u128::from(value) << (7 * len - width)) + u128::from(nullable);
        let len = len + u32::from(entity >> (7 * len) != 0);
        for group in (0..len).rev() {
            let stop = if group == 0 { 0x80 } else { 0 };
            self.push((entity >> (7 * group)) as u8 & 0x7f | stop);
        }
    }
}
