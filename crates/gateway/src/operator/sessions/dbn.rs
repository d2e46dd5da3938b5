//! The clients of DBN among the sessions, which have a number instead of CompIDs.

use super::GatewayOperator;
use crate::operator::which::{DBN, Which};
use crate::users::dbn_seat::DbnSeat;
use fanfare_market::dbn::live::LiveSchema;
use fanfare_operator::iso_of;
use fanfare_wire::text::Escaped;
use serde_json::{Value, json};
use std::sync::Arc;

/// Returns the clients of DBN that match: none if a CompID is given.
pub(super) fn seats(operator: &GatewayOperator, which: &Which) -> Vec<Arc<DbnSeat>> {
    operator.gateway.dbn_sessions(|seat| seat.is(which))
}

/// Formats a client. The fields that it does not have are null.
pub(super) fn described(seat: &DbnSeat) -> Value {
    let (logon, reading) = (&seat.logon, seat.reading());
    let schemas = reading.schemas.iter().map(LiveSchema::name);
    json!({
        "port": DBN,
        "session": logon.session.to_string(),
        "version": "DBN.3",
        "sender": Escaped::text(&logon.client).to_string(),
        "target": null,
        "user": &*logon.user,
        "peer": logon.peer.to_string(),
        "since": iso_of(logon.since),
        "logged_on": reading.is_started,
        "next_sender": null,
        "next_target": null,
        "queued_bytes": reading.queued,
        "last_heard_ms": null,
        "round_trip_us": null,
        "lag_ms": null,
        "conflated": 0,
        "skipped": reading.skipped,
        "subscriptions": null,
        "schemas": schemas.collect::<Vec<_>>(),
        "instruments": reading.instruments,
    })
}
