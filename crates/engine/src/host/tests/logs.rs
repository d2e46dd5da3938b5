//! Message logs that fall behind, and the sessions meanwhile.

use super::greetings::of_buy;
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

    /// Writes the log.
    fn write(&mut self) {
        let log = self.log.as_mut().unwrap();
        while log.do_work(self.world.now).unwrap() > 0 {}
    }

    /// Sends orders to a buyer that does not read, until some of them wait. Returns their number.
    fn orders_that_wait(&mut self) -> usize {
        let text = "x".repeat(10_000);
        let mut sent = 0;
        while self.sell.hosted[0].unsent() < 2 * text.len() {
            order(&mut self.sell, self.world.now, &text);
            self.write();
            sent += 1;
        }
        sent
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
    logged.write();
    logged.run();
    let told = logged.told();
    assert!(told[0].contains("complete again; "), "{told:?}");
    // The log holds up a burst again.
    logged.burst();
    assert!(logged.run() < 1000);
    let (_, _, others) = logged.written();
    let is_gap = |line: &String| line.starts_with("-- ") && line.ends_with(" bytes were left out");
    assert!(others.iter().any(is_gap), "{others:?}");
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
            logged.write();
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

#[test]
fn a_logout_that_the_log_has_no_room_for_is_sent_when_it_has() {
    let mut logged = Logged::new("grain", false);
    let (now, key) = (logged.world.now, SessionKey(0));
    log_out(&mut logged.buy, now);
    // What follows is the end of a duty cycle in which other sessions have filled the log.
    let sell = &mut logged.sell;
    let log = sell.bench.log.as_mut().unwrap();
    log.fill(now);
    assert!(log.takes());
    let life = loop {
        match sell.hosted[0].receive(key, now, &mut sell.bench) {
            (0, _) => std::thread::yield_now(),
            (_, life) => break life,
        }
    };
    assert_eq!(life, hosted::turn::Life::Ended);
    sell.write(key, now);
    assert!(sell.hosted[0].link.is_none());
    logged.write();
    logged.run();
    assert!(lines(&mut logged.buy).contains(&"SELL: logged out".to_owned()));
    let (_, _, others) = logged.written();
    let logouts = others.iter().filter(|line| line.contains("|35=5|"));
    assert_eq!(logouts.count(), 2);
}

#[test]
fn the_bytes_of_a_connection_are_not_among_those_of_the_next() {
    let mut logged = Logged::new("next", false);
    let now = logged.world.now;
    let text = "x".repeat(10_000);
    while logged.sell.hosted[0].unsent() == 0 {
        order(&mut logged.sell, now, &text);
        logged.write();
    }
    log_out(&mut logged.buy, now);
    logged.world.run(&mut [&mut logged.sell]);
    // The next connection begins while the last one still has bytes to send.
    let address = logged.sell.ports[&0].port.address();
    let mut caller = TcpStream::connect(address).unwrap();
    let logon = of_buy("A", 1, "98=0|108=30|141=Y|");
    caller.write_all(logon.as_bytes()).unwrap();
    logged.world.run(&mut [&mut logged.sell]);
    let told = logged.told();
    assert_eq!(told, ["BUY: the counterparty logged out", "BUY: logged on"]);
    logged.world.run(&mut [&mut logged.buy]);
    order(&mut logged.sell, logged.world.now, "last");
    logged.run();
    let (_, _, others) = logged.written();
    let begins = |line: &str| line.contains(" in  8=FIX") || line.contains(" out 8=FIX");
    assert_eq!(others.iter().find(|line| !begins(line)), None);
    let logons = others.iter().filter(|line| line.contains("|35=A|"));
    assert_eq!(logons.count(), 2);
}

#[test]
fn losses_of_a_removed_session_are_told_under_its_name() {
    let mut logged = Logged::new("removed", true);
    let (now, key) = (logged.world.now, SessionKey(0));
    let text = "x".repeat(10_000);
    while logged.sell.hosted[0].unsent() == 0 {
        order(&mut logged.sell, now, &text);
        logged.write();
    }
    // More than a full ring takes.
    for _ in 0..150 {
        order(&mut logged.sell, now, &text);
    }
    log_out(&mut logged.buy, now);
    logged.world.run(&mut [&mut logged.sell]);
    logged.sell.give_up(key);
    logged.sell.bench.log.as_mut().unwrap().fill(now);
    logged.run();
    let told = logged.told();
    let left_out = told.iter().find(|line| line.contains(": left out "));
    let left_out = left_out.unwrap();
    assert!(
        left_out.contains(" bytes of FIX.4.4:SELL->BUY: "),
        "{told:?}"
    );
    logged.written();
}

#[test]
fn a_refused_logon_cuts_off_nothing_of_the_last_connection() {
    let mut logged = Logged::new("refused", false);
    let sent = logged.orders_that_wait();
    log_out(&mut logged.buy, logged.world.now);
    logged.world.run(&mut [&mut logged.sell]);
    assert!(logged.sell.hosted[0].link.is_none());
    // Anybody who knows the CompIDs can send this while the last connection has bytes to send.
    let address = logged.sell.ports[&0].port.address();
    let mut stranger = TcpStream::connect(address).unwrap();
    let logon = of_buy("A", 1, "98=0|108=-1|");
    stranger.write_all(logon.as_bytes()).unwrap();
    logged.world.run(&mut [&mut logged.sell]);
    assert_eq!(rest(stranger), b"");
    let told = logged.told();
    assert_eq!(told.len(), 2, "{told:?}");
    let world = &mut logged.world;
    world.run(&mut [&mut logged.buy, &mut logged.sell]);
    let said = lines(&mut logged.buy);
    let received = said.iter().filter(|line| line.contains(": D x")).count();
    assert_eq!(received, sent);
    assert!(said.contains(&"SELL: logged out".to_owned()), "{said:?}");
    // The log has each message whole, whichever connection it came by.
    let (_, _, others) = logged.written();
    let is_cut = |line: &&String| !line.ends_with('|');
    assert_eq!(others.iter().find(is_cut), None);
    let of = |kind: &str| others.iter().filter(|line| line.contains(kind)).count();
    assert_eq!((of(" out 8=FIX.4.4|"), of("|35=D|")), (sent + 1, sent));
}
