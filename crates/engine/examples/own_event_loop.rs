//! A session in an event loop of its own: a blocking socket, no host. Logs on, sends News, logs
//! out.
//!
//!     cargo run -p fanfare-engine --example own_event_loop -- 127.0.0.1:9880

use fanfare_engine::clock::Clock;
use fanfare_fix::session::{Config, DisconnectReason, Event, MemoryStore};
use fanfare_fix::session::{Scratch, Session, SessionId, Version};
use fanfare_fix::{msg_type, tag};
use std::io::{ErrorKind, Read, Write};
use std::{error::Error, net::TcpStream, time::Duration};

pub(crate) fn run(mut stream: TcpStream) -> Result<DisconnectReason, Box<dyn Error + Send + Sync>> {
    stream.set_read_timeout(Some(Duration::from_millis(100)))?;
    let id = SessionId::new(Version::Fix44, "LOOP", "EXCHANGE");
    let mut session = Session::initiator(Config::new(id), MemoryStore::default());
    let (mut scratch, mut received, mut buffer) = (Scratch::new(64 << 10), Vec::new(), [0; 4096]);
    let (mut clock, mut over) = (Clock::new(), None);
    session.connected(clock.read()); // writes the Logon
    loop {
        while !session.poll_transmit().is_empty() {
            let count = stream.write(session.poll_transmit())?;
            session.transmitted(count);
        }
        if let Some(reason) = over {
            return Ok(reason);
        }
        match stream.read(&mut buffer) {
            Ok(0) => session.disconnected(clock.read()),
            Ok(count) => received.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        let (now, mut done) = (clock.read(), 0);
        session.handle_timeout(now);
        while let Some(bytes) = received.get(done..).filter(|_| over.is_none()) {
            let step = session.handle_bytes(now, &mut scratch, bytes);
            match step.event {
                Some(Event::LoggedOn { .. }) => {
                    session.send(now, msg_type::NEWS, |n| _ = n.str(tag::HEADLINE, "Hello"))?;
                    session.logout(now, "");
                }
                Some(Event::Disconnect(reason)) => over = Some(reason),
                None if step.consumed == 0 => break,
                _ => {}
            }
            done += step.consumed;
        }
        received.drain(..done);
        if let Some(Event::Disconnect(reason)) = session.poll_event() {
            over = Some(reason);
        }
    }
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:9880".into());
    println!("{}", run(TcpStream::connect(address)?)?);
    Ok(())
}
