#!/usr/bin/env bash
# Runs `cargo test` with these arguments, but as many test programs at a time as there are
# processors: most of them wait for time or for the other processor near their ends. The output of
# a program comes when it has ended. All of them run, and those that failed are named at the end.
set -euo pipefail

# As cargo's runner: records a test program and the folder of its package instead of running it.
if [ "${1:-}" = --record ]; then
    printf '%s\0%s\0' "$CARGO_MANIFEST_DIR" "$2" >>"$FANFARE_TESTS/programs"
    exit
fi

if [ "${1:-}" = --run ]; then
    export CARGO_MANIFEST_DIR=$2
    name=$(basename "$3")
    output=$FANFARE_TESTS/$name
    cd "$2"
    status=0
    "$3" >"$output" 2>&1 || status=$?
    # The output of one program is not interleaved with that of another.
    flock "$FANFARE_TESTS" cat <(printf '\n     Running %s' "$name") "$output"
    rm "$output"
    [ "$status" = 0 ] || echo "$name" >>"$FANFARE_TESTS/failed"
    exit 0
fi

script=$(realpath "$0")
FANFARE_TESTS=$(mktemp -d)
export FANFARE_TESTS
trap 'rm -rf "$FANFARE_TESTS"' EXIT
# Without cargo's lines of the programs, which run later.
${CARGO:-cargo} --config "target.'cfg(all())'.runner = ['$script', '--record']" test "$@" \
    2> >(sed -u '/^     Running /d' >&2)
processors=$(nproc)
threads=${RUST_TEST_THREADS:-$((3 * processors))}
export RUST_TEST_THREADS=$(((threads + processors - 1) / processors))
xargs -0 -n 2 -P "$processors" "$script" --run <"$FANFARE_TESTS/programs"
if [ -s "$FANFARE_TESTS/failed" ]; then
    echo "failed:" $(sort "$FANFARE_TESTS/failed")
    exit 1
fi
