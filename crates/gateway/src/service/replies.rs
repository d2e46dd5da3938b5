//! The responses to requests that are refused.

use super::request::Fault;
use fanfare_engine::host::Peer;
use fanfare_fix::codec::Message;
use fanfare_fix::session::{BusinessReason, SendError, Version};

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

/// Sends the BusinessMessageReject(j) that ends a SecurityStatusRequest(e).
pub(super) fn end_status(peer: &mut Peer<'_>, request: &[u8], text: &str) {
    let sent = peer.send(b"j", |out| {
        out.field(372, b"e").field(379, request);
        let reason = BusinessReason::NotAuthorised.code();
        out.u64(380, reason.into()).str(58, text);
    });
    took(sent);
}

/// Responds to a request that is refused.
pub(super) fn fault(peer: &mut Peer<'_>, message: &Message<'_>, fault: &Fault) {
    let now = peer.now();
    let sent = match fault {
        Fault::Reject(reason, tag) => {
            let session = peer.session();
            session.reject(now, message, *reason, Some(*tag), reason.text())
        }
        // The BusinessMessageReject(j) of the session layer names DefaultApplVerID(1137), as
        // QuickFIX's does. No dictionary of FIX.5.0 has that field there, and QuickFIX itself
        // rejects the message.
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
            // An unreadable request has no MDReqID(262) to be refused by.
            let request = message.get(262).unwrap_or_default();
            return refuse(peer, request, *reason, text);
        }
    };
    took(sent);
}

/// Ignores a response that cannot be sent: the session has ended, or its store cannot be written,
/// which ends it.
fn took(sent: Result<u64, SendError>) {
    let _ = sent;
}
