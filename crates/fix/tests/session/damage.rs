//! One damaged message on a live session, in every version: the application gets none of it, and
//! each order once, in order and unchanged, when what is missing has been sent again.

use fanfare_fix::session::{
    Config, Event, MemoryStore, Now, SECOND, Scratch, Session, SessionId, Version,
};
use fanfare_fix::tag;
use fanfare_wire::UtcTimestamp;

use crate::fields::{first_message, framed, split};

/// Longest message taken.
const MAX_MESSAGE: usize = 512;
/// A length damaged in its first digit swallows up to 900 bytes: that many messages and more.
const ROUNDS: u64 = 24;

/// A session that is logged on, and its counterparty.
struct Line {
    version: Version,
    session: Session<MemoryStore>,
    scratch: Scratch,
    /// Received and not consumed.
    received: Vec<u8>,
    /// ClOrdID and Text of the orders that the application got.
    orders: Vec<String>,
    ended: Option<String>,
}

fn now() -> Now {
    Now {
        mono: SECOND,
        utc: UtcTimestamp::from_nanos(1_795_168_800 * SECOND as i64),
    }
}

impl Line {
    fn new(version: Version) -> Self {
        let config = Config::new(SessionId::new(version, "US", "PEER"));
        let mut session = Session::acceptor(config, MemoryStore::default());
        session.connected(now());
        let mut line = Self {
            version,
            session,
            scratch: Scratch::new(MAX_MESSAGE),
            received: Vec::new(),
            orders: Vec::new(),
            ended: None,
        };
        line.give(&line.message("35=A|34=1", "98=0|108=30|1137=9"));
        assert!(line.session.is_logged_on());
        line
    }

    fn message(&self, front: &str, body: &str) -> Vec<u8> {
        let header = "49=PEER|52=20261120-10:00:00|56=US";
        let fields = format!("{front}|{header}|{body}");
        framed(self.version.begin_string(), &fields)
    }

    fn order(&self, seq: u64, again: bool) -> Vec<u8> {
        let body = format!("11=ORDER-{seq}|55=IBM|54=1|58=number {seq}");
        match again {
            false => self.message(&format!("35=D|34={seq}"), &body),
            true => {
                let front = format!("35=D|34={seq}|43=Y|122=20261120-10:00:00");
                self.message(&front, &body)
            }
        }
    }

    /// The session gets these bytes; the first numbers that it asks for again.
    fn give(&mut self, bytes: &[u8]) -> Vec<u64> {
        self.received.extend_from_slice(bytes);
        let mut at = 0;
        loop {
            let rest = &self.received[at..];
            let step = self.session.handle_bytes(now(), &mut self.scratch, rest);
            at += step.consumed;
            match step.event {
                Some(Event::App(app)) => {
                    let text = |tag| String::from_utf8_lossy(app.message.get(tag).unwrap());
                    let order = format!("{}, {}", text(tag::CL_ORD_ID), text(tag::TEXT));
                    self.orders.push(order);
                }
                Some(Event::Disconnect(why)) => self.ended = Some(why.to_string()),
                None if step.consumed == 0 => break,
                _ => {}
            }
        }
        self.received.drain(..at);
        assert!(self.received.len() <= MAX_MESSAGE, "nothing piles up");
        self.requests()
    }

    fn requests(&mut self) -> Vec<u64> {
        let mut sent = Vec::new();
        while !self.session.poll_transmit().is_empty() {
            sent.extend_from_slice(self.session.poll_transmit());
            let len = self.session.poll_transmit().len();
            self.session.transmitted(len);
        }
        let (mut rest, mut begins) = (sent.as_slice(), Vec::new());
        while let Some((message, behind)) = first_message(rest) {
            let fields = split(message);
            if fields.contains(&(35, "2".to_owned())) {
                let begin = fields.iter().find(|field| field.0 == 7).unwrap();
                begins.push(begin.1.parse().unwrap());
            }
            rest = behind;
        }
        begins
    }
}

/// Order 2 is damaged; orders follow, and what is asked for is sent again.
fn survive(version: Version, what: &str, damage: impl Fn(&mut Vec<u8>)) {
    let mut line = Line::new(version);
    let mut bytes = line.order(2, false);
    damage(&mut bytes);
    let mut asked = line.give(&bytes);
    assert!(
        line.orders.is_empty(),
        "{version}, {what}: {:?}",
        line.orders
    );
    let mut last = 2;
    for seq in 3..3 + ROUNDS {
        last = seq;
        asked.extend(line.give(&line.order(seq, false)));
        while let Some(begin) = asked.pop() {
            for missing in begin..=seq {
                asked.extend(line.give(&line.order(missing, true)));
            }
        }
    }
    assert_eq!(line.ended, None, "{version}, {what}");
    let expected: Vec<_> = (2..=last)
        .map(|seq| format!("ORDER-{seq}, number {seq}"))
        .collect();
    assert_eq!(line.orders, expected, "{version}, {what}");
}

#[test]
fn any_bit_may_flip() {
    for version in Version::ALL {
        let len = Line::new(version).order(2, false).len();
        for bit in 0..len * 8 {
            survive(version, &format!("bit {bit}"), |bytes| {
                bytes[bit / 8] ^= 1 << (bit % 8);
            });
        }
    }
}

#[test]
fn a_message_may_be_cut_off_anywhere() {
    for version in Version::ALL {
        let len = Line::new(version).order(2, false).len();
        for end in 0..len {
            survive(version, &format!("{end} bytes"), |bytes| {
                bytes.truncate(end);
            });
        }
    }
}

#[test]
fn lengths_and_sizes_that_cannot_be() {
    let lengths = [
        "-1",
        "0",
        "1000000000000000000",
        "99999999999999999999999",
        "x",
        "",
    ];
    for version in Version::ALL {
        let begin_string = version.begin_string();
        for length in lengths {
            survive(version, &format!("9={length}"), |bytes| {
                let text = String::from_utf8_lossy(bytes).into_owned();
                let fields = text.splitn(3, '\x01').nth(2).unwrap();
                *bytes = format!("8={begin_string}\x019={length}\x01{fields}").into_bytes();
            });
        }
        let long = "x".repeat(MAX_MESSAGE);
        survive(version, "no end", |bytes| {
            *bytes = format!("8={begin_string}\x019=400\x0135=D\x0134=2\x0158={long}").into_bytes();
        });
        survive(version, "noise", |bytes| {
            *bytes = vec![0xff; 4 * MAX_MESSAGE];
        });
    }
}

/// A resent message would be as long.
#[test]
fn a_message_that_is_too_long_ends_the_session() {
    for version in Version::ALL {
        let mut line = Line::new(version);
        let long = line.message("35=D|34=2", &format!("58={}", "x".repeat(MAX_MESSAGE)));
        line.give(&long);
        let (len, limit) = (long.len(), MAX_MESSAGE);
        let why = format!("a message of {len} bytes is longer than the limit of {limit} bytes");
        assert_eq!(line.ended, Some(why), "{version}");
    }
}
