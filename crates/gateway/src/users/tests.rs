use super::*;
use crate::service::{Contract, EntryTypes};
use crate::{Config, StartError};
use fanfare_fix::session::Version;
use fanfare_peers::Scratch;
use proptest::prelude::*;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const HASH: &str = "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHRzb21lc2FsdA$\
                    MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI";

fn load(text: &str) -> Result<UserSet, String> {
    let config = Config::from_toml(text).map_err(|error| error.to_string())?;
    UserSet::load(&config.user_source()).map_err(|error| error.to_string())
}

fn id(client: &str) -> SessionId {
    SessionId::new(Version::Fix44, "PLANT", client)
}

fn desk(more: &str) -> String {
    format!(
        "[[user]]\nname = \"desk\"\nsessions = [{{ sender = \"DESK1\", target = \"PLANT\" }}]\n\
         password = \"{HASH}\"\n{more}\n"
    )
}

#[test]
fn without_users_loopback_is_free_and_nothing_is_hidden() {
    let users = load("").unwrap();
    for port in PortName::ALL {
        assert_eq!(*users.grant(&id("ANY"), port).unwrap(), Grant::everything());
    }
}

#[test]
fn a_user_gets_what_the_table_says_and_nobody_else_gets_in() {
    let text = format!(
        "[lists]\nINDEX = [\"RIU3\", \"MX*\"]\n{}",
        desk(
            "instruments = [\"@INDEX\", \"GAZR\"]\nentries = [\"0\", \"1\", \"2\"]\ndepth = 5\n\
             contracts = [\"conflated\", \"skip\"]\nsubscriptions = 7\nrequests_per_second = 3"
        )
    );
    let users = load(&text).unwrap();
    let book = UserBook::new(users);
    let grant = book.grant(&id("DESK1")).unwrap();
    assert_eq!(&*grant.user, "desk");
    for (symbol, seen) in [
        ("RIU3", true),
        ("MXU3", true),
        ("GAZR", true),
        ("SIU3", false),
    ] {
        assert_eq!(grant.may_see(symbol.as_bytes()), seen, "{symbol}");
    }
    assert_eq!(grant.entries, EntryTypes::from_iter(*b"012"));
    assert_eq!((grant.depth, grant.contract), (5, Contract::Conflated));
    assert_eq!((grant.subscriptions, grant.requests_per_second), (7, 3));
    assert!(!grant.sees_everything());
    assert_eq!(book.grant(&id("DESK2")), None);
    let users = book.read();
    assert_eq!(users.grant(&id("DESK1"), PortName::Producers), None);
    assert!(users.list(b"INDEX").unwrap().fits(b"MXZ3") && users.list(b"X").is_none());
    let before = book.version();
    book.replace(Arc::default());
    assert_ne!(book.version(), before);
}

#[test]
fn an_open_port_takes_strangers_but_no_stranger_with_a_users_name() {
    let text = format!(
        "[consumers]\nopen = true\n{}",
        desk("instruments = [\"A\"]")
    );
    let users = load(&text).unwrap();
    let grant = |name: &str, port| users.grant(&id(name), port);
    assert!(grant("ANY", PortName::Consumers).unwrap().sees_everything());
    assert!(
        !grant("DESK1", PortName::Consumers)
            .unwrap()
            .sees_everything()
    );
    assert_eq!(grant("ANY", PortName::Producers), None);
    let text = format!(
        "[producers]\nopen = true\n{}",
        desk("instruments = [\"A\"]")
    );
    let users = load(&text).unwrap();
    assert_eq!(users.grant(&id("DESK1"), PortName::Producers), None);
}

#[test]
fn off_loopback_a_port_has_users_or_is_open() {
    let bind = "[consumers]\nbind = \"0.0.0.0\"\n";
    let told = load(bind).unwrap_err();
    assert!(
        told.contains("consumers.bind") && told.contains("open = true"),
        "{told}"
    );
    load(&format!("{bind}open = true\n")).unwrap();
    let users = load(&format!("{bind}{}", desk("instruments = []"))).unwrap();
    assert_eq!(users.grant(&id("ANY"), PortName::Consumers), None);
}

#[test]
fn each_fault_names_line_key_and_reason() {
    let other = "[[user]]\nname = \"other\"\nports = [\"producers\"]\nallow = [\"127.0.0.1\"]\n";
    for (text, line, what) in [
        (desk(""), 2, "`instruments` is missing"),
        (desk("instruments = [\"@NONE\"]"), 5, "no list `@NONE`"),
        (desk("instruments = [\"A*B\"]"), 5, "`*` can only be"),
        (desk("instruments = [\"A\",\n\"\"]"), 6, "1 to 64"),
        (desk("instruments = []\nentries = [\"00\"]"), 6, "269"),
        (desk("instruments = []\ndepth = 70000"), 6, "70000"),
        (desk("instruments = []\ncontracts = []"), 2, "`contracts`"),
        (desk("instruments = []\ncontract = \"drop\""), 6, "drop"),
        (
            desk("instruments = []\ncontracts = [\"skip\"]\ncontract = \"cut\""),
            7,
            "one of",
        ),
        (
            desk("instruments = []\nsubscriptions = 0"),
            6,
            "between 1 and 1048576",
        ),
        (
            desk("instruments = []\nsessions_at_a_time = 0"),
            6,
            "between 1 and 100000",
        ),
        (
            desk("instruments = []\nallow = [\"10.0.0.0/99\"]"),
            6,
            "10.0.0.0/99",
        ),
        (
            desk("instruments = []\ncertificates = [\"cn:X\"]"),
            6,
            "client_ca",
        ),
        (desk("instruments = []\nports = []"), 6, "`ports`"),
        (desk("instrument = []"), 5, "instrument"),
        (
            desk("instruments = []") + &desk("instruments = []"),
            7,
            "another user",
        ),
        (format!("{other}sessions = []\n"), 2, "`sessions`"),
        (
            desk("instruments = []")
                + other
                + "sessions = [\n{ sender = \"DESK1\", target = \"PLANT\" }]",
            11,
            "belongs to user `desk`",
        ),
        (
            "[[user]]\nname = \"x\"\nsessions = [{ sender = \"A\", target = \"B\" }]\n".to_owned(),
            2,
            "CompIDs are not secret",
        ),
        (
            "[lists]\nA = [\"B\"]\nC = [\n\"@A\"]\n".to_owned(),
            4,
            "contain another list",
        ),
    ] {
        let told = load(&text).unwrap_err();
        assert!(
            told.contains(&format!("line {line}")) && told.contains(what),
            "{text}\n{told}"
        );
    }
}

#[test]
fn an_error_never_shows_a_password() {
    let user = "[[user]]\nname = \"x\"\nsessions = [{ sender = \"A\", target = \"B\" }]\n";
    for password in [
        "password = \"hunter2\"",
        "password = [\"hunter2\"]",
        "password = \"hunter2",
        "password = hunter2",
        "password = 'hunter2' x",
        "password = \"\"\"\nhunter2\n",
    ] {
        let told = load(&format!("{user}{password}\n")).unwrap_err();
        assert!(!told.contains("hunter2") && told.contains("line"), "{told}");
    }
    for (text, line) in [
        (format!("[[user]]\nname = \"a{HASH}\"\nsessions = []\n"), 2),
        (format!("{user}allow = [\"{HASH}\"]\n"), 4),
        (format!("{user}depth = \"{HASH}\"\n"), 4),
        (format!("{user}contract = \"{HASH}\"\n"), 4),
        (format!("{user}\"{HASH}\" = 1\n"), 4),
        (
            format!("{user}allow = [\"::1\"]\nentries = [\"{HASH}\"]\ninstruments = []\n"),
            5,
        ),
        (
            format!("{user}allow = [\"::1\"]\ninstruments = [\"@{HASH}\"]\n"),
            5,
        ),
        (
            format!("{user}allow = [\"::1\"]\ninstruments = [\"{HASH}\"]\n"),
            5,
        ),
        (format!("[lists]\n\"{HASH}\" = [\"A\"]\n"), 2),
        (format!("[lists]\nA = [\"{HASH}\"]\n"), 2),
        (
            format!("[[user]]\nname = \"x\"\npasswort = \"{HASH}\"\n"),
            3,
        ),
        (
            format!(
                "[[user]]\nname = \"x\"\nsessions = [{{ sender = \"{HASH}\", target = \"\" }}]\n\
                     allow = [\"::1\"]\ninstruments = []\n"
            ),
            3,
        ),
    ] {
        let told = load(&text).unwrap_err();
        assert!(
            !told.contains("argon2id") && told.contains(&format!("line {line}")),
            "{told}"
        );
    }
    let in_one_line = "user = [{ name = \"x\", sessions = [], password = 7123 }]\n";
    assert!(!load(in_one_line).unwrap_err().contains("7123"));
    let config = Config::from_toml(&desk("instruments = []")).unwrap();
    assert!(!format!("{config:?}").contains("argon2"));
}

#[test]
fn an_error_never_shows_a_secret_of_kafka() {
    let kafka = "[[kafka]]\nbrokers = [\"a:1\"]\ntopic = \"t\"\n";
    let misspelt = "[[kafak]]\nbrokers = [\"a:1\"]\ntopic = \"t\"\n";
    for (text, line) in [
        (
            format!("{kafka}options = {{ \"sasl.oauthbearer.client.secret\" = s3cr3t }}\n"),
            4,
        ),
        (
            format!("{kafka}options = {{ \"sasl.oauthbearer.client.secret\" = 7123 }}\n"),
            4,
        ),
        (
            format!("{kafka}[kafka.options]\n\"sasl.oauthbearer.config\" = s3cr3t\n"),
            5,
        ),
        (format!("{misspelt}options = {{ x.secret = s3cr3t }}\n"), 4),
    ] {
        let told = load(&text).unwrap_err();
        let is_shown = told.contains("s3cr3t") || told.contains("7123");
        assert!(
            !is_shown && told.contains(&format!("line {line}")),
            "{told}"
        );
    }
}

#[test]
fn faults_that_are_found_after_parsing_have_file_and_line() {
    let path = Scratch::new("users.toml");
    let told = |own: &str, theirs: &str| {
        path.write(theirs);
        let text = format!("users = \"{}\"\n{own}", path.display());
        let read = Config::from_toml(&text).unwrap();
        let read = read.of_file(Path::new("gateway.toml"));
        // A reload adopts the users of another configuration.
        let adopted = Config::default().with_users_of(&read);
        [read, adopted].map(|config| match config.check_files() {
            Err(StartError::Users(error)) => error.to_string(),
            other => panic!("{other:?}"),
        })
    };
    let wrong = desk("");
    for told in told(&wrong, "") {
        let place = "gateway.toml: line 3: user `desk`: `instruments`";
        assert!(told.starts_with(place), "{told}");
    }
    for told in told("[lists]\nA = [\n\"@B\"]\n", "") {
        assert!(told.starts_with("gateway.toml: line 4: "), "{told}");
    }
    for told in told(&desk("instruments = []"), &("\n".to_owned() + &wrong)) {
        let place = format!("{}: line 3: user `desk`", path.display());
        assert!(told.starts_with(&place), "{told}");
    }
}

#[test]
fn users_and_lists_may_be_in_a_file_of_their_own() {
    let path = Scratch::new("users.toml");
    let text = format!("users = \"{}\"\n[lists]\nOWN = [\"A\"]\n", path.display());
    let write = |text: &str| path.write(text);
    write(&(desk("instruments = [\"@OWN\", \"@THEIRS\"]") + "[lists]\nTHEIRS = [\"B\"]\n"));
    let grant = load(&text)
        .unwrap()
        .grant(&id("DESK1"), PortName::Consumers)
        .unwrap();
    assert!(grant.may_see(b"A") && grant.may_see(b"B") && !grant.may_see(b"C"));
    write(&("\n".repeat(35) + &desk("depth = -1")));
    let told = load(&text).unwrap_err();
    assert!(
        told.contains("line 40") && told.contains(&path.display().to_string()),
        "{told}"
    );
    write("workers = 1\n");
    assert!(load(&text).unwrap_err().contains("workers"));
    write("\u{0}\u{1}");
    assert!(load(&text).is_err());
    path.write([0xff]);
    assert!(load(&text).unwrap_err().contains("UTF-8"));
    std::fs::remove_file(&path).unwrap();
    assert!(load(&text).unwrap_err().contains("cannot be read"));
    // A file without users still requires clients to be users.
    write("");
    assert_eq!(
        load(&text).unwrap().grant(&id("ANY"), PortName::Consumers),
        None
    );
}

#[test]
fn of_users_with_the_same_key_the_later_one_is_refused() {
    let all = [("one", "x"), ("two", "y"), ("three", "x"), ("four", "y")].map(|(name, key)| {
        let file = Scratch::new(name);
        file.write(key.repeat(32));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let table = format!(
            "[[user]]\nname = \"{name}\"\ndbn_key_file = \"{}\"\ninstruments = [\"*\"]\n",
            file.display()
        );
        (file, table)
    });
    let text = |count: usize| all.iter().take(count).map(|(_, table)| &**table);
    let users = load(&text(2).collect::<String>()).unwrap();
    assert!(users.with_keys().all(|(_, key)| key.is_some()));
    let told = load(&text(4).collect::<String>()).unwrap_err();
    let file = all[2].0.display();
    let why = format!("user `three`: `dbn_key_file`: {file} has the same key as user `one`");
    assert!(told.contains(&why), "{told}");
}

#[test]
fn the_example_works() {
    let users = load("users = \"../../examples/users.toml\"").unwrap();
    let exchange = users.find(&id("EXCH1"), PortName::Producers).unwrap();
    assert!(exchange.password.as_ref().unwrap().is_of(b"open sesame"));
    let desk = users.grant(&id("DESK2"), PortName::Consumers).unwrap();
    assert!(desk.may_see(b"MXU3") && !desk.may_see(b"GAZR"));
}

#[test]
fn a_list_of_a_million_names_is_one_look_up() {
    let names: Vec<String> = (0..1_000_000).map(|i| format!("\"S{i}\"")).collect();
    let text = format!(
        "[lists]\nALL = [{}]\n{}",
        names.join(","),
        desk("instruments = [\"@ALL\"]")
    );
    let grant = load(&text)
        .unwrap()
        .grant(&id("DESK1"), PortName::Consumers)
        .unwrap();
    assert!(grant.may_see(b"S999999") && !grant.may_see(b"S1000000"));
}

/// Loads the example with a part replaced by another text. Checks that the result is users, or an
/// error that shows no hash.
fn damaged(at: usize, cut: usize, put: &str) -> Result<(), String> {
    let mut text = include_str!("../../../../examples/users.toml").to_owned();
    let at = at.min(text.len());
    let end = (at + cut).min(text.len());
    if text.is_char_boundary(at) && text.is_char_boundary(end) {
        text.replace_range(at..end, put);
    }
    match load(&text) {
        Err(told) if told.contains("argon2id$v") => Err(told),
        _ => Ok(()),
    }
}

#[test]
fn a_name_that_runs_on_into_a_password_is_not_shown() {
    // The quotation mark after the name is cut out, so the name ends where the hash begins.
    damaged(1530, 39, "").unwrap();
    let text = "[[user]]\nname = \"\"\"x\nsessions = []\npassword = hunter2\"\"\"\nsessions = []\n";
    let told = load(text).unwrap_err();
    assert!(
        !told.contains("hunter2") && told.contains("line 2"),
        "{told}"
    );
}

proptest! {
    #[test]
    fn a_damaged_file_is_users_or_an_error(
        at in 0usize..2000,
        cut in 0usize..40,
        put in "[\"\\[\\]={}@*,a0\n$]{0,6}",
    ) {
        let told = damaged(at, cut, &put);
        prop_assert!(told.is_ok(), "{told:?}");
    }
}
