//! The application behind `fanfare fix acceptor`: the responses of a conformance test server.

use super::refusals::Refusals;
use super::sessions::level_of;
use crate::logs;
use crate::print::say;
use fanfare_engine::host::{Handler, LogTrouble, Peer, Peers, Refusal};
use fanfare_engine::journal::Recovery;
use fanfare_engine::levels::LogLevel;
use fanfare_fix::codec::{FieldSet, GroupSpec, Message};
use fanfare_fix::dict::{self, Dictionary, DictionaryValidator, Printable};
use fanfare_fix::session::{
    AppMessage, BusinessReason, DisconnectReason, Event, SendError, SessionId, StoreError, Version,
};
use fanfare_fix::{msg_type, tag};
use std::any::Any;
use std::collections::{HashMap, HashSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// An application that responds to messages, or prints them.
pub(super) struct Application {
    echo: bool,
    orders: HashMap<SessionId, Orders>,
    refusals: Refusals,
    unanswered: Refusals,
}

impl Application {
    pub(super) fn new(echo: bool) -> Self {
        let orders = HashMap::new();
        Self {
            echo,
            orders,
            refusals: Refusals::of("without a logon"),
            unanswered: Refusals::of("without an answer"),
        }
    }

    fn answer(&mut self, peer: &mut Peer<'_>, app: &AppMessage<'_>) -> Result<(), SendError> {
        let message = &app.message;
        let version = peer.id().version;
        match message.msg_type() {
            msg_type::NEW_ORDER_SINGLE => {
                let id = message.get(tag::CL_ORD_ID).unwrap_or_default();
                let orders = self.orders.entry(peer.id().clone()).or_default();
                let known = orders.insert(id);
                if known && app.poss_resend {
                    return Ok(());
                }
                Self::send_back(peer, message)
            }
            b"C" => Self::send_back(peer, message),
            b"d" if version >= Version::Fix42 => Self::send_back(peer, message),
            _ => {
                let text = if version >= Version::Fix42 {
                    "Unsupported Message Type"
                } else {
                    "Unsupported message type"
                };
                let (now, reason) = (peer.now(), BusinessReason::UnsupportedMessageType);
                let sent = peer.session().reject_business(now, message, reason, text);
                sent.map(drop)
            }
        }
    }

    /// Logs that a message has no answer. Where there may be room for the answer later, the session
    /// ends, and the message comes again after the next logon.
    fn leave_unanswered(&mut self, peer: &mut Peer<'_>, seq: u64, error: SendError) {
        let id = peer.id().clone();
        let (at, line) = (Instant::now(), format!("{id}: no answer to {seq}: {error}"));
        // A summary is about all sessions.
        self.unanswered.look(at, &mut logs::unanswered);
        self.unanswered.take(at, line, &mut |words| {
            logs::session(LogLevel::Error, &id, words);
        });
        let reason = match error {
            SendError::Throttled { .. } => DisconnectReason::Closed,
            SendError::Store(StoreError::Full) => DisconnectReason::TransmitFull,
            SendError::Store(error) if error != StoreError::TooLong => {
                DisconnectReason::Store(error)
            }
            _ => return,
        };
        let text = format!("message {seq} has no answer: {error}");
        let now = peer.now();
        peer.session().abandon(now, &text, reason);
    }

    fn send_back(peer: &mut Peer<'_>, message: &Message<'_>) -> Result<(), SendError> {
        let built_in;
        let validator = peer.session().config().validator.clone();
        let validator = validator.as_deref().map(|own| own as &dyn Any);
        let dictionary = match validator.and_then(|own| own.downcast_ref()) {
            Some(dictionaries) => {
                let dictionaries: &DictionaryValidator = dictionaries;
                let theirs = peer.session().peer_appl_ver_id();
                let theirs = theirs.and_then(|id| dict::Version::from_appl_ver_id(&[id.wire()]));
                dictionaries.dictionary(message, theirs)
            }
            None => {
                built_in = Dictionary::built_in(table_of(peer, message));
                &built_in
            }
        };
        let (mut header, body) = in_order(dictionary, message);
        if peer.session().config().last_processed {
            header.retain(|&(tag, _)| tag != tag::LAST_MSG_SEQ_NUM_PROCESSED);
        }
        let (now, msg_type) = (peer.now(), message.msg_type());
        let sent = peer.session().send_with(now, msg_type, &header, |out| {
            for field in body {
                out.raw(field);
            }
        });
        sent.map(drop)
    }
}

/// Returns the built-in table of a session that has no dictionary.
fn table_of(peer: &mut Peer<'_>, message: &Message<'_>) -> dict::Version {
    let named = message.get(tag::APPL_VER_ID);
    let named = named.and_then(dict::Version::from_appl_ver_id);
    let theirs = peer.session().peer_appl_ver_id();
    let theirs = theirs.and_then(|id| dict::Version::from_appl_ver_id(&[id.wire()]));
    match peer.id().version {
        Version::Fixt11 => named.or(theirs).unwrap_or(dict::Version::Fix50Sp2),
        version => {
            let table = dict::Version::from_name(version.begin_string());
            table.unwrap_or(dict::Version::Fix44)
        }
    }
}

impl Handler for Application {
    fn on_message(&mut self, peer: &mut Peer<'_>, message: &AppMessage<'_>) {
        if !self.echo {
            let mut room = Vec::new();
            return say!("{}", Printable(message.message.masked(&mut room).bytes()));
        }
        if let Err(error) = self.answer(peer, message) {
            self.leave_unanswered(peer, message.seq, error);
        }
    }

    fn on_recovery(&mut self, id: &SessionId, recovery: &Recovery) {
        logs::recovery(id, recovery);
    }

    fn on_logon(&mut self, peer: &mut Peer<'_>) {
        logs::session(
            LogLevel::Info,
            peer.id(),
            &format!("{}: logged on", peer.id()),
        );
    }

    fn on_disconnect(&mut self, peer: &mut Peer<'_>, reason: DisconnectReason) {
        self.orders.remove(peer.id());
        let line = format!("{}: {reason}", peer.id());
        match reason {
            DisconnectReason::LogonRefused
            | DisconnectReason::WrongCredentials
            | DisconnectReason::NewPassword
            | DisconnectReason::BadLogon(_)
            | DisconnectReason::FirstMessageNotLogon => {
                self.refusals.take(Instant::now(), line, &mut logs::refused);
            }
            _ => logs::session(level_of(&reason), peer.id(), &line),
        }
    }

    fn on_event(&mut self, peer: &mut Peer<'_>, event: &Event<'_>) {
        match event {
            Event::Garbled(why) => logs::garbled(peer.id(), why),
            Event::Unreadable { seq, why } => logs::unreadable(peer.id(), *seq, why),
            Event::NoLongerKept { begin, end } => logs::no_longer_kept(peer.id(), *begin, *end),
            Event::QueueFull { seq } => logs::queue_full(peer.id(), *seq),
            Event::WaitingDiscarded { messages } => logs::discarded(peer.id(), *messages),
            Event::HeldDiscarded { messages } => logs::held_discarded(peer.id(), *messages),
            _ => {}
        }
    }

    fn on_log(&mut self, trouble: &LogTrouble) {
        tracing::warn!(target: "files", "{trouble}");
    }

    fn on_refused(&mut self, address: SocketAddr, why: &Refusal) {
        let line = format!("{address}: {why}");
        self.refusals.take(Instant::now(), line, &mut logs::refused);
    }

    fn on_turn(&mut self, _: &mut Peers<'_>) -> usize {
        if self.refusals.has_more() {
            self.refusals.look(Instant::now(), &mut logs::refused);
        }
        if self.unanswered.has_more() {
            let now = Instant::now();
            self.unanswered.look(now, &mut logs::unanswered);
        }
        0
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        self.refusals.end(&mut logs::refused);
        self.unanswered.end(&mut logs::unanswered);
    }
}

/// The ClOrdIDs of a session; beyond [`MOST_ORDERS`] or [`MOST_BYTES`] the oldest are dropped.
#[derive(Default)]
struct Orders {
    known: HashSet<Arc<[u8]>>,
    by_age: VecDeque<Arc<[u8]>>,
    bytes: usize,
}

/// ClOrdIDs kept for each session, and the bytes of all of them.
const MOST_ORDERS: usize = 1 << 20;
const MOST_BYTES: usize = 64 << 20;

impl Orders {
    /// Adds a ClOrdID. Returns true if it was known.
    fn insert(&mut self, id: &[u8]) -> bool {
        if self.known.contains(id) {
            return true;
        }
        while self.by_age.len() >= MOST_ORDERS || self.bytes + id.len() > MOST_BYTES {
            let Some(oldest) = self.by_age.pop_front() else {
                break;
            };
            self.bytes -= oldest.len();
            self.known.remove(&oldest);
        }
        self.bytes += id.len();
        let id: Arc<[u8]> = id.into();
        self.by_age.push_back(Arc::clone(&id));
        self.known.insert(id);
        false
    }
}

/// Header fields of a response that are not the session's own, and body fields, all as received;
/// both in ascending order of tags, with groups in one piece. An echo is the same message again:
/// its OnBehalfOf fields stay, and only the session's responses reverse the route.
type Answer<'a> = (Vec<(u32, &'a [u8])>, Vec<&'a [u8]>);

fn in_order<'a>(dictionary: &Dictionary, message: &Message<'a>) -> Answer<'a> {
    let mut header = Vec::new();
    let mut body = Vec::new();
    for piece in pieces(dictionary, message) {
        for position in piece.from..piece.to {
            let Some(field) = message.field(position) else {
                break;
            };
            if !tag::is_header(piece.tag) {
                body.extend(message.encoded(position));
            } else if !is_renewed(piece.tag) && !field.value.is_empty() {
                header.push((field.tag, field.value));
            }
        }
    }
    (header, body)
}

/// A field, or a count field with its group.
struct Piece {
    tag: u32,
    from: usize,
    to: usize,
}

/// Returns the pieces of a message in ascending order, without its trailer.
fn pieces(dictionary: &Dictionary, message: &FieldSet<'_>) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(message.len());
    let msg_type = message.get(tag::MSG_TYPE).unwrap_or_default();
    let mut from = 0;
    while let Some(&tag) = message.tags().get(from) {
        let behind = message.tags().get(from + 1..).unwrap_or_default();
        let members = dictionary.group(msg_type, tag).map_or(0, |group| {
            let members = behind.iter().take_while(|&&tag| group.contains(tag));
            members.count()
        });
        let to = from + 1 + members;
        if !tag::is_trailer(tag) {
            pieces.push(Piece { tag, from, to });
        }
        from = to;
    }
    pieces.sort_by_key(|piece| piece.tag);
    pieces
}

/// Returns whether this header field differs in each message, or only a resend has it.
pub(super) fn is_renewed(tag: u32) -> bool {
    matches!(
        tag,
        tag::BEGIN_STRING
            | tag::BODY_LENGTH
            | tag::MSG_TYPE
            | tag::MSG_SEQ_NUM
            | tag::POSS_DUP_FLAG
            | tag::SENDER_COMP_ID
            | tag::SENDING_TIME
            | tag::TARGET_COMP_ID
            | tag::ORIG_SENDING_TIME
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_fix::codec::{Decoder, Encoder};

    /// Returns header and body of the response to a message with these fields.
    fn answer(version: Version, table: dict::Version, msg_type: &str, fields: &str) -> String {
        let mut room = [0; 1024];
        let begin_string = version.begin_string().as_bytes();
        let mut encoder = Encoder::new(&mut room, begin_string, msg_type.as_bytes());
        encoder.raw(fields.replace('|', "\x01").as_bytes());
        let range = encoder.finish().unwrap();
        let mut decoder = Decoder::new();
        let message = decoder.decode(&room[range]).unwrap();
        let (header, body) = in_order(&Dictionary::built_in(table), &message);
        let mut text = String::new();
        for (tag, value) in header {
            text += &format!("{tag}={}|", value.escape_ascii());
        }
        text + "//" + &String::from_utf8_lossy(&body.concat()).replace('\x01', "|")
    }

    #[test]
    fn fields_ascend_and_values_stay() {
        let order = "56=B|49=A|34=2|97=Y|52=20261121-10:00:00|57=S|\
                     60=20261121-10:00:00|38=002000.00|11=id|40=1|";
        let expected = "57=S|97=Y|//11=id|38=002000.00|40=1|60=20261121-10:00:00|";
        let answered = answer(Version::Fix42, dict::Version::Fix42, "D", order);
        assert_eq!(answered, expected);
    }

    #[test]
    fn groups_stay_in_one_piece_with_those_in_them() {
        let order = "49=A|56=B|34=2|52=x|11=1|453=2|448=P|447=D|452=1|802=1|523=s|803=2|\
                     448=Q|447=D|452=3|55=X|54=1|40=1|";
        let expected = "//11=1|40=1|54=1|55=X|453=2|448=P|447=D|452=1|802=1|523=s|803=2|\
                        448=Q|447=D|452=3|";
        let answered = answer(Version::Fix44, dict::Version::Fix44, "D", order);
        assert_eq!(answered, expected);
    }

    #[test]
    fn a_group_of_none_and_data_with_separators_stay() {
        let order = "49=A|56=B|34=2|52=x|453=0|11=1|354=3|355=a|b|40=1|";
        let answered = answer(Version::Fix44, dict::Version::Fix44, "D", order);
        assert!(answered.ends_with("453=0|"), "{answered}");
        let email = "49=A|56=B|34=2|52=x|164=1|95=3|96=a|b|94=0|";
        let answered = answer(Version::Fix42, dict::Version::Fix42, "C", email);
        assert_eq!(answered, "//94=0|95=3|96=a|b|164=1|");
    }

    #[test]
    fn routes_stay_and_duplicates_are_none() {
        let order = "49=A|56=B|34=2|52=x|43=Y|122=x|115=JD|116=CS|128=MG|145=L|369=1|11=1|";
        let expected = "115=JD|116=CS|128=MG|145=L|369=1|//11=1|";
        let answered = answer(Version::Fix42, dict::Version::Fix42, "D", order);
        assert_eq!(answered, expected);
    }

    #[test]
    fn hops_stay_in_one_piece() {
        let order = "49=A|56=B|34=2|52=x|627=2|628=H|630=7|628=I|50=S|11=1|";
        let answered = answer(Version::Fix44, dict::Version::Fix44, "D", order);
        assert_eq!(answered, "50=S|627=2|628=H|630=7|628=I|//11=1|");
    }

    #[test]
    fn orders_are_known_until_there_are_too_many() {
        let mut orders = Orders::default();
        assert!(!orders.insert(b"a"));
        assert!(orders.insert(b"a"));
        for number in 0..MOST_ORDERS as u32 {
            assert!(!orders.insert(&number.to_le_bytes()));
        }
        assert!(!orders.insert(b"a"), "the oldest is forgotten");
        assert_eq!(orders.known.len(), MOST_ORDERS);
    }

    #[test]
    fn orders_are_known_until_they_have_too_many_bytes() {
        const LEN: usize = 1 << 20;
        let mut orders = Orders::default();
        let id = |number: usize| number.to_le_bytes().repeat(LEN / 8);
        for number in 0..MOST_BYTES / LEN {
            assert!(!orders.insert(&id(number)));
        }
        assert!(orders.insert(&id(0)));
        assert!(!orders.insert(b"one more"));
        assert!(orders.insert(&id(1)));
        assert!(!orders.insert(&id(0)), "the oldest is forgotten");
        assert!(!orders.insert(&id(1)), "the next one, too");
        assert!(orders.bytes <= MOST_BYTES, "{}", orders.bytes);
        assert_eq!(orders.known.len(), orders.by_age.len());
    }
}
