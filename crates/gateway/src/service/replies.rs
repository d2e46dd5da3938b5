//! Answers to requests that are not done.

use super::request::Fault;
use fanfare_engine::host::Peer;
use fanfare_fix::codec::Message;
use fanfare_fix::session::{SendError, Version};

/// Sends MarketDataRequestReject(Y).
pub(super) fn refuse(peer: &mut Peer<'_>, request: &[u8], reason: Option<u8>, text: &str) {
    let sent = peer.send(b"Y", |out| {
        out.field(262, request);
        if let Some(reason) = reason {
            out.char(281, reason);
        }
        out.str(58, text);
    });
    took(sent);
}

/// Answers a request that cannot be done.
pub(super) fn fault(peer: &mut Peer<'_>, message: &Message<'_>, fault: &Fault) {
    let now = peer.now();
    let sent = match fault {
        Fault::Reject(reason, tag) => {
            let session = peer.session();
            session.reject(now, message, *reason, Some(*tag), reason.text())
        }
        // That of the session names DefaultApplVerID(1137), as QuickFIX's does, which no dictionary
        // of FIX.5.0 has there: QuickFIX itself rejects it.
        Fault::Business(reason, text) if peer.id().version == Version::Fixt11 => {
            peer.send(b"j", |out| {
                out.u64(45, message.u64(34).unwrap_or_default());
                out.field(372, message.msg_type());
                out.u64(380, reason.code().into()).str(58, text);
            })
        }
        Fault::Business(reason, text) => {
            let session = peer.session();
            session.reject_business(now, message, *reason, text)
        }
        Fault::Refused(reason, text) => {
            // What could not be read has no MDReqID(262) to be refused by.
            let request = message.get(262).unwrap_or_default();
            return refuse(peer, request, *reason, text);
        }
    };
    took(sent);
}

/// An answer that cannot be sent: the session is over, or its store cannot be written, which ends
/// it.
fn took(sent: Result<u64, SendError>) {
    let _ = sent;
}
