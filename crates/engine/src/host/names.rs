//! The names in a client's certificate, and the sessions to which they admit the client.

use fanfare_fix::session::SessionId;
use fanfare_wire::text::Escaped;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The certificates that admit a counterparty to its session, where certificates are required.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ClientNames {
    /// Those with SenderCompID(49) of the Logon, the counterparty's CompID, as a name.
    #[default]
    CompId,
    /// Those with any of these names.
    Listed(Vec<ClientName>),
    /// All that a trusted root vouches for.
    Any,
}

/// A name of a certificate's subject. Names are compared byte by byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientName {
    /// The kind of the name; `None` matches any kind.
    pub kind: Option<NameKind>,
    /// The name.
    pub name: Box<str>,
}

/// The kinds of names that a certificate has for its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// A common name (CN) of the subject.
    CommonName,
    /// A DNS name among the alternative names.
    Dns,
    /// A URI among the alternative names.
    Uri,
    /// An e-mail address among the alternative names.
    Email,
}

impl NameKind {
    const ALL: [Self; 4] = [Self::CommonName, Self::Dns, Self::Uri, Self::Email];

    const fn prefix(self) -> &'static str {
        match self {
            Self::CommonName => "cn",
            Self::Dns => "dns",
            Self::Uri => "uri",
            Self::Email => "email",
        }
    }
}

/// The error for a text that is no name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("expected NAME, cn:NAME, dns:NAME, uri:NAME or email:NAME")]
pub struct ClientNameError;

impl FromStr for ClientName {
    type Err = ClientNameError;

    /// Parses `TRADER1`, which may be of any kind, or `cn:TRADER1`, `dns:trader.example`,
    /// `uri:urn:trader`, `email:trader@example.org`.
    fn from_str(text: &str) -> Result<Self, ClientNameError> {
        let kind = text.split_once(':').and_then(|(prefix, name)| {
            let is_it = |kind: &NameKind| kind.prefix().eq_ignore_ascii_case(prefix);
            Some((NameKind::ALL.into_iter().find(is_it)?, name))
        });
        let (kind, name) = match kind {
            Some((kind, name)) => (Some(kind), name),
            None => (None, text),
        };
        if name.is_empty() {
            return Err(ClientNameError);
        }
        let name = name.into();
        Ok(Self { kind, name })
    }
}

impl fmt::Display for ClientName {
    /// Writes the name with unsafe characters escaped, as names come from certificates.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(kind) = self.kind {
            write!(f, "{}:", kind.prefix())?;
        }
        Escaped::text(&self.name).fmt(f)
    }
}

/// The names of one certificate, shown in a refusal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CertificateNames(pub Vec<ClientName>);

/// Most names shown.
const SHOWN: usize = 8;

impl fmt::Display for CertificateNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(names) = self;
        if names.is_empty() {
            return f.write_str("nobody");
        }
        for (index, name) in names.iter().take(SHOWN).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{name}")?;
        }
        match names.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

impl ClientNames {
    /// Returns whether a certificate with these names admits its client to this session.
    #[must_use]
    pub fn admit(&self, id: &SessionId, certificate: &CertificateNames) -> bool {
        let CertificateNames(names) = certificate;
        match self {
            Self::Any => true,
            Self::CompId => names.iter().any(|name| name.name == id.target),
            Self::Listed(listed) => listed.iter().any(|wanted| {
                let is_it = |own: &ClientName| {
                    own.name == wanted.name && (wanted.kind.is_none() || own.kind == wanted.kind)
                };
                names.iter().any(is_it)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_fix::session::Version;

    fn names(texts: &[&str]) -> Vec<ClientName> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn names_have_kinds() {
        let of = |text: &str| text.parse::<ClientName>();
        let parsed = of("CN:TRADER").unwrap();
        assert_eq!(parsed.kind, Some(NameKind::CommonName));
        assert_eq!(&*parsed.name, "TRADER");
        assert_eq!(of("spiffe://desk/1").unwrap().kind, None);
        assert_eq!(of("uri:urn:a").unwrap().to_string(), "uri:urn:a");
        for wrong in ["", "dns:"] {
            assert_eq!(of(wrong), Err(ClientNameError), "{wrong}");
        }
    }

    #[test]
    fn a_certificate_is_for_its_names_alone() {
        let id = SessionId::new(Version::Fix44, "EXCHANGE", "TRADER");
        let certificate = |texts: &[&str]| CertificateNames(names(texts));
        let own = certificate(&["cn:Trader Ltd", "dns:TRADER"]);
        let other = certificate(&["cn:TRADER2", "dns:trader", "cn:TRADER\0"]);
        assert!(ClientNames::CompId.admit(&id, &own));
        assert!(!ClientNames::CompId.admit(&id, &other));
        assert!(!ClientNames::CompId.admit(&id, &certificate(&[])));
        let listed = ClientNames::Listed(names(&["X", "cn:TRADER2"]));
        assert!(listed.admit(&id, &other) && !listed.admit(&id, &own));
        let kind = ClientNames::Listed(names(&["uri:TRADER"]));
        assert!(!kind.admit(&id, &own), "it is a DNS name");
        assert!(ClientNames::Any.admit(&id, &other));
    }

    #[test]
    fn names_are_shown_without_what_moves_a_cursor() {
        let odd = ClientName {
            kind: Some(NameKind::CommonName),
            name: "a\x1b[2J\u{9b}b".into(),
        };
        let all = CertificateNames(vec![odd; 10]);
        let shown = all.to_string();
        assert!(shown.starts_with("cn:a\\u{1b}[2J\\u{9b}b, cn:"), "{shown}");
        assert!(shown.ends_with(" and 2 more"), "{shown}");
        assert_eq!(CertificateNames::default().to_string(), "nobody");
    }
}
