//! The contents of a checkpoint: all instruments and books as of a number, in a file of their own.
//!
//! A checkpoint has the bytes of a compacted segment. Its records are the run, the instruments, the
//! events that make the books, `Lost` with the number of each instrument whose book is not known,
//! `OthersLost` if those of instruments without events are not known, `Former` for each instrument
//! that is already that of the next event, and an `End`.
//!
//! Whatever loses one book loses those of instruments without events. Versions up to 0.2.0 do not
//! write `OthersLost`, so any `Lost` stands for it.

use crate::block::Unpacker;
use crate::error::LogError;
use crate::folder;
use crate::format::{Kind, Records, u32_at};
use crate::formers::Formers;
use crate::run::Run;
use crate::segment::{Found, Segment};
use fanfare_market::Event;
use fanfare_market::instruments::Directory;
use std::path::Path;

/// The contents of a checkpoint.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The number of the last event in front of it, 0 if there is no checkpoint.
    pub(crate) number: u64,
    pub(crate) time: u64,
    pub(crate) run: Option<Run>,
    /// The instruments, with those that the next event has replaced.
    pub(crate) directory: Directory,
    pub(crate) formers: Formers,
    /// Events that restore its state in a reader.
    pub(crate) events: Vec<Event>,
    /// Instruments whose books are not known.
    pub(crate) lost: Vec<u32>,
    /// Whether the books of instruments without events are not known.
    pub(crate) has_lost_others: bool,
}

impl Known {
    /// Returns the last readable checkpoint before the event with this number.
    pub(crate) fn before(folder: &Path, number: u64) -> Result<Self, LogError> {
        let views = folder::list(folder)?.views;
        for view in views.into_iter().rev().filter(|view| *view < number) {
            match Self::read(folder, view) {
                Ok(Some(known)) => return Ok(known),
                Err(error @ LogError::Run { .. }) => return Err(error),
                // A damaged checkpoint counts as none: the one before it is further away.
                _ => {}
            }
        }
        Ok(Self::default())
    }

    /// Reads a checkpoint; `None` if it is damaged.
    pub(crate) fn read(folder: &Path, number: u64) -> Result<Option<Self>, LogError> {
        let path = folder::view(folder, number);
        let mut file = Segment::open_file(&path)?;
        let mut known = Self {
            number,
            time: file.header.time,
            ..Self::default()
        };
        let mut unpacker = Unpacker::new().map_err(LogError::io(&path))?;
        let (mut room, mut is_complete) = (Vec::new(), false);
        while let Found::Block(header) = file.look()? {
            if !unpacker.records(&header, file.block(&header), &mut room) {
                return Ok(None);
            }
            for (kind, bytes) in Records(&room) {
                is_complete = kind == Some(Kind::End);
                if kind == Some(Kind::Run) {
                    let run = Run::read(bytes).map_err(LogError::run(&path))?;
                    known.run = Some(run);
                }
                known.take(kind, bytes);
            }
            file.pass(&header);
        }
        Ok((is_complete && file.header.first == number + 1).then_some(known))
    }

    /// Takes a record that is no run.
    fn take(&mut self, kind: Option<Kind>, bytes: &[u8]) {
        match kind {
            Some(Kind::Instrument) => {
                self.directory.take(bytes);
            }
            Some(Kind::Events) => {
                let events = bytes.as_chunks::<{ Event::SIZE }>().0;
                self.events
                    .extend(events.iter().filter_map(Event::from_bytes));
            }
            Some(Kind::Lost) => {
                self.lost.push(u32_at(bytes, 0));
                self.has_lost_others = true;
            }
            Some(Kind::OthersLost) => self.has_lost_others = true,
            Some(Kind::Former) => self.formers.take(self.number + 1, bytes),
            _ => {}
        }
    }
}
