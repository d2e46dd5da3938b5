//! Which settings have an effect.

use super::Remark;
use super::file::Entry;

/// What this entry asks for and does not get.
pub(super) fn remark(entry: &Entry) -> Option<Remark> {
    let Entry { line, key, value } = entry;
    // SocketConnectHost1 and so on, to fail over to.
    let plain = key.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_host = ["SocketConnectHost", "SocketConnectPort"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(plain));
    let same = |known: &str| known.eq_ignore_ascii_case(key);
    if is_host || SUPPORTED.iter().any(|known| same(known)) || is_app_dictionary(key) {
        return None;
    }
    let only = ONLY
        .iter()
        .find(|(known, _)| same(known))
        .map(|only| only.1);
    if only.is_some_and(|only| only.eq_ignore_ascii_case(value)) {
        return None;
    }
    Some(Remark {
        line: *line,
        key: key.clone(),
        value: value.clone(),
        only,
    })
}

/// `AppDataDictionary` and `AppDataDictionary.FIX.5.0`.
fn is_app_dictionary(key: &str) -> bool {
    let name = key.split('.').next().unwrap_or_default();
    name.eq_ignore_ascii_case("AppDataDictionary")
}

const SUPPORTED: &[&str] = &[
    "AllowedRemoteAddresses",
    "AllowUnknownMsgFields",
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
    "EnableLastMsgSeqNumProcessed",
    "EnableNextExpectedMsgSeqNum",
    "EndDay",
    "EndTime",
    "FileLogPath",
    "FileStorePath",
    "HeartBtInt",
    "LogonDay",
    "LogonTime",
    "LogonTimeout",
    "LogoutDay",
    "LogoutTime",
    "LogoutTimeout",
    "MaxLatency",
    "MillisecondsInTimeStamp",
    "NonStopSession",
    "Password",
    "PersistMessages",
    "ReceiveRateAction",
    "ReceiveRateInterval",
    "ReceiveRateMessages",
    "ReconnectInterval",
    "ResendRequestChunkSize",
    "ResetOnDisconnect",
    "ResetOnLogon",
    "ResetOnLogout",
    "SenderCompID",
    "SenderLocationID",
    "SenderSubID",
    "SendRateInterval",
    "SendRateMessages",
    "SendRateQueue",
    "SERVER_CERTIFICATE_FILE",
    "ServerCertificateFile",
    "SERVER_CERTIFICATE_KEY_FILE",
    "ServerCertificateKeyFile",
    "SNIHostName",
    "SocketAcceptAddress",
    "SocketAcceptHost",
    "SocketAcceptPort",
    "SocketConnectHost",
    "SocketConnectPort",
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
    "Username",
    "ValidateFieldsHaveValues",
    "ValidateFieldsOutOfOrder",
    "ValidateIncomingMessage",
    "ValidateUnorderedGroupFields",
    "ValidateUserDefinedFields",
    "Weekdays",
];

/// What is always done in one way.
const ONLY: &[(&str, &str)] = &[
    ("ContinueInitializationOnError", "N"),
    ("DisableHeartBeatCheck", "N"),
    ("DisconnectOnError", "N"),
    ("DynamicSession", "N"),
    ("FileLogHeartbeats", "Y"),
    ("ForceResendWhenCorruptedStore", "N"),
    ("ForceResync", "N"),
    ("IgnorePossDupResendRequests", "N"),
    ("PreserveMessageFieldsOrder", "N"),
    ("RefreshOnLogon", "N"),
    ("RejectGarbledMessage", "N"),
    ("RejectInvalidMessage", "Y"),
    ("RejectMessageOnUnhandledException", "N"),
    ("RequiresOrigSendingTime", "Y"),
    ("ResetOnError", "N"),
    ("ScreenLogShowEvents", "N"),
    ("ScreenLogShowHeartBeats", "N"),
    ("ScreenLogShowIncoming", "N"),
    ("ScreenLogShowOutgoing", "N"),
    ("SendRedundantResendRequests", "N"),
    ("SocketAcceptProtocol", "SOCKET"),
    ("SocketConnectProtocol", "SOCKET"),
    ("SocketNodelay", "Y"),
    ("SocketReuseAddress", "Y"),
    ("SocketTcpNoDelay", "Y"),
    ("UseLocalTime", "N"),
    ("ValidateChecksum", "Y"),
    ("ValidateLengthAndChecksum", "Y"),
    ("ValidateSequenceNumbers", "Y"),
];
