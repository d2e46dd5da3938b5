//! Time zones by name, for the schedules of sessions.
//!
//! The session core has no zone data. jiff resolves the names here, with its own copy of the IANA
//! database, so that a schedule means the same on every machine, also on one without
//! `/usr/share/zoneinfo`. An offset is computed without allocation, and only when a session checks
//! its schedule: every 30 s, not with each message.

use std::sync::Arc;

use fanfare_fix::session::{FixedOffset, Zone};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The error for a name of no zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown time zone {0:?}: expected a name (Europe/London), UTC or an offset (+05:30)")]
pub struct UnknownZone(String);

/// Returns the zone with this IANA name (`America/New_York`), `UTC`, or a fixed offset (`+05:30`).
///
/// # Errors
/// The zone does not exist.
pub fn by_name(name: &str) -> Result<Arc<dyn Zone>, UnknownZone> {
    let name = name.trim();
    if let Some(offset) = fixed_offset(name) {
        return Ok(Arc::new(FixedOffset(offset)));
    }
    match jiff::tz::TimeZoneDatabase::bundled().get(name) {
        Ok(zone) => Ok(Arc::new(NamedZone(zone))),
        Err(_) => Err(UnknownZone(name.to_owned())),
    }
}

/// Returns the zone of this machine: the one named by the environment variable TZ, or linked to by
/// `/etc/localtime`, or else UTC.
///
/// # Errors
/// The zone does not exist.
pub fn local() -> Result<Arc<dyn Zone>, UnknownZone> {
    let link = || std::fs::read_link("/etc/localtime").ok();
    let link = || Some(link()?.to_string_lossy().into_owned());
    by_name(&local_name(std::env::var("TZ").ok(), link))
}

/// Returns the name in `:Europe/Zurich`, or the part after `zoneinfo/` of the link.
fn local_name(variable: Option<String>, link: impl FnOnce() -> Option<String>) -> String {
    if let Some(name) = variable.filter(|name| !name.is_empty()) {
        return name.trim_start_matches(':').to_owned();
    }
    let link = link().unwrap_or_default();
    let name = link.split_once("zoneinfo/").map(|(_, name)| name);
    let name = name.map(|name| name.trim_start_matches("posix/").to_owned());
    name.unwrap_or_else(|| "UTC".to_owned())
}

#[derive(Debug)]
struct NamedZone(TimeZone);

impl Zone for NamedZone {
    fn offset_at(&self, utc_seconds: i64) -> i32 {
        // Sessions do not exist outside jiff's years (-9999 to 9999).
        let moment = Timestamp::from_second(utc_seconds).unwrap_or_default();
        self.0.to_offset(moment).seconds()
    }
}

/// Parses `UTC`, `Z`, or `+hh:mm`, `-hh:mm`, to seconds.
fn fixed_offset(name: &str) -> Option<i32> {
    if matches!(name, "UTC" | "GMT" | "Z") {
        return Some(0);
    }
    let (sign, rest) = match name.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let number = |text: &str, limit: i32| {
        let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i32>()
            .ok()
            .filter(|value| digits && *value < limit)
    };
    Some(sign * (number(hours, 24)? * 3600 + number(minutes, 60)? * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-15T12:00Z and 2026-07-15T12:00Z.
    const WINTER: i64 = 1_768_478_400;
    const SUMMER: i64 = 1_784_116_800;

    fn offsets(name: &str) -> (i32, i32) {
        let zone = by_name(name).unwrap();
        (zone.offset_at(WINTER), zone.offset_at(SUMMER))
    }

    #[test]
    fn names_with_and_without_daylight_saving() {
        assert_eq!(offsets("America/New_York"), (-5 * 3600, -4 * 3600));
        assert_eq!(offsets(" Europe/London "), (0, 3600));
        assert_eq!(offsets("Australia/Sydney"), (11 * 3600, 10 * 3600));
        assert_eq!(offsets("Asia/Tokyo"), (9 * 3600, 9 * 3600));
        assert_eq!(offsets("UTC"), (0, 0));
        assert_eq!(offsets("+05:30"), (19_800, 19_800));
        assert_eq!(offsets("-03:00"), (-10_800, -10_800));
    }

    #[test]
    fn the_night_of_the_change() {
        // 8 March 2026, 07:00 UTC.
        let zone = by_name("America/New_York").unwrap();
        assert_eq!(zone.offset_at(1_772_953_199), -5 * 3600);
        assert_eq!(zone.offset_at(1_772_953_200), -4 * 3600);
    }

    #[test]
    fn the_zone_of_this_machine() {
        let zurich = || Some("../usr/share/zoneinfo/Europe/Zurich".to_owned());
        assert_eq!(local_name(None, zurich), "Europe/Zurich");
        assert_eq!(local_name(Some(String::new()), zurich), "Europe/Zurich");
        assert_eq!(
            local_name(Some(":Asia/Tokyo".to_owned()), zurich),
            "Asia/Tokyo"
        );
        let posix = || Some("/usr/share/zoneinfo/posix/Etc/UTC".to_owned());
        assert_eq!(local_name(None, posix), "Etc/UTC");
        assert_eq!(local_name(None, || None), "UTC");
    }

    #[test]
    fn what_is_no_zone() {
        for wrong in [
            "",
            "Europe/Atlantis",
            "+5:30",
            "+24:00",
            "+05:60",
            "+",
            "EST5EDT4",
        ] {
            assert_eq!(
                by_name(wrong).unwrap_err(),
                UnknownZone(wrong.to_owned()),
                "{wrong}"
            );
        }
        let text = by_name("Mars").unwrap_err().to_string();
        assert!(text.starts_with("unknown time zone \"Mars\""), "{text}");
        assert_eq!(by_name("Z").unwrap().offset_at(i64::MAX), 0);
        assert_eq!(by_name("Asia/Tokyo").unwrap().offset_at(i64::MIN), 9 * 3600);
    }
}
