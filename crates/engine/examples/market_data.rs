//! Asks for market data and prints the prices that come, until Ctrl-C.
//!
//!     cargo run -p fanfare-engine --example market_data -- 127.0.0.1:9880 EUR/USD

use fanfare_engine::host::{Handler, Initiator, Peer, Refusal};
use fanfare_engine::{idle::Idle, stop::Stop};
use fanfare_fix::codec::{msg_types, tags};
use fanfare_fix::session::{AppMessage, Config, SessionId, Version};
use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

struct Watcher {
    symbol: String,
}

impl Handler for Watcher {
    fn on_logon(&mut self, peer: &mut Peer<'_>) {
        let sent = peer.send(msg_types::MARKET_DATA_REQUEST, |request| {
            request
                .str(tags::MD_REQ_ID, "1")
                .char(tags::SUBSCRIPTION_REQUEST_TYPE, b'1');
            request.u64(tags::MARKET_DEPTH, 1);
            request
                .u64(tags::NO_MD_ENTRY_TYPES, 2)
                .char(tags::MD_ENTRY_TYPE, b'0')
                .char(tags::MD_ENTRY_TYPE, b'1');
            request
                .u64(tags::NO_RELATED_SYM, 1)
                .str(tags::SYMBOL, &self.symbol);
        });
        if let Err(error) = sent {
            eprintln!("{error}");
        }
    }

    fn on_message(&mut self, _peer: &mut Peer<'_>, message: &AppMessage<'_>) {
        let snapshot = &message.message;
        if snapshot.msg_type() != msg_types::MARKET_DATA_SNAPSHOT_FULL_REFRESH {
            return println!(
                "{}",
                String::from_utf8_lossy(snapshot.bytes()).replace('\x01', "|")
            );
        }
        let entries = match snapshot.group(tags::NO_MD_ENTRIES) {
            Ok(entries) => entries,
            Err(error) => return eprintln!("{error}"),
        };
        for entry in entries {
            let text = |tag| String::from_utf8_lossy(entry.get(tag).unwrap_or(b"-"));
            println!(
                "type {} price {}",
                text(tags::MD_ENTRY_TYPE),
                text(tags::MD_ENTRY_PX)
            );
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
            eprintln!("market_data: {error}");
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
    let symbol = args.next().unwrap_or_else(|| "EUR/USD".to_owned());
    let session = Config::new(SessionId::new(Version::Fix44, "WATCHER", "EXCHANGE"));
    let initiator = Initiator::new(session, vec![address]);
    // Sleeps in the kernel between messages.
    let idle = Idle::Wait(Duration::from_secs(1));
    initiator.run(Watcher { symbol }, idle, &Stop::on_interrupt()?)
}
