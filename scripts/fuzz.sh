#!/bin/sh
# Runs fuzz targets, all unless some are named, for SECONDS each: fuzz.sh SECONDS [TARGET...]
# Installs nightly Rust and cargo-fuzz if they are missing. A finding does not stop the other
# targets; the exit status is 1 if there is one.
set -eu
seconds=$1
shift
cd "$(dirname "$0")/.."
rustup toolchain list | grep -q nightly || rustup toolchain install nightly --profile minimal
cargo fuzz --version >/dev/null 2>&1 || cargo install --locked cargo-fuzz
# The C library below dds_cdr registers some of its globals twice.
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_odr_violation=0}"
all=$(cargo +nightly fuzz list)
for target in "$@"; do
    if ! echo "$all" | grep -qx "$target"; then
        echo "fuzz: there is no target $target; there are" $all >&2
        exit 2
    fi
done
[ $# -gt 0 ] || set -- $all
echo "fuzz: building (some minutes the first time: everything with the sanitizer, also a C library)"
cargo +nightly fuzz build
echo "fuzz: $# targets, $seconds s each"
found=
trap 'echo "fuzz: interrupted"; exit 130' INT
for target in "$@"; do
    mkdir -p "fuzz/corpus/$target" "fuzz/seeds/$target" "fuzz/artifacts/$target"
    log="fuzz/artifacts/$target.log"
    if cargo +nightly fuzz run "$target" "fuzz/corpus/$target" "fuzz/seeds/$target" -- \
        -max_total_time="$seconds" -print_final_stats=1 >"$log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        memory=$(sed -n 's/^stat::peak_rss_mb: *//p' "$log")
        echo "fuzz: $target: nothing found in $runs runs, at most $memory MiB"
    else
        found="$found $target"
        echo "fuzz: $target: FOUND SOMETHING:"
        grep -m 3 -E 'panicked at|ERROR: |SUMMARY: ' "$log" || tail -n 5 "$log"
        grep -oE 'fuzz/artifacts/[^ /]+/[a-z]+-[0-9a-f]+' "$log" | sort -u | while read -r input; do
            echo "  again: cargo +nightly fuzz run $target $input"
        done
        echo "  whole output: $log"
    fi
done
if [ -n "$found" ]; then
    echo "fuzz: findings in$found; make each a unit test beside the code when you mend it"
    exit 1
fi
