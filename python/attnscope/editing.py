"""ablate() and edit(): a with block in which heads of a transformers model compute something else."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from .asking import Heads, require_head
from .engine import Engine, LayerPass, repeated
from .errors import AttnscopeError
from .recording import Recording

STAGES = ("queries", "keys", "values", "weights", "contexts")
Change = Callable[[Tensor], Any]


@contextmanager
def edited(model: Any, changes: list[tuple[int, int, str, Change]]) -> Iterator[None]:
    """Applies functions to stages of heads in every pass of this thread. The model gets no hook and no other configuration."""
    from transformers import modeling_utils

    if isinstance(model, Recording):
        model = model._questions(0).engine.original
    if not hasattr(model, "set_attn_implementation"):
        raise AttnscopeError(
            f"ablate() and edit() need a model of transformers, not a {type(model).__name__}; attnscope.attach(model).predict(text, off=…) ablates heads of others."
        )
    engine = Engine(model)
    for layer, head, stage, _ in changes:
        require_head(engine, layer, head)
        if stage not in STAGES:
            raise AttnscopeError(f"There is no stage {stage!r} to edit; there are {', '.join(STAGES)}.")
    interface: Any = modeling_utils.AttentionInterface
    if not hasattr(interface, "get_interface"):
        raise AttnscopeError("ablate() and edit() need transformers 5.")
    originals = {twin: original for original, twin in engine.shadow.pairs}
    layers: dict[nn.Module, list[int]] = {}  # several where layers share a module
    for n, site in enumerate(engine.sites):
        layers.setdefault(originals[site.module], []).append(n)
    before, thread, calls = interface.get_interface, threading.get_ident(), dict.fromkeys(layers, 0)

    def get_interface(self: Any, implementation: str, default: Any) -> Any:
        function = before(self, implementation, default)
        if threading.get_ident() != thread:
            return function

        def attend(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Any = None, *args: Any, **how: Any) -> Any:
            if module not in layers:
                return function(module, query, key, value, mask, *args, **how)
            layer = layers[module][calls[module] % len(layers[module])]
            calls[module] += 1
            mine = [(head, stage, change) for n, head, stage, change in changes if n == layer]
            for stage, heads in (("queries", query), ("keys", key), ("values", value)):
                heads = _changed(heads, [(h * heads.shape[1] // query.shape[1], c) for h, s, c in mine if s == stage])
                query, key, value = (heads if s == stage else t for s, t in zip(STAGES, (query, key, value)))
            result = function(module, query, key, value, mask, *args, **how)
            contexts = result[0].transpose(1, 2)  # [sequences, heads, tokens, d_value]
            if weighed := [(head, change) for head, stage, change in mine if stage == "weights"]:
                weights = _changed(_weights(engine, module, implementation, query, key, value, mask, how), weighed)
                new = torch.stack([w @ repeated(v, w) for w, v in zip(weights.to(value.dtype), value)])
                contexts = contexts.clone()
                for head, _ in weighed:
                    contexts[:, head] = new[:, head]
            contexts = _changed(contexts, [(head, change) for head, stage, change in mine if stage == "contexts"])
            return contexts.transpose(1, 2).contiguous(), *result[1:]

        return attend

    interface.get_interface = get_interface
    try:
        yield
    finally:
        interface.get_interface = before


def _changed(heads: Tensor, changes: list[tuple[int, Change]]) -> Tensor:
    """Returns a stage [sequences, heads, rows, columns] with some heads replaced."""
    if changes:
        heads = heads.clone()
    for head, change in changes:
        new = torch.as_tensor(change(heads[:, head].clone()), dtype=heads.dtype, device=heads.device)
        if new.shape not in (heads[:, head].shape, ()):
            raise AttnscopeError(f"The edit of head {head} returns the shape {list(new.shape)}; expected {list(heads[:, head].shape)}.")
        heads[:, head] = new
    return heads


def _weights(engine: Engine, module: nn.Module, implementation: str, query: Tensor, key: Tensor, value: Tensor, mask: Any, how: dict[str, Any]) -> Tensor:
    """Returns the attention weights that a call computes: [sequences, heads, queries, keys]."""
    if how.get("position_bias") is not None or not (mask is None or isinstance(mask, Tensor)):
        raise AttnscopeError(f"The weights of {implementation} with this mask cannot be edited; load the model with attn_implementation='eager'.")
    scale = how.get("scaling")
    own, engine.own = engine.own, implementation != "eager"  # eager has no mask only where nothing is masked
    try:
        added = [engine._added(module, query, key, None if mask is None else mask[min(s, len(mask) - 1)][None], how) for s in range(len(query))]
    finally:
        engine.own = own
    site = next(s for s in engine.sites if s.n_heads == query.shape[1])
    return torch.stack([
        LayerPass(0, site, q, None, q, k, v, a, q.shape[-1] ** -0.5 if scale is None else scale, how.get("softcap"), how.get("s_aux"),
                  engine.native_softmax).weights()
        for q, k, v, a in zip(query, key, value, added)
    ])  # fmt: skip


def parsed(place: str) -> tuple[int, int, str]:
    """Returns layer, head and stage of "5.1.weights"."""
    found = re.fullmatch(r"(\d+)\.(\d+)\.(\w+)", place)
    if not found:
        raise AttnscopeError(f'{place!r} is no place; expected "LAYER.HEAD.STAGE", such as "5.1.weights".')
    return int(found[1]), int(found[2]), found[3]


def ablated(model: Any, heads: Heads) -> Any:
    return edited(model, [(layer, head, "contexts", torch.zeros_like) for layer, head in heads])
