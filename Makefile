# Two commands: `make serve` runs the broker, `make test` proves it. Each sets up what it needs, once.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: serve test check bench docs clean

serve: $(VENV)/.installed
	$(BIN)/barnabas serve $(ARGS)

test: $(VENV)/.installed-test
	@./scripts/system-tools
	PATH="$(CURDIR)/$(BIN):$$PATH" ./check

check: test

bench: $(VENV)/.installed-test
	$(BIN)/python -m bench $(ARGS)

docs: $(VENV)/.installed-test
	$(BIN)/python -m barnabas.docgen --write

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.installed-test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,dev]'
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) .cache build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
