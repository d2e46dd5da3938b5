//! The hours of a session: daily and weekly windows in a time zone.

use std::fmt;
use std::sync::Arc;

use fanfare_wire::UtcTimestamp;

const DAY: i64 = 86_400;
const NANOS: i64 = 1_000_000_000;

/// A time zone, as the offset of local time from UTC. The session core has no time zone data: its
/// host provides a zone, or uses [`FixedOffset`].
pub trait Zone: fmt::Debug + Send + Sync {
    /// Returns the seconds to add to the UTC time `utc_seconds`, counted from 1970-01-01, for local
    /// time.
    fn offset_at(&self, utc_seconds: i64) -> i32;
}

/// A time zone without daylight saving time, as seconds east of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedOffset(pub i32);

impl Zone for FixedOffset {
    fn offset_at(&self, _utc_seconds: i64) -> i32 {
        self.0
    }
}

/// A time of day, in seconds since midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeOfDay(u32);

impl TimeOfDay {
    /// Parses `HH:MM:SS` or `HH:MM`.
    ///
    /// # Errors
    /// Returns an error for any other text, and for a time that does not exist.
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

    /// Returns the seconds since midnight.
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
    /// All days of the week, Monday first.
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
    /// Returns an error for any other text.
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

/// A window that opens at `start` on some weekdays and closes some days later at `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The weekdays on which it opens. Bit 0 is Monday.
    days: u8,
    start: TimeOfDay,
    end: TimeOfDay,
    /// The number of days from the opening to the closing.
    span: i64,
}

impl Window {
    /// Returns a window that opens every day at `start` and closes at the next `end`. Equal times
    /// mean a whole day.
    pub fn daily(start: TimeOfDay, end: TimeOfDay) -> Self {
        Self::on_days(&Weekday::ALL, start, end)
    }

    /// Returns a window that opens at `start` on these weekdays and closes at the next `end`. Equal
    /// times mean a whole day.
    pub fn on_days(days: &[Weekday], start: TimeOfDay, end: TimeOfDay) -> Self {
        let days = days.iter().fold(0, |mask, day| mask | day.bit());
        Self {
            days,
            start,
            end,
            span: i64::from(end <= start),
        }
    }

    /// Returns a window that opens once a week at `start` and closes at the next `end`. Equal
    /// moments mean a whole week.
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

/// The hours of a session. Each opening of a window starts a new session with new numbers.
#[derive(Clone, Debug)]
pub struct Schedule {
    windows: Vec<Window>,
    zone: Arc<dyn Zone>,
}

impl Schedule {
    /// Returns a schedule of one or more windows in one time zone.
    ///
    /// # Errors
    /// Returns an error if there is no window.
    pub fn new(windows: Vec<Window>, zone: Arc<dyn Zone>) -> Result<Self, ScheduleError> {
        if windows.is_empty() {
            return Err(ScheduleError::NoWindow);
        }
        Ok(Self { windows, zone })
    }

    /// Returns whether some window is open.
    pub fn is_open(&self, utc: UtcTimestamp) -> bool {
        self.opened(utc).is_some()
    }

    /// Returns when the window opened that is open at `utc`, or `None` if none is open.
    pub fn opened(&self, utc: UtcTimestamp) -> Option<UtcTimestamp> {
        self.openings(utc)
            .filter(|(start, end)| *start <= utc && utc < *end)
            .map(|(start, _)| start)
            .min()
    }

    /// Returns the next time at which a window opens or closes, or a time one day later if there is
    /// none within reach.
    pub fn next_change(&self, utc: UtcTimestamp) -> UtcTimestamp {
        let far = UtcTimestamp::from_nanos(utc.nanos().saturating_add(DAY * NANOS));
        self.openings(utc)
            .flat_map(|(start, end)| [start, end])
            .filter(|change| *change > utc)
            .min()
            .unwrap_or(far)
    }

    /// Returns whether numbers that started at `created` belong to an opening before the present
    /// one. A wall clock that steps back never makes a session new: numbers that started while it
    /// was ahead last until an opening after that time.
    pub fn is_new_session(&self, created: UtcTimestamp, now: UtcTimestamp) -> bool {
        self.opened(now).is_some_and(|start| created < start)
    }

    /// Returns the openings and closings around a moment, in UTC.
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

    /// Returns the first moment at which local clocks show `local` or later. Where daylight saving
    /// time skips an hour, that is its end; where it repeats one, the first time.
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
        // Where an hour is repeated, `low` is in its first run.
        if at(low) >= local {
            high = low;
        }
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

/// Returns the weekday of a day, counted from 1970-01-01, which was a Thursday.
fn weekday(day: i64) -> Weekday {
    let at = (day + 3).rem_euclid(7) as usize;
    Weekday::ALL.get(at).copied().unwrap_or(Weekday::Monday)
}

/// The fault of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The text is not `HH:MM` or `HH:MM:SS`.
    #[error("{0:?} is not a time of day: expected HH:MM or HH:MM:SS")]
    Time(String),
    /// The text is not a weekday.
    #[error("{0:?} is not a weekday: expected a name such as Mon or Monday")]
    Weekday(String),
    /// The schedule has no window.
    #[error("a schedule must have at least one window")]
    NoWindow,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time zone of New York in 2026. Clocks go forward on 8 March, 07:00 UTC, and back on 1
    /// November, 06:00 UTC.
    #[derive(Debug)]
    struct NewYork;

    impl Zone for NewYork {
        fn offset_at(&self, utc_seconds: i64) -> i32 {
            let summer =
                at("20260308-07:00:00").nanos() / NANOS..at("20261101-06:00:00").nanos() / NANOS;
            if summer.contains(&utc_seconds) {
                -4 * 3600
            } else {
                -5 * 3600
            }
        }
    }

    fn at(text: &str) -> UtcTimestamp {
        UtcTimestamp::parse(text.as_bytes()).unwrap()
    }

    fn time(text: &str) -> TimeOfDay {
        TimeOfDay::parse(text).unwrap()
    }

    fn schedule(windows: Vec<Window>, zone: impl Zone + 'static) -> Schedule {
        Schedule::new(windows, Arc::new(zone)).unwrap()
    }

    fn daily(start: &str, end: &str, zone: impl Zone + 'static) -> Schedule {
        schedule(vec![Window::daily(time(start), time(end))], zone)
    }

    /// Returns the first `count` changes of the schedule after `from`.
    fn changes(schedule: &Schedule, from: &str, count: usize) -> Vec<String> {
        let mut moment = at(from);
        let mut all = Vec::new();
        while all.len() < count {
            let was = schedule.is_open(moment);
            moment = schedule.next_change(moment);
            if schedule.is_open(moment) != was {
                let text = moment.text(fanfare_wire::Precision::Seconds);
                let sign = if was { "-" } else { "+" };
                all.push(format!("{sign}{}", &text.as_str()[6..]));
            }
        }
        all
    }

    #[test]
    fn daily_window() {
        let schedule = daily("08:00:00", "17:30:00", FixedOffset(0));
        assert!(!schedule.is_open(at("20261120-07:59:59.999")));
        assert!(schedule.is_open(at("20261120-08:00:00")));
        assert!(schedule.is_open(at("20261120-17:29:59")));
        assert!(!schedule.is_open(at("20261120-17:30:00")));
        assert_eq!(
            schedule.opened(at("20261120-12:00:00")),
            Some(at("20261120-08:00:00"))
        );
        assert_eq!(
            schedule.next_change(at("20261120-18:00:00")),
            at("20261121-08:00:00")
        );
    }

    #[test]
    fn window_over_midnight_and_whole_day() {
        let schedule = daily("22:00:00", "02:00:00", FixedOffset(3600));
        assert!(schedule.is_open(at("20261120-00:59:59")));
        assert!(!schedule.is_open(at("20261120-01:00:00")));
        assert_eq!(
            schedule.opened(at("20261120-00:00:00")),
            Some(at("20261119-21:00:00"))
        );
        let whole = daily("05:00:00", "05:00:00", FixedOffset(0));
        assert!(whole.is_open(at("20261120-04:59:59")) && whole.is_open(at("20261120-05:00:00")));
        assert!(whole.is_new_session(at("20261120-04:59:59"), at("20261120-05:00:00")));
        assert!(!whole.is_new_session(at("20261120-05:00:00"), at("20261121-04:59:59")));
    }

    #[test]
    fn daylight_saving_moves_the_window_in_utc() {
        let schedule = daily("09:30:00", "16:00:00", NewYork);
        let spring = changes(&schedule, "20260307-00:00:00", 4);
        assert_eq!(
            spring,
            [
                "+07-14:30:00",
                "-07-21:00:00",
                "+08-13:30:00",
                "-08-20:00:00"
            ]
        );
        let autumn = changes(&schedule, "20261031-00:00:00", 4);
        assert_eq!(
            autumn,
            [
                "+31-13:30:00",
                "-31-20:00:00",
                "+01-14:30:00",
                "-01-21:00:00"
            ]
        );
    }

    #[test]
    fn times_that_do_not_exist_or_come_twice() {
        // 02:30 is skipped on 8 March: the window opens when the clocks show 03:00.
        let schedule = daily("02:30:00", "05:00:00", NewYork);
        let spring = changes(&schedule, "20260308-05:00:00", 2);
        assert_eq!(spring, ["+08-07:00:00", "-08-09:00:00"]);
        // 01:30 comes twice on 1 November: the first one counts, for opening and closing.
        let schedule = daily("01:30:00", "03:00:00", NewYork);
        let autumn = changes(&schedule, "20261101-00:00:00", 2);
        assert_eq!(autumn, ["+01-05:30:00", "-01-08:00:00"]);
        let schedule = daily("00:00:00", "01:30:00", NewYork);
        assert_eq!(
            changes(&schedule, "20261101-00:00:00", 2),
            ["+01-04:00:00", "-01-05:30:00"]
        );
    }

    #[test]
    fn weekly_window() {
        let (open, close) = (
            (Weekday::Sunday, time("18:00")),
            (Weekday::Friday, time("17:00")),
        );
        let schedule = schedule(vec![Window::weekly(open, close)], FixedOffset(0));
        // 20 November 2026 is a Friday.
        assert!(schedule.is_open(at("20261120-16:59:59")));
        assert!(!schedule.is_open(at("20261120-17:00:00")));
        assert!(!schedule.is_open(at("20261122-17:59:59")));
        assert!(schedule.is_open(at("20261122-18:00:00")));
        assert_eq!(
            schedule.opened(at("20261120-00:00:00")),
            Some(at("20261115-18:00:00"))
        );
        assert!(!schedule.is_new_session(at("20261116-00:00:00"), at("20261120-00:00:00")));
        assert!(schedule.is_new_session(at("20261116-00:00:00"), at("20261122-18:00:00")));
    }

    #[test]
    fn whole_week() {
        let moment = (Weekday::Saturday, time("00:00"));
        let schedule = schedule(vec![Window::weekly(moment, moment)], FixedOffset(0));
        assert!(schedule.is_open(at("20261120-23:59:59")));
        assert!(schedule.is_new_session(at("20261120-23:59:59"), at("20261121-00:00:00")));
        assert!(!schedule.is_new_session(at("20261121-00:00:00"), at("20261127-23:59:59")));
    }

    #[test]
    fn weekdays_and_several_windows() {
        let days = [Weekday::Monday, Weekday::Friday];
        let morning = Window::on_days(&days, time("08:00"), time("12:00"));
        let evening = Window::on_days(&days, time("20:00"), time("04:00"));
        let schedule = schedule(vec![morning, evening], FixedOffset(0));
        let all = changes(&schedule, "20261119-00:00:00", 6);
        let expected = [
            "+20-08:00:00",
            "-20-12:00:00",
            "+20-20:00:00",
            "-21-04:00:00",
            "+23-08:00:00",
            "-23-12:00:00",
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn clock_that_jumps_back_makes_no_new_session() {
        let schedule = daily("08:00:00", "17:00:00", FixedOffset(0));
        let created = at("20261120-08:00:01");
        assert!(!schedule.is_new_session(created, at("20261119-12:00:00")));
        assert!(!schedule.is_new_session(created, at("20261120-18:00:00")));
        assert!(schedule.is_new_session(created, at("20261121-08:00:00")));
        // The clock steps back over an opening, and reaches it once more.
        let whole = daily("00:00:00", "00:00:00", FixedOffset(0));
        let created = at("20261120-00:10:00");
        assert!(!whole.is_new_session(created, at("20261119-23:10:00")));
        assert!(!whole.is_new_session(created, at("20261120-00:00:00")));
        assert!(whole.is_new_session(created, at("20261121-00:00:00")));
    }

    #[test]
    fn texts() {
        assert_eq!(time("23:59:59").seconds(), 86_399);
        for wrong in [
            "",
            "24:00:00",
            "8:00:00",
            "08:60",
            "08:00:00:00",
            "08",
            "ab:cd",
            "+8:00",
        ] {
            assert_eq!(
                TimeOfDay::parse(wrong),
                Err(ScheduleError::Time(wrong.to_owned()))
            );
        }
        assert_eq!(Weekday::parse("mon"), Ok(Weekday::Monday));
        assert_eq!(Weekday::parse(" THURSDAY"), Ok(Weekday::Thursday));
        assert_eq!(Weekday::parse("su"), Ok(Weekday::Sunday));
        for wrong in ["", "t", "tod", "mond"] {
            assert_eq!(
                Weekday::parse(wrong),
                Err(ScheduleError::Weekday(wrong.to_owned()))
            );
        }
        let none = Schedule::new(Vec::new(), Arc::new(FixedOffset(0)));
        assert_eq!(none.unwrap_err(), ScheduleError::NoWindow);
    }
}
