"""`lstm`: the columns of a row read as a sequence, with LSTM cells."""

from __future__ import annotations

from torch import nn

from perfcast.predictors._recurrent import RecurrentPredictor


class LSTM(RecurrentPredictor):
    """Long short-term memory (Hochreiter & Schmidhuber 1997) over the columns of a row in a fixed order."""

    cell = nn.LSTM
