//! The keys that a writer has written: the library keeps each, with its last samples, until the
//! writer unregisters it.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};

use crate::cdr::{HEADER, Value, Visitor, walk_key};
use crate::qos::LONGEST_KEY;
use crate::types::{Member, StructType};

/// A limited set of keys, 8 to 16 bytes each: a hash of 64 bits that cannot be predicted from
/// outside. Of a million keys two have the same hash with a probability of 1 in 30 million; they
/// count as one.
#[derive(Debug)]
pub(crate) struct Keys {
    hash: RandomState,
    seen: HashSet<u64, BuildHasherDefault<AsItIs>>,
    most: u32,
}

/// The reason why a key is not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The bytes are not of the type.
    Mismatch,
    /// The key has this many bytes.
    Long(u32),
    /// The set is full.
    Full,
}

impl Keys {
    pub(crate) fn new(most: u32) -> Self {
        Self {
            hash: RandomState::new(),
            seen: HashSet::default(),
            most,
        }
    }

    pub(crate) const fn most(&self) -> u32 {
        self.most
    }

    /// Adds the key of a sample, or a key `alone` that ends, which is about to be written. Returns
    /// its hash if it is new, to [take it back](Self::take_back) if it was not written. Allocates
    /// occasionally for a new key.
    ///
    /// # Errors
    /// The key must not be written.
    pub(crate) fn admit(
        &mut self,
        t: &StructType,
        bytes: &[u8],
        alone: bool,
    ) -> Result<Option<u64>, Refusal> {
        let key = self.key(t, bytes, alone)?;
        if self.seen.contains(&key) {
            return Ok(None);
        }
        if self.seen.len() >= self.most as usize {
            return Err(Refusal::Full);
        }
        self.seen.insert(key);
        Ok(Some(key))
    }

    /// Removes a key by its hash.
    pub(crate) fn take_back(&mut self, key: u64) {
        self.seen.remove(&key);
    }

    /// Returns the hash of the key of a sample, or of a key `alone`.
    ///
    /// # Errors
    /// The bytes are not of the type, or the key is longer than a reader keeps.
    pub(crate) fn key(&self, t: &StructType, bytes: &[u8], alone: bool) -> Result<u64, Refusal> {
        let mut sum = Sum {
            hasher: self.hash.build_hasher(),
            len: 0,
            size: None,
            depth: 0,
        };
        walk_key(t, bytes, alone, &mut sum).map_err(|_| Refusal::Mismatch)?;
        match u32::try_from(HEADER + sum.len).unwrap_or(u32::MAX) {
            0..=LONGEST_KEY => Ok(sum.hasher.finish()),
            long => Err(Refusal::Long(long)),
        }
    }
}

/// A visitor that hashes the values of a key, and counts its bytes as a reader keeps them, in
/// version 2 of CDR. Those inside structures and lists, in types of other programs, do not count:
/// not all of them are part of the key.
struct Sum<H> {
    hasher: H,
    len: usize,
    /// The size of the member, unless it is a string.
    size: Option<usize>,
    /// The depth inside nested structures and lists.
    depth: usize,
}

impl<H> Sum<H> {
    fn count(&mut self, align: usize, bytes: usize) {
        if self.depth == 0 {
            self.len = self.len.next_multiple_of(align) + bytes;
        }
    }
}

impl<H: Hasher> Visitor for Sum<H> {
    fn begin_struct(&mut self) {
        self.depth += 1;
    }

    fn end_struct(&mut self) {
        self.depth -= 1;
    }

    fn begin_list(&mut self, _: u32) {
        self.depth += 1;
    }

    fn end_list(&mut self) {
        self.depth -= 1;
    }

    fn member(&mut self, member: &Member) {
        self.size = member.kind.primitive_size();
    }

    fn value(&mut self, value: Value<'_>) {
        match (self.size, value) {
            (Some(size), _) => self.count(size.min(4), size),
            (None, Value::String(x)) => self.count(4, 4 + x.len() + 1),
            (None, _) => {}
        }
        let hasher = &mut self.hasher;
        match value {
            Value::Bool(x) => x.hash(hasher),
            Value::Int(x) => x.hash(hasher),
            Value::UInt(x) => x.hash(hasher),
            Value::Float32(x) => x.to_bits().hash(hasher),
            Value::Float(x) => x.to_bits().hash(hasher),
            Value::Char(x) => x.hash(hasher),
            Value::String(x) | Value::Octets(x) => x.hash(hasher),
            Value::Enum(x, _) => x.hash(hasher),
            Value::Absent => {}
        }
    }
}

/// A hasher for keys that are hashes already: the hash of a `u64` is the number itself.
#[derive(Debug, Default)]
pub struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cdr::CdrBuffer;
    use crate::types::Kind;
    use proptest::prelude::*;

    /// The key in two parts, with something of any length between and behind.
    fn t() -> StructType {
        StructType::new("T")
            .member("note", Kind::String(None))
            .key("symbol", Kind::String(None))
            .member("price", Kind::Float64)
            .key("venue", Kind::UInt16)
            .member("last", Kind::String(None))
    }

    fn sample(symbol: &str, venue: u16, note: &str) -> Vec<u8> {
        let mut buffer = CdrBuffer::with_capacity(256);
        buffer.string(note.as_bytes());
        buffer.string(symbol.as_bytes());
        buffer.f64(note.len() as f64);
        buffer.u16(venue);
        buffer.string(note.as_bytes());
        buffer.finish().unwrap().to_vec()
    }

    fn key(symbol: &str, venue: u16) -> Vec<u8> {
        let mut buffer = CdrBuffer::with_capacity(256);
        buffer.string(symbol.as_bytes());
        buffer.u16(venue);
        buffer.finish().unwrap().to_vec()
    }

    /// Symbol, venue, anything, and whether the key ends.
    fn steps() -> impl Strategy<Value = Vec<(String, u16, String, bool)>> {
        let step = ("[AB]{0,2}", 0..3_u16, "[a-z]{0,9}", any::<bool>());
        prop::collection::vec(step, 0..40)
    }

    proptest! {
        /// Against a set of the keys themselves.
        #[test]
        fn so_many_keys_and_no_more(
            steps in steps(), most in 1..6_u32,
        ) {
            let (t, mut keys) = (t(), Keys::new(most));
            let mut seen = std::collections::BTreeSet::new();
            for (symbol, venue, note, ends) in steps {
                if ends {
                    let hash = keys.key(&t, &key(&symbol, venue), true).unwrap();
                    keys.take_back(hash);
                    seen.remove(&(symbol, venue));
                    continue;
                }
                let known = seen.contains(&(symbol.clone(), venue));
                let fits = known || seen.len() < most as usize;
                let admitted = keys.admit(&t, &sample(&symbol, venue, &note), false);
                prop_assert_eq!(admitted.map(|key| key.is_none()), match fits {
                    true => Ok(known),
                    false => Err(Refusal::Full),
                });
                if fits {
                    seen.insert((symbol, venue));
                }
            }
        }
    }

    #[test]
    fn bytes_without_a_key_are_an_error() {
        let whole = sample("IBM", 1, "x");
        let mut keys = Keys::new(3);
        let cut = keys.admit(&t(), &whole[..20], false);
        assert_eq!(cut, Err(Refusal::Mismatch));
        assert!(matches!(keys.admit(&t(), &whole, false), Ok(Some(_))));
    }

    /// Header, length, text and NUL, and the venue at a multiple of its size.
    #[test]
    fn a_key_has_so_many_bytes_and_no_more() {
        let mut keys = Keys::new(3);
        let longest = LONGEST_KEY as usize - 4 - 4 - 1 - 2 - 1;
        for (len, refusal) in [
            (longest, None),
            (longest + 1, None),
            (longest + 2, Some(Refusal::Long(LONGEST_KEY + 2))),
        ] {
            let symbol = "x".repeat(len);
            let mut buffer = CdrBuffer::with_capacity(2 << 10);
            buffer.string(symbol.as_bytes());
            buffer.u16(1);
            let key = keys.admit(&t(), buffer.finish().unwrap(), true);
            assert_eq!(key.err(), refusal, "{len}");
        }
    }
}
