//! Sections that are templates of sessions.

use super::SettingsError;
use super::file::Section;
use super::keys::TEMPLATE;
use crate::host::{IdPattern, Pattern};
use fanfare_fix::session::Role;

/// A template by which an acceptor makes sessions (AcceptorTemplate, DynamicSession,
/// DynamicSessions).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// The CompIDs, SubIDs and LocationIDs.
    pub pattern: Pattern,
    /// The most sessions at a time (MaxDynamicSessions).
    pub max_sessions: usize,
    /// Whether several connections may log on with the same CompIDs (DynamicQualifier).
    pub qualified: bool,
    /// The line of its section, the same for all entries of one template.
    pub line: usize,
}

/// The error for a `*` outside of a template.
pub(super) const NO_TEMPLATE: &str =
    "`*` is only allowed in a template, a section with AcceptorTemplate=Y";

/// Default limit of sessions made for unlisted counterparties.
const MOST: u64 = 250;

impl Template {
    /// Returns the template of the section; `None` if it is a session.
    pub(super) fn read(section: &Section<'_>, role: Role) -> Result<Option<Self>, SettingsError> {
        let mut is_template = section.own.is_default;
        for key in TEMPLATE {
            let is_on = section.flag(key, false)?;
            if let Some(entry) = section
                .find(key)
                .filter(|_| is_on && role == Role::Initiator)
            {
                return Err(entry.wrong("must be N in an initiator, which has no templates"));
            }
            is_template |= is_on;
        }
        let qualified = section.flag("DynamicQualifier", false)?;
        let max_sessions = section.number("MaxDynamicSessions", MOST, 1..=10_000)? as usize;
        if !is_template {
            return Ok(None);
        }
        let id = |key| match section.find(key) {
            None => Ok(None),
            Some(entry) => match IdPattern::parse(&entry.value) {
                Some(pattern) => Ok(Some(pattern)),
                None => Err(entry.wrong("must be a name, a prefix followed by `*`, or `*`")),
            },
        };
        let any = || IdPattern::Prefix("".into());
        let pattern = Pattern {
            sender: id("SenderCompID")?.unwrap_or_else(any),
            target: id("TargetCompID")?.unwrap_or_else(any),
            sender_sub: id("SenderSubID")?,
            sender_location: id("SenderLocationID")?,
            target_sub: id("TargetSubID")?,
            target_location: id("TargetLocationID")?,
        };
        Ok(Some(Self {
            pattern,
            max_sessions,
            qualified,
            line: section.own.line,
        }))
    }
}
