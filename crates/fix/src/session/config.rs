//! How a session behaves: switches and limits.

use std::fmt;
use std::sync::Arc;

use fanfare_wire::Precision;

use super::hook::AdminHook;
use super::identity::{ApplVerId, SessionId};
use super::schedule::Schedule;
use super::validate::Validator;
use crate::codec::Message;
use crate::tag;

/// A second in nanoseconds, the unit of every duration here.
pub const SECOND: u64 = 1_000_000_000;

/// A header or body field that a session adds by itself, for example Username(553) in its Logon.
pub type ExtraField = (u32, Box<[u8]>);

/// The behaviour of one session. `Config::new` has defaults that suit most; every duration is in
/// nanoseconds.
#[derive(Clone, Debug)]
pub struct Config {
    /// Identity.
    pub id: SessionId,
    /// DefaultApplVerID(1137) of our Logon; only FIXT.1.1 uses it.
    pub default_appl_ver_id: ApplVerId,
    /// An acceptor of FIXT.1.1 answers with the DefaultApplVerID(1137) that it is asked with, so
    /// that one session serves counterparties of every application version.
    pub mirror_appl_ver_id: bool,
    /// HeartBtInt(108) in seconds that an initiator asks for. An acceptor takes what it is asked.
    pub heart_bt_int: u32,
    /// Accepts a Logon without EncryptMethod(98) and HeartBtInt(108), as some test servers send:
    /// nothing is encrypted, and the interval is `heart_bt_int`. The standard requires both fields.
    pub bare_logon: bool,
    /// The HeartBtInt(108) that an acceptor agrees to: smallest and largest, both allowed.
    pub heart_bt_int_range: (u32, u32),
    /// How long a connection may last without a complete logon.
    pub logon_timeout: u64,
    /// How long the session waits for the answer to its Logout(5).
    pub logout_timeout: u64,
    /// Whether a counterparty that has fallen silent gets a Logout(5) before the connection is
    /// closed (SendLogoutBeforeDisconnectFromTimeout).
    pub logout_on_silence: bool,
    /// Digits of the second in SendingTime(52).
    pub precision: Precision,
    /// Fields of our Logon(A) besides the session's own, for example Username(553).
    pub logon_fields: Vec<ExtraField>,
    /// Adds fields to each message of the session layer, for example a signature to our Logon(A).
    pub admin_hook: Option<AdminHook>,
    /// Header fields of every message we send, for example SenderSubID(50), TargetSubID(57).
    pub header_fields: Vec<ExtraField>,
    /// What a counterparty's Logon to an acceptor has to have. Without them it is refused with a
    /// Logout(5), and the application is not asked.
    pub credentials: Option<Credentials>,
    /// Whether the application decides on each Logon: it gets `Event::LogonRequested` and calls
    /// `accept_logon` or `refuse_logon`.
    pub ask_logon: bool,

    /// Refuse messages whose CompIDs are not ours (CheckCompID).
    pub check_comp_id: bool,
    /// Refuse messages whose SendingTime(52) is further from our clock than `max_latency`
    /// (CheckLatency).
    pub check_latency: bool,
    /// See `check_latency` (MaxLatency).
    pub max_latency: u64,
    /// Refuse a possible duplicate of what was received before if it has no OrigSendingTime(122)
    /// (RequiresOrigSendingTime).
    pub requires_orig_sending_time: bool,
    /// Dictionary checks; without one, only what the session itself needs is checked.
    pub validator: Option<Arc<dyn Validator>>,
    /// The counterparty's own data fields, whose values may have any bytes: pairs of the length and
    /// the data field, such as `(5010, 5011)`. Those of the standard are known without it, and
    /// `DictionaryValidator::data_fields` returns those of dictionaries.
    pub data_fields: Vec<(u32, u32)>,
    /// Dictionary checks of the application's own messages: one with a fault is not sent
    /// (`SendError::Invalid`) and uses no number. Messages with a shared body (`send_shared`) and
    /// those of the session layer are not checked. None by default.
    pub outgoing_validator: Option<Arc<dyn Validator>>,

    /// Start at 1 with every Logon (ResetOnLogon).
    pub reset_on_logon: bool,
    /// Start at 1 after a Logout (ResetOnLogout).
    pub reset_on_logout: bool,
    /// Start at 1 after every loss of connection (ResetOnDisconnect).
    pub reset_on_disconnect: bool,
    /// Send and use NextExpectedMsgSeqNum(789) in Logons (EnableNextExpectedMsgSeqNum).
    pub next_expected: bool,
    /// Send LastMsgSeqNumProcessed(369) in every header (EnableLastMsgSeqNumProcessed).
    pub last_processed: bool,

    /// How many messages one ResendRequest(2) asks for; 0 is all (ResendRequestChunkSize).
    pub resend_request_chunk: u64,
    /// Whether the last of those requests, or the only one, names the last missing number, too;
    /// otherwise it asks for all from there on (ClosedResendInterval).
    pub closed_resend_interval: bool,
    /// A gap that makes no progress for this time is asked for again, at most
    /// `resend_request_retries` times, then the session ends; 0 waits for ever.
    pub resend_request_timeout: u64,
    /// See `resend_request_timeout`.
    pub resend_request_retries: u32,
    /// Limits of the messages that wait behind a gap. One that finds no room is dropped, and
    /// asked for again with the next gap.
    pub gap_queue: Limits,
    /// How much of a resend is written at once; the next part follows when that has been
    /// transmitted.
    pub resend_chunk: Limits,
    /// How many ResendRequests(2) in a row may have the same BeginSeqNo(7); 0 is no limit. One more
    /// logs the counterparty out, as it makes no progress. Of the requests within a second only one
    /// counts, as the answer may still be on its way. A pause of more than a minute begins a new
    /// count.
    pub repeated_resend_limit: u32,

    /// Take application messages also while not logged on: they get their numbers, are kept, and
    /// are sent when the counterparty asks for them after the next logon. Not with a store that
    /// keeps nothing, nor together with resets.
    pub queue_offline: bool,
    /// Largest message we take, in bytes.
    pub max_message: usize,
    /// Longest CompID, SubID or LocationID that is accepted in a header, in bytes; those of the
    /// session itself may be longer. A Logon with a longer one ends the connection without an
    /// answer, any other message is rejected.
    pub max_header_field: usize,
    /// Largest message we send, in bytes: the room that is reserved in the store.
    pub max_send: usize,
    /// How many application messages go out in a stretch of time, and how many may wait;
    /// `None` is no limit.
    pub send_limit: Option<SendLimit>,
    /// How many messages may come in a stretch of time; `None` is no limit.
    pub receive_limit: Option<ReceiveLimit>,
    /// Longest TestReqID(112) that is sent back, in bytes; a TestRequest(1) with a longer one is
    /// rejected.
    pub max_test_req_id: usize,
    /// Limit on what the session writes by itself; `None` is no limit.
    pub answer_limit: Option<AnswerLimit>,
    /// When the session is open; `None` is always.
    pub schedule: Option<Arc<Schedule>>,
    /// When Logons are welcome within the session's hours; `None` is always. Outside it the
    /// session is logged out but keeps its numbers (LogonTime, LogoutTime).
    pub logon_schedule: Option<Arc<Schedule>>,
}

impl Config {
    /// Returns a configuration with the defaults of the field: HeartBtInt 30 s, logon timeout 10 s,
    /// logout timeout 2 s, CompIDs and latency (120 s) checked, messages of up to 64 KiB with
    /// CompIDs of up to 64 bytes.
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

    /// Returns whether a Logon has the credentials that are required, if any are.
    pub fn admits(&self, logon: &Message<'_>) -> bool {
        let wanted = self.credentials.as_ref();
        wanted.is_none_or(|wanted| wanted.admit(logon))
    }

    /// Returns the limit for [`peek_logon`](super::peek_logon) with a Logon of this session:
    /// `max_header_field`, or the length of the session's own longest ID if that is more.
    pub fn header_field_limit(&self) -> usize {
        let sub_ids = self.id.sub.iter().flat_map(|sub| sub.ids());
        let ids = [&*self.id.sender, &*self.id.target]
            .into_iter()
            .chain(sub_ids);
        ids.map(str::len).fold(self.max_header_field, usize::max)
    }
}

/// The name of a user, and the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Username(553).
    pub username: Box<str>,
    /// Password(554).
    pub password: Box<str>,
}

impl Credentials {
    /// Returns whether a Logon has these credentials.
    pub fn admit(&self, logon: &Message<'_>) -> bool {
        let has = |tag, value: &str| logon.get(tag) == Some(value.as_bytes());
        has(tag::USERNAME, &self.username) && has(tag::PASSWORD, &self.password)
    }
}

/// Without the password: configurations are printed in logs.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Credentials");
        shown.field("username", &self.username);
        shown.finish_non_exhaustive()
    }
}

/// The default of [`Config::max_header_field`], in bytes.
pub const MAX_HEADER_FIELD: usize = 64;

/// A bound by count and by bytes; both hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most messages.
    pub messages: usize,
    /// Most bytes.
    pub bytes: usize,
}

/// A rate: at most a number of messages in any stretch of time of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Most messages; 0 counts as 1. The session remembers as many times, 8 bytes each.
    pub messages: u32,
    /// The stretch of time, in nanoseconds.
    pub interval: u64,
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (messages, millis) = (self.messages.max(1), self.interval / 1_000_000);
        write!(f, "more than {messages} messages in {millis} ms")
    }
}

/// A limit on what goes out.
///
/// It holds for new application messages. The session's own messages and resends do not count, but
/// a message never overtakes one with a lower number: what is sent while others wait, waits behind
/// them. Messages with a shared body cannot wait and are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendLimit {
    /// The rate.
    pub rate: Rate,
    /// How many messages may wait; they have their number and their SendingTime(52), and are in
    /// the store. One more is refused with `SendError::Throttled`. With a store that keeps nothing
    /// none can wait.
    pub queue: usize,
}

/// A limit on what comes in. All messages count but those that close a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveLimit {
    /// The rate.
    pub rate: Rate,
    /// What happens to a message that is one too many.
    pub action: OverRate,
}

/// A limit on what the session writes by itself, mostly in answer to what it receives: Heartbeats,
/// Rejects, Logons, ResendRequests. The store keeps these messages, so that a counterparty could
/// fill it with them. Beyond the limit the session ends, with a Logout(5) that states the limit.
///
/// Resends, which the store does not keep, and messages of the application do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerLimit {
    /// Most messages a second, in the long run; 0 counts as 1.
    pub messages: u32,
    /// Most bytes a second, in the long run; 0 counts as 1.
    pub bytes: u32,
}

impl AnswerLimit {
    /// 10,000 messages and 1 MiB a second.
    pub const DEFAULT: Self = Self {
        messages: 10_000,
        bytes: 1 << 20,
    };
    /// The allowance of this many seconds may be written at once.
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

/// See [`ReceiveLimit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverRate {
    /// The session ends, with the reason in a Logout(5). The message was not received.
    Disconnect,
    /// An application message is answered with BusinessMessageReject(j), before FIX.4.2 with
    /// Reject(3), and counts as received; it does not come to the application. The session's own
    /// messages are taken.
    Reject,
}
