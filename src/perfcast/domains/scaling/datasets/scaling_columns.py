"""Columns that the tables of trained language models share: one row per trained model and task."""

from __future__ import annotations

LOSS = "loss"
BITS = "bpb"
ACCURACY = "accuracy"
"""Kinds of a task: nat per token, bits per byte of the correct answer, share of correct answers."""
FLOP_PER_PARAM_TOKEN = 6.0
"""Floating-point operations of training per parameter and token. Source: Kaplan et al., 2020, arXiv 2001.08361."""
