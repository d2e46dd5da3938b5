//! The main loop of the other process.

use std::io::{BufRead, Write, stdin, stdout};

use fanfare_dds::Qos;

use super::ends::Ours;
use super::other::{End, Other};
use super::{shm, stalled};
use crate::bench::BenchError;
use crate::raw_dds::{CProgram, Role};

/// Runs the other process: responds to each line with the counts, until the pipe closes.
///
/// # Errors
/// An end of DDS cannot be opened, or the pipe is broken.
pub fn serve(other: &Other) -> Result<(), BenchError> {
    let own = super::config(other.domain);
    let with = stalled::config(other.policy, &own);
    let qos = stalled::qos(other.policy);
    let (mut raw, mut ours, mut shm) = (None, None, None);
    match other.end {
        End::RawPong => raw = Some(CProgram::open(&own, Role::Pong, false)?),
        End::RawSink => raw = Some(CProgram::open(&own, Role::Sink, true)?),
        End::Pong => ours = Some(Ours::pong(&own, &Qos::reliable())?),
        End::Sink => ours = Some(Ours::sink(&own)?),
        End::PolicyPong => ours = Some(Ours::pong(&with, &qos)?),
        End::Beside => ours = Some(Ours::beside(&with, &qos)?),
        End::ShmPong => shm = Some(shm::Pong::start(other.domain)?),
    }
    for line in stdin().lock().lines() {
        line?;
        let counted = raw.as_ref().map(CProgram::count);
        let (count, nanos) = counted.or(ours.as_ref().map(Ours::count)).unwrap_or((0, 0));
        let mut out = stdout().lock();
        writeln!(out, "{count} {nanos}")?;
        out.flush()?;
    }
    drop(shm);
    Ok(())
}
