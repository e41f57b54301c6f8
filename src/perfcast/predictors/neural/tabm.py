"""Implicit ensembles of perceptrons that share most weights: `tabm` and `tabm_ple`.

Source: Gorishniy et al. 2024, arXiv 2410.24210.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from perfcast.features.encoding.tokens import Tokens, TokenSpec
from perfcast.nn.embedding import PeriodicNumbers, PiecewiseLinearNumbers, quantile_bins
from perfcast.nn.mlp import TabMNetwork
from perfcast.predictors.neural.neural_predictor import NeuralPredictor
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state


@dataclass(kw_only=True, eq=False, repr=False)
class _TabMBase(NeuralPredictor):
    """TabM by its published package: k perceptrons in one, each with its own loss, averaged in the prediction.

    The members share the embeddings and every weight matrix. Scalings of each layer's inputs and outputs, biases and
    the head belong to one member. Differences from the paper: embedded categories with their n-grams in place of
    one-hot codes, smaller k (32 in the paper), heads that start at zero, the preset and the linear skip.
    """

    k: int = 8
    d_embedding: int = 8
    d_block: int = 128
    n_blocks: int = 2
    dropout: float = 0.1

    def build_network(self, spec: TokenSpec, n_outputs: int) -> nn.Module:
        """Return an untrained network for tokens of these sizes."""
        options = self.network_options("n_frequencies", "frequency_init_scale", "n_bins")
        return TabMNetwork(spec, n_outputs, number=self.number_embedding(spec.n_numbers), **options)

    @abstractmethod
    def number_embedding(self, n_numbers: int) -> nn.Module:
        """Return the untrained embedding of the numerical columns."""


@dataclass(kw_only=True, eq=False, repr=False)
class TabM(_TabMBase):
    """TabM with PLR(lite) embeddings of numbers (arXiv 2203.05556): sines, one linear layer of all columns, ReLU."""

    n_frequencies: int = 8
    frequency_init_scale: float = 0.1

    def number_embedding(self, n_numbers: int) -> nn.Module:
        """Return the untrained embedding of the numerical columns."""
        return PeriodicNumbers(n_numbers, self.d_embedding, self.n_frequencies, self.frequency_init_scale)


@dataclass(kw_only=True, eq=False, repr=False)
class TabMPLE(_TabMBase):
    """TabM with piecewise-linear embeddings of numbers, the strongest variant of the paper.

    The edges of the bins are quantiles of the training rows.
    """

    n_bins: int = 16

    def number_embedding(self, n_numbers: int) -> nn.Module:
        """Return the untrained embedding of the numerical columns."""
        return PiecewiseLinearNumbers(self.bins_, self.d_embedding)

    def _prepare_network(self, tokens: Tokens) -> None:
        self.bins_ = quantile_bins(tokens.numbers, tokens.missing, self.n_bins)

    def _save(self, folder: Path) -> None:
        super()._save(folder)
        write_json(folder / "bins.json", self.bins_)

    def _load(self, folder: Path) -> None:
        self.bins_ = read_state(folder / "bins.json")
        super()._load(folder)
