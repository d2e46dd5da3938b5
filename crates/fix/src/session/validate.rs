//! The hook for dictionary checks, and the reasons of Reject(3).

use std::any::Any;
use std::fmt;

use super::identity::ApplVerId;
use crate::codec::{Groups, Message};

/// The dictionary checks of one session. The session calls them once for each message received,
/// after the check of BeginString(8) and before those of SendingTime(52), the CompIDs and
/// MsgSeqNum(34). A fault is answered with Reject(3); before the logon it closes the connection.
pub trait Validator: Any + fmt::Debug + Send + Sync {
    /// Checks one message.
    ///
    /// # Errors
    /// Returns the first fault, in the order in which counterparties expect faults to be found.
    fn check(&self, message: &Message<'_>, context: &Context) -> Result<(), Fault>;

    /// Returns the repeating groups of a message that passed the check, for lookups by tag in the
    /// application's messages (see [`Message::with_groups`]). By default no groups are known.
    fn groups(&self, _message: &Message<'_>, _context: &Context) -> Option<&dyn Groups> {
        None
    }
}

/// The state of the session that a validator needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// The DefaultApplVerID(1137) of the counterparty's Logon(A), or `None` before the logon and
    /// outside FIXT.1.1.
    pub default_appl_ver_id: Option<ApplVerId>,
}

/// A fault in a message: the first one, in the order in which counterparties expect faults to be
/// found. It is displayed as the text of the reason and the tag in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The SessionRejectReason(373), which also has the text.
    pub reason: RejectReason,
    /// The RefTagID(371), as the tag was received: 0 and negative numbers too.
    pub tag: Option<i64>,
    /// The BusinessRejectReason(380). The fault is answered with BusinessMessageReject(j) if the
    /// version has it, and with Reject(3) otherwise.
    pub business: Option<BusinessReason>,
}

impl Fault {
    /// Returns a fault of the session layer.
    pub fn new(reason: RejectReason, tag: Option<u32>) -> Self {
        Self {
            reason,
            tag: tag.map(i64::from),
            business: None,
        }
    }

    /// Returns whether a field is broken, so that the fields cannot be told apart for certain: a
    /// tag is no number, BeginString(8), BodyLength(9) or CheckSum(10) is repeated, or
    /// MsgSeqNum(34) is no number. Only the first of these is answered: see `Session::unreadable`.
    pub(super) fn breaks_the_frame(&self) -> bool {
        match self.reason {
            RejectReason::DataFormat | RejectReason::TagWithoutValue => self.tag == Some(34),
            RejectReason::InvalidTagNumber => self.tag.is_none(),
            RejectReason::TagAppearsTwice | RejectReason::TagOutOfOrder => {
                matches!(self.tag, Some(8..=10))
            }
            _ => false,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason.text())?;
        self.tag.map_or(Ok(()), |tag| write!(f, " ({tag})"))
    }
}

/// A value of SessionRejectReason(373).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RejectReason {
    /// Invalid tag number.
    InvalidTagNumber = 0,
    /// Required tag missing.
    RequiredTagMissing = 1,
    /// Tag not defined for this message type.
    TagNotDefinedForMessage = 2,
    /// Undefined tag.
    UndefinedTag = 3,
    /// Tag specified without a value.
    TagWithoutValue = 4,
    /// Value is incorrect (out of range) for this tag.
    ValueIncorrect = 5,
    /// Incorrect data format for value.
    DataFormat = 6,
    /// Decryption problem.
    Decryption = 7,
    /// Signature problem.
    Signature = 8,
    /// CompID problem.
    CompId = 9,
    /// SendingTime accuracy problem.
    SendingTime = 10,
    /// Invalid MsgType.
    InvalidMsgType = 11,
    /// XML validation error.
    XmlValidation = 12,
    /// Tag appears more than once.
    TagAppearsTwice = 13,
    /// Tag specified out of required order.
    TagOutOfOrder = 14,
    /// Repeating group fields out of order.
    GroupOutOfOrder = 15,
    /// Incorrect NumInGroup count for repeating group.
    NumInGroup = 16,
    /// Non-data value includes the field delimiter.
    NonDataDelimiter = 17,
    /// Invalid or unsupported application version.
    ApplVersion = 18,
    /// Another fault, described by its text.
    Other = 99,
}

impl RejectReason {
    /// Returns the value of SessionRejectReason(373).
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the usual text of the reason, which counterparties know.
    pub const fn text(self) -> &'static str {
        match self {
            Self::InvalidTagNumber => "Invalid tag number",
            Self::RequiredTagMissing => "Required tag missing",
            Self::TagNotDefinedForMessage => "Tag not defined for this message type",
            Self::UndefinedTag => "Undefined tag",
            Self::TagWithoutValue => "Tag specified without a value",
            Self::ValueIncorrect => "Value is incorrect (out of range) for this tag",
            Self::DataFormat => "Incorrect data format for value",
            Self::Decryption => "Decryption problem",
            Self::Signature => "Signature problem",
            Self::CompId => "CompID problem",
            Self::SendingTime => "SendingTime accuracy problem",
            Self::InvalidMsgType => "Invalid MsgType",
            Self::XmlValidation => "XML validation error",
            Self::TagAppearsTwice => "Tag appears more than once",
            Self::TagOutOfOrder => "Tag specified out of required order",
            Self::GroupOutOfOrder => "Repeating group fields out of order",
            Self::NumInGroup => "Incorrect NumInGroup count for repeating group",
            Self::NonDataDelimiter => "Non-data value includes field delimiter",
            Self::ApplVersion => "Invalid or unsupported application version",
            Self::Other => "Message rejected",
        }
    }
}

/// A value of BusinessRejectReason(380).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BusinessReason {
    /// Another reason.
    Other = 0,
    /// Unknown ID.
    UnknownId = 1,
    /// Unknown security.
    UnknownSecurity = 2,
    /// Unsupported message type.
    UnsupportedMessageType = 3,
    /// Application not available.
    ApplicationNotAvailable = 4,
    /// Conditionally required field missing.
    ConditionallyRequiredFieldMissing = 5,
    /// Not authorised.
    NotAuthorised = 6,
    /// DeliverTo firm not available at this time.
    DeliverToNotAvailable = 7,
}

impl BusinessReason {
    /// Returns the value of BusinessRejectReason(380).
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the usual text of the reason, which counterparties know.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Other => "Other",
            Self::UnknownId => "Unknown ID",
            Self::UnknownSecurity => "Unknown Security",
            Self::UnsupportedMessageType => "Unsupported Message Type",
            Self::ApplicationNotAvailable => "Application not available",
            Self::ConditionallyRequiredFieldMissing => "Conditionally Required Field Missing",
            Self::NotAuthorised => "Not authorized",
            Self::DeliverToNotAvailable => "DeliverTo firm not available at this time",
        }
    }
}
