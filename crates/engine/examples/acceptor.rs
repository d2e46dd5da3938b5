//! A FIX acceptor that answers each order with an execution report.
//!
//!     cargo run --release -p fanfare-engine --example acceptor -- 127.0.0.1:9880

use fanfare_engine::host::{Acceptor, Handler, Peer, StoreKind};
use fanfare_engine::{idle::Idle, stop::Stop};
use fanfare_fix::codec::{msg_types, tags};
use fanfare_fix::session::{AppMessage, Config, DisconnectReason, SessionId, Version};
use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;

struct Exchange {
    orders: u64,
}

impl Handler for Exchange {
    fn on_logon(&mut self, peer: &mut Peer<'_>) {
        println!("{} is here", peer.id().target);
    }

    fn on_message(&mut self, peer: &mut Peer<'_>, message: &AppMessage<'_>) {
        let order = &message.message;
        if order.msg_type() != msg_types::NEW_ORDER_SINGLE {
            return;
        }
        self.orders += 1;
        let number = self.orders;
        let sent = peer.send(msg_types::EXECUTION_REPORT, |report| {
            report
                .u64(tags::ORDER_ID, number)
                .u64(tags::EXEC_ID, number);
            for tag in [tags::CL_ORD_ID, tags::SYMBOL, tags::SIDE, tags::ORDER_QTY] {
                if let Some(value) = order.get(tag) {
                    report.field(tag, value);
                }
            }
            report
                .char(tags::EXEC_TYPE, b'0')
                .char(tags::ORD_STATUS, b'0');
        });
        if let Err(error) = sent {
            eprintln!("no report for order {number}: {error}");
        }
    }

    fn on_disconnect(&mut self, peer: &mut Peer<'_>, reason: DisconnectReason) {
        println!(
            "{} is gone: {reason}; {} orders so far",
            peer.id().target,
            self.orders
        );
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let cause = error.source().map(|cause| format!(": {cause}"));
            eprintln!("acceptor: {error}{}", cause.unwrap_or_default());
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error + Send + Sync>> {
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:9880".to_owned());
    let address: SocketAddr = address
        .parse()
        .map_err(|_| format!("{address} is no IP address with a port"))?;
    // Anybody may come, under any CompIDs; messages are not kept.
    let template = Config::new(SessionId::new(Version::Fix44, "", ""));
    let store = StoreKind::NoResend(16 << 20);
    let acceptor = Acceptor::new(address).anybody(template, store, 100);
    println!("listening on {address}; Ctrl-C logs everybody out");
    acceptor.run(
        Exchange { orders: 0 },
        Idle::BackOff,
        &Stop::on_interrupt()?,
    )
}
