//! Segments of FAST messages in lanes. All integers, short strings and decimals of a run of fields
//! are decoded or encoded at once, with their operators as masked vector operations.
//!
//! A [`Plan`] describes the lanes of a segment. It is computed once, from the template. Lane `i` of
//! a segment is column `i` of a window of [`Columns`], which hold the previous values. A field
//! without a dictionary has a column too, so that fields and columns run in parallel. Bit `i` of a
//! mask is that of lane `i`.
//!
//! The vector kernels handle only regular segments. In any other case (an overlong integer, one of
//! more than 31 bits or out of its range, a value that must not be absent, the end of the bytes)
//! they give up with everything unchanged. The caller's scalar code then handles the segment and
//! finds the fault.

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2_encode;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx512;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx512_encode;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx512_entries;
mod columns;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod encode;
#[cfg(target_arch = "x86_64")]
mod masks;
mod plan;
#[cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "only a kernel looks for shapes")
)]
mod shapes;

pub use columns::{Columns, fits};
pub use plan::{Lane, LaneKind, LaneOperator, MAX_LANES, Plan};
pub use shapes::Shapes;

use crate::Kernel;

/// The most characters of a string in a lane.
pub const MAX_CHARS: usize = 4;

/// The room that encoding a segment needs, however short it is, in bytes.
pub const MAX_ENCODED: usize = 8 + 4 * MAX_LANES + 64;

/// A vector kernel that this processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneKernel {
    kernel: Kernel,
}

/// The bytes before the segment of a message.
#[derive(Clone, Copy, Debug)]
pub struct Front {
    /// The presence map as it is in the stream, the first byte lowest.
    pub map: u64,
    /// Whether a template identifier of one byte is between the map and the first entity.
    pub has_id: bool,
}

/// Values by lane. Room after them allows a few to be read from any lane on.
pub type Values = [i32; MAX_LANES + 8];

/// The values of a segment.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Row {
    /// The values by lane. Those of other lanes are undefined. Strings are packed ([`pack`]).
    pub values: Values,
    /// The lanes that have a value. For a decimal only the exponent's lane counts.
    pub present: u64,
}

impl Default for Row {
    fn default() -> Self {
        Self {
            values: [0; _],
            present: 0,
        }
    }
}

/// The result of [`LaneKernel::entries`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The index after the last row.
    pub at: usize,
    /// The number of rows.
    pub count: usize,
    /// The number of strings in the rows.
    pub texts: u32,
}

impl LaneKernel {
    /// Returns the kernel, or `None` if it has no lanes or this processor lacks it.
    pub fn new(kernel: Kernel) -> Option<Self> {
        let is_available = match kernel {
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => {
                kernel.is_available() && avx512::is_available() && avx2::is_available()
            }
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => avx2::is_available(),
            _ => false,
        };
        is_available.then_some(Self { kernel })
    }

    /// Returns the kernels that this processor has, the fastest first.
    pub fn all() -> impl Iterator<Item = Self> {
        Kernel::ALL.into_iter().rev().filter_map(Self::new)
    }

    /// Returns the fastest kernel that this processor has.
    pub fn best() -> Option<Self> {
        Self::all().next()
    }

    /// Decodes the first segment of a message, which begins at the front of `bytes`. Writes its
    /// values to `row`, updates the previous values, and returns its length. Returns 0, with
    /// `columns` unchanged, if the scalar code must decode it. That includes a message with
    /// presence bits left.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub fn decode(
        self,
        plan: &Plan,
        columns: &mut Columns,
        bytes: &[u8],
        front: Front,
        row: &mut Row,
    ) -> usize {
        #[cfg(target_arch = "x86_64")]
        {
            let done = match (self.kernel, plan.plain) {
                // SAFETY: `new` has found the kernel to be available.
                (Kernel::Avx512, 1) => unsafe {
                    avx512::decode::<1>(plan, columns, bytes, front, row)
                },
                // SAFETY: as above.
                (Kernel::Avx512, 2) => unsafe {
                    avx512::decode::<2>(plan, columns, bytes, front, row)
                },
                _ => 0,
            };
            if done != 0 {
                return done;
            }
            // SAFETY: either kernel has these instructions.
            unsafe { avx2::decode(plan, columns, bytes, front, row) }
        }
        #[cfg(not(target_arch = "x86_64"))]
        0
    }

    /// Returns the room that [`Self::entries`] needs to recognise presence maps. It pays off if
    /// there are entries.
    pub fn shapes(self) -> Shapes {
        match self.kernel {
            Kernel::Avx512 => Shapes::with_room(),
            _ => Shapes::default(),
        }
    }

    /// Decodes entries from index `at` on, each a presence map and one segment, to rows. Stops
    /// after the last row, or before an entry that is not regular or has presence bits left.
    #[inline(never)]
    #[allow(unsafe_code)]
    pub fn entries(
        self,
        plan: &Plan,
        columns: &mut Columns,
        shapes: &mut Shapes,
        (bytes, at): (&[u8], usize),
        rows: &mut [Row],
    ) -> Decoded {
        let mut all = self.known_entries(plan, columns, shapes, (bytes, at), rows);
        if self.kernel != Kernel::Avx512 {
            return all;
        }
        while let Some(left @ [_, ..]) = rows.get_mut(all.count..) {
            let from = (bytes, all.at);
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `new` has found the kernel to be available.
            unsafe {
                avx512_entries::learn(plan, columns, shapes, from);
            }
            let mut more = self.known_entries(plan, columns, shapes, from, left);
            if more.count == 0 {
                let no_shapes = &Shapes::default();
                more = self.known_entries(plan, columns, no_shapes, from, &mut left[..1]);
            }
            if more.count == 0 {
                break;
            }
            all = Decoded {
                at: more.at,
                count: all.count + more.count,
                texts: all.texts + more.texts,
            };
        }
        all
    }

    /// Decodes entries as [`Self::entries`] does. If there is room for shapes, it stops before an
    /// entry whose shape is not known.
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
        let (at, counts) = match (shapes.slots(), plan.groups) {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: only a kernel that has been found to be available makes room for shapes.
            (Some(shapes), 1) => unsafe {
                avx512_entries::decode::<1>(plan, columns, shapes, bytes, at, rows)
            },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            (Some(shapes), _) => unsafe {
                avx512_entries::decode::<2>(plan, columns, shapes, bytes, at, rows)
            },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: either kernel has these instructions.
            (None, _) => unsafe { avx2::entries(plan, columns, bytes, at, rows) },
            #[cfg(not(target_arch = "x86_64"))]
            _ => (at, 0),
        };
        Decoded {
            at,
            count: counts as u32 as usize,
            texts: (counts >> 32) as u32,
        }
    }

    /// Encodes one segment after the end of `out`: its presence map, a template identifier if
    /// `front` is not 0, and the values. Only a plan that skips a bit of the map, which then says
    /// that the identifier is there, may have a `front`. It is the identifier as it is in the
    /// stream: up to three bytes, the first one lowest, and their number in the topmost byte.
    /// Returns false, with `columns` and `out` unchanged, if the scalar code must encode the
    /// segment.
    ///
    /// The row must come from decoding with the same plan. `out` grows if it has less than
    /// [`MAX_ENCODED`] left.
    #[inline(always)]
    pub fn encode(
        self,
        plan: &Plan,
        columns: &mut Columns,
        row: &Row,
        front: u32,
        out: &mut Vec<u8>,
    ) -> bool {
        let rows = std::slice::from_ref(row);
        let is_plain = plan.plain != 0 && self.kernel == Kernel::Avx512;
        is_plain && self.encode_rows::<true>(plan, columns, rows, front, out) != 0
            || self.encode_rows::<false>(plan, columns, rows, front, out) != 0
    }

    /// Encodes entries, each a presence map and one segment, after the end of `out`, until one is
    /// not regular. Returns their number. Everything else is as in [`Self::encode`].
    #[inline(always)]
    pub fn encode_entries(
        self,
        plan: &Plan,
        columns: &mut Columns,
        rows: &[Row],
        out: &mut Vec<u8>,
    ) -> usize {
        self.encode_rows::<false>(plan, columns, rows, 0, out)
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    fn encode_rows<const PLAIN: bool>(
        self,
        plan: &Plan,
        columns: &mut Columns,
        rows: &[Row],
        front: u32,
        out: &mut Vec<u8>,
    ) -> usize {
        match (self.kernel, plan.groups) {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `new` has found the kernel to be available.
            (Kernel::Avx512, 1) => unsafe {
                avx512_encode::encode::<1, PLAIN>(plan, columns, rows, front, out)
            },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            (Kernel::Avx512, _) => unsafe {
                avx512_encode::encode::<2, PLAIN>(plan, columns, rows, front, out)
            },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            (Kernel::Avx2, _) => unsafe { avx2_encode::encode(plan, columns, rows, front, out) },
            _ => 0,
        }
    }
}

/// Returns an ASCII string of up to [`MAX_CHARS`] characters as an integer, seven bits each, the
/// last one lowest, as it is in a stream. Returns `None` for a longer string, one that begins with
/// NUL, or one that is not ASCII.
#[inline]
pub fn pack(text: &[u8]) -> Option<u64> {
    if text.len() > MAX_CHARS || text.first() == Some(&0) || !text.is_ascii() {
        return None;
    }
    Some(
        text.iter()
            .fold(0, |packed, byte| packed << 7 | u64::from(*byte)),
    )
}

/// Returns the characters of a packed string and their number. The other characters are 0.
#[inline(always)]
pub fn unpack(packed: u64) -> ([u8; MAX_CHARS], usize) {
    if packed < 0x80 {
        return ((packed as u32).to_le_bytes(), usize::from(packed != 0));
    }
    unpack_many(packed as u32)
}

fn unpack_many(x: u32) -> ([u8; MAX_CHARS], usize) {
    let x = x & 0x3fff | (x & 0x0fff_c000) << 2;
    let x = x & 0x007f_007f | (x & 0x3f80_3f80) << 1;
    let len = 4 - x.leading_zeros() / 8;
    ((x << (32 - 8 * len)).to_be_bytes(), len as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_strings_are_packed() {
        for text in ["", "A", "AB", "ABC", "ABCD", "A\0", "~\x7f"] {
            let packed = pack(text.as_bytes()).unwrap();
            let (chars, len) = unpack(packed);
            assert_eq!(&chars[..len], text.as_bytes());
            assert!(fits(packed));
        }
        for text in ["ABCDE", "\0", "\0A", "\u{e9}"] {
            assert_eq!(pack(text.as_bytes()), None);
        }
    }

    #[test]
    fn columns_keep_what_does_not_fit() {
        let mut columns = Columns::new(70);
        for value in [
            0,
            1,
            (1 << 31) - 1,
            1 << 31,
            u64::MAX,
            i64::MIN as u64,
            !0 << 30,
            !0 << 31,
        ] {
            columns.assign(69, value);
            assert!(columns.is_assigned(69) && !columns.is_empty(69));
            assert_eq!(columns.value(69), value);
            assert_eq!(columns.is_outside(69), !fits(value));
        }
        columns.clear(69);
        assert!(columns.is_empty(69) && !columns.is_assigned(69));
        columns.assign(3, 5);
        columns.reset();
        assert!(!columns.is_empty(69) && !columns.is_assigned(3));
    }

    fn lane(column: u32) -> Lane {
        Lane {
            column,
            kind: LaneKind::Unsigned(u32::MAX.into()),
            operator: LaneOperator::Copy,
            optional: false,
            initial: None,
            leads: false,
        }
    }

    #[test]
    fn plans_are_of_near_and_ascending_columns() {
        assert!(Plan::new(&[lane(3), lane(7), lane(31)], 0).is_some());
        assert!(Plan::new(&[], 0).is_none());
        assert!(Plan::new(&[lane(3), lane(32)], 0).is_none());
        assert!(Plan::new(&[lane(7), lane(7)], 0).is_none());
        assert!(Plan::new(&[lane(62), lane(65)], 0).is_none());
        let leads = Lane {
            leads: true,
            ..lane(4)
        };
        assert!(Plan::new(&[leads, lane(5)], 0).is_none());
    }

    #[test]
    fn a_segment_is_decoded_or_left_alone() {
        for kernel in LaneKernel::all() {
            is_decoded_or_left_alone(kernel);
        }
    }

    fn is_decoded_or_left_alone(kernel: LaneKernel) {
        let plan = Plan::new(&[lane(0), lane(1), lane(2)], 0).unwrap();
        let (mut columns, mut row) = (Columns::new(3), Row::default());
        let mut decode = |bytes: &[u8], columns: &mut Columns| {
            let front = Front {
                map: bytes[0].into(),
                has_id: false,
            };
            let at = kernel.decode(&plan, columns, bytes, front, &mut row);
            (at != 0).then_some((at, row.values[0], row.values[1], row.values[2]))
        };
        assert_eq!(decode(&[0xe0, 0x81, 0x82, 0x83], &mut columns), None, "D5");
        assert!(!columns.is_assigned(0));
        let (whole, most) = (
            [0xf0, 0x81, 0x02, 0x81, 0x7f, 0x7f, 0x7f, 0xff],
            (1 << 28) - 1,
        );
        assert_eq!(decode(&whole, &mut columns), Some((8, 1, 257, most)));
        assert_eq!(decode(&[0xa0, 0x85], &mut columns), Some((2, 1, 5, most)));
        let before = columns.clone();
        for bytes in [
            &[0xf0, 0x81, 0x02][..],
            &[0xf0, 0x81, 0x00, 0x81, 0x81],
            &[0xf0, 0x81, 0x82, 0x07, 0x7f, 0x7f, 0x7f, 0xff],
            &[0xf8, 0x81, 0x82, 0x83],
            &[0xf0, 0x81, 0x82, 0x01, 0, 0, 0, 0, 0x80],
        ] {
            assert_eq!(decode(bytes, &mut columns), None, "{bytes:x?}");
            assert_eq!(
                (0..3).map(|i| columns.value(i)).sum::<u64>(),
                1 + 5 + most as u64
            );
        }
        assert_eq!(columns.value(0), before.value(0));
    }

    /// Entries of three lanes, the second one optional: all, none, some, NULL, and more of the
    /// same.
    const ENTRIES: [&[u8]; 8] = [
        &[0xf0, 0x81, 0x82, 0x83],
        &[0x80],
        &[0xc0, 0x07, 0xff],
        &[0xa0, 0x80],
        &[0x80],
        &[0xb0, 0x90, 0x01, 0x01, 0x80],
        &[0xe0, 0x80, 0x01, 0x80],
        &[0xc0, 0x00, 0xff],
    ];

    #[test]
    fn an_identifier_of_any_length_stays_within_the_output() {
        let plan = Plan::new(&[lane(0), lane(1), lane(2)], 1).unwrap();
        let row = Row {
            present: 0b111,
            ..Row::default()
        };
        for kernel in LaneKernel::all() {
            for len in 0..=255 {
                let (mut columns, mut out) = (Columns::new(3), Vec::new());
                let front = len << 24 | 0x0081_8181;
                assert!(kernel.encode(&plan, &mut columns, &row, front, &mut out));
                assert!(out.len() <= 8 + 4 * 3, "{kernel:?}: {len}");
            }
        }
    }

    #[test]
    fn entries_are_the_same_whether_their_maps_are_known() {
        let optional = Lane {
            optional: true,
            ..lane(1)
        };
        let plan = Plan::new(&[lane(0), optional, lane(2)], 0).unwrap();
        let bytes = ENTRIES.concat();
        let regular = bytes.len() - ENTRIES[7].len();
        for kernel in LaneKernel::all() {
            let decode = |shapes: &mut Shapes| {
                let (mut columns, mut rows) = (Columns::new(3), vec![Row::default(); 9]);
                let done = kernel.entries(&plan, &mut columns, shapes, (&bytes, 0), &mut rows);
                let rows = rows.iter().map(|row| {
                    let value = |lane: usize| row.present >> lane & 1 != 0;
                    [0, 1, 2].map(|lane| value(lane).then_some(row.values[lane]))
                });
                (done, rows.collect::<Vec<_>>(), columns.blocks)
            };
            let expected = decode(&mut Shapes::default());
            assert_eq!((expected.0.count, expected.0.at), (7, regular), "overlong");
            let mut shapes = kernel.shapes();
            for _ in 0..3 {
                assert_eq!(decode(&mut shapes), expected, "{kernel:?}");
            }
            let (mut columns, mut rows) = (Columns::new(3), vec![Row::default(); 9]);
            let known = kernel.known_entries(&plan, &mut columns, &shapes, (&bytes, 0), &mut rows);
            assert!(known.count == 7 || shapes.slots().is_none());
        }
    }
}
