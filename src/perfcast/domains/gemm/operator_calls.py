"""Operators of language models as calls of torch: products, attention of prompts and tokens, mixtures of experts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch.nn import functional

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
GEMM, CONTEXT, GENERATION, MIXTURE = "gemm", "context_attention", "generation_attention", "moe"
BALANCED = "balanced"
"""Distribution of tokens over experts that is measured."""

Call = Callable[[], object]


@dataclass(frozen=True)
class Operator:
    """One operator and its shape; 0 where the operator has no such length."""

    op: str
    m: int = 0
    n: int = 0
    k: int = 0
    batch: int = 0
    sequence: int = 0
    heads: int = 0
    kv_heads: int = 0
    head_dim: int = 0
    tokens: int = 0
    hidden: int = 0
    expert_hidden: int = 0
    top_k: int = 0
    experts: int = 0

    def lengths(self) -> dict[str, int]:
        """Return the lengths by name."""
        return {name: value for name, value in asdict(self).items() if name != "op"}

    @property
    def flops(self) -> float:
        """Operations of one call, as `data.accelerators.operator_costs` counts them."""
        if self.op == GEMM:
            return 2.0 * self.m * self.n * self.k
        if self.op == CONTEXT:
            return 4.0 * self.batch * self.heads * self.head_dim * self.sequence**2 / 2
        if self.op == GENERATION:
            return 4.0 * self.batch * self.heads * self.head_dim * self.sequence
        return 6.0 * self.tokens * self.top_k * self.hidden * self.expert_hidden

    @property
    def elements(self) -> int:
        """Elements of all operands together."""
        if self.op == GEMM:
            return self.m * self.k + self.k * self.n + self.m * self.n
        if self.op == MIXTURE:
            return 3 * self.experts * self.hidden * self.expert_hidden + 2 * self.tokens * self.hidden
        queries = self.sequence if self.op == CONTEXT else 1
        return 2 * self.batch * self.head_dim * (queries * self.heads + self.sequence * self.kv_heads)


def make_call(operator: Operator, dtype: str, device: str, generator: torch.Generator) -> Call:
    """Return a call that runs the operator once, on operands of the format `dtype` in the memory of the device.

    Operands are random; a call on another device than the CPU ends when the device has ended.
    """

    def operand(*shape: int) -> torch.Tensor:
        drawn = torch.rand(shape, generator=generator, dtype=torch.float32) - 0.5
        return drawn.to(device=device, dtype=DTYPES[dtype])

    call = _CALLS[operator.op](operator, operand)
    if device == "cpu":
        return call

    def wait() -> object:
        result = call()
        torch.cuda.synchronize(device)
        return result

    return wait


Operand = Callable[..., torch.Tensor]


def _gemm(operator: Operator, operand: Operand) -> Call:
    a, b = operand(operator.m, operator.k), operand(operator.k, operator.n)
    out = operand(operator.m, operator.n)
    return lambda: torch.mm(a, b, out=out)


def _attention(operator: Operator, operand: Operand) -> Call:
    queries = operator.sequence if operator.op == CONTEXT else 1
    q = operand(operator.batch, operator.heads, queries, operator.head_dim)
    k, v = (operand(operator.batch, operator.kv_heads, operator.sequence, operator.head_dim) for _ in range(2))
    causal, shared = operator.op == CONTEXT, operator.heads != operator.kv_heads
    return lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=shared)


def _mixture(operator: Operator, operand: Operand) -> Call:
    """Run every expert on its tokens, spread evenly: gate and up projection, SiLU, down projection, sum."""
    x = operand(operator.tokens, operator.hidden)
    up = operand(operator.experts, operator.hidden, 2 * operator.expert_hidden)
    down = operand(operator.experts, operator.expert_hidden, operator.hidden)
    pairs = np.arange(operator.tokens * operator.top_k)
    chosen, token = pairs % operator.experts, pairs // operator.top_k
    rows = [
        (expert, torch.from_numpy(token[chosen == expert]).to(x.device))
        for expert in range(operator.experts)
        if (chosen == expert).any()
    ]
    out = torch.zeros_like(x)

    def call() -> torch.Tensor:
        out.zero_()
        for expert, places in rows:
            gate, value = (x[places] @ up[expert]).chunk(2, dim=1)
            out.index_add_(0, places, (functional.silu(gate) * value) @ down[expert])
        return out

    return call


_CALLS: dict[str, Callable[[Operator, Operand], Call]] = {
    GEMM: _gemm,
    CONTEXT: _attention,
    GENERATION: _attention,
    MIXTURE: _mixture,
}
