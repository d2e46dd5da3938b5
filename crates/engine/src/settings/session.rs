//! A session made from a section.

use super::dictionaries::DictionaryFiles;
use super::file::{Entry, Section};
use super::template::{NO_TEMPLATE, Template};
use super::tls::{ClientTlsFiles, TlsFiles, client_names, client_tls, tls};
use super::{SettingsError, hours, refused};
use crate::host::{ClientNames, Network, PortOptions, StoreKind};
use crate::journal::{self, Durability};
use crate::rotate::{Daily, Rotation};
use crate::tcp::{HostOrder, SocketOptions};
use fanfare_fix::session::{
    AnswerLimit, ApplVerId, Config, Credentials, ExtraField, MemoryLimits, OverRate, Rate,
    ReceiveLimit, Role, SECOND, SendLimit, SessionId, SubIds, Version,
};
use fanfare_fix::tag;
use fanfare_wire::Precision;
use fanfare_wire::fields::parse_tag;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// One session of a settings file.
#[derive(Debug, Clone)]
pub struct SessionSettings {
    /// Its configuration, without the validator, which is made from `dictionaries`.
    pub config: Config,
    /// The role: initiator or acceptor.
    pub role: Role,
    /// The address of an acceptor's port; on loopback if the file names no address.
    pub listen: Option<SocketAddr>,
    /// Whether the file names the address.
    pub names_address: bool,
    /// The limits of connections to an acceptor's port before a logon.
    pub port_limits: PortLimits,
    /// The template, if an acceptor makes sessions from this section. A template with
    /// `BeginString=*` has an entry for each version.
    pub template: Option<Template>,
    /// The TLS of an acceptor; `None` is plain text.
    pub tls: Option<TlsFiles>,
    /// The certificates that admit a client, where `tls` requires them.
    pub client_names: ClientNames,
    /// The TLS of an initiator; `None` is plain text.
    pub client_tls: Option<ClientTlsFiles>,
    /// The networks that may log on to an acceptor; empty for all.
    pub allow: Vec<Network>,
    /// The hosts that an initiator connects to, as in the file, and their ports.
    pub hosts: Vec<(String, u16)>,
    /// The order in which an initiator tries its hosts.
    pub host_order: HostOrder,
    /// The address of this machine that an initiator connects from, and the port, if it is not 0.
    pub local: Option<SocketAddr>,
    /// The options of each connection's socket. All sessions of a port need the same.
    pub socket: SocketOptions,
    /// The time between attempts of an initiator.
    pub reconnect: Duration,
    /// The dictionaries, for the validation and for data fields of their own; `None` if there is
    /// neither.
    pub dictionaries: Option<DictionaryFiles>,
    /// The store of its messages.
    pub store: StoreKind,
    /// The folder of the message log.
    pub log: Option<PathBuf>,
    /// Whether the message log leaves out bytes when its ring is full.
    pub lossy_log: bool,
    /// The rotation of the message log.
    pub log_rotation: Rotation,
}

/// The limits of an acceptor's port for connections that have not logged on. All sessions of a port
/// need the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortLimits {
    /// See [`PortOptions::max_without_logon`].
    pub connections: usize,
    /// See [`PortOptions::max_without_logon_per_address`].
    pub connections_per_address: usize,
    /// See [`PortOptions::max_logon`].
    pub logon_bytes: usize,
}

impl PortLimits {
    fn read(section: &Section<'_>) -> Result<Self, SettingsError> {
        let default = PortOptions::new();
        let all = default.max_without_logon as u64;
        let all = section.number("MaxConnectionsNotLoggedOn", all, 1..=100_000)?;
        let one = all.min(default.max_without_logon_per_address as u64);
        let one = section.number("MaxConnectionsNotLoggedOnPerAddress", one, 1..=all)?;
        let logon = section.number("MaxLogonLength", default.max_logon as u64, 256..=65_536)?;
        Ok(Self {
            connections: all as usize,
            connections_per_address: one as usize,
            logon_bytes: logon as usize,
        })
    }
}

impl SessionSettings {
    /// Returns the session of a section, or its template for each version.
    pub(super) fn read(section: &Section<'_>) -> Result<Vec<Self>, SettingsError> {
        let role = role(section)?;
        refused::check(section, role)?;
        refused::check_paths(section)?;
        let template = Template::read(section, role)?;
        let versions = versions(section, template.is_some())?;
        let of = |version| Self::of_version(section, role, version, template.clone());
        versions.into_iter().map(of).collect()
    }

    pub(super) const fn has_tls(&self) -> bool {
        self.tls.is_some() || self.client_tls.is_some()
    }

    fn of_version(
        section: &Section<'_>,
        role: Role,
        version: Version,
        template: Option<Template>,
    ) -> Result<Self, SettingsError> {
        let mut config = config(section, role, version, template.as_ref())?;
        match (role, credentials(section)?) {
            (Role::Acceptor, credentials) => config.credentials = credentials,
            (Role::Initiator, None) => {}
            (Role::Initiator, Some(own)) => {
                for (tag, value) in [
                    (tag::USERNAME, &own.username),
                    (tag::PASSWORD, &own.password),
                ] {
                    config.logon_fields.push((tag, value.as_bytes().into()));
                }
            }
        }
        let acceptor = role == Role::Acceptor;
        let store = store(section, template.is_some(), longest_sent(&config))?;
        let tls = acceptor.then(|| tls(section)).transpose()?.flatten();
        let client_tls = (!acceptor).then(|| client_tls(section)).transpose()?;
        Ok(Self {
            dictionaries: DictionaryFiles::read(section, &config)?,
            config,
            role,
            listen: acceptor.then(|| listen(section)).transpose()?,
            names_address: section.find("SocketAcceptAddress").is_some(),
            port_limits: PortLimits::read(section)?,
            client_names: client_names(section, tls.as_ref())?,
            tls,
            client_tls: client_tls.flatten(),
            allow: allow(section)?,
            hosts: match role {
                Role::Acceptor => Vec::new(),
                Role::Initiator => hosts(section)?,
            },
            host_order: host_order(section)?,
            local: match role {
                Role::Acceptor => None,
                Role::Initiator => local(section)?,
            },
            socket: socket_options(section)?,
            reconnect: Duration::from_secs(section.number("ReconnectInterval", 30, 1..=86_400)?),
            store: received(section, store)?,
            log: section.text("FileLogPath").map(PathBuf::from),
            lossy_log: section.flag("FileLogLossy", false)?,
            log_rotation: rotation(section)?,
            template,
        })
    }
}

/// Returns the rotation of the message log.
fn rotation(section: &Section<'_>) -> Result<Rotation, SettingsError> {
    let default = Rotation::default();
    let number = |key, default, range| section.number(key, default, range);
    let daily = section.find("FileLogRollTime").map(|entry| {
        let daily = Daily::new(&entry.value, "UTC");
        daily.map_err(|_| entry.wrong("must be a time of day in UTC, HH:MM or HH:MM:SS"))
    });
    let keep = number("FileLogKeep", default.keep as u64, 1..=100_000)?;
    let compress = number("FileLogCompress", default.compress.into(), 0..=19)?;
    Ok(Rotation {
        max_bytes: number("FileLogMaxSize", default.max_bytes, 1 << 16..=1 << 40)?,
        daily: daily.transpose()?,
        keep: usize::try_from(keep).unwrap_or(default.keep),
        compress: u8::try_from(compress).unwrap_or(default.compress),
    })
}

/// Returns the role. Files of QuickFIX/Go do not name it: a session with a port to listen on is an
/// acceptor.
pub(super) fn role(section: &Section<'_>) -> Result<Role, SettingsError> {
    let has = |key| section.find(key).is_some();
    match section.find("ConnectionType") {
        None if has("SocketAcceptPort") && !has("SocketConnectHost") => Ok(Role::Acceptor),
        None if has("SocketConnectHost") && !has("SocketAcceptPort") => Ok(Role::Initiator),
        None => Err(section.missing("ConnectionType")),
        Some(kind) => match kind.value.to_ascii_lowercase().as_str() {
            "acceptor" => Ok(Role::Acceptor),
            "initiator" => Ok(Role::Initiator),
            _ => Err(kind.wrong("must be acceptor or initiator")),
        },
    }
}

/// Returns the SubIDs and LocationIDs of our messages. Where a template has a pattern, those of the
/// Logon are used.
fn header_fields(section: &Section<'_>, template: bool) -> Result<Vec<ExtraField>, SettingsError> {
    let keys = [
        ("SenderSubID", tag::SENDER_SUB_ID),
        ("TargetSubID", tag::TARGET_SUB_ID),
        ("SenderLocationID", tag::SENDER_LOCATION_ID),
        ("TargetLocationID", tag::TARGET_LOCATION_ID),
    ];
    let given = keys.into_iter().filter_map(|(key, tag)| {
        let entry = section.find(key)?;
        (!template || !entry.value.ends_with('*')).then_some((entry, tag))
    });
    given
        .map(|(entry, tag)| match entry.value.as_str() {
            value if value.is_empty() || value.contains('\x01') => Err(entry.wrong(NOT_TEXT)),
            value if value.ends_with('*') => Err(entry.wrong(NO_TEMPLATE)),
            value => Ok((tag, value.as_bytes().into())),
        })
        .collect()
}

fn config(
    section: &Section<'_>,
    role: Role,
    version: Version,
    template: Option<&Template>,
) -> Result<Config, SettingsError> {
    let mut config = Config::new(identity(section, role, version, template.is_some())?);
    let any_version = template.is_some() && names_any_version(section);
    if version == Version::Fixt11 && any_version && section.find("DefaultApplVerID").is_none() {
        config.mirror_appl_ver_id = true;
    } else if version == Version::Fixt11 {
        let entry = section.need("DefaultApplVerID")?;
        config.default_appl_ver_id = appl_ver_id(&entry.value)
            .ok_or_else(|| entry.wrong("must be FIX.5.0, FIX.5.0SP1, FIX.5.0SP2, 7, 8 or 9"))?;
    }
    if role == Role::Initiator {
        section.need("HeartBtInt")?;
    }
    config.heart_bt_int = section.number("HeartBtInt", 30, 0..=86_400)? as u32;
    config.logon_timeout = section.number("LogonTimeout", 10, 1..=86_400)? * SECOND;
    config.logout_timeout = section.number("LogoutTimeout", 2, 1..=86_400)? * SECOND;
    config.precision = precision(section, version)?;
    config.check_comp_id = section.flag("CheckCompID", true)?;
    config.check_latency = section.flag("CheckLatency", true)?;
    config.max_header_field = section.number("MaxHeaderFieldLength", 64, 1..=4_096)? as usize;
    config.max_test_req_id = section.number("MaxTestReqIDLength", 256, 1..=65_536)? as usize;
    config.repeated_resend_limit = section.number("RepeatedResendLimit", 30, 0..=1 << 31)? as u32;
    config.gap_filled_types = gap_filled_types(section)?;
    config.answer_limit = answer_limit(section)?;
    config.max_latency = section.number("MaxLatency", 120, 0..=86_400 * 365)? * SECOND;
    config.reset_on_logon = section.flag("ResetOnLogon", false)?;
    config.reset_on_logout = section.flag("ResetOnLogout", false)?;
    // A connection may be given any of these sessions, so each restarts its numbers.
    let qualified = template.is_some_and(|template| template.qualified);
    config.reset_on_disconnect = section.flag("ResetOnDisconnect", qualified)? || qualified;
    config.next_expected = section.flag("EnableNextExpectedMsgSeqNum", false)?;
    config.last_processed = section.flag("EnableLastMsgSeqNumProcessed", false)?;
    config.resend_request_chunk = section.number("ResendRequestChunkSize", 0, 0..=1 << 32)?;
    // QuickFIX/n names the last number as soon as it requests in parts.
    let asks_in_parts = section.find("MaxMessagesInResendRequest").is_some();
    let closed = asks_in_parts && config.resend_request_chunk > 0;
    config.closed_resend_interval = section.flag("ClosedResendInterval", closed)?;
    config.requires_orig_sending_time = section.flag("RequiresOrigSendingTime", true)?;
    (config.test_request_percent, config.gone_percent) = silences(section)?;
    config.logout_on_silence = section.flag("SendLogoutBeforeDisconnectFromTimeout", false)?;
    config.logon_fields = logon_tags(section)?;
    config.header_fields = header_fields(section, template.is_some())?;
    config.send_limit = send_limit(section)?;
    config.receive_limit = receive_limit(section)?;
    if !section.flag("NonStopSession", false)? {
        config.schedule = hours::read(section, &hours::SESSION)?;
        config.logon_schedule = hours::read(section, &hours::LOGON)?;
    }
    Ok(config)
}

/// Returns the types of messages that are never sent again, such as `D,F,G`.
fn gap_filled_types(section: &Section<'_>) -> Result<Vec<Box<[u8]>>, SettingsError> {
    let Some(entry) = section.find("GapfillOnReplayMessageTypes") else {
        return Ok(Vec::new());
    };
    let types = entry.value.split(',').map(str::trim);
    let checked = types.map(|msg_type| {
        let is_type = |byte: u8| byte.is_ascii_alphanumeric();
        match !msg_type.is_empty() && msg_type.bytes().all(is_type) {
            true => Ok(msg_type.as_bytes().into()),
            false => Err(entry.wrong("must be a list of MsgTypes, such as D,F,G")),
        }
    });
    checked.collect()
}

/// Returns fields of our Logon: `LogonTag=553=user`, `LogonTag1=…`.
fn logon_tags(section: &Section<'_>) -> Result<Vec<ExtraField>, SettingsError> {
    let entries = section.numbered("LogonTag");
    let fields = entries.into_iter().map(|entry| {
        let field = entry.value.split_once('=');
        let field = field.filter(|(_, value)| !value.is_empty() && !value.contains('\x01'));
        let field = field.and_then(|(tag, value)| {
            let tag = parse_tag(tag.as_bytes());
            let is_ours = LOGON_OWN.contains(&tag) || tag::is_header(tag) || tag::is_trailer(tag);
            (tag != 0 && !is_ours).then(|| (tag, value.as_bytes().into()))
        });
        field.ok_or_else(|| entry.wrong("must be a field of the Logon's body, such as 553=user"))
    });
    fields.collect()
}

/// The error for an ID, a name or a password that cannot be a field's value.
const NOT_TEXT: &str = "must not be empty or contain SOH";

/// Fields that the session itself puts into its Logon.
const LOGON_OWN: [u32; 5] = [
    tag::ENCRYPT_METHOD,
    tag::HEART_BT_INT,
    tag::RESET_SEQ_NUM_FLAG,
    tag::NEXT_EXPECTED_MSG_SEQ_NUM,
    tag::DEFAULT_APPL_VER_ID,
];

/// Returns the limit of a rate. `messages` and `interval` are keys; without the first there is no
/// limit. The interval is in milliseconds.
fn rate(
    section: &Section<'_>,
    messages: &str,
    interval: &str,
) -> Result<Option<Rate>, SettingsError> {
    if section.find(messages).is_none() {
        return Ok(None);
    }
    let messages = section.number(messages, 1, 1..=1_000_000)? as u32;
    let interval = section.number(interval, 1_000, 1..=86_400_000)? * SECOND / 1_000;
    Ok(Some(Rate { messages, interval }))
}

fn send_limit(section: &Section<'_>) -> Result<Option<SendLimit>, SettingsError> {
    let queue = section.number("SendRateQueue", 1_000, 0..=1_000_000)? as usize;
    let rate = rate(section, "SendRateMessages", "SendRateInterval")?;
    Ok(rate.map(|rate| SendLimit { rate, queue }))
}

fn receive_limit(section: &Section<'_>) -> Result<Option<ReceiveLimit>, SettingsError> {
    let action = match section.find("ReceiveRateAction") {
        None => OverRate::Disconnect,
        Some(entry) => match entry.value.to_ascii_lowercase().as_str() {
            "disconnect" => OverRate::Disconnect,
            "reject" => OverRate::Reject,
            _ => return Err(entry.wrong("must be disconnect or reject")),
        },
    };
    let rate = rate(section, "ReceiveRateMessages", "ReceiveRateInterval")?;
    Ok(rate.map(|rate| ReceiveLimit { rate, action }))
}

/// Returns the limit of resends. A value of 0 for either key means no limit.
fn answer_limit(section: &Section<'_>) -> Result<Option<AnswerLimit>, SettingsError> {
    let AnswerLimit { messages, bytes } = AnswerLimit::DEFAULT;
    let most = 0..=u64::from(u32::MAX);
    let messages = section.number("AnswerRateMessages", messages.into(), most.clone())? as u32;
    let bytes = section.number("AnswerRateBytes", bytes.into(), most)? as u32;
    let limit = AnswerLimit { messages, bytes };
    Ok((messages > 0 && bytes > 0).then_some(limit))
}

/// Returns whether this is a template for sessions of every version.
pub(super) fn names_any_version(section: &Section<'_>) -> bool {
    section.text("BeginString").is_none_or(|value| value == "*")
}

/// Returns the version, or the versions of a template.
fn versions(section: &Section<'_>, template: bool) -> Result<Vec<Version>, SettingsError> {
    if template && names_any_version(section) {
        return match section.find("DataDictionary") {
            Some(entry) => {
                Err(entry.wrong("needs one version in BeginString: a dictionary has one version"))
            }
            None => Ok(Version::ALL.to_vec()),
        };
    }
    let entry = section.need("BeginString")?;
    let expected = match entry.value.as_str() {
        "*" => NO_TEMPLATE,
        _ => "must be FIX.4.0 to FIX.4.4 or FIXT.1.1",
    };
    let version = Version::parse(entry.value.as_bytes());
    Ok(vec![version.ok_or_else(|| entry.wrong(expected))?])
}

fn identity(
    section: &Section<'_>,
    role: Role,
    version: Version,
    template: bool,
) -> Result<SessionId, SettingsError> {
    let comp_id = |key| {
        let entry = match section.find(key) {
            None if template => return Ok("*"),
            _ => section.need(key)?,
        };
        match entry.value.as_str() {
            value if value.is_empty() || value.contains('\x01') => Err(entry.wrong(NOT_TEXT)),
            value if value.ends_with('*') && !template => Err(entry.wrong(NO_TEMPLATE)),
            value => Ok(value),
        }
    };
    let (sender, target) = (comp_id("SenderCompID")?, comp_id("TargetCompID")?);
    Ok(SessionId::new(version, sender, target).with_sub_ids(sub_ids(section, role)))
}

/// Returns the SubIDs and LocationIDs that distinguish sessions with the same CompIDs.
fn sub_ids(section: &Section<'_>, role: Role) -> SubIds {
    let id = |key| section.text(key).unwrap_or_default().into();
    SubIds {
        sender: id("SenderSubID"),
        sender_location: id("SenderLocationID"),
        target: id("TargetSubID"),
        target_location: id("TargetLocationID"),
        qualifier: match role {
            Role::Initiator => id("SessionQualifier"),
            Role::Acceptor => "".into(),
        },
    }
}

/// Parses an ApplVerID by its name or its value on the wire.
fn appl_ver_id(value: &str) -> Option<ApplVerId> {
    let wire = match value {
        "FIX.4.0" => "2",
        "FIX.4.1" => "3",
        "FIX.4.2" => "4",
        "FIX.4.3" => "5",
        "FIX.4.4" => "6",
        "FIX.5.0" => "7",
        "FIX.5.0SP1" => "8",
        "FIX.5.0SP2" => "9",
        wire => wire,
    };
    ApplVerId::parse(wire.as_bytes())
}

/// Returns the precision of times. Up to FIX.4.1 it is seconds, whatever a `[DEFAULT]` for many
/// versions has.
fn precision(section: &Section<'_>, version: Version) -> Result<Precision, SettingsError> {
    let fraction = section.flag("MillisecondsInTimeStamp", true)?;
    let named = match section.find("TimestampPrecision") {
        None => Precision::Millis,
        Some(entry) => match entry.value.to_ascii_uppercase().as_str() {
            "0" | "SECONDS" => Precision::Seconds,
            "3" | "MILLIS" => Precision::Millis,
            "6" | "MICROS" => Precision::Micros,
            "9" | "NANOS" => Precision::Nanos,
            _ => return Err(entry.wrong("must be SECONDS, MILLIS, MICROS, NANOS, 0, 3, 6 or 9")),
        },
    };
    Ok(match (version.precision(), fraction) {
        (Precision::Seconds, _) | (_, false) => Precision::Seconds,
        _ => named,
    })
}

fn listen(section: &Section<'_>) -> Result<SocketAddr, SettingsError> {
    section.need("SocketAcceptPort")?;
    let port = section.number("SocketAcceptPort", 0, 0..=65_535)? as u16;
    let address = match section.find("SocketAcceptAddress") {
        Some(entry) => own_address(entry)?,
        None => IpAddr::V4(Ipv4Addr::LOCALHOST),
    };
    Ok(SocketAddr::new(address, port))
}

/// Returns the address of this machine that an entry has.
fn own_address(entry: &Entry) -> Result<IpAddr, SettingsError> {
    if entry.value.eq_ignore_ascii_case("localhost") {
        return Ok(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    let address = entry.value.parse();
    address.map_err(|_| entry.wrong("must be an address of this machine, such as 127.0.0.1"))
}

/// Returns the address, and the port, that an initiator connects from.
fn local(section: &Section<'_>) -> Result<Option<SocketAddr>, SettingsError> {
    let port = section.number("SocketLocalPort", 0, 1..=65_535)? as u16;
    match (
        section.find("SocketLocalHost"),
        section.find("SocketLocalPort"),
    ) {
        (Some(entry), _) => Ok(Some(SocketAddr::new(own_address(entry)?, port))),
        (None, Some(entry)) => Err(entry.wrong("needs SocketLocalHost")),
        (None, None) => Ok(None),
    }
}

/// Returns the silences after which a TestRequest(1) is sent and the connection is closed, in
/// percent of the HeartBtInt(108). The settings have how much longer than it they are.
fn silences(section: &Section<'_>) -> Result<(u32, u32), SettingsError> {
    let percent = |key, default| {
        let Some(entry) = section.find(key) else {
            return Ok(default);
        };
        let value: Option<f64> = entry.value.parse().ok();
        let value = value.filter(|value| (0.0..=100.0).contains(value));
        let value = value.ok_or_else(|| entry.wrong("must be between 0 and 100"))?;
        Ok::<_, SettingsError>(100 + (value * 100.0).round() as u32)
    };
    let test = percent("TestRequestDelayMultiplier", 120)?;
    let gone = percent("HeartBeatTimeoutMultiplier", 240)?;
    if test >= gone {
        if let Some(entry) = section.find("HeartBeatTimeoutMultiplier") {
            return Err(entry.wrong("must be more than TestRequestDelayMultiplier (0.2)"));
        }
        if let Some(entry) = section.find("TestRequestDelayMultiplier") {
            return Err(entry.wrong("must be less than HeartBeatTimeoutMultiplier (1.4)"));
        }
    }
    Ok((test, gone))
}

/// Returns the options of sockets. Sizes of buffers are in bytes.
fn socket_options(section: &Section<'_>) -> Result<SocketOptions, SettingsError> {
    let number = |key, most| {
        let found = section.find(key).map(|_| section.number(key, 0, 0..=most));
        found.transpose()
    };
    let size = |key| {
        let found = number(key, 1 << 30)?;
        Ok::<_, SettingsError>(found.map(|bytes| bytes as i32))
    };
    Ok(SocketOptions {
        send_buffer: size("SocketSendBufferSize")?,
        receive_buffer: size("SocketReceiveBufferSize")?,
        traffic_class: number("SocketTrafficClass", 255)?.map(|class| class as u8),
        keep_alive: section.flag("SocketKeepAlive", false)?,
    })
}

fn host_order(section: &Section<'_>) -> Result<HostOrder, SettingsError> {
    let Some(entry) = section.find("HostSelectionPolicy") else {
        return Ok(HostOrder::default());
    };
    match entry.value.to_ascii_uppercase().as_str() {
        "PRIORITY" => Ok(HostOrder::Priority),
        "ROUND_ROBIN" => Ok(HostOrder::RoundRobin),
        _ => Err(entry.wrong("must be PRIORITY or ROUND_ROBIN")),
    }
}

fn credentials(section: &Section<'_>) -> Result<Option<Credentials>, SettingsError> {
    let value = |key| {
        let entry = section.need(key)?;
        if entry.value.is_empty() || entry.value.contains('\x01') {
            return Err(entry.wrong(NOT_TEXT));
        }
        Ok(entry.value.as_str().into())
    };
    if section
        .find("Username")
        .or(section.find("Password"))
        .is_none()
    {
        return Ok(None);
    }
    Ok(Some(Credentials {
        username: value("Username")?,
        password: value("Password")?,
    }))
}

fn allow(section: &Section<'_>) -> Result<Vec<Network>, SettingsError> {
    let Some(entry) = section.find("AllowedRemoteAddresses") else {
        return Ok(Vec::new());
    };
    let networks = entry.value.split(',');
    networks
        .map(|network| network.trim().parse().map_err(|why| entry.wrong(why)))
        .collect()
}

/// Returns `SocketConnectHost` and, for fail-over, `SocketConnectHost1` and so on, with their
/// ports.
fn hosts(section: &Section<'_>) -> Result<Vec<(String, u16)>, SettingsError> {
    section.need("SocketConnectHost")?;
    section.need("SocketConnectPort")?;
    let suffix = |number: usize| match number {
        0 => String::new(),
        number => number.to_string(),
    };
    let mut hosts = Vec::new();
    while let Some(host) = section.find(&format!("SocketConnectHost{}", suffix(hosts.len()))) {
        let key = format!("SocketConnectPort{}", suffix(hosts.len()));
        if section.find(&key).is_none() {
            return Err(host.wrong(format!("{key} is missing")));
        }
        let port = section.number(&key, 0, 1..=65_535)? as u16;
        hosts.push((host.value.clone(), port));
    }
    // A host after a gap in the numbering would never be tried.
    for name in ["SocketConnectHost", "SocketConnectPort"] {
        for entry in section.numbered(name) {
            let number = entry.key.get(name.len()..).unwrap_or_default();
            if !(0..hosts.len()).any(|known| suffix(known) == number) {
                let missing = format!("SocketConnectHost{}", suffix(hosts.len()));
                return Err(entry.wrong(format!("{missing} is missing")));
            }
        }
    }
    Ok(hosts)
}

/// Adds the journal of received messages to the store, if the section requires one.
fn received(section: &Section<'_>, store: StoreKind) -> Result<StoreKind, SettingsError> {
    match section.find("KeepReceived") {
        Some(entry) if section.flag("KeepReceived", false)? => match store {
            StoreKind::Journal(folder, options) => Ok(StoreKind::BothWays(folder, options)),
            _ => Err(entry.wrong("needs FileStorePath and PersistMessages=Y")),
        },
        _ => Ok(store),
    }
}

/// Bytes in front of a body of the greatest length: a response has at most the fields of its
/// request, and a longer header.
const HEADER_ROOM: usize = 4 << 10;

/// Returns the length of the longest message that is sent, which is longer than any received one.
pub(super) const fn longest_sent(config: &Config) -> usize {
    config.max_message + HEADER_ROOM
}

/// Returns a store for messages of up to `longest` bytes. Sessions of a template may be many, so
/// each keeps less in memory.
fn store(
    section: &Section<'_>,
    template: bool,
    longest: usize,
) -> Result<StoreKind, SettingsError> {
    if !section.flag("PersistMessages", true)? {
        return Ok(StoreKind::NoResend(16 << 20));
    }
    Ok(match section.text("FileStorePath") {
        Some(folder) => StoreKind::Journal(folder.into(), journal_options(section, longest)?),
        None => StoreKind::Memory(memory_limits(section, template, longest)?),
    })
}

/// Returns the sizes of a journal's files, in bytes, and the number of full-grown ones kept.
fn journal_options(
    section: &Section<'_>,
    longest: usize,
) -> Result<journal::Options, SettingsError> {
    let default = journal::Options::default();
    let full = section.number(
        "FileStoreSegmentSize",
        default.segment_bytes.into(),
        journal::least_segment_bytes(longest).into()..=1 << 30,
    )?;
    let first = u64::from(default.first_segment_bytes).min(full);
    let first = section.number("FileStoreFirstSegmentSize", first, 32 << 10..=full)?;
    let most = section.number(
        "FileStoreSegments",
        default.max_segments.into(),
        2..=1 << 20,
    )?;
    let durability = if section.flag("FileStoreSync", false)? {
        Durability::Every
    } else {
        Durability::None
    };
    Ok(journal::Options {
        first_segment_bytes: first as u32,
        segment_bytes: full as u32,
        max_segments: most as u32,
        durability,
        ..default
    })
}

/// Returns the limits of a store in memory, and how much of it is allocated from the start.
fn memory_limits(
    section: &Section<'_>,
    template: bool,
    longest: usize,
) -> Result<MemoryLimits, SettingsError> {
    let default = match (MemoryLimits::default(), template) {
        (default, false) => default,
        (default, true) => MemoryLimits {
            messages: 1 << 14,
            bytes: 4 << 20,
            ..default
        },
    };
    let messages = section.number("MemoryStoreMessages", default.messages as u64, 1..=1 << 28)?;
    let bytes = longest as u64..=1 << 36;
    let bytes = section.number("MemoryStoreSize", default.bytes as u64, bytes)?;
    let ready = section.number("MemoryStoreReadySize", default.ready as u64, 0..=bytes)?;
    Ok(MemoryLimits {
        messages: messages as usize,
        bytes: bytes as usize,
        ready: ready as usize,
    })
}
