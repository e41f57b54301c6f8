"""Records of every training in MLflow; no stage reads them. The only package that knows MLflow.

`store` names and opens the place of the records, `run` writes to one of them, `live` shows a training that runs.
`recording` records finished results, with `models`.
"""

from perfcast.tracking.store import RECORD, Store, explain_failure, open_client, store_from

__all__ = ["RECORD", "Store", "explain_failure", "open_client", "store_from"]
