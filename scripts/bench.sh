#!/bin/sh
# Runs every benchmark of the binary and writes its JSON to a folder: bench.sh FANFARE DIR
set -eu
fanfare=$1
out=$2
mkdir -p "$out"
failed=
# A benchmark that Ctrl-C ends fails like any other.
trap 'exit 130' INT
# The JSON of a benchmark that fails is left as NAME.json.tmp, and the next one runs.
run() {
    name=$1
    shift
    echo "bench: $*"
    rm -f "$out/$name.json"
    if "$fanfare" "$@" --json >"$out/$name.json.tmp"; then
        mv "$out/$name.json.tmp" "$out/$name.json"
        cat "$out/$name.json"
    else
        cat "$out/$name.json.tmp"
        failed="$failed $name"
    fi
}
run codec bench codec
run latency bench latency
run book bench book
run fanout bench fanout
run fanout-saturated bench fanout --saturate
run fanout-stalled bench fanout --stalled drop
run fanout-stages bench fanout --stages --rounds 5000
run scale bench scale
run market bench market
run dbn bench dbn
# Logs have 64 bytes for each event: they are beside the other files, as /tmp may be memory.
run history bench history --events 20000000 --folder "$out"
run dds bench dds
run dds-stalled bench dds --stalled drop
run dds-disconnect bench dds --stalled disconnect
run throughput throughput run --svg "$out/throughput.svg"
run throughput-unstored throughput run --store none
for kind in simple complex; do
    "$fanfare" fast generate "$kind" -n 30000 -o "$out/$kind.dat"
    run "feed-$kind" bench feed "$kind"
    run "fast-$kind" fast bench -t "builtin:$kind" -f "$out/$kind.dat"
done
# After 27,600 messages the times of the complex feed are not times of day.
"$fanfare" fast generate complex -n 25000 -o "$out/events.dat"
run events-complex bench events -t builtin:complex -f "$out/events.dat"
"$fanfare" fast generate spectra -n 20000 -o "$out/spectra.dat"
"$fanfare" fast generate spectra --snapshots -n 2000 -o "$out/snapshots.dat"
run events-spectra bench events -t builtin:spectra -f "$out/spectra.dat" --snapshot "$out/snapshots.dat" --depth 5
if [ -n "$failed" ]; then
    echo "bench: failed:$failed" >&2
    exit 1
fi
