//! The process that is killed: an initiator with a journal that sends as fast as it can, and
//! reports on stderr which messages the journal and the application have.

use fanfare_engine::host::{Handler, Initiator, Peer, Peers, StoreKind};
use fanfare_engine::idle::Idle;
use fanfare_engine::journal::{Durability, Options};
use fanfare_engine::stop::Stop;
use fanfare_fix::session::{AppMessage, Config, MessageStore, SECOND, SessionId, Version};
use fanfare_fix::tag;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

/// The environment variables by which the parent configures the child.
pub(crate) const FOLDER: &str = "FANFARE_KILL_FOLDER";
pub(crate) const ADDRESS: &str = "FANFARE_KILL_ADDRESS";
pub(crate) const DURABILITY: &str = "FANFARE_KILL_DURABILITY";

/// The size of a report: its kind (`SENT` or `HAD`), MsgSeqNum, CRC-32 of the message;
/// little-endian.
pub(crate) const REPORT: usize = 13;
/// The kind of report that this message of ours is persisted as the policy promises.
pub(crate) const SENT: u8 = b'S';
/// The kind of report that the application has this message of the counterparty.
pub(crate) const HAD: u8 = b'H';

/// Messages sent in one duty cycle.
const TURN: usize = 8;

pub(crate) fn id() -> SessionId {
    SessionId::new(Version::Fix44, "CHILD", "PARENT")
}

/// Returns small segments, so that kills also hit the change from one to the next.
pub(crate) fn options(durability: Durability) -> Options {
    Options {
        segment_bytes: 64 << 10,
        max_segments: 1 << 16,
        max_unsent: 32 << 10,
        durability,
        ..Options::default()
    }
}

/// Parses `none`, `every`, or a number of messages.
pub(crate) fn durability(text: &str) -> Durability {
    match text {
        "none" => Durability::None,
        "every" => Durability::Every,
        n => Durability::EveryN(n.parse().expect("a number")),
    }
}

/// Returns the text of a message, by its number.
pub(crate) fn text(seq: u64) -> String {
    let len = 1 + (seq as usize * 37) % 240;
    let letter = char::from(b'a' + (seq % 26) as u8);
    letter.to_string().repeat(len)
}

/// Runs the child; the parent starts it, and it is no test.
#[test]
fn child() {
    let Ok(folder) = std::env::var(FOLDER) else {
        return;
    };
    let address: SocketAddr = std::env::var(ADDRESS).unwrap().parse().unwrap();
    let durability = durability(&std::env::var(DURABILITY).unwrap());
    let mut config = Config::new(id());
    config.resend_chunk.messages = 16;
    config.logon_timeout = 60 * SECOND;
    let mut initiator = Initiator::new(config, vec![address]);
    initiator.backoff = (Duration::from_millis(1), Duration::from_millis(1));
    initiator.store = StoreKind::Journal(folder.into(), options(durability));
    let sender = Sender {
        waits: durability == Durability::Every,
        pending: Vec::new(),
    };
    initiator.run(sender, Idle::BackOff, &Stop::new()).unwrap();
}

struct Sender {
    /// Whether the journal promises a message only with the next sync, at the end of the duty
    /// cycle.
    waits: bool,
    /// Reports of messages that are not promised yet.
    pending: Vec<u8>,
}

fn report(what: u8, seq: u64, message: &[u8]) -> [u8; REPORT] {
    let mut bytes = [what; REPORT];
    bytes[1..9].copy_from_slice(&seq.to_le_bytes());
    bytes[9..].copy_from_slice(&crc32fast::hash(message).to_le_bytes());
    bytes
}

fn tell(reports: &[u8]) {
    // The parent reads to the end.
    std::io::stderr().write_all(reports).unwrap();
}

impl Handler for Sender {
    fn on_turn(&mut self, peers: &mut Peers<'_>) -> usize {
        if !self.pending.is_empty() {
            tell(&self.pending);
            self.pending.clear();
        }
        let Some(mut peer) = peers.logged_on().next() else {
            return 0;
        };
        let mut sent = 0;
        while sent < TURN {
            let next = peer.session().store().next_sender();
            let result = peer.send(b"D", |order| {
                order.u64(tag::CL_ORD_ID, next).str(tag::TEXT, &text(next));
            });
            let Ok(seq) = result else { break };
            let store = peer.session().store();
            let bytes = store.first_from(seq).expect("it was kept").bytes;
            let report = report(SENT, seq, bytes);
            if self.waits {
                self.pending.extend_from_slice(&report);
            } else {
                tell(&report);
            }
            sent += 1;
        }
        sent
    }

    fn on_message(&mut self, _: &mut Peer<'_>, message: &AppMessage<'_>) {
        tell(&report(HAD, message.seq, message.message.bytes()));
    }
}
