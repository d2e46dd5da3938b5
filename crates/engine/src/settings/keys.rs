//! The keys of settings that have an effect.

use fanfare_fix::dict::Version;

/// Returns whether this key has an effect, or is accepted with one value only.
pub(super) fn is_known(key: &str) -> bool {
    is_supported(key) || only(key).next().is_some()
}

/// Returns the values with which a key without an effect is accepted.
pub(super) fn only(key: &str) -> impl Iterator<Item = &'static str> {
    let of_key = ONLY
        .iter()
        .filter(move |(known, _)| known.eq_ignore_ascii_case(key));
    of_key.map(|(_, only)| *only)
}

/// Returns whether this key has an effect.
pub(super) fn is_supported(key: &str) -> bool {
    let same = |known: &&str| known.eq_ignore_ascii_case(key);
    let is_numbered = NUMBERED.iter().any(|known| is_numbered(key, known));
    let is_other = OTHER_NAMES.iter().any(|(_, other)| same(other));
    is_numbered || is_other || LISTS.iter().copied().flatten().any(same) || is_app_dictionary(key)
}

/// Returns whether the key is `SocketConnectHost`, `SocketConnectHost1` and so on.
pub(super) fn is_numbered(key: &str, known: &str) -> bool {
    let plain = key.trim_end_matches(|c: char| c.is_ascii_digit());
    known.eq_ignore_ascii_case(plain)
}

/// Returns whether the value of this key is, or has, a secret: a password, or a field of the Logon.
pub(super) fn is_secret(key: &str) -> bool {
    key.eq_ignore_ascii_case("Password") || is_numbered(key, "LogonTag")
}

/// Returns whether the two keys are spellings of the same setting of TLS. The names of QuickFIX/Go
/// are no such spellings, as one of them is for either role.
pub(super) fn are_same_of_tls(one: &str, other: &str) -> bool {
    let is_one_of = |names: &[&str; 2], key: &str| {
        let mut names = names.iter();
        names.any(|name| name.eq_ignore_ascii_case(key))
    };
    let of_files = FILES_OF_TLS.iter().map(|[old, new, _]| [*old, *new]);
    let mut all = of_files.chain([LEVEL]);
    all.any(|names| is_one_of(&names, one) && is_one_of(&names, other))
}

/// Returns whether the key is a setting of TLS that has an effect, other than the switch.
pub(super) fn is_of_tls(key: &str) -> bool {
    let same = |known: &&str| known.eq_ignore_ascii_case(key);
    let others = ["NeedClientAuth", "SNIHostName", "SocketServerName"];
    FILES_OF_TLS.as_flattened().iter().any(same) || LEVEL.iter().chain(&others).any(same)
}

/// Returns whether the value of this key is the path of a file or folder.
pub(super) fn is_path(key: &str) -> bool {
    let same = |known: &&str| known.eq_ignore_ascii_case(key);
    PATHS.iter().any(same) || FILES_OF_TLS.as_flattened().iter().any(same) || is_app_dictionary(key)
}

/// Returns the name of this key in another engine.
pub(super) fn other_name(key: &str) -> Option<&'static str> {
    let mut names = OTHER_NAMES.iter();
    let found = names.find(|(name, _)| name.eq_ignore_ascii_case(key))?;
    Some(found.1)
}

/// Returns whether the key is `AppDataDictionary`, or like `AppDataDictionary.FIX.5.0`.
pub(super) fn is_app_dictionary(key: &str) -> bool {
    let (name, version) = key.split_once('.').unwrap_or((key, ""));
    let is_known = version.is_empty() || Version::from_name(version).is_some();
    name.eq_ignore_ascii_case("AppDataDictionary") && is_known
}

/// Keys of files and folders, without those of TLS and of application dictionaries.
const PATHS: [&str; 4] = [
    "DataDictionary",
    "FileLogPath",
    "FileStorePath",
    "TransportDataDictionary",
];

/// Keys that may be followed by a number.
const NUMBERED: &[&str] = &["LogonTag", "SocketConnectHost", "SocketConnectPort"];

/// The name of a key here, and in QuickFIX C++ 1.16, QuickFIX/Go or QuickFIX/n.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("AllowUnknownMsgFields", "AllowUnknownMessageFields"),
    ("EnableNextExpectedMsgSeqNum", "SendNextExpectedMsgSeqNum"),
    ("ResendRequestChunkSize", "MaxMessagesInResendRequest"),
    ("SNIHostName", "SocketServerName"),
    ("SocketAcceptAddress", "SocketAcceptHost"),
    ("SocketLocalHost", "SocketConnectSourceHost"),
    ("SocketLocalPort", "SocketConnectSourcePort"),
    ("ValidateUserDefinedFields", "CheckUserDefinedFields"),
];

/// A key in the two spellings that QuickFIX has had, and as QuickFIX/Go has it.
pub(super) type Key = [&'static str; 3];

pub(super) const CERTIFICATE: Key = [
    "SERVER_CERTIFICATE_FILE",
    "ServerCertificateFile",
    GO_CERTIFICATE,
];
pub(super) const KEY: Key = [
    "SERVER_CERTIFICATE_KEY_FILE",
    "ServerCertificateKeyFile",
    GO_KEY,
];
pub(super) const ROOTS: Key = [
    "CERTIFICATION_AUTHORITIES_FILE",
    "CertificationAuthoritiesFile",
    GO_ROOTS,
];
pub(super) const OWN_CERTIFICATE: Key = [
    "CLIENT_CERTIFICATE_FILE",
    "ClientCertificateFile",
    GO_CERTIFICATE,
];
pub(super) const OWN_KEY: Key = [
    "CLIENT_CERTIFICATE_KEY_FILE",
    "ClientCertificateKeyFile",
    GO_KEY,
];
/// Whether an acceptor requires certificates of its clients, in two spellings.
pub(super) const LEVEL: [&str; 2] = ["CERTIFICATE_VERIFY_LEVEL", "CertificateVerifyLevel"];
const GO_CERTIFICATE: &str = "SocketCertificateFile";
const GO_KEY: &str = "SocketPrivateKeyFile";
pub(super) const GO_ROOTS: &str = "SocketCAFile";

/// The files of TLS of either role.
const FILES_OF_TLS: [Key; 5] = [CERTIFICATE, KEY, ROOTS, OWN_CERTIFICATE, OWN_KEY];

/// The keys that make a section a template.
pub(super) const TEMPLATE: [&str; 2] = ["AcceptorTemplate", "DynamicSession"];

/// The switches of the validation by a dictionary.
pub(super) const SWITCHES: [&str; 5] = [
    "ValidateFieldsOutOfOrder",
    "ValidateFieldsHaveValues",
    "ValidateUserDefinedFields",
    "AllowUnknownMsgFields",
    "ValidateUnorderedGroupFields",
];

/// Keys of an acceptor's port that an initiator does not have.
pub(super) const OF_PORTS: [&str; 3] = [
    "MaxConnectionsNotLoggedOn",
    "MaxConnectionsNotLoggedOnPerAddress",
    "MaxLogonLength",
];

/// Keys of the sizes of a journal, and of a store in memory.
pub(super) const FILE_SIZES: [&str; 3] = [
    "FileStoreFirstSegmentSize",
    "FileStoreSegmentSize",
    "FileStoreSegments",
];
pub(super) const MEMORY_SIZES: [&str; 3] = [
    "MemoryStoreMessages",
    "MemoryStoreReadySize",
    "MemoryStoreSize",
];

/// Lists of keys that have an effect.
const LISTS: &[&[&str]] = &[
    SUPPORTED,
    &CERTIFICATE,
    &KEY,
    &ROOTS,
    &OWN_CERTIFICATE,
    &OWN_KEY,
    &LEVEL,
    &TEMPLATE,
    &SWITCHES,
    &OF_PORTS,
    &FILE_SIZES,
    &MEMORY_SIZES,
];

/// Keys that are in no other list.
const SUPPORTED: &[&str] = &[
    "AllowedRemoteAddresses",
    "AnswerRateBytes",
    "AnswerRateMessages",
    "BeginString",
    "CheckCompID",
    "CheckLatency",
    "ClosedResendInterval",
    "ConnectionType",
    "DataDictionary",
    "DefaultApplVerID",
    "Description",
    "DynamicQualifier",
    "DynamicSessions",
    "EnableLastMsgSeqNumProcessed",
    "EnableNextExpectedMsgSeqNum",
    "EndDay",
    "EndTime",
    "FileLogCompress",
    "FileLogKeep",
    "FileLogLossy",
    "FileLogMaxSize",
    "FileLogPath",
    "FileLogRollTime",
    "FileStorePath",
    "FileStoreSync",
    "GapfillOnReplayMessageTypes",
    "HeartBeatTimeoutMultiplier",
    "HeartBtInt",
    "HostSelectionPolicy",
    "KeepReceived",
    "LogonDay",
    "LogonTime",
    "LogonTimeout",
    "LogoutDay",
    "LogoutTime",
    "LogoutTimeout",
    "MaxDynamicSessions",
    "MaxHeaderFieldLength",
    "MaxLatency",
    "MaxTestReqIDLength",
    "MillisecondsInTimeStamp",
    "NeedClientAuth",
    "NonStopSession",
    "Password",
    "PersistMessages",
    "ReceiveRateAction",
    "ReceiveRateInterval",
    "ReceiveRateMessages",
    "ReconnectInterval",
    "RepeatedResendLimit",
    "RequiresOrigSendingTime",
    "ResendRequestChunkSize",
    "ResetOnDisconnect",
    "ResetOnLogon",
    "ResetOnLogout",
    "SenderCompID",
    "SenderLocationID",
    "SenderSubID",
    "SendLogoutBeforeDisconnectFromTimeout",
    "SendRateInterval",
    "SendRateMessages",
    "SendRateQueue",
    "SessionQualifier",
    "SNIHostName",
    "SocketAcceptAddress",
    "SocketAcceptPort",
    "SocketCheckClientName",
    "SocketClientCertificateNames",
    "SocketKeepAlive",
    "SocketLocalHost",
    "SocketLocalPort",
    "SocketReceiveBufferSize",
    "SocketSendBufferSize",
    "SocketTrafficClass",
    "SocketUseSSL",
    "StartDay",
    "StartTime",
    "TargetCompID",
    "TargetLocationID",
    "TargetSubID",
    "TestRequestDelayMultiplier",
    "TimestampPrecision",
    "TimeZone",
    "TransportDataDictionary",
    "UseDataDictionary",
    "UseLocalTime",
    "Username",
    "ValidateIncomingMessage",
    "ValidateOutgoingMessage",
    "Weekdays",
];

/// Keys whose behaviour is fixed, with the values that describe it.
const ONLY: &[(&str, &str)] = &[
    ("AllowPossDup", "N"),
    ("AllowUnknownEnumValues", "N"),
    ("ContinueInitializationOnError", "N"),
    ("DisableHeartBeatCheck", "N"),
    ("DisconnectOnError", "N"),
    ("FileIncludeMilliseconds", "Y"),
    ("FileIncludeTimeStampForMessages", "Y"),
    ("FileLogHeartbeats", "Y"),
    ("FirstFieldInGroupIsDelimiter", "N"),
    ("ForceResendWhenCorruptedStore", "N"),
    ("ForceResync", "N"),
    ("IgnorePossDupResendRequests", "N"),
    ("PreserveMessageFieldsOrder", "N"),
    ("RefreshOnLogon", "N"),
    ("RejectGarbledMessage", "N"),
    ("RejectInvalidMessage", "Y"),
    ("RejectMessageOnUnhandledException", "N"),
    ("ResetOnError", "N"),
    ("ScreenLogEvents", "N"),
    ("ScreenLogShowEvents", "N"),
    ("ScreenLogShowHeartBeats", "N"),
    ("ScreenLogShowIncoming", "N"),
    ("ScreenLogShowOutgoing", "N"),
    ("SendRedundantResendRequests", "N"),
    ("SocketAcceptProtocol", "SOCKET"),
    ("SocketAcceptProtocol", "TCP"),
    ("SocketConnectProtocol", "SOCKET"),
    ("SocketConnectProtocol", "TCP"),
    ("SocketInsecureSkipVerify", "N"),
    ("SocketNodelay", "Y"),
    ("SocketReuseAddress", "Y"),
    ("SocketSynchronousWrites", "N"),
    ("SocketTcpNoDelay", "Y"),
    ("SSLValidateCertificates", "Y"),
    ("UseSNI", "Y"),
    ("ValidateChecksum", "Y"),
    ("ValidateLengthAndChecksum", "Y"),
    ("ValidateSequenceNumbers", "Y"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    fn page() -> String {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");
        std::fs::read_to_string(path).unwrap()
    }

    /// Returns the sessions of a file whose keys all have an effect, with this line at its end.
    fn sessions_with(line: &str) -> String {
        let text = format!(
            "[SESSION]\nBeginString=FIX.4.4\n[DEFAULT]\nConnectionType=acceptor\n\
             SocketAcceptPort=1\nSenderCompID=A\nTargetCompID=B\nFileStorePath=store\n\
             SendRateMessages=9\nReceiveRateMessages=9\n{line}\n"
        );
        format!("{:?}", Settings::parse(&text).unwrap().sessions)
    }

    #[test]
    fn defaults_of_the_page_for_users_change_nothing() {
        let page = page();
        let (_, table) = page.split_once("\n## Defaults\n").unwrap();
        let (table, _) = table.split_once("\n## ").unwrap();
        let rows = table.lines().filter_map(|line| line.strip_prefix("| "));
        let rows = rows.filter_map(|row| row.split_once(" | ")).skip(1);
        let plain = sessions_with("");
        let mut count = 0;
        for (keys, default) in rows {
            let value = default.split([' ', ';', ':']).next().unwrap();
            for key in keys.split(", ") {
                assert!(is_supported(key), "{key}");
                let line = format!("{key}={value}");
                assert_eq!(sessions_with(&line), plain, "{line}");
                count += 1;
            }
        }
        assert!(count > 30, "{count} keys");
    }

    #[test]
    fn the_page_for_users_has_every_key() {
        let page = page();
        let words: Vec<_> = page
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .collect();
        let only = ONLY.iter().map(|(key, _)| *key);
        let others = OTHER_NAMES.iter().flat_map(|(key, other)| [*key, *other]);
        let all = LISTS.iter().copied().flatten().chain(NUMBERED).copied();
        let missing: Vec<_> = all
            .chain(only)
            .chain(others)
            .chain(crate::settings::refused::names())
            .filter(|key| !words.contains(key))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
