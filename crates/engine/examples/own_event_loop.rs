//! The session in a loop of one's own: blocking sockets, no host, no engine. Logs on, sends one
//! news item, logs out.
//!
//!     cargo run -p fanfare-engine --example own_event_loop -- 127.0.0.1:9880

use fanfare_fix::session::{
    Config, DisconnectReason, Event, MemoryStore, Now, Scratch, Session, SessionId, Version,
};
use fanfare_wire::UtcTimestamp;
use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

fn now(start: Instant) -> Now {
    let utc = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let utc = UtcTimestamp::from_nanos(i64::try_from(utc.as_nanos()).unwrap_or(i64::MAX));
    Now {
        mono: u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX),
        utc,
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("own_event_loop: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:9880".to_owned());
    let mut stream = TcpStream::connect(&address).map_err(|error| format!("{address}: {error}"))?;
    stream.set_read_timeout(Some(Duration::from_millis(100)))?;
    let start = Instant::now();
    let id = SessionId::new(Version::Fix44, "LOOP", "EXCHANGE");
    let mut session = Session::initiator(Config::new(id), MemoryStore::default());
    let (mut scratch, mut received) = (Scratch::new(64 << 10), Vec::new());
    session.connected(now(start)); // writes the Logon
    let reason = loop {
        while !session.poll_transmit().is_empty() {
            let count = stream.write(session.poll_transmit())?;
            session.transmitted(count);
        }
        if let Some(reason) = ended(&mut session) {
            break reason;
        }
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer) {
            Ok(0) => session.disconnected(now(start)),
            Ok(count) => received.extend_from_slice(buffer.get(..count).unwrap_or(&[])),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(reason) = understand(&mut session, &mut scratch, &mut received, now(start))? {
            break reason;
        }
        session.handle_timeout(now(start));
    };
    while !session.poll_transmit().is_empty() {
        let count = stream.write(session.poll_transmit())?;
        session.transmitted(count);
    }
    session.disconnected(now(start));
    println!("{reason}");
    Ok(())
}

/// Events that came without bytes: only the end is of interest here.
fn ended(session: &mut Session<MemoryStore>) -> Option<DisconnectReason> {
    std::iter::from_fn(|| session.poll_event()).find_map(|event| match event {
        Event::Disconnect(reason) => Some(reason),
        _ => None,
    })
}

/// Feeds the session; says why it ended, if it did.
fn understand(
    session: &mut Session<MemoryStore>,
    scratch: &mut Scratch,
    received: &mut Vec<u8>,
    now: Now,
) -> Result<Option<DisconnectReason>, Box<dyn Error>> {
    let mut done = 0;
    loop {
        let step = session.handle_bytes(now, scratch, received.get(done..).unwrap_or(&[]));
        if step.is_idle() {
            break;
        }
        done += step.consumed;
        match step.event {
            Some(Event::LoggedOn { .. }) => {
                session.send(now, b"B", |news| {
                    news.str(148, "Good morning")
                        .u64(33, 1)
                        .str(58, "The market is open");
                })?;
                session.logout(now, "");
            }
            Some(Event::Disconnect(reason)) => return Ok(Some(reason)),
            Some(other) => println!("{other:?}"),
            None => {}
        }
    }
    received.drain(..done);
    Ok(None)
}
