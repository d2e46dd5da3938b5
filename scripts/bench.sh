#!/bin/sh
# Runs every benchmark of the binary and leaves its JSON in a folder: bench.sh FANFARE DIR
set -eu
fanfare=$1
out=$2
mkdir -p "$out"
run() {
    name=$1
    shift
    echo "bench: $*"
    "$fanfare" "$@" --json >"$out/$name.json"
    cat "$out/$name.json"
}
run codec bench codec
run book bench book
run fanout bench fanout
run fanout-saturated bench fanout --saturate
run fanout-stalled bench fanout --stalled drop
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
