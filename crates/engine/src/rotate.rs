//! Files of lines that end at a size or at a time of the day. A number of them is kept, compressed.
//!
//! A file that ends is renamed to its name, a dot and the time in UTC
//! (`messages.log.20261125-101734.123`), so that names sort by time and are unique. While the clock
//! is behind the newest name, because it was set back, names continue from that one, a millisecond
//! apart. A thread of its own compresses such files with zstd (`….zst`) and removes the oldest: the
//! writer waits for a rename at most. Work that a process leaves unfinished is completed by the
//! next one that opens the file. Files with other names, such as those of `logrotate`, are not
//! touched.

use crate::lines::{append_to, is_same};
use crate::private;
use crate::zone;
use fanfare_fix::session::{TimeOfDay, Zone};
use fanfare_wire::{Precision, UtcTimestamp};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

/// The rules by which a file ends, and ended files are kept.
#[derive(Debug, Clone)]
pub struct Rotation {
    /// The size in bytes that no file exceeds, unless by one line that is longer.
    pub max_bytes: u64,
    /// The time of day at which a file ends.
    pub daily: Option<Daily>,
    /// The number of ended files kept, at least 1; the oldest are removed.
    pub keep: usize,
    /// The zstd level for ended files, from 1 to 19; 0 keeps them uncompressed.
    pub compress: u8,
}

impl Default for Rotation {
    /// Returns 1 GiB, not daily, ten files, level 3.
    fn default() -> Self {
        Self {
            max_bytes: 1 << 30,
            daily: None,
            keep: 10,
            compress: 3,
        }
    }
}

/// A time of the day in a time zone.
#[derive(Debug, Clone)]
pub struct Daily {
    zone: Arc<dyn Zone>,
    /// The time, in seconds of the local day.
    at: i64,
}

/// The error of an invalid time of day.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DailyError {
    /// The text is no time of day.
    #[error("{0:?} is not a time of day: expected HH:MM or HH:MM:SS")]
    Time(String),
    /// The time zone does not exist.
    #[error(transparent)]
    Zone(#[from] zone::UnknownZone),
}

impl Daily {
    /// Makes the time `HH:MM` or `HH:MM:SS` in the time zone of this name (`Europe/London`, `UTC`,
    /// `+05:30`).
    ///
    /// # Errors
    /// The time or the zone does not exist.
    pub fn new(time: &str, time_zone: &str) -> Result<Self, DailyError> {
        let at = TimeOfDay::parse(time).map_err(|_| DailyError::Time(time.to_owned()))?;
        Ok(Self {
            zone: zone::by_name(time_zone)?,
            at: at.seconds().into(),
        })
    }

    /// Returns the number of the day, from one such time to the next, at `utc` nanoseconds since
    /// 1970.
    #[must_use]
    pub fn day(&self, utc: i64) -> i64 {
        let seconds = utc.div_euclid(SECOND);
        let local = seconds + i64::from(self.zone.offset_at(seconds));
        (local - self.at).div_euclid(24 * 60 * 60)
    }
}

const SECOND: i64 = 1_000_000_000;
const MILLISECOND: i64 = 1_000_000;

/// A clock that is set back by more than this number of seconds was ahead before.
const BACK: i64 = 60 * 60;

/// A clock that reports the times of a [`Daily`].
#[derive(Debug)]
pub struct DailyClock {
    daily: Daily,
    /// The last day seen.
    day: Option<i64>,
    /// The second of the last call, since 1970.
    looked: i64,
    /// The latest second seen.
    latest: i64,
}

impl DailyClock {
    /// Makes a clock that has seen no day yet.
    #[must_use]
    pub const fn new(daily: Daily) -> Self {
        Self {
            daily,
            day: None,
            looked: i64::MIN,
            latest: i64::MIN,
        }
    }

    /// Returns whether the time of day has come since the last call, to the second. `utc` is
    /// nanoseconds since 1970. A clock that is set back repeats no day, unless it is set back by
    /// more than an hour: then it was ahead before, and the days up to there are yet to come.
    pub fn is_due(&mut self, utc: i64) -> bool {
        let second = utc.div_euclid(SECOND);
        if std::mem::replace(&mut self.looked, second) == second {
            return false;
        }
        let day = self.daily.day(utc);
        if second < self.latest.saturating_sub(BACK) {
            (self.day, self.latest) = (None, second);
        }
        self.latest = self.latest.max(second);
        let is_later = self.day.is_some_and(|last| day > last);
        self.day = Some(self.day.map_or(day, |last| last.max(day)));
        is_later
    }
}

/// A file that is appended to, with rights for its owner alone. For one thread.
pub struct RotatedFile {
    path: PathBuf,
    file: File,
    written: u64,
    max_bytes: u64,
    daily: Option<DailyClock>,
    /// Whether the time of day has come.
    is_due: bool,
    /// Whether the file is another one than at the last call of `take_change`.
    is_changed: bool,
    /// The time in the name of the newest ended file, in nanoseconds since 1970; `i64::MIN` if
    /// there is none.
    newest: i64,
    keeper: Keeper,
}

impl RotatedFile {
    /// Opens a file to append to; makes it with mode 0600 if it does not exist.
    ///
    /// # Errors
    /// The file cannot be opened, or the system has no thread left.
    pub fn open(path: &Path, rotation: Rotation) -> io::Result<Self> {
        let (file, written) = open(path)?;
        // A pipe or a device does not end.
        let ends = file.metadata()?.is_file();
        let daily = rotation.daily.clone().filter(|_| ends);
        let keeper = Keeper::new(path, &rotation);
        let ended = keeper.work.ended().unwrap_or_default();
        let mut own = Self {
            path: path.to_owned(),
            file,
            written,
            max_bytes: if ends { rotation.max_bytes } else { u64::MAX },
            daily: daily.map(DailyClock::new),
            is_due: false,
            is_changed: false,
            newest: ended
                .iter()
                .filter_map(Ended::time)
                .max()
                .unwrap_or(i64::MIN),
            keeper,
        };
        if own.keeper.work.is_left(&ended) {
            own.keeper.poke()?;
        }
        Ok(own)
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the file has to [end](Self::roll) before `more` bytes are written, at `utc`
    /// nanoseconds since 1970.
    pub fn is_over(&mut self, utc: i64, more: usize) -> bool {
        if let Some(daily) = &mut self.daily {
            self.is_due |= daily.is_due(utc);
        }
        // The new day may begin in a file that is still empty.
        self.is_due &= self.written > 0;
        let is_full = self.written.saturating_add(more as u64) > self.max_bytes;
        self.is_due || (self.written > 0 && is_full)
    }

    /// Ends the file and begins a new one. If no thread can be started for the ended files, that is
    /// a [trouble](Self::take_trouble) and not an error.
    ///
    /// # Errors
    /// The file cannot be renamed, or no new one made: writing continues in the open file.
    pub fn roll(&mut self, utc: i64) -> io::Result<()> {
        // With a name in the past, the newest file would be the first to be removed.
        let utc = utc.max(self.newest.saturating_add(MILLISECOND));
        let (name, time) = free_name(&self.path, utc)?;
        match fs::rename(&self.path, name) {
            Ok(()) => self.newest = time,
            // Another program has moved it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        self.reopen()?;
        self.is_due = false;
        if let Err(error) = self.keeper.poke() {
            self.keeper
                .fail(format!("{}: {error}", self.path.display()));
        }
        Ok(())
    }

    /// Opens the file at its path again, after another program may have renamed it.
    ///
    /// # Errors
    /// The file cannot be opened: writing continues in the open file.
    pub fn reopen(&mut self) -> io::Result<()> {
        let (file, written) = open(&self.path)?;
        self.is_changed |= !is_same(&self.file, &file);
        (self.file, self.written) = (file, written);
        Ok(())
    }

    /// Returns whether [`roll`](Self::roll) or [`reopen`](Self::reopen) has begun another file
    /// since the last call.
    pub const fn take_change(&mut self) -> bool {
        std::mem::replace(&mut self.is_changed, false)
    }

    /// Returns once why an ended file could not be compressed or removed.
    pub fn take_trouble(&self) -> Option<String> {
        let trouble = &self.keeper.trouble;
        let mut trouble = trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.take()
    }

    #[cfg(test)]
    pub(crate) fn write_to(&mut self, file: Option<File>) {
        self.file = file.unwrap_or_else(|| open(&self.path).unwrap().0);
    }
}

impl Write for RotatedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.file.write(bytes)?;
        self.written += taken as u64;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Opens a file for appending and returns it with its size.
fn open(path: &Path) -> io::Result<(File, u64)> {
    let file = append_to(path)?;
    let len = file.metadata()?.len();
    Ok((file, len))
}

/// Returns a name for a file that ends at `utc` nanoseconds since 1970, and the time in it: `utc`,
/// or the first later millisecond whose name is free.
fn free_name(path: &Path, utc: i64) -> io::Result<(PathBuf, i64)> {
    let times = (0..1_000).map(|more| utc.saturating_add(more * MILLISECOND));
    let names = times.map(|time| (stamped(path, time), time));
    let mut free = names.filter(|(name, _)| !name.exists() && !with_ending(name, ZST).exists());
    free.next().ok_or_else(|| {
        let why = format!("cannot rotate {}: no free name beside it", path.display());
        io::Error::new(io::ErrorKind::AlreadyExists, why)
    })
}

/// Returns `NAME.YYYYMMDD-HHMMSS.sss`.
fn stamped(path: &Path, utc: i64) -> PathBuf {
    let text = UtcTimestamp::from_nanos(utc).text(Precision::Millis);
    let stamp = text.as_str().replace(':', "");
    with_ending(path, &format!(".{stamp}"))
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name: OsString = path.to_owned().into();
    name.push(ending);
    name.into()
}

/// The suffixes of a compressed file, and of one that is being written.
const ZST: &str = ".zst";
const PART: &str = ".zst.part";

/// Compresses and removes ended files, on a thread that starts with the first of them.
struct Keeper {
    work: Work,
    poke: Option<SyncSender<()>>,
    trouble: Arc<Mutex<Option<String>>>,
}

/// The work on the files of one log.
#[derive(Clone)]
struct Work {
    path: PathBuf,
    keep: usize,
    compress: u8,
}

impl Keeper {
    fn new(path: &Path, rotation: &Rotation) -> Self {
        Self {
            work: Work {
                path: path.to_owned(),
                keep: rotation.keep.max(1),
                compress: rotation.compress,
            },
            poke: None,
            trouble: Arc::default(),
        }
    }

    /// Notes why files could not be compressed or removed.
    fn fail(&self, why: String) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        *trouble = Some(why);
    }

    /// Wakes the thread to check the files.
    fn poke(&mut self) -> io::Result<()> {
        if self.poke.is_none() {
            let (poke, poked) = sync_channel(1);
            let (work, trouble) = (self.work.clone(), Arc::clone(&self.trouble));
            let thread = std::thread::Builder::new().name("log-keeper".to_owned());
            thread.spawn(move || work.serve(&poked, &trouble))?;
            self.poke = Some(poke);
        }
        if let Some(poke) = &self.poke {
            // A wake-up that waits already is enough.
            let _ = poke.try_send(());
        }
        Ok(())
    }
}

impl Work {
    fn serve(&self, poked: &Receiver<()>, trouble: &Mutex<Option<String>>) {
        while poked.recv().is_ok() {
            if let Err(error) = self.run() {
                *trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        }
    }

    /// Returns whether an earlier process left work on these files.
    fn is_left(&self, ended: &[Ended]) -> bool {
        let has = |ending: Ending| ended.iter().any(|file| file.ending == ending);
        has(Ending::Part) || ended.len() > self.keep || (self.compress > 0 && has(Ending::Plain))
    }

    /// Removes the oldest files, and compresses the others.
    fn run(&self) -> Result<(), String> {
        let told = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
        let mut ended = self.ended().map_err(|error| told(&self.path, error))?;
        let part = ended.extract_if(.., |file| file.ending == Ending::Part);
        for Ended { name, .. } in part {
            let path = self.path.with_file_name(name);
            fs::remove_file(&path).map_err(|error| told(&path, error))?;
        }
        let beyond = ended.len().saturating_sub(self.keep);
        for Ended { name, .. } in ended.drain(..beyond) {
            let path = self.path.with_file_name(name);
            fs::remove_file(&path).map_err(|error| told(&path, error))?;
        }
        for Ended { name, ending } in ended {
            if ending == Ending::Plain && self.compress > 0 {
                let path = self.path.with_file_name(name);
                compress(&path, self.compress).map_err(|error| told(&path, error))?;
            }
        }
        Ok(())
    }

    /// Returns the ended files, oldest first.
    fn ended(&self) -> io::Result<Vec<Ended>> {
        let parent = self
            .path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let own = self.path.file_name().unwrap_or_default();
        let mut found = Vec::new();
        for entry in fs::read_dir(parent.unwrap_or(Path::new(".")))? {
            let name = entry?.file_name();
            if let Some(ending) = ending_of(own, &name) {
                found.push(Ended { name, ending });
            }
        }
        found.sort();
        Ok(found)
    }
}

/// An ended file. Files of one log are ordered by the times in their names.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ended {
    name: OsString,
    ending: Ending,
}

impl Ended {
    /// Returns the time in the name, in nanoseconds since 1970; `None` if there is no such time.
    fn time(&self) -> Option<i64> {
        let name = self.name.as_encoded_bytes();
        let name = match self.ending {
            Ending::Plain => name,
            Ending::Compressed => name.strip_suffix(ZST.as_bytes())?,
            Ending::Part => name.strip_suffix(PART.as_bytes())?,
        };
        let (_, stamp) = name.split_at_checked(name.len().checked_sub(STAMP.len())?)?;
        let (day, time) = stamp.split_at_checked(STAMP_DAY)?;
        let (hour, rest) = time.split_at_checked(2)?;
        let (minute, second) = rest.split_at_checked(2)?;
        let text = [day, hour, b":", minute, b":", second].concat();
        UtcTimestamp::parse(&text).map(UtcTimestamp::nanos)
    }
}

/// The form of a time in a name, and the length of its date.
const STAMP: &[u8] = b"00000000-000000.000";
const STAMP_DAY: usize = b"00000000-".len();

/// The state of an ended file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ending {
    Plain,
    Compressed,
    Part,
}

/// Returns the kind of ended file that `name` denotes, or `None` if it is not an ended file of
/// `own`.
fn ending_of(own: &OsStr, name: &OsStr) -> Option<Ending> {
    let rest = name
        .as_encoded_bytes()
        .strip_prefix(own.as_encoded_bytes())?;
    let (stamp, ending) = rest.strip_prefix(b".")?.split_at_checked(STAMP.len())?;
    let fits = |(byte, like): (&u8, &u8)| match like {
        b'0' => byte.is_ascii_digit(),
        like => byte == like,
    };
    if !stamp.iter().zip(STAMP).all(fits) {
        return None;
    }
    match ending {
        b"" => Some(Ending::Plain),
        ending if ending == ZST.as_bytes() => Some(Ending::Compressed),
        ending if ending == PART.as_bytes() => Some(Ending::Part),
        _ => None,
    }
}

/// Replaces the file by a compressed one. The file stays until the other is on the disk.
fn compress(path: &Path, level: u8) -> io::Result<()> {
    let (part, done) = (with_ending(path, PART), with_ending(path, ZST));
    let mut options = private::file_options();
    let to = options
        .write(true)
        .create(true)
        .truncate(true)
        .open(&part)?;
    let mut to = BufWriter::new(to);
    zstd::stream::copy_encode(File::open(path)?, &mut to, level.into())?;
    let to = to.into_inner().map_err(io::IntoInnerError::into_error)?;
    to.sync_all()?;
    fs::rename(&part, &done)?;
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is removed with its test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Self {
            let name = format!("fanfare-rotate-{test}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
            let mut names: Vec<String> = entries
                .map(|entry| name(entry).into_string().unwrap())
                .collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// 2026-11-25 10:17:34.123 UTC.
    const NOW: i64 = 1_795_601_854_123_000_000;

    fn small(keep: usize, compress: u8) -> Rotation {
        Rotation {
            max_bytes: 16,
            keep,
            compress,
            ..Rotation::default()
        }
    }

    fn put(file: &mut RotatedFile, utc: i64, line: &str) {
        if file.is_over(utc, line.len()) {
            file.roll(utc).unwrap();
        }
        file.write_all(line.as_bytes()).unwrap();
    }

    #[test]
    fn a_full_file_gets_the_moment_in_its_name_and_no_name_is_given_twice() {
        let folder = Folder::new("names");
        let mut file = RotatedFile::open(&folder.0.join("a.log"), small(10, 0)).unwrap();
        for line in ["one 6789\n", "two 6789\n", "three 89\n"] {
            put(&mut file, NOW, line);
        }
        let ended = ["a.log.20261125-101734.123", "a.log.20261125-101734.124"];
        assert_eq!(folder.names(), [&["a.log"], &ended[..]].concat());
        let text = |name: &str| fs::read_to_string(folder.0.join(name)).unwrap();
        assert_eq!(text(ended[0]), "one 6789\n");
        assert_eq!(text(ended[1]), "two 6789\n");
        assert_eq!(text("a.log"), "three 89\n");
    }

    #[test]
    fn a_line_longer_than_a_file_is_written_and_an_empty_file_does_not_end() {
        let folder = Folder::new("long");
        let mut file = RotatedFile::open(&folder.0.join("a.log"), small(10, 0)).unwrap();
        put(&mut file, NOW, "longer than sixteen bytes\n");
        assert_eq!(folder.names(), ["a.log"]);
        put(&mut file, NOW, "next\n");
        assert_eq!(folder.names().len(), 2);
    }

    #[test]
    fn the_oldest_are_removed_and_the_others_compressed() {
        let folder = Folder::new("keep");
        for (name, text) in [
            ("a.log.20200101-000000.000", "oldest"),
            ("a.log.20200102-000000.000.zst", "no matter what"),
            ("a.log.20200103-000000.000", "a line\n"),
            ("a.log.20200103-000000.000.zst.part", "cut off"),
            ("a.log.1", "somebody else's"),
            ("a.log.20200101-000000.0000", "not ours"),
            ("ba.log.20200101-000000.000", "another log's"),
        ] {
            fs::write(folder.0.join(name), text).unwrap();
        }
        let work = Keeper::new(&folder.0.join("a.log"), &small(2, 3)).work;
        assert!(work.is_left(&work.ended().unwrap()));
        work.run().unwrap();
        assert!(!work.is_left(&work.ended().unwrap()));
        let expected = [
            "a.log.1",
            "a.log.20200101-000000.0000",
            "a.log.20200102-000000.000.zst",
            "a.log.20200103-000000.000.zst",
            "ba.log.20200101-000000.000",
        ];
        assert_eq!(folder.names(), expected);
        let whole = fs::read(folder.0.join(expected[3])).unwrap();
        assert_eq!(zstd::stream::decode_all(&*whole).unwrap(), b"a line\n");
    }

    #[test]
    fn after_the_clock_was_set_back_the_oldest_files_are_removed_nevertheless() {
        let folder = Folder::new("back");
        let path = folder.0.join("a.log");
        let work = Keeper::new(&path, &small(2, 0)).work;
        fs::write(folder.0.join("a.log.20261125-101734.122.zst"), "").unwrap();
        let mut file = RotatedFile::open(&path, small(10, 0)).unwrap();
        for line in ["one 6789\n", "two 6789\n", "three 89\n"] {
            put(&mut file, NOW - 3600 * SECOND, line);
        }
        // Another process continues where this one ends.
        drop(file);
        let mut file = RotatedFile::open(&path, small(10, 0)).unwrap();
        put(&mut file, NOW - 7200 * SECOND, "four 789\n");
        work.run().unwrap();
        let ended = ["a.log.20261125-101734.124", "a.log.20261125-101734.125"];
        assert_eq!(folder.names(), [&["a.log"], &ended[..]].concat());
        let text = |name: &str| fs::read_to_string(folder.0.join(name)).unwrap();
        assert_eq!(text(ended[0]), "two 6789\n");
        assert_eq!(text(ended[1]), "three 89\n");
        assert_eq!(text("a.log"), "four 789\n");
        // The clock is ahead of the names again.
        put(&mut file, NOW + SECOND, "five 789\n");
        let names = folder.names();
        assert!(names.contains(&"a.log.20261125-101735.123".to_owned()));
    }

    #[test]
    fn times_are_read_from_names() {
        let time = |name: &str| {
            let ending = ending_of(OsStr::new("a.log"), OsStr::new(name)).unwrap();
            let name = name.into();
            Ended { name, ending }.time()
        };
        for ending in ["", ZST, PART] {
            let name = format!("a.log.20261125-101734.123{ending}");
            assert_eq!(time(&name), Some(NOW), "{name}");
        }
        assert_eq!(time("a.log.20261325-101734.123"), None);
        assert_eq!(time("a.log.99991231-235959.999"), None);
    }

    #[test]
    fn a_day_ends_at_its_time_in_its_zone() {
        let mut clock = DailyClock::new(Daily::new("17:30", "America/New_York").unwrap());
        // 22:30 UTC in winter.
        let at = NOW - NOW.rem_euclid(86_400 * SECOND) + (22 * 60 + 30) * 60 * SECOND;
        let mut due = |utc: i64| clock.is_due(utc);
        assert!(!due(at - SECOND));
        assert!(due(at));
        assert!(!due(at + 1));
        assert!(!due(at - 10 * SECOND));
        assert!(!due(at + SECOND));
        assert!(due(at + 86_400 * SECOND));
        // Ahead by a month for a moment: the days up to there end nevertheless.
        let days = |days: i64| at + days * 86_400 * SECOND;
        assert!(due(days(30)));
        assert!(!due(days(1) + SECOND));
        assert!(due(days(2)));
        assert!(due(days(3)));
        let wrong = [("7:00", "UTC"), ("24:00", "UTC"), ("07:00", "Mars/Base")];
        for (time, zone) in wrong {
            assert!(Daily::new(time, zone).is_err());
        }
    }

    #[test]
    fn a_file_that_was_renamed_is_begun_anew() {
        let folder = Folder::new("reopen");
        let path = folder.0.join("a.log");
        let mut file = RotatedFile::open(&path, small(10, 0)).unwrap();
        put(&mut file, NOW, "one\n");
        file.reopen().unwrap();
        assert!(!file.take_change());
        fs::rename(&path, folder.0.join("a.log.1")).unwrap();
        put(&mut file, NOW, "two\n");
        file.reopen().unwrap();
        assert_eq!([file.take_change(), file.take_change()], [true, false]);
        put(&mut file, NOW, "three\n");
        fs::remove_file(&path).unwrap();
        // The file to rename is missing.
        file.roll(NOW).unwrap();
        assert!(file.take_change());
        put(&mut file, NOW, "four\n");
        let text = |name: &str| fs::read_to_string(folder.0.join(name)).unwrap();
        assert_eq!(text("a.log.1"), "one\ntwo\n");
        assert_eq!(text("a.log"), "four\n");
    }
}
