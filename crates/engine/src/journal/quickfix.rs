//! File stores of QuickFIX (C++) and QuickFIX/J, to be imported.
//!
//! Both keep a session in files with one name: `.body` has the messages one after the other,
//! `.header` the place of each. The numbers are in `.seqnums` (C++), or in `.senderseqnums` and
//! `.targetseqnums` (Java); `.session` has the time of creation.

use fanfare_fix::codec::{Frame, FrameFinder};
use fanfare_fix::session::MAX_SEQ_NUM;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The longest file of numbers or of a time, in bytes.
const SHORT: u64 = 1 << 10;
/// The longest entry of the text index, in bytes: three numbers.
const ENTRY: usize = 64;
/// The longest message that is read beyond the length in the index, in bytes.
const LONGEST: usize = 4 << 20;
/// The numbers with which a session can continue.
const NUMBERS: RangeInclusive<u64> = 1..=MAX_SEQ_NUM;

/// A file store of a session that does not run.
#[derive(Debug)]
pub struct QuickFixStore {
    /// The place of each message, by MsgSeqNum(34); of several with one number, the last.
    places: BTreeMap<u64, Range<u64>>,
    body: File,
    body_path: PathBuf,
    is_java: bool,
    numbers: (u64, u64),
    created: Option<String>,
    torn: u64,
}

/// The reason why a file store cannot be read.
#[derive(Debug, Error)]
pub enum QuickFixError {
    /// The system reports an error.
    #[error("cannot read {}", .0.display())]
    Io(PathBuf, #[source] io::Error),
    /// The files of numbers are missing.
    #[error(
        "{} is not a file store of QuickFIX: found neither .seqnums nor .senderseqnums",
        .0.display()
    )]
    Nothing(PathBuf),
    /// A file has other contents.
    #[error("{}: {}", .0.display(), .1)]
    Content(PathBuf, &'static str),
}

impl QuickFixStore {
    /// Opens the store whose files are named `prefix` followed by `.body`, `.header` and so on.
    ///
    /// # Errors
    /// See [`QuickFixError`]. An index that ends within an entry, as a kill leaves it, is no error.
    pub fn open(prefix: &Path) -> Result<Self, QuickFixError> {
        let (cpp, java) = (beside(prefix, "seqnums"), beside(prefix, "senderseqnums"));
        let (numbers, is_java) = match (cpp.exists(), java.exists()) {
            (true, true) => {
                return Err(content(
                    prefix,
                    "expected the sequence numbers of QuickFIX (.seqnums) or of QuickFIX/J \
                     (.senderseqnums), found both",
                ));
            }
            (true, false) => (numbers_of_cpp(&cpp)?, false),
            (false, true) => {
                let target = beside(prefix, "targetseqnums");
                ((number_of_java(&java)?, number_of_java(&target)?), true)
            }
            (false, false) => return Err(QuickFixError::Nothing(prefix.to_owned())),
        };
        let body_path = beside(prefix, "body");
        let io_error = |error| QuickFixError::Io(body_path.clone(), error);
        let body = File::open(&body_path).map_err(io_error)?;
        let end = body.metadata().map_err(io_error)?.len();
        let mut store = Self {
            places: BTreeMap::new(),
            body,
            body_path,
            is_java,
            numbers,
            created: created(&beside(prefix, "session"), is_java)?,
            torn: 0,
        };
        let header = beside(prefix, "header");
        let open = File::open(&header).map_err(|error| QuickFixError::Io(header.clone(), error))?;
        let index = BufReader::new(open);
        match is_java {
            true => store.index_of_java(index, &header, end),
            false => store.index_of_cpp(index, &header, end),
        }?;
        Ok(store)
    }

    /// Returns MsgSeqNum(34) of the next message to the counterparty, and of the next from it.
    #[must_use]
    pub const fn numbers(&self) -> (u64, u64) {
        self.numbers
    }

    /// Returns when the session began, as the store has it: `20261124-10:00:00`.
    #[must_use]
    pub fn created(&self) -> Option<&str> {
        self.created.as_deref()
    }

    /// Returns the number of entries of the index whose message is incomplete in the body.
    #[must_use]
    pub const fn torn(&self) -> u64 {
        self.torn
    }

    /// Returns the numbers of the messages, ascending.
    pub fn messages(&self) -> impl Iterator<Item = u64> + '_ {
        self.places.keys().copied()
    }

    /// Reads the message with this MsgSeqNum(34) into `into`, replacing its content. Returns
    /// `false` if the store does not hold the whole message.
    ///
    /// # Errors
    /// The body cannot be read.
    pub fn read(&mut self, seq: u64, into: &mut Vec<u8>) -> Result<bool, QuickFixError> {
        into.clear();
        let Some(place) = self.places.get(&seq) else {
            return Ok(false);
        };
        let (start, length) = (place.start, place.end - place.start);
        let read = self.body.seek(SeekFrom::Start(start));
        let read = read.and_then(|_| (&self.body).take(length).read_to_end(into));
        let is_whole = read.map(|_| into.len() as u64 == length);
        let read = match is_whole {
            Ok(true) if self.is_java => self.read_on(into).map(|()| true),
            is_whole => is_whole,
        };
        read.map_err(|error| QuickFixError::Io(self.body_path.clone(), error))
    }

    /// Reads the rest of a message whose length in the index counts characters, as QuickFIX/J
    /// writes it. A message with multi-byte characters is longer than that: its end follows from
    /// BodyLength(9), and CheckSum(10) confirms it.
    fn read_on(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        let finder = FrameFinder::new(LONGEST);
        let length = into.len();
        let Frame::Partial {
            start: 0,
            need: Some(need),
        } = finder.find(into)
        else {
            return Ok(());
        };
        let rest = need.saturating_sub(length) as u64;
        (&self.body).take(rest).read_to_end(into)?;
        let whole = Frame::Message {
            start: 0,
            end: need,
        };
        if finder.find(into) != whole {
            into.truncate(length);
        }
        Ok(())
    }

    /// Notes the place of a message.
    fn place(&mut self, seq: u64, offset: u64, length: u64, end: u64) {
        match offset.checked_add(length) {
            Some(until) if until <= end => {
                self.places.insert(seq, offset..until);
            }
            _ => self.torn += 1,
        }
    }

    /// Reads an index of `seq,offset,length`, each followed by a space.
    fn index_of_cpp(
        &mut self,
        mut index: impl BufRead,
        path: &Path,
        end: u64,
    ) -> Result<(), QuickFixError> {
        let mut entry = Vec::new();
        loop {
            entry.clear();
            let read = index
                .by_ref()
                .take(ENTRY as u64)
                .read_until(b' ', &mut entry);
            let read = read.map_err(|error| QuickFixError::Io(path.to_owned(), error))?;
            if read == 0 {
                return Ok(());
            }
            if entry.last() != Some(&b' ') && read < ENTRY {
                self.torn += 1;
                return Ok(());
            }
            let text = std::str::from_utf8(&entry).unwrap_or_default().trim();
            let mut numbers = text.split(',').map(|number| number.parse::<u64>().ok());
            let mut next = || numbers.next().flatten();
            let (Some(seq), Some(offset), Some(length), None) = (next(), next(), next(), next())
            else {
                return Err(content(
                    path,
                    "expected an entry of MsgSeqNum(34), offset and length",
                ));
            };
            self.place(seq, offset, length, end);
        }
    }

    /// Reads an index of big-endian integers of four, eight and four bytes.
    fn index_of_java(
        &mut self,
        mut index: impl Read,
        path: &Path,
        end: u64,
    ) -> Result<(), QuickFixError> {
        loop {
            let mut entry = Vec::with_capacity(16);
            let read = index.by_ref().take(16).read_to_end(&mut entry);
            read.map_err(|error| QuickFixError::Io(path.to_owned(), error))?;
            let Ok(entry) = <[u8; 16]>::try_from(&*entry) else {
                self.torn += u64::from(!entry.is_empty());
                return Ok(());
            };
            let [a, b, c, d, o0, o1, o2, o3, o4, o5, o6, o7, l0, l1, l2, l3] = entry;
            let seq = i32::from_be_bytes([a, b, c, d]);
            let offset = i64::from_be_bytes([o0, o1, o2, o3, o4, o5, o6, o7]);
            let length = i32::from_be_bytes([l0, l1, l2, l3]);
            let numbers = (
                u64::try_from(seq),
                u64::try_from(offset),
                u64::try_from(length),
            );
            let (Ok(seq), Ok(offset), Ok(length)) = numbers else {
                return Err(content(path, "the numbers of an entry must be at least 0"));
            };
            self.place(seq, offset, length, end);
        }
    }
}

/// Returns the file of a store; the name may have dots of its own.
fn beside(prefix: &Path, suffix: &str) -> PathBuf {
    let mut name = prefix.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

fn content(path: &Path, what: &'static str) -> QuickFixError {
    QuickFixError::Content(path.to_owned(), what)
}

/// Reads a short file.
fn short(path: &Path) -> Result<Vec<u8>, QuickFixError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(SHORT).read_to_end(&mut bytes));
    read.map_err(|error| QuickFixError::Io(path.to_owned(), error))?;
    Ok(bytes)
}

/// Reads numbers like `0000000007 : 0000000003`.
fn numbers_of_cpp(path: &Path) -> Result<(u64, u64), QuickFixError> {
    let bytes = short(path)?;
    let text = std::str::from_utf8(&bytes)
        .ok()
        .and_then(|text| text.split_once(':'));
    let numbers = text.and_then(|(sender, target)| Some((number(sender)?, number(target)?)));
    numbers.ok_or_else(|| {
        content(
            path,
            "expected `SENDER : TARGET`, two numbers from 1 to 1152921504606846976",
        )
    })
}

/// Parses a number. Returns `None` if a session cannot continue with it.
fn number(text: &str) -> Option<u64> {
    let number = text.trim().parse::<u64>().ok();
    number.filter(|number| NUMBERS.contains(number))
}

/// Returns the text after its length in two bytes, as Java writes it.
fn text_of_java(bytes: &[u8]) -> Option<&str> {
    let (length, text) = bytes.split_first_chunk::<2>()?;
    let text = text.get(..u16::from_be_bytes(*length).into())?;
    std::str::from_utf8(text).ok()
}

fn number_of_java(path: &Path) -> Result<u64, QuickFixError> {
    let bytes = short(path)?;
    text_of_java(&bytes).and_then(number).ok_or_else(|| {
        content(
            path,
            "expected a number from 1 to 1152921504606846976, written by \
             DataOutputStream.writeUTF",
        )
    })
}

/// Returns the time of creation; a store without one is older than that file.
fn created(path: &Path, is_java: bool) -> Result<Option<String>, QuickFixError> {
    if !fs::exists(path).unwrap_or(false) {
        return Ok(None);
    }
    let bytes = short(path)?;
    let text = match is_java {
        true => text_of_java(&bytes),
        false => std::str::from_utf8(&bytes).ok(),
    };
    Ok(text.map(|text| text.trim().to_owned()))
}
