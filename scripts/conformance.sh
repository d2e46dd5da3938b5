#!/bin/sh
# Runs QuickFIX's own acceptance definitions, of the source package that Debian has of it, against
# `fanfare fix acceptor --echo`: all versions, with its dictionaries and with the built-in ones.
# The package is fetched once, into target/, with the machine's own list of sources.
set -eu
cd "$(dirname "$0")/.."
home=$PWD/target/conformance
if [ ! -d "$home/quickfix/test/definitions/server" ]; then
    rm -rf "$home"
    mkdir -p "$home/parts" "$home/lists/partial" "$home/cache/archives/partial" "$home/quickfix"
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
        name=$home/parts/$(basename "$list")
        case $list in
        *.sources) sed 's/^Types:.*/Types: deb-src/' "$list" >"$name" ;;
        *.list) sed -n 's/^deb /deb-src /p' "$list" 2>/dev/null >"$name" || true ;;
        esac
    done
    apt() {
        apt-get -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$home/parts" \
            -o Dir::State::Lists="$home/lists" -o Dir::Cache="$home/cache" "$@"
    }
    log=$home/log
    if ! (cd "$home" && apt update && apt source --download-only quickfix) >"$log" 2>&1; then
        cat "$log" >&2
        rm -rf "$home"
        echo "conformance: SKIPPED, Debian's source package quickfix cannot be had" >&2
        [ -z "${CI:-}" ] || exit 1
        exit 0
    fi
    tar -xf "$home"/quickfix_*.orig.tar.* -C "$home/quickfix" --strip-components=1
fi
QUICKFIX_SOURCES=$home/quickfix ${CARGO:-cargo} test --workspace --locked --test conformance -- \
    --nocapture
