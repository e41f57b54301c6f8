"""Plots of an evaluation: functions `draw(evaluation) -> Figure | None`, named and described in `catalog.yaml`."""
