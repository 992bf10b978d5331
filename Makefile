# Everything runs in .venv, made from pyproject.toml and the pins in constraints.txt.
PYTHON ?= python3
VENV := .venv
SDK1 := .venv-sdk1
PEER := .venv-peer
BIN := $(VENV)/bin
INSTALL = $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --constraint constraints.txt
TRIALS ?= 2

.PHONY: demo test test-local check format schemas bench constraints clean

demo: $(VENV)/.demo  ## evaluate the example server with a local model: no key, no account
	@$(BIN)/mcptrials demo --trials $(TRIALS)

test: $(VENV)/.dev $(SDK1)/.ready  ## the whole test suite but what needs the local model's weights
	@$(BIN)/python -m pytest -m "not local_model"

test-local: $(VENV)/.dev $(VENV)/.demo  ## end to end with the local model (over 1 GB on first use)
	@$(BIN)/python -m pytest -m local_model

check: $(VENV)/.dev  ## format, lint, types, import layers
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache --no-logo

format: $(VENV)/.dev
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

schemas: $(VENV)/.dev  ## the JSON Schemas of project and task files, for editors
	@$(BIN)/mcptrials check --schema project > docs/mcptrials.schema.json
	@$(BIN)/mcptrials check --schema tasks > docs/tasks.schema.json

bench: $(VENV)/.dev $(PEER)/.ready  ## speed and memory beside a peer, in one run
	@$(BIN)/python bench/run.py

constraints: $(VENV)/.uv  ## take the newest versions that fit
	@$(BIN)/uv pip compile --quiet --universal --upgrade --no-header --no-annotate --no-emit-index-url \
		--no-emit-find-links --extra local --extra sql --group dev --python-version 3.11 pyproject.toml tests/uv.in -o constraints.txt
	@$(BIN)/uv pip compile --quiet --universal --upgrade --no-header --no-annotate --no-emit-index-url \
		--no-emit-find-links --python-version 3.11 tests/sdk1.in -o tests/sdk1.txt

$(VENV)/.uv: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mcptrials needs Python 3.11 or newer; set PYTHON=...")'
	@echo "Setting up $(VENV) (once) ..." >&2
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt uv
	@touch $@

$(VENV)/.demo: $(VENV)/.uv pyproject.toml
	@$(INSTALL) --editable '.[local]'
	@touch $@

$(VENV)/.dev: $(VENV)/.uv pyproject.toml
	@$(INSTALL) --editable '.[sql]' --group dev
	@touch $@

# Servers built with version 1 of the MCP SDK cannot share an environment with version 2.
$(SDK1)/.ready: $(VENV)/.uv tests/sdk1.txt
	@$(BIN)/uv venv --quiet --python $(BIN)/python --allow-existing $(SDK1)
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(SDK1)/bin/python --requirements tests/sdk1.txt
	@touch $@

# The peer that the bench runs beside us has dependencies of its own; without it the bench has a column less.
$(PEER)/.ready: $(VENV)/.uv bench/peer.txt
	@$(BIN)/uv venv --quiet --python $(BIN)/python --allow-existing $(PEER)
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(PEER)/bin/python --requirements bench/peer.txt \
		&& touch $@ || echo "The peer cannot be installed; the bench runs without it." >&2

clean:
	rm -rf $(VENV) $(SDK1) $(PEER) .mypy_cache .ruff_cache .hypothesis runs
