"""Reading many texts with a model that stays in PyTorch; each rank of a job reads its part of them."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .asking import Questions
from .errors import AttnscopeError
from .scanning import EXAMPLES, LEAST_WEIGHT, ROW_WEIGHTS, UNIT, Kept, Scan, _rank, source_of, sums_of
from .serving import Answers, engine_of
from .sharding import world
from .wire import Frame

USUAL_LENGTH, AT_ONCE = 512, 4  # texts that a rank reads before it asks the others


class Reader(Questions):
    """A model, or one that is attached, and its tokenizer."""

    def __init__(self, model: Any, tokenizer: Any, encode: Any, decode: Any, logits: Any) -> None:
        if isinstance(model, Questions):
            self.engine, self.tokenizer, self.busy = model.engine, model.tokenizer, model.busy
            return
        if encode is not None:
            from .own_models import Functions

            tokenizer = Functions(encode, decode)
        self.engine, self.tokenizer, self.busy = engine_of(model, logits), tokenizer, threading.Lock()

    def scan(self, lines: Sequence[str], length: int | None, folder: Path | None, progress: Callable[[int, int], None] | None) -> Scan:
        sites, answers = self.engine.sites, Answers(self.engine, self.tokenizer)
        n_heads = {site.n_heads for site in sites}
        if len(n_heads) != 1:
            raise AttnscopeError(f"A scan needs as many heads in every layer; this model has {', '.join(map(str, sorted(n_heads)))}.")
        most = answers._n_context()
        length = min(USUAL_LENGTH, most) if length is None else length
        if not 1 <= length <= most:
            raise AttnscopeError(f"length: expected 1 to {most} tokens, as many as the model takes, got {length}.")
        rank, n_ranks = world()
        shares = n_ranks == 1 or self.engine.ranks.n > 1 or bool(self.engine.ranks.fsdp)  # of a sharded model all ranks read all texts
        n = len(sites) * n_heads.pop()
        result = Scan(_name(self.engine.original), length, [[0] * 7 for _ in range(n)], len(sites), _identity(self.engine.original),
                      _sources=[source_of(lines)], _examples=[[] for _ in range(n)])  # fmt: skip
        kept, begin = Kept(folder, result) if folder else None, 0
        if kept:
            begin, earlier = _of_first_rank(kept.begun)
            result = earlier if shares or rank == 0 else result
        for i in range(begin, len(lines)):
            if lines[i].strip() and (shares or i % n_ranks == rank):
                self._read(result, answers, i + 1, lines[i])
            if progress is not None:
                progress(i + 1, len(lines))
            if kept and (i + 1) % (AT_ONCE * n_ranks) == 0 and _gathered(kept.is_due())[0]:
                so_far = _sum(result, shares)
                if rank == 0:
                    kept.write(i + 1, so_far)
        result = _sum(result, shares)
        if not result.n_sequences:
            raise AttnscopeError("No text could be read" + (f": line {result.skipped[0][0]}: {result.skipped[0][1]}" if result.skipped else "."))
        if kept:
            _of_first_rank(lambda: kept.end(result))
        return result

    def _read(self, result: Scan, answers: Answers, line: int, text: str) -> None:
        try:
            header, found = answers.tokens(Frame({"text": text}))
            ids = torch.tensor(found["ids"][: result.length], device=self.engine.device)
            if not len(ids):
                raise AttnscopeError("it has no tokens")
        except Exception as error:  # of a tokenizer, whatever it raises
            result.skipped.append([line, str(error)])
            return
        with self.busy:
            layers = self.engine.run(ids).layers
        _, spelled = answers._told(ids.tolist())
        tokens = [b.decode(errors="replace") for b in spelled]
        shown = text.encode()[: header["ends"][len(ids) - 1]].decode(errors="ignore")
        at = 0
        for layer in layers:
            w = layer.weights().float()
            sums, counts = sums_of(w, ids)
            strengths = _strengths(w)
            if not torch.isfinite(sums).all():
                raise AttnscopeError(f"line {line}: weights of layer {at // len(w)} are not finite.")
            for head, added in enumerate((sums / UNIT).round().tolist()):
                result.sums[at] = [a + int(b) for a, b in zip(result.sums[at], added)]
                kept = result._examples[at]
                example = {"sequence_id": line, "source": 0, "max_activation": strengths[head], "seq_len": len(ids), "text": shown, "tokens": tokens}
                if len(kept) < EXAMPLES or _rank(example) < _rank(kept[-1]):
                    kept.append(example | _large(w[head]))
                    kept.sort(key=_rank)
                    del kept[EXAMPLES:]
                at += 1
        result.counts = [a + b for a, b in zip(result.counts, counts)]
        result.n_sequences, result.n_tokens = result.n_sequences + 1, result.n_tokens + len(ids)


def _gathered(value: Any) -> list[Any]:
    """Returns the values of all ranks."""
    parts: list[Any] = [value] * world()[1]
    if len(parts) > 1:
        torch.distributed.all_gather_object(parts, value)
    return parts


def _of_first_rank(work: Callable[[], Any]) -> Any:
    """Returns what rank 0 gets, or raises its error on all ranks."""
    found: Any = None
    if world()[0] == 0:
        try:
            found = work()
        except Exception as error:
            found = error
    found = _gathered(found)[0]
    if isinstance(found, Exception):
        raise found
    return found


def _sum(result: Scan, shares: bool) -> Scan:
    """Returns what all ranks have read, unless each reads everything."""
    if shares:
        return result
    parts: list[Scan] = _gathered(result)
    for part in parts[1:]:
        parts[0]._add(part)
    return parts[0]


def _strengths(w: Tensor) -> list[float]:
    """Returns the largest weight of each head on another position, without query and key 0."""
    if w.shape[-1] < 2:
        return [0.0] * len(w)
    rest = w[:, 1:, 1:].clone()
    rest.diagonal(dim1=-2, dim2=-1).zero_()
    return [float(x) for x in rest.flatten(1).max(-1).values]


def _large(w: Tensor) -> dict[str, Any]:
    n = w.shape[-1]
    values, keys = torch.sort(w, dim=-1, descending=True, stable=True)
    values, cells = values[:, :ROW_WEIGHTS], (torch.arange(n, device=w.device)[:, None] * n + keys)[:, :ROW_WEIGHTS]
    kept = values >= LEAST_WEIGHT
    cells, order = cells[kept].sort()
    return {"interval": 1, "attention_indices": cells.tolist(), "attention_values": [round(v, 4) for v in values[kept][order].double().tolist()]}


def _name(model: Any) -> str:
    name = str(getattr(getattr(model, "config", None), "_name_or_path", "") or type(model).__name__)
    return name.rstrip("/").rsplit("/", 1)[-1]


def _identity(model: Any) -> dict[str, Any]:
    """Returns the number of parameters and a hash of a few numbers of each."""
    parameters = [p for p in model.parameters() if not p.is_meta]
    few = [p.detach().reshape(-1)[:16].float().cpu().numpy().tobytes() for p in parameters if type(p.data) is Tensor]
    return {"bytes": sum(p.numel() for p in parameters), "begin": hashlib.sha256(b"".join(few)).hexdigest()[:16]}
