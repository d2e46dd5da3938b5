//! A file of DBN, which may be compressed by zstd.

use fanfare_market::book::BookKind;
use fanfare_market::dbn::{FromDbn, FromDbnCounts, FromDbnError};
use fanfare_market::{Event, InstrumentId, Instruments};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// The first bytes of a file compressed by zstd.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The bytes that are read at once.
const PIECE: usize = 1 << 16;

/// The reason why a file of DBN cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DbnFileError {
    /// The file is damaged, truncated, or of another version. Positions count decompressed bytes.
    #[error(transparent)]
    Dbn(#[from] FromDbnError),
    /// The file cannot be opened.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// An error of the system, or damage found by zstd, in the metadata or the record that begins
    /// at this byte.
    #[error("byte {0}: {1}")]
    Unreadable(u64, io::Error),
}

/// A reader of a file of DBN.
pub struct DbnFile {
    input: Box<dyn Read + Send>,
    from: FromDbn,
    bytes: Vec<u8>,
    at: usize,
    has_ended: bool,
    /// The error that follows the bytes.
    fault: Option<io::Error>,
}

impl std::fmt::Debug for DbnFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DbnFile")
            .field("from", &self.from)
            .finish_non_exhaustive()
    }
}

impl DbnFile {
    /// Opens a file as the feed `source` of the plant.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn open(path: &Path, source: u16) -> Result<Self, DbnFileError> {
        let mut file = File::open(path)?;
        let mut magic = Vec::with_capacity(ZSTD.len());
        Read::by_ref(&mut file)
            .take(ZSTD.len() as u64)
            .read_to_end(&mut magic)?;
        let is_packed = magic == ZSTD;
        let all = BufReader::with_capacity(PIECE, io::Cursor::new(magic).chain(file));
        let input: Box<dyn Read + Send> = match is_packed {
            true => Box::new(zstd::Decoder::with_buffer(all)?),
            false => Box::new(all),
        };
        Ok(Self {
            input,
            from: FromDbn::new(source),
            bytes: Vec::new(),
            at: 0,
            has_ended: false,
            fault: None,
        })
    }

    /// Reads the next record. Returns false at the end, after the last events.
    ///
    /// # Errors
    /// Returns a [`DbnFileError`]. The events before the damage were read.
    pub fn read(&mut self, table: &mut Instruments) -> Result<bool, DbnFileError> {
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or(&[]);
            if let Some(read) = self.from.read(table, rest)? {
                self.at += read;
                return Ok(true);
            }
            if self.has_ended {
                let ended = self.from.finish(table, rest);
                if let Some(why) = self.fault.take() {
                    return Err(DbnFileError::Unreadable(self.from.position(), why));
                }
                return ended.map(|()| false).map_err(DbnFileError::Dbn);
            }
            self.fill();
        }
    }

    fn fill(&mut self) {
        self.bytes.drain(..self.at);
        self.at = 0;
        let mut next = Read::by_ref(&mut self.input).take(PIECE as u64);
        match next.read_to_end(&mut self.bytes) {
            Ok(read) => self.has_ended = read == 0,
            // The bytes before it are read first.
            Err(error) => (self.has_ended, self.fault) = (true, Some(error)),
        }
    }

    /// Returns the events of the last call of [`Self::read`].
    pub fn events(&self) -> &[Event] {
        self.from.events()
    }

    /// Returns the kind of an instrument's book, once a record of it was read.
    pub fn book_kind(&self, instrument: InstrumentId) -> Option<BookKind> {
        self.from.book_kind(instrument)
    }

    /// Returns the counts so far.
    pub const fn counts(&self) -> FromDbnCounts {
        self.from.counts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_market::dbn::{DbnConfig, Schemas, ToDbn};
    use fanfare_market::{Kind, Price};
    use fanfare_peers::Scratch;
    use std::io::Write;

    #[test]
    fn files_are_read_packed_or_not_and_cut_ones_up_to_there() {
        let mut to_dbn = ToDbn::new(DbnConfig::new(Schemas::MIXED)).unwrap();
        let mut bytes = Vec::new();
        to_dbn.metadata("TEST", 0, &mut bytes);
        let begun = bytes.len() as u64;
        for number in 1..=5_000 {
            let trade = Event {
                kind: Kind::Trade,
                price: Price::from_units(number),
                size: number,
                ..Event::EMPTY
            };
            to_dbn.write(&trade, 0, &Instruments::new(1), &mut bytes);
        }
        let folder = Scratch::new("dbn");
        std::fs::create_dir_all(&folder).unwrap();
        let packed = zstd::encode_all(&bytes[..], 3).unwrap();
        let whole = [("plain", bytes.clone()), ("packed", packed.clone())];
        let mut stream = zstd::Encoder::new(Vec::new(), 3).unwrap();
        let flushed = &bytes[..bytes.len() - 4_900 * 48];
        stream.write_all(flushed).unwrap();
        stream.flush().unwrap();
        let cut = [
            ("cut", bytes[..bytes.len() - 1].to_vec()),
            ("packed-cut", packed[..packed.len() / 2].to_vec()),
            ("packed-flushed", stream.get_ref().clone()),
        ];
        for (name, content) in whole.into_iter().chain(cut) {
            let path = folder.join(name);
            std::fs::write(&path, content).unwrap();
            let mut file = DbnFile::open(&path, 1).unwrap();
            let (mut table, mut sizes) = (Instruments::new(10), Vec::new());
            let outcome = loop {
                let more = file.read(&mut table);
                sizes.extend(file.events().iter().map(|event| event.size));
                match more {
                    Ok(true) => {}
                    more => break more,
                }
            };
            assert!(sizes.iter().copied().eq(1..=sizes.len() as i64), "{name}");
            match name {
                "cut" => {
                    let at = begun + 4_999 * 48;
                    let told = format!("byte {at}: the file is truncated: 47 bytes");
                    assert!(outcome.unwrap_err().to_string().starts_with(&told));
                }
                "packed-cut" => assert!(outcome.is_err() && sizes.len() < 5_000),
                "packed-flushed" => {
                    let at = format!("byte {}: ", flushed.len());
                    assert!(outcome.unwrap_err().to_string().starts_with(&at));
                    assert_eq!(sizes.len(), 100);
                }
                _ => assert!(!outcome.unwrap() && sizes.len() == 5_000, "{name}"),
            }
        }
    }
}
