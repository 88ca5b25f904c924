# Targets for people and for CI. Everything runs from a virtual environment that the lock file pins.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# make demo TRACE=jobs.parquet SEED=7 DAYS=3 DATA=/tmp/lake
DEMO_FLAGS = $(if $(TRACE),--trace '$(TRACE)') $(if $(SEED),--seed $(SEED)) $(if $(DAYS),--days $(DAYS)) \
             $(if $(END_AT),--end-at '$(END_AT)') $(if $(INTERVAL),--interval $(INTERVAL)) \
             $(if $(FAULTS),--faults '$(FAULTS)') $(if $(DATA),--data '$(DATA)')

.PHONY: demo test unit integration lint bench ui screenshots golden lock install clean

install: $(READY)

$(READY): requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

demo: $(READY)
	$(BIN)/strandline demo $(DEMO_FLAGS)

ui: $(READY)
	$(BIN)/strandline ui $(if $(DATA),--data '$(DATA)')

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Unit tests first: they are quick, and what they catch needs no services to be seen.
unit: $(READY)
	$(BIN)/pytest -n 2 -m "not integration"

integration: $(READY)
	$(BIN)/pytest -n 2 -m integration

test: lint unit integration

bench: $(READY)
	$(BIN)/python -m benchmarks

# The documentation's pictures, of a lake that `make demo` built. Needs a chromium on the path.
screenshots: $(READY)
	$(BIN)/python docs/screenshots.py $(if $(DATA),--data '$(DATA)')

# Golden files are rewritten only on purpose; the diff is then read like any other change.
golden: $(READY)
	UPDATE_GOLDEN=1 $(BIN)/pytest -n 0 tests/pipelines/test_definition_graph.py

# pip-tools is no dependency of the project; whoever renews the lock has it made here.
lock:
	test -x $(BIN)/pip-compile || $(BIN)/python -m pip install --quiet pip-tools
	PIP_FIND_LINKS= $(BIN)/pip-compile --extra dev --generate-hashes --allow-unsafe --no-strip-extras \
	    --no-emit-index-url --no-emit-find-links --no-header --quiet --output-file requirements.lock pyproject.toml

clean:
	rm -rf data exports build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
