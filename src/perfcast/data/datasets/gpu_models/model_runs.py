"""Whole models in single precision: one row per model, task, batch and GPU.

The amounts of a run are sums over the kernels of its graph. Published predictions of the same runs, and times of single
operations inside a run, are in the source too. They are not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.accelerators.kernel_costs import kernel_costs, kernel_light
from perfcast.data.datasets.gpu_kernels.kernel_tables import GPU_FACTS
from perfcast.data.datasets.gpu_models.kernel_times import fitted_times, measured_times, read_training_kernels
from perfcast.data.datasets.gpu_models.model_columns import COLUMNS, TASKS
from perfcast.data.datasets.gpu_models.operation_graphs import KINDS, list_kernels
from perfcast.data.datasets.host.measured_tables import describe_first_bad, parse_numbers, quarantine
from perfcast.data.sources.neusight import (
    ARCHIVE,
    FAMILIES,
    NEW_GPUS,
    SUMMARY,
    TRAINING_GPUS,
    is_single_gpu_run,
    name_runs,
    read_archive,
    read_facts,
    read_graph,
    read_graphs,
    read_layers,
    read_runs,
)
from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import build_rejected_frame, require_rows
from perfcast.schema.table import build_table

SOURCE = "neusight"
_LATENCY = "label_all_e2e_latency"
_NUMBERS = ("batch", "seqlen", _LATENCY)
_SPELLED = {gpu.replace(" ", "_"): gpu for gpu in (*TRAINING_GPUS, *NEW_GPUS)}
"""Name of a GPU in the file -> its name."""
_OPTIONS = {"fusion": "fused", "dp": "several_gpus", "tp": "several_gpus", "pp": "several_gpus"}
"""Start of an option -> reason of rejection."""


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the runs. An input row is one line of the published summary.

    Raises:
        UserError: The archive is absent or broken, or every row is rejected.
    """
    del options
    path = raw[SOURCE] / ARCHIVE
    runs = read_runs(path)
    parsed = _parse(runs)
    good, rejections = quarantine(SOURCE, SUMMARY, parsed, _rules(parsed))
    require_rows(len(good), ARCHIVE, rejections)
    single = good.drop_duplicates(["device", "run"]).reset_index(drop=True)
    contents = read_archive(path)
    facts = pd.DataFrame({gpu: read_facts(contents, gpu) for gpu in _SPELLED.values()}).T
    facts = pd.DataFrame({name: facts[key] for name, (key, _, _) in GPU_FACTS.items()})
    sums = _sum_kernels(_list_all(path, single).join(facts, on="gpu"), read_training_kernels(contents, facts))
    table = build_table("gpu_models", _describe(single, facts).join(sums, on="result_id"), COLUMNS)
    return Standardized(
        table=table,
        rejected=build_rejected_frame(rejections),
        rows_in=len(runs),
        merged={"repeated_run": len(good) - len(single)},
        quality={
            "rows": {
                str(name): int(count)
                for name, count in (table.frame["published_subset"] + "/" + table.frame["task"]).value_counts().items()
            },
            "models": sorted(single["model_name"].unique()),
        },
    )


def _parse(frame: pd.DataFrame) -> pd.DataFrame:
    parsed = parse_numbers(frame, _NUMBERS)
    option = frame["option"].str.extract("^([a-z]*)", expand=False)
    return parsed.assign(
        line=np.arange(2, len(frame) + 2),
        run=name_runs(frame),
        gpu=frame["device"].map(_SPELLED),
        reason=option.map(_OPTIONS).where(frame["option"] != ""),
        usable=is_single_gpu_run(frame),
        family=frame["model_name"].str.extract(f"^({'|'.join(FAMILIES)})", expand=False),
    )


def _rules(parsed: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the reason and details of rejection, in order; missing where a row satisfies the rule."""
    numbers = parsed[list(_NUMBERS)]
    option = parsed["option"].where(parsed["option"] != "")
    return {
        **{reason: option.where(parsed["reason"] == reason) for reason in dict.fromkeys(_OPTIONS.values())},
        "unknown_option": option,
        "unknown_gpu": parsed["device"].where(parsed["gpu"].isna()),
        "unknown_mode": parsed["mode"].where(~parsed["mode"].isin(list(TASKS))),
        "unknown_model": parsed["model_name"].where(parsed["family"].isna()),
        "not_a_number": describe_first_bad(numbers.isna(), parsed),
        "not_positive": describe_first_bad(numbers <= 0, parsed),
        "no_graph": parsed["run"].where(~parsed["usable"]),
    }


def _list_all(path: Path, runs: pd.DataFrame) -> pd.DataFrame:
    """Return the kernels of all runs with their `result_id` and `gpu`; a graph is read once. Raises: UserError."""
    texts = runs.assign(**{name: runs[f"{name}_text"] for name in _NUMBERS})
    contents = read_graphs(path, texts)
    graphs = {run: read_graph(contents, run) for run in sorted(set(runs["run"]))}
    parts = [
        list_kernels(graphs[run], read_layers(contents, device, run), run).assign(result_id=f"{gpu}/{run}", gpu=gpu)
        for device, gpu, run in zip(runs["device"], runs["gpu"], runs["run"], strict=True)
    ]
    return pd.concat(parts, ignore_index=True)


def _sum_kernels(kernels: pd.DataFrame, training: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the sums over the kernels of every run and kind. Shapes: one row per `result_id`."""
    amounts = kernel_costs(kernels)
    light, count = kernel_light(amounts), kernels["count"].to_numpy()
    each = pd.DataFrame(
        {
            "kernels": count,
            "flops": amounts["flops"] * count,
            "bytes": amounts["bytes"] * count,
            "part": light * count,
            "fitted": fitted_times(training, kernels) * count,
            "measured": measured_times(training, kernels) * count,
        }
    )
    groups = each.groupby([kernels["result_id"], kernels["kind"]])
    sums = groups.sum().where(groups.count() == groups.size().to_numpy()[:, None])
    wide = sums.unstack("kind")
    columns = {}
    for kind in KINDS:
        of_kind = {name: wide.get((name, kind), pd.Series(np.nan, wide.index)) for name in each}
        has_none = of_kind["kernels"].isna()
        for name in ("kernels", "flops", "bytes", "part", "fitted"):
            columns[f"{name}_{kind}"] = of_kind[name].mask(has_none, 0.0)
        columns[f"part_{kind}_slowdown"] = of_kind["measured"] / of_kind["part"]
    return pd.DataFrame(columns)


def _describe(runs: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    task, known = runs["mode"].map(TASKS), runs["gpu"].isin(TRAINING_GPUS)
    return runs[["batch", "gpu"]].assign(
        **{name: runs["gpu"].map(facts[name]) for name in GPU_FACTS},
        result_id=runs["gpu"] + "/" + runs["run"],
        task=task,
        model=runs["model_name"],
        model_family=runs["family"],
        measured_by=np.where(known, "known", "new"),
        run=runs["gpu"] + "/" + runs["model_name"] + "/" + task,
        sequence_length=runs["seqlen"],
        latency=runs[_LATENCY],
        published_subset=np.where(known, "train", "test"),
        source_file=SUMMARY,
        source_line=runs["line"],
    )
