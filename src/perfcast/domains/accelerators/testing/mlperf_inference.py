"""Generated archive of benchmark results, shaped like the published one, with its known defects.

The numbers are made up: they follow peaks and bandwidths of real accelerators, and describe no real system.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np

from perfcast.domains.accelerators.catalog import read_accelerators, read_models
from perfcast.domains.accelerators.datasets.mlperf_rounds import (
    CONTENTS,
    ENTRY,
    PIVOT_FIELDS,
    PUBLISHED,
    SUMMARY_ENTRY,
)
from perfcast.domains.accelerators.sources.mlperf_inference import (
    ARCHIVE,
    ENTRIES,
    PIVOT,
    SUMMARY,
)
from perfcast.utils.io import atomic_path

_NAMES = (
    "A100 SXM 80GB",
    "A30",
    "L4",
    "L40S",
    "H100 SXM",
    "H200 SXM",
    "B200",
    "MI300X",
    "Xeon Platinum 8592+",
)
_MODELS = (
    "resnet",
    "bert-99",
    "bert-99.9",
    "gptj-99",
    "gptj-99.9",
    "llama2-70b-99",
    "llama2-70b-99.9",
)
_SUBMITTERS = ("Acorn", "Birch", "Cedar", "Dogwood", "Elm")
_HEAD = 16


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write the archive: about `rows` results of all rounds, and each known defect once."""
    random = np.random.default_rng(seed)
    files: dict[str, bytes] = {}
    per_round = max(16, rows // len(PUBLISHED))
    for number, name in enumerate(PUBLISHED):
        entries = [_entry(name, number, place, random) for place in range(per_round)]
        if name == "v5.0":
            files[f"dashboard/{PIVOT}"] = _pivot(entries).encode()
        elif name == "v5.1":
            files[f"results_v5.1/{SUMMARY}"] = json.dumps([_summary(entry) for entry in entries]).encode()
        else:
            files[f"results/{name}/{ENTRIES}"] = json.dumps([*entries, *_defects(entries, name)]).encode()
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_path(folder / ARCHIVE) as path:
        path.write_bytes(gzip.compress(_pack(files), mtime=0))


def _entry(
    name: str,
    number: int,
    place: int,
    random: np.random.Generator,
) -> dict[str, Any]:
    """Return an entry: every system runs each model in both scenarios."""
    run, scenario = divmod(place, 2)
    system, model = divmod(run, len(_MODELS))
    facts = read_accelerators().to_dict()
    model_name = _MODELS[model]
    accelerator = _NAMES[(system + number) % len(_NAMES)]
    is_processor = facts["kind"][accelerator] == "cpu"
    size = float(read_models()["params_1e9"].to_dict()[model_name.partition("-9")[0]])
    rate = float(facts["bf16_tflops"][accelerator]) ** 0.6 * float(facts["memory_gb_per_s"][accelerator]) ** 0.4
    rate *= 1.05**number / size**0.7
    count = 2 if is_processor else int(2 ** (system % 4))
    value = rate * count * (1.0, 0.9)[scenario] * float(np.exp(random.normal(0, 0.03)))
    record = {
        "round": name,
        "uid": f"{name}-{place}",
        "submitter": _SUBMITTERS[system % len(_SUBMITTERS)],
        "system": f"System {system} ({count}x {accelerator}, TensorRT)",
        "platform": f"P{system}",
        "model": model_name,
        "scenario": ("Offline", "Server")[scenario],
        "result": value,
        "unit": ("Samples/s", "Queries/s")[scenario],
        "accelerator_text": "N/A" if is_processor else accelerator,
        "per_node": 0 if is_processor else count,
        "nodes": 1,
        "sockets": 2,
        "cores": 64,
        "watts": 300 + 400 * count,
        "processor": accelerator if is_processor else "EPYC 7742",
        "software": f"TensorRT {8 + number}.0, CUDA 12",
        "availability": "available",
        "inferred": 0,
        "division": "closed",
    }
    return {ENTRY[field]: cell for field, cell in record.items()}


def _defects(entries: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Return entries with the defects of the published files."""
    first = entries[0]
    return [
        first,  # written twice
        {
            **first,
            "uid": "watts",
            "Result": None,
            "Units": "Watts",
            "Result_Power": 900.0,
        },
        {**first, "uid": "edge", "Scenario": "SingleStream", "Units": "Latency (ms)"},
        {**first, "uid": "slice", "accelerator_model_name": "NVIDIA A30 (1x1g.6gb MIG)"},
        {**first, "uid": "inferred", "inferred": 1},
        {**first, "uid": "unknown", "accelerator_model_name": "Accelerator of nobody"},
        {**first, "uid": "text", "Result": "fast", "Platform": "broken"},
    ]


def _summary(entry: dict[str, Any]) -> dict[str, Any]:
    renamed = {SUMMARY_ENTRY[field]: entry[name] for field, name in ENTRY.items() if name in entry}
    accelerator = entry["accelerator_model_name"].replace("N/A", "")
    return {
        **renamed,
        "Accelerator": accelerator,
        "Suite": "datacenter",
        "weight_data_types": "fp8",
    }


def _pivot(entries: list[dict[str, Any]]) -> str:
    """Return the entries as the pivot table: four rows per system, one column per model and scenario."""
    tasks = sorted({(entry["Model"], entry["Scenario"]) for entry in entries})
    blank = [""] * _HEAD
    rows = [blank + [""] * len(tasks)] * 2
    rows += [blank + [task[place] for task in tasks] for place in (0, 1)]
    units = ["Samples/s" if scenario == "Offline" else "Queries/s" for _, scenario in tasks]
    rows.append(["Public ID", *blank[1:], *units])
    for number, system in enumerate(sorted({entry["SystemName"] for entry in entries})):
        of = {(entry["Model"], entry["Scenario"]): entry for entry in entries if entry["SystemName"] == system}
        first = next(iter(of.values()))
        about = {place: first[ENTRY[field]] for field, place in PIVOT_FIELDS.items()} | {0: f"5.0-{number:04d}"}
        for place, (label, field) in enumerate(CONTENTS.items()):
            head = [about.get(column, "") if not place else "" for column in range(_HEAD - 1)]
            cells = [str(of[task][ENTRY[field]]) if task in of else "" for task in tasks]
            rows.append([*head, label, *cells])
    return "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows) + "\n"


def _pack(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
