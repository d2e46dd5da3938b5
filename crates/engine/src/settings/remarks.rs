//! Settings that have no effect, reported to the user.

use super::dictionaries::versions;
use super::file::{Entry, Section};
use super::keys::{FILE_SIZES, MEMORY_SIZES, OF_PORTS};
use super::session::names_any_version;
use super::{SessionSettings, keys, refused};
use crate::host::StoreKind;
use fanfare_fix::session::{Role, Version};
use std::fmt;

/// A setting that has no effect here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Its line, from 1.
    pub line: usize,
    /// Its key, as the file has it.
    pub key: String,
    /// Its value.
    pub value: String,
    /// The only supported value, if there is one.
    pub only: Option<&'static str>,
}

impl Remark {
    fn of(entry: &Entry, only: Option<&'static str>) -> Self {
        Self {
            line: entry.line,
            key: entry.key.clone(),
            value: entry.value.clone(),
            only,
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            line,
            key,
            value,
            only,
        } = self;
        match only {
            Some(only) => write!(
                f,
                "line {line}: {key}={value} is not supported, only {only}"
            ),
            None => write!(f, "line {line}: {key} is not supported"),
        }
    }
}

/// Returns the remark on an entry that has no effect.
pub(super) fn remark(entry: &Entry) -> Option<Remark> {
    let Entry { key, value, .. } = entry;
    if keys::is_supported(key) || refused::is_met(entry) {
        return None;
    }
    let mut only = keys::only(key).peekable();
    let first = only.peek().copied();
    if only.any(|only| only.eq_ignore_ascii_case(value)) {
        return None;
    }
    Some(Remark::of(entry, first))
}

/// Returns the settings that have no effect on this session: SessionQualifier in an acceptor, as no
/// Logon has one; the limits of a port in an initiator; those of templates in any other session;
/// the sizes of a kind of store that it does not have; the settings of stores in one that keeps no
/// messages; those of TLS in plain text; and the dictionaries of other versions. `has_tls` is
/// whether any session of the file is inside TLS.
pub(super) fn unused(
    section: &Section<'_>,
    session: &SessionSettings,
    has_tls: bool,
) -> Vec<Remark> {
    let remark = |key, only| Some(Remark::of(section.find(key)?, Some(only)));
    let mut remarks = Vec::new();
    let of_stores: &[&[&str]] = match &session.store {
        StoreKind::Journal(..) | StoreKind::BothWays(..) => &[&MEMORY_SIZES],
        StoreKind::Memory(_) => &[&FILE_SIZES],
        StoreKind::NoResend(_) => &[&["FileStorePath"], &FILE_SIZES, &MEMORY_SIZES],
        StoreKind::Own(_) => &[],
    };
    let of_stores = of_stores.iter().copied().flatten();
    for key in of_stores.filter(|key| section.own.has(key)) {
        let only = match &session.store {
            StoreKind::Memory(_) => "with FileStorePath",
            StoreKind::NoResend(_) => "with PersistMessages=Y",
            _ => "without FileStorePath",
        };
        remarks.extend(remark(key, only));
    }
    if session.role == Role::Acceptor {
        remarks.extend(remark("SessionQualifier", "in an initiator"));
    }
    for key in OF_PORTS {
        // In [DEFAULT] the key may be for other sessions.
        if session.role == Role::Initiator && section.own.has(key) {
            remarks.extend(remark(key, "in an acceptor"));
        }
    }
    for key in ["DynamicQualifier", "MaxDynamicSessions"] {
        // In [DEFAULT] the key may be for other sessions.
        let is_own = section.own.has(key);
        if session.template.is_none() && is_own {
            remarks.extend(remark(key, "with AcceptorTemplate=Y"));
        }
    }
    remarks.extend(unused_of_tls(section, has_tls));
    remarks.extend(unused_dictionaries(section, session));
    remarks
}

/// Returns the dictionaries that have no effect on this version, and AppDataDictionary where
/// another key names that of the default version. Keys of [DEFAULT] are not among them, as they
/// may apply to other sessions.
fn unused_dictionaries(section: &Section<'_>, session: &SessionSettings) -> Vec<Remark> {
    if names_any_version(section) {
        return Vec::new();
    }
    let version = session.config.id.version;
    let (_, default) = versions(version, session.config.default_appl_ver_id);
    let default = format!("AppDataDictionary.{}", default.name());
    let is_replaced = section.find(&default).is_some();
    let only = |entry: &Entry| {
        let is = |key: &str| entry.key.eq_ignore_ascii_case(key);
        if version == Version::Fixt11 {
            let is_unused = is("AppDataDictionary") && is_replaced;
            let of_others = is("DataDictionary").then_some("without FIXT.1.1");
            return of_others.or(is_unused.then_some("without a file for the default version"));
        }
        let is_of_transport = is("TransportDataDictionary") || is("DefaultApplVerID");
        (is_of_transport || keys::is_app_dictionary(&entry.key)).then_some("with FIXT.1.1")
    };
    let own = section
        .effective()
        .filter(|entry| section.own.has(&entry.key));
    let remark = |entry| Some(Remark::of(entry, Some(only(entry)?)));
    own.filter_map(remark).collect()
}

/// Returns the settings of TLS that have no effect, because another one selects plain text.
fn unused_of_tls(section: &Section<'_>, has_tls: bool) -> Vec<Remark> {
    let Some(switch) = refused::plain_text(section) else {
        return Vec::new();
    };
    let only = match switch.key.eq_ignore_ascii_case("SSLEnable") {
        true => "without SSLEnable=N",
        false => "without SocketUseSSL=N",
    };
    let is_own = |entry: &Entry| section.own.has(&entry.key);
    let of_tls = section.effective().filter(|entry| {
        // A key of [DEFAULT] may apply to other sessions, unless the switch is in [DEFAULT], too.
        let is_meant = is_own(entry) || !is_own(switch) || !has_tls;
        is_meant && keys::is_of_tls(&entry.key) && !refused::is_no(&entry.value)
    });
    of_tls.map(|entry| Remark::of(entry, Some(only))).collect()
}
