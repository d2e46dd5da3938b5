//! The conversion of a value of a feed to the text that a version's dictionary requires.

use fanfare_fast::Value;
use fanfare_fast::fix::write_value;
use fanfare_fix::dict::{DataType, Dictionary};
use fanfare_wire::{Precision, UtcTimestamp, int};
use std::cell::Cell;

/// The conversion of a field's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Conv {
    /// The unchanged text, which always fits.
    Plain,
    /// The unchanged text, if it fits.
    Checked,
    /// As UTCTimestamp.
    Timestamp(Precision),
    /// As UTCTimeOnly or LocalMktTime.
    Time(Clock),
    /// As TZTimeOnly: UTCTimeOnly followed by `Z`.
    ZonedTime(Clock),
    /// As TZTimestamp: UTCTimestamp followed by `Z`.
    ZonedTimestamp(Precision),
    /// As UTCDateOnly or LocalMktDate.
    Date,
    /// As Boolean.
    Boolean,
    /// As bytes, after the field of their length.
    Data(u32),
}

/// The format of a time of day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Clock {
    precision: Precision,
    /// The digits of a fraction of a second in integers of this field, which have no leading zeros
    /// to show it. Fields of 64 bits may have more than milliseconds, as the longest value shows.
    fraction: Cell<usize>,
}

/// More than the longest text of a time or date: `YYYYMMDD-HH:MM:SS.nnnnnnnnnZ`.
const LONGEST: usize = 32;

impl Clock {
    fn new(precision: Precision) -> Self {
        Self {
            precision,
            fraction: Cell::new(3),
        }
    }
}

impl Conv {
    /// Creates the conversion for values of a FAST field that becomes the field `tag`.
    pub(super) fn new(dictionary: &Dictionary, tag: u32, source: Source, limit: Precision) -> Self {
        let Some(data_type) = dictionary.data_type(tag) else {
            return Self::Plain;
        };
        match data_type {
            DataType::UtcTimestamp => Self::Timestamp(limit),
            DataType::UtcTimeOnly | DataType::LocalMktTime => Self::Time(Clock::new(limit)),
            DataType::TzTimeOnly => Self::ZonedTime(Clock::new(limit)),
            DataType::TzTimestamp => Self::ZonedTimestamp(limit),
            DataType::UtcDateOnly | DataType::LocalMktDate => Self::Date,
            DataType::Boolean => Self::Boolean,
            DataType::Data | DataType::XmlData => Self::data(tag),
            _ if dictionary.has_listed_values(tag) => Self::Checked,
            DataType::String | DataType::Exchange | DataType::Other => Self::Plain,
            DataType::Float
            | DataType::Qty
            | DataType::Price
            | DataType::PriceOffset
            | DataType::Amt
            | DataType::Percentage
                if source != Source::Text =>
            {
                Self::Plain
            }
            _ => Self::Checked,
        }
    }

    fn data(tag: u32) -> Self {
        let pairs = fanfare_wire::DataFields::standard();
        // Searched when a template is met, not for each message.
        let length = (1..tag.saturating_add(1_000)).find(|t| pairs.data_tag(*t) == Some(tag));
        length.map_or(Self::Checked, Self::Data)
    }

    /// Appends the text of `value` for the field `tag`. Returns false, with nothing appended, if it
    /// does not fit.
    pub(super) fn write(
        &self,
        dictionary: &Dictionary,
        tag: u32,
        value: Value<'_>,
        out: &mut Vec<u8>,
    ) -> bool {
        let start = out.len();
        if let (Self::Data(_), Some(bytes)) = (self, value.as_bytes()) {
            out.extend_from_slice(bytes);
            return !bytes.is_empty();
        }
        let fits = write_value(value, out) && self.finish(dictionary, tag, value, start, out);
        if !fits {
            out.truncate(start);
        }
        fits
    }

    /// Converts the text after `start`, as the feed has it, to the form of the field.
    fn finish(
        &self,
        dictionary: &Dictionary,
        tag: u32,
        value: Value<'_>,
        start: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let text = out.get(start..).unwrap_or_default();
        if text.is_empty() {
            return false;
        }
        let made = match self {
            Self::Plain => return true,
            Self::Checked | Self::Data(_) => return dictionary.fits(tag, text),
            Self::Boolean => boolean(text),
            Self::Timestamp(precision) => timestamp(text, *precision),
            Self::ZonedTimestamp(precision) => {
                zoned(text).or_else(|| timestamp(text, *precision)?.with(b"Z"))
            }
            Self::Time(clock) => clock.time(text, value),
            Self::ZonedTime(clock) => zoned(text).or_else(|| clock.time(text, value)?.with(b"Z")),
            Self::Date => date(text),
        };
        let Some(made) = made else {
            return false;
        };
        out.truncate(start);
        out.extend_from_slice(made.bytes());
        dictionary.fits(tag, made.bytes())
    }
}

/// The kind of a FAST field's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Number,
    Text,
}

/// A short text in place.
#[derive(Default)]
struct Text {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Text {
    fn of(parts: &[&[u8]]) -> Option<Self> {
        parts
            .iter()
            .try_fold(Self::default(), |text, part| text.with(part))
    }

    fn with(mut self, part: &[u8]) -> Option<Self> {
        let end = self.len + part.len();
        self.bytes.get_mut(self.len..end)?.copy_from_slice(part);
        self.len = end;
        Some(self)
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

fn all_digits(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// Returns a text that has a zone unchanged.
fn zoned(text: &[u8]) -> Option<Text> {
    let clock = text.get(text.iter().position(|b| *b == b':')?..)?;
    let has_zone = clock.iter().any(|b| matches!(b, b'Z' | b'+' | b'-'));
    has_zone.then(|| Text::of(&[text])).flatten()
}

fn boolean(text: &[u8]) -> Option<Text> {
    Text::of(&[match text {
        b"1" => b"Y",
        b"0" => b"N",
        _ => text,
    }])
}

/// Returns `YYYYMMDD` of a date, or of a date with a time of day.
fn date(text: &[u8]) -> Option<Text> {
    let is_whole = all_digits(text) && matches!(text.len(), 8 | 14 | 17 | 20 | 23);
    let is_date = is_whole || UtcTimestamp::parse(text).is_some();
    Text::of(&[text.get(..8).filter(|_| is_date)?])
}

/// Returns a fraction of a second with its point, truncated to the precision.
fn fraction(digits: &[u8], precision: Precision) -> Option<Text> {
    let most = match precision {
        Precision::Seconds => 0,
        Precision::Millis => 3,
        Precision::Micros => 6,
        Precision::Nanos => 9,
    };
    match digits.get(..most.min(digits.len()))? {
        [] => Some(Text::default()),
        kept => Text::of(&[b".", kept]),
    }
}

/// Converts a timestamp: `YYYYMMDD-HH:MM:SS` with a fraction, `YYYYMMDDHHMMSS` followed by 0, 3, 6
/// or 9 digits, `YYYYMMDD`, or a whole number of seconds, milliseconds, microseconds or nanoseconds
/// since 1970. Such a number has 10, 13, 16 or 19 digits from 2001 to 2286.
fn timestamp(text: &[u8], precision: Precision) -> Option<Text> {
    let part = |from: usize, to: usize| text.get(from..to);
    if !all_digits(text) {
        UtcTimestamp::parse(text)?;
        let behind = fraction(text.get(18..).unwrap_or_default(), precision)?;
        return Text::of(&[part(0, 17)?, behind.bytes()]);
    }
    let made = match text.len() {
        8 => Text::of(&[text, b"-00:00:00"])?,
        14 | 17 | 20 | 23 => {
            let behind = fraction(part(14, text.len())?, precision)?;
            let (date, hour, minute) = (part(0, 8)?, part(8, 10)?, part(10, 12)?);
            let second = part(12, 14)?;
            Text::of(&[date, b"-", hour, b":", minute, b":", second, behind.bytes()])?
        }
        10 | 13 | 16 | 19 => {
            let unit = 10_i64.pow(19 - text.len() as u32);
            let nanos = i64::try_from(int::parse_u64(text)?)
                .ok()?
                .checked_mul(unit)?;
            let mut made = Text::default();
            made.len = UtcTimestamp::from_nanos(nanos).write(precision, &mut made.bytes);
            made
        }
        _ => return None,
    };
    UtcTimestamp::parse(made.bytes())?;
    Some(made)
}

impl Clock {
    /// Converts a time of day: `HH:MM:SS` with a fraction, `HHMMSS` followed by 0, 3, 6 or 9
    /// digits, or an integer of the same digits without leading zeros.
    fn time(&self, text: &[u8], value: Value<'_>) -> Option<Text> {
        if !all_digits(text) {
            let behind = fraction(text.get(9..).unwrap_or_default(), self.precision)?;
            return Text::of(&[text.get(..8)?, behind.bytes()]);
        }
        let mut digits = [b'0'; 15];
        let len = match value.as_bytes() {
            Some(_) => text.len(),
            None => 6 + self.fraction_of(text.len()),
        };
        let zeros = len.checked_sub(text.len())?;
        digits.get_mut(zeros..len)?.copy_from_slice(text);
        let digits = digits
            .get(..len)
            .filter(|_| matches!(len, 6 | 9 | 12 | 15))?;
        let behind = fraction(digits.get(6..)?, self.precision)?;
        let (hour, minute, second) = (digits.get(..2)?, digits.get(2..4)?, digits.get(4..6)?);
        Text::of(&[hour, b":", minute, b":", second, behind.bytes()])
    }

    /// Returns the digits of the fraction in an integer of `len` digits.
    fn fraction_of(&self, len: usize) -> usize {
        let least = len.saturating_sub(6).next_multiple_of(3);
        self.fraction.set(self.fraction.get().max(least));
        self.fraction.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_fast::value::IntType;
    use fanfare_fix::dict::Version;

    fn text(value: &str) -> Value<'_> {
        Value::Ascii(value.as_bytes())
    }

    fn number(value: u64) -> Value<'static> {
        Value::Unsigned(value, IntType::UInt64)
    }

    fn written(version: Version, tag: u32, value: Value<'_>) -> String {
        let dictionary = Dictionary::built_in(version);
        let source = match value.as_bytes() {
            Some(_) => Source::Text,
            None => Source::Number,
        };
        let limit = super::super::rules::precision(version);
        let conv = Conv::new(&dictionary, tag, source, limit);
        let mut out = b"|".to_vec();
        let fits = conv.write(&dictionary, tag, value, &mut out);
        assert_eq!(out.len() > 1, fits, "nothing is appended that does not fit");
        String::from_utf8(out).unwrap().split_off(1)
    }

    #[test]
    fn times_are_written_as_the_version_has_them() {
        use Version::{Fix41, Fix42, Fix44, Fix50Sp2};
        for (version, tag, value, expected) in [
            (Fix44, 273, number(142_412_406), "14:24:12.406"),
            (Fix44, 273, number(5_123), "00:00:05.123"),
            (Fix44, 273, number(0), "00:00:00.000"),
            (Fix44, 273, text("142412"), "14:24:12"),
            (Fix44, 273, text("14:24:12.406123"), "14:24:12.406"),
            (
                Fix50Sp2,
                273,
                number(142_412_406_123_456),
                "14:24:12.406123456",
            ),
            (Fix44, 273, number(246_000_000), ""),
            (Fix44, 273, text("2412"), ""),
            (
                Fix44,
                60,
                number(20_120_301_100_000_123),
                "20120301-10:00:00.123",
            ),
            (
                Fix41,
                60,
                number(20_120_301_100_000_123),
                "20120301-10:00:00",
            ),
            (Fix42, 60, number(20_120_301), "20120301-00:00:00"),
            (
                Fix42,
                60,
                number(1_330_596_000_123),
                "20120301-10:00:00.123",
            ),
            (
                Fix42,
                60,
                text("20120301-10:00:00.123456"),
                "20120301-10:00:00.123",
            ),
            (Fix44, 60, number(58_781), ""),
            (Fix44, 60, number(20_121_301_100_000_123), ""),
            (Fix44, 272, number(20_120_301), "20120301"),
            (Fix44, 272, number(20_120_301_100_000_123), "20120301"),
            (Fix44, 272, number(20_121_301), ""),
            (Fix50Sp2, 1079, number(184_500_000), "18:45:00.000Z"),
            (Fix50Sp2, 1079, text("18:45+03"), "18:45+03"),
        ] {
            assert_eq!(
                written(version, tag, value),
                expected,
                "{version:?} {tag} {value:?}"
            );
        }
    }

    #[test]
    fn what_an_integer_of_a_day_stands_for_is_told_by_the_longest() {
        let clock = Clock::new(Precision::Nanos);
        let time = |value: u64| {
            let text = value.to_string();
            let made = clock.time(text.as_bytes(), number(value)).unwrap();
            String::from_utf8(made.bytes().to_vec()).unwrap()
        };
        assert_eq!(time(235_959_999_999_999), "23:59:59.999999999");
        assert_eq!(time(5_000_000_001), "00:00:05.000000001");
    }

    #[test]
    fn values_that_do_not_fit_are_not_written() {
        for (tag, value, expected) in [
            (55, text("A\u{1}B"), ""),
            (55, text(""), ""),
            (55, text("EURUSD"), "EURUSD"),
            (54, number(1), "1"),
            (54, number(12), ""),
            (277, text("?"), ""),
            (270, text("1.5"), "1.5"),
            (270, text("n/a"), ""),
            (
                270,
                Value::Decimal(fanfare_wire::Decimal::new(15, -1)),
                "1.5",
            ),
            (346, Value::Signed(-2, IntType::Int32), "-2"),
            (43, number(1), "Y"),
            (43, number(2), ""),
            (96, Value::Bytes(b"a\x01b"), "a\u{1}b"),
        ] {
            assert_eq!(
                written(Version::Fix44, tag, value),
                expected,
                "{tag} {value:?}"
            );
        }
    }
}
