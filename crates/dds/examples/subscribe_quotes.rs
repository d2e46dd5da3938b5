//! Prints the quotes published in domain 0 of this host, until Ctrl-C: by `publish_quotes`, or by
//! `fanfare dds publish simple --no-echo --wait 0` of a file or of a multicast feed.
//!
//!     cargo run -p fanfare-dds --example subscribe_quotes

use fanfare_dds::{Domain, DomainConfig, Qos, Status, cdr_struct};
use std::{error::Error, time::Duration};

cdr_struct! {
    /// A quote, as `fanfare dds idl -t builtin:simple --rust` prints it.
    #[derive(Debug, Clone, PartialEq)]
    #[allow(non_snake_case)]
    pub(crate) struct Quote: "Fanfare::Quote" {
        MessageType: u16,
        SequenceNumber: u32,
        Timestamp: u32,
        OrderId: u32,
        Volume: u32,
        Price: u32,
        ExchangeId: u8,
        SecurityId: u16,
        SecurityType: u8,
        SessionId: u8,
    }
}

/// Passes each quote to `each` until it returns `false`.
pub(crate) fn subscribe(
    domain: u32,
    on_status: impl FnMut(Status) + Send + 'static,
    mut each: impl FnMut(&Quote) -> bool,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let domain = Domain::open(&DomainConfig::new(domain))?;
    let topic = domain.topic_of::<Quote>("Quote", &Qos::reliable())?;
    let reader = topic.reader(&Qos::reliable()).on_status(on_status);
    let (reader, mut waitset) = (reader.open()?, domain.waitset()?);
    waitset.attach(&reader)?;
    let mut samples = reader.samples(256);
    loop {
        waitset.wait(Duration::from_secs(1), |_| {})?;
        while reader.take(&mut samples)? > 0 {
            for sample in samples.iter().filter(|sample| sample.info.has_data) {
                if !each(&sample.value::<Quote>()?) {
                    return Ok(());
                }
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let on_status = |status| println!("{status}");
    subscribe(0, on_status, |quote| {
        println!("{quote:?}");
        true
    })
}
