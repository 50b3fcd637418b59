# `make demo` and `make test` set up everything they need in .venv and then run.
# The only requirements are Python 3.11 or newer and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 3  # of the tests: some wait for a browser or for Java
# Byte code of what is never imported would take longer than the rest of the installation.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt

# Tests start hundreds of processes: each would compile all libraries anew where byte code is not kept.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test lint docs kernels format bench clean

help:
	@echo "make demo     a whole study on made-up people: plan, fit, report (under a minute)"
	@echo "make test     lint, type-check and test"
	@echo "make docs     build the documentation site in docs/_build"
	@echo "make format   let ruff rewrite the code"
	@echo "make bench    run the benchmarks that have no result of this code, write docs/benchmarks.md (hours)"
	@echo "make clean    remove .venv and caches"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("privfield needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.user: $(BIN)/python pyproject.toml constraints.txt
	$(INSTALL) --editable .
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt
	$(INSTALL) --editable '.[dev,docs]'
	@touch $@ $(VENV)/.user

demo: $(VENV)/.user
	$(BIN)/privfield demo --force

test: $(VENV)/.dev
	$(MAKE) --no-print-directory --jobs=2 lint docs kernels
	$(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadgroup

docs: $(VENV)/.dev
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

kernels: $(VENV)/.dev
	$(BIN)/python tests/helpers/compile_kernels.py

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/page.py run

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
