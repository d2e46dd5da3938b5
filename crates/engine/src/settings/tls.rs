//! The certificates of a section.

use super::SettingsError;
use super::file::{Entry, Section};
use std::path::PathBuf;

/// The PEM files of an acceptor with TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// Our certificate (SERVER_CERTIFICATE_FILE).
    pub certificate: PathBuf,
    /// Its private key (SERVER_CERTIFICATE_KEY_FILE).
    pub key: PathBuf,
    /// Whom a client's certificate has to come from (CERTIFICATION_AUTHORITIES_FILE); `None` asks
    /// for none (CERTIFICATE_VERIFY_LEVEL).
    pub client_roots: Option<PathBuf>,
}

/// The PEM files of an initiator with TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientTlsFiles {
    /// Where a server's certificate has to come from (CERTIFICATION_AUTHORITIES_FILE).
    pub roots: PathBuf,
    /// Our certificate (CLIENT_CERTIFICATE_FILE) and its private key
    /// (CLIENT_CERTIFICATE_KEY_FILE), for servers that ask for one.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The name for which a server has to have its certificate (SNIHostName); `None`: the host
    /// that is connected to.
    pub name: Option<String>,
}

/// A key in the two spellings that QuickFIX has had, and as QuickFIX/Go has it.
type Key = [&'static str; 3];

const CERTIFICATE: Key = [
    "SERVER_CERTIFICATE_FILE",
    "ServerCertificateFile",
    GO_CERTIFICATE,
];
const KEY: Key = [
    "SERVER_CERTIFICATE_KEY_FILE",
    "ServerCertificateKeyFile",
    GO_KEY,
];
const ROOTS: Key = [
    "CERTIFICATION_AUTHORITIES_FILE",
    "CertificationAuthoritiesFile",
    GO_ROOTS,
];
const OWN_CERTIFICATE: Key = [
    "CLIENT_CERTIFICATE_FILE",
    "ClientCertificateFile",
    GO_CERTIFICATE,
];
const OWN_KEY: Key = [
    "CLIENT_CERTIFICATE_KEY_FILE",
    "ClientCertificateKeyFile",
    GO_KEY,
];
const GO_CERTIFICATE: &str = "SocketCertificateFile";
const GO_KEY: &str = "SocketPrivateKeyFile";
const GO_ROOTS: &str = "SocketCAFile";

fn find<'a>(section: &Section<'a>, key: Key) -> Option<&'a Entry> {
    key.into_iter().find_map(|key| section.find(key))
}

/// The file that a key names, which has to be there.
fn need(section: &Section<'_>, key: Key) -> Result<PathBuf, SettingsError> {
    let entry = find(section, key).ok_or_else(|| section.missing(key[0]))?;
    Ok(entry.value.clone().into())
}

/// Of an acceptor.
pub(super) fn tls(section: &Section<'_>) -> Result<Option<TlsFiles>, SettingsError> {
    let Some(certificate) = find(section, CERTIFICATE) else {
        // Never plain text where somebody asks for the contrary.
        return match section.find("SocketUseSSL") {
            Some(entry) if section.flag("SocketUseSSL", false)? => {
                Err(entry.wrong("needs a SERVER_CERTIFICATE_FILE, key stores are not read"))
            }
            _ => Ok(None),
        };
    };
    let level = section.find("CERTIFICATE_VERIFY_LEVEL");
    let client_roots = match level.or_else(|| section.find("CertificateVerifyLevel")) {
        None if section.flag("NeedClientAuth", false)? => Some(need(section, ROOTS)?),
        // QuickFIX/Go asks every client for a certificate when it is told whom to trust.
        None => section.text(GO_ROOTS).map(PathBuf::from),
        Some(entry) => match entry.value.as_str() {
            "0" => None,
            "2" => Some(need(section, ROOTS)?),
            _ => return Err(entry.wrong("0 (no client's certificate) or 2 (every client's)")),
        },
    };
    Ok(Some(TlsFiles {
        certificate: certificate.value.clone().into(),
        key: need(section, KEY)?,
        client_roots,
    }))
}

/// Of an initiator: with SocketUseSSL, or with somebody to trust.
pub(super) fn client_tls(section: &Section<'_>) -> Result<Option<ClientTlsFiles>, SettingsError> {
    if !section.flag("SocketUseSSL", find(section, ROOTS).is_some())? {
        return Ok(None);
    }
    let identity = match find(section, OWN_CERTIFICATE) {
        None => None,
        Some(entry) => Some((entry.value.clone().into(), need(section, OWN_KEY)?)),
    };
    Ok(Some(ClientTlsFiles {
        roots: need(section, ROOTS)?,
        identity,
        name: section.text("SNIHostName").map(str::to_owned),
    }))
}
