"""Linear layers with 8-bit weights for a CPU; knows matrices, not what they are for.

A few rows are multiplied in whole numbers, which reads a quarter of the bytes of 32-bit weights;
many rows with the weights made into floats block by block. Both use the same weights, and rows
are given 15 bits, so the two differ by rounding only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from chatbot.engine.kv_pack import EIGHT_BIT, planes

BLOCK_NUMBERS = 1 << 22
"""So many weights are made into floats at once: 16 MiB in 32 bit."""
DEFAULT_FEW_ROWS = 32


class Int8Matrix:
    """Weights (outputs, inputs) in 8 bit, and a 32-bit scale for each output."""

    few_rows = DEFAULT_FEW_ROWS
    """Up to so many rows, whole numbers are faster; measured, see `kernels`."""

    def __init__(self, numbers: torch.Tensor, scales: torch.Tensor) -> None:
        self.numbers, self.scales = numbers, scales
        self._turned = numbers.t()

    def part(self, start: int, end: int) -> Int8Matrix:
        """Some of the outputs, in the same memory."""
        return Int8Matrix(self.numbers[start:end], self.scales[start:end])

    def times(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows (n, inputs) times the weights: (n, outputs), in the type of the rows."""
        if rows.shape[0] <= self.few_rows:
            return self.times_few(rows)
        return self.times_many(rows)

    def times_few(self, rows: torch.Tensor) -> torch.Tensor:
        """In whole numbers, read as they are."""
        as_float = rows.float()
        both, scale = planes(as_float, as_float.abs().amax(dim=-1, keepdim=True))
        first, second = torch._int_mm(both, self._turned).float().chunk(2)
        return second.add_(first, alpha=EIGHT_BIT).mul_(self.scales).mul_(scale).to(rows.dtype)

    def times_many(self, rows: torch.Tensor) -> torch.Tensor:
        """In floats, made block by block; whole numbers up to 127 are exact in each type."""
        outputs, inputs = self.numbers.shape
        step = max(1, BLOCK_NUMBERS // inputs)
        blocks = [
            rows @ self.numbers[start : start + step].to(rows.dtype).t()
            for start in range(0, outputs, step)
        ]
        found = blocks[0] if len(blocks) == 1 else torch.cat(blocks, dim=-1)
        return found.mul_(self.scales)

    def times_row(self, row: torch.Tensor, factor: float = 1.0) -> torch.Tensor:
        """As `times_few` for one row of shape (inputs,) in 32 bit, times `factor`: fewer steps."""
        largest = float(row.abs().max())
        steps = row * (EIGHT_BIT / max(largest, 1e-30))
        both = row.new_empty((2, row.shape[0]), dtype=torch.int8)
        both[0] = steps
        both[1] = steps.frac_().mul_(EIGHT_BIT).round_()
        first, second = torch._int_mm(both, self._turned).float().unbind()
        scale = factor * largest / (EIGHT_BIT * EIGHT_BIT)
        return second.add_(first, alpha=EIGHT_BIT).mul_(self.scales).mul_(scale)


class Int8Linear(nn.Module):
    """In place of `nn.Linear`. Layers that are given the same rows may share one matrix."""

    def __init__(self, shared: Int8Matrix, start: int, end: int, bias: Any = None) -> None:
        super().__init__()
        self.shared = shared
        self.matrix = shared.part(start, end)
        # What is registered is counted as the model's memory.
        self.register_buffer("numbers", self.matrix.numbers, persistent=False)
        self.register_buffer("scales", self.matrix.scales, persistent=False)
        self.in_features, self.out_features = shared.numbers.shape[1], end - start
        self.bias = bias

    @torch.no_grad()
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        found = self.matrix.times(rows.reshape(-1, self.in_features))
        if self.bias is not None:
            found = found + self.bias
        return found.view(*rows.shape[:-1], self.out_features)


class Int8Embedding(nn.Module):
    """In place of `nn.Embedding`; with tied weights, the matrix is that of the output layer."""

    def __init__(self, matrix: Int8Matrix, dtype: torch.dtype) -> None:
        super().__init__()
        self.matrix, self.dtype = matrix, dtype
        self.register_buffer("numbers", matrix.numbers, persistent=False)
        self.register_buffer("scales", matrix.scales, persistent=False)

    def forward(self, token_ids: torch.Tensor) -> torch.Tensor:
        numbers, scales = self.matrix.numbers[token_ids], self.matrix.scales[token_ids]
        return (numbers * scales[..., None]).to(self.dtype)


def pack(weights: Sequence[torch.Tensor]) -> Int8Matrix:
    """Float weights (outputs, inputs), one below the other, in 8 bit by the largest of each row."""
    outputs, inputs = sum(part.shape[0] for part in weights), weights[0].shape[1]
    numbers = torch.empty((outputs, inputs), dtype=torch.int8)
    scales = torch.empty(outputs)
    step = max(1, BLOCK_NUMBERS // inputs)
    place = 0
    for part in weights:
        for block in torch.split(part.detach(), step):
            end = place + block.shape[0]
            rows = block.float()
            largest = rows.abs().amax(dim=-1, keepdim=True).clamp_(min=1e-30)
            torch.div(largest.squeeze(-1), EIGHT_BIT, out=scales[place:end])
            numbers[place:end] = (rows * (EIGHT_BIT / largest)).round_()
            place = end
    return Int8Matrix(numbers, scales)


TOGETHER = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))
"""Layers side by side in one module that are given the same rows."""


@torch.no_grad()
def pack_model(model: nn.Module, dtype: torch.dtype) -> None:
    """Put 8-bit layers in place of a model's linear layers and embedding; free the originals.

    What else there is, such as norms, is made `dtype`.
    """
    inner, outer = model.get_input_embeddings(), model.get_output_embeddings()  # type: ignore[operator]
    tied = outer is not None and outer.weight is inner.weight
    embedding = pack([inner.weight])
    model.set_input_embeddings(Int8Embedding(embedding, dtype))  # type: ignore[operator]
    if tied:
        model.set_output_embeddings(Int8Linear(embedding, 0, outer.out_features))  # type: ignore[operator]
    del inner, outer
    for parent in list(model.modules()):
        _pack_children(parent)
    for parameter in model.parameters():
        parameter.data = parameter.data.to(dtype)


def _pack_children(parent: nn.Module) -> None:
    linear = {n: child for n, child in parent.named_children() if type(child) is nn.Linear}
    groups = [group for group in TOGETHER if all(name in linear for name in group)]
    alone = [(name,) for name in linear if not any(name in group for group in groups)]
    for group in (*groups, *alone):
        shared = pack([linear[name].weight for name in group])
        place = 0
        for name in group:
            old = linear.pop(name)
            setattr(parent, name, Int8Linear(shared, place, place + old.out_features, old.bias))
            place += old.out_features
