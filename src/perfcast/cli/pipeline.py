"""Run one stage of the pipeline, as the rules of Snakemake do."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from types import MappingProxyType
from typing import Any

from perfcast import plugins
from perfcast.cli.arguments import add_shared, parse_experiment, share, whole
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_folder, atomic_path, read_object, remove_path, write_json, write_text
from perfcast.utils.packaged_project import default_project
from perfcast.utils.progress import show_progress
from perfcast.utils.result_digests import record_beside, record_digests

Arguments = Mapping[str, Mapping[str, Any]]


class Stage:
    """A stage: a function that takes its arguments as keywords; its docstring is the help of the command.

    `names` are those of SHARED, `further` has those of its own, and `changed` has another help of some.
    """

    def __init__(self, function: Callable[..., int | None], names: str, further: Arguments, changed: Mapping[str, str]):
        self.function, self.names, self.further, self.changed = function, names.split(), further, changed
        self.__doc__ = function.__doc__

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        add_shared(parser, *self.names, **self.changed)
        for name, options in self.further.items():
            parser.add_argument(*name.split(), **options)

    def run(self, options: argparse.Namespace) -> int:
        """Call the function and return its exit code, 0 for none."""
        return self.function(**vars(options)) or 0


STAGES: dict[str, Stage] = {}
_DISTANCES = {"type": Path, "metavar": "FOLDER", "help": "folder of the distances by split; without it, no intervals"}
_LEVEL = {"type": share, "default": 0.9, "metavar": "SHARE", "help": "level of the intervals"}
_FOLDS = "folder of the dataset's splits"


def stage(
    names: str, further: Arguments = MappingProxyType({}), **changed: str
) -> Callable[[Callable[..., int | None]], Callable[..., int | None]]:
    """Declare a function as a stage with its name; see `Stage`."""

    def declare(function: Callable[..., int | None]) -> Callable[..., int | None]:
        STAGES[function.__name__] = Stage(function, names, further, changed)
        return function

    return declare


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@stage(
    "--raw --out --project",
    {"datasets": {"nargs": "+", "metavar": "dataset", "help": "names of files in conf/dataset"}},
)
def available(datasets: Sequence[str], raw: Path, out: Path, project: Path) -> None:
    """List the datasets that can be built from the ingested sources.

    Examples:
        perfcast pipeline available host_gemm --raw results/raw \\
          --out results/raw/available.json
    """
    from perfcast.config.dataset_conf import read_dataset
    from perfcast.sources.locations import present_sources

    present, left_out = [], {}
    for name in datasets:
        required = read_dataset(project / "conf", name).sources.required
        absent = [source for source in required if source not in present_sources(raw, required)]
        if absent:
            left_out[name] = absent
            _tell(f"dataset {name} is left out: missing {', '.join(absent)}")
        else:
            present.append(name)
    if not present:
        raise UserError("at least one dataset must have its sources", "every one lacks some", "see perfcast sources")
    write_json(out, {"datasets": present, "left_out": left_out})
    record_digests(out)


@stage(
    "--table --out --project",
    {"--champion": {"type": Path, "required": True, "metavar": "FOLDER", "help": "champion that estimates the rows"}},
    table="standard table",
)
def bridge(table: Path, champion: Path, out: Path, project: Path) -> None:
    """Estimate rows by the champion of another dataset.

    Examples:
        perfcast pipeline bridge --table results/standard/spec_cpu2026.parquet \\
          --champion results/champion/spec_cpu2017 \\
          --out results/features/spec_cpu2026.bridge
    """
    from perfcast.experiment.bridge import estimate_rows
    from perfcast.schema.table_files import read_table, write_table

    write_table(estimates := estimate_rows(project / "conf", read_table(table), champion), out)
    record_digests(out)
    _tell(f"{estimates.dataset}: {estimates.frame.iloc[:, 1].notna().sum()} of {len(estimates.frame)} rows estimated")


@stage(
    "dataset --runs --table --standard --raw --splits --predictors --out --preset --backtest-windows --seed --project"
)
def champion(dataset: str, out: Path, project: Path, backtest_windows: int, **choices: Any) -> None:
    """Select the best predictor, and fit it on every row.

    Examples:
        perfcast pipeline champion host_gemm --runs results/runs/host_gemm \\
          --table results/features/host_gemm.parquet \\
          --standard results/standard/host_gemm.parquet --raw results/raw \\
          --splits random --predictors ridge --out results/champion/host_gemm
    """
    from perfcast.experiment.champion import write_champion

    with show_progress() as show:
        about = write_champion(out, project / "conf", dataset, max_backtests=backtest_windows, progress=show, **choices)
    _tell(f"{dataset}: champion {about['predictor']}")


@stage(
    "dataset --runs --table --standard --raw --folds --splits --predictors --seed --project --out",
    {
        "--described": {"nargs": "+", "required": True, "metavar": "SPLIT", "help": "splits that are predicted"},
        "--in-domain": {**_DISTANCES, "required": True, "help": "folder of the distances by split"},
        "--level": _LEVEL,
    },
    folds=_FOLDS,
)
def described(dataset: str, out: Path, **choices: Any) -> None:
    """Predict test machines as users describe them, level by level.

    Examples:
        perfcast pipeline described spec_cpu2017 --described forward_2024 \\
          --runs results/runs/spec_cpu2017 \\
          --table results/features/spec_cpu2017.parquet \\
          --standard results/standard/spec_cpu2017.parquet --raw results/raw \\
          --folds results/splits/spec_cpu2017 \\
          --in-domain results/in_domain/spec_cpu2017 \\
          --splits forward_2024 --predictors hybrid_trees --out described.parquet
    """
    from perfcast.experiment.described import predict_described_splits

    predictions = predict_described_splits(dataset, **choices)
    with atomic_path(out) as path:
        predictions.to_parquet(path, index=False, compression="zstd", write_page_checksum=True)
    record_digests(out)
    _tell(f"{dataset}: {len(predictions)} predictions of described machines")


@stage(
    "dataset --table --runs --splits --predictors --out --resamples --seed --project",
    {
        "--in-domain": _DISTANCES,
        "--described": {"type": Path, "metavar": "FILE", "help": "predictions of described machines, if any"},
        "--level": _LEVEL,
    },
)
def evaluate(
    *,
    dataset: str,
    table: Path,
    runs: Path,
    splits: Sequence[str],
    predictors: Sequence[str],
    in_domain: Path | None,
    described: Path | None,
    project: Path,
    out: Path,
    **choices: Any,
) -> None:
    """Compute the metrics of one dataset from its predictions.

    Examples:
        perfcast pipeline evaluate host_gemm \\
          --table results/features/host_gemm.parquet --runs results/runs/host_gemm \\
          --splits random --predictors ridge --out results/evaluation/host_gemm
    """
    from perfcast.config.dataset_conf import read_dataset
    from perfcast.evaluation import evaluate, write_evaluation
    from perfcast.schema.table_files import read_parquet, read_table

    declared = read_dataset(project / "conf", dataset)
    evaluation = evaluate(
        {(split, predictor): runs / split / predictor for split, predictor in product(splits, predictors)},
        read_table(table),
        published=[entry.model_dump() for entry in declared.published],
        in_domain={split: in_domain / f"{split}.parquet" for split in splits} if in_domain else {},
        described=read_parquet(described) if described else None,
        tables=declared.load_tables(),
        **choices,
    )
    write_evaluation(evaluation, out)


@stage(
    "--seed",
    {
        "out": {"type": Path, "help": "new folder for mirror/, conf/, params.yaml, Snakefile, workflow/"},
        "--rows": {"type": whole(1, 1_000_000), "default": 600, "metavar": "N", "help": "rows per source"},
        "--project": {"type": Path, "metavar": "FOLDER", "help": "folder of params.yaml and conf/"},
    },
)
def fake(out: Path, project: Path | None, rows: int, seed: int) -> None:
    """Make a miniature project of generated data to try things on.

    Examples:
        perfcast pipeline fake demo --rows 600
        perfcast pipeline fake /tmp/demo --project ~/perfcast
    """
    from perfcast.testing.miniature import make_project

    make_project(project or default_project(Path()), out, rows=rows, seed=seed)
    print(f"made {out}: generated data, no real results. Run it: cd {out} && snakemake")


@stage(
    "dataset --table --out --project",
    {"--bridge": {"type": Path, "metavar": "FILE", "help": "estimates by the champion of another dataset, if any"}},
    table="standard table",
)
def features(dataset: str, table: Path, out: Path, project: Path, bridge: Path | None) -> None:
    """Add derived columns, one feature group after the other.

    Examples:
        perfcast pipeline features host_gemm \\
          --table results/standard/host_gemm.parquet \\
          --out results/features/host_gemm.parquet
    """
    from perfcast.config.dataset_conf import read_dataset
    from perfcast.schema.table import Table
    from perfcast.schema.table_files import count_row_groups, read_table, write_tables

    groups = [plugins.load("features", name) for name in read_dataset(project / "conf", dataset).features]
    estimates = read_table(bridge) if bridge else None

    def derived(part: Table) -> Table:
        for group in groups:
            part = group.derive(part)
        return part if estimates is None else part.join(estimates)

    first = read_table(table, group=0)
    # a feature is of its row alone, so any group of rows can be taken by itself
    others = (read_table(table, group=number) for number in range(1, count_row_groups(table)))
    write_tables((derived(part) for part in chain([first], others)), out)
    record_digests(out)


@stage("--results")
def forget(results: Path) -> None:
    """Let the next run look for missing sources again.

    Examples:
        perfcast pipeline forget
    """
    manifests = sorted((results / "raw").glob("*/manifest.json"))
    missing = [path for path in manifests if read_object(path, "status")["status"] == "missing"]
    for path in missing:
        remove_path(path)
    names = ", ".join(path.parent.name for path in missing)
    _tell(f"looked for again: {names or 'no source is missing'}")


@stage(
    "--out",
    {
        "champions": {"type": Path, "nargs": "+", "metavar": "FOLDER", "help": "folders of champions"},
        "--metrics": {"type": Path, "required": True, "metavar": "FILE", "help": "the metrics of every predictor"},
        "--baselines": {"nargs": "*", "default": [], "metavar": "PREDICTOR", "help": "predictors to compare with"},
    },
)
def headline(champions: Sequence[Path], metrics: Path, baselines: Sequence[str], out: Path) -> None:
    """Write the headline metrics that `dvc metrics` shows.

    They are those of the champion and of the best baseline, per dataset and split.

    Examples:
        perfcast pipeline headline results/champion/host_gemm \\
          --metrics results/metrics.json --baselines nearest --out results/headline
    """
    from perfcast.evaluation.evaluation_files import headline_metrics

    about = [read_object(folder / "about.json", "dataset", "predictor") for folder in champions]
    chosen = {entry["dataset"]: entry["predictor"] for entry in about}
    with atomic_folder(out) as folder:
        for (dataset, split), values in headline_metrics(read_object(metrics), chosen, baselines).items():
            path = folder / dataset / f"{split}.json"
            path.parent.mkdir(exist_ok=True)
            write_json(path, values)
    record_beside(out)


@stage("dataset split --table --folds --backtest-windows --out --project")
def in_domain(
    *, dataset: str, split: str, table: Path, folds: Path, backtest_windows: int, out: Path, project: Path
) -> None:
    """Measure the distance of predicted rows from the rows fitted on.

    Examples:
        perfcast pipeline in-domain host_gemm random \\
          --table results/features/host_gemm.parquet \\
          --folds results/splits/host_gemm/random.parquet --out in_domain.parquet
    """
    from perfcast.config.dataset_conf import read_dataset
    from perfcast.domain import domain_of
    from perfcast.experiment.uncertainty_fit import fold_distances
    from perfcast.schema.table_files import read_table
    from perfcast.splits import read_folds

    conf, rows = read_dataset(project / "conf", dataset), read_table(table)
    domain = domain_of(conf.target)
    shift = domain.load(domain.shift) if domain.shift else None
    distances = fold_distances(rows, read_folds(folds, rows), conf.label_outlier, backtest_windows, shift)
    with atomic_path(out) as path:
        distances.to_parquet(path, index=False, compression="zstd", write_page_checksum=True)
    record_digests(out)


@stage(
    "--out --project",
    {
        "source": {"help": "name of a file in conf/source"},
        "--origin": {"type": Path, "metavar": "FILE", "help": "JSON file that records the origin of every file"},
        "--mirror": {
            "action": "append",
            "default": [],
            "metavar": "FOLDER",
            "help": "folder of copies; may be repeated",
        },
        "--strict": {"action": "store_true", "help": "fail if the source is missing"},
        "--offline": {"action": "store_true", "help": "do not use the network"},
    },
    out="folder for the files and manifest.json",
)
def ingest(
    *, source: str, out: Path, project: Path, origin: Path | None, mirror: Sequence[str], strict: bool, offline: bool
) -> None:
    """Copy the files of one source to a folder, verified by sha256.

    The origin is the cache, a mirror folder or the address of the source.

    Examples:
        perfcast pipeline ingest host_gemm --out results/raw/host_gemm
        perfcast pipeline ingest help --out results/raw/help --mirror ~/data --offline
    """
    from perfcast.config.conf_files import read_conf
    from perfcast.sources.ingestion import ingest_source
    from perfcast.sources.locations import find_places, locate_source
    from perfcast.sources.source_spec import parse_source

    spec = parse_source(source, read_conf(project / "conf", "source", source))
    places = find_places(project, mirror, os.environ, out)
    is_local = locate_source(spec, places).is_local
    result = ingest_source(spec, out, places, network=not offline, strict=strict)
    if origin:
        origins = {file.name: file.origin for file in result.files}
        means = {"at_hand": is_local, "network": not offline, "strict": strict}
        write_json(origin, {**means, "status": result.status, "origins": origins})
    _tell(result.summary)


@stage(
    "--standard",
    {"champion": {"type": Path, "help": "folder of the champion, which is changed"}},
    standard="standard table, with results after training",
)
def learn(champion: Path, standard: Path) -> None:
    """Learn from results after training, without training.

    Their errors tell the levels by which later answers are corrected.

    Examples:
        perfcast pipeline learn results/champion/spec_cpu2017 \\
          --standard results/standard/spec_cpu2017.parquet
    """
    from perfcast.experiment.rolling import learn_later_results
    from perfcast.schema.table_files import read_table

    _tell(f"{champion}: {learn_later_results(champion, read_table(standard))} results after training")


@stage("dataset --table --standard --folds --runs --splits --predictors --out --seed --project", folds=_FOLDS)
def leakage(dataset: str, out: Path, project: Path, **files: Any) -> int:
    """Check the files of one dataset for leakage, and fail on any.

    Examples:
        perfcast pipeline leakage host_gemm \\
          --table results/features/host_gemm.parquet \\
          --standard results/standard/host_gemm.parquet \\
          --folds results/splits/host_gemm --runs results/runs/host_gemm \\
          --splits random --predictors ridge --out leakage.json
    """
    from perfcast.evaluation.leakage import check_leakage, leakage_errors
    from perfcast.experiment.leakage_control import collect_artifacts

    del dataset
    report = check_leakage(collect_artifacts(project / "conf", **files))
    write_json(out, report)
    record_digests(out)
    lines = leakage_errors(report)
    for line in lines:
        _tell(f"perfcast pipeline leakage: {line}")
    return 2 if lines else 0


@stage(
    "--out", {"evaluations": {"type": Path, "nargs": "+", "metavar": "evaluation", "help": "folders of evaluations"}}
)
def metrics(evaluations: Sequence[Path], out: Path) -> None:
    """Gather the metrics of all datasets in one file for DVC.

    Examples:
        perfcast pipeline metrics results/evaluation/host_gemm --out metrics.json
    """
    from perfcast.evaluation import metrics_tree, read_evaluation

    write_json(out, {each.dataset: metrics_tree(each) for each in map(read_evaluation, evaluations)})
    record_digests(out)


@stage(
    "dataset --out --project",
    {
        "--evaluation": {"type": Path, "required": True, "help": "folder of the evaluation"},
        "--plots": {"nargs": "*", "default": [], "metavar": "PLOT", "help": "names of plots"},
    },
)
def plots(dataset: str, evaluation: Path, plots: Sequence[str], out: Path, project: Path) -> None:
    """Draw the plots of one dataset.

    Examples:
        perfcast pipeline plots host_gemm --evaluation results/evaluation/host_gemm \\
          --plots coverage --out plots
    """
    from perfcast.config.predictor_conf import read_predictor_labels
    from perfcast.evaluation import read_evaluation
    from perfcast.report.plots.drawing import draw_all
    from perfcast.report.report_context import hardest_split_first

    del dataset
    labels = read_predictor_labels(project / "conf")
    with atomic_folder(out) as folder:
        draw_all(hardest_split_first(read_evaluation(evaluation)), folder, plots, labels)


@stage(
    "--results --project",
    {
        "--trainings": {"action": "store_true", "help": "record the trainings alone"},
        "--note": {"type": Path, "metavar": "FILE", "help": "file for the outcome; a store that fails is no failure"},
    },
)
def record(results: Path, project: Path, trainings: bool, note: Path | None) -> None:
    """Record finished trainings and champions in MLflow.

    What the store has already is left alone.

    Examples:
        perfcast pipeline record --results results
    """
    from perfcast import tracking
    from perfcast.config.conf_files import read_yaml

    try:
        conf = read_yaml(project / "conf" / "tracking" / "default.yaml")
        store = tracking.store_from(conf, project, os.environ)
        outcome = "off: conf/tracking/default.yaml has enabled: false"
        if store is not None:
            from perfcast.evaluation import metrics_tree, read_evaluation
            from perfcast.tracking.recording import record_results

            evaluations = [read_evaluation(path.parent) for path in results.glob("evaluation/*/summary.json")]
            scores = {evaluation.dataset: metrics_tree(evaluation) for evaluation in evaluations}
            outcome = f"{record_results(store, results, scores, trainings_only=trainings)} new runs recorded"
    except Exception as error:  # whatever a store, a driver or a server raises
        reason = tracking.explain_failure(error)
        if note is None:
            raise UserError("the tracking store must be usable", reason) from error
        outcome = f"NOT recorded: {reason}; `perfcast pipeline record` catches up"
    _tell(f"tracking: {outcome}")
    if note is not None:
        try:
            write_text(note, f"{outcome}\n")
        except OSError as error:  # as on a full disk: the line above says it all
            _tell(f"tracking: {note} is not written: {tracking.explain_failure(error)}")


@stage(
    "--results --out --project --experiment",
    {"--cards": {"type": Path, "metavar": "FOLDER", "help": "folder for a model card per dataset, as Markdown"}},
    out="index page, a file of HTML",
)
def report(results: Path, out: Path, project: Path, experiment: str | None, cards: Path | None) -> None:
    """Write the report: an index, and a page per dataset beside it.

    Examples:
        perfcast pipeline report --results results --out results/report.html
    """
    from perfcast.config.dataset_conf import read_datasets
    from perfcast.config.predictor_conf import read_predictor_labels
    from perfcast.report.render_page import write_report
    from perfcast.report.report_context import collect

    params, datasets = parse_experiment(experiment, project), read_datasets(project / "conf")
    titles = {name: dataset.title for name, dataset in datasets.items()}
    sources = {name: [*entry.sources.required, *entry.sources.optional] for name, entry in datasets.items()}
    labels = read_predictor_labels(project / "conf")
    write_report(collect(results, params, titles=titles, sources=sources, predictor_labels=labels), out, cards)
    for page in [out, *sorted(out.with_suffix("").glob("*.html"))]:
        _tell(f"{page}: {page.stat().st_size / 1e6:.1f} MB")


@stage(
    "split --table --out",
    {"--run": {"type": Path, "required": True, "help": "folder of the run on the forward split"}},
    out="folder of the run",
)
def roll(split: str, run: Path, table: Path, out: Path) -> None:
    """Correct frozen predictions by the results of earlier months.

    Examples:
        perfcast pipeline roll rolling_2024 \\
          --run results/runs/spec_cpu2017/forward_2024/hybrid_trees \\
          --table results/features/spec_cpu2017.parquet --out run
    """
    from perfcast.experiment.rolling import roll_run
    from perfcast.schema.table_files import read_table

    metrics = roll_run(run, split, read_table(table), out)
    _tell(f"{split}/{run.name}: test MAPE {metrics['mape']:.2f} %")


@stage(
    "split --out --seed --table",
    {"--until": {"metavar": "YYYY-MM", "help": "`evaluated_until` of the dataset"}},
    table="standard table",
)
def split(split: str, table: Path, out: Path, seed: int, until: str | None) -> None:
    """Divide the rows of a dataset into training and test.

    Examples:
        perfcast pipeline split random --table results/standard/host_gemm.parquet \\
          --out results/splits/host_gemm/random.parquet
    """
    from perfcast import splits
    from perfcast.schema.table_files import read_table
    from perfcast.splits.subsets import SUBSETS

    rows = read_table(table, wanted=splits.reads, coded=True)
    folds = splits.make(split, rows, seed, until)
    point = splits.learning_curve_point(split)
    splits.write_folds(out, folds, rows, point.base if point else None, splits.split_version(split))
    record_digests(out)
    for name in folds:
        counts = folds[name].value_counts()
        sizes = ", ".join(f"{counts.get(subset, 0)} {subset}" for subset in SUBSETS)
        _tell(f"{rows.dataset}/{split} {name}: {sizes}")


@stage(
    "dataset --raw --table --project",
    {
        "--rejected": {"type": Path, "required": True, "help": "CSV file of rejected rows to write"},
        "--quality": {"type": Path, "required": True, "help": "JSON file of data quality to write"},
    },
    table="standard table to write",
)
def standardize(*, dataset: str, raw: Path, table: Path, rejected: Path, quality: Path, project: Path) -> None:
    """Standardize the raw files of a dataset into one table.

    Examples:
        perfcast pipeline standardize host_gemm --raw results/raw \\
          --table host_gemm.parquet --rejected rejected.csv --quality quality.json
    """
    from perfcast.config.dataset_conf import read_dataset
    from perfcast.data.standardized import write_standardized
    from perfcast.sources.locations import present_sources
    from perfcast.sources.source_spec import MANIFEST

    conf = read_dataset(project / "conf", dataset)
    files = present_sources(raw, (*conf.sources.required, *conf.sources.optional))
    for source in conf.sources.required:
        if source not in files:
            reason = read_object(raw / source / MANIFEST, "reason")["reason"]
            raise UserError(f"dataset {dataset} needs the source {source}", reason, "see perfcast sources")
    build = plugins.load_function(conf.target, f"_target_ of {dataset}")
    result = build(files, conf.options)
    write_standardized(result, table, rejected, quality)
    record_digests(table, rejected, quality)
    _tell(
        f"{dataset}: {result.rows_in} rows in = {len(result.table.frame)} kept + "
        f"{result.rows_merged} merged + {len(result.rejected)} rejected"
    )


@stage(
    "",
    {
        "overrides": {"nargs": "*", "metavar": "KEY=VALUE", "help": "choices and values of the configuration"},
        "--multirun -m": {"action": "store_true", "help": "train once for each value: predictor=mlp,ncpp"},
        "--cfg": {"choices": ["job", "hydra", "all"], "help": "print the configuration"},
    },
)
def train(overrides: Sequence[str], multirun: bool, cfg: str | None) -> None:
    """Train a predictor on a split, in the grammar of Hydra.

    Every KEY is one of conf/config.yaml.

    Examples:
        perfcast pipeline train dataset=host_gemm split=random predictor=mlp \\
          predictor.params.epochs=3
        perfcast pipeline train dataset=host_gemm split=random -m \\
          predictor=mlp,ncpp seeds=[0],[1]
    """
    from perfcast import tracking
    from perfcast.config.compose import run_hydra
    from perfcast.config.conf_files import validated
    from perfcast.config.experiment_params import Params
    from perfcast.experiment.experiment_check import check_training
    from perfcast.experiment.training import TrainingJob, run_training

    def train_one(config: Mapping[str, Any]) -> None:
        params = validated(Params, "params.yaml", {key: config[key] for key in Params.model_fields if key in config})
        check_training(config)
        store = tracking.store_from(config["tracking"], Path(), os.environ)
        out = Path(config["out"])
        names = config["dataset_name"], config["split"], config["predictor_name"]
        # trainings of the quick preset take seconds
        checkpoints = None if params.preset == "quick" else out.with_name(f".{out.name}.checkpoints")
        files = Path(config["table"]), Path(config["folds"]), out
        run_training(TrainingJob(*names, *files, params.backtest_windows, checkpoints), config, store)
        _tell(f"written: {out}")

    options = ["--multirun"] * multirun + ([f"--cfg={cfg}"] if cfg else [])
    run_hydra(default_project(Path()), [*options, *overrides], train_one)
