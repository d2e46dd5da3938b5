//! When a session is open, and when it may log on.

use super::SettingsError;
use super::file::{Entry, Section};
use crate::zone;
use fanfare_fix::session::{FixedOffset, Schedule, TimeOfDay, Weekday, Window, Zone};
use std::sync::Arc;

/// The keys of one schedule: from and to, as times and as days.
pub(super) struct Keys {
    from: &'static str,
    to: &'static str,
    from_day: &'static str,
    to_day: &'static str,
    /// Whether `Weekdays` applies.
    weekdays: bool,
}

pub(super) const SESSION: Keys = Keys {
    from: "StartTime",
    to: "EndTime",
    from_day: "StartDay",
    to_day: "EndDay",
    weekdays: true,
};

pub(super) const LOGON: Keys = Keys {
    from: "LogonTime",
    to: "LogoutTime",
    from_day: "LogonDay",
    to_day: "LogoutDay",
    weekdays: false,
};

/// `HH:MM:SS`, and behind it the time zone if there is one, as QuickFIX/J has it.
fn time(entry: &Entry) -> Result<(TimeOfDay, Option<&str>), SettingsError> {
    let value = entry.value.as_str();
    let (time, zone) = match value.split_once(char::is_whitespace) {
        Some((time, zone)) => (time, Some(zone.trim())),
        None => (value, None),
    };
    Ok((entry.parse(|_| TimeOfDay::parse(time))?, zone))
}

/// The schedule of these keys; none is always.
pub(super) fn read(
    section: &Section<'_>,
    keys: &Keys,
) -> Result<Option<Arc<Schedule>>, SettingsError> {
    let given = [keys.from, keys.to, keys.from_day, keys.to_day];
    if given.iter().all(|key| section.find(key).is_none()) {
        return Ok(None);
    }
    let (start, from_zone) = time(section.need(keys.from)?)?;
    let (end, to_zone) = time(section.need(keys.to)?)?;
    let window = if given.iter().skip(2).any(|key| section.find(key).is_some()) {
        let start_day = section.need(keys.from_day)?.parse(Weekday::parse)?;
        let end_day = section.need(keys.to_day)?.parse(Weekday::parse)?;
        Window::weekly((start_day, start), (end_day, end))
    } else if let Some(days) = section.find("Weekdays").filter(|_| keys.weekdays) {
        let days: Result<Vec<_>, _> = days.value.split(',').map(Weekday::parse).collect();
        let days = days.map_err(|why| section.find("Weekdays").map(|entry| entry.wrong(why)));
        match days {
            Ok(days) => Window::on_days(&days, start, end),
            Err(error) => return Err(error.unwrap_or_else(|| section.missing("Weekdays"))),
        }
    } else {
        Window::daily(start, end)
    };
    if from_zone != to_zone {
        let to = section.need(keys.to)?;
        return Err(to.wrong(format!("the same time zone as {}", keys.from)));
    }
    let zone: Arc<dyn Zone> = match (from_zone, section.find("TimeZone")) {
        (Some(name), _) => section.need(keys.from)?.parse(|_| zone::by_name(name))?,
        (None, Some(entry)) => entry.parse(zone::by_name)?,
        (None, None) => Arc::new(FixedOffset(0)),
    };
    let schedule = Schedule::new(vec![window], zone);
    Ok(schedule.ok().map(Arc::new))
}
