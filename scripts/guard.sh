#!/bin/sh
# Counts the instructions of ten hot paths with valgrind, undisturbed by other programs, and fails if
# one takes 3 % more than recorded in benches/guard/benches/guard.rs.
set -eu
cd "$(dirname "$0")/.."
scripts/setup.sh valgrind
cd benches/guard
# The runner and the library need the same version.
version=$(sed -n 's/^gungraun = "=\(.*\)"$/\1/p' Cargo.toml)
gungraun-runner --version 2>/dev/null | grep -q "$version" ||
    cargo install --quiet --locked gungraun-runner --version "$version"
cargo bench --quiet --locked
