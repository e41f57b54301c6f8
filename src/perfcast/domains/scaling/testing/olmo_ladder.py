"""Generated evaluations of a ladder of language models, shaped like the published files, with possible defects.

The numbers are made up: they follow a scaling law with noise, and describe no real model.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from perfcast.domains.scaling.sources import olmo_ladder as source
from perfcast.utils.io import write_text

LAW = {
    "E": 1.7,
    "A": 400.0,
    "alpha": 0.34,
    "B": 410.0,
    "beta": 0.28,
}
"""Law of every generated loss in parameters and tokens; bits per byte are 0.4 of it."""
_SIZES = {
    "190M": 1.9e8,
    "370M": 3.7e8,
    "760M": 7.6e8,
    "1B": 1.3e9,
    "3B": 3.2e9,
    "7B": 6.9e9,
    "13B": 1.3e10,
}
_BATCH_TOKENS = 1_048_576
_TARGET_TOKENS = {"7B": 3.9e12, "13B": 5.0e12}
_NOISE = 1e-3


def law_of(params: float, tokens: float) -> float:
    """Return the generated loss of a model without noise, in nat per token."""
    return float(LAW["E"] + LAW["A"] / params ** LAW["alpha"] + LAW["B"] / tokens ** LAW["beta"])


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write the files of all runs, with `rows` / 60 evaluations each (at least 4), five defective ones, and a license.

    The defects are in the second and third evaluation of the first run: the last one of every run is sound.
    """
    random = np.random.default_rng(seed)
    evaluations = max(4, rows // 60)
    for (size, multiplier, _), name in source.list_runs().items():
        tokens = 20 * float(multiplier) * _SIZES[size]
        records = _draw_run(size, tokens, evaluations, random)
        if (size, multiplier) == ("190M", "0.5"):
            records[1:1] = _make_defective(records)
        _write_csv(Path(folder) / name, records)
    for size, name in source.TARGETS.items():
        records = _draw_run(size, _TARGET_TOKENS[size], 1 if size == "7B" else evaluations, random)
        for missing in {source.STEP, source.TOKENS} - set(source.progress_columns(size)):
            for record in records:
                del record[missing]
        _write_csv(Path(folder) / name, records)
    write_text(Path(folder) / "LICENSE", "Generated text in the place of a license.\n")


def _draw_run(
    size: str,
    tokens: float,
    evaluations: int,
    random: np.random.Generator,
) -> list[dict[str, object]]:
    """Return the evaluations of a run at equal distances; only the last one follows the law."""
    steps = int(tokens / _BATCH_TOKENS)
    records = []
    for number in range(1, evaluations + 1):
        step = steps * number // evaluations
        loss = law_of(_SIZES[size], step * _BATCH_TOKENS) * (1 if number == evaluations else 1.02)
        record: dict[str, object] = {source.STEP: step}
        for position, column in enumerate(source.LOSSES.values()):
            record[column] = loss * (1 + position / 10) * np.exp(random.normal(0, _NOISE))
        for parts in source.QUESTIONS.values():
            for part in parts:
                bits = 0.4 * loss * np.exp(random.normal(0, _NOISE))
                record[source.bpb_column(part)] = bits
                record[source.accuracy_column(part)] = 0.25 + 0.75 / (1 + np.exp(6 * (bits - 0.9)))
        record[source.TOKENS] = float(step * _BATCH_TOKENS)
        record[source.PEAK_RATE] = 1e-3
        record[source.BATCH] = _BATCH_TOKENS
        records.append(record)
    return records


def _make_defective(records: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return evaluations with one defect each, made of the first ones."""
    loss = source.LOSSES["c4_en"]
    accuracy = source.accuracy_column("hellaswag_val")
    defects: list[dict[str, object]] = [
        {source.STEP: 1, loss: "nan"},
        {source.STEP: 2, loss: "-1.5"},
        {source.STEP: 3, accuracy: "1.5"},
        {source.STEP: records[0][source.STEP]},
        {source.STEP: 4, source.BATCH: f"{_BATCH_TOKENS},1"},
    ]
    return [{**records[0], **defect} for defect in defects]


def _write_csv(path: Path, records: list[dict[str, object]]) -> None:
    # a defect of the field count is a comma inside a value
    rows: list[list[object]] = [list(records[0]), *(list(record.values()) for record in records)]
    lines = [",".join(map(str, row)) for row in rows]
    write_text(path, "".join(f"{line}\n" for line in lines))
