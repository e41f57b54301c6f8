"""The GPU of this machine, as measurements need it: whether it is there, what it is, when it has ended its work."""

from __future__ import annotations

from typing import Any

import torch

from perfcast.utils.errors import UserError


def require_device(device: str) -> None:
    """Raise UserError where the device is a GPU that torch cannot use."""
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda needs a GPU that torch can use", "there is none", "choose --device cpu")


def wait_for(device: str) -> None:
    """Return when the device has ended what was started; a processor has already."""
    if device == "cuda":
        torch.cuda.synchronize()


def free_gpu_bytes() -> int:
    """Return the free memory of the GPU, in bytes."""
    return int(torch.cuda.mem_get_info()[0])


def describe_gpu() -> dict[str, Any]:
    """Return the name, memory, cache and multiprocessors of the GPU. Units: GiB, MiB."""
    card = torch.cuda.get_device_properties(0)
    return {
        "name": card.name,
        "memory_gib": card.total_memory / 2**30,
        "l2_mib": card.L2_cache_size / 2**20,
        "sm_count": card.multi_processor_count,
    }


def gpu_as_machine() -> dict[str, Any]:
    """Return what replaces the processor's facts in the description of a machine whose GPU was measured.

    Multiprocessors stand for cores. Caches of a multiprocessor are unknown to torch.
    """
    card = describe_gpu()
    unknown = dict.fromkeys(("cpu_vendor", "threads_per_core", "sockets", "l1d_kib", "l1i_kib", "l3_kib"))
    return unknown | {
        "cpu_model": card["name"],
        "cores": card["sm_count"],
        "l2_kib": 1024 * card["l2_mib"],
        "memory_gib": round(card["memory_gib"], 1),
        "flags": [],
    }
