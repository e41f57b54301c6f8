"""Generated archive of kernels and whole models on GPUs, shaped like the packed one, with its known defects.

The numbers are made up: they follow operations and bytes with noise, and describe no real GPU and no real model.
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.data.datasets.gpu_models.operation_graphs import LAYERS
from perfcast.data.sources.neusight import (
    ARCHIVE,
    MODES,
    NEW_GPUS,
    PHASES,
    RUN_COLUMNS,
    SUMMARY,
    TRAINING_GPUS,
    facts_file,
    graph_file,
    layers_file,
    list_tables,
)
from perfcast.testing.gpperf import write_archive

_MODELS = dict(zip(("bert_made_up", "gpt_made_up", "opt_made_up"), LAYERS.items(), strict=True))
"""Model with equal layers -> first and last operation of a layer."""
_WHOLE = "switch_made_up"
"""Model whose graph has all layers."""
_LAYERS, _HEADS, _TOKENS = 3, 4, 128
_OPERATIONS = {"elem": ("add", "addu", "relu", "tanh"), "ln": ("ln",), "softmax": ("softmax",)}


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write the archive: about `rows` kernels and as many runs of models, and each known defect once."""
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
    contents |= _write_models(gpus, max(1, rows // 64), random)
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


def _write_models(gpus: dict[str, dict[str, object]], batches: int, random: np.random.Generator) -> dict[str, bytes]:
    """Return the summary, the graphs and the numbers of layers of runs of every model in some batches on every GPU."""
    contents, rows = {}, []
    for number, model in enumerate((*_MODELS, _WHOLE)):
        width = 256 * (number + 1)
        for batch, mode in product(range(1, batches + 1), MODES):
            run = f"{model}-{mode}-{_TOKENS}-{batch}"
            contents[graph_file(run)] = _write_graph(model, mode, batch * _TOKENS, width).encode()
            layers = 0 if model == _WHOLE else _LAYERS
            flops = 24 * batch * _TOKENS * width**2 * max(layers, 1) * (3 if mode == "train" else 1)
            for gpu, facts in gpus.items():
                device = gpu.replace(" ", "_")
                contents[layers_file(device, run)] = json.dumps({"num_layer": layers, "made_up": True}).encode()
                time = (0.2 + flops / float(str(facts["SingleFLOPs"])) / 6e5) * np.exp(random.normal(0, 0.05))
                texts = (model, str(_TOKENS), str(batch), device, mode, "", str(time), str(time * 1.1))
                rows.append(dict(zip((*RUN_COLUMNS, "neusight_all_e2e_latency"), texts, strict=True)))
    defects = [
        ("option", ("fusion", "dp4", "tp4", "pp4_1", "made_up")),
        *((name, ("made_up",)) for name in ("device", "mode", "model_name", "batch")),
        ("label_all_e2e_latency", ("-1.0", "")),
        ("seqlen", ("0.5",)),
    ]
    defective = [{**rows[0], name: text} for name, texts in defects for text in texts]
    frame = pd.DataFrame([*rows, rows[0], *defective])
    return {**contents, SUMMARY: frame.to_csv(index=False).encode()}


def _write_graph(model: str, mode: str, tokens: int, width: int) -> str:
    """Return the graph of a model as a table: an embedding, a layer, and the output."""
    first, last = _MODELS.get(model, ("layer", "end"))
    linear, heads = ["Linear", (tokens, width, width)], (_HEADS, tokens, width // _HEADS, tokens)
    forward: list[tuple[str, list[object]]] = [
        ("size", [["MEM", ((1,), (1,))]]),
        ("embedding", [["MEM", ((tokens, 1), (tokens, width))]]),
        (first, [["VECln", (tokens, width)], linear]),
        ("scores", [["BMM", heads], ["VECsoftmax", (_HEADS * tokens, tokens)]]),
        (last, [linear, ["VECadd", (tokens, width)], ["VECtanh", (tokens, width)]]),
        ("expert", [["Linear", (0, width, width)]]),
        ("output", [linear]),
    ]
    backward: list[object] = [linear, linear] if mode == "train" else []
    added: list[object] = [["VECadd", [1, width * width]]] if mode == "train" else []
    rows = [(name, str(kernels), str(backward), str(added)) for name, kernels in forward]
    return pd.DataFrame(rows, columns=["Name", *PHASES]).to_csv(index=False)
