# larder's front door: the same commands for people and for CI.
# Needed: git, make, a C compiler, curl, and cargo from rustup. Each target installs what else it needs (apt when
# root), or names the package. What is longer than a line or two is Rust in xtask/.

NAME  ?= all
XTASK := cargo run -q -p xtask --

.DEFAULT_GOAL := help
.PHONY: help demo test torture check audit fmt reference fuzz-smoke h2spec conformance instructions bench realapp

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /  make \1\t/' | expand -t 20

demo: ## a slow app, larder in front of it, load on both, a table
	cargo build --release -p larder
	target/release/larder demo

test: ## every test: units, properties, scenarios, conformance of HTTP/2 and caching, fuzz smoke, the pages' commands
	$(XTASK) need test
	cargo test --workspace --locked
	$(XTASK) h2spec
	$(XTASK) conformance
	$(XTASK) fuzz
	$(XTASK) instructions
	$(XTASK) readme run

torture: ## what takes long: 500 kills of a larder with disks, each byte checked afterwards, long runs of the store's model and of clients with cookies
	$(XTASK) need test
	LARDER_KILLS=500 cargo test -p larder --locked --test proofs disks::crash -- --nocapture
	LARDER_SEEDS=250 cargo test -p larder-store --locked --test contract model -- --nocapture
	LARDER_SEEDS=200 cargo test -p larder --locked --test proofs own:: -- --nocapture

check: ## format, lints, docs, layers, words, promises, pages, licences
	$(XTASK) need check
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked
	$(XTASK) layers
	$(XTASK) words
	$(XTASK) libraries
	$(XTASK) promises
	$(XTASK) reference
	$(XTASK) readme check
	cargo deny --locked check --hide-inclusion-graph licenses bans sources

audit: ## known weaknesses in what larder is built from
	$(XTASK) audit

fmt: ## format every crate
	cargo fmt --all
	cargo fmt --manifest-path fuzz/Cargo.toml

reference: ## rewrite the generated pages in docs/reference
	$(XTASK) reference --write

fuzz-smoke: ## every fuzz target for a short time
	$(XTASK) fuzz

h2spec: ## HTTP/2 conformance against the committed list of failures
	$(XTASK) h2spec

conformance: ## the public HTTP cache suite; WRITE=1 commits the run, ONLY=id shows a test
	$(XTASK) need conformance
	$(XTASK) conformance $(if $(WRITE),--write) $(if $(ONLY),--only $(ONLY))

instructions: ## instructions per request against the committed figures; WRITE=1 commits new ones
	$(XTASK) instructions $(if $(WRITE),--write)

bench: ## measure beside the peers; NAME=hit for one of them (bench/README.md lists them)
	$(XTASK) bench $(NAME)

realapp: ## larder in front of real applications; NAME=mediawiki for one of them (tests/realapp lists them)
	$(XTASK) realapp $(NAME)
