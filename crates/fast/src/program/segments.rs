//! Runs of integer fields: what a vector back end does at once.

use super::{IntOp, Op};
use crate::template::OperatorKind;

/// A maximal run of integer ops in one body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Index of the first op in the program's op table.
    pub first: u32,
    /// One for each op of the run, in order.
    pub lanes: Vec<Lane>,
}

/// One integer of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lane {
    /// The op.
    pub op: IntOp,
    /// True if a presence bit decides whether it stands in the stream; otherwise it always
    /// stands there, or (constants) never.
    pub has_bit: bool,
    /// True if it can stand in the stream at all.
    pub in_stream: bool,
}

/// Finds the runs in one body, whose first op has the index `start`.
pub(super) fn find(start: u32, ops: &[Op]) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    let mut open = false;
    for (index, op) in ops.iter().enumerate() {
        let Op::Int(op) = op else {
            open = false;
            continue;
        };
        let lane = Lane {
            op: *op,
            has_bit: op.operator.takes_bit(op.optional),
            in_stream: op.operator != OperatorKind::Constant,
        };
        match segments.last_mut() {
            Some(segment) if open => segment.lanes.push(lane),
            _ => segments.push(Segment {
                first: start + index as u32,
                lanes: vec![lane],
            }),
        }
        open = true;
    }
    segments
}
