"""Rows per CPU-second that `ncpp` trains, beside a plain torch loop with the same network and loader.

Run: python benchmarks/ncpp_throughput.py [--rows 8192] [--epochs 2]
Data are generated: 110 columns in four groups (80 numerical, 20 categorical, 10 flags), like the SPEC tables. One
thread; CPU time of the process, so other load on the machine matters little. One row in one epoch counts as one row.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas as pd
import torch

from perfcast.encoding.tokens import TokenEncoder
from perfcast.predictors.ncpp import NCPP
from perfcast.schema import Column, Kind, Role
from perfcast.training.data import Batches, Rows
from perfcast.training.loop import reproducible, train
from perfcast.training.module import Schedule, masked_huber

PUBLISHED_ROWS_PER_CPU_SECOND = 54
GOAL = 2500
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


def plain_loop(network: torch.nn.Module, rows: Rows, schedule: Schedule) -> None:
    optimizer = torch.optim.AdamW(network.parameters(), lr=schedule.learning_rate, fused=True)
    network.train()
    for _ in range(schedule.epochs):
        for batch in Batches(rows, schedule.batch_rows, shuffle_seed=0):
            optimizer.zero_grad()
            masked_huber(network(batch), batch.targets, schedule.huber).backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), schedule.gradient_norm)
            optimizer.step()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=8192)
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()
    frame, columns, targets = generated(options.rows)
    encoder = TokenEncoder().fit(frame, columns)
    rows = Rows.of(encoder.transform(frame), targets)
    predictor = NCPP(epochs=options.epochs, least_steps=0)
    schedule = predictor.schedule()
    speeds = {}
    with reproducible(0):
        # The first steps pay for imports and memory, which are no part of the speed.
        train(predictor.network(encoder, 1), rows.take(slice(0, 512)), None, schedule, 0)
        for name in ("lightning", "plain loop"):
            network = predictor.network(encoder, 1)
            start = time.process_time()
            if name == "lightning":
                train(network, rows, None, schedule, 0)
            else:
                plain_loop(network, rows, schedule)
            speeds[name] = options.rows * options.epochs / (time.process_time() - start)
    parameters = sum(parameter.numel() for parameter in predictor.network(encoder, 1).parameters())
    print(f"columns {len(columns)} ({len(encoder.categories)} categorical), groups {len(encoder.groups)}")
    print(f"parameters {parameters:,}")
    for name, speed in speeds.items():
        print(f"{name:10s} {speed:8.0f} rows per CPU-second")
    ours = speeds["lightning"]
    print(f"lightning / plain loop   {ours / speeds['plain loop']:.2f}")
    print(f"lightning / goal         {ours / GOAL:.2f} (goal {GOAL})")
    published = PUBLISHED_ROWS_PER_CPU_SECOND
    print(f"lightning / published    {ours / published:.0f} (published code {published})")


if __name__ == "__main__":
    main()
