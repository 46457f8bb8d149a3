"""flex_attention: the masks and scores that its functions of sequence, head, query and key give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass
class FlexCall:
    """The arguments of flex_attention as PyTorch hands them to its kernels."""

    query: Tensor
    key: Tensor
    value: Tensor
    score_mod: Callable[..., Tensor]
    block_mask: tuple[Any, ...]  # ends with its mask_mod
    scale: float

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return (*self.query.shape[:3], self.key.shape[2])

    def visible(self) -> Tensor:
        """Returns bool [sequences, heads, queries, keys]: True where unmasked."""
        return cells_of(self.block_mask[-1], self.shape, self.query.device)

    def changed_scores(self) -> Tensor | None:
        """Returns the scaled scores after score_mod, or None where it changes nothing."""
        q, k = self.query.detach().double(), self.key.detach().double()
        scores = q @ k.repeat_interleave(q.shape[1] // k.shape[1], 1).transpose(-1, -2) * self.scale
        changed = cells_of(self.score_mod, self.shape, q.device, scores)
        return None if torch.equal(changed, scores) else changed


def cells_of(function: Callable[..., Tensor], shape: tuple[int, ...], device: torch.device, *scores: Tensor) -> Tensor:
    """Returns a mask_mod, or a score_mod of scores, at every sequence, head, query and key."""
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    per_score = (0,) * len(scores)
    for axis in (3, 2, 1, 0):  # the innermost first: the key
        function = torch.vmap(function, in_dims=(*per_score, *(0 if i == axis else None for i in range(4))))
    places = [torch.arange(n, device=device) for n in shape]
    with TransformGetItemToIndex(), torch.no_grad():
        return function(*scores, *places)
