"""Numbers of a cache in few bits, and products with them; knows only tensors.

Every row (the numbers of one head and token) is packed by itself, so what was packed stays as it
is when others are appended.
"""

from __future__ import annotations

from functools import lru_cache

import torch

EIGHT_BIT = 127
WIDEST = 512
"""Rows of at most so many numbers may be joined in 32 bit: 127 ** 3 * 512 < 2 ** 31."""
TINIEST = 2.0**-24
"""Of 16-bit numbers; the scale of a row of zeros, which then stays one."""


def quantize(states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """8-bit numbers and a scale of shape (..., 1) for each last row: symmetric, by its largest.

    The numbers are taken against the scale as it is stored, so its rounding costs nothing.
    """
    scale_type = states.dtype if states.element_size() == 2 else torch.float16
    scales = states.abs().amax(dim=-1, keepdim=True).float().mul_(1 / EIGHT_BIT)
    scales = scales.clamp_(TINIEST, torch.finfo(scale_type).max).to(scale_type)
    numbers = (states / scales.float()).round_().clamp_(-EIGHT_BIT, EIGHT_BIT)
    return numbers.to(torch.int8), scales


def dequantize(
    numbers: torch.Tensor, scales: torch.Tensor, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    """The states again, in `dtype`."""
    return numbers.to(dtype).mul_(scales.to(dtype))


def pack_bits(states: torch.Tensor, bits: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers of 4 or 5 bits and a scale (..., 1) for each last row, whose width is whole bytes.

    A number n stands for `(2 n - top) * scale`, with top = 2 ** bits - 1: levels on both sides of
    zero alike, none of them zero. Bytes (..., width * bits / 8): two numbers' low four bits each,
    then, of 5 bits, eight numbers' highest each.
    """
    top = 2**bits - 1
    states = states.float()
    scales = states.abs().amax(dim=-1, keepdim=True).div_(top)
    scales = scales.clamp_(TINIEST, torch.finfo(torch.float16).max).half()
    numbers = (states / scales.float()).add_(top).mul_(0.5).round_().clamp_(0, top).to(torch.uint8)
    first, second = (numbers & 15).chunk(2, dim=-1)
    packed = first | (second << 4)
    if bits == 5:
        places = torch.arange(8, dtype=torch.uint8, device=numbers.device)
        highest = (numbers >> 4).view(*numbers.shape[:-1], -1, 8) << places
        packed = torch.cat((packed, highest.sum(dim=-1, dtype=torch.uint8)), dim=-1)
    return packed, scales


def unpack_bits(packed: torch.Tensor, bits: int) -> torch.Tensor:
    """`2 n - top` for each number, shape (..., width), in 8 bit; see `pack_bits`."""
    width = packed.shape[-1] * 8 // bits
    low = packed[..., : width // 2]
    numbers = torch.cat((low & 15, low >> 4), dim=-1)
    if bits == 5:
        highest = _spread_bits(packed.device)[packed[..., width // 2 :].int()]
        numbers |= highest.view(torch.uint8)
    return (numbers << 1).view(torch.int8).sub_(2**bits - 1)


@lru_cache(maxsize=8)
def _spread_bits(device: torch.device) -> torch.Tensor:
    """For each byte, eight bytes in one number of 64 bits: 16 where its bit is set, else 0."""
    bits = (torch.arange(256)[:, None] >> torch.arange(8)) & 1
    return (bits << 4).to(torch.uint8).view(torch.int64).squeeze(-1).to(device)


@lru_cache(maxsize=8)
def mixing(width: int) -> torch.Tensor:
    """An orthogonal matrix (width, width) that spreads a large number over its whole row.

    Hadamard's where the width is a power of two, else that of the cosine transform. Rows of keys
    have a few large numbers, which would leave no levels for the others.
    """
    if width & (width - 1) == 0:
        matrix = torch.ones(1, 1)
        while matrix.shape[0] < width:
            matrix = torch.cat((torch.cat((matrix, matrix), 1), torch.cat((matrix, -matrix), 1)))
        return matrix / width**0.5
    steps = torch.arange(width, dtype=torch.float64)
    matrix = torch.cos(torch.pi / width * (steps[:, None] + 0.5) * steps[None, :])
    matrix[:, 0] *= 0.5**0.5
    return (matrix * (2 / width) ** 0.5).float()


def planes(rows: torch.Tensor, largest: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows (..., n, k) as two planes of 8-bit numbers (..., 2 n, k), and a scale like `largest`.

    `largest` is that of the absolute numbers, of each row or of more. A number is `scale * (first
    * EIGHT_BIT + second)`, 14 bits and a sign: products in whole numbers then lose no more than
    those of 16-bit floats.
    """
    largest = largest.clamp(min=1e-30)
    count = rows.shape[-2]
    both = rows.new_empty((*rows.shape[:-2], 2 * count, rows.shape[-1]), dtype=torch.int8)
    steps = rows * (EIGHT_BIT / largest)
    both[..., :count, :] = steps  # cut off towards zero, as `frac` does
    both[..., count:, :] = steps.frac_().mul_(EIGHT_BIT).round_()
    return both, largest / (EIGHT_BIT * EIGHT_BIT)


def times_rows(
    queries: torch.Tensor, numbers: torch.Tensor, scales: torch.Tensor | float
) -> torch.Tensor:
    """Queries (heads, n, width) times 8-bit rows (heads, tokens, width): (heads, n, tokens).

    `scales`, (heads, 1, tokens) or a number, are put on the products.
    """
    heads, count, width = queries.shape
    both, scale = planes(queries, queries.abs().amax(dim=(1, 2), keepdim=True))
    products = both.new_empty((heads, 2 * count, numbers.shape[1]), dtype=torch.int32)
    for head in range(heads):
        torch._int_mm(both[head], numbers[head].t(), out=products[head])
    first, second = products[:, :count], products[:, count:]
    if width <= WIDEST:  # the whole numbers stay within 32 bits
        joined = second.add_(first, alpha=EIGHT_BIT).float()
    else:
        joined = second.float().add_(first, alpha=EIGHT_BIT)
    return joined.mul_(scales * scale)


def weighted_rows(weights: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    """Sums of 8-bit rows (heads, tokens, width) by weights (heads, n, tokens), none below 0."""
    heads, count, _ = weights.shape
    both, scale = planes(weights, weights.amax(dim=-1, keepdim=True))
    products = both.new_empty((heads, 2 * count, numbers.shape[2]), dtype=torch.int32)
    for head in range(heads):
        torch._int_mm(both[head], numbers[head], out=products[head])
    first, second = products.float().chunk(2, dim=1)
    return torch.add(second, first, alpha=EIGHT_BIT).mul_(scale)
