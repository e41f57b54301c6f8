"""Networks trained on the processor and on the GPU of this machine: error, seconds of an epoch, utilization.

Run: python benchmarks/gpu_training.py TABLE FOLDS [FOLDS ...] [--networks ncpp mlp] [--seeds 0 1 2] [--preset full]
     [--processes 12] [--bfloat16] [--out results/performance/gpu/training.csv]
TABLE is results/features/<dataset>.parquet, FOLDS results/splits/<dataset>/<split>.parquet; of each, the first fold.
Every network trains on one thread, `--processes` at a time. On the GPU, the first seed of the first split trains alone,
so that its seconds and its utilization are its own; the others share the GPU. An epoch's seconds are the median without
the first epoch. The error is the MAPE of test rows, the mean of tasks: the same rows, order of batches and first
weights on both devices. With --bfloat16, networks train once more on the GPU with autocast to bfloat16.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import torch

from perfcast.config.dataset_conf import read_dataset
from perfcast.config.predictor_conf import read_predictor
from perfcast.experiment.fitting import fit_rows, predict_rows, tested_rows, training_rows
from perfcast.experiment.selection import predictor_factories
from perfcast.experiment.training import summarize_errors
from perfcast.schema.table_files import read_table
from perfcast.splits import read_folds
from perfcast.training.lightning_modules import Regression

CONF = Path(__file__).parents[1] / "conf"
NETWORKS = (
    *("ncpp", "ncpp_published", "group_pooling", "ft_transformer", "resnet", "mlp", "mlp_plr"),
    *("tabm", "tabm_ple", "gru", "lstm", "mac"),
)
CPU, GPU, GPU_BFLOAT16 = "cpu", "cuda", "cuda bfloat16"


@dataclass(frozen=True)
class Training:
    """One training to measure."""

    network: str
    folds: Path
    seed: int
    device: str


@dataclass(frozen=True)
class Measured:
    """Error, times and use of the GPU of one training.

    Units: percent, s, MiB. `utilization` is the share of time in which a kernel ran.
    """

    network: str
    split: str
    seed: int
    device: str
    alone: bool
    mape: float
    epochs: int
    epoch_seconds: float
    fit_seconds: float
    utilization: float
    gpu_mib: float


class _Utilization:
    """Mean utilization of the GPU while a block runs, in percent, as its driver samples it."""

    def __init__(self, measure: bool) -> None:
        self.samples: list[float] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True) if measure else None

    def __enter__(self) -> _Utilization:
        if self._thread:
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        if self._thread:
            self._thread.join()

    def mean(self) -> float:
        return float(np.mean(self.samples)) if self.samples else math.nan

    def _sample(self) -> None:
        while not self._done.wait(0.1):
            try:
                self.samples.append(float(torch.cuda.utilization()))
            except (ImportError, RuntimeError):  # the driver's library is not installed
                return


@contextlib.contextmanager
def _format(device: str) -> Iterator[None]:
    if device == GPU_BFLOAT16:
        # without the cache, which would keep the first weights for the whole block
        with torch.autocast("cuda", dtype=torch.bfloat16, cache_enabled=False):
            yield
    else:
        yield


def measure(training: Training, table_file: Path, preset: str, alone: bool) -> Measured:
    """Fit one network on the training rows of the first fold, and predict its test rows."""
    torch.set_num_threads(1)
    table = read_table(table_file)
    folds = read_folds(training.folds, table)
    subset = folds.iloc[:, 0].to_numpy()
    rows = training_rows(table, subset, read_dataset(CONF, table_file.stem).label_outlier)
    on_gpu = training.device != CPU
    machine = {"accelerator": "cuda" if on_gpu else "cpu", "devices": 1, "strategy": "auto"}
    factories = predictor_factories(read_predictor(CONF, training.network), preset, machine)
    predictor = next(iter(factories.values()))(training.seed)
    if on_gpu:
        torch.zeros(1, device="cuda")  # the first use of a GPU starts its driver, which is no training
        torch.cuda.reset_peak_memory_stats()
    ends: list[float] = []
    on_epoch_end = Regression.on_train_epoch_end

    def end_epoch(module: Regression) -> None:
        on_epoch_end(module)
        ends.append(time.perf_counter())

    begin = time.perf_counter()
    with (
        _Utilization(on_gpu and alone) as utilization,
        mock.patch.object(Regression, "on_train_epoch_end", end_epoch),
        _format(training.device),
    ):
        fit_rows(predictor, table, rows, subset[rows] == "validation")
    seconds = time.perf_counter() - begin
    predicted = predict_rows(predictor, table, tested_rows(table, subset), 0, training.seed)
    return Measured(
        training.network,
        training.folds.stem,
        training.seed,
        training.device,
        alone,
        summarize_errors(predicted)["mape"],
        len(ends),
        float(np.median(np.diff(ends))) if len(ends) > 1 else math.nan,
        seconds,
        utilization.mean(),
        torch.cuda.max_memory_allocated() / 2**20 if on_gpu else math.nan,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("folds", type=Path, nargs="+")
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--preset", choices=("quick", "full"), default="full")
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("--bfloat16", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("results/performance/gpu/training.csv"))
    options = parser.parse_args()
    devices = ([GPU, *([GPU_BFLOAT16] if options.bfloat16 else [])]) if torch.cuda.is_available() else []
    todo = [
        Training(network, folds, seed, device)
        for folds in options.folds
        for seed in options.seeds
        for network in options.networks
        for device in (CPU, *devices)
    ]
    first = (options.folds[0], options.seeds[0])
    alone = [job for job in todo if job.device != CPU and (job.folds, job.seed) == first]
    beside = [job for job in todo if job.device == CPU]
    later = [job for job in todo if job.device != CPU and job not in alone]
    measured: list[Measured] = []
    # spawned, because a process that used a GPU cannot be forked
    with (
        ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool,
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as single,
    ):
        first_jobs = [single.submit(measure, job, options.table, options.preset, True) for job in alone]
        first_jobs += [pool.submit(measure, job, options.table, options.preset, False) for job in beside]
        _collect(first_jobs, measured, options.out)
        _collect(
            [pool.submit(measure, job, options.table, options.preset, False) for job in later], measured, options.out
        )


def _collect(futures: list[Future[Measured]], measured: list[Measured], out: Path) -> None:
    """Add what was measured, print it, and write the table each time: a machine that is taken back loses nothing."""
    out.parent.mkdir(parents=True, exist_ok=True)
    for future in as_completed(futures):
        try:
            measured.append(future.result())
        except Exception as error:  # one network that fails must not lose the measurements of the others
            print(f"failed: {type(error).__name__}: {error}", flush=True)
            continue
        values = asdict(measured[-1]).values()
        print(*(f"{value:.4g}" if isinstance(value, float) else value for value in values), flush=True)
        table = pd.DataFrame(map(asdict, measured)).sort_values(["network", "split", "seed", "device"])
        table.to_csv(out, index=False, float_format="%.5g", lineterminator="\n")


if __name__ == "__main__":
    main()
