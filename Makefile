# One target for each thing a person does. `make help` lists them.

PREFIX ?= /usr/local
DESTDIR ?=
# Further arguments of `make demo` and `make bench`.
ARGS ?=
# Another machine that `make packages` builds for, besides this one: aarch64.
CROSS ?=
FUZZ_SECONDS ?= 5
export FUZZ_SECONDS

# rustup's toolchain before a distribution's, which is often older (as in scripts/environment).
export PATH := $(HOME)/.cargo/bin:$(PATH)

TARGET := $(or $(CARGO_TARGET_DIR),target)
NETDYNO := $(TARGET)/release/netdyno
BIN := $(DESTDIR)$(PREFIX)/bin
SHARE := $(DESTDIR)$(PREFIX)/share
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

.PHONY: help demo build test quick miri aarch64 test-drivers test-packages lint fuzz bench docs packages wheel install uninstall clean

help: ## list these targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

# What takes longest to compile is left out of the first build: half of the time. Where the whole program was built already, that
# is what is built again.
WHOLE = $(shell [ -x $(NETDYNO) ] && ! $(NETDYNO) --version | grep -q without && echo whole)

demo: ## install what is missing, build within minutes, and watch traffic being sent and accounted for
	$(if $(WHOLE),,@echo "make: flow records (probe, collect), modules as plugins and iperf3's authentication are left out, for a build in half of the time: 'make build' adds them")
	@scripts/setup
	scripts/build $(WHOLE)
	$(SUDO) $(NETDYNO) demo $(ARGS)

build: ## install what is missing and build target/release/netdyno, with all that it can do
	@scripts/setup
	scripts/build whole

test: ## install what is missing and run every test (as root, or with sudo)
	@scripts/setup compile
	@scripts/test

quick: ## check formatting, spelling and lints, and test what does no I/O: without root, within three minutes
	@scripts/quick

miri: ## run the tests of unsafe code under Miri (installs a nightly Rust)
	@scripts/setup
	@scripts/miri

aarch64: ## check all crates for aarch64, and test those that do no I/O in an emulator
	@scripts/setup cross
	@scripts/aarch64

test-drivers: build ## try real drivers and other kernels in emulated machines; ARGS=reduced within three minutes, 6.1/igb for one
	@scripts/setup drivers
	@scripts/test-drivers $(ARGS)

lint: ## check formatting, spelling, lints, documentation, documents, shell scripts, dependencies and the public API (after scripts/setup test)
	@scripts/lint

fuzz: ## run each fuzz target for FUZZ_SECONDS (5)
	@scripts/fuzz

bench: build ## measure speed beside other generators' and the machine's own limits; ARGS=--quick for a first look
	@scripts/setup bench
	cargo build --release --locked -p netdyno-bench
	$(SUDO) $(TARGET)/release/netdyno-bench $(ARGS)
	$(if $(findstring --only,$(ARGS)),,$(SUDO) env NETDYNO=$(NETDYNO) scripts/bench-endpoint $(if $(findstring --quick,$(ARGS)),1 1,3 2))
	$(if $(findstring --only,$(ARGS)),,$(SUDO) env NETDYNO=$(NETDYNO) ORACLE="$$(cargo test --locked -p netdyno-cli --test all --no-run \
		--message-format=json | jq -r 'select(.executable and .target.name == "all") | .executable')" \
		scripts/bench-clone $(if $(findstring --quick,$(ARGS)),1 . 1000,5))

packages: build ## build a .deb, an .rpm, a static binary and an OCI image, with checksums, into target/packages, and a Python wheel into target/wheels; CROSS=aarch64 for that machine, too
	@scripts/setup packages
	$(if $(CROSS),@scripts/setup cross)
	$(if $(CROSS),RUSTFLAGS="$$(scripts/build --flags | head -n 1)" CFLAGS="$$CFLAGS $$(scripts/build --flags | tail -n 1)" scripts/cross)
	@ALSO="$(CROSS:%=$(TARGET)/%-unknown-linux-gnu/release/netdyno)" scripts/packages
	@scripts/wheel || [ $$? = 3 ]

wheel: build ## pack the Python package, with the program in it, into target/wheels (MATURIN names maturin)
	@scripts/setup packages
	@scripts/wheel

test-packages: packages ## install, try and purge the packages in bare Debians and Ubuntus, and try them on other kernels
	@scripts/setup test
	@scripts/setup drivers
	@scripts/test-packages
	@scripts/wheel check || [ $$? = 3 ]

docs: build ## write man pages, shell completions and the documents as a site to target/docs
	mkdir -p $(TARGET)/docs/man $(TARGET)/docs/completions
	$(NETDYNO) man $(TARGET)/docs/man
	$(NETDYNO) completions bash > $(TARGET)/docs/completions/netdyno
	$(NETDYNO) completions zsh > $(TARGET)/docs/completions/_netdyno
	$(NETDYNO) completions fish > $(TARGET)/docs/completions/netdyno.fish
	@scripts/setup docs
	@scripts/site

install: ## put the binary, man pages and completions under PREFIX (/usr/local); after make docs
	@test -d $(TARGET)/docs/man -a -x $(NETDYNO) || { echo "nothing to install yet: run 'make docs' first, without sudo"; exit 1; }
	install -D -m 755 $(NETDYNO) $(BIN)/netdyno
	install -d $(SHARE)/man/man1
	install -m 644 $(TARGET)/docs/man/*.1 $(SHARE)/man/man1/
	install -D -m 644 $(TARGET)/docs/completions/netdyno $(SHARE)/bash-completion/completions/netdyno
	install -D -m 644 $(TARGET)/docs/completions/_netdyno $(SHARE)/zsh/site-functions/_netdyno
	install -D -m 644 $(TARGET)/docs/completions/netdyno.fish $(SHARE)/fish/vendor_completions.d/netdyno.fish

uninstall: ## remove what install put there
	rm -f $(BIN)/netdyno $(SHARE)/man/man1/netdyno.1 $(SHARE)/man/man1/netdyno-*.1 \
		$(SHARE)/bash-completion/completions/netdyno $(SHARE)/zsh/site-functions/_netdyno \
		$(SHARE)/fish/vendor_completions.d/netdyno.fish

clean: ## remove everything that was built
	rm -rf $(TARGET) fuzz/target
