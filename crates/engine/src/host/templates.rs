//! Sessions made for counterparties that are not listed.

use super::allow::AllowList;
use super::names::ClientNames;
use super::store::StoreKind;
use fanfare_fix::session::{Config, ExtraField, SessionId, SubIds, Version};
use fanfare_fix::tag;

/// A template for the sessions of counterparties that are not listed. A Logon in one of its
/// versions whose CompIDs match the pattern has a session made for it.
///
/// At most `max_sessions` exist at a time. One more takes the place of the session that has been
/// without a connection for longest. Sessions with journals, and those that
/// [`HostHandle::make`](super::HostHandle::make) made, keep their places. If no place can be taken,
/// one more is refused. A session that a Logon made and that never logged on is removed with its
/// connection, and so is a journal that was created for it.
#[derive(Debug, Clone)]
pub struct Wildcard {
    /// The IDs that a Logon has to have.
    pub pattern: Pattern,
    /// The configuration of a session except for its identity, one for each version that may log
    /// on.
    pub templates: Vec<Config>,
    /// The store of each session.
    pub store: StoreKind,
    /// The most sessions at a time.
    pub max_sessions: usize,
    /// Whether several connections may log on with the same CompIDs. Each then has a session of its
    /// own, identified by a qualifier that no message has.
    pub qualified: bool,
    /// The networks that may log on, of those that may connect to the port.
    pub allow: AllowList,
    /// The certificates that admit a client to its session.
    pub names: ClientNames,
    /// A number that identifies the wildcard to the application; see
    /// [`Handler::on_made`](super::Handler::on_made).
    pub tag: usize,
}

/// The CompIDs, SubIDs and LocationIDs that a Logon must have to match a [`Wildcard`], from our
/// side. A SubID or LocationID that is `None` is ignored, and no part of the session's identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Our CompID: TargetCompID(56) of the Logon.
    pub sender: IdPattern,
    /// Their CompID: SenderCompID(49) of the Logon.
    pub target: IdPattern,
    /// Our SubID.
    pub sender_sub: Option<IdPattern>,
    /// Our LocationID.
    pub sender_location: Option<IdPattern>,
    /// Their SubID.
    pub target_sub: Option<IdPattern>,
    /// Their LocationID.
    pub target_location: Option<IdPattern>,
}

/// A CompID, SubID or LocationID, or a prefix of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdPattern {
    /// `DESK1`: this ID.
    Exactly(Box<str>),
    /// `DESK*`: every ID with this prefix; `*` is every ID.
    Prefix(Box<str>),
}

impl IdPattern {
    /// Parses `DESK1`, `DESK*` or `*`; `None` if a `*` is elsewhere, or the text is empty.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let prefix = text.strip_suffix('*');
        let literal = prefix.unwrap_or(text);
        if text.is_empty() || literal.contains(['*', '\x01']) {
            return None;
        }
        Some(match prefix {
            Some(prefix) => Self::Prefix(prefix.into()),
            None => Self::Exactly(text.into()),
        })
    }

    fn fits(&self, id: &str) -> bool {
        match self {
            Self::Exactly(own) => **own == *id,
            Self::Prefix(prefix) => id.starts_with(&**prefix),
        }
    }
}

impl Pattern {
    /// Makes a pattern that matches every CompID and ignores SubIDs and LocationIDs.
    #[must_use]
    pub fn any() -> Self {
        let any = || IdPattern::Prefix("".into());
        Self {
            sender: any(),
            target: any(),
            sender_sub: None,
            sender_location: None,
            target_sub: None,
            target_location: None,
        }
    }

    /// Returns the SubIDs and LocationIDs of the session for a Logon, if all its IDs match.
    fn fit(&self, id: &SessionId, logon: &SubIds) -> Option<SubIds> {
        if !self.sender.fits(&id.sender) || !self.target.fits(&id.target) {
            return None;
        }
        let part = |pattern: &Option<IdPattern>, named: &str| match pattern {
            None => Some("".into()),
            Some(pattern) => pattern.fits(named).then(|| named.into()),
        };
        Some(SubIds {
            sender: part(&self.sender_sub, &logon.sender)?,
            sender_location: part(&self.sender_location, &logon.sender_location)?,
            target: part(&self.target_sub, &logon.target)?,
            target_location: part(&self.target_location, &logon.target_location)?,
            qualifier: "".into(),
        })
    }
}

impl Wildcard {
    /// Makes a wildcard for any CompIDs and every version, with sessions like `template`.
    #[must_use]
    pub fn anybody(template: &Config, store: StoreKind, max_sessions: usize) -> Self {
        let of_version = |version: Version| {
            let mut config = template.clone();
            config.id.version = version;
            config.precision = version.precision();
            config
        };
        Self {
            pattern: Pattern::any(),
            templates: Version::ALL.into_iter().map(of_version).collect(),
            store,
            max_sessions,
            qualified: false,
            allow: AllowList::default(),
            names: ClientNames::CompId,
            tag: 0,
        }
    }

    /// Returns the configuration of the session for a Logon with these IDs, without a qualifier;
    /// `None` if the Logon does not match.
    pub(super) fn config(&self, id: &SessionId, logon: &SubIds) -> Option<Config> {
        let mut templates = self.templates.iter();
        let template = templates.find(|config| config.id.version == id.version)?;
        let sub = self.pattern.fit(id, logon)?;
        if self.store.is_journal() && is_ambiguous(id, &sub) {
            return None;
        }
        let header_fields = header_fields(template, &sub);
        Some(Config {
            id: id.clone().with_sub_ids(sub),
            header_fields,
            ..template.clone()
        })
    }

    /// Returns the longest logon timeout, in nanoseconds.
    pub(super) fn logon_timeout(&self) -> Option<u64> {
        let timeouts = self.templates.iter().map(|config| config.logon_timeout);
        timeouts.max()
    }
}

/// Returns whether another session could have a store of the same name: the CompID `DESK/1` and
/// the CompID `DESK` with the SubID `1` are written alike.
fn is_ambiguous(id: &SessionId, sub: &SubIds) -> bool {
    let comp_ids = [&id.sender, &id.target];
    let others = [
        &sub.sender,
        &sub.sender_location,
        &sub.target,
        &sub.target_location,
    ];
    let mut all = comp_ids.into_iter().chain(others);
    all.any(|id| id.contains(['/', ':', '>']))
}

/// Returns the header fields of the template, and those of the IDs that the session has from its
/// Logon.
pub(super) fn header_fields(template: &Config, sub: &SubIds) -> Vec<ExtraField> {
    let mut fields = template.header_fields.clone();
    for (tag, id) in [
        (tag::SENDER_SUB_ID, &sub.sender),
        (tag::TARGET_SUB_ID, &sub.target),
        (tag::SENDER_LOCATION_ID, &sub.sender_location),
        (tag::TARGET_LOCATION_ID, &sub.target_location),
    ] {
        let is_there = fields.iter().any(|(known, _)| *known == tag);
        if !id.is_empty() && !is_there {
            fields.push((tag, id.as_bytes().into()));
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(sender: &str, target: &str) -> Pattern {
        Pattern {
            sender: IdPattern::parse(sender).unwrap(),
            target: IdPattern::parse(target).unwrap(),
            ..Pattern::any()
        }
    }

    fn id(version: Version, sender: &str, target: &str) -> SessionId {
        SessionId::new(version, sender, target)
    }

    #[test]
    fn patterns_are_a_name_its_beginning_or_anything() {
        let fits = |pattern: &str, id: &str| IdPattern::parse(pattern).unwrap().fits(id);
        assert!(fits("A", "A") && !fits("A", "AB") && !fits("A", "a"));
        assert!(fits("A*", "A") && fits("A*", "AB") && !fits("A*", "BA"));
        assert!(fits("*", "") && fits("*", "x"));
        for wrong in ["", "*A", "A*B", "**", "A\x01"] {
            assert_eq!(IdPattern::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn nobody_gets_the_store_of_another_session() {
        let template = Config::new(id(Version::Fix44, "-", "-"));
        let store = StoreKind::Journal("unused".into(), crate::journal::Options::default());
        let stored = Wildcard::anybody(&template, store, 1);
        let plain = Wildcard::anybody(&template, StoreKind::default(), 1);
        let none = SubIds::default();
        for name in ["DESK/1", "DESK:1", "A->B"] {
            let id = id(Version::Fix44, "US", name);
            assert!(stored.config(&id, &none).is_none(), "{name}");
            assert!(plain.config(&id, &none).is_some(), "{name}");
        }
        assert!(
            stored
                .config(&id(Version::Fix44, "US", "DESK-1"), &none)
                .is_some()
        );
    }

    #[test]
    fn a_session_has_the_identity_of_its_logon() {
        let template = Config::new(id(Version::Fix44, "-", "-"));
        let mut wildcard = Wildcard::anybody(&template, StoreKind::default(), 1);
        wildcard.pattern = pattern("DESK", "TRADER*");
        wildcard.pattern.target_sub = IdPattern::parse("*");
        wildcard
            .templates
            .retain(|t| t.id.version == Version::Fix42);
        let logon = SubIds {
            target: "T7".into(),
            sender: "ours".into(),
            ..SubIds::default()
        };
        let trader = id(Version::Fix42, "DESK", "TRADER1");
        let config = wildcard.config(&trader, &logon).unwrap();
        assert_eq!(config.id.to_string(), "FIX.4.2:DESK->TRADER1/T7");
        assert_eq!(config.header_fields, [(57, b"T7"[..].into())]);
        let plain = wildcard.config(&trader, &SubIds::default()).unwrap();
        assert_eq!(plain.id.to_string(), "FIX.4.2:DESK->TRADER1");
        for other in [
            id(Version::Fix44, "DESK", "TRADER1"),
            id(Version::Fix42, "DESK2", "TRADER1"),
            id(Version::Fix42, "DESK", "CLERK"),
        ] {
            assert!(wildcard.config(&other, &logon).is_none(), "{other}");
        }
    }
}
