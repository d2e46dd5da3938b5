//! Compiles the plain C program that `fanfare bench dds` measures against.

fn main() {
    if std::env::var_os("CARGO_FEATURE_DDS").is_none() {
        return;
    }
    println!("cargo:rerun-if-changed=c/quote.c");
    cc::Build::new()
        .file("c/quote.c")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .compile("fanfare_raw_dds");
}
