# Two commands do everything on a fresh machine: `make run` and `make test`. Both set up .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
export OMP_NUM_THREADS := 1
export MLFLOW_DISABLE_TELEMETRY := true
export DVC_NO_ANALYTICS := true

comma := ,
empty :=
joined = $(subst $(empty) $(empty),$(comma),$(strip $(1)))
ALL := $(basename $(notdir $(wildcard conf/predictor/*.yaml)))
ABLATIONS := $(filter law_ensemble_without_%,$(ALL))
# every predictor that the locked packages can run: a new conf joins the comparison by itself
FIELD = $(filter-out catboost $(ABLATIONS) $(GEMM_ALONE) $(HELP_ALONE),$(ALL))
QUESTIONS := random unseen_cpu unseen_shape forward_2023 forward_2024 few_shot_3 published
# systems that others published, each with its data sets and who answers them; the questions are those of the data sets' confs
GEMM := gpperf host_gemm
GEMM_BY ?= lookup physical ridge random_forest lightgbm group_pooling $(GEMM_ALONE)
GEMM_ALONE := gpperf_forest roofline roofline_ridge roofline_trees roofline_attention
HELP := help_nasbench201 help_fbnet help_ofa
HELP_BY ?= lookup ridge $(HELP_ALONE)
HELP_ALONE := flops ridge_transfer help device_attention
HELP_CONFIG = "datasets=[$(call joined,$(HELP))]" "sources=[$(call of_confs,required,$(HELP))]" "predictors=[$(call joined,$(HELP_BY))]"
of_confs = $(call joined,$(sort $(subst $(comma), ,$(shell sed -n 's/^ *$(1): \[\(.*\)\]/\1/p' $(2:%=conf/dataset/%.yaml)))))
# questions asked after less training, and by whom: `make curves CURVES_BY="lookup ridge" SCHEDULE=full`
SHARES := $(foreach base,random unseen_cpu,$(base) $(foreach share,05 10 20 40,$(base)_$(share)_percent))
YEARS := $(foreach base,forward_2023 forward_2024,$(base) $(foreach years,1_year 2_years 3_years 4_years,$(base)_last_$(years)))
CURVES_BY ?= lookup ridge lightgbm mlp law law_trees
SCHEDULE ?= quick

.PHONY: help setup run full ablation curves systems systems-gemm systems-help pull test test-slurm test-kubernetes faults fuzz lint ui retry benchmark scale clean

help:
	@echo "make run    set up, then run the default experiment (one seed, short schedule)"
	@echo "make full   the full experiment: every predictor, all folds, three seeds (hours; resumes where it stopped)"
	@echo "make ablation   law_ensemble without one of its ideas at a time (hours; resumes where it stopped)"
	@echo "make curves     the error over training size and years of history (an hour or two; SCHEDULE=full: hours)"
	@echo "make systems    systems that others published, on their own data: systems-gemm (GPPerf) and systems-help (HELP)"
	@echo "make pull   set up, fetch the versioned results from the DVC remote, and tell Snakemake that they are current"
	@echo "make test   set up, then run all tests and linters"
	@echo "make faults  kill runs at 50 moments, fill the disk, start twice at once, and so on (half an hour)"
	@echo "make fuzz   look for bytes that break a reader (atheris; FUZZ_SECONDS for each of its targets, default 120)"
	@echo "make test-slurm   run the miniature pipeline by Slurm on this machine (needs root, slurm-wlm, munge; minutes)"
	@echo "make test-kubernetes   run the miniature pipeline in jobs of a stand-in for a Kubernetes cluster (minutes)"
	@echo "make ui     open the MLflow UI on the project's store"
	@echo "make retry  ask again for sources that were missing"
	@echo "make benchmark  measure speed and print ratios"
	@echo "make scale      time and memory of every stage at 1, 10 and 100 times the CPU 2017 table (an hour or two)"

setup: $(VENV)/.ready $(VENV)/share/vega/vega.js

$(VENV)/.ready: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("perfcast must have Python 3.11 or newer, however: this is %d.%d" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "torch==2.13.0"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@# so that a plain `mlflow ui` in the activated environment opens this project's store
	grep -q MLFLOW_BACKEND_STORE_URI $(VENV)/bin/activate || echo 'export MLFLOW_BACKEND_STORE_URI="sqlite:///$(CURDIR)/results/mlflow/mlflow.db"' >> $(VENV)/bin/activate
	touch $@

# what the page of `dvc plots show` draws with, taken from Snakemake's report; without it the page asks the network
$(VENV)/share/vega/vega.js: $(VENV)/.ready
	mkdir -p $(@D)
	cp $(VENV)/lib/python3*/site-packages/snakemake/assets/data/vega*/*.js $(@D)/

run: setup
	snakemake
	perfcast summary

full: setup
	snakemake --config results=results/full schedule=full rehearsals=4 "seeds=[0,1,2]" "predictors=[$(call joined,$(FIELD))]" "splits=[$(call joined,$(QUESTIONS))]"
	perfcast summary --results results/full

ablation: setup
	snakemake --config results=results/ablation schedule=full rehearsals=1 "datasets=[spec_cpu2017]" "sources=[spec_cpu2017,cpu_catalog]" "predictors=[$(call joined,lookup law law_trees law_ensemble $(ABLATIONS))]" "splits=[random,forward_2023,forward_2024]"
	perfcast summary --results results/ablation

curves: setup
	snakemake --config results=results/curves schedule=$(SCHEDULE) rehearsals=1 "datasets=[spec_cpu2017]" "sources=[spec_cpu2017,cpu_catalog]" "predictors=[$(call joined,$(CURVES_BY))]" "splits=[$(call joined,$(SHARES) $(YEARS))]"
	perfcast summary --results results/curves

systems: systems-gemm systems-help

systems-gemm: setup
	snakemake --config results=results/systems/gemm schedule=full rehearsals=1 "datasets=[$(call joined,$(GEMM))]" "sources=[$(call of_confs,required,$(GEMM))]" "predictors=[$(call joined,$(GEMM_BY))]" "splits=[$(call of_confs,splits,$(GEMM))]"
	perfcast summary --results results/systems/gemm

# the authors' question under five seeds; where the ten are drawn, five draws of them under one
systems-help: setup
	snakemake --config results=results/systems/help schedule=full rehearsals=1 "seeds=[0,1,2,3,4]" "splits=[published]" $(HELP_CONFIG)
	snakemake --config results=results/systems/help_drawn schedule=full rehearsals=1 "splits=[published_drawn_10]" $(HELP_CONFIG)
	perfcast summary --results results/systems/help
	perfcast summary --results results/systems/help_drawn

# Snakemake has no records of files that DVC brought: without the touch it would make them all again.
pull: setup
	dvc pull
	snakemake --touch --forceall

retry: setup
	snakemake --forcerun ingest
	perfcast summary

test: setup lint
	python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

# `make test` has two of the kills and the downloads.
faults: setup
	python -m pytest -m "faults or not slow" tests/faults

FUZZ_SECONDS ?= 120

fuzz: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[fuzz]"
	python fuzz/run.py --seconds $(FUZZ_SECONDS) $(TARGETS)

test-slurm: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock --editable ".[slurm]"
	python -m pytest -m slurm -rs tests/pipeline/test_slurm.py

test-kubernetes: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock --editable ".[kubernetes]" kubernetes
	python -m pytest -m kubernetes -rs tests/pipeline/test_kubernetes.py
	python -m pytest -rs tests/unit/test_kubernetes_jobs.py tests/unit/test_kubernetes_api.py tests/unit/test_container.py

lint: setup
	ruff check .
	ruff format --check .
	mypy
	snakefmt --check --line-length 120 Snakefile workflow

ui: setup
	@perfcast ui

benchmark: setup
	python benchmarks/pipeline.py

# any of them: `make scale SIZES="1 3"`
SIZES ?= 1 10 100
scale: setup
	python benchmarks/scale --sizes $(SIZES)

clean:
	rm -rf results .snakemake
