"""Latencies of the HELP paper: one list per device, and the architectures of three search spaces, as PyTorch files."""

from __future__ import annotations

from pathlib import Path

from perfcast import bounds
from perfcast.unpacking import check_zip

_BATCHED = ("1080ti", "2080ti", "titan_rtx", "titanx", "titanxp")
_OTHERS = (
    *("essential_ph_1", "eyeriss", "fpga", "gold_6226", "gold_6240", "pixel2", "pixel3", "raspi4"),
    *("samsung_a50", "samsung_s7", "silver_4114", "silver_4210r"),
)
DEVICES = {
    "nasbench201": (*(f"{gpu}_{batch}" for gpu in _BATCHED for batch in (1, 32, 256)), *_OTHERS),
    "fbnet": (*(f"{gpu}_{batch}" for gpu in _BATCHED for batch in (1, 32, 64)), *_OTHERS),
    "ofa": tuple(f"{gpu}_{batch}" for gpu in ("2080ti", "titan_rtx", "titan_xp", "v100") for batch in (1, 32, 64)),
}
"""Search space -> devices as their files are called."""

ARCHITECTURES = {"nasbench201": "str_arch2idx.pt", "fbnet": "metainfo.pt", "ofa": "ofa_archs.pt"}
"""Search space -> file of its architectures, in the order of the latencies."""

REFERENCES = "hardware_embedding_index.pt"
"""File of a search space that lists the ten architectures every device was measured with."""


def latency_file(space: str, device: str) -> str:
    """Return the path of a device's latencies in the source's folder."""
    return f"{space}/latency/{device}.pt"


def files(space: str) -> list[str]:
    """Return the paths of a search space's files in the source's folder."""
    shared = [f"{space}/{ARCHITECTURES[space]}", f"{space}/{REFERENCES}"]
    return [*shared, *(latency_file(space, device) for device in DEVICES[space])]


def check(folder: Path) -> None:
    """Check that every file is a PyTorch archive of plain size; nothing is unpickled. Raises: UserError."""
    remedy = "the file is not the published one, fetch it again"
    for name in [name for space in DEVICES for name in files(space)]:
        check_zip(
            folder / name,
            "a PyTorch file",
            lambda member: member.endswith("/data.pkl"),
            bounds.TORCH,
            remedy=remedy,
            name=name,
        )
