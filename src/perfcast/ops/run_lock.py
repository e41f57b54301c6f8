"""Lock of a folder of results, and the end of a run whose terminal is closed.

Snakemake's own lock, which the profiles switch off, is by file names, looks first and writes later, and outlives a
killed run. This one is of the folder itself, whatever its name, is taken at once, and ends with its processes.
"""

from __future__ import annotations

import fcntl
import os
import signal
from pathlib import Path

from perfcast.utils.errors import UserError

LOCK = Path("logs") / "run.lock"
"""File in a folder of results; jobs hold it as well, so that those of a killed run keep others away."""


def hold_results(results: Path) -> int:
    """Lock a folder of results until this process ends; return the handle of the lock.

    Raises: UserError when another run, or a job of a killed one, holds it.
    """
    path = results / LOCK
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        # alone for a moment, then shared with the jobs
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        fact = f"another run, or a job of a killed one, writes to {results.resolve()}"
        raise UserError("one run at a time may write to a folder of results", fact, "wait until it ends") from None
    except OSError:  # some file systems have no locks
        pass
    return handle


def end_on_hangup() -> None:
    """End this run at SIGHUP as at SIGTERM: jobs end, and finished work stays. `nohup` is heeded."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, signal.getsignal(signal.SIGTERM))
