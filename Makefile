# Three commands: `make serve` runs the broker, `make test` checks it, `make demo` shows the data pipeline on real data.
# Each sets up what it needs, once.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
COMMA  := ,

# Sets up $(VENV) with these extras; the rest of the line says what takes the time. pip shows its progress.
define set_up
	@echo "Setting up $(VENV), once: $(2)"
	@$(BIN)/python -m pip install --disable-pip-version-check --editable $(1)
	@echo "$(VENV) is set up."
endef

.PHONY: serve test soak prove demo check bench docs docs-site clean

serve: $(VENV)/.installed
	$(BIN)/barnabas serve $(ARGS)

test: $(VENV)/.installed-test
	@./scripts/system-tools
	@./scripts/jars $(BIN)
	PATH="$(CURDIR)/$(BIN):$$PATH" ./check

# Proof by volume, recorded in docs/evidence/proof.md: the parts whose newest proof is oldest, with new seeds, for so many minutes.
# The same command goes on after an interruption.
MINUTES ?= 10

soak: $(VENV)/.installed-test
	@./scripts/system-tools
	@./scripts/jars $(BIN)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.soak --minutes $(MINUTES) $(ARGS)

prove: soak

demo: $(VENV)/.installed-demo
	@./scripts/system-tools java
	$(BIN)/barnabas pipeline demo $(ARGS)

check: test

bench: $(VENV)/.installed-test
	$(BIN)/python -m bench $(ARGS)

docs: $(VENV)/.installed-test
	$(BIN)/python -m scripts.pages --write
	$(BIN)/python -m tests.structure --write

# The documentation as a site in build/site: warnings are errors, links are checked, and readers fetch nothing from elsewhere.
docs-site: $(VENV)/.installed-docs
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --fresh-env -b html -c docs/site -d build/doctrees . build/site
	$(BIN)/python docs/site/check.py build/site
	@echo "build/site/index.html"

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed, not %d.%d: make PYTHON=python3.11" % sys.version_info[:2])'
	@echo "Making $(VENV) with $$($(PYTHON) -V), once"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(call set_up,.,the broker and its libraries (70 MB on disk; about half a minute))
	@touch $@

$(VENV)/.installed-demo: pyproject.toml | $(VENV)/bin/python
	$(call set_up,'.[demo]',Spark$(COMMA) pandas$(COMMA) Arrow and the flights (1 GB on disk; minutes$(COMMA) most of them for Spark))
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml | $(VENV)/bin/python
	$(call set_up,'.[docs]',Sphinx and its theme (100 MB on disk))
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-test: pyproject.toml | $(VENV)/bin/python
	$(call set_up,'.[suite$(COMMA)dev]',Spark$(COMMA) the clients and the checkers (1.3 GB on disk; about four minutes$(COMMA) most of them for Spark))
	@touch $@ $(VENV)/.installed $(VENV)/.installed-demo $(VENV)/.installed-docs

clean:
	rm -rf $(VENV) .cache build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
