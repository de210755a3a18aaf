# larder's commands: the same commands for people and for CI.
# Needed: git, make, a C compiler, curl, and cargo from rustup. Each target installs what else it needs (apt when
# root), or names the package. What is longer than a line or two is Rust: checks in xtask/, suites in tests/suites,
# measurements and real applications in bench/.

NAME    ?= all
SECONDS ?= 600
XTASK   := target/debug/xtask
SUITES  := target/debug/suites
BENCH   := target/release/bench
# Random choices of a test run are the same each time; those of `make torture` are drawn anew.
FIXED   := LARDER_SEED=1 PROPTEST_RNG_SEED=1
# Most tests wait more than they compute.
THREADS := RUST_TEST_THREADS=$$((2 * $$(nproc)))
# A release links the jemalloc of the dev build where there is one: the same flags, and two minutes of processor time.
JEMALLOC = $(addprefix JEMALLOC_OVERRIDE=$(CURDIR)/,$(shell ls -t target/debug/build/tikv-jemalloc-sys-*/out/build/lib/libjemalloc_pic.a 2>/dev/null | head -1))

# Types and lints of the dashboard's scripts.
UI_LINTS := target/ui-lints/node_modules
TSC      := node $(UI_LINTS)/typescript/bin/tsc -p tests/ui --pretty false
ESLINT   := node $(UI_LINTS)/eslint/bin/eslint.js -c tests/ui/eslint.config.js crates/larder-admin/ui

.DEFAULT_GOAL := help
.PHONY: help demo built units released fuzzed compared counted test torture check quick audit fmt reference fuzz-smoke h2spec conformance dialects pages instructions bench realapp screenshots

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /  make \1\t/' | expand -t 20

demo: ## a slow app, larder in front of it, load on both, a table
	$(JEMALLOC) cargo build --release -p larder
	target/release/larder demo

# All packages at once: one that is built alone has other features of its dependencies, and builds them again.
built: ## everything of the dev profile: larder, its tests, the programs around it
	cargo build --workspace --all-targets --locked

units: built ## all that cargo runs: units, properties, scenarios, proofs
	$(XTASK) need units
	$(FIXED) $(THREADS) cargo test --workspace --locked

# With `make -j2` this runs while the tests wait, and yields to them.
released: built ## larder as released, and the program of the fuzz targets
	$(JEMALLOC) nice -n 19 cargo build --quiet --release --locked -p larder
	nice -n 19 $(SUITES) fuzz --build

# The same. What runs beside it by then looks at the clock, and comes first.
fuzzed: released
	nice -n 19 $(SUITES) fuzz

# One after the other, and none beside the tests: these look at the clock.
compared: units
	$(SUITES) h2spec
	$(SUITES) conformance
	$(SUITES) dialects
	$(SUITES) pages

# A larder whose instructions are counted is slow, and gives up clients that wait too long.
counted: compared released
	$(JEMALLOC) $(SUITES) instructions
	$(XTASK) readme run

test: counted fuzzed ## every test: units, properties, scenarios, conformance of HTTP/2 and caching, dialects of purges, pages beside the peers, instructions per request, fuzz smoke, the pages' commands

torture: built ## what takes long: 500 kills of a larder with disks, each byte checked afterwards; minutes of purges under load; faults of Redis under load, with a table; an hour of a Redis that comes and goes; long random runs of the models, of kept pages, of properties, of clients with cookies; testssl.sh in front of larder; SECONDS of each fuzz target
	$(XTASK) need torture
	LARDER_KILLS=500 cargo test --workspace --locked --test proofs disks::crash -- --nocapture
	LARDER_SECONDS=60 cargo test --workspace --locked --test proofs every_store::stamps -- --nocapture
	LARDER_SECONDS=60 cargo test --workspace --locked --test proofs pages::visitors -- --nocapture
	LARDER_SECONDS=10 cargo test --workspace --locked --test proofs records::faults -- --nocapture --test-threads=1
	LARDER_FLAPS_SECONDS=3600 cargo test --workspace --locked --test proofs records::flapping -- --nocapture
	LARDER_SEEDS=250 cargo test -p larder-store --locked --lib contract::model -- --nocapture
	LARDER_SEEDS=500 cargo test -p larder-proxy --locked --lib forward::model -- --nocapture
	LARDER_SEEDS=500 cargo test -p larder-proxy --locked --lib serve::kept -- --nocapture
	LARDER_SEEDS=200 cargo test --workspace --locked --test proofs own:: -- --nocapture
	LARDER_SEEDS=100000 cargo test -p larder-fleet --locked --lib -- --nocapture
	PROPTEST_CASES=20000 cargo test --workspace --locked --lib -- --skip streaming::spill
	PROPTEST_CASES=1000 cargo test --workspace --locked --lib streaming::spill
	cargo test --workspace --locked --test proofs process::tls_peers::testssl -- --ignored --nocapture
	$(SUITES) fuzz --seconds $(SECONDS) --kept

check: built ## format, lints, docs, layers, words, sentences, promises, alerts, vendored modules, scripts of the dashboard, pages, licences
	$(XTASK) need check
	cargo fmt --all --check
	$(XTASK) layers
	$(XTASK) circles
	$(XTASK) calls
	$(XTASK) names
	$(XTASK) words
	$(XTASK) sentences
	$(XTASK) libraries
	$(XTASK) promises
	$(XTASK) alerts
	$(XTASK) ui check
	@if [ -d $(UI_LINTS) ]; then $(TSC) && $(ESLINT); else echo "skipped: without npm's packages nothing reads the dashboard's scripts"; fi
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked
	$(SUITES) reference
	$(XTASK) readme check
	cargo deny --locked check --hide-inclusion-graph licenses bans sources

quick: ## the inner loop: format, structure, words, and lints and tests of the crates that have changed since the last commit
	@cargo run -q -p xtask -- quick

audit: built ## known weaknesses in what larder is built from
	$(XTASK) audit

fmt: ## format every crate
	cargo fmt --all

reference: built ## rewrite the generated pages in docs/reference
	$(SUITES) reference --write

fuzz-smoke: built ## every fuzz target for 5 s
	$(SUITES) fuzz

h2spec: built ## HTTP/2 conformance against the committed list of failures; WRITE=1 commits the run
	$(SUITES) h2spec $(if $(WRITE),--write)

conformance: built ## the public HTTP cache suite; WRITE=1 commits the run, ONLY=id shows a test
	$(SUITES) conformance $(if $(WRITE),--write) $(if $(ONLY),--only $(ONLY))

dialects: built ## requests for purges to Varnish, nginx and larder against the committed list of differences; WRITE=1 commits the run
	$(SUITES) dialects $(if $(WRITE),--write)

pages: built ## templates to nginx, Apache, Varnish and larder against the committed list of differences; WRITE=1 commits the run
	$(SUITES) pages $(if $(WRITE),--write)

instructions: built ## instructions per request against the committed figures; WRITE=1 commits new ones
	$(JEMALLOC) $(SUITES) instructions $(if $(WRITE),--write)

# Its programs are the load and the origin, and must not be what is measured.
bench: ## measure beside the peers; NAME=hit for one of them (bench/README.md lists them)
	cargo build --release --locked -p bench
	$(BENCH) measure $(NAME)

realapp: ## larder in front of real applications; NAME=mediawiki for one of them (tests/realapp lists them)
	cargo build --release --locked -p bench
	$(BENCH) realapp $(NAME)

screenshots: ## draw the pictures of the documentation anew: eleven minutes of load in front of Chromium
	$(JEMALLOC) cargo build --release --locked -p larder
	cargo build --release --locked -p bench
	$(BENCH) screenshots
