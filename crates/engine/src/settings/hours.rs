//! When a session is open, and when it may log on.

use super::SettingsError;
use super::file::Section;
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

/// The schedule of these keys; none is always.
pub(super) fn read(
    section: &Section<'_>,
    keys: &Keys,
) -> Result<Option<Arc<Schedule>>, SettingsError> {
    let given = [keys.from, keys.to, keys.from_day, keys.to_day];
    if given.iter().all(|key| section.find(key).is_none()) {
        return Ok(None);
    }
    let start = section.need(keys.from)?.parse(TimeOfDay::parse)?;
    let end = section.need(keys.to)?.parse(TimeOfDay::parse)?;
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
    let zone: Arc<dyn Zone> = match section.find("TimeZone") {
        Some(entry) => entry.parse(zone::by_name)?,
        None => Arc::new(FixedOffset(0)),
    };
    let schedule = Schedule::new(vec![window], zone);
    Ok(schedule.ok().map(Arc::new))
}
