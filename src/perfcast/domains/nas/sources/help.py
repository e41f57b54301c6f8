"""HELP latencies: PyTorch files with one list per device, and the architectures of three search spaces."""

from __future__ import annotations

_BATCHED = ("1080ti", "2080ti", "titan_rtx", "titanx", "titanxp")
OTHER_DEVICES = {
    "essential_ph_1": ("phone", "Essential PH-1"),  # the 1 belongs to the model name
    "eyeriss": ("accelerator", "Eyeriss"),
    "fpga": ("accelerator", "FPGA"),
    "gold_6226": ("cpu", "Xeon Gold 6226"),
    "gold_6240": ("cpu", "Xeon Gold 6240"),
    "pixel2": ("phone", "Pixel 2"),
    "pixel3": ("phone", "Pixel 3"),
    "raspi4": ("board", "Raspberry Pi 4"),
    "samsung_a50": ("phone", "Galaxy A50"),
    "samsung_s7": ("phone", "Galaxy S7"),
    "silver_4114": ("cpu", "Xeon Silver 4114"),
    "silver_4210r": ("cpu", "Xeon Silver 4210R"),
}
"""Device without a batch size -> its kind and model."""
DEVICES = {
    "nasbench201": (
        *(f"{gpu}_{batch}" for gpu in _BATCHED for batch in (1, 32, 256)),
        *OTHER_DEVICES,
    ),
    "fbnet": (
        *(f"{gpu}_{batch}" for gpu in _BATCHED for batch in (1, 32, 64)),
        *OTHER_DEVICES,
    ),
    "ofa": tuple(f"{gpu}_{batch}" for gpu in ("2080ti", "titan_rtx", "titan_xp", "v100") for batch in (1, 32, 64)),
}
"""Search space -> devices, as in the file names."""

ARCHITECTURES = {
    "nasbench201": "str_arch2idx.pt",
    "fbnet": "metainfo.pt",
    "ofa": "ofa_archs.pt",
}
"""Search space -> file of its architectures, which are in the order of the latencies."""

REFERENCES = "hardware_embedding_index.pt"
"""File of a search space that lists ten architectures; every device was measured with them."""


def latency_file(space: str, device: str) -> str:
    """Return the path of a device's latencies in the source's folder."""
    return f"{space}/latency/{device}.pt"


def list_files(space: str) -> list[str]:
    """Return the paths of a search space's files in the source's folder."""
    shared = [f"{space}/{ARCHITECTURES[space]}", f"{space}/{REFERENCES}"]
    return [*shared, *(latency_file(space, device) for device in DEVICES[space])]
