//! The control socket: requests of operators, and the responses to any input.

use crate::client::{Client, value};
use crate::users::{PORTS, start, user};
use crate::{eventually, stop};
use fanfare_gateway::{ConfigAsk, ConfigAsks, Gateway, GatewayOperator};
use fanfare_operator::Control;
use fanfare_peers::Scratch;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::Duration;

/// A client of the socket.
struct Operator {
    lines: BufReader<UnixStream>,
}

impl Operator {
    fn connect(path: &Scratch) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let lines = BufReader::new(stream);
        Self { lines }
    }

    fn send(&mut self, line: &[u8]) {
        // The gateway may have closed, and the test checks what it reads.
        let _ = self.lines.get_mut().write_all(line);
    }

    /// Returns the response, or `None` when the connection was closed.
    fn receive(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.lines.read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(serde_json::from_str(&line).unwrap()),
        }
    }

    fn ask(&mut self, request: &Value) -> Value {
        self.send(format!("{request}\n").as_bytes());
        self.receive().expect("an answer")
    }

    /// Returns the result of a command that succeeds.
    fn result(&mut self, request: &Value) -> Value {
        let mut answer = self.ask(request);
        assert_eq!(answer["ok"], true, "{request}: {answer}");
        answer["result"].take()
    }

    /// Returns the error of a command that fails.
    fn error(&mut self, line: &[u8]) -> String {
        self.send(line);
        let answer = self.receive().expect("an answer");
        assert_eq!(answer["ok"], false, "{answer}");
        answer["error"].as_str().unwrap().to_owned()
    }
}

struct Plant {
    control: Control,
    asks: ConfigAsks,
    gateway: Gateway,
    path: Scratch,
    audit: Scratch,
}

fn plant(name: &str, more: &str) -> Plant {
    let (path, audit) = (Scratch::new(name), Scratch::new(&format!("{name}.audit")));
    let text = format!("audit = \"{}\"\n{PORTS}{more}", audit.display());
    let gateway = start(&text);
    let (operator, asks) = GatewayOperator::new(gateway.handle());
    let control = Control::start(&path, Arc::new(operator)).unwrap();
    Plant {
        control,
        asks,
        gateway,
        path,
        audit,
    }
}

impl Plant {
    fn stop(self) -> String {
        drop(self.control);
        assert!(!self.path.exists(), "the socket is removed");
        stop(self.gateway);
        self.audit.text()
    }
}

/// Checks that the pages of the list are the list, in the same order.
fn pages(operator: &mut Operator, all: &Value) {
    let (mut rows, mut after) = (Vec::new(), Value::Null);
    loop {
        let ask = json!({ "command": "sessions", "limit": 1, "after": after });
        let mut part = operator.result(&ask);
        assert_eq!(part["total"], 3);
        let own = part["sessions"].as_array_mut().unwrap();
        assert_eq!(own.len(), 1);
        rows.append(own);
        after = part["next"].take();
        if after.is_null() {
            break;
        }
    }
    let names =
        |rows: &[Value]| -> Vec<Value> { rows.iter().map(|row| row["session"].clone()).collect() };
    assert_eq!(names(&rows), names(all.as_array().unwrap()));
    let worst = operator.result(&json!({ "command": "sessions", "sort": "lag", "limit": 2 }));
    assert_eq!(
        (worst["sessions"].as_array().unwrap().len(), &worst["next"]),
        (2, &Value::Null)
    );
    for (fields, why) in [
        (r#""limit":0"#, "between 1 and 1000"),
        (r#""limit":1000000000"#, "between 1 and 1000"),
        (r#""after":"nowhere""#, "the `next` of an answer"),
        (
            r#""sort":"lag","after":"consumers x""#,
            "needs the order by name",
        ),
    ] {
        let line = format!("{{\"command\":\"sessions\",{fields}}}\n");
        let error = operator.error(line.as_bytes());
        assert!(error.contains(why), "{why} in {error}");
    }
}

#[test]
fn an_operator_sees_the_gateway_and_ends_sessions() {
    let users = user("desk", "DESK", "p", "");
    let plant = plant(
        "sees",
        &format!("open = true\n[lists]\nINDEX = [\"A\", \"B*\"]\n{users}"),
    );
    let mode = std::fs::metadata(&plant.path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut desk = Client::connect(plant.gateway.consumers(), "DESK");
    desk.send("A", "98=0|108=0|141=Y|553=desk|554=p|");
    assert_eq!(value(&desk.receive().unwrap(), 35), Some("A"));
    let mut other = Client::log_on(plant.gateway.consumers(), "OTHER");
    let mut producer = Client::log_on(plant.gateway.producers(), "P");
    let mut operator = Operator::connect(&plant.path);
    let answer = operator.ask(&json!({ "command": "status", "id": [1, "x"] }));
    assert_eq!(answer["id"], json!([1, "x"]));
    let status = &answer["result"];
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    let run = status["run"].as_u64();
    assert!(run > Some(1_700_000_000_000_000), "{status}");
    let address = plant.gateway.consumers().to_string();
    assert_eq!(status["ports"][1]["address"], address.as_str());
    assert_eq!(status["ports"][1]["sessions"], 2);
    producer.send("W", "20001=P-1|55=A|");
    let sessions = json!({ "command": "sessions", "user": "desk" });
    eventually("the numbers", || {
        operator.result(&sessions)["sessions"][0]["next_sender"] == 3
    });
    let desk_session = &operator.result(&sessions)["sessions"];
    assert_eq!(desk_session.as_array().unwrap().len(), 1);
    assert_eq!(desk_session[0]["session"], "FIX.4.4:PLANT->DESK");
    assert_eq!(desk_session[0]["logged_on"], true);
    let all = operator.result(&json!({ "command": "sessions" }));
    assert_eq!(all["sessions"].as_array().unwrap().len(), 3);
    pages(&mut operator, &all["sessions"]);
    let lists = operator.result(&json!({ "command": "lists" }));
    assert_eq!(lists, json!([{ "name": "INDEX", "names": 2 }]));
    let users = operator.result(&json!({ "command": "users" }));
    assert_eq!(
        (&users[0]["name"], &users[0]["sessions"]),
        (&json!("desk"), &json!(1))
    );
    assert!(!users.to_string().contains("argon2"), "{users}");
    assert_eq!(
        operator.result(&json!({ "command": "limits" }))["logon_timeout_s"],
        10
    );
    assert_eq!(
        operator.result(&json!({ "command": "counters" }))["marked"],
        1
    );
    let ended =
        operator.result(&json!({ "command": "sessions logout", "user": "desk", "text": "bye" }));
    let silent = json!({ "sessions": 1, "forced": 1 });
    assert_eq!(ended, silent, "the Logout is not answered");
    assert_eq!(value(&desk.receive().unwrap(), 35), Some("W"));
    assert_eq!(value(&desk.receive().unwrap(), 58), Some("bye"));
    let cut = json!({ "command": "sessions disconnect", "sender": "OTHER", "port": "consumers" });
    assert_eq!(operator.result(&cut)["sessions"], 1);
    assert_eq!(value(&other.receive().unwrap(), 35), Some("W"));
    assert_eq!(other.receive(), None);
    assert_eq!(operator.ask(&cut)["ok"], false);
    let audit = plant.stop();
    for line in [
        "logout user=desk text=bye",
        "disconnect sender=OTHER port=consumers",
    ] {
        assert!(audit.contains(line), "{audit}");
    }
}

#[test]
fn questions_about_the_configuration_are_answered_by_whoever_runs_the_gateway() {
    let plant = plant("reload", "");
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| {
            let mut operator = Operator::connect(&plant.path);
            let first = operator.result(&json!({ "command": "config reload" }));
            let second = operator.error(b"{\"command\":\"users reload\"}\n");
            (first, second)
        });
        for (ask, outcome) in [
            (ConfigAsk::Reload, Ok("reloaded".into())),
            (ConfigAsk::ReloadUsers, Err("line 40".to_owned())),
        ] {
            let mut request = None;
            eventually("the request", || {
                request = plant.asks.next();
                request.is_some()
            });
            let request = request.unwrap();
            assert_eq!(request.ask, ask);
            request.answer(outcome);
        }
        let (first, second) = asked.join().unwrap();
        assert_eq!((first, second.as_str()), (json!("reloaded"), "line 40"));
    });
    assert!(
        plant
            .stop()
            .contains("\"command\":\"users reload\",\"outcome\":\"refused: line 40\"")
    );
}

#[test]
fn a_command_under_way_at_the_end_is_in_the_audit_file() {
    let Plant {
        control,
        asks,
        gateway,
        path,
        audit,
    } = plant("ending", "");
    let mut operator = Operator::connect(&path);
    operator.send(b"{\"command\":\"config reload\"}\n");
    let mut request = None;
    eventually("the request", || {
        request = asks.next();
        request.is_some()
    });
    let ending = std::thread::spawn(move || {
        drop(control);
        stop(gateway);
    });
    eventually("the end", || !path.exists());
    request.unwrap().answer(Ok("reloaded".into()));
    ending.join().unwrap();
    let audit = audit.text();
    assert!(
        audit.contains("\"command\":\"config reload\",\"outcome\":\"reloaded\""),
        "{audit}"
    );
}

#[test]
fn nonsense_is_an_error_and_the_connection_goes_on() {
    let plant = plant("nonsense", "");
    let mut operator = Operator::connect(&plant.path);
    let deep = [vec![b'['; 20_000], vec![b'\n']].concat();
    for line in [
        b"\n".as_slice(),
        b"{}\n",
        b"[1,2\n",
        b"null\n",
        b"\xff\xfe\x00\n",
        b"{\"command\":\"\x1b[2J\"}\n",
        b"{\"command\":\"shutdown\"}\n",
        b"{\"command\":\"status\",\"more\":1}\n",
        b"{\"command\":\"status\",\"sender\":\"A\"}\n",
        b"{\"command\":\"sessions logout\"}\n",
        b"{\"command\":\"sessions logout\",\"sender\":7}\n",
        b"{\"command\":\"sessions logout\",\"sender\":\"A\",\"text\":\"a\\u0001b\"}\n",
        b"{\"command\":\"sessions logout\",\"sender\":\"NOBODY\"}\n",
        &deep,
    ] {
        let error = operator.error(line);
        assert!(!error.is_empty() && !error.contains('\x1b'), "{error}");
    }
    let wrong: [(&[u8], &str); 4] = [
        (
            b"{\"command\":\"sessions logout\",\"user\":\"a\",\"user\":\"b\"}\n",
            "the key `user` occurs twice",
        ),
        (b"[]\n", "expected an object"),
        (b"{\"session\":1}\n", "the key `command` is missing"),
        (b"{\"command\":1}\n", "`command` must be a string"),
    ];
    for (line, why) in wrong {
        let error = operator.error(line);
        assert!(error.contains(why), "{error}");
    }
    // In pieces, and several in one.
    operator.send(b"{\"command\":");
    operator.send(b"\"status\"}\n{\"command\":\"lists\"}\n");
    assert!(operator.receive().unwrap()["result"]["version"].is_string());
    assert_eq!(operator.receive().unwrap()["result"], json!([]));
    // A line without an end is answered once, and the connection is closed.
    operator.send(&vec![b'x'; 200_000]);
    assert!(
        operator.receive().unwrap()["error"]
            .as_str()
            .unwrap()
            .contains("65536")
    );
    assert!(operator.receive().is_none());
    let mut next = Operator::connect(&plant.path);
    assert!(next.result(&json!({ "command": "status" }))["pid"].is_number());
    plant.stop();
}

#[test]
fn more_connections_than_allowed_are_told_so_and_counted_and_make_room_when_they_leave() {
    let plant = plant("many", "");
    let mut held: Vec<Operator> = (0..16).map(|_| Operator::connect(&plant.path)).collect();
    for operator in &mut held {
        operator.result(&json!({ "command": "lists" }));
    }
    for _ in 0..100 {
        let mut one_more = Operator::connect(&plant.path);
        let answer = one_more.receive().unwrap();
        assert_eq!(answer["error"], "too many connections");
        assert_eq!(one_more.lines.read(&mut [0; 1]).unwrap_or(0), 0);
    }
    assert_eq!(plant.gateway.count("control_turned_away"), 100);
    held.truncate(8);
    eventually("room", || {
        let mut operator = Operator::connect(&plant.path);
        operator.ask(&json!({ "command": "lists" }))["ok"] == true
    });
    plant.stop();
}

#[test]
fn a_stale_socket_is_replaced_and_anothers_file_is_left_alone() {
    let gateway = start(PORTS);
    let path = Scratch::new("stale");
    drop(UnixListener::bind(&path).unwrap());
    let (operator, _asks) = GatewayOperator::new(gateway.handle());
    let first = Control::start(&path, Arc::new(operator.clone())).unwrap();
    let why = Control::start(&path, Arc::new(operator.clone())).unwrap_err();
    assert!(why.to_string().contains("another process listens"), "{why}");
    Operator::connect(&path).result(&json!({ "command": "status" }));
    // A file that replaces it is not removed.
    std::fs::remove_file(&path).unwrap();
    path.write("mine");
    drop(first);
    assert_eq!(path.text(), "mine");
    let why = Control::start(&path, Arc::new(operator)).unwrap_err();
    assert!(why.to_string().contains("not a socket"), "{why}");
    stop(gateway);
}
