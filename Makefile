# Everything that is done with this repository more than once. `make help` lists it.

CARGO ?= cargo
FAIRCAST := $(or $(CARGO_TARGET_DIR),target)/release/faircast
EMULATOR := $(or $(CARGO_TARGET_DIR),target)/release/faircast-emu
# What is no member of the workspace is built apart from it.
APART := $(abspath $(or $(CARGO_TARGET_DIR),target))/cocoon

.PHONY: help needs dist test lint lint-format lint-spelling lint-clippy lint-doc lint-deps lint-package sbom reproducible audit semver bench bench-peers bench-hosts bench-disk bench-tcp bench-fairness bench-emulated bench-worlds bench-layers bench-relay bench-sim bench-queues count fuzz-replay bpf cocoon cocoon-short cocoon-bpf cocoon-quinn bench-cocoon soak-cocoon reproduce reproduce-interop validate docs-plots vopr book lint-book try-install python

help:
	@echo "make test            all tests; as root also those in network namespaces"
	@echo "make python          install the Python package in a virtual environment, and test it; ARGS=\"-k NAME\""
	@echo "make lint            format, spelling, clippy, documentation, dependencies, packages, oldest Rust, the book; all warnings are errors"
	@echo "make dist            what people install: a .deb with pages, completions and units, and the program in archives"
	@echo "make try-install     install what make dist made in an empty Debian, send to three such hosts (root; fetches Debian once)"
	@echo "make sbom            what the program is made of, as CycloneDX and SPDX, in target/dist (fetches a tool)"
	@echo "make reproducible    build the released program twice, in two directories, and compare the bytes"
	@echo "make book            the pages of docs as a book, in target/book (fetches a tool)"
	@echo "make audit           known vulnerabilities of dependencies (fetches a database)"
	@echo "make semver          changes of the library's interface since the last commit, or since BASE=REV: a report (fetches a tool)"
	@echo "make bench           micro-benchmarks of the codec and the erasure code"
	@echo "make bench-peers     faircast against uftp, udpcast and NORM, in namespaces (root)"
	@echo "make bench-hosts     late receivers, busy and slow hosts, outages, plain switches; ARGS=\"--before BINARY\" (root)"
	@echo "make bench-disk      a receiver whose disk is the bottleneck; ARGS=\"--before BINARY\" (root)"
	@echo "make bench-tcp       five minutes beside Reno, CUBIC and BBR, start and long run apart, and simulated (root, hours)"
	@echo "make bench-fairness  faircast against TCP through one bottleneck, in namespaces (root)"
	@echo "make bench-emulated  emulated links: their accuracy, others and every scheme beside TCP at real round trips, and a map (root, 80 minutes)"
	@echo "make bench-worlds    networks in the simulator, in the emulator with Linux' TCP, and in ns-2 (root, 75 minutes)"
	@echo "make bench-layers    receivers behind very different links in one session, and how fast routers prune (root)"
	@echo "make bench-relay     three sites joined by unicast relays, with TCP beside each, a slow leaf and a killed relay; one relay beside smcroute (root, 25 minutes)"
	@echo "make cocoon          test COCOON for Linux and for quinn, which are no part of the workspace (libelf-dev; root for the kernel)"
	@echo "make bpf             compile COCOON's programs for the kernel again (clang, libbpf-dev)"
	@echo "make bench-cocoon    COCOON in the kernel and over quinn beside Reno, CUBIC and BBR (root, 90 minutes)"
	@echo "make soak-cocoon     COCOON in the kernel for an hour: loaded, used, unloaded, watched; ARGS=\"--minutes 5\" (root, nginx, bpftool)"
	@echo "make bench-sim       the simulator's speed, beside ns-2"
	@echo "make bench-queues    all queues on the same loads: delay, loss, fairness, cost, speed"
	@echo "make count           instructions per simulated packet, against their limits"
	@echo "make reproduce       the papers' figures and tables: a page with what is published beside what is measured"
	@echo "make reproduce-interop  50 MB to ZeroMQ and OpenPGM beside a TCP flow, everything complete (root, 4 minutes)"
	@echo "make validate        the simulator against runs of ns-2 and ns-3, quantity by quantity"
	@echo "make docs-plots      the figures of docs/schemes, from scenarios/schemes.toml"
	@echo "make vopr            simulated worlds, seed after seed, until stopped; ARGS=\"--from N --count N\""
	@echo "make fuzz-replay     run the stored fuzzing inputs through their targets, without a fuzzer"

needs:
	@scripts/needs test

# The development profile on purpose: overflow checks and debug assertions are on, and it is optimised enough
# (see Cargo.toml) for the tests that send real packets.
test: needs
	scripts/test $(CARGO)

lint: lint-format lint-spelling lint-clippy lint-doc lint-deps lint-package lint-book

lint-format:
	$(CARGO) fmt --all --check

# Misspelled words of all tracked texts; .codespellrc has the exceptions.
lint-spelling:
	@scripts/needs spelling
	git ls-files -z | xargs -0 codespell

# Everything, and the command without the simulator. Clippy and rustdoc have the features of the tests: the three share what they
# compile of dependencies.
FEATURES := --features faircast-cli/parquet

lint-clippy:
	$(CARGO) clippy --workspace --all-targets $(FEATURES) -- -D warnings
	$(CARGO) clippy -p faircast-cli -p faircast --no-default-features -- -D warnings

lint-doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps $(FEATURES)

# Every published package holds the files that it is built from, compiles with the oldest Rust that is promised, and has what registries ask for.
lint-package:
	scripts/packages

# Licences, second versions and sources of all dependencies, by deny.toml.
DENY = PATH="$(or $(CARGO_TARGET_DIR),target)/tmp/tools/bin:$$PATH" $(CARGO) deny --locked check

lint-deps:
	@scripts/needs lint
	$(DENY) bans licenses sources
	@echo "lint-deps: advisories are left out, as their database must be fetched and changes by itself: make audit"

# The book is built, and all links of the built pages lead somewhere; a test of the house looks at those of the sources.
book lint-book:
	@scripts/needs book
	scripts/book

# For other targets: make dist ARGS="aarch64-unknown-linux-musl"; those that rustup cannot install are named and left out.
dist:
	scripts/dist $(ARGS)

try-install:
	@scripts/needs try
	scripts/try-install $(ARGS)

sbom:
	scripts/sbom

reproducible:
	scripts/reproducible

audit:
	@scripts/needs lint
	$(DENY) advisories

# `faircast` re-exports items of the other crates. The tool does not look into other crates, so each of them is compared. It reports an
# item that has moved to another crate as removed, and does not see a changed type of an argument.
EXPORTED := faircast faircast-core faircast-wire faircast-net faircast-object faircast-host faircast-transport faircast-driver faircast-pgm faircast-flute faircast-udpcast faircast-norm

semver:
	@scripts/needs semver
	-PATH="$(or $(CARGO_TARGET_DIR),target)/tmp/tools/bin:$$PATH" $(CARGO) semver-checks --baseline-rev $(or $(BASE),HEAD^) \
	  --default-features $(EXPORTED:%=-p %)

bench:
	$(CARGO) bench --workspace

bench-peers:
	@scripts/needs bench
	$(CARGO) build --release -p faircast-cli
	bench/peers/run --faircast $(FAIRCAST) $(ARGS)

bench-hosts:
	@scripts/needs bench
	$(CARGO) build --release -p faircast-cli -p faircast-emulator
	bench/hosts/run --faircast $(FAIRCAST) --emulator $(EMULATOR) $(ARGS)

bench-disk:
	@scripts/needs bench
	$(CARGO) build --release -p faircast-cli
	bench/disk/run --faircast $(FAIRCAST) $(ARGS)

bench-tcp:
	@scripts/needs bench
	$(CARGO) build --release -p faircast-cli -p faircast-emulator
	bench/tcp/run --faircast $(FAIRCAST) --emulator $(EMULATOR) $(ARGS)

bench-fairness:
	@scripts/needs bench
	$(CARGO) build --release -p faircast-cli
	bench/fairness/run --faircast $(FAIRCAST) $(ARGS)

bench-emulated:
	@scripts/needs bench
	$(CARGO) build --release -p faircast-cli -p faircast-emulator
	bench/emulated/run --emulator $(EMULATOR)
	bench/emulated/accuracy --faircast $(FAIRCAST)
	bench/emulated/run --emulator $(EMULATOR) --others --at-once 3
	bench/fairness/map --faircast $(FAIRCAST) --name emulated-schemes --worlds sim emu --schemes ormcc le-sbcc pgmcc mca mca-plus tfmcc raccoom --mbps 10 --rtts 20 50 100 --queues 1 --jitter 1 --seeds 1 --most 160 --at-once 4
	bench/fairness/map --faircast $(FAIRCAST) --name emulated-map --worlds sim emu --mbps 2 10 --seeds 1 --most 400 --at-once 6

bench-worlds:
	@scripts/needs bench
	$(CARGO) build --release -p faircast-cli -p faircast-emulator
	bench/worlds/run --faircast $(FAIRCAST) --emulator $(EMULATOR) $(ARGS)
	bench/worlds/files --faircast $(FAIRCAST)

bench-layers:
	@scripts/needs bench
	$(CARGO) build --release -p faircast-cli
	bench/layers/leave
	bench/layers/run --faircast $(FAIRCAST) $(ARGS)

bench-relay:
	@scripts/needs bench
	$(CARGO) build --release -p faircast-cli
	bench/relay/run --faircast $(FAIRCAST) $(ARGS)
	bench/relay/forward --faircast $(FAIRCAST)

bench-sim:
	@scripts/needs bench
	bench/sim/run $(ARGS)

bench-queues: needs
	bench/queues/run $(ARGS)

count: needs
	bench/sim/run --check

# Seeds that found something, with what happened, are appended to the file; runs with overflow checks and debug assertions on.
vopr:
	$(CARGO) build --profile vopr -p faircast-vopr
	$(or $(CARGO_TARGET_DIR),target)/vopr/faircast-vopr --keep vopr-findings.txt $(ARGS)

fuzz-replay:
	$(CARGO) test -p faircast-wire -p faircast-experiments --test corpus
	$(CARGO) test -p faircast-object -p faircast-transport -p faircast-pgm -p faircast-flute --lib corpus

# Exits with 1 as long as a claim does not hold; the page is written all the same.
reproduce:
	$(CARGO) run --release -p faircast-cli -- repro verify --out reproduction $(ARGS)

reproduce-interop: needs
	FAIRCAST_INTEROP_MB=50 $(CARGO) test -p faircast-cli --test net pgm::zeromq_and_openpgm -- --nocapture

validate:
	$(CARGO) run --release -p faircast-validation -- $(ARGS)

# Runs and figures of docs/schemes: $(1) is a directory, $(2) a scheme, $(3) what else is set.
PLOTS = $(or $(CARGO_TARGET_DIR),target)/docs-plots
plot-scheme = $(FAIRCAST) sim run scenarios/schemes.toml -q --plot --out $(PLOTS)/$(1) --set flow.group.scheme=$(2) $(3) >/dev/null
beside-tcp = $(call plot-scheme,$(1),$(1),--set "title=A group of four ($(1)) beside TCP")
beside-itself = $(call plot-scheme,$(1),$(1),--set flow.guest.scheme=$(1) --set flow.guest.count=1 \
  --set flow.tcp1.count=0 --set flow.tcp2.count=0 --set "title=Two groups ($(1))")

docs-plots:
	$(CARGO) build --release -p faircast-cli
	$(call beside-tcp,ormcc)
	$(call beside-tcp,le-sbcc)
	$(call beside-tcp,pgmcc)
	$(call beside-tcp,tfmcc)
	$(call beside-itself,mca)
	$(call beside-itself,mca-plus)
	$(call plot-scheme,mca-tcp,mca,--set "title=A group of four (mca) beside TCP")
	for scheme in ormcc le-sbcc pgmcc tfmcc mca mca-plus mca-tcp; do cp $(PLOTS)/$$scheme/rates.svg docs/schemes/$$scheme.svg; done
	for scheme in ormcc mca; do cp $(PLOTS)/$$scheme/queues.svg docs/schemes/$$scheme-queue.svg; done

bpf:
	crates/cocoon-bpf/bpf/build crates/cocoon-bpf/object/cocoon.bpf.o

# Format, lints, tests and dependencies of the two packages of COCOON that have a workspace of their own: one needs libelf's
# development files, the other quinn.
cocoon: cocoon-bpf cocoon-quinn

# Of these what continuous integration has a minute for: the programs in its own kernel, and whether the other one compiles.
cocoon-short:
	@scripts/needs cocoon
	cd crates/cocoon-bpf && CARGO_TARGET_DIR=$(APART) $(CARGO) test
	cd crates/cocoon-quinn && CARGO_TARGET_DIR=$(APART) $(CARGO) clippy --lib -- -D warnings

# The package apart in directory $(1), through all that the workspace goes through. Without --locked: what the workspace's own
# packages need may have changed since its lock file was written.
define apart
	cd $(1) && $(CARGO) fmt --check
	cd $(1) && CARGO_TARGET_DIR=$(APART) $(CARGO) clippy --all-targets -- -D warnings
	cd $(1) && CARGO_TARGET_DIR=$(APART) RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps
	cd $(1) && PATH="$(dir $(APART))tmp/tools/bin:$$PATH" $(CARGO) deny check bans licenses sources
	cd $(1) && CARGO_TARGET_DIR=$(APART) $(CARGO) test
endef

cocoon-bpf:
	@scripts/needs lint
	@scripts/needs cocoon
	$(call apart,crates/cocoon-bpf)

cocoon-quinn:
	@scripts/needs lint
	$(call apart,crates/cocoon-quinn)

bench-cocoon:
	@scripts/needs cocoon
	cd crates/cocoon-bpf && CARGO_TARGET_DIR=$(APART) $(CARGO) build --release
	cd crates/cocoon-quinn && CARGO_TARGET_DIR=$(APART) $(CARGO) build --release --example server
	$(CARGO) build --release -p faircast-emulator
	bench/cocoon/run --cocoon $(APART)/release/faircast-cocoon --emulator $(EMULATOR) $(ARGS)
	bench/cocoon/quic --server $(APART)/release/examples/server --emulator $(EMULATOR)
	bench/cocoon/udp --cocoon $(APART)/release/faircast-cocoon --emulator $(EMULATOR)
	bench/cocoon/cycles --cocoon $(APART)/release/faircast-cocoon --emulator $(EMULATOR)

# For people, not for continuous integration: it takes its time, but little of the processor's.
soak-cocoon:
	@scripts/needs cocoon
	cd crates/cocoon-bpf && CARGO_TARGET_DIR=$(APART) $(CARGO) build --release
	nice -n 10 bench/cocoon/soak --cocoon $(APART)/release/faircast-cocoon $(ARGS)

# The Python package: installed in a virtual environment in target/python, with its tests.
python: needs
	FAIRCAST_PROGRAM=$(abspath $(or $(CARGO_TARGET_DIR),target))/debug/faircast scripts/python $(ARGS)
