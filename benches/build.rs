//! Structs of the templates, as any build script makes them.

use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = env::var("OUT_DIR")?;
    for name in ["simple", "complex"] {
        let templates = format!("../crates/fast/templates/{name}.xml");
        println!("cargo::rerun-if-changed={templates}");
        let code = fanfare_fast::codegen::generate(&fs::read_to_string(templates)?)?;
        fs::write(Path::new(&out).join(format!("{name}.rs")), code)?;
    }
    Ok(())
}
