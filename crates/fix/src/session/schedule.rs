//! When a session is open: daily and weekly windows in a time zone.

use std::fmt;
use std::sync::Arc;

use fanfare_wire::UtcTimestamp;

const DAY: i64 = 86_400;
const NANOS: i64 = 1_000_000_000;

/// The offset of local time from UTC. The session core has no time zone data: whoever hosts it
/// brings a zone, or uses [`FixedOffset`].
pub trait Zone: fmt::Debug + Send + Sync {
    /// Seconds to add to UTC (seconds since 1970-01-01) for local time.
    fn offset_at(&self, utc_seconds: i64) -> i32;
}

/// A zone without daylight saving: seconds east of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedOffset(pub i32);

impl Zone for FixedOffset {
    fn offset_at(&self, _utc_seconds: i64) -> i32 {
        self.0
    }
}

/// A time of the day, in seconds since midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeOfDay(u32);

impl TimeOfDay {
    /// Parses `HH:MM:SS` or `HH:MM`.
    ///
    /// # Errors
    /// Anything else, or a time that does not exist.
    pub fn parse(text: &str) -> Result<Self, ScheduleError> {
        let error = || ScheduleError::Time(text.to_owned());
        let mut seconds = 0;
        let mut parts = 0;
        for (part, limit) in text.trim().split(':').zip([24, 60, 60, 0]) {
            let digits = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
            let value = part
                .parse::<u32>()
                .ok()
                .filter(|value| digits && *value < limit);
            seconds = seconds * 60 + value.ok_or_else(error)?;
            parts += 1;
        }
        match parts {
            2 => Ok(Self(seconds * 60)),
            3 => Ok(Self(seconds)),
            _ => Err(error()),
        }
    }

    /// Seconds since midnight.
    pub fn seconds(self) -> u32 {
        self.0
    }
}

/// A day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Weekday {
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
    Sunday,
}

impl Weekday {
    /// All of them, Monday first.
    pub const ALL: [Self; 7] = [
        Self::Monday,
        Self::Tuesday,
        Self::Wednesday,
        Self::Thursday,
        Self::Friday,
        Self::Saturday,
        Self::Sunday,
    ];

    /// Parses an English name, whole or its first two or three letters, in any case.
    ///
    /// # Errors
    /// Anything else.
    pub fn parse(text: &str) -> Result<Self, ScheduleError> {
        const NAMES: [&str; 7] = [
            "monday",
            "tuesday",
            "wednesday",
            "thursday",
            "friday",
            "saturday",
            "sunday",
        ];
        let name = text.trim().to_ascii_lowercase();
        let found = NAMES.iter().position(|full| {
            name == *full || ((2..=3).contains(&name.len()) && full.starts_with(&name))
        });
        found
            .and_then(|at| Self::ALL.get(at).copied())
            .ok_or_else(|| ScheduleError::Weekday(text.to_owned()))
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// One window: it opens at `start` on some weekdays and closes some days later at `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Weekdays on which it opens, bit 0 is Monday.
    days: u8,
    start: TimeOfDay,
    end: TimeOfDay,
    /// Days from the opening to the closing.
    span: i64,
}

impl Window {
    /// Opens every day at `start` and closes at the next `end`; the same time means a whole day.
    pub fn daily(start: TimeOfDay, end: TimeOfDay) -> Self {
        Self::on_days(&Weekday::ALL, start, end)
    }

    /// As `daily`, on these weekdays (the day of the opening counts).
    pub fn on_days(days: &[Weekday], start: TimeOfDay, end: TimeOfDay) -> Self {
        let days = days.iter().fold(0, |mask, day| mask | day.bit());
        Self {
            days,
            start,
            end,
            span: i64::from(end <= start),
        }
    }

    /// Opens once a week and closes at the next `end`; the same moment means a whole week.
    pub fn weekly(start: (Weekday, TimeOfDay), end: (Weekday, TimeOfDay)) -> Self {
        let days = (end.0 as i64 - start.0 as i64).rem_euclid(7);
        let span = if days == 0 && end.1 <= start.1 {
            7
        } else {
            days
        };
        Self {
            days: start.0.bit(),
            start: start.1,
            end: end.1,
            span,
        }
    }
}

/// When a session is open. Each opening of a window starts a new session with new numbers.
#[derive(Clone, Debug)]
pub struct Schedule {
    windows: Vec<Window>,
    zone: Arc<dyn Zone>,
}

impl Schedule {
    /// A schedule of one or more windows in one time zone.
    ///
    /// # Errors
    /// There is no window.
    pub fn new(windows: Vec<Window>, zone: Arc<dyn Zone>) -> Result<Self, ScheduleError> {
        if windows.is_empty() {
            return Err(ScheduleError::NoWindow);
        }
        Ok(Self { windows, zone })
    }

    /// Whether some window is open.
    pub fn is_open(&self, utc: UtcTimestamp) -> bool {
        self.opened(utc).is_some()
    }

    /// When the window opened that is open now.
    pub fn opened(&self, utc: UtcTimestamp) -> Option<UtcTimestamp> {
        self.openings(utc)
            .filter(|(start, end)| *start <= utc && utc < *end)
            .map(|(start, _)| start)
            .min()
    }

    /// The next time at which a window opens or closes.
    pub fn next_change(&self, utc: UtcTimestamp) -> UtcTimestamp {
        let far = UtcTimestamp::from_nanos(utc.nanos().saturating_add(DAY * NANOS));
        self.openings(utc)
            .flat_map(|(start, end)| [start, end])
            .filter(|change| *change > utc)
            .min()
            .unwrap_or(far)
    }

    /// Whether numbers that started at `created` belong to an opening before the present one. A
    /// wall clock that jumps back never makes a session new.
    pub fn is_new_session(&self, created: UtcTimestamp, now: UtcTimestamp) -> bool {
        self.opened(now).is_some_and(|start| created < start)
    }

    /// The openings around a moment, as UTC.
    fn openings(&self, utc: UtcTimestamp) -> impl Iterator<Item = (UtcTimestamp, UtcTimestamp)> {
        let seconds = utc.nanos().div_euclid(NANOS);
        let today = (seconds + i64::from(self.zone.offset_at(seconds))).div_euclid(DAY);
        let days = today - 8..=today + 8;
        days.flat_map(move |day| self.windows.iter().map(move |window| (day, window)))
            .filter(|(day, window)| window.days & weekday(*day).bit() != 0)
            .map(|(day, window)| {
                let start = day * DAY + i64::from(window.start.0);
                let end = (day + window.span) * DAY + i64::from(window.end.0);
                (self.to_utc(start), self.to_utc(end))
            })
    }

    /// The first moment at which local clocks show `local` or later: where daylight saving skips
    /// an hour, its end; where it repeats one, the first time.
    fn to_utc(&self, local: i64) -> UtcTimestamp {
        let at = |utc: i64| utc + i64::from(self.zone.offset_at(utc));
        // No offset is a day or more: the moment lies between these two, and local time first
        // reaches `local` somewhere there.
        let offsets = [
            i64::from(self.zone.offset_at(local - DAY)),
            i64::from(self.zone.offset_at(local + DAY)),
        ];
        let [mut low, mut high] = [
            local - offsets[0].max(offsets[1]),
            local - offsets[0].min(offsets[1]),
        ];
        while low < high {
            let middle = low + (high - low) / 2;
            if at(middle) >= local {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        UtcTimestamp::from_nanos(low.saturating_mul(NANOS))
    }
}

/// 1970-01-01 was a Thursday.
fn weekday(day: i64) -> Weekday {
    let at = (day + 3).rem_euclid(7) as usize;
    Weekday::ALL.get(at).copied().unwrap_or(Weekday::Monday)
}

/// What is wrong with a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleError {
    /// Not `HH:MM:SS`.
    Time(String),
    /// Not a weekday.
    Weekday(String),
    /// No window.
    NoWindow,
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(text) => write!(f, "not a time of the day (HH:MM:SS): {text:?}"),
            Self::Weekday(text) => write!(f, "not a weekday: {text:?}"),
            Self::NoWindow => f.write_str("a schedule needs a window"),
        }
    }
}

impl std::error::Error for ScheduleError {}
