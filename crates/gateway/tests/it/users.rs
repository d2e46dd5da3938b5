//! Users: those that are admitted, and the refusal of others.

use crate::client::{Client, value};
use crate::ports::{Seen, TlsConsumer, file};
use crate::{ended, eventually, stop};
use argon2::{Algorithm, Argon2, Params, PasswordHasher, Version};
use fanfare_engine::stop::Stop;
use fanfare_gateway::{Config, Denied, Gateway, Notice, Pair, PeerEnd, Refusal};
use fanfare_peers::Scratch;

/// Returns a hash that is cheap to verify.
fn hash(password: &str) -> String {
    let params = Params::new(64, 1, 1, None).unwrap();
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let hash = argon2.hash_password(password.as_bytes()).unwrap();
    hash.to_string()
}

/// Returns the table of a user with a password, whose one session has this CompID.
pub(crate) fn user(name: &str, comp_id: &str, password: &str, more: &str) -> String {
    let hash = hash(password);
    format!(
        "[[user]]\nname = \"{name}\"\n\
         sessions = [{{ sender = \"{comp_id}\", target = \"PLANT\" }}]\n\
         password = \"{hash}\"\ninstruments = [\"*\"]\n{more}\n"
    )
}

/// The beginning of a configuration with ports that the kernel picks, where producers need no user.
pub(crate) const PORTS: &str = "[producers]\nport = 0\nopen = true\n[consumers]\nport = 0\n";

pub(crate) fn start(text: &str) -> Gateway {
    Gateway::start(&Config::from_toml(text).unwrap(), Stop::new()).unwrap()
}

/// Sends a Logon with these credentials. Returns the response.
fn try_logon(gateway: &Gateway, comp_id: &str, credentials: &str) -> (Client, Option<String>) {
    let mut client = Client::connect(gateway.consumers(), comp_id);
    client.send("A", &format!("98=0|108=0|141=Y|{credentials}"));
    let answer = client.receive();
    (client, answer)
}

/// Asserts that the response is a Logout with this text, and that nothing follows.
fn assert_denied((mut client, answer): (Client, Option<String>), text: &str) {
    let answer = answer.expect("a Logout");
    assert_eq!(value(&answer, 35), Some("5"), "{answer}");
    assert_eq!(value(&answer, 58), Some(text), "{answer}");
    assert_eq!(client.receive(), None);
}

fn assert_logged_on((client, answer): (Client, Option<String>)) -> Client {
    let answer = answer.expect("a Logon");
    assert_eq!(value(&answer, 35), Some("A"), "{answer}");
    client
}

const WRONG: &str = "Username or Password is wrong";

#[test]
fn a_user_gets_in_with_the_right_password_and_nobody_learns_which_part_was_wrong() {
    let audit = Scratch::new("right");
    let users: String = ["a", "b", "c", "d", "f"]
        .map(|name| user(name, &name.to_uppercase(), "hunter2", ""))
        .concat();
    let path = audit.display();
    let gateway = start(&format!("audit = \"{path}\"\n{PORTS}{users}"));
    let mut in_time = assert_logged_on(try_logon(&gateway, "A", "553=a|554=hunter2|"));
    assert_denied(try_logon(&gateway, "B", "553=b|554=hunter3|"), WRONG);
    assert_denied(try_logon(&gateway, "C", "553=a|554=hunter2|"), WRONG);
    assert_denied(try_logon(&gateway, "D", ""), WRONG);
    let new = "NewPassword(925) is not supported: the password is not changed";
    assert_denied(
        try_logon(&gateway, "F", "553=f|554=hunter2|925=hunter4|"),
        new,
    );
    // Clients without a user are disconnected without a response.
    assert!(try_logon(&gateway, "E", "553=a|554=hunter2|").1.is_none());
    ended(&gateway, |notice| {
        matches!(notice, Notice::Ended { end: PeerEnd::Denied { user, why, .. }, .. }
            if user == "d" && *why == Denied::WrongCredentials)
    });
    // The wrong password is correct after a reload.
    eventually("the right password of a user with a wrong one", || {
        let (_, answer) = try_logon(&gateway, "B", "553=b|554=hunter2|");
        answer.is_some_and(|answer| value(&answer, 35) == Some("A"))
    });
    let mut producer = Client::log_on(gateway.producers(), "P");
    producer.send("W", "20001=P-1|55=A|");
    assert_eq!(value(&in_time.receive().unwrap(), 20001), Some("P-1"));
    stop(gateway);
    let text = audit.text();
    assert!(
        !text.contains("hunter") && !text.contains("argon2"),
        "{text}"
    );
    let of = |event: &str, port: &str, comp_id: &str| {
        let session = format!("\"session\":\"FIX.4.4:PLANT->{comp_id}\"");
        format!("\"event\":\"{event}\",\"port\":\"{port}\",{session}")
    };
    for line in [
        of("logon", "consumers", "A") + ",\"user\":\"a\"",
        of("refusal", "consumers", "D") + ",\"user\":\"d\"",
        of("refusal", "consumers", "E") + ",\"peer\"",
        of("end", "consumers", "A") + ",\"user\":\"a\"",
        of("logon", "producers", "P") + ",\"peer\"",
    ] {
        assert!(text.contains(&line), "{line}\n{text}");
    }
}

#[test]
fn a_logout_to_a_wrong_password_uses_no_number() {
    let gateway = start(&(PORTS.to_owned() + &user("a", "A", "right", "")));
    let answer_to = |password: &str| {
        let mut client = Client::connect(gateway.consumers(), "A");
        let logon = format!("98=0|108=0|553=a|554={password}|");
        client.send_numbered(1, "A", &logon);
        client.receive().expect("an answer")
    };
    let refused = answer_to("wrong");
    assert_eq!(value(&refused, 35), Some("5"), "{refused}");
    assert_eq!(value(&refused, 34), Some("0"), "{refused}");
    // The right one is not checked soon after the wrong one.
    eventually("the right password", || {
        let answer = answer_to("right");
        let is_logon = value(&answer, 35) == Some("A");
        let number = if is_logon { "1" } else { "0" };
        assert_eq!(value(&answer, 34), Some(number), "{answer}");
        is_logon
    });
    stop(gateway);
}

#[test]
fn a_logon_that_its_session_refuses_is_audited_and_ends_no_session() {
    let audit = Scratch::new("refusal");
    let gateway = start(&format!("audit = \"{}\"\n{PORTS}", audit.display()));
    let mut first = Client::log_on(gateway.consumers(), "C");
    first.send("5", "");
    let answer = first.receive().unwrap();
    assert_eq!(value(&answer, 35), Some("5"), "{answer}");
    drop(first);
    eventually("the end", || gateway.count("ended") == 1);
    let mut refused = String::new();
    // The end is counted before the session may log on again.
    eventually("the answer of a session", || {
        let mut low = Client::connect(gateway.consumers(), "C");
        low.send("A", "98=0|108=0|");
        refused = low.receive().unwrap_or_default();
        !refused.is_empty()
    });
    assert!(refused.contains("|58=MsgSeqNum too low"), "{refused}");
    eventually("the refusal", || gateway.count("failed_logons") == 1);
    assert_eq!((gateway.count("logons"), gateway.count("ended")), (1, 1));
    stop(gateway);
    let text = audit.text();
    let session = "\"session\":\"FIX.4.4:PLANT->C\",\"peer\"";
    let line = format!("\"event\":\"refusal\",\"port\":\"consumers\",{session}");
    assert!(text.contains(&line), "{text}");
}

#[test]
fn a_thousand_wrong_passwords_are_slowed_down_told_and_audited_and_hold_up_nobody() {
    fanfare_engine::limits::raise_open_files(8192).unwrap();
    let audit = Scratch::new("thousand");
    let users = user("good", "GOOD", "right", "") + &user("victim", "VICTIM", "right", "");
    let path = audit.display();
    let gateway = start(&format!("audit = \"{path}\"\n{PORTS}{users}"));
    let mut good = assert_logged_on(try_logon(&gateway, "GOOD", "553=good|554=right|"));
    let mut producer = Client::log_on(gateway.producers(), "P");
    let mut texts = Vec::new();
    for round in 0..100 {
        let mut clients: Vec<Client> = (0..10)
            .map(|_| Client::connect(gateway.consumers(), "VICTIM"))
            .collect();
        for (number, client) in clients.iter_mut().enumerate() {
            let password = format!("553=victim|554=guess{number}|");
            client.send("A", &format!("98=0|108=0|141=Y|{password}"));
        }
        producer.send("W", &format!("20001=P-{round}|55=A|"));
        let served = good.receive().expect("others are served");
        assert_eq!(value(&served, 20001), Some(format!("P-{round}").as_str()));
        for mut client in clients {
            let answer = client.receive().expect("a Logout");
            texts.push(value(&answer, 58).unwrap().to_owned());
        }
    }
    let wrong = texts.iter().filter(|text| *text == WRONG).count();
    let slowed = texts
        .iter()
        .filter(|text| text.starts_with("too many wrong"));
    assert_eq!(wrong + slowed.count(), 1000);
    // Seven waits, doubled each time, are half a minute.
    assert!((1..30).contains(&wrong), "{wrong} passwords were looked at");
    eventually("the count", || gateway.count("refused") == 1000);
    let notices: Vec<_> = gateway.notices().filter(Notice::is_trouble).collect();
    // The user of the password is named only in the audit file.
    let is_wrong = |notice: &Notice| notice.to_string().contains("wrong Username(553)");
    assert!(notices.len() >= 1000 && is_wrong(&notices[0]));
    let named = notices
        .iter()
        .find(|notice| notice.to_string().contains("victim"));
    assert!(named.is_none(), "{named:?}");
    stop(gateway);
    let refusals = audit.text().matches("\"event\":\"refusal\"").count();
    assert_eq!(refusals, 1000);
}

#[test]
fn a_users_certificate_admits_to_the_users_sessions_alone() {
    let audit = Scratch::new("certificate");
    let (server, key, root) = (file("server.pem"), file("server.key"), file("root.pem"));
    let tls = format!(
        "tls = {{ certificate = \"{}\", key = \"{}\", client_ca = \"{}\" }}\n",
        server.display(),
        key.display(),
        root.display()
    );
    let table = |name: &str, comp_id: &str, certificate: &str| {
        format!(
            "[[user]]\nname = \"{name}\"\ninstruments = []\n\
             sessions = [{{ sender = \"{comp_id}\", target = \"PLANT\" }}]\n\
             certificates = [\"{certificate}\"]\n"
        )
    };
    let users = table("own", "DESK1", "dns:trader.test") + &table("other", "DESK2", "cn:OTHER");
    let path = audit.display();
    let gateway = start(&format!("audit = \"{path}\"\n{PORTS}{tls}{users}"));
    let own = TlsConsumer::connect(gateway.consumers(), "DESK1", Some("client"));
    assert!(matches!(own.next(), Seen::LoggedOn));
    let other = TlsConsumer::connect(gateway.consumers(), "DESK2", Some("client"));
    ended(&gateway, |notice| {
        matches!(
            notice,
            Notice::Ended {
                end: PeerEnd::Refused(Refusal::Certificate { .. }),
                ..
            }
        )
    });
    other.close();
    own.close();
    stop(gateway);
    let refusal = "\"event\":\"refusal\",\"port\":\"consumers\",\
                   \"session\":\"FIX.4.4:PLANT->DESK2\",\"user\":\"other\"";
    assert!(audit.text().contains(refusal), "{}", audit.text());
}

#[test]
fn a_user_comes_from_the_users_networks_and_with_so_many_sessions() {
    let here = user(
        "here",
        "HERE1",
        "p",
        "allow = [\"127.0.0.0/8\"]\nsessions_at_a_time = 1",
    );
    let here = here.replace(
        "sessions = [",
        "sessions = [{ sender = \"HERE2\", target = \"PLANT\" }, ",
    );
    let users = here + &user("there", "THERE", "p", "allow = [\"10.0.0.0/8\"]");
    let gateway = start(&format!("{PORTS}{users}"));
    assert!(try_logon(&gateway, "THERE", "553=there|554=p|").1.is_none());
    ended(&gateway, |notice| {
        matches!(
            notice,
            Notice::Ended {
                end: PeerEnd::Denied {
                    why: Denied::Address,
                    ..
                },
                ..
            }
        )
    });
    let first = assert_logged_on(try_logon(&gateway, "HERE1", "553=here|554=p|"));
    assert_denied(
        try_logon(&gateway, "HERE2", "553=here|554=p|"),
        "too many sessions",
    );
    // A live session is not ended by another one that has its CompIDs.
    assert!(try_logon(&gateway, "HERE1", "553=here|554=p|").1.is_none());
    drop(first);
    eventually("the place of the session that has ended", || {
        let (_, answer) = try_logon(&gateway, "HERE2", "553=here|554=p|");
        answer.is_some_and(|answer| value(&answer, 35) == Some("A"))
    });
    stop(gateway);
}

/// Logs on as the only session of a user.
fn log_on(gateway: &Gateway, comp_id: &str) -> Client {
    let credentials = format!("553={}|554=p|", comp_id.to_lowercase());
    assert_logged_on(try_logon(gateway, comp_id, &credentials))
}

fn users_of(comp_ids: &[&str]) -> String {
    let table = |comp_id: &&str| user(&comp_id.to_lowercase(), comp_id, "p", "");
    comp_ids.iter().map(table).collect()
}

#[test]
fn a_reload_logs_out_who_is_no_user_any_more_and_nobody_else() {
    let (users, audit) = (Scratch::new("revoked.toml"), Scratch::new("revoked"));
    let stays_on = users_of(&["STAYS"]);
    users.write(&(stays_on.clone() + &users_of(&["GOES"])));
    let (file, audit_file) = (users.display(), audit.display());
    let text = format!("users = \"{file}\"\naudit = \"{audit_file}\"\n{PORTS}");
    let config = Config::from_toml(&text).unwrap();
    let gateway = start(&text);
    let mut stays = log_on(&gateway, "STAYS");
    let mut goes = log_on(&gateway, "GOES");
    let mut producer = Client::log_on(gateway.producers(), "P");
    users.write(&(stays_on + &users_of(&["NEW"])));
    let reloaded = gateway.reload(&config).unwrap();
    assert_eq!(
        reloaded.to_string(),
        "reloaded: new user new, removed user goes; 1 session was logged out"
    );
    let logout = goes.receive().unwrap();
    assert_eq!(value(&logout, 58), Some("no longer permitted"), "{logout}");
    assert_eq!(goes.receive(), None);
    assert!(try_logon(&gateway, "GOES", "553=goes|554=p|").1.is_none());
    let _new = log_on(&gateway, "NEW");
    producer.send("W", "20001=P-1|55=A|");
    assert_eq!(value(&stays.receive().unwrap(), 34), Some("2"));
    // The same configuration changes nothing. A port that is closed ends the sessions without a
    // user.
    let same = gateway.reload(&config).unwrap();
    assert_eq!(same.to_string(), "reloaded: nothing has changed");
    let token = gateway
        .handle()
        .reload_with(&config, &["console.token_file"]);
    assert_eq!(token.unwrap().to_string(), "reloaded: console.token_file");
    let closed = Config::from_toml(&text.replace("open = true", "open = false")).unwrap();
    let reloaded = gateway.reload(&closed).unwrap();
    assert_eq!(
        (reloaded.logged_out, reloaded.keys),
        (1, vec!["producers.open"])
    );
    assert_eq!(value(&producer.receive().unwrap(), 35), Some("5"));
    stop(gateway);
    let audited = audit.text();
    assert!(audited.contains("removed user goes") && audited.contains("console.token_file"));
}

#[test]
fn a_file_of_users_that_leaves_none_is_refused_at_a_reload_and_not_at_the_start() {
    let users = Scratch::new("half.toml");
    let text = format!("users = \"{}\"\n{PORTS}", users.display());
    let config = Config::from_toml(&text).unwrap();
    users.write("");
    let gateway = start(&text);
    let handle = gateway.handle();
    assert!(handle.reload_users(&config).is_ok(), "there were none");
    users.write(users_of(&["A"]));
    let one = handle.reload_users(&config).unwrap();
    assert_eq!(one.to_string(), "reloaded: new user a");
    let mut stays = log_on(&gateway, "A");
    for rest in ["", "# half written\n", "[lists]\n"] {
        users.write(rest);
        let outcomes = [handle.reload_users(&config), handle.reload(&config)];
        for outcome in outcomes {
            let why = outcome.unwrap_err();
            let why = std::error::Error::source(&why).unwrap().to_string();
            let told = format!("{}: has no user: ", users.display());
            assert!(why.starts_with(&told), "{why}");
        }
    }
    let mut producer = Client::log_on(gateway.producers(), "P");
    producer.send("W", "20001=P-1|55=A|");
    assert_eq!(value(&stays.receive().unwrap(), 35), Some("W"));
    stop(gateway);
}

#[test]
fn a_reload_of_users_admits_no_session_that_an_operator_has_removed() {
    let users = Scratch::new("removed.toml");
    users.write(users_of(&["A", "B"]));
    let listed =
        ["A", "B", "C"].map(|name| format!("{{ sender = \"{name}\", target = \"PLANT\" }}"));
    let (file, listed) = (users.display(), listed.join(", "));
    let text = format!("users = \"{file}\"\n{PORTS}sessions = [{listed}]\n");
    let gateway = start(&text);
    let a = Pair {
        sender: "A".to_owned(),
        target: "PLANT".to_owned(),
    };
    assert!(gateway.consumer_port().remove_session(&a).unwrap());
    users.write(users_of(&["A", "B", "C"]));
    let config = Config::from_toml(&text).unwrap();
    let reloaded = gateway.handle().reload_users(&config).unwrap();
    assert!(reloaded.to_string().contains("new user c"), "{reloaded}");
    assert!(try_logon(&gateway, "A", "553=a|554=p|").1.is_none());
    let _b = log_on(&gateway, "B");
    let _c = log_on(&gateway, "C");
    stop(gateway);
}

#[test]
fn a_reload_with_a_mistake_in_line_40_changes_nothing_and_names_the_line() {
    let users = Scratch::new("line40.toml");
    let good = users_of(&["A", "B"]);
    users.write(&good);
    let text = format!("users = \"{}\"\n{PORTS}", users.display());
    let config = Config::from_toml(&text).unwrap();
    let gateway = start(&text);
    let mut a = log_on(&gateway, "A");
    let before = users_of(&["C"]);
    let padding = "\n".repeat(39 - before.lines().count());
    users.write(format!("{before}{padding}depht = 5\n"));
    let told = std::error::Error::source(&gateway.reload(&config).unwrap_err())
        .unwrap()
        .to_string();
    let place = format!("{}: line 40: ", users.display());
    assert!(told.starts_with(&place) && told.contains("depht"), "{told}");
    // Users and their sessions are unchanged.
    assert!(try_logon(&gateway, "C", "553=c|554=p|").1.is_none());
    let _b = log_on(&gateway, "B");
    users.write(users_of(&["A", "B", "C"]));
    assert!(gateway.reload(&config).is_ok());
    let _c = log_on(&gateway, "C");
    let mut producer = Client::log_on(gateway.producers(), "P");
    producer.send("W", "20001=P-1|55=A|");
    assert_eq!(value(&a.receive().unwrap(), 20001), Some("P-1"));
    stop(gateway);
}

#[test]
fn a_thousand_reloads_under_load_lose_no_session_and_no_message() {
    let users = Scratch::new("thousand.toml");
    let names = ["A", "B", "C", "D"];
    let variants = [users_of(&names), users_of(&names) + &users_of(&["E"])];
    users.write(&variants[0]);
    let text = format!("users = \"{}\"\nworkers = 2\n{PORTS}", users.display());
    let config = Config::from_toml(&text).unwrap();
    let gateway = start(&text);
    let mut consumers = names.map(|name| log_on(&gateway, name));
    let mut producer = Client::log_on(gateway.producers(), "P");
    const MESSAGES: usize = 20_000;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..MESSAGES {
                producer.send("W", &format!("20001=P-{number}|55=A|"));
            }
        });
        for consumer in &mut consumers {
            scope.spawn(|| {
                for number in 0..MESSAGES {
                    let message = consumer.receive().expect("the session goes on");
                    let expected = format!("P-{number}");
                    assert_eq!(value(&message, 20001), Some(expected.as_str()));
                    let seq = (number + 2).to_string();
                    assert_eq!(value(&message, 34), Some(seq.as_str()));
                }
            });
        }
        for round in 1..=1000 {
            users.write(&variants[round % 2]);
            let reloaded = gateway.reload(&config).unwrap();
            assert_eq!(reloaded.logged_out, 0, "{reloaded}");
            assert_eq!(reloaded.users.added.len() + reloaded.users.removed.len(), 1);
        }
    });
    assert_eq!(gateway.count("ended"), 0);
    stop(gateway);
}

#[test]
fn what_is_for_all_is_not_for_those_from_whom_something_is_hidden() {
    let users = Scratch::new("limited.toml");
    let all = users_of(&["ALL"]);
    let limited = user("some", "SOME", "p", "");
    let some = limited.replace("[\"*\"]", "[\"A\"]");
    users.write(&(all.clone() + &some));
    let text = format!("users = \"{}\"\n{PORTS}", users.display());
    let config = Config::from_toml(&text).unwrap();
    let gateway = start(&text);
    let mut all_of_it = log_on(&gateway, "ALL");
    let mut some_of_it = log_on(&gateway, "SOME");
    let mut producer = Client::log_on(gateway.producers(), "P");
    let mut send = |mark: &str| producer.send("W", &format!("20001={mark}|55=B|"));
    send("P-1");
    assert_eq!(value(&all_of_it.receive().unwrap(), 20001), Some("P-1"));
    users.write(&(all.clone() + &limited));
    assert_eq!(gateway.reload(&config).unwrap().users.changed, ["some"]);
    // The worker has seen the new users once it has responded.
    some_of_it.send("1", "112=seen|");
    let answer = some_of_it.receive().unwrap();
    assert_eq!(
        (value(&answer, 35), value(&answer, 34)),
        (Some("0"), Some("2"))
    );
    send("P-2");
    assert_eq!(value(&all_of_it.receive().unwrap(), 20001), Some("P-2"));
    assert_eq!(value(&some_of_it.receive().unwrap(), 20001), Some("P-2"));
    users.write(&(all + &some));
    gateway.reload(&config).unwrap();
    some_of_it.send("1", "112=seen|");
    assert_eq!(value(&some_of_it.receive().unwrap(), 35), Some("0"));
    send("P-3");
    assert_eq!(value(&all_of_it.receive().unwrap(), 20001), Some("P-3"));
    some_of_it.send("1", "112=again|");
    assert_eq!(value(&some_of_it.receive().unwrap(), 112), Some("again"));
    stop(gateway);
}

#[test]
fn a_certificate_that_cannot_be_used_keeps_back_all_of_a_reload() {
    let (users, certificate) = (Scratch::new("tls.toml"), Scratch::new("server.pem"));
    std::fs::copy(file("server.pem"), &certificate).unwrap();
    users.write(users_of(&["A"]));
    let text = format!(
        "users = \"{}\"\n[consumers]\nport = 0\n[producers]\nport = 0\n\
         tls = {{ certificate = \"{}\", key = \"{}\" }}\n",
        users.display(),
        certificate.display(),
        file("server.key").display()
    );
    let config = Config::from_toml(&text).unwrap();
    let gateway = start(&text);
    let mut a = log_on(&gateway, "A");
    users.write(users_of(&["B"]));
    certificate.write("no certificate");
    let why = gateway.reload(&config).unwrap_err();
    assert_eq!(why.to_string(), "producers.tls");
    assert!(try_logon(&gateway, "B", "553=b|554=p|").1.is_none());
    a.send("1", "112=still|");
    assert_eq!(value(&a.receive().unwrap(), 112), Some("still"));
    std::fs::copy(file("server.pem"), &certificate).unwrap();
    assert_eq!(gateway.reload(&config).unwrap().logged_out, 1);
    let _b = log_on(&gateway, "B");
    stop(gateway);
}

#[test]
fn certificates_that_only_a_new_start_replaces_keep_back_no_reload() {
    let (users, certificate) = (Scratch::new("moved.toml"), Scratch::new("moved.pem"));
    std::fs::copy(file("server.pem"), &certificate).unwrap();
    users.write(users_of(&["A"]));
    let text = |certificate: &std::path::Path| {
        format!(
            "users = \"{}\"\n[consumers]\nport = 0\n[producers]\nport = 0\nopen = true\n\
             tls = {{ certificate = \"{}\", key = \"{}\" }}\n",
            users.display(),
            certificate.display(),
            file("server.key").display()
        )
    };
    let gateway = start(&text(&certificate));
    let _a = log_on(&gateway, "A");
    users.write(users_of(&["B"]));
    std::fs::remove_file(&certificate).unwrap();
    let config = Config::from_toml(&text(&file("server.pem"))).unwrap();
    let reloaded = gateway.reload(&config).unwrap();
    assert_eq!(reloaded.fixed, ["producers.tls"]);
    assert_eq!(reloaded.logged_out, 1);
    let trader = TlsConsumer::connect(gateway.producers(), "P", None);
    assert!(matches!(trader.next(), Seen::LoggedOn));
    trader.close();
    stop(gateway);
}
