"""Records of trainings that run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor
from pytorch_lightning.loggers import MLFlowLogger

from perfcast.tracking.store import Store, locked, open_client, warn_unrecorded

if TYPE_CHECKING:
    from perfcast.tracking.run import Run


class LiveRecord(MLFlowLogger):
    """The record of a running training, as Lightning's logger; without a run after the first failure of the store."""

    LOGGER_JOIN_CHAR = "/"

    def __init__(self, run: Run) -> None:
        super().__init__(tracking_uri=run.store.uri, prefix="training_live", run_id=run.run_id)
        self.run: Run | None = run
        self.epochs = 0

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Record the learning curve's entry of an epoch. Steps count on over folds, seeds and refits."""
        if self.run:
            self.epochs += 1
            finite = {name: value for name, value in metrics.items() if name != "epoch" and math.isfinite(value)}
            with self.spared(), locked(self.run.store):
                super().log_metrics(finite, self.epochs)

    def finalize(self, status: str = "success") -> None:
        """Leave the run open where one of the networks of a training ends."""

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
def live_record(store: Store, experiment: str, name: str, tags: Mapping[str, str]) -> Iterator[LiveRecord | None]:
    """Record a training while it runs, and the use of the machine.

    A store that fails costs a line and the live curves, never the training.
    """
    live = None
    monitor = None
    status = "FAILED"
    try:
        from perfcast.tracking.run import start_run

        run = start_run(open_client(store), store, experiment, name, {"perfcast.kind": "training", **tags})
        live = LiveRecord(run)
        monitor = SystemMetricsMonitor(run.run_id, tracking_uri=run.store.uri)
        monitor.start()
    except Exception as error:  # whatever a store, a driver or a server raises
        warn_unrecorded(error)
    try:
        yield live
        status = "FINISHED"
    finally:
        if monitor:
            monitor.finish()
        if live:
            with live.spared():
                if live.run:
                    live.run.client.set_terminated(live.run.run_id, status=status)
