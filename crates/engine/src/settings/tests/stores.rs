//! The stores of sessions.

use super::*;

#[test]
fn what_is_received_is_kept_only_in_a_store() {
    let kept = |text: &str| session("FIX.4.4", text).store;
    let both = kept("FileStorePath=s\nKeepReceived=Y\n");
    assert!(matches!(both, StoreKind::BothWays(..)), "{both:?}");
    let sent = kept("FileStorePath=s\nKeepReceived=N\n");
    assert!(matches!(sent, StoreKind::Journal(..)), "{sent:?}");
    let told = fault("BeginString=FIX.4.4\nKeepReceived=Y\n");
    assert!(told.contains("needs FileStorePath"), "{told}");
    assert!(session("FIX.4.4", "FileLogLossy=Y\n").lossy_log);
    assert!(!session("FIX.4.4", "").lossy_log);
}

#[test]
fn sizes_of_the_store() {
    let options = |text: &str| match session("FIX.4.4", &format!("FileStorePath=s\n{text}")).store {
        StoreKind::Journal(_, options) => options,
        other => panic!("{other:?}"),
    };
    assert_eq!(options(""), Options::default());
    let set = options(
        "FileStoreFirstSegmentSize=65536\nFileStoreSegmentSize=1048576\nFileStoreSegments=9\n",
    );
    let sizes = (set.first_segment_bytes, set.segment_bytes, set.max_segments);
    assert_eq!(sizes, (64 << 10, 1 << 20, 9));
    let memory = "MemoryStoreMessages=9\nMemoryStoreSize=69632\nMemoryStoreReadySize=69632\n";
    let StoreKind::Memory(limits) = session("FIX.4.4", memory).store else {
        panic!("not in memory");
    };
    assert_eq!(
        (limits.messages, limits.bytes, limits.ready),
        (9, 69_632, 69_632)
    );
    for (wrong, range) in [
        ("FileStoreSegmentSize=94207", "between 94208 and 1073741824"),
        (
            "FileStoreFirstSegmentSize=4194305",
            "between 32768 and 4194304",
        ),
        ("FileStoreSegments=1", "between 2 and 1048576"),
    ] {
        let told = fault(&format!("BeginString=FIX.4.4\nFileStorePath=s\n{wrong}\n"));
        assert!(told.ends_with(range), "{told}");
    }
    let told = fault("BeginString=FIX.4.4\nMemoryStoreSize=69631\n");
    assert!(told.ends_with("between 69632 and 68719476736"), "{told}");
    for (lines, expected) in [
        (
            "FileStoreSegments=0\n",
            "line 8: FileStoreSegments=0 is not supported, only with FileStorePath",
        ),
        (
            "FileStorePath=s\nMemoryStoreSize=1\n",
            "line 9: MemoryStoreSize=1 is not supported, only without FileStorePath",
        ),
        (
            "PersistMessages=N\nFileStorePath=s\n",
            "line 9: FileStorePath=s is not supported, only with PersistMessages=Y",
        ),
    ] {
        let text = format!("{ACCEPTOR}[SESSION]\nBeginString=FIX.4.4\n{lines}");
        let remarks = Settings::parse(&text).unwrap().remarks;
        let remarks: Vec<_> = remarks.iter().map(ToString::to_string).collect();
        assert_eq!(remarks, [expected]);
    }
}

#[test]
fn a_session_that_keeps_both_directions_has_two_journals_open() {
    let descriptors = |lines: &str| {
        let all = "FileStorePath=s\nUseDataDictionary=N\n";
        let text = format!("{ACCEPTOR}{all}{SESSION}{lines}");
        let endpoints = Settings::parse(&text).unwrap().endpoints().unwrap();
        endpoints.descriptors()
    };
    let one = descriptors("");
    assert_eq!(descriptors("KeepReceived=Y\n"), one + 3);
    let template = "KeepReceived=Y\nAcceptorTemplate=Y\nMaxDynamicSessions=5\n";
    assert_eq!(descriptors(template), one - 4 + 5 * 7);
}

#[test]
fn variables_in_paths_are_refused() {
    for line in [
        "FileStorePath=${user.home}/store",
        "filelogpath=log/${DATE}",
        "DataDictionary=${dictionaries}",
        "AppDataDictionary.FIX.4.4=a${b}c",
        "ServerCertificateFile=${cert}",
    ] {
        let told = fault(&format!("BeginString=FIX.4.4\n{line}\n"));
        let expected =
            format!("line 8: {line}: ${{…}} is not replaced here: write the path itself");
        assert_eq!(told, expected);
    }
    // Also for all sessions, and not in other values.
    let text = format!("{ACCEPTOR}FileStorePath=${{x}}\n[SESSION]\nBeginString=FIX.4.4\n");
    let told = Settings::parse(&text).unwrap_err().to_string();
    assert!(told.starts_with("line 6: FileStorePath=${x}: "), "{told}");
    for line in [
        "Username=a\nPassword=${b}",
        "FileStorePath=a$b{c}",
        "FileStorePath=${a",
    ] {
        session("FIX.4.4", &format!("{line}\n"));
    }
}
