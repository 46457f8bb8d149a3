"""Attention masks: a short rule if there is one, otherwise single cells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from .arrays import Array, shape_text, to_numpy
from .errors import AttnscopeError

LEAST_MASKED = -4500.0  # numbers that mask when they are added to scores are at most this: −10,000 in bfloat16 is −9,984
_MAX_CELLS = 1 << 22


@dataclass(frozen=True, eq=False)
class Mask:
    """A mask as in the program's sessions; without arguments nothing is masked."""

    causal: bool = False
    window: tuple[int, int] | None = None  # keys from position − left to position + right; −1 is no limit
    prefix: int = 0  # prefix length: the first keys, unmasked for every query
    align: Literal["last", "first"] = "last"  # the keys whose positions the queries have, if their numbers differ
    hidden_keys: tuple[tuple[int, ...], ...] = ()  # per sequence, such as padding
    cells: Array | None = None  # bool [queries, keys], if no rule describes it
    empty_rows: Literal["nan", "zeros"] = "nan"  # the weights of a query that has no unmasked key

    def visible(self, n_queries: int, n_keys: int, n_sequences: int = 1) -> Array:
        """Returns bool [sequences, queries, keys]: True where unmasked."""
        seen = self._rule(n_queries, n_keys) if self.cells is None else self.cells
        seen = np.broadcast_to(seen, (n_sequences, n_queries, n_keys))
        if any(self.hidden_keys):
            seen = seen.copy()
            for s, keys in enumerate(self.hidden_keys):
                seen[s][:, list(keys)] = False
        return seen

    def _rule(self, n_queries: int, n_keys: int) -> Array:
        place = np.arange(n_queries)[:, None] + (n_keys - n_queries if self.align == "last" else 0)
        key = np.arange(n_keys)[None]
        seen = key <= place if self.causal else np.ones((n_queries, n_keys), bool)
        if self.window:
            left, right = self.window
            seen = seen & ((key >= place - left) | (left < 0)) & ((key <= place + right) | (right < 0))
        return seen | (key < self.prefix)

    def shown_cells(self, n_queries: int, n_keys: int) -> Array:
        return self.visible(n_queries, n_keys)[0]

    def is_full(self) -> bool:
        return not (self.causal or self.window or any(self.hidden_keys)) and self.cells is None

    def session(self, method: str = "negative_infinity") -> dict[str, Any]:
        """Returns the value of a session's key "mask"."""
        said: dict[str, Any] = {"causal": self.causal, "method": method, "empty_rows": self.empty_rows}
        if self.window:
            said["window"] = list(self.window)
        if self.prefix:
            said["prefix"] = self.prefix
        if self.align == "first":
            said["align"] = "first"
        if any(self.hidden_keys):
            said["hidden_keys"] = [list(keys) for keys in self.hidden_keys]
        if self.cells is not None:
            said["causal"] = False
            said["cells"] = [[int(i), int(j), False] for i, j in np.argwhere(~self.cells)]
        return said

    def __str__(self) -> str:
        parts = ["causal"] if self.causal else []
        if self.window:
            parts.append(
                f"sliding window of {self.window[0] + 1} keys"
                if self.causal
                else f"window {self.window[0]}, {self.window[1]}"
            )
        if self.prefix:
            parts.append(f"prefix of {self.prefix}")
        if any(self.hidden_keys):
            parts.append("padding")
        if self.cells is not None:
            parts.append(f"{int((~self.cells).sum())} masked cells")
        return ", ".join(parts) or "no key is masked"


def recognize(visible: Array) -> Mask | None:
    """Returns the shortest description of a mask: bool [sequences, queries, keys] or [queries, keys], True if unmasked.

    None if sequences differ by more than keys masked for every query, or if too many single cells would be needed."""
    seen = visible if visible.ndim == 3 else visible[None]
    n, n_queries, n_keys = seen.shape
    common: Array = np.any(seen, axis=0)
    used: Array = np.any(seen, axis=1)
    if not (seen == common & used[:, None]).all():
        return None
    rule, hidden = _rule_of(common), ~used & common.any(0)
    # Keys that no sequence uses are padding of all of them, unless the rule masks them anyway.
    candidates = [(rule, hidden), (rule, ~used)] if rule else []
    if int((~common).sum()) <= _MAX_CELLS:
        candidates.append((Mask(cells=common), hidden))
    for found, keys in candidates:
        padding = tuple(tuple(map(int, np.flatnonzero(row))) for row in keys) if keys.any() else ()
        mask = replace(found, hidden_keys=padding)
        if (mask.visible(n_queries, n_keys, n) == seen).all():
            return mask
    return None


def _rule_of(common: Array) -> Mask | None:
    n_queries, n_keys = common.shape
    shown = common.any(0)  # padding of every sequence masks whole columns
    for align in ("last", "first") if n_queries != n_keys else ("last",):
        place = np.arange(n_queries)[:, None] + (n_keys - n_queries if align == "last" else 0)
        distance = place - np.arange(n_keys)[None]
        used = distance[common]
        if not used.size:
            return None
        left, right = int(used.max()), int(-used.min())
        candidates = [Mask(), Mask(causal=True, align=align)]
        if left >= 0:
            candidates += [
                Mask(causal=True, window=(left, 0 if right <= 0 else -1), align=align),
                Mask(window=(left, max(right, 0)), align=align),
            ]
        full = common.all(0)
        prefix = int(np.argmin(full)) if not full.all() else n_keys
        if 0 < prefix < n_keys:
            candidates.append(Mask(causal=True, prefix=prefix, align=align))
        for mask in candidates:
            rule = mask.visible(n_queries, n_keys)[0]
            if mask.window:
                window = (mask.window[0], 0) if mask.causal else mask.window
                mask = replace(mask, window=window)
                rule = mask.visible(n_queries, n_keys)[0]
            if (rule & shown == common).all():
                return mask
    return None


def as_mask(
    mask: Any, n_sequences: int, n_heads: int, n_queries: int, n_keys: int, causal: bool | None = None
) -> tuple[Mask, Array | None]:
    """Reads an attn_mask as PyTorch's scaled_dot_product_attention does: True is unmasked, floats are added.

    Returns a mask, which is also causal where that is said, and the remaining bias [heads or 1, queries, keys], or None."""
    if mask is None:
        return Mask(causal=bool(causal)), None
    if causal:
        rule, bias = as_mask(mask, n_sequences, n_heads, n_queries, n_keys)
        both = rule.visible(n_queries, n_keys, n_sequences) & Mask(causal=True).visible(n_queries, n_keys)
        return (rule if rule.causal else recognize(both) or rule), bias
    if isinstance(mask, Mask):
        return mask, None
    a = to_numpy(mask, "mask")
    if a.ndim == 2 and a.shape == (n_sequences, n_keys) and a.shape != (n_queries, n_keys):
        a = a[:, None, None]  # one row of keys for each sequence
    if a.ndim > 4:
        raise AttnscopeError(f"mask has the shape {shape_text(a)}; expected at most 4 axes.")
    a = a.reshape((1,) * (4 - a.ndim) + a.shape)
    a = a[..., :n_keys] if a.shape[-1] > n_keys else a  # of a static cache
    if any(size not in (1, want) for size, want in zip(a.shape, (n_sequences, n_heads, n_queries, n_keys))):
        raise AttnscopeError(
            f"mask has the shape {shape_text(np.asarray(a))}, which does not fit scores of [{n_sequences}, {n_heads}, {n_queries}, {n_keys}]."
        )
    a = np.broadcast_to(a, (n_sequences, a.shape[1], n_queries, n_keys))  # heads that share it are read once
    if a.dtype != bool and ((a == 0) | (a == 1)).all() and (a == 1).any():
        a = a == 1  # 1 is unmasked and 0 masked, as in tril(ones)
    if a.dtype == bool:
        seen, bias = a, None
    else:
        if np.isnan(a).any():
            raise AttnscopeError("mask holds NaN.")
        seen = a > LEAST_MASKED
        added = np.where(seen, a, 0).astype(np.float64)
        bias = added if added.any() else None
    if not (seen == seen[:, :1]).all():  # masks differ by head: −∞ is added there
        bias = np.where(seen, 0.0 if bias is None else bias, -np.inf)
        seen = np.asarray(seen.any(1, keepdims=True))
    found = recognize(seen[:, 0])
    if found is None:
        raise AttnscopeError(
            "mask differs from sequence to sequence by more than padding; give one sequence at a time."
        )
    return found, None if bias is None else _per_head(bias)


def _per_head(bias: Array) -> Array:
    if not (bias == bias[:1]).all():
        raise AttnscopeError("mask adds other numbers in every sequence; give one sequence at a time.")
    bias = bias[0]
    return bias[:1].copy() if (bias == bias[:1]).all() else bias.copy()
