//! Events of a session, and the reasons for its end.

use super::config::{AnswerLimit, Rate};
use super::ids::FieldTooLong;
use super::store::StoreError;
use super::validate::{Fault, RejectReason};
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DisconnectReason {
    /// The transport was closed or failed.
    #[error("connection lost")]
    ConnectionLost,
    /// Our application asked for the logout, and the counterparty confirmed it.
    #[error("logged out")]
    LogoutComplete,
    /// Our application asked for the logout, and no answer came in time.
    #[error("no answer to our Logout")]
    LogoutTimeout,
    /// The counterparty logged out.
    #[error("the counterparty logged out")]
    LogoutByPeer,
    /// The counterparty answered our Logon with a Logout.
    #[error("the counterparty refused our Logon")]
    LogonRejected,
    /// No complete logon in time.
    #[error("no Logon in time")]
    LogonTimeout,
    /// The first message was not a Logon.
    #[error("first message is not a Logon")]
    FirstMessageNotLogon,
    /// The first bytes were no message.
    #[error("garbled message before Logon: {0}")]
    GarbledBeforeLogon(DecodeError),
    /// The Logon was not acceptable.
    #[error("bad Logon: {0}")]
    BadLogon(LogonFault),
    /// Our application refused the Logon, or it lacks the credentials of the configuration.
    #[error("the application refused the Logon")]
    LogonRefused,
    /// A Logon without ResetSeqNumFlag(141) while logged on.
    #[error("Logon while logged on")]
    UnexpectedLogon,
    /// MsgSeqNum(34) too low without PossDupFlag(43).
    #[error("MsgSeqNum too low, expecting {expected} but received {received}")]
    MsgSeqNumTooLow {
        /// The number expected.
        expected: u64,
        /// The number that came.
        received: u64,
    },
    /// NextExpectedMsgSeqNum(789) of the Logon is above what we ever sent.
    #[error(
        "Tag 789 (NextExpectedMsgSeqNum) is higher than expected. Expected {next}, \
         Received {received}"
    )]
    NextExpectedTooHigh {
        /// Our next number.
        next: u64,
        /// The number that came.
        received: u64,
    },
    /// BeginString(8) was not ours.
    #[error("incorrect BeginString")]
    BeginString,
    /// CompIDs were not ours.
    #[error("CompID problem")]
    CompId,
    /// SendingTime(52) too far from our clock, or before OrigSendingTime(122).
    #[error("SendingTime accuracy problem")]
    SendingTime,
    /// Nothing was received for 2.4 times the heartbeat interval.
    #[error("nothing received in 2.4 heartbeat intervals")]
    HeartbeatTimeout,
    /// A gap was asked for again and again and did not close.
    #[error("the missing messages did not arrive")]
    ResendTimeout,
    /// The counterparty asked for the same resend again and again.
    #[error("the same resend was requested too often")]
    TooManyResendRequests,
    /// The counterparty sent faster than this (`Config::receive_limit`).
    #[error("{0}")]
    ReceiveRate(Rate),
    /// The counterparty made the session write more than this (`Config::answer_limit`).
    #[error("{0}")]
    AnswerRate(AnswerLimit),
    /// The session's hours are over, or have not begun.
    #[error("outside the session's hours")]
    OutsideSchedule,
    /// A message of our own session layer found no room: the counterparty does not read.
    #[error("the counterparty does not read from the connection")]
    TransmitFull,
    /// A message of our own session layer cannot be encoded: a field of the configuration, or of
    /// the hook, is faulty or too long.
    #[error("cannot encode a message of the session: {0}")]
    AdminMessage(EncodeError),
    /// The store failed.
    #[error("store: {0}")]
    Store(StoreError),
    /// Our application closed the session without a logout.
    #[error("closed by the application")]
    Closed,
    /// Our application panicked while it handled an event of this session.
    #[error("the application panicked")]
    ApplicationPanicked,
}

/// What was wrong with a Logon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogonFault {
    /// BeginString(8) was not ours.
    #[error("BeginString(8)")]
    BeginString,
    /// CompIDs were not ours.
    #[error("SenderCompID(49) or TargetCompID(56)")]
    CompId,
    /// SendingTime(52) too far from our clock.
    #[error("SendingTime(52)")]
    SendingTime,
    /// EncryptMethod(98) was not 0 (none).
    #[error("EncryptMethod(98)")]
    EncryptMethod,
    /// HeartBtInt(108) negative or outside the range agreed to.
    #[error("HeartBtInt(108)")]
    HeartBtInt,
    /// DefaultApplVerID(1137) absent or unknown (FIXT.1.1).
    #[error("DefaultApplVerID(1137)")]
    DefaultApplVerId,
    /// A CompID, SubID or LocationID was longer than `Config::max_header_field`.
    #[error("{0}")]
    TooLong(FieldTooLong),
    /// A field of the Logon was missing or malformed.
    #[error("{0}")]
    Field(Fault),
}

/// Why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// No logon has completed, or the logout has begun.
    #[error("not logged on")]
    NotLoggedOn,
    /// The message does not fit into `Config::max_send`, or a value cannot be encoded.
    #[error("cannot encode: {0}")]
    Encode(EncodeError),
    /// The message has a fault by `Config::outgoing_validator`.
    #[error("the message breaks the dictionary: {0}")]
    Invalid(Fault),
    /// MsgType(35) is one of the session's own.
    #[error("MsgType(35) belongs to the session layer")]
    AdminMessage,
    /// A resend is under way; only `send` can queue behind it, the fan-out path cannot.
    #[error("a resend is in progress")]
    ResendInProgress,
    /// As many messages wait as may (`Config::send_limit`).
    #[error("the queue of messages to send is full")]
    Throttled {
        /// When the next of those that wait may go, by the monotonic clock: then there is room for
        /// one more.
        until: u64,
    },
    /// The store could not take it. `StoreError::Full` goes away when the counterparty reads; any
    /// other ends the session.
    #[error("store: {0}")]
    Store(StoreError),
}
