//! Tests of the market data service with third-party engines, which validate by their own
//! dictionaries: they subscribe, their books are rebuilt from the messages they receive, and they
//! accept every message.

mod plant;
mod subscriber;

use crate::engines::{Engine, Engines, VERSIONS, simplefix, source};
use fanfare_peers::Program;
use plant::Plant;
use std::process::Command;
use subscriber::Subscriber;

/// FIX.4.2, FIX.4.4, and FIXT.1.1 with FIX.5.0SP2.
const CHOSEN: [usize; 3] = [2, 4, 7];

#[test]
fn quickfix_subscribes() {
    tell(Engine::QuickFix);
}

#[test]
fn quickfix_j_subscribes() {
    tell(Engine::QuickFixJ);
}

#[test]
fn quickfix_is_refused_what_it_may_not_see() {
    let Some(engines) = Engines::find() else {
        return;
    };
    let user = "[[user]]\nname = \"desk\"\nallow = [\"127.0.0.0/8\"]\nports = [\"consumers\"]\n\
                sessions = [{ sender = \"TW\", target = \"ISLD\" }]\ninstruments = [\"RIU*\"]\n";
    let mut plant = Plant::start_with(user);
    plant.changes(500);
    plant.snapshots();
    let version = VERSIONS[CHOSEN[1]];
    let consumers = plant.consumers();
    let mut own = Subscriber::log_on(&engines, Engine::QuickFix, version, consumers);
    own.subscribe("r1", "*");
    own.is_denied();
    plant.changes(100);
    own.hears_nothing();
    plant.stop();
}

/// Runs the scenario with three versions at once, on one gateway.
fn tell(engine: Engine) {
    let Some(engines) = Engines::find() else {
        return;
    };
    let mut plant = Plant::start();
    let mut all = CHOSEN.map(|at| {
        let version = VERSIONS[at];
        Subscriber::log_on(&engines, engine, version, plant.consumers())
    });
    // The books lack a snapshot.
    plant.changes(2_000);
    for own in &mut all {
        own.subscribe("r1", "*");
        own.news("state=recovering");
    }
    plant.snapshots();
    for own in &mut all {
        own.first_snapshot("r1");
    }
    for round in 0..3 {
        plant.changes(300);
        for own in &mut all {
            own.has_the_books_of("r1", &format!("p{round}"));
        }
    }
    for own in &mut all {
        own.is_refused();
        own.asks_for_definitions();
        own.asks_for_statuses();
        own.stop("r1");
    }
    plant.changes(100);
    for own in all {
        own.hears_nothing();
    }
    plant.stop();
}

#[test]
fn a_simplefix_client_rebuilds_the_books() {
    let Some(python) = simplefix() else {
        return;
    };
    let mut plant = Plant::start();
    plant.changes(2_000);
    plant.snapshots();
    for version in ["FIX.4.2", "FIX.4.3", "FIX.4.4", "FIX.5.0", "FIX.5.0SP2"] {
        let mut client = Command::new(&python);
        client.arg(source("simplefix_market.py"));
        client
            .arg(plant.consumers().port().to_string())
            .arg(version);
        let mut client = Program::start(&mut client).unwrap();
        loop {
            match client.line().unwrap().as_str() {
                "feed" => {
                    plant.changes(200);
                    client.tell("fed").unwrap();
                }
                "done" => break,
                other => panic!("{version}: {other}"),
            }
        }
    }
    plant.stop();
}
