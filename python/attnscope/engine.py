"""Passes of texts through a PyTorch model, with ablated heads and outputs that were computed elsewhere.

Blocks before the first change are not recomputed: a stub supplies their residual stream, and the model's own forward
does the rest. Skipping all blocks gives the prediction and the logit lens. Attention itself is computed by the user's
implementation (sdpa), or by the formula where that is unavailable; maps are computed from queries and keys on demand.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.utils import logging

from .errors import AttnscopeError
from .shadowing import Shadow, Site, Skipped, Survey
from .sharding import Ranks, bare, is_sharded, local_of, offload_of, unwrapped, whole_of

NAME = "attnscope"
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-9, torch.float16: 1e-2, torch.bfloat16: 5e-2}
ALL_LOGITS = 1 << 22  # numbers
SAMPLED = 1 << 20  # numbers of all parameters, and 256 of each
Progress = Callable[[int, int], None]


class Cancelled(Exception):
    """The pass was cancelled."""


class Done(Exception):
    """Ends a pass early, when the rest is not needed."""


# transformers registers attention by name for the whole process; the thread tells which pass a call belongs to.
_running = threading.local()


def _attention(module: nn.Module, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor | None]:
    return _running.attend(module, *args, **kwargs)


def _mask(*args: Any, **kwargs: Any) -> Tensor | None:
    return ALL_MASK_ATTENTION_FUNCTIONS[_running.masks](*args, **kwargs)


AttentionInterface.register(NAME, _attention)
AttentionMaskInterface.register(NAME, _mask)


@dataclass(frozen=True)
class Edits:
    """Changes to a layer."""

    heads_off: frozenset[int] = frozenset()
    output: Tensor | None = None  # T × d_model: attention of the layer, computed elsewhere

    def same(self, other: Edits) -> bool:
        a, b = self.output, other.output
        outputs = a is b or (a is not None and b is not None and torch.equal(a, b))
        return outputs and self.heads_off == other.heads_off


NO_EDITS = Edits()


@dataclass
class LayerPass:
    """Record of one attention. H heads, G KV heads, T tokens."""

    number: int  # of this computation; passes that reuse it share the number
    site: Site
    inputs: Tensor  # T × d_model, after the norm
    rotary: tuple[Tensor, Tensor] | None  # cosines and sines as the model made them
    queries: Tensor  # H × T × d_head, with rotary embedding and norm
    keys: Tensor  # G × T × d_head
    values: Tensor  # G × T × d_value
    mask: Tensor | None  # T × T or H × T × T, added
    scale: float
    softcap: float | None
    sinks: Tensor | None  # H
    native_softmax: bool
    window: int | None = None  # the model's sliding window, even if the text is shorter
    contexts: Tensor = field(default_factory=lambda: torch.empty(0))  # H × T × d_value
    output: Tensor | None = None  # T × d_model, after the output projection; None where that was not found

    def weights(self) -> Tensor:
        """Attention weights, H × T × T, in the model's own dtype."""
        s = (self.queries @ repeated(self.keys, self.queries).transpose(-1, -2)) * self.scale
        if self.softcap:
            s = torch.tanh(s / self.softcap) * self.softcap
        if self.mask is not None:
            s = s + self.mask
        if self.sinks is not None:
            s = torch.cat([s, self.sinks.to(s.dtype).view(-1, 1, 1).expand(-1, s.shape[1], 1)], -1)
            s = s - s.max(-1, keepdim=True).values  # as gpt_oss does, seen in bf16
        w = torch.softmax(s, -1, dtype=None if self.native_softmax else torch.float32)
        return (w if self.sinks is None else w[..., :-1]).to(self.queries.dtype)

    def added(self, row: int) -> Tensor | None:
        """Returns what each head adds to the residual stream at a row, H × d_model; None where unknown."""
        if self.site.problem:
            return None
        w = self.site.matrices["output"].weight().view(self.site.n_heads, self.site.d_value, -1)
        return torch.einsum("hv,hvm->hm", self.contexts[:, row].float(), w.float())


@dataclass
class Pass:
    """A text that was read, up to a layer's attention or to the end."""

    ids: Tensor  # T
    edits: dict[int, Edits]
    n_layers: int  # that were read
    state: int  # of the model's parameters
    layers: list[LayerPass]  # [layer], shared with earlier passes where nothing changed
    residuals: list[Tensor]  # [block] its input, then the last block's output; 1 × T × d_model
    inputs: list[Tensor]  # [layer], one more than layers where the pass ends before a layer
    computed_from: int = 0  # block

    def edits_of(self, layer: int) -> Edits:
        return self.edits.get(layer, NO_EDITS)


def repeated(x: Tensor, like: Tensor) -> Tensor:
    return x if x.shape[0] == like.shape[0] else x.repeat_interleave(like.shape[0] // x.shape[0], 0)


class Engine:
    """A model that reads texts. Not thread-safe, but the user may use the model meanwhile."""

    epoch: int | None = None  # number of changes of the parameters, where ranks must agree on it

    def __init__(self, model: Any) -> None:
        model = unwrapped(model)
        if not hasattr(model, "config") or not hasattr(model, "set_attn_implementation"):
            raise AttnscopeError(f"attach() needs a model of transformers 4.48 or later, not a {type(model).__name__}.")
        if all(p.is_meta for p in model.parameters()) and not any(map(offload_of, model.modules())):
            raise AttnscopeError("The model's parameters are on the meta device: it has no numbers yet.")
        self.original, self.shadow, self.ranks = model, Shadow(model), Ranks(model)
        self.model: Any = self.shadow.model
        self.native_softmax = False
        self._numbers, self._sample = itertools.count(), 0
        self._depth: int | None = None  # block calls so far; None outside of a pass
        self._inputs, self._rotary = torch.empty(0), None  # of the attention that is about to be called
        self._take_survey()
        self._check_itself()

    # ---- layout of the model -----------------------------------------------------------------------------------------

    @torch.no_grad()
    def _take_survey(self) -> None:
        name = type(self.original).__name__
        if getattr(self.model.config, "is_encoder_decoder", False):
            raise AttnscopeError(f"{name} has an encoder and a decoder, which cannot be attached.")
        self.own_implementation = self.model.config._attn_implementation
        level = logging.get_verbosity()
        logging.set_verbosity_error()
        try:
            self.model.set_attn_implementation(NAME)
        except ValueError:  # raised by T5 and others without such an interface
            raise AttnscopeError(_own_code(name)) from None
        finally:
            logging.set_verbosity(level)
        survey = Survey(self.model, self.ranks)
        self._survey_pass(survey)
        if not survey.sites:
            compiled = [n or name for n, m in self.model.named_modules() if hasattr(m.__dict__.get("forward"), "_torchdynamo_orig_callable")]
            if compiled:
                raise AttnscopeError(f"The forward of {compiled[0]} is a compiled function; attach the model before it is compiled, or torch.compile(model).")
            raise AttnscopeError(_own_code(name))
        self._find_blocks(survey)
        handles = survey.hook()
        calls: list[int] = []
        outputs: list[Any] = []
        for number, block in enumerate(self.blocks):
            handles.append(block.register_forward_pre_hook(lambda *_, n=number: calls.append(n)))
            handles.append(block.register_forward_hook(lambda m, a, o: outputs.append(o)))
        attend = survey.attend

        def attend_in_block(*args: Any, **kwargs: Any) -> Any:
            result = attend(*args, **kwargs)
            survey.sites[-1].call = len(calls) - 1
            return result

        survey.attend = attend_in_block  # type: ignore[method-assign]
        try:
            self._survey_pass(survey)
        finally:
            for handle in handles:
                handle.remove()
        self.sites, self.n_calls = survey.sites, len(calls)
        self.can_resume = calls == list(range(len(self.blocks)))
        self.returns_tuple = isinstance(outputs[-1], tuple)
        for site in self.sites:
            if set(site.matrices) != {"query", "key", "value", "output"} and not site.problem:
                site.problem = "its output projection was not found"
        for block in self.blocks:
            block.register_forward_pre_hook(self._enter_block, with_kwargs=True)
            block.register_forward_hook(self._leave_block)
        for module in {site.module for site in self.sites}:
            module.register_forward_pre_hook(self._enter_attention, with_kwargs=True)
        for module in {site.matrices["output"].module for site in self.sites if "output" in site.matrices}:
            module.register_forward_hook(self._leave_projection)

    def _survey_pass(self, survey: Survey) -> None:
        _running.attend, _running.masks = lambda *a, **k: survey.attend(*a, **k), "eager"
        padding = getattr(self.model.config, "pad_token_id", None)
        token = next(i for i in range(3) if i != padding)
        self._call(torch.tensor([[token]], device=self.device))

    def _find_blocks(self, survey: Survey) -> None:
        lists = {n: m for n, m in self.model.named_modules() if isinstance(m, nn.ModuleList)}
        found = {min((n for n in lists if site.path.startswith(n + ".")), key=len, default="") for site in survey.sites}
        if len(found) != 1 or "" in found:
            raise AttnscopeError(
                f"Attention of {type(self.original).__name__} is in {len(found)} stacks of blocks "
                f"({', '.join(sorted(found))}); one is needed."
            )
        (path,) = found
        self.list_of_blocks: nn.ModuleList = lists[path]
        self.blocks = list(self.list_of_blocks)

    def _check_itself(self) -> None:
        """Compares four tokens with the model's own attention, and a pass from the middle with a full one."""
        ids = torch.arange(3, 7, device=self.device) % self.n_vocabulary
        self.model.set_attn_implementation("eager")
        eager = self._plain(ids)
        self.model.set_attn_implementation(self.own_implementation)
        own = self._plain(ids)
        self.model.set_attn_implementation(NAME)
        differences, self.own = {}, False
        for native in (False, True):
            self.native_softmax = native
            differences[native] = difference(self.head(self.run(ids).residuals[-1][0]), eager)
        self.native_softmax = differences[True] < differences[False]
        self.own = self.own_implementation == "sdpa"
        base = self.run(ids)
        self.difference_from_own = difference(self.head(base.residuals[-1][0]), own)
        self._check_outputs(ids)
        if self.can_resume and len(self.blocks) > 1:
            middle = self._run_from(len(self.blocks) // 2, base, ids, {}, len(self.sites), lambda *_: None)
            self.can_resume = torch.equal(base.residuals[-1], middle.residuals[-1])

    def _check_outputs(self, ids: Tensor) -> None:
        """Checks for gates that are 1 on large numbers, which the survey misses: Qwen3-Next's after the heads."""
        sites = [s for s in self.sites if not s.problem]
        seen: list[Tensor] = []
        modules = {s.matrices["output"].module: s for s in sites}

        def see(module: nn.Module, inputs: tuple[Any, ...]) -> None:
            x, site = local_of(inputs[0])[0], modules[module]
            seen.append(x if x.shape[-1] == site.n_heads * site.d_value else self.ranks.joined(x, -1, site.q_owners))

        handles = [m.register_forward_pre_hook(see) for m in modules]
        layers = [p for p in self.run(ids).layers if not p.site.problem]
        for handle in handles:
            handle.remove()
        for site, layer, got in zip(sites, layers, seen, strict=True):
            if not torch.equal(got[:, site.matrices["output"].features], layer.contexts.transpose(0, 1).flatten(1)):
                site.problem = "something lies between its heads and the output projection"

    @torch.no_grad()
    def _plain(self, ids: Tensor) -> Tensor:
        self._depth = None
        return self._logits_of(self._call(ids[None]))[0].float()

    def _call(self, ids: Tensor) -> Any:
        """Calls the model without a cache; what was gathered for the call is given up again."""
        with self.ranks.at_rest(self.original):
            return self.model(ids, **self._no_cache())

    @staticmethod
    def _logits_of(output: Any) -> Tensor:
        logits: Any = output.logits if hasattr(output, "logits") else output[0]
        return whole_of(logits)

    def _no_cache(self) -> dict[str, Any]:
        decodes = getattr(self.model.config, "is_decoder", False) or (
            hasattr(self.model, "generate") and self.model.can_generate()
        )
        return {"use_cache": False} if decodes else {}

    @property
    def device(self) -> torch.device:
        embeddings = self.original.get_input_embeddings()
        hook = offload_of(embeddings) if embeddings.weight.is_meta else None
        return torch.device(hook.execution_device if hook else embeddings.weight.device)

    @property
    def family(self) -> str:
        return str(self.original.config.model_type)

    @property
    def dtype(self) -> torch.dtype:
        return self.original.dtype

    @property
    def d_model(self) -> int:
        return int(self.original.get_input_embeddings().weight.shape[1])

    @property
    def n_context(self) -> int | None:
        """The longest text, if the configuration tells."""
        known = (getattr(self.original.config, name, None) for name in ("max_position_embeddings", "n_positions"))
        return next((n for n in known if n), None)

    @property
    def n_vocabulary(self) -> int:
        return int(self.original.get_input_embeddings().weight.shape[0])

    @property
    def predicts(self) -> bool:
        return self.original.get_output_embeddings() is not None

    # ---- passes ------------------------------------------------------------------------------------------------------

    def state(self) -> int:
        """Returns a number that changes when parameters change; writes through `.data` once `notice()` has seen them."""
        return self.fingerprint() if self.epoch is None else self.epoch

    def fingerprint(self) -> int:
        named = ((m, name, p) for m in self.original.modules() for name, p in m._parameters.items() if p is not None)
        versions = ((id(m), name) if offload_of(m) is not None else (id(p), 0 if is_sharded(p) else p.data_ptr(), 0 if p.is_inference() else p._version)
                    for m, name, p in named)  # fmt: skip
        return hash((self._sample, *versions))

    def notice(self) -> None:
        """Notices writes that no version counts, by all numbers of a small model and by a sample of a large one."""
        held = (p for m in self.original.modules() if offload_of(m) is None for p in m._parameters.values() if p is not None)
        plain = [p.detach() for p in held if type(p.data) is Tensor and not p.is_meta]
        step = sum(p.numel() for p in plain) // SAMPLED
        some = (p.reshape(-1)[:: max(1, min(step, p.numel() // 256))].clone() for p in plain)  # numpy() locks a storage, which FSDP resizes
        self._sample = hash(b"".join(t.view(torch.uint8).cpu().numpy().tobytes() for t in some))

    def run(
        self,
        ids: Tensor,
        edits: dict[int, Edits] | None = None,
        n_layers: int | None = None,
        passes: Iterable[Pass] = (),
        progress: Progress = lambda *_: None,
    ) -> Pass:
        """Reads a text, up to the attention input of layer n_layers, reusing the parts that one of `passes` of the same
        text has in common. Calls `progress(done, of)` before each block, which may raise Cancelled."""
        self.shadow.refresh()
        self.notice()
        self._state = self.state()
        n_layers = len(self.sites) if n_layers is None else min(n_layers, len(self.sites))
        edits, first, base = edits or {}, 0, None
        for earlier in passes if self.can_resume else ():
            if earlier.state == self._state and torch.equal(earlier.ids, ids):
                shared = self._first_difference(earlier, edits, n_layers)
                if base is None or shared > first:
                    first, base = shared, earlier
        return self._run_from(first, base if first else None, ids, edits, n_layers, progress)

    def _first_difference(self, earlier: Pass, edits: dict[int, Edits], n_layers: int) -> int:
        """Returns the first block whose result differs from an earlier pass; n_calls if none does."""
        for n in range(n_layers):
            if n >= len(earlier.layers) or not earlier.edits_of(n).same(edits.get(n, NO_EDITS)):
                return self.sites[n].call
        return self.n_calls

    @torch.no_grad()
    def _run_from(
        self, first: int, base: Pass | None, ids: Tensor, edits: dict[int, Edits], n_layers: int, progress: Progress
    ) -> Pass:
        made = Pass(ids, edits, n_layers, self._state, [], [], [], first)
        if base is not None:
            made.layers = [p for p in base.layers[:n_layers] if p.site.call < first]
            made.residuals, made.inputs = base.residuals[:first], base.inputs[: len(made.layers)]
            if first == self.n_calls:
                made.residuals, made.inputs = base.residuals, base.inputs[: n_layers + 1]
                return made
        self._depth, self._made, self._progress = first, made, progress
        self._is_done = False
        _running.attend, _running.masks = self._attend, "sdpa" if self.own else "eager"
        try:
            self._skip(first, None if base is None else base.residuals[first])
            self._call(ids[None])
            if not self._is_done:
                raise AttnscopeError("The model never reached its last block.")
            made.layers, made.inputs = made.layers[:n_layers], made.inputs[: n_layers + 1]
            return made
        except Done:
            return made
        finally:
            self._depth = None
            self._skip(0, None)

    def _end(self) -> None:
        """Ends a pass. One of FSDP is not recorded further, as its modules must end in the order in which they began."""
        if not self.ranks.fsdp:
            raise Done
        self._depth, self._is_done = None, True

    def _skip(self, n: int, residual: Tensor | None) -> None:
        for i, block in enumerate(self.blocks):
            stub = Skipped(block, residual if i == n - 1 else None, self.returns_tuple) if i < n else block
            self.list_of_blocks._modules[str(i)] = stub

    def _enter_block(self, block: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._depth is not None:
            self._progress(self._depth, self.n_calls)
            self._depth += 1
            self._made.residuals.append(args[0] if args else kwargs["hidden_states"])

    def _leave_block(self, block: nn.Module, args: Any, output: Any) -> None:
        if self._depth == self.n_calls:
            self._made.residuals.append(output[0] if isinstance(output, tuple) else output)
            self._end()

    def _enter_attention(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._depth is None:
            return
        self._inputs = (args[0] if args else kwargs["hidden_states"])[0]
        self._rotary = kwargs.get("position_embeddings")
        made = self._made
        if len(made.inputs) == len(made.layers):  # an attention inside another is entered once
            made.inputs.append(self._inputs)
        if len(made.layers) == made.n_layers:
            self._end()

    def _attend(
        self,
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        **how: Any,
    ) -> tuple[Tensor, None]:
        if how.get("position_bias") is not None:
            raise AttnscopeError("Relative position biases are not supported.")
        made, scaling = self._made, how.get("scaling")
        n = len(made.layers)
        rotary: Any = self._rotary if isinstance(self._rotary, tuple) and len(self._rotary) == 2 else None
        site, sinks = self.sites[n], how.get("s_aux")
        queries = self.ranks.joined(query[0], 0, site.q_owners)
        keys, values = (self.ranks.joined(x[0], 0, site.kv_owners) for x in (key, value))
        sinks = None if sinks is None else whole_of(sinks).clone()  # FSDP frees it
        if sinks is not None and len(sinks) < site.n_heads:
            sinks = self.ranks.joined(sinks, 0, site.q_owners)
        layer = LayerPass(
            next(self._numbers), site, self._inputs, rotary, queries, keys, values,
            self._added(module, query, key, attention_mask, how), query.shape[-1] ** -0.5 if scaling is None else scaling,
            how.get("softcap"), sinks, self.native_softmax, how.get("sliding_window"),
        )  # fmt: skip
        if self.own:
            attend = ALL_ATTENTION_FUNCTIONS[self.own_implementation]
            contexts = attend(module, query, key, value, attention_mask, **how)[0][0].transpose(0, 1).clone()
            contexts = self.ranks.joined(contexts, 0, site.q_owners)
        else:
            contexts = layer.weights() @ repeated(layer.values, layer.queries)
        for head in made.edits_of(n).heads_off:
            contexts[head] = 0
        layer.contexts = contexts
        made.layers.append(layer)
        own = contexts[self.ranks.own(len(contexts), site.q_owners)]
        return own.transpose(0, 1).contiguous()[None], None

    def _leave_projection(self, module: nn.Module, inputs: Any, output: Tensor) -> Tensor | None:
        """Records an output projection's result. Layers may share one: it belongs to the layer that attended last."""
        if self._depth is None or not self._made.layers:
            return None
        layer = self._made.layers[-1]
        matrix = layer.site.matrices.get("output")
        if matrix is None or matrix.module is not module or layer.output is not None:
            return None
        given = self._made.edits_of(len(self._made.layers) - 1).output
        output = output if given is None else given.to(output)[None]
        layer.output = output[0]
        return output

    def _added(
        self, module: nn.Module, query: Tensor, key: Tensor, mask: Tensor | None, how: dict[str, Any]
    ) -> Tensor | None:
        """Returns the additive mask. sdpa's mask is True where unmasked, or absent where is_causal is set."""
        n, n_keys, lowest = query.shape[2], key.shape[2], torch.finfo(query.dtype).min
        if mask is None:
            causal = how.get("is_causal")
            causal = getattr(module, "is_causal", False) if causal is None else causal
            if not (self.own and causal and n > 1):
                return None
            mask = torch.ones(1, 1, n, n_keys, dtype=torch.bool, device=query.device).tril(n_keys - n)
        if mask.dtype == torch.bool:
            mask = torch.zeros(mask.shape, dtype=query.dtype, device=mask.device).masked_fill(~mask, lowest)
        mask = mask[0, ..., :n_keys]
        return mask[0] if mask.shape[0] == 1 else mask

    def next(self, made: Pass, row: int, exact: bool = True) -> Tensor:
        """Returns the logits after a row, 1 × n_vocabulary. A product's last bits depend on its number of rows:
        for `exact` logits of a short text all rows are computed, as in the model's own forward."""
        whole = exact and len(made.ids) * self.n_vocabulary <= ALL_LOGITS
        rows = made.residuals[-1][0] if whole else made.residuals[-1][0, row : row + 1]
        return self.head(rows)[row if whole else 0][None]

    @torch.no_grad()
    def head(self, rows: Tensor) -> Tensor:
        """Returns the logits of residual stream rows after the last block, n × n_vocabulary in float32: the model's own
        final norm, projection, scale and softcap, with all blocks skipped."""
        try:
            self._depth, _running.masks = None, "eager"
            self._skip(len(self.blocks), rows[:, None])
            output = self._call(torch.zeros(len(rows), 1, dtype=torch.long, device=self.device))
        finally:
            self._skip(0, None)
        return self._logits_of(output)[:, 0].float()


def _own_code(name: str) -> str:
    return f"{name} computes attention in code of its own, past transformers' AttentionInterface."


def difference(a: Tensor, b: Tensor) -> float:
    return (a.float() - b.float()).abs().max().item()


def pooled(maps: Tensor, block: int) -> Tensor:
    """Returns the largest number of each block."""
    return maps.float() if block <= 1 else F.max_pool2d(maps.unsqueeze(0).float(), block, ceil_mode=True)[0]


# ---- a layer as matrices, to be edited in the window -----------------------------------------------------------------


@dataclass(frozen=True)
class HeadNorm:
    rule: str  # rms or layer
    weight: Tensor  # d_head, or n_heads · d_head where a whole row is normalized
    bias: Tensor | None
    epsilon: float

    def of(self, x: Tensor) -> Tensor:  # T × H × d_head
        rows = x if x.shape[-1] == len(self.weight) else x.flatten(1)
        if self.rule == "layer":
            rows = rows - rows.mean(-1, keepdim=True)
        rows = rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + self.epsilon) * self.weight
        return (rows if self.bias is None else rows + self.bias).view(x.shape)


@dataclass(frozen=True)
class Rotary:
    pairs: str  # halves or neighbors
    cosines: Tensor  # T × pairs
    sines: Tensor

    def frequencies(self, known: Iterable[Tensor], tolerance: float) -> Tensor | None:
        """Returns the known inverse frequencies that give these cosines and sines (rounded in 16-bit models), or None."""
        at, length = torch.arange(len(self.cosines), dtype=torch.float64)[:, None], self.cosines[0, 0].hypot(self.sines[0, 0])
        best: Tensor | None = None
        for each in known:
            if each.shape != self.cosines.shape[1:]:
                continue
            angles = at * each.double().cpu()
            off = max((f(angles) * length - t).abs().max().item() for f, t in ((torch.cos, self.cosines), (torch.sin, self.sines)))
            if off < tolerance:
                best, tolerance = each, off
        return best

    def of(self, x: Tensor) -> Tensor:  # T × H × d_head; the first 2·pairs columns rotate
        n = self.cosines.shape[1]
        a, b = (x[..., :n], x[..., n:2 * n]) if self.pairs == "halves" else (x[..., 0:2 * n:2], x[..., 1:2 * n:2])
        c, s = self.cosines[:, None], self.sines[:, None]
        a, b = a * c - b * s, b * c + a * s
        turned = torch.cat([a, b], -1) if self.pairs == "halves" else torch.stack([a, b], -1).flatten(-2)
        return torch.cat([turned, x[..., 2 * n:]], -1)


@dataclass
class Rebuilt:
    norms: dict[str, HeadNorm]
    rotary: Rotary | None
    difference: float  # largest of queries, keys and values, relative to their largest number
    problem: str


def norm_of(module: nn.Module, width: int) -> HeadNorm:
    """Finds rule, weight, bias and epsilon by probing the module, whatever its class."""
    module = bare(module)
    like = next((p for p in module._parameters.values() if p is not None), torch.empty(0))
    def ask(x: Tensor) -> Tensor:
        return type(module).forward(module, x.to(like)[None, None])[0, 0].double().cpu()
    epsilon = next((float(v) for k, v in vars(module).items() if "eps" in k and isinstance(v, float)), 1e-6)
    sign = torch.tensor([1.0, -1.0]).repeat(width)[:width]  # mean 0 and variance 1, where the width is even
    up, down = ask(sign), ask(-sign)
    bias = (up + down) / 2
    weight = (up - down) / 2 * sign * (1 + epsilon) ** 0.5
    rule = "layer" if torch.allclose(ask(sign + 3), up, atol=1e-2) else "rms"
    return HeadNorm(rule, weight, bias if bias.any() else None, epsilon)


def projected(layer: LayerPass, name: str, n_heads: int) -> Tensor:
    """Returns x·W + b in float64, T × heads × columns, before norm and rotation."""
    m = layer.site.matrices[name]
    b = m.bias()
    parts = {name: m.weight(), f"{name}.bias": torch.zeros(1) if b is None else b[None]}
    parts = {k: v.detach().double().cpu() for k, v in parts.items()}
    rows = layer.inputs.double().cpu() @ parts[name] + parts[f"{name}.bias"]
    return rows.view(len(rows), n_heads, -1)


@torch.no_grad()
def rebuild(layer: LayerPass) -> Rebuilt:
    """Finds the norms and the rotation between X·W and the queries and keys of a pass, if any fit."""
    site, norms, worst = layer.site, {}, 0.0
    if set(site.norms) - {"query", "key"}:
        return Rebuilt({}, None, float("inf"), "its values are normalized")
    plain: dict[str, Tensor] = {}
    for name, heads in (("query", site.n_heads), ("key", site.n_kv_heads), ("value", site.n_kv_heads)):
        plain[name] = projected(layer, name, heads)
        if name in site.norms:
            width = plain[name].shape[-1]
            try:
                norms[name] = norm_of(site.norms[name], width)
            except RuntimeError:
                norms[name] = norm_of(site.norms[name], width * heads)
            plain[name] = norms[name].of(plain[name])
    wanted = {"query": layer.queries, "key": layer.keys, "value": layer.values}
    wanted = {n: w.double().cpu().transpose(0, 1) / site.matrices[n].factor for n, w in wanted.items()}

    def off(rotary: Rotary | None) -> float:
        got = {n: rotary.of(x) if rotary and n != "value" else x for n, x in plain.items()}
        # the cosines include the factor of a rotation that scales, as YaRN's does
        f = {n: 1.0 if n == "value" or rotary is None else site.matrices[n].factor for n in got}
        return max(((got[n] - wanted[n] * f[n]).abs().max() / wanted[n].abs().max()).item() for n in got)
    found: Rotary | None = None
    worst = off(None)
    if layer.rotary is not None:
        cosines, sines = (t.double().cpu().reshape(-1, t.shape[-1]) for t in layer.rotary)
        n = cosines.shape[-1]
        tables = ((cosines[:, :n // 2], sines[:, :n // 2]), (cosines[:, ::2], sines[:, ::2]), (cosines, sines))
        for pairs, (c, s) in product(("halves", "neighbors"), tables):
            if len(c) == len(plain["query"]) and 2 * c.shape[1] <= site.d_head:
                rotary = Rotary(pairs, c, s)
                if off(rotary) < worst:
                    found, worst = rotary, off(rotary)
    limit = TOLERANCE.get(layer.queries.dtype, 1e-2)
    words = "" if worst <= limit else f"X·W with norm and RoPE gives other queries, keys or values (by {worst:.1e})"
    return Rebuilt(norms, found, worst, words)
