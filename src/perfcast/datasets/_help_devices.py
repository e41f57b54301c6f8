"""Kind, model and batch size of HELP's devices, from the names of their files."""

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
    "essential_ph_1": ("phone", "Essential PH-1"),  # the 1 belongs to the model name
    "pixel2": ("phone", "Pixel 2"),
    "pixel3": ("phone", "Pixel 3"),
    "samsung_a50": ("phone", "Galaxy A50"),
    "samsung_s7": ("phone", "Galaxy S7"),
    "raspi4": ("board", "Raspberry Pi 4"),
    "eyeriss": ("accelerator", "Eyeriss"),
    "fpga": ("accelerator", "FPGA"),
}


def parse_device_name(device: str) -> tuple[str, str, float]:
    """Return the kind, model and batch size of a device from the name of its file.

    The kind is gpu, cpu, phone, board or accelerator. The batch size is NaN where the name does not contain it.

    Raises:
        ValueError: The name is none of HELP's.
    """
    if device in _OTHERS:
        return (*_OTHERS[device], np.nan)
    match = re.fullmatch(r"(.+)_(\d+)", device)
    if not match or match[1] not in _GPUS:
        raise ValueError(f"{device!r} is not a device of HELP")
    return "gpu", _GPUS[match[1]], float(match[2])
