"""Passes of texts through a model that is none of transformers, such as the GPT of a notebook.

The attentions of such a model are found as capture() finds them, in each pass. Heads are ablated, and outputs of output
projections replaced, in the numbers that the model has just computed. It gets no hook and runs without dropout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .attention import Attention, Linear
from .capturing import _Awaiting, _Recorder
from .engine import NO_EDITS, Edits, Engine, LayerPass, Pass, Progress, difference
from .errors import AttnscopeError
from .layouts import Layout
from .projections import LinearCall
from .recording import Recording
from .shadowing import Site

Logits = Callable[[Tensor], Any]
_SURVEY = (1, 0, 1, 1)  # token IDs that every vocabulary has
_OUT_PROJECTION = 11  # argument of F.multi_head_attention_forward


class Functions:
    """encode() and decode() as the tokenizer that the rest of the package expects."""

    all_special_ids: tuple[int, ...] = ()

    def __init__(self, encode: Callable[[str], Any], decode: Callable[[list[int]], str] | None) -> None:
        self._encode, self._decode = encode, decode

    def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
        try:
            ids = np.asarray(self._encode(text)).reshape(-1)
        except Exception as error:
            raise AttnscopeError(f"encode() failed on this text ({type(error).__name__}: {error}).") from None
        if ids.size and ids.dtype.kind not in "iu":
            raise AttnscopeError(f"encode() returns {ids.dtype}; expected a list of token IDs.")
        return {"input_ids": [int(i) for i in ids]}

    def decode(self, ids: Sequence[int], **_: Any) -> str:
        if self._decode is None:
            return " ".join(str(i) for i in ids)
        try:
            return str(self._decode([int(i) for i in ids]))
        except Exception:  # IDs that the model has and the vocabulary has not
            return "".join(f"[{i}]" for i in ids)

    def example(self, most: int, n_vocabulary: int) -> str:
        """Returns a text of at most so many tokens for a window to begin with."""
        for text in ("egg jam fig and egg jam f", "egg jam f", "egg"):
            with suppress(AttnscopeError):
                ids = self(text)["input_ids"]
                if 0 < len(ids) <= most and max(ids) < n_vocabulary:
                    return text
        return self.decode(_SURVEY[:most])

    def convert_ids_to_tokens(self, ids: Sequence[int]) -> list[str]:
        return [self.decode([i]) for i in ids]


@dataclass
class Given:
    """A projection as it was found in a pass, for x·W + b."""

    linear: Linear
    factor: float = 1.0
    module: Any = None

    def weight(self) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(self.linear.weight))

    def bias(self) -> Tensor | None:
        return None if self.linear.bias is None else torch.from_numpy(np.ascontiguousarray(self.linear.bias))


@dataclass
class RecordedLayer(LayerPass):
    """An attention of a pass whose weights are those of the model."""

    recorded: Tensor = field(default_factory=lambda: torch.empty(0))  # H × T × T

    def weights(self) -> Tensor:
        return self.recorded


class _Reader(_Recorder):
    """Records the attentions of a pass and changes them. `places[n]` are the layer and the first head of attention n."""

    def __init__(
        self, model: nn.Module, edits: dict[int, Edits], places: Sequence[tuple[int, int]], is_survey: bool, progress: Progress, blocks: Sequence[nn.Module],
    ) -> None:  # fmt: skip
        super().__init__(Recording(), model, 1 << 30)
        self.edits, self.places, self.is_survey, self.progress = edits, places, is_survey, progress
        self.block_number = {block: n for n, block in enumerate(blocks)}
        self.residuals: list[Tensor] = []
        self.entered: dict[str, Tensor] = {}  # input of each module that was called, by its path
        self.layouts: list[Layout] = []
        self.n_positions: int | None = None
        self.n_done = 0  # edits
        self.last: Tensor | None = None  # replaces the last block's output

    # ---- modules -----------------------------------------------------------------------------------------------------

    def _see_module(self, module: nn.Module) -> None:
        """Replaces what prepares PyTorch's fast path, which is not observed and so not taken."""

    def _enter(self, module: nn.Module, args: Any) -> None:
        super()._enter(module, args)
        if not self.stack or self.stack[-1] is not module or not args or not isinstance(args[0], Tensor):
            return
        if module in self.paths:
            self.entered[self.paths[module]] = args[0].detach()
        if module in self.block_number:
            self.progress(len(self.residuals), len(self.block_number))
            self.residuals.append(args[0].detach())

    def _leave(self, module: nn.Module, args: Any, kwargs: dict[str, Any], result: Any) -> Any:
        mine = bool(self.stack) and self.stack[-1] is module
        super()._leave(module, args, kwargs, result)
        if not mine or self.block_number.get(module) != len(self.block_number) - 1:
            return None
        output = result[0] if isinstance(result, tuple) else result
        if self.last is None:
            self.residuals.append(output.detach())
            return None
        return (self.last.to(output), *result[1:]) if isinstance(result, tuple) else self.last.to(output)

    # ---- functions ---------------------------------------------------------------------------------------------------

    def __torch_function__(self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        if function is F.dropout:
            args, kwargs = (), dict(zip(("input", "p", "training", "inplace"), args)) | kwargs | {"training": False}
        elif function is F.scaled_dot_product_attention:
            names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
            said = dict(zip(names, args)) | kwargs | {"dropout_p": 0.0}
            args, kwargs = tuple(said.pop(n) for n in names[:3]), said
        elif function is F.multi_head_attention_forward and len(args) > _OUT_PROJECTION:
            kwargs = kwargs | {"training": False}
            args = self._without_heads(args)
        return super().__torch_function__(function, types, args, kwargs)

    def _without_heads(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Ablates heads of nn.MultiheadAttention by their rows of the output projection: their contexts times 0."""
        off = self._off()
        if off:
            weight = args[_OUT_PROJECTION].detach().clone()
            d = weight.shape[1] // args[4]
            for head in off:
                weight[:, head * d : (head + 1) * d] = 0
            args = (*args[:_OUT_PROJECTION], weight, *args[_OUT_PROJECTION + 1 :])
            self.n_done += len(off)
        return args

    def _see_ids(self, ids: Tensor, weight: Tensor, *_: Any) -> None:
        """Notices a table of positions, which limits the length of a text."""
        flat = ids.reshape(-1)
        if len(flat) > 1 and torch.equal(flat, torch.arange(len(flat), device=flat.device)):
            self.n_positions = min(self.n_positions or len(weight), len(weight))

    # ---- attentions --------------------------------------------------------------------------------------------------

    def _off(self) -> list[int]:
        """Returns the heads to ablate in the attention that is computed next."""
        n = len(self.recording.attentions)
        layer, first = self.places[n] if n < len(self.places) else (0, 0)
        last = self.places[n + 1][1] if n + 1 < len(self.places) and self.places[n + 1][0] == layer else 1 << 30
        return [h - first for h in sorted(self.edits.get(layer, NO_EDITS).heads_off) if first <= h < last and n < len(self.places)]

    def _finish(self, a: Attention, dtype: str, weights: Any, layout: Layout) -> None:
        self.layouts.append(layout)
        if self.is_survey:
            return super()._finish(a, dtype, weights, layout)
        if weights is not None:
            a.observed["weights"] = weights
        self.recording.attentions.append(a)
        self.awaiting = [_Awaiting(a, layout)]

    def _ablate(self, context: Tensor, off: list[int]) -> None:
        """Sets heads of the context vectors to 0 where the model has just computed them."""
        a, layout = self.recording.attentions[-1], self.layouts[-1]
        heads = context.reshape(-1, layout.sequences, *context.shape[-2:]).transpose(0, 1) if layout.heads_first else context.reshape(
            layout.sequences, -1, *context.shape[-2:])  # fmt: skip
        for head in off:
            heads[:, head] = 0
            a.observed["contexts"][:, head] = 0
        if off and heads.data_ptr() != context.data_ptr():
            context.copy_((heads.transpose(0, 1) if layout.heads_first else heads).reshape(context.shape))
        self.n_done += len(off)

    def _record_site(self, site: Any, weights: Tensor, values: Tensor, context: Tensor) -> None:
        off = self._off()
        super()._record_site(site, weights, values, context)
        self._ablate(context, off)

    def _record_sdpa(self, args: Any, kwargs: Any, result: Tensor, drawn: Any) -> None:
        off = self._off()
        super()._record_sdpa(args, kwargs, result, drawn)
        self._ablate(result, off)

    def _see_linear(self, call: LinearCall | None) -> None:
        waiting = [w for w in self.awaiting if "output" not in w.attention.observed]
        super()._see_linear(call)
        for one in waiting:
            given = None if call is None or "output" not in one.attention.observed else self._given(one.attention)
            if given is not None:
                assert call is not None
                call.out.copy_(given.to(call.out).reshape(call.out.shape))
                one.attention.observed["output"] = given.double().cpu().numpy()[None]
                self.n_done += 1

    def _given(self, a: Attention) -> Tensor | None:
        n = next(i for i, each in enumerate(self.recording.attentions) if each is a)
        return self.edits.get(self.places[n][0], NO_EDITS).output if n < len(self.places) else None


class OwnEngine(Engine):
    """A model outside transformers that reads texts. `logits(ids)` calls it on token IDs [1, tokens]."""

    def __init__(self, model: nn.Module, logits: Logits | None = None) -> None:
        if not isinstance(model, nn.Module):
            raise AttnscopeError(f"attach() takes a module of PyTorch, not a {type(model).__name__}.")
        if any(p.is_meta for p in model.parameters()):
            raise AttnscopeError("The model's parameters are on the meta device: it has no numbers yet.")
        self.original = self.model = model
        self._logits: Logits = logits or model
        self.own, self.own_implementation, self.can_resume, self._sample = True, "eager", False, 0
        self._counted = 0  # computations of layers
        self.blocks: list[nn.Module] = []
        self.sites: list[Site] = []
        self.places: list[tuple[int, int]] = []
        self.groups: list[list[int]] = []  # [layer] → its attentions: one, or several modules of one head
        self._take_survey()

    # ---- layout of the model -----------------------------------------------------------------------------------------

    def _take_survey(self) -> None:
        ids = torch.tensor(_SURVEY, device=self.device)
        name = type(self.original).__name__
        try:
            reader, logits = self._read(ids, {}, is_survey=True)
        except AttnscopeError:
            raise
        except Exception as error:
            why = str(error).splitlines()[0] if str(error) else ""
            raise AttnscopeError(
                f"{name} failed on token IDs [1, {len(ids)}] ({type(error).__name__}: {why}); give logits=lambda ids: …, which calls it as needed."
            ) from error
        found = reader.recording.attentions
        if not found:
            why = reader.recording.problems[0] if reader.recording.problems else "no softmax between two products was computed"
            raise AttnscopeError(f"No attention was found in {name}: {why}".rstrip(".") + ".")
        self._vocabulary = logits.shape[-1]
        self._context = reader.n_positions
        self.groups = _groups(found)
        self.places = [(layer, i) if len(group) > 1 else (layer, 0) for layer, group in enumerate(self.groups) for i in range(len(group))]
        self._find_blocks([found[group[0]].name for group in self.groups])
        self.sites = [self._site(layer, found) for layer in range(len(self.groups))]
        self._surveyed = self.state()
        made = self.run(ids)
        self.n_calls, self._d_model = len(self.blocks), made.residuals[-1].shape[-1]
        self.difference_from_own = difference(self.next(made, len(ids) - 1)[0], logits[-1])
        for site, layer in zip(self.sites, made.layers):
            if not site.problem and layer.inputs.shape[-1] != self.d_model:
                site.problem = "its input is not as wide as the residual stream"

    def _find_blocks(self, names: list[str]) -> None:  # type: ignore[override]
        lists = ["", *(n + "." for n, m in self.original.named_modules() if n and isinstance(m, (nn.ModuleList, nn.Sequential)))]
        inside = [n for n in lists if n and all(name.startswith(n) for name in names)]
        first = min(inside, key=len, default="")
        paths = list(dict.fromkeys(first + name[len(first) :].split(".")[0] for name in names))
        modules = dict(self.original.named_modules())
        if not all(path in modules for path in paths):
            raise AttnscopeError(f"{type(self.original).__name__} computes attention itself; put it into modules, one for each layer.")
        self.blocks, self._block_paths = [modules[path] for path in paths], paths

    def _site(self, layer: int, found: list[Attention]) -> Site:
        group = [found[i] for i in self.groups[layer]]
        a = group[0]
        assert a.queries is not None and a.keys is not None and a.values is not None
        call = next(i for i, path in enumerate(self._block_paths) if a.name == path or a.name.startswith(path + "."))
        module = dict(self.original.named_modules())[a.name]
        n = len(group)
        site = Site(a.name if n == 1 else a.name.rpartition(".")[0], module, n * a.n_heads, n * a.n_kv_heads, a.queries.shape[-1], a.values.shape[-1], call)
        site.problem = _problem(group)
        if not site.problem:
            e = a.editable
            assert e is not None
            site.matrices = {name: Given(linear) for name, linear in e.linears().items()}  # type: ignore[misc]
        return site

    # ---- passes ------------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def _read(self, ids: Tensor, edits: dict[int, Edits], is_survey: bool = False, progress: Progress = lambda *_: None, last: Tensor | None = None) -> tuple[_Reader, Tensor]:
        """Calls the model on token IDs [tokens], or [sequences, tokens] with the last block's output replaced; returns the logits."""
        reader = _Reader(self.original, edits, self.places, is_survey, progress, self.blocks)
        reader.last = last
        reader.start()
        try:
            output = self._logits(ids if ids.ndim == 2 else ids[None])
        finally:
            reader.stop(failed=False)
        logits = getattr(output, "logits", output[0] if isinstance(output, (tuple, list)) else output)
        if not isinstance(logits, Tensor) or logits.ndim not in (2, 3):
            raise AttnscopeError(
                f"{type(self.original).__name__} returns no logits [1, tokens, vocabulary]; give logits=lambda ids: …, which returns them."
            )
        logits = logits.detach().float()
        return reader, logits if last is not None else logits.reshape(-1, logits.shape[-1])

    def run(
        self, ids: Tensor, edits: dict[int, Edits] | None = None, n_layers: int | None = None, passes: Iterable[Pass] = (), progress: Progress = lambda *_: None,
    ) -> Pass:  # fmt: skip
        """Reads a text. Layers before the first difference from an earlier pass are that pass's."""
        edits = {n: e for n, e in (edits or {}).items() if not e.same(NO_EDITS)}
        self.notice()
        state = self.state()
        if state != self._surveyed:
            self._surveyed = state
            found = self._read(torch.tensor(_SURVEY, device=self.device), {}, is_survey=True)[0].recording.attentions
            self.sites = [self._site(layer, found) for layer in range(len(self.groups))]
        reader, logits = self._read(ids, edits, progress=progress)
        found = reader.recording.attentions
        if len(found) != len(self.places):
            why = f": {reader.recording.problems[0]}" if reader.recording.problems else "."
            raise AttnscopeError(f"The model computed {len(found)} attentions for this text and {len(self.places)} before{why}")
        if reader.n_done != sum(len(e.heads_off) + (e.output is not None) for e in edits.values()):
            raise AttnscopeError("An edit did not reach the model" + (f": {reader.recording.problems[0]}" if reader.recording.problems else "."))
        made = Pass(ids, edits, len(self.sites), state, [], reader.residuals, [])
        made.logits = logits  # type: ignore[attr-defined]
        same = [p for p in passes if p.state == state and torch.equal(p.ids, ids)]
        known = max(same, key=lambda p: self._first_layer(p, edits), default=None)
        n_known = 0 if known is None else self._first_layer(known, edits)
        for layer, site in enumerate(self.sites):
            group = [found[i] for i in self.groups[layer]]
            inputs = reader.entered.get(group[0].name, reader.residuals[site.call])
            made.inputs.append(inputs[0] if inputs.shape[:2] == (1, len(ids)) else reader.residuals[site.call][0])
            made.layers.append(known.layers[layer] if known and layer < n_known else self._layer(site, group, made.inputs[-1]))
        return made

    def _first_layer(self, earlier: Pass, edits: dict[int, Edits]) -> int:
        return next((n for n in range(len(self.sites)) if not earlier.edits_of(n).same(edits.get(n, NO_EDITS))), len(self.sites))

    def _layer(self, site: Site, group: list[Attention], inputs: Tensor) -> RecordedLayer:
        a = group[0]
        self._counted += 1

        def joined(stages: Iterable[Any]) -> Tensor:
            return torch.from_numpy(np.concatenate([s[0] for s in stages], 0)).float()

        visible = torch.from_numpy(np.ascontiguousarray(a.visible[0]))
        mask = torch.zeros(visible.shape).masked_fill(~visible, torch.finfo(torch.float32).min)
        if a.bias is not None:
            mask = mask + torch.from_numpy(np.where(np.isfinite(a.bias), a.bias, 0)).float()
            mask = mask[0] if mask.ndim == 3 and len(mask) == 1 else mask
        output = a.observed.get("output")
        weights = [x.observed["weights"] if "weights" in x.observed else x.weights for x in group]
        return RecordedLayer(
            self._counted, site, inputs, None, joined(x.queries for x in group), joined(x.keys for x in group), joined(x.values for x in group),
            mask, a.factor, a.softcap, None, True, contexts=joined(x.observed.get("contexts", x.context) for x in group),
            output=None if output is None else torch.from_numpy(output[0]).float(), recorded=joined(weights),
        )  # fmt: skip

    def next(self, made: Pass, row: int, exact: bool = True) -> Tensor:
        logits: Tensor = made.logits  # type: ignore[attr-defined]
        if len(logits) == len(made.ids):
            return logits[row][None]
        return logits[-1][None] if row == len(made.ids) - 1 else self.head(made.residuals[-1][0, row : row + 1])

    @torch.no_grad()
    def head(self, rows: Tensor) -> Tensor:
        """Returns the logits of residual stream rows after the last block: the model on one token, with that block's output replaced."""
        return torch.cat([self._read(self._one, {}, last=row[None, None])[1].reshape(-1, self._vocabulary)[-1:] for row in rows])

    @property
    def _one(self) -> Tensor:
        return torch.tensor([[_SURVEY[0]]], device=self.device)

    # ---- the model in words ------------------------------------------------------------------------------------------

    @property
    def device(self) -> torch.device:
        return next((p.device for p in self.original.parameters()), torch.device("cpu"))

    @property
    def n_vocabulary(self) -> int:
        return self._vocabulary

    @property
    def predicts(self) -> bool:
        return True

    @property
    def family(self) -> str:
        return "own"

    @property
    def dtype(self) -> torch.dtype:
        return next((p.dtype for p in self.original.parameters()), torch.float32)

    @property
    def d_model(self) -> int:
        return self._d_model

    @property
    def n_context(self) -> int | None:
        return self._context


def _groups(found: list[Attention]) -> list[list[int]]:
    """Returns the attentions of each layer: modules of one head that lie in one list are one layer."""
    groups: list[list[int]] = []
    for i, a in enumerate(found):
        before = found[groups[-1][0]] if groups else None
        is_numbered = a.name.rpartition(".")[2].isdecimal()
        if before is not None and is_numbered and a.n_heads == 1 and (a.name.rpartition(".")[0], a.shape) == (before.name.rpartition(".")[0], before.shape):
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


def _problem(group: list[Attention]) -> str:
    """Returns why a layer cannot be edited in the window, or ""."""
    a = group[0]
    if len(group) > 1:
        return "each of its heads is a module of its own"
    if a.editable is None:
        return a.not_editable
    if a.editable.output is None:
        return "its output projection was not found"
    if a.editable.settings or a.editable.source is not None:
        return "it has a rotary embedding, a norm or a source of its own"
    if a.given or a.mask_method not in ("negative_infinity", "large_negative"):
        return "its mask is applied in another way than to its scores"
    return ""
