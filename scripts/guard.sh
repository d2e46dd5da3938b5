#!/bin/sh
# Counts the instructions of ten hot paths with valgrind, undisturbed by other programs. Fails if one
# takes 3 % more than recorded in benches/guard/benches/guard.rs, and warns if one takes 3 % less: as
# long as the old number stands, that much can be lost unnoticed.
set -eu
cd "$(dirname "$0")/.."
scripts/setup.sh valgrind
cd benches/guard
# The runner and the library need the same version.
version=$(sed -n 's/^gungraun = "=\(.*\)"$/\1/p' Cargo.toml)
gungraun-runner --version 2>/dev/null | grep -q "$version" ||
    cargo install --quiet --locked gungraun-runner --version "$version"
counts=$(mktemp)
trap 'rm -f "$counts"' EXIT
status=0
cargo bench --quiet --locked >"$counts" || status=$?
cat "$counts"
awk '
    # The recorded numbers, by function and name: of `#[bench::NAME(…, config = limit(NUMBER)…)]`
    # above `fn FUNCTION`.
    FNR == NR {
        if (/^#\[bench::/ && match($0, /limit\([0-9_]+/)) {
            number = substr($0, RSTART + 6, RLENGTH - 6)
            gsub(/_/, "", number)
            split($0, part, /[:(]+/)
            waiting[part[2]] = number
        } else if (/^fn /) {
            split($2, part, "(")
            for (name in waiting)
                recorded[part[1] " " name] = waiting[name]
            split("", waiting)
        }
        next
    }
    # `guard::hot_paths::FUNCTION NAME:…`, then its counts: `Instructions: NEW|OLD …`.
    /^[a-z_]+::/ {
        depth = split($1, part, "::")
        split($2, words, ":")
        path = part[depth] " " words[1]
    }
    $1 == "Instructions:" && path in recorded {
        split($2, count, "|")
        compared++
        if (count[1] < 0.97 * recorded[path])
            print "guard: " path " takes " count[1] ": lower its limit from " recorded[path]
    }
    END {
        if (!compared)
            print "guard: no counts to compare with the limits"
    }
' benches/guard.rs "$counts"
exit "$status"
