"""The recording of torch.nn.MultiheadAttention, which projects inside one function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from .arrays import Array, copied, dtype_name
from .attention import Attention
from .comparing import TOLERANCE, compared_rows, difference, halves, say_sample
from .errors import AttnscopeError
from .products import tensors_of
from .projections import LinearCall, Search, record_output

if TYPE_CHECKING:
    from .capturing import _Recorder

_NAMES = ("query", "key", "value", "embed_dim_to_check", "num_heads", "in_proj_weight", "in_proj_bias", "bias_k", "bias_v", "add_zero_attn", "dropout_p",
          "out_proj_weight", "out_proj_bias")  # fmt: skip


def record_mha(
    recorder: _Recorder, args: tuple[Any, ...], kwargs: dict[str, Any], result: tuple[Tensor, Any], drawn: list[Array]
) -> None:
    """Records a call of F.multi_head_attention_forward and compares its output."""
    said = dict(zip(_NAMES, args)) | kwargs
    if said.get("bias_k") is not None or said.get("add_zero_attn"):
        raise AttnscopeError("it has keys of its own (add_bias_kv or add_zero_attn), which is not recorded yet.")
    recorder._require_recordable(max(len(said["query"]), len(said["key"])), *tensors_of(args, kwargs))
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
        calls.append(LinearCall(rows, w, b, out, False).remembered({}))
        stages.append(copied(out.reshape(*out.shape[:2], heads, -1).transpose(1, 2)))
    a = Attention(stages[0], stages[1], stages[2], name=recorder._module_name())
    if said.get("attn_mask") is not None or said.get("key_padding_mask") is not None:
        recorder._apply_mask(a, _mask(said, a))
    training = bool(said.get("training", True))
    recorder._apply_dropout(a, said["dropout_p"] if training else 0.0, drawn)
    output = (result[0] if batched else result[0][:, None]).transpose(0, 1)
    a.halves = halves(*(c.out for c in calls), None, output)
    weight, bias = said["out_proj_weight"], said.get("out_proj_bias")
    tolerance, rows_compared = TOLERANCE[dtype_name(x)], compared_rows(a)
    a._search = Search(calls, [], tolerance)
    whole = LinearCall(output[..., :0], weight, bias, output, False).remembered({})
    record_output(a, whole, np.arange(d), {})
    contexts = np.concatenate([a.of_rows(rows_compared, s).context for s in range(a.n_sequences)])
    joined = torch.as_tensor(contexts.transpose(0, 2, 1, 3).reshape(len(contexts), len(rows_compared), -1), dtype=weight.dtype, device=weight.device)
    off = difference(copied(F.linear(joined, weight, bias)).astype(np.float64), a.observed["output"][:, rows_compared])
    if not off <= tolerance:
        a._search, a.not_editable = None, f"what was recorded leads to another output (by {off:.1e})"
        a.notes.append(f"{a.name}: {a.not_editable}.")
    say_sample(a)
    recorder._name_tokens(a)
    recorder.recording.attentions.append(a)


def _mask(said: dict[str, Any], a: Attention) -> Tensor:
    """Returns attn_mask and key_padding_mask, in which True masks, as one additive mask."""
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
