# Every target that needs Python uses .venv, which `install` makes and keeps in step with the lock.
# `make` alone lists the targets.

VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PYTHON ?=
PYTEST := $(BIN)/python -m pytest
LOCK_ARGS  ?=
BENCH_ARGS ?=
CLUSTER_ARGS ?=
CLUSTER_FAULT_ARGS ?=
FAULT_ARGS ?=
FUZZ_ARGS  ?=
FILES_ARGS ?=
HISTORY_ARGS ?=
SOAK_ARGS  ?=
ABUSE_ARGS ?=
PYTEST_ARGS ?=

# Slow tests start many a JVM and wait for it: three at a time keep two cores busy. `tests/conftest.py`
# says in which order.
SLOW_ARGS := -n 3 --dist loadfile --no-loadscope-reorder

# Operations wait for daemons most of the time, so `test` runs them beside the slow tests.

# What to look at first when CI takes too long.
SLOWEST := --durations=20 --durations-min=5

# pytest ends with 5 when no test was selected: right for `PYTEST_ARGS="-k one_test"`, wrong otherwise.
SELECTED := $(if $(strip $(PYTEST_ARGS)),|| test $$? -eq 5)

.DEFAULT_GOAL := help
.PHONY: help install demo ui cluster cluster-down test test-all test-for test-fast test-slow test-operations matrix class-data corpus-engines check docs format golden bench bench-overhead bench-peers faults cluster-faults stored-faults fuzz-lexers random-queries iceberg-histories delta-histories incremental-histories flight-soak flight-abuse csv-files sql-support settings query-schema screenshots dist lock clean distclean

##@ Start

help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@ / {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z-]+:.*## / {printf "  %-21s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo 'Variables: PYTHON=python3.12  PYTEST_ARGS="-k joins -x"  BENCH_ARGS=…  FAULT_ARGS=…  LOCK_ARGS=--upgrade'

install: $(STAMP) ## Make .venv from requirements.lock (again only when the lock changes)

demo: install ## Run one query from SQL text to result, stage by stage
	$(BIN)/stagecoach demo

ui: install ## Open the Dagster UI over pipelines/
	$(BIN)/stagecoach ui

cluster: install ## Start a Spark cluster and an S3 server on this machine and run a query there (CLUSTER_ARGS="--scale-factor 1")
	@$(BIN)/python -m benchmarks.cluster up $(CLUSTER_ARGS)

cluster-down: install ## End what `make cluster` has started
	@$(BIN)/python -m benchmarks.cluster down

##@ Work

test: install ## Checks, documentation, quick, slow and operations tests: what CI runs
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target check docs class-data
	$(PYTEST) -m "not slow" -n 2 $(SLOWEST) $(PYTEST_ARGS) $(SELECTED)
	$(MAKE) --no-print-directory --jobs=2 --output-sync=line test-slow test-operations

test-all: ## As `test`, with every case of long lists and every test that CI leaves out
	STAGECOACH_TEST_ALL=1 $(MAKE) test

test-for: install ## The tests that cover one file (FILE=planner/types.py, PYTEST_ARGS=…)
	@$(BIN)/python -m tests.covering "$(FILE)" $(PYTEST_ARGS)

test-fast: install ## Quick tests only
	$(PYTEST) -m "not slow" -n 2 $(PYTEST_ARGS)

test-slow: install class-data ## Slow tests, without operations
	$(PYTEST) -m "slow and not operations" $(SLOW_ARGS) $(SLOWEST) $(PYTEST_ARGS) $(SELECTED)

test-operations: install class-data ## Acceptance of a running UI, one for all tests; 5 minutes
	$(PYTEST) -m operations tests/acceptance $(PYTEST_ARGS) $(SELECTED)

corpus-engines: install class-data ## The whole query corpus with every stage on Spark, and with engines mixed; 15 minutes
	STAGECOACH_TEST_ALL=1 $(PYTEST) tests/differential/test_corpus.py -k other_engines -n 2 $(PYTEST_ARGS)

matrix: install ## Quick tests with the oldest and the newest dagster and pyarrow that are allowed
	$(BIN)/nox

class-data: install ## Let Spark start faster on this machine; once, 200 MB in your cache folder
	@$(BIN)/python -m stagecoach.infra.spark.class_data 2>/dev/null || true

check: install ## Lint, format, types and layers; changes nothing
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: install ## Build the documentation site in build/site; a broken link is an error
	$(BIN)/zensical build --strict --clean

format: install ## Format, and fix what ruff can fix
	$(BIN)/ruff format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

golden: install ## Write the golden files anew; read the diff before you commit
	$(PYTEST) -m "not slow" --update-golden $(PYTEST_ARGS)

bench: install ## TPC-H beside plain Spark SQL and DuckDB alone (BENCH_ARGS="--scale-factor 10 …")
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

faults: install ## Let 500 faults happen to runs and count how they end (FAULT_ARGS="--faults 1000 --seed 1")
	$(BIN)/python -m benchmarks.faults $(FAULT_ARGS)

cluster-faults: install ## Let 200 faults happen to runs on a Spark cluster (CLUSTER_FAULT_ARGS="--faults N --seed S --log FILE")
	$(BIN)/python -m benchmarks.cluster_faults $(CLUSTER_FAULT_ARGS)

stored-faults: install ## Damage 240 stored objects, read them and verify them (FAULT_ARGS="--faults 1000 --seed 1 --folder …")
	$(BIN)/python -m benchmarks.stored_faults $(FAULT_ARGS)

fuzz-lexers: install ## Compare our SQL tokens with Spark's on 200,000 random texts (FUZZ_ARGS="--texts N --seed S")
	$(BIN)/python -m benchmarks.lexers $(FUZZ_ARGS)

random-queries: install ## Run 10,000 random queries beside plain Spark (RANDOM_ARGS="--queries N --seed S --log FILE")
	$(BIN)/python -m benchmarks.random_queries $(RANDOM_ARGS)

iceberg-histories: install ## Read 500 histories of Iceberg tables, and 70 after each of 30 steps (ICEBERG_HISTORIES=N ICEBERG_STEPPED_HISTORIES=M …)
	ICEBERG_HISTORIES=$(or $(ICEBERG_HISTORIES),500) ICEBERG_FIRST_SEED=$(or $(ICEBERG_FIRST_SEED),1000) \
	ICEBERG_STEPPED_HISTORIES=$(or $(ICEBERG_STEPPED_HISTORIES),70) ICEBERG_STEPS=$(or $(ICEBERG_STEPS),30) \
	  $(BIN)/python -m pytest -q --timeout 0 tests/infra/formats/iceberg/test_histories.py $(PYTEST_ARGS)

delta-histories: install ## Read 525 random histories of Delta tables, after each step (DELTA_HISTORIES=N DELTA_STEPS=M)
	DELTA_HISTORIES=$(or $(DELTA_HISTORIES),175) DELTA_STEPS=$(or $(DELTA_STEPS),6) \
	  $(BIN)/python -m pytest -q --timeout 0 tests/infra/formats/delta/test_histories.py $(PYTEST_ARGS)

incremental-histories: install ## Run 2,000 random histories of growing tables (HISTORY_ARGS="--histories N --seed S --log FILE")
	$(BIN)/python -m benchmarks.incremental_histories $(HISTORY_ARGS)

flight-soak: install ## Let 20 clients use a Flight SQL server for 30 minutes, with kills (SOAK_ARGS="--seconds 600 --seed S --log FILE")
	$(BIN)/python -m benchmarks.flight soak $(SOAK_ARGS)

flight-abuse: install ## Abandon 10,000 streams of a Flight SQL server, forge tickets, … (ABUSE_ARGS="--streams N --seed S")
	$(BIN)/python -m benchmarks.flight abuse $(ABUSE_ARGS)

bench-overhead: install ## What Dagster, Spark and storage cost for a stage that does nothing
	$(BIN)/python -m benchmarks.overhead $(BENCH_ARGS)

bench-peers: install ## TPC-H beside DataFusion, Sail, Daft, Polars, DuckDB and Spark (BENCH_ARGS="--scale-factor 10")
	$(BIN)/python -m benchmarks.peers $(BENCH_ARGS)

csv-files: install ## Read 5,000 generated CSV, JSON and text files beside spark.read (FILES_ARGS="--files N --seed S")
	$(BIN)/python -m benchmarks.text_files --files 5000 $(FILES_ARGS)

sql-support: install ## Write docs/sql-support.md from the registries
	$(BIN)/python docs/sql_support.py

settings: install ## Write docs/reference/settings.md from the settings models
	$(BIN)/python docs/settings_reference.py

query-schema: install ## Write docs/query-file.schema.json and query-tests.schema.json from the models
	$(BIN)/stagecoach check --schema > docs/query-file.schema.json
	$(BIN)/stagecoach test --schema > docs/query-tests.schema.json

screenshots: install ## Take the pictures in docs/ anew (needs Chromium)
	$(BIN)/python -m docs.screenshots

##@ Upkeep

dist: install ## Build the wheel and the source distribution into dist/
	rm -rf build dist
	$(BIN)/python -m build --no-isolation --outdir dist

lock: install ## Resolve requirements.lock from pyproject.toml (LOCK_ARGS=--upgrade for new versions)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/python -m uv pip compile pyproject.toml --group dev --all-extras --universal \
	  --python-version 3.11 --no-python-downloads --no-emit-index-url --no-emit-find-links \
	  --custom-compile-command "make lock" --quiet $(LOCK_ARGS) --output-file requirements.lock

clean: ## Remove caches and build products; keeps .venv
	rm -rf build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .cache
	rm -rf metastore_db derby.log spark-warehouse
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean ## Remove .venv too
	rm -rf $(VENV)

$(STAMP): pyproject.toml requirements.lock
	@test -d stagecoach/planner/. || { \
	  echo "stagecoach/planner is not a link to planner/: this copy of the repository lost its symbolic links." >&2; \
	  echo "Clone it again with: git clone -c core.symlinks=true" >&2; \
	  exit 1; \
	}
	@python=; for candidate in $(PYTHON) python3 python3.13 python3.12 python3.11 python3.14; do \
	  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    python=$$candidate; break; \
	  fi; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "Stagecoach needs Python 3.11 or newer; python3 here is: $$(python3 --version 2>&1)." >&2; \
	  echo "Install one, or name it: make install PYTHON=/path/to/python3.12" >&2; \
	  exit 1; \
	fi; \
	if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	  "$$python" -m venv $(VENV) || { \
	    echo "$$python cannot make a virtual environment (on Debian: apt-get install python3-venv)." >&2; \
	    exit 1; \
	  }; \
	fi
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
