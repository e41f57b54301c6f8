"""The record of every training, never read back by a stage. The only package that knows MLflow.

`store` says where to record, `run` what; `lifecycle` opens and closes runs, `processes` tells which processes that
opened one are gone.
"""

from perfcast.tracking.lifecycle import abandoned_runs, git_tags, parent_run, register_champion, start_run
from perfcast.tracking.run import Run
from perfcast.tracking.store import Store, open_client, store_from

__all__ = [
    "Run",
    "Store",
    "abandoned_runs",
    "git_tags",
    "open_client",
    "parent_run",
    "register_champion",
    "start_run",
    "store_from",
]
