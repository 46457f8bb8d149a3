"""Several attentions in the order of computation: a capture or a saved file."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from . import program, safetensors
from .arrays import Array, BFloat16, half_of, stored, to_numpy
from .attention import Attention, Checked
from .errors import AttnscopeError
from .masks import Mask, recognize

if TYPE_CHECKING:
    from .asking import Captured, Chat, Heads
    from .circuits import Sources, Why
    from .page import Page
    from .showing import Window

_FORMAT = "attnscope"
_MAX_BIAS = 1 << 20  # numbers in the header of a file
_RECORDED = ("weights", "contexts")  # by the model itself; the program computes its own


@dataclass(eq=False)
class Recording(Checked):
    """A sequence of attentions; `r[5]` is the sixth, `r["h.5.attn"]` the one of a module."""

    attentions: list[Attention] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)  # attentions that could not be recorded, one sentence each

    def __len__(self) -> int:
        return len(self.attentions)

    def __iter__(self) -> Iterator[Attention]:
        return iter(self.attentions)

    @overload
    def __getitem__(self, which: int | str) -> Attention: ...
    @overload
    def __getitem__(self, which: slice) -> Recording: ...
    def __getitem__(self, which: int | str | slice) -> Attention | Recording:
        if isinstance(which, slice):
            return Recording(self.attentions[which], self.problems)
        if isinstance(which, str):
            found = [a for a in self.attentions if a.name == which] or [
                a for a in self.attentions if a.name.endswith("." + which)
            ]
            if not found:
                raise AttnscopeError(
                    f"There is no attention named {which!r}; there are {', '.join(repr(n) for n in self.names[:6])}."
                )
            return found[0]
        try:
            return self.attentions[which]
        except IndexError:
            raise AttnscopeError(f"There is no attention {which}; {self._count()}.") from None

    @property
    def names(self) -> list[str]:
        return [a.name for a in self.attentions]

    def _count(self) -> str:
        n = len(self.attentions)
        return (
            f"there {'is one' if n == 1 else f'are {n}'}"
            if n
            else "none was recorded" + (f": {self.problems[0]}" if self.problems else "")
        )

    def _require_some(self) -> None:
        if not self.attentions:
            raise AttnscopeError(
                "No attention was recorded" + (f": {self.problems[0]}" if self.problems else "; was the model called?")
            )

    def __repr__(self) -> str:
        lines = [f"<{type(self).__name__}: {len(self)} attention{'' if len(self) == 1 else 's'}>"]
        lines += [f"  {i}: {a!r}" for i, a in enumerate(self.attentions[:12])]
        if len(self) > 12:
            lines.append(f"  … {len(self) - 12} more")
        return "\n".join(lines + [f"  note: {p}" for p in self.problems])

    # ---------------------------------------------------------------- files

    def save(self, path: str | Path, layer: int | None = None) -> Path:
        """Saves all as tensors (.safetensors), or one as a session (.json); the program opens both. Returns the path.

        A session holds one attention; layer selects it if there are several."""
        self._require_some()
        path = Path(path)
        if path.suffix == ".json":
            if layer is None and len(self) > 1:
                raise AttnscopeError(
                    f"A session holds one attention and there are {len(self)}; say which with layer=, or save as .safetensors."
                )
            self[layer or 0].write_session(path)
        elif path.suffix == ".safetensors":
            tensors: dict[str, Array | BFloat16] = {}
            about = [
                _describe(a, f"layers.{i}." if len(self) > 1 else "", tensors) for i, a in enumerate(self.attentions)
            ]
            safetensors.write(path, tensors, {_FORMAT: "1", "layers": json.dumps(about, ensure_ascii=False)})
        else:
            raise AttnscopeError(f"{path.name}: expected a name that ends with .safetensors or .json.")
        return path

    # ---------------------------------------------------------------- questions about the captured model

    def _questions(self, sequence: int) -> Captured:
        raise AttnscopeError("This recording has no model to ask; a capture of this process has, and attnscope.attach(model, tokenizer).")

    def predict(self, text: str = "", *, chat: Chat | None = None, off: Heads = (), top: int = 10, sequence: int = 0) -> Array:
        """Returns the most probable next tokens after the captured text, or another; see Attached.predict()."""
        return self._questions(sequence).predict(text, chat=chat, off=off, top=top)

    def heads(self, text: str = "", *, chat: Chat | None = None, sequence: int = 0) -> Array:
        """Returns [layer, head] measures of the captured model; see Attached.heads()."""
        return self._questions(sequence).heads(text, chat=chat)

    def lens(self, text: str = "", *, chat: Chat | None = None, sequence: int = 0) -> Array:
        """Returns the prediction of the captured model after each layer; see Attached.lens()."""
        return self._questions(sequence).lens(text, chat=chat)

    def effects(
        self, text: str = "", *, chat: Chat | None = None, answer: str | int | None = None, against: str | int | None = None, sequence: int = 0,
    ) -> Array:  # fmt: skip
        """Returns [layer, head] ablation effects in the captured model; see Attached.effects()."""
        return self._questions(sequence).effects(text, chat=chat, answer=answer, against=against)

    def why(
        self, text: str = "", *, layer: int, head: int, query: int, key: int, chat: Chat | None = None, sequence: int = 0
    ) -> Why:
        """Splits a score of the captured model into what earlier parts have written; see Attached.why()."""
        return self._questions(sequence).why(text, layer=layer, head=head, query=query, key=key, chat=chat)

    def sources(
        self, text: str = "", *, token: str | None = None, layer: int | None = None, head: int | None = None,
        query: int | None = None, chat: Chat | None = None, sequence: int = 0,
    ) -> Sources:  # fmt: skip
        """Splits a logit or a row of the captured model by what has written it; see Attached.sources()."""
        return self._questions(sequence).sources(text, token=token, layer=layer, head=head, query=query, chat=chat)

    # ---------------------------------------------------------------- pictures

    def _repr_html_(self) -> str:
        from .listing import listing

        return listing(self)

    def html(
        self,
        *,
        title: str | None = None,
        note: str = "",
        layers: Iterable[int] | None = None,
        sequence: int = 0,
        stages: str = "auto",
        log: bool = False,
        select: Sequence[int] | None = None,
    ) -> Page:
        """Returns one self-contained page with every head of every layer; see attnscope.html()."""
        from .page import html

        return html(self, title=title, note=note, layers=layers, sequence=sequence, stages=stages, log=log, select=select)

    def show(self, layer: int = 0, *, name: str | None = None) -> Window | Attention:
        """Opens the window on one of these attentions and returns at once; see attnscope.show()."""
        from .showing import show

        self._require_some()
        return show(self[layer], name=name)


def _describe(a: Attention, prefix: str, tensors: dict[str, Array | BFloat16]) -> dict[str, Any]:
    """Stores the tensors of an attention under names that the program reads, and returns its other settings."""

    def put(name: str, x: Array | None) -> None:
        if x is not None:
            tensors[prefix + name] = stored(x, a.halves.get(name.removeprefix("recorded.")))

    put("queries", a.queries)
    put("keys", a.keys)
    put("values", a.values)
    if a.queries is not None:
        put("scale", np.array(a.factor))
    for stage, x in a.given.items():
        put(stage, x)
    # The program reads no tensors for sinks and softcap, so it gets the resulting stages.
    if not a.given and a.sinks is not None:
        put("weights", a.weights)
    elif not a.given and (a.softcap or a.bias is not None and a.bias.size > _MAX_BIAS):
        put("masked_scores", a.masked_scores)
    elif not a.given and a.bias is not None:
        put("attention_bias", np.where(a.visible[:, None], a.bias, -np.inf)[0])
    elif (
        not a.given
        and a.mask.causal
        and a.n_queries == a.n_keys
        and not a.mask.window
        and not any(a.mask.hidden_keys)
        and not a.mask.prefix
    ):
        put("is_causal", np.array(True))
    elif not a.given and not a.mask.is_full():
        put("mask", a.visible[:, None] if a.n_sequences > 1 else a.visible[0])
    put("dropped", None if a.dropout_mask is None else a.dropout_mask)
    put("output", a.observed.get("output"))
    for name in _RECORDED:
        put(f"recorded.{name}", a.observed.get(name))
    return {
        "name": a.name,
        "prefix": prefix,
        "scale": a.scale,
        "mask": a.mask.session(a.mask_method),
        "softcap": a.softcap,
        "sinks": None if a.sinks is None else a.sinks.astype(float).tolist(),
        "bias": None
        if a.bias is None or a.bias.size > _MAX_BIAS
        else np.where(np.isfinite(a.bias), a.bias, -1e300).tolist(),
        "dropout": a.dropout,
        "given": sorted(a.given),
        "tokens": a.tokens,
        "key_tokens": a.key_tokens,
    }


def is_recording(path: Path) -> bool:
    """Tells whether a .safetensors file was written by save()."""
    return _FORMAT in safetensors.read(path)[1]


def load(path: str | Path) -> Recording:
    """Reads what save() writes, any session, or a .safetensors file with tensors named weights, queries, keys and values."""
    if Path(path).suffix == ".json":
        return Recording([_read_session(Path(path))])
    tensors, metadata = safetensors.read(Path(path))
    if _FORMAT not in metadata:
        from .showing import from_mapping

        return from_mapping(tensors)
    try:
        return Recording([_read(about, i, tensors) for i, about in enumerate(json.loads(metadata["layers"]))])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise AttnscopeError(f"{path}: what it says about its tensors is damaged ({error}).") from None


def _read_session(path: Path) -> Attention:
    """Returns the attention of a session, whose stages the program computes."""
    try:
        said = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise AttnscopeError(f"{path} cannot be read: {error}.") from None
    with tempfile.TemporaryDirectory(prefix="attnscope-") as folder:
        program.run(["export", path, "--out", Path(folder) / "stages.npz"])
        with np.load(Path(folder) / "stages.npz") as file:
            stages = {name: file[name] for name in file.files}

    def heads(*names: str) -> Array | None:
        found = next((stages[n] for n in names if n in stages), None)
        return found if found is None or found.ndim == 4 else found[None]

    weights, masked = heads("weights"), heads("masked_scores")
    assert weights is not None
    a = Attention(
        heads("rotated_queries", "queries"), heads("rotated_keys", "keys"), heads("values"), name=path.stem,
        tokens=said.get("tokens"), key_tokens=said.get("key_tokens"), scale=said["scale"] if isinstance(said.get("scale"), float) else None,
        not_editable="it was read from a session; the window edits the file itself",
    )  # fmt: skip
    rule = recognize(stages["mask"] != 0) if "mask" in stages else None
    a.mask = rule if rule is not None and not said.get("given", {}).get("weights") else Mask()
    if "dropout_mask" in stages and said.get("dropout", {}).get("training"):
        a.dropout, a.dropout_mask = said["dropout"]["rate"], np.broadcast_to(heads("dropout_mask") != 0, a.shape)
    if a.queries is None or a.keys is None or not np.allclose(a.weights, weights, rtol=1e-12, atol=1e-14, equal_nan=True):
        a.forget_computed()  # a bias, a sink, a soft-cap or an edited stage
        a.given = {"weights": weights} if masked is None or said.get("sink") else {"masked_scores": masked}
        if not np.allclose(a.weights, weights, rtol=1e-12, atol=1e-14, equal_nan=True):
            a.forget_computed()
            a.given = {"weights": weights}
    if "output" in stages:
        a.observed["output"] = stages["output"] if stages["output"].ndim == 3 else stages["output"][None]
    return a


def _read(about: dict[str, Any], index: int, file: dict[str, Array | BFloat16]) -> Attention:
    prefix, said = about["prefix"], about["mask"]
    tensors = {name.removeprefix(prefix): x for name, x in file.items() if name.startswith(prefix)}
    get = lambda name: None if name not in tensors else to_numpy(tensors[name], name)  # noqa: E731
    given = {stage: to_numpy(tensors[stage], stage) for stage in about["given"]}
    q, k = get("queries"), get("keys")
    n_queries, n_keys = (
        (q.shape[2], k.shape[2]) if q is not None and k is not None else next(iter(given.values())).shape[2:]
    )
    cells = None
    if said.get("cells") is not None:
        cells = np.ones((n_queries, n_keys), bool)
        for i, j, _ in said["cells"]:
            cells[i, j] = False
    mask = Mask(
        causal=said["causal"],
        window=tuple(said["window"]) if "window" in said else None,
        prefix=said.get("prefix", 0),
        align=said.get("align", "last"),
        hidden_keys=tuple(tuple(keys) for keys in said.get("hidden_keys", ())),
        cells=cells,
        empty_rows=said["empty_rows"],
    )
    bias = None if about["bias"] is None else np.array(about["bias"])
    return Attention(
        q,
        k,
        get("values"),
        scale=about["scale"],
        mask=mask,
        mask_method=said["method"],
        bias=None if bias is None else np.where(bias < -1e299, -np.inf, bias),
        softcap=about["softcap"],
        sinks=None if about["sinks"] is None else np.array(about["sinks"]),
        dropout=about["dropout"],
        dropout_mask=get("dropped"),
        given=given,
        tokens=about["tokens"],
        key_tokens=about["key_tokens"],
        name=about["name"],
        layer=index,
        observed={
            name: x
            for name, place in {"output": "output", **{n: f"recorded.{n}" for n in _RECORDED}}.items()
            if (x := get(place)) is not None
        },
        halves={name.removeprefix("recorded."): half for name, x in tensors.items() if (half := half_of(x)) is not None},
    )
