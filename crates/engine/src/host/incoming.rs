//! Connections whose Logon has arrived.

use super::allow::AllowList;
use super::hosted::contained;
use super::names::{CertificateNames, ClientNames};
use super::permits::Permit;
use super::refusal::Refusal;
use super::templates::header_fields;
use super::transport::Transport;
use fanfare_fix::session::{Config, MemoryStore, Now, Scratch, Session, SessionId, SubIds};
use std::io::{self, IoSlice};
use std::net::SocketAddr;

/// A connection whose Logon has arrived. Dropping it closes the connection.
pub struct Incoming {
    pub(super) transport: Transport,
    /// The Logon, and perhaps further bytes.
    pub(super) bytes: Vec<u8>,
    pub(super) permit: Option<Permit>,
    pub(super) id: SessionId,
    pub(super) sub: SubIds,
}

impl Incoming {
    /// Returns the identity of the session that the Logon names, from our side, without SubIDs and
    /// LocationIDs.
    #[must_use]
    pub const fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns the SubIDs and LocationIDs of the Logon, from our side.
    #[must_use]
    pub const fn sub_ids(&self) -> &SubIds {
        &self.sub
    }

    /// Returns the client's address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.transport.peer()
    }

    /// Returns the names of the client's certificate, if it has one.
    ///
    /// # Errors
    /// The certificate cannot be read.
    pub fn certificate(&self) -> io::Result<Option<CertificateNames>> {
        self.transport.peer_names()
    }

    /// Returns the bytes received: the Logon, and perhaps further ones.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the configuration of the session that the Logon names: that of `template`, with the
    /// identity, SubIDs and LocationIDs of the Logon and the precision of its version.
    #[must_use]
    pub fn config(&self, template: &Config) -> Config {
        let sub = self.sub_ids().clone();
        Config {
            precision: self.id().version.precision(),
            header_fields: header_fields(template, &sub),
            id: self.id().clone().with_sub_ids(sub),
            ..template.clone()
        }
    }

    /// Checks that the client has an address of these networks, and that its certificate admits it
    /// to the session `id`.
    pub(super) fn check_client(
        &self,
        allow: &AllowList,
        names: &ClientNames,
        id: &SessionId,
    ) -> Result<(), Refusal> {
        if !allow.allows(self.address().ip()) {
            return Err(Refusal::NotAllowed);
        }
        check_names(names, id, self.certificate()?.as_ref())
    }

    /// Checks that the client's certificate admits it to the session that the Logon names. A client
    /// without a certificate is refused only by a list of names.
    ///
    /// # Errors
    /// The certificate does not admit the client, or cannot be read.
    pub fn check_certificate(&self, names: &ClientNames) -> Result<(), Refusal> {
        check_names(names, self.id(), self.certificate()?.as_ref())
    }

    /// Responds to the Logon with a Logout that has this Text(58), as far as the connection takes
    /// it at once, and closes the connection. `config` belongs to the session of the Logon. The
    /// Logout has MsgSeqNum(34) 0, as it belongs to no session: a counterparty that counts only a
    /// Logout with the expected number, as QuickFIX/J does, does not count this one. QuickFIX C++
    /// counts each, and has to begin its numbers at 1 again (ResetOnLogon=Y).
    pub fn refuse(&mut self, config: &Config, now: Now, text: &str) {
        let config = Config {
            ask_logon: true,
            credentials: None,
            // It compares numbers, and there are none.
            next_expected: false,
            admin_hook: config.admin_hook.clone().map(contained),
            ..config.clone()
        };
        let mut session = Session::acceptor(config, MemoryStore::without_resends(LOGOUT_ROOM));
        session.refuse_unnumbered(true);
        session.connected(now);
        let mut scratch = Scratch::new(self.bytes.len());
        session.handle_bytes(now, &mut scratch, &self.bytes);
        session.refuse_logon(now, text);
        let transport = &mut self.transport;
        // The connection is closed in any case.
        let sent = transport.send(&[IoSlice::new(session.poll_transmit())]);
        let _ = sent.and_then(|_| transport.flush());
        let _ = transport.finish();
    }
}

/// Capacity for a Logout without a session, in bytes.
const LOGOUT_ROOM: usize = 4 << 10;

impl std::fmt::Debug for Incoming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Incoming")
            .field("id", &self.id)
            .field("address", &self.address())
            .finish_non_exhaustive()
    }
}

/// Checks that the certificate admits its client to the session. A client without one is refused
/// only by a list of names.
fn check_names(
    names: &ClientNames,
    id: &SessionId,
    certificate: Option<&CertificateNames>,
) -> Result<(), Refusal> {
    let is_admitted = match certificate {
        Some(certificate) => names.admit(id, certificate),
        None => !matches!(names, ClientNames::Listed(_)),
    };
    if is_admitted {
        return Ok(());
    }
    Err(Refusal::Certificate {
        session: id.clone(),
        names: certificate.cloned().unwrap_or_default(),
    })
}
