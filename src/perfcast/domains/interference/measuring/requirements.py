"""Needs of a campaign: counters, room on the disk, cores and groups with limits."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from perfcast.domains.interference.measuring.groups import CPU, MEMORY, GroupFolders
from perfcast.domains.interference.measuring.scenarios import MEMORY as LIMITED_MEMORY
from perfcast.domains.interference.measuring.scenarios import OTHER_CORE, PLACEMENTS, QUOTA, SAME_CORE
from perfcast.utils.errors import UserError

_RESERVE_MIB = 1024
"""Room on the disk beside the files of workloads."""


def possible_placements(base: GroupFolders, cpus: Sequence[int]) -> dict[str, str]:
    """Return every placement with the reason why it is impossible here, empty where it is possible."""
    reasons = dict.fromkeys(PLACEMENTS, "")
    for name in PLACEMENTS:
        if name not in (SAME_CORE,) and len(cpus) < 2:
            reasons[name] = "this process can use one core alone"
    for name, limit in ((QUOTA, CPU), (LIMITED_MEMORY, MEMORY)):
        if limit not in base.limits:
            reasons[name] = f"no control group with a limit of {limit} is permitted"
    return reasons


def choose_placements(wanted: Sequence[str] | None, reasons: dict[str, str]) -> tuple[str, ...]:
    """Return the placements to measure. Raises: UserError when one that was named is unknown or impossible."""
    for name in wanted or ():
        if name not in reasons:
            raise UserError(f"--placements must name some of {', '.join(reasons)}", f"it is {name!r}")
        if reasons[name]:
            raise UserError(f"--placements {name} must be possible here", reasons[name], "run as root, or leave it out")
    chosen = tuple(name for name in (wanted or reasons) if not reasons[name])
    if set(chosen) <= {OTHER_CORE} and wanted is None:
        raise UserError("a measurement needs a core that tenants share", "this process has none")
    return chosen


def require_linux(root: Path = Path("/")) -> None:
    """Raise UserError where the counters of Linux are absent."""
    if not sys.platform.startswith("linux") or not (root / "proc/stat").is_file():
        raise UserError("there must be the counters in /proc of Linux", "there are none", "use Linux")


def require_room(folder: Path, workloads: Sequence[str]) -> None:
    """Raise UserError when the disk lacks room for the files of three tenants and the results."""
    from perfcast.domains.interference.measuring.workloads import load_workload  # imports torch

    sizes = sorted((load_workload(name).DISK_MIB for name in workloads), reverse=True)
    needed = _RESERVE_MIB + sum(sizes[:3])
    free = shutil.disk_usage(folder).free // 2**20
    if free < needed:
        raise UserError(
            f"--out must be on a disk with {needed} MiB of room", f"it has {free} MiB", "name another folder"
        )
