"""Neural predictor that reads a row as one vector: `mlp`."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from perfcast.features.encoding.tokens import TokenSpec
from perfcast.nn.embedding import NumberEmbedding
from perfcast.nn.mlp import MLPNetwork
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
        number = NumberEmbedding(spec.n_numbers, self.d_embedding, self.n_frequencies, self.frequency_init_scale)
        options = self.network_options("n_frequencies", "frequency_init_scale")
        return MLPNetwork(spec, n_outputs, number=number, **options)
