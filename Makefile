# Two commands do everything: `make demo` and `make test`. The others are for those who work on Pintle.

CARGO ?= cargo

.PHONY: demo test fmt clippy unit sim integration soak bench release release-check check-tools units

## Shows the main job on the embedded control plane, or on the cluster of KUBECONFIG. KEEP=1 leaves it running.
demo: check-tools
	@PINTLE_DEMO_KUBECONFIG="$(KUBECONFIG)" KEEP="$(KEEP)" $(CARGO) test --quiet --package pintle --test demo

## Everything that CI runs.
test: check-tools fmt clippy unit sim units integration
	@echo "everything passed"

fmt:
	$(CARGO) fmt --all --check

clippy:
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings

## Unit tests of all crates.
unit:
	$(CARGO) test --workspace --lib --quiet
	bash tests/oracle/build.sh > /dev/null
	$(CARGO) test --package pintle-yaml --test oracle

## The engine under a seeded world: 500 seeds and as many more as fit 20 s.
sim:
	$(CARGO) test --package pintle-core --test sim -- --nocapture

## The real binary, a real API server, real git over HTTPS, real sled.
integration:
	bash tests/control-plane/build.sh > /dev/null
	$(CARGO) test --package pintle --test demo
	$(CARGO) test --package pintle --test source
	$(CARGO) test --package pintle --test store -- --test-threads=2
	$(CARGO) test --package pintle --test agent -- --test-threads=2

## The systemd unit.
units:
	bash tests/units.sh

## Hours of simulation: SEEDS=100000 make soak.
soak:
	PINTLE_SIM_SEEDS=$(or $(SEEDS),100000) $(CARGO) test --package pintle-core --test sim -- --nocapture

## Figures of the release binary, with their targets: a table, and target/bench/results.json. BENCH_LARGE=1: 5,000 objects too.
bench: check-tools
	bash tests/control-plane/build.sh > /dev/null
	$(CARGO) test --release --package pintle --test bench

## A static binary for x86_64, in dist/.
release: check-tools
	bash tests/release.sh

## The story of the demo and the installation, with that binary.
release-check: release
	bash tests/control-plane/build.sh > /dev/null
	PINTLE_TEST_BINARY=$(CURDIR)/dist/pintle-x86_64-linux $(CARGO) test --package pintle --test demo
	PINTLE_TEST_BINARY=$(CURDIR)/dist/pintle-x86_64-linux $(CARGO) test --package pintle --test agent -- --test-threads=2 install

check-tools:
	@bash tests/tools.sh
