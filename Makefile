# Needs Python 3.11 or newer, Java 17 or newer and make; everything else goes into .venv.

PYTHON ?= python3
BIN := .venv/bin
UV := uv==0.13.8
# Older ones take the newest version of what is pinned where somebody needs it with extras.
PIP := pip==26.3

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.DEFAULT_GOAL := help
.PHONY: help setup test demo ui check docs wheel bench torture goldens lock clean python java
.DELETE_ON_ERROR:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s  %s\n", $$1, $$2 }' Makefile

setup: .venv/complete ## make .venv as requirements.lock pins it (minutes the first time, then nothing)

# The stamp comes last: an interrupted setup is not a finished one.
.venv/complete: requirements.lock setup.cfg pyproject.toml | python
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet $(PIP)
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements.lock
	@# setuptools warns whoever installs like this of other folders named as the package is; here is none.
	PYTHONWARNINGS="ignore:Editable installation" \
	  $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	$(BIN)/python -m stairwise_spark.jars
	@touch $@

# Side by side, but no more than so many: each has a JVM of its own.
test: java setup ## pass every test, the fast ones first
	$(BIN)/pytest --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder --durations 20 --durations-min 20

demo: java setup ## a year of trips through Airflow, Spark and Delta Lake, all in target/demo; ROWS=N
	$(BIN)/stairwise demo --dir target/demo $(if $(ROWS),--rows $(ROWS))

PORT ?= 8080
ui: setup ## Airflow's own interface, with the history of the demo in it; PORT=N
	$(BIN)/stairwise demo --ui --dir target/demo --port $(PORT)

check: setup ## format, lint, import contracts, types, and the tests that need no engine, with coverage
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/pytest -m "not airflow and not spark and not release" --cov --cov-report=term

docs: setup ## build the documentation into target/site; a link that leads nowhere fails
	$(BIN)/mkdocs build --strict --quiet

wheel: setup ## build the wheel and the source archive without a warning, and install the wheel into a new environment
	$(BIN)/pytest -m release

bench: setup ## measure how good the plans are, and how fast they and the tiers come
	$(BIN)/python bench/run.py

# So many kills, no longer than so many minutes; a seed repeats the choices of a run that failed.
KILLS ?= 100
MINUTES ?= 60
torture: java setup ## trouble of all kinds, then KILLS=100 killed runs, with SEED=N as before: do tables stay true?
	$(BIN)/pytest -m torture
	$(BIN)/python -W ignore -m tests.spark_jobs.torture --kills $(KILLS) --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

goldens: setup ## rewrite the golden plans and errors, and what the documentation shows; then read the difference
	$(BIN)/pytest tests/optimizer tests/test_docs.py --write-goldens

lock: | python ## pin the newest versions that setup.cfg and requirements-dev.in allow
	$(PYTHON) -m venv target/lock
	target/lock/bin/python -m pip install --quiet $(UV)
	target/lock/bin/uv pip compile setup.cfg requirements-dev.in --extra all --upgrade --universal --python-version 3.11 \
	  --generate-hashes --no-annotate --no-header --quiet --output-file requirements.lock

clean: ## remove what make and the tools made
	rm -rf .venv target build dist *.egg-info .coverage .coverage.* .hypothesis .import_linter_cache \
	  .mypy_cache .pytest_cache .ruff_cache
	find optimizer plugins spark_jobs dags tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Stairwise needs Python 3.11 or newer, and '$(PYTHON)' is not: name one that is, as in make PYTHON=python3.11 setup." >&2; \
	  exit 1; }

# Spark starts the Java of JAVA_HOME if that is set, else the one on the path.
java:
	@java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; \
	version=$$("$$java" -version 2>&1 | sed -n 's/.* version "\([0-9.]*\).*/\1/p'); \
	major="$${version%%.*}"; \
	[ "$${major:-0}" -ge 17 ] || { \
	  echo "Stairwise needs Java 17 or newer, and '$$java' is $${version:-missing}: install one, or set JAVA_HOME to where it is." >&2; \
	  exit 1; }
