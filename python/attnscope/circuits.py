"""Causes inside a whole model: a score by its sources, patches between two prompts, composition of heads. The program computes them, in float64."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import program
from .arrays import Array
from .errors import AttnscopeError


@dataclass(frozen=True)
class Why:
    """The sources of a score. Pairs sum to it: a part of the query times a part of the key."""

    score: float  # scaled, before a softcap
    above_row_mean: float  # the score minus the mean over all keys that the query attends to
    weight: float
    pairs: Array  # query, key, direct, direct_above_row_mean; the largest first
    sources: Array  # name, total, weight_without, read, read_weight; read is −1 unless it is a head
    alibi: float = 0.0  # added to the pairs
    alibi_above_row_mean: float = 0.0
    softcap: float | None = None  # applied after the sum
    query_token: str = ""
    key_token: str = ""

    def __repr__(self) -> str:
        largest = sorted(self.sources, key=lambda source: -abs(source.total))[:3]
        parts = ", ".join(f"{source.name} {source.total:+.3f}" for source in largest)
        return f"score {self.score:.4f}, above its row's mean {self.above_row_mean:.4f}, weight {self.weight:.4f}; without {parts or 'nothing'}"


@dataclass(frozen=True)
class Sources:
    """A logit, or the length of a row, as the sum of what parts of the model have written."""

    value: float
    parts: Array  # name, direct; the largest first. Of a context vector the source tokens
    by_token: Array  # of a logit: [layer · n_heads + head, source token], which sums to the part of the head; else empty


@dataclass(frozen=True)
class TokenPairs:
    """The largest cells of a head's circuits over the vocabulary: from, to, value."""

    ov: Array  # a source token and the token whose logit it raises
    qk: Array  # a query token and a key token, and their score


@dataclass(frozen=True)
class Patches:
    """What each patch recovers of the difference between two prompts."""

    clean: float  # logit of the answer minus that of the other token
    corrupt: float
    recovered: Array  # [layer, head], [layer, position] or [layer, 0]; by position [layer · n_heads + head, position]; 1 for all of the difference


@dataclass(frozen=True)
class Composition:
    """How much of what a head reads is written by an earlier head: [writer, reader], NaN unless the reader's layer is later."""

    heads: list[str]  # "0.0", "0.1", …
    queries: Array
    keys: Array
    values: Array


def ask_why(folder: str | Path, text: str, layer: int, head: int, query: int, key: int) -> Why:
    places = {"layer": layer, "head": head, "query": query, "key": key}
    said = _ask("why", folder, text=text, **places)
    pairs = [(p["query"], p["key"], p["direct"], p["direct_above_row_mean"]) for p in said.pop("pairs")]
    sources = [(s["name"], s["total"], s["weight_without"], s.get("read", -1), s.get("read_weight", np.nan)) for s in said.pop("sources")]
    of_pair = [("query", object), ("key", object), ("direct", float), ("direct_above_row_mean", float)]
    of_source = [("name", object), ("total", float), ("weight_without", float), ("read", int), ("read_weight", float)]
    return Why(pairs=np.array(pairs, of_pair).view(np.recarray), sources=np.array(sources, of_source).view(np.recarray), **said)


def ask_sources(folder: str | Path, text: str, places: dict[str, str | int]) -> Sources:
    said = _ask("why", folder, text=text, **places)
    parts = np.array([(p["name"], p["direct"]) for p in said["parts"]], [("name", object), ("direct", float)])
    return Sources(said["value"], parts.view(np.recarray), np.array([head["by_token"] for head in said["heads"]], float))


def token_pairs(model: Any, head: str, top: int, tokenizer: Any = None) -> TokenPairs:
    with folder_of(model, tokenizer) as folder:
        said = _ask("composition", folder, head=head, top=top)
    fields = [("from", object), ("to", object), ("value", float)]
    return TokenPairs(*(np.array([(p["from"], p["to"], p["value"]) for p in said[name]], fields).view(np.recarray) for name in ("ov", "qk")))


def patch(
    model: Any, clean: str, corrupt: str, answer: str, against: str, *,
    what: str = "head", positions: bool = False, through: str | None = None, align: Sequence[tuple[int, int]] = (), tokenizer: Any = None,
) -> Patches:  # fmt: skip
    options: dict[str, str | int] = {"clean": clean, "corrupt": corrupt, "answer": answer, "against": against, "what": what}
    options |= {} if through is None else {"through": through}
    options |= {"align": ",".join(f"{i}:{j}" for i, j in align)} if align else {}
    flags = ["--positions"] if positions else []
    if hasattr(model, "address"):  # attach()'s result
        said = _ask("patch", model.address, *flags, environment={"ATTNSCOPE_TOKEN": model.token}, **options)
    else:
        with folder_of(model, tokenizer, (clean, corrupt)) as folder:
            said = _ask("patch", folder, *flags, **options)
    return Patches(said["clean"], said["corrupt"], np.array(said["recovered"], float))


def composition(model: Any, tokenizer: Any = None) -> Composition:
    with folder_of(model, tokenizer) as folder:
        said = _ask("composition", folder)
    return Composition(said["heads"], *(np.array(said[name], float) for name in ("queries", "keys", "values")))


def _ask(command: str, folder: str | Path, *flags: str, environment: Mapping[str, str] | None = None, **options: str | int) -> dict[str, Any]:
    given = [*flags, *(f"--{name}={value}" for name, value in options.items())]
    answer: dict[str, Any] = json.loads(program.run([command, folder, *given, "--json"], environment=environment).stdout)
    return answer


@contextmanager
def folder_of(model: Any, tokenizer: Any, texts: tuple[str, ...] = (), ids: list[int] | None = None) -> Iterator[str | Path]:
    """Yields a model's file or folder; a model of transformers is written to one, which is removed afterwards. Raises
    AttnscopeError unless the program reads the texts as the same tokens."""
    if isinstance(model, (str, Path)):
        yield model
        return
    for thing, what in ((model, "a model of transformers, or the path of one"), (tokenizer, "its tokenizer")):
        if not hasattr(thing, "save_pretrained"):
            raise AttnscopeError(f"The program computes this from files: give {what}, which can be saved, not {type(thing).__name__}.")
    with tempfile.TemporaryDirectory(prefix="attnscope-") as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        for text in texts:
            said = json.loads(program.run(["tokens", folder, f"--text={text}", "--json"]).stdout)["tokens"]
            wanted = [int(i) for i in tokenizer(text)["input_ids"]] if ids is None else ids
            if [token["id"] for token in said] != wanted:
                raise AttnscopeError(f"The program reads {text!r} as other tokens than this tokenizer.")
        yield folder
