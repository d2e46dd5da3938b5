//! Tests of the lines, and of a log that is in trouble.

use super::*;
use crate::rotate::Daily;

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

#[test]
fn what_is_left_of_a_connection_has_a_line_of_its_own() {
    let name = format!("fanfare-log-rest-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let options = LogOptions::default();
    let (mut tap, mut log) = MessageLog::open(&path, options, &Counters::new()).unwrap();
    let now = Now {
        mono: 0,
        utc: UtcTimestamp::from_nanos(0),
    };
    let beat = b"8=FIX.4.4\x019=5\x0135=0\x0110=163\x01";
    tap.bytes(now, 3, Direction::In, beat);
    tap.bytes(now, 3, Direction::In, &beat[..20]);
    tap.bytes(
        now,
        3,
        Direction::Out,
        b"8=FIX.4.4\x019=50\x0135=A\x01554=se",
    );
    tap.bytes(now, 4, Direction::In, &beat[..20]);
    tap.begins(3);
    tap.bytes(now, 3, Direction::In, beat);
    tap.bytes(now, 4, Direction::In, &beat[20..]);
    // Another session has the key.
    tap.bytes(now, 4, Direction::Out, &beat[..9]);
    tap.name(
        4,
        &SessionId::new(fanfare_fix::session::Version::Fix44, "A", "B"),
    );
    tap.bytes(now, 4, Direction::Out, &beat[..9]);
    log.on_close(now);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let lines: Vec<_> = text.lines().map(|line| &line[28..]).collect();
    assert_eq!(
        lines,
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
    let beat = b"8=FIX.4.4\x019=5\x0135=0\x0110=163\x01";
    let mut told = Vec::new();
    let mut beat_at = |seconds: u64| {
        let now = Now {
            mono: seconds * SECOND,
            utc: UtcTimestamp::from_nanos((seconds * SECOND) as i64),
        };
        tap.bytes(now, 3, Direction::In, beat);
        while log.do_work(now).unwrap() > 0 {}
        told.extend(std::iter::from_fn(|| tap.trouble(|_| None)));
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
    let now = Now {
        mono: 0,
        utc: UtcTimestamp::from_nanos(0),
    };
    let beat = b"8=FIX.4.4\x019=5\x0135=0\x0110=163\x01";
    let flood = vec![b'x'; 8 << 20];
    tap.bytes(now, 3, Direction::In, &flood);
    let lost = tap.left_out;
    assert!(lost > 0);
    while log.do_work(now).unwrap() > 0 {}
    tap.bytes(now, 3, Direction::Out, beat);
    log.on_close(now);
    let text = std::fs::read_to_string(&path).unwrap();
    // The file was begun again.
    assert!(std::fs::read_dir(&folder).unwrap().count() > 1);
    std::fs::remove_dir_all(&folder).unwrap();
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
