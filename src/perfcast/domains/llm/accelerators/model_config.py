"""Facts of a language model from its `config.json`, in the form that Hugging Face's transformers write.

Parameters are counted from the shapes of the weight matrices: attention (also with latent caches), gated feed-forward
layers, routed and shared experts, linear attention, and embeddings. Norms, biases and predicted further tokens are left
out: less than 1 % of the models of the catalog.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfcast.utils.errors import UserError
from perfcast.utils.io import read_json_text

MAX_BYTES = 1 << 20
"""Largest file: those of the catalog's models have a few thousand bytes."""

_LARGEST = {"layers": 10_000, "experts": 100_000}
_MAX_SIZE = 10_000_000
"""Largest width, vocabulary or window."""
_MAX_PARAMETERS = 1e15
_SHOWN_LETTERS = 60
_LAYERS = "num_hidden_layers"
_HIDDEN = "hidden_size"
_HEADS = "num_attention_heads"
_KV_HEADS = "num_key_value_heads"
_EXPERTS = ("n_routed_experts", "num_local_experts", "num_experts")
_EXPERTS_PER_TOKEN = ("num_experts_per_tok", "experts_per_token", "moe_topk")
_LAYER_TYPES = ("full_attention", "sliding_attention", "linear_attention")
_WEIGHT_FORMATS = {
    "fp8": "fp8",
    "mxfp4": "fp4",
    "nvfp4": "fp4",
    "awq": "int4",
    "gptq": "int4",
}


@dataclass(frozen=True)
class ModelShape:
    """Facts of a model under the names of `MODEL_FACTS` and `MODEL_LIMITS`, and the format of its weights or ""."""

    name: str
    facts: Mapping[str, float]
    precision: str = ""


def read_model_config(path: Path) -> ModelShape:
    """Read a `config.json`. Raises: UserError, one line, when the file is absent, too large, or no such description."""
    path = Path(path)
    if not path.is_file():
        raise UserError(
            "model must be a known name or a config.json file",
            f"there is no file {_shown(path)}",
        )
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"{_shown(path)} must be readable", str(error)) from None
    if len(content) > MAX_BYTES:
        raise UserError(f"{_shown(path)} must be smaller than {MAX_BYTES >> 20} MiB", "it is larger")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{_shown(path)} must be UTF-8 text", "it is not", "give a config.json") from None
    return parse_model_config(read_json_text(text, _shown(path)), _shown(path), _name_of(path))


def parse_model_config(tree: object, source: str, name: str) -> ModelShape:
    """Return the facts of a decoded `config.json`; `source` names it in errors. Raises: see `read_model_config`."""
    if not isinstance(tree, dict):
        raise UserError(
            f"{source} must be a JSON object",
            f"it is a {type(tree).__name__}",
            "give a config.json",
        )
    nested = tree.get("text_config")
    config = _Config(nested if _LAYERS not in tree and isinstance(nested, dict) else tree, source)
    layers = config.count(_LAYERS, _LARGEST["layers"])
    hidden = config.count(_HIDDEN)
    full, window_layers, window, linear = _count_attention(config, layers)
    experts = config.optional(*_EXPERTS, largest=_LARGEST["experts"])
    per_token = config.optional(*_EXPERTS_PER_TOKEN, largest=_LARGEST["experts"]) if experts else 0
    if experts and not 0 < per_token <= experts:
        fact = f"{source} has {per_token:g} of {experts:g}"
        raise UserError(f"{_EXPERTS_PER_TOKEN[0]} must be from 1 to the number of experts", fact)
    attention, kv_elements = _count_attention_weights(config, hidden)
    mixtures = _count_mixture_layers(config, layers) if experts else 0
    dense = config.optional("intermediate_size")
    width = config.optional("moe_intermediate_size") or dense
    if not width or (layers > mixtures and not (dense or width)):
        raise config.missing("intermediate_size")
    expert = 3 * hidden * width
    shared = config.optional("n_shared_experts") * expert if experts else 0.0
    shared += 3 * hidden * config.optional("shared_expert_intermediate_size", "shared_intermediate_size")
    embedded = config.count("vocab_size") * hidden * (1 if config.flag("tie_word_embeddings") else 2)
    total = embedded + (layers - linear) * attention + linear * _count_linear_weights(config, hidden)
    total += (layers - mixtures) * 3 * hidden * (dense or width)
    total += mixtures * (experts * expert + shared + hidden * experts)
    active = total - mixtures * (experts - per_token) * expert
    if mixtures and not config.flag("tie_word_embeddings"):
        active -= embedded / 2  # one row of them is looked up
    if not 0 < total <= _MAX_PARAMETERS:
        raise UserError(
            f"{source} must describe at most {_MAX_PARAMETERS:g} parameters",
            f"it has {total:.3g}",
        )
    facts = {
        "total_params_1e9": total / 1e9,
        "active_params_1e9": active / 1e9,
        "layers": layers,
        "hidden": hidden,
        "kv_elements": kv_elements,
        "full_layers": full,
        "window_layers": window_layers,
        "window": window,
        "experts": experts,
        "experts_per_token": per_token,
        "heads": config.count(_HEADS),
        "kv_heads": config.optional(_KV_HEADS) or config.count(_HEADS),
        **({"context_tokens": context} if (context := config.optional("max_position_embeddings")) else {}),
    }
    return ModelShape(name, {key: float(value) for key, value in facts.items()}, _find_precision(config))


class _Config:
    """Checked numbers of a decoded configuration."""

    def __init__(self, tree: Mapping[str, Any], source: str) -> None:
        self.tree = tree
        self.source = source

    def missing(self, name: str) -> UserError:
        return UserError(
            f"{self.source} must have {name}",
            "it has not",
            "give the config.json of a language model",
        )

    def count(self, name: str, largest: int = _MAX_SIZE) -> int:
        """Return a positive whole number."""
        value = self._whole(name, largest)
        if not value:
            raise self.missing(name)
        return value

    def optional(self, *names: str, largest: int = _MAX_SIZE) -> int:
        """Return the first number that is there, 0 without one."""
        return next((value for name in names if (value := self._whole(name, largest))), 0)

    def flag(self, name: str) -> bool:
        return self.tree.get(name) is True

    def texts(self, name: str) -> list[object]:
        value = self.tree.get(name)
        return value if isinstance(value, list) else []

    def _whole(self, name: str, largest: int) -> int:
        value = self.tree.get(name)
        if value is None:
            return 0
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= largest:
            shown = (
                json.dumps(value)[:_SHOWN_LETTERS] if not isinstance(value, int) else f"{float(min(value, 10**300)):g}"
            )
            fact = f"{self.source} has {shown}"
            raise UserError(f"{name} must be a whole number from 0 to {largest}", fact)
        return value


def _count_attention(config: _Config, layers: int) -> tuple[int, int, int, int]:
    """Return the layers with full attention, those with a window, the window, and those with linear attention."""
    window = config.optional("sliding_window")
    kinds = config.texts("layer_types")
    if kinds:
        if len(kinds) != layers:
            fact = f"{config.source} has {len(kinds)} of {layers}"
            raise UserError("layer_types must name every layer", fact)
        if unknown := [kind for kind in kinds if kind not in _LAYER_TYPES]:
            fact = f"{config.source} has {json.dumps(unknown[0])[:_SHOWN_LETTERS]}"
            raise UserError(f"layer_types must be of {', '.join(_LAYER_TYPES)}", fact)
        linear = kinds.count("linear_attention")
        windowed = kinds.count("sliding_attention")
        windowed = windowed if window else 0
        return layers - linear - windowed, windowed, window if windowed else 0, linear
    if interval := config.optional("full_attention_interval"):
        full = layers // interval
        return full, 0, 0, layers - full
    if not window or config.tree.get("use_sliding_window") is False:
        return layers, 0, 0, 0
    pattern = config.optional("sliding_window_pattern", "_sliding_window_pattern")
    full = layers // pattern if pattern else 0
    return full, layers - full, window, 0


def _count_attention_weights(config: _Config, hidden: int) -> tuple[float, int]:
    """Return the weights of a layer's attention, and the elements of its cache per token."""
    heads = config.count(_HEADS)
    if latent := config.optional("kv_lora_rank"):
        rope = config.count("qk_rope_head_dim")
        nope = config.count("qk_nope_head_dim")
        v_dim = config.count("v_head_dim")
        rank = config.optional("q_lora_rank")
        q = hidden * rank + rank * heads * (nope + rope) if rank else hidden * heads * (nope + rope)
        kv = hidden * (latent + rope) + latent * heads * (nope + v_dim)
        return float(q + kv + heads * v_dim * hidden), latent + rope
    kv_heads = config.optional(_KV_HEADS) or heads
    head_dim = config.optional("head_dim") or hidden // heads
    if not head_dim:
        raise UserError(
            f"{_HIDDEN} must be at least {_HEADS}",
            f"{config.source} has {hidden} and {heads}",
        )
    gates = 3 if config.flag("attn_output_gate") else 2
    return float(hidden * head_dim * (gates * heads + 2 * kv_heads)), 2 * kv_heads * head_dim


def _count_linear_weights(config: _Config, hidden: int) -> float:
    """Return the weights of a layer with linear attention: queries, keys, values, gates, and the output."""
    keys = config.optional("linear_num_key_heads") * config.optional("linear_key_head_dim")
    values = config.optional("linear_num_value_heads") * config.optional("linear_value_head_dim")
    return float(hidden * (2 * keys + 3 * values))


def _count_mixture_layers(config: _Config, layers: int) -> int:
    """Return the layers with experts."""
    dense = min(config.optional("first_k_dense_replace"), layers)
    step = config.optional("decoder_sparse_step") or 1
    named = {layer for layer in config.texts("mlp_only_layers") if isinstance(layer, int) and dense <= layer < layers}
    return max((layers - dense) // step - len(named), 0)


def _find_precision(config: _Config) -> str:
    """Return the number format of the weights, "" where the configuration does not tell it."""
    quantization = config.tree.get("quantization_config")
    method = quantization.get("quant_method") if isinstance(quantization, dict) else None
    if method is None:
        stated = config.tree.get("torch_dtype") or config.tree.get("dtype")
        return "bf16" if stated in ("bfloat16", "float16") and quantization is None else ""
    return _WEIGHT_FORMATS.get(str(method).lower(), "")


def _name_of(path: Path) -> str:
    """Return a name for the model of a file: that of its folder, or of the file where it has one of its own."""
    stem = path.stem.removesuffix("config").rstrip("_-.")
    text = stem or path.resolve().parent.name or "model"
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:_SHOWN_LETTERS] + " (config.json)"


def _shown(path: Path) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in str(path))[-_SHOWN_LETTERS:]
