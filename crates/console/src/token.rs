//! The token of requests.

use ring::hmac;
use ring::rand::SystemRandom;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{PoisonError, RwLock};

/// The shortest token, in bytes.
const SHORTEST: usize = 16;
/// The longest token, in bytes.
const LONGEST: usize = 256;

/// A secret that every request has as `Authorization: Bearer …`. The secret itself is not kept.
pub(crate) struct Token(RwLock<Mark>);

/// A mark by which the secret is recognised.
struct Mark {
    key: hmac::Key,
    tag: hmac::Tag,
}

impl Token {
    /// Reads a token from a file of one line.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let bad = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
        let most = LONGEST as u64 + 2;
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(fs::File::open(path)?, most), &mut bytes)?;
        let token = bytes.trim_ascii_end();
        if !(SHORTEST..=LONGEST).contains(&token.len()) {
            return Err(bad("the token must have 16 to 256 characters"));
        }
        if !token.iter().all(u8::is_ascii_graphic) {
            return Err(bad(
                "the token must be printable ASCII characters without spaces",
            ));
        }
        Self::new(token).ok_or_else(|| bad("cannot read random numbers from the system"))
    }

    /// Makes a token; `None` if the system has no random numbers.
    pub(crate) fn new(token: &[u8]) -> Option<Self> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok()?;
        let tag = hmac::sign(&key, token);
        Some(Self(RwLock::new(Mark { key, tag })))
    }

    /// Becomes another token, for requests from then on.
    pub(crate) fn become_other(&self, other: Self) {
        let mark = other.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = mark;
    }

    /// Returns whether the value of `Authorization` has the token. Compares in constant time.
    pub(crate) fn is_in(&self, authorization: &[u8]) -> bool {
        let bearer = authorization.split_at_checked(7);
        let given = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
        let mark = self.0.read().unwrap_or_else(PoisonError::into_inner);
        given.is_some_and(|(_, given)| hmac::verify(&mark.key, given, mark.tag.as_ref()).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_itself_is_taken() {
        let token = Token::new(b"0123456789abcdef").unwrap();
        assert!(token.is_in(b"Bearer 0123456789abcdef"));
        assert!(token.is_in(b"bearer 0123456789abcdef"));
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0",
            "Basic 0123456789abcdef",
            "0123456789abcdef",
        ] {
            assert!(!token.is_in(wrong.as_bytes()), "{wrong}");
        }
    }
}
