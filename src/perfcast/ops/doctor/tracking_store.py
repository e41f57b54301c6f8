"""Check of the MLflow store: reachable, and without runs of processes that are gone."""

from __future__ import annotations

import os
from pathlib import Path

from perfcast.config.conf_files import read_conf
from perfcast.ops.doctor.findings import BROKEN, CARE, FINE, Finding, ProjectPlace
from perfcast.tracking import abandoned_runs, store_from


def check(place: ProjectPlace) -> list[Finding]:
    """Open the store; the first training makes a missing one."""
    if place.params is None:  # then conf/ may not be there either
        return []
    store = store_from(read_conf(place.project / "conf", "tracking", "default"), place.project, os.environ)
    if store is None:
        return [Finding("tracking", CARE, "off in conf/tracking/default.yaml: no training is recorded")]
    local = store.uri.startswith("sqlite:///")
    if local and not Path(store.uri.removeprefix("sqlite:///")).is_file():
        return [Finding("tracking", FINE, "no store yet; the first training makes it")]
    try:
        abandoned = abandoned_runs(store)
    except Exception as error:  # whatever a store, a driver or a server raises
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        remedy = "start the server, or unset MLFLOW_TRACKING_URI" if not local else "delete the store: results are kept"
        return [Finding("tracking", BROKEN, f"the store cannot be used: {reason[:120]}", remedy)]
    if abandoned:
        fact = f"{abandoned} runs are marked as running and their processes are gone"
        return [Finding("tracking", CARE, fact, "the next training of the same dataset ends them")]
    return [Finding("tracking", FINE, "the store answers")]
