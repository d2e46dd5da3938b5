//! Time zones by name, for the schedules of sessions.
//!
//! The session core has no zone data. jiff resolves the names here, with its own copy of the IANA
//! database, so that a schedule means the same on every machine, also on one without
//! `/usr/share/zoneinfo`. An offset is computed without allocation, and only when a session checks
//! its schedule: every 30 s, not with each message.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
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

/// The zone of this machine.
#[derive(Debug)]
pub struct LocalZone {
    /// What it is taken from: a name (`Europe/Zurich`), a rule of POSIX, or a file.
    pub name: String,
    /// The zone.
    pub zone: Arc<dyn Zone>,
}

/// The error for a machine whose zone is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the zone of this machine is not known: {0}")]
pub struct NoLocalZone(String);

/// Returns the time zone of this machine, by the rules of the C library.
///
/// The environment variable TZ comes first: a name, a rule of POSIX (`EST5EDT,M3.2.0,M11.1.0`) or
/// the path of a file; an empty value means UTC. Without TZ the zone is the one of
/// `/etc/localtime`, which is a link or a file. Without that file it is UTC.
///
/// # Errors
/// The zone does not exist, the rule is incomplete, or the file cannot be read.
pub fn local() -> Result<LocalZone, NoLocalZone> {
    let variable = std::env::var_os("TZ");
    let variable = variable.map(|value| value.to_string_lossy().into_owned());
    match variable {
        Some(value) => of_variable(&value),
        None => of_file(Path::new("/etc/localtime")),
    }
}

/// Returns the zone of a value of TZ.
fn of_variable(value: &str) -> Result<LocalZone, NoLocalZone> {
    let wanted = value.strip_prefix(':').unwrap_or(value);
    if wanted.is_empty() {
        return Ok(LocalZone {
            name: "UTC, as TZ is empty".to_owned(),
            zone: Arc::new(FixedOffset(0)),
        });
    }
    let name = name_in(wanted).unwrap_or(wanted);
    if let Ok(zone) = by_name(name) {
        let name = name.to_owned();
        return Ok(LocalZone { name, zone });
    }
    if wanted.starts_with('/') {
        return read(Path::new(wanted));
    }
    match TimeZone::posix(wanted) {
        Ok(zone) => Ok(LocalZone {
            name: wanted.to_owned(),
            zone: Arc::new(NamedZone(zone)),
        }),
        Err(why) => Err(NoLocalZone(format!(
            "TZ={value:?} is neither a name (Europe/London), nor the path of a file, nor a rule of \
             POSIX (UTC0, EST5EDT,M3.2.0,M11.1.0): {why}"
        ))),
    }
}

/// Returns the zone of `/etc/localtime`: a link to a zone by its name, or a file of rules.
fn of_file(path: &Path) -> Result<LocalZone, NoLocalZone> {
    let target = match std::fs::read_link(path) {
        Ok(target) => target.to_string_lossy().into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(LocalZone {
                name: format!("UTC, as there is no {}", path.display()),
                zone: Arc::new(FixedOffset(0)),
            });
        }
        // It is no link.
        Err(_) => return read(path),
    };
    match name_in(&target).map(|name| (name, by_name(name))) {
        Some((name, Ok(zone))) => Ok(LocalZone {
            name: name.to_owned(),
            zone,
        }),
        _ => read(path),
    }
}

/// Returns the name in the path of a file of the system's zones.
fn name_in(path: &str) -> Option<&str> {
    let (_, name) = path.rsplit_once("zoneinfo/")?;
    let mut kinds = ["posix/", "right/"].into_iter();
    let plain = kinds.find_map(|kind| name.strip_prefix(kind));
    Some(plain.unwrap_or(name))
}

/// The most bytes of a file of rules; those of the system have up to 4 KiB.
const MOST_RULES: u64 = 1 << 20;

/// Reads the rules in a file of the format TZif.
fn read(path: &Path) -> Result<LocalZone, NoLocalZone> {
    let name = path.display().to_string();
    let failed = |why: &dyn Display| NoLocalZone(format!("{name}: {why}"));
    let meta = std::fs::metadata(path).map_err(|error| failed(&error))?;
    if !meta.is_file() {
        return Err(failed(&"no file"));
    }
    let mut rules = Vec::new();
    let file = File::open(path).map_err(|error| failed(&error))?;
    let read = file.take(MOST_RULES).read_to_end(&mut rules);
    read.map_err(|error| failed(&error))?;
    let zone = TimeZone::tzif(&name, &rules)
        .map_err(|why| failed(&format_args!("no file of time zone rules (TZif): {why}")))?;
    let zone = Arc::new(NamedZone(zone));
    Ok(LocalZone { name, zone })
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

    fn of(local: Result<LocalZone, NoLocalZone>) -> (String, i32, i32) {
        let LocalZone { name, zone } = local.unwrap();
        (name, zone.offset_at(WINTER), zone.offset_at(SUMMER))
    }

    #[test]
    fn the_zone_that_tz_has() {
        let hours = |name: &str, winter, summer| (name.to_owned(), winter * 3600, summer * 3600);
        for (value, expected) in [
            ("", hours("UTC, as TZ is empty", 0, 0)),
            (":", hours("UTC, as TZ is empty", 0, 0)),
            (":Asia/Tokyo", hours("Asia/Tokyo", 9, 9)),
            ("EST5EDT", hours("EST5EDT", -5, -4)),
            ("UTC0", hours("UTC0", 0, 0)),
            ("<+0330>-3:30", ("<+0330>-3:30".to_owned(), 12_600, 12_600)),
            (
                "EST5EDT,M3.2.0,M11.1.0",
                hours("EST5EDT,M3.2.0,M11.1.0", -5, -4),
            ),
            (
                "/usr/share/zoneinfo/Europe/Zurich",
                hours("Europe/Zurich", 1, 2),
            ),
            (":/opt/zoneinfo/right/Asia/Tokyo", hours("Asia/Tokyo", 9, 9)),
        ] {
            assert_eq!(of(of_variable(value)), expected, "{value}");
        }
        // The C library would take the rules of the USA.
        let text = of_variable("CET-1CEST").unwrap_err().to_string();
        assert!(text.contains("TZ=\"CET-1CEST\" is neither"), "{text}");
        let text = of_variable("/no/such/file").unwrap_err().to_string();
        assert!(text.contains("/no/such/file: No such file"), "{text}");
    }

    /// Returns the rules of a zone of two hours, in version 2 of TZif.
    fn rules() -> Vec<u8> {
        let mut rules = Vec::new();
        for _ in 0..2 {
            rules.extend_from_slice(b"TZif2");
            rules.extend_from_slice(&[0; 15]);
            // No leap seconds and no transitions, one type with a designation of four bytes.
            for count in [0_u32, 0, 0, 0, 1, 4] {
                rules.extend_from_slice(&count.to_be_bytes());
            }
            rules.extend_from_slice(&7200_u32.to_be_bytes());
            rules.extend_from_slice(b"\0\0TWO\0");
        }
        rules.extend_from_slice(b"\nTWO-2\n");
        rules
    }

    #[test]
    fn the_zone_that_a_link_names_or_a_file_has() {
        let folder = std::env::temp_dir().join(format!("fanfare-zone-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("localtime");
        assert_eq!(of(of_file(&path)).1, 0, "no file is UTC");
        for (target, name, winter) in [
            (
                "../usr/share/zoneinfo/Europe/Zurich",
                "Europe/Zurich",
                3_600,
            ),
            ("/usr/share/zoneinfo/posix/Etc/UTC", "Etc/UTC", 0),
        ] {
            std::os::unix::fs::symlink(target, &path).unwrap();
            let (found, offset, _) = of(of_file(&path));
            assert_eq!((&*found, offset), (name, winter));
            std::fs::remove_file(&path).unwrap();
        }
        // As in a container that has the file of its host.
        std::fs::write(&path, rules()).unwrap();
        let name = path.display().to_string();
        assert_eq!(of(of_file(&path)), (name.clone(), 7_200, 7_200));
        assert_eq!(of(of_variable(&name)), (name.clone(), 7_200, 7_200));
        std::fs::write(&path, "UTC").unwrap();
        let text = of_file(&path).unwrap_err().to_string();
        let expected = format!("not known: {name}: no file of time zone rules");
        assert!(text.contains(&expected), "{text}");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(of_file(&path).unwrap_err().to_string().ends_with("no file"));
        std::fs::remove_dir_all(&folder).unwrap();
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
