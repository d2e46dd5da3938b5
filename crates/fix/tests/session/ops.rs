//! Any bytes and any calls, in any order: a session never panics, never asks to be called for
//! ever, and never delivers a number twice or out of order.
//!
//! `run` interprets bytes as a list of operations, so that the fuzzer can use it as well.

use fanfare_fix::codec::{SendingTime, SharedBody};
use fanfare_fix::session::{
    Config, Event, Limits, MemoryStore, MessageStore, Now, OverRate, Rate, ReceiveLimit,
    RejectReason, SECOND, Scratch, SendLimit, Session, SessionId, Version,
};
use fanfare_wire::{Precision, UtcTimestamp};

/// Reads operations off the front of arbitrary bytes.
struct Source<'a>(&'a [u8]);

impl<'a> Source<'a> {
    fn byte(&mut self) -> u8 {
        match self.0 {
            [first, rest @ ..] => {
                self.0 = rest;
                *first
            }
            [] => 0,
        }
    }

    fn flag(&mut self) -> bool {
        self.byte() % 2 == 1
    }

    fn bytes(&mut self) -> &'a [u8] {
        let len = usize::from(self.byte()).min(self.0.len());
        let (bytes, rest) = self.0.split_at(len);
        self.0 = rest;
        bytes
    }

    /// Mostly small, sometimes anything.
    fn number(&mut self) -> u64 {
        match self.byte() {
            255 => u64::MAX,
            254 => i64::MAX as u64,
            253 => 999_999,
            small => u64::from(small % 16),
        }
    }
}

struct Driver {
    session: Session<MemoryStore>,
    scratch: Scratch,
    now: Now,
    /// Received and not consumed.
    received: Vec<u8>,
    /// Last number delivered since the numbers last went back.
    delivered: u64,
    version: Version,
    /// Goes through the motions of a message in front of each operation.
    rehearses: bool,
    /// Bytes sent and events.
    trace: Vec<String>,
}

/// Does what `data` says.
pub(crate) fn run(data: &[u8]) {
    traced(data, None);
}

/// The same; with `rehearses` in a store that gives nothing up for want of room, as rehearsals may
/// ask for room sooner than messages.
fn traced(data: &[u8], rehearses: Option<bool>) -> Vec<String> {
    let mut source = Source(data);
    let mut driver = Driver::new(&mut source, rehearses.is_some());
    driver.rehearses = rehearses == Some(true);
    if source.byte() % 4 != 0 {
        // Most runs begin where most of the code is.
        driver.session.connected(driver.now);
        let logon = "35=A|34=1|49=PEER|52=20261120-10:00:00|56=US|98=0|108=9|1137=9";
        driver.received = crate::fields::framed(driver.version.begin_string(), logon);
        driver.confirm();
        driver.session.accept_logon(driver.now);
    }
    while !source.0.is_empty() {
        if driver.rehearses {
            let (now, received) = (driver.now, &driver.received);
            driver.session.rehearse(now, &mut driver.scratch, received);
        }
        driver.step(&mut source);
        driver.confirm();
    }
    driver.transmit(usize::MAX);
    driver.trace
}

impl Driver {
    fn new(source: &mut Source<'_>, roomy: bool) -> Self {
        let version = Version::ALL[usize::from(source.byte()) % Version::ALL.len()];
        let flags = source.byte();
        let mut config = Config::new(SessionId::new(version, "US", "PEER"));
        config.ask_logon = flags & 1 != 0;
        config.next_expected = flags & 2 != 0;
        config.last_processed = flags & 4 != 0;
        config.queue_offline = flags & 8 != 0;
        config.reset_on_logon = flags & 16 != 0;
        config.resend_request_chunk = u64::from(flags >> 5 & 3);
        config.resend_chunk.messages = usize::from(source.byte() % 4);
        config.gap_queue.messages = usize::from(source.byte() % 8);
        config.repeated_resend_limit = u32::from(source.byte() % 8);
        let (rate, limited) = (source.byte(), source.byte());
        let rate = Rate {
            messages: u32::from(rate % 8),
            interval: u64::from(rate) * SECOND / 100,
        };
        if limited & 1 != 0 {
            let queue = usize::from(limited >> 4);
            config.send_limit = Some(SendLimit { rate, queue });
        }
        if limited & 2 != 0 {
            let action = match limited & 4 {
                0 => OverRate::Disconnect,
                _ => OverRate::Reject,
            };
            config.receive_limit = Some(ReceiveLimit { rate, action });
        }
        let limits = Limits {
            messages: 1 + usize::from(source.byte() % 32),
            bytes: 1 << (9 + source.byte() % 8 + u8::from(roomy) * 10),
        };
        let store = MemoryStore::new(limits);
        let session = match flags & 128 == 0 {
            true => Session::acceptor(config, store),
            false => Session::initiator(config, store),
        };
        let utc = UtcTimestamp::from_nanos(1_795_168_800 * SECOND as i64);
        Self {
            session,
            scratch: Scratch::default(),
            now: Now { mono: SECOND, utc },
            received: Vec::new(),
            delivered: 0,
            version,
            rehearses: false,
            trace: Vec::new(),
        }
    }

    fn step(&mut self, source: &mut Source<'_>) {
        let now = self.now;
        match source.byte() % 16 {
            0 => {
                // Bytes of a connection are dropped with it alone.
                if !self.session.is_connected() {
                    self.received.clear();
                }
                self.session.connected(now);
            }
            1 => self.session.disconnected(now),
            2 => self
                .session
                .logout(now, &String::from_utf8_lossy(source.bytes())),
            3 => self.session.accept_logon(now),
            4 => self
                .session
                .refuse_logon(now, &String::from_utf8_lossy(source.bytes())),
            5 => {
                let _ = self.session.reset_sequence(now);
            }
            6 => {
                let value = source.bytes();
                let _ = self.session.send(now, b"B", |body| {
                    body.field(58, value);
                });
            }
            7 => {
                let _ = self.session.test_request(now, source.bytes());
            }
            8 => {
                self.transmit(source.byte().into());
            }
            9 => {
                let nanos = u64::from(source.byte()) * SECOND / 4;
                let jump = if source.flag() {
                    500 * SECOND as i64
                } else {
                    nanos as i64
                };
                let utc = UtcTimestamp::from_nanos(now.utc.nanos() + jump);
                self.now = Now {
                    mono: now.mono + nanos,
                    utc,
                };
            }
            10 => self.received.extend_from_slice(source.bytes()),
            11 => {
                let body = SharedBody::new(b"W", b"55=A\x01").unwrap();
                let time = SendingTime::new(now.utc, Precision::Millis);
                let mut out = [0; 512];
                let _ = self.session.send_shared_into(now, &body, &time, &mut out);
            }
            _ => self.message(source),
        }
    }

    /// A message that is well framed, about half of them sensible.
    fn message(&mut self, source: &mut Source<'_>) {
        let kind = source.byte();
        let seq = match source.byte() {
            small @ 0..=20 => u64::from(small),
            255 => u64::MAX,
            other => self
                .session
                .store()
                .next_target()
                .wrapping_add(u64::from(other % 6) / 3),
        };
        let (a, b) = (source.number(), source.number());
        let flags = source.byte();
        let body = match kind % 10 {
            0 => "35=0".to_owned(),
            1 => format!("35=1|112={a}"),
            2 => format!("35=2|7={a}|16={b}"),
            3 => format!("35=3|45={a}"),
            4 => format!("35=4|36={a}|123={}", if b % 2 == 0 { 'Y' } else { 'N' }),
            5 => "35=5|58=bye".to_owned(),
            6 | 7 => format!("35=A|98=0|108={}|1137=9", a % 60),
            _ => "35=D|11=X".to_owned(),
        };
        let (msg_type, rest) = body.split_once('|').unwrap_or((&body, ""));
        let time = self.now.utc.text(Precision::Millis);
        let mut text = format!("{msg_type}|34={seq}|49=PEER|52={time}|56=US");
        for (bit, field) in [
            (1, "|43=Y"),
            (2, "|141=Y"),
            (4, "|789=3"),
            (8, "|122=20000101-00:00:00"),
        ] {
            if flags & bit != 0 && flags & 128 == 0 {
                text.push_str(field);
            }
        }
        if flags & 64 == 0 {
            text.push('|');
            text.push_str(rest);
        }
        let framed = crate::fields::framed(self.version.begin_string(), &text);
        self.received.extend_from_slice(&framed);
    }

    /// Lets the session do what it wants to, within reason.
    fn confirm(&mut self) {
        for _ in 0..100_000 {
            let step = self
                .session
                .handle_bytes(self.now, &mut self.scratch, &self.received);
            let idle = step.is_idle();
            let consumed = step.consumed;
            self.trace
                .extend(step.event.map(|event| format!("{event:?}")));
            match step.event {
                Some(Event::App(app)) => {
                    assert!(
                        app.seq > self.delivered,
                        "{} after {}",
                        app.seq,
                        self.delivered
                    );
                    self.delivered = app.seq;
                    if app.seq % 5 == 0 {
                        let reason = RejectReason::Other;
                        let _ = self
                            .session
                            .reject(self.now, &app.message, reason, None, "no");
                    }
                }
                Some(Event::LoggedOn { reset: true, .. }) => self.delivered = 0,
                _ => {}
            }
            self.received.drain(..consumed);
            if idle {
                return self.time();
            }
        }
        panic!("never idle");
    }

    /// Transmits at most `most` bytes. The number of pieces does not matter.
    fn transmit(&mut self, mut most: usize) {
        let mut taken = Vec::new();
        while most > 0 && !self.session.poll_transmit().is_empty() {
            let unsent = self.session.poll_transmit();
            let len = unsent.len().min(most);
            taken.extend_from_slice(&unsent[..len]);
            self.session.transmitted(len);
            most -= len;
        }
        self.trace.push(taken.escape_ascii().to_string());
    }

    /// What is due is done, and then is due no more.
    fn time(&mut self) {
        for _ in 0..10_000 {
            match self.session.poll_timeout() {
                Some(due) if due <= self.now.mono => self.session.handle_timeout(self.now),
                _ => return self.drain(),
            }
        }
        panic!("due for ever: {:?}", self.session);
    }

    fn drain(&mut self) {
        for _ in 0..1_000 {
            match self.session.poll_event() {
                Some(Event::LoggedOn { reset: true, .. }) => self.delivered = 0,
                Some(_) => {}
                None => return,
            }
        }
        panic!("events for ever");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        // `PROPTEST_CASES` runs more of them.
        #[test]
        fn any_operations(data in proptest::collection::vec(any::<u8>(), 0..600)) {
            super::run(&data);
        }

        #[test]
        fn rehearsals_change_nothing(data in proptest::collection::vec(any::<u8>(), 0..600)) {
            let trace = super::traced(&data, Some(false));
            prop_assert_eq!(super::traced(&data, Some(true)), trace);
        }
    }
}
