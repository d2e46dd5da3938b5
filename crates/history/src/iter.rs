//! Readers as iterators.

use crate::error::LogError;
use crate::reader::Reader;
use fanfare_market::instruments::Directory;
use fanfare_market::{Delivery, Event};

/// An item of [`Events`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logged {
    /// An event. The last one of its message has `Flags::LAST`.
    Event(Event),
    /// Events that are missing.
    Lost {
        /// The number of the first one.
        first: u64,
        /// The number of the last one.
        last: u64,
    },
    /// The plant was restarted: books and states are unknown until they are sent again.
    Restart,
}

/// The events of a log from a reader's place on, in order, each once.
///
/// `next` does not wait: it returns `None` at the end of what is written so far, and continues when
/// it is called later. It allocates as its reader does.
#[derive(Debug)]
pub struct Events {
    reader: Reader,
    /// A message, and how much of it was returned.
    read: Vec<Logged>,
    at: usize,
}

impl Events {
    /// Returns the number of the next event: a reader that begins there misses and repeats nothing.
    #[must_use]
    pub fn next_number(&self) -> u64 {
        let next = self.read.iter().skip(self.at).find_map(|one| match one {
            Logged::Event(event) => Some(event.number),
            Logged::Lost { first, .. } => Some(*first),
            Logged::Restart => None,
        });
        next.unwrap_or(self.reader.next_number())
    }

    /// Returns the instruments known so far, including that of the last event.
    #[must_use]
    pub const fn directory(&self) -> &Directory {
        self.reader.directory()
    }
}

impl Iterator for Events {
    type Item = Result<Logged, LogError>;

    /// # Errors
    /// Those of [`Reader::read`]: the next call tries again.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(one) = self.read.get(self.at) {
                self.at += 1;
                return Some(Ok(*one));
            }
            self.read.clear();
            self.at = 0;
            let read = &mut self.read;
            // Instruments are records of their own: the table is never ahead of the events.
            let count = self.reader.read(1, |delivery| match delivery {
                Delivery::Event(event, _) => read.push(Logged::Event(*event)),
                Delivery::Lost { first, last } => read.push(Logged::Lost { first, last }),
                Delivery::Restart => read.push(Logged::Restart),
                Delivery::End(_) | Delivery::Watermark(_) => {}
            });
            match count {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl IntoIterator for Reader {
    type Item = Result<Logged, LogError>;
    type IntoIter = Events;

    fn into_iter(self) -> Events {
        Events {
            reader: self,
            read: Vec::new(),
            at: 0,
        }
    }
}
