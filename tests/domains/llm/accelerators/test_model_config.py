"""Facts of a model from its config.json; anything else is one clear line."""

import json

import pytest
from deployment_project import CONFIG

from perfcast.domains.llm.accelerators.accelerator_catalog import MODEL_FACTS, read_models
from perfcast.domains.llm.accelerators.model_config import MAX_BYTES, parse_model_config, read_model_config
from perfcast.utils.errors import UserError

MIXTURE = {
    **{"num_hidden_layers": 61, "hidden_size": 7168, "intermediate_size": 18432, "vocab_size": 129280},
    **{"num_attention_heads": 128, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64},
    **{"qk_nope_head_dim": 128, "v_head_dim": 128, "first_k_dense_replace": 3, "moe_intermediate_size": 2048},
    **{"n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8},
    "quantization_config": {"quant_method": "fp8"},
}
"""Shape of DeepSeek V3."""


def parse(tree):
    return parse_model_config(tree, "config.json", "mine")


def test_a_dense_model_has_the_facts_of_the_catalog():
    facts, listed = parse(CONFIG).facts, read_models().loc["llama70"]
    assert list(facts) == [*MODEL_FACTS, "heads", "kv_heads"]
    # by hand: 80 layers of 2 x 8192 x 64 x 128 + 2 x 8192 x 8 x 128 + 3 x 8192 x 28672, and 2 x 128256 x 8192
    layer = 2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28672
    assert facts["total_params_1e9"] == pytest.approx((80 * layer + 2 * 128256 * 8192) / 1e9)
    for name in facts:
        assert facts[name] == pytest.approx(listed[name], rel=0.005)
    assert parse({**CONFIG, "max_position_embeddings": 8192}).facts["context_tokens"] == 8192


def test_a_mixture_with_latent_attention_has_the_facts_of_the_catalog():
    shape, listed = parse(MIXTURE), read_models().loc["dsv3"]
    assert shape.precision == "fp8"
    for name in MODEL_FACTS:
        assert shape.facts[name] == pytest.approx(listed[name], rel=0.02), name


def test_a_dense_layer_of_a_mixture_counts_once():
    mixture = {**MIXTURE, "first_k_dense_replace": 0}
    once, often, never = (parse({**mixture, "mlp_only_layers": named}).facts for named in ([5], [5] * 40, [61, -1]))
    assert once == often != never == parse(mixture).facts


def test_layers_by_kind_of_attention():
    kinds = ["sliding_attention", "full_attention"] * 40
    facts = parse({**CONFIG, "layer_types": kinds, "sliding_window": 128}).facts
    assert [facts[name] for name in ("full_layers", "window_layers", "window")] == [40, 40, 128]
    facts = parse({**CONFIG, "full_attention_interval": 4}).facts
    assert [facts[name] for name in ("full_layers", "window_layers")] == [20, 0]
    assert parse({**CONFIG, "sliding_window": 128, "use_sliding_window": False}).facts["window_layers"] == 0
    assert parse({**CONFIG, "sliding_window": 4096}).facts["full_layers"] == 0
    assert parse({**CONFIG, "sliding_window": 4096, "sliding_window_pattern": 4}).facts["full_layers"] == 20


def test_the_shape_of_a_multimodal_model_is_that_of_its_text():
    assert parse({"model_type": "both", "text_config": CONFIG}).facts == parse(CONFIG).facts


def test_tied_embeddings_are_counted_once():
    tied = parse({**CONFIG, "tie_word_embeddings": True}).facts["total_params_1e9"]
    assert parse(CONFIG).facts["total_params_1e9"] - tied == pytest.approx(128256 * 8192 / 1e9)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"hidden_size": None}, "must have hidden_size"),
        ({"hidden_size": -1}, "hidden_size must be a whole number"),
        ({"hidden_size": 10**400}, "hidden_size must be a whole number"),
        ({"hidden_size": True}, "hidden_size must be a whole number"),
        ({"hidden_size": 1.5}, "hidden_size must be a whole number"),
        ({"hidden_size": "8192"}, "hidden_size must be a whole number"),
        ({"hidden_size": [[[]]]}, "hidden_size must be a whole number"),
        ({"hidden_size": 1}, "hidden_size must be at least"),
        ({"num_hidden_layers": 10**6}, "num_hidden_layers must be a whole number"),
        ({"num_experts": 8}, "from 1 to the number of experts"),
        ({"num_experts": 8, "num_experts_per_tok": 9}, "from 1 to the number of experts"),
        ({"layer_types": ["full_attention"]}, "layer_types must name every layer"),
        ({"layer_types": ["made_up"] * 80}, "layer_types must be of full_attention, sliding_attention, linear_attent"),
        ({"intermediate_size": None}, "must have intermediate_size"),
        ({"hidden_size": 10**7, "intermediate_size": 10**7, "num_hidden_layers": 10**4}, "at most 1e+15 parameters"),
    ],
)
def test_a_wrong_number_is_one_line(changed, message):
    with pytest.raises(UserError, match=message.replace("+", r"\+")) as error:
        parse({**CONFIG, **changed})
    assert "\n" not in str(error.value) and len(str(error.value)) < 300


@pytest.mark.parametrize("tree", [None, 1, "text", [], [CONFIG], {}])
def test_another_tree_is_one_line(tree):
    with pytest.raises(UserError):
        parse(tree)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"num_hidden_layers": NaN}',
        b'{"hidden_size": 1, "hidden_size": 2}',
        b" " * (MAX_BYTES + 1),
        b'{"hidden_size": 1' + b"0" * 5000 + b"}",
    ],
)
def test_a_hostile_file_is_one_line(content, tmp_path):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(UserError) as error:
        read_model_config(path)
    assert "\n" not in str(error.value) and len(str(error.value)) < 400


def test_an_absent_file_and_a_folder_are_one_line(tmp_path):
    for path in (tmp_path / "config.json", tmp_path):
        with pytest.raises(UserError, match="there is no file"):
            read_model_config(path)


def test_a_model_is_named_after_its_folder_or_file(tmp_path):
    for name, shown in {"mine/config.json": "mine", "Other_config.json": "Other"}.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(CONFIG))
        assert read_model_config(path).name == f"{shown} (config.json)"
