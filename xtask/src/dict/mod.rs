//! `cargo xtask dict`: makes the FIX dictionary tables of crates/fix/dict-data from the FIX
//! Repository, 2010 edition. The same source gives the same bytes.
//!
//!     cargo xtask dict                     fetch the pinned source package, write the tables
//!     cargo xtask dict --source FOLDER     the same from an unpacked fix-repository folder
//!     cargo xtask dict ... --check         write nothing, fail if a table would change

mod amend;
mod repository;
mod source;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use amend::Amendment;
use repository::Repository;

/// Application versions in the order of their publication, then the transport.
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
    check: bool,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--check" => options.check = true,
                "--source" => {
                    let folder = args.next().ok_or("--source wants a folder")?;
                    options.source = Some(PathBuf::from(folder));
                }
                other => return Err(format!("unknown argument {other}")),
            }
        }
        Ok(options)
    }
}

fn generate(root: &Path, options: &Options) -> Result<(), String> {
    let folder = match &options.source {
        Some(folder) => folder.clone(),
        None => source::fetch(root)?,
    };
    let data = root.join("crates/fix/dict-data");
    let amendments = amend::parse(&read(&data.join("amendments.txt"))?)?;
    let editions = VERSIONS
        .iter()
        .map(|version| Repository::read(&folder.join(version), version))
        .collect::<Result<Vec<_>, _>>()?;
    let mut changed = Vec::new();
    for version in VERSIONS {
        let text = table::render(&editions, version, &of(&amendments, version))?;
        let path = data.join(format!("{version}.txt"));
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        changed.push(version);
        if !options.check {
            fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        }
    }
    match (options.check, changed.is_empty()) {
        (true, false) => Err(format!("not up to date: {}", changed.join(", "))),
        (false, false) => {
            println!("dict: wrote {}", changed.join(", "));
            Ok(())
        }
        _ => {
            println!("dict: all tables are up to date");
            Ok(())
        }
    }
}

fn of<'a>(amendments: &'a [Amendment], version: &str) -> Vec<&'a Amendment> {
    amendments.iter().filter(|a| a.version == version).collect()
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}
