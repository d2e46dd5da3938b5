//! The certificates of a section.

use super::SettingsError;
use super::file::{Entry, Section};
use super::keys::{CERTIFICATE, GO_ROOTS, KEY, Key, LEVEL, OWN_CERTIFICATE, OWN_KEY, ROOTS};
use super::refused::plain_text;
use crate::host::{ClientName, ClientNames};
use std::path::PathBuf;

/// The PEM files of an acceptor with TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// Our certificate (SERVER_CERTIFICATE_FILE).
    pub certificate: PathBuf,
    /// Its private key (SERVER_CERTIFICATE_KEY_FILE).
    pub key: PathBuf,
    /// The roots of clients' certificates (CERTIFICATION_AUTHORITIES_FILE); `None` requires no
    /// certificate (CERTIFICATE_VERIFY_LEVEL).
    pub client_roots: Option<PathBuf>,
}

/// The PEM files of an initiator with TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientTlsFiles {
    /// The roots of a server's certificate (CERTIFICATION_AUTHORITIES_FILE).
    pub roots: PathBuf,
    /// Our certificate (CLIENT_CERTIFICATE_FILE) and its private key (CLIENT_CERTIFICATE_KEY_FILE),
    /// for servers that require one.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The name that a server's certificate must have (SNIHostName); `None` is the host connected
    /// to.
    pub name: Option<String>,
}

fn find<'a>(section: &Section<'a>, key: Key) -> Option<&'a Entry> {
    section.find_any(&key)
}

/// Returns the file that a required key names.
fn need(section: &Section<'_>, key: Key) -> Result<PathBuf, SettingsError> {
    let entry = find(section, key).ok_or_else(|| section.missing(key[0]))?;
    file(entry)
}

fn file(entry: &Entry) -> Result<PathBuf, SettingsError> {
    match entry.value.is_empty() {
        true => Err(entry.wrong("must name a file")),
        false => Ok(entry.value.clone().into()),
    }
}

/// Returns the TLS files of an acceptor. A setting that requests TLS is never ignored, unless
/// another one selects plain text.
pub(super) fn tls(section: &Section<'_>) -> Result<Option<TlsFiles>, SettingsError> {
    section.flag("SocketUseSSL", false)?;
    if plain_text(section).is_some() {
        return Ok(None);
    }
    let Some(certificate) = find(section, CERTIFICATE) else {
        return match asked_of_acceptor(section)? {
            Some(entry) => Err(entry.wrong(
                "needs a SERVER_CERTIFICATE_FILE (a PEM file; key stores are not read), or \
                 SocketUseSSL=N for plain text",
            )),
            None => Ok(None),
        };
    };
    let need = section.flag("NeedClientAuth", false)?;
    let client_roots = match level(section) {
        None if need => Some(self::need(section, ROOTS)?),
        // QuickFIX/Go requires a certificate of every client if it has roots to trust.
        None => section.find(GO_ROOTS).map(file).transpose()?,
        Some(entry) => match entry.value.as_str() {
            "0" if need => return Err(entry.wrong("cannot be set together with NeedClientAuth=Y")),
            "0" => None,
            "2" => Some(self::need(section, ROOTS)?),
            _ => return Err(entry.wrong("must be 0 or 2, without or with client certificates")),
        },
    };
    Ok(Some(TlsFiles {
        certificate: file(certificate)?,
        key: self::need(section, KEY)?,
        client_roots,
    }))
}

fn level<'a>(section: &Section<'a>) -> Option<&'a Entry> {
    section.find_any(&LEVEL)
}

/// Returns the setting that requests TLS in an acceptor without a certificate.
fn asked_of_acceptor<'a>(section: &Section<'a>) -> Result<Option<&'a Entry>, SettingsError> {
    if section.flag("SocketUseSSL", false)? {
        return Ok(section.find("SocketUseSSL"));
    }
    let demand = match section.flag("NeedClientAuth", false)? {
        true => section.find("NeedClientAuth"),
        false => level(section).filter(|entry| entry.value != "0"),
    };
    let files = || find(section, KEY).or_else(|| find(section, ROOTS));
    Ok(demand.or_else(files))
}

/// Returns the TLS files of an initiator, if SocketUseSSL=Y or a setting of TLS requests it, and
/// none selects plain text.
pub(super) fn client_tls(section: &Section<'_>) -> Result<Option<ClientTlsFiles>, SettingsError> {
    let files = [ROOTS, OWN_CERTIFICATE, OWN_KEY].into_iter();
    let is_asked = files.into_iter().any(|key| find(section, key).is_some())
        || section.find("SNIHostName").is_some();
    if !section.flag("SocketUseSSL", is_asked)? || plain_text(section).is_some() {
        return Ok(None);
    }
    let identity = match find(section, OWN_CERTIFICATE) {
        None if find(section, OWN_KEY).is_some() => {
            return Err(section.missing(OWN_CERTIFICATE[0]));
        }
        None => None,
        Some(entry) => Some((file(entry)?, need(section, OWN_KEY)?)),
    };
    Ok(Some(ClientTlsFiles {
        roots: need(section, ROOTS)?,
        identity,
        name: section.text("SNIHostName").map(str::to_owned),
    }))
}

/// Returns the certificates that admit a client to this session, where certificates are required:
/// those with its CompID as a name, unless `SocketClientCertificateNames` lists other names or
/// `SocketCheckClientName=N` admits all.
pub(super) fn client_names(
    section: &Section<'_>,
    tls: Option<&TlsFiles>,
) -> Result<ClientNames, SettingsError> {
    let demanded = tls.is_some_and(|files| files.client_roots.is_some());
    let named = section.find("SocketClientCertificateNames");
    let checks = section.flag("SocketCheckClientName", true)?;
    match named {
        Some(entry) if !demanded => Err(entry.wrong(
            "needs client certificates: NeedClientAuth=Y and CERTIFICATION_AUTHORITIES_FILE",
        )),
        Some(entry) if !checks => {
            Err(entry.wrong("cannot be set together with SocketCheckClientName=N"))
        }
        Some(entry) => {
            let names: Result<Vec<ClientName>, _> = entry
                .value
                .split(',')
                .map(|name| name.trim().parse())
                .collect();
            Ok(ClientNames::Listed(names.map_err(|why| entry.wrong(why))?))
        }
        None if checks => Ok(ClientNames::CompId),
        None => Ok(ClientNames::Any),
    }
}
