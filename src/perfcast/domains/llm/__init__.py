"""Language models as they are served, told also from operators that were measured on GPUs."""

from __future__ import annotations

from perfcast.domain import Domain

DOMAIN = Domain(
    name="llm",
    package=__name__,
    descriptions={"llm_serving": "deployment_rules.LLM_SERVING"},
    tables={"choices": "layout_choices.tabulate_choices"},
    flags={
        "deployments of language models (llm_serving)": {
            ("gpu",): "name: 'H200 SXM'",
            ("model",): "name such as llama-3.1-70b, or the path of its config.json",
            ("batch", "batch-size"): "requests in progress at once",
            ("input", "isl"): "tokens of a prompt",
            ("output", "osl"): "tokens of an answer",
            ("tensor-parallel", "tp"): "GPUs that share each layer",
            ("pipeline-parallel", "pp"): "GPUs that share the layers in turn",
            ("attention-dp", "dp"): "copies of the attention layers",
            ("expert-parallel", "ep"): "GPUs that share the experts of a layer",
            ("precision",): "number format of the weights: bf16, fp8, fp4 or int4",
            ("backend",): "serving software: vllm, sglang or trtllm",
        },
    },
)
