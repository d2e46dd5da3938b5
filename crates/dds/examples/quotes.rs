//! The typed way: quotes as a Rust structure, written and read by programs that know only the
//! topic.
//!
//!     cargo run -p fanfare-dds --example quotes
//!     cargo run -p fanfare-dds --example quotes -- publish
//!
//! The first prints the quotes that others publish in domain 0 of this host, until Ctrl-C. The
//! second publishes some, and so does `fanfare dds publish simple --no-echo --wait 0` of a file or
//! of a multicast feed; what is published before the two have found each other is not printed.

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use fanfare_dds::cdr::CdrBuffer;
use fanfare_dds::{Domain, DomainConfig, Qos, Status, cdr_struct};

cdr_struct! {
    /// As `fanfare dds idl -t builtin:simple --rust` prints it.
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

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.first().map(String::as_str) {
        None => subscribe(0, print, |quote| {
            println!("{quote:?}");
            true
        }),
        Some("publish") => publish(0),
        Some(other) => {
            eprintln!("quotes: {other} is neither publish nor nothing");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quotes: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print(status: Status) {
    println!("{status}");
}

/// A quote each tenth of a second.
fn publish(domain: u32) -> Result<(), Box<dyn Error>> {
    let domain = Domain::open(&DomainConfig::new(domain))?;
    let qos = Qos::reliable();
    let topic = domain.topic_of::<Quote>("Quote", &qos)?;
    let writer = topic.writer(&qos).on_status(print).open()?;
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

/// Gives `each` what comes, until it says `false`.
pub(crate) fn subscribe(
    domain: u32,
    on_status: impl FnMut(Status) + Send + 'static,
    mut each: impl FnMut(&Quote) -> bool,
) -> Result<(), Box<dyn Error>> {
    let domain = Domain::open(&DomainConfig::new(domain))?;
    let qos = Qos::reliable();
    let topic = domain.topic_of::<Quote>("Quote", &qos)?;
    let reader = topic.reader(&qos).on_status(on_status).open()?;
    let mut waitset = domain.waitset()?;
    waitset.attach(&reader)?;
    let mut samples = reader.samples(256);
    loop {
        waitset.wait(Duration::from_secs(1), |_| {})?;
        while reader.take(&mut samples)? > 0 {
            for sample in samples.iter().filter(|s| s.info.has_data) {
                if !each(&sample.value::<Quote>()?) {
                    return Ok(());
                }
            }
        }
    }
}
