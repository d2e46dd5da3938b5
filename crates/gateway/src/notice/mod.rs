//! Notices for the operator of the gateway: events of its sessions, feeds, outlets and files, with
//! typed reasons.

pub(crate) mod audit;
pub(crate) mod digest;
pub(crate) mod program_log;

use crate::feed::feed_notice::FeedNotice;
use crate::users::Denied;
use fanfare_dds::Status;
use fanfare_engine::host::{LogTrouble, Refusal};
use fanfare_engine::udp::SmallBuffer;
use fanfare_fast::TemplateError;
use fanfare_fix::codec::{DecodeError, Message};
use fanfare_fix::session::{DisconnectReason, Event, SessionId};
use fanfare_fix::tag;
use fanfare_wire::text::Escaped;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// The most notices that are queued for the receiver. Further ones are dropped and counted, so that
/// a slow reader never holds up a hot thread.
const CAPACITY: usize = 4096;

/// An event for the operator. Displayed as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A session is logged on.
    LoggedOn {
        /// The session, from the gateway's point of view.
        session: SessionId,
        /// The address of the peer.
        peer: SocketAddr,
    },
    /// A connection ended.
    Ended {
        /// The session, if the connection had one.
        session: Option<SessionId>,
        /// The address of the peer.
        peer: SocketAddr,
        /// The reason.
        end: PeerEnd,
        /// The messages dropped for the session because the peer did not read.
        left_out: u64,
    },
    /// Messages were dropped for a consumer that does not read. The consumer is notified once it
    /// reads.
    LeftOut {
        /// The session, from the gateway's point of view.
        session: SessionId,
        /// The address of the consumer.
        peer: SocketAddr,
        /// The number of messages since the last such notice of the session.
        count: u64,
    },
    /// Something happened at the DBN port.
    Dbn {
        /// The address of the client.
        peer: SocketAddr,
        /// The event.
        what: String,
        /// Whether it is other than a logon, or the end of a session by its client or an operator.
        is_trouble: bool,
    },
    /// The operating system refuses to accept connections of a port. The port tries again.
    CannotAccept {
        /// The error of the operating system.
        error: String,
    },
    /// The state of a message log has changed.
    Log(LogTrouble),
    /// The audit file cannot be written, or can be again.
    Audit {
        /// The file.
        path: String,
        /// The event.
        what: String,
    },
    /// The log of market events cannot be written, or can be again.
    History {
        /// Its folder.
        folder: String,
        /// The event.
        what: String,
    },
    /// Something happened to the replay of a log.
    Replay {
        /// Its folder.
        log: String,
        /// The event.
        what: String,
        /// Whether it is other than the end of the replay in good order.
        is_trouble: bool,
    },
    /// Something happened to a topic of Kafka.
    Kafka {
        /// The topic.
        topic: String,
        /// The event.
        what: String,
    },
    /// Code of the gateway panicked, which is a defect. The session is logged out, and the others
    /// continue.
    Panicked {
        /// The session that was being processed, if any.
        session: Option<SessionId>,
        /// The text of the panic.
        message: String,
    },
    /// Something happened to a topic of DDS.
    Dds {
        /// The topic.
        topic: String,
        /// The event.
        what: Status,
    },
    /// A topic of DDS is no longer subscribed to. The others are unaffected.
    DdsClosed {
        /// The topic and the reason.
        why: String,
    },
    /// A topic of DDS is stopped for all of its subscribers, because one of them has taken nothing
    /// for 10 s. It is not known which.
    DdsStalled {
        /// The topic.
        topic: String,
        /// The number of other such topics without a notice, since the last one.
        untold: u64,
    },
    /// The DDS library warns of something that is no error of a call, such as an announcement or a
    /// sample of another program that is not readable, and is dropped.
    DdsWarning {
        /// The text of the library, of which parts may be another program's.
        what: String,
        /// The number of other warnings without a notice, since the last one.
        untold: u64,
    },
    /// A topic of DDS is written again: every subscriber has acknowledged everything, or is gone.
    DdsResumed {
        /// The topic.
        topic: String,
    },
    /// The topics with the feed's decoded messages have gained or lost their subscribers.
    FeedTopics {
        /// Whether all of them have a subscriber.
        matched: bool,
    },
    /// An outlet to DDS dropped messages since the last such notice.
    Unpublished {
        /// The outlet.
        outlet: Outlet,
        /// The number of messages, or of samples for a feed's topics.
        count: u64,
        /// The reason.
        why: Why,
    },
    /// A line of the feed has less receive buffer than it should have.
    SmallBuffer(SmallBuffer),
    /// The template file has elements that the schema does not allow, and they are ignored.
    LeftOutOfTemplates {
        /// The file.
        templates: String,
        /// The first of them, and its position.
        what: TemplateError,
        /// The number of others.
        more: usize,
    },
    /// Something happened to the messages of the feed.
    Feed(FeedNotice),
    /// A peer rejected a message of the gateway.
    Rejected {
        /// The session, from the gateway's point of view.
        session: SessionId,
        /// The contents of the rejection.
        reject: Rejection,
        /// The number of rejections since the last notice that were not reported.
        untold: u64,
    },
    /// A peer sent a message that cannot be read, or asked for messages that are gone.
    Messages {
        /// The session, from the gateway's point of view.
        session: SessionId,
        /// What happened.
        what: MessageTrouble,
        /// The number of such events since the last notice that were not reported.
        untold: u64,
    },
}

/// Trouble with messages of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageTrouble {
    /// A received message has a broken field.
    #[error("sent a message that cannot be read, MsgSeqNum(34) {seq}: {why}")]
    Unreadable {
        /// Its number.
        seq: u64,
        /// The fault.
        why: DecodeError,
    },
    /// A resend had a gap fill in place of application messages, which the store has dropped.
    #[error("asked for messages that are no longer kept, {begin} to {end}: gap fill")]
    NoLongerKept {
        /// The first number.
        begin: u64,
        /// The last number.
        end: u64,
    },
}

impl MessageTrouble {
    /// Returns the trouble that an event of a session reports, if any.
    pub(crate) const fn of(event: &Event<'_>) -> Option<Self> {
        match *event {
            Event::Unreadable { seq, why } => Some(Self::Unreadable { seq, why }),
            Event::NoLongerKept { begin, end } => Some(Self::NoLongerKept { begin, end }),
            _ => None,
        }
    }
}

/// The contents of a Reject(3) or a BusinessMessageReject(j).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// RefSeqNum(45): MsgSeqNum(34) of the message rejected.
    pub number: Option<u64>,
    /// RefMsgType(372): the MsgType(35) of the message rejected. Unprintable bytes are escaped,
    /// here and below.
    pub msg_type: String,
    /// RefTagID(371): the field at fault.
    pub tag: String,
    /// SessionRejectReason(373) or BusinessRejectReason(380).
    pub reason: String,
    /// Text(58).
    pub text: String,
}

impl Rejection {
    /// Returns the rejection that a message contains.
    pub(crate) fn of(message: &Message<'_>) -> Self {
        let text = |tag: u32| {
            let value = message.get(tag).unwrap_or_default();
            Escaped::fields(value.get(..MOST_TEXT).unwrap_or(value)).to_string()
        };
        let business = text(tag::BUSINESS_REJECT_REASON);
        Self {
            number: message.u64(tag::REF_SEQ_NUM).ok(),
            msg_type: text(tag::REF_MSG_TYPE),
            tag: text(tag::REF_TAG_ID),
            reason: match business.is_empty() {
                true => text(tag::SESSION_REJECT_REASON),
                false => business,
            },
            text: text(tag::TEXT),
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rejected message")?;
        if let Some(number) = self.number {
            write!(f, " {number}")?;
        }
        for (before, what) in [
            (" of MsgType(35) ", &self.msg_type),
            (", field ", &self.tag),
            (", reason ", &self.reason),
            (": ", &self.text),
        ] {
            if !what.is_empty() {
                write!(f, "{before}{what}")?;
            }
        }
        Ok(())
    }
}

/// The longest reported text of a peer, in bytes.
const MOST_TEXT: usize = 256;

/// A limit on the notices of one kind in a period, which counts the excess.
#[derive(Debug, Default)]
pub(crate) struct Limit {
    /// The start of the period in nanoseconds of the caller's clock, and the number admitted in it.
    begun: i64,
    passed: u32,
    untold: u64,
}

impl Limit {
    /// The most notices in a period, and its length in nanoseconds.
    const MOST: u32 = 10;
    const WHILE: i64 = 10_000_000_000;

    /// Returns whether one more is admitted now.
    pub(crate) fn lets(&mut self, nanos: i64) -> bool {
        if nanos.wrapping_sub(self.begun).unsigned_abs() >= Self::WHILE as u64 {
            (self.begun, self.passed) = (nanos, 0);
        }
        let lets = self.passed < Self::MOST;
        match lets {
            true => self.passed += 1,
            false => self.untold += 1,
        }
        lets
    }

    /// Returns the number suppressed since the last call.
    pub(crate) fn untold(&mut self) -> u64 {
        std::mem::take(&mut self.untold)
    }
}

/// An outlet to DDS, which never holds up a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlet {
    /// FIX messages, `[dds.publish]`.
    Dds,
    /// The feed's decoded messages, `[feed.publish]`.
    Feed,
    /// The feed's market events, `[feed.edges]`.
    Edges,
}

/// The reason why messages were not published on DDS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// A reliable subscriber kept a writer's history full for longer than a write may block.
    Unacknowledged,
    /// The outlet fell so far behind that its ring was overwritten.
    Overrun,
    /// The topic has as many keys as it may, or the key or the sample is too long, or the key has a
    /// NUL, at which a string of DDS ends.
    OverLimit,
}

/// The reason why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerEnd {
    /// The session ended.
    #[error("{0}")]
    Session(DisconnectReason),
    /// The connection was refused before it had a session.
    #[error(transparent)]
    Refused(Refusal),
    /// The Logon of a user was refused.
    #[error("session {session}: {why}")]
    Denied {
        /// The session that the Logon named.
        session: SessionId,
        /// The user. It is not displayed, because Username(553) does not belong in a log.
        user: String,
        /// The reason.
        why: Denied,
    },
    /// The consumer's outbound queue was full.
    #[error("consumer too slow: {queued} bytes are queued")]
    SlowConsumer {
        /// The bytes queued.
        queued: usize,
    },
    /// The peer sent a message longer than `limits.message_bytes`.
    #[error("a message has more than {most} bytes")]
    TooLong {
        /// The most bytes of a message.
        most: usize,
    },
    /// The connection failed, with the error of the operating system.
    #[error("connection broke: {0}")]
    Broken(String),
}

/// The sending end, one for each agent.
#[derive(Clone)]
pub(crate) struct Notices {
    sender: SyncSender<Notice>,
    left_out: Arc<AtomicU64>,
}

/// An item received from the channel of notices.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Taken<'a> {
    /// A notice.
    Notice(&'a Notice),
    /// The number of notices that were dropped.
    LeftOut(u64),
}

/// A further observer of the items received.
type Also = Box<dyn Fn(Taken<'_>) + Send>;

/// The receiving end of a gateway's notices, for one thread, which may be slow.
pub struct NoticeReceiver {
    receiver: Receiver<Notice>,
    left_out: Arc<AtomicU64>,
    /// The observer that keeps the notices for later queries.
    also: Option<Also>,
}

/// Creates a bounded channel of notices.
pub(crate) fn channel() -> (Notices, NoticeReceiver) {
    let (sender, receiver) = sync_channel(CAPACITY);
    let left_out = Arc::new(AtomicU64::new(0));
    let received = NoticeReceiver {
        receiver,
        left_out: Arc::clone(&left_out),
        also: None,
    };
    (Notices { sender, left_out }, received)
}

impl Notices {
    /// Sends a notice without blocking.
    pub(crate) fn send(&self, notice: Notice) {
        // Without a receiver, nothing counts as dropped.
        if let Err(TrySendError::Full(_)) = self.sender.try_send(notice) {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl NoticeReceiver {
    /// Registers `also`, which is called with each item received from now on.
    pub(crate) fn tell_also(&mut self, also: impl Fn(Taken<'_>) + Send + 'static) {
        self.also = Some(Box::new(also));
    }

    fn tell(&self, taken: Taken<'_>) {
        if let Some(also) = &self.also {
            also(taken);
        }
    }

    /// Returns the next notice, and waits at most `wait` for it. Returns `None` if none arrived,
    /// and immediately once the gateway has ended and all have been received.
    #[must_use]
    pub fn next(&self, wait: Duration) -> Option<Notice> {
        let notice = self.receiver.recv_timeout(wait).ok();
        notice.inspect(|notice| self.tell(Taken::Notice(notice)))
    }

    /// Returns an iterator over all notices that have arrived.
    pub fn iter(&self) -> impl Iterator<Item = Notice> + '_ {
        self.receiver
            .try_iter()
            .inspect(|notice| self.tell(Taken::Notice(notice)))
    }

    /// Returns how many notices were dropped since the last call, because 4,096 were queued.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        let count = self.left_out.swap(0, Ordering::Relaxed);
        self.tell(Taken::LeftOut(count));
        count
    }
}

impl Notice {
    /// Returns the kind of the notice, in a word or two of `snake_case`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::LoggedOn { .. } => "logged_on",
            Self::Ended { .. } => "ended",
            Self::LeftOut { .. } => "left_out",
            Self::Dbn { .. } => "dbn",
            Self::CannotAccept { .. } => "cannot_accept",
            Self::Log(_) => "message_log",
            Self::Audit { .. } => "audit",
            Self::History { .. } => "log",
            Self::Replay { .. } => "replay",
            Self::Kafka { .. } => "kafka",
            Self::Panicked { .. } => "panicked",
            Self::Dds { .. }
            | Self::DdsClosed { .. }
            | Self::DdsStalled { .. }
            | Self::DdsWarning { .. }
            | Self::DdsResumed { .. }
            | Self::Unpublished { .. } => "dds",
            Self::FeedTopics { .. } => "feed_topics",
            Self::SmallBuffer(_) => "small_buffer",
            Self::LeftOutOfTemplates { .. } => "templates",
            Self::Feed(_) => "feed",
            Self::Rejected { .. } => "rejected",
            Self::Messages { .. } => "messages",
        }
    }

    /// Returns whether the notice reports trouble. Logons, orderly Logouts, sessions of DBN that
    /// their clients or operators end, readers and writers of DDS that are discovered or lost, and
    /// a replay that has come to its end are no trouble.
    #[must_use]
    pub fn is_trouble(&self) -> bool {
        let orderly = [
            PeerEnd::Session(DisconnectReason::LogoutByPeer),
            PeerEnd::Session(DisconnectReason::LogoutComplete),
        ];
        match self {
            Self::LoggedOn { .. } | Self::FeedTopics { .. } | Self::DdsResumed { .. } => false,
            Self::Feed(notice) => notice.is_trouble(),
            Self::Dbn { is_trouble, .. } | Self::Replay { is_trouble, .. } => *is_trouble,
            Self::Ended { end, left_out, .. } => *left_out > 0 || !orderly.contains(end),
            Self::Dds { what, .. } => !matches!(
                what,
                Status::Matched { .. } | Status::LivelinessChanged { .. }
            ),
            _ => true,
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LoggedOn { session, peer } => write!(f, "{session} logged on from {peer}"),
            Self::Ended {
                session: Some(session),
                peer,
                end,
                left_out,
            } => {
                write!(f, "{session} from {peer} ended: {end}")?;
                match left_out {
                    0 => Ok(()),
                    1 => f.write_str("; 1 message was left out for it"),
                    n => write!(f, "; {n} messages were left out for it"),
                }
            }
            Self::Ended {
                session: None,
                peer,
                end,
                ..
            } => write!(f, "{peer} ended: {end}"),
            Self::LeftOut {
                session,
                peer,
                count,
            } => write_left_out(f, session, *peer, *count),
            Self::Dbn { peer, what, .. } => write!(f, "dbn: {peer}: {what}"),
            Self::Log(trouble) => trouble.fmt(f),
            Self::Audit { path, what } => write!(f, "audit file {path}: {what}"),
            Self::Kafka { topic, what } => write!(f, "kafka {topic}: {what}"),
            Self::History { folder, what } => write!(f, "log {folder}: {what}"),
            Self::Replay { log, what, .. } => write!(f, "replay of {log}: {what}"),
            Self::Panicked { session, message } => write_panic(f, session.as_ref(), message),
            Self::CannotAccept { error } => write!(f, "cannot accept connections: {error}"),
            Self::FeedTopics { matched } => {
                let not = if *matched { "" } else { "not " };
                write!(f, "{not}every topic of the feed has a subscriber")
            }
            Self::SmallBuffer(small) => write!(f, "{small}"),
            Self::Unpublished { outlet, count, why } => {
                write!(f, "{outlet}: {} left out: {why}", outlet.units(*count))
            }
            Self::LeftOutOfTemplates {
                templates,
                what,
                more,
            } => match more {
                0 => write!(f, "{templates}: left out: {what}"),
                more => write!(f, "{templates}: left out: {what}, and {more} more"),
            },
            Self::Feed(notice) => write!(f, "{notice}"),
            Self::Rejected {
                session,
                reject,
                untold,
            } => write_of_session(f, session, reject, *untold),
            Self::Messages {
                session,
                what,
                untold,
            } => write_of_session(f, session, what, *untold),
            Self::Dds { topic, what } => write!(f, "DDS topic {topic}: {what}"),
            Self::DdsClosed { why } => write!(f, "{why}; the other topics go on"),
            Self::DdsStalled { topic, untold } => write_stalled(f, topic, *untold),
            Self::DdsWarning { what, untold } => write_warning(f, what, *untold),
            Self::DdsResumed { topic } => write!(f, "DDS topic {topic}: is written again"),
        }
    }
}

fn write_left_out(
    f: &mut fmt::Formatter<'_>,
    session: &SessionId,
    peer: SocketAddr,
    count: u64,
) -> fmt::Result {
    let s = if count == 1 { "" } else { "s" };
    write!(f, "{count} message{s} left out for {session} from {peer}")?;
    f.write_str(", whose queue is full")
}

fn write_of_session(
    f: &mut fmt::Formatter<'_>,
    session: &SessionId,
    what: &dyn fmt::Display,
    untold: u64,
) -> fmt::Result {
    write!(f, "{session} {what}")?;
    write_untold(f, untold)
}

fn write_untold(f: &mut fmt::Formatter<'_>, untold: u64) -> fmt::Result {
    match untold {
        0 => Ok(()),
        more => write!(f, " (and {more} more before)"),
    }
}

fn write_panic(
    f: &mut fmt::Formatter<'_>,
    session: Option<&SessionId>,
    message: &str,
) -> fmt::Result {
    if let Some(session) = session {
        write!(f, "{session} is logged out: ")?;
    }
    write!(f, "panic: {}", Escaped::text(message))
}

fn write_warning(f: &mut fmt::Formatter<'_>, what: &str, untold: u64) -> fmt::Result {
    write!(f, "Cyclone DDS: {what}")?;
    write_untold(f, untold)
}

fn write_stalled(f: &mut fmt::Formatter<'_>, topic: &str, untold: u64) -> fmt::Result {
    write!(
        f,
        "DDS topic {topic}: a subscriber takes nothing, which stops "
    )?;
    f.write_str("the topic for all until its process ends (`fanfare dds ls` lists subscribers); ")?;
    f.write_str("`qos = \"last-value\"` or `\"best-effort\"` waits for none")?;
    write_untold(f, untold)
}

impl Outlet {
    /// Formats a count in the units of the outlet.
    fn units(self, count: u64) -> String {
        let plural = if count == 1 { "" } else { "s" };
        match self {
            Self::Dds => format!("{count} message{plural}"),
            Self::Feed | Self::Edges => format!("{count} sample{plural}"),
        }
    }
}

impl fmt::Display for Outlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dds => "dds",
            Self::Feed => "topics of the feed",
            Self::Edges => "edges of the feed",
        })
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unacknowledged => "a subscriber does not acknowledge",
            Self::Overrun => "overwritten before they could be published",
            Self::OverLimit => "beyond a limit of their topic",
        })
    }
}
