"""Rows per CPU-second that a network trains, beside a plain torch loop with the same network and loader.

Run: python benchmarks/ncpp_throughput.py [ncpp group_pooling mlp] [--rows 8192] [--epochs 1] [--rounds 5]
Data are generated: 110 columns in four groups (80 numerical, 20 categorical, 10 flags), like the SPEC tables. One
thread; CPU time of the process, so other load on the machine matters little; both loops take turns. One row in one
epoch counts as one row. Writes the medians of the ratios of turns to results/performance/lightning.csv.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from perfcast.config.predictor_conf import read_predictor
from perfcast.features.encoding.tokens import TokenEncoder
from perfcast.nn.embedding import TokenBatch, mask_inputs
from perfcast.predictors.neural.attention import NCPP
from perfcast.predictors.neural.group_pooling import GroupPoolingPredictor
from perfcast.predictors.neural.mlp import MLP
from perfcast.predictors.neural.neural_predictor import NeuralPredictor
from perfcast.schema.table import Column, Kind, Role
from perfcast.training.lightning_modules import masked_huber, train
from perfcast.training.loop import BatchLoader, TrainingConfig, reproducible

PUBLISHED_ROWS_PER_CPU_SECOND = 54
GOAL = 2500
BUDGET = 1.1
CONF, OUT = Path(__file__).parents[1] / "conf", Path("results/performance/lightning.csv")
PREDICTORS = {"ncpp": NCPP, "group_pooling": GroupPoolingPredictor, "mlp": MLP}
GROUPS = {"processor": 45, "memory": 20, "system": 25, "workload": 20}


def generated(rows: int) -> tuple[pd.DataFrame, tuple[Column, ...], np.ndarray]:
    rng = np.random.default_rng(0)
    frame, columns = {}, []
    for group, count in GROUPS.items():
        for position in range(count):
            name = f"{group}_{position:02d}"
            kind = Kind.CATEGORICAL if position % 5 == 4 and len(columns) < 105 else Kind.NUMERICAL
            if kind is Kind.CATEGORICAL:
                frame[name] = np.array([f"{name} value {v}" for v in range(40)])[rng.integers(0, 40, rows)]
            elif position % 9 == 0:
                frame[name] = rng.integers(0, 2, rows).astype(float)
            else:
                frame[name] = np.where(rng.random(rows) < 0.05, np.nan, np.exp(rng.normal(size=rows)))
            columns.append(Column(name, kind, Role.FEATURE, group))
    return pd.DataFrame(frame), tuple(columns), rng.normal(size=(rows, 1))


def plain_loop(network: torch.nn.Module, rows: TokenBatch, config: TrainingConfig) -> None:
    optimizer = torch.optim.AdamW(network.parameters(), lr=config.learning_rate, fused=True)
    network.train()
    for _ in range(config.epochs):
        for batch in BatchLoader(rows, config.batch_size, shuffle_seed=0):
            optimizer.zero_grad()
            predicted = network(mask_inputs(batch, config.mask_rate))
            masked_huber(predicted, batch.targets, config.huber_delta).backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), config.gradient_clip_val)
            optimizer.step()


def predictor_of(name: str, epochs: int) -> NeuralPredictor:
    """Return the predictor whose network is timed, with the hyperparameters of its conf."""
    return PREDICTORS[name](**{**read_predictor(CONF, name).params, "epochs": epochs, "min_steps": 0})


def compare(name: str, encoder: TokenEncoder, rows: TokenBatch, epochs: int, repetitions: int) -> float:
    """Print the speed of both loops, and return the ratio of their times."""
    predictor = predictor_of(name, epochs)
    config, spec = predictor.training_config(), encoder.spec
    seconds: dict[str, list[float]] = {"Lightning": [], "plain loop": []}
    with reproducible(0):
        # The first steps pay for imports and memory, which are no part of the speed.
        train(predictor.build_network(spec, 1), rows.take(slice(0, 512)), None, config, 0)
        for turn in range(repetitions):
            for loop in sorted(seconds, reverse=bool(turn % 2)):
                network = predictor.build_network(spec, 1)
                start = time.process_time()
                if loop == "Lightning":
                    train(network, rows, None, config, 0)
                else:
                    plain_loop(network, rows, config)
                seconds[loop].append(time.process_time() - start)
    speeds = {loop: len(rows) * epochs / statistics.median(taken) for loop, taken in seconds.items()}
    ratios = [ours / plain for ours, plain in zip(*seconds.values(), strict=True)]
    parameters = sum(parameter.numel() for parameter in predictor.build_network(spec, 1).parameters())
    print(f"{name}: {parameters:,} parameters")
    for loop, speed in speeds.items():
        print(f"  {loop:22s} {speed:8.0f} rows per CPU-second")
    print(f"  time / plain loop      {statistics.median(ratios):8.2f} (budget {BUDGET}; rounds {_range(ratios)})")
    if name == "ncpp":
        print(f"  speed / goal           {speeds['Lightning'] / GOAL:8.2f} (goal {GOAL})")
        published = PUBLISHED_ROWS_PER_CPU_SECOND
        print(f"  speed / published code {speeds['Lightning'] / published:8.0f} (it trains {published})")
    return statistics.median(ratios)


def _range(values: list[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(PREDICTORS))
    parser.add_argument("--rows", type=int, default=8192)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    frame, columns, targets = generated(options.rows)
    encoder = TokenEncoder().fit(frame, columns)
    rows = TokenBatch.from_tokens(encoder.transform(frame), targets)
    print(f"columns {len(columns)} ({len(encoder.categories)} categorical), groups {len(encoder.groups)}")
    measured = [
        {
            "measure": f"step of {name} by Lightning, in steps of a plain loop",
            "before": None,
            "now": compare(name, encoder, rows, options.epochs, options.rounds),
            "goal": BUDGET if name == "ncpp" else None,
            "unit": "ratio",
            "reference_seconds": None,
        }
        for name in options.names
    ]
    pd.DataFrame(measured).to_csv(OUT, index=False, float_format="%.3g", lineterminator="\n")


if __name__ == "__main__":
    main()
