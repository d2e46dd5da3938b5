#!/bin/sh
# Runs every fuzz target for so many seconds: fuzz.sh SECONDS. Needs nightly Rust; installs
# cargo-fuzz when it is missing. Stops at the first finding.
set -eu
seconds=$1
cd "$(dirname "$0")/.."
rustup toolchain list | grep -q nightly || rustup toolchain install nightly --profile minimal
cargo fuzz --version >/dev/null 2>&1 || cargo install --locked cargo-fuzz
# The C library below bus_cdr registers some of its globals twice.
export ASAN_OPTIONS=detect_odr_violation=0
for target in $(cargo +nightly fuzz list); do
    echo "fuzz: $target for $seconds s"
    mkdir -p "fuzz/corpus/$target" "fuzz/seeds/$target"
    cargo +nightly fuzz run "$target" "fuzz/corpus/$target" "fuzz/seeds/$target" -- \
        -max_total_time="$seconds" -verbosity=0
done
