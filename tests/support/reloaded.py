"""A predictor that was saved and loaded again."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from perfcast.predictors.predictor import Predictor, load_predictor


def reloaded(predictor: Predictor) -> Predictor:
    """Return the predictor as it comes back from its files."""
    with TemporaryDirectory() as folder:
        predictor.save(Path(folder))
        return load_predictor(Path(folder))
