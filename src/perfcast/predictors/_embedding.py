"""Tokens to vectors: what the neural predictors share."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from perfcast.encoding.tokens import UNKNOWN, TokenEncoder
from perfcast.training.data import Rows

ALL = slice(None)


def hide(rows: Rows, rate: float) -> Rows:
    """Return rows with a random share of the numbers missing, of the codes unknown, of the strings empty.

    Training with it gives the vectors of "missing" and "unknown" a meaning even when every training value is known,
    and keeps a network from resting on one name.
    """
    if rate <= 0.0:
        return rows
    hidden = torch.rand_like(rows.numbers) < rate
    unknown = torch.rand(rows.codes.shape, device=rows.codes.device) < rate
    empty = torch.rand(rows.codes.shape, device=rows.codes.device) < rate
    return replace(
        rows,
        numbers=rows.numbers.masked_fill(hidden, 0.0),
        missing=rows.missing.masked_fill(hidden, 1.0),
        codes=rows.codes.masked_fill(unknown, UNKNOWN),
        strings=rows.strings.masked_fill(empty, 0),
    )


class NumberEmbedding(nn.Module):
    """One vector per numerical token: x w + b, plus sines and cosines of x at learned frequencies; m + b when missing.

    The periodic part (Gorishniy et al. 2022, arXiv 2203.05556) lets a network see thresholds within the range of the
    training rows; it is evaluated inside +-`_PERIODIC_RANGE` deviations: beyond, a token goes on as a straight line.
    Shapes: result (rows, numerical, width).
    """

    _PERIODIC_RANGE = 3.0

    def __init__(self, numbers: int, width: int, frequencies: int, frequency_scale: float) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.randn(numbers, width) * 0.5)
        self.offset = nn.Parameter(torch.randn(numbers, width) * 0.5)
        self.missing = nn.Parameter(torch.zeros(numbers, width))
        self.frequency = nn.Parameter(torch.randn(numbers, frequencies) * frequency_scale)
        self.wave = nn.Parameter(torch.randn(numbers, 2 * frequencies, width) * (0.5 / max(1, frequencies) ** 0.5))

    def forward(self, rows: Rows, columns: slice = ALL) -> Tensor:
        """Embed the numbers of a batch, or some of its columns."""
        x = rows.numbers[:, columns].unsqueeze(-1)
        vectors = torch.addcmul(self.offset[columns], x, self.slope[columns])
        if self.frequency.shape[1]:
            angle = x.clamp(-self._PERIODIC_RANGE, self._PERIODIC_RANGE) * self.frequency[columns]
            waves = torch.cat([torch.sin(angle), torch.cos(angle)], dim=-1)
            vectors = vectors + torch.einsum("bnf,nfw->bnw", waves, self.wave[columns])
        return vectors + rows.missing[:, columns].unsqueeze(-1) * self.missing[columns]


class CategoryEmbedding(nn.Module):
    """One vector per categorical token: that of its code plus the mean of its string's n-grams.

    Shapes: result (rows, categorical, width).
    """

    offsets: Tensor

    def __init__(self, encoder: TokenEncoder, width: int) -> None:
        super().__init__()
        sizes = encoder.vocabulary_sizes
        starts = [sum(sizes[:position]) for position in range(len(sizes))]
        self.register_buffer("offsets", torch.tensor(starts, dtype=torch.int64), persistent=False)
        self.code = nn.Embedding(max(1, sum(sizes)), width)
        self.gram = nn.EmbeddingBag(encoder.gram_count, width, mode="mean", padding_idx=0)
        nn.init.normal_(self.code.weight, std=0.5)
        nn.init.normal_(self.gram.weight, std=0.5)
        with torch.no_grad():
            self.gram.weight[0].zero_()

    def forward(self, rows: Rows, columns: slice = ALL) -> Tensor:
        """Embed the categories of a batch, or some of its columns."""
        # A batch holds few distinct strings: each is embedded once.
        distinct, place = torch.unique(rows.strings[:, columns], return_inverse=True)
        vectors: Tensor = (
            self.code(rows.codes[:, columns] + self.offsets[columns]) + self.gram(rows.grams[distinct])[place]
        )
        return vectors
