//! Sessions steered by an operator while the gateway is under load, so that the others lose
//! nothing.

use crate::client::{Client, value};
use crate::stop;
use crate::users::{PORTS, start};
use fanfare_gateway::{Gateway, GatewayOperator};
use fanfare_operator::{Operator, OperatorError};
use fanfare_peers::Scratch;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicBool, Ordering};

/// A gateway with an audit file, and its operator.
struct Plant {
    gateway: Gateway,
    operator: GatewayOperator,
    audit: Scratch,
}

impl Plant {
    fn start(name: &str, more: &str) -> Self {
        let audit = Scratch::new(&format!("{name}.audit"));
        let text = format!("audit = \"{}\"\n{PORTS}{more}", audit.display());
        let gateway = start(&text);
        let (operator, _) = GatewayOperator::new(gateway.handle());
        Self {
            gateway,
            operator,
            audit,
        }
    }

    fn ask(&self, name: &str, fields: Value) -> Result<Value, OperatorError> {
        let fields: Map<String, Value> = serde_json::from_value(fields).unwrap();
        self.operator.ask("test", name, fields)
    }

    /// Returns the error of a command that is refused.
    fn refused(&self, name: &str, fields: Value) -> String {
        self.ask(name, fields).expect_err(name).text
    }

    fn done(&self, name: &str, fields: Value) -> Value {
        self.ask(name, fields)
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn consumer(&self, name: &str) -> Client {
        Client::log_on(self.gateway.consumers(), name)
    }

    /// Logs on without a reset. Returns the response too.
    fn comes_back(&self, name: &str, seq: u64) -> (Client, Option<String>) {
        let mut client = Client::connect(self.gateway.consumers(), name);
        client.send_numbered(seq, "A", "98=0|108=0|");
        let answer = client.receive();
        (client, answer)
    }

    fn stop(self) -> String {
        stop(self.gateway);
        self.audit.text()
    }
}

/// Reads up to the Logout. Returns the number of the last message and the count of messages. Panics
/// if a number is missing.
fn reads_all(client: &mut Client, mut next: u64) -> u64 {
    let mut events = 0;
    while let Some(message) = client.receive() {
        let seq = value(&message, 34).unwrap().parse::<u64>().unwrap();
        assert_eq!(seq, next, "{message}");
        next += 1;
        match value(&message, 35) {
            Some("W") => {
                let number = value(&message, 20001).unwrap();
                assert_eq!(number, format!("P-{events}"), "{message}");
                events += 1;
            }
            Some("5") => return events,
            _ => panic!("{message}"),
        }
    }
    events
}

#[test]
fn one_session_is_steered_under_load_and_no_other_is_touched() {
    // The producer is faster than the readers: their queues must have room for the difference.
    let plant = Plant::start("steered", "[slow_consumer]\nqueue_bytes = 1073741824\n");
    let mut quiet: Vec<Client> = ["Q1", "Q2", "Q3"].map(|name| plant.consumer(name)).into();
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = quiet
            .iter_mut()
            .map(|client| scope.spawn(|| reads_all(client, 2)))
            .collect();
        let mut producer = Client::log_on(plant.gateway.producers(), "P");
        let ends = &ends;
        let sent = scope.spawn(move || {
            let mut sent = 0;
            while !ends.load(Ordering::Relaxed) {
                producer.send("W", &format!("20001=P-{sent}|55=A|"));
                sent += 1;
            }
            // Messages sent before the Logout are for all.
            producer.send("5", "");
            while producer.receive().is_some() {}
            sent
        });
        steer_one(&plant);
        ends.store(true, Ordering::Relaxed);
        let sent = sent.join().unwrap();
        assert!(sent > 100, "{sent}");
        crate::eventually("everything is delivered", || {
            let sessions = plant.done("sessions", json!({ "port": "consumers" }));
            let all = sessions["sessions"].as_array().unwrap().iter();
            let done = all.filter(|one| one["next_sender"] == sent + 2);
            done.count() == 3
        });
        plant.done(
            "sessions logout",
            json!({ "port": "consumers", "target": "PLANT", "sender": "Q1" }),
        );
        plant.done("sessions logout", json!({ "session": "FIX.4.4:PLANT->Q2" }));
        plant.done(
            "sessions logout",
            json!({ "session": "Q3", "text": "good night" }),
        );
        for reader in readers {
            assert_eq!(reader.join().unwrap(), sent);
        }
    });
    let audit = plant.stop();
    for line in [
        "sessions set-seq session=ONE next_sender=1000000 next_target=500",
        "sessions reset session=ONE",
        "sessions stop session=ONE",
        "sessions start session=ONE",
        "sessions disconnect session=ONE",
        r#"sessions logout session=Q3 text=\"good night\""#,
        "refused: ",
    ] {
        assert!(audit.contains(line), "{line} in {audit}");
    }
}

/// Returns the next message that `wanted` accepts.
fn until(client: &mut Client, wanted: impl Fn(&str) -> bool) -> String {
    loop {
        let message = client.receive().expect("a message");
        if wanted(&message) {
            return message;
        }
    }
}

fn steer_one(plant: &Plant) {
    let mut one = plant.consumer("ONE");
    until(&mut one, |message| message.contains("|35=W|"));
    let numbers = json!({ "session": "ONE", "next_sender": 1_000_000, "next_target": 500 });
    plant.done("sessions set-seq", numbers);
    let jumped = |message: &str| value(message, 34).unwrap().parse::<u64>().unwrap() >= 1_000_000;
    assert_eq!(value(&until(&mut one, jumped), 34), Some("1000000"));
    let lower = plant.refused(
        "sessions set-seq",
        json!({ "session": "ONE", "next_sender": 7 }),
    );
    assert!(
        lower.contains("as too low") && lower.contains("`force`"),
        "{lower}"
    );
    plant.done("sessions reset", json!({ "session": "ONE" }));
    let reset = until(&mut one, |message| message.contains("|141=Y|"));
    assert!(
        reset.contains("|35=A|") && value(&reset, 34) == Some("1"),
        "{reset}"
    );
    assert_eq!(value(&one.receive().unwrap(), 34), Some("2"));
    // A stopped session is notified and not admitted again, however it connects.
    let stopped = plant.done(
        "sessions stop",
        json!({ "session": "ONE", "text": "enough" }),
    );
    assert_eq!(stopped["sessions"], 1);
    until(&mut one, |message| message.contains("|58=enough|"));
    drop(one);
    let again = plant.refused("sessions stop", json!({ "session": "ONE" }));
    assert!(again.contains("stopped already"), "{again}");
    let (_, answer) = plant.comes_back("ONE", 1);
    assert!(answer.unwrap().contains("|58=stopped by the operator|"));
    let stopped = plant.done("sessions stopped", json!({}));
    assert_eq!(stopped, json!([{ "stopped": "sender=ONE" }]));
    let other = plant.refused("sessions start", json!({ "session": "TWO" }));
    assert!(other.contains("stopped: sender=ONE"), "{other}");
    plant.done("sessions start", json!({ "session": "ONE" }));
    let mut one = plant.consumer("ONE");
    plant.done("sessions disconnect", json!({ "session": "ONE" }));
    while let Some(message) = one.receive() {
        assert!(!message.contains("|35=5|"), "{message}");
    }
}

#[test]
fn the_answer_to_a_test_request_is_measured() {
    let plant = Plant::start("asked", "");
    let (mut one, mut other) = (plant.consumer("ONE"), plant.consumer("OTHER"));
    let asked = plant.done("sessions test-request", json!({ "session": "ONE" }));
    assert_eq!(asked, json!({ "sessions": 1 }));
    let request = one.receive().unwrap();
    assert!(request.contains("|35=1|"), "{request}");
    let trip = |name: &str| {
        let found = plant.done("sessions", json!({ "session": name }));
        found["sessions"][0]["round_trip_us"].clone()
    };
    assert_eq!(trip("ONE"), Value::Null);
    one.send("0", &format!("112={}|", value(&request, 112).unwrap()));
    crate::eventually("it is measured", || trip("ONE").is_u64());
    let nobody = plant.refused("sessions test-request", json!({ "session": "TWO" }));
    assert!(nobody.contains("no such session"), "{nobody}");
    // The other session received no request.
    plant.done("sessions logout", json!({ "session": "OTHER" }));
    assert!(other.receive().unwrap().contains("|35=5|"));
    assert_eq!(trip("OTHER"), Value::Null);
    plant.stop();
}

#[test]
fn numbers_of_a_session_that_is_away_are_listed_and_changed() {
    let plant = Plant::start("away", "");
    let mut away = plant.consumer("AWAY");
    away.send("5", "");
    while away.receive().is_some() {}
    crate::eventually("it is remembered", || {
        !plant
            .done("sessions remembered", json!({}))
            .as_array()
            .unwrap()
            .is_empty()
    });
    let rows = plant.done("sessions remembered", json!({ "session": "AWAY" }));
    assert_eq!(
        (&rows[0]["next_sender"], &rows[0]["next_target"]),
        (&json!(3), &json!(3))
    );
    for (fields, why) in [
        (json!({ "session": "AWAY" }), "a number is missing"),
        (
            json!({ "session": "AWAY", "next_sender": 0 }),
            "MsgSeqNum(34): expected 1 to",
        ),
        (
            json!({ "session": "AWAY", "next_target": 1_u64 << 61 }),
            "MsgSeqNum(34): expected 1 to",
        ),
        (
            json!({ "session": "AWAY", "next_target": -1 }),
            "must be a number from 0",
        ),
        (
            json!({ "session": "AWAY", "next_target": 1e30 }),
            "must be a number from 0",
        ),
        (json!({ "next_target": 1 }), "no session is named"),
        (
            json!({ "session": "NOBODY", "next_target": 1 }),
            "no such session",
        ),
        (
            json!({ "session": "AWAY", "colour": 1 }),
            "unknown field `colour` of `sessions set-seq`: expected one of session",
        ),
    ] {
        let told = plant.refused("sessions set-seq", fields);
        assert!(told.contains(why), "{why} in {told}");
    }
    // A number below that of a sent message, which need not be reported.
    plant.done(
        "sessions set-seq",
        json!({ "session": "AWAY", "next_sender": 2, "next_target": 90 }),
    );
    let (client, answer) = plant.comes_back("AWAY", 90);
    assert_eq!(value(&answer.unwrap(), 34), Some("2"));
    drop(client);
    // The reset of a session that is logged on sends a Logon(A), which takes the first number.
    crate::eventually("it is away", || {
        let remembered = plant.done("sessions remembered", json!({}));
        !remembered.as_array().unwrap().is_empty()
    });
    plant.done("sessions reset", json!({ "session": "AWAY" }));
    let (_client, answer) = plant.comes_back("AWAY", 1);
    assert_eq!(value(&answer.unwrap(), 34), Some("1"));
    plant.stop();
}

#[test]
fn a_list_of_sessions_grows_and_shrinks() {
    let list = "sessions = [{ sender = \"A\", target = \"PLANT\" }]\n";
    let plant = Plant::start("listed", list);
    let of = |sender: &str| json!({ "port": "consumers", "sender": sender, "target": "PLANT" });
    let mut a = plant.consumer("A");
    let (_, answer) = plant.comes_back("B", 1);
    assert_eq!(answer, None);
    assert_eq!(plant.done("sessions add", of("B")), json!({ "listed": 2 }));
    let twice = plant.refused("sessions add", of("B"));
    assert_eq!(twice, "B->PLANT is on the list already");
    let nobody = plant.refused("sessions add", of(""));
    assert_eq!(nobody, "the CompIDs must have 1 to 96 printable characters");
    for pattern in ["*", "DESK*"] {
        let told = plant.refused("sessions add", of(pattern));
        assert!(told.contains("a list names each session"), "{told}");
    }
    let _b = plant.consumer("B");
    assert_eq!(
        plant.done("sessions remove", of("A")),
        json!({ "listed": 1 })
    );
    assert!(a.receive().unwrap().contains("|35=5|"));
    let gone = plant.refused("sessions remove", of("A"));
    assert_eq!(gone, "A->PLANT is not on the list, which has B->PLANT");
    let all = json!({ "port": "producers", "sender": "A", "target": "PLANT" });
    let told = plant.refused("sessions add", all);
    assert!(
        told.contains("`producers` has no list of sessions"),
        "{told}"
    );
    let told = plant.refused("sessions add", json!({ "port": "nowhere" }));
    assert!(told.contains("producers, consumers"), "{told}");
    plant.stop();
}
