"""Runs of OLMo's ladder under way: the final results, told from the first quarter, half and three quarters of a run.

Facts of the files are those of `ladder`. A row is one task of one run and one known share of it. What the run showed so
far is the last result, and the line through the results of the last half of the known part, over the logarithm of the
progress. Later evaluations are in no row; a run that has none so far is rejected at that share.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import Rejection, build_rejected_frame, require_rows
from perfcast.domains.scaling.datasets.ladder import PARAMS, SOURCE, TASKS, read_run
from perfcast.domains.scaling.datasets.scaling_columns import (
    COMPUTE_COLUMN,
    FLOP_PER_PARAM_TOKEN,
    PLACE_COLUMNS,
    TARGET_COLUMN,
    TRAINING_COLUMNS,
    number,
)
from perfcast.domains.scaling.sources.olmo_ladder import TOKENS, list_runs
from perfcast.schema.declare import category
from perfcast.schema.table import Column, Kind, Role, Tag, build_table

DATASET = "llm_ladder_curve"
KNOWN = (25, 50, 75)
"""Shares of a run that are known, in %."""
NOW, LEVEL, SLOPE = "value_now", "value_level", "value_slope"
_UNIT = "nat, bit/byte or share"
COLUMNS = (
    category("result_id", Role.KEY, "evaluation", "name of the run, the task and the known share", Tag.ROW),
    category("task", Role.KEY, "evaluation", "validation set or benchmark, and the known share", Tag.TASK, Tag.CONFIG),
    category("task_kind", Role.KEY, "evaluation", "accuracy, bpb or loss, and the known share", Tag.SLICE),
    category("model_size", Role.KEY, "model", "name of the model size", Tag.ENTITY, Tag.SLICE),
    category("run", Role.KEY, "training", "size, multiplier and repetition"),
    category("configuration", Role.KEY, "training", "size and multiplier", Tag.CONFIG, Tag.BLOCK),
    *TRAINING_COLUMNS,
    COMPUTE_COLUMN,
    number("tokens_per_param", "training", "tokens of the whole run over parameters"),
    number(NOW, "curve", "last result of the known part", _UNIT),
    number(LEVEL, "curve", "result at the end of the known part, by the line through its last half", _UNIT),
    Column(SLOPE, Kind.NUMERICAL, Role.FEATURE, "curve", _UNIT, "change of the result per unit of ln progress"),
    number("known_share", "curve", "known share of the run", "%", high=100),
    TARGET_COLUMN,
    *PLACE_COLUMNS,
)


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the runs of the ladder; the models that its authors predict have no curve.

    An input row is one task of one run and one known share.

    Raises:
        UserError: A file is absent or broken, or every row of it is rejected.
    """
    del options
    parts: list[pd.DataFrame] = []
    rejections: list[Rejection] = []
    for (size, multiplier, repetition), name in list_runs().items():
        good, rejected = read_run(raw[SOURCE] / name, name, size)
        require_rows(len(good), str(raw[SOURCE] / name), rejected)
        rejections += rejected
        configuration = f"{size}-{multiplier}xC"
        run = configuration + ("-rerun" if repetition else "")
        facts = {"model_size": size, "configuration": configuration, "run": run, "source_file": name}
        for share in KNOWN:
            rows = describe_curve(good.sort_values(TOKENS), share, PARAMS[size])
            if rows is None:
                detail = f"{run} has no evaluation in its first {share} %"
                rejections += [Rejection(SOURCE, name, 0, "no_evaluation_so_far", detail)] * len(TASKS)
            else:
                parts.append(rows.assign(**facts))
    frame = pd.concat(parts, ignore_index=True)
    frame["result_id"] = frame["run"] + "|" + frame["task"]
    return Standardized(
        table=build_table(DATASET, frame, COLUMNS),
        rejected=build_rejected_frame(rejections),
        rows_in=len(rejections) + len(frame),
        quality={"runs": int(frame["run"].nunique()), "by_known_share": frame["known_share"].value_counts().to_dict()},
    )


def describe_curve(evaluations: pd.DataFrame, share: float, params: float) -> pd.DataFrame | None:
    """Return one row per task of a run of which `share` % is known, None where it has no evaluation so far.

    Shapes: `evaluations` one row per evaluation, in the order of tokens.
    """
    tokens = evaluations[TOKENS].to_numpy(dtype=float)
    progress = tokens / tokens[-1]
    known = progress <= share / 100 + 1e-9
    if not known.any():
        return None
    recent = known & (progress >= progress[known][-1] / 2)
    distance = np.log(progress[recent]) - np.log(share / 100)
    rows = []
    for task, (kind, columns) in TASKS.items():
        results = evaluations[list(columns)].to_numpy(dtype=float).mean(axis=1)
        level, slope = fit_line(distance, results[recent])
        rows.append(
            {
                "task": f"{task}_{share:g}_percent",
                "task_kind": f"{kind}, {share:g} % known",
                **{NOW: results[known][-1], LEVEL: max(level, 0.0), SLOPE: slope, "value": results[-1]},
            }
        )
    return pd.DataFrame(rows).assign(
        known_share=float(share),
        params=float(params),
        tokens=tokens[-1],
        compute=FLOP_PER_PARAM_TOKEN * params * tokens[-1] / 1e18,
        tokens_per_param=tokens[-1] / params,
        source_line=evaluations["line"].iloc[-1],
    )


def fit_line(distance: np.ndarray, results: np.ndarray) -> tuple[float, float]:
    """Return the value at 0 and the slope of the least-squares line; of one result that result, and no slope."""
    if np.ptp(distance) == 0:
        return float(results.mean()), np.nan
    slope, level = np.polyfit(distance, results, 1)
    return float(level), float(slope)
