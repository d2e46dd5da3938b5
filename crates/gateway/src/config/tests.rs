//! Tests of [`Config`]: its text, defaults and ranges.

use super::*;
use fanfare_peers::Scratch;
use std::error::Error;

#[test]
fn an_empty_file_is_the_default() {
    assert_eq!(Config::from_toml("").unwrap(), Config::default());
    Config::default().check().unwrap();
}

#[test]
fn an_unknown_key_is_refused_with_its_line() {
    let text = "workers = 2\n\n[producers]\nport = 3000\nprot = 1\n";
    let told = Config::from_toml(text).unwrap_err().to_string();
    assert!(told.contains("line 5") && told.contains("prot"), "{told}");
}

#[test]
fn a_value_of_the_wrong_type_names_its_line() {
    let told = Config::from_toml("workers = \"two\"\n")
        .unwrap_err()
        .to_string();
    assert!(told.contains("line 1"), "{told}");
}

#[test]
fn an_error_shows_no_long_text() {
    let long = "x".repeat(1 << 20);
    for text in [
        "\0".repeat(1 << 20),
        format!("workers = 1\n{long} = 1\n"),
        format!("workers = \"{long}\"\n"),
        format!("workers = \"\"\"\n{long}\"\"\"\n"),
        format!("[console]\ntoken_file = \"{long}\"\nbind = \"0.0.0.0\"\nallow = 1\n"),
        format!("[[user]]\nname = \"{long}\"\npassword = \"x\"\n"),
        format!("consumers.sessions = [{{ sender = \"{long}\\u0001\", target = \"B\" }}]\n"),
    ] {
        let told = Config::from_toml(&text).unwrap_err().to_string();
        assert!((20..2_500).contains(&told.len()), "{}", told.len());
    }
    let short = Config::from_toml("workers = \"two\"\n").unwrap_err();
    assert!(short.to_string().contains("workers = \"two\""), "{short}");
}

#[test]
fn an_error_shows_no_token_in_the_place_of_its_file() {
    for (table, key) in [("console", "token"), ("console", "tokn"), ("dbn", "key")] {
        let text = format!("workers = 1\n[{table}]\n{key} = \"hunter2hunter2hunter2\"\n");
        let told = Config::from_toml(&text).unwrap_err().to_string();
        let expected = format!("line 3: unknown field `{key}`, expected one of ");
        assert!(told.starts_with(&expected), "{told}");
        assert!(!told.contains("hunter2"), "{told}");
    }
    // Other lines of a text with such names are shown.
    let text = "[console]\ntoken_file = \"t\"\n[consumers]\nport = \"two\"\n";
    let told = Config::from_toml(text).unwrap_err().to_string();
    assert!(told.contains("4 | port = \"two\""), "{told}");
}

#[test]
fn a_queue_has_room_for_the_snapshots_of_a_market() {
    let with = |mapping: &str| {
        let text = format!(
            "[limits]\nmessage_bytes = 256\n[slow_consumer]\nqueue_bytes = 8191\n\
             [[feed]]\ntemplates = \"builtin:spectra\"\nlines = [\"239.1.1.1:5000\"]\n{mapping}"
        );
        Config::from_toml(&text).map_err(|error| error.to_string())
    };
    with("").unwrap();
    let told = with("mapping = \"builtin:spectra\"\n").unwrap_err();
    assert!(
        told.contains("queue_bytes") && told.contains("8192"),
        "{told}"
    );
}

#[test]
fn values_out_of_range_name_their_key() {
    for (text, key) in [
        ("workers = 0", "workers"),
        ("ring_bytes = 1000", "ring_bytes"),
        ("ring_bytes = 65536", "`ring_bytes` = 65536"),
        (
            "ring_bytes = 65536\n[limits]\nmessage_bytes = 8193",
            "`limits.message_bytes` = 8193",
        ),
        ("[limits]\nmessage_bytes = 1", "limits.message_bytes"),
        ("[limits]\nlogon_timeout_s = 0", "limits.logon_timeout_s"),
        ("[limits]\nlogon_bytes = 1", "limits.logon_bytes"),
        (
            "[limits]\nheader_field_bytes = 97",
            "limits.header_field_bytes",
        ),
        ("[limits]\nnot_logged_on = 0", "limits.not_logged_on"),
        (
            "[limits]\nnot_logged_on_per_address = 0",
            "limits.not_logged_on_per_address",
        ),
        (
            "[limits]\nremembered_sessions = 0",
            "limits.remembered_sessions",
        ),
        ("[limits]\nremembered_bytes = 1", "limits.remembered_bytes"),
        (
            "[slow_consumer]\nqueue_bytes = 5",
            "slow_consumer.queue_bytes",
        ),
        ("[consumers]\nport = 3000", "consumers.port"),
        (
            "[consumers]\nsessions = [{ sender = \"\", target = \"B\" }]",
            "consumers.sessions",
        ),
        (
            "[producers]\nsessions = [{ sender = \"A\", target = \"B\\u0001\" }]",
            "producers.sessions",
        ),
    ] {
        let told = Config::from_toml(text).unwrap_err().to_string();
        assert!(told.contains(key), "{text}: {told}");
    }
}

#[test]
fn what_a_table_leaves_out_has_its_default() {
    let text = "[consumers]\nmax_sessions = 5\n[producers]\nbind = \"127.0.0.2\"\n";
    let config = Config::from_toml(text).unwrap();
    let expected = PortConfig {
        max_sessions: 5,
        ..PortConfig::on_port(3001)
    };
    assert_eq!(config.consumers, expected);
    assert_eq!(config.producers.address().to_string(), "127.0.0.2:3000");
    assert_eq!(config.producers.max_sessions, 4096);
    let wrong = "[consumers]\n\nport = \"x\"\n";
    let told = Config::from_toml(wrong).unwrap_err().to_string();
    assert!(told.contains("line 3"), "{told}");
}

#[test]
fn books_follow_the_rules_of_their_venue() {
    let with = |book: &str| {
        let text = format!(
            "[[feed]]\ntemplates = \"builtin:spectra\"\nlines = [\"239.1.1.1:5000\"]\n\
             mapping = \"builtin:spectra\"\n[feed.book]\n{book}\n"
        );
        let config = Config::from_toml(&text).map_err(|error| error.to_string())?;
        let book = config.feeds[0].book.as_ref().unwrap();
        Ok::<_, String>(book.book().unwrap().rules())
    };
    assert_eq!(with(""), Ok(0));
    assert_eq!(with("may_cross = true"), Ok(1));
    let places = "increase_keeps = true\ndecrease_loses = true";
    assert_eq!(with(&format!("kind = \"orders\"\n{places}")), Ok(6));
    let told = with(places).unwrap_err();
    let why = "`feed.book.increase_keeps` = true: needs `kind` orders";
    assert!(told.contains(why), "{told}");
}

#[test]
fn natural_refresh_is_refused_where_it_has_no_effect() {
    let with = |book: &str| {
        let text = format!(
            "[[feed]]\ntemplates = \"builtin:spectra\"\nlines = [\"239.1.1.1:5000\"]\n\
             mapping = \"builtin:spectra\"\n[feed.book]\n{book}\n"
        );
        Config::from_toml(&text).map_err(|error| error.to_string())
    };
    let refresh = "natural_refresh = true";
    with(&format!("{refresh}\ndepth = 64")).unwrap();
    for book in [
        "kind = \"prices\"",
        "kind = \"orders\"",
        "numbers = \"channel\"",
        "depth = 65",
    ] {
        with(book).unwrap();
        let told = with(&format!("{refresh}\n{book}")).unwrap_err();
        let why = "`feed.book.natural_refresh` = true: needs `kind` levels";
        assert!(told.contains(why), "{book}: {told}");
    }
}

#[test]
fn a_list_of_sessions_admits_only_its_pairs() {
    let text = "[producers]\nport = 1\nsessions = [{ sender = \"A\", target = \"B\" }]\n";
    let config = Config::from_toml(text).unwrap();
    let rules = |port| crate::ports::rules::PortRules::new(&config, port).unwrap();
    let (producers, consumers) = (rules(&config.producers), rules(&config.consumers));
    assert!(producers.admits("A", "B"));
    assert!(!producers.admits("B", "A"));
    assert!(consumers.admits("anyone", "at all"));
}

#[test]
fn a_log_and_files_of_dbn_that_are_missing_are_named_with_their_keys() {
    let missing = Scratch::new("missing");
    let path = missing.display();
    for (text, key) in [
        (format!("[replay]\nlog = \"{path}\"\n"), "replay.log"),
        (format!("[replay]\ndbn = \"{path}\"\n"), "replay.dbn"),
        (format!("[[feed]]\ndbn = \"{path}\"\n"), "feed.dbn"),
    ] {
        let config = Config::from_toml(&text).unwrap();
        let error = config.check_files().unwrap_err();
        assert_eq!(error.to_string(), key);
        let why = error.source().unwrap().to_string();
        assert!(why.starts_with(&format!("{path}: ")), "{why}");
        assert!(!missing.exists());
    }
}
