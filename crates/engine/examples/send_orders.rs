//! Connects, sends 100,000 NewOrderSingle(D), waits for their reports, logs out. With a folder
//! as second argument every message is kept there before it is sent.
//!
//!     cargo run --release -p fanfare-engine --example send_orders -- 127.0.0.1:9880 [FOLDER]

use fanfare_engine::host::{Handler, Initiator, Peer, Peers, Refusal, StoreKind};
use fanfare_engine::{idle::Idle, journal, stop::Stop};
use fanfare_fix::codec::{msg_types, tags};
use fanfare_fix::session::{AppMessage, Config, DisconnectReason, SessionId, StoreError};
use fanfare_fix::session::{SendError, Version};
use fanfare_wire::Precision;
use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Instant;

const ORDERS: u64 = 100_000;
/// Orders written in one turn; the next turn goes on.
const TURN: u64 = 256;

struct Trader {
    stop: Stop,
    began: Option<Instant>,
    sent: u64,
    reports: u64,
}

impl Trader {
    /// Sends one order; `false` if it has to wait until the counterparty has read some.
    fn order(&mut self, peer: &mut Peer<'_>) -> bool {
        let (number, now) = (self.sent + 1, peer.now().utc);
        let sent = peer.send(msg_types::NEW_ORDER_SINGLE, |order| {
            order
                .u64(tags::CL_ORD_ID, number)
                .char(tags::HANDL_INST, b'1');
            order.str(tags::SYMBOL, "EUR/USD").char(tags::SIDE, b'1');
            order.timestamp(tags::TRANSACT_TIME, now, Precision::Millis);
            order
                .u64(tags::ORDER_QTY, 1_000_000)
                .char(tags::ORD_TYPE, b'2');
            order.str(tags::PRICE, "1.0842");
        });
        match sent {
            Ok(_) => self.sent = number,
            Err(SendError::Store(StoreError::Full)) => {}
            Err(error) => {
                eprintln!("order {number}: {error}");
                self.stop.raise();
            }
        }
        sent.is_ok()
    }
}

impl Handler for Trader {
    fn on_turn(&mut self, peers: &mut Peers<'_>) -> usize {
        let Some(mut peer) = peers.logged_on().next() else {
            return 0;
        };
        self.began.get_or_insert_with(Instant::now);
        let before = self.sent;
        while self.sent < ORDERS.min(before + TURN) && self.order(&mut peer) {}
        (self.sent - before) as usize
    }

    fn on_message(&mut self, peer: &mut Peer<'_>, _report: &AppMessage<'_>) {
        self.reports += 1;
        if self.reports == ORDERS {
            let seconds = self
                .began
                .map_or(0.0, |began| began.elapsed().as_secs_f64());
            println!("{ORDERS} orders and reports in {seconds:.3} s");
            peer.logout("");
        }
    }

    fn on_disconnect(&mut self, _peer: &mut Peer<'_>, reason: DisconnectReason) {
        println!("{reason}");
        if reason == DisconnectReason::LogoutComplete {
            self.stop.raise();
        }
    }

    fn on_refused(&mut self, address: SocketAddr, why: &Refusal) {
        eprintln!("{address}: {why}");
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("send_orders: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut args = std::env::args().skip(1);
    let address = args.next().unwrap_or_else(|| "127.0.0.1:9880".to_owned());
    let address: SocketAddr = address
        .parse()
        .map_err(|_| format!("{address} is no IP address with a port"))?;
    let mut session = Config::new(SessionId::new(Version::Fix44, "TRADER", "EXCHANGE"));
    session.reset_on_logon = true; // each run starts at 1
    let mut initiator = Initiator::new(session, vec![address]);
    if let Some(folder) = args.next() {
        initiator.store = StoreKind::Journal(folder.into(), journal::Options::default());
    }
    let stop = Stop::on_interrupt()?;
    let trader = Trader {
        stop: stop.clone(),
        began: None,
        sent: 0,
        reports: 0,
    };
    initiator.run(trader, Idle::BackOff, &stop)
}
