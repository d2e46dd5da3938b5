#!/bin/sh
# Runs third-party acceptance definitions against `fanfare fix acceptor --echo`: QuickFIX's, from its
# source package in Debian, and QuickFIX/n's, from the crate quickfix-tokio; all versions, with their
# dictionaries and with the built-in ones. Both are fetched once, into target/, from the machine's
# configured registries.
set -eu
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
home=$PWD/target/conformance
log=$home/log

# Reports what is missing, which is a failure on CI.
skip() {
    cat "$log" >&2
    echo "conformance: SKIPPED, $1 cannot be had" >&2
    [ -z "${CI:-}" ] || exit 1
}

quickfix() {
    [ ! -d "$home/quickfix/test/definitions/server" ] || return 0
    rm -rf "$home/parts" "$home/lists" "$home/cache" "$home/quickfix" "$home/unpacked"
    rm -f "$home"/quickfix_*
    mkdir -p "$home/parts" "$home/lists/partial" "$home/cache/archives/partial"
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
    (cd "$home" && apt -o APT::Update::Error-Mode=any update &&
        apt source --download-only quickfix) >"$log" 2>&1 || return 1
    # The folder has its name once it is whole.
    mkdir -p "$home/unpacked"
    tar -xf "$home"/quickfix_*.orig.tar.* -C "$home/unpacked" --strip-components=1 2>"$log" &&
        mv "$home/unpacked" "$home/quickfix"
}

# Prints where they are.
quickfix_n() {
    package=quickfix-tokio version=0.2.0
    mkdir -p "$home/n"
    printf '[workspace]\n[package]\nname = "n"\nversion = "0.0.0"\n[lib]\npath = "n.rs"\n' \
        >"$home/n/Cargo.toml"
    printf '[dependencies]\n%s = "=%s"\n' "$package" "$version" >>"$home/n/Cargo.toml"
    : >"$home/n/n.rs"
    $cargo metadata --format-version 1 --manifest-path "$home/n/Cargo.toml" \
        >"$home/n/metadata" 2>"$log" || return 1
    found=$(grep -o "\"manifest_path\":\"[^\"]*/$package-$version/Cargo.toml\"" \
        "$home/n/metadata") || return 1
    found=${found#*:\"}
    echo "${found%/Cargo.toml\"}/acceptance"
}

mkdir -p "$home"
tests=""
if quickfix; then
    tests="quickfix_definitions"
else
    skip "Debian's source package quickfix"
fi
if definitions=$(quickfix_n); then
    tests="$tests quickfix_n_definitions"
else
    skip "the crate quickfix-tokio"
fi
[ -n "$tests" ] || exit 0
# shellcheck disable=SC2086
QUICKFIX_SOURCES=$home/quickfix QUICKFIX_N_DEFINITIONS=${definitions:-} \
    $cargo test --workspace --locked --test conformance -- --nocapture --exact $tests
