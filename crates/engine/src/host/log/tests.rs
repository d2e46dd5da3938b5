//! Tests of the lines, and of a log that is in trouble.

use super::lines::masked;
use super::*;
use crate::rotate::Daily;
use fanfare_fix::session::{SECOND, Version};
use fanfare_wire::UtcTimestamp;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

const BEAT: &[u8] = b"8=FIX.4.4\x019=5\x0135=0\x0110=163\x01";

#[test]
fn secrets_are_masked_and_nothing_else() {
    let mut out = Vec::new();
    let logon = b"8=FIX.4.4\x0135=A\x01553=me\x01554=pw\x0195=3\x0196=a\x02c\x01925=new\x01";
    masked(logon, &mut out);
    assert_eq!(out, b"8=FIX.4.4|35=A|553=me|554=***|95=3|96=***|925=***|");
    out.clear();
    masked(b"8=FIX.4.4\x0135=B\x0196=a\n\xc2\x9b\xff\\c\x01", &mut out);
    assert_eq!(out, br"8=FIX.4.4|35=B|96=a\n\u{9b}\xff\\c|");
}

/// Returns the time `seconds` after the start.
fn at(seconds: u64) -> Now {
    Now {
        mono: seconds * SECOND,
        utc: UtcTimestamp::from_nanos((seconds * SECOND) as i64),
    }
}

/// Opens a log with the smallest ring. Returns both ends, and the file.
fn small(test: &str, lossy: bool) -> (LogTap, MessageLog, PathBuf) {
    let name = format!("fanfare-log-{test}-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let options = LogOptions {
        ring_bytes: 1 << 20,
        lossy,
        ..LogOptions::default()
    };
    let (tap, log) = MessageLog::open(&path, options, &Counters::new()).unwrap();
    (tap, log, path)
}

/// Returns the lines of a log at its end, without the times of messages. The file is removed.
fn lines_of(mut log: MessageLog, path: &Path) -> Vec<String> {
    log.on_close(at(0));
    let text = std::fs::read_to_string(path).unwrap();
    std::fs::remove_file(path).unwrap();
    let cut = |line: &str| match line.starts_with("-- ") {
        true => line.to_owned(),
        false => line[28..].to_owned(),
    };
    text.lines().map(cut).collect()
}

#[test]
fn what_is_left_of_a_connection_has_a_line_of_its_own() {
    let (mut tap, log, path) = small("rest", false);
    let now = at(0);
    tap.bytes(now, 3, Direction::In, BEAT);
    tap.bytes(now, 3, Direction::In, &BEAT[..20]);
    tap.bytes(
        now,
        3,
        Direction::Out,
        b"8=FIX.4.4\x019=50\x0135=A\x01554=se",
    );
    tap.bytes(now, 4, Direction::In, &BEAT[..20]);
    tap.begins(3);
    tap.bytes(now, 3, Direction::In, BEAT);
    tap.bytes(now, 4, Direction::In, &BEAT[20..]);
    // Another session has the key.
    tap.bytes(now, 4, Direction::Out, &BEAT[..9]);
    tap.name(4, &SessionId::new(Version::Fix44, "A", "B"));
    tap.bytes(now, 4, Direction::Out, &BEAT[..9]);
    assert_eq!(
        lines_of(log, &path),
        [
            "session 3 in  8=FIX.4.4|9=5|35=0|10=163|",
            "session 3 in  8=FIX.4.4|9=5|35=0|1",
            "session 3 out 8=FIX.4.4|9=50|35=A|554=***",
            "session 3 in  8=FIX.4.4|9=5|35=0|10=163|",
            "session 4 in  8=FIX.4.4|9=5|35=0|10=163|",
            "session 4 out 8=FIX.4.4",
            "FIX.4.4:A->B out 8=FIX.4.4",
        ]
    );
}

#[test]
fn two_connections_of_a_session_have_a_stream_each() {
    let (mut tap, log, path) = small("overlap", false);
    let now = at(0);
    let (first, second) = (3, 3 | OVERLAP);
    tap.name(3, &SessionId::new(Version::Fix44, "A", "B"));
    tap.bytes(now, first, Direction::Out, &BEAT[..20]);
    tap.begins(second);
    tap.bytes(now, second, Direction::In, &BEAT[..9]);
    tap.bytes(now, first, Direction::Out, &BEAT[20..]);
    tap.begins(first);
    tap.bytes(now, second, Direction::In, &BEAT[9..]);
    tap.bytes(now, second, Direction::Out, &BEAT[..9]);
    // Another session has the key.
    tap.name(3, &SessionId::new(Version::Fix44, "A", "C"));
    tap.bytes(now, second, Direction::In, BEAT);
    assert_eq!(
        lines_of(log, &path),
        [
            "FIX.4.4:A->B out 8=FIX.4.4|9=5|35=0|10=163|",
            "FIX.4.4:A->B in  8=FIX.4.4|9=5|35=0|10=163|",
            "FIX.4.4:A->B out 8=FIX.4.4",
            "FIX.4.4:A->C in  8=FIX.4.4|9=5|35=0|10=163|",
        ]
    );
}

#[test]
fn a_line_that_an_earlier_run_has_begun_is_ended() {
    let (_, log, path) = small("half", false);
    drop(log);
    std::fs::write(&path, "half").unwrap();
    let (mut tap, mut log, path) = small("half", false);
    let other = path.with_extension("1");
    tap.bytes(at(0), 3, Direction::In, BEAT);
    log.on_close(at(0));
    std::fs::rename(&path, &other).unwrap();
    std::fs::write(&path, "another").unwrap();
    log.lines.open_again();
    tap.bytes(at(0), 3, Direction::In, BEAT);
    log.on_close(at(0));
    let line = "19700101-00:00:00.000000000 session 3 in  8=FIX.4.4|9=5|35=0|10=163|\n";
    for (path, begun) in [(&other, "half"), (&path, "another")] {
        let text = std::fs::read_to_string(path).unwrap();
        std::fs::remove_file(path).unwrap();
        assert_eq!(text, format!("{begun}\n{line}"));
    }
}

/// Fills the ring with bytes of session 9.
fn fill_ring(tap: &mut LogTap) {
    while tap.ring.push(9 << 1, &[b'x'; TIME + 1]).is_ok() {}
}

/// Returns the lines of a log at its end, as [`lines_of`] does, without those of session 9.
fn lines_of_others(log: MessageLog, path: &Path) -> Vec<String> {
    let mut lines = lines_of(log, path);
    lines.retain(|line| !line.starts_with("session 9 "));
    lines
}

/// Returns a lossy log with BEAT under way on session 3, in whose ring nothing more fits.
fn filled(test: &str) -> (LogTap, MessageLog, PathBuf) {
    let (mut tap, log, path) = small(test, true);
    tap.bytes(at(0), 3, Direction::In, &BEAT[..20]);
    fill_ring(&mut tap);
    (tap, log, path)
}

#[test]
fn what_may_be_the_rest_of_a_secret_behind_left_out_bytes_is_not_shown() {
    let (mut tap, mut log, path) = filled("torn");
    let now = at(0);
    tap.bytes(now, 3, Direction::In, b"lost");
    while log.do_work(now).unwrap() > 0 {}
    // The rest of a Logon(A) comes in three reads. A message, a broken one and another one follow.
    tap.bytes(now, 3, Direction::In, b"cret\x01108=30\x0196=more");
    tap.bytes(now, 3, Direction::In, b" of it\x0110=0");
    tap.bytes(now, 3, Direction::In, &[b"99\x01", BEAT].concat());
    tap.bytes(
        now,
        3,
        Direction::In,
        b"8=FIX.4.4\x019=x\x0135=A\x01554=pw\x0110=000\x01",
    );
    tap.bytes(now, 3, Direction::In, BEAT);
    let lines = lines_of_others(log, &path);
    let (secret, shown): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.contains("in  ***"));
    assert!(!secret.is_empty());
    assert_eq!(
        shown,
        [
            "session 3 in  8=FIX.4.4|9=5|35=0|1",
            "-- 4 bytes were left out",
            "session 3 in  8=FIX.4.4|9=5|35=0|10=163|",
            "session 3 in  8=FIX.4.4|9=x|35=A|554=***|10=000|",
            "session 3 in  8=FIX.4.4|9=5|35=0|10=163|",
        ]
    );
}

#[test]
fn the_first_message_of_a_connection_is_shown_behind_left_out_bytes() {
    let (mut tap, mut log, path) = filled("torn-begins");
    let now = at(0);
    tap.bytes(now, 3, Direction::In, b"lost");
    while log.do_work(now).unwrap() > 0 {}
    tap.bytes(now, 3, Direction::In, b"554=pw");
    tap.begins(3);
    tap.bytes(now, 3, Direction::In, &BEAT[..20]);
    assert_eq!(
        lines_of_others(log, &path),
        [
            "session 3 in  8=FIX.4.4|9=5|35=0|1",
            "-- 4 bytes were left out",
            "session 3 in  *** (6 bytes)",
            "session 3 in  8=FIX.4.4|9=5|35=0|1",
        ]
    );
}

#[test]
fn a_connection_whose_beginning_is_left_out_may_go_on_within_a_secret() {
    let (mut tap, mut log, path) = filled("torn-late");
    while tap.ring.push(9 << 1, b"").is_ok() {}
    let now = at(0);
    tap.begins(3);
    tap.bytes(
        now,
        3,
        Direction::In,
        b"8=FIX.4.4\x019=50\x0135=A\x01554=se",
    );
    while log.do_work(now).unwrap() > 0 {}
    tap.bytes(now, 3, Direction::In, b"cret\x01");
    assert_eq!(
        lines_of_others(log, &path),
        [
            "session 3 in  8=FIX.4.4|9=5|35=0|1",
            "-- 26 bytes were left out",
            "session 3 in  *** (5 bytes)",
        ]
    );
}

#[test]
fn a_name_without_room_in_the_ring_precedes_the_next_bytes_of_its_session() {
    let (mut tap, mut log, path) = small("name", true);
    let id = |sender: &str| SessionId::new(Version::Fix44, sender, "B");
    let now = at(0);
    tap.name(3, &id("A"));
    tap.bytes(now, 3, Direction::In, BEAT);
    tap.bytes(now, 4, Direction::In, &BEAT[..20]);
    fill_ring(&mut tap);
    // Others take the place of the first session, and another connection of the second begins.
    tap.name(3, &id("C"));
    tap.name(3, &id("D"));
    tap.begins(3);
    tap.begins(4);
    assert_eq!((tap.left_out, tap.late.len()), (0, 2));
    while log.do_work(now).unwrap() > 0 {}
    tap.bytes(now, 4, Direction::In, BEAT);
    tap.bytes(now, 3, Direction::In, BEAT);
    assert!(tap.late.is_empty());
    assert_eq!(
        lines_of_others(log, &path),
        [
            "FIX.4.4:A->B in  8=FIX.4.4|9=5|35=0|10=163|",
            "session 4 in  8=FIX.4.4|9=5|35=0|1",
            "session 4 in  8=FIX.4.4|9=5|35=0|10=163|",
            "FIX.4.4:D->B in  8=FIX.4.4|9=5|35=0|10=163|",
        ]
    );
}

#[test]
fn a_log_that_makes_progress_is_waited_for_twice_as_long() {
    let (mut tap, mut log, path) = small("slow", false);
    tap.fill(at(0));
    assert!(tap.holds(at(0)));
    for seconds in [4, 8] {
        assert_eq!(log.do_work(at(seconds)).unwrap(), TURN);
        assert!(tap.holds(at(seconds)), "{seconds} s");
    }
    assert!(tap.holds(at(9)));
    assert!(!tap.holds(at(10)));
    assert_eq!(tap.leaves_out, Some(NoRoom::Burst));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_log_that_was_stuck_is_waited_for_again_also_if_nothing_was_left_out() {
    let (mut tap, mut log, path) = small("waited", false);
    tap.fill(at(0));
    assert!(tap.holds(at(0)));
    assert!(tap.holds(at(4)));
    assert!(!tap.holds(at(5)));
    assert_eq!(tap.leaves_out, Some(NoRoom::Stuck));
    while log.do_work(at(5)).unwrap() > 0 {}
    assert!(!tap.holds(at(6)));
    assert_eq!((tap.leaves_out, tap.trouble(|_| None)), (None, None));
    tap.fill(at(7));
    assert!(tap.holds(at(7)));
    assert!(!tap.holds(at(12)));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn changes_between_two_looks_are_all_reported_up_to_a_limit() {
    let (mut tap, log, path) = small("untold", false);
    let changes = [
        LogTrouble::Kept("one".to_owned()),
        LogTrouble::Disk("two".to_owned()),
        LogTrouble::DiskAgain { bytes: 3 },
    ];
    let health = &log.lines.health;
    changes
        .iter()
        .for_each(|change| health.report(change.clone()));
    let mut told = || Vec::from_iter(std::iter::from_fn(|| tap.trouble(|_| None)));
    assert_eq!(told(), changes);
    assert_eq!(told(), []);
    (0..100).for_each(|bytes| health.report(LogTrouble::DiskAgain { bytes }));
    let newest = told();
    assert_eq!(newest.len(), Health::MOST);
    assert_eq!(newest.last(), Some(&LogTrouble::DiskAgain { bytes: 99 }));
    std::fs::remove_file(&path).unwrap();
}

/// Logs a message `seconds` after the start. Returns the troubles that the log reports.
fn beat_at(tap: &mut LogTap, log: &mut MessageLog, seconds: u64) -> Vec<LogTrouble> {
    let now = at(seconds);
    tap.bytes(now, 3, Direction::In, BEAT);
    while log.do_work(now).unwrap() > 0 {}
    std::iter::from_fn(|| tap.trouble(|_| None)).collect()
}

/// Renames the folder of the log, so that no new file can be made at its path.
#[test]
fn a_file_that_cannot_be_ended_is_told_once_and_written_on() {
    let folder = std::env::temp_dir().join(format!("fanfare-log-roll-{}", std::process::id()));
    let away = folder.with_extension("away");
    std::fs::create_dir_all(&folder).unwrap();
    let daily = LogOptions {
        rotation: Rotation {
            daily: Some(Daily::new("00:00", "UTC").unwrap()),
            compress: 0,
            ..Rotation::default()
        },
        ..LogOptions::default()
    };
    let counters = Counters::new();
    let (mut tap, mut log) = MessageLog::open(&folder.join("log"), daily, &counters).unwrap();
    let mut told = Vec::new();
    let mut beat_at = |seconds: u64| {
        told.extend(beat_at(&mut tap, &mut log, seconds));
        told.len()
    };
    let midnight = 24 * 60 * 60;
    assert_eq!(beat_at(midnight - 1), 0);
    std::fs::rename(&folder, &away).unwrap();
    for second in 0..100 {
        assert_eq!(beat_at(midnight + second), 1);
    }
    std::fs::rename(&away, &folder).unwrap();
    assert_eq!(beat_at(midnight + 200), 1);
    let [LogTrouble::Kept(why)] = &told[..] else {
        panic!("{told:?}");
    };
    assert!(why.contains("fanfare-log-roll"), "{why}");
    let files = std::fs::read_dir(&folder).unwrap();
    let mut lines: Vec<_> = files
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .map(|text| text.lines().count())
        .collect();
    lines.sort_unstable();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(lines, [1, 101]);
}

/// Renames the folder of the log, so that no file can be opened at its path.
#[test]
fn a_file_that_cannot_be_opened_again_is_told_once_and_tried_again() {
    let folder = std::env::temp_dir().join(format!("fanfare-log-again-{}", std::process::id()));
    let away = folder.with_extension("away");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("log");
    let opened = MessageLog::open(&path, LogOptions::default(), &Counters::new());
    let (mut tap, log) = opened.unwrap();
    let reload = Reload::new();
    let mut log = log.reopen_on(reload.clone());
    assert!(beat_at(&mut tap, &mut log, 0).is_empty());
    std::fs::rename(&path, folder.join("log.1")).unwrap();
    std::fs::rename(&folder, &away).unwrap();
    reload.request();
    let told = beat_at(&mut tap, &mut log, 1);
    assert!(matches!(told[..], [LogTrouble::Kept(_)]), "{told:?}");
    // Each request is answered; the attempts between them are not.
    for (seconds, count) in [(60, 0), (61, 0), (120, 0), (121, 1), (180, 0)] {
        if count > 0 {
            reload.request();
        }
        let told = beat_at(&mut tap, &mut log, seconds);
        assert_eq!(told.len(), count, "{seconds} s: {told:?}");
    }
    std::fs::rename(&away, &folder).unwrap();
    assert!(beat_at(&mut tap, &mut log, 181).is_empty());
    let lines = ["log.1", "log"].map(|name| {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        text.lines().count()
    });
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(lines, [7, 1]);
}

#[test]
fn a_half_line_that_a_full_disk_never_ended_leaves_nothing_to_the_next_file() {
    let (_, log, path) = small("full-half", false);
    drop(log);
    std::fs::write(&path, "half").unwrap();
    let (mut tap, log, path) = small("full-half", false);
    let reload = Reload::new();
    let mut log = log.reopen_on(reload.clone());
    let full = File::options().write(true).open("/dev/full");
    log.fill_disk(Some(full.unwrap()));
    log.do_work(at(0)).unwrap();
    assert!(log.lines.is_failing());
    let other = path.with_extension("1");
    std::fs::rename(&path, &other).unwrap();
    reload.request();
    tap.bytes(at(0), 3, Direction::In, BEAT);
    let lines = lines_of(log, &path);
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "half");
    std::fs::remove_file(&other).unwrap();
    assert_eq!(lines, ["session 3 in  8=FIX.4.4|9=5|35=0|10=163|"]);
}

/// The old file is a pipe, which is full within a line.
#[test]
fn a_file_that_is_full_leaves_the_whole_line_to_the_next_one() {
    const LINES: usize = 8_000;
    let path = std::env::temp_dir().join(format!("fanfare-log-full-{}", std::process::id()));
    let opened = MessageLog::open(&path, LogOptions::default(), &Counters::new());
    let (mut tap, log) = opened.unwrap();
    let reload = Reload::new();
    let mut log = log.reopen_on(reload.clone());
    let (mut old, pipe) = io::pipe().unwrap();
    let mut options = File::options();
    options.write(true).custom_flags(libc::O_NONBLOCK);
    let full = options.open(format!("/proc/self/fd/{}", pipe.as_raw_fd()));
    drop(pipe);
    log.fill_disk(Some(full.unwrap()));
    let now = at(0);
    for _ in 0..LINES / 100 {
        tap.bytes(now, 3, Direction::In, &BEAT.repeat(100));
    }
    while log.do_work(now).unwrap() > 0 {}
    assert!(log.lines.is_failing());
    reload.request();
    log.on_close(now);
    let mut first = String::new();
    old.read_to_string(&mut first).unwrap();
    let second = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let line = "19700101-00:00:00.000000000 session 3 in  8=FIX.4.4|9=5|35=0|10=163|\n";
    let whole = first.len() / line.len();
    assert_ne!(first.len(), whole * line.len());
    assert!(line.repeat(whole + 1).starts_with(&first));
    assert_eq!(second, line.repeat(LINES - whole));
}

#[test]
fn a_log_that_falls_behind_says_so_and_goes_on() {
    let name = format!("fanfare-log-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("log");
    let counters = Counters::new();
    let lossy = LogOptions {
        lossy: true,
        rotation: Rotation {
            max_bytes: 1 << 20,
            compress: 0,
            ..Rotation::default()
        },
        ..LogOptions::default()
    };
    let (mut tap, mut log) = MessageLog::open(&path, lossy, &counters).unwrap();
    let now = at(0);
    let flood = vec![b'x'; 8 << 20];
    // The rest of this message would come after the gap.
    tap.bytes(now, 4, Direction::In, &BEAT[..20]);
    tap.bytes(now, 3, Direction::In, &flood);
    let lost = tap.left_out;
    assert!(lost > 0);
    while log.do_work(now).unwrap() > 0 {}
    tap.bytes(now, 3, Direction::Out, BEAT);
    log.on_close(now);
    let text = std::fs::read_to_string(&path).unwrap();
    // The file was begun again.
    assert!(std::fs::read_dir(&folder).unwrap().count() > 1);
    std::fs::remove_dir_all(&folder).unwrap();
    let begun = "19700101-00:00:00.000000000 session 4 in  8=FIX.4.4|9=5|35=0|1\n-- ";
    assert_eq!(text.matches(begun).count(), 1);
    let expected = format!(
        "-- {lost} bytes were left out\n\
         19700101-00:00:00.000000000 session 3 out 8=FIX.4.4|9=5|35=0|10=163|\n"
    );
    assert!(
        text.ends_with(&expected),
        "{}",
        &text[text.len().saturating_sub(200)..]
    );
}
