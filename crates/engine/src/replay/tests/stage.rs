//! A replay in FIX and its service on one thread, under virtual time.

use super::*;
use crate::host::Peers;
use fanfare_feed::recovery::{
    Numbering, Recovery, RecoveryConfig, Replay, ReplayConfig, Sink, State,
};
use fanfare_fix::session::{Now, SECOND};
use fanfare_wire::UtcTimestamp;

/// A FIX service whose messages are chosen by the test.
#[derive(Default)]
struct Told {
    /// The first number of each request, and its MsgSeqNum(34).
    asked: Vec<(u64, u64)>,
    /// Messages to send: MsgType(35), and the fields with `|` for SOH.
    says: Vec<(&'static str, String)>,
}

impl Handler for Told {
    /// Messages are sent before any are read.
    fn is_due(&self) -> bool {
        !self.says.is_empty()
    }

    fn on_message(&mut self, _: &mut Peer<'_>, message: &AppMessage<'_>) {
        let first = message.message.u64(APPL_BEG_SEQ_NUM).unwrap();
        self.asked.push((first, message.seq));
    }

    fn on_turn(&mut self, peers: &mut Peers<'_>) -> usize {
        let says = std::mem::take(&mut self.says);
        for (msg_type, fields) in &says {
            let mut peer = peers.logged_on().next().unwrap();
            let fields = fields.replace('|', "\x01");
            let sent = peer.send(msg_type.as_bytes(), |out| {
                out.raw(fields.as_bytes());
            });
            sent.unwrap();
        }
        says.len()
    }
}

/// A replay and its service on one thread, under virtual time.
struct Stage {
    asker: Host<fix::Asker>,
    service: Host<Told>,
    /// The caller's side, without a thread.
    replayer: Replayer,
    now: Now,
}

impl Stage {
    fn new() -> Self {
        let mut service = Host::new(Told::default()).unwrap();
        let id = SessionId::new(Version::Fixt11, "REPLAY", "US");
        let port = Acceptor::new("127.0.0.1:0".parse().unwrap()).session(Config::new(id));
        let address = service.listen(port).unwrap();
        let (replayer, caller) = Replayer::pair(None);
        Self {
            asker: fix::host(caller, source(address)).unwrap(),
            service,
            replayer,
            now: Now {
                mono: SECOND,
                utc: UtcTimestamp::from_nanos(1_770_000_000_000_000_000),
            },
        }
    }

    /// Runs both sides once.
    fn turn(&mut self, start: Instant) {
        self.now.mono += 200_000;
        self.asker.do_work(self.now).unwrap();
        self.service.do_work(self.now).unwrap();
        std::thread::yield_now();
        let is_in_time = start.elapsed() < Duration::from_secs(60);
        assert!(is_in_time, "nothing came but {:?}", self.replayer.poll());
    }

    /// Requests a range, and runs both sides until the service has the request.
    fn ask(&mut self, range: Range<u32>) {
        assert!(self.replayer.request(range));
        self.until_asked();
    }

    /// Runs both sides until the service has another request.
    fn until_asked(&mut self) {
        let (before, start) = (self.service.handler().asked.len(), Instant::now());
        while self.service.handler().asked.len() == before {
            self.turn(start);
        }
    }

    fn say(&mut self, msg_type: &'static str, fields: &str) {
        let says = &mut self.service.handler().says;
        says.push((msg_type, fields.to_owned()));
    }

    fn say_numbers(&mut self, numbers: Range<u32>) {
        for number in numbers {
            self.say("X", &format!("1181={number}|268=0|"));
        }
    }

    /// Runs both sides to the next part of a response.
    fn part(&mut self) -> Answer {
        let start = Instant::now();
        loop {
            match self.replayer.poll() {
                Some(part) => return part,
                None => self.turn(start),
            }
        }
    }

    /// Runs both sides to the end of a response. Returns its numbers, and why it failed.
    fn answer(&mut self) -> (Vec<u32>, Option<String>) {
        let mut numbers = Vec::new();
        loop {
            match self.part() {
                Answer::Fix { number, .. } => numbers.push(number),
                Answer::Done => return (numbers, None),
                Answer::Refused(why) => return (numbers, Some(why)),
                Answer::Fast { .. } => panic!("an answer in FAST"),
            }
        }
    }

    /// Lets the request under way time out.
    fn time_out(&mut self) {
        self.now.mono += 21 * SECOND;
        let silent = "the replay does not answer".to_owned();
        assert_eq!(self.answer(), (vec![], Some(silent)));
    }
}

#[test]
fn what_was_not_requested_extends_no_deadline() {
    let mut stage = Stage::new();
    stage.ask(5..8);
    stage.now.mono += 15 * SECOND;
    stage.say("B", "148=news|33=1|58=none|");
    stage.say_numbers(9..10);
    let (start, before) = (Instant::now(), stage.now.mono);
    while stage.now.mono < before + SECOND {
        stage.turn(start);
    }
    stage.now.mono += 5 * SECOND;
    let silent = "the replay does not answer".to_owned();
    assert_eq!(stage.answer(), (vec![], Some(silent)));
}

#[test]
fn the_late_report_of_a_response_ends_no_later_one() {
    for is_named in [false, true] {
        let id = |number: u32| match is_named {
            true => format!("1346={number}|"),
            false => String::new(),
        };
        let ack = |number| format!("1353={number}|{}1348=0|", id(number));
        let report = |number| format!("1356={number}|{}1426=3|", id(number));
        let mut stage = Stage::new();
        for (number, first) in [(1, 5), (2, 8), (3, 11)] {
            stage.ask(first..first + 3);
            if number > 1 {
                stage.say("BY", &report(number - 1));
            }
            stage.say("BX", &ack(number));
            stage.say_numbers(first..first + 3);
            // The last number ends the response, before its report.
            assert_eq!(stage.answer(), ((first..first + 3).collect(), None));
        }
        stage.ask(20..23);
        stage.say("BY", &report(3));
        stage.say("BX", &ack(4));
        stage.say("BY", "1356=x|1426=2|");
        stage.say_numbers(20..22);
        stage.say("BY", &report(4));
        assert_eq!(stage.answer(), (vec![20, 21], None));
    }
}

#[test]
fn the_answers_to_a_request_that_has_timed_out_end_no_later_one() {
    for [first, second] in [["", ""], ["1346=1|", "1346=2|"]] {
        let mut stage = Stage::new();
        stage.ask(5..8);
        stage.time_out();
        stage.ask(5..8);
        stage.say("BX", &format!("1353=1|{first}1348=1|58=busy|"));
        stage.say("BY", &format!("1356=1|{first}1426=3|"));
        stage.say("BX", &format!("1353=2|{second}1348=0|"));
        stage.say_numbers(5..7);
        stage.say("BY", &format!("1356=2|{second}1426=3|"));
        assert_eq!(stage.answer(), (vec![5, 6], None));
    }
}

#[test]
fn a_request_without_any_answer_costs_the_end_of_one_other_at_most() {
    for is_named in [false, true] {
        let mut stage = Stage::new();
        // Acknowledges a request, and sends some numbers and a report.
        let respond = |stage: &mut Stage, number: u32, numbers| {
            let id = match is_named {
                true => format!("1346={number}|"),
                false => String::new(),
            };
            stage.say("BX", &format!("1353={number}|{id}1348=0|"));
            stage.say_numbers(numbers);
            stage.say("BY", &format!("1356={number}|{id}1426=3|"));
        };
        stage.ask(5..8);
        stage.time_out();
        // Without their names, these answers might be the late ones.
        stage.ask(5..8);
        respond(&mut stage, 2, 5..8);
        assert_eq!(stage.answer(), (vec![5, 6, 7], None));
        stage.ask(20..23);
        respond(&mut stage, 3, 20..21);
        match is_named {
            true => assert_eq!(stage.answer(), (vec![20], None)),
            false => {
                assert!(matches!(stage.part(), Answer::Fix { number: 20, .. }));
                stage.time_out();
            }
        }
        // Then the session is another one, in which nothing is owed.
        stage.ask(30..33);
        let seq = if is_named { 5 } else { 2 };
        assert_eq!(stage.service.handler().asked.last(), Some(&(30, seq)));
        respond(&mut stage, 4, 30..31);
        assert_eq!(stage.answer(), (vec![30], None));
    }
}

#[test]
fn a_rejection_ends_the_request_that_it_names() {
    let mut stage = Stage::new();
    stage.ask(5..8);
    stage.time_out();
    stage.ask(10..13);
    let [(5, first), (10, second)] = stage.service.handler().asked[..] else {
        panic!("two requests");
    };
    for seq in [first, second] {
        stage.say("j", &format!("45={seq}|372=BW|380=0|58=no {seq}|"));
        stage.say_numbers(10..11);
    }
    let why = format!("the replay refused the request: \"no {second}\"");
    assert_eq!(stage.answer(), (vec![10], Some(why)));
    // Neither is owed anything more.
    stage.ask(20..23);
    stage.say("BX", "1353=3|1348=0|");
    stage.say_numbers(20..21);
    stage.say("BY", "1356=3|1426=3|");
    assert_eq!(stage.answer(), (vec![20], None));
}

#[test]
fn the_rejection_of_another_message_answers_no_request() {
    let mut stage = Stage::new();
    stage.ask(5..8);
    stage.time_out();
    stage.ask(10..13);
    // The Logon(A) of the replay has this number.
    stage.say("j", "45=1|380=0|58=no|");
    stage.say("BX", "1353=1|1348=1|58=busy|");
    stage.say("BY", "1356=1|1426=3|");
    stage.say("BX", "1353=2|1348=0|");
    stage.say_numbers(10..11);
    stage.say("BY", "1356=2|1426=3|");
    assert_eq!(stage.answer(), (vec![10], None));
}

/// A market without books.
struct NoBooks;

impl Sink<()> for NoBooks {
    fn apply(&mut self, _: u32, _: &()) {}
    fn superseded(&mut self, _: u32, _: &()) {}
    fn dropped(&mut self, _: u32, _: &()) {}
    fn snapshot(&mut self, _: u32, _: &[()]) {}
    fn clear(&mut self, _: u32) {}
    fn state(&mut self, _: u32, _: State) {}
}

#[test]
fn a_request_without_an_answer_costs_one_attempt() {
    let config = ReplayConfig {
        timeout: 20 * SECOND,
        ..ReplayConfig::default()
    };
    let (mut stage, mut replay) = (Stage::new(), Replay::new(config));
    let mut recovery = Recovery::<()>::new(RecoveryConfig::new(Numbering::Channel));
    recovery.gap(0, 5..8, &mut NoBooks);
    let mut asked = |stage: &mut Stage| {
        let (start, before) = (Instant::now(), stage.service.handler().asked.len());
        while stage.service.handler().asked.len() == before {
            let now = stage.now.mono;
            replay.handle_timeout(now);
            if !stage.replayer.is_busy()
                && let Some(range) = replay.poll_request(now, recovery.missing())
            {
                assert!(stage.replayer.request(range.start as u32..range.end as u32));
            }
            if let Some(Answer::Refused(_)) = stage.replayer.poll() {
                replay.refused(now);
            }
            stage.turn(start);
            // The timeouts of both sides come and go.
            stage.now.mono += SECOND / 4;
        }
    };
    asked(&mut stage);
    asked(&mut stage);
    asked(&mut stage);
    assert_eq!(stage.replayer.sent(), 3);
    stage.say_numbers(5..8);
    assert_eq!(stage.answer(), (vec![5, 6, 7], None));
    let stats = replay.stats();
    assert_eq!((stats.requests, stats.refused), (3, 2));
    assert_eq!((stats.unanswered, stats.given_up), (0, 0));
}

#[test]
fn the_answers_of_the_run_before_are_not_taken_for_those_of_the_next() {
    // The old request is under way, or has timed out and is answered late.
    for is_late in [false, true] {
        let mut stage = Stage::new();
        stage.ask(5..8);
        stage.say_numbers(5..6);
        assert!(matches!(stage.part(), Answer::Fix { number: 5, .. }));
        if is_late {
            stage.time_out();
        }
        stage.replayer.cancel();
        stage.asker.do_work(stage.now).unwrap();
        assert!(stage.replayer.poll().is_none());
        assert!(stage.replayer.request(5..8));
        // They are sent before the service reads the Logout.
        stage.say_numbers(6..8);
        stage.until_asked();
        assert_eq!(stage.service.handler().asked.last(), Some(&(5, 2)));
        stage.say_numbers(5..8);
        assert_eq!(stage.answer(), (vec![5, 6, 7], None));
        assert_eq!(stage.replayer.sent(), 2);
    }
}

#[test]
fn a_request_waits_for_the_session_that_is_opened_again() {
    let mut stage = Stage::new();
    stage.ask(5..8);
    stage.replayer.cancel();
    stage.asker.do_work(stage.now).unwrap();
    assert!(stage.replayer.poll().is_none());
    assert!(stage.replayer.request(5..8));
    stage.asker.do_work(stage.now).unwrap();
    // The service reads nothing until the session is given up, at the end of the timeout.
    stage.now.mono += 21 * SECOND;
    stage.asker.do_work(stage.now).unwrap();
    assert!(stage.replayer.poll().is_none());
    stage.until_asked();
    stage.say_numbers(5..8);
    assert_eq!(stage.answer(), (vec![5, 6, 7], None));
}
