//! Replays against services of both kinds on loopback.

mod stage;

use super::*;
use crate::agent::{self, Agent};
use crate::host::{Acceptor, Handler, Host, HostHandle, Peer};
use crate::idle::Idle;
use fanfare_fast::Cell as Value;
use fanfare_fix::session::{AppMessage, Config, SessionId};
use fanfare_fix::tag;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

const XML: &str = r#"
<templates>
  <template name="Logon" id="1">
    <string name="MessageType" id="35"><constant value="A"/></string>
  </template>
  <template name="Logout" id="2">
    <string name="MessageType" id="35"><constant value="5"/></string>
    <string name="Text" id="58" presence="optional"/>
  </template>
  <template name="Change" id="3">
    <string name="MessageType" id="35"><constant value="X"/></string>
    <uInt32 name="MsgSeqNum" id="34"/>
  </template>
  <template name="Copied" id="4">
    <string name="MessageType" id="35"><constant value="X"/></string>
    <uInt32 name="MsgSeqNum" id="34"/>
    <uInt32 name="MDUpdateAction" id="279"><copy value="0"/></uInt32>
  </template>
</templates>"#;

const LOGON: &[u8] = &[0xc0, 0x81];
const LOGOUT: &[u8] = &[0xc0, 0x82, 0x80];

fn change(number: u8) -> [u8; 3] {
    [0xc0, 0x83, 0x80 | number]
}

/// Writes messages, each preceded by its length, in pieces of any size.
fn write(stream: &mut TcpStream, messages: &[&[u8]]) {
    let mut bytes = Vec::new();
    for message in messages {
        Header::U32Le.write(message.len(), &mut bytes).unwrap();
        bytes.extend_from_slice(message);
    }
    for piece in bytes.chunks(5) {
        stream.write_all(piece).unwrap();
    }
}

/// Reads the next FIX message, with `|` for SOH; empty at the end.
fn read(stream: &mut TcpStream) -> String {
    let (mut text, mut byte) = (String::new(), [0]);
    while stream.read(&mut byte).unwrap() == 1 {
        text.push(if byte[0] == 1 { '|' } else { byte[0] as char });
        if text.ends_with('|') && text.contains("|10=") {
            break;
        }
    }
    text
}

fn source(address: SocketAddr) -> ReplaySource {
    ReplaySource {
        username: Some("us".into()),
        password: Some("secret".into()),
        appl_id: Some("OLR".into()),
        timeout: Duration::from_secs(20),
        ..ReplaySource::new(address, "US", "REPLAY")
    }
}

/// Starts a service that serves each connection by this function, and a replay that uses it.
fn fast(serve: impl Fn(TcpStream) + Send + 'static, patience: Duration) -> Replayer {
    fast_with(Options::default(), serve, patience)
}

/// The same, with the options of a feed.
fn fast_with(
    options: Options,
    serve: impl Fn(TcpStream) + Send + 'static,
    patience: Duration,
) -> Replayer {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let source = ReplaySource {
        timeout: patience,
        ..source(listener.local_addr().unwrap())
    };
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            serve(stream.unwrap());
        }
    });
    let replay = FastReplay {
        options,
        ..FastReplay::new(Arc::new(Program::parse(XML).unwrap()))
    };
    Replayer::start(source, Service::Fast(replay), None).unwrap()
}

/// Returns the numbers of a response, and how it ended.
fn answer(replayer: &Replayer) -> (Vec<u32>, Option<String>) {
    let (mut numbers, start) = (Vec::new(), Instant::now());
    loop {
        match replayer.poll() {
            Some(Answer::Fast { number, .. }) => numbers.push(number),
            Some(Answer::Fix { number, message }) => {
                assert!(message.starts_with(b"8=FIXT.1.1\x01"));
                numbers.push(number);
            }
            Some(Answer::Done) => return (numbers, None),
            Some(Answer::Refused(why)) => return (numbers, Some(why)),
            None => std::thread::sleep(Duration::from_millis(1)),
        }
        assert!(start.elapsed() < Duration::from_secs(60), "nothing came");
    }
}

const LONG: Duration = Duration::from_secs(20);

#[test]
fn missing_messages_are_asked_for_and_come_in_fast() {
    let replayer = fast(
        |mut stream| {
            let logon = read(&mut stream);
            assert!(logon.contains("|35=A|34=1|49=US|56=REPLAY|"), "{logon}");
            assert!(logon.contains("|553=us|554=secret|1137=9|"), "{logon}");
            write(&mut stream, &[LOGON]);
            let request = read(&mut stream);
            assert!(request.contains("|35=V|34=2|"), "{request}");
            let range = request.split("|1182=").nth(1).unwrap();
            assert!(request.contains("|1180=OLR|"), "{request}");
            let (first, rest) = range.split_once("|1183=").unwrap();
            let last = rest.split('|').next().unwrap();
            let (first, last): (u8, u8) = (first.parse().unwrap(), last.parse().unwrap());
            // A message that was not requested is not passed on.
            for number in first - 1..=last {
                write(&mut stream, &[&change(number)]);
            }
            write(&mut stream, &[LOGOUT]);
            assert!(read(&mut stream).contains("|35=5|34=3|"));
        },
        LONG,
    );
    for range in [5..9, 7..8] {
        assert!(replayer.request(range.clone()));
        assert!(!replayer.request(1..2), "one at a time");
        assert_eq!(answer(&replayer), (range.collect(), None));
    }
    assert!(!replayer.request(5..5), "nothing to ask for");
}

#[test]
fn a_response_is_decoded_with_the_options_of_the_feed() {
    // The number 5 in two bytes, of which one would do: R6.
    let overlong = [0xc0, 0x83, 0x00, 0x85];
    let serve = move |mut stream: TcpStream| {
        read(&mut stream);
        write(&mut stream, &[LOGON]);
        read(&mut stream);
        write(&mut stream, &[&overlong, &change(6), LOGOUT]);
        read(&mut stream);
    };
    let lenient = fast_with(Options::with_strict(false), serve, LONG);
    assert!(lenient.request(5..7));
    assert_eq!(answer(&lenient), (vec![5, 6], None));
    let strict = fast(serve, LONG);
    assert!(strict.request(5..7));
    let (numbers, why) = answer(&strict);
    assert!(numbers.is_empty(), "{numbers:?}");
    assert!(why.unwrap().contains("R6"));
}

#[test]
fn previous_values_are_those_of_a_packet() {
    let serve = |mut stream: TcpStream| {
        read(&mut stream);
        write(&mut stream, &[LOGON]);
        read(&mut stream);
        // 2 in the first message of a packet, copied in the second; the next packet has neither.
        let first = [0xe0, 0x84, 0x85, 0x82, 0xc0, 0x84, 0x86];
        write(&mut stream, &[&first, &[0xc0, 0x84, 0x87], LOGOUT]);
        read(&mut stream);
    };
    let replayer = fast(serve, LONG);
    assert!(replayer.request(5..8));
    let program = Program::parse(XML).unwrap();
    let action = program.find("Copied", "MDUpdateAction").unwrap();
    let mut actions = Vec::new();
    let end = loop {
        match replayer.poll() {
            Some(Answer::Fast { number, records }) => match records[0].get(&program, action, 0) {
                Value::Unsigned(value) => actions.push((number, value)),
                other => panic!("{other:?}"),
            },
            Some(end) => break end,
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    assert!(matches!(end, Answer::Done), "{end:?}");
    assert_eq!(actions, [(5, 2), (6, 2), (7, 0)]);
}

#[test]
fn a_cancelled_response_ends_unseen_and_the_next_request_is_answered() {
    let (told, said) = std::sync::mpsc::channel();
    let is_first = std::sync::atomic::AtomicBool::new(true);
    let serve = move |mut stream: TcpStream| {
        read(&mut stream);
        write(&mut stream, &[LOGON]);
        read(&mut stream);
        write(&mut stream, &[&change(5), &change(6)]);
        if !is_first.swap(false, Ordering::Relaxed) {
            write(&mut stream, &[LOGOUT]);
        }
        // The first response goes on for ever, as far as the requester can know.
        let _ = told.send(read(&mut stream));
    };
    let replayer = fast(serve, Duration::from_secs(600));
    assert!(replayer.request(5..7));
    while !matches!(replayer.poll(), Some(Answer::Fast { number: 5, .. })) {
        std::thread::sleep(Duration::from_millis(1));
    }
    replayer.cancel();
    let start = Instant::now();
    while replayer.is_busy() {
        assert!(replayer.poll().is_none());
        assert!(start.elapsed() < Duration::from_secs(60), "it goes on");
        std::thread::sleep(Duration::from_millis(1));
    }
    let logout = said.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(logout.contains("|35=5|34=3|"), "{logout}");
    assert!(replayer.request(5..7));
    assert_eq!(answer(&replayer), (vec![5, 6], None));
    assert_eq!(replayer.sent(), 2);
}

#[test]
fn a_replay_that_is_stopped_logs_out() {
    let (told, said) = std::sync::mpsc::channel();
    let serve = move |mut stream: TcpStream| {
        read(&mut stream);
        write(&mut stream, &[LOGON, &change(5), &change(6)]);
        read(&mut stream);
        told.send(read(&mut stream)).unwrap();
    };
    let replayer = fast(serve, LONG);
    assert!(replayer.request(5..9));
    // The next number shows that the response has begun.
    while !matches!(replayer.poll(), Some(Answer::Fast { number: 5, .. })) {
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(replayer);
    let logout = said.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(logout.contains("|35=5|34=3|"), "{logout}");
}

/// Returns [`counts_of`] where the service sends each packet once.
fn counts(numbers: &'static [u8]) -> Vec<(u32, usize)> {
    counts_of(numbers, 1)
}

/// Requests 5 to 7 of a service that has messages with these numbers, and sends each packet `times`
/// times. Returns the numbers of the response, each with the count of its messages.
fn counts_of(numbers: &'static [u8], times: usize) -> Vec<(u32, usize)> {
    let serve = move |mut stream: TcpStream| {
        read(&mut stream);
        write(&mut stream, &vec![LOGON; times]);
        read(&mut stream);
        let sent = numbers.iter().flat_map(|n| std::iter::repeat_n(n, times));
        let messages: Vec<_> = sent.map(|number| change(*number)).collect();
        let all: Vec<&[u8]> = messages.iter().map(<[u8; 3]>::as_slice).collect();
        write(&mut stream, &all);
        write(&mut stream, &[LOGOUT]);
        read(&mut stream);
    };
    let replayer = fast(serve, LONG);
    assert!(replayer.request(5..8));
    let mut counts = Vec::new();
    let end = loop {
        match replayer.poll() {
            Some(Answer::Fast { number, records }) => counts.push((number, records.len())),
            Some(end) => break end,
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    assert!(matches!(end, Answer::Done), "{end:?}");
    assert_eq!(replayer.shared.waiting.load(Ordering::Relaxed), 0);
    counts
}

#[test]
fn messages_with_one_number_come_together() {
    assert_eq!(counts(&[5, 5, 9, 6, 7, 7, 7]), [(5, 2), (6, 1), (7, 3)]);
}

#[test]
fn messages_of_a_service_that_sends_each_packet_twice_count_once() {
    let twice = counts_of(&[5, 5, 9, 6, 7, 7, 7], 2);
    assert_eq!(twice, [(5, 2), (6, 1), (7, 3)]);
}

#[test]
fn a_number_with_too_many_messages_stays_missing_and_those_behind_it_come() {
    const NUMBERS: [u8; MOST_OF_A_NUMBER + 5] = {
        let mut numbers = [6; MOST_OF_A_NUMBER + 5];
        numbers[0] = 5;
        numbers[MOST_OF_A_NUMBER + 4] = 7;
        numbers
    };
    assert_eq!(counts(&NUMBERS), [(5, 1), (7, 1)]);
}

#[test]
fn messages_that_wait_are_bounded_whatever_their_numbers() {
    let (_sender, requests) = sync_channel(1);
    let (answers, received) = sync_channel(MOST_WAITING);
    let caller = Caller {
        requests,
        answers,
        shared: Arc::default(),
        waker: None,
        stop: Stop::new(),
    };
    let part = |number, len: usize| Answer::Fast {
        number,
        records: (0..len).map(|_| Record::new()).collect(),
    };
    assert!(caller.answer(part(1, MOST_WAITING)));
    caller.stop.raise();
    assert!(!caller.answer(part(2, 1)), "no room");
    assert!(received.try_recv().is_ok() && received.try_recv().is_err());
}

#[test]
fn refusals_and_broken_answers_say_why() {
    let refused = |serve: fn(TcpStream), patience| {
        let replayer = fast(serve, patience);
        assert!(replayer.request(5..7));
        let (numbers, why) = answer(&replayer);
        (numbers, why.unwrap())
    };
    let (numbers, why) = refused(
        |mut stream| {
            read(&mut stream);
            write(&mut stream, &[&[0xc0, 0x82, b'n', b'o' | 0x80]]);
            read(&mut stream);
        },
        LONG,
    );
    assert_eq!(
        (numbers.len(), why.as_str()),
        (0, "the replay refused the Logon: \"no\"")
    );
    let (numbers, why) = refused(
        |mut stream| {
            read(&mut stream);
            // Of the last number, more messages may be missing.
            write(&mut stream, &[LOGON, &change(5), &change(6)]);
            read(&mut stream);
        },
        LONG,
    );
    assert_eq!(
        (numbers.as_slice(), why.as_str()),
        (&[5][..], "the replay closed the connection")
    );
    let (_, why) = refused(
        |mut stream| {
            read(&mut stream);
            write(&mut stream, &[&[0xc0, 0xff]]);
            read(&mut stream);
        },
        LONG,
    );
    assert!(
        why.starts_with("the answer of the replay cannot be decoded: "),
        "{why}"
    );
    let (_, why) = refused(
        |mut stream| {
            read(&mut stream);
            stream.write_all(&[0xff; 4]).unwrap();
            read(&mut stream);
        },
        LONG,
    );
    assert!(why.contains("4294967295"), "{why}");
    let silent = |mut stream: TcpStream| while !read(&mut stream).is_empty() {};
    let (_, why) = refused(silent, Duration::from_millis(300));
    assert_eq!(why, "the replay does not answer");
}

#[test]
fn nobody_there_is_said_at_once() {
    // No other test listens on this address, so that none takes the freed port.
    let closed = TcpListener::bind("127.0.0.79:0").and_then(|gone| gone.local_addr());
    let closed = closed.unwrap();
    let program = Arc::new(Program::parse(XML).unwrap());
    let replayer = Replayer::start(source(closed), Service::fast(program), None).unwrap();
    assert!(replayer.request(5..7));
    let (_, why) = answer(&replayer);
    assert!(
        why.unwrap()
            .starts_with("cannot connect to the replay at 127.0.0.79:")
    );
    let without = Program::parse("<template name='T' id='1'><string name='S'/></template>");
    let service = Service::fast(Arc::new(without.unwrap()));
    let error = Replayer::start(source(closed), service, None).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("no template has a field `auto`"),
        "{error}"
    );
}

#[test]
fn templates_without_a_logon_or_a_logout_are_refused() {
    let check = |xml: &str| {
        let program = Program::parse(xml).unwrap();
        Service::fast(Arc::new(program)).check()
    };
    check(XML).unwrap();
    // A field that is no constant can have either value.
    check(&XML.replace("<constant value=\"A\"/>", "")).unwrap();
    check(&XML.replace("<constant value=\"5\"/>", "<default value=\"0\"/>")).unwrap();
    for (own, name) in [("A", "Logon(A)"), ("5", "Logout(5)")] {
        let xml = XML.replace(&format!("\"{own}\"/>"), "\"0\"/>");
        let why = check(&xml).unwrap_err().to_string();
        assert!(
            why.contains(&format!("MsgType(35) `{own}`: the {name}")),
            "{why}"
        );
    }
    let spectra = Service::fast(Arc::new(Program::spectra()));
    let source = source("127.0.0.1:9".parse().unwrap());
    let error = Replayer::start(source, spectra.clone(), None).unwrap_err();
    assert_eq!(error.to_string(), spectra.check().unwrap_err().to_string());
}

/// A FIX service that has the messages below 5,000.
struct Archive;

impl Handler for Archive {
    fn on_message(&mut self, peer: &mut Peer<'_>, message: &AppMessage<'_>) {
        let message = &message.message;
        assert_eq!(message.msg_type(), b"BW");
        assert_eq!(message.get(1355), Some(&b"OLR"[..]));
        let number = |tag| {
            str::from_utf8(message.get(tag).unwrap())
                .unwrap()
                .parse::<u64>()
        };
        let (first, last) = (
            number(APPL_BEG_SEQ_NUM).unwrap(),
            number(APPL_END_SEQ_NUM).unwrap(),
        );
        let response = if first < 5_000 { b'0' } else { b'2' };
        let acknowledged = peer.send(b"BX", |out| {
            out.str(1353, "1")
                .char(1348, response)
                .str(tag::TEXT, "too new");
        });
        acknowledged.unwrap();
        for number in first..=last.min(4_999) {
            let sent = peer.send(b"X", |out| {
                out.u64(APPL_SEQ_NUM, number).bool(1352, true).u64(268, 0);
            });
            sent.unwrap();
        }
        let report = peer.send(b"BY", |out| {
            out.str(1356, "1").u64(1426, 3);
        });
        report.unwrap();
    }
}

fn archive() -> (SocketAddr, HostHandle, Stop) {
    let mut host = Host::new(Archive).unwrap();
    let (handle, stop) = (host.handle(), Stop::new());
    let flag = stop.clone();
    std::thread::spawn(move || agent::run(&mut host as &mut dyn Agent, Idle::BackOff, &flag));
    let id = SessionId::new(Version::Fixt11, "REPLAY", "US");
    let acceptor = Acceptor::new("127.0.0.1:0".parse().unwrap()).session(Config::new(id));
    let address = handle.listen(acceptor).wait().unwrap();
    (address, handle, stop)
}

#[test]
fn missing_messages_are_asked_for_and_come_in_a_fix_session() {
    let (address, _handle, stop) = archive();
    let replayer = Replayer::start(source(address), Service::Fix, None).unwrap();
    for (range, there) in [(5..9, 5..9), (4_998..5_003, 4_998..5_000)] {
        assert!(replayer.request(range));
        assert_eq!(answer(&replayer), (there.collect(), None));
    }
    assert!(replayer.request(5_000..5_001));
    let (numbers, why) = answer(&replayer);
    assert!(numbers.is_empty());
    assert_eq!(
        why.unwrap(),
        "the replay does not have these messages: \"too new\""
    );
    // More than the channel holds: the session is not read until it has space.
    assert!(replayer.request(1..4_000));
    assert_eq!(answer(&replayer), ((1..4_000).collect(), None));
    stop.raise();
}

#[test]
fn what_was_not_requested_extends_no_timeout_in_fast() {
    let replayer = fast(
        |mut stream| {
            read(&mut stream);
            write(&mut stream, &[LOGON]);
            let nine = [3, 0, 0, 0, 0xc0, 0x83, 0x89];
            while stream.write_all(&nine).is_ok() {
                std::thread::sleep(Duration::from_millis(10));
            }
        },
        Duration::from_millis(300),
    );
    assert!(replayer.request(5..7));
    let (numbers, why) = answer(&replayer);
    assert_eq!(
        (numbers.len(), why.as_deref()),
        (0, Some("the replay does not answer"))
    );
}
