"""One attention: its inputs, its settings and every stage, as NumPy arrays."""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np

from . import program, safetensors
from .arrays import Array, shape_text
from .errors import AttnscopeError
from .masks import Mask
from .names import renamed

if TYPE_CHECKING:
    from .checking import Report
    from .page import Page
    from .showing import Window

_LARGE_NEGATIVE = -1e9
_INLINE = 20_000  # numbers that a session lists itself; larger tensors go into a file next to it
_MAX_SVG_CELLS = 20_000
_COMPUTED = ("scores", "masked_scores", "weights", "context")  # on demand


@dataclass
class Linear:
    """A learned matrix, used as x·weight + bias."""

    weight: Array  # d_in × d_out
    bias: Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.weight.shape


@dataclass
class Editable:
    """Inputs and parameters that let the window recompute and edit an attention from its embeddings on."""

    embeddings: Array  # [sequences, tokens, d_in]
    query: Linear
    key: Linear
    value: Linear
    output: Linear | None = None
    source: Array | None = None  # [sequences, keys, d_in]: encoder states of cross-attention (key_value_states)
    settings: dict[str, Any] = field(default_factory=dict)  # further keys of a session: "positions", "normalise"

    def linears(self) -> dict[str, Linear]:
        named = {"query": self.query, "key": self.key, "value": self.value, "output": self.output}
        return {name: m for name, m in named.items() if m is not None}


T = TypeVar("T")


class SearchedFor(Generic[T]):
    """A field of an attention that is looked for when it is first read."""

    def __init__(self, default: T) -> None:
        self.default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = f"_{name}"

    @overload
    def __get__(self, a: None, owner: type) -> T: ...
    @overload
    def __get__(self, a: Attention, owner: type) -> T: ...
    def __get__(self, a: Attention | None, owner: type) -> T:
        if a is None:
            return self.default
        a.look_for_projections()
        found: T = a.__dict__[self.name]
        return found

    def __set__(self, a: Attention, value: T) -> None:
        a.__dict__[self.name] = value


class Checked:
    """Numbers that can be compared with a reference: an attention, or several."""

    @renamed(other="reference")
    def check(
        self,
        reference: Any,
        *,
        rtol: float | None = None,
        atol: float | None = None,
        causal: bool | None = None,
        mask: Any = None,
        scale: float | None = None,
    ) -> Report:
        """Compares these numbers with those of a reference; see attnscope.check()."""
        from .checking import check

        return check(self, reference, rtol=rtol, atol=atol, causal=causal, mask=mask, scale=scale)


@dataclass(eq=False)
class Attention(Checked):
    """One attention: queries, keys and values of every head, or only its weights.

    Stages of heads are [sequences, heads, rows, columns]; keys and values may have fewer (KV) heads."""

    queries: Array | None = None
    keys: Array | None = None
    values: Array | None = None
    scale: float | None = None  # multiplies the scores; None: 1/√d_head
    mask: Mask = field(default_factory=Mask)
    bias: Array | None = None  # [heads or 1, queries, keys], added to the scaled scores
    softcap: float | None = None
    sinks: Array | None = None  # [heads]: attention sink, one logit in each softmax
    mask_method: str = "negative_infinity"
    dropout: float = 0.0
    dropout_mask: Array | None = None  # bool [sequences, heads, queries, keys]: True is kept
    given: dict[str, Array] = field(default_factory=dict)  # stages that are not computed: "weights" or "masked_scores"
    tokens: list[str] | list[list[str]] | None = None
    key_tokens: list[str] | list[list[str]] | None = None
    name: str = "attention"
    layer: int = 0
    notes: list[str] = field(default_factory=list)
    observed: dict[str, Array] = field(
        default_factory=dict
    )  # computed by the module itself: "weights", "contexts", "output"
    halves: dict[str, str] = field(default_factory=dict)  # stages that were float16 or bfloat16, and which
    recorded_gradients: dict[str, Array] = field(default_factory=dict)  # "d_queries" …, by a backward after the capture
    part: tuple[int, int] = (0, 1)  # of the model's heads, which of how many parts that ranks share
    editable: SearchedFor[Editable | None] = SearchedFor(None)
    not_editable: SearchedFor[str] = SearchedFor("its projections are not known")
    _search: Callable[[Attention], None] | None = field(default=None, repr=False)
    _real: Any = field(default=np.float64, repr=False)  # dtype of the computed stages
    _file: Path | None = field(default=None, repr=False)
    _lock: Any = field(default_factory=threading.RLock, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Returns what a copy or another process gets: the numbers, without the temporary session; changed parameters stay behind."""
        self.look_for_projections()
        state = {k: v for k, v in self.__dict__.items() if k not in ("_file", "_lock", *_COMPUTED)}
        if self.editable is not None and (changed := self._changed()):
            state |= {"_editable": None, "_not_editable": changed}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state | {"_file": None, "_lock": threading.RLock()}

    # ---------------------------------------------------------------- shapes

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Numbers of sequences, heads, queries and keys."""
        if self.queries is not None and self.keys is not None:
            return (self.queries.shape[0], self.queries.shape[1], self.queries.shape[2], self.keys.shape[2])
        return next(iter(self.given.values())).shape

    @property
    def n_sequences(self) -> int:
        return self.shape[0]

    @property
    def n_heads(self) -> int:
        return self.shape[1]

    @property
    def heads(self) -> range:
        """The model's numbers of these heads: not from 0 on where ranks share them."""
        first = self.part[0] * self.n_heads
        return range(first, first + self.n_heads)

    @property
    def n_queries(self) -> int:
        return self.shape[2]

    @property
    def n_keys(self) -> int:
        return self.shape[3]

    @property
    def n_kv_heads(self) -> int:
        stage = self.keys if self.keys is not None else self.values
        return self.n_heads if stage is None else stage.shape[1]

    @property
    def factor(self) -> float:
        """Factor of the scores."""
        if self.scale is not None:
            return self.scale
        return 1.0 if self.queries is None else self.queries.shape[-1] ** -0.5

    @property
    def visible(self) -> Array:
        """bool [sequences, queries, keys]: True where unmasked."""
        return self.mask.visible(self.n_queries, self.n_keys, self.n_sequences)

    # ---------------------------------------------------------------- stages

    def look_for_projections(self) -> None:
        """Looks for the projections once: when editing asks for them, not while the model computes."""
        with self._lock:
            search, self._search = self._search, None
            if search is not None:
                search(self)

    @cached_property
    def scores(self) -> Array:
        """Q·Kᵀ, in float64."""
        if self.queries is None or self.keys is None:
            raise AttnscopeError(f"{self.name} has weights alone; its scores are not known.")
        return self.queries.astype(self._real, copy=False) @ self._each_head(self.keys).swapaxes(-1, -2)

    @cached_property
    def masked_scores(self) -> Array:
        """Scores after scale, soft-capping, bias and mask, as they enter the softmax."""
        if "masked_scores" in self.given:
            return self.given["masked_scores"].astype(self._real)
        s = self.scores * self.factor
        if self.softcap:
            s = self.softcap * np.tanh(s / self.softcap)
        if self.bias is not None:
            s = s + self.bias
        if self.mask_method == "negative_infinity":
            return np.where(self.visible[:, None], s, -np.inf)
        if self.mask_method == "large_negative":
            return np.where(self.visible[:, None], s, _LARGE_NEGATIVE)
        return s

    @cached_property
    def weights(self) -> Array:
        """Attention weights before dropout: each row sums to 1, minus the weight of a sink."""
        if "weights" in self.given:
            return self.given["weights"]
        s = self.masked_scores
        most = s.max(-1, keepdims=True)
        if self.sinks is not None:
            sinks = self.sinks.astype(self._real).reshape(1, -1, 1, 1)
            most = np.maximum(most, sinks)
        with np.errstate(invalid="ignore"):
            e = np.exp(s - most)
            total = e.sum(-1, keepdims=True)
            if self.sinks is not None:
                total = total + np.exp(sinks - most)
            w = e / total
            if self.mask_method in ("renormalise", "zero_after_softmax"):
                w = np.where(self.visible[:, None], w, 0)
            if self.mask_method == "renormalise":
                w = w / w.sum(-1, keepdims=True)
        if self.mask.empty_rows == "zeros":
            w = np.where(np.asarray(self.visible.any(-1))[:, None, :, None], w, 0)
        return w

    @property
    def weights_after_dropout(self) -> Array:
        if self.dropout_mask is None:
            return self.weights
        kept = 1 / (1 - self.dropout) if self.dropout < 1 else 0.0
        return np.where(self.dropout_mask, self.weights * kept, 0)

    @cached_property
    def context(self) -> Array:
        """Context vectors of each head: weights after dropout · V."""
        if self.values is None:
            raise AttnscopeError(f"{self.name} has no values, so it has no context vectors.")
        return self.weights_after_dropout @ self._each_head(self.values)

    @property
    def output(self) -> Array | None:
        """Output of the output projection, [sequences, queries, d_out]; None where it was not recorded."""
        return self.observed.get("output")

    def _each_head(self, stage: Array) -> Array:
        stage = stage.astype(self._real, copy=False)
        return stage if stage.shape[1] == self.n_heads else np.repeat(stage, self.n_heads // stage.shape[1], axis=1)

    def only(self, head: int) -> Attention:
        """Returns one head, by its number in the model, as a separate attention without its projections."""
        if head not in self.heads:
            here = f"there are {self.n_heads}" if self.part[1] == 1 else f"this rank has {self.heads[0]} to {self.heads[-1]}"
            raise AttnscopeError(f"There is no head {head}; {here}.")
        number, head = head, head - self.heads[0]
        one = slice(head, head + 1)

        def group(stage: Array | None) -> Array | None:
            at = None if stage is None else head * stage.shape[1] // self.n_heads
            return None if stage is None or at is None else stage[:, at : at + 1]

        bias = self.bias if self.bias is None or len(self.bias) == 1 else self.bias[one]
        return Attention(
            None if self.queries is None else self.queries[:, one],
            group(self.keys),
            group(self.values),
            scale=self.scale,
            mask=self.mask,
            bias=bias,
            softcap=self.softcap,
            sinks=None if self.sinks is None else self.sinks[one],
            mask_method=self.mask_method,
            dropout=self.dropout,
            dropout_mask=None if self.dropout_mask is None else self.dropout_mask[:, one],
            given={stage: a[:, one] for stage, a in self.given.items()},
            tokens=self.tokens,
            key_tokens=self.key_tokens,
            name=f"{self.name}, head {number}",
            layer=self.layer,
            observed={name: a[:, one] for name, a in self.observed.items() if a.ndim == 4},
            halves=self.halves,
            not_editable="it is one head of several",
        )

    def of_rows(self, rows: Array, sequence: int = 0, real: Any = np.float64) -> Attention:
        """Returns some queries of one sequence as a separate attention, whose stages are computed in a dtype."""
        one = slice(sequence, sequence + 1)
        return Attention(
            None if self.queries is None else self.queries[one][:, :, rows],
            None if self.keys is None else self.keys[one],
            None if self.values is None else self.values[one],
            scale=self.scale,
            mask=Mask(cells=self.visible[sequence][rows], empty_rows=self.mask.empty_rows),
            bias=None if self.bias is None else self.bias[:, rows],
            softcap=self.softcap,
            sinks=self.sinks,
            mask_method=self.mask_method,
            dropout=self.dropout,
            dropout_mask=None if self.dropout_mask is None else self.dropout_mask[one][:, :, rows],
            given={stage: a[one][:, :, rows] for stage, a in self.given.items()},
            name=self.name,
            _real=real,
        )

    def forget_computed(self) -> None:
        """Frees the computed stages; they are recomputed on demand."""
        for name in _COMPUTED:
            self.__dict__.pop(name, None)

    def __repr__(self) -> str:
        n, heads, n_queries, n_keys = self.shape
        size = f"{n_queries} queries × {n_keys} keys" if n_queries != n_keys else f"{n_queries} tokens"
        shared = f" ({self.n_kv_heads} KV heads)" if self.n_kv_heads != heads else ""
        batch = f"{n} sequences, " if n > 1 else ""
        of = f" {self.heads[0]} to {self.heads[-1]} of {heads * self.part[1]}" if self.part[1] > 1 else ""
        form = "" if self._search is not None else ", editable" if self.editable else ", given stages"
        return f"<Attention {self.name!r}: {batch}{heads} heads{of}{shared}, {size}, {self.mask}{form}>"

    # ---------------------------------------------------------------- files

    def session(self, tensors: dict[str, Array], file: str, prefix: str = "") -> dict[str, Any]:
        """Returns the session as JSON values; puts large arrays into tensors, to be written to `file` next to it."""

        def place(key: str, a: Array) -> Any:
            tensors[prefix + key] = np.ascontiguousarray(a)
            return {"file": file, "tensor": prefix + key}

        said: dict[str, Any] = {"attnscope": 1}
        if self.tokens is not None:
            said["tokens"] = self._names(self.tokens, self.n_queries)
        if self.key_tokens is not None:
            said["key_tokens"] = self._names(self.key_tokens, self.n_keys)
        given: dict[str, Any] = {}
        if self.editable and not self.given and self._is_unchanged():
            self._say_editable(said, place, tensors, file, prefix)
        else:
            given = self._given(place)
        said["n_heads"] = self.n_heads
        if self.n_kv_heads != self.n_heads:
            said["n_kv_heads"] = self.n_kv_heads
        if not self.given:
            self._say_rules(said, given, place)
        if self.dropout_mask is not None:
            said["dropout"] = {"rate": self.dropout, "training": True}
            if self.dropout_mask.size <= _INLINE:
                kept = self.dropout_mask.astype(int).tolist()
                said["dropout"]["mask"] = kept if self.n_sequences > 1 else kept[0]
            else:
                given["dropout_mask"] = place("dropout_mask", self.dropout_mask / np.float64(1 - self.dropout))
        if given:
            said["given"] = given
        return said

    def _given(self, place: Any) -> dict[str, Any]:
        if self.given:
            given = {stage: place(stage, a) for stage, a in self.given.items()}
        elif self._is_small_bias():
            given = {"queries": place("queries", self._finite("queries")), "keys": place("keys", self._finite("keys"))}
        else:
            given = {"masked_scores": place("masked_scores", self.masked_scores)}
        if self.values is not None:
            given["values"] = place("values", self._finite("values"))
        return given

    def _finite(self, stage: str) -> Array:
        a = getattr(self, stage)
        if not np.isfinite(a).all():
            at = [int(i) for i in np.argwhere(~np.isfinite(a))[0]]
            kind = "NaN" if np.isnan(a).any() else "infinity"
            self.notes.append(f"{stage} hold {kind}, first at {at}.")
        return a

    def _is_small_bias(self) -> bool:
        return self.bias is None or self.bias.size <= _INLINE

    def _say_rules(self, said: dict[str, Any], given: dict[str, Any], place: Any) -> None:
        if "masked_scores" in given:
            return
        said["scale"] = "inverse_sqrt_d_head" if self.scale is None else self.scale
        said["mask"] = self.mask.session(self.mask_method)
        if self.softcap:
            said["score_cap"] = self.softcap
        if self.bias is not None:
            rows = [[[x if np.isfinite(x) else "-inf" for x in row] for row in head] for head in self.bias.tolist()]
            said["score_bias"] = rows[0] if len(rows) == 1 else rows
        if self.sinks is not None:
            said["sink"] = self.sinks.astype(float).tolist()

    def _is_unchanged(self) -> bool:
        """Tells whether the parameters are still those the model computed with; if not, the stages are given."""
        changed = self._changed()
        if changed:
            self.notes.append(f"{self.name}: {changed}")
        return not changed

    def _changed(self) -> str:
        """Returns why the parameters are not those the model computed with, or an empty text."""
        assert self.editable is not None
        try:
            for linear in self.editable.linears().values():
                linear.weight  # noqa: B018
        except AttnscopeError as error:
            return str(error)
        return ""

    def _say_editable(
        self, said: dict[str, Any], place: Any, tensors: dict[str, Array], file: str, prefix: str
    ) -> None:
        e = self.editable
        assert e is not None
        one = e.embeddings.shape[0] == 1
        if e.embeddings.size <= _INLINE or not one:
            said["embeddings"] = (e.embeddings[0] if one else e.embeddings).tolist()
        else:
            said["embeddings"] = place("embeddings", e.embeddings[0])
        if e.source is not None:
            said["key_embeddings"] = (e.source[0] if len(e.source) == 1 else e.source).tolist()
        linears = e.linears()
        if sum(m.shape[0] * m.shape[1] for m in linears.values()) <= _INLINE:
            said["projections"] = {"output": None} | {
                name: {"weight": m.weight.tolist(), "bias": None if m.bias is None else m.bias.tolist()}
                for name, m in linears.items()
            }
        else:
            # Checkpoint names that imply nothing else: no rotary embedding, no norm.
            for name, m in linears.items():
                own = (
                    prefix
                    + "attention."
                    + {"query": "W_query", "key": "W_key", "value": "W_value", "output": "out_proj"}[name]
                )
                tensors[own + ".weight"] = np.ascontiguousarray(m.weight.T)
                if m.bias is not None:
                    tensors[own + ".bias"] = m.bias
            said["projections"] = {"file": file, "layer": 0}
        said |= e.settings

    def _names(self, tokens: list[str] | list[list[str]], n: int) -> list[str] | list[list[str]]:
        lists = tokens if tokens and isinstance(tokens[0], list) else [tokens]
        for each in lists:
            if len(each) != n:
                raise AttnscopeError(f"There are {len(each)} tokens for {n} rows: {[str(t) for t in each[:4]]} …")
        return tokens

    def write_session(self, path: Path) -> None:
        """Writes a session and, if needed, the tensor file next to it."""
        tensors: dict[str, Array] = {}
        data = path.with_suffix(".safetensors")
        said = self.session(tensors, data.name)
        if tensors:
            safetensors.write(data, tensors)
        safetensors.write_whole(path, (json.dumps(said, ensure_ascii=False) + "\n").encode())

    def save(self, path: str | Path) -> Path:
        """Saves as a session (.json) or as tensors (.safetensors); the program opens both. Returns the path."""
        from .recording import Recording

        return Recording([self]).save(path)

    def session_file(self) -> Path:
        """Returns a session in a temporary folder, which is removed with this object."""
        with self._lock:
            if self._file is None:
                folder = tempfile.mkdtemp(prefix="attnscope-")
                weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
                self._file = Path(folder) / "session.json"
                self.write_session(self._file)
            return self._file

    # ---------------------------------------------------------------- pictures

    def svg(self, stage: str = "weights", head: int | None = None, *, dark: bool = False, numbers: bool = True) -> str:
        """Returns a stage as a figure: of one head, or of all heads side by side."""
        return self._figure("svg", stage, head, dark, numbers).decode()

    def png(
        self,
        stage: str = "weights",
        head: int | None = None,
        *,
        dark: bool = False,
        numbers: bool = True,
        scale: float = 2,
    ) -> bytes:
        return self._figure("png", stage, head, dark, numbers, "--scale", str(scale))

    def _figure(self, kind: str, stage: str, head: int | None, dark: bool, numbers: bool, *more: str) -> bytes:
        which = ["--head", str(head)] if head is not None else ["--all-heads"] if self.n_heads > 1 else []
        look = ["--dark"] * dark + ["--no-numbers"] * (not numbers)
        with tempfile.TemporaryDirectory(prefix="attnscope-") as folder:
            out = Path(folder) / f"figure.{kind}"
            program.run(["figure", self.session_file(), "--stage", stage, *which, *look, *more, "--out", out])
            return out.read_bytes()

    def _is_small(self) -> bool:
        """Tells whether a vector figure is small enough for a notebook."""
        _, heads, n_queries, n_keys = self.shape
        return heads * n_queries * n_keys <= _MAX_SVG_CELLS

    def _repr_svg_(self) -> str | None:
        return self.svg() if self._is_small() and program.is_here() else None

    def _repr_png_(self) -> bytes | None:
        return self.png(numbers=False, scale=1) if not self._is_small() and program.is_here() else None

    def _repr_html_(self) -> str | None:
        """Returns a small map of every head where there is no program that draws a picture."""
        if program.is_here():
            return None
        from .listing import listing
        from .recording import Recording

        return listing(Recording([self]))

    def html(
        self,
        *,
        title: str | None = None,
        note: str = "",
        sequence: int = 0,
        stages: str = "auto",
        log: bool = False,
        select: Sequence[int] | None = None,
    ) -> Page:
        """Returns one self-contained page with every head; see attnscope.html()."""
        from .page import html

        return html(self, title=title, note=note, sequence=sequence, stages=stages, log=log, select=select)

    def show(self, name: str | None = None) -> Window | Attention:
        """Opens the window on this attention and returns at once; see attnscope.show()."""
        from .showing import show

        return show(self, name=name)

    def gradients(self, of: str, *, head: int = 0, sequence: int = 0) -> dict[str, Array]:
        """Returns the gradients of a number, "weights[3,1]" or "weights[3,:]" for a sum, of every stage and learned matrix.

        The names have the prefix "d_": "d_queries", "d_query_weight". Stages of each head are [heads, rows, columns].
        """
        which = ["--head", str(head)] if head else []
        which += ["--sequence", str(sequence)] if sequence else []
        with tempfile.TemporaryDirectory(prefix="attnscope-") as folder:
            out = Path(folder) / "gradients.npz"
            program.run(["gradient", self.session_file(), "--of", of, *which, "--out", out])
            with np.load(out) as arrays:
                return dict(arrays)

    def stages(self) -> dict[str, Array]:
        """Returns the recorded, given or computed numbers by stage name, to be compared with another computation."""
        found = {
            name: a
            for name, a in (("queries", self.queries), ("keys", self.keys), ("values", self.values))
            if a is not None
        }
        found |= self.given
        found |= self.observed | self.recorded_gradients
        if self.queries is not None and "weights" not in found:
            found["weights"] = self.weights
        if self.values is not None and "contexts" not in found:
            found["contexts"] = self.context
        return found


def of_stages(
    queries: Any = None,
    keys: Any = None,
    values: Any = None,
    *,
    weights: Any = None,
    causal: bool | None = None,
    mask: Any = None,
    scale: float | None = None,
    softcap: float | None = None,
    sinks: Any = None,
    dropout_mask: Any = None,
    dropout: float = 0.0,
    tokens: Sequence[Any] | None = None,
    key_tokens: Sequence[Any] | None = None,
    name: str = "attention",
) -> Attention:
    """Returns the attention of these tensors, after checking that they fit each other."""
    from .arrays import as_heads, half_of, to_numpy
    from .masks import as_mask, recognize

    given = {"queries": queries, "keys": keys, "values": values, "weights": weights}
    halves = {stage: half for stage, x in given.items() if (half := half_of(x)) is not None}
    notes = [f"{stage} of {half} are widened to float32." for stage, half in halves.items()]
    if weights is not None:
        if queries is not None or keys is not None:
            raise AttnscopeError(
                "Give either queries and keys, or weights; weights alone cannot be checked against them here, use check()."
            )
        w = as_heads(weights, "weights")
        if w.ndim != 4:
            raise AttnscopeError(f"weights have the shape {shape_text(w)}.")
        v = None if values is None else as_heads(values, "values")
        if v is not None and (v.shape[2] != w.shape[3] or v.shape[0] != w.shape[0] or w.shape[1] % v.shape[1]):
            raise AttnscopeError(f"values of {shape_text(v)} do not fit weights of {shape_text(w)}.")
        seen = recognize(np.asarray((w != 0).any(1))) if causal is None and mask is None else Mask(causal=bool(causal))
        a = Attention(
            values=v,
            given={"weights": w},
            mask=seen if seen and (seen.causal or seen.window) else Mask(),
            name=name,
            notes=notes,
        )
    elif queries is None or keys is None:
        raise AttnscopeError("Give queries and keys, or weights.")
    else:
        q, k = as_heads(queries, "queries"), as_heads(keys, "keys")
        v = None if values is None else as_heads(values, "values")
        _require_fit(q, k, v)
        rule, bias = as_mask(mask, q.shape[0], q.shape[1], q.shape[2], k.shape[2], causal)
        s = None if sinks is None else to_numpy(sinks, "sinks").reshape(-1)
        if s is not None and s.size != q.shape[1]:
            raise AttnscopeError(f"There are {s.size} sinks for {q.shape[1]} heads.")
        a = Attention(q, k, v, scale=scale, mask=rule, bias=bias, softcap=softcap, sinks=s, name=name, notes=notes)
    if dropout_mask is not None:
        kept = as_heads(dropout_mask, "dropout_mask") != 0
        if kept.shape != a.shape:
            raise AttnscopeError(f"dropout_mask has the shape {shape_text(kept)}; expected {list(a.shape)}.")
        a.dropout_mask, a.dropout = kept, dropout
    a.halves = halves
    a.tokens, a.key_tokens = _texts(tokens), _texts(key_tokens)
    if a.tokens is not None:
        a._names(a.tokens, a.n_queries)
    if a.key_tokens is not None:
        a._names(a.key_tokens, a.n_keys)
    return a


def _texts(tokens: Sequence[Any] | None) -> list[Any] | None:
    if tokens is None:
        return None
    if isinstance(tokens, str):
        raise AttnscopeError("tokens is one string; expected a list with the text of each token.")
    return [[str(t) for t in each] if isinstance(each, (list, tuple)) else str(each) for each in tokens]


def _require_fit(q: Array, k: Array, v: Array | None) -> None:
    if q.shape[-1] != k.shape[-1]:
        raise AttnscopeError(f"queries of {shape_text(q)} and keys of {shape_text(k)} differ in d_head.")
    if q.shape[0] != k.shape[0]:
        raise AttnscopeError(
            f"queries of {shape_text(q)} and keys of {shape_text(k)} differ in the number of sequences."
        )
    if q.shape[1] % k.shape[1]:
        raise AttnscopeError(
            f"queries of {shape_text(q)} have {q.shape[1]} heads, which is no multiple of the {k.shape[1]} of keys; "
            "expected [batch, heads, tokens, d_head]."
        )
    if v is not None and (v.shape[:1] + v.shape[2:3] != k.shape[:1] + k.shape[2:3] or q.shape[1] % v.shape[1]):
        raise AttnscopeError(f"values of {shape_text(v)} do not fit keys of {shape_text(k)}.")
