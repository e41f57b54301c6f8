"""The FT-Transformer network (Gorishniy et al. 2021, arXiv 2106.11959) over feature tokens."""

from __future__ import annotations

import rtdl_revisiting_models
import torch
from torch import Tensor, nn

from perfcast.features.encoding.token_arrays import TokenSpec
from perfcast.nn.embedding import CategoryEmbedding, NumberEmbedding, initialize_to_zero
from perfcast.nn.token_batch import TokenBatch


class FTTransformerNetwork(nn.Module):
    """A [CLS] token and one token per column through the backbone of `rtdl_revisiting_models`.

    The output layer starts at zero. Shapes: rows to (rows, outputs).
    """

    def __init__(
        self,
        spec: TokenSpec,
        n_outputs: int,
        *,
        d_token: int,
        n_heads: int,
        n_blocks: int,
        d_ffn: int,
        dropout: float,
    ) -> None:
        super().__init__()
        # Without frequencies this is the tokenizer of the paper: x w + b.
        self.number = NumberEmbedding(spec.n_numbers, d_token, n_frequencies=0, frequency_init_scale=1.0)
        self.category = CategoryEmbedding(spec, d_token)
        self.cls = nn.Parameter(torch.randn(1, 1, d_token) * 0.5)
        self.backbone = rtdl_revisiting_models.FTTransformerBackbone(
            d_out=n_outputs,
            n_blocks=n_blocks,
            d_block=d_token,
            attention_n_heads=n_heads,
            attention_dropout=0.0,
            ffn_d_hidden=d_ffn,
            ffn_d_hidden_multiplier=None,
            ffn_dropout=dropout,
            residual_dropout=0.0,
        )
        initialize_to_zero(self.backbone.output.linear)

    def forward(self, batch: TokenBatch) -> Tensor:
        """Predict standardized targets."""
        cls = self.cls.expand(len(batch), -1, -1)
        prediction: Tensor = self.backbone(torch.cat([cls, self.number(batch), self.category(batch)], dim=1))
        return prediction
