//! Events of a session, and the reasons for its end.

use super::config::{AnswerLimit, Rate};
use super::ids::FieldTooLong;
use super::store::StoreError;
use super::validate::{Fault, RejectReason};
use crate::codec::{DecodeError, EncodeError, Message};

/// The Text(58) of the Logout(5) to a counterparty without the [credentials](super::Credentials).
pub const WRONG_CREDENTIALS: &str = "Username or Password is wrong";

/// The Text(58) of the Logout(5) to a counterparty that asks for a new password in its Logon(A).
pub const NEW_PASSWORD: &str = "NewPassword(925) is not supported: the password is not changed";

/// An event of a session. A `Message` in an event borrows the caller's bytes, not the session,
/// which may be called while the event is in use.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A Logon(A) that passed all checks waits for `accept_logon` or `refuse_logon`. The event
    /// occurs only with `Config::ask_logon`. Nothing more is received until then.
    LogonRequested(Message<'a>),
    /// Both Logon(A) messages are exchanged. Application messages may be sent.
    LoggedOn {
        /// The HeartBtInt(108) in force, in seconds.
        heart_bt_int: u32,
        /// Whether the numbers of both directions started at 1 with this logon.
        reset: bool,
    },
    /// An application message. Messages come in order, each number once.
    App(AppMessage<'a>),
    /// The counterparty rejected a message of this session with Reject(3).
    RejectReceived(Message<'a>),
    /// The counterparty logs out. The text is in Text(58). `Disconnect` follows.
    LogoutReceived(Message<'a>),
    /// The session rejected a message.
    RejectSent {
        /// The MsgSeqNum(34) of the faulty message, or 0 if it had none.
        ref_seq: u64,
        /// The SessionRejectReason(373).
        reason: RejectReason,
        /// The RefTagID(371).
        tag: Option<i64>,
    },
    /// Messages are missing and have been requested.
    GapDetected {
        /// The first missing number.
        begin: u64,
        /// The last missing number.
        end: u64,
    },
    /// A gap is closed.
    GapClosed {
        /// The MsgSeqNum(34) expected next.
        next: u64,
    },
    /// A message behind missing ones was dropped, as the queue for such messages was full. The
    /// event occurs once for each gap: later messages may be dropped, too. They are requested when
    /// the first of them is the next one expected.
    QueueFull {
        /// The MsgSeqNum(34) of the first message dropped.
        seq: u64,
    },
    /// The counterparty requested messages again.
    ResendRequested {
        /// The value of BeginSeqNo(7).
        begin: u64,
        /// The last number that is sent again.
        end: u64,
    },
    /// Application messages that the counterparty requested again have made room for newer ones, by
    /// the limits of the store: a gap fill takes their place.
    NoLongerKept {
        /// The first number requested.
        begin: u64,
        /// The number of the last application message requested that is no longer kept.
        end: u64,
    },
    /// The resend is complete.
    ResendDone {
        /// The number of application messages sent again.
        messages: u64,
        /// The number of MsgSeqNum(34) values covered by gap fills.
        filled: u64,
    },
    /// The numbers were reset, or set to lower ones, while application messages waited: for the end
    /// of a resend, for their rate, or for the ResendRequest(2) of the next connection. `send` had
    /// accepted them, and they are not transmitted. Messages of an earlier process do not count,
    /// nor do those that were being written when their connection was lost.
    WaitingDiscarded {
        /// The number of these messages.
        messages: u64,
    },
    /// The numbers were reset while received messages waited for missing ones before them. These
    /// messages are not delivered, and do not come again.
    HeldDiscarded {
        /// The number of these messages.
        messages: u64,
    },
    /// The counterparty moved the expected number.
    SequenceReset {
        /// The number expected before.
        from: u64,
        /// The number expected now.
        to: u64,
    },
    /// Bytes that are no message were skipped.
    Garbled(DecodeError),
    /// A message was not handled, because a field of it is broken. It is rejected, as `RejectSent`
    /// says, or skipped. One that is skipped has not used up its number, and neither has a Logon(A)
    /// or SequenceReset(4): it is requested again.
    Unreadable {
        /// The MsgSeqNum(34) of the message.
        seq: u64,
        /// The fault.
        why: DecodeError,
    },
    /// The session has ended. Transmit what `poll_transmit` still returns, close the connection,
    /// and call `disconnected`.
    Disconnect(DisconnectReason),
}

/// An application message with the values that the session found in its header.
#[derive(Clone, Copy, Debug)]
pub struct AppMessage<'a> {
    /// The message.
    pub message: Message<'a>,
    /// MsgSeqNum(34).
    pub seq: u64,
    /// Whether PossDupFlag(43) is Y: the message was sent again. The session delivers each number
    /// once.
    pub poss_dup: bool,
    /// Whether PossResend(97) is Y: the application must check whether it knows the content.
    pub poss_resend: bool,
}

/// The reason why a connection of a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DisconnectReason {
    /// The transport was closed or failed.
    #[error("connection lost")]
    ConnectionLost,
    /// The application of this side requested the logout, and the counterparty confirmed it.
    #[error("logged out")]
    LogoutComplete,
    /// The application of this side requested the logout, and no answer came in time.
    #[error("no answer to our Logout")]
    LogoutTimeout,
    /// The counterparty logged out.
    #[error("the counterparty logged out")]
    LogoutByPeer,
    /// The counterparty answered the Logon(A) of this side with a Logout(5).
    #[error("the counterparty refused our Logon")]
    LogonRejected,
    /// The logon was not completed in time.
    #[error("no Logon in time")]
    LogonTimeout,
    /// The first message was not a Logon(A).
    #[error("first message is not a Logon")]
    FirstMessageNotLogon,
    /// The first bytes were not a message.
    #[error("garbled message before Logon: {0}")]
    GarbledBeforeLogon(DecodeError),
    /// The Logon(A) was not acceptable.
    #[error("bad Logon: {0}")]
    BadLogon(LogonFault),
    /// The application of this side refused the Logon(A).
    #[error("the application refused the Logon")]
    LogonRefused,
    /// The Logon(A) does not have the credentials of the configuration.
    #[error("{WRONG_CREDENTIALS}")]
    WrongCredentials,
    /// The Logon(A) has the credentials of the configuration, and asks for a new password.
    #[error("{NEW_PASSWORD}")]
    NewPassword,
    /// A Logon(A) without ResetSeqNumFlag(141) was received while logged on.
    #[error("Logon while logged on")]
    UnexpectedLogon,
    /// A MsgSeqNum(34) was too low, without PossDupFlag(43).
    #[error("MsgSeqNum too low, expecting {expected} but received {received}")]
    MsgSeqNumTooLow {
        /// The number expected.
        expected: u64,
        /// The number received.
        received: u64,
    },
    /// The NextExpectedMsgSeqNum(789) of the Logon(A) is above every number that this side ever
    /// sent.
    #[error(
        "Tag 789 (NextExpectedMsgSeqNum) is higher than expected. Expected {next}, \
         Received {received}"
    )]
    NextExpectedTooHigh {
        /// The number of the next message of this side.
        next: u64,
        /// The number received.
        received: u64,
    },
    /// The NextExpectedMsgSeqNum(789) of the Logon(A) is 0, which no message has.
    #[error("Tag 789 (NextExpectedMsgSeqNum) is 0, expected 1 or higher")]
    NextExpectedZero,
    /// A message was longer than `Config::max_message`.
    #[error("a message of {len} bytes is longer than the limit of {limit} bytes")]
    MessageTooLong {
        /// The length of the message by its BodyLength(9), in bytes.
        len: usize,
        /// The most bytes of a message.
        limit: usize,
    },
    /// A message with a broken field that does not use up its number, because it cannot be rejected
    /// or is a Logon(A) or SequenceReset(4), was requested again and came again.
    #[error("MsgSeqNum(34) {seq} cannot be read")]
    Unreadable {
        /// The number of the message.
        seq: u64,
    },
    /// The BeginString(8) was not that of the session.
    #[error("incorrect BeginString")]
    BeginString,
    /// The CompIDs were not those of the session.
    #[error("CompID problem")]
    CompId,
    /// The SendingTime(52) was too far from the clock of this side, or before OrigSendingTime(122).
    #[error("SendingTime accuracy problem")]
    SendingTime,
    /// Nothing was received for 2.4 heartbeat intervals, or as many as
    /// [`Config::gone_percent`](super::Config::gone_percent) sets.
    #[error("nothing received for too many heartbeat intervals")]
    HeartbeatTimeout,
    /// A gap was requested again and again, and was not closed.
    #[error("the missing messages did not arrive")]
    ResendTimeout,
    /// The counterparty requested the same resend again and again.
    #[error("the same resend was requested too often")]
    TooManyResendRequests,
    /// The counterparty reset the numbers again and again, with nothing but Logon(A) messages in
    /// between: each side may take the other's answer for a request.
    #[error("the numbers were reset too often")]
    TooManyResets,
    /// The counterparty sent faster than this rate (`Config::receive_limit`).
    #[error("{0}")]
    ReceiveRate(Rate),
    /// The counterparty made the session write more than this limit (`Config::answer_limit`).
    #[error("{0}")]
    AnswerRate(AnswerLimit),
    /// The session's hours are over, or have not begun.
    #[error("outside the session's hours")]
    OutsideSchedule,
    /// The session's hours are over and the next ones have begun, as after a step of the clock.
    /// Their numbers begin with 1.
    #[error("the session's hours are over, and the next ones have begun")]
    NextHours,
    /// A message of the session layer found no room in the store, as the counterparty does not
    /// read.
    #[error("the counterparty does not read from the connection")]
    TransmitFull,
    /// A message of the session layer cannot be encoded, as a field of the configuration or of the
    /// hook is faulty or too long.
    #[error("cannot encode a message of the session: {0}")]
    AdminMessage(EncodeError),
    /// The store failed.
    #[error("store: {0}")]
    Store(StoreError),
    /// The application of this side closed the session without a logout.
    #[error("closed by the application")]
    Closed,
    /// The application of this side panicked while it handled an event of this session.
    #[error("the application panicked")]
    ApplicationPanicked,
}

/// The fault of a Logon(A).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogonFault {
    /// The BeginString(8) was not that of the session.
    #[error("BeginString(8)")]
    BeginString,
    /// The CompIDs were not those of the session.
    #[error("SenderCompID(49) or TargetCompID(56)")]
    CompId,
    /// The SendingTime(52) was too far from the clock of this side.
    #[error("SendingTime(52)")]
    SendingTime,
    /// The EncryptMethod(98) was not 0 (none).
    #[error("EncryptMethod(98)")]
    EncryptMethod,
    /// The HeartBtInt(108) was malformed, negative, or outside the accepted range.
    #[error("HeartBtInt(108)")]
    HeartBtInt,
    /// The DefaultApplVerID(1137) was absent or unknown, over FIXT.1.1.
    #[error("DefaultApplVerID(1137)")]
    DefaultApplVerId,
    /// A CompID, SubID or LocationID was longer than `Config::max_header_field`.
    #[error("{0}")]
    TooLong(FieldTooLong),
    /// A field of the Logon(A) was missing or malformed.
    #[error("{0}")]
    Field(Fault),
}

/// The reason why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The session is not logged on. After its own Logout(5), only a message that cannot be kept
    /// for the next logon has this error: see [`Session::send`](super::Session::send).
    #[error("not logged on")]
    NotLoggedOn,
    /// The message does not fit into the room that the store has for it, which is at least
    /// `Config::max_send`, or a value cannot be encoded.
    #[error("cannot encode: {0}")]
    Encode(EncodeError),
    /// The message has a fault by `Config::outgoing_validator`.
    #[error("the message breaks the dictionary: {0}")]
    Invalid(Fault),
    /// The MsgType(35) belongs to the session layer.
    #[error("MsgType(35) belongs to the session layer")]
    AdminMessage,
    /// A resend is under way, or messages wait for their rate. Only `send` can queue a message
    /// after them, the fan-out path cannot. `reset_sequence` is refused also while messages of the
    /// counterparty are missing.
    #[error("a resend is in progress, or messages are missing or wait for their rate")]
    ResendInProgress,
    /// The number of waiting messages has reached its limit (`Config::send_limit`).
    #[error("the queue of messages to send is full")]
    Throttled {
        /// The time at which the next waiting message may be sent, in nanoseconds of the monotonic
        /// clock. From then on there is room for one more.
        until: u64,
    },
    /// The store could not take the message. `StoreError::Full` goes away when the counterparty
    /// reads. Any other error, except `StoreError::TooLong`, ends the session.
    #[error("store: {0}")]
    Store(StoreError),
}
