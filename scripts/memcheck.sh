#!/bin/sh
# Runs the tests of fanfare-dds, and its C library, under valgrind: reads and writes out of bounds,
# uses of uninitialised memory, leaks. Stops at the first test binary with a finding.
set -eu
cd "$(dirname "$0")/.."
scripts/setup.sh valgrind
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cargo test --locked --package fanfare-dds --lib --test it --test hostile_bytes \
    --no-run >"$log" 2>&1 || {
    cat "$log" >&2
    exit 1
}
binaries=$(sed -n 's/^ *Executable.*(\(.*\))$/\1/p' "$log")
[ -n "$binaries" ] || { echo "memcheck: cargo names no test binary" >&2; exit 1; }
for binary in $binaries; do
    echo "memcheck: $binary"
    # A few cases of each property test suffice.
    PROPTEST_CASES=8 valgrind --quiet --error-exitcode=9 --leak-check=full \
        --errors-for-leak-kinds=definite --show-leak-kinds=definite --num-callers=30 \
        "$binary" --quiet --test-threads=2
done
echo "memcheck: nothing found"
