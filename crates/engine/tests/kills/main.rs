//! A real process that is killed (SIGKILL) again and again, at seeded moments, while it sends and
//! receives over a session with a journal. After each kill the journal is opened and compared with
//! the promises of the process and with the messages that arrived: sequence numbers continue, and
//! each message that was reported as persisted or seen on the wire can be resent, byte for byte. A
//! share of the processes receives a ResendRequest over the wire.
//!
//! `FANFARE_KILLS=5000` runs more of them, `FANFARE_KILL_SEED=7` others.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

mod child;
mod counterparty;
mod lane;
mod victim;

use lane::{Lane, Totals};

/// The number of kills, spread over folders and durabilities.
const KILLS: u64 = 1_000;
/// Kills of one folder, whose journal grows from each to the next.
const KILLS_A_FOLDER: u64 = 25;
/// Folders used at the same time: a process that starts mostly waits.
const LANES: u64 = 4;

#[test]
fn a_thousand_kills_lose_nothing_that_was_promised() {
    let number = |name: &str, default: u64| {
        let set = std::env::var(name).ok();
        set.map_or(default, |text| text.parse().expect(name))
    };
    let kills = number("FANFARE_KILLS", KILLS);
    let seed = number("FANFARE_KILL_SEED", 1);
    let folders = kills.div_ceil(KILLS_A_FOLDER);
    let totals = std::thread::scope(|scope| {
        let run = |first| {
            scope.spawn(move || {
                let mut totals = Totals::default();
                for folder in (first..folders).step_by(LANES as usize) {
                    let count = KILLS_A_FOLDER.min(kills - folder * KILLS_A_FOLDER);
                    Lane::new(seed, folder).run(count, &mut totals);
                }
                totals
            })
        };
        let lanes: Vec<_> = (0..LANES.min(folders)).map(run).collect();
        let ended = lanes.into_iter().map(|lane| lane.join().unwrap());
        ended.fold(Totals::default(), Totals::add)
    });
    println!("{totals:?}");
    assert_eq!(totals.kills, kills);
    // Each kind of kill has to have occurred.
    if kills >= 200 {
        let Totals {
            persisted,
            received,
            resent,
            delivered,
            before_logon,
            torn,
            segments,
            ..
        } = totals;
        assert!(
            persisted > 20 * kills && received > 20 * kills,
            "{totals:?}"
        );
        assert!(resent > kills && delivered > kills, "{totals:?}");
        assert!(before_logon > 0 && before_logon < kills / 2, "{totals:?}");
        assert!(segments > folders && torn <= kills, "{totals:?}");
    }
}
