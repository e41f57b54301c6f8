"""Records of every training in MLflow; no stage reads them. The only package that knows MLflow.

`store` names the place of the records, `store_check` asks within seconds whether it can be used, `client` opens it.
`run` writes to one record, `lifecycle` opens and closes them. `recording` records finished results, with `models` and
`experiment_page`.
"""

from perfcast.tracking.client import open_client
from perfcast.tracking.experiment_page import page_addresses
from perfcast.tracking.lifecycle import abandoned_runs, git_tags, live_record, start_run
from perfcast.tracking.run import DatasetEntry, Run
from perfcast.tracking.store import RECORD, Store, explain_failure, store_from
from perfcast.tracking.store_check import check_store, warn_unusable

__all__ = [
    "RECORD",
    "DatasetEntry",
    "Run",
    "Store",
    "abandoned_runs",
    "check_store",
    "explain_failure",
    "git_tags",
    "live_record",
    "open_client",
    "page_addresses",
    "start_run",
    "store_from",
    "warn_unusable",
]
