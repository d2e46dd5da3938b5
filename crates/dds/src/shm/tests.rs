//! Senders and receivers of one process, with the maps and locks of two.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::*;
use crate::ReturnCode;
use crate::types::Kind;

/// A domain of this test alone, in a folder that is removed with it.
struct Place(PathBuf);

impl Place {
    fn new(test: &str) -> Self {
        let name = format!("fanfare-test-{}-{test}", std::process::id());
        let folder = Path::new("/dev/shm").join(name);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn config(&self, domain: u32) -> Config {
        Config::new(domain).unwrap().base(&self.0).ring(1 << 16)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn topics(keep: bool) -> Vec<TopicSpec> {
    let t = StructType::new("T").member("n", Kind::UInt64);
    vec![
        TopicSpec::new("a", &t, false),
        TopicSpec::new("b", &t, keep),
    ]
}

/// Returns a sender and a receiver of its samples.
fn pair(config: &Config) -> (Sender, Receiver) {
    let sender = Sender::open(config, "feed", &topics(false)).unwrap();
    let receiver = Receiver::open(config, "feed", &topics(false)).unwrap();
    (sender, receiver)
}

/// Returns everything that has arrived: topic, time, bytes.
fn drain(receiver: &mut Receiver) -> Vec<(usize, i64, Vec<u8>)> {
    let mut all = Vec::new();
    while receiver.poll(|t| all.push((t.topic, t.source_nanos, t.bytes.to_vec()))) > 0 {}
    all
}

/// Polls until the receiver has looked for senders.
fn look(receiver: &mut Receiver) {
    std::thread::sleep(Duration::from_millis(25));
    receiver.refresh();
}

#[test]
fn a_folder_that_is_a_link_is_refused_and_nothing_is_made_behind_it() {
    let place = Place::new("link");
    let elsewhere = place.0.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let user = place.0.join(format!("fanfare-{}", sys::user()));
    std::os::unix::fs::symlink(&elsewhere, user).unwrap();
    let opened = Sender::open(&place.config(0), "feed", &topics(false));
    let why = opened.unwrap_err().to_string();
    assert!(why.contains("other users can access it"), "{why}");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn samples_of_all_lengths_arrive_whole_and_in_order_over_many_laps() {
    let place = Place::new("lengths");
    let config = place.config(1);
    let (mut sender, mut receiver) = pair(&config);
    assert_eq!((sender.receivers(), receiver.senders()), (1, 1));
    for round in 0..3_000_usize {
        let bytes: Vec<u8> = (0..round % 300).map(|i| (i * 7 + round) as u8).collect();
        let topic = round % 2;
        sender.write(topic as u32, round as i64, &bytes).unwrap();
        assert_eq!(drain(&mut receiver), [(topic, round as i64, bytes)]);
    }
    let longest = vec![9; sender.longest()];
    sender.write(1, 0, &longest).unwrap();
    assert_eq!(drain(&mut receiver)[0].2, longest);
    let text = sender.write(1, 0, &[0; 16_400]).unwrap_err().to_string();
    assert!(text.contains("16400 bytes to topic 1"), "{text}");
    assert!(sender.write(2, 0, b"").is_err());
    assert!(sender.wait_for_receivers(Duration::ZERO));
    assert_eq!(receiver.lost(), 0);
}

#[test]
fn who_is_overtaken_counts_what_it_lost_and_goes_on() {
    let place = Place::new("overtaken");
    let config = place.config(1);
    let (mut sender, mut receiver) = pair(&config);
    for n in 0..10_000_u64 {
        sender.write(0, 0, &n.to_le_bytes()).unwrap();
    }
    let got = drain(&mut receiver);
    assert!(got.len() > 1_000, "{}", got.len());
    assert_eq!(receiver.lost() + got.len() as u64, 10_000);
    let numbers: Vec<u64> = got
        .iter()
        .map(|g| u64::from_le_bytes(g.2[..].try_into().unwrap()))
        .collect();
    assert!(numbers.windows(2).all(|w| w[1] == w[0] + 1));
    assert_eq!(numbers.last(), Some(&9_999));
}

/// The word at the receiver's position is then 0, as where there is no record yet.
#[test]
fn who_is_overtaken_by_zeros_notices() {
    let place = Place::new("zeros");
    let config = place.config(1);
    let (mut sender, mut receiver) = pair(&config);
    for lap in 1..20_u64 {
        for len in [8, 0, 1_000, 24 + lap as usize] {
            for _ in 0..200 {
                sender.write(0, 0, &vec![0; len]).unwrap();
            }
        }
        let got = receiver.taken() + drain(&mut receiver).len() as u64;
        assert_eq!((got, receiver.lost()), (receiver.taken(), lap * 800 - got));
    }
    for _ in 0..1_000 {
        sender.write(0, 0, &[0; 1_000]).unwrap();
    }
    sender.die();
    look(&mut receiver);
    assert_eq!(
        receiver.senders(),
        1,
        "the dead sender's last samples are not read yet"
    );
    assert!(!drain(&mut receiver).is_empty());
    look(&mut receiver);
    assert_eq!(receiver.senders(), 0);
}

#[test]
fn late_joiners_get_what_the_ring_holds_of_topics_that_keep() {
    let place = Place::new("late");
    let config = place.config(1);
    let mut sender = Sender::open(&config, "feed", &topics(true)).unwrap();
    for n in 0..10_u8 {
        sender.write(u32::from(n % 2), 0, &[n]).unwrap();
    }
    let mut late = Receiver::open(&config, "feed", &topics(true)).unwrap();
    let kept: Vec<u8> = drain(&mut late).iter().map(|g| g.2[0]).collect();
    assert_eq!(kept, [1, 3, 5, 7, 9]);
    sender.write(0, 0, &[10]).unwrap();
    assert_eq!(drain(&mut late).len(), 1);
    let mut other = Receiver::open(&config, "feed", &topics(false)).unwrap();
    assert_eq!(drain(&mut other), []);
    sender.write(1, 0, &[11]).unwrap();
    assert_eq!((drain(&mut other).len(), other.lost()), (1, 0));
}

#[test]
fn a_sender_that_waits_is_throttled_by_a_slow_receiver_and_loses_nothing() {
    let place = Place::new("gate");
    let config = place.config(1).patience(Duration::from_secs(20));
    let (mut sender, mut receiver) = pair(&config);
    let reading = std::thread::spawn(move || {
        let mut expected = 0_u64;
        let end = Instant::now() + Duration::from_secs(60);
        while expected < 50_000 && Instant::now() < end {
            receiver.poll(|t| {
                assert_eq!(t.bytes, expected.to_le_bytes());
                expected += 1;
            });
            std::thread::yield_now();
        }
        (expected, receiver.lost())
    });
    for n in 0..50_000_u64 {
        sender.write(0, 0, &n.to_le_bytes()).unwrap();
    }
    assert_eq!(reading.join().unwrap(), (50_000, 0));
    assert_eq!(sender.lost_receivers(), (0, 0));
}

#[test]
fn a_receiver_that_does_not_read_is_cut_off_and_may_come_back() {
    let place = Place::new("cut");
    let config = place.config(1).patience(Duration::from_millis(20));
    let (mut sender, mut receiver) = pair(&config);
    for n in 0..20_000_u64 {
        sender.write(0, 0, &n.to_le_bytes()).unwrap();
    }
    assert_eq!(sender.lost_receivers(), (1, 0));
    let got = drain(&mut receiver).len() as u64;
    assert_eq!(receiver.lost() + got, 20_000);
    // The receiver reads again, so the sender waits for it again.
    for n in 0..1_000_u64 {
        sender.write(0, 0, &n.to_le_bytes()).unwrap();
    }
    assert!(!sender.wait_for_receivers(Duration::ZERO));
    assert_eq!(drain(&mut receiver).len(), 1_000);
    assert!(sender.wait_for_receivers(Duration::ZERO));
}

/// Writes samples from `n` on until one times out, and returns its number.
fn write_until_overdue(sender: &mut Sender, mut n: u64) -> u64 {
    loop {
        match sender.write(0, 0, &n.to_le_bytes()) {
            Ok(()) => n += 1,
            Err(Error::Dds {
                code: ReturnCode::Timeout,
                ..
            }) => return n,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_write_that_waited_too_long_fails_and_may_be_made_again() {
    let place = Place::new("overdue");
    let config = place.config(1).patience(Duration::from_secs(600));
    let config = config.blocking(Duration::from_millis(2));
    let (mut sender, mut receiver) = pair(&config);
    let (mut written, mut read) = (0, 0);
    for _ in 0..5 {
        written = write_until_overdue(&mut sender, written);
        assert_eq!(write_until_overdue(&mut sender, written), written);
        assert!(sender.goes_on_waiting());
        let got: Vec<u64> = drain(&mut receiver)
            .iter()
            .map(|g| u64::from_le_bytes(g.2[..].try_into().unwrap()))
            .collect();
        assert_eq!(got, (read..written).collect::<Vec<_>>());
        read = written;
        sender.write(0, 0, &written.to_le_bytes()).unwrap();
        written += 1;
        assert!(!sender.goes_on_waiting(), "its patience begins anew");
    }
    assert!(written > 5_000, "{written}");
    assert_eq!((receiver.lost(), sender.lost_receivers()), (0, (0, 0)));
}

/// The last sample of a feed has a time-out of its own, shorter than the wait of one write.
#[test]
fn a_write_with_an_end_then_drops_what_is_not_read() {
    let place = Place::new("end");
    let config = place.config(1).patience(Duration::from_secs(3_600));
    let config = config.blocking(Duration::from_secs(3_600));
    let (mut sender, mut receiver) = pair(&config);
    // Samples of 13 words each fill the ring of 8,192.
    for _ in 0..630 {
        sender.write(0, 0, &[1; 80]).unwrap();
    }
    let end = Instant::now() + Duration::from_millis(2);
    sender.write_by(end, 0, 0, b"end").unwrap();
    for _ in 0..630 {
        sender.write(0, 0, &[1; 80]).unwrap();
    }
    assert_eq!(sender.lost_receivers(), (0, 0));
    let read = drain(&mut receiver).len() as u64;
    assert!(receiver.lost() > 0);
    assert_eq!(read + receiver.lost(), sender.written());
}

/// The rest of the ring is filled with the same wait.
#[test]
fn a_write_that_times_out_at_the_end_of_the_ring_leaves_it_as_it_is() {
    let place = Place::new("once");
    let config = place.config(1).patience(Duration::from_secs(600));
    let config = config.blocking(Duration::from_millis(1));
    let (mut sender, mut receiver) = pair(&config);
    // Samples of 13 words each leave 392 of 8,192.
    for _ in 0..600 {
        sender.write(0, 0, &[1; 80]).unwrap();
    }
    // There is space for a filler then, and not for the record.
    assert_eq!(receiver.poll(|_| {}), 64);
    let long = vec![2; sender.longest()];
    let before = sender.position_of_next();
    assert!(sender.write(0, 0, &long).is_err());
    assert_eq!(sender.position_of_next(), before);
    assert_eq!(drain(&mut receiver).len(), 600 - 64);
    sender.write(0, 0, &long).unwrap();
    assert_eq!(drain(&mut receiver), [(0, 0, long)]);
}

/// A write that times out does not begin the patience anew.
#[test]
fn who_stands_still_during_several_writes_is_cut_off() {
    let place = Place::new("still");
    let config = place.config(1).patience(Duration::from_millis(50));
    let config = config.blocking(Duration::from_millis(1));
    let (mut sender, _stopped) = pair(&config);
    let end = Instant::now() + Duration::from_secs(60);
    let mut written = 0;
    while sender.lost_receivers() == (0, 0) {
        assert!(Instant::now() < end, "waited a minute");
        match sender.write(0, 0, b"sample") {
            Ok(()) => written += 1,
            Err(error) => assert!(error.to_string().contains("timeout"), "{error}"),
        }
    }
    for _ in 0..10_000 {
        sender.write(0, 0, b"sample").unwrap();
        written += 1;
    }
    assert_eq!(
        (sender.written(), sender.lost_receivers()),
        (written, (1, 0))
    );
}

/// The clock is the test's.
#[test]
fn who_reads_slowly_is_waited_for_beside_one_that_has_stopped() {
    let place = Place::new("slow");
    let config = place.config(1).patience(Duration::from_secs(1));
    let (mut sender, _stopped) = pair(&config);
    let mut slow = Receiver::open(&config, "feed", &topics(false)).unwrap();
    for n in 0..100_u64 {
        sender.write(0, 0, &n.to_le_bytes()).unwrap();
    }
    let mut now = Instant::now();
    let mut stood = sender::Stood::since(now);
    let mut take = || {
        now += Duration::from_millis(20);
        sender.wait_at(&mut stood, now);
    };
    while slow.poll(|_| take()) > 0 {}
    assert_eq!(sender.lost_receivers(), (1, 0));
    assert_eq!((slow.taken(), slow.lost()), (100, 0));
}

#[test]
fn a_dead_receiver_is_forgotten_without_the_wait() {
    let place = Place::new("dead");
    let config = place.config(1).patience(Duration::from_secs(600));
    let (mut sender, receiver) = pair(&config);
    assert_eq!(sender.receivers(), 1);
    receiver.die();
    for n in 0..20_000_u64 {
        sender.write(0, 0, &n.to_le_bytes()).unwrap();
    }
    assert_eq!(sender.lost_receivers(), (0, 1));
    assert_eq!(sender.receivers(), 0);
}

#[test]
fn the_file_of_a_dead_sender_is_read_to_its_end_and_removed() {
    let place = Place::new("stale");
    let config = place.config(1);
    let files = || fs::read_dir(config.folder()).unwrap().count();
    let (mut sender, mut receiver) = pair(&config);
    sender.write(0, 0, b"last").unwrap();
    sender.die();
    assert_eq!(files(), 1);
    look(&mut receiver);
    assert_eq!((receiver.senders(), files()), (1, 1));
    assert_eq!(drain(&mut receiver).len(), 1);
    look(&mut receiver);
    assert_eq!((receiver.senders(), receiver.died(), files()), (0, 1, 0));
    // A ring without readers is removed by the next sender.
    Sender::open(&config, "feed", &topics(false)).unwrap().die();
    assert_eq!(files(), 1);
    let _next = Sender::open(&config, "echo", &topics(false)).unwrap();
    assert_eq!(files(), 1);
}

#[test]
fn a_dead_receiver_counts_also_if_the_next_one_takes_its_slot() {
    let place = Place::new("taken");
    let config = place.config(1);
    let sender = Sender::open(&config, "feed", &topics(false)).unwrap();
    Receiver::open(&config, "feed", &topics(false))
        .unwrap()
        .die();
    let next = Receiver::open(&config, "feed", &topics(false)).unwrap();
    assert_eq!((sender.receivers(), sender.lost_receivers()), (1, (0, 1)));
    drop(next);
    assert_eq!((sender.receivers(), sender.lost_receivers()), (0, (0, 1)));
}

#[test]
fn receivers_that_leave_in_order_never_count_as_dead() {
    let place = Place::new("leaving");
    let config = place.config(1);
    let sender = Sender::open(&config, "feed", &topics(false)).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    drop(Receiver::open(&config, "feed", &topics(false)).unwrap());
                }
            });
        }
        for _ in 0..20_000 {
            sender.receivers();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!((sender.receivers(), sender.lost_receivers()), (0, (0, 0)));
}

#[test]
fn a_receiver_without_a_place_says_so_and_gets_the_next_one() {
    let place = Place::new("crowded");
    let config = place.config(1);
    let mut sender = Sender::open(&config, "feed", &topics(false)).unwrap();
    let open = || Receiver::open(&config, "feed", &topics(false)).unwrap();
    let mut others: Vec<_> = (0..layout::PLACES).map(|_| open()).collect();
    let mut last = open();
    for _ in 0..2 {
        assert_eq!((last.senders(), last.crowded()), (0, 1));
        look(&mut last);
    }
    assert_eq!((last.refused(), sender.receivers()), (0, layout::PLACES));
    others.pop();
    look(&mut last);
    assert_eq!((last.senders(), last.crowded()), (1, 0));
    sender.write(0, 0, b"x").unwrap();
    assert_eq!(drain(&mut last).len(), 1);
}

#[test]
fn a_sender_beyond_those_that_a_receiver_reads_is_counted_until_one_leaves() {
    let place = Place::new("many");
    let config = place.config(1);
    let mut receiver = Receiver::open(&config, "feed", &topics(false)).unwrap();
    let open = || Sender::open(&config, "feed", &topics(false)).unwrap();
    let mut senders: Vec<_> = (0..receiver::SENDERS + 2).map(|_| open()).collect();
    let mut count = || {
        look(&mut receiver);
        (receiver.senders(), receiver.crowded())
    };
    assert_eq!(count(), (receiver::SENDERS, 2));
    // A sender that dies or leaves makes room for another one, or was itself counted.
    senders.swap_remove(0).die();
    assert_eq!(count(), (receiver::SENDERS, 1));
    drop(senders.swap_remove(0));
    assert_eq!(count(), (receiver::SENDERS, 0));
    for sender in &mut senders {
        sender.write(0, 0, b"x").unwrap();
    }
    assert_eq!(drain(&mut receiver).len(), receiver::SENDERS);
}

/// A sender that is restarted in a container has the number of the dead one.
#[test]
fn the_file_of_another_sender_by_the_name_of_a_dead_one_stays() {
    let place = Place::new("name");
    let config = place.config(1);
    let (mut sender, mut receiver) = pair(&config);
    sender.write(0, 0, b"last").unwrap();
    sender.die();
    let mut files = fs::read_dir(config.folder()).unwrap();
    let path = files.next().unwrap().unwrap().path();
    fs::remove_file(&path).unwrap();
    let other = SharedFile::create(&path, 4096).unwrap();
    assert!(other.try_lock(layout::SENDER_LOCK).unwrap());
    assert_eq!(drain(&mut receiver).len(), 1);
    look(&mut receiver);
    assert_eq!((receiver.senders(), receiver.died()), (0, 1));
    assert!(other.is_at(&path));
}

#[test]
fn either_side_may_come_first_and_be_restarted() {
    let place = Place::new("restart");
    let config = place.config(1);
    let mut receiver = Receiver::open(&config, "feed", &topics(false)).unwrap();
    for round in 0..3_u8 {
        let mut sender = Sender::open(&config, "feed", &topics(false)).unwrap();
        look(&mut receiver);
        sender.write(0, 0, &[round]).unwrap();
        // The sender is gone when the receiver reads.
        drop(sender);
        assert_eq!(drain(&mut receiver), [(0, 0, vec![round])]);
        look(&mut receiver);
        assert_eq!((receiver.senders(), receiver.died()), (0, 0));
    }
    let mut sender = Sender::open(&config, "feed", &topics(false)).unwrap();
    for round in 0..3_u8 {
        let mut receiver = Receiver::open(&config, "feed", &topics(false)).unwrap();
        sender.write(0, 0, &[round]).unwrap();
        assert_eq!(drain(&mut receiver), [(0, 0, vec![round])]);
    }
    assert_eq!(sender.receivers(), 0);
}

#[test]
fn domains_and_channels_do_not_hear_each_other() {
    let place = Place::new("domains");
    let mut sender = Sender::open(&place.config(1), "feed", &topics(false)).unwrap();
    let mut same = Receiver::open(&place.config(1), "feed", &topics(false)).unwrap();
    let mut domain = Receiver::open(&place.config(2), "feed", &topics(false)).unwrap();
    let mut channel = Receiver::open(&place.config(1), "echo", &topics(false)).unwrap();
    sender.write(0, 0, b"x").unwrap();
    let counts = [&mut same, &mut domain, &mut channel].map(|r| drain(r).len());
    assert_eq!(counts, [1, 0, 0]);
    assert!(matches!(Config::new(233), Err(Error::DomainId(233))));
    assert!(Sender::open(&place.config(1), "../x", &topics(false)).is_err());
}

#[test]
fn other_types_under_the_same_name_do_not_match_and_both_sides_know() {
    let place = Place::new("types");
    let config = place.config(1);
    let mut sender = Sender::open(&config, "feed", &topics(false)).unwrap();
    let other = StructType::new("T").member("n", Kind::UInt32);
    let wanted = [TopicSpec::new("a", &other, false)];
    let mut receiver = Receiver::open(&config, "feed", &wanted).unwrap();
    sender.write(0, 0, b"x").unwrap();
    assert_eq!(drain(&mut receiver), []);
    look(&mut receiver);
    assert_eq!(
        (receiver.refused(), sender.refused(), sender.receivers()),
        (1, 1, 0)
    );
}

#[test]
fn other_types_do_not_match_though_there_is_no_place() {
    let place = Place::new("full-types");
    let config = place.config(1);
    let other = StructType::new("T").member("n", Kind::UInt32);
    let other = [TopicSpec::new("a", &other, false)];
    // The sender has no free slot.
    let sender = Sender::open(&config, "feed", &topics(false)).unwrap();
    let open = || Receiver::open(&config, "feed", &topics(false)).unwrap();
    let _others: Vec<_> = (0..layout::PLACES).map(|_| open()).collect();
    let mut receiver = Receiver::open(&config, "feed", &other).unwrap();
    look(&mut receiver);
    assert_eq!((receiver.refused(), receiver.crowded()), (1, 0));
    assert_eq!((sender.refused(), sender.receivers()), (1, layout::PLACES));
    // The receiver has none.
    let open = || Sender::open(&config, "echo", &topics(false)).unwrap();
    let _senders: Vec<_> = (0..receiver::SENDERS).map(|_| open()).collect();
    let mut receiver = Receiver::open(&config, "echo", &topics(false)).unwrap();
    let stranger = Sender::open(&config, "echo", &other).unwrap();
    let _beyond = open();
    for _ in 0..2 {
        look(&mut receiver);
        assert_eq!((receiver.refused(), stranger.refused()), (1, 1));
        assert_eq!(
            (receiver.senders(), receiver.crowded()),
            (receiver::SENDERS, 1)
        );
    }
}

#[test]
fn files_that_are_none_of_ours_are_refused_once() {
    let place = Place::new("garbage");
    let config = place.config(1);
    let mut receiver = Receiver::open(&config, "feed", &topics(false)).unwrap();
    let held: Vec<SharedFile> = [(1, 64), (2, 4096), (3, 1 << 20)]
        .map(|(n, bytes)| {
            let path = config.folder().join(format!("feed.{n}.0"));
            let file = SharedFile::create(&path, bytes).unwrap();
            assert!(file.try_lock(layout::SENDER_LOCK).unwrap());
            file
        })
        .into();
    look(&mut receiver);
    look(&mut receiver);
    assert_eq!(
        (receiver.refused(), receiver.senders(), held.len()),
        (3, 0, 3)
    );
}

#[test]
fn a_refused_file_is_counted_once_although_the_folder_could_not_be_read() {
    let place = Place::new("unread");
    let config = place.config(1);
    let (folder, aside) = (config.folder(), place.0.join("aside"));
    let other = StructType::new("T").member("n", Kind::UInt32);
    let wanted = [TopicSpec::new("a", &other, false)];
    let _sender = Sender::open(&config, "feed", &topics(false)).unwrap();
    let mut receiver = Receiver::open(&config, "feed", &wanted).unwrap();
    // A file in place of the folder is no list of files.
    fs::rename(&folder, &aside).unwrap();
    fs::write(&folder, []).unwrap();
    look(&mut receiver);
    fs::remove_file(&folder).unwrap();
    fs::rename(&aside, &folder).unwrap();
    look(&mut receiver);
    assert_eq!(receiver.refused(), 1);
}

#[test]
fn a_sender_for_which_the_system_lacks_memory_is_read_later() {
    let place = Place::new("lack");
    let config = place.config(1);
    let mut receiver = Receiver::open(&config, "feed", &topics(false)).unwrap();
    let _sender = Sender::open(&config, "feed", &topics(false)).unwrap();
    let mut files = fs::read_dir(config.folder()).unwrap();
    let path = files.next().unwrap().unwrap().path();
    for code in [libc::EMFILE, libc::ENOMEM] {
        receiver.fail(path.clone(), code);
    }
    assert_eq!((receiver.refused(), receiver.crowded()), (0, 2));
    look(&mut receiver);
    assert_eq!((receiver.senders(), receiver.crowded()), (1, 0));
}

#[test]
fn what_a_sender_scribbles_never_harms_the_receiver() {
    let place = Place::new("scribble");
    let config = place.config(1);
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..200 {
        let (mut sender, mut receiver) = pair(&config);
        sender.write(0, 0, b"good").unwrap();
        assert_eq!(drain(&mut receiver).len(), 1);
        sender.scribble(|| random.u64(..));
        for _ in 0..20 {
            receiver.poll(|t| assert!(t.topic < 2));
        }
    }
}

#[test]
fn a_sender_whose_records_are_invalid_is_dropped_and_counted() {
    let place = Place::new("broken");
    let config = place.config(1);
    let (mut sender, mut receiver) = pair(&config);
    sender.write(0, 0, b"good").unwrap();
    sender.break_off();
    assert_eq!(drain(&mut receiver), [(0, 0, b"good".to_vec())]);
    for _ in 0..2 {
        assert_eq!((receiver.refused(), receiver.senders()), (1, 0));
        look(&mut receiver);
    }
    assert_eq!((receiver.taken(), sender.receivers()), (1, 0));
}

/// The reader checks that each sample is complete while the writer laps it all the time.
#[test]
fn a_sample_is_whole_or_not_there_whatever_overtakes_it() {
    let place = Place::new("torn");
    let config = place.config(1);
    let (mut sender, mut receiver) = pair(&config);
    let stop = Arc::new(AtomicBool::new(false));
    let written = Arc::new(AtomicU64::new(0));
    let (end, count) = (Arc::clone(&stop), Arc::clone(&written));
    let writing = std::thread::spawn(move || {
        let mut bytes = [0; 4_096];
        while !end.load(Ordering::Relaxed) {
            let n = count.fetch_add(1, Ordering::Relaxed);
            let len = 8 + (n % 4_001) as usize;
            bytes[..len].fill(n as u8);
            bytes[..8].copy_from_slice(&n.to_le_bytes());
            sender.write(0, n as i64, &bytes[..len]).unwrap();
        }
        sender
    });
    let (mut got, mut last) = (0_u64, 0);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(400) {
        receiver.poll(|t| {
            let n = t.source_nanos as u64;
            assert_eq!(t.bytes.len(), 8 + (n % 4_001) as usize);
            assert_eq!(t.bytes[..8], n.to_le_bytes());
            assert!(t.bytes[8..].iter().all(|b| *b == n as u8));
            assert!(n >= last);
            last = n;
            got += 1;
        });
    }
    stop.store(true, Ordering::Relaxed);
    let sender = writing.join().unwrap();
    got += drain(&mut receiver).len() as u64;
    assert_eq!(got + receiver.lost(), sender.written());
}

#[test]
fn the_folder_goes_with_the_last_who_leaves() {
    let place = Place::new("folder");
    let config = place.config(9);
    let folder = config.folder();
    let receiver = Receiver::open(&config, "feed", &topics(false)).unwrap();
    let sender = Sender::open(&config, "feed", &topics(false)).unwrap();
    drop(receiver);
    assert!(folder.exists(), "a sender is still there");
    let receiver = Receiver::open(&config, "feed", &topics(false)).unwrap();
    drop(sender);
    // Receivers have no files: they find a sender also in a folder that was made again.
    assert!(!folder.exists());
    let mut receiver = receiver;
    let mut sender = Sender::open(&config, "feed", &topics(false)).unwrap();
    look(&mut receiver);
    sender.write(0, 1, b"again").unwrap();
    assert_eq!(drain(&mut receiver), [(0, 1, b"again".to_vec())]);
    drop((sender, receiver));
    assert!(!folder.exists());
    assert!(folder.parent().unwrap().exists(), "the user's folder stays");
}

#[test]
fn nobody_fails_while_others_take_the_folder_along() {
    let place = Place::new("coming-and-going");
    let config = place.config(9);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..200 {
                    let mut sender = Sender::open(&config, "feed", &topics(false)).unwrap();
                    sender.write(0, n, b"").unwrap();
                    drop(sender);
                    drop(Receiver::open(&config, "feed", &topics(false)).unwrap());
                }
            });
        }
    });
    assert!(!config.folder().exists());
}
