//! FIX messages as samples: one topic for each MsgType(35), keyed by Symbol(55).

use crate::dds::channels::Identity;
use crate::dds::entry::{Entry, MAX_CHANNEL};
use crate::fanout::hole::{Hole, Missing};
use crate::fanout::stamp::Stamp;
use fanfare_dds::cdr::{CdrBuffer, CdrError, CdrReader};
use fanfare_dds::types::{Kind, StructType};
use fanfare_fix::codec::{Decoder, FrameFinder, SharedBody};
use fanfare_fix::{msg_type, tag};
use fanfare_wire::FieldIndex;
use std::ops::Range;

/// The most bytes that a sample takes besides Symbol, MsgType and body.
pub(crate) const OVERHEAD: usize = 256 + MAX_CHANNEL;

/// The most bytes of header and trailer around a body that is checked.
const ENVELOPE: usize = 64;

/// The name of the type of topics with FIX messages.
pub const FIX_MESSAGE: &str = "Fanfare::FixMessage";

/// Returns the type of all topics with FIX messages.
#[must_use]
pub fn sample_type() -> StructType {
    StructType::new(FIX_MESSAGE)
        .key("Symbol", Kind::String(None))
        .member("MsgType", Kind::String(None))
        .member("Origin", Kind::UInt64)
        .member("Number", Kind::UInt64)
        .member("IngressTime", Kind::Int64)
        .member("Body", Kind::Sequence(Box::new(Kind::Byte), None))
        .member("Channel", Kind::String(None))
        .member("Epoch", Kind::UInt64)
        .member("FeedNumber", Kind::UInt64)
        .member("FeedIndex", Kind::UInt32)
        .member("Order", Kind::UInt64)
        .member("Types", Kind::String(None))
        .member("Missing", Kind::String(None))
        .member("MissingCount", Kind::UInt64)
        .member("MissingFirst", Kind::UInt64)
        .member("MissingLast", Kind::UInt64)
}

/// Returns the topic of a MsgType(35).
pub(crate) fn topic_name(prefix: &str, msg_type: &str) -> String {
    format!("{prefix}_{msg_type}")
}

/// Writes a sample, and returns its bytes. `types` are the MsgTypes(35) that its origin publishes,
/// separated by spaces, or empty if unknown.
pub(crate) fn write<'b>(
    entry: &Entry<'_>,
    types: &[u8],
    buffer: &'b mut CdrBuffer,
) -> Result<&'b [u8], CdrError> {
    let (stamp, identity) = (&entry.stamp, &entry.stamp.identity);
    buffer.begin();
    buffer.string(stamp.symbol);
    buffer.string(entry.body.msg_type());
    buffer.u64(stamp.origin);
    buffer.u64(stamp.number);
    buffer.i64(stamp.ingress_nanos);
    buffer.octets(entry.body.fields());
    buffer.string(identity.channel);
    buffer.u64(identity.epoch);
    buffer.u64(identity.number);
    buffer.u32(identity.index);
    buffer.u64(stamp.order);
    buffer.string(types);
    let hole = stamp.hole.as_ref();
    let numbers = hole.map_or([0; 3], |hole| [hole.count, hole.first, hole.last]);
    buffer.string(hole.map_or("", |hole| hole.why.word()).as_bytes());
    for number in numbers {
        buffer.u64(number);
    }
    buffer.finish()
}

/// The parts of a sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts<'a> {
    pub(crate) stamp: Stamp<'a>,
    pub(crate) msg_type: &'a [u8],
    pub(crate) body: &'a [u8],
    /// The MsgTypes(35) that its origin publishes, separated by spaces, or empty if unknown.
    pub(crate) types: &'a [u8],
}

/// Parses a sample.
pub(crate) fn read(bytes: &[u8]) -> Result<Parts<'_>, CdrError> {
    let mut cdr = CdrReader::new(bytes)?;
    let (symbol, msg_type) = (cdr.string()?, cdr.string()?);
    let (origin, number, ingress_nanos) = (cdr.u64()?, cdr.u64()?, cdr.i64()?);
    let body = cdr.octets()?;
    let identity = Identity {
        channel: cdr.string()?,
        epoch: cdr.u64()?,
        number: cdr.u64()?,
        index: cdr.u32()?,
    };
    // Other writers may leave out the members that were added last. A sample may end in padding.
    let (order, types) = match cdr.remaining() {
        0..4 => (0, &b""[..]),
        _ => (cdr.u64()?, cdr.string()?),
    };
    let hole = match cdr.remaining() {
        0..4 => None,
        _ => read_hole(&mut cdr, ingress_nanos)?,
    };
    let stamp = Stamp {
        ingress_nanos,
        origin,
        number,
        order,
        symbol,
        identity,
        sent: 0,
        hole,
    };
    Ok(Parts {
        stamp,
        msg_type,
        body,
        types,
    })
}

/// Parses the messages that are missing before a sample's own. A reason of another version is none.
fn read_hole(cdr: &mut CdrReader<'_>, nanos: i64) -> Result<Option<Hole>, CdrError> {
    let why = Missing::from_word(cdr.string()?);
    let (count, first, last) = (cdr.u64()?, cdr.u64()?, cdr.u64()?);
    Ok(why.map(|why| Hole {
        first,
        last,
        ..Hole::new(why, count, nanos)
    }))
}

/// Returns the place of a sample of the type [`FIX_MESSAGE`] among others: the gateway that its
/// message entered first, its number there over all topics, and on its topic. Returns `None` if the
/// sample is not readable. Does not allocate.
#[must_use]
pub fn place_of_sample(bytes: &[u8]) -> Option<(u64, u64, u64)> {
    let stamp = read(bytes).ok()?.stamp;
    Some((stamp.origin, stamp.order, stamp.number))
}

/// A check whether a body from DDS can be forwarded to FIX sessions. The body must belong to an
/// application message and consist of whole fields, none of them of the header or trailer. Then it
/// cannot end its message early, begin another, or end or reset a session. Any participant of the
/// domain may have written it.
pub(crate) struct Inspector {
    decoder: Decoder,
    frame: Vec<u8>,
    longest: usize,
}

impl Inspector {
    /// Creates an inspector of bodies of up to `longest` bytes. Allocates only here.
    pub(crate) fn new(longest: usize) -> Self {
        let decoder = Decoder::with(FrameFinder::new(longest + ENVELOPE), FieldIndex::default());
        Self {
            decoder,
            frame: Vec::with_capacity(longest + ENVELOPE),
            longest,
        }
    }

    /// Returns whether the body is valid.
    pub(crate) fn passes(&mut self, body: &SharedBody<'_>) -> bool {
        let len = body.fields().len();
        let msg_type = body.msg_type();
        let is_session = msg_type::is_session(msg_type);
        if !(1..=self.longest).contains(&len) || msg_type.contains(&1) || is_session {
            return false;
        }
        let range = self.compose(body);
        let Ok(message) = self.decoder.decode(self.frame.get(range).unwrap_or(&[])) else {
            return false;
        };
        let alien = |tag: &u32| *tag == 0 || is_of_session(*tag);
        // Three fields precede it, and one follows.
        let inner = message.tags().get(3..message.len().saturating_sub(1));
        message.body() == body.fields() && !inner.unwrap_or_default().iter().any(alien)
    }

    /// Composes a whole message around the body.
    fn compose(&mut self, body: &SharedBody<'_>) -> Range<usize> {
        let frame = &mut self.frame;
        frame.clear();
        let inside = 4 + body.msg_type().len() + body.fields().len();
        frame.extend_from_slice(b"8=FIX.4.4\x019=");
        let mut digits = [0; 20];
        let len = fanfare_wire::int::write_u64(inside as u64, &mut digits);
        frame.extend_from_slice(digits.get(..len).unwrap_or(&[]));
        frame.extend_from_slice(b"\x0135=");
        frame.extend_from_slice(body.msg_type());
        frame.push(1);
        frame.extend_from_slice(body.fields());
        let sum = fanfare_wire::byte_sum(frame);
        let digit = |value: u8| b'0' + value % 10;
        frame.extend_from_slice(b"10=");
        frame.extend_from_slice(&[digit(sum / 100), digit(sum / 10), digit(sum), 1]);
        0..frame.len()
    }
}

/// Returns whether a field frames a message, or identifies its session or number.
const fn is_of_session(field: u32) -> bool {
    matches!(
        field,
        tag::BEGIN_STRING
            | tag::BODY_LENGTH
            | tag::CHECK_SUM
            | tag::MSG_TYPE
            | tag::MSG_SEQ_NUM
            | tag::SENDER_COMP_ID
            | tag::TARGET_COMP_ID
            | tag::SENDING_TIME
            | tag::POSS_DUP_FLAG
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_holds_all_of_a_message() {
        let entry = Entry {
            stamp: Stamp {
                ingress_nanos: 1_700_000_000_123_456_789,
                origin: 7,
                number: 9,
                order: 11,
                symbol: b"EURUSD",
                identity: Identity {
                    channel: b"moex",
                    epoch: 3,
                    number: 4,
                    index: 5,
                },
                sent: 0,
                hole: Some(Hole {
                    first: 5,
                    last: 6,
                    ..Hole::new(Missing::FeedGap, 2, 1_700_000_000_123_456_789)
                }),
            },
            body: SharedBody::new(b"W", b"55=EURUSD\x01268=0\x01").unwrap(),
        };
        let mut buffer = CdrBuffer::with_capacity(256);
        let bytes = write(&entry, b"W X", &mut buffer).unwrap();
        fanfare_dds::cdr::check(&sample_type(), bytes).unwrap();
        let parts = read(bytes).unwrap();
        let stamp = &parts.stamp;
        assert_eq!((stamp.symbol, parts.msg_type), (&b"EURUSD"[..], &b"W"[..]));
        assert_eq!((stamp.origin, stamp.number, stamp.order), (7, 9, 11));
        assert_eq!(parts.types, b"W X");
        assert_eq!(place_of_sample(bytes), Some((7, 11, 9)));
        assert_eq!(stamp.ingress_nanos, 1_700_000_000_123_456_789);
        assert_eq!(parts.body, entry.body.fields());
        assert_eq!(stamp.identity, entry.stamp.identity);
        assert_eq!(stamp.hole, entry.stamp.hole);
        let shorter = (0..bytes.len() - 4).filter_map(|end| read(&bytes[..end]).ok());
        let orders: Vec<_> = shorter.map(|p| (p.stamp.order, p.types)).collect();
        assert_eq!(
            orders[..4],
            [(0, &b""[..]); 4],
            "without the members added last"
        );
        assert_eq!(
            orders[4..],
            [(11, &b"W X"[..]); 4],
            "without what is missing"
        );
    }

    fn passes(msg_type: &str, body: &str) -> bool {
        let body = body.replace('|', "\x01");
        let shared = SharedBody::new(msg_type.as_bytes(), body.as_bytes());
        shared.is_ok_and(|b| Inspector::new(64).passes(&b))
    }

    #[test]
    fn whole_fields_pass() {
        assert!(passes("W", "55=EURUSD|268=1|269=0|270=1.5|"));
        assert!(passes("B", "95=3|96=a|b|"), "a data field may hold SOH");
        assert!(passes("U1", "20001=P-1|55=A|"));
    }

    #[test]
    fn messages_of_the_session_do_not() {
        for msg_type in ["0", "1", "2", "3", "4", "5", "A"] {
            assert!(!passes(msg_type, "36=5000|"), "{msg_type}");
        }
        assert!(passes("AE", "571=1|") && passes("6", "23=1|") && passes("j", "45=1|"));
    }

    #[test]
    fn what_could_end_or_begin_a_message_does_not() {
        for body in [
            "",
            "55=EURUSD",
            "55|",
            "=5|",
            "x=5|",
            "55=A|10=000|",
            "55=A|10=000|8=FIX.4.4|9=5|35=5|",
            "55=A|34=7|",
            "49=EVIL|55=A|",
            "55=A|35=5|",
            "55=A|9=12|",
            "95=99|96=ab|",
        ] {
            assert!(!passes("W", body), "{body}");
        }
        assert!(!passes("W\x0110=", "55=A|"));
        assert!(!passes("W", &format!("58={}|", "x".repeat(64))), "too long");
    }
}
