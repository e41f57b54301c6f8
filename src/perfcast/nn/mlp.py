"""Networks of packages: MLP and FT-Transformer of `rtdl_revisiting_models`, and the ensemble of `tabm`.

Sources: Gorishniy et al. 2021, arXiv 2106.11959; Gorishniy et al. 2024, arXiv 2410.24210.
"""

from __future__ import annotations

from typing import Any

import rtdl_revisiting_models
import tabm
import torch
from torch import Tensor, nn

from perfcast.features.encoding.tokens import TokenSpec
from perfcast.nn.embedding import CategoryEmbedding, NumberEmbedding, TokenBatch, initialize_to_zero


class FlatNetwork(nn.Module):
    """A network that sees all columns of a row side by side: numbers, their absence, embedded numbers, categories.

    `number` embeds the numbers, (rows, numerical, d_embedding). `sizes` has the width of every part of the vector, in
    order. A subclass sets `backbone`, from vectors to (rows, outputs).
    """

    backbone: Any

    def __init__(self, spec: TokenSpec, number: nn.Module, d_embedding: int) -> None:
        super().__init__()
        self.number = number
        self.category = CategoryEmbedding(spec, d_embedding)
        self.sizes = [1] * (1 + 2 * spec.n_numbers) + [d_embedding] * (spec.n_numbers + spec.n_categories)

    def flatten(self, batch: TokenBatch) -> Tensor:
        """Return the vector of every row. Shapes: (rows, sum of `sizes`)."""
        numbers = torch.relu(self.number(batch)).flatten(1)
        # The constant input serves tables in which no column varies.
        constant = batch.numbers.new_ones(len(batch), 1)
        categories = self.category(batch).flatten(1)
        return torch.cat([constant, batch.numbers, batch.missing, numbers, categories], dim=1)

    def forward(self, batch: TokenBatch) -> Tensor:
        """Predict standardized targets."""
        prediction: Tensor = self.backbone(self.flatten(batch))
        return prediction


class MLPNetwork(FlatNetwork):
    """Embedded columns side by side, then the package's MLP. The output layer starts at zero."""

    def __init__(
        self, spec: TokenSpec, n_outputs: int, *, number: nn.Module, d_embedding: int, **backbone: Any
    ) -> None:
        super().__init__(spec, number, d_embedding)
        self.backbone = rtdl_revisiting_models.MLP(d_in=sum(self.sizes), d_out=n_outputs, **backbone)
        initialize_to_zero(self.backbone.output)


class TabMNetwork(FlatNetwork):
    """Perceptrons that share their matrices, each with its own head; the heads start at zero.

    The k members differ from the start by the random factors of their first scaling, one factor for all inputs of a
    column that belong together. The factors are normal, as in the package where numbers are embedded.
    Shapes: rows to (rows, k, outputs) in training, so that each member has its own loss; otherwise to the mean over
    members, (rows, outputs).
    """

    def __init__(
        self,
        spec: TokenSpec,
        n_outputs: int,
        *,
        number: nn.Module,
        k: int,
        d_embedding: int,
        d_block: int,
        **backbone: Any,
    ) -> None:
        super().__init__(spec, number, d_embedding)
        self.view = tabm.EnsembleView(k=k)
        self.backbone = tabm.make_tabm_backbone(
            d_in=sum(self.sizes),
            d_block=d_block,
            k=k,
            start_scaling_init="normal",
            start_scaling_init_chunks=self.sizes,
            **backbone,
        )
        self.head = tabm.LinearEnsemble(d_block, n_outputs, k=k)
        initialize_to_zero(self.head)

    def forward(self, batch: TokenBatch) -> Tensor:
        """Predict standardized targets."""
        predictions: Tensor = self.head(self.backbone(self.view(self.flatten(batch))))
        return predictions if self.training else predictions.mean(dim=1)


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
