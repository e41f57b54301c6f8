"""Measurement of the operators of language models on this machine, over shapes, and of the peaks that bound them.

Method: operands are warm (the same memory in every repetition). A sample is the mean of enough calls to last
`MIN_SAMPLE_SECONDS`, and the median over samples is the result. Shapes are measured in random order.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil  # type: ignore[import-untyped]
import torch

from perfcast.domains.gemm.measured_gemm import time_product
from perfcast.domains.gemm.measurement_files import (
    check_out,
    describe_gpu,
    free_gpu_bytes,
    require_clean,
    require_device,
    wait_for,
    write_measurement,
)
from perfcast.domains.gemm.operator_calls import (
    BALANCED,
    CONTEXT,
    GEMM,
    GENERATION,
    MIXTURE,
    Call,
    Operator,
    make_call,
)
from perfcast.domains.gemm.timing import Timing, measure_steadiest, relative_spread
from perfcast.microbench.machine import describe_machine
from perfcast.utils.io import read_object, write_json

NAME = "host_operators"
OPERATORS = (GEMM, CONTEXT, GENERATION, MIXTURE)
_MAX_FLOPS = {"cpu": 1e9, "cuda": 4e12}
"""Operations of the largest shape: about a tenth of a second on a core, milliseconds on a GPU."""
_MAX_ELEMENTS = {"cpu": 2**25, "cuda": 2**29}
_MEMORY_SHARE = 1 / 16
"""Share of the free memory that the operands of one shape may take."""
_PEAK_SIZE, _COPY_BYTES = {"cpu": 1024, "cuda": 8192}, {"cpu": 2**28, "cuda": 2**30}

Progress = Callable[[int, int, int], None]


def measure_operators(
    out: Path,
    *,
    shapes: int,
    minutes: float,
    threads: int,
    dtype: str | None,
    device: str,
    seed: int,
    progress: Progress,
) -> list[str]:
    """Measure operators, write the table and the description of the machine, and return notes for the user.

    Args:
        out: Folder of host_operators.csv.gz and host_operators.json.
        shapes: Shapes of all operators together.
        minutes: Time budget.
        threads: Threads of every operator, on a CPU.
        dtype: Number format; without one bfloat16 where the device computes it, else float32.
        device: cpu or cuda.
        seed: Seed of shapes and order.
        progress: Gets the measured shapes, all shapes, and the repeats.

    Raises:
        UserError: The device is absent, or other work interrupts every shape.
    """
    require_device(device)
    check_out(out, NAME)
    dtype = dtype or usual_dtype(device)
    drawn = draw_operators(shapes, device=device, elements=_element_limit(device), seed=seed)
    generator = torch.Generator().manual_seed(seed)

    def time_one(operator: Operator, order: int, pass_number: int) -> Timing:
        torch.set_num_threads(threads)
        warmups, samples, interrupted = time_product(make_call(operator, dtype, device, generator))
        median, spread = float(np.median(samples)), relative_spread(samples)
        return Timing(warmups, len(samples), median, min(samples), spread, order, pass_number, interrupted)

    timings = measure_steadiest(drawn, time_one, budget_seconds=60 * minutes, seed=seed, progress=progress)
    frame = as_frame(timings, dtype)
    require_clean(len(frame), len(drawn))
    write_measurement(out, NAME, frame)
    _add_device(out / f"{NAME}.json", device_facts(dtype, device, threads))
    notes = [f"measured {len(frame)} shapes, median spread {100 * frame['seconds_spread'].median():.1f} %"]
    if missing := len(drawn) - len(frame):
        notes.append(f"{missing} shapes are missing: not reached, or always interrupted")
    return notes


def draw_operators(count: int, *, device: str, elements: float, seed: int) -> list[Operator]:
    """Draw distinct shapes, as many of every operator: lengths that models and loads have.

    Args:
        elements: Elements that the operands of one shape have at most.
    """
    random = np.random.default_rng(seed)
    drawn: dict[Operator, None] = {}
    while len(drawn) < count:
        operator = _DRAWS[OPERATORS[len(drawn) % len(OPERATORS)]](random)
        if operator.flops <= _MAX_FLOPS[device] and operator.elements <= elements:
            drawn[operator] = None
    return list(drawn)


def _log_uniform(random: np.random.Generator, low: int, high: int) -> int:
    return round(math.exp(random.uniform(math.log(low), math.log(high))))


def _width(random: np.random.Generator, low: int, high: int) -> int:
    """Draw a multiple of 64, as widths of models are."""
    return max(64, round(_log_uniform(random, low, high) / 64) * 64)


def _draw_gemm(random: np.random.Generator) -> Operator:
    return Operator(GEMM, m=_log_uniform(random, 1, 4096), n=_width(random, 64, 16384), k=_width(random, 64, 8192))


def _draw_attention(random: np.random.Generator, op: str, longest: int) -> Operator:
    kv_heads = int(2 ** random.integers(0, 4))
    return Operator(
        op,
        batch=_log_uniform(random, 1, 64),
        sequence=_log_uniform(random, 16, longest),
        heads=kv_heads * int(2 ** random.integers(0, 4)),
        kv_heads=kv_heads,
        head_dim=int(random.choice([64, 128])),
    )


def _draw_mixture(random: np.random.Generator) -> Operator:
    experts = int(2 ** random.integers(2, 7))
    return Operator(
        MIXTURE,
        tokens=_log_uniform(random, 1, 2048),
        hidden=_width(random, 256, 4096),
        expert_hidden=_width(random, 64, 2048),
        top_k=min(int(2 ** random.integers(0, 4)), experts),
        experts=experts,
    )


_DRAWS: Mapping[str, Callable[[np.random.Generator], Operator]] = {
    GEMM: _draw_gemm,
    CONTEXT: lambda random: _draw_attention(random, CONTEXT, 4096),
    GENERATION: lambda random: _draw_attention(random, GENERATION, 32768),
    MIXTURE: _draw_mixture,
}


def as_frame(timings: Mapping[Operator, Timing], dtype: str) -> pd.DataFrame:
    """Return the measured table by operator and shape, without shapes whose every measurement was interrupted."""
    rows = []
    for operator in sorted(timings, key=lambda operator: (operator.op, *operator.lengths().values())):
        timing = timings[operator]
        if timing.interrupted:
            continue
        rows.append(
            {
                "op": operator.op,
                "dtype": dtype,
                **{name: value or None for name, value in operator.lengths().items()},
                "distribution": BALANCED if operator.op == MIXTURE else None,
                "warmups": timing.warmups,
                "repeats": timing.repeats,
                "seconds_median": float(f"{timing.median:.6g}"),
                "seconds_min": float(f"{timing.minimum:.6g}"),
                "seconds_spread": float(f"{timing.spread:.4g}"),
                "order": timing.order,
                "pass": timing.measured_in,
            }
        )
    frame = pd.DataFrame(rows)
    whole = [name for name in Operator(GEMM).lengths() if name in frame]
    return frame.astype(dict.fromkeys(whole, "Int64")) if len(frame) else frame


def device_facts(dtype: str, device: str, threads: int) -> dict[str, Any]:
    """Return the name of the device, and the measured peaks and known facts that the features read.

    The peak is that of a large product in the number format, the bandwidth that of a copy. Both are measured, so shares
    of them can exceed 1 where caches help.
    Units: TFLOP/s, GB/s, GiB, MiB.
    """
    torch.set_num_threads(threads)
    machine = describe_machine()
    size, copied = _PEAK_SIZE[device], _COPY_BYTES[device]
    generator = torch.Generator().manual_seed(0)
    product = make_call(Operator(GEMM, m=size, n=size, k=size), dtype, device, generator)
    source = torch.zeros(copied // 2, dtype=torch.bfloat16, device=device)
    target = torch.zeros_like(source)

    def copy() -> None:
        target.copy_(source)
        wait_for(device)

    facts = {
        "peak_tflops": 2.0 * size**3 / _fastest(product) / 1e12,
        "memory_gb_per_s": 2.0 * copied / _fastest(copy) / 1e9,
    }
    if device == "cpu":
        caches = {"l2_mib": (machine["l2_kib"] or math.nan) / 1024, "sm_count": threads}
        named = {"name": machine["cpu_model"], "memory_gib": machine["memory_gib"], **caches}
    else:
        named = describe_gpu()
    rounded = {name: float(f"{value:.4g}") for name, value in facts.items()}
    return {
        **named,
        **rounded,
        "device": device,
        "dtype": dtype,
        "threads": threads if device == "cpu" else os.cpu_count(),
    }


def usual_dtype(device: str) -> str:
    """Return bfloat16 where the device has units for it, else float32."""
    flags = describe_machine()["flags"] if device == "cpu" else []
    has_units = device == "cuda" or {"avx512_bf16", "amx_bf16"} & set(flags) or "bf16" in flags
    return "bfloat16" if has_units else "float32"


def _fastest(call: Call) -> float:
    _, samples, _ = time_product(call)
    return min(samples)


def _element_limit(device: str) -> float:
    """Return the elements of bfloat16 that one shape may have."""
    free = psutil.virtual_memory().available if device == "cpu" else free_gpu_bytes()
    return float(min(free * _MEMORY_SHARE / 2, _MAX_ELEMENTS[device]))


def _add_device(path: Path, facts: dict[str, Any]) -> None:
    write_json(path, {**read_object(path), "device": facts})
