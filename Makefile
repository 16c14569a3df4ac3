# Every habit of the project is one word. The work is done by scripts/; this file only names it.
.DEFAULT_GOAL := build
.PHONY: build run deb deb-test test check bench bench-peers fuzz tsan sim chaos soak format lint clean help

ARGS ?=
TIME ?= 60
RUN_ARGS = $(addprefix --seconds ,$(SECONDS)) $(addprefix --seed ,$(SEED))

build: ## build the broker: build/release/omnibus (the default)
	@scripts/bootstrap build
	@scripts/build release omnibus

run: ## build if needed and start the broker; ARGS="--data DIR" are handed to `omnibus serve`
	@scripts/bootstrap build
	@scripts/build release omnibus
	@exec build/release/omnibus serve $(ARGS)

deb: ## build the Debian package: build/deb/omnibus_VERSION_ARCH.deb
	@scripts/bootstrap build package
	@scripts/build release omnibus
	@scripts/deb

deb-test: deb ## install the package in a fresh Debian and here, run it as its service would, purge it (needs root)
	@scripts/bootstrap fresh
	@tests/package/run build/deb/omnibus_*.deb --fresh-root
	@tests/package/run build/deb/omnibus_*.deb

test: ## everything: unit, rooms, TSan, fuzzers (FUZZ_SECONDS=30 each), release build, client interop, chaos
	@scripts/bootstrap build test interop
	@scripts/test all

check: ## the quick minute: dev build (ASan, UBSan), unit tests, rooms
	@scripts/bootstrap build test
	@scripts/test check

bench: ## build and run the benchmarks; FILTER=regex chooses, results in build/bench/results
	@scripts/bootstrap build bench
	@FILTER='$(FILTER)' scripts/bench

bench-peers: ## Omnibus beside RabbitMQ and Artemis, 25 minutes on a quiet machine; ARGS="--quick": 6 minutes
	@scripts/bootstrap build bench
	@scripts/build bench peers
	@bench/peers/run $(ARGS)

fuzz: ## run every fuzzer for TIME seconds (60)
	@scripts/bootstrap build test
	@FUZZ_SECONDS=$(TIME) scripts/test fuzz

chaos: ## kill, stop, fill and cut the release binary while clients work, for SECONDS (60); SEED=n repeats
	@scripts/bootstrap build test interop
	@scripts/build release omnibus omnibus_history_program
	@tests/chaos/run build/release/omnibus --checker build/release/omnibus_history $(RUN_ARGS)

soak: ## an hour (SECONDS=3600) of mixed load with restarts; what grows is told, with plots, in build/soak
	@scripts/bootstrap build test interop
	@scripts/soak $(RUN_ARGS)

tsan: ## the tests of the concurrent rooms under TSan
	@scripts/bootstrap build test
	@scripts/test tsan

sim: ## the simulator: SEED=n runs one seed (ARGS="--trace" prints its history), RUNS=n so many (500)
	@scripts/bootstrap build
	@scripts/build release omnibus_sim_program
	@build/release/omnibus_sim $(if $(SEED),--seed $(SEED),--runs $(or $(RUNS),500)) $(ARGS)

format: ## format the C++ files in place
	@scripts/bootstrap lint
	@scripts/format

lint: ## formatting, clang-tidy on changed files (ALL=1: on all), shell scripts, rooms
	@scripts/bootstrap build test lint
	@ALL='$(ALL)' scripts/lint

clean: ## remove build/ (the compiler cache stays)
	rm -rf build

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
