"""html(): one self-contained page with every head, for a notebook cell or a file, from the program's template."""

from __future__ import annotations

import base64
import html as _html
import json
import re
import warnings
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .arrays import Array
from .attention import Attention
from .errors import AttnscopeError
from .names import Stages
from .safetensors import write_whole

if TYPE_CHECKING:
    from typing_extensions import Unpack

_HERE = Path(__file__).parent
_TEMPLATE = _HERE / "page" if (_HERE / "page").is_dir() else _HERE.parents[1] / "assets" / "page"
_PARTS = [
    "data.js",
    "computed.js",
    "state.js",
    "paint.js",
    "grid.js",
    "map.js",
    "side.js",
    "words.js",
    "input.js",
    "start.js",
]
_LARGE_WEIGHTS = 400_000  # bytes of float32; more are stored in 16 bits
_LARGE_STAGES = 1_500_000  # bytes; queries, keys and values are included up to this in a page of many layers
_LARGE_PAGE = 5_000_000
_POOLED_CELLS = 5_000_000  # more unmasked cells than these are pooled: about 3 bytes a cell make the page
_EXACT_CELLS = 1_300_000  # of those, at most so many keep their numbers: the strongest of each row
_BLOCK = (8, 16)  # rows and columns whose other cells are pooled
_FEW_NUMBERS = 4000  # up to this, float64 is stored as float64
_SEEN_ONLY = {"weights", "dropped_weights"}  # masked positions are not stored
HEIGHT = 520


class Page:
    """A page: its HTML is `text`. A notebook shows it in an iframe; save() writes a file that any browser opens."""

    def __init__(self, text: str, picture: bytes | None = None) -> None:
        self.text, self._picture = text, picture

    def __repr__(self) -> str:
        return f"<Page: {len(self.text.encode()) / 1e6:.2f} MB>"

    def save(self, path: str | Path) -> Path:
        """Writes the page as a file and returns its path."""
        path = Path(path)
        write_whole(path, self.text.encode())
        return path

    def iframe(self, height: int = HEIGHT) -> str:
        """Returns the page in an iframe, so that neither its styles nor its key bindings leak into a notebook.

        Below the frame is a picture for untrusted notebooks, which remove frames."""
        cell = "grid-area:1/1"  # both in one grid cell: the frame, if kept, covers the picture
        instead = "<p>attnscope: run this cell again, or trust the notebook, to see the attention of every head.</p>"
        if self._picture:
            data = base64.b64encode(self._picture).decode()
            instead = f'<img alt="attention weights" style="max-width:100%;max-height:{height - 60}px" src="data:image/png;base64,{data}">{instead}'
        frame = f'<iframe srcdoc="{_html.escape(self.text)}" title="attnscope" style="{cell};width:100%;height:{height}px;border:0"></iframe>'
        return f'<div style="display:grid"><div style="{cell}">{instead}</div>{frame}</div>'

    def _repr_html_(self) -> str:
        return self.iframe()


def html(
    *what: Any,
    title: str | None = None,
    note: str = "",
    layers: Iterable[int] | None = None,
    sequence: int = 0,
    stages: str = "auto",
    log: bool = False,
    select: Sequence[int] | None = None,
    inputs: Mapping[str, Any] | None = None,
    **options: Unpack[Stages],
) -> Page:
    """Returns one self-contained page with every head of every layer, its numbers and its text.

    Takes the arguments of show(). layers selects layers; stages is "weights", "all", or "auto" (all if they are small).
    select is the [layer, head, query, key] shown first; log starts with the logarithmic scale."""
    from .showing import recording

    found = recording(*what, inputs=inputs, **options)
    found._require_some()
    chosen = list(found) if layers is None else [found[i] for i in layers]
    if not chosen:
        raise AttnscopeError("layers= is empty; name at least one layer.")
    alike = [a for a in chosen if a.shape == chosen[0].shape]
    if len(alike) < len(chosen):
        warnings.warn(
            f"{len(chosen) - len(alike)} of {len(chosen)} attentions have another shape than the first and are left out.",
            stacklevel=2,
        )
    if not 0 <= sequence < alike[0].n_sequences:
        raise AttnscopeError(f"There is no sequence {sequence}; there are {alike[0].n_sequences}.")
    if stages not in ("auto", "all", "weights"):
        raise AttnscopeError(f'stages is {stages!r}; expected "auto", "all" or "weights".')
    data = _data(alike, sequence, stages)
    note = " ".join(part for part in (note, data.pop("pooled", "")) if part)
    data |= {
        "title": title or (alike[0].name if len(alike) == 1 else "attention"),
        "note": note,
        "log": log,
        "select": None if select is None else [int(i) for i in select],
    }
    text = assemble(data)
    size = len(text.encode())
    if size > _LARGE_PAGE:
        n = max(1, int(len(alike) * _LARGE_PAGE / size))
        fewer = f"html(layers=range({n}))" if n < len(alike) else "html() of fewer tokens"
        warnings.warn(
            f"The page has {size / 1e6:.1f} MB, which a notebook keeps in its file; {fewer} makes a smaller one.",
            stacklevel=2,
        )
    return Page(text, _picture(alike[0]))


def _picture(a: Attention) -> bytes | None:
    try:
        return a.png(numbers=False, scale=1) if a.n_sequences == 1 else None
    except AttnscopeError:
        return None  # the page works without the program too


# -------------------------------------------------------------------- the template


@lru_cache(maxsize=2)
def script(computes: bool) -> str:
    """Returns a page's JavaScript; with weights alone, without the code for other stages."""
    parts = "\n".join(_file(name) for name in _PARTS if computes or name != "computed.js")
    return squeezed(_file("frame.js").replace("/*PARTS*/", parts))


def squeezed(text: str) -> str:
    """Returns JavaScript without comments and indentation. A comment must fill a line, or end it after two spaces."""
    text = re.sub(r"^\s*(//.*|/\*\*.*)$", "", text, flags=re.M)
    text = re.sub(r"\s{2,}// .*$", "", text, flags=re.M)
    return re.sub(r"^\s+", "", text, flags=re.M)


@cache
def _file(name: str) -> str:
    return (_TEMPLATE / name).read_text("utf-8")


def assemble(data: dict[str, Any]) -> str:
    """Returns the page for some data."""
    computes = any(s["id"] in ("keys", "values") for s in data["stages"])
    page = _file("page.html")
    # A token may be "</script>", and a title may be anything.
    content = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    for mark, part in (
        ("<!--TITLE-->", _html.escape(data["title"]) + " · attnscope"),
        ("/*STYLE*/", re.sub(r"^\s*/\*.*\*/\n|^\s+", "", _file("page.css"), flags=re.M)),
        ("/*SCRIPT*/", script(computes)),
        ("<!--DATA-->", content),
    ):
        before, after = page.split(mark, 1)
        page = before + part + after
    return page


# -------------------------------------------------------------------- the data


def _data(attentions: list[Attention], sequence: int, stages: str) -> dict[str, Any]:
    first = attentions[0]
    masks, mask_of, seen = _masks(attentions, sequence)
    names = _names(first, sequence)
    data: dict[str, Any] = {"layers": len(attentions), "heads": first.n_heads, **names, "masks": masks}
    if any(mask_of):
        data["mask_of"] = mask_of
    weights = _weights(attentions, sequence)
    strongest = _strongest(weights, seen)
    if strongest:
        data["pooled"] = f"Large maps are pooled: the {strongest} strongest cells of each row have their own numbers, the others the mean of their {_BLOCK[0]} × {_BLOCK[1]} block."
    found = {"weights": weights}
    if all(a.dropout_mask is not None for a in attentions):
        kept = np.stack([a.dropout_mask[sequence] / (1 - a.dropout) for a in attentions])  # type: ignore[index]
        found |= {"dropout_mask": kept, "dropped_weights": weights * kept}
    parts = [s for s in ("queries", "keys", "values") if all(getattr(a, s) is not None for a in attentions)]
    size = sum(getattr(a, s)[sequence].size * 4 for a in attentions for s in parts)
    if stages != "weights" and (stages == "all" or size <= _LARGE_STAGES) and _same_shapes(attentions, parts):
        found |= {s: np.stack([getattr(a, s)[sequence] for a in attentions]) for s in parts}
        if not any(a.given for a in attentions) and "queries" in parts and "keys" in parts:
            _say_rules(data, found, attentions)
        if len(attentions) == 1:
            if first.editable is not None:
                found["embeddings"] = first.editable.embeddings[sequence][None, None]
            if first.output is not None:
                found["output"] = first.output[sequence][None, None]
    order = ["embeddings", "queries", "keys", "values", "weights", "dropout_mask", "dropped_weights", "output", "bias"]
    large = weights.size * 4 > _LARGE_WEIGHTS
    data["stages"] = [_stage(name, found[name], seen, large, strongest) for name in order if name in found]
    return data


def _weights(attentions: list[Attention], sequence: int) -> Array:
    """Returns the weights of one sequence, [layers, heads, queries, keys]; those that were not computed before are forgotten."""
    large = len(attentions) * int(np.prod(attentions[0].shape[1:])) * 4 > _LARGE_WEIGHTS
    weights = np.empty((len(attentions), *attentions[0].shape[1:]), np.float32 if large else np.float64)
    for layer, a in zip(weights, attentions):
        is_new = "weights" not in a.__dict__
        layer[...] = a.weights[sequence]
        if is_new:
            a.forget_computed()
    return weights


def _strongest(weights: Array, seen: list[Array]) -> int:
    """Returns how many cells of each row keep their numbers in a page that would be too large; 0 for all of them."""
    n_layers, n_heads, n_rows, _ = weights.shape
    if n_heads * sum(int(s.sum()) for s in seen) <= _POOLED_CELLS or not np.isfinite(weights).all():
        return 0
    return max(4, min(32, _EXACT_CELLS // (n_layers * n_heads * n_rows)))


def _pooled(a: Array, seen: Array, strongest: int) -> tuple[Array, Array]:
    """Returns a layer's maps with the mean of each block, but for the strongest cells of each row; and where those are."""
    exact = np.zeros(a.shape, bool)
    np.put_along_axis(exact, np.argpartition(a, -strongest, -1)[..., -strongest:], True, -1)
    rest = seen & ~exact
    sums, counts = np.where(rest, a, 0), rest.astype(np.float32)
    for axis, size in zip((1, 2), _BLOCK):
        starts = np.arange(0, a.shape[axis], size)
        sums, counts = np.add.reduceat(sums, starts, axis), np.add.reduceat(counts, starts, axis)
    means = sums / np.maximum(counts, 1)
    means = means.repeat(_BLOCK[0], 1).repeat(_BLOCK[1], 2)[:, : a.shape[1], : a.shape[2]]
    return np.where(exact, a, means), exact


def _same_shapes(attentions: list[Attention], parts: list[str]) -> bool:
    return all(len({getattr(a, s).shape for a in attentions}) == 1 for s in parts)


def _say_rules(data: dict[str, Any], found: dict[str, Array], attentions: list[Attention]) -> None:
    data["scale"] = [a.factor for a in attentions]
    if any(a.softcap for a in attentions):
        data["softcap"] = [a.softcap or 0 for a in attentions]
    if any(a.sinks is not None for a in attentions):
        data["sinks"] = [None if a.sinks is None else a.sinks.astype(float).tolist() for a in attentions]
    if any(a.bias is not None for a in attentions):
        heads = max(1 if a.bias is None else a.bias.shape[0] for a in attentions)
        zero = np.zeros((heads, *attentions[0].shape[2:]))
        found["bias"] = np.stack(
            [zero if a.bias is None else np.broadcast_to(a.bias, zero.shape) for a in attentions]
        ).astype(np.float32)


def _names(a: Attention, sequence: int) -> dict[str, Any]:
    def of(tokens: Any, n: int) -> list[str]:
        if tokens is None:
            return [str(i) for i in range(n)]
        return [str(t) for t in (tokens[sequence] if tokens and isinstance(tokens[0], list) else tokens)]

    names = {"tokens": of(a.tokens, a.n_queries)}
    if a.key_tokens is not None or a.n_keys != a.n_queries:
        names["keys"] = of(a.key_tokens, a.n_keys)
    return names


def _masks(attentions: list[Attention], sequence: int) -> tuple[list[Any], list[int], list[Array]]:
    """Returns the distinct masks, the index of each layer's mask, and each layer's unmasked positions."""
    masks: list[Any] = []
    mask_of, all_seen = [], []
    for a in attentions:
        seen = a.visible[sequence]
        if a.given and a.mask.is_full():
            seen = (a.weights[sequence] != 0).any(0) if (a.weights[sequence] == 0).any() else seen
            causal = np.tril(np.ones_like(seen), seen.shape[1] - seen.shape[0])
            seen = causal if not seen[~causal].any() and seen[causal].all() else np.ones_like(seen)
        said = _mask(a, seen)
        if said not in masks:
            masks.append(said)
        mask_of.append(masks.index(said))
        all_seen.append(seen)
    return masks, mask_of, all_seen


def _mask(a: Attention, seen: Array) -> Any:
    n_queries, n_keys = seen.shape
    distance = np.arange(n_queries)[:, None] + n_keys - n_queries - np.arange(n_keys)[None]
    left, right = (a.mask.window or (-1, -1)) if not a.given else (-1, -1)
    for rule in (
        {"left": -1, "right": -1},
        {"left": -1, "right": 0},
        {"left": left, "right": 0 if a.mask.causal else right},
    ):
        if np.array_equal(
            seen,
            ((distance <= rule["left"]) | (rule["left"] < 0)) & ((-distance <= rule["right"]) | (rule["right"] < 0)),
        ):
            return rule
    return packed(np.packbits(seen, bitorder="little"))


def _stage(name: str, a: Array, seen: list[Array], is_large: bool, strongest: int) -> dict[str, Any]:
    """Returns one stage as JSON: [layers, heads, rows, columns], weights only where unmasked."""
    only_seen = name in _SEEN_ONLY and not all(s.all() for s in seen)
    stage: dict[str, Any] = {"id": name, "shape": list(a.shape), "seen": only_seen}
    store = (
        "q16"
        if is_large and name in _SEEN_ONLY and np.isfinite(a).all()
        else "f64"
        if a.dtype == np.float64 and a.size <= _FEW_NUMBERS
        else "f32"
    )
    if store == "q16":
        steps, largest, loss = np.empty(a.shape, "<u2"), np.empty((*a.shape[:3], 1), "<f4"), 0.0
        for i, (layer, s) in enumerate(zip(a, seen)):
            layer = np.where(s, layer, 0) if only_seen else layer
            layer, exact = _pooled(layer, s, strongest) if strongest else (layer, np.ones(1, bool))
            largest[i] = layer.max(-1, keepdims=True)
            most = largest[i].astype(np.float64)
            step = np.where(most > 0, most, 1) / 65535
            steps[i] = np.minimum(np.rint(layer / step), 65535)
            loss = max(loss, float((np.abs(steps[i] * step - layer) * exact).max()))
        stage |= {"most": packed(largest), "loss": loss}
        a = steps
    flat = np.concatenate([layer[:, s].reshape(-1) for layer, s in zip(a, seen)]) if only_seen else a
    stage |= {
        "store": store,
        "data": packed(np.ascontiguousarray(flat).astype({"f64": "<f8", "f32": "<f4", "q16": "<u2"}[store])),
    }
    return stage


def packed(a: Array) -> str:
    """Returns base64 of raw deflate over byte planes: bytes of equal significance together compress better."""
    planes = np.ascontiguousarray(a).reshape(-1).view(np.uint8).reshape(a.size, a.itemsize).T.tobytes()
    squeeze = zlib.compressobj(9 if len(planes) < _POOLED_CELLS else 6, wbits=-15)
    return base64.b64encode(squeeze.compress(planes) + squeeze.flush()).decode()
