"""What becomes of a cache while its chat is not in use; knows tensors, not who keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch

from chatbot.engine.kv_layer import Int8Layer, PlainLayer


@dataclass(frozen=True, slots=True)
class Resting:
    """What was done to a cache. `is_home`: its bytes count where the model is."""

    is_changed: bool = False
    is_home: bool = True
    is_exact: bool = True


class IdleForm(Protocol):
    """How idle caches rest. Both calls change the cache itself, one layer at a time."""

    def rest(self, cache: Any) -> Resting:
        """Make a cache take less; not changed when it cannot be. It can be cut while it rests."""
        ...

    def wake(self, cache: Any) -> None:
        """Make a cache that was changed ready for the model again."""
        ...


class AsTheyAre:
    """Idle caches stay what they are."""

    def rest(self, cache: Any) -> Resting:
        """See `IdleForm`."""
        return Resting()

    def wake(self, cache: Any) -> None:
        """See `IdleForm`."""


class InEightBit:
    """Idle caches of unpacked numbers are packed to 8 bit, about half of the bytes.

    Unpacked again they are near what they were, not the same: a reply may then differ from that
    of a fresh start.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        self._dtype = dtype

    def rest(self, cache: Any) -> Resting:
        """See `IdleForm`."""
        if not cache.layers or any(type(layer) is not PlainLayer for layer in cache.layers):
            return Resting()
        self._change(cache, Int8Layer)
        return Resting(is_changed=True, is_exact=False)

    def wake(self, cache: Any) -> None:
        """See `IdleForm`."""
        self._change(cache, PlainLayer)

    @torch.inference_mode()
    def _change(self, cache: Any, kind: type[PlainLayer]) -> None:
        for number, layer in enumerate(cache.layers):
            changed = kind()
            if layer.get_seq_length():
                changed.update(*layer.contents(self._dtype))
            changed.direct = layer.direct
            cache.layers[number] = changed


class Elsewhere:
    """Idle caches lie in another memory, bit for bit the same, and cost the way there and back."""

    def __init__(self, home: torch.device | str, away: torch.device | str = "cpu") -> None:
        self._home, self._away = torch.device(home), torch.device(away)

    def rest(self, cache: Any) -> Resting:
        """See `IdleForm`."""
        if any(not isinstance(layer, PlainLayer) for layer in cache.layers):
            return Resting()
        self._move(cache, self._away)
        return Resting(is_changed=True, is_home=False)

    def wake(self, cache: Any) -> None:
        """See `IdleForm`."""
        self._move(cache, self._home)

    def _move(self, cache: Any, device: torch.device) -> None:
        for layer in cache.layers:
            for rows in layer.rows:
                rows.move(device)
