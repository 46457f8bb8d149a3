"""Attention written by hand: a softmax between a product of queries and keys and a product of weights and values.

The softmax may be written as softmax, as the exponential of log_softmax, or as exponentials divided by their sum, before or
after the product with the values. Sinks may be columns next to the scores. Where heads are mixed, or several softmaxes
combined, what is recorded are the weights themselves."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .arrays import Array, copied, dtype_name, to_numpy
from .attention import Attention
from .comparing import coarsest, halves
from .errors import AttnscopeError
from .layouts import Layout, find_layout
from .masks import LEAST_MASKED, recognize
from .products import PRODUCTS, Op, has_parameters, scale_and_softcap, scores_of, tensors_of, value_product
from .projections import LinearCall

_ROUNDING = {"float16": 2e-3, "bfloat16": 1.6e-2}  # of scores, relative to the largest
_SOFTMAX = {"softmax", "_safe_softmax"}
_EXP = {"exp", "exp_"}
_DIVIDE = {"div", "__truediv__", "div_", "__itruediv__"}
_MULTIPLY = {"mul", "__mul__", "mul_", "__imul__", "__rmul__"}
_SUBTRACT = {"sub", "__sub__", "sub_", "__isub__", "subtract"}
_COMBINE = _SUBTRACT | {"add", "__add__", "add_", "__iadd__", "__radd__", "__rsub__", "rsub", "lerp"}
_JOIN = {"cat", "concat", "concatenate"}
_MAKE_WEIGHTS = _SOFTMAX | {"log_softmax", *_EXP, "exp2", "sigmoid", "sigmoid_", "relu", "relu_"}
# Applied to softmax results these still give weights; other functions of weights (entropy, mean) are not attention.
_KEEP_WEIGHTS = _MULTIPLY | _DIVIDE | {
    "dropout", "to", "type", "type_as", "float", "half", "double", "bfloat16", "view", "reshape", "contiguous", "clone", "detach", "masked_fill",
    "masked_fill_", "where", "nan_to_num", "unsqueeze", "squeeze", "flatten", "tril", "expand", "__getitem__", "narrow", "unflatten",
}  # fmt: skip
_PERMUTE = {"permute", "transpose", "swapaxes", "__get__"}
_MAX_SITES = 4  # softmaxes that wait for a product with values


@dataclass(eq=False)
class _Site:
    """An attention from its softmax to the end of its output projection."""

    queries: Tensor
    keys: Tensor
    order: tuple[int, ...]  # of the scores' axes: sequences and heads, queries, keys
    shape: tuple[int, ...]  # of the scores in the model
    scores: Array  # as they entered the softmax, with their axes in order
    dtype: str  # of the scores
    scale: float
    softcap: float | None
    module: str
    number: int  # of the softmax
    before_dropout: Tensor | None = None
    dropout: float = 0.0
    kept: Array | None = None
    extra: Array | None = None  # the softmax's other columns: sinks
    columns: tuple[int, int] | None = None  # of the softmax, those of keys, if it has others
    changed: str = ""  # why the weights are recorded as they are
    has_queries: bool = True  # whether the queries and keys are those of these weights


@dataclass(eq=False)
class Tagged:
    """A tensor that holds the weights of a softmax, their logarithms, or exponentials that are not normalized yet."""

    tensor: Tensor
    site: _Site | None
    order: tuple[int, ...]  # of its axes
    form: str = "weights"  # log, exp
    scores: Tensor | None = None  # of exponentials; None where they were overwritten
    number: int = 0


@dataclass(eq=False)
class Unnormalized:
    """Context vectors of exponentials, which are divided by the sum afterwards."""

    tagged: Tagged
    values: Tensor
    contexts: Tensor
    module: str


class ByHand:
    """Follows a softmax from the product before it to the product after it."""

    ops: OrderedDict[int, Op]
    made_by: dict[int, int]
    count: int
    linears: deque[LinearCall]
    weights_of: OrderedDict[int, Tagged]
    unnormalized: dict[int, Unnormalized]
    told: set[int]
    whole: Tensor | None

    # Of the recorder.
    _module_name: Any
    _problem: Any
    _require_recordable: Any
    _finish: Any
    _await_gradients: Any

    def _see_by_hand(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Tensor], out: Tensor) -> None:
        if name in _SOFTMAX or name == "log_softmax":
            self._see_softmax(name, args, kwargs, out)
        elif tagged := next((self.weights_of[id(t)] for t in tensors if id(t) in self.weights_of), None):
            self._see_tagged(name, args, kwargs, tensors, out, tagged)
        elif name in _EXP and (start := self._product_above(tensors[0] if name == "exp" else out, self.ops[self.count])) is not None:
            product, _ = start
            if product.outputs[0].numel() == out.numel():
                order = tuple(range(out.ndim))
                self._tag(out, Tagged(out, None, order, "exp", tensors[0] if name == "exp" else None, self.count))
        elif name in _DIVIDE | _MULTIPLY and tensors and (waiting := self.unnormalized.pop(id(tensors[0]), None)):
            self._see_contexts_divided(name, args, out, waiting)

    # ---------------------------------------------------------------- a softmax

    def _see_softmax(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], out: Tensor) -> None:
        scores = args[0] if args else kwargs["input"]
        if scores.ndim < 2 or not scores.is_floating_point():
            return
        dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
        site = self._site(scores, (-1 if dim is None else dim) % scores.ndim, self.count, self.ops[self.count])
        if site is not None:
            order = tuple(range(out.ndim)) if site.columns else site.order
            self._tag(out, Tagged(out, site, order, "log" if name == "log_softmax" else "weights"))

    def _tag(self, t: Tensor, tagged: Tagged) -> None:
        self.weights_of[id(t)] = tagged
        sites = list(dict.fromkeys(x.site for x in self.weights_of.values() if x.site is not None))
        exps = [x for x in self.weights_of.values() if x.form == "exp"]
        if len(sites) > _MAX_SITES:
            self._forget(sites[0])
        if len(exps) > _MAX_SITES:
            del self.weights_of[id(exps[0].tensor)]

    def _forget(self, site: _Site) -> None:
        self.weights_of = OrderedDict((n, x) for n, x in self.weights_of.items() if x.site is not site)
        self._name_site(site)

    def _name_unused(self) -> None:
        """Names softmaxes of products that led to no product with values."""
        for site in dict.fromkeys(x.site for x in self.weights_of.values()):
            if site is not None:
                self._name_site(site)
        for waiting in self.unnormalized.values():
            if waiting.tagged.number not in self.told:
                self._problem(f"{waiting.module}: its weights are exponentials that are not divided by their sum, so they are not recorded.")

    def _name_site(self, site: _Site) -> None:
        if site.number not in self.told and not site.changed:
            self._problem(f"{site.module}: its softmax of a product of two tensors led to no product with values, so it is not recorded.")
        self.told.add(site.number)

    def _site(self, scores: Tensor, axis: int, number: int, op: Op, whole: Tensor | None = None) -> _Site | None:
        """Returns what is known of a softmax over an axis of scores, or None if they come from no product."""
        found = self._product_above(scores, op)
        mixed = found is None
        found = found or self._product_above(scores, op, mixes=True)
        if found is None:
            return None
        product, steps = found
        self.told.add(number)
        self._require_recordable(scores.shape[-1], scores)
        shape, made = tuple(scores.shape), product.outputs[0]
        columns, extra = None, None
        if made.numel() != scores.numel():
            columns = self._columns(steps, made.shape[-1])
            if columns is None or axis != scores.ndim - 1:
                raise AttnscopeError("its softmax has other columns than the scores of its queries and keys, so it is not recorded.")
            shape = (*shape[:-1], made.shape[-1])
        s = scores_of(product, shape, axis)
        scale, softcap = scale_and_softcap(product, steps)
        ordered = copied((scores if whole is None else whole).permute(s.order)).astype(np.float64)
        for step in steps:  # the largest score of each row is often subtracted first
            if step.name in _SUBTRACT and len(step.args) > 1 and isinstance(step.args[1], Tensor) and isinstance(step.args[0], Tensor):
                less = step.args[1]
                if less.ndim == step.args[0].ndim == len(s.order) and less.shape[axis] == 1 and less.numel() > 1:
                    ordered += to_numpy(less.permute(s.order))
        if columns is not None:
            extra = np.delete(ordered, np.s_[columns[0] : columns[1]], -1)
            ordered = ordered[..., columns[0] : columns[1]]
        self.told.discard(number)
        return _Site(
            s.queries, s.keys, s.order, shape, ordered, dtype_name(scores), scale, softcap, self._module_name(), number, extra=extra, columns=columns,
            changed="its scores are mixed between heads before the softmax" if mixed else "",
        )  # fmt: skip

    @staticmethod
    def _columns(steps: list[Op], n_keys: int) -> tuple[int, int] | None:
        """Returns which columns are keys where others were put next to them."""
        for step in steps:
            if step.name in _JOIN:
                at = 0
                for part in step.args[0] if step.args else step.kwargs["tensors"]:
                    if part.shape[-1] == n_keys:
                        return at, at + n_keys
                    at += part.shape[-1]
        return None

    def _product_above(self, scores: Tensor, op: Op, mixes: bool = False) -> tuple[Op, list[Op]] | None:
        """Returns the nearest product of two computed tensors with the scores' shape, or fewer columns, and the operations between.

        `mixes` goes through operations that mix heads."""
        for number, path in self._above(op.parents[0] if op.parents else None, mixes):
            op = self.ops[number]
            if op.name in PRODUCTS and not has_parameters(op.args, op.kwargs) and not (mixes and _mixes_heads(op)):
                out = op.outputs[0]
                if out.numel() == scores.numel() and (mixes or out.shape[-1] == scores.shape[-1]) and not _mixes_heads(op):
                    return op, path
                if out.ndim == scores.ndim and out.shape[:-1] == scores.shape[:-1] and out.shape[-1] < scores.shape[-1] and not mixes:
                    if any(step.name in _JOIN for step in path):
                        return op, path
        return None

    def _above(self, start: int | None, mixes: bool = False) -> Iterator[tuple[int, list[Op]]]:
        """Returns remembered operations that led to one, nearest first, up to products, and the operations between."""
        queue: deque[tuple[int, list[Op]]] = deque([(start, [])] if start else [])
        seen: set[int] = set()
        while queue and len(seen) < 60:
            number, path = queue.popleft()
            if number in seen or number not in self.ops:
                continue
            seen.add(number)
            yield number, path
            op = self.ops[number]
            if mixes and _mixes_heads(op) or op.name not in PRODUCTS and not has_parameters(op.args, op.kwargs):
                queue.extend((p, [op, *path]) for p in op.parents)

    def _tell_above(self, product: Op) -> None:
        """Notes that what made the weights of a recorded attention needs no problem."""
        for number, _ in (found for p in product.parents for found in self._above(p)):
            if self.ops[number].name in _MAKE_WEIGHTS:
                self.told.add(number)

    def _name_missed(self, product: Op) -> None:
        """Names an attention that ends in this product and was not recorded, with what about it is unknown."""
        for number, path in (found for p in product.parents for found in self._above(p)):
            op = self.ops[number]
            if op.name not in _MAKE_WEIGHTS or number in self.told:
                continue
            above = [self.ops[n] for p in op.parents for n, _ in self._above(p)]
            if not any(o.name in PRODUCTS and not has_parameters(o.args, o.kwargs) for o in above):
                continue
            if any(x.tagged.number == number for x in self.unnormalized.values()):
                continue  # they may be divided next
            self.told.add(number)
            name, between = op.name.strip("_"), dict.fromkeys(o.name.strip("_") for o in path if o.name != "__get__")
            if op.name not in _SOFTMAX | {"log_softmax"}:
                raise AttnscopeError(f"its weights are made by {name} and not by softmax, so they are not recorded.")
            if all(self._product_above(t, op) is None for t in tensors_of(op.args, op.kwargs)):
                raise AttnscopeError("its softmax has other columns than the scores of its queries and keys, so it is not recorded.")
            words = f"are changed by {', '.join(between)} after the softmax" if between else f"enter {product.name.strip('_')} in another form"
            raise AttnscopeError(f"its weights {words}, so they are not recorded.")

    # ---------------------------------------------------------------- what the weights go through

    def _see_tagged(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Tensor], out: Tensor, tagged: Tagged) -> None:
        if tagged.form == "exp":
            self._see_exponentials(name, args, kwargs, out, tagged)
            return
        site, weights = tagged.site, tagged.tensor
        assert site is not None
        if tagged.form == "log":
            if name in _EXP:
                self._tag(out, replace(tagged, tensor=out, form="weights"))
            elif name in _KEEP_WEIGHTS and out.shape == weights.shape:
                self._tag(out, replace(tagged, tensor=out))
            return
        if name in PRODUCTS and not _mixes_heads(self.ops[self.count]):
            found = value_product(name, args, kwargs, weights, out, tagged.order)
            if found is not None and (site.columns is None or weights.shape[-1] == site.shape[-1]):
                self.weights_of.clear()
                self.told.add(site.number)
                self._record_site(site, self._ordered(weights, tagged), *found)
            return
        others = [self.weights_of[id(t)] for t in tensors if id(t) in self.weights_of and t is not weights]
        if name in _COMBINE and others and all(o.tensor.shape == weights.shape and o.form == "weights" and o.site for o in others):
            combined = replace(site, changed="several softmaxes are combined", has_queries=False, before_dropout=None, kept=None)
            self.told |= {site.number, *(o.site.number for o in others if o.site)}
            self._tag(out, Tagged(out, combined, tagged.order))
        elif name in _PERMUTE and out.ndim == weights.ndim:
            if (dims := _permutation(name, args, kwargs, weights, out)) is not None:
                self._tag(out, replace(tagged, tensor=out, order=tuple(dims.index(i) for i in tagged.order)))
        elif _mixes_heads(self.ops[self.count]):
            self._tag(out, Tagged(out, replace(site, changed="its weights are mixed between heads after the softmax"), tagged.order))
        elif name in _KEEP_WEIGHTS:
            self._see_kept(name, args, kwargs, out, tagged, site)

    def _see_kept(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], out: Tensor, tagged: Tagged, site: _Site) -> None:
        weights = tagged.tensor
        if out.numel() != weights.numel():
            if site.columns and out.shape == site.shape and torch.equal(out, weights[..., slice(*site.columns)]):
                self._tag(out, Tagged(out, site, site.order))
            elif name == "__getitem__" and out.ndim >= 3 and out.shape[-2:] == weights.shape[-2:]:
                some = replace(site, changed="its weights are some maps of a softmax", has_queries=False)
                self._tag(out, Tagged(out, some, tuple(range(out.ndim))))
            return
        if name == "dropout":
            p, training = dropout_arguments(args, kwargs)
            if training and p > 0:
                before = weights if self.whole is None else self.whole
                site.before_dropout, site.dropout = self._ordered(before, tagged), p
                site.kept = copied(self._ordered((out != 0) | (before == 0), tagged))
        order = tagged.order if out.ndim == len(tagged.order) else tuple(range(out.ndim))
        self._tag(out, Tagged(out, site, order))

    @staticmethod
    def _ordered(weights: Tensor, tagged: Tagged) -> Tensor:
        """Returns weights as [sequences and heads …, queries, keys]."""
        site = tagged.site
        if site is not None and not site.changed and (tagged.order == site.order or weights.ndim != len(site.order)):
            return weights.reshape(site.shape).permute(site.order)
        return weights.permute(tagged.order)

    # ---------------------------------------------------------------- exponentials and their sum

    def _see_exponentials(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], out: Tensor, tagged: Tagged) -> None:
        e = tagged.tensor
        if name in PRODUCTS:
            found = value_product(name, args, kwargs, e, out, tagged.order)
            if found is not None and found[1] is out:
                self.unnormalized = {id(out): Unnormalized(tagged, found[0], out, self._module_name())}
        elif name in _DIVIDE | _MULTIPLY and args[0] is e and len(args) > 1 and isinstance(args[1], Tensor):
            other = args[1]
            axes = [i for i in range(-1, -e.ndim - 1, -1) if other.ndim == e.ndim and other.shape[i] == 1 and e.shape[i] != 1]
            if axes and (site := self._normalized(tagged, other if name in _DIVIDE else 1 / other, out, axes[0] % e.ndim)) is not None:
                self._tag(out, Tagged(out, site, site.order))
        elif name in _KEEP_WEIGHTS and out.shape == e.shape:
            self._tag(out, replace(tagged, tensor=out, scores=None))

    def _normalized(self, tagged: Tagged, sums: Tensor, weights: Tensor, axis: int) -> _Site | None:
        """Returns the softmax that exponentials divided by `sums` are, or None if they are none."""
        total = weights.sum(axis, keepdim=True)
        if not (total.nan_to_num(1) <= 1.01).all() or not (total.nan_to_num(1) > 0).all():
            return None
        scores = tagged.scores
        whole = scores if scores is not None else (weights * sums).double().log()
        site = self._site(whole if scores is None else scores, axis, tagged.number, self.ops[tagged.number], whole)
        if site is not None:
            more = to_numpy((sums * (1 - total)).permute(site.order))  # in the sum next to the exponentials
            if (more > 1e-3 * to_numpy(sums.permute(site.order))).all():
                shift = self._shift(scores, whole, site)
                site = replace(site, extra=np.log(more) + shift)
        return site

    @staticmethod
    def _shift(scores: Tensor | None, whole: Tensor, site: _Site) -> Array:
        """Returns what was subtracted from the scores before their exponentials, by row."""
        there = to_numpy(whole.permute(site.order)).astype(np.float64)
        with np.errstate(invalid="ignore"):
            gap = site.scores - there
        return np.nan_to_num(np.nanmax(np.where(np.isfinite(gap), gap, -np.inf), -1, keepdims=True), neginf=0.0)

    def _see_contexts_divided(self, name: str, args: tuple[Any, ...], out: Tensor, waiting: Unnormalized) -> None:
        sums = args[1] if len(args) > 1 else None
        if not isinstance(sums, Tensor) or sums.ndim != out.ndim or sums.shape[-1] != 1:
            return
        sums = sums if name in _DIVIDE else 1 / sums
        weights = waiting.tagged.tensor / sums
        site = self._normalized(waiting.tagged, sums, weights, weights.ndim - 1)
        if site is not None:
            self.weights_of.clear()
            self.told.add(site.number)
            self._record_site(site, weights, waiting.values, out)

    # ---------------------------------------------------------------- recording

    def _record_site(self, site: _Site, weights: Tensor, values: Tensor, context: Tensor) -> None:
        """Records an attention; weights are [sequences and heads …, queries, keys]."""
        layout, guess = find_layout(tuple(weights.shape[:-2]), values, list(self.linears))
        used = site.before_dropout if site.before_dropout is not None else weights
        w = layout.stage(used)
        w = w if w.dtype == np.float64 else w.astype(np.float64)
        v, notes = layout.stage(values), [f"{site.module}: {guess}."] if guess else []
        if site.changed:
            q, k = (layout.stage(t) if site.has_queries else None for t in (site.queries, site.keys))
            a = Attention(q, k, v, given={"weights": w}, name=site.module, notes=[*notes, f"{site.module}: {site.changed}, so the weights are given."])
        else:
            a = Attention(layout.stage(site.queries), layout.stage(site.keys), v, name=site.module, notes=notes)
            self._read_scores(a, layout.stage(site.scores), site, w)
            if site.extra is not None:
                self._read_sinks(a, layout.stage(site.extra), w)
        if site.kept is not None:
            a.dropout, a.dropout_mask = site.dropout, layout.stage(site.kept)
        a.observed["contexts"] = layout.stage(context)
        a.halves = halves(*((site.queries, site.keys) if a.queries is not None else (None, None)), values, context)
        self._finish(a, coarsest(dtype_name(site.queries), dtype_name(context), dtype_name(weights), site.dtype), w, layout)
        if a.queries is not None:
            self._await_gradients(a, layout, queries=site.queries, keys=site.keys, values=values, contexts=context)

    @staticmethod
    def _read_sinks(a: Attention, extra: Array, weights: Array) -> None:
        """Reads the logits next to the scores as one sink of each head; if they differ by row, the weights are given."""
        most = extra.max(-1, keepdims=True)
        logits = (np.log(np.exp(extra - most).sum(-1, keepdims=True)) + most)[..., 0]
        sinks = logits[:1, :, :1]
        if np.isfinite(logits).all() and (np.abs(logits - sinks) <= 1e-5 * np.maximum(1, np.abs(logits))).all():
            a.sinks = np.broadcast_to(np.where(np.abs(sinks[0, :, 0]) < 1e-5, 0, sinks[0, :, 0]), (a.n_heads,)).copy()  # 1 + Σ is 0 but for rounding
        else:
            a.given, a.bias = {"weights": weights}, None
            a.notes.append(f"{a.name}: the columns next to its scores differ by row, so the weights are given.")

    def _read_scores(self, a: Attention, scores: Array, site: _Site, weights: Array) -> None:
        """Finds the scale, mask, softcap and bias between Q·Kᵀ and the softmax."""
        raw, unmasked = a.scores, scores > LEAST_MASKED
        size = max(1.0, float(np.abs(scores[unmasked]).max(initial=0.0)))
        rounding = _ROUNDING.get(site.dtype, 0.0) * size
        tolerance = max(1e-3 * size, rounding)
        if site.softcap:
            for scale in (site.scale, a.factor):
                capped = site.softcap * np.tanh(raw * scale / site.softcap)
                if np.abs(capped - scores)[unmasked].max(initial=0.0) <= tolerance:
                    a.scale, a.softcap = scale, site.softcap
                    break
        rest = scores - (self._capped(a, raw) if a.softcap else raw * site.scale)
        seen, method = self._seen(scores, rest, weights)
        same = bool((seen == seen[:, :1]).all())
        mask = recognize(seen[:, 0]) if same else None
        rest = np.where(seen, rest, 0)
        if a.softcap is None:
            a.scale = site.scale
            r = raw[seen]
            fit = float(r @ scores[seen] / (r @ r)) if (r * r).sum() > 0 else site.scale
            if (
                np.abs(rest).max(initial=0.0) > tolerance
                and np.abs(scores - raw * fit)[seen].max(initial=0.0) <= tolerance
            ):
                a.scale, rest = fit, np.zeros_like(rest)
        if abs(a.factor / a.queries.shape[-1] ** -0.5 - 1) < 1e-6:  # type: ignore[union-attr]
            a.scale = None
        if np.abs(rest).max(initial=0.0) > max(1e-5 * size, rounding):
            if not (np.abs(rest - rest[:1]) <= tolerance).all():
                mask = None
            a.bias = rest[0, :1] if np.allclose(rest[0], rest[0, :1], atol=max(tolerance * 1e-2, rounding)) else rest[0]
        if mask is None:
            a.given["masked_scores"] = np.where(seen, scores, -np.inf)
            a.notes.append(
                f"{a.name}: its mask or bias differs between heads or sequences, so its masked scores are kept as they are."
            )
        else:
            a.mask, a.mask_method = mask, method

    @staticmethod
    def _seen(scores: Array, added: Array, weights: Array) -> tuple[Array, str]:
        """Returns which cells are unmasked, from what was added to the scaled scores, and how the others are masked."""
        seen = ~((scores == -np.inf) | (added <= LEAST_MASKED) & (scores <= LEAST_MASKED))
        if seen.all() and not (weights != 0).all():  # masked after the softmax
            return weights != 0, "renormalise" if np.allclose(weights.sum(-1), 1, atol=1e-3) else "zero_after_softmax"
        if not seen.any(-1).all() and np.isfinite(scores).all():
            return seen, "large_negative"  # a row with no unmasked key has uniform weights, as in the model
        return seen, "negative_infinity"

    @staticmethod
    def _capped(a: Attention, raw: Array) -> Array:
        assert a.softcap is not None
        return a.softcap * np.tanh(raw * a.factor / a.softcap)


def _mixes_heads(op: Op) -> bool:
    """Tells whether an operation combines maps of several heads: einsum("bhij,hg->bgij", maps, mix), a convolution, a layer on permuted maps."""
    out = op.outputs[0]
    if out.ndim < 4:
        return False
    tensors = list(tensors_of(op.args, op.kwargs))
    maps = [t for t in tensors if t.ndim == out.ndim and sorted(t.shape) == sorted(out.shape)]
    if len(maps) != 1 or len(tensors) < 2:
        return False
    if op.name == "einsum" and len(tensors) == 2:
        other = next((t for t in tensors if t is not maps[0]), maps[0])
        return other.ndim == 2 and maps[0].shape[-2:] == out.shape[-2:]
    return has_parameters(op.args, op.kwargs)


def _permutation(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], t: Tensor, out: Tensor) -> list[int] | None:
    """Returns the old axis of each new one."""
    ndim, dims = t.ndim, list(range(t.ndim))
    if name == "permute":
        said = args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else args[1:] or kwargs.get("dims", ())
        return [d % ndim for d in said] if len(said) == ndim else None
    if name in ("transpose", "swapaxes"):
        a, b = (args[1:] + tuple(kwargs.values()))[:2]
        dims[a], dims[b] = dims[b], dims[a]
        return dims
    if out.stride()[-2:] == t.stride()[:-3:-1]:
        dims[-2:] = dims[:-3:-1]  # .mT, and .T of a matrix
    return dims if out.shape == torch.Size([t.shape[d] for d in dims]) else None


def dropout_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[float, bool]:
    said = dict(zip(("input", "p", "training", "inplace"), args)) | kwargs
    return float(said.get("p", 0.5)), bool(said.get("training", True))
