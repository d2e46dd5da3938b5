//! One connection: first in the lobby, until its Logon says who it is, then with a session.

use crate::notice::PeerEnd;
use crate::registry::{Claim, Numbers};
use fanfare_engine::tcp::{Connection, SendError};
use fanfare_fix::session::{MessageStore, NoResendStore, Now, Session};
use std::io::IoSlice;

/// A connection and how far it has come.
pub(crate) struct Peer {
    pub(crate) connection: Connection,
    pub(crate) stage: Stage,
}

/// How far a connection has come.
pub(crate) enum Stage {
    /// Its Logon has not come yet; at this monotonic time it is turned away.
    Lobby { deadline: u64 },
    /// It has a session. Boxed: the lobby is to stay small.
    Live(Box<Live>),
}

/// A session on a connection.
pub(crate) struct Live {
    pub(crate) session: Session<NoResendStore>,
    pub(crate) claim: Claim,
}

impl Live {
    /// Keeps the session's numbers for the next time it logs on.
    pub(crate) fn keep_numbers(&mut self) {
        let store = self.session.store();
        self.claim.numbers = Numbers {
            sender: store.next_sender(),
            target: store.next_target(),
        };
    }

    /// Hands what the session has to say to the connection.
    pub(crate) fn transmit(
        &mut self,
        now: Now,
        connection: &mut Connection,
    ) -> Result<(), PeerEnd> {
        loop {
            let bytes = self.session.poll_transmit();
            if !bytes.is_empty() {
                let len = bytes.len();
                match connection.send(&[IoSlice::new(bytes)]) {
                    Ok(_) => self.session.transmitted(len),
                    Err(SendError::Io(e)) => return Err(PeerEnd::Broken(e.to_string())),
                    Err(SendError::Overflow(full)) => {
                        return Err(PeerEnd::SlowConsumer {
                            queued: full.queued,
                        });
                    }
                }
            } else if self.session.poll_timeout() == Some(0) {
                self.session.handle_timeout(now);
            } else {
                return Ok(());
            }
        }
    }
}
