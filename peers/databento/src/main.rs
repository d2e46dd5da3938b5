//! A client on the crate `databento`, unmodified, that a test tells what to do:
//!
//!     client ADDRESS KEY [ts_out] [zstd] [warn] [heartbeat=SECONDS] [dataset=NAME] [quiet]
//!
//! Lines on stdin: `subscribe SCHEMA SYMBOLS [snapshot|start=NANOSECONDS]` and `unsubscribe SCHEMA
//! SYMBOLS`, `start`, `stop` (reading), `go`, `count`, `reconnect`, `end`. On stdout: records as
//! lines of the crate `dbn`'s JSON (of a quiet client notices and errors alone), and objects with
//! one member that are this program's: `session`, `error`, `closed`, `count`, `stopped`.

#![forbid(unsafe_code)]

use databento::dbn::encode::EncodeRecordRef;
use databento::dbn::encode::json::Encoder;
use databento::dbn::{Compression, RType, Record, RecordRef, SType, Schema};
use databento::live::{SlowReaderBehavior, Subscription, Unsubscription};
use databento::{LiveClient, Symbols};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, Write};
use time::OffsetDateTime;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

type Outcome<T> = Result<T, Box<dyn Error>>;

struct Session {
    client: LiveClient,
    ts_out: bool,
    is_quiet: bool,
    is_started: bool,
    is_reading: bool,
    /// Records by type.
    counts: BTreeMap<u8, u64>,
}

fn say(key: &str, value: &str) {
    let value = value.replace(['"', '\\', '\n'], "'");
    println!("{{\"{key}\":\"{value}\"}}");
}

/// Lines of stdin, as they come.
fn commands() -> UnboundedReceiver<String> {
    let (sender, commands) = unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    commands
}

async fn connect(address: &str, key: &str, options: &[String]) -> Outcome<LiveClient> {
    let has = |name: &str| options.iter().any(|option| option == name);
    let value = |name: &str| options.iter().find_map(|option| option.strip_prefix(name));
    let dataset = value("dataset=").unwrap_or("FANFARE");
    let builder = LiveClient::builder().addr(address).await?;
    let mut builder = builder
        .key(key)?
        .dataset(dataset)
        .send_ts_out(has("ts_out"));
    if has("zstd") {
        builder = builder.compression(Compression::Zstd);
    }
    if has("warn") {
        builder = builder.slow_reader_behavior(SlowReaderBehavior::Warn);
    }
    if let Some(seconds) = value("heartbeat=") {
        builder = builder
            .heartbeat_interval(std::time::Duration::from_secs(seconds.parse()?).try_into()?);
    }
    Ok(builder.build().await?)
}

impl Session {
    /// Does what a line says; false: that was the last one.
    async fn obey(&mut self, line: &str) -> Outcome<bool> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["subscribe", schema, symbols, ref more @ ..] => {
                let start = more.iter().find_map(|word| word.strip_prefix("start="));
                let start = start.map(|start| start.parse::<i128>()).transpose()?;
                let base = Subscription::builder()
                    .schema(schema.parse::<Schema>()?)
                    .use_snapshot(more.contains(&"snapshot"));
                let (symbols, by) = named(symbols);
                let base = base.symbols(symbols).stype_in(by);
                let subscription = match start {
                    Some(start) => base
                        .start(OffsetDateTime::from_unix_timestamp_nanos(start)?)
                        .build(),
                    None => base.build(),
                };
                self.client.subscribe(subscription).await?;
            }
            ["unsubscribe", schema, symbols] => {
                let (symbols, by) = named(symbols);
                let end = Unsubscription::builder().schema(schema.parse::<Schema>()?);
                let end = end.symbols(symbols).stype_in(by).build();
                self.client.unsubscribe(end).await?;
            }
            ["start"] => self.start().await?,
            ["stop"] => {
                self.is_reading = false;
                say("stopped", "");
            }
            ["go"] => self.is_reading = true,
            ["count"] => println!("{{\"count\":{}}}", json(&self.counts)),
            ["reconnect"] => {
                self.client.reconnect().await?;
                self.client.resubscribe().await?;
                self.start().await?;
            }
            ["end"] => {
                self.client.close().await?;
                return Ok(false);
            }
            _ => return Err(format!("what is {line:?}?").into()),
        }
        Ok(true)
    }

    async fn start(&mut self) -> Outcome<()> {
        let metadata = self.client.start().await?;
        (self.is_started, self.is_reading) = (true, true);
        let session = self.client.session_id();
        say(
            "session",
            &format!("{session} {} {}", metadata.dataset, metadata.version),
        );
        Ok(())
    }
}

/// All, or some by name, or by the plant's numbers, which begin with `#`.
fn named(symbols: &str) -> (Symbols, SType) {
    if symbols == "ALL_SYMBOLS" {
        return (Symbols::All, SType::RawSymbol);
    }
    match symbols.strip_prefix('#') {
        Some(numbers) => {
            let numbers = numbers
                .split(',')
                .map(|number| number.parse().unwrap_or(u32::MAX));
            (Symbols::Ids(numbers.collect()), SType::InstrumentId)
        }
        None => {
            let names = symbols.split(',').map(str::to_owned);
            (Symbols::Symbols(names.collect()), SType::RawSymbol)
        }
    }
}

fn json(counts: &BTreeMap<u8, u64>) -> String {
    let counts: Vec<String> = counts
        .iter()
        .map(|(key, n)| format!("\"{key}\":{n}"))
        .collect();
    format!("{{{}}}", counts.join(","))
}

fn print(record: RecordRef<'_>, ts_out: bool) -> Outcome<()> {
    let mut out = std::io::stdout().lock();
    let mut encoder = Encoder::new(&mut out, false, false, false);
    // It stands behind the record.
    let last = record.as_ref().last_chunk().copied();
    match last.filter(|_| ts_out) {
        Some(bytes) => encoder.encode_record_ref_with_ts_out(record, u64::from_le_bytes(bytes))?,
        None => encoder.encode_record_ref(record)?,
    }
    out.flush()?;
    Ok(())
}

async fn run() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [address, key, options @ ..] = &args[..] else {
        return Err("client ADDRESS KEY [OPTION]...".into());
    };
    let has = |name: &str| options.iter().any(|option| option == name);
    let client = connect(address, key, options).await?;
    say("session", client.session_id());
    let mut session = Session {
        client,
        ts_out: has("ts_out"),
        is_quiet: has("quiet"),
        is_started: false,
        is_reading: false,
        counts: BTreeMap::new(),
    };
    let mut commands = commands();
    loop {
        tokio::select! {
            line = commands.recv() => {
                let Some(line) = line else { return Ok(()) };
                if !session.obey(&line).await? {
                    return Ok(());
                }
            }
            record = session.client.next_record(), if session.is_started && session.is_reading => {
                let Some(record) = record? else {
                    (session.is_started, session.is_reading) = (false, false);
                    say("closed", "");
                    continue;
                };
                let rtype = record.header().rtype;
                *session.counts.entry(rtype).or_default() += 1;
                let is_told = matches!(record.rtype(), Ok(RType::System | RType::Error));
                if is_told || !session.is_quiet {
                    print(record, session.ts_out)?;
                }
            }
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if let Err(error) = run().await {
        say("error", &error.to_string());
    }
}
