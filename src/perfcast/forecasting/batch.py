"""Forecasts of many machines, in parts that fit in memory."""

from __future__ import annotations

from dataclasses import replace

from perfcast.forecasting.answer import Answer
from perfcast.forecasting.champion import Champion
from perfcast.forecasting.describing import Described
from perfcast.forecasting.forecast import Asked, forecast
from perfcast.forecasting.own_measurements import OwnMeasurements

AT_ONCE = 500
"""Machines that are forecast together."""


def forecast_in_batches(
    described: Described,
    champion: Champion,
    asked: Asked,
    own: OwnMeasurements | None = None,
    *,
    progress: bool = False,
) -> Answer:
    """Forecast as `forecast` does, a part of the machines at a time, with a bar on the terminal where it is wanted."""
    starts = range(0, len(described.frame), AT_ONCE)
    parts = []
    for start in _shown(starts, len(described.frame)) if progress else starts:
        part = Described(described.frame.iloc[start : start + AT_ONCE], described.notes)
        parts.append(forecast(part, champion, asked, own))
    return replace(parts[0], machines=tuple(machine for part in parts for machine in part))


def _shown(starts: range, total: int):  # type: ignore[no-untyped-def]
    """Give the starts, and show on standard error how far the work is."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("machines", total=total)
        for start in starts:
            yield start
            bar.update(task, completed=min(start + AT_ONCE, total))
