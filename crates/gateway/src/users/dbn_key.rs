//! The users' keys for DBN. A client proves that it knows its key by hashing it with a random
//! challenge of the gateway, so the gateway must store the key itself.

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

/// A user's key.
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
    pub(super) fn read(path: &Path) -> Result<Self, String> {
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

    /// Returns the key of these characters.
    fn of(text: &[u8]) -> Option<Self> {
        let key = <[u8; KEY]>::try_from(text).ok()?;
        key.iter()
            .all(|byte| byte.is_ascii_graphic() && *byte != b'|')
            .then_some(Self(key))
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
        let text = [challenge.as_bytes(), b"|", &self.0].concat();
        let right = ring::digest::digest(&ring::digest::SHA256, &text);
        // The comparison takes the same time for every response. Each challenge is used once.
        let digits = right
            .as_ref()
            .iter()
            .flat_map(|byte| [byte >> 4, byte & 15]);
        let wrong = digits.zip(hash).fold(0, |wrong, (digit, given)| {
            let right = b"0123456789abcdef".get(usize::from(digit));
            wrong | right.map_or(1, |right| right ^ given)
        });
        wrong == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_peers::Scratch;

    #[test]
    fn the_answer_is_the_hash_of_challenge_and_key() {
        let key = DbnKey::of(b"db-AAAAAAAAAAAAAAAAAAAAAAAAabcde").unwrap();
        // printf 'CHALLENGE|db-AAAAAAAAAAAAAAAAAAAAAAAAabcde' | sha256sum
        let hash = "08300ed269c10e9742eefde8c3f3baffc3072d500ddc2a1c5aceb34ab2403a58";
        let answer = format!("{hash}-abcde");
        assert!(key.answers("CHALLENGE", answer.as_bytes()));
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
