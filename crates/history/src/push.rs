//! Readers that call a closure with each delivery.

use crate::error::LogError;
use crate::reader::Reader;
use fanfare_market::instruments::Directory;
use fanfare_market::{Delivery, Event, Watermark};
use std::cell::RefCell;
use std::io;
use std::mem;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

/// Messages read at once.
const TURN: usize = 512;

/// The argument of the closure of [`Reader::push`].
#[derive(Debug, Clone, Copy)]
pub enum Pushed<'a> {
    /// A delivery of the log.
    Delivery(Delivery<'a>),
    /// Everything written so far was read, up to the event before this number.
    Idle(u64),
}

impl Reader {
    /// Calls `each` with the log from here on and with everything that is written to it, in order,
    /// until `each` breaks; returns its break value. At the end of what is written it calls with
    /// [`Pushed::Idle`], and tries again `look` later.
    ///
    /// The reader is consumed: deliveries that were read ahead of the break are lost. To continue,
    /// open another one at the number after the last event. With a number from which nothing is
    /// read ([`Self::stop_before`]) the reader is idle from there on.
    ///
    /// # Errors
    /// Those of [`Self::read`].
    ///
    /// # Examples
    ///
    /// ```
    /// use fanfare_history::{Log, Pushed, Start, Writer, WriterConfig};
    /// use fanfare_market::{Delivery, Event};
    /// use std::ops::ControlFlow;
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), fanfare_history::LogError> {
    /// # let folder = std::env::temp_dir().join(format!("fanfare-push-{}", std::process::id()));
    /// let (mut writer, _) = Writer::open(&folder, WriterConfig::default(), Vec::new(), 1)?;
    /// let event = |number| Event { number, ..Event::EMPTY }.to_bytes();
    /// writer.events(&[event(1), event(2)])?;
    /// writer.commit()?;
    ///
    /// let reader = Log::open(&folder)?.reader(Start::Number(2))?;
    /// let mut numbers = Vec::new();
    /// reader.push(Duration::from_millis(1), |pushed| {
    ///     match pushed {
    ///         Pushed::Delivery(Delivery::Event(event, _)) => numbers.push(event.number),
    ///         Pushed::Delivery(_) => {}
    ///         Pushed::Idle(_) => return ControlFlow::Break(()),
    ///     }
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(numbers, [2]);
    /// # std::fs::remove_dir_all(&folder).unwrap();
    /// # Ok(())
    /// # }
    /// ```
    pub fn push<B>(
        mut self,
        look: Duration,
        mut each: impl FnMut(Pushed<'_>) -> ControlFlow<B>,
    ) -> Result<B, LogError> {
        loop {
            let mut flow = ControlFlow::Continue(());
            let read = self.read(TURN, |delivery| {
                if flow.is_continue() {
                    flow = each(Pushed::Delivery(delivery));
                }
            })?;
            if read == 0 {
                flow = each(Pushed::Idle(self.next_number()));
            }
            match flow {
                ControlFlow::Break(value) => return Ok(value),
                ControlFlow::Continue(()) if read == 0 => thread::sleep(look),
                ControlFlow::Continue(()) => {}
            }
        }
    }

    /// Reads on a thread of its own from now on, at most `ahead` times 512 messages ahead of the
    /// caller of [`Ahead::take`]. The thread waits for the caller and loses nothing meanwhile:
    /// events stay in the log until retention removes them. `look` is the interval at which the
    /// thread polls the end of the log.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn ahead(self, ahead: usize, look: Duration) -> io::Result<Ahead> {
        let (sender, batches) = sync_channel(ahead.max(1));
        let (back, spare) = sync_channel(ahead.max(1));
        // Before the thread reads ahead.
        let directory = self.directory().clone();
        let taker = Arc::new(());
        let work = ReadAhead {
            reader: self,
            look,
            batches: sender,
            spare,
            taker: Arc::downgrade(&taker),
        };
        let thread = thread::Builder::new().name("log-reader".to_owned());
        thread.spawn(move || work.run())?;
        Ok(Ahead {
            batches,
            back,
            directory,
            _taker: taker,
        })
    }
}

/// The batches that a thread has read ahead: see [`Reader::ahead`]. Dropping it ends the thread.
#[derive(Debug)]
pub struct Ahead {
    batches: Receiver<Result<Batch, LogError>>,
    /// The return channel of batches, for reuse of their buffers.
    back: SyncSender<Batch>,
    directory: Directory,
    /// A value by which the thread sees whether this exists.
    _taker: Arc<()>,
}

/// Some deliveries, one after the other.
#[derive(Debug, Default)]
struct Batch {
    marks: Vec<Mark>,
    events: Vec<Event>,
    /// Instruments, with their lengths in marks.
    instruments: Vec<u8>,
    /// The instruments that are left at [`Mark::Pruned`].
    left: Option<Directory>,
}

/// The next part of a batch.
#[derive(Debug, Clone, Copy)]
enum Mark {
    Event,
    End,
    Instrument(usize),
    Lost {
        first: u64,
        last: u64,
    },
    Restart,
    Watermark(Watermark),
    /// A run with other feeds begins.
    Pruned,
}

impl Ahead {
    /// Calls `each` with the next batch, of up to 512 messages, and returns the number of its
    /// records. Waits for it up to `patience`, and returns 0 if none arrived.
    ///
    /// # Errors
    /// The thread's error: it has ended, and each further call returns [`LogError::Ended`].
    pub fn take(
        &mut self,
        patience: Duration,
        mut each: impl FnMut(Delivery<'_>),
    ) -> Result<usize, LogError> {
        let mut batch = match self.batches.recv_timeout(patience) {
            Ok(batch) => batch?,
            Err(RecvTimeoutError::Timeout) => return Ok(0),
            Err(RecvTimeoutError::Disconnected) => return Err(LogError::Ended),
        };
        let mut events = batch.events.iter();
        let mut instruments = batch.instruments.as_slice();
        for mark in &batch.marks {
            let delivery = match *mark {
                Mark::Instrument(len) => {
                    if let Some((bytes, rest)) = instruments.split_at_checked(len) {
                        self.directory.take(bytes);
                        instruments = rest;
                    }
                    continue;
                }
                Mark::Pruned => {
                    self.directory = batch.left.take().unwrap_or_default();
                    continue;
                }
                Mark::Event => match events.next() {
                    Some(event) => Delivery::Event(event, &self.directory),
                    None => continue,
                },
                Mark::End => Delivery::End(&self.directory),
                Mark::Lost { first, last } => Delivery::Lost { first, last },
                Mark::Restart => Delivery::Restart,
                Mark::Watermark(mark) => Delivery::Watermark(mark),
            };
            each(delivery);
        }
        let count = batch.marks.len();
        batch.clear();
        // If the channel is full there are enough buffers already.
        let _ = self.back.try_send(batch);
        Ok(count)
    }

    /// Returns the instruments known so far.
    #[must_use]
    pub const fn directory(&self) -> &Directory {
        &self.directory
    }
}

impl Batch {
    fn clear(&mut self) {
        self.marks.clear();
        self.events.clear();
        self.instruments.clear();
        self.left = None;
    }

    fn read(&mut self, reader: &mut Reader) -> Result<usize, LogError> {
        let Self {
            marks,
            events,
            instruments,
            left,
        } = self;
        let marks = RefCell::new(marks);
        let outcome = reader.read_with(
            TURN,
            |bytes| {
                instruments.extend_from_slice(bytes);
                marks.borrow_mut().push(Mark::Instrument(bytes.len()));
            },
            |delivery| {
                marks.borrow_mut().push(match delivery {
                    Delivery::Event(event, _) => {
                        events.push(*event);
                        Mark::Event
                    }
                    Delivery::End(_) => Mark::End,
                    Delivery::Lost { first, last } => Mark::Lost { first, last },
                    Delivery::Restart => Mark::Restart,
                    Delivery::Watermark(mark) => Mark::Watermark(mark),
                });
            },
        );
        // A call ends where another run begins.
        if let Some(directory) = reader.pruned() {
            *left = Some(directory.clone());
            marks.into_inner().push(Mark::Pruned);
        }
        outcome
    }
}

/// The state of the thread that reads ahead.
struct ReadAhead {
    reader: Reader,
    look: Duration,
    batches: SyncSender<Result<Batch, LogError>>,
    spare: Receiver<Batch>,
    taker: Weak<()>,
}

impl ReadAhead {
    /// Reads until the receiver is gone.
    fn run(mut self) {
        let mut batch = Batch::default();
        while self.taker.strong_count() > 0 {
            let outcome = batch.read(&mut self.reader);
            // Deliveries before an error are sent before it.
            if !batch.marks.is_empty() {
                let next = self.spare.try_recv().unwrap_or_default();
                let full = mem::replace(&mut batch, next);
                if self.batches.send(Ok(full)).is_err() {
                    return;
                }
            }
            match outcome {
                Ok(0) => thread::sleep(self.look),
                Ok(_) => {}
                Err(error) => {
                    // The receiver may be gone.
                    let _ = self.batches.send(Err(error));
                    return;
                }
            }
        }
    }
}
