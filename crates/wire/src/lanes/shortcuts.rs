//! The shortest ways through what is most frequent, for those who can go another way.

use super::{Columns, Decoded, Front, LaneKernel, Plan, Row, Shapes};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx2_short, avx512_entries, avx512_plain};
use crate::Kernel;

/// What stands in front of the segment of a message.
#[derive(Clone, Copy, Debug)]
pub struct MapFront {
    /// The presence map as it stands in the stream, the first byte lowest.
    pub map: u64,
    /// Whether a template identifier of one byte stands between it and the first entity.
    pub has_id: bool,
}

impl From<MapFront> for Front {
    #[inline(always)]
    fn from(front: MapFront) -> Self {
        let map_len = 8 - (front.map.leading_zeros() / 8) as u8;
        Self {
            len: map_len + u8::from(front.has_id),
            map_len,
        }
    }
}

impl LaneKernel {
    /// Decodes the only segment of a message, which begins with the first of these bytes: its
    /// values to `row`, previous values updated; returns the length. 0, with `columns` unchanged,
    /// where [`Self::decode`] must do it; presence bits that are left are such a case.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub fn shortcut(
        self,
        plan: &Plan,
        columns: &mut Columns,
        bytes: &[u8],
        front: MapFront,
        row: &mut Row,
    ) -> usize {
        match (self.kernel, plan.plain) {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `new` has found the kernel to be available.
            (Kernel::Avx512, 1) => unsafe {
                avx512_plain::decode::<1>(plan, columns, bytes, front, row)
            },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            (Kernel::Avx512, 2) => unsafe {
                avx512_plain::decode::<2>(plan, columns, bytes, front, row)
            },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            (Kernel::Avx2, _) if front.map & plan.excess == 0 => unsafe {
                avx2::decode::<false>(plan, columns, bytes, 0, front.into(), row)
            },
            _ => 0,
        }
    }

    /// Decodes entries as [`Self::entries`] does, but with AVX-512 none of which the shape is not
    /// known.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub fn known_entries(
        self,
        plan: &Plan,
        columns: &mut Columns,
        shapes: &Shapes,
        (bytes, at): (&[u8], usize),
        rows: &mut [Row],
    ) -> Decoded {
        let (at, counts) = match (shapes.slots(), self.kernel, plan.groups) {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: only a kernel that has been found to be available makes room for shapes.
            (Some(shapes), _, 1) => unsafe {
                avx512_entries::decode::<1>(plan, columns, shapes, bytes, at, rows)
            },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            (Some(shapes), ..) => unsafe {
                avx512_entries::decode::<2>(plan, columns, shapes, bytes, at, rows)
            },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `new` has found the kernel to be available.
            (None, Kernel::Avx2, _) => unsafe {
                avx2_short::entries(plan, columns, bytes, at, rows)
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
