//! `fanfare bench dbn`: records per second to DBN clients, compared with a raw program.

use anyhow::Result;
use clap::Args as ClapArgs;
use fanfare_engine::stop::Stop;
use fanfare_instruments::bench::dbn::DbnBench;
use fanfare_instruments::figures::Figures;
use std::process::ExitCode;

use super::processors;
use crate::print::measured_out;
use crate::range::whole;

/// Options of `fanfare bench dbn`.
///
/// Trades of 100 instruments go from the ring of events through the DBN port to clients that
/// subscribe to all of them (`records_per_s`, `clients_N_records_per_s`: delivered to all); the raw
/// program writes bytes of the same size to as many sockets. `lost` is the number of records
/// missing at a client at the end.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Records to one client, and the total to many.
    #[arg(long, value_name = "N", default_value_t = 20_000_000)]
    #[arg(value_parser = whole::<u64>(1_000..=10_000_000_000))]
    records: u64,
    /// Clients of the second measurement.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = whole::<usize>(1..=1_000))]
    clients: usize,
    /// Print the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let stop = Stop::on_interrupt()?;
    let bench = DbnBench {
        records: args.records,
        processors: processors()?,
    };
    let mut figures = Figures::new("bench dbn");
    let prefix = format!("clients_{}_", args.clients);
    let of_one = bench.add(&mut figures, "", 1, &stop)?;
    let of_many = of_one.map(|_| bench.add(&mut figures, &prefix, args.clients, &stop));
    let of_many = of_many.transpose()?.flatten();
    let lost = of_one.zip(of_many).map(|(one, many)| one + many);
    if let Some(lost) = lost {
        figures.count("lost", lost);
    }
    figures.set_ok(lost == Some(0));
    Ok(measured_out(figures, args.json, &stop))
}
