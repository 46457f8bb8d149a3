"""capture(): records every attention that PyTorch computes, without hooks on the model and without knowing its names.

Attention is recognized in three ways, all watched at once:
- calls of scaled_dot_product_attention and multi_head_attention_forward;
- transformers' attention functions, which name query, key, value, mask, scaling, softcap, sinks and position bias;
- any other softmax between a product of queries and keys and a product of weights and values.
Every recording is recomputed in NumPy and compared with the context vectors that the model used."""

from __future__ import annotations

import re
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from .arrays import Array, dtype_name, to_numpy
from .attention import Attention
from .errors import AttnscopeError
from .masks import Mask, as_mask, recognize
from .projections import LinearCall, find_editable, find_output
from .recording import Recording

_REMEMBERED_OPS = 300  # about thirty lie between a projection and its softmax
_REMEMBERED_LINEARS = 24
_AWAITED_LINEARS = 8  # after the context vectors; then no output projection is expected
_MASKED_SCORE = -1e4
TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}

_SOFTMAX = {"softmax", "_safe_softmax"}
_PRODUCTS = {"matmul", "__matmul__", "__rmatmul__", "bmm", "mm", "baddbmm", "einsum"}
# Applied to softmax results these still give weights; other functions of weights (entropy, mean) are not attention.
_KEEP_WEIGHTS = {
    "dropout", "to", "type", "type_as", "float", "half", "double", "bfloat16", "view", "reshape", "contiguous", "clone", "detach", "mul", "__mul__",
    "mul_", "__imul__", "__rmul__", "div", "__truediv__", "div_", "__itruediv__", "masked_fill", "masked_fill_", "where", "nan_to_num", "unsqueeze", "squeeze", "flatten",
    "tril", "expand", "__getitem__",
}  # fmt: skip
_SCALE_DOWN = {"div", "div_", "__truediv__", "__itruediv__"}
_SCALE_UP = {"mul", "mul_", "__mul__", "__rmul__", "__imul__"}


def copied(x: Tensor, name: str = "the tensor") -> Array:
    """Returns a copy of a tensor's current numbers."""
    return np.array(to_numpy(x, name))


@dataclass
class _Op:
    """A recorded operation: its arguments, and the remembered operations that made them."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: list[Tensor]
    parents: list[int]


@dataclass
class _Site:
    """An attention from its softmax to the end of its output projection."""

    queries: Tensor
    keys: Tensor
    scores: Array  # as they entered the softmax
    scale: float
    softcap: float | None
    shape: tuple[int, ...]  # of the scores
    module: str
    before_dropout: Tensor | None = None
    dropout: float = 0.0
    kept: Array | None = None
    softmax: Tensor | None = None


@dataclass
class _Awaiting:
    """A recorded attention whose output projection has not been seen yet."""

    attention: Attention
    left: int = _AWAITED_LINEARS


class Capture(Recording):
    """The context manager that capture() returns, and the recording that it makes."""

    def __init__(self, model: Any = None, tokens: Any = None, max_tokens: int = 2048) -> None:
        super().__init__()
        if model is not None and not isinstance(model, nn.Module):
            raise AttnscopeError(f"capture() takes a module of PyTorch, got {type(model).__name__}.")
        self._model, self._tokens, self._max_tokens = model, tokens, max_tokens
        self._recorder: _Recorder | None = None

    def __enter__(self) -> Capture:
        if self._recorder is not None:
            raise AttnscopeError("This capture is already running; make a new one with attnscope.capture().")
        self._recorder = _Recorder(self, self._model, self._max_tokens)
        self._recorder.start()
        return self

    def __exit__(self, *error: Any) -> None:
        assert self._recorder is not None
        self._recorder.stop()
        self._recorder = None
        for i, a in enumerate(self.attentions):
            a.layer = i
            if self._tokens is not None:
                if len(self._tokens) == a.n_queries:
                    a.tokens = [str(t) for t in self._tokens]
                if len(self._tokens) == a.n_keys and a.n_keys != a.n_queries:
                    a.key_tokens = [str(t) for t in self._tokens]


class _Recorder(TorchFunctionMode):
    """Observes each called PyTorch function and its result."""

    def __init__(self, recording: Recording, model: nn.Module | None, max_tokens: int) -> None:
        super().__init__()
        self.recording, self.max_tokens = recording, max_tokens
        self.paths = {} if model is None else {m: name.removeprefix("_orig_mod.") for name, m in model.named_modules()}
        self.stack: list[nn.Module] = []
        self.ops: OrderedDict[int, _Op] = OrderedDict()
        self.made_by: dict[int, int] = {}  # id of a tensor → number of the operation that made it
        self.count = 0
        self.linears: deque[LinearCall] = deque(maxlen=_REMEMBERED_LINEARS)
        self.weights_of: dict[int, tuple[Tensor, _Site]] = {}
        self.awaiting: list[_Awaiting] = []
        self.whole: Tensor | None = None  # weights before an in-place dropout
        self.inside = 0  # depth inside a recognized attention function
        self.dropped: list[tuple[Array, float]] = []
        self.undo: list[Callable[[], None]] = []

    # ---------------------------------------------------------------- beginning and end

    def start(self) -> None:
        # Global module hooks: the caller's modules get no hooks of their own.
        pre = nn.modules.module.register_module_forward_pre_hook(lambda m, _: self.stack.append(m))
        post = nn.modules.module.register_module_forward_hook(self._leave, always_call=True)
        self.undo += [pre.remove, post.remove]
        self._watch_transformers()
        if "torch._dynamo" in sys.modules and hasattr(
            torch.compiler, "set_stance"
        ):  # code fused by torch.compile cannot be observed: such models run eagerly meanwhile
            stance = torch.compiler.set_stance("force_eager")
            stance.__enter__()
            self.undo.append(lambda: stance.__exit__(None, None, None))
        self.__enter__()

    def stop(self) -> None:
        self.__exit__(None, None, None)
        for undo in reversed(self.undo):
            undo()
        for remembered in (self.ops, self.made_by, self.linears, self.weights_of, self.awaiting):
            remembered.clear()

    def _leave(self, module: nn.Module, *_: Any) -> None:
        if self.stack and self.stack[-1] is module:
            self.stack.pop()

    def _watch_transformers(self) -> None:
        """Routes every attention function of transformers through record_function() while the capture runs."""
        if "transformers" not in sys.modules:
            return
        from transformers import modeling_utils

        interface = getattr(modeling_utils, "AttentionInterface", None)
        if interface is None or not hasattr(interface, "get_interface"):
            return  # older releases: the functions they call are observed anyway
        original = interface.get_interface
        recorder = self

        def get_interface(self: Any, implementation: str, default: Callable[..., Any]) -> Callable[..., Any]:
            function = original(self, implementation, default)

            def recorded(
                module: nn.Module, query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any
            ) -> Any:
                return recorder.record_function(function, implementation, module, query, key, value, args, kwargs)

            return recorded

        interface.get_interface = get_interface
        self.undo.append(lambda: setattr(interface, "get_interface", original))

    # ---------------------------------------------------------------- observed calls

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        if self.inside:
            result = function(*args, **kwargs)
            if name == "dropout":
                self._note_dropout(args, kwargs, result)
            return result
        if function is F.multi_head_attention_forward or function is F.scaled_dot_product_attention:
            record = self._record_mha if function is F.multi_head_attention_forward else self._record_sdpa
            with _Drawn() as drawn:
                result = function(*args, **kwargs)
            self._guard(lambda: record(args, kwargs, result, drawn.masks))
        else:
            self.whole = self._before_dropout_in_place(name, args, kwargs)
            result = function(*args, **kwargs)
        if name in ("__get__", "__set__") and not isinstance(result, Tensor):
            return result
        outputs = [t for t in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(t, Tensor)]
        if outputs:
            self._guard(lambda: self._follow(function, name, args, kwargs, outputs))
        return result

    def _before_dropout_in_place(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
        """Returns a copy of weights that dropout is about to change in place."""
        if name != "dropout" or not args or id(args[0]) not in self.weights_of:
            return None
        inplace = kwargs.get("inplace", args[3] if len(args) > 3 else False)
        return args[0].detach().clone() if inplace else None

    def _guard(self, record: Callable[[], None]) -> None:
        """Runs `record`; a failure becomes a problem and never stops the caller's model."""
        try:
            record()
        except AttnscopeError as error:
            self._problem(f"{self._module_name()}: {error}")
        except (RuntimeError, ValueError, IndexError, TypeError, KeyError) as error:
            self._problem(
                f"{self._module_name()}: an attention could not be recorded ({type(error).__name__}: {error})."
            )

    def _problem(self, text: str) -> None:
        if text not in self.recording.problems:
            self.recording.problems.append(text)

    def _follow(
        self, function: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], outputs: list[Tensor]
    ) -> None:
        tensors = [t for t in _tensors(args, kwargs)]
        parents = [self.made_by[id(t)] for t in tensors if id(t) in self.made_by]
        self._remember(_Op(name, args, kwargs, outputs, parents))
        out = outputs[0]
        if call := linear_call(function, name, args, kwargs, out):
            self._see_linear(call)
        elif name in _SOFTMAX:
            self._see_softmax(args, kwargs, out)
        elif tagged := next(((t, self.weights_of[id(t)][1]) for t in tensors if id(t) in self.weights_of), None):
            self._see_weights(name, args, kwargs, out, *tagged)

    def _remember(self, op: _Op) -> None:
        self.count += 1
        self.ops[self.count] = op
        for t in op.outputs:
            self.made_by[id(t)] = self.count
        if len(self.ops) > _REMEMBERED_OPS:
            number, old = self.ops.popitem(last=False)
            for t in old.outputs:
                if self.made_by.get(id(t)) == number:
                    del self.made_by[id(t)]

    def _module_name(self) -> str:
        for module in reversed(self.stack):
            if module in self.paths and any(True for _ in module.children()):
                return self.paths[module] or type(module).__name__
        named = [m for m in self.stack if any(True for _ in m.children())] or self.stack
        return type(named[-1]).__name__ if named else "attention"

    # ---------------------------------------------------------------- any softmax

    def _see_softmax(self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Tensor) -> None:
        scores = args[0] if args else kwargs["input"]
        if scores.ndim < 2 or scores.shape[-1] > self.max_tokens or not scores.is_floating_point():
            return
        found = self._product_above(scores)
        if found is None:
            return
        product, steps = found
        queries, keys = operands(product, scores.shape)
        dim = kwargs.get("dim", args[1] if len(args) > 1 else -1)
        if dim is not None and dim % scores.ndim != scores.ndim - 1:
            raise AttnscopeError(
                f"its softmax runs over axis {dim} and not over the keys, so its rows are no weights (softmax_over_queries)."
            )
        scale, softcap = _factors(product, steps)
        site = _Site(
            queries,
            keys,
            copied(scores).astype(np.float64),
            scale,
            softcap,
            tuple(scores.shape),
            self._module_name(),
            softmax=out,
        )
        self.weights_of.clear()
        self.weights_of[id(out)] = (out, site)

    def _product_above(self, scores: Tensor) -> tuple[_Op, list[_Op]] | None:
        """Returns the nearest product of two computed tensors with the scores' shape, and the operations between."""
        start = self.made_by.get(id(scores))
        queue: deque[tuple[int, list[_Op]]] = deque([(start, [])] if start else [])
        seen: set[int] = set()
        while queue and len(seen) < 60:
            number, path = queue.popleft()
            if number in seen or number not in self.ops:
                continue
            seen.add(number)
            op = self.ops[number]
            if op.name in _PRODUCTS and not _parameters(op.args, op.kwargs):
                out = op.outputs[0]
                if out.numel() == scores.numel() and out.shape[-1] == scores.shape[-1]:
                    return op, path
                continue
            queue.extend((p, [op, *path]) for p in op.parents)
        return None

    def _see_weights(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], out: Tensor, weights: Tensor, site: _Site
    ) -> None:
        if name in _PRODUCTS:
            found = value_product(name, args, kwargs, weights, out)
            if found is not None:
                self.weights_of.clear()
                self._record_site(site, weights, *found)
            return
        if name not in _KEEP_WEIGHTS or out.numel() != weights.numel():
            return
        if name == "dropout":
            p, training = _dropout_arguments(args, kwargs)
            if training and p > 0:
                before = weights if self.whole is None else self.whole
                site.before_dropout, site.dropout = before, p
                site.kept = copied(((out != 0) | (before == 0)).reshape(site.shape))
        self.weights_of[id(out)] = (out, site)

    def _record_site(self, site: _Site, weights: Tensor, values: Tensor, context: Tensor) -> None:
        lead = self._leading(site.shape[:-2])
        q, k, v = (self._stage(t, lead) for t in (site.queries, site.keys, values))
        scores = site.scores.reshape(*lead, *site.shape[-2:])
        used = site.before_dropout if site.before_dropout is not None else weights
        w = copied(used).reshape(scores.shape).astype(np.float64)
        a = Attention(q, k, v, name=site.module)
        self._read_scores(a, scores, site, w)
        if site.kept is not None:
            a.dropout, a.dropout_mask = site.dropout, site.kept.reshape(scores.shape)
        a.observed["contexts"] = _heads(copied(context), lead, q.shape[2])
        self._finish(a, dtype_name(site.queries), w)

    def _leading(self, axes: tuple[int, ...]) -> tuple[int, int]:
        """Returns the numbers of sequences and heads in the axes before queries and keys."""
        if len(axes) == 2:
            return axes
        if len(axes) == 0:
            return 1, 1
        if len(axes) > 2:
            raise AttnscopeError(f"its scores have {len(axes) + 2} axes; expected at most 4.")
        n = axes[0]
        for call in reversed(self.linears):
            if call.out.ndim == 3 and n % call.out.shape[0] == 0:
                return call.out.shape[0], n // call.out.shape[0]
        return n, 1

    def _stage(self, t: Tensor, lead: tuple[int, int]) -> Array:
        a = copied(t)
        if a.ndim == 4 and a.shape[0] == lead[0]:
            return a
        return a.reshape(lead[0], -1, *a.shape[-2:])

    def _read_scores(self, a: Attention, scores: Array, site: _Site, weights: Array) -> None:
        """Finds the scale, mask, softcap and bias between Q·Kᵀ and the softmax."""
        seen = scores > _MASKED_SCORE
        method = "negative_infinity"
        if seen.all() and not (weights != 0).all():  # masked after the softmax
            sums = weights.sum(-1)
            method = "renormalise" if np.allclose(sums, 1, atol=1e-3) else "zero_after_softmax"
            seen = weights != 0
        elif not seen.any(-1).all() and np.isfinite(scores).all():
            method = "large_negative"  # a row with no unmasked key has uniform weights, as in the model
        same = bool((seen == seen[:, :1]).all())
        mask = recognize(seen[:, 0]) if same else None
        raw = a.scores
        tolerance = 1e-3 * max(1.0, float(np.abs(scores[seen]).max(initial=0.0)))
        if site.softcap:
            for scale in (site.scale, a.factor):
                if (
                    np.abs(site.softcap * np.tanh(raw * scale / site.softcap) - scores)[seen].max(initial=0.0)
                    <= tolerance
                ):
                    a.scale, a.softcap = scale, site.softcap
                    break
        rest = scores - (self._capped(a, raw) if a.softcap else raw * site.scale)
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
        if np.abs(rest).max(initial=0.0) > 1e-5 * max(1.0, float(np.abs(scores[seen]).max(initial=0.0))):
            if not (np.abs(rest - rest[:1]) <= tolerance).all():
                mask = None
            a.bias = rest[0, :1] if np.allclose(rest[0], rest[0, :1], atol=tolerance * 1e-2) else rest[0]
        if mask is None:
            a.given["masked_scores"] = np.where(seen, scores, -np.inf)
            a.notes.append(
                f"{a.name}: its mask or bias differs between heads or sequences, so its masked scores are kept as they are."
            )
        else:
            a.mask, a.mask_method = mask, method

    @staticmethod
    def _capped(a: Attention, raw: Array) -> Array:
        assert a.softcap is not None
        return a.softcap * np.tanh(raw * a.factor / a.softcap)

    # ---------------------------------------------------------------- attention functions

    def _record_sdpa(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Tensor, drawn: list[Array]) -> None:
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
        said = dict(zip(names, args)) | kwargs
        query, key, value = said["query"], said["key"], said["value"]
        if max(query.shape[-2], key.shape[-2]) > self.max_tokens:
            raise AttnscopeError(f"{key.shape[-2]} tokens are more than max_tokens={self.max_tokens}.")
        lead = self._leading(tuple(query.shape[:-2]))
        q, k, v = (self._stage(t, lead) for t in (query, key, value))
        a = Attention(q, k, v, scale=said.get("scale"), name=self._module_name())
        if said.get("is_causal"):
            a.mask = Mask(causal=True, align="last" if q.shape[2] == k.shape[2] else "first")
        elif (mask := said.get("attn_mask")) is not None:
            if mask.ndim == 3 and query.ndim == 3:
                mask = mask.expand(query.shape[0], *mask.shape[1:]).reshape(*lead, *mask.shape[1:])
            self._apply_mask(a, mask)
        self._apply_dropout(a, float(said.get("dropout_p") or 0.0), drawn)
        a.observed["contexts"] = _heads(copied(result), lead, q.shape[2])
        self._finish(a, dtype_name(query), None)

    def _apply_mask(self, a: Attention, mask: Any) -> None:
        try:
            a.mask, a.bias = as_mask(mask, *a.shape)
        except AttnscopeError:
            added = np.array(to_numpy(mask, "mask"))
            if added.dtype == bool:
                added = np.where(added, 0.0, -np.inf)
            a.given["masked_scores"] = a.scores * a.factor + np.broadcast_to(
                added.reshape((1,) * (4 - added.ndim) + added.shape), a.scores.shape
            )
            a.notes.append(f"{a.name}: its mask differs between sequences, so its masked scores are kept as they are.")

    def _apply_dropout(self, a: Attention, p: float, drawn: list[Array]) -> None:
        if p <= 0:
            return
        size = int(np.prod(a.shape))
        fitting = [d for d in drawn if d.size == size]
        if fitting:
            a.dropout, a.dropout_mask = p, fitting[-1].reshape(a.shape)
        else:
            a.notes.append(f"{a.name}: its dropout mask was not seen, so the stages are those without dropout.")

    def _record_mha(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], result: tuple[Tensor, Any], drawn: list[Array]
    ) -> None:
        names = ("query", "key", "value", "embed_dim_to_check", "num_heads", "in_proj_weight", "in_proj_bias", "bias_k", "bias_v", "add_zero_attn",
                 "dropout_p", "out_proj_weight", "out_proj_bias")  # fmt: skip
        said = dict(zip(names, args)) | kwargs
        if said.get("bias_k") is not None or said.get("add_zero_attn"):
            raise AttnscopeError("it has keys of its own (add_bias_kv or add_zero_attn), which is not recorded yet.")
        batched = said["query"].ndim == 3
        x, source, third = (t if batched else t[:, None] for t in (said["query"], said["key"], said["value"]))
        heads, d = said["num_heads"], x.shape[-1]
        if said.get("use_separate_proj_weight"):
            weights = [said[f"{n}_proj_weight"] for n in "qkv"]
        else:
            weights = list(said["in_proj_weight"].chunk(3))
        biases = [None] * 3 if said.get("in_proj_bias") is None else list(said["in_proj_bias"].chunk(3))
        calls, stages = [], []
        for t, w, b in zip((x, source, third), weights, biases):
            rows = t.transpose(0, 1)  # [sequences, tokens, features]
            out = F.linear(rows, w, b)
            calls.append(LinearCall(rows, w, b, out, False))
            stages.append(copied(out.reshape(*out.shape[:2], heads, -1).transpose(1, 2)))
        a = Attention(stages[0], stages[1], stages[2], name=self._module_name())
        if said.get("attn_mask") is not None or said.get("key_padding_mask") is not None:
            self._apply_mask(a, _mha_mask(said, a))
        training = bool(said.get("training", True))
        self._apply_dropout(a, said["dropout_p"] if training else 0.0, drawn)
        output = result[0] if batched else result[0][:, None]
        a.observed["output"] = copied(output.transpose(0, 1)).astype(np.float64)
        weight, bias = said["out_proj_weight"], said.get("out_proj_bias")
        joined = torch.as_tensor(
            a.context.transpose(0, 2, 1, 3).reshape(*output.transpose(0, 1).shape[:2], -1),
            dtype=weight.dtype,
            device=weight.device,
        )
        find_editable(a, calls, None, TOLERANCE[dtype_name(x)])
        find_output(
            a, LinearCall(joined, weight, bias, output.transpose(0, 1), False), TOLERANCE[dtype_name(x)], np.arange(d)
        )
        expected = F.linear(joined, weight, bias)
        worst = float((expected - output.transpose(0, 1)).abs().max() / output.abs().max().clamp_min(1e-30))
        if not worst <= TOLERANCE[dtype_name(x)]:
            a.not_editable = f"what was recorded leads to another output (by {worst:.1e})"
            a.notes.append(f"{a.name}: {a.not_editable}.")
            a.editable = None
        self.recording.attentions.append(a)

    def record_function(self, function: Callable[..., Any], implementation: str, module: nn.Module, query: Tensor, key: Tensor, value: Tensor,
                        args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # fmt: skip
        """Calls an attention function of transformers and records its arguments."""
        self.inside += 1
        self.dropped = []
        try:
            with _Drawn() as drawn:
                result = function(module, query, key, value, *args, **kwargs)
        finally:
            self.inside -= 1
        with torch._C.DisableTorchFunction():
            self._guard(lambda: self._record_named(implementation, module, query, key, value, args[0] if args else kwargs.get("attention_mask"),
                                                   kwargs, result, drawn.masks))  # fmt: skip
        return result

    def _record_named(self, implementation: str, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Any, kwargs: dict[str, Any],
                      result: Any, drawn: list[Array]) -> None:  # fmt: skip
        if max(query.shape[-2], key.shape[-2]) > self.max_tokens:
            raise AttnscopeError(f"{key.shape[-2]} tokens are more than max_tokens={self.max_tokens}.")
        sinks = kwargs.get("s_aux")
        a = Attention(
            copied(query), copied(key), copied(value), scale=kwargs.get("scaling"), softcap=kwargs.get("softcap") or None,
            sinks=None if sinks is None else copied(sinks).reshape(-1).astype(np.float64), name=self._name_of(module),
        )  # fmt: skip
        n_queries, n_keys = a.shape[2:]
        bias = kwargs.get("position_bias")
        if isinstance(mask, Tensor) and mask.ndim >= 2 and mask.shape[-1] >= n_keys:
            mask = mask[..., :n_keys]
            if bias is not None:
                mask = torch.where(mask, bias, -torch.inf) if mask.dtype == torch.bool else bias + mask
            self._apply_mask(a, mask)
        elif mask is None:
            causal = kwargs.get("is_causal")
            causal = getattr(module, "is_causal", False) if causal is None else causal
            is_causal = bool(causal) and n_queries > 1 and implementation != "eager"
            if bias is not None:
                self._apply_mask(a, bias)
            if is_causal:
                a.mask = Mask(causal=True, align="last" if n_queries == n_keys or implementation != "sdpa" else "first")
                if implementation != "sdpa" and kwargs.get("sliding_window"):
                    a.mask = Mask(causal=True, window=(int(kwargs["sliding_window"]) - 1, 0))
        else:
            a.notes.append(f"{a.name}: the mask of {implementation} is not a tensor and was not recorded.")
        p = float(kwargs.get("dropout") or 0.0)
        masks = [kept for kept, rate in self.dropped if rate == p] or drawn
        self._apply_dropout(a, p, masks)
        context, weights = result[0], result[1] if isinstance(result, tuple) and len(result) > 1 else None
        a.observed["contexts"] = copied(context.transpose(1, 2)).reshape(*a.shape[:3], -1)
        known = None if weights is None or weights.ndim != 4 else copied(weights)[..., :n_keys].astype(np.float64)
        if known is not None and a.dropout_mask is not None:
            known = None  # they are weights after dropout
        self._finish(a, dtype_name(query), known)

    def _name_of(self, module: nn.Module) -> str:
        if module in self.paths:
            return self.paths[module] or type(module).__name__
        index = getattr(module, "layer_idx", None)
        return type(module).__name__ if index is None else f"{type(module).__name__} {index}"

    def _note_dropout(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Tensor) -> None:
        p, training = _dropout_arguments(args, kwargs)
        before = args[0] if args else kwargs["input"]
        if training and p > 0 and before.ndim == 4:
            self.dropped.append((copied((result != 0) | (before == 0)), p))

    # ---------------------------------------------------------------- recomputing, comparing, finding the projections

    def _finish(self, a: Attention, dtype: str, weights: Array | None) -> None:
        tolerance = TOLERANCE.get(dtype, 1e-4)
        if dtype in ("bfloat16", "float16"):
            a.notes.append(f"{a.name}: tensors of {dtype} are widened to float32.")
        if not np.isfinite(a.queries).all() or not np.isfinite(a.keys).all():  # type: ignore[arg-type]
            a.notes.append(f"{a.name}: its queries or keys hold NaN or infinity.")
        self._fill_empty_rows(a, tolerance)
        worst = _worst(a, weights)
        if not worst <= tolerance:
            a.forget_computed()
            if weights is not None:
                a.given, a.bias = {"weights": weights}, None
                words = "so the weights are shown as they are"
            else:
                words = "so take its stages with care"
            a.notes.append(f"{a.name}: what was recorded gives other numbers than the model (by {worst:.1e}), {words}.")
            a.not_editable = "its softmax is not that of its queries, keys and mask"
        else:
            find_editable(a, list(self.linears), self.stack, tolerance)
        a.forget_computed()
        self.recording.attentions.append(a)
        self.awaiting = [_Awaiting(a)]

    @staticmethod
    def _fill_empty_rows(a: Attention, tolerance: float) -> None:
        """Finds the model's weights for queries with no unmasked key, such as padding: NaN, zeros, or uniform."""
        seen = a.observed["contexts"].astype(np.float64)
        if a.given or a.visible.any(-1).all() or np.isnan(seen).any():
            return
        mask, method = a.mask, a.mask_method
        for a.mask, a.mask_method in ((replace(mask, empty_rows="zeros"), method), (mask, "large_negative")):
            if _worst(a) <= tolerance:
                return
        a.mask, a.mask_method = mask, method

    def _see_linear(self, call: LinearCall) -> None:
        if call.out.numel() == 0 or call.weight.is_meta:
            raise AttnscopeError(
                "its parameters are on the meta device, so they have shapes and no numbers; load the weights first."
            )
        self.linears.append(call)
        for waiting in list(self.awaiting):
            waiting.left -= 1
            if find_output(waiting.attention, call, TOLERANCE.get(dtype_name(call.out), 1e-4)) or waiting.left <= 0:
                self.awaiting.remove(waiting)


class _Drawn(TorchDispatchMode):
    """Observes the Bernoulli masks drawn inside a PyTorch function."""

    def __init__(self) -> None:
        super().__init__()
        self.masks: list[Array] = []

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__
        if name in ("bernoulli_", "bernoulli"):
            self.masks.append(copied(result != 0))
        elif name == "native_dropout" and args[2]:
            self.masks.append(copied(result[1] != 0))
        return result


# -------------------------------------------------------------------- helpers


def difference(a: Array, b: Array) -> float:
    """Returns the largest difference relative to the largest number; NaN in the same places is no difference."""
    if a.shape != b.shape:
        return float("inf")
    both = np.isnan(a) & np.isnan(b)
    if both.all():
        return 0.0
    a, b = a[~both], b[~both]
    return float(np.abs(a - b).max() / max(float(np.abs(b).max()), 1e-30))


def _worst(a: Attention, weights: Array | None = None) -> float:
    """Returns the largest relative difference of any head from the model's own context vectors or weights."""
    worst = 0.0
    for head in range(a.n_heads):
        one = a.only(head)
        worst = max(worst, difference(one.context, one.observed["contexts"].astype(np.float64)))
        if weights is not None:
            worst = max(worst, float(np.nanmax(np.abs(one.weights - weights[:, head : head + 1]), initial=0.0)))
        if not worst < np.inf:
            return float("inf")
    return worst


def _heads(context: Array, lead: tuple[int, int], n_queries: int) -> Array:
    return context.reshape(*lead, n_queries, -1)


def _tensors(args: Any, kwargs: dict[str, Any]) -> Iterator[Tensor]:
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


def _parameters(args: Any, kwargs: dict[str, Any]) -> bool:
    return any(_root(t) is not None for t in _tensors(args, kwargs))


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
    """Returns a projection such as einsum("btd,hdk->bthk", x, W), the weight's other axes in the result's order."""
    operands_ = args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else args[1:]
    equation = args[0].replace(" ", "")
    if (
        len(operands_) != 2
        or "->" not in equation
        or "..." in equation
        or _root(operands_[1]) is None
        or _root(operands_[0]) is not None
    ):
        return None
    left, result = equation.split("->")
    x, w = left.split(",")
    summed = [c for c in x if c in w and c not in result]
    own = [c for c in result if c in w]
    if not x.endswith("".join(summed)) or not result.endswith("".join(own)) or len(summed) + len(own) != len(w):
        return None
    weight = operands_[1].permute([w.index(c) for c in summed + own])
    n_in = int(np.prod([operands_[1].shape[w.index(c)] for c in summed]))
    rows = operands_[0].reshape(*operands_[0].shape[: len(x) - len(summed)], n_in)
    return LinearCall(rows, weight.reshape(n_in, -1), None, out.reshape(*rows.shape[:-1], -1), True)


def operands(product: _Op, shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Returns queries […, tokens, d] and keys […, tokens, d] of the product that gives the scores."""
    args = product.args
    if product.name == "einsum":
        return _einsum_operands(args)
    a, b = _factors_of(product.name, args, product.kwargs)
    if product.name == "__rmatmul__":
        a, b = b, a
    if a.ndim < 2 or b.ndim < 2:
        raise AttnscopeError("its scores are of one query alone.")
    queries, keys = a, b.transpose(-1, -2)
    if len(shape) > a.ndim or queries.shape[:-2].numel() != torch.Size(shape[:-2]).numel():
        lead = torch.Size(shape[:-2])
        if queries.shape[:-2].numel() == lead.numel():
            queries, keys = queries.reshape(*lead, *queries.shape[-2:]), keys.reshape(*lead, *keys.shape[-2:])
    return queries, keys


def _factors_of(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    names = (
        ("input", "batch1", "batch2")
        if name == "baddbmm"
        else ("input", {"bmm": "mat2", "mm": "mat2"}.get(name, "other"))
    )
    said = dict(zip(names, args)) | kwargs
    return said.get(names[-2]), said.get(names[-1])


def _einsum_operands(args: tuple[Any, ...]) -> tuple[Tensor, Tensor]:
    tensors = args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else args[1:]
    found = re.fullmatch(r"(\w+),(\w+)->(\w+)", args[0].replace(" ", ""))
    if not found or len(tensors) != 2:
        raise AttnscopeError(f"its scores are einsum({args[0]!r}), which is not recorded.")
    labels, result = [found[1], found[2]], found[3]
    row, column = result[-2], result[-1]
    if row not in labels[0]:
        labels, tensors = labels[::-1], (tensors[1], tensors[0])
    lead = [c for c in result[:-2]]
    summed = [c for c in labels[0] if c in labels[1] and c not in result]
    if len(summed) != 1 or any(c not in labels[0] or c not in labels[1] for c in lead):
        raise AttnscopeError(f"its scores are einsum({args[0]!r}), which is not recorded.")
    return tuple(
        t.permute([names.index(c) for c in [*lead, end, summed[0]]])
        for t, names, end in zip(tensors, labels, (row, column))
    )


def value_product(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], weights: Tensor, out: Tensor
) -> tuple[Tensor, Tensor] | None:
    """Returns values […, keys, d] and context vectors […, queries, d] of a product with weights, else None."""
    if name == "einsum":
        tensors = args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else args[1:]
        found = re.fullmatch(r"(\w+),(\w+)->(\w+)", args[0].replace(" ", ""))
        if not found or len(tensors) != 2:
            return None
        labels = [found[1], found[2]]
        if tensors[0] is not weights:
            labels, tensors = labels[::-1], (tensors[1], tensors[0])
        if tensors[0] is not weights:
            return None
        lead, query, key = labels[0][:-2], labels[0][-2], labels[0][-1]
        own = [c for c in labels[1] if c not in labels[0]]
        if (
            key not in labels[1]
            or len(own) != 1
            or any(c not in labels[1] for c in lead)
            or set(found[3]) != {*lead, query, own[0]}
        ):
            return None
        values = tensors[1].permute([labels[1].index(c) for c in [*lead, key, own[0]]])
        return values, out.permute([found[3].index(c) for c in [*lead, query, own[0]]])
    a, b = _factors_of(name, args, kwargs)
    if a is not weights or not isinstance(b, Tensor) or b.ndim < 2 or _root(b) is not None:
        return None
    return b, out


def _factors(product: _Op, steps: list[_Op]) -> tuple[float, float | None]:
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


def _dropout_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[float, bool]:
    said = dict(zip(("input", "p", "training", "inplace"), args)) | kwargs
    return float(said.get("p", 0.5)), bool(said.get("training", True))


def _mha_mask(said: dict[str, Any], a: Attention) -> Tensor:
    """Returns the masks of multi_head_attention_forward (True masks) as one additive mask."""
    n, heads, n_queries, n_keys = a.shape
    total = torch.zeros(1, 1, n_queries, n_keys, dtype=torch.float64)
    for key in ("attn_mask", "key_padding_mask"):
        mask = said.get(key)
        if mask is None:
            continue
        mask = mask.detach().cpu()
        added = (
            torch.zeros(mask.shape, dtype=torch.float64).masked_fill(mask, -torch.inf)
            if mask.dtype == torch.bool
            else mask.double()
        )
        if key == "key_padding_mask":
            added = added.reshape(-1, 1, 1, n_keys)
        elif added.ndim == 3:
            added = added.reshape(n, heads, n_queries, n_keys)
        total = total + added
    return total
