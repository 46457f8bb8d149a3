"""The comparison of a recorded attention with the numbers that the model itself computed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from .arrays import Array, half_of
from .attention import Attention

ALL_ROWS = 256  # of more queries, a sample is compared: the others would take as long as the model's own pass
_SAMPLED_ROWS = 48
TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}


def compared_rows(a: Attention) -> Array:
    """Returns the queries that are compared: all of a short text; of a long one a sample, with some that have no unmasked key."""
    n = a.n_queries
    if n <= ALL_ROWS:
        return np.arange(n)
    empty = np.flatnonzero(~a.visible.any(-1).all(0)) if any(a.mask.hidden_keys) or a.mask.cells is not None else np.arange(0)
    return np.union1d(np.linspace(0, n - 1, _SAMPLED_ROWS).round().astype(int), empty[:: max(1, len(empty) // 8)])


def worst(a: Attention, dtype: str, weights: Array | None = None) -> float:
    """Returns the largest relative difference of any head from the model's own context vectors or weights; infinity where one is NaN."""
    rows = compared_rows(a)
    gaps, sizes, off = np.zeros(a.n_heads), np.full(a.n_heads, 1e-30), 0.0
    for s in range(a.n_sequences):
        some = a.of_rows(rows, s, np.float64 if dtype == "float64" else np.float32)
        if some.queries is not None and some.keys is not None:
            some.__dict__["scores"] = _product(some.queries, some._each_head(some.keys).swapaxes(-1, -2))
        assert some.values is not None
        contexts = _product(some.weights_after_dropout, some._each_head(some.values))
        gap, size, same_nan = _of_each_head(contexts, a.observed["contexts"][s : s + 1, :, rows])
        if not same_nan:
            return float("inf")
        gaps, sizes = np.maximum(gaps, gap), np.maximum(sizes, size)
        if weights is not None:
            gap, _, same_nan = _of_each_head(some.weights, weights[s : s + 1, :, rows])
            off = max(off, finite(float(gap.max())) if same_nan else float("inf"))
    return max(off, finite(float((gaps / sizes).max())))


def _product(a: Array, b: Array) -> Array:
    """Returns a·b by PyTorch, whose threads already run; those of NumPy's BLAS would wait for more work on a processor of their own."""
    left, right = (torch.from_numpy(np.ascontiguousarray(x, b.dtype)) for x in (a, b))
    with torch.autocast("cpu", enabled=False):
        product: Array = (left @ right).numpy()
    return product


def _of_each_head(here: Array, there: Array) -> tuple[Array, Array, bool]:
    """Returns the largest difference and the largest number of each head, and whether NaN is at the same places."""
    gap, nan = np.abs(here - there), np.isnan(there)
    if nan.any():
        if not np.array_equal(np.isnan(here), nan):
            return gap, gap, False
        gap, there = np.where(nan, 0, gap), np.where(nan, 0, there)
    return gap.max((0, 2, 3)), np.abs(there).max((0, 2, 3)), True


def difference(a: Array, b: Array) -> float:
    """Returns the largest difference relative to the largest number, infinity where only one of them is NaN."""
    if a.shape != b.shape or not np.array_equal(np.isnan(a), np.isnan(b)):
        return float("inf")
    there = ~np.isnan(b)
    if not there.any():
        return 0.0
    return finite(float(np.abs(a - b)[there].max()) / max(float(np.abs(b[there]).max()), 1e-30))


def finite(x: float) -> float:
    return x if x == x else float("inf")


def fill_empty_rows(a: Attention, dtype: str) -> None:
    """Finds the model's weights for queries with no unmasked key, such as padding: NaN, zeros, or uniform."""
    if a.given or a.visible.any(-1).all() or np.isnan(a.observed["contexts"]).any():
        return
    mask, method = a.mask, a.mask_method
    for a.mask, a.mask_method in ((replace(mask, empty_rows="zeros"), method), (mask, "large_negative")):
        if worst(a, dtype) <= TOLERANCE.get(dtype, 1e-4):
            return
    a.mask, a.mask_method = mask, method


def say_sample(a: Attention) -> None:
    """Notes how many rows were compared, where those are not all."""
    if a.n_queries > ALL_ROWS:
        a.notes.append(f"{a.name}: {len(compared_rows(a))} of its {a.n_queries:,} rows were compared with the model's own.")


def coarsest(*dtypes: str) -> str:
    """Returns the dtype with the least precision."""
    return max(dtypes, key=lambda dtype: TOLERANCE.get(dtype, 1e-4))


def halves(*tensors: Tensor | None) -> dict[str, str]:
    """Returns the dtypes of the stages in half precision among queries, keys, values, context vectors and output."""
    stages = zip(("queries", "keys", "values", "contexts", "output"), tensors)
    return {stage: half for stage, t in stages if t is not None and (half := half_of(t)) is not None}

