//! An obvious mapping of SPECTRA's and the complex feed's messages: by names, field by field,
//! without prior resolution. The compiled plan is compared with it.

use fanfare_fast::{Fields, Message, Program, Value};
use fanfare_market::event::{Action, Event, Flags, InstrumentId, Kind};
use fanfare_market::price::Price;
use fanfare_wire::{Decimal, UtcTimestamp};
use std::collections::HashMap;

/// The instruments by ID in the order of their appearance, and the events of all messages.
#[derive(Default)]
pub(crate) struct Walk {
    pub(crate) instruments: HashMap<u64, u32>,
    pub(crate) events: Vec<Event>,
}

fn number(value: Option<Value<'_>>) -> Option<u64> {
    value.and_then(|value| value.as_u64())
}

fn text(value: Option<Value<'_>>) -> Option<u8> {
    value.and_then(|value| value.as_bytes()?.first().copied())
}

/// Converts `YYYYMMDD` and `HHMMSSmmm` by the text of a UTCTimestamp.
fn time(date: u64, time: u64) -> u64 {
    let text = format!(
        "{date:08}-{:02}:{:02}:{:02}.{:03}",
        time / 10_000_000,
        time / 100_000 % 100,
        time / 1000 % 100,
        time % 1000
    );
    UtcTimestamp::parse(text.as_bytes()).unwrap().nanos() as u64
}

/// Returns the time of the seconds of a day.
fn second(date: u64, second: u64) -> u64 {
    let digits = second / 3600 * 10_000 + second / 60 % 60 * 100 + second % 60;
    time(date, digits * 1000)
}

fn price(value: Option<Value<'_>>) -> Price {
    let Some(Decimal { mantissa, exponent }) = value.and_then(|value| value.as_decimal()) else {
        return Price::UNDEFINED;
    };
    let scaled = i128::from(mantissa) * 10_i128.pow((i32::from(exponent) + 9) as u32);
    Price::from_units(scaled.try_into().unwrap())
}

impl Walk {
    fn instrument(&mut self, fields: Fields<'_>) -> Option<InstrumentId> {
        let id = number(fields.get("SecurityID"))?;
        let next = self.instruments.len() as u32;
        Some(InstrumentId(*self.instruments.entry(id).or_insert(next)))
    }

    /// Maps one message.
    pub(crate) fn message(&mut self, program: &Program, message: &Message) {
        let view = message.view(program).unwrap();
        let begin = self.events.len();
        let fields = view.fields();
        match view.template().name() {
            "DefaultIncrementalRefreshMessage" => self.entries(fields, false),
            "MarketData" => self.complex(fields),
            "DefaultSnapshotMessage" => {
                let sent = number(fields.get("SendingTime")).unwrap();
                let instrument = self.instrument(fields).unwrap();
                self.events.push(Event {
                    instrument,
                    ts_event: time(sent / 1_000_000_000, sent % 1_000_000_000),
                    rpt_seq: number(fields.get("RptSeq")).unwrap() as u32,
                    flags: Flags::SNAPSHOT,
                    ..Event::EMPTY
                });
                self.entries(fields, true);
            }
            "TradingSessionStatus" => {
                let sent = number(fields.get("SendingTime")).unwrap();
                self.events.push(Event {
                    instrument: InstrumentId::ALL,
                    ts_event: time(sent / 1_000_000_000, sent % 1_000_000_000),
                    id: number(fields.get("TradSesStatus")).unwrap(),
                    kind: Kind::Status,
                    ..Event::EMPTY
                });
            }
            _ => {}
        }
        for at in begin..self.events.len() {
            let (event, behind) = self.events[at..].split_first_mut().unwrap();
            if !behind
                .iter()
                .any(|other| other.instrument == event.instrument)
            {
                event.flags = event.flags.with(Flags::LAST);
            }
        }
    }

    fn entries(&mut self, fields: Fields<'_>, is_snapshot: bool) {
        let sent = number(fields.get("SendingTime")).unwrap();
        let entries = fields.get("MDEntries").unwrap().as_sequence().unwrap();
        for entry in entries {
            let own = if is_snapshot { fields } else { entry };
            let entry_type = text(entry.get("MDEntryType")).unwrap();
            let Some(instrument) = self.instrument(own) else {
                continue;
            };
            if entry_type == b'J' && is_snapshot {
                continue;
            }
            let date = number(entry.get("MDEntryDate")).unwrap_or(sent / 1_000_000_000);
            let at = number(entry.get("MDEntryTime")).unwrap();
            let mut event = Event {
                instrument,
                ts_event: time(date, at),
                price: price(entry.get("MDEntryPx")),
                rpt_seq: number(own.get("RptSeq")).unwrap() as u32,
                entry: entry_type,
                action: action(number(entry.get("MDUpdateAction")).unwrap_or(0)),
                ..Event::EMPTY
            };
            if let Some(size) = entry.get("MDEntrySize").and_then(|size| size.as_i64()) {
                event.size = size;
            }
            match entry_type {
                b'0' | b'1' => {
                    event.kind = Kind::Level;
                    event.level = number(entry.get("MDPriceLevel")).unwrap_or(0) as u16;
                    event.id = number(entry.get("NumberOfOrders")).unwrap_or(0);
                }
                b'2' => {
                    event.kind = Kind::Trade;
                    let id = entry.get("MDEntryID").and_then(|id| id.as_i64());
                    event.id = id.unwrap_or(0) as u64;
                }
                b'J' => event.kind = Kind::Clear,
                _ => event.kind = Kind::Statistic,
            }
            if is_snapshot {
                event.flags = Flags::SNAPSHOT;
            }
            self.events.push(event);
        }
    }

    fn complex(&mut self, fields: Fields<'_>) {
        let date = number(fields.get("TradeDate")).unwrap();
        for entry in fields.get("MDEntries").unwrap().as_sequence().unwrap() {
            let entry_type = text(entry.get("MDEntryType")).unwrap();
            let mut event = Event {
                instrument: self.instrument(entry).unwrap(),
                ts_event: second(date, number(entry.get("MDEntryTime")).unwrap()),
                price: price(entry.get("MDEntryPx")),
                rpt_seq: number(entry.get("RptSeq")).unwrap() as u32,
                entry: entry_type,
                action: action(number(entry.get("MDUpdateAction")).unwrap()),
                kind: Kind::Statistic,
                ..Event::EMPTY
            };
            if let Some(size) = entry.get("MDEntrySize").and_then(|size| size.as_i64()) {
                event.size = size;
            }
            if matches!(entry_type, b'0' | b'1') {
                event.kind = Kind::Level;
                event.level = number(entry.get("MDPriceLevel")).unwrap_or(0) as u16;
                event.id = number(entry.get("NumberOfOrders")).unwrap_or(0);
            } else if entry_type == b'2' {
                event.kind = Kind::Trade;
            }
            self.events.push(event);
        }
    }
}

fn action(code: u64) -> Action {
    [
        Action::New,
        Action::Change,
        Action::Delete,
        Action::DeleteThru,
        Action::DeleteFrom,
        Action::Overlay,
    ][code as usize]
}
