# GRAFT Lab. `make app` to look at rollouts, `make test` to check the project, `make help` for the rest.
#
#   make app ARGS="my_rollouts.jsonl --port 8600"     what `graft app` takes
#   make test PYTEST_ARGS="-n 2 tests/graft_core"     what pytest takes
#   make app PYTHON=/opt/python3.12/bin/python3       another Python for the environment

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
PYTHON ?=
ARGS ?=
PYTEST_ARGS ?=
TWO_CORES := -n 2 --dist loadfile
PIP_INSTALL := $(PY) -m pip install --disable-pip-version-check -c constraints.txt
CHECKER := $(PY) -m ruff check

# One stamp for each set of packages; it lies inside the environment and goes with it. A larger set contains the
# smaller ones and stamps them too, never the reverse.
APP_STAMP := $(VENV)/.installed-app
LIVE_STAMP := $(VENV)/.installed-live
TEST_STAMP := $(VENV)/.installed-test
LIVE_EXTRAS := app,live
TEST_EXTRAS := app,live,dev
INPUTS := pyproject.toml setup.py constraints.txt

.DEFAULT_GOAL := help
.PHONY: help app live test check audit bench clean

help: ## what can be made
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-14s %s\n", $$1, $$2}'

app: $(APP_STAMP) ## install what the app needs (no torch) and open it on the sample data
	$(PY) -c 'import sys; from graft_core.cli import main; sys.exit(main())' app $(ARGS)

live: $(LIVE_STAMP) ## the same with torch and transformers for live rollouts
	$(PY) -c 'import sys; from graft_core.cli import main; sys.exit(main())' app $(ARGS)

test: check ## install everything, then lint, types, layers and all tests
	$(PY) -m pytest $(or $(PYTEST_ARGS),$(TWO_CORES))

check: $(TEST_STAMP) ## lint, types and layers only
	$(CHECKER) .
	$(PY) -m mypy
	$(BIN)/lint-imports

audit: $(TEST_STAMP) ## the heavy proofs, minutes each
	$(PY) -m pytest -m audit $(PYTEST_ARGS)

bench: $(TEST_STAMP) ## measure what the README states
	$(PY) -c 'import sys; from graft_core.cli import main; sys.exit(main())' bench $(ARGS)

clean: ## remove the environment and everything that was built
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# $(1): the extras to install
define install
	@sh -eu -c ' \
	  works() { [ -x $(PY) ] && $(PY) -c "import sys, pip; sys.exit(not (3, 11) <= sys.version_info < (3, 14))" 2>/dev/null; }; \
	  fits() { command -v "$$1" >/dev/null 2>&1 && \
	    "$$1" -c "import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))" >/dev/null 2>&1; }; \
	  works && exit 0; \
	  for python in $${PYTHON:-python3.13 python3.12 python3.11 python3 python}; do \
	    fits "$$python" || continue; \
	    echo "Making $(VENV) with $$python ($$("$$python" -V))"; \
	    "$$python" -m venv --clear $(VENV) || { \
	      echo "$$python could not make $(VENV); on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }; \
	    exit 0; \
	  done; \
	  echo "No Python 3.11, 3.12 or 3.13 found ($${PYTHON:-python3.13 python3.12 python3.11 python3 python}); name one: make PYTHON=/path/to/python3" >&2; \
	  exit 1'
	$(PIP_INSTALL) -e '.[$(1)]'
endef

$(APP_STAMP): $(INPUTS)
	$(call install,app)
	$(PY) -m graft_core.warm
	@touch $@

$(LIVE_STAMP): $(INPUTS)
	$(call install,$(LIVE_EXTRAS))
	$(PY) -m graft_core.warm
	@touch $(APP_STAMP) $@

$(TEST_STAMP): $(INPUTS)
	$(call install,$(TEST_EXTRAS))
	@touch $(APP_STAMP) $(LIVE_STAMP) $@
