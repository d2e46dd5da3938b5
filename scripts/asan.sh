#!/bin/sh
# Runs the tests of fanfare-dds under AddressSanitizer, with which the C library is compiled, too:
# accesses out of bounds, uses after free, leaks. Needs nightly Rust. Stops at the first test
# binary with a finding.
set -eu
cd "$(dirname "$0")/.."
rustup toolchain list | grep -q nightly || rustup toolchain install nightly --profile minimal
host=$(rustc +nightly -vV | sed -n 's/^host: //p')
# The C compiler's instrumentation and Rust's runtime agree on their interface.
export CFLAGS=-fsanitize=address CXXFLAGS=-fsanitize=address RUSTFLAGS=-Zsanitizer=address
export CARGO_TARGET_DIR="$PWD/target/asan"
# Programs that only run during the build may leak.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
ASAN_OPTIONS=detect_leaks=0 cargo +nightly test --locked --package fanfare-dds --target "$host" \
    --lib --test it --test fast --test hostile_bytes --no-run >"$log" 2>&1 || {
    cat "$log" >&2
    exit 1
}
binaries=$(sed -n 's/^ *Executable.*(\(.*\))$/\1/p' "$log")
[ -n "$binaries" ] || { echo "asan: cargo names no test binary" >&2; exit 1; }
cd crates/dds
for binary in $binaries; do
    binary=${binary#"$CARGO_TARGET_DIR"/}
    binary=${binary#target/asan/}
    echo "asan: $(basename "$binary")"
    # The C library registers some of its globals twice.
    ASAN_OPTIONS=detect_leaks=1:detect_odr_violation=0 \
        "$CARGO_TARGET_DIR/$binary" --quiet --test-threads=2
done
echo "asan: nothing found"
