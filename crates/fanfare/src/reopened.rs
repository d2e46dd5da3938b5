//! The tests of logs that open the file at their path again.

use crate::scratch::Scratch;
use fanfare_engine::reopen::Reopen;
use fanfare_engine::stop::Reload;
use std::fs;
use std::path::Path;

/// A log that opens the file at its path again.
pub(crate) trait Log {
    /// Begins a log whose file is opened again at these requests.
    fn begin(path: &Path, requests: Reload) -> Self;
    /// Opens the file again if that is due at `now`.
    fn open_if_due(&mut self, now: u64);
    /// Writes a line.
    fn put_line(&mut self, line: &str);
}

fn put(log: &mut impl Log, now: u64, line: &str) {
    log.open_if_due(now);
    log.put_line(line);
}

/// Tests that a log begins a new file at a request, after a rename of the old one. Returns the log,
/// which has three lines.
pub(crate) fn after_a_rename<L: Log>(test: &str) -> L {
    let scratch = Scratch::new(test).unwrap();
    let (path, moved) = (scratch.file("log"), scratch.file("log.1"));
    let requests = Reload::new();
    let mut log = L::begin(&path, requests.clone());
    put(&mut log, 0, "one");
    fs::rename(&path, &moved).unwrap();
    put(&mut log, 0, "two");
    assert!(!path.exists());
    requests.request();
    put(&mut log, 0, "three");
    let texts = [moved, path].map(|path| fs::read_to_string(path).unwrap());
    assert_eq!(texts, ["one\ntwo\n", "three\n"]);
    log
}

/// Tests that a log whose folder is missing at a request continues in the old file, and tries again
/// every minute until it has a new one.
pub(crate) fn while_the_folder_is_missing<L: Log>(test: &str) {
    const MINUTE: u64 = Reopen::INTERVAL;
    let scratch = Scratch::new(test).unwrap();
    let (folder, away) = (scratch.file("folder"), scratch.file("away"));
    fs::create_dir(&folder).unwrap();
    let (path, old) = (folder.join("log"), away.join("log"));
    let requests = Reload::new();
    let mut log = L::begin(&path, requests.clone());
    fs::rename(&folder, &away).unwrap();
    requests.request();
    put(&mut log, 0, "one");
    put(&mut log, MINUTE, "two");
    fs::create_dir(&folder).unwrap();
    put(&mut log, 2 * MINUTE - 1, "three");
    assert!(!path.exists());
    log.open_if_due(2 * MINUTE);
    assert!(path.exists());
    put(&mut log, 2 * MINUTE, "four");
    let texts = [&old, &path].map(|path| fs::read_to_string(path).unwrap());
    assert_eq!(texts, ["one\ntwo\nthree\n", "four\n"]);
    // No attempt follows the one that succeeded.
    fs::remove_file(&path).unwrap();
    log.open_if_due(u64::MAX);
    assert!(!path.exists());
}
