"""Generated archive of CUTLASS measurements, shaped like the published one, with its known defects.

The numbers are made up: they follow waves and bytes with noise, and describe no real device.
"""

from __future__ import annotations

import gzip
import io
import tarfile
from itertools import product
from pathlib import Path

import numpy as np

from perfcast.domains.gemm.sources.gpperf import ARCHIVE, FAILED, HEADER, RESULTS
from perfcast.utils.io import atomic_path

_FOLDER = "cutlass_profiling_20241111_195357"
_SIDES = (
    (256, 512, 1024, 2048, 65536),
    (256, 512, 1024, 2048),
    (256, 512, 1024, 2048),
)
_LAYOUTS = ("nn", "nt", "tn", "tt")
_TILES = ((64, 64), (128, 64), (64, 128), (128, 128))
_FACTORS = (
    ("1", "0"),
    ("1", "1"),
    ("0.5", "0.5"),
    ("2", "0"),
)
_START = 1731372844


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write the archive: about `rows` results, and each known defect once.

    Every record has a time; one in five also has power and energy. The last tenth comes from a shared device.
    """
    random = np.random.default_rng(seed)
    count = max(8, round(rows / 1.4))
    per_shape = 8
    shapes = list(product(*_SIDES))
    chosen = [shapes[index] for index in random.permutation(len(shapes))[: max(2, -(-count // per_shape))]]
    settings = list(product(_LAYOUTS, _LAYOUTS, _TILES, _FACTORS))
    drawn = [
        (shape, settings[index])
        for shape in sorted(chosen)
        for index in np.sort(random.permutation(len(settings))[:per_shape])
    ][:count]
    texts = [
        _format_record(number, shape, setting, number >= 0.9 * len(drawn), random)
        for number, (shape, setting) in enumerate(drawn)
    ]
    failed = []
    for shape, (layout, requested, tile, factors) in drawn[: max(1, count // 4)]:
        fields = [
            *shape,
            _name_kernel("h", layout),
            requested,
            *tile,
            32,
            2,
            "linear_combination",
            *factors,
        ]
        failed.append(",".join(map(str, fields)) + "\n")
    results = HEADER + "".join([*texts, *_make_defective(texts)])
    contents = {
        f"{_FOLDER}/{RESULTS}": results.encode(),
        f"{_FOLDER}/{FAILED}": "".join(failed).encode(),
    }
    write_archive(Path(folder) / ARCHIVE, contents)


def write_archive(path: Path, contents: dict[str, bytes]) -> None:
    """Write a tar.gz with these members; equal contents give equal bytes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    with atomic_path(path) as temporary:
        temporary.write_bytes(gzip.compress(buffer.getvalue(), mtime=0))


def _name_kernel(kind: str, layout: str) -> str:
    return f"cutlass_simt_{kind}gemm_128x128_8x2_{layout}_align1"


def _format_record(
    number: int,
    shape: tuple[int, ...],
    setting: tuple[str, str, tuple[int, int], tuple[str, str]],
    shared: bool,
    random: np.random.Generator,
) -> str:
    """Return the seven lines of one record."""
    m, n, k = shape
    layout, requested, tile, (alpha, beta) = setting
    waves = np.ceil(np.ceil(m / 128) * np.ceil(n / 128) / 46)
    ms = 0.006 + waves * (7e-5 * k + 0.002) + (beta != "0") * 4e-9 * m * n
    ms *= np.exp(random.normal(0, 0.02)) * (2.0 if shared else 1.0)
    busy = shared or random.random() < 0.02
    power = f"{random.uniform(90, 190) if busy else random.normal(30, 0.2):.2f}"
    power = power if busy or random.random() < 0.1 else "[N/A]"
    used = 168 if busy else 1
    share = 100 if busy else 0
    energy = per_watt = ""
    if power != "[N/A]":
        energy = f"{float(power) * ms / 1000:.3f}".lstrip("0")
        per_watt = "1.0"
    first = [
        _START + 9 * number,
        m,
        n,
        k,
        _name_kernel("s", layout),
        requested,
        *tile,
        32,
        2,
        "linear_combination",
        alpha,
        beta,
    ]
    after = [power, " 2505", " 10501", " 28", f" {share}", " 0"]
    before = [
        "NVIDIA GeForce RTX 4070",
        " 8.9",
        " 10501 MHz",
        " 3105 MHz",
        " 200.00 W",
        " 28",
        " Default",
    ]
    memory = [" 12282 MiB", f" {12003 - used} MiB", f" {used} MiB", f" {share} %", " 0 %"]
    fields = [
        *first,
        f"{ms:.6g}",
        "",
        *after,
        *before,
        *memory,
        "kernel_name",
        _name_kernel("s", layout),
    ]
    intensity = 2 * m * n * k / (4 * (m * k + k * n + m * n))
    described = [
        ",".join(map(str, fields)),
        f"arithmetic_intensity,{intensity:.2f}",
        "uses_shared_memory,0",
        "computation_pattern,GEMM",
        f"problem_size_m,{m}",
        f"problem_size_n,{n}",
        f"problem_size_k,{k},{energy},{per_watt},{2 * m * n * k / ms / 1e6:.3f}",
    ]
    return "\n".join(described) + "\n"


def _make_defective(records: list[str]) -> list[str]:
    """Return defective records: truncated, one line too many, no time, other kernel, repetition, other sides."""
    whole, *lines = records[0], *records[0].splitlines(keepends=True)
    time = lines[0].split(",")[13]
    return [
        "".join(lines[:4]),
        "".join(
            [
                *lines[:3],
                "uses_shared_memory,0\n",
                *lines[3:],
            ]
        ),
        whole.replace(f",{time},", ",,", 1),
        whole.replace("cutlass_simt_sgemm", "cutlass_tensorop_s16816gemm"),
        whole,
        whole.replace("problem_size_m,", "problem_size_m,9"),
    ]
