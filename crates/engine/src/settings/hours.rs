//! The schedules in which a session is open and may log on.

use super::SettingsError;
use super::file::{Entry, Section};
use crate::zone;
use fanfare_fix::session::{Config, FixedOffset, Schedule, TimeOfDay, Weekday, Window, Zone};
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

/// Parses `HH:MM:SS`, with an optional time zone after it, as in QuickFIX/J.
fn time(entry: &Entry) -> Result<(TimeOfDay, Option<&str>), SettingsError> {
    let value = entry.value.as_str();
    let (time, zone) = match value.split_once(char::is_whitespace) {
        Some((time, zone)) => (time, Some(zone.trim())),
        None => (value, None),
    };
    Ok((entry.parse(|_| TimeOfDay::parse(time))?, zone))
}

/// Returns the setting of UseLocalTime, if it is Y.
fn local<'a>(section: &Section<'a>) -> Result<Option<&'a Entry>, SettingsError> {
    let is_set = section.flag("UseLocalTime", false)?;
    Ok(section.find("UseLocalTime").filter(|_| is_set))
}

/// Returns whether a session has hours.
pub(super) const fn has(config: &Config) -> bool {
    config.schedule.is_some() || config.logon_schedule.is_some()
}

/// Returns the name of this machine's zone, if hours of the section are in local time.
pub(super) fn local_zone(section: &Section<'_>) -> Result<Option<String>, SettingsError> {
    let has_hours = [&SESSION, &LOGON].into_iter().any(|keys| {
        let start = section.find(keys.from);
        start.is_some_and(|start| !start.value.contains(char::is_whitespace))
    });
    match local(section)?.filter(|_| has_hours) {
        Some(entry) => Ok(Some(entry.parse(|_| zone::local())?.name)),
        None => Ok(None),
    }
}

/// Returns the schedule of these keys; without them a session is always open.
pub(super) fn read(
    section: &Section<'_>,
    keys: &Keys,
) -> Result<Option<Arc<Schedule>>, SettingsError> {
    let given = [keys.from, keys.to, keys.from_day, keys.to_day];
    let weekdays = section.find("Weekdays").filter(|_| keys.weekdays);
    if weekdays.is_none() && given.iter().all(|key| section.find(key).is_none()) {
        return Ok(None);
    }
    let (start, from_zone) = time(section.need(keys.from)?)?;
    let (end, to_zone) = time(section.need(keys.to)?)?;
    let by_week = given.iter().skip(2).find_map(|key| section.find(key));
    let window = if let Some(day) = by_week {
        if weekdays.is_some() {
            return Err(day.wrong("cannot be set together with Weekdays"));
        }
        let start_day = section.need(keys.from_day)?.parse(Weekday::parse)?;
        let end_day = section.need(keys.to_day)?.parse(Weekday::parse)?;
        Window::weekly((start_day, start), (end_day, end))
    } else if let Some(entry) = weekdays {
        let days: Result<Vec<_>, _> = entry.value.split(',').map(Weekday::parse).collect();
        let days = days.map_err(|why| entry.wrong(why))?;
        Window::on_days(&days, start, end)
    } else {
        Window::daily(start, end)
    };
    if from_zone != to_zone {
        let to = section.need(keys.to)?;
        return Err(to.wrong(format!("must have the same time zone as {}", keys.from)));
    }
    let local = local(section)?;
    let zone: Arc<dyn Zone> = match (from_zone, section.find("TimeZone"), local) {
        (Some(name), _, _) => section.need(keys.from)?.parse(|_| zone::by_name(name))?,
        (None, Some(_), Some(entry)) => {
            return Err(entry.wrong("cannot be set together with TimeZone"));
        }
        (None, Some(entry), None) => entry.parse(zone::by_name)?,
        (None, None, Some(entry)) => entry.parse(|_| zone::local())?.zone,
        (None, None, None) => Arc::new(FixedOffset(0)),
    };
    let schedule = Schedule::new(vec![window], zone);
    Ok(schedule.ok().map(Arc::new))
}
