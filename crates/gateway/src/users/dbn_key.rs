//! The keys for DBN: those of the users, and those with which the gateway is a client of another
//! one. A client proves that it knows its key by hashing it with a random challenge of the gateway,
//! so both sides must store the key itself.

use fanfare_engine::regular;
use std::fmt;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The length of a key, and of the suffix by which a client identifies it.
const KEY: usize = 32;
const BUCKET: usize = 5;
/// The length of a SHA-256 hash in hexadecimal digits.
const HASH: usize = 64;
/// The permissions of the group and others on a file.
const OTHERS: u32 = 0o077;

/// A key.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct DbnKey([u8; KEY]);

/// Hides the key.
impl fmt::Debug for DbnKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DbnKey")
    }
}

impl DbnKey {
    /// Reads the key in the first line of a file that only its owner may read.
    ///
    /// # Errors
    /// Returns the fault of the file.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let cannot = |error: std::io::Error| format!("cannot be read: {error}");
        let file = regular::open(path).map_err(cannot)?;
        let mode = file.metadata().map_err(cannot)?.permissions().mode();
        if mode & OTHERS != 0 {
            return Err(format!(
                "is accessible to other users (mode {:o}): the mode must be 600",
                mode & 0o777
            ));
        }
        let mut text = Vec::new();
        let most = KEY as u64 + 3;
        file.take(most).read_to_end(&mut text).map_err(cannot)?;
        let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Self::of(line).ok_or_else(|| {
            format!("must have a key of {KEY} printable ASCII characters in its first line")
        })
    }

    /// Reads the key in a variable of the environment.
    ///
    /// # Errors
    /// Returns the fault of the variable.
    pub(crate) fn of_env(name: &str) -> Result<Self, String> {
        let value = std::env::var_os(name).ok_or("is not set")?;
        let key = Self::of(value.as_encoded_bytes());
        key.ok_or_else(|| format!("must be a key of {KEY} printable ASCII characters"))
    }

    /// Returns the key of these characters.
    fn of(text: &[u8]) -> Option<Self> {
        let key = <[u8; KEY]>::try_from(text).ok()?;
        key.iter()
            .all(|byte| byte.is_ascii_graphic() && *byte != b'|')
            .then_some(Self(key))
    }

    /// Returns a key that ends with `abcde`.
    #[cfg(test)]
    pub(crate) fn of_a_test() -> Self {
        Self::of(b"db-AAAAAAAAAAAAAAAAAAAAAAAAabcde").unwrap()
    }

    /// Returns whether `answer` is the response to this challenge: the hash of both in hexadecimal
    /// digits, `-`, and the suffix of the key.
    pub(crate) fn answers(&self, challenge: &str, answer: &[u8]) -> bool {
        let Some((hash, end)) = answer.split_at_checked(HASH) else {
            return false;
        };
        if end.strip_prefix(b"-") != self.0.get(KEY - BUCKET..) {
            return false;
        }
        let right = self.digits(challenge);
        // The comparison takes the same time for every response. Each challenge is used once.
        let both = right.bytes().zip(hash);
        let wrong = both.fold(0, |wrong, (right, given)| wrong | (right ^ given));
        wrong == 0
    }

    /// Returns the response to a challenge.
    pub(crate) fn answer(&self, challenge: &str) -> String {
        let end = self.0.iter().skip(KEY - BUCKET);
        let end: String = end.map(|byte| char::from(*byte)).collect();
        format!("{}-{end}", self.digits(challenge))
    }

    /// Returns the hash of a challenge with the key in hexadecimal digits.
    fn digits(&self, challenge: &str) -> String {
        let text = [challenge.as_bytes(), b"|", &self.0].concat();
        let hash = ring::digest::digest(&ring::digest::SHA256, &text);
        let bytes = hash.as_ref().iter();
        bytes.map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_peers::Scratch;

    #[test]
    fn the_answer_is_the_hash_of_challenge_and_key() {
        let key = DbnKey::of_a_test();
        // printf 'CHALLENGE|db-AAAAAAAAAAAAAAAAAAAAAAAAabcde' | sha256sum
        let hash = "08300ed269c10e9742eefde8c3f3baffc3072d500ddc2a1c5aceb34ab2403a58";
        let answer = format!("{hash}-abcde");
        assert!(key.answers("CHALLENGE", answer.as_bytes()));
        assert_eq!(key.answer("CHALLENGE"), answer);
        assert!(!key.answers("CHALLENGF", answer.as_bytes()));
        let last = if hash.ends_with('0') { "1" } else { "0" };
        let wrong = format!("{}{last}-abcde", &hash[..63]);
        for wrong in [&wrong, hash, "", "-abcde", &format!("{hash}-abcdf")] {
            assert!(!key.answers("CHALLENGE", wrong.as_bytes()), "{wrong}");
        }
        assert_eq!(format!("{key:?}"), "DbnKey");
        for wrong in ["", "short", "db-AAAAAAAAAAAAAAAAAAAAAAAAabcd|"] {
            assert_eq!(DbnKey::of(wrong.as_bytes()), None);
        }
    }

    #[test]
    fn a_variable_that_is_no_key_is_refused_without_its_value() {
        assert_eq!(DbnKey::of_env("FANFARE_NO_KEY").unwrap_err(), "is not set");
        // A variable of any process that is no key.
        let wrong = DbnKey::of_env("PATH").unwrap_err();
        assert_eq!(wrong, "must be a key of 32 printable ASCII characters");
    }

    #[test]
    fn a_file_that_others_read_is_refused() {
        let path = Scratch::new("dbn-key");
        let write = |text: &str, mode: u32| {
            path.write(text);
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, mode).unwrap();
            DbnKey::read(&path)
        };
        let key = "db-AAAAAAAAAAAAAAAAAAAAAAAAabcde";
        write(&format!("{key}\n"), 0o600).unwrap();
        write(key, 0o400).unwrap();
        assert!(write(key, 0o640).unwrap_err().contains("mode 640"));
        assert!(write("x\n", 0o600).unwrap_err().contains("32 printable"));
        std::fs::remove_file(&path).unwrap();
        assert!(DbnKey::read(&path).unwrap_err().contains("cannot be read"));
    }
}
