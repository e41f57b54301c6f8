"""Losses of the Chinchilla training runs, read from a figure of the paper: one row per point.

The file gives parameters, operations and loss; tokens are operations / (6 x parameters). Two points have a loss above
4.

Source: Besiroglu et al., 2024, arXiv 2404.10102; figure 4 of Hoffmann et al., 2022, arXiv 2203.15556.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from perfcast.data.datasets.host.measured_tables import describe_first_bad, parse_numbers, quarantine
from perfcast.data.datasets.llm_scaling.scaling_columns import (
    COMPUTE_COLUMN,
    FLOP_PER_PARAM_TOKEN,
    LOSS,
    PLACE_COLUMNS,
    RESULT_COLUMNS,
    TARGET_COLUMN,
    TRAINING_COLUMNS,
    number,
    word,
)
from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import build_rejected_frame, read_rows, require_rows
from perfcast.schema.table import Role, Tag, build_table

SOURCE, FILE = "chinchilla", "svg_extracted_data.csv"
TASK = "training_loss"
COLUMNS = (
    *RESULT_COLUMNS,
    word("run", Role.KEY, "training", "number of the point", Tag.BLOCK),
    word("model_size", Role.KEY, "model", "parameters, rounded to two digits", Tag.ENTITY),
    *TRAINING_COLUMNS,
    COMPUTE_COLUMN,
    number("tokens_per_param", "training", "tokens over parameters"),
    TARGET_COLUMN,
    *PLACE_COLUMNS,
)
_NUMBERS = ("Model Size", "Training FLOP", "loss")


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the points. An input row is one point.

    Raises:
        UserError: The file is absent or broken, or every row is rejected.
    """
    del options
    rows = read_rows(SOURCE, raw[SOURCE] / FILE, _NUMBERS)
    parsed = parse_numbers(rows.frame, _NUMBERS)
    numbers = parsed[list(_NUMBERS)]
    good, rejected = quarantine(
        SOURCE,
        FILE,
        parsed,
        {
            "not_a_number": describe_first_bad(numbers.isna(), parsed),
            "not_positive": describe_first_bad(numbers <= 0, parsed),
        },
    )
    rejections = [*rows.rejections, *rejected]
    require_rows(len(good), str(raw[SOURCE] / FILE), rejections)
    params, flop = good["Model Size"], good["Training FLOP"]
    tokens = flop / (FLOP_PER_PARAM_TOKEN * params)
    name = "point " + good["line"].astype("str")
    frame = good.assign(
        result_id=name,
        task=TASK,
        task_kind=LOSS,
        loss_task=None,
        chance=np.nan,
        run=name,
        model_size=params.map("{:.1e}".format),
        params=params,
        tokens=tokens,
        compute=flop / 1e18,
        tokens_per_param=tokens / params,
        value=good["loss"],
        source_file=FILE,
        source_line=good["line"],
    )
    return Standardized(
        table=build_table("llm_chinchilla", frame, COLUMNS),
        rejected=build_rejected_frame(rejections),
        rows_in=rows.rows_in,
        quality={"loss_above_4": int((frame["value"] > 4).sum())},
    )
