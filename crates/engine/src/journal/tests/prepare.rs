//! The helper thread: on time, late, and failing.

use super::prepare::{Helper, Recipe};
use super::*;
use segment::Blank;
use std::sync::atomic::AtomicBool;
use std::thread;

#[test]
fn segments_are_ready_when_they_are_needed() {
    let folder = Folder::new();
    let expected = six_segments(&folder, small());
    assert_eq!(
        folder::segment_files(&folder.0).unwrap().len(),
        6,
        "none in advance"
    );
    assert_eq!(kept(&folder.open(small())), expected);
}

#[test]
fn what_is_dropped_is_gone_in_order_and_at_the_end() {
    let folder = Folder::new();
    let options = two_of(small());
    let journal = written(&folder, options, 3_000, |_| ());
    let first = journal.first_from(0).unwrap().seq;
    drop(journal);
    assert_eq!(folder::segment_files(&folder.0).unwrap().len(), 2);
    assert_eq!(folder.open(options).first_from(0).unwrap().seq, first);
}

/// Whether [`gated`] may continue, and whether it was begun.
static OPEN: AtomicBool = AtomicBool::new(false);
static BEGUN: AtomicBool = AtomicBool::new(false);

fn gated(path: &Path, len: u64, identity: &str) -> io::Result<Blank> {
    BEGUN.store(true, Ordering::Release);
    wait_until(|| OPEN.load(Ordering::Acquire));
    Blank::create(path, len, identity)
}

#[test]
fn a_late_helper_is_not_waited_for_unless_it_is_at_work_on_it() {
    let (slow, folder) = (Folder::new(), Folder::new());
    std::fs::create_dir_all(&slow.0).unwrap();
    let recipe = Recipe {
        folder: slow.0.clone(),
        identity: IDENTITY.to_owned(),
        make: gated,
    };
    let helper = Helper::new(recipe).unwrap();
    let mut journal = folder.open(small());
    wait_until(|| !journal.awaits_segment());
    helper.ask(1, 64 << 10);
    wait_until(|| BEGUN.load(Ordering::Acquire));
    // The helper is busy elsewhere: this journal has one segment in advance, and makes the next
    // itself.
    let mut seq = 1;
    while journal.sealed.len() < 3 {
        put(&mut journal, &message(seq), APP).unwrap();
        seq += 1;
    }
    assert_eq!(journal.stalls(), 2);
    assert_eq!(kept(&journal).len() as u64, seq - 1);
    // Waits, unless the gate was opened before.
    let (made, _) = thread::scope(|scope| {
        scope.spawn(|| {
            (0..100).for_each(|_| thread::yield_now());
            OPEN.store(true, Ordering::Release);
        });
        helper.take()
    });
    assert!(made.unwrap().is_ok(), "what it was at work on");
    drop((helper, journal));
}

fn full(_: &Path, _: u64, _: &str) -> io::Result<Blank> {
    Err(io::Error::from(io::ErrorKind::StorageFull))
}

#[test]
fn a_disk_that_was_full_then_and_has_room_now_is_no_error() {
    let folder = Folder::new();
    let mut journal = folder.open(small());
    let recipe = Recipe {
        make: full,
        ..journal.recipe.clone()
    };
    journal.helper = Helper::new(recipe);
    journal.ask_for_next();
    wait_until(|| !journal.awaits_segment());
    let mut seq = 1;
    while journal.sealed.is_empty() {
        put(&mut journal, &message(seq), APP).unwrap();
        seq += 1;
    }
    journal.recipe.make = full;
    let error = loop {
        if let Err(error) = put(&mut journal, &message(seq), APP) {
            break error;
        }
        seq += 1;
    };
    assert_eq!(error, StoreError::DiskFull);
    assert_eq!(kept(&journal).len() as u64, seq - 1);
}
