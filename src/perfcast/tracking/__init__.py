"""Records of every training in MLflow; no stage reads them. The only package that knows MLflow.

`store` names the place of the records, `run` writes them; `lifecycle` opens and closes runs, `processes` finds
processes that are gone, `recording` records champion and report.
"""

from perfcast.tracking.lifecycle import (
    abandoned_runs,
    git_tags,
    parent_run,
    record_champion,
    record_report,
    register_champion,
    start_run,
)
from perfcast.tracking.run import Run
from perfcast.tracking.store import Store, open_client, store_from

__all__ = [
    "Run",
    "Store",
    "abandoned_runs",
    "git_tags",
    "open_client",
    "parent_run",
    "record_champion",
    "record_report",
    "register_champion",
    "start_run",
    "store_from",
]
