//! Definitions of instruments that arrive after their first changes.

use crate::client::{Client, value};
use crate::feed::group;
use crate::market::{feed, gateway};
use crate::service::{all, follow, of, snapshots};
use crate::stop;
use fanfare_engine::udp::{Sender, SenderConfig};
use fanfare_fast::{Encoder, Message, Program, builtin};
use fanfare_market::mapping::SPECTRA;
use fanfare_peers::Scratch;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A message that the built-in feed does not have, and its mapping.
const DEFINITION: &str = "<template name=\"Definition\" id=\"80\" dictionary=\"80\">\
                          <uInt32 name=\"MsgSeqNum\" id=\"34\"/>\
                          <uInt64 name=\"SecurityID\" id=\"48\"/>\
                          <uInt32 name=\"SecurityIDSource\" id=\"22\"><constant value=\"8\"/>\
                          </uInt32><string name=\"Symbol\" id=\"55\"/></template></templates>";
const DEFINES: &str = "\n[[message]]\ntemplate = \"Definition\"\ndoes = \"definition\"\n\
                       number = 34\ninstrument = { id = 48, source = 22, symbol = 55 }\n";

const SECURITY: u64 = 7;

/// Returns a message of one bid without a symbol.
fn change(number: u64, rpt_seq: u64) -> Value {
    json!({"template": "DefaultIncrementalRefreshMessage", "fields": {
        "MsgSeqNum": number, "SendingTime": 20_130_801_101_500_000_u64, "MDEntries": [{
            "MDUpdateAction": 0, "MDEntryType": "0", "SecurityID": SECURITY, "RptSeq": rpt_seq,
            "MDPriceLevel": 1, "MDEntryPx": {"mantissa": 100 + rpt_seq, "exponent": 0},
            "MDEntrySize": 5, "MDEntryTime": 101_500_000,
        }],
    }})
}

fn definition(number: u64) -> Value {
    json!({"template": "Definition", "fields": {
        "MsgSeqNum": number, "SecurityID": SECURITY, "Symbol": "RIU3",
    }})
}

fn packet(program: &Program, message: &Value) -> Vec<u8> {
    let (mut read, mut packet) = (Message::new(), Vec::new());
    fanfare_fast::json::read_line(program, &message.to_string(), &mut read).unwrap();
    let mut encoder = Encoder::new(program.clone());
    encoder.encode(&read, &mut packet).unwrap();
    packet
}

#[test]
fn an_instrument_whose_symbol_comes_late_belongs_once_to_each_pattern_that_matches() {
    let (templates, mapping) = (Scratch::new("late.xml"), Scratch::new("late.toml"));
    templates.write(builtin::SPECTRA.replace("</templates>", DEFINITION));
    mapping.write(&(SPECTRA.to_owned() + DEFINES));
    let line = group(190);
    let text = feed("one", line, group(191));
    let mut text = text.replace("starts_empty = false", "starts_empty = true");
    for (key, file) in [("templates", &templates), ("mapping", &mapping)] {
        let own = format!("{key} = \"{}\"", file.display());
        text = text.replace(&format!("{key} = \"builtin:spectra\""), &own);
    }
    let gateway = gateway(&text, 1 << 22);
    let (program, sender) = (
        Program::parse(&templates.text()).unwrap(),
        Sender::open(&SenderConfig::new(line)).unwrap(),
    );
    let send = |message: &Value| sender.send(&packet(&program, message)).unwrap();
    let log_on = |name| Client::log_on_in(gateway.consumers(), name, "FIXT.1.1", "1137=9|");
    let (mut prefix, mut whole) = (log_on("PREFIX"), log_on("WHOLE"));
    whole.send("V", &all("r", 1, 0));
    send(&change(1, 1));
    snapshots(&mut whole, 1);
    prefix.send("V", &of("RI*", "r", 1, 0));
    let mut books = BTreeMap::new();
    follow(&mut prefix, &mut books);
    assert!(books.is_empty(), "it has no symbol yet: {books:?}");
    send(&definition(2));
    let found = snapshots(&mut prefix, 1);
    // The other one has it by another name so far.
    let again = snapshots(&mut whole, 1);
    for own in found.values().chain(again.values()) {
        assert_eq!(value(own, 55), Some("RIU3"), "{own}");
    }
    send(&change(3, 2));
    for client in [&mut prefix, &mut whole] {
        let change = client.receive().unwrap();
        assert!(change.contains("|35=X|"), "{change}");
        // A second part would have it again.
        follow(client, &mut books);
        assert!(books.is_empty(), "{books:?}");
    }
    stop(gateway);
}
