# Every target does its own set-up in .venv, once: a second run starts at once.
#   make demo ARGS="--seconds 30"      make test ARGS="-k time"      make check      make bench      make chaos

PYTHON ?= python3
# Two processes, each with a Kafka and a Redis of its own; PARALLEL= runs the tests in one.
PARALLEL ?= -n 2 --dist loadfile
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements/constraints.txt

.PHONY: demo test chaos check bench clean

demo: .venv/.demo
	@$(BIN)/streamer demo $(ARGS)

test: .venv/.test .venv/.components
	@$(BIN)/python -m pytest $(PARALLEL) $(ARGS)

chaos: .venv/.test .venv/.components
	@STREAMER_CHAOS=long $(BIN)/python -m pytest -s tests/simulation tests/integration/faults $(ARGS)

check: .venv/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m streamer.docs --check
	$(BIN)/python -m grafana.build --check
	$(BIN)/python -m grafana.rules --check
	$(BIN)/python -m tests.conformance --check
	$(BIN)/python -m tests.audit

bench: .venv/.test
	@$(BIN)/python -m benchmarks.run $(ARGS)

clean:
	rm -rf .venv .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist
	find streamer tests benchmarks grafana -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps below .venv say what was installed.
.venv/.demo: pyproject.toml requirements/constraints.txt | $(BIN)/python
	@echo "Installing streamer into .venv (once)"
	@$(PIP) -e '.[demo]'
	@touch $@

.venv/.test: .venv/.demo
	@echo "Installing the tools for tests (once)"
	@$(PIP) -e '.[test,bench]'
	@touch $@

# Kafka, Redis, Prometheus, … for the tests: through apt where it may be used, once.
.venv/.components: tests/components.py | $(BIN)/python
	@$(BIN)/python tests/components.py
	@touch $@

$(BIN)/python:
	@for python in $(PYTHON) python3 python3.13 python3.12 python3.11; do \
		if $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			exec $$python -m venv --clear .venv; \
		fi; \
	done; \
	echo "make: no Python 3.11 or newer with venv on PATH (tried $(PYTHON), python3, python3.13 … python3.11): install one (Debian, Ubuntu: apt install python3-venv) or pass PYTHON=/path/to/python3" >&2; \
	exit 1
