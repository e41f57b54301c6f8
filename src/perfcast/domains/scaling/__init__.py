"""Training runs of language models, and the laws by which their results follow from size and training."""

from __future__ import annotations

from perfcast.domain import Domain

DOMAIN = Domain(
    name="scaling",
    package=__name__,
    descriptions={
        "llm_ladder": "training_rules.LLM_LADDER",
        "llm_overtraining": "training_rules.LLM_OVERTRAINING",
    },
    flags={
        "training runs of language models (llm_ladder, llm_overtraining)": {
            ("params", "parameters"): "parameters of the model: 32B",
            ("tokens", "training-tokens"): "tokens seen in training: 6T",
        },
    },
)
