//! The preamble of a datagram: the sequence number in front of the FAST messages.

use std::fmt;
use std::str::FromStr;

/// The bytes in front of each datagram's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Preamble {
    /// No bytes: the sequence number, if there is one, is a field of the messages.
    #[default]
    None,
    /// Four bytes, least significant first (MOEX).
    Seq32Le,
    /// Four bytes, most significant first.
    Seq32Be,
    /// CME: four bytes, most significant first, and one byte of sub-channel id.
    Cme,
}

impl Preamble {
    /// Returns the length of the preamble in bytes.
    pub const fn len(self) -> usize {
        match self {
            Self::None => 0,
            Self::Seq32Le | Self::Seq32Be => 4,
            Self::Cme => 5,
        }
    }

    /// Returns whether there is no preamble at all.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Splits a datagram into its sequence number and the bytes of its messages.
    ///
    /// # Errors
    /// The datagram is shorter than the preamble.
    pub fn split(self, datagram: &[u8]) -> Result<(Option<u32>, &[u8]), TooShort> {
        let too_short = TooShort {
            need: self.len(),
            have: datagram.len(),
        };
        let (head, body) = datagram.split_at_checked(self.len()).ok_or(too_short)?;
        let Some(number) = head.first_chunk::<4>() else {
            return Ok((None, body));
        };
        let sequence = match self {
            Self::Seq32Le => u32::from_le_bytes(*number),
            _ => u32::from_be_bytes(*number),
        };
        Ok((Some(sequence), body))
    }

    /// Appends the preamble for `sequence`; CME's sub-channel id is 0.
    pub fn write(self, sequence: u32, out: &mut Vec<u8>) {
        match self {
            Self::None => {}
            Self::Seq32Le => out.extend_from_slice(&sequence.to_le_bytes()),
            Self::Seq32Be => out.extend_from_slice(&sequence.to_be_bytes()),
            Self::Cme => {
                out.extend_from_slice(&sequence.to_be_bytes());
                out.push(0);
            }
        }
    }
}

impl FromStr for Preamble {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "seq32le" => Ok(Self::Seq32Le),
            "seq32be" => Ok(Self::Seq32Be),
            "cme" => Ok(Self::Cme),
            _ => Err(format!(
                "unknown preamble `{text}`: expected none, seq32le, seq32be or cme"
            )),
        }
    }
}

impl fmt::Display for Preamble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Seq32Le => "seq32le",
            Self::Seq32Be => "seq32be",
            Self::Cme => "cme",
        })
    }
}

/// A datagram that ends inside its preamble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooShort {
    /// Bytes of the preamble.
    pub need: usize,
    /// Bytes of the datagram.
    pub have: usize,
}

impl fmt::Display for TooShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the datagram has {} bytes, its preamble alone {}",
            self.have, self.need
        )
    }
}

impl std::error::Error for TooShort {}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Preamble; 4] = [
        Preamble::None,
        Preamble::Seq32Le,
        Preamble::Seq32Be,
        Preamble::Cme,
    ];

    #[test]
    fn each_order_is_read() {
        let bytes = [1, 2, 3, 4, 5, 6];
        assert_eq!(Preamble::None.split(&bytes), Ok((None, &bytes[..])));
        assert_eq!(
            Preamble::Seq32Le.split(&bytes),
            Ok((Some(0x0403_0201), &bytes[4..]))
        );
        assert_eq!(
            Preamble::Seq32Be.split(&bytes),
            Ok((Some(0x0102_0304), &bytes[4..]))
        );
        assert_eq!(
            Preamble::Cme.split(&bytes),
            Ok((Some(0x0102_0304), &bytes[5..]))
        );
    }

    #[test]
    fn what_is_written_is_read_and_its_name_parses() {
        for preamble in ALL {
            let mut out = Vec::new();
            preamble.write(0xfeed_f00d, &mut out);
            assert_eq!(out.len(), preamble.len());
            let (sequence, rest) = preamble.split(&out).unwrap();
            assert_eq!(sequence, (!preamble.is_empty()).then_some(0xfeed_f00d));
            assert!(rest.is_empty());
            assert_eq!(preamble.to_string().parse(), Ok(preamble));
        }
        assert!("u32".parse::<Preamble>().is_err());
    }

    #[test]
    fn a_datagram_shorter_than_its_preamble_says_so() {
        for have in 0..5 {
            let datagram = vec![0; have];
            let short = TooShort { need: 5, have };
            assert_eq!(Preamble::Cme.split(&datagram), Err(short));
            assert_eq!(Preamble::Seq32Le.split(&datagram).is_ok(), have == 4);
        }
    }
}
