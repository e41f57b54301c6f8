"""Where a fitted attention network looks, averaged over rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from perfcast.training.data import Batches, Rows
from perfcast.training.loop import reproducible

_BATCH_ROWS = 256


@dataclass(frozen=True)
class Attention:
    """Mean attention weights over rows and heads, of the last block of each kind; every row of a matrix sums to 1.

    `intra` maps a group to a frame over its columns ("(group)" is the group's own token); `inter` is a square frame
    over groups. Rows ask, columns are looked at; where a group asks one question for all, the row is "(group)".
    """

    intra: dict[str, pd.DataFrame]
    inter: pd.DataFrame


def mean_weights(network: nn.Module, rows: Rows) -> list[np.ndarray]:
    """Return every attention matrix of a network, in the order it makes them, averaged over heads and rows.

    The network adds weights of shape (rows, heads, asking, looked at) to the list it is given.
    """
    totals: list[np.ndarray] = []
    with reproducible(0), torch.inference_mode():
        for batch in Batches(rows, _BATCH_ROWS):
            weights: list[Tensor] = []
            network(batch, weights)
            sums = [share.double().mean(dim=1).sum(dim=0).numpy() for share in weights]
            totals = [a + b for a, b in zip(totals, sums, strict=True)] if totals else sums
    return [total / len(rows) for total in totals]
