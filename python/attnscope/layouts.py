"""Which axes of queries, keys and values are sequences, heads and tokens, told by the projections before them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from .arrays import Array, to_numpy
from .errors import AttnscopeError
from .projections import LinearCall

_COMPARED_ROWS = 32


@dataclass(frozen=True)
class Layout:
    """How the axes before [tokens, d_head] divide into sequences and heads."""

    sequences: int
    heads: int
    heads_first: bool = False
    tokens_first: bool = False  # the rows of projections are ordered by token: [tokens, sequences, features]

    def stage(self, t: Tensor | Array) -> Array:
        """Returns a copy of a stage as [sequences, heads, rows, columns]; it may have fewer (KV) heads."""
        a = np.array(to_numpy(t))
        rows = a.shape[-2:]
        if a.ndim == 4 and a.shape[0] == 1 < self.sequences and not self.heads_first:
            return np.broadcast_to(a, (self.sequences, *a.shape[1:])).copy()  # shared by all sequences
        if self.heads_first:
            return np.ascontiguousarray(a.reshape(-1, self.sequences, *rows).swapaxes(0, 1))
        return a.reshape(self.sequences, -1, *rows)

    def calls(self, calls: list[LinearCall]) -> list[LinearCall]:
        """Returns projections with their rows ordered by sequence."""
        return [c.sequences_first(self.sequences) for c in calls] if self.tokens_first else calls


def find_layout(axes: tuple[int, ...], values: Tensor, calls: list[LinearCall]) -> tuple[Layout, str]:
    """Returns the layout of stages with these leading axes, and a sentence where it is a guess.

    It is the one in which each row of the values is in the same row of a projection's result."""
    if not axes:
        return Layout(1, 1), ""
    if len(axes) == 1:
        possible = list(dict.fromkeys(c for call in reversed(calls) for c in _of_shapes(axes[0], values, call)))
    elif len(axes) == 2:
        a, b = axes
        possible = [Layout(a, b), Layout(a, b, tokens_first=True), Layout(b, a, True), Layout(b, a, True, True)]
    elif len(axes) == 3 and (values.shape[-3] == 1 or 0 in values.stride()[:-2]):  # query heads share KV heads
        possible = [Layout(axes[0], axes[1] * axes[2]), Layout(axes[0], axes[1] * axes[2], tokens_first=True)]
    else:
        raise AttnscopeError(f"its scores have {len(axes) + 2} axes; expected at most 4.")
    stages: dict[Layout, Array] = {}
    for call in reversed(calls):
        for layout in possible:
            if call.out.numel() == layout.sequences * values.shape[-2] * call.out.shape[-1]:
                if layout not in stages:
                    stages[layout] = layout.stage(values)
                if _is_from(stages[layout], call, layout):
                    return layout, ""
    if len(axes) > 1:
        return possible[0], _exchanged(to_numpy(values), calls)
    if possible:
        first = possible[0]
        guess = f"{first.sequences} sequences of {first.heads} heads, by the shape of the projection before it"
        return first, f"its {axes[0]} maps are taken for {guess}"
    if axes[0] == 1:
        return Layout(1, 1), ""
    return Layout(axes[0], 1), f"its {axes[0]} maps are taken for sequences of one head, as no projection says which are heads"


def _of_shapes(n: int, values: Tensor, call: LinearCall) -> Iterator[Layout]:
    """Returns how n maps may divide into sequences and heads if the values are columns of a projection."""
    tokens, *outer = values.shape[-2], *call.out.shape[:-1]
    rows = int(np.prod(outer))
    if rows == 0 or rows % tokens or n % (rows // tokens):
        return
    sequences = rows // tokens
    heads = n // sequences
    by_sequence = len(outer) < 2 or outer[-1] == tokens
    by_token = sequences > 1 and (len(outer) < 2 or outer[0] == tokens)
    for heads_first in (False, True) if sequences > 1 and heads > 1 else (False,):
        if by_sequence:
            yield Layout(sequences, heads, heads_first)
        if by_token:
            yield Layout(sequences, heads, heads_first, tokens_first=True)


def _is_from(stage: Array, call: LinearCall, layout: Layout) -> bool:
    """Tells whether each row of a stage is part of the same row of a projection's result."""
    n, heads, tokens, d = stage.shape
    if call.out.numel() != n * tokens * call.out.shape[-1] or heads * d > call.out.shape[-1]:
        return False
    some = _some(n * tokens)
    sequences, places = (some % n, some // n) if layout.tokens_first else (some // tokens, some % tokens)
    return _rows_within(stage[sequences, :, places].reshape(len(some), heads * d), call, some)


def _some(n: int) -> Array:
    return np.unique(np.linspace(0, n - 1, _COMPARED_ROWS).astype(int))


def _rows_within(wanted: Array, call: LinearCall, some: Array) -> bool:
    there = to_numpy(call.out.detach().reshape(-1, call.out.shape[-1])[some.tolist()])
    order = there[0].argsort(kind="stable")
    which = order[np.minimum(np.searchsorted(there[0], wanted[0], sorter=order), len(order) - 1)]
    if not np.array_equal(there[0, which], wanted[0]):
        return False
    return np.array_equal(there[:, which], wanted) or all(np.isin(row, one).all() for row, one in zip(wanted, there))


def _exchanged(values: Array, calls: list[LinearCall]) -> str:
    """Returns a sentence if the heads of a token are where the tokens of a head are expected."""
    if values.ndim != 4 or values.shape[1] == 1:
        return ""
    n, tokens, heads, d = values.shape
    for call in calls:
        if call.out.numel() == n * tokens * call.out.shape[-1] and heads * d <= call.out.shape[-1]:
            some = _some(n * tokens)
            if _rows_within(values.reshape(n * tokens, heads * d)[some], call, some):
                return f"it attends between the {heads} heads of each token, not between tokens (view_without_transpose)"
    return ""
