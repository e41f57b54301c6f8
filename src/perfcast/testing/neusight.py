"""Generated archive of kernels on GPUs, shaped like the packed one, with its known defects.

The numbers are made up: they follow operations and bytes with noise, and describe no real GPU.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.data.sources.neusight import ARCHIVE, NEW_GPUS, TRAINING_GPUS, facts_file, list_tables
from perfcast.testing.gpperf import write_archive

_OPERATIONS = {"elem": ("add", "addu", "relu", "tanh"), "ln": ("ln",), "softmax": ("softmax",)}


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write the archive: about `rows` kernels, and each known defect once."""
    random = np.random.default_rng(seed)
    gpus = {
        gpu: {
            **{"Device": gpu, "Dev_Mem": 16, "Mem_Bw": 200 * (number + 1), "Num_Sm": 20 * (number + 1)},
            **{"Freq": 1500, "SingleFLOPs": 5000 * (number + 1), "L2Cache": 4 * (number + 1)},
        }
        for number, gpu in enumerate((*TRAINING_GPUS, *NEW_GPUS))
    }
    files = list_tables()
    count = max(4, rows // len(files))
    contents = {facts_file(gpu): json.dumps(facts).encode() for gpu, facts in gpus.items()}
    for name, (table, subset) in files.items():
        single = name.rpartition("/")[2].removesuffix(".csv")
        known = [single] if single in gpus else list(TRAINING_GPUS) if subset == "train" else list(gpus)
        frame = _draw(table, known, max(count, len(known)), gpus, random)
        if subset == "test":
            frame = pd.concat([frame, frame.iloc[:1], _make_defective(frame)], ignore_index=True)
        contents[name] = frame.to_csv(index=False).encode()
    write_archive(Path(folder) / ARCHIVE, {**contents, "LICENSE": b"Generated text in the place of a license.\n"})


def _draw(
    table: str, known: list[str], count: int, gpus: dict[str, dict[str, object]], random: np.random.Generator
) -> pd.DataFrame:
    device = [known[number % len(known)] for number in range(count)]
    peak, bandwidth = (np.array([float(str(gpus[gpu][key])) for gpu in device]) for key in ("SingleFLOPs", "Mem_Bw"))
    if table in _OPERATIONS:
        shape = pd.DataFrame({"B": random.integers(4000, 16000, count), "H": random.integers(500, 4100, count)})
        operation = [_OPERATIONS[table][number % len(_OPERATIONS[table])] for number in range(count)]
        time = 8 * shape["B"] * shape["H"] / bandwidth / 1e6
    else:
        shape = pd.DataFrame(random.integers(8, 1025, (count, 4)), columns=list("BMNK"))
        if table == "linear":
            shape["B"] = 1
        operation = [table] * count
        time = 2 * shape.prod(axis=1) / peak / 1e6
    time = (0.02 + time / 0.6) * np.exp(random.normal(0, 0.05, count))
    return pd.DataFrame({"OPName": operation, "Latency": time, "Device": device, "Kernel Name": "made up"}).join(shape)


def _make_defective(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the first row with one defect each."""
    defects: list[dict[str, object]] = [{"Latency": -1.0}, {"Latency": np.nan}, {"Device": "made up"}, {"B": 0}]
    return pd.DataFrame([{**frame.iloc[0].to_dict(), **defect} for defect in defects])
