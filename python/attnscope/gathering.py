"""One recording of the parts that ranks of a tensor-parallel model have recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import distributed

from .arrays import Array
from .attention import Attention
from .errors import AttnscopeError
from .recording import Recording
from .sharding import world


def gathered(recording: Recording) -> Recording:
    """Returns the attentions with the heads of all ranks, on every rank. Every rank must call it."""
    rank, n = world()
    if n == 1:
        return recording
    everywhere: list[Any] = [None] * n
    distributed.all_gather_object(everywhere, (recording.attentions, recording.problems))
    if len({len(attentions) for attentions, _ in everywhere}) > 1:
        counts = ", ".join(str(len(attentions)) for attentions, _ in everywhere)
        raise AttnscopeError(f"The ranks recorded different numbers of attentions ({counts}), so they are not joined.")
    joined = []
    for i, own in enumerate(recording.attentions):
        parts = {a.part[0]: a for attentions, _ in everywhere for a in [attentions[i]] if a.part[1] == own.part[1] and a.name == own.name}
        if len(parts) != own.part[1]:
            raise AttnscopeError(f"{own.name}: {len(parts)} of {own.part[1]} parts of its heads were recorded.")
        joined.append(_joined([parts[k] for k in sorted(parts)]) if own.part[1] > 1 else own)
    problems = [p for p in dict.fromkeys(p for _, problems in everywhere for p in problems) if ".gathered()" not in p]
    return Recording(joined, problems)


def _joined(parts: list[Attention]) -> Attention:
    first = parts[0]

    def cat(stages: list[Array | None], axis: int = 1) -> Array | None:
        found = [s for s in stages if s is not None]
        return np.concatenate(found, axis) if len(found) == len(parts) else None

    def shared(name: str) -> Array | None:
        """Joins keys or values; those that several ranks share are kept once."""
        stages = [getattr(a, name) for a in parts]
        kept = [s for k, s in enumerate(stages) if k == 0 or s is None or not np.array_equal(s, stages[k - 1])]
        return np.concatenate(kept, 1) if all(s is not None for s in kept) else None

    def of_all(name: str) -> dict[str, Array]:
        dicts = [getattr(a, name) for a in parts]
        heads = {k: cat([d.get(k) for d in dicts]) for k, x in dicts[0].items() if x.ndim == 4}
        return {k: x for k, x in heads.items() if x is not None} | {k: x for k, x in dicts[0].items() if x.ndim != 4}

    bias = None if first.bias is None else first.bias if len(first.bias) == 1 else cat([a.bias for a in parts], 0)
    a = Attention(
        cat([p.queries for p in parts]), shared("keys"), shared("values"), scale=first.scale, mask=first.mask, bias=bias, softcap=first.softcap,
        sinks=cat([p.sinks for p in parts], 0), mask_method=first.mask_method, dropout=first.dropout, dropout_mask=cat([p.dropout_mask for p in parts]),
        given=of_all("given"), tokens=first.tokens, key_tokens=first.key_tokens, name=first.name, layer=first.layer,
        notes=list(dict.fromkeys(note for p in parts for note in p.notes)), observed=of_all("observed"), halves=first.halves,
    )  # fmt: skip
    a.not_editable = "its heads were gathered from several ranks"
    return a
