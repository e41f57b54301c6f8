"""GPUs and models by typed names, facts of a model from its config.json; anything else is one clear line."""

import json

import pandas as pd
import pytest
from deployment_project import CONFIG

from perfcast.domains.llm.accelerators.accelerator_catalog import (
    MODEL_FACTS,
    find_gpus,
    find_models,
    read_gpus,
    read_models,
)
from perfcast.domains.llm.accelerators.model_config import (
    MAX_BYTES,
    parse_model_config,
    read_model_config,
)
from perfcast.domains.llm.accelerators.typed_names import (
    find_backend,
    find_gpu,
    find_model,
    find_precision,
    near_gpus,
    near_models,
)
from perfcast.utils.errors import UserError

NAMES_OF_GPUS = """
H200: H200, h200 sxm
H100: NVIDIA H100 80GB HBM3
GB200: GB200 NVL72
B200: nvidia b200 192GB
RTX PRO 6000: RTX-PRO-6000, NVIDIA RTX PRO 6000 Blackwell Server Edition
B60: Intel Arc Pro B60
H100 PCIe: H100 PCIe, NVIDIA H100 80GB PCIe
A100 40GB: A100 40GB, a100-40
A100: A100-SXM4-80GB
H100 NVL: H100 NVL 94GB
H20: H20
GH200 144GB: GH200 Grace Hopper Superchip 144GB
MI300X: AMD Instinct MI300X 192GB
RTX 5090: GeForce RTX 5090
-: A100 PCIe, A100 60GB, RTX 6000, H2000
"""
NAMES_OF_MODELS = """
Llama-3.1-70B: Llama 3.1 70B Instruct, meta-llama/Llama-3.1-70B
Llama-3.1-8B-Instruct: Meta-Llama-3.1-8B
DeepSeek-R1: deepseek-ai/DeepSeek-R1-0528
Qwen3-32B fp4: Qwen3-32B-NVFP4
Qwen3-235B-A22B fp8: Qwen/Qwen3-235B-A22B-FP8
gpt-oss-120b: GPT OSS 120B
gpt-oss-20b: gpt-oss-20b
Llama-3-70B: llama3 70b
Llama-3.3-70B: Llama-3.3-70B-Instruct
Llama-2-7B: meta-llama/Llama-2-7b-chat-hf
Llama-3.1-405B fp8: llama 3.1 405b fp8
Mistral-7B: mistral-7b, mistralai/Mistral-7B-Instruct-v0.3
Mixtral-8x22B: Mixtral-8x22B-Instruct-v0.1
Gemma-3-27B: gemma-3-27b
Gemma-2-9B: google/gemma-2-9b-it
Qwen2.5-72B int4: Qwen2.5-72B-Instruct-AWQ
Qwen2-7B: qwen2 7b
Phi-4: microsoft/phi-4
-: deepseek-r1-distill-llama-70b, Mistral-7B-v0.1, llama-4-70b, DeepSeek-V3.2, /, -
"""


def typed(names):
    """Return the name that each typed text means; '' of none."""
    lines = (line.split(": ", 1) for line in names.strip().splitlines())
    return {
        "": "",
        **{text: name.removeprefix("-") for name, texts in lines for text in texts.split(", ")},
    }


def test_gpus_and_models():
    gpus = typed(NAMES_OF_GPUS)
    models = typed(NAMES_OF_MODELS)
    assert {text: find_gpu(text) or "" for text in gpus} == gpus
    known = {text: find_model(text) for text in models}
    assert {text: f"{each.name} {each.precision}".rstrip() if each else "" for text, each in known.items()} == models


def test_names_of_the_catalogs_formats_and_software():
    aliases, names = (column.str.split("|").explode() for column in (read_gpus()["aliases"], read_models()["names"]))
    assert [find_gpu(name) for name in aliases] == aliases.index.tolist()
    assert [find_gpu(name) for name in read_gpus().index] == read_gpus().index.tolist()
    assert [known and known.family for known in map(find_model, names)] == names.index.tolist()
    assert find_gpus(aliases.reset_index(drop=True)).tolist() == aliases.index.tolist()
    assert find_models(names.reset_index(drop=True)).notna().all()
    assert list(find_gpus(pd.Series([" H200_SXM", "gb200", "h900"])).fillna("-")) == [
        "H200",
        "GB200",
        "-",
    ]
    written = pd.Series(["deepseek-ai/DeepSeek-R1", "nvidia/DeepSeek-V3.1-NVFP4", "gpt-oss-7b"])
    assert list(find_models(written).fillna("-")) == ["dsv3", "dsv3", "-"]
    assert [find_precision(text) for text in ("FP8", "nvfp4", "bfloat16", "fp6")] == [
        "fp8",
        "fp4",
        "bf16",
        None,
    ]
    assert [find_backend(text) for text in ("TensorRT-LLM", "vLLM", "llama.cpp")] == [
        "trtllm",
        "vllm",
        None,
    ]
    assert near_gpus("h201")[:2] == ["H20", "H200"] and near_models("llama-3.1-7b")[0].startswith("Llama-3.1")
    assert near_gpus("") and near_models("\N{SNOWMAN}" * 50)


MIXTURE = {
    "num_hidden_layers": 61,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "vocab_size": 129280,
    "num_attention_heads": 128,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "first_k_dense_replace": 3,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "quantization_config": {"quant_method": "fp8"},
}
"""Shape of DeepSeek V3."""


def parse(tree):
    return parse_model_config(tree, "config.json", "mine")


def test_a_dense_model_has_the_facts_of_the_catalog():
    facts = parse(CONFIG).facts
    listed = read_models().loc["llama70"]
    assert list(facts) == [*MODEL_FACTS, "heads", "kv_heads"]
    # by hand: 80 layers of 2 x 8192 x 64 x 128 + 2 x 8192 x 8 x 128 + 3 x 8192 x 28672, and 2 x 128256 x 8192
    layer = 2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28672
    assert facts["total_params_1e9"] == pytest.approx((80 * layer + 2 * 128256 * 8192) / 1e9)
    assert facts == pytest.approx({name: listed[name] for name in facts}, rel=0.005)
    assert parse({**CONFIG, "max_position_embeddings": 8192}).facts["context_tokens"] == 8192
    assert parse({"model_type": "both", "text_config": CONFIG}).facts == facts, (
        "a multimodal model has that of its text"
    )
    tied = parse({**CONFIG, "tie_word_embeddings": True}).facts["total_params_1e9"]
    assert facts["total_params_1e9"] - tied == pytest.approx(128256 * 8192 / 1e9), "counted once"


def test_a_mixture_with_latent_attention_has_the_facts_of_the_catalog():
    shape = parse(MIXTURE)
    listed = read_models().loc["dsv3"]
    assert shape.precision == "fp8"
    for name in MODEL_FACTS:
        assert shape.facts[name] == pytest.approx(listed[name], rel=0.02), name
    mixture = {**MIXTURE, "first_k_dense_replace": 0}
    once, often, never = (parse({**mixture, "mlp_only_layers": named}).facts for named in ([5], [5] * 40, [61, -1]))
    assert once == often != never == parse(mixture).facts, "a dense layer counts once"


def test_layers_by_kind_of_attention():
    for changed, layers in (
        (
            {
                "layer_types": ["sliding_attention", "full_attention"] * 40,
                "sliding_window": 128,
            },
            (40, 40, 128),
        ),
        ({"full_attention_interval": 4}, (20, 0, 0)),
        ({"sliding_window": 128, "use_sliding_window": False}, (80, 0, 0)),
        ({"sliding_window": 4096}, (0, 80, 4096)),
        ({"sliding_window": 4096, "sliding_window_pattern": 4}, (20, 60, 4096)),
    ):
        facts = parse({**CONFIG, **changed}).facts
        assert tuple(facts[name] for name in ("full_layers", "window_layers", "window")) == layers


def test_a_wrong_number_is_one_line():
    for changed, message in (
        ({"hidden_size": None}, "must have hidden_size"),
        ({"hidden_size": 10**400}, "hidden_size must be a whole number"),
        ({"hidden_size": True}, "hidden_size must be a whole number"),
        ({"hidden_size": 1}, "hidden_size must be at least"),
        ({"num_hidden_layers": 10**6}, "num_hidden_layers must be a whole number"),
        (
            {"num_experts": 8, "num_experts_per_tok": 9},
            "from 1 to the number of experts",
        ),
        ({"layer_types": ["full_attention"]}, "layer_types must name every layer"),
        (
            {"layer_types": ["made_up"] * 80},
            "layer_types must be of full_attention, sliding_attention, linear_attent",
        ),
        ({"intermediate_size": None}, "must have intermediate_size"),
        (
            {
                "hidden_size": 10**7,
                "intermediate_size": 10**7,
                "num_hidden_layers": 10**4,
            },
            "at most 1e+15 parameters",
        ),
    ):
        with pytest.raises(UserError) as error:
            parse({**CONFIG, **changed})
        assert message in str(error.value) and "\n" not in str(error.value) and len(str(error.value)) < 300


HOSTILE = (
    b"",
    b"\xff\xfe\x00",
    b"[" * 100_000,
    b'{"num_hidden_layers": NaN}',
    b" " * (MAX_BYTES + 1),
)
HOSTILE += (
    b"null",
    b"{}",
    b'{"hidden_size": 1, "hidden_size": 2}',
    b'{"hidden_size": 1' + b"0" * 5000 + b"}",
)


@pytest.mark.parametrize("content", [*HOSTILE, None, "a folder"])
def test_a_hostile_file_is_one_line(content, tmp_path):
    path = tmp_path if content == "a folder" else tmp_path / "config.json"
    if isinstance(content, bytes):
        path.write_bytes(content)
    with pytest.raises(UserError, match=None if isinstance(content, bytes) else "there is no file") as error:
        read_model_config(path)
    assert "\n" not in str(error.value) and len(str(error.value)) < 400


def test_a_model_is_named_after_its_folder_or_file(tmp_path):
    (tmp_path / "mine").mkdir()
    for name, shown in {
        "mine/config.json": "mine",
        "Other_config.json": "Other",
    }.items():
        (tmp_path / name).write_text(json.dumps(CONFIG))
        assert read_model_config(tmp_path / name).name == f"{shown} (config.json)"
