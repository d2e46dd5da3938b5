use super::*;
use crate::idle::Idle;
use crate::poll::{Poller, Token, Waker};
use crate::stop::Stop;
use fanfare_wire::UtcTimestamp;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const NOW: Now = Now {
    mono: 0,
    utc: UtcTimestamp::from_nanos(0),
};

/// An agent that reports each call, and fails or panics at a given cycle.
struct Scripted {
    name: &'static str,
    calls: Sender<String>,
    cycles: u32,
    fail_at: u32,
    panic_at: u32,
}

impl Scripted {
    fn new(name: &'static str, calls: &Sender<String>) -> Self {
        let calls = calls.clone();
        Self {
            name,
            calls,
            cycles: 0,
            fail_at: u32::MAX,
            panic_at: u32::MAX,
        }
    }

    fn say(&self, what: &str) {
        let _ = self.calls.send(format!("{} {what}", self.name));
    }
}

impl Agent for Scripted {
    fn name(&self) -> &str {
        self.name
    }

    fn on_start(&mut self, _now: Now) -> Result<(), AgentError> {
        self.say("start");
        if self.fail_at == 0 {
            Err("no start".into())
        } else {
            Ok(())
        }
    }

    fn do_work(&mut self, _now: Now) -> Result<usize, AgentError> {
        self.cycles += 1;
        assert!(self.cycles != self.panic_at, "scripted");
        if self.cycles == self.fail_at {
            return Err("broken".into());
        }
        Ok(0)
    }

    fn on_close(&mut self, _now: Now) {
        self.say("close");
    }
}

fn said(calls: &Receiver<String>) -> Vec<String> {
    calls.try_iter().collect()
}

#[test]
fn one_failure_ends_the_crew_and_is_named() {
    let (tell, calls) = channel();
    let mut crew = Crew::new(Stop::new());
    crew.spawn(Scripted::new("steady", &tell), Idle::Yield, None)
        .unwrap();
    let failing = Scripted {
        fail_at: 3,
        ..Scripted::new("weak", &tell)
    };
    crew.spawn(failing, Idle::Yield, None).unwrap();
    assert_eq!(crew.join().unwrap_err().to_string(), "weak: broken");
    let mut said = said(&calls);
    said.sort();
    assert_eq!(
        said,
        ["steady close", "steady start", "weak close", "weak start"]
    );
}

#[test]
fn a_panic_ends_the_crew_too() {
    let (tell, _calls) = channel();
    let mut crew = Crew::new(Stop::new());
    crew.spawn(Scripted::new("steady", &tell), Idle::BackOff, None)
        .unwrap();
    let failing = Scripted {
        panic_at: 3,
        ..Scripted::new("wild", &tell)
    };
    crew.spawn(failing, Idle::Spin, None).unwrap();
    assert_eq!(crew.join().unwrap_err().to_string(), "wild panicked");
}

#[test]
fn a_cpu_that_is_not_there_ends_the_crew() {
    let (tell, _calls) = channel();
    let mut crew = Crew::new(Stop::new());
    crew.spawn(Scripted::new("pinned", &tell), Idle::Spin, Some(100_000))
        .unwrap();
    let error = crew.join().unwrap_err().to_string();
    assert!(error.contains("CPU 100000"), "{error}");
}

/// An agent that waits for the other end of its channel before it closes.
struct Stuck(Receiver<()>);

impl Agent for Stuck {
    fn name(&self) -> &str {
        "stuck"
    }

    fn do_work(&mut self, _now: Now) -> Result<usize, AgentError> {
        Ok(0)
    }

    fn on_close(&mut self, _now: Now) {
        let _ = self.0.recv();
    }
}

#[test]
fn a_thread_that_does_not_end_is_left_when_the_caller_waits_no_more() {
    for ends in [false, true] {
        let (end, wait) = channel();
        let mut crew = Crew::new(Stop::new());
        crew.spawn(Stuck(wait), Idle::Yield, None).unwrap();
        crew.stop().raise();
        let mut end = Some(end);
        let mut looks = 0;
        let ended = crew.join_while(|| {
            looks += 1;
            if ends {
                end = None;
            }
            ends || looks < 3
        });
        assert_eq!(ended.unwrap(), ends);
        assert!(ends || looks == 3, "{looks}");
    }
}

#[test]
fn a_composite_closes_what_it_started_in_reverse() {
    let (tell, calls) = channel();
    let agent = |name| Box::new(Scripted::new(name, &tell)) as Box<dyn Agent>;
    let failing = Box::new(Scripted {
        fail_at: 0,
        ..Scripted::new("c", &tell)
    });
    let mut composite = Composite::new(vec![agent("a"), agent("b"), failing, agent("d")]);
    assert_eq!(composite.name(), "a+b+c+d");
    assert!(composite.on_start(NOW).is_err());
    assert_eq!(
        said(&calls),
        ["a start", "b start", "c start", "b close", "a close"]
    );
}

#[test]
fn agents_are_spread_evenly_and_in_order() {
    let (tell, _calls) = channel();
    let names = |threads| {
        let agents: Vec<Box<dyn Agent>> = ["a", "b", "c", "d", "e"]
            .map(|name| Box::new(Scripted::new(name, &tell)) as Box<dyn Agent>)
            .into();
        spread(agents, threads)
            .iter()
            .map(|group| group.name().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(0), ["a+b+c+d+e"]);
    assert_eq!(names(1), ["a+b+c+d+e"]);
    assert_eq!(names(2), ["a+b", "c+d+e"]);
    assert_eq!(names(9), ["a", "b", "c", "d", "e"]);
    assert!(spread(Vec::new(), 3).is_empty());
}

/// An agent that counts messages of a channel, and sleeps in the kernel meanwhile.
struct Sleeper {
    poller: Poller,
    waker: Waker,
    inbox: Receiver<u32>,
    seen: Vec<u32>,
    stop: Stop,
}

impl Agent for Sleeper {
    fn name(&self) -> &str {
        "sleeper"
    }

    fn do_work(&mut self, _now: Now) -> Result<usize, AgentError> {
        let before = self.seen.len();
        self.seen.extend(self.inbox.try_iter());
        if self.seen.len() == 1000 {
            self.stop.raise();
        }
        Ok(self.seen.len() - before)
    }

    fn wait_for<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.push(self.poller.as_fd());
    }

    fn before_sleep(&mut self) {
        self.waker.prepare_sleep();
    }

    fn after_sleep(&mut self) {
        self.waker.awake();
    }
}

#[test]
fn a_sleeping_agent_misses_no_wake_up() {
    let poller = Poller::new(1).unwrap();
    let waker = Waker::new(&poller, Token(0)).unwrap();
    let (send, inbox) = channel();
    let stop = Stop::new();
    let waking = waker.clone();
    let sender = std::thread::spawn(move || {
        for i in 0..1000 {
            send.send(i).unwrap();
            waking.wake();
            if i % 100 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
    let mut agent = Sleeper {
        poller,
        waker,
        inbox,
        seen: Vec::new(),
        stop: stop.clone(),
    };
    run(&mut agent, Idle::Wait(Duration::from_secs(60)), &stop).unwrap();
    sender.join().unwrap();
    assert_eq!(agent.seen, (0..1000).collect::<Vec<u32>>());
}

/// An agent whose turn lasts until the test ends it.
struct Busy(Receiver<()>);

impl Agent for Busy {
    fn name(&self) -> &str {
        "busy"
    }

    fn do_work(&mut self, _now: Now) -> Result<usize, AgentError> {
        // Once the sender is gone, a turn ends at once.
        Ok(usize::from(self.0.recv().is_ok()))
    }
}

#[test]
fn a_thread_whose_turn_does_not_end_is_the_slowest() {
    let (end, ends) = channel();
    let mut crew = Crew::new(Stop::new());
    assert_eq!(crew.slowest(u64::MAX), None);
    crew.spawn(Busy(ends), Idle::BackOff, None).unwrap();
    let since = |crew: &Crew| {
        loop {
            if let Some((name, since)) = crew.slowest(u64::MAX) {
                assert_eq!(name, "busy");
                return since;
            }
            std::thread::yield_now();
        }
    };
    let began = since(&crew);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(since(&crew), began, "the same turn");
    assert_eq!(crew.slowest(0), Some(("busy", Duration::ZERO)));
    drop(end);
    while since(&crew) >= began {
        std::thread::yield_now();
    }
    crew.stop().raise();
    crew.join().unwrap();
}
