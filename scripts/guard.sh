#!/bin/sh
# Counts the instructions of ten hot paths with valgrind, which no other program disturbs, and fails
# where one takes 3 % more than benches/guard/benches/guard.rs says.
set -eu
cd "$(dirname "$0")/../benches/guard"
if ! command -v valgrind >/dev/null; then
    apt-get -qq update
    apt-get -qq install -y --no-install-recommends valgrind >/dev/null
fi
# The runner has to be of the version of the library.
version=$(sed -n 's/^gungraun = "=\(.*\)"$/\1/p' Cargo.toml)
gungraun-runner --version 2>/dev/null | grep -q "$version" ||
    cargo install --quiet --locked gungraun-runner --version "$version"
cargo bench --quiet --locked
