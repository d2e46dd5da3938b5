//! The log of market events: what every outlet had, once, over restarts of the plant.

use crate::feed::group;
use crate::market::{feed, send};
use crate::{eventually, start, stop};
use fanfare_gateway::{Config, EventReader, Gateway};
use fanfare_history::{At, Log, Reader, Start};
use fanfare_market::instruments::{Directory, Instrument};
use fanfare_market::{Delivery, Event, InstrumentId};
use std::path::{Path, PathBuf};

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("fanfare-history-it-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn gateway(text: &str, folder: &Path) -> Gateway {
    let more = "segment_bytes = 1048576\ncheckpoint_events = 5000\ncompress = 1\nsync_ms = 10";
    let text = format!(
        "{text}\n[history]\nfolder = \"{}\"\n{more}",
        folder.display()
    );
    let parsed = Config::from_toml(&text).unwrap();
    start(|config| {
        (config.feeds, config.history) = (parsed.feeds, parsed.history);
        config.ring_bytes = 1 << 22;
    })
}

/// What a reader had.
#[derive(Default)]
struct Had {
    events: Vec<Event>,
    restarts: usize,
}

impl Had {
    fn take(&mut self, delivery: Delivery<'_>) {
        match delivery {
            Delivery::Event(event, _) => self.events.push(*event),
            Delivery::Lost { first, last } => panic!("{first} to {last} are lost"),
            Delivery::Restart => self.restarts += 1,
            Delivery::End(_) => {}
        }
    }

    fn of_ring(&mut self, events: &mut EventReader) {
        while events.read(64, |delivery| self.take(delivery)) > 0 {}
    }

    fn of_log(&mut self, reader: &mut Reader) {
        while reader.read(64, |delivery| self.take(delivery)).unwrap() > 0 {}
    }
}

fn symbols(directory: &Directory) -> Vec<(InstrumentId, String)> {
    let name = |bytes: &[u8]| {
        Instrument::read(bytes)
            .unwrap()
            .definition
            .name
            .id
            .to_string()
    };
    let all = directory.iter();
    all.map(|(number, bytes)| (number, name(bytes))).collect()
}

#[test]
fn the_log_has_what_every_outlet_had_over_restarts() {
    let (line, pictures) = (group(111), group(112));
    let folder = Folder::new("restarts");
    let (mut all, mut live) = (Had::default(), Had::default());
    let mut reader: Option<Reader> = None;
    let mut known = Vec::new();
    for run in 0..3 {
        let mut plant = gateway(&feed("one", line, pictures), &folder.0);
        let mut events = plant.take_events().unwrap();
        let reader = reader.get_or_insert_with(|| {
            let log = Log::open(&folder.0).unwrap();
            log.reader(Start::First).unwrap()
        });
        for is_pictures in [false, true] {
            let to = if is_pictures { pictures } else { line };
            send(to, is_pictures, &[&plant]);
            all.of_ring(&mut events);
            live.of_log(reader);
        }
        eventually("the log has everything", || {
            all.of_ring(&mut events);
            live.of_log(reader);
            plant.count("log_written") >= plant.count("events")
                && live.events.len() == all.events.len()
        });
        assert!(live.events == all.events);
        assert_eq!(plant.count("log_missed"), 0);
        assert_eq!(live.restarts, run);
        let now = symbols(reader.directory());
        if run == 0 {
            known.clone_from(&now);
        }
        assert!(
            now == known && !now.is_empty(),
            "instruments keep their numbers"
        );
        stop(plant);
        all.of_ring(&mut events);
        live.of_log(reader);
        assert!(live.events == all.events);
    }
    let log = Log::open(&folder.0).unwrap();
    let verified = log.verify(|_, _| true).unwrap();
    assert!(verified.is_whole(), "{verified:?}");
    assert_eq!(verified.events as usize, all.events.len());
    assert!(log.checkpoints().unwrap().len() > 2);
    let end = log.as_of(At::End).unwrap();
    let shown = end.view.numbers().filter(|number| {
        end.view
            .get(*number)
            .is_some_and(|seen| seen.book.as_ref().is_some_and(|b| !b.is_empty()))
    });
    assert!(shown.count() > 0);
    let numbers: Vec<u64> = all.events.iter().map(|event| event.number).collect();
    let expected: Vec<u64> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, expected);
}
