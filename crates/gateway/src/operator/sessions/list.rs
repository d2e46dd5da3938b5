//! The command that lists sessions.

use super::select::{self, ANY_PORT, SENDER, SESSION, TARGET, USER};
use super::{GatewayOperator, dbn, of};
use crate::operator::pages::{AFTER, LIMIT, NEXT, TOTAL, page};
use crate::operator::which::DBN;
use crate::users::PortName;
use crate::users::dbn_seat::DbnSeat;
use crate::users::roster::Seat;
use fanfare_engine::clock;
use fanfare_operator::Shape::{Count, Flag, List, Maybe, Object, OneOf, Text, Time};
use fanfare_operator::{Ask, Field, OperatorError, Outcome, Row, Shape, iso_of};
use fanfare_wire::text::Escaped;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::sync::Arc;

const SORT: Field = Field::one_of(
    "sort",
    "Order: by name, or by the longest lag or queue first, in one page.",
    &["name", "lag", "queue"],
);

pub(super) const LIST: Row<GatewayOperator> = Row::look(
    "sessions",
    "The connected sessions, with numbers and queues of up to a few seconds ago.",
    &[SESSION, SENDER, TARGET, USER, ANY_PORT, SORT, AFTER, LIMIT],
    list,
)
.returns(SESSIONS);

/// A session of either kind.
enum Listed {
    Fix(Arc<Seat>),
    Dbn(Arc<DbnSeat>),
}

/// The sort key of sessions, which is also the end of a page.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    port: &'static str,
    /// The number of a session of DBN, or 0.
    number: u64,
    /// The name of another session, or an empty text.
    name: String,
}

/// The measure by which the worst sessions are sorted.
#[derive(Clone, Copy)]
enum Measure {
    Lag,
    Queue,
}

impl Listed {
    fn key(&self) -> Key {
        match self {
            Self::Fix(seat) => Key {
                port: seat.port.name(),
                number: 0,
                name: seat.id.to_string(),
            },
            Self::Dbn(seat) => Key {
                port: DBN,
                number: seat.logon.session,
                name: String::new(),
            },
        }
    }

    fn measure(&self, what: Measure) -> u64 {
        match (self, what) {
            (Self::Fix(seat), Measure::Lag) => seat.reading().lag,
            (Self::Fix(seat), Measure::Queue) => seat.reading().queued,
            // The age of its queued bytes is not known.
            (Self::Dbn(_), Measure::Lag) => 0,
            (Self::Dbn(seat), Measure::Queue) => seat.reading().queued,
        }
    }

    /// Formats its state, at a time in nanoseconds since 1970.
    fn described(&self, now: u64) -> Value {
        match self {
            Self::Fix(seat) => described(seat, now),
            Self::Dbn(seat) => dbn::described(seat),
        }
    }
}

fn list(operator: &GatewayOperator, ask: &Ask) -> Outcome {
    let page = page(ask)?;
    let which = select::any(ask);
    let seats = select::seats(operator, &which);
    let of_dbn = dbn::seats(operator, &which).into_iter().map(Listed::Dbn);
    let mut all: Vec<_> = seats.into_iter().map(Listed::Fix).chain(of_dbn).collect();
    let total = all.len();
    let measure = match ask.text("sort") {
        Some("lag") => Some(Measure::Lag),
        Some("queue") => Some(Measure::Queue),
        _ => None,
    };
    let mut next = None;
    match (measure, &page.after) {
        (Some(_), Some(_)) => {
            return Err(OperatorError::usage("`after` needs the order by name"));
        }
        (Some(measure), None) => {
            all.sort_by_cached_key(|own| (Reverse(own.measure(measure)), own.key()));
            all.truncate(page.limit);
        }
        (None, after) => {
            let after = after.as_deref().map(Key::read).transpose()?;
            all.retain(|own| after.as_ref().is_none_or(|after| own.key() > *after));
            all.sort_by_cached_key(Listed::key);
            let has_more = all.len() > page.limit;
            all.truncate(page.limit);
            next = all.last().filter(|_| has_more).map(|own| own.key().text());
        }
    }
    let now = clock::utc();
    let rows: Vec<_> = all.iter().map(|own| own.described(now)).collect();
    Ok(json!({ "total": total, "next": next, "sessions": rows }))
}

impl Key {
    /// Formats the key.
    fn text(&self) -> String {
        let Self { port, number, name } = self;
        match *port {
            DBN => format!("{port} {number}"),
            _ => format!("{port} {name}"),
        }
    }

    /// Parses a key.
    fn read(text: &str) -> Result<Self, OperatorError> {
        let read = || {
            let (port, name) = text.split_once(' ')?;
            if port == DBN {
                return Some(Self {
                    port: DBN,
                    number: name.parse().ok()?,
                    name: String::new(),
                });
            }
            let mut all = PortName::ALL.into_iter();
            let port = all.find(|own| own.name() == port)?;
            Some(Self {
                port: port.name(),
                number: 0,
                name: name.to_owned(),
            })
        };
        read().ok_or_else(|| OperatorError::usage("`after` must be the `next` of an answer"))
    }
}

fn described(seat: &Seat, now: u64) -> Value {
    let reading = seat.reading();
    let heard = (reading.last_heard != 0).then(|| now.saturating_sub(reading.last_heard));
    json!({
        "port": seat.port.name(),
        "session": seat.id.to_string(),
        "version": seat.id.version.begin_string(),
        "sender": Escaped::text(&seat.id.target).to_string(),
        "target": Escaped::text(&seat.id.sender).to_string(),
        "user": &*seat.user,
        "peer": seat.peer.to_string(),
        "since": iso_of(seat.since),
        "logged_on": reading.is_logged_on,
        "next_sender": reading.next_sender,
        "next_target": reading.next_target,
        "queued_bytes": reading.queued,
        "last_heard_ms": heard.map(|nanos| nanos / 1_000_000),
        "round_trip_us": reading.round_trip.map(|nanos| nanos / 1000),
        "lag_ms": reading.lag / 1_000_000,
        "conflated": reading.served.conflated,
        "skipped": reading.served.skipped,
        "subscriptions": reading.served.subscriptions,
    })
}

const PORTS: &[&str] = &["producers", "consumers", DBN];

const SESSIONS: Shape = Object(&[
    TOTAL,
    NEXT,
    of(
        "sessions",
        List(&SESSION_SHAPE),
        "The sessions, in the requested order.",
    ),
]);

const SESSION_SHAPE: Shape = Object(&[
    of("port", OneOf(PORTS), "The port of the session."),
    of("session", Text, "The name of the session, from this side."),
    of("version", Text, "BeginString(8), or `DBN.3`."),
    of(
        "sender",
        Text,
        "SenderCompID(49) of the Logon; of DBN, the client's name for itself.",
    ),
    of(
        "target",
        Maybe(&Text),
        "TargetCompID(56) of the Logon; of DBN, null.",
    ),
    of("user", Text, "The user of the session; empty: no user."),
    of("peer", Text, "Address of the counterparty."),
    of("since", Time, "Time of the Logon."),
    of(
        "logged_on",
        Flag,
        "Whether messages may be sent; of DBN, whether the client has started its session.",
    ),
    of(
        "next_sender",
        Maybe(&Count),
        "The next MsgSeqNum(34) to the counterparty; of DBN, null.",
    ),
    of(
        "next_target",
        Maybe(&Count),
        "The next MsgSeqNum(34) from the counterparty; of DBN, null.",
    ),
    of("queued_bytes", Count, "Bytes queued for the session."),
    of(
        "last_heard_ms",
        Maybe(&Count),
        "Milliseconds since the last message received.",
    ),
    of(
        "round_trip_us",
        Maybe(&Count),
        "Microseconds from the last TestRequest(1) to its answer; null before the first, and of \
         DBN.",
    ),
    of(
        "lag_ms",
        Maybe(&Count),
        "Least age of the oldest queued byte, in milliseconds; of DBN, null.",
    ),
    of(
        "conflated",
        Count,
        "Updates merged into later ones, because the session was behind.",
    ),
    of(
        "skipped",
        Count,
        "Messages, or records of DBN, omitted and announced, because the session was behind.",
    ),
    of(
        "subscriptions",
        Maybe(&Count),
        "Open requests for market data; of DBN, null.",
    ),
    of("schemas", List(&Text), "Schemas of a client of DBN.").optional(),
    of(
        "instruments",
        Count,
        "Instruments that a client of DBN has subscribed to individually.",
    )
    .optional(),
]);
