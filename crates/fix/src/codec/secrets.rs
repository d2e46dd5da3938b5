//! The secrets of a message.
//!
//! A password is transmitted, but neither stored, logged nor shown. This module has the only list
//! of secret fields. In any message they are Password(554), NewPassword(925),
//! EncryptedPassword(1402) and EncryptedNewPassword(1404). In a Logon(A) every field is secret that
//! is not known to be harmless, as counterparties define fields of their own for credentials.
//! RawData(96) and SecureData(91) are among them.

use super::announced::Announced;
use crate::tag;
use fanfare_wire::fields::parse_tag;
use std::ops::Range;

/// Returns the ranges of the values of a message's secrets, in order. The iteration takes time
/// linear in the length of the message, and does not allocate.
///
/// ```
/// let logon = b"8=FIX.4.4\x0135=A\x0149=ME\x01553=me\x01554=open sesame\x0110=000\x01";
/// let found: Vec<_> = fanfare_fix::codec::secrets(logon).collect();
/// assert_eq!(&logon[found[0].clone()], b"open sesame");
/// assert_eq!(found.len(), 1);
/// ```
pub fn secrets(message: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut scan = Scan::new(message);
    std::iter::from_fn(move || scan.next(message))
}

/// Overwrites the values of all secrets with `*`. The length of the message, and with it
/// BodyLength(9), does not change. CheckSum(10) is computed anew if the message ends with it.
pub fn mask_secrets(message: &mut [u8]) {
    if overwrite_secrets(message) {
        renew_check_sum(message);
    }
}

/// Overwrites the values of all secrets with `*`, and leaves CheckSum(10) as it is. Returns whether
/// there are any.
pub(crate) fn overwrite_secrets(message: &mut [u8]) -> bool {
    let mut scan = Scan::new(message);
    let mut found = false;
    while let Some(value) = scan.next(message) {
        if let Some(value) = message.get_mut(value) {
            value.fill(b'*');
        }
        found = true;
    }
    found
}

/// Returns whether the value of this field is a secret.
pub const fn is_secret(tag: u32, is_logon: bool) -> bool {
    match tag {
        554 | 925 | 1402 | 1404 => true,
        tag => is_logon && !is_harmless_in_logon(tag),
    }
}

/// Returns whether the standard defines this field for a Logon(A) and it is neither a secret nor a
/// data field.
const fn is_harmless_in_logon(tag: u32) -> bool {
    match tag {
        90 | 91 | 212 | 213 => false,
        // EncryptMethod, RawDataLength, HeartBtInt, ResetSeqNumFlag, Text
        98 | 95 | 108 | 141 | 58 => true,
        // RefMsgType, MaxMessageSize, NoMsgTypes, MsgDirection, TestMessageIndicator, Username
        372 | 383..=385 | 464 | 553 => true,
        // NextExpectedMsgSeqNum, RefApplVerID to DefaultApplVerID and extension packs
        789 | 1130 | 1131 | 1137 | 1406..=1410 => true,
        // EncryptedPasswordMethod, EncryptedPasswordLen, EncryptedNewPasswordLen
        1400 | 1401 | 1403 => true,
        tag => tag::is_header(tag) || tag::is_trailer(tag) && tag == tag::CHECK_SUM,
    }
}

struct Scan {
    at: usize,
    is_logon: bool,
    /// Whether the message may have passwords in fields that cannot be read.
    has_passwords: bool,
    announced: Announced,
}

impl Scan {
    fn new(message: &[u8]) -> Self {
        let is_logon = message.windows(6).any(|bytes| bytes == b"\x0135=A\x01");
        let is_of_user = || message.windows(7).any(|bytes| bytes == b"\x0135=BE\x01");
        Self {
            at: 0,
            is_logon,
            has_passwords: is_logon || is_of_user(),
            announced: Announced::default(),
        }
    }

    /// Returns the range of the value of the next secret.
    fn next(&mut self, message: &[u8]) -> Option<Range<usize>> {
        loop {
            let rest = message.get(self.at..).filter(|rest| !rest.is_empty())?;
            let separator = rest
                .iter()
                .position(|&byte| byte == 1)
                .unwrap_or(rest.len());
            let field = rest.get(..separator).unwrap_or(rest);
            let Some(equals) = field.iter().position(|&byte| byte == b'=') else {
                let start = self.at;
                self.at += separator + 1;
                // The rest of a data field of a wrong length, or of a password with a separator.
                if self.has_passwords && separator > 0 {
                    return Some(start..start + separator);
                }
                continue;
            };
            let text = field.get(..equals).unwrap_or(field);
            let tag = parse_tag(text);
            let start = self.at + equals + 1;
            let behind = message.get(start..).unwrap_or_default();
            let len = self.announced.len_of(tag, behind);
            let end = len.map_or(self.at + separator, |len| start + len);
            let value = message.get(start..end).unwrap_or_default();
            self.announced = Announced::by(tag, value);
            self.at = end + 1;
            let is_hidden = match tag {
                0 => self.has_passwords || is_secret(digits_of(text), false),
                tag => is_secret(tag, self.is_logon),
            };
            if is_hidden {
                return Some(start..end);
            }
        }
    }
}

/// Returns the number that the digits of a broken tag make, or 0 if they make none.
fn digits_of(tag: &[u8]) -> u32 {
    let digits = tag.iter().filter(|byte| byte.is_ascii_digit());
    digits.fold(0, |number: u32, digit| {
        number
            .saturating_mul(10)
            .saturating_add(u32::from(digit - b'0'))
    })
}

fn renew_check_sum(message: &mut [u8]) {
    let Some((body, trailer)) = message.split_last_chunk_mut::<7>() else {
        return;
    };
    if !trailer.starts_with(b"10=") || trailer[6] != 1 {
        return;
    }
    let sum = body.iter().fold(0_u8, |sum, &byte| sum.wrapping_add(byte));
    let digits = [sum / 100, sum / 10 % 10, sum % 10].map(|digit| b'0' + digit);
    trailer[3..6].copy_from_slice(&digits);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Decoder;

    fn masked(text: &str) -> String {
        let mut message = text.replace('|', "\x01").into_bytes();
        mask_secrets(&mut message);
        String::from_utf8(message).unwrap().replace('\x01', "|")
    }

    #[test]
    fn a_logon_shows_only_what_is_known_to_be_harmless() {
        let logon = "8=FIX.4.4|9=99|35=A|34=1|49=A|52=20260202-02:40:00|56=B|98=0|95=5|96=a|b|c|\
                     108=30|141=Y|553=me|554=pw|925=new|1402=x|5555=token|58=hello|89=s|";
        let shown = "8=FIX.4.4|9=99|35=A|34=1|49=A|52=20260202-02:40:00|56=B|98=0|95=5|96=*****|\
                     108=30|141=Y|553=me|554=**|925=***|1402=*|5555=*****|58=hello|89=*|";
        assert_eq!(masked(logon), shown);
    }

    #[test]
    fn other_messages_lose_their_passwords_and_nothing_else() {
        let request = "8=FIX.4.4|35=BE|553=me|554=old|925=new|96=data|5555=token|";
        let shown = "8=FIX.4.4|35=BE|553=me|554=***|925=***|96=data|5555=token|";
        assert_eq!(masked(request), shown);
        assert_eq!(masked("35=D|11=1|58=554=x|"), "35=D|11=1|58=554=x|");
    }

    #[test]
    fn a_password_whose_tag_is_broken_is_hidden_where_it_is_recognisable() {
        for tag in ["x554", "554 ", " 554", "0554", "5 54", "+554", "55\u{e9}4"] {
            let message = |value: &str| format!("8=F|35=D|11=1|{tag}={value}|58=a|");
            assert_eq!(masked(&message("pw")), message("**"), "{tag}");
        }
        assert_eq!(masked("8=F|35=D|x555=a|no|"), "8=F|35=D|x555=a|no|");
        // These two types are for passwords.
        for msg_type in ["A", "BE"] {
            let shown = masked(&format!("8=F|35={msg_type}|5a4=pw|=pw|pw|553=me|"));
            let expected = format!("8=F|35={msg_type}|5a4=**|=**|**|553=me|");
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn data_of_the_header_is_hidden_whole() {
        let shown = masked("8=F|35=A|90=6|91=a|58=b|212=5|213=|58=c|98=0|");
        assert_eq!(shown, "8=F|35=A|90=*|91=******|212=*|213=*****|98=0|");
    }

    #[test]
    fn a_wrong_length_hides_too_much_rather_than_too_little() {
        let shown = masked("8=F|35=A|95=900|96=se|cret|554=pw|");
        assert_eq!(shown, "8=F|35=A|95=900|96=**|****|554=**|");
        assert_eq!(
            masked("8=F|35=A|96=a|7777=b|1=c|"),
            "8=F|35=A|96=*|7777=*|1=*|"
        );
    }

    #[test]
    fn what_is_masked_is_still_a_message() {
        let body = "35=A\x0149=A\x0156=B\x0134=1\x0152=20260202-02:40:00\x01554=pw\x01";
        let mut text = format!("8=FIX.4.4\x019={}\x01{body}", body.len());
        let sum = text.bytes().fold(0, u8::wrapping_add);
        text += &format!("10={sum:03}\x01");
        let mut message = text.into_bytes();
        mask_secrets(&mut message);
        let mut decoder = Decoder::new();
        let decoded = decoder.decode(&message).unwrap();
        assert_eq!(decoded.get(554), Some(&b"**"[..]));
    }

    proptest::proptest! {
        #[test]
        fn anything_can_be_looked_at(bytes in proptest::collection::vec(
            proptest::prop_oneof![
                proptest::strategy::Just(1_u8), proptest::strategy::Just(b'='),
                b'0'..=b'9', proptest::prelude::any::<u8>()
            ], 0..200)) {
            let mut message = bytes.clone();
            mask_secrets(&mut message);
            assert_eq!(message.len(), bytes.len());
            let again: Vec<_> = secrets(&message).collect();
            assert_eq!(again, secrets(&bytes).collect::<Vec<_>>());
        }
    }
}
