#!/bin/sh
# Installs what the build needs beyond git, make, a C compiler and rustup's stable Rust: Debian
# packages that are missing, and the Rust components of the checks. Prints nothing if nothing is
# missing: setup.sh [checks] [PACKAGE...]. Runs in the root of the tree.
set -eu
checks=
if [ "${1:-}" = checks ]; then
    checks=yes
    shift
fi

# libpcap-dev: packet capture for the latency report.
# cmake, g++, libclang1-14, libclang-common-14-dev: Cyclone DDS and its bindings for DDS.
# For the checks alone:
# python3-venv: the Python programs of the interoperation tests.
# cyclonedds-dev, cyclonedds-tools: the C program of the tests of DDS, and idlc for its types.
# libquickfix-dev; default-jdk-headless and maven for QuickFIX/J: the engines of the tests of FIX.
# fastddsgen, libfastrtps-dev: Fast DDS, for the C++ program of the tests of DDS.
# chromium, fonts-dejavu-core: the tests of the console's page.
# prometheus: scrapes the console, and its promtool checks the metrics.
wanted="libpcap-dev cmake g++ libclang1-14 libclang-common-14-dev"
if [ -n "$checks" ]; then
    wanted="$wanted python3-venv cyclonedds-dev cyclonedds-tools"
    wanted="$wanted libquickfix-dev default-jdk-headless maven fastddsgen libfastrtps-dev prometheus"
    wanted="$wanted chromium fonts-dejavu-core"
fi

missing=""
for package in $wanted "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
        missing="$missing $package"
done
if [ -n "$missing" ]; then
    if [ "$(id -u)" = 0 ]; then
        as_root=""
    elif command -v sudo >/dev/null 2>&1; then
        as_root="sudo"
    else
        echo "setup: please install as root:$missing" >&2
        exit 1
    fi
    echo "setup: installing$missing"
    log=$(mktemp)
    install_missing() {
        $as_root apt-get -q -o Acquire::Retries=3 update &&
            $as_root env DEBIAN_FRONTEND=noninteractive \
                apt-get -q -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 \
                install -y --no-install-recommends $missing
    }
    # Another apt may hold the lists, or a server be unavailable for a moment.
    tries=3
    until install_missing >"$log" 2>&1; do
        tries=$((tries - 1))
        if [ "$tries" = 0 ]; then
            cat "$log" >&2
            echo "setup: apt-get could not install$missing" >&2
            exit 1
        fi
        sleep 10
    done
    rm -f "$log"
fi

command -v cargo >/dev/null 2>&1 || {
    echo "setup: cargo is missing: install stable Rust with rustup (https://rustup.rs)" >&2
    exit 1
}
if [ -n "$checks" ] && command -v rustup >/dev/null 2>&1; then
    for component in rustfmt clippy; do
        rustup component list --installed | grep -q "^$component" ||
            rustup component add "$component"
    done
fi

# Cargo does not see a change of what Cyclone DDS is built with: what was built before it goes.
target=${CARGO_TARGET_DIR:-target}
options=$(cat crates/dds/*.cmake | cksum)
if [ "$options" != "$(cat "$target/cyclone.cksum" 2>/dev/null)" ]; then
    rm -rf "$target"/*/build/cyclors-* "$target"/*/.fingerprint/cyclors-*
    mkdir -p "$target"
    echo "$options" >"$target/cyclone.cksum"
fi
