//! The typed way: quotes as a Rust structure, written and read by programs that know only the
//! topic. `cargo run --example quotes` prints the quotes that others publish in domain 0 of this
//! host; `cargo run --example quotes publish` publishes some; so does
//! `fanfare dds publish simple --no-echo --wait 0 -f FILE`.

use std::error::Error;
use std::time::Duration;

use fanfare_bus::cdr::CdrBuffer;
use fanfare_bus::{Domain, DomainConfig, Qos, cdr_struct};

cdr_struct! {
    /// As `fanfare dds idl -t builtin:simple --rust` prints it.
    #[derive(Debug, Clone, PartialEq)]
    #[allow(non_snake_case)]
    struct Quote: "Fanfare::Quote" {
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

fn main() -> Result<(), Box<dyn Error>> {
    let domain = Domain::open(&DomainConfig::new(0))?;
    let qos = Qos::reliable();
    let topic = domain.topic_of::<Quote>("Quote", &qos)?;
    if std::env::args().nth(1).as_deref() == Some("publish") {
        let writer = topic.writer(&qos).on_status(|status| println!("{status}"));
        publish(&writer.open()?)
    } else {
        let reader = topic.reader(&qos).on_status(|status| println!("{status}"));
        subscribe(&domain, &reader.open()?)
    }
}

/// A quote each tenth of a second.
fn publish(writer: &fanfare_bus::Writer) -> Result<(), Box<dyn Error>> {
    let mut buffer = CdrBuffer::with_capacity(256);
    for number in 1..=100_u16 {
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
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Prints what comes, until Ctrl-C.
fn subscribe(domain: &Domain, reader: &fanfare_bus::Reader) -> Result<(), Box<dyn Error>> {
    let mut waitset = domain.waitset()?;
    waitset.attach(reader)?;
    let mut samples = reader.samples(256);
    loop {
        waitset.wait(Duration::from_secs(1), |_| {})?;
        while reader.take(&mut samples)? > 0 {
            for sample in samples.iter().filter(|s| s.info.has_data) {
                println!("{:?}", sample.value::<Quote>()?);
            }
        }
    }
}
