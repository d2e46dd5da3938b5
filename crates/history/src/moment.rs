//! Moments as users write them.

use jiff::{Timestamp, civil};
use std::str::FromStr;

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;

/// A time, or a place in a log or file: `2026-11-23T10:31:05.5Z`, `10:31:05.5`, `+5.5`, `-5.5`,
/// `day` or a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Nanoseconds since 1970.
    Utc(u64),
    /// Nanoseconds since midnight (UTC) of the day on which it begins.
    OfDay(u64),
    /// Nanoseconds after its beginning.
    After(u64),
    /// Nanoseconds before its end.
    Before(u64),
    /// Midnight (UTC) of the day on which it ends.
    Day,
    /// A number in it.
    Number(u64),
}

impl Moment {
    /// Returns the time in nanoseconds since 1970, for a log that begins at `first`; `None` for a
    /// number, and for a moment that depends on the end.
    pub fn time(self, first: u64) -> Option<u64> {
        match self {
            Self::Utc(time) => Some(time),
            Self::OfDay(time) => Some(first - first % DAY + time),
            Self::After(time) => Some(first.saturating_add(time)),
            Self::Before(_) | Self::Day | Self::Number(_) => None,
        }
    }

    /// Returns the time in nanoseconds since 1970, for a log that ends at `last`; `None` for a
    /// moment that does not depend on the end.
    pub fn time_from_end(self, last: u64) -> Option<u64> {
        match self {
            Self::Before(time) => Some(last.saturating_sub(time)),
            Self::Day => Some(last - last % DAY),
            _ => None,
        }
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(after) = text.strip_prefix('+') {
            return seconds(after).map(Self::After).ok_or_else(|| wrong(text));
        }
        if let Some(before) = text.strip_prefix('-') {
            return seconds(before).map(Self::Before).ok_or_else(|| wrong(text));
        }
        if text == "day" {
            return Ok(Self::Day);
        }
        if text.bytes().all(|byte| byte.is_ascii_digit())
            && let Ok(number) = text.parse()
        {
            return Ok(Self::Number(number));
        }
        let of_day = || {
            text.parse::<civil::Time>()
                .ok()
                .filter(|_| text.contains(':'))
        };
        if let Some(nanos) = parse_utc(text) {
            return u64::try_from(nanos)
                .map(Self::Utc)
                .map_err(|_| format!("`{text}`: the year must be between 1970 and 2554"));
        }
        let time = of_day().ok_or_else(|| wrong(text))?;
        let since = time.duration_since(civil::Time::midnight()).as_nanos();
        u64::try_from(since)
            .map(Self::OfDay)
            .map_err(|_| wrong(text))
    }
}

/// Parses a date and time to nanoseconds since 1970; without an offset they are UTC.
fn parse_utc(text: &str) -> Option<i128> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time.as_nanosecond());
    }
    let is_plain = text.len() > 10 && !text.contains('[');
    let time: civil::DateTime = text.parse().ok().filter(|_| is_plain)?;
    let time = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(time.timestamp().as_nanosecond())
}

/// Parses `1.25` to nanoseconds.
fn seconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 9 || !is_number(whole) || !is_number(part) {
        return None;
    }
    let nanos: u64 = format!("{part:0<9}").parse().ok()?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(SECOND)?
        .checked_add(nanos)
}

fn wrong(text: &str) -> String {
    format!(
        "`{text}` is not a time: expected 2026-11-23T10:31:05.5Z, 10:31:05.5 (UTC, of the day of \
         the beginning), +5.5 (seconds after the beginning) or, for a log, -5.5 (seconds before \
         the end) or day (midnight UTC before the end)"
    )
}

/// Formats a time in nanoseconds since 1970 as `2026-11-23T10:31:05.500000000Z`.
pub fn utc(nanos: u64) -> String {
    match Timestamp::from_nanosecond(nanos.into()) {
        Ok(time) => format!("{time:.9}"),
        Err(_) => format!("{nanos} ns"),
    }
}

/// Parses a moment that is no number.
pub fn time(text: &str) -> Result<Moment, String> {
    match text.parse()? {
        Moment::Number(_) => Err(wrong(text)),
        moment => Ok(moment),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: u64 = 1_795_435_200 * SECOND;

    #[test]
    fn times_are_of_a_date_of_the_day_or_from_one_of_the_ends() {
        let first = NOON + 5;
        for (text, expected) in [
            ("2026-11-23T12:00:00Z", NOON),
            ("2026-11-23T12:00:00", NOON),
            ("2026-11-23 15:00:00.000000007+03:00", NOON + 7),
            ("12:00", NOON),
            ("12:00:01.5", NOON + 1_500_000_000),
            ("00:00:00", NOON - DAY / 2),
            ("+0", first),
            ("+1.25", first + 1_250_000_000),
        ] {
            let moment = time(text).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(moment.time(first), Some(expected), "{text}");
        }
        for (text, expected) in [
            ("-0", first),
            ("-1.5", first - 1_500_000_000),
            ("-9999999999", 0),
            ("day", NOON - DAY / 2),
        ] {
            let moment = time(text).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(moment.time_from_end(first), Some(expected), "{text}");
            assert_eq!(moment.time(first), None, "{text}");
        }
        assert_eq!(Moment::After(1).time_from_end(first), None);
        assert_eq!("17".parse(), Ok(Moment::Number(17)));
        assert_eq!(Moment::Number(17).time(first), None);
    }

    #[test]
    fn times_are_printed_as_they_are_read() {
        assert_eq!(utc(NOON + 7), "2026-11-23T12:00:00.000000007Z");
        assert_eq!(utc(NOON + 7).parse(), Ok(Moment::Utc(NOON + 7)));
        assert!(utc(u64::MAX).starts_with("2554-07-21T"));
    }

    #[test]
    fn anything_else_is_told_what_a_time_looks_like() {
        for text in [
            "",
            "noon",
            "25:00:00",
            "12:61",
            "+",
            "+-1",
            "+1.1234567890",
            "+x",
            "2026-11-23",
            "2026-13-01T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "12",
            "-",
            "--5",
            "-5s",
            "days",
            "+99999999999999999999",
            "99999999999999999999999",
        ] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
