"""`ft_transformer`: one token per column through a transformer (Gorishniy et al. 2021, arXiv 2106.11959)."""

from __future__ import annotations

from torch import nn

from perfcast.encoding.tokens import TokenEncoder
from perfcast.predictors._feature_transformer import FeatureTransformer
from perfcast.predictors._neural import NeuralPredictor


class FTTransformer(NeuralPredictor):
    """The published FT-Transformer: a feature tokenizer, pre-norm blocks over all columns, a head on [CLS].

    In contrast to `ncpp`, every column may look at every other one from the first block on. What is not the paper's:
    n-grams in the category tokens, a vector for a missing number, the head that starts at zero, no dropout of
    attention weights (it would cost torch's fused kernel on a processor), the schedule and the linear skip. It is much
    narrower than the paper's (192), for the time bound on one processor core.
    """

    def __init__(
        self,
        *,
        width: int = 32,
        heads: int = 2,
        blocks: int = 2,
        feed_width: int = 43,
        dropout: float = 0.1,
        hide_rate: float = 0.02,
        linear_skip: bool = True,
        early_stopping: bool = True,
        refit: bool = True,
        epochs: int = 40,
        least_steps: int = 200,
        batch_rows: int = 256,
        learning_rate: float = 2e-3,
        weight_decay: float = 0.02,
        huber: float = 0.3,
        gradient_norm: float = 1.0,
        patience: int = 12,
        random_state: int = 0,
    ) -> None:
        self.width, self.heads, self.blocks = width, heads, blocks
        self.feed_width, self.dropout, self.hide_rate = feed_width, dropout, hide_rate
        self.linear_skip, self.early_stopping, self.refit = linear_skip, early_stopping, refit
        self.epochs, self.least_steps, self.batch_rows = epochs, least_steps, batch_rows
        self.learning_rate, self.weight_decay, self.huber = learning_rate, weight_decay, huber
        self.gradient_norm, self.patience, self.random_state = gradient_norm, patience, random_state

    def network(self, encoder: TokenEncoder, outputs: int) -> nn.Module:
        """Return an untrained network for the tokens of `encoder`."""
        return FeatureTransformer(
            encoder,
            outputs,
            width=self.width,
            heads=self.heads,
            blocks=self.blocks,
            feed_width=self.feed_width,
            dropout=self.dropout,
            hide_rate=self.hide_rate,
        )
