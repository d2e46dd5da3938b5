//! Tests of definitions that close instruments.

use super::fix::FixRig;
use super::refused;
use crate::event::{Action, Event, Flags, Kind};
use crate::state;
use fanfare_fix::dict::Version;

const DEFINITION: &str = "[[message]]
template = 1
does = \"definition\"
entries = 268
instrument = { symbol = 55 }
[message.definition]
closed = ";

#[test]
fn a_definition_of_fix_closes_an_instrument_that_keeps_its_values() {
    let mut rig = FixRig::new(Version::Fix50Sp2);
    let names = "55=RIU3|48=99|22=8|";
    rig.play(&format!("35=BP|34=1|980=A|{names}15=RUB|"))
        .unwrap();
    let first = rig.mapper.events()[0];
    assert_eq!((first.kind, first.action), (Kind::Definition, Action::New));
    rig.play("35=BP|34=2|52=20261120-12:34:56|980=D|48=99|22=8|")
        .unwrap();
    let [closed] = rig.mapper.events() else {
        panic!("{:?}", rig.mapper.events());
    };
    assert!(state::closes(closed) && closed.flags.has(Flags::LAST));
    assert_eq!(closed.instrument, first.instrument);
    assert_ne!(closed.ts_event, Event::NO_TIME);
    let known = rig.table.get(first.instrument).unwrap();
    assert_eq!(known.definition.currency, b"RUB");
    // The same definition is news.
    rig.play(&format!("35=BP|34=3|980=M|{names}15=RUB|"))
        .unwrap();
    let again = rig.mapper.events()[0];
    assert_eq!((again.action, again.id), (Action::New, 2));
    // Of a list, only one is known.
    rig.play("35=BK|34=4|980=D|146=2|55=RIU3|55=SIZ3|").unwrap();
    assert_eq!(rig.mapper.events().len(), 1);
    assert_eq!(rig.mapper.counts().unknown_instrument, 1);
    assert_eq!(rig.table.len(), 1);
    let report = rig.mapper.report();
    let mut messages = report.messages.iter();
    let update = messages.find(|message| message.name == "SecurityDefinitionUpdateReport(BP)");
    let mut fields = update.unwrap().fields.iter();
    let action = fields.find(|field| field.name == "SecurityUpdateAction(980)");
    let uses = ["definition: closed", "definition: partial"];
    assert_eq!(action.unwrap().uses, uses);
}

#[test]
fn closing_values_are_checked() {
    for (closed, why) in [
        ("{ 980 = \"D\" }", "no field 980 in Quotes(1)"),
        (
            "{ 9000 = \"D\" }",
            "Blob(9000) of Quotes(1) is a byte vector, which cannot be a value",
        ),
    ] {
        let told = refused(&format!("{DEFINITION}{closed}\n"));
        let tag = closed.split_whitespace().nth(1).unwrap();
        assert_eq!(
            told,
            format!("m.toml:7: message.definition.closed.{tag}: {why}")
        );
    }
    let told = refused(&format!("{DEFINITION}\"D\"\n"));
    assert_eq!(
        told,
        "m.toml:7: message.definition.closed: expected a table, found a string"
    );
}
