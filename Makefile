# Each target works as the first command on a fresh Debian 12 with git, make, a C compiler and
# rustup's stable Rust: scripts/setup.sh installs what is missing.

CARGO ?= cargo
FANFARE = target/release/fanfare
FUZZ_SECONDS ?= 60
ORACLE_SECONDS ?= 300
ORACLE_SEED ?= 1
# A number of seeds, or FROM..TO.
KILL_SEEDS ?= 1000
# All targets unless some are named.
FUZZ_TARGETS ?=
# The version of cargo-deb, whose fragments are in the package's scripts.
CARGO_DEB = 3.7.0
# Workspaces beside the main one.
APART = fuzz benches benches/books benches/dds benches/guard
# Those of them with hundreds of crates of other people: checked where these have been fetched.
HEAVY = benches/books benches/dds benches/guard
# The features that need more than Rust and a C compiler, which setup.sh installs.
PLANT = --features capture,dds
# Tests and packages also have the features that the demo does not need.
FEATURES = --features fanfare/full
# Tests of sessions and processes wait more than they compute.
export RUST_TEST_THREADS ?= $(shell expr 3 '*' `nproc`)

# Fails if a source has not the layout of rustfmt.
define check-format
	$(CARGO) fmt --all --check
	@for folder in $(APART); do (cd $$folder && $(CARGO) fmt --check) || exit 1; done
endef

# Fails if a lock does not fit its manifests: no target that builds with it, such as bench-books, would
# work.
define check-locks
	@for folder in $(APART); do \
		if $(CARGO) update --workspace --locked --manifest-path $$folder/Cargo.toml 2>&1 \
			| grep "cannot update the lock file"; then exit 1; fi; \
	done
endef

.PHONY: help demo test test-kafka test-kills test-benches check codegen book deny sbom deb conformance oracle bench bench-peers bench-guard bench-books fuzz soak memcheck asan build setup clean

help:
	@echo "make demo   build, run the whole plant on this machine for about a minute, report"
	@echo "make test   everything CI runs: format, lints, tests, documentation, tidy"
	@echo "make test-kafka  topics of Apache Kafka over kills of plant and broker (feature kafka)"
	@echo "make test-kills  a plant, its readers and replays killed with 1,000 seeds, 10 to 30 minutes (KILL_SEEDS)"
	@echo "make test-benches  the tests of the runner of make bench-peers, which is a workspace of its own"
	@echo "make check  the quick part of it, for between two edits; also compiles the other workspaces"
	@echo "make codegen  typed messages of whole dictionaries: clippy and rustdoc find nothing in them"
	@echo "make book   the guide, the reference and the decisions as pages under out/book, by mdbook"
	@echo "make deny   licences, known faults and sources of the crates, by cargo-deny"
	@echo "make sbom   what the program is made of, as CycloneDX under target/package, by cargo-cyclonedx"
	@echo "make deb    a Debian package under target/debian, by cargo-deb"
	@echo "make conformance  the acceptance definitions of QuickFIX and QuickFIX/n, fetched, against fix acceptor"
	@echo "make oracle  the FAST codec against a second one, on random templates for five minutes (ORACLE_SECONDS, ORACLE_SEED)"
	@echo "make bench  every benchmark of the binary, as JSON under out/; docs/benchmarks.md has their figures"
	@echo "make bench-peers  FIX, FAST, fan-out and DDS beside QuickFIX C++, /J and /Go, Artio, Philadelphia, fastlib, NATS, Cyclone DDS in C and others, in turns: out/peers.html"
	@echo "make bench-guard  instructions of ten hot paths, counted by valgrind; fails where one takes 3 % more than it should, warns where one takes 3 % less"
	@echo "make bench-books  books beside those of hftbacktest and nautilus-model, in one run"
	@echo "make soak   ten million samples over DDS and shared memory; resident memory must stay"
	@echo "make memcheck  DDS under valgrind: bad reads and writes, leaks"
	@echo "make asan   DDS, the C library below included, under AddressSanitizer (nightly Rust)"
	@echo "make fuzz   every fuzz target for a minute each (nightly Rust; FUZZ_SECONDS, FUZZ_TARGETS)"

setup:
	@scripts/setup.sh

build: setup
	@$(CARGO) build --release --locked --package fanfare $(PLANT)

demo: build
	@$(FANFARE) demo

test:
	@scripts/setup.sh checks
	$(check-format)
	$(check-locks)
	$(CARGO) clippy --workspace --all-targets $(FEATURES) --locked -- -D warnings
	$(CARGO) clippy --locked -- -D warnings
	@CARGO="$(CARGO)" scripts/test.sh --workspace --tests $(FEATURES) --locked
	$(CARGO) test --workspace --doc $(FEATURES) --locked
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked
	$(CARGO) xtask tidy

check:
	@scripts/setup.sh checks
	$(check-format)
	$(check-locks)
	$(CARGO) clippy --workspace --all-targets $(FEATURES) --locked -- -D warnings
	$(CARGO) clippy --locked -- -D warnings
	$(CARGO) check --manifest-path fuzz/Cargo.toml --target-dir target --locked
	$(CARGO) check --manifest-path benches/Cargo.toml --all-targets --target-dir target --locked
	@host=`rustc -vV | sed -n 's/^host: //p'`; for folder in $(HEAVY); do \
		manifest="--manifest-path $$folder/Cargo.toml --locked"; \
		if $(CARGO) fetch $$manifest --quiet --offline --target $$host 2>/dev/null; then \
			echo "$(CARGO) check $$manifest --all-targets --target-dir target"; \
			$(CARGO) check $$manifest --all-targets --target-dir target || exit 1; \
		else \
			echo "check: without $$folder, whose crates \`cargo fetch $$manifest\` fetches"; \
		fi; \
	done
	$(CARGO) xtask tidy
	@command -v cargo-deny >/dev/null || echo "check: without cargo-deny, which make deny installs"
	@! command -v cargo-deny >/dev/null || $(CARGO) deny --workspace check bans licenses sources

book:
	@command -v mdbook >/dev/null || $(CARGO) install --quiet --locked --no-default-features mdbook
	@mdbook build docs
	@echo out/book/index.html

deny:
	@command -v cargo-deny >/dev/null || $(CARGO) install --quiet --locked cargo-deny
	$(CARGO) deny --workspace check

sbom: setup
	@command -v cargo-cyclonedx >/dev/null || $(CARGO) install --quiet --locked cargo-cyclonedx
	$(CARGO) cyclonedx --manifest-path crates/fanfare/Cargo.toml --features full --format json --spec-version 1.5 \
		--override-filename fanfare.cdx
	@mkdir -p target/package && mv crates/fanfare/fanfare.cdx.json target/package/ && rm -f crates/*/fanfare.cdx.json xtask/fanfare.cdx.json
	@echo target/package/fanfare.cdx.json

# dpkg-shlibdeps, of dpkg-dev, finds the libraries that the package depends on.
deb:
	@scripts/setup.sh dpkg-dev
	@cargo-deb --version 2>/dev/null | grep -q '\b$(subst .,\.,$(CARGO_DEB))$$' \
		|| $(CARGO) install --quiet --locked cargo-deb --version $(CARGO_DEB)
	$(CARGO) build --release --locked --package fanfare $(FEATURES)
	@mkdir -p target/package
	@$(FANFARE) man target/package/man1
	@$(FANFARE) completions bash >target/package/fanfare.bash
	@$(FANFARE) completions zsh >target/package/_fanfare
	@$(FANFARE) completions fish >target/package/fanfare.fish
	@rm -f target/debian/*.deb
	$(CARGO) deb --no-build --locked --package fanfare
	@dpkg-deb -f target/debian/*.deb Depends | grep -q libpcap \
		|| { echo "deb: the package does not depend on the libraries of the program" >&2; exit 1; }
	@for script in postinst prerm postrm; do \
		dpkg-deb -I target/debian/*.deb $$script | grep -q 'fanfare-gateway\.service' \
			|| { echo "deb: $$script of the package does not know the service" >&2; exit 1; }; \
	done

test-kafka:
	@scripts/setup.sh checks
	$(CARGO) clippy --package fanfare-gateway --all-targets --features kafka --locked -- -D warnings
	$(CARGO) test --package fanfare-gateway --lib --features kafka --locked kafka
	$(CARGO) test --package fanfare --test kafka --features full,kafka --locked

test-kills: setup
	FANFARE_KILL_SEEDS=$(KILL_SEEDS) $(CARGO) test --package fanfare --test market $(FEATURES) --locked kills -- --nocapture

test-benches: setup
	$(CARGO) test --manifest-path benches/Cargo.toml --target-dir target --locked

codegen: setup
	$(CARGO) test --package fanfare-fix --test codegen-whole --locked

conformance: setup
	@CARGO="$(CARGO)" scripts/conformance.sh

oracle: build
	@scripts/setup.sh checks
	@python3 -B crates/fanfare/tests/oracle/check.py $(FANFARE) out/oracle $(ORACLE_SEED) 1000000 $(ORACLE_SECONDS)

bench: build
	@scripts/bench.sh $(FANFARE) out

bench-peers: build
	@scripts/setup.sh checks
	@$(CARGO) build --quiet --release --locked --manifest-path benches/Cargo.toml
	@benches/target/release/fanfare-benches --fanfare $(FANFARE) --home target/peers --out out

bench-guard:
	@scripts/guard.sh

bench-books: build
	$(CARGO) build --release --locked --manifest-path benches/books/Cargo.toml
	@mkdir -p out
	@$(FANFARE) bench book --peers benches/books/target/release/fanfare-books --json >out/books.json
	@cat out/books.json

fuzz: setup
	@scripts/fuzz.sh $(FUZZ_SECONDS) $(FUZZ_TARGETS)

soak: setup
	@$(CARGO) bench --quiet --locked --package fanfare-dds --bench soak

memcheck:
	@scripts/memcheck.sh

asan: setup
	@scripts/asan.sh

clean:
	$(CARGO) clean
