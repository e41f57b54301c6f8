"""HELP latencies: PyTorch files with one list per device, and the architectures of three search spaces.

`devices.csv` has the kind, the model and the batch size of every device. Its columns named as search spaces say how the
authors use the device there; a blank one means that they did not measure it.
"""

from __future__ import annotations

from functools import cache

from perfcast.domains import read_table

ARCHITECTURES = {
    "nasbench201": "str_arch2idx.pt",
    "fbnet": "metainfo.pt",
    "ofa": "ofa_archs.pt",
}
"""Search space -> file of its architectures, which are in the order of the latencies."""

REFERENCES = "hardware_embedding_index.pt"
"""File of a search space that lists ten architectures; every device was measured with them."""


@cache
def list_devices(space: str) -> dict[str, dict[str, str]]:
    """Return the rows of the devices of a search space by their names, as in the file names."""
    return {row["device"]: row for row in read_table(__package__, "devices.csv") if row[space]}


def latency_file(space: str, device: str) -> str:
    """Return the path of a device's latencies in the source's folder."""
    return f"{space}/latency/{device}.pt"
