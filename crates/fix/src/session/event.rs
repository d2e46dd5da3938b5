//! What a session tells its application, and why it ends.

use std::fmt;

use super::config::{AnswerLimit, Rate};
use super::ids::FieldTooLong;
use super::store::StoreError;
use super::validate::RejectReason;
use crate::codec::{DecodeError, EncodeError, Message};

/// Something that happened in a session. Those with a `Message` borrow the caller's bytes, not the
/// session: the session can be called while the event is looked at.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A Logon that passed all checks waits for `accept_logon` or `refuse_logon` (only with
    /// `Config::ask_logon`). Nothing more is received until then.
    LogonRequested(Message<'a>),
    /// Both Logons are exchanged: application messages may be sent.
    LoggedOn {
        /// HeartBtInt(108) in force, in seconds.
        heart_bt_int: u32,
        /// Whether the numbers of both directions started at 1 with this Logon.
        reset: bool,
    },
    /// An application message, in order, each number once.
    App(AppMessage<'a>),
    /// The counterparty rejected a message of ours: Reject(3).
    RejectReceived(Message<'a>),
    /// The counterparty logs out; the text is in Text(58). `Disconnect` follows.
    LogoutReceived(Message<'a>),
    /// We rejected a message.
    RejectSent {
        /// MsgSeqNum(34) of the faulty message, 0 if it had none.
        ref_seq: u64,
        /// SessionRejectReason(373).
        reason: RejectReason,
        /// RefTagID(371).
        tag: Option<i64>,
    },
    /// Messages are missing and were asked for.
    GapDetected {
        /// First missing number.
        begin: u64,
        /// Last missing number.
        end: u64,
    },
    /// The gap is closed; this number is the next expected.
    GapClosed {
        /// MsgSeqNum(34) expected next.
        next: u64,
    },
    /// A message that waits behind a gap found no room and was dropped; it will be asked for.
    QueueFull {
        /// MsgSeqNum(34) of the message dropped.
        seq: u64,
    },
    /// The counterparty asked for messages again.
    ResendRequested {
        /// BeginSeqNo(7).
        begin: u64,
        /// Last number it gets.
        end: u64,
    },
    /// That resend is complete.
    ResendDone {
        /// Application messages sent again.
        messages: u64,
        /// Numbers filled by gap fills.
        filled: u64,
    },
    /// The counterparty moved the number we expect.
    SequenceReset {
        /// The number expected before.
        from: u64,
        /// The number expected now.
        to: u64,
    },
    /// Bytes that are no message were skipped.
    Garbled(DecodeError),
    /// The session is over. Transmit what `poll_transmit` still has, close the connection, and
    /// call `disconnected`.
    Disconnect(DisconnectReason),
}

/// An application message with what the session found in its header.
#[derive(Clone, Copy, Debug)]
pub struct AppMessage<'a> {
    /// The message.
    pub message: Message<'a>,
    /// MsgSeqNum(34).
    pub seq: u64,
    /// PossDupFlag(43)=Y: a resend. The session delivers each number once.
    pub poss_dup: bool,
    /// PossResend(97)=Y: the application has to look whether it knows the content.
    pub poss_resend: bool,
}

/// Why a connection of a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisconnectReason {
    /// The transport was closed or failed.
    ConnectionLost,
    /// Our application asked for the logout, and the counterparty confirmed it.
    LogoutComplete,
    /// Our application asked for the logout, and no answer came in time.
    LogoutTimeout,
    /// The counterparty logged out.
    LogoutByPeer,
    /// The counterparty answered our Logon with a Logout.
    LogonRejected,
    /// No complete logon in time.
    LogonTimeout,
    /// The first message was not a Logon.
    FirstMessageNotLogon,
    /// The first bytes were no message.
    GarbledBeforeLogon(DecodeError),
    /// The Logon was not acceptable.
    BadLogon(LogonFault),
    /// Our application refused the Logon, or it lacks the credentials of the configuration.
    LogonRefused,
    /// A Logon without ResetSeqNumFlag(141) while logged on.
    UnexpectedLogon,
    /// MsgSeqNum(34) too low without PossDupFlag(43).
    MsgSeqNumTooLow {
        /// The number expected.
        expected: u64,
        /// The number that came.
        received: u64,
    },
    /// NextExpectedMsgSeqNum(789) of the Logon is above what we ever sent.
    NextExpectedTooHigh {
        /// Our next number.
        next: u64,
        /// The number that came.
        received: u64,
    },
    /// BeginString(8) was not ours.
    BeginString,
    /// CompIDs were not ours.
    CompId,
    /// SendingTime(52) too far from our clock, or before OrigSendingTime(122).
    SendingTime,
    /// Nothing was received for 2.4 times the heartbeat interval.
    HeartbeatTimeout,
    /// A gap was asked for again and again and did not close.
    ResendTimeout,
    /// The counterparty asked for the same resend again and again.
    TooManyResendRequests,
    /// The counterparty sent faster than this (`Config::receive_limit`).
    ReceiveRate(Rate),
    /// The counterparty made the session write more than this (`Config::answer_limit`).
    AnswerRate(AnswerLimit),
    /// The session's hours are over, or have not begun.
    OutsideSchedule,
    /// A message of our own session layer found no room: the counterparty does not read.
    TransmitFull,
    /// A message of our own session layer cannot be encoded: a field of the configuration, or of
    /// the hook, is faulty or too long.
    AdminMessage(EncodeError),
    /// The store failed.
    Store(StoreError),
    /// Our application closed the session without a logout.
    Closed,
    /// Our application panicked while it handled an event of this session.
    ApplicationPanicked,
}

impl fmt::Display for DisconnectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConnectionLost => f.write_str("connection lost"),
            Self::LogoutComplete => f.write_str("logged out"),
            Self::LogoutTimeout => f.write_str("no answer to our Logout"),
            Self::LogoutByPeer => f.write_str("the counterparty logged out"),
            Self::LogonRejected => f.write_str("the counterparty refused our Logon"),
            Self::LogonTimeout => f.write_str("no Logon in time"),
            Self::FirstMessageNotLogon => f.write_str("first message is not a Logon"),
            Self::GarbledBeforeLogon(why) => write!(f, "garbled before Logon: {why}"),
            Self::BadLogon(fault) => write!(f, "bad Logon: {fault}"),
            Self::LogonRefused => f.write_str("the application refused the Logon"),
            Self::UnexpectedLogon => f.write_str("Logon while logged on"),
            Self::MsgSeqNumTooLow { expected, received } => {
                write!(
                    f,
                    "MsgSeqNum too low, expecting {expected} but received {received}"
                )
            }
            Self::NextExpectedTooHigh { next, received } => {
                let what = "Tag 789 (NextExpectedMsgSeqNum) is higher than expected";
                write!(f, "{what}. Expected {next}, Received {received}")
            }
            Self::BeginString => f.write_str("incorrect BeginString"),
            Self::CompId => f.write_str("CompID problem"),
            Self::SendingTime => f.write_str("SendingTime accuracy problem"),
            Self::HeartbeatTimeout => f.write_str("nothing received in 2.4 heartbeat intervals"),
            Self::ResendTimeout => f.write_str("missing messages did not come"),
            Self::TooManyResendRequests => f.write_str("the same resend asked for too often"),
            Self::ReceiveRate(rate) => rate.fmt(f),
            Self::AnswerRate(limit) => limit.fmt(f),
            Self::OutsideSchedule => f.write_str("outside the session's hours"),
            Self::TransmitFull => f.write_str("the counterparty does not read"),
            Self::AdminMessage(error) => {
                write!(f, "cannot encode a message of the session: {error}")
            }
            Self::Store(error) => write!(f, "store: {error}"),
            Self::Closed => f.write_str("closed by the application"),
            Self::ApplicationPanicked => f.write_str("the application panicked"),
        }
    }
}

/// What was wrong with a Logon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogonFault {
    /// BeginString(8) was not ours.
    BeginString,
    /// CompIDs were not ours.
    CompId,
    /// SendingTime(52) too far from our clock.
    SendingTime,
    /// EncryptMethod(98) was not 0 (none).
    EncryptMethod,
    /// HeartBtInt(108) negative or outside the range agreed to.
    HeartBtInt,
    /// DefaultApplVerID(1137) absent or unknown (FIXT.1.1).
    DefaultApplVerId,
    /// A CompID, SubID or LocationID was longer than `Config::max_header_field`.
    TooLong(FieldTooLong),
    /// A field of the Logon was missing or malformed.
    Field {
        /// What was wrong.
        reason: RejectReason,
        /// The field.
        tag: Option<i64>,
    },
}

impl fmt::Display for LogonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeginString => f.write_str("BeginString(8)"),
            Self::CompId => f.write_str("SenderCompID(49) or TargetCompID(56)"),
            Self::SendingTime => f.write_str("SendingTime(52)"),
            Self::EncryptMethod => f.write_str("EncryptMethod(98)"),
            Self::HeartBtInt => f.write_str("HeartBtInt(108)"),
            Self::DefaultApplVerId => f.write_str("DefaultApplVerID(1137)"),
            Self::TooLong(field) => field.fmt(f),
            Self::Field {
                reason,
                tag: Some(tag),
            } => write!(f, "{} ({tag})", reason.text()),
            Self::Field { reason, tag: None } => f.write_str(reason.text()),
        }
    }
}

/// Why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// No logon has completed, or the logout has begun.
    NotLoggedOn,
    /// The message does not fit into `Config::max_send`, or a value cannot be encoded.
    Encode(EncodeError),
    /// MsgType(35) is one of the session's own.
    AdminMessage,
    /// A resend is under way; only `send` can queue behind it, the fan-out path cannot.
    ResendInProgress,
    /// As many messages wait as may (`Config::send_limit`).
    Throttled {
        /// When the next of those that wait may go, by the monotonic clock: then there is room for
        /// one more.
        until: u64,
    },
    /// The store could not take it. `StoreError::Full` goes away when the counterparty reads; any
    /// other ends the session.
    Store(StoreError),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLoggedOn => f.write_str("not logged on"),
            Self::Encode(error) => write!(f, "cannot encode: {error}"),
            Self::AdminMessage => f.write_str("MsgType belongs to the session layer"),
            Self::ResendInProgress => f.write_str("a resend is under way"),
            Self::Throttled { .. } => f.write_str("as many messages wait as may"),
            Self::Store(error) => write!(f, "store: {error}"),
        }
    }
}

impl std::error::Error for SendError {}
