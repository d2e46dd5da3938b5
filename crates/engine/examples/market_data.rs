//! Requests market data and prints the prices received, until Ctrl-C.
//!
//!     cargo run -p fanfare-engine --example market_data -- 127.0.0.1:9880 EUR/USD

use fanfare_engine::host::{Handler, Initiator, Peer};
use fanfare_engine::{idle::Idle, stop::Stop};
use fanfare_fix::session::{AppMessage, Config, SessionId, Version};
use fanfare_fix::typed::FieldError;
use fix44::{MDEntryType, MarketDataRequest, SubscriptionRequestType};
use std::{error::Error, net::SocketAddr, time::Duration};

include!("../../fix/messages/fix44.generated");

/// The symbol of the subscription.
pub(crate) struct Watcher(pub(crate) String);

impl Handler for Watcher {
    fn on_logon(&mut self, peer: &mut Peer<'_>) {
        let fields = fix44::MarketDataRequestFields {
            md_req_id: "1",
            subscription_request_type: SubscriptionRequestType::SnapshotAndUpdates,
            market_depth: 1,
        };
        let kinds = [MDEntryType::Bid, MDEntryType::Offer];
        let sent = peer.send(MarketDataRequest::MSG_TYPE, |request| {
            MarketDataRequest::build(request, fields)
                .md_entry_types(kinds, |entry, kind| entry.md_entry_type(kind))
                .related_sym([&self.0], |entry, symbol| entry.symbol(symbol));
        });
        if let Err(error) = sent {
            peer.logout(&error.to_string());
        }
    }

    fn on_message(&mut self, _: &mut Peer<'_>, message: &AppMessage<'_>) {
        let print = |snapshot: fix44::MarketDataSnapshotFullRefresh<'_>| {
            for entry in snapshot.md_entries()? {
                println!("{:?} {:?}", entry.md_entry_type()?, entry.md_entry_px()?);
            }
            Ok::<(), FieldError>(())
        };
        match fix44::MarketDataSnapshotFullRefresh::read(&message.message).map(print) {
            Some(Ok(())) => {}
            other => println!("{other:?}: {:?}", message.message),
        }
    }
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut args = std::env::args().skip(1);
    let address: SocketAddr = args.next().unwrap_or("127.0.0.1:9880".into()).parse()?;
    let symbol = args.next().unwrap_or("EUR/USD".into());
    let config = Config::new(SessionId::new(Version::Fix44, "WATCHER", "EXCHANGE"));
    // Sleeps in the kernel between messages.
    let idle = Idle::Wait(Duration::from_secs(1));
    Initiator::new(config, vec![address]).run(Watcher(symbol), idle, &Stop::on_interrupt()?)
}
