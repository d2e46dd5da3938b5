//! Settings of TLS: certificates, their spellings, and a switch that selects plain text.

use super::*;
use crate::host::ClientNames;

const FILES: &str = "SERVER_CERTIFICATE_FILE=a.pem\nSERVER_CERTIFICATE_KEY_FILE=a.key\n\
    CERTIFICATION_AUTHORITIES_FILE=r.pem\nCERTIFICATE_VERIFY_LEVEL=0\n";

/// Reads a file with these lines in `[DEFAULT]`, from line 6 on, and in its session.
fn read(default: &str, own: &str) -> Result<Settings, SettingsError> {
    Settings::parse(&format!(
        "{ACCEPTOR}{default}[SESSION]\nBeginString=FIX.4.4\n{own}"
    ))
}

#[test]
fn a_session_overrides_the_default_in_another_spelling() {
    let own = "CertificateVerifyLevel=2\nServerCertificateFile=b.pem\n\
        SocketPrivateKeyFile=b.key\nCertificationAuthoritiesFile=s.pem\n";
    let settings = read(FILES, own).unwrap();
    let files = settings.sessions[0].tls.as_ref().unwrap();
    assert_eq!(files.certificate, Path::new("b.pem"));
    assert_eq!(files.key, Path::new("b.key"));
    assert_eq!(files.client_roots.as_deref(), Some(Path::new("s.pem")));
}

#[test]
fn two_spellings_have_one_value_in_a_section() {
    let said = read("", &format!("{FILES}CertificateVerifyLevel=2\n")).unwrap_err();
    assert_eq!(
        said.to_string(),
        "line 12: CERTIFICATE_VERIFY_LEVEL and CertificateVerifyLevel are the same setting, and \
         have different values in this section"
    );
    let same = format!("{FILES}CertificateVerifyLevel=0\nServerCertificateFile=a.pem\n");
    assert_eq!(read("", &same).unwrap().remarks, []);
    // Both roles of a file have certificates of their own.
    let both = format!("{FILES}CLIENT_CERTIFICATE_FILE=c.pem\n");
    read("", &both).unwrap();
}

#[test]
fn a_setting_of_a_file_names_one() {
    for (files, own, expected) in [
        ("", "SERVER_CERTIFICATE_FILE=\n", "SERVER_CERTIFICATE_FILE"),
        (FILES, "SocketPrivateKeyFile=\n", "SocketPrivateKeyFile"),
        (
            FILES,
            "CertificateVerifyLevel=2\nCERTIFICATION_AUTHORITIES_FILE=\n",
            "CERTIFICATION_AUTHORITIES_FILE",
        ),
    ] {
        let said = read(files, own).unwrap_err().to_string();
        assert!(
            said.ends_with(&format!(" {expected}=: must name a file")),
            "{said}"
        );
    }
}

#[test]
fn plain_text_that_is_selected_is_plain_and_what_is_idle_is_named() {
    for switch in ["SocketUseSSL=N", "SSLEnable=N"] {
        let settings = read(&format!("{FILES}{switch}\n"), "").unwrap();
        assert_eq!(settings.sessions[0].tls, None);
        let named: Vec<String> = settings.remarks.iter().map(Remark::to_string).collect();
        let expected = [
            "line 6: SERVER_CERTIFICATE_FILE=a.pem",
            "line 7: SERVER_CERTIFICATE_KEY_FILE=a.key",
            "line 8: CERTIFICATION_AUTHORITIES_FILE=r.pem",
        ];
        let expected = expected.map(|line| format!("{line} is not supported, only without "));
        assert_eq!(named, expected.map(|line| line + switch));
        let lines = |own: &str| -> Vec<usize> {
            let settings = read(FILES, own).unwrap();
            assert_eq!(settings.sessions[0].tls, None);
            settings.remarks.iter().map(|remark| remark.line).collect()
        };
        let own = format!("{switch}\nServerCertificateFile=b.pem\n");
        assert_eq!(lines(&own), [6, 7, 8, 13]);
        // The default is for another session.
        let other = "[SESSION]\nBeginString=FIX.4.2\n";
        assert_eq!(lines(&format!("{own}{other}")), [13]);
    }
    for is_on in ["SocketUseSSL=Y\nSSLEnable=N\n", "SSLEnable=\n"] {
        let settings = read(FILES, is_on).unwrap();
        assert!(settings.sessions[0].tls.is_some(), "{is_on}");
    }
}

#[test]
fn an_acceptor_may_have_certificates() {
    let certificate = "SERVER_CERTIFICATE_FILE=a.pem\n";
    let key = "SERVER_CERTIFICATE_KEY_FILE=a.key\n";
    let roots = "CERTIFICATION_AUTHORITIES_FILE=r.pem\n";
    assert_eq!(session("FIX.4.4", "").tls, None);
    let plain = session("FIX.4.4", &format!("{certificate}{key}{roots}")).tls;
    assert_eq!(plain.unwrap().client_roots, None);
    let both = format!("{certificate}{key}{roots}CERTIFICATE_VERIFY_LEVEL=2\n");
    let files = session("FIX.4.4", &both).tls.unwrap();
    assert_eq!(files.client_roots.as_deref(), Some(Path::new("r.pem")));
    assert_eq!(files.key, Path::new("a.key"));
    let with = |lines: &str| fault(&format!("BeginString=FIX.4.4\n{certificate}{lines}"));
    assert!(with("").ends_with("has no SERVER_CERTIFICATE_KEY_FILE"));
    let level = with("CERTIFICATE_VERIFY_LEVEL=2\n");
    assert!(
        level.ends_with("has no CERTIFICATION_AUTHORITIES_FILE"),
        "{level}"
    );
    assert!(with("CERTIFICATE_VERIFY_LEVEL=1\n").contains("=1: must be 0 or 2"));
    let java = format!("{certificate}{key}NeedClientAuth=Y\n");
    let files = session("FIX.4.4", &format!("{java}{roots}")).tls.unwrap();
    assert_eq!(files.client_roots.as_deref(), Some(Path::new("r.pem")));
    let whom = fault(&format!("BeginString=FIX.4.4\n{java}"));
    assert!(
        whom.ends_with("has no CERTIFICATION_AUTHORITIES_FILE"),
        "{whom}"
    );
}

#[test]
fn certificates_have_two_spellings_and_are_never_left_out() {
    let new = "ServerCertificateFile=a.pem\nServerCertificateKeyFile=a.key\n\
        CertificateVerifyLevel=2\nCertificationAuthoritiesFile=r.pem\n";
    let files = session("FIX.4.4", new).tls.unwrap();
    assert_eq!(files.certificate, Path::new("a.pem"));
    assert_eq!(files.client_roots.as_deref(), Some(Path::new("r.pem")));
    assert_eq!(session("FIX.4.4", "SocketUseSSL=N\n").tls, None);
    let stores = fault("BeginString=FIX.4.4\nSocketUseSSL=Y\nSocketKeyStore=k\n");
    let expected = "line 9: SocketKeyStore is not supported: key stores are not read; name PEM";
    assert!(stores.starts_with(expected), "{stores}");
}

#[test]
fn nothing_that_only_tls_has_is_passed_over_in_plain_text() {
    for lines in [
        "SocketUseSSL=Y\n",
        "NeedClientAuth=Y\n",
        "CERTIFICATE_VERIFY_LEVEL=2\n",
        "SERVER_CERTIFICATE_KEY_FILE=k\n",
        "CERTIFICATION_AUTHORITIES_FILE=r\n",
        "SocketCAFile=r\n",
    ] {
        let said = fault(&format!("BeginString=FIX.4.4\n{lines}"));
        let expected = "needs a SERVER_CERTIFICATE_FILE (a PEM file; key stores are not read), or \
            SocketUseSSL=N for plain text";
        assert!(
            said.starts_with("line 8: ") && said.ends_with(expected),
            "{said}"
        );
        let plain = format!("{}SocketUseSSL=N\n", lines.replace("SocketUseSSL=Y\n", ""));
        assert_eq!(session("FIX.4.4", &plain).tls, None);
    }
    let both = "SERVER_CERTIFICATE_FILE=c\nSERVER_CERTIFICATE_KEY_FILE=k\nNeedClientAuth=Y\n\
        CERTIFICATE_VERIFY_LEVEL=0\n";
    let said = fault(&format!("BeginString=FIX.4.4\n{both}"));
    assert!(
        said.ends_with("=0: cannot be set together with NeedClientAuth=Y"),
        "{said}"
    );
    let initiator = "ConnectionType=initiator\nHeartBtInt=20\nSocketConnectHost=one\n\
        SocketConnectPort=1\nUsername=u\nPassword=p\n";
    for lines in [
        "CLIENT_CERTIFICATE_FILE=c\nCLIENT_CERTIFICATE_KEY_FILE=k\n",
        "SocketServerName=x.test\n",
        "SNIHostName=x.test\n",
        "SocketUseSSL=Y\n",
    ] {
        let said = fault(&format!("BeginString=FIX.4.4\n{initiator}{lines}"));
        assert!(
            said.ends_with("has no CERTIFICATION_AUTHORITIES_FILE"),
            "{said}"
        );
    }
    let key = format!("BeginString=FIX.4.4\n{initiator}CLIENT_CERTIFICATE_KEY_FILE=k\n");
    assert!(fault(&key).ends_with("has no CLIENT_CERTIFICATE_FILE"));
}

#[test]
fn a_clients_certificate_is_for_its_comp_id_unless_told_otherwise() {
    let files = "SERVER_CERTIFICATE_FILE=a.pem\nSERVER_CERTIFICATE_KEY_FILE=a.key\n";
    let roots = "CERTIFICATION_AUTHORITIES_FILE=r.pem\nNeedClientAuth=Y\n";
    let with = |lines: &str| session("FIX.4.4", &format!("{files}{roots}{lines}")).client_names;
    assert_eq!(with(""), ClientNames::CompId);
    assert_eq!(with("SocketCheckClientName=N\n"), ClientNames::Any);
    let ClientNames::Listed(names) = with("SocketClientCertificateNames=T1, cn:trader.test\n")
    else {
        panic!("no list");
    };
    let shown: Vec<_> = names.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["T1", "cn:trader.test"]);
    let wrong = |lines: &str| fault(&format!("BeginString=FIX.4.4\n{files}{lines}"));
    let list = "SocketClientCertificateNames=T1\n";
    assert!(wrong(list).contains("needs client certificates: NeedClientAuth=Y"));
    let both = wrong(&format!("{roots}{list}SocketCheckClientName=N\n"));
    assert!(
        both.ends_with("cannot be set together with SocketCheckClientName=N"),
        "{both}"
    );
    let empty = wrong(&format!("{roots}SocketClientCertificateNames=T1,dns:\n"));
    assert!(empty.ends_with("dns:: expected NAME, cn:NAME, dns:NAME, uri:NAME or email:NAME"));
}
