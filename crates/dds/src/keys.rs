//! The keys that a writer has written: the library keeps each, with its last samples, until the
//! writer unregisters it.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};

use crate::cdr::{CdrError, Value, Visitor, walk_key};
use crate::types::StructType;

/// A limited set of keys, 8 to 16 bytes each: a hash of 64 bits that cannot be predicted from
/// outside. Of a million keys two have the same hash with a probability of 1 in 30 million; they
/// count as one.
#[derive(Debug)]
pub(crate) struct Keys {
    hash: RandomState,
    seen: HashSet<u64, BuildHasherDefault<AsItIs>>,
    most: u32,
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

    /// Returns whether a sample, or the end of a key `alone`, may be written: the key is known, or
    /// below the limit. Allocates occasionally for a new key.
    ///
    /// # Errors
    /// The bytes are not of the type.
    pub(crate) fn admit(
        &mut self,
        t: &StructType,
        bytes: &[u8],
        alone: bool,
    ) -> Result<bool, CdrError> {
        let key = self.key(t, bytes, alone)?;
        if self.seen.contains(&key) {
            return Ok(true);
        }
        let fits = self.seen.len() < self.most as usize;
        Ok(fits && self.seen.insert(key))
    }

    /// Removes `key`, the CDR of a key alone that is no longer written.
    pub(crate) fn forget(&mut self, t: &StructType, key: &[u8]) {
        if let Ok(key) = self.key(t, key, true) {
            self.seen.remove(&key);
        }
    }

    fn key(&self, t: &StructType, bytes: &[u8], alone: bool) -> Result<u64, CdrError> {
        let mut sum = Sum(self.hash.build_hasher());
        walk_key(t, bytes, alone, &mut sum)?;
        Ok(sum.0.finish())
    }
}

/// A visitor that hashes values.
struct Sum<H>(H);

impl<H: Hasher> Visitor for Sum<H> {
    fn value(&mut self, value: Value<'_>) {
        let hasher = &mut self.0;
        match value {
            Value::Bool(x) => x.hash(hasher),
            Value::Int(x) => x.hash(hasher),
            Value::UInt(x) => x.hash(hasher),
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
                    keys.forget(&t, &key(&symbol, venue));
                    seen.remove(&(symbol, venue));
                    continue;
                }
                let known = seen.contains(&(symbol.clone(), venue));
                let fits = known || seen.len() < most as usize;
                prop_assert_eq!(keys.admit(&t, &sample(&symbol, venue, &note), false), Ok(fits));
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
        assert!(keys.admit(&t(), &whole[..20], false).is_err());
        assert_eq!(keys.admit(&t(), &whole, false), Ok(true));
    }
}
