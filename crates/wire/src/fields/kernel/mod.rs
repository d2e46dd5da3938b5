//! The kernels that index fields: a scalar one, which is the oracle, and vector kernels.
//!
//! The vector kernels index only plain messages. In any other case (a fault, a data field with
//! separators in it, too many fields) they give up, and the scalar kernel indexes the whole
//! message. A message that needs larger arrays gets them and is indexed again from its beginning.

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx512;
mod blocks;
#[cfg(all(test, unix))]
#[allow(unsafe_code)]
mod pages;
mod scalar;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod sse2;
mod swar;

use crate::fields::{FieldIndex, Indexed};
use crate::int::parse_u64;

/// A way to index fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kernel {
    /// One byte at a time: slow and simple, the oracle of the others.
    Scalar,
    /// Eight bytes at a time in ordinary registers, on any processor.
    Swar,
    /// 16 bytes at a time, on any x86-64.
    Sse2,
    /// 32 bytes at a time.
    Avx2,
    /// 64 bytes at a time, with the byte permutes of AVX-512 VBMI and VBMI2, and VPOPCNTDQ.
    Avx512,
}

impl Kernel {
    /// All kernels, slowest first.
    pub const ALL: [Self; 5] = [
        Self::Scalar,
        Self::Swar,
        Self::Sse2,
        Self::Avx2,
        Self::Avx512,
    ];

    /// Returns the fastest kernel that this processor has.
    pub fn best() -> Self {
        let fastest = Self::ALL
            .into_iter()
            .rev()
            .find(|kernel| kernel.is_available());
        fastest.unwrap_or(Self::Scalar)
    }

    /// Returns the name for command lines: `scalar`, `swar`, `sse2`, `avx2` or `avx512`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Swar => "swar",
            Self::Sse2 => "sse2",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// Returns the kernel with this name, or `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kernel| kernel.name() == name)
    }

    /// Returns whether this processor has the instructions of the kernel.
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar | Self::Swar => true,
            #[cfg(target_arch = "x86_64")]
            Self::Sse2 => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::is_available(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => avx512::is_available(),
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }
}

/// The most entries that a kernel writes after those of the fields, or needs room for.
pub(super) const SPARE: usize = 64 + 8;

/// The result of a vector kernel for a message whose fields are all in order.
#[derive(Clone, Copy)]
struct Scan {
    /// The sum of all bytes modulo 256.
    sum: u8,
    /// Whether any tag may be the length of a data field.
    may_hold_data: bool,
}

/// The reason why a vector kernel gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unfit {
    /// The message is not a plain one, or there is no vector kernel.
    Message,
    /// The arrays must be larger. A kernel does not enlarge them itself, as everything that it has
    /// in vector registers would have to be saved around the call.
    Room,
}

/// Indexes a message with the index's own kernel.
#[inline]
pub(crate) fn index(bytes: &[u8], index: &mut FieldIndex) -> Indexed {
    match scan(bytes, index) {
        Ok(scan) if !scan.may_hold_data || data_is_plain(bytes, index) => scan.into(),
        Err(Unfit::Room) => index_with_room(bytes, index),
        _ => scalar::index(bytes, index),
    }
}

/// Indexes a message after the arrays have been enlarged to the room that it needs, within the
/// limit.
#[cold]
#[inline(never)]
fn index_with_room(bytes: &[u8], index: &mut FieldIndex) -> Indexed {
    while index.grow_within_limit() {
        match scan(bytes, index) {
            Ok(scan) if !scan.may_hold_data || data_is_plain(bytes, index) => return scan.into(),
            Err(Unfit::Room) => (),
            _ => break,
        }
    }
    scalar::index(bytes, index)
}

impl From<Scan> for Indexed {
    #[inline]
    fn from(scan: Scan) -> Self {
        Self {
            sum: scan.sum,
            fault: None,
            may_hold_data: false,
        }
    }
}

/// Indexes a message with a vector kernel, which takes every separator for the end of a field.
#[inline]
#[allow(unsafe_code)]
fn scan(bytes: &[u8], index: &mut FieldIndex) -> Result<Scan, Unfit> {
    if i32::try_from(bytes.len()).is_err() {
        return Err(Unfit::Message);
    }
    match index.kernel() {
        Kernel::Scalar => Err(Unfit::Message),
        Kernel::Swar => swar::index(bytes, index),
        #[cfg(target_arch = "x86_64")]
        Kernel::Sse2 => sse2::index(bytes, index),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an index only has kernels that the processor has (`FieldIndex::with`).
        Kernel::Avx2 if bytes.len() >= 64 => unsafe { avx2::index(bytes, index) },
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 => sse2::index(bytes, index),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Kernel::Avx512 => unsafe { avx512::index(bytes, index) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => Err(Unfit::Message),
    }
}

/// Returns whether each data field ends at its first separator, so that the index is right.
#[cold]
fn data_is_plain(bytes: &[u8], index: &FieldIndex) -> bool {
    let (tags, begins, ends) = (index.tags(), index.begins(), index.ends());
    let value = |i: usize| {
        bytes
            .get(begins[i] as usize..ends[i] as usize)
            .unwrap_or_default()
    };
    (1..tags.len()).all(|i| {
        index.data.data_tag(tags[i - 1]) != Some(tags[i])
            || parse_u64(value(i - 1)) == Some(u64::from(ends[i] - begins[i]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DataFields;
    use crate::fields::{PAGE, SOH};
    use proptest::prelude::*;

    /// Indexes a message with each kernel, and compares the results with that of the scalar one.
    pub(super) fn compare(bytes: &[u8], max_fields: usize) -> Result<(), TestCaseError> {
        let data = || DataFields::standard().with(123_456_789, 5);
        let mut oracle = FieldIndex::with(data(), Kernel::Scalar);
        oracle.set_max_fields(max_fields);
        let expected = oracle.index(bytes);
        for kernel in Kernel::ALL {
            let mut index = FieldIndex::with(data(), kernel);
            // What a kernel does not write is that of an earlier message, not 0.
            index.index(&wire("7654321=earlier|").repeat(200));
            index.set_max_fields(max_fields);
            let indexed = index.index(bytes);
            prop_assert_eq!(indexed.sum, expected.sum, "{:?}", kernel);
            prop_assert_eq!(indexed.fault, expected.fault, "{:?}", kernel);
            let separators = bytes.iter().filter(|&&byte| byte == SOH).count();
            prop_assert!(
                indexed.may_hold_data || separators == index.len(),
                "{:?}",
                kernel
            );
            prop_assert_eq!(index.tags(), oracle.tags(), "{:?}", kernel);
            prop_assert_eq!(index.begins(), oracle.begins(), "{:?}", kernel);
            prop_assert_eq!(index.ends(), oracle.ends(), "{:?}", kernel);
        }
        Ok(())
    }

    pub(super) fn wire(text: &str) -> Vec<u8> {
        text.bytes()
            .map(|byte| if byte == b'|' { 1 } else { byte })
            .collect()
    }

    /// Returns tags of all lengths and kinds.
    fn tag() -> impl Strategy<Value = String> {
        prop_oneof![
            8 => "[1-9][0-9]{0,3}",
            2 => "[0-9]{0,12}",
            1 => "[0-9a-z:/ -]{0,6}",
            1 => Just("123456789".to_owned()),
        ]
    }

    fn plain_field() -> impl Strategy<Value = String> {
        (tag(), "[A-Z0-9.=]{0,20}").prop_map(|(tag, value)| format!("{tag}={value}|"))
    }

    fn data_field() -> impl Strategy<Value = String> {
        ("[A-Z|=]{0,70}", 0..20_usize).prop_map(|(value, off)| {
            let len = if off == 0 {
                value.len() + 1
            } else {
                value.len()
            };
            format!("95={len}|96={value}|")
        })
    }

    fn message() -> impl Strategy<Value = String> {
        let field = prop_oneof![30 => plain_field(), 1 => data_field(), 1 => "[|=x]{1,3}"];
        proptest::collection::vec(field, 0..60).prop_map(|fields| fields.concat())
    }

    proptest! {
        #[test]
        fn all_kernels_as_the_scalar_one_on_messages(text in message(), cut in 0..10_usize) {
            let bytes = wire(&text);
            compare(&bytes, 1000)?;
            compare(&bytes[..bytes.len().saturating_sub(cut)], 30)?;
        }

        #[test]
        fn all_kernels_as_the_scalar_one_on_good_messages(
            fields in proptest::collection::vec(plain_field(), 0..120),
        ) {
            compare(&wire(&fields.concat()), 1000)?;
        }

        #[test]
        fn all_kernels_as_the_scalar_one_on_noise(text in "[0-9=|]{0,300}") {
            compare(&wire(&text), 1000)?;
        }

        #[test]
        fn all_kernels_as_the_scalar_one_on_any_bytes(bytes: Vec<u8>) {
            compare(&bytes, 1000)?;
        }
    }

    /// The tests above must not compare the scalar kernel with itself.
    #[test]
    fn the_vector_kernels_do_usual_messages_themselves() {
        let text = "8=FIX.4.4|9=156|35=D|49=A|56=B|34=7|52=20261120-12:34:56.123|11=ORDER|22=4|\
                    1128=9|20001=7-1|55=EURUSD|54=1|58=a=b==|38=100000|40=2|44=1.23456|10=000|";
        let bytes = wire(text);
        for repeat in [1, 2, 3, 100] {
            let bytes = bytes.repeat(repeat);
            for kernel in Kernel::ALL
                .into_iter()
                .filter(|kernel| kernel.is_available())
            {
                let mut index = FieldIndex::with(DataFields::standard(), kernel);
                while scan(&bytes, &mut index).err() == Some(Unfit::Room) {
                    assert!(index.grow_within_limit());
                }
                let scanned = scan(&bytes, &mut index);
                assert_eq!(scanned.is_ok(), kernel != Kernel::Scalar, "{kernel:?}");
                assert!(scanned.is_ok_and(|scan| !scan.may_hold_data) || kernel == Kernel::Scalar);
            }
        }
    }

    #[test]
    fn many_short_fields_grow_the_arrays() {
        for fields in [255, 256, 257, 1000, 5000] {
            compare(&wire("1=|").repeat(fields), 10_000).unwrap();
            compare(&wire("=|").repeat(fields), 10_000).unwrap();
            compare(&wire("12345=x|").repeat(fields), fields).unwrap();
            compare(&wire("12345=x|").repeat(fields), fields - 1).unwrap();
        }
    }

    #[test]
    fn too_many_fields_take_no_more_memory_than_the_most() {
        for kernel in Kernel::ALL {
            let mut index = FieldIndex::with(DataFields::standard(), kernel);
            index.set_max_fields(1_000);
            index.index(&wire("1=|").repeat(1_000));
            assert_eq!(index.len(), 1_000);
            let len = index.room.len();
            index.index(&wire("1=|").repeat(100_000));
            assert!(
                index.room.len() <= len.max(3 * 2 * (1_000 + SPARE) + 1 + PAGE),
                "{kernel:?}"
            );
        }
    }

    #[test]
    fn every_field_over_the_border_of_two_blocks() {
        let fields = [
            "5=value|",
            "55=value|",
            "269=|",
            "1128=9|",
            "20001=value|",
            "12345678=value|",
            "123456789=value|",
            "1234567890=value|",
            "=|==|===|",
            "58=a=b==|",
            "5x=value|",
            "x5555=value|",
            "95=5|96=a|b=c|",
            "95=5|96=abcde|",
            "354=1|355=||",
            "2372=3|2371=|=||",
            "95=9|96=abcde|",
            "55|",
        ];
        for (front, field) in (0..270).flat_map(|front| fields.map(|field| (front, field))) {
            let front = format!("1={}|", "x".repeat(front));
            compare(&wire(&format!("{front}{field}10=000|")), 100).unwrap();
            compare(&wire(&format!("{field}{front}{field}10=000|")), 100).unwrap();
        }
    }

    #[test]
    fn every_length_at_every_place_of_a_block() {
        let text = wire("8=FIX.4.4|9=123|35=W|269=0|270=1.2345|20001=7-1|58=a=b|").repeat(6);
        let mut room = vec![b'5'; 64 + text.len()];
        for place in 0..64 {
            room[place..place + text.len()].copy_from_slice(&text);
            for len in (0..text.len()).filter(|len| text[len.saturating_sub(1)] == SOH) {
                compare(&room[place..place + len], 100).unwrap();
            }
        }
    }

    #[test]
    fn every_kernel_has_its_name() {
        for kernel in Kernel::ALL {
            assert_eq!(Kernel::from_name(kernel.name()), Some(kernel));
        }
        assert_eq!(Kernel::from_name("neon"), None);
        assert!(Kernel::best().is_available());
    }
}
