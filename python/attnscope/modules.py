"""Calls and records PyTorch modules and transformers models; compares a module with its parameters' attention."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .arrays import half_of
from .attention import Attention, Editable, Linear
from .capturing import Capture
from .checking import Observed, Report, run
from .errors import AttnscopeError
from .masks import as_mask
from .recording import Recording


def record_call(module: nn.Module, args: Sequence[Any], options: dict[str, Any], tokens: Any = None) -> Recording:
    """Calls a module once, without gradients, and returns the attentions inside it; the module is unchanged."""
    if len(args) > 1 and isinstance(args[1], str) and callable(args[0]):
        tokenizer: Any = args[0]
        return _record_text(module, tokenizer, args[1], options)
    if not args and not options:
        raise AttnscopeError(
            f"show({type(module).__name__}, …): give what the module is called with: show(module, x), or show(model, tokenizer, text)."
        )
    if args and isinstance(args[0], str):
        raise AttnscopeError("A text needs its tokenizer: show(model, tokenizer, text).")
    _require_numbers(module)
    if isinstance(module, nn.MultiheadAttention) and len(args) == 1:
        args = (args[0],) * 3
    with Capture(module, tokens=tokens) as c, torch.no_grad():
        try:
            out = module(*args, **options)
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            raise AttnscopeError(
                f"{type(module).__name__} failed when it was called: {str(error).splitlines()[0]}."
            ) from error
    if not c.attentions:
        why = c.problems[0] if c.problems else "no softmax between two products was computed"
        raise AttnscopeError(
            f"{type(module).__name__} has no attention that could be recorded: {why}".rstrip(".") + "."
        )
    joined = _joined_heads(c, out)
    return Recording([joined], c.problems) if joined else c


def _require_numbers(module: nn.Module) -> None:
    if any(p.is_meta for p in module.parameters()):
        raise AttnscopeError(
            f"{type(module).__name__} is on the meta device, so its parameters have shapes and no numbers; load the weights first."
        )


def _record_text(model: nn.Module, tokenizer: Any, text: str, options: dict[str, Any]) -> Recording:
    if not text:
        raise AttnscopeError("The text is empty.")
    _require_numbers(model)
    batch = tokenizer(text, return_tensors="pt")
    ids = batch["input_ids"]
    embeddings: Any = getattr(model, "get_input_embeddings", None)
    size = getattr(embeddings(), "num_embeddings", None) if embeddings else None
    if ids.numel() == 0:
        raise AttnscopeError("The tokenizer makes no token of this text.")
    if size is not None and int(ids.max()) >= size:
        raise AttnscopeError(
            f"The tokenizer gives token {int(ids.max())}, and the model knows {size}; is it the tokenizer of another model?"
        )
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    inputs = {k: v.to(device) for k, v in batch.items()}
    with Capture(model) as c, torch.no_grad():
        model(**inputs, **options)
    if not c.attentions:
        raise AttnscopeError(
            f"{type(model).__name__} has no attention that could be recorded"
            + (f": {c.problems[0]}" if c.problems else ".")
        )
    tokens = token_texts(tokenizer, ids[0].tolist())
    for a in c:
        if len(tokens) == a.n_queries:
            a.tokens = tokens
        if len(tokens) == a.n_keys and a.n_keys != a.n_queries:
            a.key_tokens = tokens
    return c


def token_texts(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """Returns the text of each token, spaces included; for part of a character, the vocabulary's piece."""
    texts = []
    for piece, i in zip(tokenizer.convert_ids_to_tokens(list(ids)), ids):
        text = tokenizer.decode([i], clean_up_tokenization_spaces=False)
        if "�" in text:
            text = piece
        if piece.startswith("▁") and not text.startswith(" "):
            text = " " + text
        texts.append(text)
    return texts


def _joined_heads(c: Capture, out: Any) -> Attention | None:
    """Returns single-head attentions whose context vectors are concatenated as one multi-head attention; else None."""
    heads = list(c)
    if (
        len(heads) < 2
        or not isinstance(out, Tensor)
        or any(h.n_heads != 1 or h.editable is None or h.editable.output is not None for h in heads)
    ):
        return None
    first = heads[0]
    shapes = {(h.shape, h.values.shape, h.factor, str(h.mask)) for h in heads}  # type: ignore[union-attr]
    side_by_side = np.concatenate([h.observed["contexts"][:, 0] for h in heads], -1)
    result = out.detach().double().cpu().numpy()
    if (
        len(shapes) != 1
        or result.shape[-1] != side_by_side.shape[-1]
        or not np.allclose(result.reshape(side_by_side.shape), side_by_side, atol=1e-6)
    ):
        return None
    if not all(np.array_equal(h.editable.embeddings, first.editable.embeddings) for h in heads):  # type: ignore[union-attr]
        return None
    q, k, v = (np.concatenate([getattr(h, s) for h in heads], 1) for s in ("queries", "keys", "values"))
    masks = [h.dropout_mask for h in heads if h.dropout_mask is not None]
    joined = Attention(q, k, v, scale=first.scale, mask=first.mask, mask_method=first.mask_method, tokens=first.tokens, name="heads side by side",
                       dropout=first.dropout, dropout_mask=np.concatenate(masks, 1) if len(masks) == len(heads) else None)  # fmt: skip
    joined.observed["contexts"] = np.concatenate([h.observed["contexts"] for h in heads], 1)

    def join(name: str) -> Linear:
        parts = [getattr(h.editable, name) for h in heads]
        biases = [p.bias for p in parts]
        return Linear(
            np.concatenate([p.weight for p in parts], 1),
            None if any(b is None for b in biases) else np.concatenate(biases),
        )

    joined.editable = Editable(first.editable.embeddings, join("query"), join("key"), join("value"))  # type: ignore[union-attr]
    joined.not_editable = ""
    return joined


# -------------------------------------------------------------------- check(module, x)

_ROLES = {
    "query": r"(^|[._])(w_?q|wq|q|query|queries|q_proj|to_q|w_query|lin_q|q_lin)$",
    "key": r"(^|[._])(w_?k|wk|k|key|keys|k_proj|to_k|w_key|lin_k|k_lin)$",
    "value": r"(^|[._])(w_?v|wv|v|value|values|v_proj|to_v|w_value|lin_v|v_lin)$",
    "output": r"(^|[._])(w_?o|wo|o|out|output|out_proj|o_proj|to_out|c_proj|proj|projection|w_out|dense|out_lin|fc_out)$",
}


def check_module(module: nn.Module, x: Any, *, causal: bool | None = None, mask: Any = None, scale: float | None = None,
                 heads: int | None = None, rtol: float | None = None, atol: float | None = None) -> Report:  # fmt: skip
    """Compares a module with the attention that its own parameters define: x·W, 1/√d_head, mask, softmax, heads, W_o.

    causal says whether later keys must be masked, and mask which others (default: as in the module); heads is found in
    the module by default."""
    if not isinstance(x, Tensor):
        raise AttnscopeError(f"check(module, x): x is of type {type(x).__name__}; expected a tensor.")
    problems: list[str] = []
    try:
        seen = record_call(module, (x,), {})
        a = seen[0]
    except AttnscopeError as error:
        a = None
        problems.append(str(error))
    if a is not None and len(seen) > 1:
        raise AttnscopeError(
            f"{type(module).__name__} computes {len(seen)} attentions; check one of its modules alone."
        )
    with torch.no_grad():
        out = module(x, x, x) if isinstance(module, nn.MultiheadAttention) else module(x)
    out = out[0] if isinstance(out, tuple) else out
    claim = _claim(module, x, a, heads)
    if causal is None and mask is None:
        causal = (
            a is not None
            and (a.mask.causal or bool(a.mask.window))
            or any("mask" in n for n, _ in module.named_buffers())
        )
    model = Attention(*_stages(claim), scale=scale, name=type(module).__name__, editable=claim, not_editable="")
    model.mask, model.bias = as_mask(mask, *model.shape, causal=causal)
    tensors = {} if a is None else {k: v for k, v in a.stages().items() if k != "output"}
    if a is not None and a.dropout_mask is not None:
        model.dropout, model.dropout_mask = a.dropout, a.dropout_mask
    n = model.n_sequences
    result = out.detach().double().cpu().numpy()
    tensors["output"] = result.reshape(n, -1, result.shape[-1])
    halves = dict(a.halves) if a is not None else {}
    if half := half_of(out):
        halves["output"] = half
    observed = Observed({k: v if v.dtype == bool else v.astype(np.float64) for k, v in tensors.items()}, halves)
    report = run(model.session_file(), observed, 0, 1e-4 if rtol is None else rtol, 1e-5 if atol is None else atol)
    report.notes += problems
    return report


def _claim(module: nn.Module, x: Tensor, a: Attention | None, heads: int | None) -> Editable:
    """Returns a module's projections by their names, or, if names do not tell, those found by their numbers."""
    claimed = Claim(module, heads)
    if claimed.is_whole:
        n_heads = claimed.heads or (a.n_heads if a is not None else 1)
        batch = (x if x.ndim == 3 else x[None]).detach().double().cpu().numpy()
        editable = Editable(batch, *claimed.linears[:3], output=claimed.linears[3])  # type: ignore[misc,arg-type]
        editable.settings["_heads"] = n_heads
        return editable
    if a is not None and a.editable is not None:
        a.editable.settings["_heads"] = a.n_heads
        return a.editable
    raise AttnscopeError(
        f"The projections of {type(module).__name__} were not found: none of its parameters is named query, key and value, "
        f"and {a.not_editable if a is not None else 'no attention was recorded'}."
    )


class Claim:
    """Projections and number of heads according to the names of a module's parameters."""

    def __init__(self, module: nn.Module, heads: int | None) -> None:
        self.heads = heads or next(
            (
                int(v)
                for k, v in vars(module).items()
                if re.fullmatch(r"n?_?(num_|n_)?heads?|h|nhead", k) and isinstance(v, int)
            ),
            None,
        )
        self.linears = [self._find(module, pattern) for pattern in _ROLES.values()]
        self.is_whole = all(self.linears[:3])

    @staticmethod
    def _find(module: nn.Module, pattern: str) -> Linear | None:
        def numbers(t: Tensor) -> np.ndarray:
            return t.detach().double().cpu().numpy()

        for name, m in module.named_modules():
            if isinstance(m, nn.Linear) and re.search(pattern, name.lower()):
                return Linear(numbers(m.weight).T.copy(), None if m.bias is None else numbers(m.bias))
        for name, p in module.named_parameters():
            if p.ndim == 2 and re.search(pattern, name.lower()):
                return Linear(numbers(p))
        return None


def _stages(e: Editable) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns queries, keys and values of an editable model, by head."""
    heads = int(e.settings.pop("_heads", 1))

    def split(x: np.ndarray, m: Linear) -> np.ndarray:
        rows = x @ m.weight + (0 if m.bias is None else m.bias)
        if rows.shape[-1] % heads:
            raise AttnscopeError(f"{rows.shape[-1]} columns do not divide into {heads} heads.")
        return rows.reshape(*rows.shape[:2], heads, -1).transpose(0, 2, 1, 3)

    source = e.embeddings if e.source is None else e.source
    return split(e.embeddings, e.query), split(source, e.key), split(source, e.value)
