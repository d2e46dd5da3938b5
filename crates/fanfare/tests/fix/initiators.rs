//! Tests of the effects of settings of `fanfare fix initiator`: schedules, numbers that continue or
//! restart, several sessions, reconnection.

use crate::common::{Folder, Said};
use crate::initiator::{ANSWERED, answered, finish, settings, start_with};
use crate::server::{Peer, Server};
use fanfare_peers::fix::framed;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{SystemTime, UNIX_EPOCH};

const ORDER: &str = "35=D|11=one|55=IBM|54=1|38=100|40=1|60=20261121-10:00:00|21=1|\n";
const DAY: u64 = 86_400;

fn listener() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
}

/// Returns the seconds since 1970.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_secs()
}

/// Returns the time of day this many minutes from now, in UTC.
fn in_minutes(minutes: i64) -> String {
    in_seconds(minutes * 60)
}

fn in_seconds(seconds: i64) -> String {
    let time = now().wrapping_add_signed(seconds) % DAY;
    format!("{:02}:{:02}:{:02}", time / 3600, time / 60 % 60, time % 60)
}

#[test]
fn outside_its_hours_nobody_connects() {
    let at_night = format!(
        "StartTime={}\nEndTime={}\n",
        in_minutes(120),
        in_minutes(180)
    );
    // 1970 began on a Thursday.
    let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let other_day = days[((now() / DAY + 3) % 7) as usize];
    let other_days = format!("StartTime=00:00:00\nEndTime=23:59:59\nWeekdays={other_day}\n");
    let elsewhere = format!(
        "StartTime={}\nEndTime={}\nTimeZone=+05:30\n",
        in_minutes(-60),
        in_minutes(60)
    );
    let started: Vec<_> = [
        ("night", at_night),
        ("days", other_days),
        ("zone", elsewhere),
    ]
    .into_iter()
    .map(|(name, lines)| {
        let listener = listener();
        let address = listener.local_addr().unwrap();
        let text = settings(&[address], &lines) + "[SESSION]\nBeginString=FIX.4.4\n";
        let args = ["--give-up", "1"];
        let child = start_with(&format!("hours-{name}"), &text, &args);
        (name, listener, child)
    })
    .collect();
    for (name, listener, child) in started {
        let Said {
            code, err: said, ..
        } = finish(child, ORDER);
        assert_eq!(code, 1, "{name}: {said}");
        let why =
            "not logged on for 1 s: FIX.4.4:TW->ISLD: outside the session's hours, which begin at ";
        assert!(said.contains(why), "{name}: {said}");
        listener.set_nonblocking(true).unwrap();
        let nobody = listener.accept().unwrap_err();
        assert_eq!(nobody.kind(), ErrorKind::WouldBlock, "{name}: {said}");
    }
}

/// The session time is from an hour ago to in an hour, in a time zone five and a half hours ahead.
#[test]
fn within_its_hours_elsewhere_it_trades() {
    let server = Server::start(
        "hours-open",
        "[DEFAULT]\nConnectionType=acceptor\nSocketAcceptAddress=127.0.0.1\n\
         SocketAcceptPort=0\nSenderCompID=ISLD\nTargetCompID=TW\n[SESSION]\n\
         BeginString=FIX.4.4\n",
    );
    let lines = format!(
        "StartTime={}\nEndTime={}\nTimeZone=+05:30\n",
        in_minutes(330 - 60),
        in_minutes(330 + 60)
    );
    let text = settings(&[server.address], &lines) + "[SESSION]\nBeginString=FIX.4.4\n";
    let child = start_with("hours-open", &text, &ANSWERED);
    let (_, said) = answered(child, ORDER, 1);
    assert!(said.contains("1 message sent, 1 received"), "{said}");
}

/// Acts as a counterparty that requests everything again after the third order.
fn ask_again(listener: &TcpListener) -> Result<(), String> {
    let (stream, _) = listener.accept().map_err(|error| error.to_string())?;
    let mut peer = Peer::of(stream);
    let mut next = 1;
    let mut send = |peer: &mut Peer, msg_type: &str, body: &str| {
        let time = time();
        let head = format!("35={msg_type}|34={next}|49=ISLD|52={time}|56=TW|");
        next += 1;
        peer.send(&framed("FIX.4.4", &format!("{head}{body}")))
    };
    while let Some(message) = peer.receive()? {
        if message.contains("|35=A|") {
            send(&mut peer, "A", "98=0|108=30|")?;
        } else if message.contains("|34=4|") && !message.contains("|43=Y|") {
            send(&mut peer, "2", "7=1|16=0|")?;
        } else if message.contains("|35=5|") {
            return send(&mut peer, "5", "");
        }
    }
    Err("no Logout".to_owned())
}

#[test]
fn messages_that_are_no_longer_kept_for_a_resend_are_an_error() {
    for (kept, code) in [(1, 1), (3, 0)] {
        let listener = listener();
        let address = listener.local_addr().unwrap();
        let lines = format!("MemoryStoreMessages={kept}\n");
        let text = settings(&[address], &lines) + "[SESSION]\nBeginString=FIX.4.4\n";
        let child = start_with(&format!("not-kept-{kept}"), &text, &["--give-up", "60"]);
        let said = std::thread::scope(|scope| {
            let peer = scope.spawn(|| ask_again(&listener));
            let said = finish(child, &ORDER.repeat(3));
            peer.join().unwrap().unwrap();
            said
        });
        assert_eq!(said.code, code, "{}", said.err);
        let told = "FIX.4.4:TW->ISLD: messages 1 to 3 are no longer kept";
        for line in [
            format!("{told}: gap fill"),
            format!("not sent again: {told}"),
        ] {
            assert_eq!(said.err.contains(&line), code == 1, "{}", said.err);
        }
    }
}

/// A connection of a counterparty, after both Logons.
struct Talk {
    peer: Peer,
    /// The number of its next message.
    next: u64,
}

impl Talk {
    fn log_on(listener: &TcpListener, next: u64) -> Result<Self, String> {
        let (stream, _) = listener.accept().map_err(|error| error.to_string())?;
        let peer = Peer::of(stream);
        let mut talk = Self { peer, next };
        talk.receive()?;
        talk.send("A", "98=0|108=30|")?;
        Ok(talk)
    }

    fn send(&mut self, msg_type: &str, body: &str) -> Result<(), String> {
        let (next, time) = (self.next, time());
        self.next += 1;
        let head = format!("35={msg_type}|34={next}|49=ISLD|52={time}|56=TW|");
        self.peer.send(&framed("FIX.4.4", &format!("{head}{body}")))
    }

    fn receive(&mut self) -> Result<String, String> {
        let message = self.peer.receive()?;
        message.ok_or_else(|| "closed".to_owned())
    }
}

/// Acts as a counterparty that loses its first connection with an order, and requests that again.
/// Returns the order as it comes again.
fn lose_one(listener: &TcpListener) -> Result<String, String> {
    let mut first = Talk::log_on(listener, 1)?;
    first.receive()?;
    let next = first.next;
    drop(first);
    let mut second = Talk::log_on(listener, next)?;
    second.send("2", "7=2|16=0|")?;
    let again = second.receive()?;
    while !second.receive()?.contains("|35=5|") {}
    second.send("5", "")?;
    Ok(again)
}

#[test]
fn a_run_does_not_end_while_a_connection_with_its_messages_is_lost() {
    let listener = listener();
    let address = listener.local_addr().unwrap();
    let session = "[SESSION]\nBeginString=FIX.4.4\nReconnectInterval=4\n";
    let text = settings(&[address], "") + session;
    let child = start_with("lost", &text, &["--wait", "2", "--give-up", "60"]);
    std::thread::scope(|scope| {
        let peer = scope.spawn(|| lose_one(&listener));
        let said = finish(child, ORDER);
        // Does not wait any more if the run has not come again.
        drop(TcpStream::connect(address));
        let again = peer.join().unwrap().unwrap();
        assert!(again.contains("|34=2|43=Y|"), "{again}");
        assert_eq!(said.code, 0, "{}", said.err);
    });
}

/// Acts as a counterparty that ends the connection instead of answering the Logout.
fn hang_up(listener: &TcpListener) -> Result<(), String> {
    let mut talk = Talk::log_on(listener, 1)?;
    while !talk.receive()?.contains("|35=5|") {}
    Ok(())
}

#[test]
fn an_unanswered_logout_is_an_error() {
    let listener = listener();
    let address = listener.local_addr().unwrap();
    let text = settings(&[address], "") + "[SESSION]\nBeginString=FIX.4.4\n";
    let child = start_with("unanswered", &text, &["--wait", "0", "--give-up", "60"]);
    let said = std::thread::scope(|scope| {
        let peer = scope.spawn(|| hang_up(&listener));
        let said = finish(child, ORDER);
        peer.join().unwrap().unwrap();
        said
    });
    let last = "FIX.4.4:TW->ISLD: connection lost: messages may not have arrived";
    assert!(said.code == 1 && said.err.contains(last), "{}", said.err);
}

/// Acts as a counterparty that answers the Logout.
fn see_off(listener: &TcpListener) -> Result<(), String> {
    let mut talk = Talk::log_on(listener, 1)?;
    while !talk.receive()?.contains("|35=5|") {}
    talk.send("5", "")
}

#[test]
fn an_answered_logout_at_the_end_of_the_hours_is_no_error() {
    let listener = listener();
    let address = listener.local_addr().unwrap();
    let hours = format!(
        "StartTime={}\nEndTime={}\n",
        in_minutes(-60),
        in_seconds(10)
    );
    let text = settings(&[address], &hours) + "[SESSION]\nBeginString=FIX.4.4\n";
    let child = start_with("night-falls", &text, &["--wait", "14", "--give-up", "60"]);
    let said = std::thread::scope(|scope| {
        let peer = scope.spawn(|| see_off(&listener));
        let said = finish(child, ORDER);
        // Does not wait any more if nobody has come.
        drop(TcpStream::connect(address));
        peer.join().unwrap().unwrap();
        said
    });
    assert_eq!(said.code, 0, "{}", said.err);
}

#[test]
fn a_counterparty_that_does_not_read_is_given_up() {
    let listener = listener();
    let address = listener.local_addr().unwrap();
    let text = settings(&[address], "") + "[SESSION]\nBeginString=FIX.4.4\nLogoutTimeout=1\n";
    let child = start_with("deaf", &text, &["--give-up", "2"]);
    // More than the kernel holds.
    let news = format!("35=B|148=x|33=1|58={}|\n", "x".repeat(50_000)).repeat(400);
    let said = std::thread::scope(|scope| {
        let peer = scope.spawn(|| Talk::log_on(&listener, 1));
        let said = finish(child, &news);
        drop(peer.join().unwrap().unwrap());
        said
    });
    let why = "FIX.4.4:TW->ISLD: nothing was transmitted for 2 s";
    assert!(said.code == 1 && said.err.contains(why), "{}", said.err);
}

/// Acts as the counterparty of one run. Returns MsgSeqNum(34) of the Logon, and whether it resets.
/// The counterparty's numbers begin with `next`, or with 1 after a reset.
fn meet(listener: &TcpListener, next: u64) -> Result<(String, bool), String> {
    let (stream, _) = listener.accept().map_err(|error| error.to_string())?;
    let mut peer = Peer::of(stream);
    let said = peer.receive()?.ok_or("no Logon")?;
    let number = said.split('|').find_map(|field| field.strip_prefix("34="));
    let number = number.ok_or("no 34")?.to_owned();
    let resets = said.contains("|141=Y|");
    let mut next = if resets { 1 } else { next };
    let flag = if resets { "141=Y|" } else { "" };
    let mut send = |peer: &mut Peer, msg_type: &str, body: &str| {
        let time = time();
        let head = format!("35={msg_type}|34={next}|49=ISLD|52={time}|56=TW|");
        next += 1;
        peer.send(&framed("FIX.4.4", &format!("{head}{body}")))
    };
    send(&mut peer, "A", &format!("98=0|108=30|{flag}"))?;
    while let Some(message) = peer.receive()? {
        if message.contains("|35=5|") {
            send(&mut peer, "5", "")?;
            break;
        }
    }
    Ok((number, resets))
}

/// Returns the current time, for SendingTime(52).
fn time() -> String {
    let time = fanfare_wire::UtcTimestamp::from_nanos(now() as i64 * 1_000_000_000);
    time.text(fanfare_wire::Precision::Seconds).to_string()
}

#[test]
fn numbers_go_on_or_begin_anew() {
    // A run sends Logon, an order and Logout; the counterparty responds to two of them.
    for (name, lines, second, next) in [
        ("kept", "", ("4", false), 3),
        ("logon", "ResetOnLogon=Y\n", ("1", true), 1),
        ("logout", "ResetOnLogout=Y\n", ("1", true), 1),
        ("disconnect", "ResetOnDisconnect=Y\n", ("1", true), 1),
    ] {
        let listener = listener();
        let store = Folder::new(&format!("numbers-{name}-store"));
        let lines = format!("{lines}FileStorePath={}\n", store.path().display());
        let address = listener.local_addr().unwrap();
        let text = settings(&[address], &lines) + "[SESSION]\nBeginString=FIX.4.4\n";
        let mut logons = Vec::new();
        for next in [1, next] {
            let args = ["--wait", "0", "--give-up", "60"];
            let child = start_with(&format!("numbers-{name}"), &text, &args);
            let met = std::thread::scope(|scope| {
                let peer = scope.spawn(|| meet(&listener, next));
                let Said {
                    code, err: said, ..
                } = finish(child, ORDER);
                assert_eq!(code, 0, "{name}: {said}");
                peer.join().unwrap()
            });
            logons.push(met.unwrap());
        }
        assert_eq!(logons[0].0, "1", "{name}");
        assert_eq!(logons[1], (second.0.to_owned(), second.1), "{name}");
    }
}

#[test]
fn sessions_of_one_file_have_their_own_messages() {
    let server = Server::start(
        "initiators-several",
        "[DEFAULT]\nConnectionType=acceptor\nSocketAcceptAddress=127.0.0.1\n\
         SocketAcceptPort=0\nSenderCompID=ISLD\nTargetCompID=TW\n\
         [SESSION]\nBeginString=FIX.4.4\nTargetSubID=A\n\
         [SESSION]\nBeginString=FIX.4.4\nTargetSubID=B\n\
         [SESSION]\nBeginString=FIX.4.2\nTargetCompID=OTHER\n",
    );
    let text = settings(&[server.address], "")
        + "[SESSION]\nBeginString=FIX.4.4\nSenderSubID=A\nSessionQualifier=first\n\
           [SESSION]\nBeginString=FIX.4.4\nSenderSubID=B\n\
           [SESSION]\nBeginString=FIX.4.2\nSenderCompID=OTHER\n";
    let to = |header: &str| ORDER.replace("35=D|", &format!("35=D|{header}"));
    let orders = ["", "49=OTHER|56=ISLD|", "49=TW|56=ISLD|50=B|"]
        .map(to)
        .concat();
    let child = start_with("several", &text, &ANSWERED);
    let (answers, said) = answered(child, &orders, 3);
    for session in [
        "FIX.4.4:TW/A->ISLD:first",
        "FIX.4.4:TW/B->ISLD",
        "FIX.4.2:OTHER->ISLD",
    ] {
        assert!(said.contains(&format!("{session}: logged on")), "{said}");
    }
    assert!(said.contains("3 messages sent, 3 received"), "{said}");
    let to = |name: &str| {
        let mut to: Vec<_> = answers
            .iter()
            .filter_map(|a| a["fields"][name].as_str())
            .collect();
        to.sort_unstable();
        to
    };
    assert_eq!(to("TargetCompID"), ["OTHER", "TW", "TW"]);
    assert_eq!(to("TargetSubID"), ["A", "B"]);
}

#[test]
fn who_is_turned_away_comes_again() {
    let listener = listener();
    let address = listener.local_addr().unwrap();
    let text = settings(&[address], "") + "[SESSION]\nBeginString=FIX.4.4\n";
    let child = start_with("again", &text, &["--wait", "0", "--give-up", "60"]);
    let met = std::thread::scope(|scope| {
        let peer = scope.spawn(|| {
            drop(listener.accept());
            meet(&listener, 1)
        });
        let Said {
            code, err: said, ..
        } = finish(child, ORDER);
        assert_eq!(code, 0, "{said}");
        peer.join().unwrap()
    });
    // The Logon without a response had a number, too.
    assert_eq!(met, Ok(("2".to_owned(), false)));
}
