//! The configuration of a session: switches and limits.

use std::fmt;
use std::sync::Arc;

use fanfare_wire::Precision;

use super::hook::AdminHook;
use super::identity::{ApplVerId, SessionId};
use super::schedule::Schedule;
use super::validate::Validator;
use crate::codec::Message;
use crate::tag;

/// A second in nanoseconds, the unit of every duration of a configuration.
pub const SECOND: u64 = 1_000_000_000;

/// A header or body field that a session adds by itself, for example Username(553) in its Logon.
pub type ExtraField = (u32, Box<[u8]>);

/// The configuration of one session. `Config::new` has defaults that suit most sessions. Every
/// duration is in nanoseconds.
#[derive(Clone, Debug)]
pub struct Config {
    /// The identity of the session.
    pub id: SessionId,
    /// The DefaultApplVerID(1137) of the session's Logon(A). Only FIXT.1.1 uses it.
    pub default_appl_ver_id: ApplVerId,
    /// Whether an acceptor of FIXT.1.1 answers with the DefaultApplVerID(1137) of the counterparty,
    /// so that one session serves counterparties of every application version.
    pub mirror_appl_ver_id: bool,
    /// The HeartBtInt(108), in seconds, that an initiator requests. An acceptor uses the one that
    /// it receives.
    pub heart_bt_int: u32,
    /// Whether a Logon(A) without EncryptMethod(98) and HeartBtInt(108) is accepted, as some test
    /// servers send it. Nothing is then encrypted, and the interval is `heart_bt_int`. The standard
    /// requires both fields.
    pub bare_logon: bool,
    /// The least and the greatest HeartBtInt(108) that an acceptor accepts, in seconds.
    pub heart_bt_int_range: (u32, u32),
    /// The time for which a connection may last without a complete logon.
    pub logon_timeout: u64,
    /// The time for which the session waits for the answer to its Logout(5), in nanoseconds. It
    /// begins when the Logout(5) has been transmitted. Before that the session ends when nothing is
    /// transmitted for this time, and after [`Config::LOGOUT_PERIODS`] times this time in any case.
    pub logout_timeout: u64,
    /// The silence of the counterparty after which it gets a TestRequest(1), in percent of the
    /// HeartBtInt(108).
    pub test_request_percent: u32,
    /// The silence after which the counterparty counts as gone and the connection is closed, in
    /// percent of the HeartBtInt(108); more than `test_request_percent`.
    pub gone_percent: u32,
    /// Whether a silent counterparty gets a Logout(5) before the connection is closed
    /// (SendLogoutBeforeDisconnectFromTimeout).
    pub logout_on_silence: bool,
    /// The precision of SendingTime(52).
    pub precision: Precision,
    /// The fields of the session's Logon(A) besides those that the session writes itself, such as
    /// Username(553).
    pub logon_fields: Vec<ExtraField>,
    /// The hook that adds fields to each message of the session layer, such as a signature to the
    /// Logon(A).
    pub admin_hook: Option<AdminHook>,
    /// The header fields of every message sent, such as SenderSubID(50) and TargetSubID(57).
    pub header_fields: Vec<ExtraField>,
    /// The credentials that the Logon(A) of a counterparty to an acceptor must have. A Logon(A)
    /// without them, or with a new password, is refused with a Logout(5), and the application is
    /// not asked.
    pub credentials: Option<Credentials>,
    /// Whether the application decides on each Logon(A). It gets `Event::LogonRequested` and calls
    /// `accept_logon` or `refuse_logon`.
    pub ask_logon: bool,

    /// Whether messages with CompIDs other than those of the session are refused (CheckCompID).
    pub check_comp_id: bool,
    /// Whether messages are refused whose SendingTime(52) is further from the session's clock than
    /// `max_latency` (CheckLatency). For messages that were left unread, see
    /// [`Session::set_unread_for`](super::Session::set_unread_for).
    pub check_latency: bool,
    /// The limit of `check_latency` (MaxLatency).
    pub max_latency: u64,
    /// Whether a possible duplicate of a message that was received before is refused if it has no
    /// OrigSendingTime(122) (RequiresOrigSendingTime).
    pub requires_orig_sending_time: bool,
    /// The dictionary checks of received messages. Without them only what the session itself needs
    /// is checked.
    pub validator: Option<Arc<dyn Validator>>,
    /// The data fields that the counterparty defines itself, whose values may have any bytes, as
    /// pairs of the length and the data field, such as `(5010, 5011)`. Those of the standard are
    /// always known. `DictionaryValidator::data_fields` returns those of dictionaries.
    pub data_fields: Vec<(u32, u32)>,
    /// The dictionary checks of the application's messages. A message with a fault is not sent
    /// (`SendError::Invalid`) and uses no number. Messages with a shared body (`send_shared`) and
    /// those of the session layer are not checked. There are no checks by default.
    pub outgoing_validator: Option<Arc<dyn Validator>>,

    /// Whether the numbers start at 1 with every logon (ResetOnLogon).
    pub reset_on_logon: bool,
    /// Whether the numbers start at 1 after a logout (ResetOnLogout).
    pub reset_on_logout: bool,
    /// Whether the numbers start at 1 after every connection on which the session has logged on,
    /// and for an initiator also after one whose answer refuses its Logon(A) (ResetOnDisconnect).
    /// Other connections leave them, unless the session has not begun. An acceptor whose process
    /// died while it was connected starts at 1 with a Logon(A) that has MsgSeqNum(34) 1.
    pub reset_on_disconnect: bool,
    /// Whether NextExpectedMsgSeqNum(789) is sent and used in Logon(A) messages
    /// (EnableNextExpectedMsgSeqNum).
    pub next_expected: bool,
    /// Whether LastMsgSeqNumProcessed(369) is sent in every header (EnableLastMsgSeqNumProcessed).
    pub last_processed: bool,

    /// The number of messages that one ResendRequest(2) requests; 0 is all
    /// (ResendRequestChunkSize).
    pub resend_request_chunk: u64,
    /// Whether the last ResendRequest(2) of a gap, or the only one, names the last missing number
    /// too. Otherwise it requests everything from its first number on (ClosedResendInterval).
    pub closed_resend_interval: bool,
    /// The time after which a gap without progress is requested again; 0 waits for ever. After
    /// `resend_request_retries` further requests the session ends.
    pub resend_request_timeout: u64,
    /// The most requests for a gap after the first one: see `resend_request_timeout`.
    pub resend_request_retries: u32,
    /// The limits of the messages that wait after a gap. A message that finds no room is dropped,
    /// and requested again when it is its turn.
    pub gap_queue: Limits,
    /// The limits of the part of a resend that is written at once. The next part follows when that
    /// one has been transmitted.
    pub resend_chunk: Limits,
    /// Whether the application decides on each message that is sent again, in
    /// [`Session::resend_part`](super::Session::resend_part), which then writes resends. Hosts of
    /// `fanfare-engine` set it for all their sessions.
    pub ask_resend: bool,
    /// The MsgTypes(35) of application messages that are never sent again: a resend has a gap fill
    /// in their place, and the application is not asked.
    pub gap_filled_types: Vec<Box<[u8]>>,
    /// The most ResendRequests(2) in a row with the same BeginSeqNo(7); 0 is no limit. One more
    /// logs the counterparty out, as it makes no progress. Of the requests within a second only one
    /// counts, as the answer may still be on its way. A pause of more than a minute begins a new
    /// count.
    pub repeated_resend_limit: u32,

    /// Whether application messages are accepted while the session has no connection. They get
    /// their numbers, are kept, and are sent when the counterparty requests them after the next
    /// logon. They are not accepted from the start of a connection to the end of its logon, with a
    /// store that keeps no messages, nor together with resets. While a logout is under way they are
    /// accepted in any case, on the same conditions. With a `schedule` they are accepted only
    /// within its hours, after the first connection has begun them, and the end of the hours
    /// discards those that were not sent: `Event::WaitingDiscarded`.
    pub queue_offline: bool,
    /// The size of the largest message that is received, in bytes. A longer one ends the session,
    /// with a Logout(5) that states its length and the limit: a resent message would be as long.
    /// Sessions that share a [`Scratch`](super::Scratch) have the limit of the `Scratch`, which is
    /// the largest `max_message` among them.
    pub max_message: usize,
    /// The length of the longest CompID, SubID or LocationID that is accepted in a header, in
    /// bytes. Those of the session itself may be longer. A Logon(A) with a longer one ends the
    /// connection without an answer, any other message is rejected.
    pub max_header_field: usize,
    /// The room that is reserved in the store for each message of the application, in bytes: a
    /// message of this size fits. A longer one is sent if the store happens to have more room at
    /// that place, and is otherwise refused with `SendError::Encode`. Messages with a shared body
    /// may have any size that the store takes.
    pub max_send: usize,
    /// The limit on the application messages sent in a stretch of time, and on those that wait.
    /// `None` is no limit.
    pub send_limit: Option<SendLimit>,
    /// The limit on the messages received in a stretch of time. `None` is no limit.
    pub receive_limit: Option<ReceiveLimit>,
    /// The length of the longest TestReqID(112) that is returned, in bytes. A TestRequest(1) with a
    /// longer one is rejected.
    pub max_test_req_id: usize,
    /// The limit on what the session writes by itself. `None` is no limit.
    pub answer_limit: Option<AnswerLimit>,
    /// The hours of the session. `None` is always.
    pub schedule: Option<Arc<Schedule>>,
    /// The hours of logons within the hours of the session. `None` is always. Outside of them the
    /// session is logged out but keeps its numbers (LogonTime, LogoutTime).
    pub logon_schedule: Option<Arc<Schedule>>,
}

impl Config {
    /// Returns a configuration with the usual defaults: HeartBtInt(108) 30 s, a TestRequest(1)
    /// after 1.2 and an end after 2.4 such intervals of silence, logon timeout 10 s, logout timeout
    /// 2 s, CompIDs and latency (120 s) checked, messages of up to 64 KiB with CompIDs of up to 64
    /// bytes.
    pub fn new(id: SessionId) -> Self {
        Self {
            precision: id.version.precision(),
            id,
            default_appl_ver_id: ApplVerId::Fix50Sp2,
            mirror_appl_ver_id: false,
            heart_bt_int: 30,
            bare_logon: false,
            heart_bt_int_range: (0, 86_400),
            logon_timeout: 10 * SECOND,
            logout_timeout: 2 * SECOND,
            test_request_percent: 120,
            gone_percent: 240,
            logon_fields: Vec::new(),
            admin_hook: None,
            header_fields: Vec::new(),
            credentials: None,
            ask_logon: false,
            check_comp_id: true,
            check_latency: true,
            max_latency: 120 * SECOND,
            requires_orig_sending_time: true,
            logout_on_silence: false,
            validator: None,
            data_fields: Vec::new(),
            outgoing_validator: None,
            reset_on_logon: false,
            reset_on_logout: false,
            reset_on_disconnect: false,
            next_expected: false,
            last_processed: false,
            resend_request_chunk: 0,
            closed_resend_interval: false,
            resend_request_timeout: 30 * SECOND,
            resend_request_retries: 3,
            gap_queue: Limits {
                messages: 10_000,
                bytes: 4 << 20,
            },
            resend_chunk: Limits {
                messages: 16,
                bytes: 8 << 10,
            },
            ask_resend: false,
            gap_filled_types: Vec::new(),
            repeated_resend_limit: 30,
            queue_offline: false,
            max_message: 64 << 10,
            max_header_field: MAX_HEADER_FIELD,
            max_send: 16 << 10,
            send_limit: None,
            receive_limit: None,
            max_test_req_id: 256,
            answer_limit: Some(AnswerLimit::DEFAULT),
            schedule: None,
            logon_schedule: None,
        }
    }

    /// The most times that the session waits for `logout_timeout` until its Logout(5) has been
    /// transmitted.
    pub const LOGOUT_PERIODS: u32 = 10;

    /// Returns the longest time that a logout takes, in nanoseconds, from the Logout(5) on. What
    /// waits for its rate then takes more.
    pub fn longest_logout(&self) -> u64 {
        let periods = u64::from(Self::LOGOUT_PERIODS) + 1;
        self.logout_timeout.saturating_mul(periods)
    }

    /// Returns whether a Logon(A) has the required credentials, if there are any.
    pub fn admits(&self, logon: &Message<'_>) -> bool {
        let wanted = self.credentials.as_ref();
        wanted.is_none_or(|wanted| wanted.admit(logon))
    }

    /// Returns the limit for [`peek_logon`](super::peek_logon) with a Logon(A) of this session:
    /// `max_header_field`, or the length of the session's own longest ID if that is more.
    pub fn header_field_limit(&self) -> usize {
        let sub_ids = self.id.sub.iter().flat_map(|sub| sub.ids());
        let ids = [&*self.id.sender, &*self.id.target]
            .into_iter()
            .chain(sub_ids);
        ids.map(str::len).fold(self.max_header_field, usize::max)
    }
}

/// The name and the password of a user.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Username(553).
    pub username: Box<str>,
    /// Password(554).
    pub password: Box<str>,
}

impl Credentials {
    /// Returns whether a Logon(A) has these credentials.
    pub fn admit(&self, logon: &Message<'_>) -> bool {
        let has = |tag, value: &str| logon.get(tag) == Some(value.as_bytes());
        has(tag::USERNAME, &self.username) && has(tag::PASSWORD, &self.password)
    }
}

/// Returns whether a Logon(A) asks for a new password, plain or encrypted. An empty one is none,
/// and so is one that equals Password(554), as it changes nothing.
pub fn asks_for_new_password(logon: &Message<'_>) -> bool {
    let value = |tag| logon.get(tag).filter(|new| !new.is_empty());
    let plain = value(tag::NEW_PASSWORD).filter(|new| logon.get(tag::PASSWORD) != Some(new));
    plain.is_some() || value(tag::ENCRYPTED_NEW_PASSWORD).is_some()
}

/// Formats without the password, as configurations are printed in logs.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Credentials");
        shown.field("username", &self.username);
        shown.finish_non_exhaustive()
    }
}

/// The default of [`Config::max_header_field`], in bytes.
pub const MAX_HEADER_FIELD: usize = 64;

/// A bound by count and by bytes, both of which apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most messages.
    pub messages: usize,
    /// The most bytes.
    pub bytes: usize,
}

/// A rate: at most a number of messages in any stretch of time of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The most messages; 0 counts as 1. The session remembers the times of as many messages, 8
    /// bytes each.
    pub messages: u32,
    /// The length of the stretch of time, in nanoseconds.
    pub interval: u64,
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (messages, millis) = (self.messages.max(1), self.interval / 1_000_000);
        write!(f, "more than {messages} messages in {millis} ms")
    }
}

/// A limit on messages sent.
///
/// The limit applies to new application messages. The session's own messages and resends do not
/// count, but a message never overtakes one with a lower number: what is sent while others wait,
/// waits for them. Messages with a shared body cannot wait and are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendLimit {
    /// The rate.
    pub rate: Rate,
    /// The most messages that may wait. They have their number and their SendingTime(52), and are
    /// in the store. One more is refused with `SendError::Throttled`. With a store that keeps no
    /// messages none can wait.
    pub queue: usize,
}

/// A limit on messages received. All messages count, except those that close a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveLimit {
    /// The rate.
    pub rate: Rate,
    /// The action for a message that exceeds the rate.
    pub action: OverRate,
}

/// A limit on what the session writes by itself, mostly in answer to what it receives:
/// Heartbeat(0), Reject(3), Logon(A) and ResendRequest(2). The store keeps these messages, so that
/// a counterparty could fill it with them. Beyond the limit the session ends, with a Logout(5) that
/// states the limit.
///
/// Resends, which the store does not keep, and messages of the application do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerLimit {
    /// The most messages a second, in the long run; 0 counts as 1.
    pub messages: u32,
    /// The most bytes a second, in the long run; 0 counts as 1.
    pub bytes: u32,
}

impl AnswerLimit {
    /// A limit of 10,000 messages and 1 MiB a second.
    pub const DEFAULT: Self = Self {
        messages: 10_000,
        bytes: 1 << 20,
    };
    /// The number of seconds whose allowance may be written at once.
    pub const BURST: u64 = 10;
}

impl fmt::Display for AnswerLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { messages, bytes } = self;
        write!(
            f,
            "more than {messages} answers or {bytes} bytes of them a second"
        )
    }
}

/// The action of a [`ReceiveLimit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverRate {
    /// The session ends, with the reason in a Logout(5). The message is not received.
    Disconnect,
    /// An application message is answered with BusinessMessageReject(j), before FIX.4.2 with
    /// Reject(3), and counts as received. The application does not get it. Messages of the session
    /// layer are accepted.
    Reject,
}
