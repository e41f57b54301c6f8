"""Runs chosen by `perfcast plan` against random runs of equal cost, on held-out runs of OLMo's ladder.

For every target a few of the smallest runs are known. The plan chooses among the other runs of at most a tenth of its
compute; random plans draw among the same runs. Their measured results join the known ones, and the laws predict
the target, whose results nobody has seen. A second part generates results by the fitted laws with their noise, so that
the error without a wrong law is known.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.domains.scaling.predictors.curve_fit import SharesOfRuns
from perfcast.domains.scaling.predictors.law_design import (
    LawDesign,
    add_runs,
    choose_runs,
    design_accuracy,
    design_loss,
    mean_log_spread,
)
from perfcast.schema.table_files import read_table
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_path

TARGETS = ("1B-10xC", "3B-1xC", "3B-2xC", "3B-5xC", "3B-10xC")
KNOWN = ("190M-0.5xC", "190M-1xC", "190M-2xC", "370M-0.5xC", "370M-1xC", "370M-2xC")
COUNT = 4
"""Runs of a plan at most."""
TASKS = ("mmlu", "hellaswag", "arc_challenge", "arc_easy", "piqa", "csqa", "socialiqa", "openbookqa")


class Ladder:
    """Results of the ladder: bits per byte and accuracy of each task by run, chance, and logarithms of the runs."""

    def __init__(self, path: Path) -> None:
        frame = read_table(path).frame
        frame = frame[~frame["run"].astype(str).str.contains("rerun|target")]
        values = frame.pivot_table(index="run", columns="task", values="value", observed=True)
        first = frame.drop_duplicates("run").set_index("run").loc[values.index]
        self.runs = values.index.astype(str).tolist()
        self.logs = np.log(first[["params", "tokens"]].to_numpy(dtype=float))
        self.compute = 6 * np.exp(self.logs.sum(axis=1))
        self.bits = values[[f"{task}_bpb" for task in TASKS]].to_numpy(dtype=float)
        self.shares = values[[f"{task}_accuracy" for task in TASKS]].to_numpy(dtype=float)
        chance = frame.drop_duplicates("task").set_index("task")["chance"]
        self.chance = [float(chance[f"{task}_accuracy"]) for task in TASKS]

    def designs(
        self, rows: Sequence[int], target: int, candidates: Sequence[int], bits: np.ndarray, shares: np.ndarray
    ) -> list[LawDesign]:
        """Return the designs of all bits per byte, then those of all accuracies."""
        known, ahead, logs = self.logs[list(rows)], self.logs[target], self.logs[list(candidates)]
        losses = [design_loss(known, bits[list(rows), task], ahead, logs) for task in range(len(TASKS))]
        return losses + [
            design_accuracy(known, SharesOfRuns(bits[list(rows), task], shares[list(rows), task], chance), ahead, logs)
            for task, chance in enumerate(self.chance)
        ]


def compare(ladder: Ladder, target: int, draws: int, seed: int, simulated: bool) -> Iterator[dict[str, object]]:
    """Yield error, expected and reached spread of the plan and of random plans of one target."""
    rng = np.random.default_rng(seed)
    bits, shares = ladder.bits, ladder.shares
    known = [ladder.runs.index(name) for name in KNOWN]
    candidates = [
        run for run, cost in enumerate(ladder.compute) if run not in known and cost <= ladder.compute[target] / 10
    ]
    if simulated:
        bits, shares = _simulate(ladder, rng)
    measured = np.concatenate([bits[target], shares[target]])
    first = ladder.designs(known, target, candidates, bits, shares)
    budget = float(np.sort(ladder.compute[candidates])[-2:].sum())
    compute = ladder.compute[candidates]
    chosen = choose_runs(first, compute, budget, COUNT)
    spent = float(compute[chosen].sum())
    plans = [("known runs alone", []), ("plan", chosen)]
    while len(plans) < draws + 2:
        drawn = rng.permutation(len(candidates))[: rng.integers(1, COUNT + 1)].tolist()
        if 0.8 * spent <= compute[drawn].sum() <= 1.05 * spent:
            plans.append(("random", drawn))
    for name, plan in plans:
        rows = [*known, *(candidates[run] for run in plan)]
        after = ladder.designs(rows, target, candidates[:1], bits, shares)
        logs = np.log(np.array([design.prediction for design in after]) / measured)
        spread = np.array([design.spread for design in after])
        half = len(TASKS)
        yield {
            **{"data": "simulated" if simulated else "ladder", "target": ladder.runs[target], "runs": name},
            **{"names": " ".join(ladder.runs[candidates[run]] for run in plan), "cost": float(compute[plan].sum())},
            "expected_width": float(np.exp(mean_log_spread(add_runs(first, plan)) - mean_log_spread(first))),
            "bpb_error": 100 * float(np.abs(np.expm1(logs[:half])).mean()),
            "accuracy_error": 100 * float(np.abs(np.expm1(logs[half:]) * measured[half:]).mean()),
            "bpb_width": 100 * 2 * 1.645 * float(spread[:half].mean()),
            "accuracy_width": 100 * 2 * 1.645 * float((spread[half:] * measured[half:]).mean()),
            "covered": 100 * float((np.abs(logs) <= 1.645 * spread).mean()),
        }


def _simulate(ladder: Ladder, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return results of all runs that follow the laws fitted to the whole ladder, with their noise."""
    every = list(range(len(ladder.runs)))
    bits, shares = np.empty_like(ladder.bits), np.empty_like(ladder.shares)
    for run in every:
        designs = ladder.designs(every, run, every[:1], ladder.bits, ladder.shares)
        for task, design in enumerate(designs):
            values = bits if task < len(TASKS) else shares
            values[run, task % len(TASKS)] = design.prediction * np.exp(rng.normal(0, design.noise))
    return bits, np.clip(shares, 0.01, 0.99)


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", type=Path, default=Path("results/systems/scaling/features/llm_ladder.parquet"))
    parser.add_argument("--draws", type=int, default=40, help="random plans for each target")
    parser.add_argument("--simulations", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path("results/leaderboard/studies/run_plans.csv"))
    options = parser.parse_args()
    ladder = Ladder(options.table)
    rows: list[dict[str, object]] = []
    for name in TARGETS:
        target = ladder.runs.index(name)
        rows += compare(ladder, target, options.draws, 0, simulated=False)
        for seed in range(options.simulations):
            rows += compare(ladder, target, options.draws, seed, simulated=True)
    frame = pd.DataFrame(rows)
    summary = frame.groupby(["data", "target", "runs"], sort=False).mean(numeric_only=True).reset_index()
    with atomic_path(options.out) as temporary:
        summary.to_csv(temporary, index=False, float_format="%.4g", lineterminator="\n")
    print(summary.to_string())


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        raise SystemExit(f"run_plans: {error}") from None
