//! Fanfare's library as initiator, with the same commands and output as the other engines.

use crate::engines::Version;
use fanfare_engine::host::{Handler, Host, Initiator, Peer, Peers};
use fanfare_engine::{agent, idle::Idle, stop::Stop};
use fanfare_fix::codec::Message;
use fanfare_fix::session::{
    AppMessage, ApplVerId, Config, DisconnectReason, Event, SessionId, Version as Session,
};
use fanfare_fix::{msg_type, tag};
use fanfare_wire::Precision;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// An initiator that stops on drop.
pub(crate) struct Ours {
    pub(crate) lines: Receiver<String>,
    commands: Sender<String>,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Ours {
    pub(crate) fn start(version: Version, address: SocketAddr, resets: bool) -> Self {
        let session = Session::parse(version.begin_string.as_bytes()).unwrap();
        let mut config = Config::new(SessionId::new(session, "TW", "ISLD"));
        config.reset_on_logon = resets;
        if let Some((id, ..)) = version.application {
            config.default_appl_ver_id = ApplVerId::parse(id.as_bytes()).unwrap();
        }
        let mut initiator = Initiator::new(config, vec![address]);
        initiator.backoff = (Duration::from_millis(50), Duration::from_millis(200));
        let (tell, lines) = channel();
        let (commands, told) = channel();
        let trader = Trader { told, tell };
        let stop = Stop::new();
        let raised = stop.clone();
        let run = move || {
            let mut host = Host::new(trader).unwrap();
            host.initiate(initiator).unwrap();
            agent::run(&mut host, Idle::Wait(Duration::from_millis(1)), &raised).unwrap();
        };
        Self {
            lines,
            commands,
            stop,
            thread: Some(std::thread::spawn(run)),
        }
    }

    pub(crate) fn tell(&self, line: &str) {
        self.commands.send(line.to_owned()).unwrap();
    }
}

impl Ours {
    pub(crate) fn end(&mut self) {
        self.stop.raise();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.end();
    }
}

struct Trader {
    told: Receiver<String>,
    tell: Sender<String>,
}

impl Trader {
    fn say(&self, line: String) {
        // The receiver may be gone at the end.
        let _ = self.tell.send(line);
    }

    fn came(&self, message: &Message<'_>) {
        let text = String::from_utf8_lossy(message.bytes()).replace('\x01', "|");
        self.say(format!("in {text}"));
    }
}

impl Handler for Trader {
    fn on_turn(&mut self, peers: &mut Peers<'_>) -> usize {
        let Some(mut peer) = peers.logged_on().next() else {
            return 0;
        };
        let Ok(line) = self.told.try_recv() else {
            return 0;
        };
        let now = peer.now();
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("order", id) => order(&mut peer, id),
            ("logout", _) => peer.logout(""),
            ("reset", _) => peer.session().reset_sequence(now).unwrap(),
            _ => panic!("{line} is no command"),
        }
        1
    }

    fn on_message(&mut self, _peer: &mut Peer<'_>, app: &AppMessage<'_>) {
        let flag = app.message.get(tag::POSS_DUP_FLAG) == Some(b"Y");
        assert_eq!(app.poss_dup, flag, "PossDup is known as such");
        self.came(&app.message);
    }

    fn on_logon(&mut self, _peer: &mut Peer<'_>) {
        self.say("logon".to_owned());
    }

    fn on_disconnect(&mut self, _peer: &mut Peer<'_>, reason: DisconnectReason) {
        self.say(format!("logout {reason}"));
    }

    fn on_event(&mut self, _peer: &mut Peer<'_>, event: &Event<'_>) {
        if let Event::RejectReceived(message) | Event::LogoutReceived(message) = event {
            self.came(message);
        }
    }
}

fn order(peer: &mut Peer<'_>, id: &str) {
    let now = peer.now().utc;
    let has_time = peer.id().version >= Session::Fix42;
    let sent = peer.send(msg_type::NEW_ORDER_SINGLE, |order| {
        order.str(tag::CL_ORD_ID, id).char(tag::HANDL_INST, b'3');
        order.u64(tag::ORDER_QTY, 100).char(tag::ORD_TYPE, b'1');
        order.char(tag::SIDE, b'1').str(tag::SYMBOL, "INTC");
        if has_time {
            order.timestamp(tag::TRANSACT_TIME, now, Precision::Millis);
        }
    });
    sent.unwrap();
}
