"""Measured kernels of neural networks in single precision: one row per kernel, shape and GPU.

The name of the chosen kernel, its grid and its blocks come out of the profiler: they are known after the run alone and
are not read. Nine cases were measured twice; their median is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.datasets.host.measured_tables import describe_first_bad, feature, parse_numbers, quarantine
from perfcast.data.sources.neusight import (
    ARCHIVE,
    COLUMN_NAMES,
    NEW_GPUS,
    SHAPES,
    TRAINING_GPUS,
    list_tables,
    read_archive,
    read_facts,
    read_kernels,
)
from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import build_rejected_frame, require_rows
from perfcast.schema.table import Column, Kind, Role, Tag, build_table

SOURCE = "neusight"
KINDS = {"bmm": "bmm", "linear": "linear", "elem": "element-wise", "ln": "layer_norm", "softmax": "softmax"}
"""Table -> kind of kernel."""
GPU_FACTS = {
    "fp32_gflops": ("SingleFLOPs", "GFLOP/s", "peak of single precision without matrix units"),
    "memory_gb_per_s": ("Mem_Bw", "GB/s", "memory bandwidth"),
    "memory_gib": ("Dev_Mem", "GiB", "memory"),
    "sm_count": ("Num_Sm", "", "multiprocessors"),
    "l2_mib": ("L2Cache", "MiB", "second-level cache"),
    "clock_mhz": ("Freq", "MHz", "clock"),
}
"""Column -> key of the authors' facts, unit, meaning."""


def _word(name: str, role: Role, meaning: str, *tags: Tag) -> Column:
    return Column(name, Kind.CATEGORICAL, role, "shape", meaning=meaning, tags=tags)


COLUMNS = (
    _word("result_id", Role.KEY, "GPU, kernel and shape", Tag.ROW),
    _word("kind", Role.KEY, "kind of kernel", Tag.TASK),
    _word("gpu", Role.KEY, "name of the GPU", Tag.ENTITY, Tag.SLICE),
    _word("measured_by", Role.KEY, "whether the authors' training rows have the GPU: known, new", Tag.SLICE),
    _word("op", Role.FEATURE, "operation", Tag.SLICE),
    feature("batch", "shape", "products, or rows", tags=(Tag.SCALING,)),
    feature("m", "shape", "rows of a product", tags=(Tag.SCALING,)),
    feature("n", "shape", "columns of a product", tags=(Tag.SCALING,)),
    feature("k", "shape", "inner dimension of a product", tags=(Tag.SCALING,)),
    feature("width", "shape", "elements of a row", tags=(Tag.SCALING,)),
    *(feature(name, "gpu", meaning, unit=unit, low=0) for name, (_, unit, meaning) in GPU_FACTS.items()),
    Column("latency", Kind.NUMERICAL, Role.TARGET, "shape", "ms", "time of the kernel; lower is better", 0),
    _word("published_subset", Role.PROVENANCE, "the authors' subset: train, test"),
    _word("source_file", Role.PROVENANCE, "file of the row"),
    Column("source_line", Kind.NUMERICAL, Role.PROVENANCE, "shape", meaning="line of that file", low=1),
)


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the kernels. An input row is one line of a published table.

    Raises:
        UserError: The archive is absent or broken, or every row is rejected.
    """
    del options
    contents = read_archive(raw[SOURCE] / ARCHIVE)
    facts = pd.DataFrame({gpu: read_facts(contents, gpu) for gpu in (*TRAINING_GPUS, *NEW_GPUS)}).T
    rows_in, parts, rejections = 0, [], []
    for name, (table, subset) in list_tables().items():
        read = _parse(read_kernels(contents, name, table), table)
        good, rejected = quarantine(SOURCE, name, read, _rules(read, table))
        rows_in += len(read)
        rejections += rejected
        parts.append(good.assign(kind=KINDS[table], published_subset=subset, source_file=name))
    good = pd.concat(parts, ignore_index=True)
    require_rows(len(good), ARCHIVE, rejections)
    single, ratio = _merge_repeated(good)
    built = build_table("gpu_kernels", _join_facts(single, facts), COLUMNS)
    return Standardized(
        table=built,
        rejected=build_rejected_frame(rejections),
        rows_in=rows_in,
        merged={"repeated_case": len(good) - len(single)},
        quality={
            "rows": {
                str(name): int(count)
                for name, count in _names(single, "published_subset", "kind").value_counts().items()
            },
            "largest_ratio_of_repeated": ratio,
        },
    )


def _parse(frame: pd.DataFrame, table: str) -> pd.DataFrame:
    parsed = parse_numbers(frame, ["Latency", *SHAPES[table]])
    return parsed.assign(line=np.arange(2, len(frame) + 2))


def _rules(parsed: pd.DataFrame, table: str) -> dict[str, pd.Series]:
    """Return the reason and details of rejection, in order; missing where a row satisfies the rule."""
    numbers = parsed[["Latency", *SHAPES[table]]]
    return {
        "unknown_gpu": parsed["Device"].where(~parsed["Device"].isin([*TRAINING_GPUS, *NEW_GPUS])),
        "not_a_number": describe_first_bad(numbers.isna(), parsed),
        "not_positive": describe_first_bad(numbers <= 0, parsed),
    }


def _merge_repeated(frame: pd.DataFrame) -> tuple[pd.DataFrame, float | None]:
    """Keep one row per case of a subset with the median of its times; return the largest ratio of two of them."""
    case = ["published_subset", "kind", "OPName", "Device", *COLUMN_NAMES]
    times = frame.groupby(case, dropna=False, sort=False)["Latency"]
    ratio = times.transform("max") / times.transform("min")
    repeated = frame.duplicated(case, keep=False)
    single = frame.assign(Latency=times.transform("median")).drop_duplicates(case).reset_index(drop=True)
    return single, round(float(ratio[repeated].max()), 4) if repeated.any() else None


def _names(frame: pd.DataFrame, first: str, second: str) -> pd.Series:
    return frame[first] + "/" + frame[second]


def _join_facts(frame: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    shape = frame[list(COLUMN_NAMES)].rename(columns=COLUMN_NAMES)
    texts = shape.apply(lambda values: values.map("{:.0f}".format).where(values.notna(), ""))
    gpu = frame["Device"]
    return frame.assign(
        **shape,
        **{name: gpu.map(facts[key]) for name, (key, _, _) in GPU_FACTS.items()},
        op=frame["OPName"],
        gpu=gpu,
        measured_by=np.where(gpu.isin(TRAINING_GPUS), "known", "new"),
        latency=frame["Latency"],
        result_id=gpu + "/" + frame["OPName"] + "/" + texts.agg("|".join, axis=1) + "/" + frame["published_subset"],
        source_line=frame["line"],
    )
