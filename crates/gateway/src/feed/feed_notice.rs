//! Notices about a feed.

use crate::market::states::StateCounts;
use std::fmt;
use std::sync::Arc;

/// A notice about a feed for the operator of the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedNotice {
    /// A finding about a template's messages in a version.
    Template {
        /// The version of the sessions concerned.
        version: &'static str,
        /// The template.
        template: String,
        /// The finding.
        what: TemplateNotice,
    },
    /// A dictionary is of another version than the messages for which the configuration names it.
    Dictionary {
        /// The file.
        dictionary: String,
        /// The version of the dictionary.
        found: &'static str,
        /// The version of the messages.
        version: String,
    },
    /// The exchange's session on the feed has changed.
    Exchange(ExchangeState),
    /// A packet of the feed's lines could not be decoded, or its rest. Such packets are counted,
    /// and at most ten have a notice in 10 s.
    Packet {
        /// The name of the feed.
        channel: Arc<str>,
        /// The line, and the fault with its place in the packet.
        what: String,
    },
    /// Something happened to the market of a feed.
    Market {
        /// The name of the feed. It is shared, so that a notice allocates nothing for it.
        channel: Arc<str>,
        /// The event.
        what: MarketNotice,
    },
}

/// An event of the market of a feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MarketNotice {
    /// States of instruments have changed.
    States(StateCounts),
    /// The replay refused a request, or could not be reached, for this reason.
    Replay(String),
    /// A value exceeds what an event can hold, with its message, field and instrument.
    Value(String),
    /// A snapshot, or a packet of its lines, was not read, for this reason.
    Snapshot(String),
    /// The mapping or a limit leaves out entries: their number, and the reason.
    LeftOut(String),
    /// The feed has nearly as many instruments as it may have: the numbers, and what to do.
    Room(String),
    /// Something happened to the session of the feed, of FIX or of DBN.
    Session {
        /// The event.
        what: String,
        /// Whether it is other than a logon.
        is_trouble: bool,
    },
    /// The file of the feed was read to its end, is damaged, or has no event for the next hour.
    File(String),
    /// The number of gateways that publish the feed has changed.
    Plants(usize),
    /// No gateway has published the feed since the start.
    Unpublished,
    /// A gateway publishes the feed with books that differ from the configuration.
    OtherBooks,
}

/// A finding about a template's messages in a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateNotice {
    /// Fields have no place in the version. Reported at the first message.
    Fields {
        /// The fields that are left out, possibly none.
        left: String,
        /// The fields that are sent under other tags, possibly none.
        moved: String,
    },
    /// No message can be valid in the version, for this reason.
    Unfit(String),
    /// A message lacks a field that the version requires. Reported for the first message of the
    /// template.
    Lacking(String),
    /// A value is invalid for its field. Reported for the first one of the template.
    Value {
        /// The field.
        field: String,
        /// The value, with unprintable bytes escaped.
        value: String,
    },
}

/// The state of the exchange's session, by its messages on the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExchangeState {
    /// The exchange has logged on.
    LoggedOn,
    /// The exchange has logged out, with this text, escaped and possibly empty.
    LoggedOut(String),
    /// The exchange has announced the end of the feed.
    Done,
}

impl fmt::Display for FeedNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Template {
                version,
                template,
                what,
            } => what.write(f, version, template),
            Self::Dictionary {
                dictionary,
                found,
                version,
            } => write!(
                f,
                "feed: {dictionary}: the dictionary is of {found}, the messages are of {version}"
            ),
            Self::Market { channel, what } => write!(f, "feed {channel}: {what}"),
            Self::Packet { channel, what } => write!(f, "feed {channel}: {what}"),
            Self::Exchange(state) => match state {
                ExchangeState::LoggedOn => f.write_str("feed: the exchange has logged on"),
                ExchangeState::LoggedOut(text) if text.is_empty() => {
                    f.write_str("feed: the exchange has logged out")
                }
                ExchangeState::LoggedOut(text) => {
                    write!(f, "feed: the exchange has logged out: {text}")
                }
                ExchangeState::Done => f.write_str("feed: the exchange has ended the feed"),
            },
        }
    }
}

impl fmt::Display for MarketNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = match self {
            Self::Replay(why) => return write!(f, "replay: {why}"),
            Self::Value(what)
            | Self::Snapshot(what)
            | Self::LeftOut(what)
            | Self::Room(what)
            | Self::File(what)
            | Self::Session { what, .. } => return f.write_str(what),
            Self::Plants(0) => return f.write_str("no gateway publishes it"),
            Self::Plants(1) => return f.write_str("1 gateway publishes it"),
            Self::Plants(count) => return write!(f, "{count} gateways publish it"),
            Self::Unpublished => {
                return f.write_str(
                    "no gateway has published it since the start: are channel, domain, topics and \
                     partition those of [feed.edges] there?",
                );
            }
            Self::OtherBooks => {
                return f.write_str(
                    "a gateway publishes it with books of another kind, depth, numbering or \
                     rules than [edge.book] has: its events are left out",
                );
            }
            Self::States(counts) => counts,
        };
        let all = counts.all();
        let plural = if all == 1 { "" } else { "s" };
        write!(f, "of {all} instrument{plural}, {} live", counts.live)?;
        for (count, state) in [
            (counts.recovering, "recovering"),
            (counts.stale, "stale"),
            (counts.closed, "closed"),
        ] {
            if count > 0 {
                write!(f, ", {count} {state}")?;
            }
        }
        Ok(())
    }
}

impl TemplateNotice {
    fn write(&self, f: &mut fmt::Formatter<'_>, version: &str, template: &str) -> fmt::Result {
        match self {
            Self::Fields { left, moved } => {
                write!(f, "feed: of template {template}, {version} sessions")?;
                let separator = if left.is_empty() { "" } else { ", and" };
                if !left.is_empty() {
                    write!(f, " do not get {left}")?;
                }
                match moved.is_empty() {
                    true => Ok(()),
                    false => write!(f, "{separator} get {moved}"),
                }
            }
            Self::Unfit(why) => write!(
                f,
                "feed: {version} sessions do not get messages of template {template}: {why}"
            ),
            Self::Lacking(why) => write!(
                f,
                "feed: {version} sessions did not get a message of template {template}: {why}; \
                 more of this template are only counted"
            ),
            Self::Value { field, value } => write!(
                f,
                "feed: {version} sessions did not get {field} of a message of template \
                 {template}: it cannot be \"{value}\"; more of this template are only counted"
            ),
        }
    }
}

impl FeedNotice {
    /// Returns whether it is anything but a Logon, the end of the feed, or complete books.
    #[must_use]
    pub fn is_trouble(&self) -> bool {
        match self {
            Self::Exchange(state) => {
                !matches!(state, ExchangeState::LoggedOn | ExchangeState::Done)
            }
            Self::Market {
                what: MarketNotice::States(counts),
                ..
            } => counts.recovering + counts.stale > 0,
            Self::Market {
                what: MarketNotice::Session { is_trouble, .. },
                ..
            } => *is_trouble,
            Self::Market {
                what: MarketNotice::Plants(count),
                ..
            } => *count == 0,
            _ => true,
        }
    }
}
