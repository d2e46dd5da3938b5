//! Connects, sends 10,000 NewOrderSingle(D), each after the report on the one before, and logs out.
//!
//!     cargo run --release -p fanfare-engine --example send_orders -- 127.0.0.1:9880

use fanfare_engine::host::{Handler, Initiator, Peer};
use fanfare_engine::{idle::Idle, stop::Stop};
use fanfare_fix::session::{AppMessage, Config, DisconnectReason, SessionId, Version};
use fanfare_fix::typed::Decimal;
use fix44::{ExecutionReport, NewOrderSingle, NewOrderSingleFields, OrdType, Side};
use std::error::Error;

include!("../../fix/messages/fix44.generated");

/// The number of orders sent, and the flag that ends the program.
pub(crate) struct Trader(pub(crate) u64, pub(crate) Stop);

impl Handler for Trader {
    fn on_logon(&mut self, peer: &mut Peer<'_>) {
        self.0 += 1;
        let fields = NewOrderSingleFields {
            cl_ord_id: &self.0.to_string(),
            symbol: "EUR/USD",
            side: Side::Buy,
            transact_time: peer.now().utc,
            ord_type: OrdType::Limit,
        };
        let sent = peer.send(NewOrderSingle::MSG_TYPE, |order| {
            NewOrderSingle::build(order, fields)
                .order_qty(Decimal::from(1_000_000))
                .price(Decimal::new(10_842, -4));
        });
        if let Err(error) = sent {
            peer.logout(&error.to_string());
        }
    }

    fn on_message(&mut self, peer: &mut Peer<'_>, message: &AppMessage<'_>) {
        match ExecutionReport::read(&message.message) {
            Some(_) if self.0 < 10_000 => self.on_logon(peer),
            _ => peer.logout(""),
        }
    }

    fn on_disconnect(&mut self, _: &mut Peer<'_>, reason: DisconnectReason) {
        println!("{} orders: {reason}", self.0);
        self.1.raise();
    }
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:9880".into());
    let mut config = Config::new(SessionId::new(Version::Fix44, "TRADER", "EXCHANGE"));
    config.reset_on_logon = true; // each run starts at 1
    let stop = Stop::on_interrupt()?;
    let initiator = Initiator::new(config, vec![address.parse()?]);
    initiator.run(Trader(0, stop.clone()), Idle::BackOff, &stop)
}
