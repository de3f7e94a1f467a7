"""Packed numbers: how near they are, what they take, and products with them."""

from __future__ import annotations

import pytest
import torch

from chatbot.engine.kv_cache import new_layer
from chatbot.engine.kv_pack import (
    mixing,
    pack_bits,
    planes,
    quantize,
    times_rows,
    unpack_bits,
    weighted_rows,
)
from chatbot.engine.memory import CacheKind


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("bits", [4, 5])
@pytest.mark.parametrize("width", [16, 64, 80])
def test_packed_bits_come_back_within_half_a_step(bits: int, width: int) -> None:
    states = random(1, 2, 30, width)
    states[0, 0, 3] = 0
    states[0, 1, 4, 7] = 200.0
    packed, scales = pack_bits(states, bits)
    assert packed.dtype == torch.uint8
    assert packed.shape[-1] == width * bits // 8
    numbers = unpack_bits(packed, bits)
    assert numbers.dtype == torch.int8
    assert set((numbers % 2).abs().flatten().tolist()) == {1}  # levels on both sides of zero
    again = numbers * scales.float()
    largest = states.abs().amax(-1, keepdim=True)
    assert ((again - states).abs() <= largest * (1.01 / (2**bits - 1)) + 1e-6).all()
    assert again[0, 0, 3].abs().max() < 1e-5


@pytest.mark.parametrize("width", [16, 64, 96, 128])
def test_mixing_is_undone_by_its_transpose_and_spreads_one_number(width: int) -> None:
    matrix = mixing(width)
    torch.testing.assert_close(matrix @ matrix.T, torch.eye(width), atol=1e-5, rtol=0)
    row = torch.zeros(width)
    row[5] = 1.0
    assert (row @ matrix).abs().max() < 2 / width**0.5


def test_two_planes_hold_a_row_to_one_part_in_thirty_thousand() -> None:
    rows = random(3, 5, 40)
    largest = rows.abs().amax(-1, keepdim=True)
    both, scale = planes(rows, largest)
    first, second = both.float().chunk(2, dim=-2)
    assert ((first * 127 + second) * scale - rows).abs().max() < largest.max() / 30_000


@pytest.mark.parametrize("tokens", [1, 7, 300])
def test_products_with_packed_rows_are_those_of_floats(tokens: int) -> None:
    numbers, scales = quantize(random(2, tokens, 64, seed=1))
    queries, weights = random(2, 3, 64), random(2, 3, tokens).softmax(-1)
    wanted = queries @ (numbers * scales.float()).mT
    found = times_rows(queries, numbers, scales.float().mT)
    torch.testing.assert_close(found, wanted, atol=5e-3, rtol=1e-3)
    found = weighted_rows(weights, numbers)
    torch.testing.assert_close(found, weights @ numbers.float(), atol=1e-2, rtol=1e-3)


@pytest.mark.parametrize("kind", ["16bit", "int8", "int4"])
@pytest.mark.parametrize("width", [16, 64])
def test_asking_a_layer_directly_finds_what_unpacking_finds(kind: CacheKind, width: int) -> None:
    layer = new_layer(kind)
    keys = random(1, 2, 200, width)
    keys[..., 3] *= 20
    layer.append(keys, random(1, 2, 200, width, seed=1))
    query = random(2, 3, width, seed=2)
    unpacked = layer.attend(query, width**-0.5)
    layer.direct = True
    assert layer.update(keys[:, :, :1], keys[:, :, :1]) == (layer, layer)
    layer.crop(-1)
    torch.testing.assert_close(layer.attend(query, width**-0.5), unpacked, atol=3e-3, rtol=1e-2)


def test_bytes_of_each_kind_are_as_promised() -> None:
    taken = {}
    for kind in ("16bit", "int8", "int4"):
        layer = new_layer(kind)
        layer.append(random(1, 2, 64, 64), random(1, 2, 64, 64))
        taken[kind] = sum(rows.n_bytes for rows in layer.rows)
    assert taken["16bit"] == 2 * 2 * 64 * 64 * 2
    assert taken["int8"] / taken["16bit"] <= 0.53
    assert taken["int4"] / taken["16bit"] <= 0.30


def test_four_bits_keep_a_large_channel_from_hiding_the_others() -> None:
    """Keys have a few channels far larger than the rest; unmixed they would take all levels."""
    layer = new_layer("int4")
    keys = random(1, 1, 100, 64)
    keys[..., 9] += 30
    layer.append(keys, keys)
    again = layer.contents(torch.float32)[0]
    packed, scales = pack_bits(keys, 5)
    unmixed = unpack_bits(packed, 5) * scales.float()
    others = [n for n in range(64) if n != 9]
    ours = (again - keys)[..., others].square().mean()
    assert ours < 0.5 * (unmixed - keys)[..., others].square().mean()
