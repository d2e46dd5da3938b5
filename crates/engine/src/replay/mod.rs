//! A replay over TCP: requests messages from an exchange that no line brought.
//!
//! A [`Replayer`] waits for the network on a thread of its own. The thread that follows the feed
//! passes ranges of MsgSeqNum(34) to [`Replayer::request`] and takes the responses from
//! [`Replayer::poll`]; neither blocks. [`fanfare_feed::recovery::Replay`] decides which ranges to
//! request, and when.
//!
//! Two kinds of services are supported ([`Service`]):
//!
//! - a MarketDataRequest(V) with ApplBegSeqNum(1182) and ApplEndSeqNum(1183) on a connection for
//!   each request, with a response of messages in FAST;
//! - an ApplMessageRequest(BW) in a FIX session that stays open, with a response of FIX messages
//!   that have ApplSeqNum(1181).
//!
//! A channel that begins again has other messages of the same numbers: [`Replayer::cancel`] ends
//! the request under way, and no further message of its response is returned.
//!
//! ```no_run
//! use fanfare_engine::replay::{Answer, Replayer, ReplaySource, Service};
//! use fanfare_fast::Program;
//! use std::sync::Arc;
//!
//! let program = Program::parse(&std::fs::read_to_string("templates.xml")?)?;
//! let source = ReplaySource::new("127.0.0.1:6001".parse()?, "US", "REPLAY");
//! let replayer = Replayer::start(source, Service::fast(Arc::new(program)), None)?;
//! assert!(replayer.request(482_727..482_730), "one request at a time");
//! loop {
//!     match replayer.poll() {
//!         Some(Answer::Fast { number, records }) => println!("{number}: {records:?}"),
//!         Some(Answer::Fix { number, .. }) => println!("{number}"),
//!         Some(Answer::Done) => break,
//!         Some(Answer::Refused(why)) => return Err(why.into()),
//!         None => std::thread::yield_now(),
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod copies;
mod fast;
mod fix;
#[cfg(test)]
mod tests;

use crate::poll::Waker;
use crate::stop::Stop;
use fanfare_fast::{Options, Program, Record};
use fanfare_feed::{Header, SequenceField};
use fanfare_fix::codec::FieldWriter;
use fanfare_fix::session::Version;
use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// ApplID(1180), the number of a message in it, and the range of a request.
const APPL_ID: u32 = 1180;
const APPL_SEQ_NUM: u32 = 1181;
const APPL_BEG_SEQ_NUM: u32 = 1182;
const APPL_END_SEQ_NUM: u32 = 1183;

/// Writes the range of a request, which includes its last number.
fn write_range(out: &mut FieldWriter<'_>, range: &Range<u32>) {
    out.u64(APPL_BEG_SEQ_NUM, range.start.into());
    out.u64(APPL_END_SEQ_NUM, u64::from(range.end.saturating_sub(1)));
}

/// Most parts of a response in the channel, and most messages in FAST in them; at the limit the
/// connection is not read.
const MOST_WAITING: usize = 1_024;

/// Most messages in FAST that have one number; one with more stays missing.
const MOST_OF_A_NUMBER: usize = 1_024;

/// The interval at which a thread looks for room in the channel.
const ROOM: Duration = Duration::from_millis(1);

/// The address of a replay service, and the session to open with it.
#[derive(Debug, Clone)]
pub struct ReplaySource {
    /// The address of the service.
    pub address: SocketAddr,
    /// SenderCompID(49).
    pub sender: String,
    /// TargetCompID(56).
    pub target: String,
    /// The version of the session.
    pub version: Version,
    /// Username(553).
    pub username: Option<String>,
    /// Password(554).
    pub password: Option<String>,
    /// ApplID(1180) or RefApplID(1355): the channel of the messages.
    pub appl_id: Option<String>,
    /// The timeout of the connection, and of each further message that was requested.
    pub timeout: Duration,
}

impl ReplaySource {
    /// Makes a source with a session of FIXT.1.1, FIX.5.0SP2, without a user, and a timeout of 2 s.
    #[must_use]
    pub fn new(address: SocketAddr, sender: &str, target: &str) -> Self {
        Self {
            address,
            sender: sender.to_owned(),
            target: target.to_owned(),
            version: Version::Fixt11,
            username: None,
            password: None,
            appl_id: None,
            timeout: Duration::from_secs(2),
        }
    }
}

/// The protocol of a replay service.
#[derive(Debug, Clone)]
pub enum Service {
    /// Requests in FIX, one for each connection; responses in FAST. Previous values of operators
    /// are reset for each packet, which is what one length header precedes.
    Fast(FastReplay),
    /// Requests and responses in one FIX session. If two requests time out, and no answer in
    /// between is certainly to the newest one, the session is logged out and opened again.
    Fix,
}

/// Responses in FAST.
#[derive(Debug, Clone)]
pub struct FastReplay {
    /// The templates of the feed, with those of Logon(A) and Logout(5): MsgType(35) of one can be
    /// `A`, and of one `5`.
    pub program: Arc<Program>,
    /// The options of the decoder: those of the feed, whose messages come again.
    pub options: Options,
    /// The preamble of each message.
    pub header: Header,
    /// The field that is the number of a message.
    pub number: SequenceField,
    /// The longest message, in bytes.
    pub longest: usize,
}

impl FastReplay {
    /// Makes a description of strict FAST with four bytes of length, least significant first, in
    /// front of each message of at most 1 MiB, and the numbers in [`SequenceField::Auto`].
    #[must_use]
    pub fn new(program: Arc<Program>) -> Self {
        Self {
            program,
            options: Options::default(),
            header: Header::U32Le,
            number: SequenceField::Auto,
            longest: 1 << 20,
        }
    }
}

impl Service {
    /// Makes a service with the responses that [`FastReplay::new`] describes.
    #[must_use]
    pub fn fast(program: Arc<Program>) -> Self {
        Self::Fast(FastReplay::new(program))
    }

    /// Checks the templates, as [`Replayer::start`] does.
    ///
    /// # Errors
    ///
    /// The templates have no numbered messages, or no Logon(A) or Logout(5).
    pub fn check(&self) -> io::Result<()> {
        match self {
            Self::Fast(replay) => fast::numbers(&replay.program, &replay.number).map(|_| ()),
            Self::Fix => Ok(()),
        }
    }
}

/// A part of the response to a request.
#[derive(Debug)]
pub enum Answer {
    /// The FAST messages of one MsgSeqNum(34), which is several messages if packets are numbered.
    Fast {
        /// Their MsgSeqNum(34).
        number: u32,
        /// The messages, in their order.
        records: Vec<Record>,
    },
    /// A message in FIX, whole.
    Fix {
        /// Its ApplSeqNum(1181).
        number: u32,
        /// Its bytes.
        message: Box<[u8]>,
    },
    /// The response is complete. The service does not have the messages that did not arrive.
    Done,
    /// The request has failed, for this reason.
    Refused(String),
}

/// A replay on a thread of its own. Dropping it logs out, closes its connection and waits for the
/// end of the thread: a tenth of a second, or [`ReplaySource::timeout`] during a connection
/// attempt.
#[derive(Debug)]
pub struct Replayer {
    requests: Option<SyncSender<Asked>>,
    answers: Receiver<Answer>,
    shared: Arc<Shared>,
    /// The run of the request under way.
    asked: Cell<Option<u64>>,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

/// A request.
#[derive(Debug)]
struct Asked {
    /// The run at the time of the request: see [`Shared::run`].
    run: u64,
    range: Range<u32>,
}

/// The state that both sides share.
#[derive(Debug, Default)]
struct Shared {
    /// The number of messages in FAST in the channel.
    waiting: AtomicUsize,
    /// The number of cancellations so far. Requests of an earlier run are cancelled.
    run: AtomicU64,
    /// The number of requests that were written to the service.
    sent: AtomicU64,
}

/// The thread's side.
struct Caller {
    requests: Receiver<Asked>,
    answers: SyncSender<Answer>,
    shared: Arc<Shared>,
    waker: Option<Waker>,
    stop: Stop,
}

impl Replayer {
    /// Starts the thread, which wakes `waker`, if there is one, for each part of a response. A
    /// service with responses in FAST is connected for each request, a FIX session at once.
    ///
    /// # Errors
    ///
    /// The thread cannot be started, or the templates have no numbered messages, or no Logon(A) or
    /// Logout(5).
    pub fn start(source: ReplaySource, service: Service, waker: Option<Waker>) -> io::Result<Self> {
        let (mut replayer, caller) = Self::pair(waker);
        let name = std::thread::Builder::new().name("replay".into());
        replayer.thread = Some(match service {
            Service::Fast(replay) => {
                let reader = fast::Reader::new(replay)?;
                name.spawn(move || fast::run(&caller, &source, reader))?
            }
            Service::Fix => {
                let mut host = fix::host(caller, source)?;
                let stop = replayer.stop.clone();
                name.spawn(move || fix::run(&mut host, &stop))?
            }
        });
        Ok(replayer)
    }

    /// Returns a replayer without a thread, and the side of its thread.
    fn pair(waker: Option<Waker>) -> (Self, Caller) {
        let (requests, to_thread) = sync_channel(1);
        let (from_thread, answers) = sync_channel(MOST_WAITING);
        let (stop, shared) = (Stop::new(), Arc::new(Shared::default()));
        let caller = Caller {
            requests: to_thread,
            answers: from_thread,
            shared: Arc::clone(&shared),
            waker,
            stop: stop.clone(),
        };
        let replayer = Self {
            requests: Some(requests),
            answers,
            shared,
            asked: Cell::new(None),
            stop,
            thread: None,
        };
        (replayer, caller)
    }

    /// Requests these messages. Returns false and does nothing while a request is under way, if the
    /// range is empty, or if the thread has ended.
    pub fn request(&self, range: Range<u32>) -> bool {
        if range.is_empty() || self.is_busy() {
            return false;
        }
        let run = self.shared.run.load(Ordering::Relaxed);
        let sent = self.requests.as_ref();
        let sent = sent.map(|requests| requests.try_send(Asked { run, range }));
        let is_sent = matches!(sent, Some(Ok(())));
        self.asked.set(is_sent.then_some(run));
        is_sent
    }

    /// Returns whether a request is under way: [`Self::poll`] has not returned its end. A request
    /// that was cancelled is under way until its connection has been given up.
    pub const fn is_busy(&self) -> bool {
        self.asked.get().is_some()
    }

    /// Cancels the request under way, if there is one, because the channel begins again.
    /// [`poll`](Self::poll) returns no further part of its response, and no end of it. The thread
    /// abandons the request within a tenth of a second, or [`ReplaySource::timeout`] during a
    /// connection attempt. A FIX session in which responses may still arrive, even to earlier
    /// requests, is logged out and opened again.
    pub fn cancel(&self) {
        self.shared.run.fetch_add(1, Ordering::Release);
    }

    /// Returns the number of requests that were written to the service so far.
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }

    /// Returns the next part of a response, if one has arrived. Does not wait.
    pub fn poll(&self) -> Option<Answer> {
        let run = self.asked.get()?;
        loop {
            let answer = match self.answers.try_recv() {
                Ok(answer) => answer,
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => {
                    Answer::Refused("the thread of the replay has ended".into())
                }
            };
            if let Answer::Fast { records, .. } = &answer {
                let waiting = &self.shared.waiting;
                waiting.fetch_sub(records.len(), Ordering::Relaxed);
            }
            let is_end = matches!(answer, Answer::Done | Answer::Refused(_));
            if is_end {
                self.asked.set(None);
            }
            match run == self.shared.run.load(Ordering::Relaxed) {
                true => return Some(answer),
                false if is_end => return None,
                false => {}
            }
        }
    }
}

impl Drop for Replayer {
    fn drop(&mut self) {
        self.stop.raise();
        self.requests = None;
        // A thread blocked on the full channel ends with the channel.
        let (_, closed) = sync_channel(0);
        self.answers = closed;
        if let Some(thread) = self.thread.take() {
            // The thread checks the flag several times a second.
            let _ = thread.join();
        }
    }
}

impl Caller {
    /// Waits for the next request; returns `None` at the end.
    fn next(&self) -> Option<Asked> {
        self.requests.recv().ok()
    }

    /// Returns the next request, if there is one.
    fn try_next(&self) -> Option<Asked> {
        self.requests.try_recv().ok()
    }

    /// Returns the run of the channel: requests of an earlier one are cancelled.
    fn run(&self) -> u64 {
        self.shared.run.load(Ordering::Acquire)
    }

    /// Counts a request that was written to the service.
    fn count(&self) {
        self.shared.sent.fetch_add(1, Ordering::Relaxed);
    }

    /// Sends a part of a response, and returns it if the channel is full. Without a receiver it is
    /// dropped.
    fn offer(&self, answer: Answer) -> Option<Answer> {
        let sent = self.answers.try_send(answer);
        self.wake();
        match sent {
            Err(TrySendError::Full(answer)) => Some(answer),
            _ => None,
        }
    }

    /// Waits until the channel has room for `len` more FAST messages. Returns `false` if the thread
    /// is to end.
    fn wait_for_room(&self, len: usize) -> bool {
        loop {
            let waiting = self.shared.waiting.load(Ordering::Relaxed);
            if waiting == 0 || waiting + len <= MOST_WAITING {
                self.shared.waiting.fetch_add(len, Ordering::Relaxed);
                return true;
            }
            if self.stop.is_raised() {
                return false;
            }
            std::thread::sleep(ROOM);
        }
    }

    /// Sends a part of a response, and waits while the channel is full; returns false without a
    /// receiver.
    fn answer(&self, answer: Answer) -> bool {
        if let Answer::Fast { records, .. } = &answer
            && !self.wait_for_room(records.len())
        {
            return false;
        }
        let is_sent = self.answers.send(answer).is_ok();
        self.wake();
        is_sent
    }

    fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake();
        }
    }
}
