"""Products of tensors, however they are written: projections, scores of queries and keys, context vectors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .errors import AttnscopeError
from .projections import LinearCall

PRODUCTS = {"matmul", "__matmul__", "__rmatmul__", "bmm", "mm", "baddbmm", "einsum"}
_SCALE_DOWN = {"div", "div_", "__truediv__", "__itruediv__"}
_SCALE_UP = {"mul", "mul_", "__mul__", "__rmul__", "__imul__"}


@dataclass
class Op:
    """A recorded operation: its arguments, and the remembered operations that made them."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: list[Tensor]
    parents: list[int]


@dataclass
class Scores:
    """Queries and keys of a product; the scores' axes in `order` are [sequences and heads …, queries, keys]."""

    queries: Tensor
    keys: Tensor
    order: tuple[int, ...]


def tensors_of(args: Any, kwargs: dict[str, Any]) -> Iterator[Tensor]:
    for x in (*args, *kwargs.values()):
        if isinstance(x, Tensor):
            yield x
        elif isinstance(x, (list, tuple)):
            yield from (t for t in x if isinstance(t, Tensor))


def _root(t: Any) -> nn.Parameter | None:
    """Returns the parameter that a tensor is, or of which it is a transposed view, if any."""
    if isinstance(t, nn.Parameter):
        return t
    base = getattr(t, "_base", None) if isinstance(t, Tensor) else None
    return base if isinstance(base, nn.Parameter) and base.numel() == t.numel() else None


def has_parameters(args: Any, kwargs: dict[str, Any]) -> bool:
    return any(_root(t) is not None for t in tensors_of(args, kwargs))


def linear_call(
    function: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], out: Tensor
) -> LinearCall | None:
    """Returns the projection x·W + b, with a parameter W, that a call computes, however it is written; else None."""
    if function is F.linear:
        said = dict(zip(("input", "weight", "bias"), args)) | kwargs
        return LinearCall(said["input"], said["weight"], said.get("bias"), out, False)
    if name == "addmm" and len(args) >= 3 and _root(args[2]) is not None:
        return LinearCall(args[1], args[2], args[0], out, True)
    if (
        name in ("matmul", "__matmul__", "mm")
        and len(args) == 2
        and args[1].ndim == 2
        and _root(args[1]) is not None
        and _root(args[0]) is None
    ):
        return LinearCall(args[0], args[1], None, out, True)
    if name == "einsum" and isinstance(args[0], str):
        return _einsum_call(args, out)
    return None


def _einsum_call(args: tuple[Any, ...], out: Tensor) -> LinearCall | None:
    """Returns a projection such as einsum("btd,dhk->bthk", x, W), the weight's other axes in the result's order."""
    labels = einsum_labels(args, out)
    if labels is None:
        return None
    (x, w), tensors, result = labels
    if _root(tensors[1]) is None or _root(tensors[0]) is not None:
        return None
    summed = [c for c in x if c in w and c not in result]
    own = [c for c in result if c in w]
    if x[len(x) - len(summed) :] != summed or result[len(result) - len(own) :] != own or len(summed) + len(own) != len(w):
        return None
    weight = tensors[1].permute([w.index(c) for c in summed + own])
    n_in = int(np.prod([tensors[1].shape[w.index(c)] for c in summed]))
    rows = tensors[0].reshape(*tensors[0].shape[: len(x) - len(summed)], n_in)
    return LinearCall(rows, weight.reshape(n_in, -1), None, out.reshape(*rows.shape[:-1], -1), True)


def einsum_labels(args: tuple[Any, ...], out: Tensor) -> tuple[list[list[str]], list[Tensor], list[str]] | None:
    """Returns the labels of both operands, the operands and the labels of the result; an ellipsis gets labels too."""
    tensors = list(args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else args[1:])
    found = re.fullmatch(r"([\w.]+),([\w.]+)->([\w.]+)", str(args[0]).replace(" ", ""))
    if not found or len(tensors) != 2:
        return None
    # Axes of an ellipsis are numbered from the right, as they are broadcast.
    labels = []
    for said, t in zip(found.groups(), (*tensors, out)):
        left, dots, right = said.partition("...")
        n = t.ndim - len(left) - len(right)
        labels.append([*left, *(f"…{n - i}" for i in range(n if dots else 0)), *right])
    if any(len(names) != t.ndim or len(set(names)) != len(names) for names, t in zip(labels, (*tensors, out))):
        return None
    return labels[:2], tensors, labels[2]


def scores_of(product: Op, shape: tuple[int, ...], axis: int) -> Scores:
    """Returns queries […, tokens, d] and keys […, tokens, d] of the product that gives scores; softmax is over `axis`."""
    if product.name == "einsum":
        return _einsum_scores(product, axis)
    a, b = _factors_of(product.name, product.args, product.kwargs)
    if product.name == "__rmatmul__":
        a, b = b, a
    if a.ndim < 2 or b.ndim < 2:
        raise AttnscopeError("its scores are of one query alone.")
    if axis != len(shape) - 1:
        raise AttnscopeError(
            f"its softmax runs over axis {axis} and not over the keys, so its rows are no weights (softmax_over_queries)."
        )
    queries, keys = a, b.transpose(-1, -2)
    if len(shape) > a.ndim or queries.shape[:-2].numel() != torch.Size(shape[:-2]).numel():
        lead = torch.Size(shape[:-2])
        if queries.shape[:-2].numel() == lead.numel():
            queries, keys = queries.reshape(*lead, *queries.shape[-2:]), keys.reshape(*lead, *keys.shape[-2:])
    return Scores(queries, keys, tuple(range(len(shape))))


def _einsum_scores(product: Op, axis: int) -> Scores:
    unknown = AttnscopeError(f"its scores are einsum({product.args[0]!r}), which is not recorded.")
    found = einsum_labels(product.args, product.outputs[0])
    if found is None:
        raise unknown
    labels, tensors, result = found
    column = result[axis]
    if column in labels[0]:
        labels, tensors = labels[::-1], tensors[::-1]
    summed = [c for c in labels[0] if c in labels[1] and c not in result]
    rows = [c for c in result if c in labels[0] and c not in labels[1]]
    others = [c for c in result if c in labels[1] and c not in labels[0]]
    if len(summed) != 1 or others != [column] or not rows:
        if len(summed) == 1 and column not in labels[0] and len(others) > 1:
            raise AttnscopeError(
                f"its softmax runs over axis {axis} and not over the keys, so its rows are no weights (softmax_over_queries)."
            )
        raise unknown
    row = rows[-1]
    lead = [c for c in result if c not in (row, column)]
    order = tuple(result.index(c) for c in (*lead, row, column))
    queries = tensors[0].permute([labels[0].index(c) for c in (*lead, row, *summed)])
    return Scores(queries, _with_lead(tensors[1], labels[1], lead, queries, [column, *summed]), order)


def _with_lead(t: Tensor, labels: list[str], lead: list[str], like: Tensor, ends: list[str]) -> Tensor:
    """Returns a tensor with the axes `lead` and `ends`. Only the last leading axis may be shared, as KV heads are."""
    t = t.permute([labels.index(c) for c in (*(c for c in lead if c in labels), *ends)])
    for i, c in enumerate(lead):
        if c not in labels:
            t = t.unsqueeze(i)
            if i < len(lead) - 1:
                t = t.expand(*t.shape[:i], like.shape[i], *t.shape[i + 1 :])
    return t


def _factors_of(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    names = (
        ("input", "batch1", "batch2")
        if name == "baddbmm"
        else ("input", {"bmm": "mat2", "mm": "mat2"}.get(name, "other"))
    )
    said = dict(zip(names, args)) | kwargs
    return said.get(names[-2]), said.get(names[-1])


def value_product(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], weights: Tensor, out: Tensor, order: tuple[int, ...]
) -> tuple[Tensor, Tensor] | None:
    """Returns values […, keys, d] and context vectors […, queries, d] of a product with weights, else None."""
    if name == "einsum":
        found = einsum_labels(args, out)
        if found is None:
            return None
        labels, tensors, result = found
        if tensors[0] is not weights:
            labels, tensors = labels[::-1], tensors[::-1]
        if tensors[0] is not weights or len(labels[0]) != len(order):
            return None
        *lead, query, key = (labels[0][i] for i in order)
        own = [c for c in labels[1] if c not in labels[0]]
        if key not in labels[1] or query in labels[1] or len(own) != 1 or set(result) != {*lead, query, own[0]}:
            return None
        context = out.permute([result.index(c) for c in (*lead, query, own[0])])
        return _with_lead(tensors[1], labels[1], lead, context, [key, own[0]]), context
    a, b = _factors_of(name, args, kwargs)
    n = len(order)
    if b is weights and order == (*range(n - 2), n - 1, n - 2) and isinstance(a, Tensor) and _root(a) is None:
        return a.transpose(-1, -2), out.transpose(-1, -2)  # both factors and the result transposed
    if a is not weights or not isinstance(b, Tensor) or b.ndim < 2 or _root(b) is not None:
        return None
    return (b, out) if order == tuple(range(len(order))) else None


def scale_and_softcap(product: Op, steps: list[Op]) -> tuple[float, float | None]:
    """Returns the scale factor and the softcap between the product and the softmax."""
    scale, softcap, after_cap = 1.0, None, False
    if product.name == "baddbmm":
        scale *= float(product.kwargs.get("alpha", 1))
    for op in steps:
        if op.name in ("tanh", "tanh_"):
            after_cap = True
            continue
        if op.name not in _SCALE_DOWN | _SCALE_UP or len(op.args) < 2:
            continue
        numbers = [x for x in op.args[:2] if isinstance(x, (int, float)) or isinstance(x, Tensor) and x.numel() == 1]
        if not numbers:
            continue
        number = float(numbers[-1])
        if after_cap:
            softcap = number if op.name in _SCALE_UP else 1 / number
        else:
            scale = scale / number if op.name in _SCALE_DOWN else scale * number
    return (scale * softcap if softcap else scale), softcap
