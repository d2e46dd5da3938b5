//! Settings of security, or of a store, that are not supported. A session that ignored them would
//! send passwords in plain text, or keep its messages in another place, so it does not start.

use super::file::{Entry, Section};
use super::{SettingsError, SettingsFault, keys};
use fanfare_fix::session::Role;

/// Checks that all settings of security and of a store are supported.
pub(super) fn check(section: &Section<'_>, role: Role) -> Result<(), SettingsError> {
    // The other settings of TLS may remain.
    let plain = plain_text(section).is_some();
    for entry in section.effective() {
        let Some(instead) = instead(entry, role) else {
            continue;
        };
        let is_detail = !is_yes(&entry.value) && instead.is_tls();
        if plain && is_detail {
            continue;
        }
        let (line, key) = (entry.line, entry.key.clone());
        let instead = instead.text(role);
        let fault = SettingsFault::Refused { key, instead };
        return Err(SettingsError { line, fault });
    }
    Ok(())
}

/// Returns the setting that selects plain text, whatever the other settings of TLS are: a
/// SocketUseSSL that is off, or else an SSLEnable that is off. One without a value selects nothing.
pub(super) fn plain_text<'a>(section: &Section<'a>) -> Option<&'a Entry> {
    let switch = section.find("SocketUseSSL");
    let switch = switch.or_else(|| section.find("SSLEnable"));
    switch.filter(|entry| !entry.value.is_empty() && is_no(&entry.value))
}

/// Checks that no path has a variable, which QuickFIX/J replaces. It would be a part of the name.
pub(super) fn check_paths(section: &Section<'_>) -> Result<(), SettingsError> {
    let has_variable = |value: &str| {
        let behind = value.split_once("${");
        behind.is_some_and(|(_, behind)| behind.contains('}'))
    };
    let mut paths = section
        .effective()
        .filter(|entry| keys::is_path(&entry.key));
    match paths.find(|entry| has_variable(&entry.value)) {
        Some(entry) => Err(entry.wrong("${…} is not replaced here: write the path itself")),
        None => Ok(()),
    }
}

/// Returns whether the behaviour that this entry requests is always present and needs no remark.
pub(super) fn is_met(entry: &Entry) -> bool {
    let Entry { key, value, .. } = entry;
    let same = |known: &&str| known.eq_ignore_ascii_case(key);
    if PROTOCOLS.iter().any(same) {
        return has_tls_1_2(value);
    }
    if key.eq_ignore_ascii_case("EndpointIdentificationAlgorithm") {
        return value.eq_ignore_ascii_case("HTTPS");
    }
    NONE_WHERE_OFF.iter().any(same) && is_no(value)
}

/// The alternative to a setting.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Instead {
    /// Files in PEM form.
    Pem,
    /// The supported switch.
    Switch,
    /// None: TLS 1.2 and 1.3 are supported.
    Protocols,
    /// None: the suites are those of the library.
    Suites,
    /// The requirement of clients' certificates.
    Clients,
    /// The name in the server's certificate.
    Name,
    /// No known alternative.
    Security,
    /// Files or memory.
    Store,
}

impl Instead {
    const fn is_tls(self) -> bool {
        !matches!(self, Self::Security | Self::Store)
    }

    const fn text(self, role: Role) -> &'static str {
        match (self, role) {
            (Self::Pem, Role::Acceptor) => {
                "key stores are not read; name PEM files with SERVER_CERTIFICATE_FILE, \
                 SERVER_CERTIFICATE_KEY_FILE and CERTIFICATION_AUTHORITIES_FILE"
            }
            (Self::Pem, Role::Initiator) => {
                "key stores are not read; name PEM files with CERTIFICATION_AUTHORITIES_FILE, \
                 CLIENT_CERTIFICATE_FILE and CLIENT_CERTIFICATE_KEY_FILE"
            }
            (Self::Switch, Role::Acceptor) => {
                "SERVER_CERTIFICATE_FILE and SERVER_CERTIFICATE_KEY_FILE switch TLS on, \
                 SocketUseSSL=N selects plain text"
            }
            (Self::Switch, Role::Initiator) => {
                "CERTIFICATION_AUTHORITIES_FILE switches TLS on, SocketUseSSL=N selects plain text"
            }
            (Self::Protocols, _) => "TLS 1.2 and 1.3 are always enabled; remove the setting",
            (Self::Suites, _) => "the cipher suites cannot be chosen; remove the setting",
            (Self::Clients, _) => {
                "NeedClientAuth=Y with CERTIFICATION_AUTHORITIES_FILE demands certificates of \
                 clients"
            }
            (Self::Name, _) => "SNIHostName is the name in the server's certificate",
            (Self::Security, _) => "security settings are never ignored; remove the setting",
            (Self::Store, _) => {
                "messages are kept in files (FileStorePath) or in memory, and logged in files \
                 (FileLogPath)"
            }
        }
    }
}

/// Returns the alternative to this entry, if it is not supported.
fn instead(entry: &Entry, role: Role) -> Option<Instead> {
    if keys::is_known(&entry.key) || is_met(entry) {
        return None;
    }
    let key = entry.key.to_ascii_lowercase();
    if KINDS_OF_STORES.iter().any(|kind| key.starts_with(kind)) {
        return Some(Instead::Store);
    }
    let named = NAMED
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(&key));
    if let Some((_, instead)) = named {
        // An acceptor has no use for the name of a server.
        let idle = *instead == Instead::Name && role == Role::Acceptor;
        return (!idle).then_some(*instead);
    }
    let asks = MARKS.iter().any(|mark| key.contains(mark)) && !is_no(&entry.value);
    asks.then_some(Instead::Security)
}

fn is_yes(value: &str) -> bool {
    ["Y", "YES", "TRUE", "ON", "1"].contains(&value.to_ascii_uppercase().as_str())
}

pub(super) fn is_no(value: &str) -> bool {
    ["", "N", "NO", "FALSE", "OFF", "0", "NONE"].contains(&value.to_ascii_uppercase().as_str())
}

/// Returns whether a list of protocols, in the notation of any engine, permits TLS 1.2: `TLSv1.2`,
/// `TLSv1_2`, `Tls12`, `all -SSLv2`.
fn has_tls_1_2(value: &str) -> bool {
    let value = value.to_ascii_lowercase().replace(['.', '_', 'v'], "");
    let named = |name: &str| {
        let mut words = value.split([',', ' ', ';', '|', '+', ':']);
        words.any(|word| word == name)
    };
    ["tls12", "all", "tls10", "tls11", "ssl30"]
        .into_iter()
        .any(named)
}

/// Keys with a list of protocols, or the lowest of them.
const PROTOCOLS: &[&str] = &[
    "EnabledProtocols",
    "SocketMinimumTLSVersion",
    "SSLProtocol",
    "SSLProtocols",
    "SSL_PROTOCOL",
];

/// Switches that are off by default.
const NONE_WHERE_OFF: &[&str] = &[
    "SSLCheckCertificateRevocation",
    "SSLEnable",
    "SSLRequireClientCertificate",
    "UseSSL",
];

/// Keys of other engines.
const NAMED: &[(&str, Instead)] = &[
    ("CERTIFICATE_REVOCATION_LIST_DIRECTORY", Instead::Security),
    ("CERTIFICATE_REVOCATION_LIST_FILE", Instead::Security),
    ("CERTIFICATION_AUTHORITIES_DIRECTORY", Instead::Pem),
    ("CipherSuites", Instead::Suites),
    ("EnabledProtocols", Instead::Protocols),
    ("EndpointIdentificationAlgorithm", Instead::Security),
    ("KeyManagerFactoryAlgorithm", Instead::Pem),
    ("KeyStoreType", Instead::Pem),
    ("SSLCACertificate", Instead::Pem),
    ("SSLCertificate", Instead::Pem),
    ("SSLCertificatePassword", Instead::Pem),
    ("SSLCheckCertificateRevocation", Instead::Security),
    ("SSLEnable", Instead::Switch),
    ("SSLProtocol", Instead::Protocols),
    ("SSLProtocols", Instead::Protocols),
    ("SSLRequireClientCertificate", Instead::Clients),
    ("SSLServerName", Instead::Name),
    ("SSL_CIPHER_SUITE", Instead::Suites),
    ("SSL_PROTOCOL", Instead::Protocols),
    ("SocketKeyStore", Instead::Pem),
    ("SocketKeyStorePassword", Instead::Pem),
    ("SocketMinimumTLSVersion", Instead::Protocols),
    ("SocketTrustStore", Instead::Pem),
    ("SocketTrustStorePassword", Instead::Pem),
    ("TrustManagerFactoryAlgorithm", Instead::Pem),
    ("TrustStoreType", Instead::Pem),
    ("UseSSL", Instead::Switch),
];

/// Parts of the names of keys about security, in lower case.
const MARKS: &[&str] = &[
    "ssl",
    "tls",
    "keystore",
    "truststore",
    "cert",
    "cipher",
    "secur",
    "encrypt",
    "auth",
];

/// Prefixes of the keys of stores and logs in databases, in lower case.
const KINDS_OF_STORES: &[&str] = &[
    "database",
    "jdbc",
    "mongo",
    "mysql",
    "odbc",
    "postgresql",
    "redis",
    "sleepycat",
    "sqlite",
    "sqllog",
    "sqlstore",
];

#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let named = NAMED.iter().map(|(key, _)| *key);
    named.chain(PROTOCOLS.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    const ACCEPTOR: &str = "[DEFAULT]\nConnectionType=acceptor\nSocketAcceptPort=1\n\
        SenderCompID=A\nTargetCompID=B\n[SESSION]\nBeginString=FIX.4.4\n";
    const INITIATOR: &str = "[DEFAULT]\nConnectionType=initiator\nSocketConnectPort=1\n\
        SocketConnectHost=h\nHeartBtInt=30\nSenderCompID=A\nTargetCompID=B\nUsername=u\n\
        Password=p\n[SESSION]\nBeginString=FIX.4.4\n";

    /// Returns the errors for these lines in both roles; empty if they are accepted.
    fn said(lines: &str) -> [String; 2] {
        [ACCEPTOR, INITIATOR].map(|base| {
            let parsed = Settings::parse(&format!("{base}{lines}"));
            parsed.map_or_else(|error| error.to_string(), |_| String::new())
        })
    }

    #[test]
    fn what_asks_for_tls_in_another_engines_words_is_refused() {
        for (key, _) in NAMED {
            for said in said(&format!("{key}=Y\n")) {
                let is_name = key.eq_ignore_ascii_case("SSLServerName");
                let expected = format!("{key} is not supported: ");
                assert!(said.contains(&expected) || is_name, "{key}: {said}");
            }
        }
        let [acceptor, initiator] = said("UseSSL=Y\nSocketKeyStore=keys.jks\n");
        assert!(acceptor.starts_with("line 8: UseSSL is not"), "{acceptor}");
        assert!(acceptor.contains("SERVER_CERTIFICATE_FILE"), "{acceptor}");
        assert!(
            initiator.contains("CERTIFICATION_AUTHORITIES_FILE"),
            "{initiator}"
        );
    }

    #[test]
    fn what_sounds_like_security_is_refused_and_its_value_not_shown() {
        for key in [
            "SslAnything",
            "StartTLS",
            "MyKeyStorePassword",
            "PinnedCertHash",
            "EncryptMethod",
            "AuthToken",
            "SecurityProvider",
        ] {
            for said in said(&format!("{key}=hunter2\n")) {
                assert!(
                    said.contains(&format!(": {key} is not supported")),
                    "{said}"
                );
                assert!(!said.contains("hunter2"), "{said}");
            }
        }
        assert_eq!(said("EncryptMethod=0\nSslAnything=N\n"), ["", ""]);
    }

    #[test]
    fn plain_text_that_is_asked_for_excuses_the_rest() {
        let lines = "SocketUseSSL=N\nSocketKeyStore=k\nSocketTrustStorePassword=p\n\
            CipherSuites=X\n";
        assert_eq!(said(lines), ["", ""]);
        let lines = "SSLEnable=N\nSSLCertificate=c.pfx\nSSLProtocols=None\n";
        assert_eq!(said(lines), ["", ""]);
        // A setting that turns TLS on contradicts it.
        assert!(said("SocketUseSSL=N\nUseSSL=Y\n")[0].contains("UseSSL"));
        let both = said("SocketUseSSL=Y\nSSLEnable=N\nSocketKeyStore=k\n");
        assert!(both[0].contains("SocketKeyStore is not"), "{both:?}");
    }

    #[test]
    fn what_is_done_anyhow_is_taken_without_a_word() {
        let lines = "EnabledProtocols=TLSv1.2,TLSv1.3\nSSL_PROTOCOL=all -SSLv2\nUseSSL=N\n\
            SocketMinimumTLSVersion=TLS12\nSSLProtocols=Tls12|Tls13\nSSLValidateCertificates=Y\n\
            EndpointIdentificationAlgorithm=HTTPS\nSSLCheckCertificateRevocation=N\nUseSNI=Y\n";
        for base in [ACCEPTOR, INITIATOR] {
            let settings = Settings::parse(&format!("{base}{lines}")).unwrap();
            assert_eq!(settings.remarks, []);
        }
        // The session would permit an older protocol than this requires.
        for said in said("EnabledProtocols=TLSv1.3\n") {
            assert!(
                said.contains("TLS 1.2 and 1.3 are always enabled"),
                "{said}"
            );
        }
    }

    #[test]
    fn databases_are_refused() {
        for key in [
            "JdbcURL",
            "JdbcStoreMessagesTableName",
            "MySQLStoreHost",
            "PostgreSQLStoreDatabase",
            "OdbcLogConnectionString",
            "MongoStoreConnection",
            "SQLStoreDriver",
            "SQLLogDataSourceName",
            "SleepycatDatabaseDir",
        ] {
            for said in said(&format!("{key}=x\n")) {
                assert!(said.contains("files (FileStorePath)"), "{key}: {said}");
            }
        }
    }
}
