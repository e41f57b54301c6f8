"""GPUs and models are found by the names that people type; another board or a distilled model is another one."""

import pytest

from perfcast.domains.llm.accelerators.accelerator_catalog import find_gpus, find_models, read_gpus, read_models
from perfcast.domains.llm.accelerators.typed_names import (
    find_backend,
    find_gpu,
    find_model,
    find_precision,
    near_gpus,
    near_models,
)


@pytest.mark.parametrize(
    ("text", "gpu"),
    [
        ("H200", "H200"),
        ("h200 sxm", "H200"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("GB200 NVL72", "GB200"),
        ("nvidia b200 192GB", "B200"),
        ("RTX-PRO-6000", "RTX PRO 6000"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000"),
        ("Intel Arc Pro B60", "B60"),
        ("H100 PCIe", "H100 PCIe"),
        ("NVIDIA H100 80GB PCIe", "H100 PCIe"),
        ("A100 40GB", "A100 40GB"),
        ("A100-SXM4-80GB", "A100"),
        ("a100-40", "A100 40GB"),
        ("H100 NVL 94GB", "H100 NVL"),
        ("H20", "H20"),
        ("GH200 Grace Hopper Superchip 144GB", "GH200 144GB"),
        ("AMD Instinct MI300X 192GB", "MI300X"),
        ("GeForce RTX 5090", "RTX 5090"),
        ("A100 PCIe", None),
        ("A100 60GB", None),
        ("RTX 6000", None),
        ("H2000", None),
        ("", None),
    ],
)
def test_gpus(text, gpu):
    assert find_gpu(text) == gpu


@pytest.mark.parametrize(
    ("text", "name", "precision"),
    [
        ("Llama 3.1 70B Instruct", "Llama-3.1-70B", ""),
        ("meta-llama/Llama-3.1-70B", "Llama-3.1-70B", ""),
        ("Meta-Llama-3.1-8B", "Llama-3.1-8B-Instruct", ""),
        ("deepseek-ai/DeepSeek-R1-0528", "DeepSeek-R1", ""),
        ("Qwen3-32B-NVFP4", "Qwen3-32B", "fp4"),
        ("Qwen/Qwen3-235B-A22B-FP8", "Qwen3-235B-A22B", "fp8"),
        ("GPT OSS 120B", "gpt-oss-120b", ""),
        ("gpt-oss-20b", "gpt-oss-20b", ""),
        ("llama3 70b", "Llama-3-70B", ""),
        ("Llama-3.3-70B-Instruct", "Llama-3.3-70B", ""),
        ("meta-llama/Llama-2-7b-chat-hf", "Llama-2-7B", ""),
        ("llama 3.1 405b fp8", "Llama-3.1-405B", "fp8"),
        ("mistral-7b", "Mistral-7B", ""),
        ("mistralai/Mistral-7B-Instruct-v0.3", "Mistral-7B", ""),
        ("Mixtral-8x22B-Instruct-v0.1", "Mixtral-8x22B", ""),
        ("gemma-3-27b", "Gemma-3-27B", ""),
        ("google/gemma-2-9b-it", "Gemma-2-9B", ""),
        ("Qwen2.5-72B-Instruct-AWQ", "Qwen2.5-72B", "int4"),
        ("qwen2 7b", "Qwen2-7B", ""),
        ("microsoft/phi-4", "Phi-4", ""),
    ],
)
def test_models(text, name, precision):
    known = find_model(text)
    assert known is not None and (known.name, known.precision) == (name, precision)


@pytest.mark.parametrize(
    "text", ["deepseek-r1-distill-llama-70b", "Mistral-7B-v0.1", "llama-4-70b", "DeepSeek-V3.2", "", "/", "-"]
)
def test_another_model_is_never_taken_for_a_known_one(text):
    assert find_model(text) is None


def test_every_name_of_the_catalogs_is_found():
    for gpu, aliases in read_gpus()["aliases"].items():
        assert {find_gpu(name) for name in (str(gpu), *aliases.split("|"))} == {gpu}
    for family, names in read_models()["names"].items():
        known = [find_model(name) for name in names.split("|")]
        assert {each.family for each in known if each} == {family} and None not in known


def test_names_of_the_measurements_agree_with_the_catalog():
    names = read_models()["names"].str.split("|").explode()
    assert find_models(names.reset_index(drop=True)).notna().all()
    gpus = read_gpus()["aliases"].str.split("|").explode()
    assert find_gpus(gpus.reset_index(drop=True)).tolist() == gpus.index.tolist()


def test_formats_and_software():
    assert [find_precision(text) for text in ("FP8", "nvfp4", "bfloat16", "fp6")] == ["fp8", "fp4", "bf16", None]
    assert [find_backend(text) for text in ("TensorRT-LLM", "vLLM", "llama.cpp")] == ["trtllm", "vllm", None]


def test_near_names_come_from_the_catalog():
    assert near_gpus("h201")[:2] == ["H20", "H200"]
    assert near_models("llama-3.1-7b")[0].startswith("Llama-3.1")
    assert near_gpus("") and near_models("\N{SNOWMAN}" * 50)
