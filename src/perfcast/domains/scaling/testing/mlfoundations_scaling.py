"""Generated results of over-trained language models, shaped like the published files, with possible defects.

The numbers are made up: they follow a scaling law with noise, and describe no real model.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from perfcast.domains.scaling.sources.mlfoundations_scaling import (
    TASK_COLUMNS,
    TASKS,
    evaluation_file,
    model_file,
)
from perfcast.utils.io import write_json, write_text

SIZES = {
    "d=96_l=8_h=4": 10_569_312,
    "d=512_l=8_h=4": 78_914_048,
    "d=576_l=24_h=8": 153_677_376,
    "open_lm_1b": 1.44e9,
}
"""Parameters by name of the size."""
MULTIPLIERS = (0.5, 1.0, 4.0, 16.0)
TRAINING_SETS = ("c4_original", "rpj", "rw_original")
QUESTIONS = {
    "hellaswag": (10042, 25),
    "piqa": (1838, 50),
    "arc_easy": (2376, 25),
    "jeopardy": (2117, 0),
}
"""Task -> number of questions, and percentage of a random choice."""
VALIDATION_SETS = ("openlm", "c4_val")
_LAW = {"E": 1.8, "A": 120.0, "B": 150.0, "eta": 0.125}


def law_of(params: float, tokens: float) -> float:
    """Return the generated loss of a model without noise, in nat per token."""
    power = 2 * _LAW["eta"]
    return float(_LAW["E"] + _LAW["A"] / params**power + _LAW["B"] / tokens**power)


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write the files of 48 models, with each known defect once; `rows` has no influence.

    Of the first model, one loss is negative, one accuracy is above 1, and one task is unknown.
    """
    del rows
    random = np.random.default_rng(seed)
    number = 0
    for training_set in TRAINING_SETS:
        for size, params in SIZES.items():
            for multiplier in MULTIPLIERS:
                name = f"{training_set}-{size}-{multiplier}"
                model, evaluation = _draw_model(name, training_set, params, multiplier, random)
                if number == 0:
                    model["results"][0]["loss"] = -1.0
                    evaluation["eval_metrics"]["icl"] |= {
                        "piqa": 1.5,
                        "made_up_task": 0.5,
                        "jeopardy": 0.0,
                    }
                write_json(folder / model_file(name), model)
                date = f"2024_{1 + number // 24:02d}_{1 + number % 24:02d}-12_00_00"
                write_json(folder / evaluation_file(name), {**evaluation, "creation_date": date})
                number += 1
    table = [TASK_COLUMNS, *((task, *facts) for task, facts in QUESTIONS.items())]
    lines = [",".join(map(str, row)) + "\n" for row in table]
    write_text(folder / TASKS, "".join(lines))
    write_text(folder / "LICENSE.txt", "Generated text in the place of a license.\n")


def _draw_model(
    name: str,
    training_set: str,
    params: float,
    multiplier: float,
    random: np.random.Generator,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the content of both files of a model."""
    tokens = 20 * multiplier * params
    loss = law_of(params, tokens) * (1 + 0.02 * TRAINING_SETS.index(training_set))
    results = []
    for position, validation_set in enumerate(VALIDATION_SETS):
        value = loss * (1 + position / 10) * np.exp(random.normal(0, 2e-3))
        results.append(
            {
                "loss": value,
                "loss_tokens_lower_95": value * 0.997,
                "loss_tokens_upper_95": value * 1.003,
                "samples_per_second": 1e5,
                "val_data": [f"made_up/{validation_set}/shard_0.tar"],
            }
        )
    accuracies = {}
    for task, (questions, percentage) in QUESTIONS.items():
        share = percentage / 100 + (1 - percentage / 100) / (1 + np.exp(3 * (loss - 3.0)))
        accuracies[task] = float(random.binomial(questions, share) / questions)
    hyperparameters = {
        "params": params,
        "params_no_embed": 0.8 * params,
        "tokens": tokens,
        "lr": 3e-3,
        "wd": 0.033,
        "warmup": 2000,
        "cd": 3e-5,
        "global_bs": 512,
        "chinchilla_multiplier": multiplier,
    }
    model = {
        "name": name,
        "dataset_name": training_set,
        "hyperparameters": hyperparameters,
        "results": results,
    }
    return model, {"eval_metrics": {"icl": accuracies}}
