//! A FIX acceptor that responds to each order with an execution report.
//!
//!     cargo run --release -p fanfare-engine --example acceptor -- 127.0.0.1:9880

use fanfare_engine::host::{Acceptor, Handler, Peer, StoreKind};
use fanfare_engine::{idle::Idle, stop::Stop};
use fanfare_fix::session::{AppMessage, Config, SessionId, Version};
use fanfare_fix::typed::Decimal;
use fix44::{ExecType, ExecutionReport, ExecutionReportFields, NewOrderSingle, OrdStatus};
use std::error::Error;

include!("../../fix/messages/fix44.generated");

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

/// The number of orders received.
pub(crate) struct Exchange(pub(crate) u64);

impl Exchange {
    fn report(&self, peer: &mut Peer<'_>, order: &NewOrderSingle<'_>) -> Outcome {
        let fields = ExecutionReportFields {
            order_id: &self.0.to_string(),
            exec_id: &self.0.to_string(),
            exec_type: ExecType::New,
            ord_status: OrdStatus::New,
            symbol: order.symbol()?,
            side: order.side()?,
            leaves_qty: order.order_qty()?.unwrap_or(Decimal::from(0)),
            cum_qty: Decimal::from(0),
            avg_px: Decimal::from(0),
        };
        let cl_ord_id = order.cl_ord_id()?;
        peer.send(ExecutionReport::MSG_TYPE, |report| {
            ExecutionReport::build(report, fields).cl_ord_id(cl_ord_id);
        })?;
        Ok(())
    }
}

impl Handler for Exchange {
    fn on_message(&mut self, peer: &mut Peer<'_>, message: &AppMessage<'_>) {
        let order = NewOrderSingle::read(&message.message);
        self.0 += u64::from(order.is_some());
        if let Some(Err(error)) = order.map(|order| self.report(peer, &order)) {
            peer.logout(&error.to_string());
        }
    }
}

fn main() -> Outcome {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:9880".into());
    // Any CompIDs may log on; messages are not kept.
    let template = Config::new(SessionId::new(Version::Fix44, "", ""));
    let store = StoreKind::NoResend(16 << 20);
    let acceptor = Acceptor::new(address.parse()?).anybody(template, store, 100);
    println!("listening on {address}; Ctrl-C logs everybody out");
    acceptor.run(Exchange(0), Idle::BackOff, &Stop::on_interrupt()?)
}
