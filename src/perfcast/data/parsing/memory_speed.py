"""Transfer rates of memory modules: MT/s or module bandwidth in MB/s, snapped to the JEDEC grades."""

from __future__ import annotations

JEDEC_MTS = (800, 1066, 1333, 1600, 1866, 2133, 2400, 2667, 2933, *range(3200, 9201, 400))
"""Grades of DDR3, DDR4 and DDR5 in MT/s (JESD79-3, -4, -5)."""

_MIN_BANDWIDTH = {3: 6400, 4: 12800, 5: 25600}
_BYTES_PER_TRANSFER = 8
_FASTEST_DDR4 = 3200


def ddr_generation(label: int, number: int) -> int | None:
    """Return the DDR generation of a label PC<label>-<number>; None for generations before DDR3 or after DDR5.

    A PC4 label with a rate that only DDR5 reaches is a misprint of PC5.
    """
    if label == 4 and _FASTEST_DDR4 < number < _MIN_BANDWIDTH[4]:
        return 5
    return label if label in _MIN_BANDWIDTH else None


def rated_mts(generation: int, number: int) -> int:
    """Return the rated MT/s of a module label's number.

    The number is module bandwidth in MB/s (8 bytes per transfer) from the least bandwidth of its generation
    upwards and MT/s below: one threshold for all generations would misread multiplexed-rank DDR5 (12800 MT/s).
    """
    if number >= _MIN_BANDWIDTH[generation]:
        return snap(number / _BYTES_PER_TRANSFER, tolerance=10)
    return snap(number)


def snap(mts: float, tolerance: float = 2) -> int:
    """Return the JEDEC grade within `tolerance` MT/s (labels round 2666.67 either way), else the rounded number."""
    nearest = min(JEDEC_MTS, key=lambda grade: abs(grade - mts))
    return nearest if abs(nearest - mts) <= tolerance else round(mts)
