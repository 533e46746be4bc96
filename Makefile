# Three commands: `make serve` runs the broker, `make test` checks it, `make demo` shows the data pipeline on real data.
# Each sets up what it needs, once.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: serve test test-all demo check bench docs docs-site clean

serve: $(VENV)/.installed
	$(BIN)/barnabas serve $(ARGS)

test: $(VENV)/.installed-test
	@./scripts/system-tools
	PATH="$(CURDIR)/$(BIN):$$PATH" ./check

# All tests: those of `make test` with larger numbers, and the slow ones. Half an hour on two cores.
test-all: $(VENV)/.installed-test
	@./scripts/system-tools
	PATH="$(CURDIR)/$(BIN):$$PATH" ./check --all

demo: $(VENV)/.installed-demo
	@./scripts/system-tools java
	$(BIN)/barnabas pipeline demo $(ARGS)

check: test

bench: $(VENV)/.installed-test
	$(BIN)/python -m bench $(ARGS)

docs: $(VENV)/.installed-test
	$(BIN)/python -m barnabas.docgen --write
	$(BIN)/python -m tests.structure --write

# The documentation as a site in build/site: warnings are errors, links are checked, and readers fetch nothing from elsewhere.
docs-site: $(VENV)/.installed-docs
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --fresh-env -b html -c docs/site -d build/doctrees . build/site
	$(BIN)/python docs/site/check.py build/site
	@echo "build/site/index.html"

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.installed-demo: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[demo]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,dev]'
	@touch $@ $(VENV)/.installed $(VENV)/.installed-demo $(VENV)/.installed-docs

clean:
	rm -rf $(VENV) .cache build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
