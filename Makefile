# Two commands do everything on a fresh machine: `make run` and `make test`. Both set up .venv first.
# Further arguments for Snakemake: make curves SNAKEMAKE="--config preset=full"
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# uv where it is installed, else pip; `make setup UV=` takes pip. uv does not read the settings of pip, and gets torch for
# processors alone unless the environment says where torch is.
UV := $(shell command -v uv)
PIP = $(if $(UV),$(UV) pip install --quiet --python $(BIN)/python,$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile)
ifdef PIP_FIND_LINKS
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
endif
TORCH_BACKEND = $(if $(UV),$(if $(UV_FIND_LINKS)$(UV_TORCH_BACKEND),,--torch-backend cpu))
SNAKEMAKE ?=
# A run ends in a state that DVC knows: `dvc exp run` replaces results that dvc.lock does not have. Parameters on the command
# line are not those of params.yaml, which DVC would record.
record = $(if $(findstring --config,$(SNAKEMAKE)),,&& mkdir -p results/described && perfcast pipeline jobs && dvc commit --force --quiet)
REVISION ?= HEAD
SIZES ?= 1 10 100
export PATH := $(CURDIR)/$(BIN):$(PATH)
export OMP_NUM_THREADS := 1
export MLFLOW_DISABLE_TELEMETRY := true
export DVC_NO_ANALYTICS := true
# Containers set PYTHONDONTWRITEBYTECODE, with which each job of a run would compile what it imports. Make unsets it. For commands
# outside of make, set-up compiles what perfcast and its tools import: by importing it. IMPORTED is what only functions import.
unexport PYTHONDONTWRITEBYTECODE
IMPORTED := hydra.main mlflow.store.tracking.sqlalchemy_store pandas.core.arrays.arrow.extension_types pandas.io.formats.csvs \
	pyarrow.dataset sklearn.compose sklearn.ensemble snakemake.cli
.PHONY: help setup bytecode run demo experiment full leaderboard ablation curves pull retry reproduced test tests docs release faults lint readme ui benchmark scale clean

help: ## list the targets
	@sed -n 's/^\([a-z -]*\):.*## /\1: /p' $(MAKEFILE_LIST)
setup: $(VENV)/.ready $(VENV)/share/vega/vega.js ## install the locked packages in .venv
$(VENV)/.ready: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Python must be 3.11 to 3.14; this is %d.%d. Set PYTHON=" % sys.version_info[:2] if not (3, 11) <= sys.version_info[:2] <= (3, 14) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) $(TORCH_BACKEND) "$$(grep -o '^torch==[^ ]*' requirements.lock)"
	@# no wheel of immutables is for Python 3.14: without its C part, which Snakemake does not need, none needs a compiler
	sed -n '/^immutables==/,/[^\\]$$/p' requirements.lock | CC=true LDSHARED=true $(PIP) --no-deps --require-hashes -r /dev/stdin
	$(PIP) --no-deps --require-hashes -r requirements.lock
	$(PIP) --no-deps --editable .
	@# so that a plain `mlflow ui` in the activated environment opens this project's store
	grep -q MLFLOW_BACKEND_STORE_URI $(BIN)/activate || echo 'export MLFLOW_BACKEND_STORE_URI="sqlite:///$(CURDIR)/results/mlflow/mlflow.db"' >> $(BIN)/activate
	$(MAKE) --no-print-directory bytecode
	touch $@
bytecode:
	$(BIN)/python -c 'import importlib, pkgutil, sys, perfcast; \
	own = [module.name for module in pkgutil.walk_packages(perfcast.__path__, "perfcast.")]; \
	[importlib.import_module(name) for name in [*sys.argv[1:], *own] if name != "perfcast.__main__"]' $(IMPORTED)
# scripts of the page of `dvc plots show`, from Snakemake's report; without them the page loads them from the network
$(VENV)/share/vega/vega.js: $(VENV)/.ready
	mkdir -p $(@D) && cp $(VENV)/lib/python3*/site-packages/snakemake/assets/data/vega*/*.js $(@D)/

run: setup ## the default experiment (one seed, short training)
	snakemake $(SNAKEMAKE) && perfcast summary $(record)
demo: setup ## champions for SPEC CPU2017 and CPU2026 in three minutes, set-up included, and a first answer
	snakemake results/demo/champion/spec_cpu2026 --configfile conf/experiment/demo.yaml $(SNAKEMAKE) && \
	perfcast predict --results results/demo --processor "EPYC 9755" --chips 2 --brief
experiment: setup ## an experiment of conf/experiment or of a domain: make experiment NAME=llm
	@file=$$(perfcast config --path experiment/$(NAME)) && set -x && snakemake --configfile "$$file" $(SNAKEMAKE) && \
	perfcast summary --results $$(sed -n 's/^results: //p' "$$file")
full leaderboard ablation curves: ## every predictor, the table of README.md, one part less, error over training size: half an hour to hours
	$(MAKE) --no-print-directory experiment NAME=$@
pull: setup ## fetch the versioned results; a run makes again only what is of other code, parameters or inputs
	@dvc pull --quiet 2> /dev/null || { echo "make pull: the remote $$(dvc config core.remote) lacks results of this revision: \
	set the one that has them (dvc remote add --local --default shared ADDRESS), or run make run; dvc pull shows details"; exit 1; }
	@# pulled results have no record in MLflow; `perfcast pipeline record` makes one
	mkdir -p results/logs && touch results/logs/record.txt
	snakemake --touch --forceall
	perfcast pipeline jobs --pulled
retry: setup ## ingest missing sources again
	perfcast pipeline forget && snakemake $(SNAKEMAKE) && perfcast summary $(record)
reproduced: setup ## whether tables and metrics of the default run are those that REVISION pins
	@dvc diff $(REVISION) --targets results/raw results/standard results/features results/splits results/in_domain
	@dvc metrics diff --json $(REVISION) --targets results/metrics.json | python benchmarks/reproduced.py
test: setup ## all tests and linters
	$(MAKE) --no-print-directory --jobs 2 lint tests
tests: setup
	python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder
faults: setup ## kill runs, fill the disk, start twice at once (a quarter of an hour)
	python -m pytest -m faults
lint: setup ## ruff, mypy, snakefmt, deptry
	ruff check . && ruff format --check . && mypy && deptry src && snakefmt --check --line-length 120 Snakefile workflow
readme: setup ## examples and tables of README.md and docs/size.md from the default run and, if there, of `make leaderboard` and the experiment power
	mkdir -p results/examples
	perfcast predict --processor "EPYC 9654" --chips 2 --memory "24 x 64 GB DDR5-4800" --when 2026-03 --brief > results/examples/predict.txt
	python docs/_site/leaderboard.py --results results $(wildcard results/leaderboard_runs)
	$(if $(wildcard results/power/champion),python docs/_site/example_outputs.py docs/size.md)
ui: setup ## MLflow's UI on the project's store
	@mkdir -p results/mlflow
	MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false mlflow ui --backend-store-uri "$${MLFLOW_TRACKING_URI:-sqlite:///results/mlflow/mlflow.db}"
benchmark: setup ## speed, as ratios
	python benchmarks/pipeline.py && python benchmarks/imports.py && python benchmarks/serving.py
scale: setup ## time and memory of every stage at SIZES times the CPU 2017 table (an hour or two)
	python benchmarks/scale --sizes $(SIZES)
docs: setup ## the documentation site, in build/site
	NO_MKDOCS_2_WARNING=1 mkdocs build --strict
release: setup ## wheel with the champions of both suites, site and checksums of an untagged version, in dist/
	python .github/release.py --check
	snakemake $(SNAKEMAKE) results/champion/spec_cpu2026
	$(MAKE) --no-print-directory docs
	python .github/release.py
clean: ## remove all results
	rm -rf results .snakemake
