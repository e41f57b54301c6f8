"""The FT-Transformer network (Gorishniy et al. 2021, arXiv 2106.11959)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from perfcast.encoding.tokens import TokenEncoder
from perfcast.predictors._embedding import CategoryEmbedding, NumberEmbedding, hide
from perfcast.training.data import Rows


class ReGLU(nn.Module):
    """A ReLU-gated feed-forward layer (Shazeer 2020, arXiv 2002.05202). Shapes: (..., width) to the same."""

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(width, 2 * hidden), nn.Linear(hidden, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer."""
        value, gate = self.enter(x).chunk(2, dim=-1)
        result: Tensor = self.leave(self.dropout(value * torch.relu(gate)))
        return result


class TransformerBlock(nn.Module):
    """Pre-norm multi-head self-attention, then ReGLU, both residual.

    As in the paper the first block has no norm before its attention. Shapes: (rows, tokens, width) to (rows, asking,
    width), where the first `asking` tokens look at all tokens.
    """

    def __init__(self, width: int, heads: int, hidden: int, dropout: float, *, first: bool) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.Identity() if first else nn.LayerNorm(width)
        self.query, self.key_value = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.merge = nn.Linear(width, width)
        self.feed_norm = nn.LayerNorm(width)
        self.feed = ReGLU(width, hidden, dropout)

    def forward(self, tokens: Tensor, asking: int) -> Tensor:
        """Relate the first `asking` tokens to all tokens."""
        normed = self.norm(tokens)
        query = self._split(self.query(normed[:, :asking]))
        key, value = map(self._split, self.key_value(normed).chunk(2, dim=-1))
        mixed = nn.functional.scaled_dot_product_attention(query, key, value)
        x = tokens[:, :asking] + self.merge(mixed.transpose(1, 2).flatten(2))
        related: Tensor = x + self.feed(self.feed_norm(x))
        return related

    def _split(self, x: Tensor) -> Tensor:
        heads: Tensor = x.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        return heads


class FeatureTransformer(nn.Module):
    """A [CLS] token and one token per column through transformer blocks; Linear(ReLU(LayerNorm)) on [CLS].

    In the last block [CLS] alone asks: no other token of it is read. The head starts at zero.
    Shapes: rows to (rows, outputs).
    """

    def __init__(
        self,
        encoder: TokenEncoder,
        outputs: int,
        *,
        width: int,
        heads: int,
        blocks: int,
        feed_width: int,
        dropout: float,
        hide_rate: float,
    ) -> None:
        super().__init__()
        self.hide_rate = hide_rate
        # Without frequencies this is the paper's tokenizer: x w + b.
        self.number = NumberEmbedding(len(encoder.numbers), width, frequencies=0, frequency_scale=1.0)
        self.category = CategoryEmbedding(encoder, width)
        self.cls = nn.Parameter(torch.randn(1, 1, width) * 0.5)
        self.blocks = nn.ModuleList(
            TransformerBlock(width, heads, feed_width, dropout, first=position == 0) for position in range(blocks)
        )
        self.head = nn.Sequential(nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, outputs))
        for parameter in self.head[-1].parameters():
            nn.init.zeros_(parameter)

    def forward(self, rows: Rows) -> Tensor:
        """Forecast standardised targets."""
        if self.training:
            rows = hide(rows, self.hide_rate)
        x = torch.cat([self.cls.expand(len(rows), -1, -1), self.number(rows), self.category(rows)], dim=1)
        for block in self.blocks[:-1]:
            x = block(x, x.shape[1])
        forecast: Tensor = self.head(self.blocks[-1](x, 1).squeeze(1))
        return forecast
