"""Heads over many texts: measures as sums and counts, so that ranks and scans of several machines add up exactly, and examples.

A sum is a whole multiple of UNIT: what a text adds is rounded to it, so the order of the texts does not matter. The folder of
a scan is that of `attnscope scan`."""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import program
from .arrays import Array
from .errors import AttnscopeError

if TYPE_CHECKING:
    from torch import Tensor

MEASURES = ("previous_token", "first_token", "itself", "same_token", "induction", "entropy_bits", "distance")
UNIT = 1 / (1 << 24)
EXAMPLES, ROW_WEIGHTS, LEAST_WEIGHT, SKIPPED, BETWEEN_WRITES = 10, 8, 0.005, 100, 20  # as in core/scan
Rank = tuple[float, int, int]


@dataclass
class Scan:
    """The heads of a model over texts. Indices of heads are [layer, head]."""

    model: str
    length: int  # tokens that were read of a text
    sums: list[list[int]]  # [layer · n_heads + head][measure], in UNIT
    n_layers: int
    identity: dict[str, Any]  # of the model: bytes, begin
    counts: list[int] = field(default_factory=lambda: [0] * len(MEASURES))  # of queries
    n_sequences: int = 0
    n_tokens: int = 0
    skipped: list[list[Any]] = field(default_factory=list)  # line from 1, why
    _sources: list[dict[str, Any]] = field(default_factory=list)
    _examples: list[list[dict[str, Any]]] = field(default_factory=list)

    def __repr__(self) -> str:
        skipped = f", {len(self.skipped)} skipped" if self.skipped else ""
        return f"{len(self.sums)} heads of {self.model} over {self.n_sequences} texts{skipped}"

    @property
    def measures(self) -> Array:
        """[layer, head] means: weights on the previous token, the first one, the query itself, earlier copies of its token and
        the tokens after those (induction); entropy in bits; distance of query and key in tokens. NaN over no queries."""
        means = np.full((self.n_layers, len(self.sums) // self.n_layers), np.nan, [(name, float) for name in MEASURES])
        for k, name in enumerate(MEASURES):
            if self.counts[k]:
                means[name] = np.reshape([sums[k] * UNIT / self.counts[k] for sums in self.sums], means.shape)
        return means.view(np.recarray)

    def examples(self, layer: int, head: int) -> list[dict[str, Any]]:
        """The texts with the largest weight on another position, the largest first: line, strength, text, tokens, and the
        pattern [query, key] as far as its weights are among the eight largest of a row and at least 0.005."""
        found = []
        for e in self._examples[layer * (len(self.sums) // self.n_layers) + head]:
            pattern = np.zeros((e["seq_len"], e["seq_len"]))
            pattern.flat[e["attention_indices"]] = e["attention_values"]
            found.append({"line": e["sequence_id"], "strength": e["max_activation"], "text": e["text"], "tokens": e["tokens"], "pattern": pattern})
        return found

    def save(self, folder: str | Path) -> None:
        """Writes a new folder that the window, `attnscope scan --merge` and HeadVis open. The program writes it."""
        with tempfile.TemporaryDirectory(prefix="attnscope-") as temporary:
            rough, n_heads = Path(temporary), len(self.sums) // self.n_layers
            (rough / "heads").mkdir()
            own = {"version": 1, **self.identity, "sequences": self.n_sequences, "tokens": self.n_tokens, "length": self.length}
            own |= {"sources": self._sources, "counts": self.counts, "sums": self.sums, "n_skipped": len(self.skipped)}
            own["skipped"] = [{"source": 0, "line": line, "why": why} for line, why in self.skipped[:SKIPPED]]
            config = {"model_name": self.model, "n_layers": self.n_layers, "n_heads": n_heads, "attnscope": own}
            (rough / "config.json").write_text(json.dumps(config), "utf-8")
            for at, sequences in enumerate(self._examples):
                (rough / "heads" / f"L{at // n_heads}H{at % n_heads}.json").write_text(json.dumps({"sequences": sequences}), "utf-8")
            program.run(["scan", "--merge", rough, "--out", folder])

    def _add(self, other: Scan) -> None:
        """Adds what another rank has read of the same texts."""
        self.n_sequences, self.n_tokens = self.n_sequences + other.n_sequences, self.n_tokens + other.n_tokens
        self.counts = [a + b for a, b in zip(self.counts, other.counts)]
        self.sums = [[a + b for a, b in zip(mine, theirs)] for mine, theirs in zip(self.sums, other.sums)]
        self.skipped = sorted(self.skipped + other.skipped)
        self._examples = [sorted(mine + theirs, key=_rank)[:EXAMPLES] for mine, theirs in zip(self._examples, other._examples)]


def _rank(example: dict[str, Any]) -> Rank:
    return (-example["max_activation"], example["source"], example["sequence_id"])


def load(folder: str | Path) -> Scan:
    """Reads the folder of a scan."""
    config = json.loads((Path(folder) / "config.json").read_text("utf-8"))
    own, n_heads = config["attnscope"], config["n_heads"]
    heads = [Path(folder) / "heads" / f"L{at // n_heads}H{at % n_heads}.json" for at in range(len(own["sums"]))]
    return Scan(
        config["model_name"], own["length"], own["sums"], config["n_layers"], {"bytes": own["bytes"], "begin": own["begin"]}, own["counts"],
        own["sequences"], own["tokens"], [[s["line"], s["why"]] for s in own["skipped"]], own["sources"],
        [json.loads(path.read_text("utf-8"))["sequences"] for path in heads],
    )  # fmt: skip


def scan(
    model: Any, texts: Iterable[str], tokenizer: Any, length: int | None, folder: str | Path | None, progress: Callable[[int, int], None] | None,
    encode: Any = None, decode: Any = None, logits: Any = None,
) -> Scan:  # fmt: skip
    lines = [str(text) for text in texts]
    if isinstance(model, (str, Path)):
        return _scan_file(model, lines, length, folder)
    from .reading import Reader  # needs PyTorch

    return Reader(model, tokenizer, encode, decode, logits).scan(lines, length, None if folder is None else Path(folder), progress)


def _scan_file(model: str | Path, lines: Sequence[str], length: int | None, folder: str | Path | None) -> Scan:
    with tempfile.TemporaryDirectory(prefix="attnscope-") as temporary:
        texts, out = Path(temporary) / "texts.jsonl", Path(folder or Path(temporary) / "scan")
        texts.write_text("".join(json.dumps({"text": line}) + "\n" for line in lines), "utf-8")
        program.run(["scan", model, "--texts", texts, "--out", out, "--resume", *(["--length", str(length)] if length else [])])
        return load(out)


class Kept:
    """The folder of a scan and, while it is scanned, a file FOLDER.part with what there is so far."""

    def __init__(self, folder: Path, wanted: Scan) -> None:
        self.folder, self.wanted, self.part, self.written = folder, wanted, folder.with_name(folder.name + ".part"), time.monotonic()

    def begun(self) -> tuple[int, Scan]:
        """Returns how many lines were read, and what was found."""
        n, found = 0, self.wanted
        if (self.folder / "config.json").exists():
            found = load(self.folder)
            n = found._sources[0]["lines"]
        elif self.part.exists():
            n, fields = json.loads(self.part.read_text("utf-8"))
            found = Scan(**fields)
        for name in ("model", "length", "identity", "_sources"):
            if getattr(found, name) != getattr(self.wanted, name):
                raise AttnscopeError(f"{self.folder}: expected another folder, as this one has a scan of another model, length or texts.")
        return n, found

    def is_due(self) -> bool:
        return time.monotonic() - self.written > BETWEEN_WRITES

    def write(self, n_lines: int, found: Scan) -> None:
        rough = self.part.with_name(self.part.name + "-new")
        rough.write_text(json.dumps([n_lines, asdict(found)]), "utf-8")
        rough.replace(self.part)
        self.written = time.monotonic()

    def end(self, found: Scan) -> None:
        if not (self.folder / "config.json").exists():
            found.save(self.folder)
        self.part.unlink(missing_ok=True)


def source_of(lines: Sequence[str]) -> dict[str, Any]:
    whole = "\n".join(lines).encode(errors="surrogatepass")
    return {"name": "texts", "bytes": len(whole), "begin": hashlib.sha256(whole).hexdigest()[:16], "lines": len(lines)}


def sums_of(w: Tensor, ids: Tensor) -> tuple[Tensor, list[int]]:
    """Returns the sums of the measures over the queries of a text, H × 7 in float64, and over how many queries each is, from
    weights H × T × T. Source of the fourth and fifth: Olsson et al. 2022."""
    import torch

    w, n = w.double(), len(ids)
    at = torch.arange(n, device=ids.device)
    before = at[:, None] > at
    same = (ids[:, None] == ids) & before
    after = torch.zeros_like(same)
    after[:, 1:] = same[:, :-1]
    after &= before
    rows, again = torch.ones(n, dtype=torch.bool, device=ids.device), same.any(1)
    later = at > 0
    kinds = ((at[:, None] == at + 1, later), ((at == 0).expand(n, n), later), (at[:, None] == at, rows), (same, again), (after, again))
    sums = [(w * keys).sum(-1)[:, queries].sum(-1) for keys, queries in kinds]
    sums.append(-(w * torch.where(w > 0, w, 1.0).log2()).sum(-1).sum(-1))
    sums.append((w * (at[:, None] - at).abs()).sum(-1).sum(-1))
    return torch.stack(sums, -1), [int(queries.sum()) for _, queries in kinds] + [n, n]
