//! Tests a client on PyPI's simplefix, with a session layer of its own, against Fanfare's acceptor.

use crate::engines::{acceptor_settings, fanfare, simplefix, source};
use fanfare_peers::Program;
use std::process::Command;

#[test]
fn a_simplefix_client_goes_through_its_story() {
    let Some(python) = simplefix() else {
        return;
    };
    let settings = acceptor_settings()
        + "[SESSION]\nBeginString=FIX.4.4\nSenderCompID=ISLD\nTargetCompID=TW\n";
    let mut server = Program::start(&mut fanfare("acceptor-simplefix", &settings)).unwrap();
    let address = server.listens().unwrap();
    let mut client = Command::new(python);
    client.arg(source("simplefix_client.py"));
    let out = client.arg(address.port().to_string()).output();
    let out = out.unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(out.status.success(), "{}", said(&out.stderr));
    assert_eq!(said(&out.stdout), "done\n");
}
