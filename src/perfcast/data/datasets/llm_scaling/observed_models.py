"""Emergent abilities of public language models, with their scores in common benchmarks: one row per model and ability.

Facts of the files:
- Compute is 6 x parameters x tokens, in units of 1e21. Models whose training length is not public have none; their rows
  are rejected, because every split and law of training runs needs it.
- Abilities are shares of exact answers. Those of small models are 0 or at chance; both are excluded from evaluation.
  A share of 0 is stored as half a question, because targets are positive.
- Scores of a model in common benchmarks are known before its abilities are measured: they are features. They come from
  several evaluation tools, so models of different families are less comparable than those of one.

Source: Ruan, Maddison and Hashimoto, Observational Scaling Laws, 2024, arXiv 2405.10938.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.datasets.host.measured_tables import describe_first_bad, parse_numbers, quarantine
from perfcast.data.datasets.llm_scaling.scaling_columns import (
    ACCURACY,
    COMPUTE_COLUMN,
    PLACE_COLUMNS,
    RESULT_COLUMNS,
    TARGET_COLUMN,
    TRAINING_COLUMNS,
    number,
    word,
)
from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import Rejection, build_rejected_frame, read_rows, require_rows
from perfcast.schema.table import Column, Kind, Role, Tag, build_table

SOURCE = "obsscaling"
BENCHMARK_FILE, ABILITY_FILE = "base_llm_benchmark_eval.csv", "base_llm_emergent_capability_eval.csv"
BENCHMARKS = {
    "MMLU": "mmlu",
    "ARC-C": "arc_challenge",
    "HellaSwag": "hellaswag",
    "Winograd": "winogrande",
    "TruthfulQA": "truthfulqa",
    "GSM8K": "gsm8k",
    "XWinograd": "xwinograd",
    "HumanEval": "humaneval",
}
"""Column of a common benchmark in the file -> column here."""
ABILITIES = {
    "parsinlu_qa_2_acc": ("parsinlu_qa", 0.25, 1050),
    "word_unscrambling_2_exact_match": ("word_unscrambling", 0.0, 1000),
    "ipa_transliterate_2_exact_match": ("ipa_transliterate", 0.0, 1003),
    "arithmetic_3ds_2_acc": ("subtraction_3_digits", 0.0, 2000),
    "arithmetic_3da_2_acc": ("addition_3_digits", 0.0, 2000),
    "arithmetic_2dm_2_acc": ("multiplication_2_digits", 0.0, 2000),
    "arithmetic_2da_2_acc": ("addition_2_digits", 0.0, 2000),
}
"""Column of an ability in the file -> its name, share of a random choice, and number of questions."""
CHANCE_ERRORS = 2.0
"""Standard errors above a random choice up to which a share is that of chance."""
MIN_VARIANCE = 1e-4
"""Least variance of one answer: few right answers mean nothing where chance is 0."""

_SIZE, _TOKENS, _COMPUTE = "Model Size (B)", "Pretraining Data Size (T)", "FLOPs (1E21)"
COLUMNS = (
    *RESULT_COLUMNS,
    word("model", Role.KEY, "model", "name of the model", Tag.BLOCK, Tag.CONFIG, Tag.ENTITY),
    word("training_set", Role.KEY, "training", "family of the model, whose models share a training set", Tag.SLICE),
    *TRAINING_COLUMNS,
    COMPUTE_COLUMN,
    *(number(name, "benchmark", f"share of correct answers in {text}", high=1) for text, name in BENCHMARKS.items()),
    TARGET_COLUMN,
    Column(
        "at_chance",
        Kind.NUMERICAL,
        Role.PROVENANCE,
        "evaluation",
        meaning="1 where a share is that of a random choice",
        low=0,
        tags=(Tag.EXCLUDED,),
    ),
    *PLACE_COLUMNS,
)


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the abilities of all models. An input row is one ability of a model.

    Raises:
        UserError: A file is absent or broken, or every row is rejected.
    """
    del options
    models, rejected_models = _read_models(raw[SOURCE])
    rows = read_rows(SOURCE, raw[SOURCE] / ABILITY_FILE, ["Model", *ABILITIES])
    parsed = parse_numbers(rows.frame, list(ABILITIES))
    known = parsed["Model"].isin(models.index)
    parts: list[pd.DataFrame] = []
    rejections: list[Rejection] = [*rejected_models, *rows.rejections]
    missing = 0
    for column, (ability, chance, questions) in ABILITIES.items():
        measured = parsed[f"{column}_text"].fillna("").astype(str).str.strip() != ""
        missing += int((~measured).sum())
        part = parsed[measured]
        good, rejected = quarantine(
            SOURCE,
            ABILITY_FILE,
            part,
            {
                "no_compute": part["Model"].where(~known[measured]),
                "not_a_number": describe_first_bad(part[[column]].isna(), part),
                "not_a_share": describe_first_bad((part[[column]] < 0) | (part[[column]] > 1), part),
            },
        )
        rejections += rejected
        limit = chance + CHANCE_ERRORS * np.sqrt(max(chance * (1 - chance), MIN_VARIANCE) / questions)
        parts.append(
            models.loc[good["Model"]].assign(
                model=good["Model"].to_numpy(),
                task=f"{ability}_{ACCURACY}",
                chance=chance,
                value=np.maximum(good[column].to_numpy(dtype=float), 0.5 / questions),
                at_chance=(good[column].to_numpy(dtype=float) <= limit).astype(float),
                source_line=good["line"].to_numpy(),
            )
        )
    frame = pd.concat(parts, ignore_index=True)
    require_rows(len(frame), str(raw[SOURCE] / ABILITY_FILE), rejections)
    frame = frame.assign(
        task_kind=ACCURACY, loss_task=None, source_file=ABILITY_FILE, result_id=frame["model"] + "|" + frame["task"]
    )
    return Standardized(
        table=build_table("llm_observational", frame, COLUMNS),
        rejected=build_rejected_frame(rejections),
        rows_in=len(frame) + len(rejections),
        quality={
            "models": int(frame["model"].nunique()),
            "families": int(frame["training_set"].nunique()),
            "not_measured": missing,
            "at_chance": int(frame["at_chance"].sum()),
        },
    )


def _read_models(folder: Path) -> tuple[pd.DataFrame, list[Rejection]]:
    """Return the facts and benchmarks of the models of known compute by name, and broken lines."""
    rows = read_rows(SOURCE, folder / BENCHMARK_FILE, ["Model", "Model Family", _SIZE, _TOKENS, _COMPUTE, *BENCHMARKS])
    parsed = parse_numbers(rows.frame, [_SIZE, _TOKENS, _COMPUTE, *BENCHMARKS]).drop_duplicates("Model")
    sound = (parsed[[_SIZE, _TOKENS, _COMPUTE]] > 0).all(axis=1)
    shares = parsed[list(BENCHMARKS)]
    parsed = parsed.assign(**shares.where((shares >= 0) & (shares <= 1)))[sound]
    models = pd.DataFrame(
        {
            "training_set": parsed["Model Family"].to_numpy(),
            "params": parsed[_SIZE].to_numpy() * 1e9,
            "tokens": parsed[_TOKENS].to_numpy() * 1e12,
            "compute": parsed[_COMPUTE].to_numpy() * 1e3,
            **{name: parsed[text].to_numpy() for text, name in BENCHMARKS.items()},
        },
        index=pd.Index(parsed["Model"].to_numpy(), name=None),
    )
    return models, list(rows.rejections)
