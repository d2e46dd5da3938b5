//! News from the terminal: a thread reads lines and sends each, while the host's own thread serves
//! the session.
//!
//!     cargo run -p fanfare-engine --example other_threads -- 127.0.0.1:9880

use fanfare_engine::agent;
use fanfare_engine::host::{Handler, Host, Initiator, Peer, SessionHandle, Undone};
use fanfare_engine::{idle::Idle, stop::Stop};
use fanfare_fix::session::{AppMessage, Config, SessionId, Version};
use fanfare_fix::{msg_type, tag};
use std::{error::Error, io::BufRead, thread, time::Duration};

/// Prints received messages, and those that could not be sent.
pub(crate) struct Desk;

impl Handler for Desk {
    fn on_message(&mut self, _: &mut Peer<'_>, message: &AppMessage<'_>) {
        println!("{:?}", message.message);
    }

    fn on_undone(&mut self, undone: &Undone<'_>) {
        eprintln!("{undone}");
    }
}

/// Sends each line that is not empty; a full queue or a session that has ended is an error.
pub(crate) fn send_lines(
    mut session: SessionHandle,
    lines: impl BufRead,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    for line in lines.lines() {
        let line = line?;
        if !line.is_empty() {
            session.send(msg_type::NEWS, |news| {
                news.str(tag::HEADLINE, &line).u64(tag::NO_LINES_OF_TEXT, 1);
                news.str(tag::TEXT, &line);
            })?;
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:9880".into());
    let id = SessionId::new(Version::Fix44, "DESK", "EXCHANGE");
    let mut host = Host::new(Desk)?;
    let initiator = Initiator::new(Config::new(id.clone()), vec![address.parse()?]);
    host.initiate(initiator)?;
    let (session, stop) = (host.handle().session(&id)?, Stop::on_interrupt()?);
    let failed = stop.clone();
    // It is not joined: it may be waiting for a line.
    thread::spawn(move || {
        if let Err(error) = send_lines(session, std::io::stdin().lock()) {
            eprintln!("{error}");
            failed.raise();
        }
    });
    agent::run(&mut host, Idle::Wait(Duration::from_secs(1)), &stop)
}
