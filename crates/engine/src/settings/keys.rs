//! Which settings have an effect.

use super::file::{Entry, Section};
use super::{Remark, SessionSettings, refused};
use crate::host::StoreKind;
use fanfare_fix::dict::Version;
use fanfare_fix::session::Role;

/// What this entry asks for and does not get.
pub(super) fn remark(entry: &Entry) -> Option<Remark> {
    let Entry { line, key, value } = entry;
    if is_supported(key) || refused::is_met(entry) {
        return None;
    }
    let mut only = ONLY
        .iter()
        .filter(|(known, _)| known.eq_ignore_ascii_case(key))
        .map(|only| only.1)
        .peekable();
    let first = only.peek().copied();
    if only.any(|only| only.eq_ignore_ascii_case(value)) {
        return None;
    }
    Some(Remark {
        line: *line,
        key: key.clone(),
        value: value.clone(),
        only: first,
    })
}

/// Whether this key has an effect, or is accepted with one value only.
pub(super) fn is_known(key: &str) -> bool {
    let same = |(known, _): &(&str, &str)| known.eq_ignore_ascii_case(key);
    is_supported(key) || ONLY.iter().any(same)
}

fn is_supported(key: &str) -> bool {
    let same = |known: &&str| known.eq_ignore_ascii_case(key);
    let is_numbered = NUMBERED.iter().any(|known| is_numbered(key, known));
    let is_other = OTHER_NAMES.iter().any(|(_, other)| same(other));
    is_numbered || is_other || SUPPORTED.iter().any(same) || is_app_dictionary(key)
}

/// The sizes of a journal, and of a store in memory.
const FILE_SIZES: [&str; 3] = [
    "FileStoreFirstSegmentSize",
    "FileStoreSegmentSize",
    "FileStoreSegments",
];
const MEMORY_SIZES: [&str; 3] = [
    "MemoryStoreMessages",
    "MemoryStoreReadySize",
    "MemoryStoreSize",
];

/// Settings that have no effect on this session: SessionQualifier in an acceptor, as no Logon has
/// one, the limits of a port in an initiator, those of templates in any other session, and
/// the sizes of a kind of store that it does not have.
pub(super) fn unused(section: &Section<'_>, session: &SessionSettings) -> Vec<Remark> {
    let remark = |key, only| {
        let entry = section.find(key)?;
        Some(Remark {
            line: entry.line,
            key: entry.key.clone(),
            value: entry.value.clone(),
            only: Some(only),
        })
    };
    let mut remarks = Vec::new();
    let sizes: &[_] = match &session.store {
        StoreKind::Journal(..) | StoreKind::BothWays(..) => &MEMORY_SIZES,
        StoreKind::Memory(_) => &FILE_SIZES,
        _ => &[],
    };
    for key in sizes.iter().filter(|key| section.own.has(key)) {
        let only = match &session.store {
            StoreKind::Memory(_) => "with FileStorePath",
            _ => "without FileStorePath",
        };
        remarks.extend(remark(key, only));
    }
    if session.role == Role::Acceptor {
        remarks.extend(remark("SessionQualifier", "in an initiator"));
    }
    for key in OF_PORTS {
        // In [DEFAULT] it may be for other sessions.
        if session.role == Role::Initiator && section.own.has(key) {
            remarks.extend(remark(key, "in an acceptor"));
        }
    }
    for key in ["DynamicQualifier", "MaxDynamicSessions"] {
        // In [DEFAULT] it may be for other sessions.
        let is_own = section.own.has(key);
        if session.template.is_none() && is_own {
            remarks.extend(remark(key, "with AcceptorTemplate=Y"));
        }
    }
    remarks
}

/// `SocketConnectHost`, `SocketConnectHost1` and so on.
pub(super) fn is_numbered(key: &str, known: &str) -> bool {
    let plain = key.trim_end_matches(|c: char| c.is_ascii_digit());
    known.eq_ignore_ascii_case(plain)
}

/// What one of the engines calls this key.
pub(super) fn other_name(key: &str) -> Option<&'static str> {
    let mut names = OTHER_NAMES.iter();
    let found = names.find(|(name, _)| name.eq_ignore_ascii_case(key))?;
    Some(found.1)
}

/// `AppDataDictionary` and `AppDataDictionary.FIX.5.0`.
fn is_app_dictionary(key: &str) -> bool {
    let (name, version) = key.split_once('.').unwrap_or((key, ""));
    let is_known = version.is_empty() || Version::from_name(version).is_some();
    name.eq_ignore_ascii_case("AppDataDictionary") && is_known
}

/// Keys that may have a number behind them.
const NUMBERED: &[&str] = &["LogonTag", "SocketConnectHost", "SocketConnectPort"];

/// The name of a key here, and in QuickFIX C++ 1.16, QuickFIX/Go or QuickFIX/n.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("AllowUnknownMsgFields", "AllowUnknownMessageFields"),
    ("EnableNextExpectedMsgSeqNum", "SendNextExpectedMsgSeqNum"),
    ("ResendRequestChunkSize", "MaxMessagesInResendRequest"),
    ("SNIHostName", "SocketServerName"),
    ("SocketAcceptAddress", "SocketAcceptHost"),
    ("ValidateUserDefinedFields", "CheckUserDefinedFields"),
];

/// What an acceptor's port has, and an initiator has not.
const OF_PORTS: [&str; 3] = [
    "MaxConnectionsNotLoggedOn",
    "MaxConnectionsNotLoggedOnPerAddress",
    "MaxLogonLength",
];

const SUPPORTED: &[&str] = &[
    "AcceptorTemplate",
    "AllowedRemoteAddresses",
    "AllowUnknownMsgFields",
    "AnswerRateBytes",
    "AnswerRateMessages",
    "BeginString",
    "CERTIFICATE_VERIFY_LEVEL",
    "CertificateVerifyLevel",
    "CERTIFICATION_AUTHORITIES_FILE",
    "CertificationAuthoritiesFile",
    "CheckCompID",
    "CheckLatency",
    "CLIENT_CERTIFICATE_FILE",
    "ClientCertificateFile",
    "CLIENT_CERTIFICATE_KEY_FILE",
    "ClientCertificateKeyFile",
    "ClosedResendInterval",
    "ConnectionType",
    "DataDictionary",
    "DefaultApplVerID",
    "Description",
    "DynamicQualifier",
    "DynamicSession",
    "DynamicSessions",
    "EnableLastMsgSeqNumProcessed",
    "EnableNextExpectedMsgSeqNum",
    "EndDay",
    "EndTime",
    "FileLogLossy",
    "FileLogPath",
    "FileStoreFirstSegmentSize",
    "FileStorePath",
    "FileStoreSegments",
    "FileStoreSegmentSize",
    "FileStoreSync",
    "HeartBtInt",
    "KeepReceived",
    "LogonDay",
    "LogonTime",
    "LogonTimeout",
    "LogoutDay",
    "LogoutTime",
    "LogoutTimeout",
    "MaxConnectionsNotLoggedOn",
    "MaxConnectionsNotLoggedOnPerAddress",
    "MaxDynamicSessions",
    "MaxHeaderFieldLength",
    "MaxLatency",
    "MaxLogonLength",
    "MaxTestReqIDLength",
    "MemoryStoreMessages",
    "MemoryStoreReadySize",
    "MemoryStoreSize",
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
    "SERVER_CERTIFICATE_FILE",
    "ServerCertificateFile",
    "SERVER_CERTIFICATE_KEY_FILE",
    "ServerCertificateKeyFile",
    "SessionQualifier",
    "SNIHostName",
    "SocketAcceptAddress",
    "SocketAcceptPort",
    "SocketCAFile",
    "SocketCheckClientName",
    "SocketClientCertificateNames",
    "SocketCertificateFile",
    "SocketPrivateKeyFile",
    "SocketUseSSL",
    "StartDay",
    "StartTime",
    "TargetCompID",
    "TargetLocationID",
    "TargetSubID",
    "TimestampPrecision",
    "TimeZone",
    "TransportDataDictionary",
    "UseDataDictionary",
    "UseLocalTime",
    "Username",
    "ValidateFieldsHaveValues",
    "ValidateFieldsOutOfOrder",
    "ValidateIncomingMessage",
    "ValidateUnorderedGroupFields",
    "ValidateUserDefinedFields",
    "Weekdays",
];

/// What is always done in one way, or in one of several.
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
    ("SocketKeepAlive", "N"),
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

    #[test]
    fn the_page_for_users_has_every_key() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");
        let page = std::fs::read_to_string(path).unwrap();
        let words: Vec<_> = page
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .collect();
        let only = ONLY.iter().map(|(key, _)| *key);
        let others = OTHER_NAMES.iter().flat_map(|(key, other)| [*key, *other]);
        let all = SUPPORTED.iter().chain(NUMBERED).copied();
        let missing: Vec<_> = all
            .chain(only)
            .chain(others)
            .chain(refused::names())
            .filter(|key| !words.contains(key))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
