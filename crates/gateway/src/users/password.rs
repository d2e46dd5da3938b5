//! Passwords as argon2 hashes.

use super::error::NO_STRING;
use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, Params, PasswordHasher, PasswordVerifier};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::str::FromStr;

/// The most memory that checking a password may take, in KiB, and the most passes and lanes.
const MOST_MEMORY: u32 = 256 << 10;
const MOST_PASSES: u32 = 64;
const MOST_LANES: u32 = 16;

/// The longest password that is hashed or checked, in bytes.
pub const LONGEST_PASSWORD: usize = 1024;

/// The argon2 hash of a password, as a PHC string.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Hashed(String);

/// An error does not quote a value that is not a string, because it may be the password.
impl<'de> Deserialize<'de> for Hashed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let hash = String::deserialize(deserializer);
        hash.map(Self).map_err(|_| D::Error::custom(NO_STRING))
    }
}

/// Hides the hash.
impl fmt::Debug for Hashed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hashed")
    }
}

impl Hashed {
    /// Checks that it is a hash whose verification has bounded cost.
    ///
    /// # Errors
    /// Returns the requirement that it violates.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        const NO_HASH: &str = "must be an argon2 hash (`$argon2id$…`): `fanfare gateway \
                               --hash-password` makes one";
        let hash = PasswordHash::from_str(&self.0).map_err(|_| NO_HASH)?;
        if !hash.algorithm.as_str().starts_with("argon2") || hash.hash.is_none() {
            return Err(NO_HASH);
        }
        let params = Params::try_from(&hash).map_err(|_| NO_HASH)?;
        let fits = params.m_cost() <= MOST_MEMORY
            && params.t_cost() <= MOST_PASSES
            && params.p_cost() <= MOST_LANES;
        match fits {
            true => Ok(()),
            false => Err("must have at most m=262144, t=64, p=16"),
        }
    }

    /// Returns whether this is the password. Takes tens of milliseconds.
    pub(crate) fn is_of(&self, password: &[u8]) -> bool {
        let Ok(hash) = PasswordHash::from_str(&self.0) else {
            return false;
        };
        let checked = Argon2::default().verify_password(password, &hash);
        password.len() <= LONGEST_PASSWORD && checked.is_ok()
    }
}

/// Hashes a password with argon2id and a random salt. Returns the PHC string for `password` of a
/// user.
///
/// # Errors
/// Returns an error if the password is empty or longer than [`LONGEST_PASSWORD`], or if the system
/// has no random numbers.
pub fn hash_password(password: &[u8]) -> Result<String, String> {
    if password.is_empty() || password.len() > LONGEST_PASSWORD {
        return Err(format!(
            "expected a password of 1 to {LONGEST_PASSWORD} bytes, found {}",
            password.len()
        ));
    }
    let hash = Argon2::default().hash_password(password);
    hash.map(|hash| hash.to_string())
        .map_err(|error| format!("cannot hash the password: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_known_by_its_hash() {
        let hash = hash_password(b"open sesame").unwrap();
        let own = Hashed(hash.clone());
        own.check().unwrap();
        assert!(own.is_of(b"open sesame") && !own.is_of(b"open sesam"));
        assert_ne!(
            hash_password(b"open sesame").unwrap(),
            hash,
            "the salt differs"
        );
        assert!(!format!("{own:?}").contains("argon2"));
        assert!(hash_password(b"").is_err() && hash_password(&[b'x'; 1025]).is_err());
    }

    #[test]
    fn what_is_no_hash_or_has_no_bounds_is_refused() {
        let hash = "$c29tZXNhbHRzb21lc2FsdA$\
                    MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI";
        let check = |text: &str| Hashed(text.to_owned()).check();
        for good in ["argon2id$v=19$m=19456,t=2,p=1", "argon2i$v=19$m=64,t=1,p=1"] {
            check(&format!("${good}{hash}")).unwrap();
        }
        for wrong in [
            "argon2id$v=19$m=4194304,t=2,p=1",
            "argon2id$v=19$m=19456,t=65,p=1",
            "argon2id$v=19$m=19456,t=2,p=17",
            "scrypt$ln=1,r=8,p=1",
        ] {
            check(&format!("${wrong}{hash}")).unwrap_err();
        }
        for wrong in [
            "hunter2",
            "",
            "$argon2id$",
            "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ",
        ] {
            check(wrong).unwrap_err();
        }
    }
}
