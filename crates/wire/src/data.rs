//! Data fields with a length: values that may contain the field separator and `=`.

use core::ops::Range;

/// The pairs of a length field and the data field directly after it, such as RawDataLength(95) and
/// RawData(96).
///
/// [`DataFields::standard`] knows every pair of the FIX versions up to FIX Latest (EP 312).
/// [`DataFields::with`] adds the pairs of a counterparty.
#[derive(Clone, Debug)]
pub struct DataFields {
    /// The pairs (length tag, data tag), ascending.
    pairs: Vec<(u32, u32)>,
    /// A cheap first test: bit `tag % 1024` is set for each length tag below 10,000.
    filter: [u32; FILTER_WORDS],
    /// The range of all other length tags. In the filter they would hit tags of many messages, such
    /// as SecurityIDSource(22).
    long: Range<u32>,
    length_digits: LengthDigits,
}

/// A filter of length tags below 1000 by their digits: hundreds, tens and ones. A tag may be a
/// length tag if the entries of its three digits have a bit in common.
///
/// Each bit is that of the tags with the same hundreds and tens, of which the standard has eight
/// groups.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LengthDigits(pub(crate) [[u8; 16]; 3]);

/// The least tag that is not in the filter.
const LONG_TAG: u32 = 10_000;

/// The number of words of 32 bits in the filter.
const FILTER_WORDS: usize = 32;

impl DataFields {
    /// Returns the pairs of the standard.
    pub fn standard() -> Self {
        STANDARD
            .iter()
            .fold(Self::none(), |fields, &(length, data)| {
                fields.with(length, data)
            })
    }

    /// Returns an empty set of pairs, with which every value ends at the next separator.
    pub fn none() -> Self {
        Self {
            pairs: Vec::new(),
            filter: [0; FILTER_WORDS],
            long: 0..0,
            length_digits: LengthDigits::default(),
        }
    }

    /// Adds a pair. A pair with the same length tag is replaced.
    #[must_use]
    pub fn with(mut self, length_tag: u32, data_tag: u32) -> Self {
        match self.pairs.binary_search_by_key(&length_tag, |pair| pair.0) {
            Ok(at) => self.pairs[at].1 = data_tag,
            Err(at) => self.pairs.insert(at, (length_tag, data_tag)),
        }
        if length_tag < LONG_TAG {
            let bit = length_tag as usize % (FILTER_WORDS * 32);
            self.filter[bit / 32] |= 1 << (bit % 32);
        } else if self.long.is_empty() {
            self.long = length_tag..length_tag.saturating_add(1);
        } else {
            let end = self.long.end.max(length_tag.saturating_add(1));
            self.long = self.long.start.min(length_tag)..end;
        }
        self.length_digits = LengthDigits::of(&self.pairs);
        self
    }

    /// Returns the tag of the data field that follows this length field, or `None` if the tag is
    /// not that of a length.
    #[inline]
    pub fn data_tag(&self, length_tag: u32) -> Option<u32> {
        if !self.may_be_length(length_tag) {
            return None;
        }
        let at = self
            .pairs
            .binary_search_by_key(&length_tag, |pair| pair.0)
            .ok()?;
        Some(self.pairs[at].1)
    }

    /// Returns whether the tag may be that of a length. For most other tags the result is false.
    #[inline]
    pub(crate) fn may_be_length(&self, tag: u32) -> bool {
        if tag >= LONG_TAG {
            return self.long.contains(&tag);
        }
        let bit = tag as usize % (FILTER_WORDS * 32);
        self.filter[bit / 32] >> (bit % 32) & 1 == 1
    }

    /// Returns the filter for tags below 1000.
    #[inline]
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn length_digits(&self) -> LengthDigits {
        self.length_digits
    }

    /// Returns a range that contains all length tags of five digits or more, and perhaps others.
    #[inline]
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn long(&self) -> &Range<u32> {
        &self.long
    }

    /// Returns the two halves of the filter for tags below 10,000. Bit `tag % 1024` is that of a
    /// tag.
    #[inline]
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn filter(&self) -> (&[u32; 16], &[u32; 16]) {
        let (lower, upper) = self.filter.split_at(FILTER_WORDS / 2);
        const EMPTY: &[u32; 16] = &[0; 16];
        (
            lower.try_into().unwrap_or(EMPTY),
            upper.try_into().unwrap_or(EMPTY),
        )
    }
}

impl LengthDigits {
    fn of(pairs: &[(u32, u32)]) -> Self {
        let mut tables = [[0; 16]; 3];
        let (mut bit, mut tens_before) = (0x80_u8, None);
        for &(tag, _) in pairs.iter().take_while(|pair| pair.0 < 1000) {
            // The pairs ascend. With more than eight groups some share a bit, and the filter lets
            // more through.
            if tens_before.replace(tag / 10) != Some(tag / 10) {
                bit = bit.rotate_left(1);
            }
            for (table, digit) in tables.iter_mut().zip([tag / 100, tag / 10 % 10, tag % 10]) {
                table[digit as usize] |= bit;
            }
        }
        Self(tables)
    }
}

impl Default for DataFields {
    fn default() -> Self {
        Self::standard()
    }
}

/// The pairs of the Orchestra file of FIX Latest (the `lengthId` of each field), which keeps those
/// of all earlier versions.
#[rustfmt::skip]
const STANDARD: [(u32, u32); 84] = [
    (90, 91), (93, 89), (95, 96), (212, 213), (348, 349), (350, 351), (352, 353), (354, 355),
    (356, 357), (358, 359), (360, 361), (362, 363), (364, 365), (445, 446), (618, 619), (621, 622),
    (1184, 1185), (1277, 1278), (1280, 1281), (1282, 1283), (1397, 1398), (1401, 1402),
    (1403, 1404), (1468, 1469), (1525, 1527), (1578, 1579), (1620, 1621), (1664, 1665),
    (1678, 1697), (1733, 1734), (1871, 1872), (1874, 1875), (2072, 2073), (2074, 2075),
    (2111, 2112), (2179, 2180), (2287, 2288), (2351, 2352), (2372, 2371), (2481, 2482),
    (2494, 2493), (2522, 2521), (2637, 2638), (2651, 2652), (2665, 2666), (2715, 2716),
    (2718, 2719), (2721, 2722), (2797, 2798), (2802, 2801), (2809, 2808), (2815, 2814),
    (2971, 2972), (40004, 40005), (40008, 40009), (40978, 40979), (40980, 40981), (40982, 40983),
    (40984, 40985), (40986, 40987), (40988, 40989), (41083, 41084), (41101, 41102), (41107, 41108),
    (41256, 41257), (41320, 41321), (41324, 41325), (41458, 41459), (41476, 41477), (41482, 41483),
    (41653, 41654), (41710, 41711), (41806, 41807), (41811, 41812), (41873, 41874), (41969, 41970),
    (42025, 42026), (42171, 42172), (42451, 42452), (42652, 42653), (42947, 42948), (43109, 42684),
    (43110, 42486), (43111, 42982),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_standard_pair_is_found_and_its_neighbours_are_not() {
        let fields = DataFields::standard();
        for (length, data) in STANDARD {
            assert_eq!(fields.data_tag(length), Some(data));
        }
        // Same filter bit as RawDataLength(95), but not in the table.
        assert_eq!(fields.data_tag(95 + 1024), None);
        assert_eq!(fields.data_tag(96), None);
        assert_eq!(DataFields::none().data_tag(95), None);
    }

    fn passes(fields: &DataFields, tag: u32) -> bool {
        let [hundreds, tens, ones] = fields.length_digits.0;
        let digits = [tag / 100, tag / 10 % 10, tag % 10].map(|digit| digit as usize);
        hundreds[digits[0]] & tens[digits[1]] & ones[digits[2]] != 0
    }

    #[test]
    fn the_digits_tell_the_standard_length_tags_below_1000_exactly() {
        let fields = DataFields::standard();
        for tag in 0..1000 {
            assert_eq!(
                passes(&fields, tag),
                fields.data_tag(tag).is_some(),
                "{tag}"
            );
        }
    }

    #[test]
    fn the_digits_miss_no_length_tag_of_many() {
        let own = [7, 111, 222, 333, 444, 555, 666, 777, 888, 999];
        let fields = own
            .into_iter()
            .fold(DataFields::standard(), |fields, tag| fields.with(tag, 5000));
        for tag in (0..1000).filter(|&tag| fields.data_tag(tag).is_some()) {
            assert!(passes(&fields, tag), "{tag}");
        }
    }

    #[test]
    fn common_tags_are_not_taken_for_lengths() {
        let fields = DataFields::standard();
        for tag in [
            8, 9, 35, 34, 52, 18, 22, 48, 123, 141, 268, 269, 270, 20_001, 9_702,
        ] {
            assert!(!fields.may_be_length(tag), "{tag}");
        }
        for (length, _) in STANDARD {
            assert!(fields.may_be_length(length));
        }
        let own = fields.with(20_010, 20_011);
        assert!(own.may_be_length(20_010) && own.may_be_length(43_111));
        assert!(!own.may_be_length(20_009));
    }

    #[test]
    fn own_pairs_are_added_and_replaced() {
        let fields = DataFields::standard().with(20010, 20011).with(95, 20012);
        assert_eq!(fields.data_tag(20010), Some(20011));
        assert_eq!(fields.data_tag(95), Some(20012));
    }
}
