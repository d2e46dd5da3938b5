//! Publishes a hundred quotes to a topic in domain 0 of DDS, one each tenth of a second.
//!
//!     cargo run -p fanfare-dds --example publish_quotes

use fanfare_dds::cdr::CdrBuffer;
use fanfare_dds::{Domain, DomainConfig, Qos, cdr_struct};
use std::{error::Error, thread, time::Duration};

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

pub(crate) fn publish(
    domain: u32,
    count: u16,
    interval: Duration,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let domain = Domain::open(&DomainConfig::new(domain))?;
    let topic = domain.topic_of::<Quote>("Quote", &Qos::reliable())?;
    let writer = topic.writer(&Qos::reliable()).open()?;
    let mut buffer = CdrBuffer::with_capacity(256);
    for number in 1..=count {
        let quote = Quote {
            MessageType: 1,
            SequenceNumber: number.into(),
            Timestamp: 0,
            OrderId: number.into(),
            Volume: 100,
            Price: 2_500 + u32::from(number % 7),
            ExchangeId: 1,
            SecurityId: number % 10,
            SecurityType: 1,
            SessionId: 1,
        };
        writer.write_value(&quote, &mut buffer)?;
        thread::sleep(interval);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    publish(0, 100, Duration::from_millis(100))
}
