# Everything a person does with a checkout. `make help` lists it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
DEVELOP := $(VENV)/ready-dev
DOCS := $(VENV)/ready-docs
export UV_LINK_MODE ?= copy
export PYTHONDONTWRITEBYTECODE :=  # else each process of the tests compiles them all anew: 13 s of 30
SHARED := --numprocesses auto --dist loadscope --no-loadscope-reorder --durations 10 --durations-min 5

.DEFAULT_GOAL := help
.PHONY: help setup develop run test slow faults soak simulate lint format types check bench docs notebooks reference lock wheels clean

help:  ## list every target
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

setup: $(READY)  ## make .venv with what a run needs, from requirements.lock (exact versions with hashes)

develop: $(DEVELOP)  ## add what tests, lint and types need, from requirements-dev.lock

$(READY): requirements-uv.lock requirements.lock pyproject.toml ldptree/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ldptree needs python >= 3.11: make setup PYTHON=python3.12")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.lock
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable ldptree --editable .
	@touch $@

$(VENV)/ready-%: requirements-%.lock benchmark/pyproject.toml $(READY)
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r requirements-$*.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable benchmark
	@touch $@

run: setup  ## run the quickstart: 300,000 simulated trips, from raw CSV to one HTML page
	$(BIN)/ldptree run configs/quickstart.toml

test: develop  ## the whole test suite, but what `make slow` runs
	$(BIN)/python -m pytest $(SHARED)

slow: develop  ## the slow tests: a deployment, the installed wheels, a browser, a full disk, canaries, kills
	$(BIN)/python -m pytest -m slow $(SHARED)

faults: develop  ## plant faults in a copy of the program: is each caught by the test that promises the opposite?
	$(BIN)/python tests/plant_faults.py

soak: develop  ## 50 runs on one server, each on new rows: memory, open files, database and work folder stay flat
	LDPTREE_SOAK_RUNS=50 $(BIN)/python -m pytest -q -s -m slow tests/system/test_soak.py

SEEDS ?= 10000
simulate: develop  ## SEEDS=10000 schedules of crashes, lost answers and slow machines over a simulated disk and bucket; or SEED=7
	cd tests && ../$(BIN)/python -m simulation.simulate $(if $(SEED),--seed $(SEED),$(SEEDS))

lint: develop  ## ruff: lint and format check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: develop  ## ruff: format, and mend what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

types: develop  ## mypy, strict
	$(BIN)/mypy

check: lint types test  ## lint, types and tests

bench: develop  ## the timed comparisons (minutes)
	$(BIN)/python benchmark/timed/pipeline.py

reference: develop  ## write the docs that are generated: from the code, and from what was measured
	$(BIN)/python docs/draw_architecture.py
	$(BIN)/python docs/write_reference.py
	$(BIN)/python docs/write_measured.py

notebooks: $(DOCS)  ## run the notebooks of the docs anew, and keep what they show
	$(BIN)/python docs/run_notebooks.py

docs: $(DOCS)  ## the documentation as a site: site/index.html
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going docs site
	@echo "site/index.html; with extracts in its search: $(BIN)/python -m http.server --directory site"

PIN := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11 --upgrade
COMPILE := $(PIN) --no-emit-package ldptree pyproject.toml --group build
lock: setup  ## write the locks anew from pyproject.toml: of a run, of development, of the docs, with the same versions; and of uv
	echo uv | $(PIN) - --output-file requirements-uv.lock
	$(COMPILE) --group dev --output-file requirements-dev.lock
	$(COMPILE) --constraints requirements-dev.lock --output-file requirements.lock
	$(COMPILE) --constraints requirements-dev.lock --group docs --output-file requirements-docs.lock

wheels: setup  ## build wheels and source distributions of ldptree, ldptree-pipeline and ldptree-benchmark into dist/
	cd ldptree && ../$(BIN)/python -m hatchling build -d ../dist
	$(BIN)/python -m hatchling build
	cd benchmark && ../$(BIN)/python -m hatchling build -d ../dist

clean:  ## remove the environment and what tools leave (never a work folder)
	rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache
