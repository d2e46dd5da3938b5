//! The reactor: epoll, level-triggered.
//!
//! A level-triggered socket is reported until it has been read dry or its interest has changed, so
//! a thread may read each socket once a cycle and stay fair. The same [`Poller`] serves a thread
//! that spins (`poll(Some(Duration::ZERO))`) and one that sleeps until its next timer.

use crate::sys::epoll;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::time::Duration;

/// The name of a registered descriptor in events: any 64 bits, usually from
/// [`Slots`](crate::slots::Slots).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

/// The readiness to report. Errors and hang-ups are always reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Bytes can be read or connections accepted.
    Read,
    /// Bytes can be written.
    Write,
    /// Both.
    ReadWrite,
}

impl Interest {
    fn bits(self) -> u32 {
        let bits = match self {
            Self::Read => libc::EPOLLIN | libc::EPOLLRDHUP,
            Self::Write => libc::EPOLLOUT,
            Self::ReadWrite => libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP,
        };
        bits as u32
    }
}

/// One descriptor that is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The token of the descriptor.
    pub token: Token,
    bits: u32,
}

impl Event {
    fn from_raw(raw: &epoll::RawEvent) -> Self {
        Self {
            token: Token(raw.u64),
            bits: raw.events,
        }
    }

    /// Returns whether a read returns bytes, the end, or an error: never "would block".
    #[must_use]
    pub fn is_readable(self) -> bool {
        let read = libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR;
        self.bits & read as u32 != 0
    }

    /// Returns whether a write takes bytes or returns an error.
    #[must_use]
    pub fn is_writable(self) -> bool {
        self.bits & (libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0
    }
}

/// An epoll instance with its event buffer, for one thread.
pub struct Poller {
    epoll: OwnedFd,
    events: Box<[epoll::RawEvent]>,
    ready: usize,
}

impl Poller {
    /// Makes a poller. One [`poll`](Self::poll) reports at most `max_events`; the rest follows in
    /// the next.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new(max_events: usize) -> io::Result<Self> {
        let events = vec![epoll::EMPTY_EVENT; max_events.max(1)].into_boxed_slice();
        Ok(Self {
            epoll: epoll::create()?,
            events,
            ready: 0,
        })
    }

    /// Reports `fd` under `token` from now on, until the descriptor is closed.
    ///
    /// # Errors
    /// The descriptor is registered already, or of a kind that epoll does not take (a plain file).
    pub fn add(&self, fd: impl AsFd, token: Token, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd.as_fd(), token, interest.bits())
    }

    /// Changes token or interest of a registered descriptor.
    ///
    /// # Errors
    /// The descriptor is not registered.
    pub fn change(&self, fd: impl AsFd, token: Token, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd.as_fd(), token, interest.bits())
    }

    /// Ends the reports of a descriptor that stays open.
    ///
    /// # Errors
    /// The descriptor is not registered.
    pub fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd.as_fd(), Token(0), 0)
    }

    /// Collects the ready descriptors, and waits at most `timeout` (`None`: without limit) if none
    /// is ready; zero returns at once. The timeout is rounded up to whole milliseconds, so that a
    /// thread that sleeps until a timer does not wake just before it. Returns the number of
    /// [`events`](Self::events).
    ///
    /// # Errors
    /// Those of the system call. A signal is no error, but ends the wait.
    pub fn poll(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        self.ready = 0;
        let timeout_ms = timeout.map_or(-1, |timeout| {
            libc::c_int::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
        });
        self.ready = epoll::wait(self.epoll.as_fd(), &mut self.events, timeout_ms)?;
        Ok(self.ready)
    }

    /// Returns the events of the last [`poll`](Self::poll).
    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        self.events.iter().take(self.ready).map(Event::from_raw)
    }

    /// Returns the `index`th event of the last [`poll`](Self::poll), for loops whose body needs the
    /// poller.
    #[must_use]
    pub fn event(&self, index: usize) -> Option<Event> {
        self.events
            .get(..self.ready)?
            .get(index)
            .map(Event::from_raw)
    }

    fn control(
        &self,
        operation: libc::c_int,
        fd: BorrowedFd<'_>,
        token: Token,
        bits: u32,
    ) -> io::Result<()> {
        epoll::control(self.epoll.as_fd(), operation, fd, bits, token.0)
    }
}

/// A poller can itself be polled: it is readable while it has events.
impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// Opens a file whose reads follow the reports of a [`Poller`]: at a FIFO neither this nor a read
/// waits for a writer, and the poller reports one with its first bytes, or with its end.
///
/// # Errors
/// Those of [`File::open`].
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.custom_flags(libc::O_NONBLOCK).read(true).open(path)
}

/// Ends another thread's [`Poller::poll`]. Cloning is cheap, and waking makes no system call while
/// the other thread is awake.
///
/// The sleeping side calls [`prepare_sleep`](Self::prepare_sleep), looks for work once more, polls,
/// and calls [`awake`](Self::awake). The waking side makes the work visible, then calls
/// [`wake`](Self::wake).
#[derive(Clone)]
pub struct Waker(Arc<WakerState>);

struct WakerState {
    event: OwnedFd,
    asleep: AtomicBool,
}

impl Waker {
    /// Makes a waker whose events are reported by `poller` under `token`.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new(poller: &Poller, token: Token) -> io::Result<Self> {
        let waker = Self::detached()?;
        poller.add(&waker, token, Interest::Read)?;
        Ok(waker)
    }

    /// Makes a waker that is not registered yet.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn detached() -> io::Result<Self> {
        let state = WakerState {
            event: epoll::eventfd()?,
            asleep: AtomicBool::new(false),
        };
        Ok(Self(Arc::new(state)))
    }

    /// Wakes the sleeper, if it sleeps or is about to.
    pub fn wake(&self) {
        // Orders the caller's publication before the read of the flag; pairs with the fence in
        // `prepare_sleep`: either the sleeper sees the work or this thread sees that it sleeps.
        fence(Ordering::SeqCst);
        if self.0.asleep.load(Ordering::Relaxed) && self.0.asleep.swap(false, Ordering::Relaxed) {
            // The only failure is a full counter, and that wakes as well.
            let _ = epoll::eventfd_signal(self.0.event.as_fd());
        }
    }

    /// Announces sleep. The caller looks for work once more after this, then polls.
    pub fn prepare_sleep(&self) {
        self.0.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Ends the sleep; to be called after each, whatever ended it.
    pub fn awake(&self) {
        self.0.asleep.store(false, Ordering::Relaxed);
        // A waker may write the event of an earlier sleep late. Draining does nothing if no event
        // was written.
        let _ = epoll::eventfd_drain(self.0.event.as_fd());
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn level_triggered_until_read() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let mut poller = Poller::new(8).unwrap();
        poller.add(&far, Token(7), Interest::Read).unwrap();
        assert_eq!(poller.poll(Some(Duration::ZERO)).unwrap(), 0);
        near.write_all(b"x").unwrap();
        for _ in 0..2 {
            assert_eq!(poller.poll(None).unwrap(), 1);
            let event = poller.event(0).unwrap();
            assert!(event.token == Token(7) && event.is_readable() && !event.is_writable());
        }
        poller.remove(&far).unwrap();
        assert_eq!(poller.poll(Some(Duration::ZERO)).unwrap(), 0);
    }

    #[test]
    fn interest_in_writing_is_reported_only_when_asked_for() {
        let (near, _far) = UnixStream::pair().unwrap();
        let mut poller = Poller::new(8).unwrap();
        poller.add(&near, Token(1), Interest::Read).unwrap();
        assert_eq!(poller.poll(Some(Duration::ZERO)).unwrap(), 0);
        poller.change(&near, Token(2), Interest::ReadWrite).unwrap();
        assert_eq!(poller.poll(Some(Duration::ZERO)).unwrap(), 1);
        assert!(
            poller
                .events()
                .all(|e| e.token == Token(2) && e.is_writable())
        );
    }

    #[test]
    fn a_hang_up_is_readable() {
        let (near, far) = UnixStream::pair().unwrap();
        let mut poller = Poller::new(8).unwrap();
        poller.add(&far, Token(7), Interest::Read).unwrap();
        drop(near);
        poller.poll(None).unwrap();
        assert!(poller.event(0).unwrap().is_readable());
    }

    #[test]
    fn a_waker_ends_the_wait_of_a_sleeper_only() {
        let mut poller = Poller::new(8).unwrap();
        let waker = Waker::new(&poller, Token(9)).unwrap();
        waker.wake();
        assert_eq!(
            poller.poll(Some(Duration::ZERO)).unwrap(),
            0,
            "nobody slept"
        );
        waker.prepare_sleep();
        let other = waker.clone();
        let thread = std::thread::spawn(move || other.wake());
        // A signal also ends the wait, as when a stopped process continues.
        while poller.poll(None).unwrap() == 0 {}
        assert_eq!(poller.events().count(), 1);
        waker.awake();
        thread.join().unwrap();
        assert_eq!(poller.poll(Some(Duration::ZERO)).unwrap(), 0, "drained");
    }

    #[test]
    fn a_waker_that_is_late_ends_one_more_sleep_and_no_other() {
        let mut poller = Poller::new(8).unwrap();
        let waker = Waker::new(&poller, Token(9)).unwrap();
        waker.prepare_sleep();
        // The waker's thread loses its processor before it writes the event.
        assert!(waker.0.asleep.swap(false, Ordering::Relaxed));
        waker.awake();
        epoll::eventfd_signal(waker.0.event.as_fd()).unwrap();
        for events in [1, 0, 0] {
            waker.prepare_sleep();
            assert_eq!(poller.poll(Some(Duration::ZERO)).unwrap(), events);
            waker.awake();
        }
    }
}
