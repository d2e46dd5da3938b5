//! The conversion of times in the formats of feeds to nanoseconds since 1970-01-01 UTC.

use crate::event::Event;
use fanfare_wire::{UtcTimestamp, int};

const SECOND: u64 = 1_000_000_000;
/// The nanoseconds of a day.
pub(super) const DAY: u64 = 86_400 * SECOND;

/// The format of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// `YYYYMMDD-HH:MM:SS` with a fraction of 3, 6, 9 digits or none.
    Timestamp,
    /// Digits: `YYYYMMDDHHMMSS` and `digits` of the fraction.
    DateAndTime { digits: u32 },
    /// Digits: `HHMMSS` and `digits` of the fraction.
    Time { digits: u32 },
    /// `HH:MM` or `HH:MM:SS` with a fraction of 3, 6, 9 digits or none, optionally followed by `Z`.
    TimeOnly,
    /// `YYYYMMDD`.
    Date,
    /// Units of `unit` nanoseconds since 1970-01-01 UTC.
    Epoch { unit: u64 },
    /// Units since midnight.
    OfDay { unit: u64 },
}

/// The names of formats in mapping files.
const NAMES: [(&str, Format); 18] = [
    ("UTCTimestamp", Format::Timestamp),
    ("UTCTimeOnly", Format::TimeOnly),
    ("YYYYMMDD", Format::Date),
    ("YYYYMMDDHHMMSS", Format::DateAndTime { digits: 0 }),
    ("YYYYMMDDHHMMSSmmm", Format::DateAndTime { digits: 3 }),
    ("YYYYMMDDHHMMSSuuuuuu", Format::DateAndTime { digits: 6 }),
    ("HHMMSS", Format::Time { digits: 0 }),
    ("HHMMSSmmm", Format::Time { digits: 3 }),
    ("HHMMSSuuuuuu", Format::Time { digits: 6 }),
    ("HHMMSSnnnnnnnnn", Format::Time { digits: 9 }),
    ("epoch-s", Format::Epoch { unit: SECOND }),
    ("epoch-ms", Format::Epoch { unit: 1_000_000 }),
    ("epoch-us", Format::Epoch { unit: 1_000 }),
    ("epoch-ns", Format::Epoch { unit: 1 }),
    ("day-s", Format::OfDay { unit: SECOND }),
    ("day-ms", Format::OfDay { unit: 1_000_000 }),
    ("day-us", Format::OfDay { unit: 1_000 }),
    ("day-ns", Format::OfDay { unit: 1 }),
];

impl Format {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let found = NAMES.iter().find(|(other, _)| *other == name);
        found.map(|(_, format)| *format)
    }

    /// Returns all names, for error messages.
    pub(crate) fn names() -> String {
        NAMES.map(|(name, _)| name).join(", ")
    }

    /// Returns whether the format has a time, but no date.
    pub(crate) const fn is_of_day(self) -> bool {
        matches!(
            self,
            Self::Time { .. } | Self::TimeOnly | Self::OfDay { .. }
        )
    }

    /// Returns whether integers are written in this format. Date and time to the microsecond have
    /// 20 digits, which exceed 64 bits.
    pub(crate) const fn takes_integers(self) -> bool {
        let is_text = matches!(
            self,
            Self::Timestamp | Self::TimeOnly | Self::DateAndTime { digits: 6 }
        );
        !is_text
    }
}

/// The format of a time, with the UTC offset of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DateTime {
    pub(crate) format: Format,
    /// The UTC offset of the clock, in nanoseconds. Epochs are always UTC.
    offset: i64,
}

impl DateTime {
    /// Creates a format. `offset` is the UTC offset of the clock in seconds.
    pub(crate) const fn new(format: Format, offset: i32) -> Self {
        Self {
            format,
            offset: offset as i64 * SECOND as i64,
        }
    }

    /// Returns the UTC offset of the clock, in nanoseconds.
    pub(super) const fn offset(self) -> i64 {
        self.offset
    }

    /// Returns the nanoseconds of the unit, if the format counts since midnight.
    pub(super) const fn unit_of_day(self) -> Option<u64> {
        match self.format {
            Format::OfDay { unit } => Some(unit),
            _ => None,
        }
    }

    /// Returns the date as digits, and the nanoseconds since midnight, or `None` if these are
    /// invalid. Returns `None` for a format that does not have both in digits.
    #[inline]
    pub(super) fn split(self, value: u64) -> Option<(u64, Option<u64>)> {
        let Format::DateAndTime { digits } = self.format else {
            return None;
        };
        let (whole, nanos) = parts(value, digits);
        let time = time_of_day(whole % 1_000_000);
        Some((whole / 1_000_000, time.map(|time| time * SECOND + nanos)))
    }

    /// Returns the nanoseconds in UTC, or since local midnight for a time without a date.
    #[inline]
    pub(crate) fn read_number(self, value: u64) -> Option<u64> {
        match self.format {
            Format::DateAndTime { .. } => {
                let (digits, nanos) = self.split(value)?;
                self.on(date(digits)?, nanos?)
            }
            Format::Time { digits } => {
                let (whole, nanos) = parts(value, digits);
                Some(time_of_day(whole)? * SECOND + nanos)
            }
            Format::Date => self.utc(date(value)?),
            Format::Epoch { unit } => value.checked_mul(unit).filter(|time| *time < u64::MAX),
            Format::OfDay { unit } => value.checked_mul(unit).filter(|time| *time <= DAY),
            Format::Timestamp | Format::TimeOnly => None,
        }
    }

    /// Returns the time in a text, as [`DateTime::read_number`] does.
    #[inline]
    pub(crate) fn read_text(self, text: &[u8]) -> Option<u64> {
        match self.format {
            Format::Timestamp => self.utc(UtcTimestamp::parse(text)?.nanos()),
            Format::TimeOnly => {
                // MaturityTime(1079) is a TZTimeOnly, with a final `Z` and optional seconds.
                let text = text.strip_suffix(b"Z").unwrap_or(text);
                let mut whole = *b"19700101-00:00:00.000000000";
                if text.len() == 5 {
                    whole.get_mut(9..14)?.copy_from_slice(text);
                    let time = UtcTimestamp::parse(whole.get(..17)?)?;
                    return u64::try_from(time.nanos()).ok();
                }
                let to = whole.get_mut(9..9 + text.len())?;
                to.copy_from_slice(text);
                let time = UtcTimestamp::parse(whole.get(..9 + text.len())?)?;
                u64::try_from(time.nanos()).ok()
            }
            Format::DateAndTime { digits } => {
                let (whole, fraction) = text.split_at_checked(14)?;
                let nanos = match (fraction.len(), digits) {
                    (0, 0) => 0,
                    (len, _) if len == digits as usize => {
                        parts(int::parse_u64(fraction)?, digits).1
                    }
                    _ => return None,
                };
                let whole = int::parse_u64(whole)?;
                let of_day = time_of_day(whole % 1_000_000)? * SECOND + nanos;
                self.on(date(whole / 1_000_000)?, of_day)
            }
            _ => self.read_number(int::parse_u64(text)?),
        }
    }

    fn utc(self, local: i64) -> Option<u64> {
        u64::try_from(local.checked_sub(self.offset)?).ok()
    }

    /// Returns the UTC time of a time of the day whose date is in `date`, a format of
    /// [`Format::Date`].
    #[inline]
    pub(crate) fn on(self, date: i64, of_day: u64) -> Option<u64> {
        self.utc(date.checked_add(of_day as i64)?)
    }

    /// Returns the UTC time of the local midnight at which the day of `time` begins.
    pub(super) fn midnight(self, time: u64) -> Option<u64> {
        let local = i64::try_from(time).ok()?.checked_add(self.offset)?;
        self.utc(local - local.rem_euclid(DAY as i64))
    }

    /// Returns the UTC time of a time of the day that is less than half a day away from `near`.
    #[inline]
    pub(crate) fn near(self, near: u64, of_day: u64) -> Option<u64> {
        let near = i64::try_from(near).ok()?.checked_add(self.offset)?;
        let (day, of_day) = (DAY as i64, of_day as i64);
        let mut time = near - near.rem_euclid(day) + of_day;
        if time > near + day / 2 {
            time -= day;
        } else if time <= near - day / 2 {
            time += day;
        }
        self.utc(time)
    }
}

/// Returns whether a time of arrival is unknown: messages of a file have none, or 0.
#[inline]
pub(super) const fn is_unknown(time: u64) -> bool {
    matches!(time, 0 | Event::NO_TIME)
}

/// Returns the part before a fraction of some digits, and the nanoseconds of the fraction. Constant
/// divisors compile to multiplications.
#[inline]
const fn parts(value: u64, digits: u32) -> (u64, u64) {
    match digits {
        0 => (value, 0),
        3 => (value / 1_000, value % 1_000 * 1_000_000),
        6 => (value / 1_000_000, value % 1_000_000 * 1_000),
        _ => (value / SECOND, value % SECOND),
    }
}

/// Returns the seconds since midnight of the digits `HHMMSS`.
#[inline]
const fn time_of_day(digits: u64) -> Option<u64> {
    let (hour, minute, second) = (digits / 10_000, digits / 100 % 100, digits % 100);
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    Some(hour * 3_600 + minute * 60 + second)
}

/// Returns the beginning of the day of the digits `YYYYMMDD`, in nanoseconds since 1970-01-01 of
/// the same clock.
#[inline]
pub(crate) fn date(digits: u64) -> Option<i64> {
    let (year, month, day) = (digits / 10_000, digits / 100 % 100, digits % 100);
    let year = u32::try_from(year).ok()?;
    UtcTimestamp::midnight(year, month as u32, day as u32).map(UtcTimestamp::nanos)
}

/// Returns the seconds of an offset like `+03:00`, `-05:30`, `Z` or `UTC`.
pub(crate) fn offset(text: &str) -> Option<i32> {
    if matches!(text, "Z" | "UTC") {
        return Some(0);
    }
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = digits.split_once(':')?;
    let number = |text: &str, most: i32| {
        let is_pair = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        let number: i32 = text.parse().ok().filter(|_| is_pair)?;
        (number <= most).then_some(number)
    };
    Some(sign * (number(hours, 23)? * 3_600 + number(minutes, 59)? * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utc(text: &str) -> u64 {
        UtcTimestamp::parse(text.as_bytes()).unwrap().nanos() as u64
    }

    fn read(format: &str, value: u64) -> Option<u64> {
        DateTime::new(Format::from_name(format).unwrap(), 0).read_number(value)
    }

    #[test]
    fn digits_are_times() {
        let at = utc("20130801-14:24:37.941");
        assert_eq!(read("YYYYMMDDHHMMSSmmm", 20_130_801_142_437_941), Some(at));
        let whole = at - 941_000_000;
        assert_eq!(read("YYYYMMDDHHMMSS", 20_130_801_142_437), Some(whole));
        assert_eq!(read("YYYYMMDD", 20_130_801), Some(utc("20130801-00:00:00")));
        assert_eq!(read("epoch-s", at / SECOND), Some(whole));
        assert_eq!(read("epoch-ms", at / 1_000_000), Some(at));
        assert_eq!(read("epoch-ns", at), Some(at));
        assert_eq!(read("HHMMSSmmm", 142_437_941), Some(51_877_941_000_000));
        assert_eq!(read("HHMMSSnnnnnnnnn", 1), Some(1));
        assert_eq!(read("day-s", 58_781), Some(58_781 * SECOND));
        for (format, value) in [
            ("YYYYMMDDHHMMSSmmm", 20_130_832_142_437_941),
            ("YYYYMMDDHHMMSSmmm", 142_437_941),
            ("YYYYMMDDHHMMSSmmm", u64::MAX),
            ("HHMMSSmmm", 242_437_941),
            ("HHMMSSmmm", 146_037_941),
            ("HHMMSSmmm", u64::MAX),
            ("YYYYMMDD", 19_690_101),
            ("YYYYMMDD", 20_130_229),
            ("epoch-s", u64::MAX),
            ("epoch-ns", u64::MAX),
            ("day-s", 86_401),
            ("UTCTimestamp", 5),
        ] {
            assert_eq!(read(format, value), None, "{format} {value}");
        }
    }

    #[test]
    fn texts_are_times_of_their_place() {
        let moscow = offset("+03:00").unwrap();
        let local = DateTime::new(Format::Timestamp, moscow);
        let text = b"20130801-14:24:37.941";
        assert_eq!(local.read_text(text), Some(utc("20130801-11:24:37.941")));
        let time = DateTime::new(Format::TimeOnly, moscow);
        assert_eq!(time.read_text(b"14:24:37.941"), Some(51_877_941_000_000));
        assert_eq!(time.read_text(b"14:24:37"), Some(51_877_000_000_000));
        assert_eq!(time.read_text(b"14:24Z"), Some(51_840_000_000_000));
        assert_eq!(time.read_text(b"14:2"), None);
        assert_eq!(time.read_text(&[b'1'; 40]), None);
        let read = |format: &str, text: &str| {
            let how = DateTime::new(Format::from_name(format).unwrap(), moscow);
            how.read_text(text.as_bytes())
        };
        let at = utc("20130801-11:24:37.941623");
        let (micros, millis) = ("YYYYMMDDHHMMSSuuuuuu", "YYYYMMDDHHMMSSmmm");
        assert_eq!(read(micros, "20130801142437941623"), Some(at));
        assert_eq!(read(millis, "20130801142437941"), Some(at - 623_000));
        let whole = at - 941_623_000;
        assert_eq!(read("YYYYMMDDHHMMSS", "20130801142437"), Some(whole));
        for (format, wrong) in [
            (micros, "2013080114243794162"),
            (micros, "201308011424379416235"),
            (micros, "20130801142437-41623"),
            (micros, "20130801242437941623"),
            (micros, "20130832142437941623"),
            (millis, "20130801142437"),
            ("YYYYMMDDHHMMSS", "20130801142437941"),
            ("YYYYMMDDHHMMSS", "2013080114243é"),
            ("YYYYMMDDHHMMSS", ""),
        ] {
            assert_eq!(read(format, wrong), None, "{format} {wrong}");
        }
        assert_eq!(offset("Z"), Some(0));
        assert_eq!(offset("-05:30"), Some(-19_800));
        for wrong in ["", "03:00", "+3:00", "+03", "+24:00", "+00:60", "+é:00"] {
            assert_eq!(offset(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_time_without_a_date_is_near_its_message() {
        let time = DateTime::new(Format::Time { digits: 3 }, 0);
        let of_day = |value| time.read_number(value).unwrap();
        let near = |near: &str, value| time.near(utc(near), of_day(value));
        let today = Some(utc("20130801-23:59:59.900"));
        assert_eq!(near("20130801-23:59:59", 235_959_900), today);
        assert_eq!(near("20130802-00:00:01", 235_959_900), today);
        let tomorrow = Some(utc("20130802-00:00:00.100"));
        assert_eq!(near("20130801-23:59:59", 100), tomorrow);
        // 01:00 in Moscow is 22:00 of the previous day.
        let moscow = DateTime::new(Format::Time { digits: 3 }, 10_800);
        let at = moscow.near(utc("20130801-22:00:01"), of_day(10_000_000));
        assert_eq!(at, Some(utc("20130801-22:00:00")));
        let date = date(20_130_802).unwrap();
        let on = moscow.on(date, of_day(10_000_000));
        assert_eq!(on, Some(utc("20130801-22:00:00")));
        assert_eq!(time.near(u64::MAX, 0), None);
    }
}
