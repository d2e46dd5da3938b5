//! The shortest ways through what is most frequent, for those who can go another way.

use super::{Columns, Decoded, LaneKernel, Plan, Row, Shapes};
#[cfg(target_arch = "x86_64")]
use super::{avx512_entries, avx512_plain};
use crate::kernel::Kernel;

/// Ways of a kernel that leave everything out of the ordinary to [`LaneKernel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortcuts(());

/// What stands in front of the segment of a message.
#[derive(Clone, Copy, Debug)]
pub struct MapFront {
    /// The presence map as it stands in the stream, the first byte lowest.
    pub map: u64,
    /// Whether a template identifier of one byte stands between it and the first entity.
    pub has_id: bool,
}

impl LaneKernel {
    /// Its shortcuts, if it has any.
    pub fn shortcuts(self) -> Option<Shortcuts> {
        (self.kernel == Kernel::Avx512).then_some(Shortcuts(()))
    }
}

impl Shortcuts {
    /// Decodes the only segment of a message, which begins with the first of these bytes: its
    /// values to `row`, previous values updated; returns the length. 0, with `columns` unchanged,
    /// where [`LaneKernel::decode`] must do it; presence bits that are left are such a case.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub fn decode(
        self,
        plan: &Plan,
        columns: &mut Columns,
        bytes: &[u8],
        front: MapFront,
        row: &mut Row,
    ) -> usize {
        match plan.plain {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: only a kernel that has been found to be available has shortcuts.
            1 => unsafe { avx512_plain::decode::<1>(plan, columns, bytes, front, row) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            2 => unsafe { avx512_plain::decode::<2>(plan, columns, bytes, front, row) },
            _ => 0,
        }
    }

    /// Decodes entries as [`LaneKernel::entries`] does, but none by itself whose shape is not
    /// known.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub fn entries(
        self,
        plan: &Plan,
        columns: &mut Columns,
        shapes: &Shapes,
        (bytes, at): (&[u8], usize),
        rows: &mut [Row],
    ) -> Decoded {
        let (at, counts) = match (shapes.slots(), plan.groups) {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: only a kernel that has been found to be available has shortcuts.
            (Some(shapes), 1) => unsafe {
                avx512_entries::decode::<1>(plan, columns, shapes, bytes, at, rows)
            },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            (Some(shapes), _) => unsafe {
                avx512_entries::decode::<2>(plan, columns, shapes, bytes, at, rows)
            },
            _ => (at, 0),
        };
        Decoded {
            at,
            count: counts as u32 as usize,
            texts: (counts >> 32) as u32,
        }
    }
}
