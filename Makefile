# One environment (.venv) for everything; `make venv` does nothing when pyproject.toml and the lock are unchanged.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help venv taste demo test test-all lint lock clean

help:
	@echo "make taste     the emulator on a kernel that accepts a stale flag, and on its repair (g++ and python3 only)"
	@echo "make demo      sets up $(VENV) and runs the main job on workloads/gemm_allgather in the emulator"
	@echo "make test      the same set-up, then the tests (test-all: the slow ones too)"
	@echo "make lint      ruff and mypy"
	@echo "make clean     removes $(VENV) and caches of this folder"

venv: $(STAMP)

$(STAMP): pyproject.toml requirements-dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "$(PYTHON) is older than 3.11; set PYTHON=python3.11 or later" >&2; exit 3; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "$(PYTHON) cannot make environments; apt-get install python3-venv" >&2; exit 3; }
	@command -v g++ >/dev/null || { echo "g++ is missing; apt-get install g++" >&2; exit 3; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint requirements-dev.lock --editable '.[emulator,dev]'
	@touch $@

taste:
	@command -v g++ >/dev/null || { echo "g++ is missing; apt-get install g++" >&2; exit 3; }
	@PYTHONPATH=src $(PYTHON) -m cuco.testbed.taste

demo: venv
	$(BIN)/cuco optimize workloads/gemm_allgather --testbed emulator --size dev --generations 3

test: venv
	$(BIN)/python -m pytest -m "not slow"

test-all: venv
	$(BIN)/python -m pytest

lint: venv
	$(BIN)/ruff check src tests
	$(BIN)/mypy

# Pins what `make venv` installs. Run it after a change of the dependencies in pyproject.toml.
lock:
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[emulator,dev]'
	$(BIN)/python -m pip freeze --exclude-editable | grep -E '^[A-Za-z0-9._-]+==' > requirements-dev.lock
	touch $(STAMP)

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
