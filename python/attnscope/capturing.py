"""capture(): records every attention that PyTorch computes, without hooks on the model and without knowing its names.

Attention is recognized in four ways, all watched at once:
- calls of scaled_dot_product_attention and multi_head_attention_forward;
- calls of flex_attention, whose functions are evaluated at every cell;
- transformers' attention functions, which name query, key, value, mask, scaling, softcap, sinks and position bias;
- any other softmax between a product of queries and keys and a product of weights and values.
Every recording is recomputed in NumPy and compared with the context vectors that the model used."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from .arrays import HALVES, Array, copied, dtype_name, stored, to_numpy
from .attention import Attention
from .by_hand import ByHand, Tagged, Unnormalized, dropout_arguments
from .comparing import TOLERANCE, coarsest, difference, fill_empty_rows, halves, say_sample, worst
from .errors import AttnscopeError
from .flexible import FlexCall, cells_of
from .layouts import Layout, find_layout
from .masks import LEAST_MASKED, Mask, as_mask, recognize
from .multihead import record_mha
from .products import PRODUCTS, Op, has_parameters, linear_call, scale_and_softcap, scores_of, tensors_of, value_product
from .projections import LinearCall, Search, find_output, norms_of, shared_heads
from .recording import Recording
from .sharding import unwrapped
from .watching import is_in_compiled_code, watched

if TYPE_CHECKING:
    from .asking import Captured

_REMEMBERED_OPS = 300  # about thirty lie between a projection and its softmax
_REMEMBERED_LINEARS = 24
_AWAITED_LINEARS = 8  # after the context vectors; then no output projection is expected
_FAST_PATHS = (nn.TransformerEncoder, nn.TransformerEncoderLayer, nn.MultiheadAttention)


@dataclass
class _Awaiting:
    """A recorded attention whose output projection has not been seen yet."""

    attention: Attention
    layout: Layout
    left: int = _AWAITED_LINEARS


class Capture(Recording):
    """The context manager that capture() returns, and the recording that it makes."""

    def __init__(
        self, model: Any = None, tokenizer: Any = None, tokens: Any = None, max_tokens: int = 2048, gradients: bool = False
    ) -> None:
        super().__init__()
        self._tokenizer = tokenizer
        model = unwrapped(model)
        if model is not None and not isinstance(model, nn.Module):
            raise AttnscopeError(f"capture() takes a module of PyTorch, got {type(model).__name__}.")
        self._model, self._tokens, self._max_tokens, self._gradients = model, tokens, max_tokens, gradients
        self._recorder: _Recorder | None = None
        self._ids: Tensor | None = None  # of the text

    def _questions(self, sequence: int) -> Captured:
        from .asking import Captured

        if self._model is None or self._ids is None:
            what = "token IDs" if self._model is not None else "model"
            raise AttnscopeError(f"This capture knows no {what}; capture(model, tokenizer) does, and attnscope.attach(model, tokenizer) asks about any text.")
        return Captured(self._model, self._tokenizer, self._ids[sequence])

    def __enter__(self) -> Capture:
        if self._recorder is not None:
            raise AttnscopeError("This capture is already running; make a new one with attnscope.capture().")
        self._recorder = _Recorder(self, self._model, self._max_tokens, self._gradients, self._tokenizer)
        self._recorder.start()
        return self

    def __exit__(self, *error: Any) -> None:
        assert self._recorder is not None
        self._recorder.stop(failed=error[0] is not None)
        self._ids, self._recorder = self._recorder.text(), None
        for i, a in enumerate(self.attentions):
            a.layer = i
            if self._tokens is not None:
                if len(self._tokens) == a.n_queries:
                    a.tokens = [str(t) for t in self._tokens]
                if len(self._tokens) == a.n_keys and a.n_keys != a.n_queries:
                    a.key_tokens = [str(t) for t in self._tokens]
                if len(self._tokens) not in (a.n_queries, a.n_keys):
                    self.problems.append(f"{a.name}: tokens= has {len(self._tokens)} texts for {a.n_queries} rows, so they are not named.")

    def gathered(self) -> Recording:
        """Returns all heads of a tensor-parallel model on every rank; every rank must call it."""
        from .gathering import gathered

        return gathered(self)

    def __reduce__(self) -> Any:  # a copy has what was recorded, without the model
        return Recording, (self.attentions, self.problems)


class _Recorder(ByHand, TorchFunctionMode):
    """Observes each PyTorch function that is called in its thread, and its result."""

    def __init__(
        self, recording: Recording, model: nn.Module | None, max_tokens: int, gradients: bool = False, tokenizer: Any = None
    ) -> None:
        super().__init__()
        self.recording, self.max_tokens, self.wants_gradients, self.tokenizer = recording, max_tokens, gradients, tokenizer
        self.embeddings = _input_embeddings(model)
        self.ids: list[Tensor] = []  # token IDs that were looked up
        self.paths = {} if model is None else {m: name.removeprefix("_orig_mod.") for name, m in model.named_modules()}
        self.thread = threading.get_ident()
        self.stack: list[nn.Module] = []
        self.marks: list[int] = []  # how many projections were seen before each module of the stack
        self.n_linears = 0
        self.states: dict[int, tuple[Any, ...]] = {}  # of parameters, by id
        self.read_mask: tuple[Any, ...] = ()  # the last mask that was read: layers share it
        self.ops: OrderedDict[int, Op] = OrderedDict()
        self.made_by: dict[int, int] = {}  # id of a tensor → number of the operation that made it
        self.count = 0
        self.linears: deque[LinearCall] = deque(maxlen=_REMEMBERED_LINEARS)
        self.weights_of: OrderedDict[int, Tagged] = OrderedDict()
        self.unnormalized: dict[int, Unnormalized] = {}
        self.told: set[int] = set()  # softmaxes that were recorded, or whose problem was named
        self.awaiting: list[_Awaiting] = []
        self.summed: tuple[nn.Module, Attention] | None = None  # an output projection whose ranks' results are not added yet
        self.ungraded: list[tuple[Tensor, str, Attention, Layout]] = []  # without a hook for its gradient so far
        self.whole: Tensor | None = None  # weights before an in-place dropout
        self.inside = 0  # depth inside a recognized attention function
        self.dropped: list[tuple[Array, float]] = []
        self.undo: list[Callable[[], None]] = []
        self.is_observing = False
        self.fast: nn.Module | None = None  # what runs unobserved, for PyTorch's fast path
        self.is_repeating = False
        self.runs_compiled = False  # said once
        self.called_elsewhere = False  # a module ran in another thread

    # ---------------------------------------------------------------- beginning and end

    def start(self) -> None:
        # Global module hooks: the caller's modules get no hooks of their own.
        pre = nn.modules.module.register_module_forward_pre_hook(self._enter)
        post = nn.modules.module.register_module_forward_hook(self._leave, with_kwargs=True, always_call=True)
        self.undo += [pre.remove, post.remove]
        try:
            watched.add(self)
            self.undo.append(lambda: watched.remove(self))
            self._observe(True)
        except BaseException:
            self._end()
            raise

    def stop(self, failed: bool) -> None:
        self._end()
        self._hook_gradients()
        self._name_unused()
        if not failed and not self.recording.attentions and not self.recording.problems:
            if self.called_elsewhere:
                self._problem("Modules were called in another thread; only the thread that started the capture is recorded.")
            elif self.count:
                self._problem("No softmax between two products was computed, so there is no attention to record.")
        self.read_mask = ()
        for remembered in (self.ops, self.made_by, self.linears, self.weights_of, self.unnormalized, self.awaiting, self.ungraded, self.states):
            remembered.clear()

    def _end(self) -> None:
        try:
            self._observe(False)
        finally:
            for undo in reversed(self.undo):
                undo()
            self.undo.clear()

    def _observe(self, on: bool) -> None:
        if on == self.is_observing:
            return
        if threading.get_ident() != self.thread:
            raise AttnscopeError("A capture ends in the thread that started it.")
        self.is_observing = on
        if on:
            self.__enter__()
            return
        later = []  # modes that are still running, such as a capture that started after this one and outlives it
        while (mode := torch.overrides._pop_mode()) is not self:
            later.append(mode)
        for mode in reversed(later):
            torch.overrides._push_mode(mode)

    # ---------------------------------------------------------------- modules

    def _enter(self, module: nn.Module, _: Any) -> None:
        if threading.get_ident() != self.thread:
            self.called_elsewhere = True
            return
        self.stack.append(module)
        self.marks.append(self.n_linears)
        self._guard(lambda: self._see_module(module))

    def _see_module(self, module: nn.Module) -> None:
        name = self.paths.get(module) or type(module).__name__
        if isinstance(module, torch.jit.ScriptModule):
            self._problem(f"{name} is compiled by torch.jit, which cannot be observed.")
        self._say_compiled(name)
        if self.is_observing and not self.is_repeating and _may_be_fast(module):
            only_own = all(type(m).__module__.startswith("torch.") for m in module.modules())  # they can run twice
            if only_own and torch.overrides._get_current_function_mode() is self:  # the fast path is only taken unobserved
                self._observe(False)
                self.fast = module
            else:
                self._problem(f"{name} was recorded without PyTorch's fast path: its last bits, and rows of padding, may differ.")

    def _say_compiled(self, name: str) -> None:
        if not self.runs_compiled and is_in_compiled_code():
            self.runs_compiled = True
            self._problem(f"{name} is compiled and ran eagerly while it was recorded: its last bits may differ from the compiled ones.")

    def _leave(self, module: nn.Module, args: Any, kwargs: dict[str, Any], result: Any) -> None:
        if threading.get_ident() != self.thread:
            return
        if self.fast is module:
            self.fast = None
            self._observe(True)
            if result is not None:
                self._guard(lambda: self._repeat(module, args, kwargs, result))
        if self.summed is not None and self.summed[0] is module and isinstance(result, Tensor):
            (_, a), self.summed = self.summed, None
            a.observed["output"] = copied(result).astype(np.float64).reshape(a.n_sequences, a.n_queries, -1)
            if isinstance(a._search, Search):
                a._search.output = None
        if self.stack and self.stack[-1] is module:
            self.stack.pop()
            self.marks.pop()

    def _repeat(self, module: nn.Module, args: Any, kwargs: dict[str, Any], result: Any) -> None:
        """Computes a module again to record it, and says by how much its numbers then differ."""
        first, self.is_repeating = len(self.recording.attentions), True
        try:
            with torch.no_grad(), torch.random.fork_rng(devices=[]):
                again = module.forward(*args, **kwargs)
        finally:
            self.is_repeating = False
        there, here = (t[0] if isinstance(t, tuple) else t for t in (result, again))
        if torch.equal(there, here):
            return
        empty = (there == 0).all(-1) & (here != 0).any(-1)  # rows of padding
        worst = float((there - here)[~empty].abs().max()) if (~empty).any() else 0.0
        words = []
        if not worst <= TOLERANCE[dtype_name(there)] * max(1.0, float(there.abs().max())):
            words.append(f"recorded without PyTorch's fast path, its result differs by {worst:.1e}")
        if empty.any():
            words.append("PyTorch's fast path, which computed it, sets the rows of padding to zero")
        for a in self.recording.attentions[first:]:
            a.notes += [f"{a.name}: {w}." for w in words]

    def wrapped(self, function: Callable[..., Any], implementation: str) -> Callable[..., Any]:
        def recorded(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Any:
            return self.record_function(function, implementation, module, query, key, value, args, kwargs)

        return recorded

    # ---------------------------------------------------------------- observed calls

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if torch._C._current_graph_task_id() != -1 or torch._C._is_tracing():  # a checkpoint computed again, or a trace
            return function(*args, **kwargs)
        name = getattr(function, "__name__", "")
        if self.ungraded:
            with torch._C.DisableTorchFunction():
                self._hook_gradients()
        if self.inside:
            result = function(*args, **kwargs)
            if name == "dropout":
                self._guard(lambda: self._note_dropout(args, kwargs, result))
            return result
        if record := self._record_of(function):
            with _Drawn() if _has_dropout(function, args, kwargs) else nullcontext() as drawn:
                result = function(*args, **kwargs)
            self._guard(lambda: record(args, kwargs, result, drawn.masks if drawn else []))
        else:
            self._guard(lambda: self._before_dropout_in_place(name, args, kwargs))
            result = function(*args, **kwargs)
        if name in ("__get__", "__set__") and not isinstance(result, Tensor):
            return result
        outputs = [t for t in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(t, Tensor)]
        if outputs:
            self._guard(lambda: self._follow(function, name, args, kwargs, outputs))
        return result

    def _record_of(self, function: Any) -> Callable[..., None] | None:
        if function is F.multi_head_attention_forward:
            return partial(record_mha, self)
        if function is F.scaled_dot_product_attention:
            return self._record_sdpa
        flex = sys.modules.get("torch._higher_order_ops.flex_attention")
        return self._record_flex if flex is not None and function is flex.flex_attention else None

    def _before_dropout_in_place(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keeps a copy of weights that dropout is about to change in place."""
        self.whole = None
        if name == "dropout" and args and id(args[0]) in self.weights_of:
            if kwargs.get("inplace", args[3] if len(args) > 3 else False):
                self.whole = args[0].detach().clone()

    def _guard(self, record: Callable[[], None]) -> None:
        """Runs `record`; a failure becomes a problem and never stops the caller's model."""
        try:
            record()
        except AttnscopeError as error:
            self._problem(f"{self._module_name()}: {error}")
        except Exception as error:
            self._problem(
                f"{self._module_name()}: an attention could not be recorded ({type(error).__name__}: {error})."
            )

    def _problem(self, text: str) -> None:
        if text not in self.recording.problems:
            self.recording.problems.append(text)

    def _follow(
        self, function: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], outputs: list[Tensor]
    ) -> None:
        tensors = list(tensors_of(args, kwargs))
        parents = [self.made_by[id(t)] for t in tensors if id(t) in self.made_by]
        op = Op(name, args, kwargs, outputs, parents)
        self._remember(op)
        out, before = outputs[0], len(self.recording.attentions)
        if isinstance(function, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)) and "attention" in name:
            raise AttnscopeError(f"{function} was called directly, which is not recorded; F.scaled_dot_product_attention is.")
        if function is F.embedding:
            self._see_ids(*(dict(zip(("input", "weight"), args)) | kwargs).values())
        if call := linear_call(function, name, args, kwargs, out):
            self._see_linear(call.in_this_process())
        if not call or any(id(t) in self.weights_of for t in tensors):
            self._see_by_hand(name, args, kwargs, tensors, out)
        if name in PRODUCTS and not has_parameters(args, kwargs):
            if len(self.recording.attentions) > before:
                self._tell_above(op)
            elif id(out) not in self.weights_of:
                self._name_missed(op)

    def _see_ids(self, ids: Tensor, weight: Tensor, *_: Any) -> None:
        if self.embeddings is None:
            self.embeddings = weight  # the first that is used
        if weight is self.embeddings and ids.ndim in (1, 2) and not ids.is_floating_point():
            self.ids.append(ids.detach().reshape(-1, ids.shape[-1]).cpu())

    def _name_tokens(self, a: Attention) -> None:
        """Names rows by the token IDs that were looked up before: of this pass, or, in a cache, of those before it."""
        if self.tokenizer is None:
            return
        n, _, n_queries, n_keys = a.shape
        a.tokens = self._texts(self._ids_of(n, n_queries))
        if n_keys != n_queries:
            a.key_tokens = self._texts(self._ids_of(n, n_keys))

    def _ids_of(self, n: int, length: int) -> Tensor | None:
        """Returns the token IDs of n rows that were looked up, at once or one part after the other."""
        alike = [ids for ids in self.ids if len(ids) == n]
        whole = torch.cat(alike, 1) if alike else torch.empty(n, 0)
        return next((ids for ids in reversed(alike) if ids.shape[1] == length), whole if whole.shape[1] == length else None)

    def text(self) -> Tensor | None:
        """Returns the token IDs that the last attention read, [sequences, tokens]."""
        a = next(reversed(self.recording.attentions), None)
        return None if a is None else self._ids_of(a.n_sequences, a.n_keys)

    def _texts(self, ids: Tensor | None) -> list[Any] | None:
        from .modules import token_texts

        texts = None if ids is None else [token_texts(self.tokenizer, row) for row in ids.tolist()]
        return texts[0] if texts and len(texts) == 1 else texts

    def _remember(self, op: Op) -> None:
        self.count += 1
        self.ops[self.count] = op
        for t in op.outputs:
            self.made_by[id(t)] = self.count
        if len(self.ops) > _REMEMBERED_OPS:
            number, old = self.ops.popitem(last=False)
            for t in old.outputs:
                if self.made_by.get(id(t)) == number:
                    del self.made_by[id(t)]

    def _require_recordable(self, tokens: int, *tensors: Tensor) -> None:
        if tokens > self.max_tokens:
            raise AttnscopeError(f"{tokens} tokens are more than max_tokens={self.max_tokens}.")
        if any(hasattr(t, "full_tensor") for t in tensors):  # reading a DTensor would wait for the other processes
            raise AttnscopeError("its stages are DTensors, whose parts are in several processes, so they are not recorded.")

    def _module_name(self) -> str:
        for module in reversed(self.stack):
            if module in self.paths and any(True for _ in module.children()):
                return self.paths[module] or type(module).__name__
        named = [m for m in self.stack if any(True for _ in m.children())] or self.stack
        return type(named[-1]).__name__ if named else "attention"

    # ---------------------------------------------------------------- attention functions

    def _record_sdpa(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Tensor, drawn: list[Array]) -> None:
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
        said = dict(zip(names, args)) | kwargs
        query, key, value = said["query"], said["key"], said["value"]
        self._require_recordable(max(query.shape[-2], key.shape[-2]), query, key, value)
        layout, guess = find_layout(tuple(query.shape[:-2]), value, list(self.linears))
        q, k, v = (layout.stage(t) for t in (query, key, value))
        a = Attention(q, k, v, scale=said.get("scale"), name=self._module_name())
        if guess:
            a.notes.append(f"{a.name}: {guess}.")
        if said.get("is_causal"):
            a.mask = Mask(causal=True, align="last" if q.shape[2] == k.shape[2] else "first")
        elif (mask := said.get("attn_mask")) is not None:
            if hasattr(mask, "_materialize"):  # torch.nn.attention.bias
                mask = mask._materialize(query.device)
            if mask.ndim > 2 and (query.ndim == 3 or layout.heads_first):
                mask = layout.stage(mask.expand(*query.shape[:-2], *mask.shape[-2:]))
            self._apply_mask(a, mask)
        self._apply_dropout(a, float(said.get("dropout_p") or 0.0), drawn)
        a.observed["contexts"] = layout.stage(result)
        a.halves = halves(query, key, value, result)
        self._finish(a, coarsest(dtype_name(query), dtype_name(result)), None, layout)
        self._await_gradients(a, layout, queries=query, keys=key, values=value, contexts=result)

    def _record_flex(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, drawn: list[Array]) -> None:
        call = FlexCall(*args[:6])
        self._require_recordable(max(call.query.shape[-2], call.key.shape[-2]), call.query, call.key, call.value)
        layout = Layout(*call.query.shape[:2])
        a = Attention(
            copied(call.query), copied(call.key), copied(call.value), scale=call.scale, name=self._module_name()
        )
        seen = call.visible()
        self._apply_mask(a, seen)
        if (changed := call.changed_scores()) is not None:
            self._apply_changed_scores(a, copied(changed).astype(np.float64), copied(seen))
        a.observed["contexts"] = copied(result[0])
        a.halves = halves(call.query, call.key, call.value, result[0])
        self._finish(a, dtype_name(call.query), None, layout)

    @staticmethod
    def _apply_changed_scores(a: Attention, scores: Array, seen: Array) -> None:
        """Keeps what a score_mod adds as a bias, or, if it depends on the sequence or does more, the masked scores."""
        added = np.where(seen & np.isfinite(scores), scores - a.scores * a.factor, 0)
        close = 1e-4 * max(1.0, float(np.abs(added).max()))
        if np.isfinite(scores[seen]).all() and "masked_scores" not in a.given and np.abs(added - added[:1]).max() <= close:
            total = added[0] if a.bias is None else added[0] + a.bias
            a.bias = total[:1] if (np.abs(total - total[:1]) <= close).all() else total
        else:
            a.given["masked_scores"] = np.where(seen, scores, -np.inf)

    def _apply_mask(self, a: Attention, mask: Any) -> None:
        try:
            if not isinstance(mask, Tensor):
                a.mask, a.bias = as_mask(mask, *a.shape)
                return
            of = (a.shape, mask.shape, mask.dtype, mask.device)
            if self.read_mask[:1] != (of,) or not torch.equal(self.read_mask[1], mask):
                self.read_mask = (of, mask.detach().clone(), *as_mask(mask, *a.shape))
            a.mask, a.bias = self.read_mask[2:]
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

    def record_function(self, function: Callable[..., Any], implementation: str, module: nn.Module, query: Tensor, key: Tensor, value: Tensor,
                        args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # fmt: skip
        """Calls an attention function of transformers and records its arguments."""
        if torch._C._current_graph_task_id() != -1 or not self.is_observing:
            return function(module, query, key, value, *args, **kwargs)
        self.inside += 1
        self.dropped = []
        try:
            with _Drawn() if kwargs.get("dropout") else nullcontext() as drawn:
                result = function(module, query, key, value, *args, **kwargs)
        finally:
            self.inside -= 1
        with torch._C.DisableTorchFunction():
            mask = args[0] if args else kwargs.get("attention_mask")
            self._guard(lambda: self._record_named(implementation, module, query, key, value, mask, kwargs, result, drawn.masks if drawn else []))
        return result

    def _record_named(self, implementation: str, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Any, kwargs: dict[str, Any],
                      result: Any, drawn: list[Array]) -> None:  # fmt: skip
        self._require_recordable(max(query.shape[-2], key.shape[-2]), query, key, value)
        sinks = kwargs.get("s_aux")
        a = Attention(
            copied(query), copied(key), copied(value), scale=kwargs.get("scaling"), softcap=kwargs.get("softcap") or None,
            sinks=None if sinks is None else copied(sinks).reshape(-1).astype(np.float64), name=self._name_of(module),
        )  # fmt: skip
        n_queries, n_keys = a.shape[2:]
        bias = kwargs.get("position_bias")
        if hasattr(mask, "mask_mod"):  # a BlockMask of flex_attention
            mask = cells_of(mask.mask_mod, (*query.shape[:3], key.shape[2]), query.device)
        if implementation == "flex_attention":
            self._problem("flex_attention is compiled and ran eagerly while it was recorded: its last bits may differ.")
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
        a.halves = halves(query, key, value, context)
        known = None if weights is None or weights.ndim != 4 else to_numpy(weights)[..., :n_keys]
        if known is not None and a.dropout_mask is not None:
            known = None  # they are weights after dropout
        self._finish(a, coarsest(dtype_name(query), dtype_name(context)), known, Layout(*a.shape[:2]))

    def _name_of(self, module: nn.Module) -> str:
        if module in self.paths:
            return self.paths[module] or type(module).__name__
        index = getattr(module, "layer_idx", None)
        return type(module).__name__ if index is None else f"{type(module).__name__} {index}"

    def _note_dropout(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Tensor) -> None:
        p, training = dropout_arguments(args, kwargs)
        before = args[0] if args else kwargs["input"]
        if training and p > 0 and before.ndim == 4:
            self.dropped.append((copied((result != 0) | (before == 0)), p))

    # ---------------------------------------------------------------- recomputing, comparing, finding the projections

    def _finish(self, a: Attention, dtype: str, weights: Array | None, layout: Layout) -> None:
        """Compares an attention with the model's numbers and keeps what its projections are looked for in later."""
        tolerance = TOLERANCE.get(dtype, 1e-4)
        self._say_compiled(a.name)
        self._say_rank(a)
        if dtype in HALVES:
            a.notes.append(f"{a.name}: tensors of {dtype} are widened to float32.")
        if any(s is not None and not np.isfinite(s).all() for s in (a.queries, a.keys)):
            a.notes.append(f"{a.name}: its queries or keys hold NaN or infinity.")
        fill_empty_rows(a, dtype)
        off = worst(a, dtype, weights)
        if not off <= tolerance:
            a.forget_computed()
            if weights is not None:
                a.given, a.bias = {"weights": weights.copy()}, None
                if dtype in HALVES and np.array_equal(np.asarray(stored(weights, dtype), weights.dtype), weights):
                    a.halves["weights"] = dtype
                words = "so the weights are shown as they are"
            else:
                words = "so take its stages with care"
            by = f"by {off:.1e}" if off < np.inf else "NaN or infinity where the model has none"
            a.notes.append(f"{a.name}: what was recorded gives other numbers than the model ({by}), {words}.")
            a.not_editable = "its softmax is not that of its queries, keys and mask"
        elif a.given:
            a.not_editable = "its scores are not those of its queries and keys"
        elif not self.linears:
            a.not_editable = "no projection was seen before it"
        else:
            shared_heads(a)
            calls = [c.remembered(self.states) for c in self._near(a)]
            a._search = Search(layout.calls(calls), norms_of(self.stack), tolerance)
        say_sample(a)
        a.forget_computed()
        self._name_tokens(a)
        self.recording.attentions.append(a)
        self.awaiting = [_Awaiting(a, layout)]

    def _near(self, a: Attention) -> list[LinearCall]:
        """Returns the projections of the innermost module whose results may hold queries, keys and values, and do hold a value;
        or all that are remembered."""
        assert a.queries is not None and a.keys is not None and a.values is not None
        value = a.values[0, 0, 0]
        for mark in reversed(self.marks):
            calls = list(self.linears)[len(self.linears) - min(self.n_linears - mark, len(self.linears)) :]
            if all(any(c.out.numel() == s[:, 0, :, 0].size * c.out.shape[-1] for c in calls) for s in (a.queries, a.keys, a.values)):
                if any(np.isin(value, to_numpy(c.out.reshape(-1, c.out.shape[-1])[0])).all() for c in calls):
                    return calls
        return list(self.linears)

    def _await_gradients(self, a: Attention, layout: Layout, **tensors: Tensor) -> None:
        """Keeps the gradients that a backward will give these tensors, if they are wanted."""
        if self.wants_gradients:
            self.ungraded += [(_with_gradient(t), f"d_{name}", a, layout) for name, t in tensors.items()]

    def _hook_gradients(self) -> None:
        """Adds hooks where a gradient is required; the result of an autograd.Function requires one only after its forward."""
        for t, name, a, layout in self.ungraded:
            if t.requires_grad:
                t.register_hook(partial(_keep_gradient, a, name, layout))
        self.ungraded = [graded for graded in self.ungraded if not graded[0].requires_grad]

    def _say_rank(self, a: Attention) -> None:
        """Says which heads of the model these are, if other ranks of a tensor-parallel model have the others."""
        rank, ranks = self.linears[-1].part if self.linears else (0, 1)
        config = next((c for m in reversed(self.stack) if (c := getattr(m, "config", None)) is not None), None)
        total = getattr(config, "num_attention_heads", None)
        if ranks == 1 and isinstance(total, int) and torch.distributed.is_available() and torch.distributed.is_initialized():
            ranks = total // a.n_heads if total % a.n_heads == 0 else 1
            rank = torch.distributed.get_rank() % max(ranks, 1)  # ranks of tensor parallelism are neighbors
        if ranks > 1:
            a.part = (rank, ranks)
            self._problem(
                f"{a.name}: these are heads {a.heads[0]} to {a.heads[-1]} of the model's {ranks * a.n_heads}, as {ranks} ranks share them; .gathered() joins them."
            )

    def _see_linear(self, call: LinearCall | None) -> None:
        if call is None:
            return
        if call.out.numel() == 0 or call.weight.is_meta:
            raise AttnscopeError(
                "its parameters are on the meta device, so they have shapes and no numbers; load the weights first."
            )
        self.linears.append(call)
        self.n_linears += 1
        for waiting in list(self.awaiting):
            waiting.left -= 1
            (same,) = waiting.layout.calls([call])
            if find_output(waiting.attention, same) or waiting.left <= 0:
                self.awaiting.remove(waiting)
                if _is_summand(call, self.stack) and waiting.attention.observed.pop("output", None) is not None:
                    self.summed = (self.stack[-1], waiting.attention)  # the ranks' results are added when the module returns
                if isinstance(search := waiting.attention._search, Search) and search.output is not None:
                    search.output = (same.remembered(self.states), *search.output[1:])


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


def _with_gradient(t: Tensor) -> Tensor:
    """Returns the tensor that a backward gives the gradient: not a view of all of it, made while the attention was read."""
    base = t._base
    return base if base is not None and (base.shape, base.stride()) == (t.shape, t.stride()) else t


def _keep_gradient(a: Attention, name: str, layout: Layout, gradient: Tensor) -> None:
    with torch._C.DisableTorchFunction():
        a.recorded_gradients[name] = layout.stage(gradient.detach())


def _is_summand(call: LinearCall, stack: list[nn.Module]) -> bool:
    """Tells whether a projection was computed with some of its module's input features: other ranks have the others."""
    return bool(stack) and isinstance(stack[-1], nn.Linear) and not call.is_in_out and call.weight.shape[1] < stack[-1].in_features


def _input_embeddings(model: nn.Module | None) -> Tensor | None:
    """Returns the table of token embeddings, if the model names it."""
    get: Any = getattr(model, "get_input_embeddings", None)
    try:
        return getattr(get() if get else None, "weight", None)
    except (NotImplementedError, AttributeError):
        return None


def _has_dropout(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    place = {F.scaled_dot_product_attention: 4, F.multi_head_attention_forward: 10}.get(function)
    return place is not None and bool(args[place] if len(args) > place else kwargs.get("dropout_p"))


def _may_be_fast(module: nn.Module) -> bool:
    """Tells whether PyTorch may compute a module by its fast path, which only forward hooks, training and gradients prevent."""
    if not isinstance(module, _FAST_PATHS) or module.training:
        return False
    if torch.is_grad_enabled() and any(p.requires_grad for p in module.parameters()):
        return False
    return not any(m._forward_hooks or m._forward_pre_hooks for m in module.modules())
