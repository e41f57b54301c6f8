"""Run one stage of the pipeline, as the rules of Snakemake do."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Annotated, Any, Literal

from perfcast import plugins
from perfcast.cli import arguments
from perfcast.cli.stage import Stage
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_folder, atomic_path, read_object, remove_path, write_json, write_text
from perfcast.utils.packaged_project import default_project
from perfcast.utils.progress import show_progress
from perfcast.utils.result_digests import record_beside, record_digests

Names = Sequence[str]
Preset = Literal["quick", "full"]
Level = Annotated[float, arguments.share]
Seed = Annotated[int, arguments.seed]
Windows = Annotated[int, arguments.whole(0, 10)]
Resamples = Annotated[int, arguments.whole(1, 100_000)]
Rows = Annotated[int, arguments.whole(1, 1_000_000)]

STAGES: dict[str, Stage] = {}
"""Stages by name: functions whose parameters are the arguments of the command."""


def stage(function: Callable[..., int | None]) -> Callable[..., int | None]:
    """Make a function a stage of its name."""
    STAGES[function.__name__] = Stage(function)
    return function


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@stage
def available(datasets: Names, *, raw: Path, out: Path, project: Path = Path()) -> None:
    """List the datasets that can be built from the ingested sources.

    Args:
        datasets: names of files in conf/dataset

    Examples:
        perfcast pipeline available host_gemm --raw results/raw \\
          --out results/raw/available.json
    """
    from perfcast.config.dataset_conf import read_dataset
    from perfcast.sources.locations import present_sources

    present = []
    left_out = {}
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


@stage
def bridge(*, table: Path, champion: Path, out: Path, project: Path = Path()) -> None:
    """Estimate rows by the champion of another dataset.

    Args:
        table: standard table
        champion: folder of the champion that estimates the rows

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


@stage
def champion(
    dataset: str,
    *,
    runs: Path,
    table: Path,
    standard: Path,
    raw: Path,
    splits: Names,
    predictors: Names,
    out: Path,
    preset: Preset = "full",
    backtest_windows: Windows = 1,
    seed: Seed = 0,
    project: Path = Path(),
) -> None:
    """Select the best predictor, and fit it on every row.

    Examples:
        perfcast pipeline champion host_gemm --runs results/runs/host_gemm \\
          --table results/features/host_gemm.parquet \\
          --standard results/standard/host_gemm.parquet --raw results/raw \\
          --splits random --predictors ridge --out results/champion/host_gemm
    """
    from perfcast.experiment.champion import write_champion

    with show_progress() as show:
        about = write_champion(
            out,
            project / "conf",
            dataset,
            runs=runs,
            table=table,
            standard=standard,
            raw=raw,
            splits=splits,
            predictors=predictors,
            preset=preset,
            seed=seed,
            max_backtests=backtest_windows,
            progress=show,
        )
    _tell(f"{dataset}: champion {about['predictor']}")


@stage
def described(
    dataset: str,
    *,
    described: Names,
    runs: Path,
    table: Path,
    standard: Path,
    raw: Path,
    folds: Path,
    in_domain: Path,
    splits: Names,
    predictors: Names,
    out: Path,
    level: Level = 0.9,
    seed: Seed = 0,
    project: Path = Path(),
) -> None:
    """Predict test machines as users describe them, level by level.

    Args:
        described: splits that are predicted
        folds: folder of the dataset's splits
        in_domain: folder of the distances by split

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

    predictions = predict_described_splits(
        dataset,
        described=described,
        runs=runs,
        table=table,
        standard=standard,
        raw=raw,
        folds=folds,
        in_domain=in_domain,
        splits=splits,
        predictors=predictors,
        level=level,
        seed=seed,
        project=project,
    )
    with atomic_path(out) as path:
        predictions.to_parquet(path, index=False, compression="zstd", write_page_checksum=True)
    record_digests(out)
    _tell(f"{dataset}: {len(predictions)} predictions of described machines")


@stage
def evaluate(
    dataset: str,
    *,
    table: Path,
    runs: Path,
    splits: Names,
    predictors: Names,
    out: Path,
    in_domain: Path | None = None,
    described: Path | None = None,
    level: Level = 0.9,
    resamples: Resamples = 1000,
    seed: Seed = 0,
    project: Path = Path(),
) -> None:
    """Compute the metrics of one dataset from its predictions.

    Args:
        in_domain: folder of the distances by split; without it, no intervals
        described: predictions of described machines, if any
        resamples: bootstrap resamples

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
        in_domain={split: in_domain / f"{split}.parquet" for split in splits} if in_domain else {},
        described=read_parquet(described) if described else None,
        tables=declared.load_tables(),
        level=level,
        resamples=resamples,
        seed=seed,
    )
    write_evaluation(evaluation, out)


@stage
def fake(out: Path, *, rows: Rows = 600, seed: Seed = 0, project: Path | None = None) -> None:
    """Make a miniature project of generated data to try things on.

    Args:
        out: new folder for mirror/, conf/, params.yaml, Snakefile, workflow/
        rows: rows per source

    Examples:
        perfcast pipeline fake demo --rows 600
        perfcast pipeline fake /tmp/demo --project ~/perfcast
    """
    from perfcast.testing.miniature import make_project

    make_project(project or default_project(Path()), out, rows=rows, seed=seed)
    print(f"made {out}: generated data, no real results. Run it: cd {out} && snakemake")


@stage
def features(dataset: str, *, table: Path, out: Path, bridge: Path | None = None, project: Path = Path()) -> None:
    """Add derived columns, one feature group after the other.

    Args:
        table: standard table
        bridge: estimates by the champion of another dataset, if any

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


@stage
def forget(*, results: Path = Path("results")) -> None:
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


@stage
def headline(champions: Sequence[Path], *, metrics: Path, out: Path, baselines: Names = ()) -> None:
    """Write the headline metrics that `dvc metrics` shows.

    They are those of the champion and of the best baseline, per dataset and split.

    Args:
        champions: folders of champions
        metrics: the metrics of every predictor
        baselines: predictors to compare with

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


@stage
def in_domain(
    dataset: str,
    split: str,
    *,
    table: Path,
    folds: Path,
    out: Path,
    backtest_windows: Windows = 1,
    project: Path = Path(),
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

    conf = read_dataset(project / "conf", dataset)
    rows = read_table(table)
    domain = domain_of(conf.target)
    shift = domain.load(domain.shift) if domain.shift else None
    distances = fold_distances(rows, read_folds(folds, rows), conf.label_outlier, backtest_windows, shift)
    with atomic_path(out) as path:
        distances.to_parquet(path, index=False, compression="zstd", write_page_checksum=True)
    record_digests(out)


@stage
def ingest(
    source: str,
    *,
    out: Path,
    origin: Path | None = None,
    mirror: Names = (),
    strict: bool = False,
    offline: bool = False,
    project: Path = Path(),
) -> None:
    """Copy the files of one source to a folder, verified by sha256.

    The origin is the cache, a mirror folder or the address of the source.

    Args:
        source: name of a file in conf/source
        out: folder for the files and manifest.json
        origin: JSON file that records the origin of every file
        mirror: folder of copies; may be repeated
        strict: fail if the source is missing
        offline: do not use the network

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


@stage
def jobs(*, results: Path = Path("results"), pulled: bool = False) -> None:
    """Keep with the results what made each file.

    That is the code, the parameters and the inputs of its job. DVC versions them,
    so that another clone runs no job again that is the same.

    Args:
        pulled: take over those of results that were pulled

    Examples:
        perfcast pipeline jobs
        perfcast pipeline jobs --pulled
    """
    from perfcast.ops.job_records import restore_job_records, save_job_records

    if pulled:
        changed = restore_job_records(results)
        _tell(f"{results}: {changed} files are of other code or parameters; make run makes them again")
    else:
        save_job_records(results)


@stage
def learn(champion: Path, *, standard: Path) -> None:
    """Learn from results after training, without training.

    Their errors tell the levels by which later answers are corrected.

    Args:
        champion: folder of the champion, which is changed
        standard: standard table, with results after training

    Examples:
        perfcast pipeline learn results/champion/spec_cpu2017 \\
          --standard results/standard/spec_cpu2017.parquet
    """
    from perfcast.experiment.rolling import learn_later_results
    from perfcast.schema.table_files import read_table

    _tell(f"{champion}: {learn_later_results(champion, read_table(standard))} results after training")


@stage
def leakage(
    dataset: str,
    *,
    table: Path,
    standard: Path,
    folds: Path,
    runs: Path,
    splits: Names,
    predictors: Names,
    out: Path,
    seed: Seed = 0,
    project: Path = Path(),
) -> int:
    """Check the files of one dataset for leakage, and fail on any.

    Args:
        folds: folder of the dataset's splits

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
    artifacts = collect_artifacts(
        project / "conf",
        table=table,
        standard=standard,
        folds=folds,
        runs=runs,
        splits=splits,
        predictors=predictors,
        seed=seed,
    )
    report = check_leakage(artifacts)
    write_json(out, report)
    record_digests(out)
    lines = leakage_errors(report)
    for line in lines:
        _tell(f"perfcast pipeline leakage: {line}")
    return 2 if lines else 0


@stage
def metrics(evaluations: Sequence[Path], *, out: Path) -> None:
    """Gather the metrics of all datasets in one file for DVC.

    Args:
        evaluations: folders of evaluations

    Examples:
        perfcast pipeline metrics results/evaluation/host_gemm --out metrics.json
    """
    from perfcast.evaluation import metrics_tree, read_evaluation

    write_json(out, {each.dataset: metrics_tree(each) for each in map(read_evaluation, evaluations)})
    record_digests(out)


@stage
def plots(dataset: str, *, evaluation: Path, out: Path, plots: Names = (), project: Path = Path()) -> None:
    """Draw the plots of one dataset.

    Args:
        evaluation: folder of the evaluation
        plots: names of plots

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


@stage
def record(
    *,
    results: Path = Path("results"),
    trainings: bool = False,
    note: Path | None = None,
    project: Path = Path(),
) -> None:
    """Record finished trainings and champions in MLflow.

    What the store has already is left alone.

    Args:
        trainings: record the trainings alone
        note: file for the outcome; a store that fails is no failure

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


@stage
def report(
    *,
    out: Path,
    results: Path = Path("results"),
    cards: Path | None = None,
    experiment: str | None = None,
    project: Path = Path(),
) -> None:
    """Write the report: an index, and a page per dataset beside it.

    Args:
        out: index page, a file of HTML
        cards: folder for a model card per dataset, as Markdown
        experiment: JSON of the experiment (default: params.yaml)

    Examples:
        perfcast pipeline report --results results --out results/report.html
    """
    from perfcast.config.dataset_conf import read_datasets
    from perfcast.config.predictor_conf import read_predictor_labels
    from perfcast.report.render_page import write_report
    from perfcast.report.report_context import collect

    params = arguments.parse_experiment(experiment, project)
    datasets = read_datasets(project / "conf")
    titles = {name: dataset.title for name, dataset in datasets.items()}
    sources = {name: [*entry.sources.required, *entry.sources.optional] for name, entry in datasets.items()}
    labels = read_predictor_labels(project / "conf")
    write_report(collect(results, params, titles=titles, sources=sources, predictor_labels=labels), out, cards)
    for page in [out, *sorted(out.with_suffix("").glob("*.html"))]:
        _tell(f"{page}: {page.stat().st_size / 1e6:.1f} MB")


@stage
def roll(split: str, *, run: Path, table: Path, out: Path) -> None:
    """Correct frozen predictions by the results of earlier months.

    Args:
        run: folder of the run on the forward split
        out: folder of the run

    Examples:
        perfcast pipeline roll rolling_2024 \\
          --run results/runs/spec_cpu2017/forward_2024/hybrid_trees \\
          --table results/features/spec_cpu2017.parquet --out run
    """
    from perfcast.experiment.rolling import roll_run
    from perfcast.schema.table_files import read_table

    metrics = roll_run(run, split, read_table(table), out)
    _tell(f"{split}/{run.name}: test MAPE {metrics['mape']:.2f} %")


@stage
def split(split: str, *, table: Path, out: Path, seed: Seed = 0, until: str | None = None) -> None:
    """Divide the rows of a dataset into training and test.

    Args:
        table: standard table
        until: `evaluated_until` of the dataset, a month as YYYY-MM

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


@stage
def standardize(dataset: str, *, raw: Path, table: Path, rejected: Path, quality: Path, project: Path = Path()) -> None:
    """Standardize the raw files of a dataset into one table.

    Args:
        table: standard table to write
        rejected: CSV file of rejected rows to write
        quality: JSON file of data quality to write

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


@stage
def train(overrides: Names = (), *, multirun: bool = False, cfg: Literal["job", "hydra", "all"] | None = None) -> None:
    """Train a predictor on a split, in the grammar of Hydra.

    Every KEY is one of conf/config.yaml.

    Args:
        overrides: choices and values of the configuration, KEY=VALUE
        multirun, -m: train once for each value, predictor=mlp,ncpp
        cfg: print the configuration

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
