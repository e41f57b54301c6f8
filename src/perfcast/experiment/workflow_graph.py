"""Facts that the Snakemake rules need: the validated experiment, digests of code and configuration, job times."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Any

from perfcast import plugins
from perfcast.code_hash import closure, code_digest
from perfcast.config.conf_files import read_conf
from perfcast.config.dataset_conf import DatasetConf, read_dataset
from perfcast.config.experiment_params import Params
from perfcast.config.predictor_conf import PredictorConf, Settings, read_predictor, read_predictor_labels
from perfcast.domain import CORE, domain_of, domains
from perfcast.experiment.experiment_check import check_experiment, check_results_folder
from perfcast.experiment.leakage_control import LeakageConf, read_leakage_conf
from perfcast.sources.locations import embedded_folder, find_places, locate_source
from perfcast.sources.source_spec import SourceSpec, parse_source
from perfcast.splits import frozen_split, learning_curve_point
from perfcast.utils.io import read_object


class SourceStatus(Enum):
    """Status of a source when jobs are planned; UNKNOWN where only a download can tell."""

    PRESENT = "present"
    MISSING = "missing"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Means:
    """Means to get a source: its files on this machine, the network, and whether the run must have it."""

    at_hand: bool
    network: bool
    strict: bool


_PULLED = Means(at_hand=True, network=True, strict=True)
"""Means of a source that came with results from elsewhere, such as by `dvc pull`: nothing on this machine matters."""


@dataclass(frozen=True)
class SourcePlan:
    """Status of a source, and the means that it has; other means than those of its ingestion ingest it again."""

    status: SourceStatus
    means: Means


def plan_source(
    manifest: Path, origin: Path, at_hand: Callable[[], bool], *, network: bool, strict: bool
) -> SourcePlan:
    """Return the plan of a source from the files of this machine.

    A source that was ingested stays present, whatever becomes of the mirrors and the network. A missing source is
    ingested again when its means changed.

    Args:
        manifest: Manifest of the source below results/raw; it need not exist.
        origin: Record of its ingestion below results/logs; it need not exist.
        at_hand: Whether the cache, a mirror folder or data/embedded has its files; called unless it is present.
        network: Whether the experiment may use the network.
        strict: Whether a missing source stops the run.
    """
    record = read_object(origin) if origin.exists() else {}
    is_complete = {"at_hand", "network", "strict"} <= set(record)
    recorded = Means(record["at_hand"], record["network"], record["strict"]) if is_complete else None
    status = read_object(manifest, "status")["status"] if manifest.exists() else None
    if status == SourceStatus.PRESENT.value:
        return SourcePlan(SourceStatus.PRESENT, recorded or _PULLED)
    means = Means(at_hand(), network, strict)
    if means.at_hand or strict:
        tried_in_vain = status is not None and means == recorded and not strict
        return SourcePlan(SourceStatus.MISSING if tried_in_vain else SourceStatus.PRESENT, means)
    if network and (status is None or means != recorded):
        return SourcePlan(SourceStatus.UNKNOWN, means)
    return SourcePlan(SourceStatus.MISSING, means)


_DIGITS = 16
_BASELINES = "perfcast.predictors.baselines"
_MINUTES_QUICK = 30
_MINUTES_PER_SEED = 90


@dataclass(frozen=True)
class Graph:
    """The experiment that the rules plan, with the conf of its datasets and predictors."""

    project: Path
    params: Params
    results: Path

    @classmethod
    def read(cls, project: Path, content: Mapping[str, Any], results: str = "results") -> Graph:
        """Validate an experiment. Raises: UserError, one line that names the key."""
        folder = Path(check_results_folder(results, project))
        return cls(project, check_experiment(content, project), folder)

    @property
    def conf(self) -> Path:
        """The folder of configuration files."""
        return self.project / "conf"

    @cached_property
    def _digest(self) -> Callable[..., str]:
        return cache(code_digest)  # every job asks, and most ask for the same modules

    @cached_property
    def datasets(self) -> dict[str, DatasetConf]:
        """The experiment's datasets by name."""
        return {name: read_dataset(self.conf, name) for name in self.params.datasets}

    @cached_property
    def predictors(self) -> dict[str, PredictorConf]:
        """The experiment's predictors by name."""
        return {name: read_predictor(self.conf, name) for name in self.params.predictors}

    @cached_property
    def leakage(self) -> LeakageConf:
        """The negative control of the leakage checks."""
        return read_leakage_conf(self.conf)

    @cached_property
    def status(self) -> dict[str, SourceStatus]:
        """Status of the experiment's sources by name, as far as the files of this machine tell."""
        return {source: self.plan(source).status for source in self.params.sources}

    @cached_property
    def predictor_labels(self) -> dict[str, str]:
        """Names of predictors in the report, where their conf has one."""
        return read_predictor_labels(self.conf)

    @property
    def split_names(self) -> list[str]:
        """The experiment's splits, and the forward splits that rolling ones correct."""
        frozen = [frozen_split(name) for name in self.params.splits]
        return list(dict.fromkeys([*self.params.splits, *(name for name in frozen if name)]))

    @property
    def baselines(self) -> list[str]:
        """The experiment's predictors that count as baselines."""
        return [name for name in self.params.predictors if self.modules_of(name) == [_BASELINES]]

    def predictors_of(self, dataset: str) -> list[str]:
        """Return the experiment's predictors that support a dataset."""
        supported = self.datasets[dataset].predictors
        bridge = self.datasets[dataset].bridge
        listed = [name for name in self.params.predictors if supported is None or name in supported]
        return [name for name in listed if bridge is not None or not self.predictors[name].bridge]

    def splits_of(self, dataset: str) -> list[str]:
        """Return the experiment's splits that a dataset has."""
        return [name for name in self.datasets[dataset].splits if name in self.params.splits]

    def described_splits_of(self, dataset: str) -> list[str]:
        """Return the experiment's splits whose test machines are also predicted as users describe them."""
        return [name for name in self.splits_of(dataset) if name in self.datasets[dataset].described]

    def seeds_of(self, predictor: str) -> list[int]:
        """Return the seeds of a predictor's trainings: the first seed alone where training has no randomness."""
        return self.params.seeds if self.predictors[predictor].stochastic else self.params.seeds[:1]

    def settings_of(self, dataset: str, split: str, predictor: str) -> tuple[list[Settings] | Settings, list[str]]:
        """Return what a training job uses: the values of the predictor or of each fold, and the hidden columns."""
        conf = self.predictors[predictor]
        point = learning_curve_point(split)
        splits = [split, *([point.base] if point else [])]
        tuned = conf.tuned_settings(self.params.preset, dataset, *splits)
        return tuned or conf.settings(self.params.preset), conf.without_columns

    def all_settings(self) -> dict[str, Settings]:
        """Return the settings of every predictor."""
        return {name: conf.settings(self.params.preset) for name, conf in self.predictors.items()}

    def minutes_of_training(self, predictor: str) -> int:
        """Return the time that a training job requests. Units: minutes."""
        if self.params.preset == "full":
            return _MINUTES_PER_SEED * len(self.seeds_of(predictor))
        return _MINUTES_QUICK

    def arguments(self, dataset: str | None) -> dict[str, Any]:
        """Return what stages take of the experiment and of its folders, by the names of their arguments."""
        values = {
            "results": self.results,
            "raw": self.results / "raw",
            "datasets": self.params.datasets,
            "experiment": self.params.model_dump_json(),
            "baselines": self.baselines,
            "plots": self.params.plots,
            "preset": self.params.preset,
            "seed": self.params.split_seed,
            "level": self.params.level,
            "resamples": self.params.resamples,
            "backtest_windows": self.params.backtest_windows,
        }
        if dataset is None:
            return values
        return values | {
            "runs": self.results / "runs" / dataset,
            "folds": self.results / "splits" / dataset,
            "in_domain": self.results / "in_domain" / dataset,
            "splits": self.splits_of(dataset),
            "predictors": self.predictors_of(dataset),
            "described": self.described_splits_of(dataset),
            "until": self.datasets[dataset].evaluated_until,
        }

    def training(self, dataset: str, split: str, predictor: str) -> list[str]:
        """Return the values of a training in Hydra's grammar."""
        values = {
            "dataset": dataset,
            "split": split,
            "predictor": predictor,
            "table": self.results / "features" / f"{dataset}.parquet",
            "folds": self.results / "splits" / dataset / f"{split}.parquet",
            "out": self.run_folder(dataset, split, predictor),
            "preset": self.params.preset,
            "backtest_windows": self.params.backtest_windows,
            "seeds": self.seeds_of(predictor),
        }
        return [f"{key}={value}" for key, value in values.items()]

    def run_folder(self, dataset: str, split: str, predictor: str) -> Path:
        """Return the folder of a run."""
        return self.results / "runs" / dataset / split / predictor

    def frozen_run(self, dataset: str, split: str, predictor: str) -> Path:
        """Return the folder of the run on the forward split that a rolling split corrects."""
        return self.run_folder(dataset, frozen_split(split) or split, predictor)

    def run_files(self, dataset: str, name: str) -> list[str]:
        """Return a file of every run of a dataset."""
        pairs = product(self.splits_of(dataset), self.predictors_of(dataset))
        return [str(self.run_folder(dataset, split, predictor) / name) for split, predictor in pairs]

    def split_files(self, dataset: str, folder: str) -> list[str]:
        """Return the file of every split of a dataset in a folder of results."""
        return [str(self.results / folder / dataset / f"{split}.parquet") for split in self.splits_of(dataset)]

    def manifests(self, dataset: str) -> list[str]:
        """Return the manifests of a dataset's sources, without optional ones that the experiment does not list."""
        sources = self.datasets[dataset].sources
        optional = [source for source in sources.optional if source in self.params.sources]
        return [str(self.results / "raw" / source / "manifest.json") for source in (*sources.required, *optional)]

    def described_file(self, dataset: str) -> list[str]:
        """Return the predictions of described machines of a dataset, none without a split of them."""
        return [str(self.results / "described" / f"{dataset}.parquet")] if self.described_splits_of(dataset) else []

    def bridge_file(self, dataset: str) -> list[str]:
        """Return the estimates of a dataset by the champion of another one, none without a bridge."""
        return [str(self.results / "features" / f"{dataset}.bridge")] if self.datasets[dataset].bridge else []

    def base_of(self, dataset: str) -> str:
        """Return the dataset whose champion estimates the rows of a dataset with a bridge."""
        bridge = self.datasets[dataset].bridge
        assert bridge is not None
        return bridge.dataset

    def removed(self, datasets: Iterable[str], outputs: Iterable[str]) -> list[str]:
        """Return the intermediate results that are missing where the last results of a dataset exist.

        Snakemake makes a missing input again only for a job that must run. `outputs` are those of its rules.
        """
        patterns = [re.sub(r"\{(\w+),[^{}]*\}", r"{\1}", output) for output in outputs]
        paths: dict[str, None] = {}
        for dataset in datasets:
            if not (self.results / "plots" / dataset).exists():
                continue
            names = product(self.params.sources, self.splits_of(dataset), self.predictors_of(dataset))
            for (source, split, predictor), pattern in product(names, patterns):
                path = pattern.format(dataset=dataset, source=source, split=split, predictor=predictor)
                paths[path] = None
            paths |= dict.fromkeys([*self.described_file(dataset), *self.bridge_file(dataset)])
        return [path for path in paths if not Path(path).exists()]

    def ingest_options(self) -> str:
        """Return the options of `perfcast ingest` that come from the experiment."""
        options = [f"--mirror {shlex.quote(mirror)}" for mirror in self.params.mirrors]
        options += ["--strict"] if self.params.strict else []
        options += [] if self.params.network else ["--offline"]
        return " ".join(options)

    def code(self, command: str, *modules: str, datasets: Iterable[str] | None = None) -> str:
        """Return a digest of what a command imports and of the plug-ins that it loads by name.

        An edit of one of them re-runs the jobs that depend on it. A command that knows splits loads those of the core
        and of the domains of its `datasets`, by default of all, with their descriptions.
        """
        stage = f"perfcast.cli.pipeline:{command}"
        loaded = list(modules)
        if "perfcast.splits" in closure(stage):
            targets = [self.datasets[name].target for name in (self.params.datasets if datasets is None else datasets)]
            owners = dict.fromkeys([CORE.name, *(domain_of(target).name for target in targets)])
            known = [domain for domain in domains() if domain.name in owners]
            loaded += [*plugins.modules("splits", known), *(path for domain in known for path in domain.modules())]
        return self._digest(stage, *loaded)

    def modules_of(self, predictor: str) -> list[str]:
        """Return the modules of a predictor and of those that it is made of, for `code`."""
        conf = self.predictors.get(predictor)
        return (conf or read_predictor(self.conf, predictor)).modules

    def predictor_modules(self, dataset: str) -> list[str]:
        """Return the modules of the experiment's predictors that support a dataset, for `code`."""
        return [module for name in self.predictors_of(dataset) for module in self.modules_of(name)]

    def feature_modules(self, dataset: str) -> list[str]:
        """Return the modules of a dataset's feature groups, for `code`."""
        return [plugins.load("features", name).__name__ for name in self.datasets[dataset].features]

    def bridge_code(self, dataset: str) -> str:
        """Return the digest of `code` of the estimates of a dataset by the champion of another one."""
        base = self.base_of(dataset)
        return self.code("bridge", *self.predictor_modules(base), *self.feature_modules(base), datasets=[base])

    def table_modules(self, dataset: str) -> list[str]:
        """Return the modules of a dataset's further tables of the evaluation, for `code`."""
        domain = domain_of(self.datasets[dataset].target)
        return domain.modules_of(domain.tables[name] for name in self.datasets[dataset].tables)

    def conf_digest(self, group: str, name: str) -> str:
        """Return a digest of the values of one conf file; comments and the search space of tuning do not count."""
        values = {key: value for key, value in read_conf(self.conf, group, name).items() if key != "space"}
        return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()[:_DIGITS]

    def embedded_digest(self, source: str) -> str:
        """Return a digest of the files of a source in the folder of embedded data, empty where it has none."""
        folder = embedded_folder(self.project)
        files = [folder / (file.path or file.name) for file in self._source(source).editions[0] if not file.sha256]
        contents = [file.read_bytes() for file in files if file.exists()]
        return hashlib.sha256(b"".join(contents)).hexdigest()[:_DIGITS] if contents else ""

    def plan(self, source: str) -> SourcePlan:
        """Return the plan of a source: whether it can be had, as far as the files of this machine tell."""
        return plan_source(
            self.results / "raw" / source / "manifest.json",
            self.results / "logs" / "ingest" / f"{source}.json",
            lambda: self.is_local(source),
            network=self.params.network,
            strict=self.params.strict,
        )

    def is_local(self, source: str) -> bool:
        """Return whether every file of a source is on this machine, those of its last ingestion included."""
        earlier = self.results / "raw" / source
        places = find_places(self.project, self.params.mirrors, os.environ, earlier)
        return locate_source(self._source(source), places).is_local

    def _source(self, name: str) -> SourceSpec:
        return parse_source(name, read_conf(self.conf, "source", name))

    def available(self, status: Mapping[str, SourceStatus]) -> list[str]:
        """Return the experiment's datasets whose required sources, and those of their bridge, are not missing."""
        present = [
            name
            for name, dataset in self.datasets.items()
            if all(status[source] is not SourceStatus.MISSING for source in dataset.sources.required)
        ]
        return [name for name in present if (bridge := self.datasets[name].bridge) is None or bridge.dataset in present]

    def read_available(self, path: Path) -> list[str]:
        """Read which of the experiment's datasets could be built; none before the first ingestion."""
        available = read_object(path, "datasets")["datasets"] if path.exists() else []
        return [name for name in self.params.datasets if name in available]
