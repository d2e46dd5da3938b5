//! Structs of the templates and typed messages, as any build script makes them.

// typed: begin
use fanfare_fix::codegen;
use fanfare_fix::dict::{Dictionary, Version};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = std::env::var("OUT_DIR")?;
    let dictionary = Dictionary::built_in(Version::Fix44);
    let code = codegen::generate(&[(&dictionary, &["NewOrderSingle"])])?;
    std::fs::write(format!("{out}/fix44.rs"), code)?;
    // typed: end
    for name in ["simple", "complex"] {
        let templates = format!("../crates/fast/templates/{name}.xml");
        println!("cargo::rerun-if-changed={templates}");
        let code = fanfare_fast::codegen::generate(&std::fs::read_to_string(templates)?)?;
        std::fs::write(format!("{out}/{name}.rs"), code)?;
    }
    // typed: begin
    Ok(())
}
// typed: end
