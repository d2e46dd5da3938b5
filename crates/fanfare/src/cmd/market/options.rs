//! Mappings and tables of instruments by the names of the command line.

use anyhow::{Context, Result, bail};
use fanfare_fast::Program;
use fanfare_fix::dict::Version;
use fanfare_market::mapping::BUILT_IN;
use fanfare_market::{Instruments, Mapping};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The largest mapping file, bytes.
const MAPPING_LIMIT: u64 = 16 << 20;
/// The largest file of instruments, bytes.
const TABLE_LIMIT: u64 = 1 << 30;
/// The most instruments in a table.
pub(super) const INSTRUMENTS: usize = 10_000_000;

pub(crate) const MAPPING_HELP: &str =
    "Mapping file (TOML), or builtin:fix, builtin:spectra or builtin:complex";

/// Returns the version of FIX of this name.
pub(super) fn version(text: &str) -> Result<Version, String> {
    Version::from_name(text).ok_or_else(|| {
        "must be FIX.4.0 to FIX.4.4, FIX.5.0, FIX.5.0SP1, FIX.5.0SP2 or FIXT.1.1".to_owned()
    })
}

/// Returns the mapping of this name; without a name, the built-in mapping that fits the templates.
pub(crate) fn mapping(name: Option<&str>, program: &Program) -> Result<Mapping> {
    let name = name.unwrap_or_else(|| Mapping::name_for(program));
    named_mapping(name)
}

/// Returns the built-in mapping of this name, or the mapping in the file of this name.
pub(super) fn named_mapping(name: &str) -> Result<Mapping> {
    if name.starts_with("builtin:") {
        let all = BUILT_IN.map(|(name, _)| name).join(", ");
        let found = Mapping::built_in(name);
        return found.with_context(|| format!("unknown mapping `{name}`: expected one of {all}"));
    }
    let text = read(Path::new(name), MAPPING_LIMIT)?;
    Ok(Mapping::parse(name, &text)?)
}

/// Reads the text of a file of a bounded size.
fn read(path: &Path, limit: u64) -> Result<String> {
    let cannot = || format!("cannot read `{}`", path.display());
    let file = File::open(path).with_context(cannot)?;
    let mut bytes = Vec::new();
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .with_context(cannot)?;
    if bytes.len() as u64 > limit {
        bail!("`{}` has more than {limit} bytes", path.display());
    }
    String::from_utf8(bytes).with_context(|| format!("`{}` is not UTF-8", path.display()))
}

/// Adds the instruments of a file to the table: TOML if its name ends so, CSV otherwise.
pub(super) fn read_table(path: &Path, table: &mut Instruments) -> Result<()> {
    let text = read(path, TABLE_LIMIT)?;
    table.read_file(&path.display().to_string(), &text)?;
    Ok(())
}
