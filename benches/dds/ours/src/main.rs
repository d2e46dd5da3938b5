//! Fanfare's ends: over DDS, with listeners, and through its shared memory, with loops that spin.
//!
//!     ours dds|shm ROLE SIZE WARM_UP COUNT DOMAIN  as all ends
//!     ours xml ROLE SIZE WARM_UP COUNT DOMAIN      prints the role's configuration of Cyclone DDS
#![forbid(unsafe_code)]

mod over_dds;
mod over_shm;

use ends::{Args, Result};
use fanfare_dds::types::{Kind, StructType};

fn main() -> Result<()> {
    let args = Args::read()?;
    match args.way.as_str() {
        "dds" => over_dds::run(&args),
        "shm" => over_shm::run(&args),
        "xml" => {
            ends::say(&over_dds::config(&args).to_xml()?);
            Ok(())
        }
        way => Err(format!("{way} is neither dds, shm nor xml").into()),
    }
}

/// Returns the type of samples: a number, and bytes.
fn sample_type(args: &Args) -> Result<StructType> {
    let payload = u32::try_from(args.size - ends::NUMBER)?;
    Ok(StructType::new("Bench::Sample")
        .member("number", Kind::UInt64)
        .member("payload", Kind::Array(Box::new(Kind::Byte), payload)))
}
