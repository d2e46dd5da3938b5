//! `cargo xtask dict`: makes the FIX dictionary tables of crates/fix/dict-data from the FIX
//! Repository, 2010 edition, and the constants of crates/fix/src/vocabulary from the tables. The
//! same source results in the same bytes.
//!
//!     cargo xtask dict                     fetch the pinned source package, write the tables
//!     cargo xtask dict --source FOLDER     the same from an unpacked fix-repository folder
//!     cargo xtask dict --constants         write the constants alone, from the tables as they are
//!     cargo xtask dict ... --check         write nothing, fail if a file would change

mod amend;
mod repository;
mod source;
mod table;
mod vocabulary;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use amend::Amendment;
use repository::Repository;

/// The application versions in the order of their publication, then the transport.
const VERSIONS: [&str; 9] = [
    "FIX.4.0",
    "FIX.4.1",
    "FIX.4.2",
    "FIX.4.3",
    "FIX.4.4",
    "FIX.5.0",
    "FIX.5.0SP1",
    "FIX.5.0SP2",
    TRANSPORT,
];

const TRANSPORT: &str = "FIXT.1.1";

/// Runs the task with the arguments after `dict`.
pub(crate) fn run(root: &Path, args: &[String]) -> ExitCode {
    match Options::parse(args).and_then(|options| generate(root, &options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("dict: {why}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Default)]
struct Options {
    source: Option<PathBuf>,
    constants: bool,
    check: bool,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--check" => options.check = true,
                "--constants" => options.constants = true,
                "--source" => {
                    let folder = args.next().ok_or("--source needs a folder")?;
                    options.source = Some(PathBuf::from(folder));
                }
                other => return Err(format!("unknown argument {other}")),
            }
        }
        Ok(options)
    }
}

fn generate(root: &Path, options: &Options) -> Result<(), String> {
    let data = root.join("crates/fix/dict-data");
    let mut changed = Vec::new();
    if !options.constants {
        for (version, text) in tables(root, options, &data)? {
            let path = data.join(format!("{version}.txt"));
            changed.extend(renew(&path, &text, options.check)?);
        }
    }
    let vocabulary = root.join("crates/fix/src/vocabulary");
    for (name, text) in vocabulary::render(&data)? {
        changed.extend(renew(&vocabulary.join(name), &text, options.check)?);
    }
    match (options.check, changed.is_empty()) {
        (true, false) => Err(format!("not up to date: {}", changed.join(", "))),
        (false, false) => {
            println!("dict: wrote {}", changed.join(", "));
            Ok(())
        }
        _ => {
            println!("dict: all files are up to date");
            Ok(())
        }
    }
}

/// Returns the tables by version.
fn tables(
    root: &Path,
    options: &Options,
    data: &Path,
) -> Result<Vec<(&'static str, String)>, String> {
    let folder = match &options.source {
        Some(folder) => folder.clone(),
        None => source::fetch(root)?,
    };
    let amendments = amend::parse(&read(&data.join("amendments.txt"))?)?;
    let editions = VERSIONS
        .iter()
        .map(|version| Repository::read(&folder.join(version), version))
        .collect::<Result<Vec<_>, _>>()?;
    let render = |version| {
        let text = table::render(&editions, version, &of(&amendments, version))?;
        Ok((version, text))
    };
    VERSIONS.into_iter().map(render).collect()
}

/// Writes a file if its text has changed, unless `check` is set, and returns its name.
fn renew(path: &Path, text: &str, check: bool) -> Result<Option<String>, String> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(None);
    }
    if !check {
        fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    let name = path.file_name().unwrap_or_default();
    Ok(Some(name.to_string_lossy().into_owned()))
}

fn of<'a>(amendments: &'a [Amendment], version: &str) -> Vec<&'a Amendment> {
    amendments.iter().filter(|a| a.version == version).collect()
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}
