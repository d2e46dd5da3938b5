//! Segments made and given up by another thread than the one that sends.
//!
//! To make a segment takes about a millisecond (room on the disk, zeros, page tables), to give one
//! up not much less. One helper thread does both for all journals of the process: a journal asks
//! for its next segment long before it needs it, and swaps it in when the current one is full. What
//! happens when the helper is late is the caller's policy, see [`Helper::take`].

use super::folder::segment_path;
use super::segment::{Blank, Segment};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

/// What the segments of one journal have in common.
#[derive(Clone)]
pub(super) struct Recipe {
    pub(super) folder: PathBuf,
    pub(super) identity: String,
    /// How a file is made; tests put a full disk here.
    pub(super) make: fn(&Path, u64, &str) -> io::Result<Blank>,
}

impl Recipe {
    pub(super) fn blank(&self, number: u64, len: u32) -> io::Result<Blank> {
        let path = segment_path(&self.folder, number);
        (self.make)(&path, u64::from(len), &self.identity)
    }
}

/// Nothing was asked for, or it was taken.
const IDLE: u8 = 0;
/// Asked for, and not begun.
const ASKED: u8 = 1;
/// Being made.
const WORKING: u8 = 2;
/// In the channel.
const READY: u8 = 3;
/// The journal is closed.
const CLOSED: u8 = 4;

struct Shared {
    state: AtomicU8,
    /// Number of the segment that is asked for.
    number: AtomicU64,
    /// Its size.
    len: AtomicU32,
    /// Segments that the helper has removed.
    removed: AtomicU64,
}

/// The helper as one journal sees it. Asking, taking what is ready and giving up a segment take no
/// lock, wait for nothing and allocate nothing.
pub(super) struct Helper {
    shared: Arc<Shared>,
    made: Receiver<io::Result<Blank>>,
    old: SyncSender<Box<Segment>>,
    given_up: u64,
    thread: Thread,
}

/// Segments that may wait for their removal before the one who gives them up has to wait.
const MAX_OLD: usize = 8;

/// How often one who has to wait for the helper looks.
const LOOK: Duration = Duration::from_micros(50);

impl Helper {
    /// Takes the journal into the helper's care; `None` if no thread can be started.
    pub(super) fn new(recipe: Recipe) -> Option<Self> {
        let office = office()?;
        let shared = Arc::new(Shared {
            state: AtomicU8::new(IDLE),
            number: AtomicU64::new(0),
            len: AtomicU32::new(0),
            removed: AtomicU64::new(0),
        });
        let (to_journal, made) = sync_channel(1);
        let (old, from_journal) = sync_channel(MAX_OLD);
        let client = Client {
            shared: shared.clone(),
            recipe,
            made: to_journal,
            old: from_journal,
        };
        office.arrivals().push(client);
        Some(Self {
            shared,
            made,
            old,
            given_up: 0,
            thread: office.thread.clone(),
        })
    }

    /// Asks for the segment with this number and size. Not before the last one asked for was taken.
    pub(super) fn ask(&self, number: u64, len: u32) {
        self.shared.number.store(number, Ordering::Relaxed);
        self.shared.len.store(len, Ordering::Relaxed);
        self.shared.state.store(ASKED, Ordering::Release);
        self.thread.unpark();
    }

    /// Whether something was asked for and is not ready.
    pub(super) fn is_awaited(&self) -> bool {
        matches!(self.shared.state.load(Ordering::Acquire), ASKED | WORKING)
    }

    /// The segment that was asked for, and whether it was ready. One that is being made at this
    /// moment is waited for; one that is not even begun is not made any more: `None`, and the
    /// caller makes it.
    pub(super) fn take(&self) -> (Option<io::Result<Blank>>, bool) {
        let state = &self.shared.state;
        let withdrawn = state.compare_exchange(ASKED, IDLE, Ordering::AcqRel, Ordering::Acquire);
        let ready = match withdrawn {
            Err(READY) => true,
            Err(WORKING) => false,
            _ => return (None, false),
        };
        let made = self.made.recv().ok();
        // The helper says READY behind the send.
        while state.load(Ordering::Acquire) == WORKING {
            std::hint::spin_loop();
        }
        state.store(IDLE, Ordering::Release);
        (made, ready)
    }

    /// Has a segment's file removed and its memory given back, by and by. Waits if too many wait.
    pub(super) fn give_up(&mut self, segment: Box<Segment>) {
        if self.old.send(segment).is_ok() {
            self.given_up += 1;
        }
        self.thread.unpark();
    }

    /// Waits until all that was given up is gone.
    pub(super) fn flush(&self) {
        while self.shared.removed.load(Ordering::Acquire) < self.given_up {
            self.thread.unpark();
            thread::sleep(LOOK);
        }
    }
}

impl Drop for Helper {
    /// The folder is left alone from here on: the segment made in advance is gone, as those that
    /// were given up are.
    fn drop(&mut self) {
        if let (Some(Ok(blank)), _) = self.take() {
            blank.discard();
        }
        self.flush();
        self.shared.state.store(CLOSED, Ordering::Release);
        self.thread.unpark();
    }
}

/// A journal as the helper sees it.
struct Client {
    shared: Arc<Shared>,
    recipe: Recipe,
    made: SyncSender<io::Result<Blank>>,
    old: Receiver<Box<Segment>>,
}

impl Client {
    /// Does what there is to do; false if the journal is closed.
    fn serve(&self, worked: &mut bool) -> bool {
        let state = &self.shared.state;
        let begun = state.compare_exchange(ASKED, WORKING, Ordering::AcqRel, Ordering::Acquire);
        if begun.is_ok() {
            *worked = true;
            let number = self.shared.number.load(Ordering::Relaxed);
            let len = self.shared.len.load(Ordering::Relaxed);
            // There is room for the one that was asked for.
            let _ = self.made.try_send(self.recipe.blank(number, len));
            state.store(READY, Ordering::Release);
        }
        while let Ok(segment) = self.old.try_recv() {
            *worked = true;
            // A file that stays is given up again after the next opening.
            let _ = std::fs::remove_file(&segment.path);
            drop(segment);
            self.shared.removed.fetch_add(1, Ordering::Release);
        }
        begun != Err(CLOSED)
    }
}

/// The helper thread and those who wait to become its clients.
struct Office {
    thread: Thread,
    arrivals: Arc<Mutex<Vec<Client>>>,
}

impl Office {
    fn arrivals(&self) -> std::sync::MutexGuard<'_, Vec<Client>> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The process's helper, started with the first journal; it ends with the process.
fn office() -> Option<&'static Office> {
    static OFFICE: OnceLock<Option<Office>> = OnceLock::new();
    let start = || {
        let arrivals = Arc::new(Mutex::new(Vec::new()));
        let inbox = arrivals.clone();
        let builder = thread::Builder::new().name("journal".to_owned());
        let thread = builder.spawn(move || work(&inbox)).ok()?;
        let thread = thread.thread().clone();
        Some(Office { thread, arrivals })
    };
    OFFICE.get_or_init(start).as_ref()
}

fn work(inbox: &Mutex<Vec<Client>>) {
    let mut clients: Vec<Client> = Vec::new();
    loop {
        clients.append(&mut inbox.lock().unwrap_or_else(PoisonError::into_inner));
        let mut worked = false;
        clients.retain(|client| client.serve(&mut worked));
        if !worked {
            thread::park();
        }
    }
}
