"""Records of trainings that run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perfcast.tracking.store import Store, open_client, warn_unrecorded

if TYPE_CHECKING:
    from perfcast.tracking.run import Run


@dataclass
class LiveRecord:
    """The record of a running training, without a run after the first failure of the store."""

    run: Run | None = None
    epochs: int = 0
    process: int = field(default_factory=os.getpid)

    def log_epoch(self, entry: Mapping[str, float]) -> None:
        """Record the learning curve's entry of an epoch. Steps count on over folds, seeds and refits."""
        if self.run and os.getpid() == self.process:  # else a worker of several devices, with a copy of the connection
            self.epochs += 1
            with self.spared():
                curves = {f"live/{name}": value for name, value in entry.items() if name != "epoch"}
                self.run.log_metrics(curves, self.epochs)

    def name_record(self, digest: str) -> None:
        """Name the file that the training wrote, which completes this run later."""
        from perfcast.tracking.run import LIVE_TAG

        if self.run:
            with self.spared():
                self.run.set_tags({LIVE_TAG: digest})

    @contextmanager
    def spared(self) -> Iterator[None]:
        """Turn a failure of the store into a line."""
        try:
            yield
        except Exception as error:  # whatever a store, a driver or a server raises
            warn_unrecorded(error)
            self.run = None


@contextmanager
def live_record(store: Store, experiment: str, name: str, tags: Mapping[str, str]) -> Iterator[LiveRecord]:
    """Record a training while it runs. A store that fails costs a line and the live curves, never the training."""
    live, monitor, status = LiveRecord(), None, "FAILED"
    with live.spared():
        from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

        from perfcast.tracking.run import start_run

        live.run = start_run(open_client(store), store, experiment, name, {"perfcast.kind": "training", **tags})
        if store.system_metrics:
            monitor = SystemMetricsMonitor(live.run.run_id, tracking_uri=live.run.client.tracking_uri)
            monitor.start()
    try:
        yield live
        status = "FINISHED"
    finally:
        with live.spared():
            if monitor:
                monitor.finish()
            if live.run:
                live.run.client.set_terminated(live.run.run_id, status=status)
