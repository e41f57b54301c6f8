"""Files of a measurement: the table, and the description of the machine, or of its GPU, that was measured."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from perfcast.microbench.machine import describe_machine
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_path, check_writable, write_json


def require_clean(clean: int, measured: int) -> None:
    """Raise UserError when other work interrupted every configuration."""
    if not clean:
        raise UserError(
            "a measurement needs an idle core",
            f"other work interrupted every one of {measured} configurations",
            "try again on an idle machine, or with a larger --budget-minutes",
        )


def check_out(folder: Path, name: str) -> None:
    """Raise what `write_measurement` would when it cannot write, before anything is measured."""
    for ending in (".csv.gz", ".json"):
        check_writable(folder / f"{name}{ending}")


def write_measurement(folder: Path, name: str, frame: pd.DataFrame, device: str = "cpu") -> None:
    """Write <name>.csv.gz and <name>.json, the description of the machine, into the folder."""
    with atomic_path(folder / f"{name}.csv.gz") as path:
        # no file name and no time in the header, so that equal tables give equal bytes
        path.write_bytes(gzip.compress(frame.to_csv(index=False, lineterminator="\n").encode(), mtime=0))
    write_json(folder / f"{name}.json", describe_machine() | (gpu_as_machine() if device == "cuda" else {}))


def require_device(device: str) -> None:
    """Raise UserError where the device is a GPU that torch cannot use."""
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda needs a GPU that torch can use", "there is none", "choose --device cpu")


def wait_for(device: str) -> None:
    """Return when the device has ended what was started; a processor has already."""
    if device == "cuda":
        torch.cuda.synchronize()


def gpu_as_machine() -> dict[str, Any]:
    """Return what replaces the processor's facts in the description of a machine whose GPU was measured.

    Multiprocessors stand for cores. Caches of a multiprocessor are unknown to torch.
    """
    card = torch.cuda.get_device_properties(0)
    unknown = dict.fromkeys(("cpu_vendor", "threads_per_core", "sockets", "l1d_kib", "l1i_kib", "l3_kib"))
    return unknown | {
        "cpu_model": card.name,
        "cores": card.multi_processor_count,
        "l2_kib": card.L2_cache_size / 2**10,
        "memory_gib": round(card.total_memory / 2**30, 1),
        "flags": [],
    }
