# Everything runs in .venv, made from pyproject.toml and the pins in constraints.txt.
PYTHON ?= python3
VENV := .venv
SDK1 := .venv-sdk1
PEER := .venv-peer
BIN := $(VENV)/bin
INSTALL = $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --constraint constraints.txt
TRIALS ?= 2

# Servers that nobody here wrote: those of the examples, and those that are only tested. Each in its own environment.
SERVERS := $(patsubst tests/real_servers/requirements/%.txt,.servers/%/.ready,$(wildcard tests/real_servers/requirements/*.txt))
PYTHON_EXAMPLES := $(patsubst examples/%/requirements.txt,%,$(wildcard examples/*/requirements.txt))
NODE_EXAMPLES := $(patsubst examples/%/package.json,%,$(wildcard examples/*/package.json))

.PHONY: setup demo test test-local test-servers servers-table servers check format schemas bench bench-stats bench-memory constraints clean

setup: $(VENV)/.set  ## mcptrials alone: no weights, no tools for development
	@echo "Call it as $(BIN)/mcptrials, or as mcptrials after: . $(BIN)/activate"

demo: $(VENV)/.demo  ## evaluate the example server with a local model: no key, no account
	@$(BIN)/mcptrials demo --trials $(TRIALS)

test: $(VENV)/.dev $(SDK1)/.ready  ## the whole test suite but what needs the local model's weights
	@$(BIN)/python -m pytest -n 3 -m "not local_model and not real_servers"

test-local: $(VENV)/.dev $(VENV)/.demo  ## end to end with the local model (over 1 GB on first use)
	@$(BIN)/python -m pytest -m local_model

test-servers: $(VENV)/.dev servers  ## real servers from PyPI and npm, and the examples on them (installs 14 packages on first use)
	@$(BIN)/python -m pytest -m real_servers tests/real_servers

servers-table: $(VENV)/.dev servers  ## the same, and write docs/servers.md anew
	@MCPTRIALS_SERVERS_TABLE=docs/servers.md $(BIN)/python -m pytest -m real_servers tests/real_servers

servers: $(SERVERS) | $(VENV)/.uv
	@for name in $(PYTHON_EXAMPLES); do $(MAKE) -s --no-print-directory -C examples/$$name setup PYTHON=$(abspath $(BIN))/python \
		INSTALL="$(abspath $(BIN))/uv pip install --quiet --compile-bytecode --python .servers/bin/python" || exit 1; done
	@if command -v npm >/dev/null; then $(MAKE) -s --no-print-directory .servers/node/.ready \
		&& for name in $(NODE_EXAMPLES); do $(MAKE) -s --no-print-directory -C examples/$$name setup || exit 1; done; \
	else echo "Node is missing: its servers are skipped." >&2; fi

check: $(VENV)/.dev  ## format, lint, types, import layers
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache --no-logo

format: $(VENV)/.dev
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

schemas: $(VENV)/.dev  ## the JSON Schemas of the files of a project, for editors
	@$(BIN)/mcptrials check --schema project > docs/mcptrials.schema.json
	@$(BIN)/mcptrials check --schema tasks > docs/tasks.schema.json
	@$(BIN)/mcptrials check --schema overrides > docs/overrides.schema.json

bench: $(VENV)/.dev $(PEER)/.ready  ## speed and memory beside a peer, in one run
	@$(BIN)/python bench/run.py
	@$(BIN)/python bench/spares.py

bench-memory: $(VENV)/.dev  ## memory of a long run, from its hundredth to its five thousandth trial
	@$(BIN)/python bench/memory.py

bench-stats: $(VENV)/.dev  ## whether intervals cover and tests err as they say: the tables of docs/statistics.md
	@$(BIN)/python -m bench.simulation

constraints: $(VENV)/.uv  ## take the newest versions that fit
	@$(BIN)/uv pip compile --quiet --universal --upgrade --no-header --no-annotate --no-emit-index-url \
		--no-emit-find-links --extra local --extra sql --group dev --python-version 3.11 pyproject.toml tests/uv.in -o constraints.txt
	@$(BIN)/uv pip compile --quiet --universal --upgrade --no-header --no-annotate --no-emit-index-url \
		--no-emit-find-links --python-version 3.11 tests/sdk1.in -o tests/sdk1.txt
	@for file in tests/real_servers/requirements/*.in examples/*/requirements.in; do \
		$(BIN)/uv pip compile --quiet --universal --upgrade --no-header --no-annotate --no-emit-index-url \
		--no-emit-find-links --python-version 3.11 $$file -o $${file%.in}.txt || exit 1; done

$(VENV)/.uv: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mcptrials needs Python 3.11 or newer; set PYTHON=...")'
	@echo "Setting up $(VENV) (once) ..." >&2
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt uv
	@touch $@

$(VENV)/.set: $(VENV)/.uv pyproject.toml
	@$(INSTALL) --editable .
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

.servers/%/.ready: tests/real_servers/requirements/%.txt | $(VENV)/.uv
	@$(BIN)/uv venv --quiet --python $(BIN)/python --allow-existing $(@D)
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(@D)/bin/python --requirements $<
	@touch $@

.servers/node/.ready: tests/real_servers/node/package.json
	@mkdir -p $(@D)
	@cp $< $(@D)/
	@npm install --prefix $(@D) --no-package-lock --no-audit --no-fund --loglevel=error >/dev/null
	@touch $@

# The peer that the bench runs beside us has dependencies of its own; without it the bench has a column less.
$(PEER)/.ready: $(VENV)/.uv bench/peer.txt
	@$(BIN)/uv venv --quiet --python $(BIN)/python --allow-existing $(PEER)
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(PEER)/bin/python --requirements bench/peer.txt \
		&& touch $@ || echo "The peer cannot be installed; the bench runs without it." >&2

clean:
	rm -rf $(VENV) $(SDK1) $(PEER) .servers examples/*/.servers .mypy_cache .ruff_cache .hypothesis runs
