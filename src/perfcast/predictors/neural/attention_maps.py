"""Attention weights of a fitted network, averaged over rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from perfcast.nn.token_batch import TokenBatch
from perfcast.training.batches import BatchLoader
from perfcast.training.loop import reproducible

_BATCH_SIZE = 256


@dataclass(frozen=True)
class Attention:
    """Mean attention weights over rows and heads, of the last block of each kind; every row of a matrix sums to 1.

    `intra` maps a group to a frame over its columns ("(group)" is the token of the group); `inter` is a square frame
    over groups. Rows are queries, columns are keys; where a group has one query for all, the row is "(group)".
    """

    intra: dict[str, pd.DataFrame]
    inter: pd.DataFrame


def mean_weights(network: nn.Module, rows: TokenBatch) -> list[np.ndarray]:
    """Return every attention matrix of a network, in the order it makes them, averaged over heads and rows.

    The network appends weights of shape (rows, heads, queries, keys) to the list that it receives.
    """
    totals: list[np.ndarray] = []
    with reproducible(0), torch.inference_mode():
        for batch in BatchLoader(rows, _BATCH_SIZE):
            weights: list[Tensor] = []
            network(batch, weights)
            sums = [share.double().mean(dim=1).sum(dim=0).numpy() for share in weights]
            totals = [a + b for a, b in zip(totals, sums, strict=True)] if totals else sums
    return [total / len(rows) for total in totals]
