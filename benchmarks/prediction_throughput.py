"""Rows per second that a stored model predicts, with one process per core.

Run: python benchmarks/prediction_throughput.py MODEL_FOLDER TABLE [--processes 2] [--rows 20000]
MODEL_FOLDER is results/runs/<dataset>/<split>/<predictor>/model, TABLE is results/features/<dataset>.parquet. Every
process loads the model, predicts a few rows, waits for the others, and predicts all rows on one thread. The time is
from the first start to the last end, with the encoding of the rows and without the loading.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from pathlib import Path
from typing import Any

GOAL = 20_000


def predict(folder: Path, table: Path, rows: int, barrier: Any, answers: Any) -> None:
    import torch

    from perfcast.predictors.predictor import load_predictor
    from perfcast.schema.table_files import read_table

    torch.set_num_threads(1)
    began = time.perf_counter()
    predictor = load_predictor(folder)
    loaded = time.perf_counter() - began
    frame = read_table(table).frame
    sample = frame.sample(rows, replace=rows > len(frame), random_state=0)[predictor.input_names()]
    predictor.predict(sample.iloc[:100])
    barrier.wait()
    start, cpu = time.time(), time.process_time()
    predictor.predict(sample)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    answers.put((start, time.time(), time.process_time() - cpu, loaded, memory))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("table", type=Path)
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--rows", type=int, default=20_000, help="rows for each process")
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(options.processes), context.Queue()
    arguments = (options.folder, options.table, options.rows, barrier, answers)
    processes = [context.Process(target=predict, args=arguments) for _ in range(options.processes)]
    for process in processes:
        process.start()
    starts, ends, cpu, loaded, memory = zip(*[answers.get() for _ in processes], strict=True)
    for process in processes:
        process.join()
    total = options.rows * options.processes
    speed = total / (max(ends) - min(starts))
    print(f"rows                 {total:10,d} in {options.processes} processes")
    print(f"loading a model      {max(loaded):10.1f} s")
    print(f"memory of a process  {max(memory):10.0f} MiB")
    print(f"rows per CPU-second  {total / sum(cpu):10,.0f}")
    print(f"rows per second      {speed:10,.0f}")
    print(f"speed / goal         {speed / GOAL:10.2f} (goal {GOAL:,})")


if __name__ == "__main__":
    main()
