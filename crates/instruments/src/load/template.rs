//! The message that producers send.

use fanfare_fix::codec::{DecodeError, Decoder, Message};
use fanfare_fix::tag::FANOUT_ID;

const SOH: u8 = 1;
/// The largest template accepted, in bytes.
const MAX_LEN: usize = 32 << 10;
/// Fields that the session sets for each message, and the mark.
const SESSION_FIELDS: [u32; 11] = [8, 9, 10, 34, 35, 43, 49, 52, 56, 122, FANOUT_ID];

/// The application fields of a market data message, checked once, sent many times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    msg_type: Vec<u8>,
    body: Vec<u8>,
}

/// The error of a template file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The file is empty.
    #[error("the template is empty; it must be one FIX message")]
    Empty,
    /// The text is longer than any market data message.
    #[error("the template has {0} bytes, more than the limit of 32768")]
    TooLong(usize),
    /// The text does not start like a FIX message.
    #[error("the template is not a FIX message: it does not start with 8=FIX, 9= and 35=")]
    NotFix,
    /// The message has no end.
    #[error("the template is not a whole FIX message: its last field is not CheckSum(10)")]
    NoCheckSum,
    /// A field is malformed.
    #[error("the template has a broken field: {0}")]
    Field(DecodeError),
    /// The message belongs to the session layer.
    #[error(
        "the template is a message of the session layer (35={0}); it must be of the application"
    )]
    SessionLevel(char),
}

impl Template {
    /// Returns a MarketDataSnapshotFullRefresh(W) with six entries; about 300 bytes on the wire.
    pub fn builtin() -> Self {
        let mut body = "262=SNAPSHOT|55=EUR/USD|48=EU0009652759|22=4|268=6|".to_owned();
        let prices = [
            "1.08431", "1.08429", "1.08427", "1.08433", "1.08435", "1.08437",
        ];
        for (i, price) in prices.into_iter().enumerate() {
            let (side, level) = (i / 3, i % 3 + 1);
            body += &format!("269={side}|270={price}|271={level}500000|290={level}|");
        }
        let body = body.replace('|', "\x01").into_bytes();
        Self {
            msg_type: b"W".to_vec(),
            body,
        }
    }

    /// Parses a template: one FIX message, fields separated by SOH, or by `|` if the text has no
    /// SOH. Header and trailer are set for each message, so BodyLength(9) and CheckSum(10) need not
    /// be right. White space at the end is ignored.
    ///
    /// # Errors
    /// [`TemplateError`] describes the fault.
    pub fn parse(text: &[u8]) -> Result<Self, TemplateError> {
        let mut text = text.trim_ascii().to_vec();
        if text.is_empty() {
            return Err(TemplateError::Empty);
        }
        if text.len() > MAX_LEN {
            return Err(TemplateError::TooLong(text.len()));
        }
        if !text.contains(&SOH) {
            text.iter_mut()
                .filter(|b| **b == b'|')
                .for_each(|b| *b = SOH);
        }
        let frame = reframed(&text)?;
        let mut decoder = Decoder::new();
        let message = decoder.decode(&frame).map_err(TemplateError::Field)?;
        let msg_type = message.msg_type();
        if let [kind @ (b'0'..=b'5' | b'A')] = msg_type {
            return Err(TemplateError::SessionLevel(char::from(*kind)));
        }
        Ok(Self {
            msg_type: msg_type.to_vec(),
            body: application_fields(&message),
        })
    }

    /// Returns MsgType(35).
    pub fn msg_type(&self) -> &[u8] {
        &self.msg_type
    }

    /// Returns the encoded fields behind the standard header, without the trailer.
    pub fn body(&self) -> &[u8] {
        &self.body
    }
}

impl Default for Template {
    fn default() -> Self {
        Self::builtin()
    }
}

/// Returns the message with correct BodyLength(9) and CheckSum(10).
fn reframed(text: &[u8]) -> Result<Vec<u8>, TemplateError> {
    let mut fields = text.splitn(3, |b| *b == SOH);
    let (Some(begin), Some(length), Some(rest)) = (fields.next(), fields.next(), fields.next())
    else {
        return Err(TemplateError::NotFix);
    };
    if !begin.starts_with(b"8=FIX") || !length.starts_with(b"9=") || !rest.starts_with(b"35=") {
        return Err(TemplateError::NotFix);
    }
    let rest = rest.strip_suffix(&[SOH]).unwrap_or(rest);
    let last = rest
        .iter()
        .rposition(|b| *b == SOH)
        .map_or(0, |soh| soh + 1);
    let (body, trailer) = rest.split_at(last);
    if !trailer.starts_with(b"10=") {
        return Err(TemplateError::NoCheckSum);
    }
    let mut frame = [begin, format!("\x019={}\x01", body.len()).as_bytes(), body].concat();
    let sum = frame.iter().fold(0_u8, |sum, b| sum.wrapping_add(*b));
    frame.extend(format!("10={sum:03}\x01").as_bytes());
    Ok(frame)
}

fn application_fields(message: &Message<'_>) -> Vec<u8> {
    let mut body = Vec::new();
    for field in message
        .fields()
        .filter(|f| !SESSION_FIELDS.contains(&f.tag))
    {
        body.extend(field.tag_bytes());
        body.push(b'=');
        body.extend(field.value);
        body.push(SOH);
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNAPSHOT: &str = "8=FIX.4.4|9=0|35=W|49=X|56=Y|34=7|52=20261121-03:00:00|55=EUR/USD|\
                            268=1|269=0|270=1.1|95=3|96=a|b|20001=1-1|10=000|";

    #[test]
    fn the_fields_of_the_application_remain() {
        let expected = "55=EUR/USD|268=1|269=0|270=1.1|95=3|96=a|b|";
        for text in [
            SNAPSHOT.to_owned(),
            format!("{SNAPSHOT}\r\n"),
            SNAPSHOT.replace('|', "\x01"),
        ] {
            let template = Template::parse(text.as_bytes()).unwrap();
            assert_eq!(template.msg_type(), b"W");
            assert_eq!(
                String::from_utf8_lossy(template.body()).replace('\x01', "|"),
                expected
            );
        }
    }

    #[test]
    fn what_is_no_message_is_told() {
        let error = |text: &str| Template::parse(text.as_bytes()).unwrap_err();
        assert_eq!(error("  \n"), TemplateError::Empty);
        assert_eq!(error("hello world"), TemplateError::NotFix);
        assert_eq!(error("8=FIX.4.4|35=W|10=000|"), TemplateError::NotFix);
        assert_eq!(error("8=FIX.4.4|9=5|35=W|55=X|"), TemplateError::NoCheckSum);
        assert_eq!(
            error("8=FIX.4.4|9=5|35=A|98=0|10=000|"),
            TemplateError::SessionLevel('A')
        );
        let broken = error("8=FIX.4.4|9=5|35=W|55|10=000|");
        assert!(matches!(broken, TemplateError::Field(_)), "{broken}");
        assert_eq!(error(&"x".repeat(40_000)), TemplateError::TooLong(40_000));
    }

    #[test]
    fn the_builtin_one_is_a_template() {
        let template = Template::builtin();
        let body = String::from_utf8(template.body().to_vec()).unwrap();
        let text = format!("8=FIX.4.4\x019=0\x0135=W\x01{body}10=000\x01");
        assert_eq!(Template::parse(text.as_bytes()).unwrap(), template);
        assert!((240..300).contains(&body.len()), "{}", body.len());
    }
}
