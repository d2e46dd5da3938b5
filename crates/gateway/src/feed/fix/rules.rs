//! The rules that apply to all templates in one version, and the replacements of fields for which
//! the version has other ones.

use crate::feed::config::Feed;
use fanfare_fix::dict::{Dictionary, Version};
use fanfare_fix::tag;
use fanfare_wire::Precision;
use std::sync::Arc;

/// The rules of a version, and the options that its consumers agreed to.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) version: Version,
    pub(super) dictionary: Arc<Dictionary>,
    /// The most digits of a time.
    pub(super) precision: Precision,
    /// The offset added to the tags of fields that have no place. Without it, they are left out.
    pub(super) user_tags: Option<u32>,
    /// The feed's tags that are sent under others.
    tags: Arc<[(u32, u32)]>,
}

/// The value that fills a required field that the feed does not have.
pub(super) enum Filler {
    /// This text, if the other field is present at the same level.
    Text(&'static [u8], Option<u32>),
    /// The value of another field of the message.
    Field(u32),
}

impl Rules {
    pub(super) fn new(version: Version, dictionary: Arc<Dictionary>, feed: &Feed) -> Self {
        Self {
            version,
            dictionary,
            precision: precision(version),
            user_tags: feed.user_tags,
            tags: feed.mapped_tags().into(),
        }
    }

    /// Returns the tag that the configuration assigns to a tag of the feed.
    pub(super) fn mapped(&self, tag: u32) -> Option<u32> {
        let found = self.tags.iter().find(|(from, _)| *from == tag);
        found.map(|(_, to)| *to)
    }

    /// Returns the tag in the user-defined range of a field that has no place in the version.
    pub(super) fn user_tag(&self, tag: u32) -> Option<u32> {
        let first = self.user_tags?;
        match tag {
            // The sender and the number of a message on its line are worth keeping, and its target
            // is not.
            tag::TARGET_COMP_ID | tag::APPL_VER_ID => None,
            1..tag::USER_TAGS => tag.checked_add(first),
            _ => Some(tag),
        }
    }
}

/// Returns the precision of times: seconds up to FIX.4.1, milliseconds up to FIX.5.0SP1, and then
/// as available.
pub(super) fn precision(version: Version) -> Precision {
    match version {
        Version::Fix40 | Version::Fix41 => Precision::Seconds,
        Version::Fix50Sp2 => Precision::Nanos,
        _ => Precision::Millis,
    }
}

/// Returns whether each consumer's session writes the header field itself, so that leaving it out
/// is not reported.
pub(super) const fn is_own(tag: u32) -> bool {
    matches!(
        tag,
        tag::BEGIN_STRING
            | tag::BODY_LENGTH
            | tag::CHECK_SUM
            | tag::MSG_TYPE
            | tag::MSG_SEQ_NUM
            | tag::SENDER_COMP_ID
            | tag::SENDING_TIME
            | tag::TARGET_COMP_ID
            | tag::APPL_VER_ID
    )
}

/// Returns another field with the same meaning, for versions that have no place for the feed's own:
/// MsgSeqNum(34) of the feed is ApplSeqNum(1181), LastMsgSeqNumProcessed(369) of the feed is
/// ApplLastSeqNum(1350), and MDPriceLevel(1023) is MDEntryPositionNo(290).
pub(super) const fn other_tag(tag: u32, is_body: bool) -> Option<u32> {
    match (tag, is_body) {
        (tag::MSG_SEQ_NUM, true) => Some(1181),
        (tag::LAST_MSG_SEQ_NUM_PROCESSED, true) => Some(1350),
        (1023, _) => Some(290),
        _ => None,
    }
}

/// Returns the value that fills a required field that the feed does not have: see docs/gateway.md.
pub(super) const fn filler(tag: u32) -> Option<Filler> {
    Some(match tag {
        // Symbol: the standard's own text for an absent symbol, beside SecurityID.
        55 => Filler::Text(b"[N/A]", Some(48)),
        // QuoteReqID, MDReqID, SecurityReqID, SecurityResponseID: a number of its own.
        131 | 262 | 320 | 322 => Filler::Field(tag::MSG_SEQ_NUM),
        // SecurityResponseType: a list of securities.
        323 => Filler::Text(b"4", None),
        // TotalNumSecurities: TotNumReports.
        393 => Filler::Field(911),
        // TransactTime: SendingTime of the feed.
        60 => Filler::Field(tag::SENDING_TIME),
        _ => return None,
    })
}
