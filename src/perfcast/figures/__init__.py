"""Figures: one module each, with TITLE, CAPTION and `draw(evaluation) -> Figure | None`."""
