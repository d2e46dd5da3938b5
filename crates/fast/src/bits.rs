//! Bit groups of FAST 1.2: their members, side by side in one number.

use crate::program::{BitsOp, Op, Program};
use crate::visitor::Visitor;

/// Calls a visitor for a bit group with this value. The first member is in the topmost bits.
pub(crate) fn visit_group<V: Visitor>(program: &Program, op: &BitsOp, value: u64, visitor: &mut V) {
    let group = program.field(op.whole.field);
    visitor.begin_group(group);
    let mut left = op.width;
    for member in program.ops(op.members) {
        let Op::Int(member) = member else { continue };
        let field = program.field(member.field);
        let width = field.bits().unwrap_or_default();
        left -= width;
        let unused = 64 - width;
        let bits = (value >> left) << unused;
        let bits = match member.optional {
            // As everywhere, NULL is 0, and numbers that are not negative are one more.
            true if bits == 0 => {
                visitor.absent(field);
                continue;
            }
            true if !member.ty.is_signed() || bits >> 63 == 0 => bits - (1 << unused),
            _ => bits,
        };
        if member.ty.is_signed() {
            visitor.signed(field, (bits as i64) >> unused);
        } else {
            visitor.unsigned(field, bits >> unused);
        }
    }
    visitor.end_group(group);
}
