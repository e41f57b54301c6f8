"""Neural predictors over feature tokens: `ncpp`, `mac` and `ft_transformer`."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from perfcast.features.encoding.tokens import TokenSpec
from perfcast.nn.group_attention import GroupAttentionNetwork
from perfcast.nn.mamba import MambaGroupNetwork
from perfcast.nn.mlp import FTTransformerNetwork
from perfcast.predictors.neural.neural_predictor import NeuralPredictor


@dataclass(kw_only=True, eq=False, repr=False)
class NCPP(NeuralPredictor):
    """Group attention (arXiv 2407.03385), corrected: attention within groups, between groups, one head for all targets.

    Differences from the published network, beside the corrections: one token per column in place of convolutions over
    columns; a read-out into a wider vector per group in place of a mean; character n-grams in place of single
    characters; the linear skip.
    """

    d_token: int = 32
    n_heads: int = 2
    n_intra_blocks: int = 1
    d_bottleneck: int = 8
    d_block: int = 128
    n_group_heads: int = 4
    n_blocks: int = 1
    n_frequencies: int = 8
    frequency_init_scale: float = 0.16
    dropout: float = 0.1
    epochs: int = 25
    patience: int = 10

    def build_network(self, spec: TokenSpec, n_outputs: int) -> nn.Module:
        """Return an untrained network for tokens of these sizes."""
        return GroupAttentionNetwork(spec, n_outputs, **self.network_options())


@dataclass(kw_only=True, eq=False, repr=False)
class MaC(NeuralPredictor):
    """Mamba and group attention (MambaCPU, arXiv 2410.19297): state space blocks relate the tokens before attention.

    Differences from the publication: every column has its own weights, with periodic terms, in place of one linear
    layer for all; one token per group is added; the read-out has a bottleneck per token before it flattens a group;
    the linear skip; the loss, optimizer and preset that all neural predictors share.
    """

    d_token: int = 16
    d_state: int = 8
    n_mamba_blocks: int = 2
    n_heads: int = 2
    d_bottleneck: int = 8
    d_block: int = 128
    n_group_heads: int = 4
    n_frequencies: int = 8
    frequency_init_scale: float = 0.16
    dropout: float = 0.1
    epochs: int = 10
    batch_size: int = 128
    patience: int = 5

    def build_network(self, spec: TokenSpec, n_outputs: int) -> nn.Module:
        """Return an untrained network for tokens of these sizes."""
        return MambaGroupNetwork(spec, n_outputs, n_intra_blocks=1, n_blocks=1, **self.network_options())


@dataclass(kw_only=True, eq=False, repr=False)
class FTTransformer(NeuralPredictor):
    """FT-Transformer (arXiv 2106.11959): a feature tokenizer, pre-norm blocks over all columns, a head on [CLS].

    The backbone is that of `rtdl_revisiting_models`. In contrast to `ncpp`, every column attends to every other one
    from the first block on. Differences from the paper: n-grams in the category tokens, a vector for a missing number,
    the output layer that starts at zero, no dropout of attention weights, the preset and the linear skip. It is much
    narrower than in the paper (192), for the time bound on one core.
    """

    d_token: int = 32
    n_heads: int = 2
    n_blocks: int = 2
    d_ffn: int = 43
    dropout: float = 0.1

    def build_network(self, spec: TokenSpec, n_outputs: int) -> nn.Module:
        """Return an untrained network for tokens of these sizes."""
        return FTTransformerNetwork(spec, n_outputs, **self.network_options())
