//! FIX messages.

use crate::event::{Action, Event, Flags, InstrumentId, Kind};
use crate::instruments::{Instruments, SecurityId};
use crate::mapping::{Does, FIX, FixMapper, MapError, Mapping, Outcome};
use crate::price::Price;
use fanfare_fix::codec::Decoder;
use fanfare_fix::dict::{Dictionary, Version};
use fanfare_wire::{UtcTimestamp, byte_sum};
use proptest::prelude::*;

/// Returns a FIX message, with `|` for SOH.
fn fix(version: &str, fields: &str) -> Vec<u8> {
    let soh = |text: &str| text.replace('|', "\x01").into_bytes();
    let mut bytes = soh(&format!("8={version}|9={}|{fields}", fields.len()));
    let sum = byte_sum(&bytes);
    bytes.extend(soh(&format!("10={sum:03}|")));
    bytes
}

pub(super) struct FixRig {
    pub(super) mapper: FixMapper,
    pub(super) table: Instruments,
    decoder: Decoder,
}

impl FixRig {
    pub(super) fn new(version: Version) -> Self {
        let mapping = Mapping::parse("fix.toml", FIX).unwrap_or_else(|error| panic!("{error}"));
        let dictionary = Dictionary::built_in(version);
        let transport = Dictionary::built_in(Version::Fixt11);
        let whole = match version {
            Version::Fix50Sp2 => dictionary.over(&transport).unwrap(),
            _ => (*dictionary).clone(),
        };
        let mapper = mapping.for_fix(&whole, 1);
        Self {
            mapper: mapper.unwrap_or_else(|error| panic!("{version:?}: {error}")),
            table: Instruments::new(100),
            decoder: Decoder::new(),
        }
    }

    pub(super) fn play(&mut self, fields: &str) -> Result<Outcome, MapError> {
        self.play_at(5, fields)
    }

    fn play_at(&mut self, ts_recv: u64, fields: &str) -> Result<Outcome, MapError> {
        let bytes = fix("FIX.4.4", fields);
        let message = self.decoder.decode(&bytes).unwrap();
        self.mapper.message(&mut self.table, ts_recv, &message)
    }
}

#[test]
fn the_fix_mapping_fits_all_versions() {
    for version in [
        Version::Fix42,
        Version::Fix43,
        Version::Fix44,
        Version::Fix50Sp2,
    ] {
        let rig = FixRig::new(version);
        let names: Vec<_> = rig.mapper.msg_types().collect();
        for msg_type in ["X", "W", "d", "f", "h"] {
            assert!(names.contains(&msg_type), "{version:?} {msg_type}");
        }
    }
}

#[test]
fn fix_increments_become_events() {
    let mut rig = FixRig::new(Version::Fix44);
    let outcome = rig.play(
        "35=X|49=E|56=C|34=7|52=20261120-12:34:56.500|262=r|268=3|\
         279=0|269=0|278=a1|55=MSFT|48=123|22=8|270=10.25|271=300|273=12:34:56|346=4|\
         279=1|269=1|270=10.5|271=5|290=2|\
         279=2|269=2|55=IBM|270=99|278=77|",
    );
    let outcome = outcome.unwrap();
    assert_eq!(
        (outcome.does, outcome.number),
        (Some(Does::Changes), Some(7))
    );
    let events = rig.mapper.events();
    assert_eq!(events.len(), 3);
    let [order, level, trade] = [&events[0], &events[1], &events[2]];
    assert_eq!((order.kind, order.action), (Kind::Order, Action::New));
    assert!(order.id > 1 << 63, "a text is hashed");
    assert_eq!(order.price, Price::from_units(10_250_000_000));
    assert_eq!((order.size, order.flags), (300, Flags::NONE));
    let time = UtcTimestamp::parse(b"20261120-12:34:56").unwrap();
    assert_eq!(order.ts_event, time.nanos() as u64);
    // The second entry names no instrument: the instrument of the first one is its own.
    assert_eq!(
        (level.instrument, level.flags),
        (order.instrument, Flags::LAST)
    );
    assert_eq!(
        (level.kind, level.level, level.action),
        (Kind::Level, 2, Action::Change)
    );
    assert_eq!(level.ts_event, time.nanos() as u64 + 500_000_000);
    assert_eq!(
        (trade.kind, trade.id, trade.flags),
        (Kind::Trade, 77, Flags::LAST)
    );
    let known = rig.table.get(trade.instrument).unwrap();
    assert_eq!(known.definition.name.symbol, b"IBM");
    let first = rig.table.get(order.instrument).unwrap().definition.name;
    assert_eq!(
        (first.symbol, first.id),
        (&b"MSFT"[..], SecurityId::Number(123))
    );
}

#[test]
fn fix_snapshots_definitions_and_states_become_events() {
    let mut rig = FixRig::new(Version::Fix50Sp2);
    let outcome = rig.play(
        "35=d|34=1|52=20261120-12:34:56|55=RIU3|48=99|22=8|107=Futures|15=RUB|969=10|231=2.5|\
         541=20131216|1079=12:30Z|964=5|1141=2|1022=A|264=5|1021=2|1022=B|264=20|1021=2|",
    );
    assert_eq!(outcome.unwrap().does, Some(Does::Definition));
    let defined = rig.mapper.events()[0];
    assert_eq!(
        (defined.kind, defined.id, defined.action),
        (Kind::Definition, 1, Action::New)
    );
    let known = rig.table.get(defined.instrument).unwrap().definition;
    assert_eq!(
        (known.currency, known.depth, known.book_type),
        (&b"RUB"[..], 20, 2)
    );
    assert_eq!(known.tick, Price::from_units(10_000_000_000));
    let maturity = UtcTimestamp::parse(b"20131216-12:30:00").unwrap();
    assert_eq!(known.maturity, maturity.nanos() as u64);
    let outcome = rig.play(
        "35=W|34=2|369=88|52=20261120-12:34:56|55=RIU3|48=99|22=8|268=3|\
         269=0|270=100|271=3|1023=1|83=7|269=1|270=101|271=4|1023=1|83=7|269=J|",
    );
    let snapshot = outcome.unwrap().snapshot.unwrap();
    assert_eq!((snapshot.rpt_seq, snapshot.last_processed), (7, Some(88)));
    assert_eq!(snapshot.instrument, defined.instrument);
    let events = rig.mapper.events();
    let kinds: Vec<_> = events
        .iter()
        .map(|event| (event.kind, event.entry))
        .collect();
    assert_eq!(
        kinds,
        [(Kind::Clear, 0), (Kind::Level, b'0'), (Kind::Level, b'1')]
    );
    assert!(
        events
            .iter()
            .all(|event| event.flags.has(Flags::SNAPSHOT) && event.rpt_seq == 7)
    );
    assert!(events[2].flags.has(Flags::LAST));
    rig.play("35=f|34=3|52=20261120-12:34:56|55=RIU3|326=17|")
        .unwrap();
    let status = rig.mapper.events()[0];
    assert_eq!((status.kind, status.id), (Kind::Status, 17));
    assert_eq!(rig.table.get(status.instrument).unwrap().status, 17);
    rig.play("35=h|34=4|52=20261120-12:34:56|336=1|340=2|")
        .unwrap();
    let status = rig.mapper.events()[0];
    assert_eq!((status.instrument, status.id), (InstrumentId::ALL, 2));
    let outcome = rig.play("35=4|34=5|36=9|").unwrap();
    assert_eq!(
        (outcome.does, outcome.next),
        (Some(Does::SequenceReset), Some(9))
    );
    assert!(rig.mapper.events().is_empty());
    assert_eq!(rig.play("35=D|34=5|").unwrap().does, None);
    // Two securities, of which one is known.
    rig.play("35=y|34=6|52=20261120-12:34:56|320=a|322=b|560=0|146=2|55=RIU3|55=SIZ3|15=RUB|")
        .unwrap();
    let actions: Vec<_> = rig
        .mapper
        .events()
        .iter()
        .map(|event| event.action)
        .collect();
    assert_eq!(actions, [Action::Change, Action::New]);
}

#[test]
fn a_fix_snapshot_without_entries_is_that_of_an_empty_book() {
    let mut rig = FixRig::new(Version::Fix44);
    for entries in ["", "268=0|", "268=1|269=J|"] {
        let outcome = rig.play(&format!("35=W|34=2|369=88|55=RIU3|{entries}"));
        assert_eq!(outcome.unwrap().snapshot.unwrap().last_processed, Some(88));
        let kinds: Vec<_> = rig.mapper.events().iter().map(|own| own.kind).collect();
        assert_eq!(kinds, [Kind::Clear], "{entries:?}");
    }
}

#[test]
fn a_time_of_day_without_any_other_time_is_unknown() {
    let mut rig = FixRig::new(Version::Fix44);
    let entry = "268=1|279=0|269=0|55=A|270=1|271=1|273=18:00:00|";
    for ts_recv in [0, Event::NO_TIME] {
        let played = rig.play_at(ts_recv, &format!("35=X|34=1|{entry}"));
        assert_eq!(played.unwrap().sent, None);
        assert_eq!(rig.mapper.events()[0].ts_event, Event::NO_TIME);
    }
    let sent = format!("35=X|34=2|52=20261120-12:00:00|{entry}");
    rig.play_at(0, &sent).unwrap();
    let time = UtcTimestamp::parse(b"20261120-18:00:00").unwrap();
    assert_eq!(rig.mapper.events()[0].ts_event, time.nanos() as u64);
    // Times are checked all the same.
    let wrong = entry.replace("18:00:00", "25:00:00");
    assert!(rig.play_at(0, &format!("35=X|34=3|{wrong}")).is_err());
}

#[test]
fn a_fix_message_with_another_number_of_entries_gives_nothing() {
    let mut rig = FixRig::new(Version::Fix44);
    for (entries, what) in [
        (
            "268=3|279=0|269=0|55=A|279=0|269=1|55=A|",
            "the count is 3, found 2 entries",
        ),
        (
            "268=1|279=0|269=0|55=A|279=0|269=1|55=A|",
            "the count is 1, found 2 entries",
        ),
        (
            "268=x|279=0|269=0|55=A|",
            "the value is not a whole number, or too large",
        ),
    ] {
        let error = rig.play(&format!("35=X|34=7|{entries}")).unwrap_err();
        assert_eq!(error.why.to_string(), what);
        assert!(rig.mapper.events().is_empty());
    }
    let outcome = rig.play("35=X|34=7|268=0|");
    assert!(outcome.is_ok() && rig.mapper.events().is_empty());
    let error = rig.play("35=X|34=7|268=1|279=0|269=0|55=A|270=1000000000000000000|");
    let told = rig.mapper.describe(&error.unwrap_err(), &rig.table);
    assert_eq!(
        told,
        "MarketDataIncrementalRefresh(X): entry 0: MDEntryPx(270): instrument A: \
         1000000000000000000 is out of range: a price must be below 9.2e9"
    );
}

#[test]
fn fix_mappings_are_checked_against_the_dictionary() {
    let refused = |from: &str, to: &str| {
        let text = FIX.replacen(from, to, 1);
        assert_ne!(text, FIX);
        let mapping = Mapping::parse("fix.toml", &text).unwrap();
        match mapping.for_fix(&Dictionary::built_in(Version::Fix44), 0) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    };
    let told = refused("absent = \"ignore\"", "absent = \"error\"");
    assert!(
        told.contains("no field 83 in MarketDataIncrementalRefresh(X)"),
        "{told}"
    );
    let told = refused("price = 270", "price = 268");
    assert!(
        told.contains("is a group or a sequence, which cannot be a price"),
        "{told}"
    );
    let told = refused(
        "msg-type = \"X\"\ndoes = \"changes\"\noptional = true",
        "msg-type = \"XX\"\ndoes = \"changes\"",
    );
    assert!(told.ends_with("no MsgType(35) XX in FIX.4.4"), "{told}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Checks that FIX messages of any fields are harmless.
    #[test]
    fn any_fix_message_is_harmless(
        fields in proptest::collection::vec((0..14_usize, "[0-9A-Z:.-]{1,12}"), 0..40),
        kind in 0..5_usize,
    ) {
        let tags = [34, 52, 55, 48, 22, 268, 269, 270, 271, 279, 83, 1023, 326, 146];
        let mut rig = FixRig::new(Version::Fix50Sp2);
        let mut text = format!("35={}|", ["X", "W", "d", "f", "y"][kind]);
        for (tag, value) in fields {
            text.push_str(&format!("{}={value}|", tags[tag]));
        }
        let _ = rig.play(&text);
        let last = rig.mapper.events().last();
        prop_assert!(last.is_none_or(|event| event.flags.has(Flags::LAST)));
    }
}
