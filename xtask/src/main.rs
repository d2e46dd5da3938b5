//! Tasks of the tree, run as `cargo xtask TASK`.
#![forbid(unsafe_code)]

mod dict;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask TASK

tasks:
  dict    generate the FIX dictionary tables and constants from the FIX Repository (--source FOLDER,
          --constants for the constants only, --check)
  tidy    check the tree's rules: sizes, unsafe, layering, cycles, lints, READMEs";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("dict") => dict::run(&root(), &args[1..]),
        Some("tidy") if args.len() == 1 => tidy::run(&root()),
        Some("--help" | "-h") => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Returns the workspace root: the folder above this crate's manifest.
fn root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root
}
