//! Data types of FIX fields and the check of a value's format.

/// A data type of fields (FIX 5.0 SP2, volume 1, "Field Data Types"). Earlier names are aliases:
/// see [`DataType::from_name`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DataType {
    /// Any text.
    String,
    /// A single byte.
    Char,
    /// `Y` or `N`.
    Boolean,
    /// A signed integer of at most 64 bits; leading zeros are allowed, a leading `+` is not.
    Int,
    /// An unsigned integer: a length in bytes.
    Length,
    /// An unsigned integer: a sequence number.
    SeqNum,
    /// An unsigned integer: the count field of a repeating group.
    NumInGroup,
    /// A day of the month from 1 to 31.
    DayOfMonth,
    /// A decimal number without exponent.
    Float,
    /// A decimal number: a quantity.
    Qty,
    /// A decimal number: a price.
    Price,
    /// A decimal number: a price difference.
    PriceOffset,
    /// A decimal number: an amount of money.
    Amt,
    /// A decimal number: 0.05 is 5 %.
    Percentage,
    /// Three letters or digits (ISO 4217).
    Currency,
    /// Two letters (ISO 3166).
    Country,
    /// A market: a MIC (ISO 10383) or, before 4.3, a Reuters code; any text.
    Exchange,
    /// Two letters (ISO 639-1).
    Language,
    /// Single characters separated by single spaces.
    MultipleCharValue,
    /// Words separated by single spaces.
    MultipleStringValue,
    /// A month as `YYYYMM`, `YYYYMMDD` or `YYYYMMwN`.
    MonthYear,
    /// A UTC time as `YYYYMMDD-HH:MM:SS` with an optional fraction of 3, 6, 9 or 12 digits.
    UtcTimestamp,
    /// A UTC time of day as `HH:MM:SS` with an optional fraction.
    UtcTimeOnly,
    /// A UTC date as `YYYYMMDD`.
    UtcDateOnly,
    /// A local date as `YYYYMMDD`.
    LocalMktDate,
    /// A local time of day as `HH:MM:SS`.
    LocalMktTime,
    /// A time of day as `HH:MM[:SS[.sss]]` with an optional `Z` or `±hh[:mm]`.
    TzTimeOnly,
    /// A time as `YYYYMMDD-HH:MM[:SS[.sss]]` with an optional `Z` or `±hh[:mm]`.
    TzTimestamp,
    /// Bytes whose number is given by another field.
    Data,
    /// An XML document as bytes.
    XmlData,
    /// A type that the dictionary names and this crate does not know: any text.
    Other,
}

impl DataType {
    /// Returns the type with this name, in any case. The names of earlier versions and of FIX
    /// Orchestra are known too. An unknown name is [`DataType::Other`].
    pub fn from_name(name: &str) -> Self {
        let upper = name.to_ascii_uppercase();
        NAMES
            .iter()
            .find(|(known, _)| *known == upper)
            .map_or(Self::Other, |(_, kind)| *kind)
    }

    /// Returns the standard's name in capitals, as QuickFIX dictionaries write it.
    pub fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(_, kind)| *kind == self)
            .map_or("OTHER", |(name, _)| name)
    }

    /// Returns whether `value` has the format of this type. The call does not allocate.
    #[inline(always)]
    pub fn accepts(self, value: &[u8]) -> bool {
        match self {
            Self::String | Self::Exchange | Self::Data | Self::XmlData | Self::Other => true,
            Self::Char => value.len() == 1,
            Self::Boolean => matches!(value, [b'Y' | b'N']),
            Self::Int => is_int(value),
            Self::Length | Self::SeqNum | Self::NumInGroup => is_unsigned(value),
            Self::Float
            | Self::Qty
            | Self::Price
            | Self::PriceOffset
            | Self::Amt
            | Self::Percentage => is_float(value),
            Self::UtcTimestamp => is_timestamp(value),
            _ => self.accepts_rare(value),
        }
    }

    fn accepts_rare(self, value: &[u8]) -> bool {
        match self {
            Self::DayOfMonth => is_day_of_month(value),
            Self::Currency => value.len() == 3 && value.iter().all(u8::is_ascii_alphanumeric),
            Self::Country | Self::Language => {
                value.len() == 2 && value.iter().all(u8::is_ascii_alphabetic)
            }
            Self::MultipleCharValue => value.split(|b| *b == b' ').all(|word| word.len() == 1),
            Self::MultipleStringValue => value.split(|b| *b == b' ').all(|word| !word.is_empty()),
            Self::MonthYear => is_month_year(value),
            Self::UtcTimeOnly | Self::LocalMktTime => is_time(value),
            Self::UtcDateOnly | Self::LocalMktDate => is_date(value),
            Self::TzTimeOnly => is_tz_time(value),
            Self::TzTimestamp => match value.split_at_checked(9) {
                Some((date, time)) => {
                    date.ends_with(b"-") && is_date(&date[..8]) && is_tz_time(time)
                }
                None => false,
            },
            _ => self.accepts(value),
        }
    }

    /// Returns whether a value may hold several values of the field's list, separated by spaces.
    #[inline]
    pub fn is_multiple(self) -> bool {
        matches!(self, Self::MultipleCharValue | Self::MultipleStringValue)
    }
}

/// The names of the types. The first name of a type is its own, the others are aliases.
const NAMES: &[(&str, DataType)] = &[
    ("STRING", DataType::String),
    ("CHAR", DataType::Char),
    ("BOOLEAN", DataType::Boolean),
    ("INT", DataType::Int),
    ("LENGTH", DataType::Length),
    ("SEQNUM", DataType::SeqNum),
    ("TAGNUM", DataType::Int),
    ("NUMINGROUP", DataType::NumInGroup),
    ("DAYOFMONTH", DataType::DayOfMonth),
    ("FLOAT", DataType::Float),
    ("QTY", DataType::Qty),
    ("QUANTITY", DataType::Qty),
    ("PRICE", DataType::Price),
    ("PRICEOFFSET", DataType::PriceOffset),
    ("AMT", DataType::Amt),
    ("PERCENTAGE", DataType::Percentage),
    ("CURRENCY", DataType::Currency),
    ("COUNTRY", DataType::Country),
    ("EXCHANGE", DataType::Exchange),
    ("LANGUAGE", DataType::Language),
    ("MULTIPLECHARVALUE", DataType::MultipleCharValue),
    ("MULTIPLEVALUESTRING", DataType::MultipleStringValue),
    ("MULTIPLESTRINGVALUE", DataType::MultipleStringValue),
    ("MONTHYEAR", DataType::MonthYear),
    ("UTCTIMESTAMP", DataType::UtcTimestamp),
    ("TIME", DataType::UtcTimestamp),
    ("UTCTIMEONLY", DataType::UtcTimeOnly),
    ("UTCDATEONLY", DataType::UtcDateOnly),
    ("UTCDATE", DataType::UtcDateOnly),
    ("LOCALMKTDATE", DataType::LocalMktDate),
    ("DATE", DataType::LocalMktDate),
    ("LOCALMKTTIME", DataType::LocalMktTime),
    ("TZTIMEONLY", DataType::TzTimeOnly),
    ("TZTIMESTAMP", DataType::TzTimestamp),
    ("DATA", DataType::Data),
    ("XMLDATA", DataType::XmlData),
    ("RESERVED100PLUS", DataType::Int),
    ("RESERVED1000PLUS", DataType::Int),
    ("RESERVED4000PLUS", DataType::Int),
];

/// Returns whether a value is a signed integer of 64 bits. At most 18 digits are always in range,
/// and longer values are parsed.
#[inline]
fn is_int(value: &[u8]) -> bool {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    all_digits(digits) && (digits.len() <= 18 || is_i64(value))
}

#[inline]
fn is_unsigned(value: &[u8]) -> bool {
    all_digits(value) && (value.len() <= 18 || is_i64(value))
}

#[cold]
fn is_i64(value: &[u8]) -> bool {
    std::str::from_utf8(value).is_ok_and(|text| text.parse::<i64>().is_ok())
}

/// Returns whether a value is a number: an optional minus sign, and digits with at most one point,
/// which has a digit on one side at least.
#[inline]
fn is_float(value: &[u8]) -> bool {
    let number = value.strip_prefix(b"-").unwrap_or(value);
    match short(number) {
        Some(bytes) => {
            let others = other_than_digits(bytes);
            let at = others.trailing_zeros() / 8;
            others == 0
                || others.is_power_of_two() && number.len() > 1 && (bytes >> (8 * at)) as u8 == b'.'
        }
        None => is_long_float(number),
    }
}

fn is_long_float(number: &[u8]) -> bool {
    let digits = number.iter().filter(|b| b.is_ascii_digit()).count();
    match number.len() - digits {
        0 => digits > 0,
        1 => digits > 0 && number.contains(&b'.'),
        _ => false,
    }
}

#[inline]
fn all_digits(value: &[u8]) -> bool {
    match short(value) {
        Some(bytes) => other_than_digits(bytes) == 0,
        None => !value.is_empty() && value.iter().all(u8::is_ascii_digit),
    }
}

/// Returns the bytes of a value of 1 to 8 bytes as one word, the first one lowest, filled up with
/// `0`.
#[inline]
fn short(value: &[u8]) -> Option<u64> {
    let word = match (value.first_chunk::<4>(), value.last_chunk::<4>()) {
        (Some(first), Some(last)) if value.len() <= 8 => {
            let shift = 8 * (value.len() - 4);
            u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << shift
        }
        _ => match *value {
            [a] => u64::from(a),
            [a, b] => u64::from(u16::from_le_bytes([a, b])),
            [a, b, c] => u64::from(u32::from_le_bytes([a, b, c, 0])),
            _ => return None,
        },
    };
    let unused = 8 * (8 - value.len());
    Some(word | DIGITS.checked_shl(64 - unused as u32).unwrap_or(0))
}

/// Returns a mask with the highest bit of each byte that is no digit.
#[inline]
fn other_than_digits(bytes: u64) -> u64 {
    const LOW_BITS: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    const ABOVE_NINE: u64 = 0x7676_7676_7676_7676;
    let values = bytes ^ DIGITS;
    ((values & LOW_BITS).wrapping_add(ABOVE_NINE) | values) & !LOW_BITS
}

fn is_day_of_month(value: &[u8]) -> bool {
    matches!(
        value,
        [b'1'..=b'9'] | [b'0', b'1'..=b'9'] | [b'1' | b'2', b'0'..=b'9'] | [b'3', b'0' | b'1']
    )
}

fn is_month_year(value: &[u8]) -> bool {
    match value {
        [.., b'w' | b'W', week] if value.len() == 8 => {
            is_month(&value[..6]) && matches!(week, b'1'..=b'5')
        }
        _ if value.len() == 6 => is_month(value),
        _ => is_date(value),
    }
}

/// Returns whether a value is a month as `YYYYMM`.
fn is_month(value: &[u8]) -> bool {
    value.len() == 6
        && all_digits(value)
        && matches!(&value[4..], [b'0', b'1'..=b'9'] | [b'1', b'0'..=b'2'])
}

#[inline]
fn is_timestamp(value: &[u8]) -> bool {
    value.len() >= 17 && value[8] == b'-' && is_date(&value[..8]) && is_time(&value[9..])
}

const DIGITS: u64 = 0x3030_3030_3030_3030;
const HIGH_NIBBLES: u64 = 0xf0f0_f0f0_f0f0_f0f0;
const SIXES: u64 = 0x0606_0606_0606_0606;

/// Returns whether each byte is from 0 to 9, as the digit's value, not its character.
#[inline]
fn are_decimals(values: u64) -> bool {
    (values | values.wrapping_add(SIXES)) & HIGH_NIBBLES == 0
}

#[inline]
fn is_date(value: &[u8]) -> bool {
    let Ok(bytes) = <[u8; 8]>::try_from(value) else {
        return false;
    };
    if !are_decimals(u64::from_le_bytes(bytes) ^ DIGITS) {
        return false;
    }
    let two = |at: usize| u32::from(bytes[at] & 15) * 10 + u32::from(bytes[at + 1] & 15);
    let (month, day) = (two(4), two(6));
    if !(1..=12).contains(&month) || day == 0 {
        return false;
    }
    day <= 28 || day <= days_in(two(0) * 100 + two(2), month)
}

fn days_in(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        _ => 31,
    }
}

/// Returns whether a value is `HH:MM:SS` with an optional fraction. Second 60 is a leap second.
#[inline]
fn is_time(value: &[u8]) -> bool {
    let Some((clock, fraction)) = value.split_first_chunk::<8>() else {
        return false;
    };
    is_clock(*clock) && is_fraction(fraction)
}

#[inline]
fn is_clock(clock: [u8; 8]) -> bool {
    const COLONS: u64 = u64::from_le_bytes(*b"00:00:00");
    const COLON_BYTES: u64 = 0x0000_ff00_00ff_0000;
    let values = u64::from_le_bytes(clock) ^ COLONS;
    if values & COLON_BYTES != 0 || !are_decimals(values) {
        return false;
    }
    let two = |at: usize| (clock[at] & 15) * 10 + (clock[at + 1] & 15);
    two(0) < 24 && two(3) < 60 && two(6) <= 60
}

#[inline]
fn is_fraction(fraction: &[u8]) -> bool {
    match fraction {
        [] => true,
        [b'.', digits @ ..] => matches!(digits.len(), 3 | 6 | 9 | 12) && all_digits(digits),
        _ => false,
    }
}

fn is_tz_time(value: &[u8]) -> bool {
    let zone = value
        .iter()
        .position(|b| matches!(b, b'Z' | b'+' | b'-'))
        .unwrap_or(value.len());
    let (time, zone) = value.split_at(zone);
    let is_local = match time {
        [h1, h2, b':', m1, m2] => is_clock([*h1, *h2, b':', *m1, *m2, b':', b'0', b'0']),
        _ => is_time(time),
    };
    is_local && is_zone(zone)
}

fn is_zone(zone: &[u8]) -> bool {
    match zone {
        [] | [b'Z'] => true,
        [b'+' | b'-', h1, h2] => is_clock([*h1, *h2, b':', b'0', b'0', b':', b'0', b'0']),
        [b'+' | b'-', h1, h2, b':', m1, m2] => {
            is_clock([*h1, *h2, b':', *m1, *m2, b':', b'0', b'0'])
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
