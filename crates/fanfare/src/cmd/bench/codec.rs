//! `fanfare bench codec`: the cost of decoding and encoding one FIX message.

use anyhow::{Result, anyhow};
use clap::Args as ClapArgs;
use fanfare_instruments::bench::codec;
use fanfare_instruments::figures::Figures;
use fanfare_wire::Kernel;
use std::process::ExitCode;

use crate::print::figures_out;

/// Options of `fanfare bench codec`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Index fields with this kernel: scalar, swar, sse2, avx2, avx512 [default: the fastest here].
    #[arg(long, value_name = "NAME", value_parser = kernel)]
    kernel: Option<Kernel>,
    /// Print the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut figures = Figures::new("bench codec");
    codec::add_figures(&mut figures, args.kernel)?;
    Ok(figures_out(&figures, args.json))
}

fn kernel(name: &str) -> Result<Kernel> {
    let names = Kernel::ALL.map(Kernel::name).join(", ");
    Kernel::from_name(name).ok_or_else(|| anyhow!("expected one of {names}"))
}
