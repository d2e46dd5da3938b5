mod dictionaries;
mod silences;
mod stores;
mod tls;

use super::*;
use crate::host::{IdPattern, StoreKind};
use crate::journal::Durability;
use crate::journal::Options;
use crate::tcp::HostOrder;
use fanfare_fix::dict;
use fanfare_fix::session::{ApplVerId, OverRate, Role, SECOND, Version};
use fanfare_wire::{Precision, UtcTimestamp};
use std::io;
use std::path::Path;

const ACCEPTOR: &str = "[DEFAULT]\nConnectionType=acceptor\nSocketAcceptPort=5001\n\
    SenderCompID=ISLD\nTargetCompID=TW\n";

/// Returns the only session of a file with these lines in its session.
fn session(version: &str, lines: &str) -> SessionSettings {
    let text = format!("{ACCEPTOR}[SESSION]\nBeginString={version}\n{lines}");
    let mut settings = Settings::parse(&text).unwrap();
    assert_eq!(settings.sessions.len(), 1);
    settings.sessions.remove(0)
}

/// Returns the error of a file with these lines in its session, which begins in line 6.
fn fault(lines: &str) -> String {
    let text = format!("{ACCEPTOR}[SESSION]\n{lines}");
    Settings::parse(&text).unwrap_err().to_string()
}

#[test]
fn defaults_are_those_of_the_field() {
    let session = session("FIX.4.2", "");
    let config = &session.config;
    assert_eq!(session.role, Role::Acceptor);
    assert_eq!(session.listen.unwrap().to_string(), "127.0.0.1:5001");
    assert!(!session.names_address && session.template.is_none());
    assert_eq!(config.id.to_string(), "FIX.4.2:ISLD->TW");
    assert_eq!(config.precision, Precision::Millis);
    assert_eq!(config.logon_timeout, 10 * SECOND);
    assert_eq!(config.logout_timeout, 2 * SECOND);
    assert_eq!(config.max_latency, 120 * SECOND);
    assert!(config.check_comp_id && config.check_latency && config.schedule.is_none());
    assert!(matches!(session.store, StoreKind::Memory(_)));
    let dictionaries = session.dictionaries.unwrap();
    assert_eq!(dictionaries.switches, dict::Switches::default());
}

#[test]
fn a_session_overrides_the_default_in_any_case() {
    let text = "\u{feff}# ours\n[default]\nconnectiontype=Acceptor\nSOCKETACCEPTPORT = 1\n\
        SenderCompID=A\nResetOnLogon=Y\n\n[Session]\nBeginString=FIX.4.4\nTargetCompID=B\n\
        [SESSION]\nBeginString=FIX.4.0\nTargetCompID=C=D\nResetOnLogon=N\nSocketAcceptPort=2\n";
    let settings = Settings::parse(text).unwrap();
    let [first, second] = settings.sessions.as_slice() else {
        panic!("two sessions");
    };
    assert!(first.config.reset_on_logon && !second.config.reset_on_logon);
    assert_eq!(second.config.id.to_string(), "FIX.4.0:A->C=D");
    assert_eq!(first.listen.unwrap().port(), 1);
    assert_eq!(second.listen.unwrap().port(), 2);
    assert_eq!(settings.remarks, []);
}

#[test]
fn an_initiator_has_hosts_to_fail_over_to() {
    let lines = "ConnectionType=initiator\nHeartBtInt=20\nSocketConnectHost=one\n\
        SocketConnectPort=1\nSocketConnectHost1=two\nSocketConnectPort1=2\nReconnectInterval=7\n";
    let session = session("FIX.4.4", lines);
    assert_eq!(session.hosts, [("one".into(), 1), ("two".into(), 2)]);
    assert_eq!(session.reconnect.as_secs(), 7);
    assert_eq!(session.config.heart_bt_int, 20);
    assert_eq!(session.listen, None);
    assert_eq!(session.host_order, HostOrder::Priority);
    assert_eq!(session.local, None);
}

#[test]
fn an_initiator_may_connect_from_an_address_and_try_its_hosts_in_turns() {
    let plain = "ConnectionType=initiator\nHeartBtInt=20\nSocketConnectHost=one\n\
        SocketConnectPort=1\n";
    let with = |lines: &str| session("FIX.4.4", &format!("{plain}{lines}"));
    let wrong = |lines: &str| fault(&format!("BeginString=FIX.4.4\n{plain}{lines}"));
    let local = |lines: &str| with(lines).local.unwrap().to_string();
    assert_eq!(local("SocketLocalHost=10.1.0.7\n"), "10.1.0.7:0");
    let both = "SocketConnectSourceHost=localhost\nSocketConnectSourcePort=7001\n";
    assert_eq!(local(both), "127.0.0.1:7001");
    let turns = with("HostSelectionPolicy=round_robin\n");
    assert_eq!(turns.host_order, HostOrder::RoundRobin);
    for (lines, why) in [
        (
            "SocketLocalHost=eth0\n",
            "must be an address of this machine",
        ),
        ("SocketLocalPort=7001\n", "needs SocketLocalHost"),
        ("SocketLocalPort=0\n", "must be between 1 and 65535"),
        (
            "HostSelectionPolicy=any\n",
            "must be PRIORITY or ROUND_ROBIN",
        ),
    ] {
        let said = wrong(lines);
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn times_stamps_and_stores() {
    let of = |version, lines| session(version, lines).config.precision;
    assert_eq!(of("FIX.4.1", "TimestampPrecision=9\n"), Precision::Seconds);
    assert_eq!(of("FIX.4.3", "TimestampPrecision=6\n"), Precision::Micros);
    assert_eq!(of("FIX.4.3", "TimeStampPrecision=NANOS"), Precision::Nanos);
    let without = "MillisecondsInTimeStamp=N\n";
    assert_eq!(of("FIX.4.4", without), Precision::Seconds);
    let journal = session("FIX.4.4", "FileStorePath=kept\nFileLogPath=logged\n");
    assert!(matches!(journal.store, StoreKind::Journal(path, _) if path == Path::new("kept")));
    assert_eq!(journal.log.as_deref(), Some(Path::new("logged")));
    let none = session("FIX.4.4", "FileStorePath=kept\nPersistMessages=N\n");
    assert!(matches!(none.store, StoreKind::NoResend(_)));
}

#[test]
fn rates_are_limited_where_asked_for() {
    let none = session("FIX.4.4", "SendRateQueue=5\n").config;
    assert_eq!((none.send_limit, none.receive_limit), (None, None));
    let lines = "SendRateMessages=50\nSendRateInterval=200\nSendRateQueue=0\n\
        ReceiveRateMessages=100\nReceiveRateAction=Reject\n";
    let config = session("FIX.4.4", lines).config;
    let send = config.send_limit.unwrap();
    assert_eq!((send.rate.messages, send.queue), (50, 0));
    assert_eq!(send.rate.interval, 200_000_000);
    let receive = config.receive_limit.unwrap();
    assert_eq!(
        receive.rate.to_string(),
        "more than 100 messages in 1000 ms"
    );
    assert_eq!(receive.action, OverRate::Reject);
    let wrong = fault("BeginString=FIX.4.4\nReceiveRateAction=scold\n");
    assert!(
        wrong.ends_with("ReceiveRateAction=scold: must be disconnect or reject"),
        "{wrong}"
    );
    let wrong = fault("BeginString=FIX.4.4\nSendRateMessages=0\n");
    assert!(
        wrong.ends_with("SendRateMessages=0: must be between 1 and 1000000"),
        "{wrong}"
    );
}

#[test]
fn templates_are_for_patterns() {
    let template = "AcceptorTemplate=Y\nMaxDynamicSessions=7\nSenderSubID=*\n";
    let text = ACCEPTOR.replace("TargetCompID=TW\n", "");
    let parse = |lines: &str| Settings::parse(&format!("{text}[SESSION]\n{lines}")).unwrap();
    let one = parse(&format!(
        "{template}BeginString=FIX.4.4\nTargetCompID=DESK*\n"
    ));
    let [one] = one.sessions.as_slice() else {
        panic!("one");
    };
    let own = one.template.as_ref().unwrap();
    assert_eq!((own.max_sessions, own.qualified, own.line), (7, false, 5));
    assert_eq!(own.pattern.sender, IdPattern::Exactly("ISLD".into()));
    assert_eq!(own.pattern.target, IdPattern::Prefix("DESK".into()));
    assert_eq!(own.pattern.sender_sub, Some(IdPattern::Prefix("".into())));
    assert_eq!(own.pattern.target_sub, None);
    assert_eq!(one.config.id.to_string(), "FIX.4.4:ISLD/*->DESK*");
    assert_eq!(one.config.header_fields, []);
    let StoreKind::Memory(limits) = one.store else {
        panic!("in memory");
    };
    assert_eq!(limits.bytes, 4 << 20);
    // As in QuickFIX/Go: [DEFAULT] alone.
    let go = format!("{text}DynamicSessions=Y\nDynamicQualifier=Y\n");
    let all = Settings::parse(&go).unwrap();
    assert_eq!(
        (all.sessions.len(), all.remarks),
        (Version::ALL.len(), Vec::new())
    );
    for session in &all.sessions {
        assert_eq!(session.template.as_ref().map(|own| own.line), Some(1));
        assert!(session.config.reset_on_disconnect);
    }
    let two = "AcceptorTemplate=Y\nBeginString=FIX.4.4\n";
    assert_eq!(
        parse(&format!("{two}[SESSION]\nSocketAcceptPort=1\n{two}"))
            .sessions
            .len(),
        2
    );
}

#[test]
fn a_star_is_not_taken_at_its_word() {
    let hint = "`*` is only allowed in a template, a section with AcceptorTemplate=Y";
    for lines in [
        "BeginString=FIX.4.4\nTargetCompID=*\n",
        "BeginString=FIX.4.4\nSenderCompID=ISLD*\n",
        "BeginString=FIX.4.4\nTargetSubID=*\n",
        "BeginString=*\n",
        "BeginString=FIX.4.4\nAcceptorTemplate=N\nTargetCompID=*\n",
    ] {
        let said = fault(lines);
        assert!(said.ends_with(hint), "{lines}: {said}");
    }
    let inner = fault("AcceptorTemplate=Y\nBeginString=FIX.4.4\nTargetCompID=A*B\n");
    assert!(
        inner.ends_with("must be a name, a prefix followed by `*`, or `*`"),
        "{inner}"
    );
    let table = fault("AcceptorTemplate=Y\nBeginString=*\nDataDictionary=d.xml\n");
    assert!(
        table.contains("DataDictionary=d.xml: needs one version"),
        "{table}"
    );
    let inside = fault("BeginString=FIX.4.4\nDynamicSessions=Y\n");
    assert!(inside.contains("must be in [DEFAULT]"), "{inside}");
    let initiator = "BeginString=FIX.4.4\nConnectionType=initiator\nHeartBtInt=20\n\
        SocketConnectHost=one\nSocketConnectPort=1\nDynamicSession=Y\n";
    assert!(fault(initiator).ends_with("must be N in an initiator, which has no templates"));
    let text = "MaxDynamicSessions=3\n";
    let text = format!("{ACCEPTOR}[SESSION]\nBeginString=FIX.4.4\n{text}");
    let remarks = Settings::parse(&text).unwrap().remarks;
    let expected = "line 8: MaxDynamicSessions=3 is not supported, only with AcceptorTemplate=Y";
    assert_eq!(remarks[0].to_string(), expected);
}

#[test]
fn who_connects_shows_without_being_said() {
    let text = ACCEPTOR.replace("ConnectionType=acceptor\n", "");
    let parse = |more: &str| Settings::parse(&format!("{text}[SESSION]\n{more}"));
    let of = |more: &str| parse(more).map(|settings| settings.sessions[0].role);
    assert_eq!(of("BeginString=FIX.4.4\n"), Ok(Role::Acceptor));
    let both = of("BeginString=FIX.4.4\nSocketConnectHost=h\n").unwrap_err();
    assert!(both.to_string().ends_with("no ConnectionType"), "{both}");
    let to = "[DEFAULT]\nSenderCompID=A\nTargetCompID=B\nHeartBtInt=30\n[SESSION]\n\
        BeginString=FIX.4.4\nSocketConnectHost=h\nSocketConnectPort=1\n";
    assert_eq!(
        Settings::parse(to).unwrap().sessions[0].role,
        Role::Initiator
    );
}

#[test]
fn messages_name_the_sub_and_location_ids() {
    let config = session("FIX.4.4", "SenderSubID=S\nTargetLocationID=L\n").config;
    let fields = [(50, b"S"[..].into()), (143, b"L"[..].into())];
    assert_eq!(config.header_fields, fields);
    let empty = fault("BeginString=FIX.4.4\nTargetSubID=\n");
    assert_eq!(
        empty,
        "line 8: TargetSubID=: must not be empty or contain SOH"
    );
}

#[test]
fn an_initiator_may_encrypt_and_say_who_it_is() {
    let plain = "ConnectionType=initiator\nHeartBtInt=20\nSocketConnectHost=one\n\
        SocketConnectPort=1\n";
    let with = |lines: &str| session("FIX.4.4", &format!("{plain}{lines}"));
    let wrong = |lines: &str| fault(&format!("BeginString=FIX.4.4\n{plain}{lines}"));
    assert_eq!(
        (with("").client_tls, with("").config.credentials),
        (None, None)
    );
    let roots = "CERTIFICATION_AUTHORITIES_FILE=r.pem\n";
    let files = with(roots).client_tls.unwrap();
    assert_eq!(
        (files.roots.as_path(), files.identity),
        (Path::new("r.pem"), None)
    );
    assert_eq!(with(&format!("{roots}SocketUseSSL=N\n")).client_tls, None);
    let own = "CLIENT_CERTIFICATE_FILE=c.pem\nSNIHostName=x.test\n";
    let key = "CLIENT_CERTIFICATE_KEY_FILE=c.key\n";
    let files = with(&format!("{roots}{own}{key}")).client_tls.unwrap();
    assert_eq!(files.identity, Some(("c.pem".into(), "c.key".into())));
    assert_eq!(files.name.as_deref(), Some("x.test"));
    let no_key = wrong(&format!("{roots}{own}"));
    assert!(
        no_key.ends_with("has no CLIENT_CERTIFICATE_KEY_FILE"),
        "{no_key}"
    );
    let no_roots = wrong("SocketUseSSL=Y\n");
    assert!(
        no_roots.ends_with("has no CERTIFICATION_AUTHORITIES_FILE"),
        "{no_roots}"
    );

    let login = with("Username=me\nPassword=secret\n");
    let fields = &login.config.logon_fields;
    assert_eq!(
        fields[..],
        [(553, b"me"[..].into()), (554, b"secret"[..].into())]
    );
    assert_eq!(login.config.credentials, None);
    assert!(wrong("Username=me\n").ends_with("has no Password"));
    let broken = fault("BeginString=FIX.4.4\nUsername=me\nPassword=sec\x01ret\n");
    let expected = "line 9: Password=***: must not be empty or contain SOH";
    assert_eq!(broken, expected);
    let asks = session("FIX.4.4", "Username=me\nPassword=secret\n").config;
    assert!(asks.logon_fields.is_empty());
    assert!(!format!("{:?}", asks.credentials).contains("secret"));
    let asks = asks.credentials.unwrap();
    assert_eq!((&*asks.username, &*asks.password), ("me", "secret"));
}

/// Returns 2026-11-21, a Saturday, at this hour in UTC.
fn saturday(hour: i64) -> UtcTimestamp {
    UtcTimestamp::from_nanos((1_795_219_200 + hour * 3600) * 1_000_000_000)
}

fn tokyo_behind(end: &str) -> String {
    format!("StartTime=08:00:00 Asia/Tokyo\nEndTime=17:00:00 {end}\n")
}

#[test]
fn hours_by_day_by_week_and_in_a_zone() {
    let open = |lines: &str, hour| {
        let config = session("FIX.4.4", lines).config;
        config.schedule.unwrap().is_open(saturday(hour))
    };
    let daily = "StartTime=08:00:00\nEndTime=17:00:00\n";
    assert!(open(daily, 8) && !open(daily, 7) && !open(daily, 18));
    let tokyo = &format!("{daily}TimeZone=Asia/Tokyo\n");
    assert!(open(tokyo, 1) && !open(tokyo, 9));
    let behind = &tokyo_behind("Asia/Tokyo");
    assert!(open(behind, 1) && !open(behind, 9));
    let two = fault(&format!("BeginString=FIX.4.4\n{}", tokyo_behind("UTC")));
    assert!(
        two.ends_with("must have the same time zone as StartTime"),
        "{two}"
    );
    let weekly = &format!("{daily}StartDay=Mon\nEndDay=Friday\n");
    assert!(!open(weekly, 10));
    let weekdays = &format!("{daily}Weekdays=Sat,Sun\n");
    assert!(open(weekdays, 10));
    let always = session("FIX.4.4", &format!("{daily}NonStopSession=Y\n"));
    assert!(always.config.schedule.is_none());
    let logon = session("FIX.4.4", "LogonTime=09:00:00\nLogoutTime=10:00:00\n").config;
    assert!(logon.schedule.is_none() && logon.logon_schedule.is_some());
}

#[test]
fn dictionaries_are_read_or_built_in() {
    let lines = "DataDictionary=absent.xml\nAllowUnknownMsgFields=Y\nValidateFieldsHaveValues=N\n";
    let files = session("FIX.4.2", lines).dictionaries.unwrap();
    assert!(files.switches.allow_unknown_fields && !files.switches.fields_have_values);
    let mut remarks = Vec::new();
    let absent = |_: &Path| Err(io::ErrorKind::NotFound.into());
    let error = files.load(&absent, &mut remarks).unwrap_err().to_string();
    let expected = "line 8: DataDictionary=absent.xml: no such file; without DataDictionary the \
        built-in dictionary of FIX.4.2 is used";
    assert_eq!(error, expected);
    session("FIX.4.2", "")
        .dictionaries
        .unwrap()
        .load(&absent, &mut remarks)
        .unwrap();

    let broken = |_: &Path| Ok("<fix".to_owned());
    let error = files.load(&broken, &mut remarks).unwrap_err().to_string();
    assert!(error.starts_with("absent.xml: "), "{error}");
    let denied = |_: &Path| Err(io::ErrorKind::PermissionDenied.into());
    let error = files.load(&denied, &mut remarks).unwrap_err().to_string();
    assert!(error.starts_with("cannot read absent.xml"), "{error}");
    let unused = session(
        "FIX.4.2",
        "UseDataDictionary=N\nDataDictionary=absent.xml\n",
    );
    assert_eq!(unused.dictionaries, None);
    let unchecked = "ValidateIncomingMessage=N\n";
    assert_eq!(session("FIX.4.2", unchecked).dictionaries, None);
    let named = session("FIX.4.2", &format!("{unchecked}DataDictionary=own.xml\n"));
    let named = named.dictionaries.unwrap();
    assert!(named.session.is_some() && !named.incoming && !named.outgoing);
    let own = session(
        "FIX.4.2",
        "ValidateIncomingMessage=N\nValidateOutgoingMessage=Y\n",
    );
    let own = own.dictionaries.unwrap();
    assert!(own.outgoing && !own.incoming);
    let lines = "BeginString=FIX.4.4\nUseDataDictionary=N\nValidateOutgoingMessage=Y\n";
    let text = fault(lines);
    assert!(
        text.contains("must be N with UseDataDictionary=N"),
        "{text}"
    );
}

#[test]
fn a_dictionary_of_another_version_is_used_and_named() {
    let remarks = |begin_string: &str, lines: &str, version: &str| {
        let (session, mut remarks) = (session(begin_string, lines), Vec::new());
        let xml = format!("<fix {version}><fields/><messages/></fix>");
        let (files, read) = (session.dictionaries.unwrap(), |_: &Path| Ok(xml.clone()));
        for _ in 0..2 {
            files.load(&read, &mut remarks).unwrap();
        }
        remarks
    };
    let own = |version| remarks("FIX.4.4", "DataDictionary=own.xml\n", version);
    let expected = "line 8: DataDictionary=own.xml: the dictionary is of FIX.4.2, the messages \
        are of FIX.4.4";
    assert_eq!(own("major='4' minor='2'"), [expected]);
    assert_eq!(own("major='4' minor='4'"), [""; 0]);
    // A version of a venue's own.
    assert_eq!(own("major='4' minor='9'"), [""; 0]);
    let lines = "DefaultApplVerID=FIX.5.0SP2\nAppDataDictionary=app.xml\n";
    let told = remarks("FIXT.1.1", lines, "major='5' minor='0' servicepack='1'");
    let expected = "line 9: AppDataDictionary=app.xml: the dictionary is of FIX.5.0SP1, the \
        messages are of FIX.5.0SP2";
    assert_eq!(told, [expected]);
}

#[test]
fn fixt_has_two_kinds_of_dictionaries() {
    let lines = "DefaultApplVerID=FIX.5.0SP1\nTransportDataDictionary=t.xml\n\
        AppDataDictionary=a.xml\nAppDataDictionary.FIX.4.4=b.xml\n";
    let session = session("FIXT.1.1", lines);
    assert_eq!(session.config.id.version, Version::Fixt11);
    assert_eq!(session.config.default_appl_ver_id, ApplVerId::Fix50Sp1);
    let files = session.dictionaries.unwrap();
    let transport = files.session.as_ref().map(|file| file.path.as_path());
    assert_eq!(transport, Some(Path::new("t.xml")));
    let applications = files.applications.iter();
    let applications: Vec<_> = applications
        .map(|(v, file)| (*v, file.path.clone()))
        .collect();
    let (sp1, v44) = (dict::Version::Fix50Sp1, dict::Version::Fix44);
    assert_eq!(applications, [(sp1, "a.xml".into()), (v44, "b.xml".into())]);
    let only = |there: &str, path: &Path| match path == Path::new(there) {
        true => Ok(String::new()),
        false => Err(io::ErrorKind::NotFound.into()),
    };
    let read = |path: &Path| only("a.xml", path);
    let error = files.load(&read, &mut Vec::new()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("TransportDataDictionary=t.xml: no such file")
    );
    let text = format!("{ACCEPTOR}AppDataDictionary.FIX.9=x\n{SESSION}");
    let remarks = Settings::parse(&text).unwrap().remarks;
    assert_eq!(
        remarks[0].to_string(),
        "line 6: AppDataDictionary.FIX.9 is not supported"
    );
}

#[test]
fn what_has_no_effect_is_named() {
    let text = format!(
        "{ACCEPTOR}SocketReuseAddress=Y\nSendRedundantResendRequests=N\nRefreshOnLogon=Y\n\
         [SESSION]\nBeginString=FIX.4.4\nMyOwn=1\nSocketConnectHost1=x\n"
    );
    let remarks = Settings::parse(&text).unwrap().remarks;
    let texts: Vec<_> = remarks.iter().map(ToString::to_string).collect();
    let expected = [
        "line 8: RefreshOnLogon=Y is not supported, only N",
        "line 11: MyOwn is not supported",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn faults_are_told_with_their_line() {
    assert_eq!(fault(""), "line 6: the session has no BeginString");
    let version = "line 7: BeginString=FIX.6: must be FIX.4.0 to FIX.4.4 or FIXT.1.1";
    assert_eq!(fault("BeginString=FIX.6"), version);
    let with = |line: &str| fault(&format!("BeginString=FIX.4.4\n{line}\n"));
    assert_eq!(
        with("CheckLatency=maybe"),
        "line 8: CheckLatency=maybe: must be Y or N"
    );
    let timeout = "line 8: LogonTimeout=0: must be between 1 and 86400";
    assert_eq!(with("LogonTimeout=0"), timeout);
    let twice = "line 8: beginstring occurs twice in this section";
    assert_eq!(with("beginstring=FIX.4.2"), twice);
    let nothing = "line 8: expected [DEFAULT], [SESSION], Key=Value or a # comment";
    assert_eq!(with("what"), nothing);
    assert_eq!(with("[OTHER]"), nothing);
    assert!(with("StartTime=25:00:00\nEndTime=26:00:00").starts_with("line 8: StartTime"));
    assert!(with("StartTime=05:00:00").ends_with("has no EndTime"));
    assert!(with("LogonTime=05:00:00\nLogoutTime=06:00:00\nTimeZone=Mars").contains("Mars"));
    let text = "BeginString=FIX.4.4\n[SESSION]\n";
    let outside = "line 1: the setting comes before the first [DEFAULT] or [SESSION]";
    assert_eq!(Settings::parse(text).unwrap_err().to_string(), outside);
    let none = Settings::parse(ACCEPTOR).unwrap_err().to_string();
    assert_eq!(none, "line 5: the file has no [SESSION]");
    let twice = fault("BeginString=FIX.4.4\n[SESSION]\nBeginString=FIX.4.4\n");
    assert!(
        twice.starts_with("line 8: session FIX.4.4:ISLD->TW occurs twice"),
        "{twice}"
    );
    let fixt = fault("BeginString=FIXT.1.1\n");
    assert!(fixt.ends_with("has no DefaultApplVerID"), "{fixt}");
    let kind = fault("ConnectionType=both\nBeginString=FIX.4.4\n");
    assert!(kind.ends_with("must be acceptor or initiator"), "{kind}");
}

#[test]
fn sessions_are_told_apart_by_what_they_name() {
    let sub = session("FIX.4.4", "SenderSubID=S\nTargetLocationID=L\n").config;
    assert_eq!(sub.id.to_string(), "FIX.4.4:ISLD/S->TW//L");
    let initiator = "ConnectionType=initiator\nHeartBtInt=20\nSocketConnectHost=one\n\
        SocketConnectPort=1\nSessionQualifier=second\n";
    let id = session("FIX.4.4", initiator).config.id;
    assert_eq!(id.to_string(), "FIX.4.4:ISLD->TW:second");
    let text = format!("{ACCEPTOR}SessionQualifier=q\n[SESSION]\nBeginString=FIX.4.4\n");
    let settings = Settings::parse(&(text + "[SESSION]\nBeginString=FIX.4.2\n")).unwrap();
    assert_eq!(settings.sessions[0].config.id.sub, None);
    let remarks: Vec<_> = settings.remarks.iter().map(ToString::to_string).collect();
    let expected = "line 6: SessionQualifier=q is not supported, only in an initiator";
    assert_eq!(remarks, [expected]);
}

#[test]
fn other_engines_names_of_the_same() {
    let text = "MaxMessagesInResendRequest=10\nSendNextExpectedMsgSeqNum=Y\n";
    let config = session("FIX.4.4", text).config;
    assert_eq!(config.resend_request_chunk, 10);
    assert!(config.next_expected && config.closed_resend_interval);
    let config = session("FIX.4.4", "MaxMessagesInResendRequest=0\n").config;
    assert!(!config.closed_resend_interval);
    let dictionaries = session("FIX.4.4", "CheckUserDefinedFields=N\n").dictionaries;
    assert!(!dictionaries.unwrap().switches.user_defined_fields);
    let local = session("FIX.4.4", "SocketAcceptAddress=localhost\n").listen;
    assert!(local.unwrap().ip().is_loopback());
    let go = "SocketCertificateFile=c.pem\nSocketPrivateKeyFile=c.key\nSocketCAFile=r.pem\n";
    let files = session("FIX.4.4", go).tls.unwrap();
    assert_eq!(files.client_roots.as_deref(), Some(Path::new("r.pem")));
    let initiator = "ConnectionType=initiator\nHeartBtInt=20\nSocketConnectHost=one\n\
        SocketConnectPort=1\nSocketServerName=x.test\n";
    let files = session("FIX.4.4", &format!("{initiator}{go}")).client_tls;
    let files = files.unwrap();
    assert_eq!(files.identity, Some(("c.pem".into(), "c.key".into())));
    assert_eq!(files.name.as_deref(), Some("x.test"));
    let text = format!("{ACCEPTOR}{go}SocketAcceptProtocol=tcp\nLogonTag1=1=x\n{SESSION}");
    assert_eq!(Settings::parse(&text).unwrap().remarks, []);
}

const SESSION: &str = "[SESSION]\nBeginString=FIX.4.4\n";

#[test]
fn hosts_have_ports_and_stand_in_one_row() {
    let plain = "BeginString=FIX.4.4\nConnectionType=initiator\nHeartBtInt=20\n\
        SocketConnectHost=one\nSocketConnectPort=1\n";
    let with = |lines: &str| fault(&format!("{plain}{lines}"));
    let no_port = with("SocketConnectHost1=two\n");
    let expected = "line 12: SocketConnectHost1=two: SocketConnectPort1 is missing";
    assert_eq!(no_port, expected);
    let hole = with("SocketConnectHost2=two\nSocketConnectPort2=2\n");
    let expected = "line 12: SocketConnectHost2=two: SocketConnectHost1 is missing";
    assert_eq!(hole, expected);
    assert!(with("SocketConnectPort1=2\n").ends_with("SocketConnectHost1 is missing"));
}

#[test]
fn rules_that_counterparties_need_otherwise() {
    let text = "RequiresOrigSendingTime=N\nSendLogoutBeforeDisconnectFromTimeout=Y\n\
        ClosedResendInterval=Y\n";
    let config = session("FIX.4.4", text).config;
    assert!(!config.requires_orig_sending_time && config.logout_on_silence);
    assert!(config.closed_resend_interval);
    let stored = session("FIX.4.4", "FileStorePath=s\nFileStoreSync=Y\n").store;
    let StoreKind::Journal(_, options) = stored else {
        panic!("no journal");
    };
    assert_eq!(options.durability, Durability::Every);
}

#[test]
fn files_of_the_message_log_end_as_the_settings_say() {
    let rotation = |text: &str| session("FIX.4.4", text).log_rotation;
    let default = rotation("");
    assert_eq!((default.max_bytes, default.keep), (1 << 30, 10));
    assert!(default.daily.is_none() && default.compress == 3);
    let own =
        rotation("FileLogMaxSize=65536\nFileLogRollTime=17:30\nFileLogKeep=3\nFileLogCompress=0\n");
    assert_eq!((own.max_bytes, own.keep, own.compress), (65536, 3, 0));
    assert!(own.daily.is_some());
    for wrong in ["FileLogRollTime=25:00", "FileLogKeep=0", "FileLogMaxSize=1"] {
        let told = fault(&format!("BeginString=FIX.4.4\n{wrong}\n"));
        let (key, value) = wrong.split_once('=').unwrap();
        assert!(told.contains(key) && told.contains(value), "{told}");
    }
}

#[test]
fn limits_of_a_port_before_a_logon() {
    let limits = |text: &str| session("FIX.4.4", text).port_limits;
    let of = |connections, connections_per_address, logon_bytes| PortLimits {
        connections,
        connections_per_address,
        logon_bytes,
    };
    assert_eq!(limits(""), of(1_000, 500, 8_192));
    assert_eq!(limits("MaxConnectionsNotLoggedOn=7\n"), of(7, 7, 8_192));
    let all = "MaxConnectionsNotLoggedOn=5000\nMaxConnectionsNotLoggedOnPerAddress=3\n\
        MaxLogonLength=256\n";
    assert_eq!(limits(all), of(5_000, 3, 256));
    for (wrong, range) in [
        ("MaxLogonLength=255", "256 and 65536"),
        ("MaxLogonLength=65537", "256 and 65536"),
        ("MaxConnectionsNotLoggedOn=0", "1 and 100000"),
        ("MaxConnectionsNotLoggedOn=100001", "1 and 100000"),
        ("MaxConnectionsNotLoggedOnPerAddress=1001", "1 and 1000"),
        ("MaxConnectionsNotLoggedOnPerAddress=0", "1 and 1000"),
    ] {
        let said = fault(&format!("BeginString=FIX.4.4\n{wrong}\n"));
        let expected = format!("{wrong}: must be between {range}");
        assert!(said.ends_with(&expected), "{said}");
    }
    let initiator = "BeginString=FIX.4.4\nConnectionType=initiator\nHeartBtInt=20\n\
        SocketConnectHost=one\nSocketConnectPort=1\nMaxLogonLength=300\n";
    let text = format!("{ACCEPTOR}[SESSION]\n{initiator}");
    let remarks = Settings::parse(&text).unwrap().remarks;
    let expected = "line 12: MaxLogonLength=300 is not supported, only in an acceptor";
    assert_eq!(remarks[0].to_string(), expected);
}

#[test]
fn fields_of_the_logon() {
    let text = "LogonTag1=58=second\nLogonTag=553=me\n";
    let fields = session("FIX.4.4", text).config.logon_fields;
    let expected = [(58, b"second"[..].into()), (553, b"me"[..].into())];
    assert_eq!(fields, expected);
    for wrong in ["553", "553=", "x=1", "98=1", "49=me", "10=000"] {
        let wrong = fault(&format!("BeginString=FIX.4.4\nLogonTag={wrong}\n"));
        let expected = "LogonTag=***: must be a field of the Logon's body, such as 553=user";
        assert!(wrong.ends_with(expected), "{wrong}");
    }
}

#[test]
fn types_that_are_never_sent_again() {
    let types = |lines: &str| session("FIX.4.4", lines).config.gap_filled_types;
    assert!(types("").is_empty());
    let expected = [b"D"[..].into(), b"AE"[..].into()];
    assert_eq!(types("GapFillOnReplayMessageTypes=D, AE\n"), expected);
    for wrong in ["", "D,,G", "D;G", "D|G"] {
        let line = format!("GapfillOnReplayMessageTypes={wrong}");
        let said = fault(&format!("BeginString=FIX.4.4\n{line}\n"));
        let expected = format!("{line}: must be a list of MsgTypes, such as D,F,G");
        assert!(said.ends_with(&expected), "{said}");
    }
}

#[test]
fn hours_that_contradict_or_are_half_there() {
    let with = |lines: &str| fault(&format!("BeginString=FIX.4.4\n{lines}"));
    let daily = "StartTime=08:00:00\nEndTime=17:00:00\n";
    let both = with(&format!("{daily}StartDay=Mon\nEndDay=Fri\nWeekdays=Mon\n"));
    assert!(
        both.ends_with("StartDay=Mon: cannot be set together with Weekdays"),
        "{both}"
    );
    assert!(with("Weekdays=Mon\n").ends_with("has no StartTime"));
    let zones = with(&format!("{daily}UseLocalTime=Y\nTimeZone=UTC\n"));
    assert!(
        zones.ends_with("UseLocalTime=Y: cannot be set together with TimeZone"),
        "{zones}"
    );
    let local = session("FIX.4.4", &format!("{daily}UseLocalTime=Y\n"));
    assert!(local.config.schedule.is_some());
    let zone = |lines: &str| {
        let text = format!("{ACCEPTOR}[SESSION]\nBeginString=FIX.4.4\n{lines}");
        Settings::parse(&text).unwrap().local_zone
    };
    assert!(zone(&format!("{daily}UseLocalTime=Y\n")).is_some());
    assert_eq!(zone(daily), None);
    // They have no part in the hours.
    assert_eq!(zone("UseLocalTime=Y\n"), None);
}
