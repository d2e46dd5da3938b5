//! The recording, mapped by hand, and the obvious program's books.

use fanfare_fast::{Decoder, Fields, Message, Program, Value};
use fanfare_market::event::entry;
use fanfare_market::{Action, Book, Event, Flags, InstrumentId, Kind, Price, Side};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// A message of the channel: its number and its changes.
pub(crate) struct Changes {
    pub(crate) sequence: u64,
    pub(crate) events: Vec<Event>,
}

/// A snapshot of an instrument.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub(crate) last_processed: u64,
    pub(crate) events: Vec<Event>,
}

/// Levels of both sides, the best first.
pub(crate) type Content = [Vec<(i64, i64)>; 2];

pub(crate) struct Recording {
    pub(crate) changes: Vec<Changes>,
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) instruments: u32,
    /// SecurityID(48) of the instruments.
    pub(crate) ids: Ids,
    /// Each instrument's book after each RptSeq, from its first snapshot on.
    pub(crate) truth: HashMap<(u32, u32), Content>,
}

fn number(fields: &Fields<'_>, name: &str) -> Option<i64> {
    let value = fields.get(name)?;
    value.as_u64().map(|value| value as i64).or(value.as_i64())
}

fn entry_event(fields: &Fields<'_>) -> Event {
    let price = match fields.get("MDEntryPx") {
        Some(Value::Decimal(price)) => Price::from_decimal(price).unwrap(),
        _ => Price::UNDEFINED,
    };
    let entry = fields
        .get("MDEntryType")
        .unwrap()
        .as_str()
        .unwrap()
        .as_bytes()[0];
    Event {
        kind: match entry {
            entry::EMPTY_BOOK => Kind::Clear,
            _ => Kind::Level,
        },
        action: match number(fields, "MDUpdateAction") {
            Some(1) => Action::Change,
            Some(2) => Action::Delete,
            _ => Action::New,
        },
        entry,
        price,
        size: number(fields, "MDEntrySize").unwrap_or(Event::NO_SIZE),
        level: number(fields, "MDPriceLevel").unwrap_or(0) as u16,
        ..Event::EMPTY
    }
}

/// Marks the last event of each instrument in its message.
fn mark_last(events: &mut [Event]) {
    let mut seen = Vec::new();
    for event in events.iter_mut().rev() {
        if !seen.contains(&event.instrument) {
            seen.push(event.instrument);
            event.flags = event.flags.with(Flags::LAST);
        }
    }
}

/// The numbers of instruments, by SecurityID(48).
pub(crate) type Ids = BTreeMap<i64, u32>;

fn id_of(ids: &mut Ids, fields: &Fields<'_>) -> InstrumentId {
    let next = ids.len() as u32;
    InstrumentId(
        *ids.entry(number(fields, "SecurityID").unwrap())
            .or_insert(next),
    )
}

fn changes(fields: &Fields<'_>, ids: &mut Ids) -> Changes {
    let Some(Value::Sequence(entries)) = fields.get("MDEntries") else {
        panic!("no entries");
    };
    let mut events: Vec<Event> = entries
        .map(|entry| Event {
            instrument: id_of(ids, &entry),
            rpt_seq: number(&entry, "RptSeq").unwrap() as u32,
            ..entry_event(&entry)
        })
        .collect();
    mark_last(&mut events);
    let sequence = number(fields, "MsgSeqNum").unwrap() as u64;
    Changes { sequence, events }
}

fn snapshot(fields: &Fields<'_>, ids: &mut Ids) -> Snapshot {
    let Some(Value::Sequence(entries)) = fields.get("MDEntries") else {
        panic!("no entries");
    };
    let (instrument, rpt_seq) = (id_of(ids, fields), number(fields, "RptSeq").unwrap() as u32);
    let whole = |event: Event| Event {
        instrument,
        rpt_seq,
        flags: Flags::SNAPSHOT,
        ..event
    };
    let mut events = vec![whole(Event::EMPTY)];
    events.extend(entries.map(|entry| whole(entry_event(&entry))));
    mark_last(&mut events);
    Snapshot {
        last_processed: number(fields, "LastMsgSeqNumProcessed").unwrap() as u64,
        events,
    }
}

/// Applies an event to the lists of the obvious program, as FIX specifies.
fn apply(content: &mut Content, event: &Event) {
    let Some(side) = Side::of_entry(event.entry) else {
        return;
    };
    let levels = &mut content[side as usize];
    let (at, level) = (
        usize::from(event.level) - 1,
        (event.price.units(), event.size),
    );
    match event.action {
        Action::New => levels.insert(at, level),
        Action::Change => levels[at] = level,
        _ => drop(levels.remove(at)),
    }
    levels.truncate(5);
}

pub(crate) fn content_of(snapshot: &[Event]) -> Content {
    let mut content = Content::default();
    for event in snapshot {
        apply(&mut content, event);
    }
    content
}

fn truth(changes: &[Changes], snapshots: &[Snapshot]) -> HashMap<(u32, u32), Content> {
    let (mut truth, mut books) = (HashMap::new(), HashMap::new());
    for snapshot in snapshots {
        let first = &snapshot.events[0];
        books
            .entry(first.instrument.0)
            .or_insert_with(|| (first.rpt_seq, content_of(&snapshot.events)));
    }
    truth.extend(
        books
            .iter()
            .map(|(id, (rpt, content))| ((*id, *rpt), content.clone())),
    );
    for event in changes.iter().flat_map(|changes| &changes.events) {
        let Some((rpt_seq, content)) = books.get_mut(&event.instrument.0) else {
            continue;
        };
        if event.rpt_seq > *rpt_seq {
            assert_eq!(event.rpt_seq, *rpt_seq + 1);
            apply(content, event);
            *rpt_seq = event.rpt_seq;
            truth.insert((event.instrument.0, event.rpt_seq), content.clone());
        }
    }
    truth
}

/// Returns the folder of the recording, if it is available.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/moex-spectra")
}

pub(crate) fn recording() -> Option<Recording> {
    let folder = folder();
    let Ok(xml) = std::fs::read_to_string(folder.join("templates.xml")) else {
        println!("skipped: there is no recording at {}", folder.display());
        return None;
    };
    let program = Program::parse(&xml).unwrap();
    let (mut all, mut snapshots, mut ids) = (Vec::new(), Vec::new(), Ids::new());
    for file in ["increment_a.dat", "increment_b.dat", "snapshot.dat"] {
        let mut decoder = Decoder::new(program.clone());
        let bytes = std::fs::read(folder.join(file)).unwrap();
        let (mut rest, mut message) = (&bytes[..], Message::new());
        while !rest.is_empty() {
            let len = decoder.decode(rest, &mut message).unwrap();
            rest = &rest[len..];
            let view = message.view(&program).unwrap();
            match view
                .fields()
                .get("MessageType")
                .and_then(|ty| Some(ty.as_str()?.to_owned()))
            {
                Some(ty) if ty == "X" => all.push(changes(&view.fields(), &mut ids)),
                Some(ty) if ty == "W" => snapshots.push(snapshot(&view.fields(), &mut ids)),
                _ => {}
            }
        }
    }
    // The messages of both lines, once each.
    all.sort_by_key(|changes| changes.sequence);
    all.dedup_by_key(|changes| changes.sequence);
    Some(Recording {
        truth: truth(&all, &snapshots),
        changes: all,
        snapshots,
        instruments: ids.len() as u32,
        ids,
    })
}

pub(crate) fn content(book: &Book) -> Content {
    Side::BOTH.map(|side| {
        let levels = book.depth(side);
        levels
            .map(|level| (level.price.units(), level.size))
            .collect()
    })
}
