//! The token of requests.

use fanfare_engine::regular;
use ring::hmac;
use ring::rand::SystemRandom;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, Weak};

/// The shortest token, in bytes.
const SHORTEST: usize = 16;
/// The longest token, in bytes.
const LONGEST: usize = 256;

/// A secret that every request has as `Authorization: Bearer …`. The secret itself is not kept.
pub(crate) struct Token(RwLock<Arc<Mark>>);

/// A mark by which the secret is recognised.
struct Mark {
    key: hmac::Key,
    tag: hmac::Tag,
}

impl Mark {
    /// Compares in constant time.
    fn is_of(&self, secret: &[u8]) -> bool {
        hmac::verify(&self.key, secret, self.tag.as_ref()).is_ok()
    }
}

/// The permission of a request that had the token. It ends when the token becomes another one.
#[derive(Clone)]
pub(crate) struct Pass(Weak<Mark>);

impl Pass {
    pub(crate) fn is_over(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl Token {
    /// Reads a token from a file of one line.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        Self::new(&read_secret(path)?)
    }

    /// Reads the token that this one becomes from a file of one line; `None` if it is the same.
    pub(crate) fn read_again(&self, path: &Path) -> io::Result<Option<Self>> {
        let secret = read_secret(path)?;
        match self.mark().is_of(&secret) {
            true => Ok(None),
            false => Self::new(&secret).map(Some),
        }
    }

    /// Makes a token.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(crate) fn new(token: &[u8]) -> io::Result<Self> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
            .map_err(|_| bad("cannot read random numbers from the system"))?;
        let tag = hmac::sign(&key, token);
        Ok(Self(RwLock::new(Arc::new(Mark { key, tag }))))
    }

    /// Becomes another token, for requests from then on. What the former one permitted ends.
    pub(crate) fn adopt(&self, other: Self) {
        let mark = other.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = mark;
    }

    /// Returns the permission of a request with this value of `Authorization`, if it has the token.
    pub(crate) fn admit(&self, authorization: &[u8]) -> Option<Pass> {
        let (scheme, given) = authorization.split_at_checked(7)?;
        let mark = self.mark();
        let is_it = scheme.eq_ignore_ascii_case(b"bearer ") && mark.is_of(given);
        is_it.then(|| Pass(Arc::downgrade(&mark)))
    }

    fn mark(&self) -> RwLockReadGuard<'_, Arc<Mark>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the only line of a file.
fn read_secret(path: &Path) -> io::Result<Vec<u8>> {
    let most = LONGEST as u64 + 2;
    let mut bytes = Vec::new();
    regular::open(path)?.take(most).read_to_end(&mut bytes)?;
    bytes.truncate(bytes.trim_ascii_end().len());
    if !(SHORTEST..=LONGEST).contains(&bytes.len()) {
        return Err(bad("the token must have 16 to 256 characters"));
    }
    if !bytes.iter().all(u8::is_ascii_graphic) {
        return Err(bad(
            "the token must be printable ASCII characters without spaces",
        ));
    }
    Ok(bytes)
}

fn bad(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_itself_is_taken() {
        let token = Token::new(b"0123456789abcdef").unwrap();
        assert!(token.admit(b"Bearer 0123456789abcdef").is_some());
        assert!(token.admit(b"bearer 0123456789abcdef").is_some());
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0",
            "Basic 0123456789abcdef",
            "0123456789abcdef",
        ] {
            assert!(token.admit(wrong.as_bytes()).is_none(), "{wrong}");
        }
    }

    #[test]
    fn another_token_ends_what_the_former_one_permitted() {
        let token = Token::new(b"0123456789abcdef").unwrap();
        let pass = token.admit(b"Bearer 0123456789abcdef").unwrap();
        assert!(!pass.is_over());
        token.adopt(Token::new(b"1123456789abcdef").unwrap());
        assert!(pass.is_over());
        let pass = token.admit(b"Bearer 1123456789abcdef").unwrap();
        assert!(!pass.is_over());
    }
}
