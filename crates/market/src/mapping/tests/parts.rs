//! Tests of definitions that have only what changes.

use super::fix::FixRig;
use super::refused;
use crate::event::{Action, Kind};
use crate::instruments::{Definition, IdSource, Instruments, Name, Place, SecurityId};
use crate::mapping::FixMapper;
use crate::price::Price;
use crate::state;
use fanfare_fix::dict::Version;
use fanfare_wire::UtcTimestamp;
use proptest::collection::vec;
use proptest::prelude::*;

const NAMES: &str = "55=RIU3|48=99|22=8|";

fn utc(text: &str) -> u64 {
    let time = UtcTimestamp::parse(text.as_bytes()).unwrap();
    time.nanos().cast_unsigned()
}

/// A rig with one instrument, and the number of the last message.
struct Modified(FixRig, u32);

impl Modified {
    fn new() -> Self {
        let mut rig = Self(FixRig::new(Version::Fix50Sp2), 0);
        rig.play(
            "980=A|",
            "107=Futures|15=RUB|969=10|541=20131216|1079=12:30Z|1141=1|1022=A|264=5|1021=2|",
        );
        rig
    }

    /// Plays a SecurityDefinitionUpdateReport(BP), and returns the actions of its events.
    fn play(&mut self, action: &str, fields: &str) -> Vec<Action> {
        self.1 += 1;
        let message = format!("35=BP|34={}|{action}{NAMES}{fields}", self.1);
        self.0.play(&message).unwrap();
        let events = self.0.mapper.events().iter();
        events
            .inspect(|event| assert_eq!(event.kind, Kind::Definition))
            .map(|event| event.action)
            .collect()
    }

    fn known(&self) -> Definition<'_> {
        let known = self.0.table.by_symbol(b"RIU3").unwrap();
        self.0.table.get(known).unwrap().definition
    }
}

#[test]
fn a_modification_keeps_what_it_does_not_have() {
    let mut rig = Modified::new();
    let name = Name {
        symbol: b"RIU3",
        id: SecurityId::Number(99),
        source: IdSource::parse(b"8").unwrap(),
    };
    let expected = Definition {
        name,
        description: b"Futures",
        currency: b"RUB",
        tick: Price::from_units(10_000_000_000),
        maturity: utc("20131216-12:30:00"),
        depth: 5,
        book_type: 2,
        ..Definition::default()
    };
    assert_eq!(rig.known(), expected);
    assert_eq!(rig.play("980=M|", "969=20|"), [Action::Change]);
    let tick = Price::from_units(20_000_000_000);
    assert_eq!(rig.known(), Definition { tick, ..expected });
    assert!(
        rig.play("980=M|", "15=RUB|").is_empty(),
        "it changes nothing"
    );
    // A full book is a value, too.
    assert_eq!(rig.play("980=M|", "1141=1|1022=A|264=0|"), [Action::Change]);
    assert_eq!((rig.known().depth, rig.known().book_type), (0, 2));
}

#[test]
fn a_modification_may_have_half_of_a_maturity() {
    let mut rig = Modified::new();
    for (fields, maturity) in [
        ("1079=08:15|", "20131216-08:15:00"),
        ("541=20131217|", "20131217-08:15:00"),
        ("1079=00:00|", "20131217-00:00:00"),
        ("1079=23:59:59|", "20131217-23:59:59"),
        ("541=20131201|", "20131201-23:59:59"),
        ("541=20140101|1079=01:00|", "20140101-01:00:00"),
    ] {
        assert_eq!(rig.play("980=M|", fields), [Action::Change]);
        assert_eq!(rig.known().maturity, utc(maturity), "{fields}");
    }
    rig.play("980=A|", "541=20140102|");
    assert_eq!(rig.known().maturity, utc("20140102-00:00:00"));
}

#[test]
fn any_other_update_is_whole() {
    for action in ["980=A|", ""] {
        let mut rig = Modified::new();
        assert_eq!(rig.play(action, "107=Options|"), [Action::Change]);
        let expected = Definition {
            name: rig.known().name,
            description: b"Options",
            ..Definition::default()
        };
        assert_eq!(rig.known(), expected);
    }
}

#[test]
fn the_values_of_a_part_are_checked() {
    let told = refused(
        "[[message]]\ntemplate = 1\ndoes = \"definition\"\nentries = 268\n\
         instrument = { symbol = 55 }\n[message.definition]\npartial = { 980 = \"M\" }\n",
    );
    let why = "no field 980 in Quotes(1)";
    assert_eq!(
        told,
        format!("m.toml:7: message.definition.partial.980: {why}")
    );
}

#[test]
fn a_modified_list_keeps_what_its_entries_do_not_have() {
    let mut rig = Modified::new();
    rig.0
        .play("35=BK|34=9|980=M|146=2|55=RIU3|969=30|55=SIZ3|15=RUB|")
        .unwrap();
    let actions = rig.0.mapper.events().iter().map(|event| event.action);
    let actions: Vec<_> = actions.collect();
    assert_eq!(actions, [Action::Change, Action::New]);
    let known = rig.known();
    assert_eq!(
        (known.currency, known.tick),
        (&b"RUB"[..], Price::from_units(30_000_000_000))
    );
}

/// The values of a definition: description, currency, tick, CFI code and maturity.
type Values = [Option<u8>; 5];

/// The instrument of a report, what the report does, and the values that it has.
#[derive(Debug, Clone)]
struct Report {
    instrument: usize,
    action: Option<char>,
    values: Values,
}

fn report(actions: &'static [Option<char>]) -> impl Strategy<Value = Report> {
    let values = prop::array::uniform5(prop::option::of(0_u8..4));
    let all = (0_usize..2, prop::sample::select(actions), values);
    all.prop_map(|(instrument, action, values)| Report {
        instrument,
        action,
        values,
    })
}

impl Report {
    fn symbol(&self) -> char {
        if self.instrument == 0 { 'A' } else { 'B' }
    }

    fn message(&self) -> String {
        let (symbol, id) = (self.symbol(), 1 + self.instrument);
        let mut message = format!("35=BP|34=1|55={symbol}|48={id}|22=8|");
        if let Some(action) = self.action {
            message += &format!("980={action}|");
        }
        for (at, value) in self.values.iter().enumerate() {
            let Some(value) = value else {
                continue;
            };
            message += &match at {
                0 => format!("107=D{value}|"),
                1 => format!("15=C{value}|"),
                2 => format!("969={value}|"),
                3 => format!("461=F{value}|"),
                _ => format!("541=2027010{}|1079=0{value}:00|", 1 + value),
            };
        }
        message
    }

    /// Changes the values of its instrument, as the standard has it.
    fn apply(&self, known: &mut Values) {
        for (own, new) in known.iter_mut().zip(self.values) {
            if self.action != Some('M') || new.is_some() {
                *own = new;
            }
        }
    }
}

fn values(table: &Instruments, symbol: char) -> Option<(Values, u32)> {
    let known = table.by_symbol(symbol.to_string().as_bytes())?;
    let known = table.get(known).unwrap();
    let of = known.definition;
    let text = |text: &[u8]| text.last().map(|digit| digit - b'0');
    let tick = (of.tick != Price::UNDEFINED).then(|| (of.tick.units() / 1_000_000_000) as u8);
    let maturity = (0..4).find(|value| {
        let at = format!("2027010{}-0{value}:00:00", 1 + value);
        of.maturity == utc(&at)
    });
    let all = [
        text(of.description),
        text(of.currency),
        tick,
        text(of.cfi),
        maturity,
    ];
    Some((all, known.revision))
}

fn set_place(mapper: &mut FixMapper, at: usize) {
    mapper.set_place(Place {
        sequence: 10 + at as u64,
        is_numbered: true,
    });
}

proptest! {
    #[test]
    fn the_date_and_the_time_of_a_maturity_are_each_of_the_last_that_has_it(
        order in Just(vec![0_usize, 1, 2, 3]).prop_shuffle(),
    ) {
        let dates = [Some("20131216"), Some("20131217"), None, Some("20131218")];
        let times = [Some("12:30"), None, Some("08:15"), Some("09:00")];
        // A time is left out while no date is known.
        prop_assume!(order[0] != 2);
        let mut rig = FixRig::new(Version::Fix50Sp2);
        let mut has_come = [false; 4];
        for at in order {
            has_come[at] = true;
            set_place(&mut rig.mapper, at);
            let action = if at == 0 { 'A' } else { 'M' };
            let mut message = format!("35=BP|34=1|980={action}|{NAMES}");
            message += &dates[at].map_or_else(String::new, |date| format!("541={date}|"));
            message += &times[at].map_or_else(String::new, |time| format!("1079={time}Z|"));
            rig.play(&message).unwrap();
            let last = |of: [Option<&'static str>; 4]| {
                let mut come = (0..4).rev().filter(|at| has_come[*at]);
                come.find_map(|at| of[at])
            };
            let (date, time) = (last(dates).unwrap(), last(times).unwrap_or("00:00"));
            let known = rig.table.by_symbol(b"RIU3").unwrap();
            let maturity = rig.table.get(known).unwrap().definition.maturity;
            prop_assert_eq!(maturity, utc(&format!("{date}-{time}:00")));
        }
    }

    #[test]
    fn definitions_in_any_order_are_those_of_their_places(
        (reports, order) in vec(report(&[Some('A'), Some('M'), Some('M'), None]), 1..12)
            .prop_flat_map(|reports| {
                let order: Vec<usize> = (0..reports.len()).collect();
                (Just(reports), Just(order).prop_shuffle())
            }),
    ) {
        let mut rig = FixRig::new(Version::Fix50Sp2);
        let mut has_come = vec![false; reports.len()];
        for at in order {
            let report = &reports[at];
            let before = values(&rig.table, report.symbol());
            has_come[at] = true;
            set_place(&mut rig.mapper, at);
            rig.play(&report.message()).unwrap();
            let mut expected = Values::default();
            for (other, has_come) in reports.iter().zip(&has_come) {
                if *has_come && other.instrument == report.instrument {
                    other.apply(&mut expected);
                }
            }
            let after = values(&rig.table, report.symbol());
            prop_assert_eq!(after.map(|(values, _)| values), Some(expected));
            let is_news = before.map(|(values, _)| values) != Some(expected);
            prop_assert_eq!(rig.mapper.events().len(), usize::from(is_news));
        }
    }

    #[test]
    fn reports_in_turn_define_modify_and_end_instruments(
        reports in vec(report(&[Some('A'), Some('M'), Some('D')]), 1..30),
    ) {
        let mut rig = FixRig::new(Version::Fix50Sp2);
        // The values of each instrument, its revision, and whether it has ended.
        let mut known: [Option<(Values, u32, bool)>; 2] = [None; 2];
        for (at, report) in reports.iter().enumerate() {
            set_place(&mut rig.mapper, at);
            rig.play(&report.message()).unwrap();
            let events = rig.mapper.events();
            let own = &mut known[report.instrument];
            if report.action == Some('D') {
                prop_assert_eq!(events.len(), usize::from(own.is_some()));
                prop_assert!(events.iter().all(state::closes));
                if let Some((_, _, has_ended)) = own {
                    *has_ended = true;
                }
                continue;
            }
            let mut after = own.map_or(Values::default(), |(values, ..)| values);
            report.apply(&mut after);
            let action = match *own {
                None | Some((_, _, true)) => Some(Action::New),
                Some((before, ..)) => (before != after).then_some(Action::Change),
            };
            let actions: Vec<_> = events.iter().map(|event| event.action).collect();
            prop_assert_eq!(actions, Vec::from_iter(action));
            let revision = own.map_or(0, |(_, revision, _)| revision) + u32::from(action.is_some());
            *own = Some((after, revision, false));
            prop_assert_eq!(values(&rig.table, report.symbol()), Some((after, revision)));
        }
    }
}
