"""Neural predictors that read a row as one vector: `mlp`, `mlp_plr` and `resnet`."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from perfcast.features.encoding.tokens import TokenSpec
from perfcast.nn.embedding import NumberEmbedding, PeriodicNumbers
from perfcast.nn.mlp import MLPNetwork, ResNetNetwork
from perfcast.predictors.neural.neural_predictor import NeuralPredictor


@dataclass(kw_only=True, eq=False, repr=False)
class MLP(NeuralPredictor):
    """Multilayer perceptron over embedded columns; the neural baseline beside group attention.

    The backbone is that of `rtdl_revisiting_models` (arXiv 2106.11959). Differences from the paper: embedded numbers,
    n-grams in the category embeddings, the output layer that starts at zero, the preset and the linear skip.
    """

    d_embedding: int = 8
    d_block: int = 192
    n_blocks: int = 2
    n_frequencies: int = 8
    frequency_init_scale: float = 0.16
    dropout: float = 0.1

    def build_network(self, spec: TokenSpec, n_outputs: int) -> nn.Module:
        """Return an untrained network for tokens of these sizes."""
        options = self.network_options("n_frequencies", "frequency_init_scale")
        return MLPNetwork(spec, n_outputs, number=self.number_embedding(spec.n_numbers), **options)

    def number_embedding(self, n_numbers: int) -> nn.Module:
        """Return the untrained embedding of the numerical columns."""
        return NumberEmbedding(n_numbers, self.d_embedding, self.n_frequencies, self.frequency_init_scale)


@dataclass(kw_only=True, eq=False, repr=False)
class MLPPLR(MLP):
    """The network of `mlp` with the published PLR(lite) embeddings of numbers (arXiv 2203.05556).

    A number passes through sines and cosines at learned frequencies of its own, then through one linear layer that all
    columns share, then ReLU. `mlp` adds a straight line and has a layer for every column.
    """

    frequency_init_scale: float = 0.1

    def number_embedding(self, n_numbers: int) -> nn.Module:
        """Return the untrained embedding of the numerical columns."""
        return PeriodicNumbers(n_numbers, self.d_embedding, self.n_frequencies, self.frequency_init_scale)


@dataclass(kw_only=True, eq=False, repr=False)
class ResNet(NeuralPredictor):
    """ResNet for tables (arXiv 2106.11959) of `rtdl_revisiting_models`: plain numbers, embedded categories.

    Differences from the paper: n-grams in the category embeddings, the inputs that mark missing values, the output
    layer that starts at zero, the preset and the linear skip.
    """

    d_embedding: int = 8
    d_block: int = 192
    d_hidden: int = 384
    n_blocks: int = 2
    hidden_dropout: float = 0.1
    residual_dropout: float = 0.0

    def build_network(self, spec: TokenSpec, n_outputs: int) -> nn.Module:
        """Return an untrained network for tokens of these sizes."""
        return ResNetNetwork(spec, n_outputs, **self.network_options())
