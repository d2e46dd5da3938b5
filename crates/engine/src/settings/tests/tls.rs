//! Settings of TLS in several spellings, and beside a switch that selects plain text.

use super::*;

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
