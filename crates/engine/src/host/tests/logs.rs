//! Message logs that fall behind, and the sessions meanwhile.

use super::*;
use crate::counters::Counters;

/// A pair whose seller has a log with the smallest ring, the writer of that log, and its file.
struct Logged {
    world: World,
    buy: Host<Diary>,
    sell: Host<Diary>,
    log: Option<MessageLog>,
    path: PathBuf,
    sent: usize,
}

/// The bytes of each order.
const ORDER: usize = 4000;

impl Logged {
    fn new(test: &str, lossy: bool) -> Self {
        let name = format!("fanfare-log-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let options = LogOptions {
            ring_bytes: 1 << 20,
            lossy,
            ..LogOptions::default()
        };
        let (tap, log) = MessageLog::open(&path, options, &Counters::new()).unwrap();
        let (world, buy, mut sell, _) = pair();
        lines(&mut sell);
        sell.log_to(tap);
        Self {
            world,
            buy,
            sell,
            log: Some(log),
            path,
            sent: 0,
        }
    }

    /// Sends orders, more than the ring holds.
    fn burst(&mut self) {
        let text = "x".repeat(ORDER);
        for _ in 0..1000 {
            order(&mut self.buy, self.world.now, &text);
            self.sent += 1;
        }
    }

    /// Runs both while the log is not written; returns how many orders arrived.
    fn run(&mut self) -> usize {
        self.world.run(&mut [&mut self.buy, &mut self.sell]);
        self.orders()
    }

    fn orders(&mut self) -> usize {
        let lines = &self.sell.handler().lines;
        lines.iter().filter(|line| line.contains(": D x")).count()
    }

    /// Returns the notes other than orders.
    fn told(&mut self) -> Vec<String> {
        let mut told = lines(&mut self.sell);
        told.retain(|line| !line.contains(": D x"));
        told
    }

    /// Returns the number of lines that are orders and responses, and all other lines.
    fn written(mut self) -> (usize, usize, Vec<String>) {
        if let Some(log) = &mut self.log {
            log.on_close(self.world.now);
        }
        let text = std::fs::read_to_string(&self.path).unwrap();
        std::fs::remove_file(&self.path).unwrap();
        let (mut orders, mut answers, mut others) = (0, 0, Vec::new());
        for line in text.lines() {
            if line.contains(" in  8=") && line.contains("|35=D|") && line.ends_with('|') {
                orders += 1;
            } else if line.contains(" out 8=") && line.contains("|35=8|") && line.ends_with('|') {
                answers += 1;
            } else {
                others.push(line.to_owned());
            }
        }
        (orders, answers, others)
    }
}

#[test]
fn a_burst_waits_for_the_log_and_is_all_in_it() {
    let mut logged = Logged::new("burst", false);
    logged.burst();
    let before = logged.run();
    assert!(before < logged.sent, "{before}: nothing waits");
    assert!(
        before * ORDER < 2 << 20,
        "{before}: more than the ring takes"
    );
    while logged.orders() < logged.sent {
        let now = logged.world.now;
        assert!(
            logged.log.as_mut().unwrap().do_work(now).unwrap() > 0,
            "deadlock"
        );
        logged.run();
    }
    assert_eq!(logged.told(), [""; 0]);
    let sent = logged.sent;
    assert_eq!(logged.written(), (sent, sent, Vec::new()));
}

#[test]
fn a_log_that_does_not_get_on_is_waited_for_only_so_long() {
    let mut logged = Logged::new("stuck", false);
    logged.burst();
    assert!(logged.run() < logged.sent);
    logged.world.wait(6);
    assert_eq!(logged.run(), logged.sent);
    let told = logged.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains(" bytes of FIX.4.4:SELL->BUY: the writing thread makes no progress"),
        "{told:?}"
    );
    while logged
        .log
        .as_mut()
        .unwrap()
        .do_work(logged.world.now)
        .unwrap()
        > 0
    {}
    logged.run();
    let told = logged.told();
    assert!(told[0].contains("complete again; "), "{told:?}");
    // The log holds up a burst again.
    logged.burst();
    assert!(logged.run() < 1000);
    let (_, _, others) = logged.written();
    assert!(others[0].starts_with("-- ") && others[0].ends_with(" bytes were left out"));
}

#[test]
fn a_lossy_log_holds_nobody_up_and_says_what_it_lacks() {
    let mut logged = Logged::new("lossy", true);
    logged.burst();
    assert_eq!(logged.run(), logged.sent);
    let told = logged.told();
    assert!(
        told[0].ends_with(": the writing thread cannot keep up"),
        "{told:?}"
    );
    assert_eq!(told.len(), 1);
    let sent = logged.sent;
    let (orders, _, _) = logged.written();
    assert!(orders < sent);
}

#[test]
fn a_log_whose_thread_has_ended_holds_nobody_up() {
    let mut logged = Logged::new("ended", false);
    logged.burst();
    assert!(logged.run() < logged.sent);
    logged.log = None;
    assert_eq!(logged.run(), logged.sent);
    let told = logged.told();
    assert!(
        told[0].ends_with(": the writing thread has ended"),
        "{told:?}"
    );
    assert_eq!(told.len(), 1);
    logged.written();
}

#[test]
fn a_full_disk_holds_nobody_up_and_is_told() {
    let mut logged = Logged::new("disk", false);
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    logged.log.as_mut().unwrap().fill_disk(Some(full));
    for _ in 0..3 {
        logged.burst();
        while logged.orders() < logged.sent {
            logged.run();
            let now = logged.world.now;
            while logged.log.as_mut().unwrap().do_work(now).unwrap() > 0 {}
        }
    }
    logged.run();
    let told = logged.told();
    assert!(told[0].contains("No space left on device"), "{told:?}");
    assert_eq!(told.len(), 1);
    logged.log.as_mut().unwrap().fill_disk(None);
    logged
        .log
        .as_mut()
        .unwrap()
        .do_work(logged.world.now)
        .unwrap();
    logged.run();
    let told = logged.told();
    assert!(told[0].contains("writable again; "), "{told:?}");
    let sent = logged.sent;
    let (orders, _, others) = logged.written();
    assert!(orders > 0 && orders < sent);
    assert!(
        others[0].ends_with(" bytes were left out: the disk refused them"),
        "{others:?}"
    );
}
