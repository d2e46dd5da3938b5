//! The ends of sessions: a time of day, on the days that have one.

use super::rolling::RollOrder;
use crate::config::error::{ConfigError, range};
use crate::config::rotation::{check_daily, daily};
use fanfare_engine::rotate::Daily;
use fanfare_fix::session::{Now, Weekday};
use fanfare_history::{LogError, Writer};
use fanfare_wire::UtcTimestamp;

const DAY: i64 = 86_400;

/// The distance in nanoseconds by which a clock goes back that was wrong before.
const BACK: i64 = 3_600_000_000_000;

/// The keys of the configuration about the ends of sessions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Calendar<'a> {
    pub(super) roll_at: Option<&'a str>,
    pub(super) time_zone: Option<&'a str>,
    pub(super) roll_days: &'a [String],
    pub(super) holidays: &'a [String],
}

/// Checks the keys that determine when segments end.
pub(super) fn check(history: Calendar<'_>) -> Result<(), ConfigError> {
    check_daily("history", history.roll_at, history.time_zone)?;
    for day in history.roll_days {
        let rule = "must be a weekday, such as Mon or Monday";
        range("history.roll_days", day, Weekday::parse(day).is_ok(), rule)?;
    }
    for date in history.holidays {
        let rule = "must be a date, YYYY-MM-DD";
        range("history.holidays", date, day_of(date).is_some(), rule)?;
    }
    let has_time = history.roll_at.is_some();
    let rule = "needs `history.roll_at`";
    let (days, dates) = (history.roll_days.join(", "), history.holidays.join(", "));
    let is_fit = |is_given: bool| has_time || !is_given;
    range("history.roll_days", &days, is_fit(!days.is_empty()), rule)?;
    range("history.holidays", &dates, is_fit(!dates.is_empty()), rule)
}

/// Returns the days from 1970-01-01 to `YYYY-MM-DD`.
fn day_of(date: &str) -> Option<i64> {
    let (year, rest) = date.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    let is_whole = [year, month, day].map(str::len) == [4, 2, 2];
    let time = is_whole.then(|| format!("{year}{month}{day}-00:00:00"))?;
    let time = UtcTimestamp::parse(time.as_bytes())?;
    Some(time.nanos().div_euclid(DAY * 1_000_000_000))
}

/// The ends of sessions.
#[derive(Debug)]
struct Rolls {
    daily: Daily,
    /// The days of the week with a session, Monday first.
    days: [bool; 7],
    /// The days without a session, counted from 1970-01-01.
    holidays: Vec<i64>,
    /// The last day seen, from one end to the next.
    day: Option<i64>,
    /// The latest time seen.
    latest: i64,
}

impl Rolls {
    /// Creates the schedule, or returns `None` if segments end only by their size.
    fn new(history: Calendar<'_>) -> Option<Self> {
        let daily = daily(history.roll_at, history.time_zone)?;
        let named = history
            .roll_days
            .iter()
            .filter_map(|day| Weekday::parse(day).ok());
        let named: Vec<_> = named.collect();
        let days = Weekday::ALL.map(|day| named.is_empty() || named.contains(&day));
        let holidays = history.holidays.iter();
        Some(Self {
            daily,
            days,
            holidays: holidays.filter_map(|date| day_of(date)).collect(),
            day: None,
            latest: i64::MIN,
        })
    }

    /// Returns whether a session has ended since the last call. `utc` is nanoseconds since
    /// 1970-01-01.
    fn is_due(&mut self, utc: i64) -> bool {
        let day = self.daily.day(utc);
        if utc < self.latest.saturating_sub(BACK) {
            // The clock had leapt ahead: the days up to there are yet to come.
            (self.day, self.latest) = (Some(day), utc);
        }
        self.latest = self.latest.max(utc);
        let last = *self.day.get_or_insert(day);
        if day <= last {
            // A clock that goes back a little ends no segment twice.
            return false;
        }
        self.day = Some(day);
        // If the clock has leapt ahead, at most a year is examined.
        (last.max(day - 366) + 1..=day).any(|day| self.has_session(day))
    }

    fn has_session(&self, day: i64) -> bool {
        // 1970-01-01 was a Thursday.
        let weekday = (day + 3).rem_euclid(7) as usize;
        self.days.get(weekday).is_some_and(|is_one| *is_one) && !self.holidays.contains(&day)
    }
}

/// The rolling of segments at the ends of sessions, as soon as the log can be written.
#[derive(Debug)]
pub(super) struct Roll {
    rolls: Option<Rolls>,
    order: RollOrder,
    is_due: bool,
}

impl Roll {
    pub(super) fn new(history: Calendar<'_>, order: RollOrder) -> Self {
        Self {
            rolls: Rolls::new(history),
            order,
            is_due: false,
        }
    }

    /// Ends the segment if a session has ended, or an operator has requested it.
    pub(super) fn turn(&mut self, now: Now, writer: &mut Writer) -> Result<(), LogError> {
        if let Some(rolls) = &mut self.rolls {
            self.is_due |= rolls.is_due(now.utc.nanos());
        }
        let wish = self.order.wish();
        if self.is_due || wish.is_some() {
            writer.roll()?;
            self.is_due = false;
            wish.into_iter().for_each(|wish| self.order.follow(wish));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rolls(text: &str) -> Rolls {
        let text = format!("folder = \"x\"\nroll_at = \"17:00\"\n{text}");
        let history: crate::History = toml::from_str(&text).unwrap();
        Rolls::new(history.calendar()).unwrap()
    }

    /// 2026-11-23T22:59:59Z, a Monday, is 16:59:59 in Chicago.
    const SECOND: i64 = 1_795_474_799;

    fn is_due(rolls: &mut Rolls, second: i64) -> bool {
        rolls.is_due(second * 1_000_000_000)
    }

    #[test]
    fn a_segment_ends_once_a_day_at_the_local_time() {
        let mut rolls = rolls("time_zone = \"America/Chicago\"");
        assert!(!is_due(&mut rolls, SECOND - 50_000));
        assert!(!is_due(&mut rolls, SECOND));
        assert!(is_due(&mut rolls, SECOND + 1));
        assert!(!is_due(&mut rolls, SECOND - 5), "the clock went back");
        assert!(!is_due(&mut rolls, SECOND + 2));
        assert!(is_due(&mut rolls, SECOND + 3 * DAY));
    }

    #[test]
    fn a_clock_that_has_leapt_ahead_holds_up_no_later_day() {
        let mut rolls = rolls("time_zone = \"America/Chicago\"");
        assert!(!is_due(&mut rolls, SECOND - 50_000));
        for days in [1, 400] {
            assert!(is_due(&mut rolls, SECOND + 1 + days * DAY), "it leaps");
            assert!(!is_due(&mut rolls, SECOND), "it is back");
            assert!(!is_due(&mut rolls, SECOND - 5));
        }
        assert!(is_due(&mut rolls, SECOND + 1));
        assert!(
            !is_due(&mut rolls, SECOND - 3_000),
            "back by less than an hour"
        );
        assert!(!is_due(&mut rolls, SECOND + 2));
        assert!(is_due(&mut rolls, SECOND + 1 + DAY));
    }

    #[test]
    fn days_without_a_session_end_no_segment() {
        let calendar = "time_zone = \"America/Chicago\"\n\
                        roll_days = [\"Mon\", \"Tue\", \"Wed\", \"Thu\", \"Fri\"]\n\
                        holidays = [\"2026-11-26\", \"2026-12-25\"]";
        let mut rolls = rolls(calendar);
        assert!(!is_due(&mut rolls, SECOND));
        // Monday to Sunday, with Thanksgiving on Thursday.
        let expected = [true, true, true, false, true, false, false];
        let week = (0..7).map(|day| is_due(&mut rolls, SECOND + 1 + day * DAY));
        assert!(week.eq(expected));
        // From Sunday to Tuesday without a call in between.
        assert!(is_due(&mut rolls, SECOND + 1 + 8 * DAY));
        // From Friday, before the end, to Saturday, and from Saturday to Sunday.
        assert!(is_due(&mut rolls, SECOND + 12 * DAY));
        assert!(!is_due(&mut rolls, SECOND + 12 * DAY + 1 + DAY));
    }
}
