"""Processors that stay awake during a campaign.

A tenant that waits often, such as a server, pays for waking a sleeping processor when it runs alone; neighbors keep the
processor busy, so that the tenant would seem to get faster beside them. The request to the kernel's power management
changes no metric: time that nobody uses stays idle time. Source: Linux, Documentation/power/pm_qos_interface.rst.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_REQUEST = Path("/dev/cpu_dma_latency")
_DRIVER = Path("/sys/devices/system/cpu/cpuidle/current_driver")


@contextmanager
def awake_processors(request: Path = _REQUEST, driver: Path = _DRIVER) -> Iterator[bool]:
    """Keep processors from sleeping until the end of the block; yield whether the system permits it.

    Without a driver for idle processors, the kernel takes the request and ignores it.
    """
    try:
        obeyed = driver.read_text().strip() not in ("", "none")
        descriptor = os.open(request, os.O_WRONLY)
    except OSError:
        yield False
        return
    try:
        # the request lasts as long as the file is open; its unit is microseconds
        os.write(descriptor, struct.pack("=i", 0))
        yield obeyed
    finally:
        os.close(descriptor)
