//! UTCTimestamp: nanoseconds since the epoch, and the text `YYYYMMDD-HH:MM:SS[.fraction]`.

use crate::int::pair_of;
use core::cell::Cell;
use core::fmt;

/// A point in time, in nanoseconds since 1970-01-01T00:00:00Z. Leap seconds are not counted, as in
/// POSIX.
///
/// The range covers the years 1677 to 2262.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UtcTimestamp(i64);

/// The number of digits after the seconds in the text of a UTCTimestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Precision {
    /// No digits: `20261120-12:34:56`.
    Seconds,
    /// Three digits: `20261120-12:34:56.123`.
    Millis,
    /// Six digits.
    Micros,
    /// Nine digits.
    Nanos,
}

impl Precision {
    /// Returns the length of a UTCTimestamp of this precision: 17, 21, 24 or 27 bytes.
    pub const fn text_len(self) -> usize {
        match self {
            Self::Seconds => 17,
            Self::Millis => 21,
            Self::Micros => 24,
            Self::Nanos => 27,
        }
    }
}

impl UtcTimestamp {
    /// The length of the longest text that [`UtcTimestamp::write`] writes.
    pub const MAX_LEN: usize = Precision::Nanos.text_len();

    /// Returns the time at a number of nanoseconds since the epoch.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the epoch.
    pub const fn nanos(self) -> i64 {
        self.0
    }

    /// Returns the beginning of a day, with months and days counted from 1, or `None` for an
    /// impossible date and for a year out of range.
    #[inline]
    pub fn midnight(year: u32, month: u32, day: u32) -> Option<Self> {
        let is_date = (1600..2400).contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day);
        let days = is_date.then(|| days_from_civil(year, month, day))?;
        days.checked_mul(DAY * NANOS).map(Self)
    }

    /// Parses `YYYYMMDD-HH:MM:SS` without a fraction or with one of 3, 6, 9 or 12 digits. Digits
    /// below a nanosecond are cut off, not rounded.
    ///
    /// Second 60 (a leap second) is accepted and counts as second 0 of the next minute. Returns
    /// `None` for any other text, an impossible date or time, and a year out of range.
    #[inline]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (whole, fraction) = text.split_at_checked(17)?;
        let whole: &[u8; 17] = whole.try_into().ok()?;
        if (whole[8], whole[11], whole[14]) != (b'-', b':', b':') {
            return None;
        }
        let pair = |at: usize| two_digits(whole[at], whole[at + 1]);
        let year = pair(0)? * 100 + pair(2)?;
        let (month, day) = (pair(4)?, pair(6)?);
        let (hour, minute, second) = (pair(9)?, pair(12)?, pair(15)?);
        let in_range = (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day)
            && hour <= 23
            && minute <= 59
            && second <= 60;
        if !in_range {
            return None;
        }
        let nanos = parse_fraction(fraction)?;
        let days = days_from_civil(year, month, day);
        let seconds = days * 86_400 + i64::from(hour * 3_600 + minute * 60 + second);
        seconds.checked_mul(NANOS)?.checked_add(nanos).map(Self)
    }

    /// Writes the time at the front of `out`, and returns the number of bytes, or 0 if `out` is
    /// shorter than [`Precision::text_len`]. Digits beyond the precision are cut off, not rounded.
    ///
    /// Each thread remembers the text of the last second that it wrote, so that another time of the
    /// same second takes 3 ns instead of 10.
    #[inline]
    pub fn write(self, precision: Precision, out: &mut [u8]) -> usize {
        let Some((whole, fraction)) = out
            .get_mut(..precision.text_len())
            .and_then(|text| text.split_first_chunk_mut::<17>())
        else {
            return 0;
        };
        let (second, nanos) = match u64::try_from(self.0) {
            // Unsigned divisions by constants are the cheaper ones.
            Ok(nanos) => ((nanos / NANOS as u64) as i64, nanos % NANOS as u64),
            Err(_) => (self.0.div_euclid(NANOS), self.0.rem_euclid(NANOS) as u64),
        };
        let nanos = nanos as u32;
        *whole = second_text(second);
        match precision {
            Precision::Seconds => {}
            // The usual one, without a loop.
            Precision::Millis => {
                let millis = nanos / 1_000_000;
                let [tens, ones] = pair_of(millis % 100);
                fraction.copy_from_slice(&[b'.', b'0' + (millis / 100) as u8, tens, ones]);
            }
            Precision::Micros => write_fraction(nanos / 1_000, fraction),
            Precision::Nanos => write_fraction(nanos, fraction),
        }
        precision.text_len()
    }

    /// Returns the text that [`UtcTimestamp::write`] writes. Does not allocate.
    pub fn text(self, precision: Precision) -> TimestampText {
        let mut bytes = [0; Self::MAX_LEN];
        let len = self.write(precision, &mut bytes);
        TimestampText { bytes, len }
    }
}

/// Formats the time with nanoseconds.
impl fmt::Display for UtcTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text(Precision::Nanos).as_str())
    }
}

/// The text of a time in a certain precision; see [`UtcTimestamp::text`].
#[derive(Clone, Copy, Debug)]
pub struct TimestampText {
    bytes: [u8; UtcTimestamp::MAX_LEN],
    len: usize,
}

impl TimestampText {
    /// Returns the text as a string slice.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

impl fmt::Display for TimestampText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The number of nanoseconds in a second.
const NANOS: i64 = 1_000_000_000;

/// The number of seconds in a day.
const DAY: i64 = 86_400;

#[inline]
fn two_digits(tens: u8, ones: u8) -> Option<u32> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens <= 9 && ones <= 9).then(|| u32::from(tens) * 10 + u32::from(ones))
}

/// Returns the nanoseconds of `""`, `.123`, `.123456`, `.123456789` or `.123456789012`.
#[inline]
fn parse_fraction(mut text: &[u8]) -> Option<i64> {
    let scale = match text.len() {
        0 => return Some(0),
        4 => 1_000_000,
        7 => 1_000,
        10 => 1,
        13 if text[10..].iter().all(u8::is_ascii_digit) => {
            text = &text[..10];
            1
        }
        _ => return None,
    };
    let digits = text.strip_prefix(b".")?;
    Some(i64::try_from(crate::int::parse_u64(digits)?).ok()? * scale)
}

thread_local! {
    /// The second that was written last, and its text. Most times are of the same second as the
    /// previous one. (The first value is no second that an `i64` of nanoseconds has.)
    static LAST: (Cell<i64>, Cell<[u8; 17]>) = const { (Cell::new(i64::MIN), Cell::new([0; 17])) };
}

/// Returns the text `YYYYMMDD-HH:MM:SS` of a second since the epoch.
#[inline]
fn second_text(second: i64) -> [u8; 17] {
    LAST.with(|(last, text)| {
        if last.get() != second {
            text.set(whole_text(second));
            last.set(second);
        }
        text.get()
    })
}

/// Returns the same text as [`second_text`], without a look at the last one.
#[inline(never)]
fn whole_text(second: i64) -> [u8; 17] {
    let days = second.div_euclid(DAY);
    let of_day = second.rem_euclid(DAY) as u32;
    let (year, month, day) = civil_from_days(days);
    let minutes = of_day / 60;
    let [y0, y1] = pair_of(year / 100);
    let [y2, y3] = pair_of(year % 100);
    let [m0, m1] = pair_of(month);
    let [d0, d1] = pair_of(day);
    let [h0, h1] = pair_of(minutes / 60);
    let [n0, n1] = pair_of(minutes % 60);
    let [s0, s1] = pair_of(of_day % 60);
    [
        y0, y1, y2, y3, m0, m1, d0, d1, b'-', h0, h1, b':', n0, n1, b':', s0, s1,
    ]
}

/// Writes a point, and then `value` with leading zeros to the rest of `out`.
#[inline]
fn write_fraction(value: u32, out: &mut [u8]) {
    if let Some((point, digits)) = out.split_first_mut() {
        *point = b'.';
        crate::int::write_padded(value.into(), digits.len(), digits);
    }
}

fn days_in_month(year: u32, month: u32) -> u32 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// The number of days from 0000-03-01 (proleptic Gregorian) to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;

/// Returns the number of days since the epoch. Years start in March, so that the leap day is the
/// last day of its year.
#[inline]
fn days_from_civil(year: u32, month: u32, day: u32) -> i64 {
    let year = i64::from(year) - i64::from(month <= 2);
    let month = i64::from((month + 9) % 12);
    let day_of_year = (153 * month + 2) / 5 + i64::from(day) - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + day_of_year - EPOCH_DAYS
}

/// Returns the year, month and day of a day since the epoch, for the years that an `i64` of
/// nanoseconds covers.
///
/// The computation is in quarters of a day, so that one division covers the leap years: the
/// Gregorian century first, then the year in it, then the month by a linear function.
#[inline]
fn civil_from_days(days: i64) -> (u32, u32, u32) {
    // From 0000-03-01: positive for all years from 1677.
    let days = (days + EPOCH_DAYS) as u32;
    let century_quarters = 4 * days + 3;
    let century = century_quarters / 146_097;
    let year_quarters = century_quarters % 146_097 / 4 * 4 + 3;
    let year_of_century = year_quarters / 1_461;
    let day_of_year = year_quarters % 1_461 / 4;
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let year = 100 * century + year_of_century;
    if month < 10 {
        (year, month + 3, day)
    } else {
        (year + 1, month - 9, day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(time: UtcTimestamp, precision: Precision) -> String {
        let mut out = [0; UtcTimestamp::MAX_LEN];
        let n = time.write(precision, &mut out);
        assert_eq!(time.text(precision).as_str().as_bytes(), &out[..n]);
        time.text(precision).to_string()
    }

    #[test]
    fn known_times() {
        let time = UtcTimestamp::from_nanos(1_795_178_096_123_456_789);
        assert_eq!(text(time, Precision::Seconds), "20261120-12:34:56");
        assert_eq!(text(time, Precision::Millis), "20261120-12:34:56.123");
        assert_eq!(text(time, Precision::Micros), "20261120-12:34:56.123456");
        assert_eq!(text(time, Precision::Nanos), "20261120-12:34:56.123456789");
        let epoch = UtcTimestamp::from_nanos(0);
        assert_eq!(text(epoch, Precision::Seconds), "19700101-00:00:00");
        let before = UtcTimestamp::from_nanos(-1);
        assert_eq!(
            text(before, Precision::Nanos),
            "19691231-23:59:59.999999999"
        );
    }

    #[test]
    fn midnights_are_those_of_texts() {
        let parsed = |text: &str| UtcTimestamp::parse(text.as_bytes());
        assert_eq!(
            UtcTimestamp::midnight(2013, 8, 1),
            parsed("20130801-00:00:00")
        );
        assert_eq!(
            UtcTimestamp::midnight(1969, 12, 31),
            parsed("19691231-00:00:00")
        );
        for (year, month, day) in [(2026, 2, 29), (2026, 13, 1), (2026, 0, 1), (2026, 1, 0)] {
            assert_eq!(UtcTimestamp::midnight(year, month, day), None);
        }
        assert_eq!(UtcTimestamp::midnight(2399, 1, 1), None);
        assert_eq!(UtcTimestamp::midnight(u32::MAX, 1, 1), None);
    }

    #[test]
    fn picoseconds_are_cut_off() {
        let nanos = UtcTimestamp::parse(b"20261120-12:34:56.123456789");
        for text in [
            "20261120-12:34:56.123456789000",
            "20261120-12:34:56.123456789999",
        ] {
            assert_eq!(UtcTimestamp::parse(text.as_bytes()), nanos, "{text}");
        }
        assert!(nanos.is_some());
    }

    #[test]
    fn leap_second_is_the_next_minute() {
        let leap = UtcTimestamp::parse(b"20161231-23:59:60").unwrap();
        assert_eq!(text(leap, Precision::Seconds), "20170101-00:00:00");
    }

    #[test]
    fn parse_refuses_what_is_no_time() {
        let wrong = [
            "",
            "20261120",
            "20261120-12:34",
            "20261120-12:34:5",
            "20261120 12:34:56",
            "20261120-12.34.56",
            "20261120-24:00:00",
            "20261120-23:60:00",
            "20261120-23:59:61",
            "20261320-00:00:00",
            "20260229-00:00:00",
            "21000229-00:00:00",
            "20260431-00:00:00",
            "20260400-00:00:00",
            "20260001-00:00:00",
            "20261120-12:34:56.",
            "20261120-12:34:56.1",
            "20261120-12:34:56.12x",
            "20261120-12:34:56,123",
            "20261120-12:34:56.1234567890",
            "20261120-12:34:56.12345678901x",
            "20261120-12:34:56.12345678x012",
            "20261120-12:34:56,123456789012",
            "20261120-12:34:56.1234567890123",
            "99991231-23:59:59",
            "00000101-00:00:00",
            "2026112a-12:34:56",
        ];
        for text in wrong {
            assert_eq!(UtcTimestamp::parse(text.as_bytes()), None, "{text}");
        }
        assert!(UtcTimestamp::parse(b"20240229-00:00:00").is_some());
        assert!(UtcTimestamp::parse(b"20000229-00:00:00").is_some());
    }

    /// Counts the days year by year and month by month, as the oracle.
    fn day_by_counting(mut days: i64) -> (u32, u32, u32) {
        let mut year = 1970;
        let length = |year| if is_leap(year) { 366 } else { 365 };
        while days < 0 {
            year -= 1;
            days += length(year);
        }
        while days >= length(year) {
            days -= length(year);
            year += 1;
        }
        let mut month = 1;
        while days >= i64::from(days_in_month(year, month)) {
            days -= i64::from(days_in_month(year, month));
            month += 1;
        }
        (year, month, days as u32 + 1)
    }

    #[test]
    fn each_day_of_the_range_as_by_counting() {
        let last = i64::MAX / NANOS / 86_400;
        for days in (-last..=last).step_by(13).chain(-1000..20_000) {
            let (year, month, day) = day_by_counting(days);
            assert_eq!(civil_from_days(days), (year, month, day), "{days}");
            assert_eq!(days_from_civil(year, month, day), days);
        }
    }

    proptest! {
        #[test]
        fn written_and_parsed_it_is_the_same(nanos: i64) {
            let time = UtcTimestamp::from_nanos(nanos);
            let written = text(time, Precision::Nanos);
            // The first moments of the range: its whole second lies before it.
            prop_assume!(nanos.div_euclid(NANOS).checked_mul(NANOS).is_some());
            prop_assert_eq!(UtcTimestamp::parse(written.as_bytes()), Some(time));
            prop_assert_eq!(text(time, Precision::Millis), &written[..21]);
            prop_assert_eq!(text(time, Precision::Micros), &written[..24]);
            let seconds = text(time, Precision::Seconds);
            let cut = UtcTimestamp::from_nanos(nanos - nanos.rem_euclid(NANOS));
            prop_assert_eq!(UtcTimestamp::parse(seconds.as_bytes()), Some(cut));
        }

        #[test]
        fn the_second_remembered_changes_nothing(
            nanos: i64,
            steps in proptest::collection::vec(-3_000_000_000..3_000_000_000_i64, 1..20),
        ) {
            for step in steps {
                let nanos = nanos.saturating_add(step);
                let slow = whole_text(nanos.div_euclid(NANOS));
                let written = text(UtcTimestamp::from_nanos(nanos), Precision::Nanos);
                prop_assert_eq!(&written.as_bytes()[..17], slow);
                let rest = format!(".{:09}", nanos.rem_euclid(NANOS));
                prop_assert_eq!(&written[17..], rest);
            }
        }

        #[test]
        fn any_text_is_harmless(text: Vec<u8>, like in "[0-9]{8}-[0-9]{2}:[0-9]{2}:[0-9]{2}") {
            UtcTimestamp::parse(&text);
            UtcTimestamp::parse(like.as_bytes());
        }
    }
}
