//! Files that are cut short while they are mapped.
//!
//! An access to a page of a map beyond the end of its file, or one that the disk cannot read,
//! raises SIGBUS, which ends the process. The handler of this module replaces the page by zeros and
//! notes that. The thread continues, and the owner of the map learns from [`Watch::is_broken`] that
//! its bytes are no longer valid. Faults in any other memory are passed to the handler that was
//! installed before.

use super::check;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// A watched map. Slots are never freed, but reused: their number is that of the most maps at one
/// time.
struct Slot {
    /// 0 while the slot is free.
    start: AtomicUsize,
    len: AtomicUsize,
    broken: AtomicBool,
    /// The slot made before this one.
    before: *const Self,
}

// SAFETY: all that changes is atomic; `before` is written once, before the slot is published.
unsafe impl Sync for Slot {}
// SAFETY: as above.
unsafe impl Send for Slot {}

/// The slot made last.
static SLOTS: AtomicPtr<Slot> = AtomicPtr::new(ptr::null_mut());
/// Slots that can be reused.
static FREE: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());
/// Number of pages replaced so far.
static FAULTS: AtomicUsize = AtomicUsize::new(0);
/// The handler that was installed before ours.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Returns the number of pages of watched maps lost so far, in the whole process. No map has to be
/// checked as long as this does not change.
#[inline]
pub(crate) fn faults() -> usize {
    FAULTS.load(Ordering::Relaxed)
}

/// A map whose faults do not end the process, until this is dropped.
pub(super) struct Watch(&'static Slot);

impl Watch {
    /// Watches the `len` bytes from `start` on, which are a map of this process.
    pub(super) fn new(start: usize, len: usize) -> io::Result<Self> {
        install()?;
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = match free.pop() {
            Some(slot) => slot,
            None => publish(),
        };
        slot.broken.store(false, Ordering::Relaxed);
        slot.len.store(len, Ordering::Release);
        slot.start.store(start, Ordering::Release);
        Ok(Self(slot))
    }

    /// Returns whether a page of the map was lost.
    pub(super) fn is_broken(&self) -> bool {
        self.0.broken.load(Ordering::Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.start.store(0, Ordering::Release);
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        free.push(self.0);
    }
}

/// Makes a slot. The lock of `FREE` is held, so that one is made at a time.
fn publish() -> &'static Slot {
    let slot: &'static Slot = Box::leak(Box::new(Slot {
        start: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        broken: AtomicBool::new(false),
        before: SLOTS.load(Ordering::Relaxed),
    }));
    SLOTS.store(ptr::from_ref(slot).cast_mut(), Ordering::Release);
    slot
}

/// Installs the handler, once.
fn install() -> io::Result<()> {
    static INSTALLED: Mutex<bool> = Mutex::new(false);
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if *installed {
        return Ok(());
    }
    // SAFETY: an all-zero sigaction is a valid value (no flags, empty mask).
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: `before` is filled by the call and outlives it; no action is set.
    check(unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), &mut before) })?;
    // It must be stored before the first fault can occur.
    let _ = BEFORE.set(before);
    let handler = on_fault as extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
    // SAFETY: as above.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: `action` is initialised and outlives the call; the handler makes system calls and
    // touches atomics only.
    check(unsafe { libc::sigaction(libc::SIGBUS, &action, ptr::null_mut()) })?;
    *installed = true;
    Ok(())
}

extern "C" fn on_fault(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes a valid siginfo_t to a handler with SA_SIGINFO; for SIGBUS it has
    // an address, if the kernel sent it (si_code > 0).
    let address = unsafe {
        if (*info).si_code > 0 {
            (*info).si_addr() as usize
        } else {
            0
        }
    };
    if address == 0 || !replace(address) {
        pass_on(signal, info, context);
    }
}

/// Replaces the page at `address` by zeros, if it belongs to a watched map.
fn replace(address: usize) -> bool {
    let mut next: *const Slot = SLOTS.load(Ordering::Acquire);
    // SAFETY: slots are never freed, and `before` was written before the slot was published.
    while let Some(slot) = unsafe { next.as_ref() } {
        next = slot.before;
        let start = slot.start.load(Ordering::Acquire);
        let len = slot.len.load(Ordering::Acquire);
        let is_whole = slot.start.load(Ordering::Acquire) == start;
        if start == 0 || !is_whole || !(start..start.saturating_add(len)).contains(&address) {
            continue;
        }
        if !blank_page(address) {
            return false;
        }
        slot.broken.store(true, Ordering::Relaxed);
        FAULTS.fetch_add(1, Ordering::Release);
        return true;
    }
    false
}

fn blank_page(address: usize) -> bool {
    // SAFETY: sysconf has no pointer; __errno_location gives this thread's own errno, which the
    // code that was interrupted may still want to read.
    let (page, errno) = unsafe {
        let errno = libc::__errno_location();
        (libc::sysconf(libc::_SC_PAGESIZE), (errno, *errno))
    };
    let Ok(page) = usize::try_from(page) else {
        return false;
    };
    let start = address / page * page;
    // SAFETY: the page belongs to a map that is watched, so this process' own, and its owner has
    // not unmapped it: the thread that faults is touching it. Nothing of it can be read any more,
    // so that no referenced byte changes but from unreadable to 0.
    let placed = unsafe {
        libc::mmap(
            start as *mut libc::c_void,
            page,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            -1,
            0,
        )
    };
    // SAFETY: see above.
    unsafe { *errno.0 = errno.1 };
    placed != libc::MAP_FAILED
}

/// Does what would have happened without this handler.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = BEFORE.get();
    match before.map_or(libc::SIG_DFL, |before| before.sa_sigaction) {
        libc::SIG_DFL | libc::SIG_IGN => {
            // The instruction is run again, and the process ends as it would have. A signal sent by
            // a process ends it too, as `kill -BUS` intends. SAFETY: signal() takes no pointer but
            // the constant.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
            // SAFETY: siginfo is valid, see `on_fault`; raise takes no pointer.
            unsafe {
                if (*info).si_code <= 0 {
                    libc::raise(signal);
                }
            }
        }
        handler if before.is_some_and(|before| before.sa_flags & libc::SA_SIGINFO != 0) => {
            // SAFETY: it was installed with SA_SIGINFO, so it is a function of this type, and
            // receives the kernel's arguments.
            unsafe {
                let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                    std::mem::transmute(handler);
                handler(signal, info, context);
            }
        }
        handler => {
            // SAFETY: it was installed without SA_SIGINFO, so it is a function of this type.
            unsafe {
                let handler: extern "C" fn(libc::c_int) = std::mem::transmute(handler);
                handler(signal);
            }
        }
    }
}
