//! Segments made and removed by a helper thread.
//!
//! Making a segment takes about a millisecond (space on the disk, zeros, page tables), removing one
//! not much less. One helper thread does both for all journals of the process: a journal requests
//! its next segment long before it needs it, and swaps it in when the current one is full. If the
//! helper is late, the caller decides, see [`Helper::take`].

use super::folder::segment_path;
use super::segment::{Blank, Segment};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

/// The parameters that the segments of one journal share.
#[derive(Clone)]
pub(super) struct Recipe {
    pub(super) folder: PathBuf,
    pub(super) identity: String,
    /// The function that makes a file; tests simulate a full disk here.
    pub(super) make: fn(&Path, u64, &str) -> io::Result<Blank>,
}

impl Recipe {
    pub(super) fn blank(&self, number: u64, len: u32) -> io::Result<Blank> {
        let path = segment_path(&self.folder, number);
        (self.make)(&path, u64::from(len), &self.identity)
    }
}

/// Nothing is requested, or the segment was taken.
const IDLE: u8 = 0;
/// A segment is requested, and not begun.
const ASKED: u8 = 1;
/// The segment is being made.
const WORKING: u8 = 2;
/// The segment is in the channel.
const READY: u8 = 3;
/// The journal is closed.
const CLOSED: u8 = 4;

struct Shared {
    state: AtomicU8,
    /// The number of the segment requested.
    number: AtomicU64,
    /// The size of the segment requested.
    len: AtomicU32,
    /// The number of segments that the helper has removed.
    removed: AtomicU64,
}

/// The helper, as one journal sees it. Requesting a segment, taking a finished one and dropping one
/// take no lock, wait for nothing and allocate nothing.
pub(super) struct Helper {
    shared: Arc<Shared>,
    made: Receiver<io::Result<Blank>>,
    old: SyncSender<Box<Segment>>,
    dropped: u64,
    thread: Thread,
}

/// Segments that may wait for their removal before the dropping thread has to wait.
const MAX_OLD: usize = 8;

/// The polling interval of a thread that waits for the helper.
const LOOK: Duration = Duration::from_micros(50);

impl Helper {
    /// Registers the journal with the helper; `None` if no thread can be started.
    pub(super) fn new(recipe: Recipe) -> Option<Self> {
        let maker = segment_maker()?;
        let shared = Arc::new(Shared {
            state: AtomicU8::new(IDLE),
            number: AtomicU64::new(0),
            len: AtomicU32::new(0),
            removed: AtomicU64::new(0),
        });
        let (to_journal, made) = sync_channel(1);
        let (old, from_journal) = sync_channel(MAX_OLD);
        let registered = Registered {
            shared: shared.clone(),
            recipe,
            made: to_journal,
            old: from_journal,
        };
        maker.registrations().push(registered);
        Some(Self {
            shared,
            made,
            old,
            dropped: 0,
            thread: maker.thread.clone(),
        })
    }

    /// Requests the segment with this number and size. The last one requested must have been taken.
    pub(super) fn ask(&self, number: u64, len: u32) {
        self.shared.number.store(number, Ordering::Relaxed);
        self.shared.len.store(len, Ordering::Relaxed);
        self.shared.state.store(ASKED, Ordering::Release);
        self.thread.unpark();
    }

    /// Returns whether a segment was requested and is not ready.
    pub(super) fn is_awaited(&self) -> bool {
        matches!(self.shared.state.load(Ordering::Acquire), ASKED | WORKING)
    }

    /// Returns the requested segment, and whether it was ready. Waits for one that is being made at
    /// this moment. A request that has not begun is cancelled, which returns `None`: the caller
    /// makes the segment.
    pub(super) fn take(&self) -> (Option<io::Result<Blank>>, bool) {
        let state = &self.shared.state;
        let withdrawn = state.compare_exchange(ASKED, IDLE, Ordering::AcqRel, Ordering::Acquire);
        let ready = match withdrawn {
            Err(READY) => true,
            Err(WORKING) => false,
            _ => return (None, false),
        };
        let made = self.made.recv().ok();
        // The helper stores READY after the send.
        while state.load(Ordering::Acquire) == WORKING {
            std::hint::spin_loop();
        }
        state.store(IDLE, Ordering::Release);
        (made, ready)
    }

    /// Passes a segment to the helper, which removes its file and unmaps it later. Waits if too
    /// many wait.
    pub(super) fn drop_segment(&mut self, segment: Box<Segment>) {
        if self.old.send(segment).is_ok() {
            self.dropped += 1;
        }
        self.thread.unpark();
    }

    /// Waits until all segments passed to the helper are removed.
    pub(super) fn flush(&self) {
        while self.shared.removed.load(Ordering::Acquire) < self.dropped {
            self.thread.unpark();
            thread::sleep(LOOK);
        }
    }
}

impl Drop for Helper {
    /// Stops the helper's use of the folder. The segment made in advance is removed, and so are
    /// those passed to it.
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
struct Registered {
    shared: Arc<Shared>,
    recipe: Recipe,
    made: SyncSender<io::Result<Blank>>,
    old: Receiver<Box<Segment>>,
}

impl Registered {
    /// Does the work that is due; returns false if the journal is closed.
    fn serve(&self, worked: &mut bool) -> bool {
        let state = &self.shared.state;
        let begun = state.compare_exchange(ASKED, WORKING, Ordering::AcqRel, Ordering::Acquire);
        if begun.is_ok() {
            *worked = true;
            let number = self.shared.number.load(Ordering::Relaxed);
            let len = self.shared.len.load(Ordering::Relaxed);
            // The channel has space for the one requested.
            let _ = self.made.try_send(self.recipe.blank(number, len));
            state.store(READY, Ordering::Release);
        }
        while let Ok(segment) = self.old.try_recv() {
            *worked = true;
            // A file that stays is removed after the next opening.
            let _ = std::fs::remove_file(&segment.path);
            drop(segment);
            self.shared.removed.fetch_add(1, Ordering::Release);
        }
        begun != Err(CLOSED)
    }
}

/// The helper thread and the journals that wait to be registered.
struct SegmentMaker {
    thread: Thread,
    registrations: Arc<Mutex<Vec<Registered>>>,
}

impl SegmentMaker {
    fn registrations(&self) -> MutexGuard<'_, Vec<Registered>> {
        let registrations = self.registrations.lock();
        registrations.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the process's helper, started with the first journal; it ends with the process.
fn segment_maker() -> Option<&'static SegmentMaker> {
    static MAKER: OnceLock<Option<SegmentMaker>> = OnceLock::new();
    let start = || {
        let registrations = Arc::new(Mutex::new(Vec::new()));
        let waiting = registrations.clone();
        let builder = thread::Builder::new().name("journal".to_owned());
        let thread = builder.spawn(move || work(&waiting)).ok()?;
        let thread = thread.thread().clone();
        Some(SegmentMaker {
            thread,
            registrations,
        })
    };
    MAKER.get_or_init(start).as_ref()
}

fn work(registrations: &Mutex<Vec<Registered>>) {
    let mut journals: Vec<Registered> = Vec::new();
    loop {
        let mut waiting = registrations.lock().unwrap_or_else(PoisonError::into_inner);
        journals.append(&mut waiting);
        drop(waiting);
        let mut worked = false;
        journals.retain(|journal| journal.serve(&mut worked));
        if !worked {
            thread::park();
        }
    }
}
