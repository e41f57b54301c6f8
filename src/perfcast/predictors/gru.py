"""`gru`: the columns of a row read as a sequence, with GRU cells."""

from __future__ import annotations

from torch import nn

from perfcast.predictors._recurrent import RecurrentPredictor


class GRU(RecurrentPredictor):
    """Gated recurrent units (Cho et al. 2014, arXiv 1406.1078) over the columns of a row in a fixed order."""

    cell = nn.GRU
