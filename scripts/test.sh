#!/usr/bin/env bash
# Runs `cargo test` with these arguments, but as many test programs at a time as there are
# processors: most of them wait for time or for the other processor near their ends. The output of
# a program comes when it has ended. All of them run, and those that failed are named at the end
# with their statuses: 124 is that of a program that took too long, 128 + N of one that signal N
# ended. A signal to the script ends all programs.
set -euo pipefail

# As cargo's runner: records a test program and the folder of its package instead of running it.
if [ "${1:-}" = --record ]; then
    # Which cargo passes itself if it is to be quiet.
    [ "${3:-}" != --quiet ] || set -- "$1" "$2" "${@:4}"
    if [ $# -gt 2 ]; then
        echo "test.sh: test programs are run without arguments, and these were given: ${*:3}" >&2
        exit 2
    fi
    printf '%s\0%s\0' "$CARGO_MANIFEST_DIR" "$2" >>"$FANFARE_TESTS/programs"
    exit
fi

if [ "${1:-}" = --run ]; then
    export CARGO_MANIFEST_DIR=$2
    name=$(basename "$2")/$(basename "$3")
    output=$FANFARE_TESTS/output.$$
    cd "$2"
    status=0
    # In the foreground, that is, in the process group of the script's other programs.
    timeout --foreground -k 10 1200 "$3" >"$output" 2>&1 || status=$?
    [ "$status" = 0 ] || echo "$name ($status)" >>"$FANFARE_TESTS/failed"
    # The output of one program is not interleaved with that of another.
    flock "$FANFARE_TESTS" cat <(printf '\n     Running %s' "$name") "$output"
    rm "$output"
    exit 0
fi

script=$(realpath "$0")
FANFARE_TESTS=$(mktemp -d)
export FANFARE_TESTS
touch "$FANFARE_TESTS/programs" "$FANFARE_TESTS/failed"
trap 'rm -rf "$FANFARE_TESTS"' EXIT

# Runs a command as a process group, which ends with this script.
set -m
group() {
    "$@" &
    trap "kill -- -$!; exit 1" HUP INT TERM
    wait $!
}

# Without cargo's lines of the programs, which run later.
exec 3> >(sed -u '/^     Running /d' >&2)
filter=$!
status=0
group ${CARGO:-cargo} --config "target.'cfg(all())'.runner = ['$script', '--record']" test "$@" \
    2>&3 3>&- || status=$?
exec 3>&-
wait "$filter"
[ "$status" = 0 ] || exit "$status"

processors=$(nproc)
threads=${RUST_TEST_THREADS:-$((3 * processors))}
export RUST_TEST_THREADS=$(((threads + processors - 1) / processors))
group xargs -r -0 -n 2 -P "$processors" "$script" --run <"$FANFARE_TESTS/programs" || status=$?
if [ -s "$FANFARE_TESTS/failed" ]; then
    echo "failed:" $(sort "$FANFARE_TESTS/failed")
    exit 1
fi
exit "$status"
