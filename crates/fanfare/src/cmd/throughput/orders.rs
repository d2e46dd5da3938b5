//! `fanfare throughput orders`: makes a flat file of orders.

use crate::print::Stdout;
use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use fanfare_instruments::throughput::{MAX_ORDERS, Orders};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::range::whole;

/// Options of `fanfare throughput orders`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The number of orders.
    #[arg(value_name = "COUNT", default_value_t = 20_000)]
    #[arg(value_parser = whole::<u64>(1..=MAX_ORDERS as u64))]
    count: u64,
    /// The file to write [default: stdout].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match &args.output {
        Some(path) => {
            let write = || write(File::create(path)?, args.count);
            write().with_context(|| format!("cannot write {}", path.display()))?;
        }
        None => write(Stdout, args.count)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn write(to: impl Write, count: u64) -> io::Result<()> {
    let mut to = BufWriter::new(to);
    writeln!(to, "# NewOrderSingle(D), the fields of one body a line")?;
    for number in 1..=count {
        writeln!(to, "{}", Orders::line(number))?;
    }
    to.flush()
}
