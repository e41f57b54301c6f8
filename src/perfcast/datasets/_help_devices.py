"""What the names of HELP's devices say: what kind of device, which model, and how many images it was given at once."""

from __future__ import annotations

import re

import numpy as np

_GPUS = {
    "1080ti": "GeForce GTX 1080 Ti",
    "2080ti": "GeForce RTX 2080 Ti",
    "titan_rtx": "Titan RTX",
    "titanx": "Titan X",
    "titanxp": "Titan Xp",
    "titan_xp": "Titan Xp",
    "v100": "Tesla V100",
}
_OTHERS = {
    "gold_6226": ("cpu", "Xeon Gold 6226"),
    "gold_6240": ("cpu", "Xeon Gold 6240"),
    "silver_4114": ("cpu", "Xeon Silver 4114"),
    "silver_4210r": ("cpu", "Xeon Silver 4210R"),
    "essential_ph_1": ("phone", "Essential PH-1"),  # its 1 is no batch size
    "pixel2": ("phone", "Pixel 2"),
    "pixel3": ("phone", "Pixel 3"),
    "samsung_a50": ("phone", "Galaxy A50"),
    "samsung_s7": ("phone", "Galaxy S7"),
    "raspi4": ("board", "Raspberry Pi 4"),
    "eyeriss": ("accelerator", "Eyeriss"),
    "fpga": ("accelerator", "FPGA"),
}


def describe(device: str) -> tuple[str, str, float]:
    """Return the kind, the model and the batch size of a device, by the name of its file.

    The kind is gpu, cpu, phone, board or accelerator; the batch size is NaN where the name does not say it. Raises:
    ValueError when the name is none of HELP's.
    """
    if device in _OTHERS:
        return (*_OTHERS[device], np.nan)
    match = re.fullmatch(r"(.+)_(\d+)", device)
    if not match or match[1] not in _GPUS:
        raise ValueError(f"{device!r} is no device of HELP")
    return "gpu", _GPUS[match[1]], float(match[2])
