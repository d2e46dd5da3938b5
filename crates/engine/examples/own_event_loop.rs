//! The session in a loop of one's own: a blocking socket, no host, no engine. Logs on, sends one
//! news item, logs out.
//!
//!     cargo run -p fanfare-engine --example own_event_loop -- 127.0.0.1:9880

use fanfare_fix::session::{Config, DisconnectReason, Event, Now, Scratch, Session, SessionId};
use fanfare_fix::session::{MemoryStore, Version};
use fanfare_fix::{msg_type, tag};
use fanfare_wire::UtcTimestamp;
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant, UNIX_EPOCH};
use std::{error::Error, net::TcpStream};

fn now(start: Instant) -> Now {
    let (mono, utc) = (start.elapsed(), UNIX_EPOCH.elapsed().unwrap_or_default());
    let utc = UtcTimestamp::from_nanos(utc.as_nanos() as i64);
    Now {
        mono: mono.as_nanos() as u64,
        utc,
    }
}

pub(crate) fn run(mut stream: TcpStream) -> Result<DisconnectReason, Box<dyn Error + Send + Sync>> {
    stream.set_read_timeout(Some(Duration::from_millis(100)))?;
    let (start, id) = (
        Instant::now(),
        SessionId::new(Version::Fix44, "LOOP", "EXCHANGE"),
    );
    let mut session = Session::initiator(Config::new(id), MemoryStore::default());
    let (mut scratch, mut received, mut buffer) = (Scratch::new(64 << 10), Vec::new(), [0; 4096]);
    let mut over = None;
    session.connected(now(start)); // writes the Logon
    loop {
        while !session.poll_transmit().is_empty() {
            let count = stream.write(session.poll_transmit())?;
            session.transmitted(count);
        }
        if let Some(reason) = over {
            session.disconnected(now(start));
            return Ok(reason);
        }
        match stream.read(&mut buffer) {
            Ok(0) => session.disconnected(now(start)),
            Ok(count) => received.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        session.handle_timeout(now(start));
        let mut done = 0;
        loop {
            let step = session.handle_bytes(now(start), &mut scratch, &received[done..]);
            match step.event {
                Some(Event::LoggedOn { .. }) => {
                    session.send(now(start), msg_type::NEWS, |news| {
                        news.str(tag::HEADLINE, "Good morning")
                            .u64(tag::NO_LINES_OF_TEXT, 1);
                        news.str(tag::TEXT, "The market is open");
                    })?;
                    session.logout(now(start), "");
                }
                Some(Event::Disconnect(reason)) => over = Some(reason),
                None if step.consumed == 0 => break,
                _ => {}
            }
            done += step.consumed;
        }
        received.drain(..done);
        while let Some(event) = session.poll_event() {
            if let Event::Disconnect(reason) = event {
                over = Some(reason);
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:9880".into());
    println!("{}", run(TcpStream::connect(address)?)?);
    Ok(())
}
