//! Sends orders from another thread through a `SessionHandle`, and measures how much longer that
//! takes than sending them in the handler: first between busy threads, then into hosts that sleep.
//!
//!     cargo bench -p fanfare-engine --bench other_threads -- [ORDERS [SECONDS]]

use fanfare_engine::agent::{self, Agent};
use fanfare_engine::clock::Clock;
use fanfare_engine::host::{
    Acceptor, Handler, Host, Initiator, Peer, Peers, SessionHandle, Undone,
};
use fanfare_engine::{idle::Idle, stop::Stop};
use fanfare_fix::codec::FieldWriter;
use fanfare_fix::session::{AppMessage, Config, SessionId, Version};
use fanfare_fix::{msg_type, tag};
use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The state shared by both ends.
#[derive(Default)]
struct Run {
    /// Whether the handler is to send the next order.
    by_handler: AtomicBool,
    /// The number of orders to be sent, sent, and arrived.
    allowed: AtomicU64,
    sent: AtomicU64,
    arrived: AtomicU64,
    undone: AtomicU64,
    /// Nanoseconds from before an order was encoded until it was decoded and checked.
    times: Mutex<Vec<u64>>,
}

type Failure = Box<dyn Error + Send + Sync>;

/// The field for the time at which an order is sent.
const SENT_AT: u32 = 5001;

fn order(order: &mut FieldWriter<'_>, number: u64, now: u64) {
    order
        .u64(tag::CL_ORD_ID, number)
        .char(tag::HANDL_INST, b'1');
    order.str(tag::SYMBOL, "EUR/USD").char(tag::SIDE, b'1');
    order
        .u64(tag::ORDER_QTY, 1_000_000)
        .char(tag::ORD_TYPE, b'2');
    order.str(tag::PRICE, "1.0842").u64(SENT_AT, now);
}

/// Sends the permitted orders in its duty cycle, if it is to.
struct Buyer {
    run: Arc<Run>,
    clock: Clock,
    up: bool,
    /// The time of the next order, where they are sent on schedule.
    due: Option<u64>,
}

impl Handler for Buyer {
    fn on_message(&mut self, _: &mut Peer<'_>, _: &AppMessage<'_>) {}

    fn on_logon(&mut self, _: &mut Peer<'_>) {
        self.up = true;
    }

    fn on_turn(&mut self, peers: &mut Peers<'_>) -> usize {
        let (run, turn) = (&self.run, peers.now().mono);
        let sent = run.sent.load(SeqCst);
        let is_allowed = run.by_handler.load(SeqCst) && sent < run.allowed.load(SeqCst);
        if !is_allowed || self.due.is_some_and(|due| turn < due) {
            return 0;
        }
        let Some(mut peer) = peers.logged_on().next() else {
            return 0;
        };
        self.due = self.due.map(|due| due + MILLISECOND);
        let now = self.clock.read().mono;
        let result = peer.send(msg_type::NEW_ORDER_SINGLE, |out| order(out, sent, now));
        run.sent.store(sent + 1, SeqCst);
        run.undone.fetch_add(u64::from(result.is_err()), SeqCst);
        1
    }

    fn next_turn(&self) -> Option<u64> {
        self.due
    }

    fn on_undone(&mut self, undone: &Undone<'_>) {
        eprintln!("{undone}");
        self.run.undone.fetch_add(1, SeqCst);
    }
}

const MILLISECOND: u64 = 1_000_000;

/// Notes the arrival of orders.
struct Seller(Arc<Run>, Clock);

impl Handler for Seller {
    fn on_message(&mut self, _: &mut Peer<'_>, order: &AppMessage<'_>) {
        let now = self.1.read().mono;
        if let (Ok(sent_at), Ok(mut times)) = (order.message.u64(SENT_AT), self.0.times.lock()) {
            times.push(now.saturating_sub(sent_at));
        }
        self.0.arrived.fetch_add(1, SeqCst);
    }
}

type Pair = (Host<Buyer>, Host<Seller>, SessionHandle);

fn pair(run: &Arc<Run>) -> Result<Pair, Failure> {
    let config = |us, them| Config::new(SessionId::new(Version::Fix44, us, them));
    let mut sell = Host::new(Seller(Arc::clone(run), Clock::new()))?;
    let port = Acceptor::new((Ipv4Addr::LOCALHOST, 0).into());
    let address = sell.listen(port.session(config("SELL", "BUY")))?;
    let (run, clock) = (Arc::clone(run), Clock::new());
    let mut buy = Host::new(Buyer {
        run,
        clock,
        up: false,
        due: None,
    })?;
    let session = config("BUY", "SELL");
    let id = session.id.clone();
    buy.initiate(Initiator::new(session, vec![address]))?;
    let handle = buy.handle().session(&id)?;
    let mut clock = Clock::new();
    while !buy.handler().up {
        let now = clock.read();
        buy.do_work(now)?;
        sell.do_work(now)?;
    }
    Ok((buy, sell, handle))
}

/// Returns the median and the 99th percentile of the times since the last call, in microseconds.
fn figures(run: &Run) -> (f64, f64) {
    let mut times = run.times.lock().map(|mut t| std::mem::take(&mut *t));
    let times = times.as_mut().map_or(&mut [][..], |times| &mut times[..]);
    times.sort_unstable();
    let at = |share: usize| times.get(times.len() * share / 100).copied();
    let us = |share| at(share).unwrap_or(0) as f64 / 1e3;
    (us(50), us(99))
}

/// Sends orders one at a time between a thread that sends and one that runs both hosts, both busy.
fn busy(orders: u64) -> Result<(), Failure> {
    const TURN: u64 = 1_000;
    let run = Arc::new(Run::default());
    let (mut buy, mut sell, mut handle) = pair(&run)?;
    let over = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&over);
    let hosts = thread::spawn(move || {
        let mut clock = Clock::new();
        while !ended.load(SeqCst) {
            let now = clock.read();
            if buy.do_work(now).and(sell.do_work(now)).is_err() {
                return;
            }
        }
    });
    let mut clock = Clock::new();
    let mut turns = [Vec::new(), Vec::new()];
    for turn in 0..2 * orders.div_ceil(TURN) {
        let by_handler = turn % 2 == 0;
        for _ in 0..TURN {
            run.by_handler.store(by_handler, SeqCst);
            let number = run.allowed.fetch_add(1, SeqCst);
            if !by_handler {
                let now = clock.read().mono;
                handle.send(msg_type::NEW_ORDER_SINGLE, |out| order(out, number, now))?;
                run.sent.store(number + 1, SeqCst);
            }
            while run.arrived.load(SeqCst) <= number && !hosts.is_finished() {
                std::hint::spin_loop();
            }
        }
        turns[usize::from(!by_handler)].push(figures(&run));
    }
    over.store(true, SeqCst);
    hosts.join().map_err(|_| "the hosts panicked")?;
    for (name, turns) in ["handler", "handle"].iter().zip(&turns) {
        let median = |of: fn(&(f64, f64)) -> f64| {
            let mut values: Vec<f64> = turns.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(0.0)
        };
        let (p50, p99) = (median(|turn| turn.0), median(|turn| turn.1));
        println!("busy, {name}: p50 {p50:.2} µs, p99 {p99:.2} µs");
    }
    Ok(())
}

/// Sends 1,000 orders a second, from this thread or from the handler's own timer, in hosts that
/// sleep in the kernel.
fn parked(by_handler: bool, seconds: u64) -> Result<(), Failure> {
    let run = Arc::new(Run::default());
    let (mut buy, mut sell, mut handle) = pair(&run)?;
    let orders = seconds * 1000;
    if by_handler {
        buy.handler().due = Some(Clock::new().read().mono);
        run.allowed.store(orders, SeqCst);
        run.by_handler.store(true, SeqCst);
    }
    let (idle, stop) = (Idle::Wait(Duration::from_secs(1)), Stop::new());
    let stops = [stop.clone(), stop.clone()];
    let hosts: [thread::JoinHandle<_>; 2] = {
        let [ours, theirs] = stops;
        [
            thread::spawn(move || agent::run(&mut buy, idle, &ours)),
            thread::spawn(move || agent::run(&mut sell, idle, &theirs)),
        ]
    };
    let (begun, before, mut clock) = (Instant::now(), processor_time(), Clock::new());
    for number in 0..orders {
        let due = begun + Duration::from_millis(number);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if !by_handler {
            let now = clock.read().mono;
            handle.send(msg_type::NEW_ORDER_SINGLE, |out| order(out, number, now))?;
        }
    }
    thread::sleep(Duration::from_millis(500));
    let time = (processor_time() - before) as f64 / 1e3 / orders as f64;
    let (p50, p99) = figures(&run);
    println!(
        "parked, {}: {} of {orders} arrived, {} undone, p50 {p50:.1} µs, p99 {p99:.1} µs, \
         {time:.1} µs of processor for each",
        if by_handler { "handler" } else { "handle" },
        run.arrived.load(SeqCst),
        run.undone.load(SeqCst),
    );
    stop.raise();
    for host in hosts {
        let ended = host.join().map_err(|_| "a host panicked")?;
        ended?;
    }
    Ok(())
}

/// Returns the processor time of this process's threads, in nanoseconds.
fn processor_time() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let of_task = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(path.join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    };
    tasks
        .flatten()
        .filter_map(|task| of_task(task.path()))
        .sum()
}

fn main() -> Result<(), Failure> {
    // Cargo passes `--bench`.
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let mut number = |default| args.next().map_or(Ok(default), |text| text.parse());
    let (orders, seconds) = (number(100_000)?, number(5)?);
    busy(orders)?;
    for by_handler in [true, false, true, false] {
        parked(by_handler, seconds)?;
    }
    Ok(())
}
