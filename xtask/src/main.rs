//! Tasks of the tree: `cargo xtask tidy`.
#![forbid(unsafe_code)]

fn main() {}
