"""Compares two computations of one attention: the first stage that differs, and the mistake that explains it."""

from __future__ import annotations

import html as _html
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from . import program, safetensors
from .arrays import Array, is_torch, shape_text, to_numpy
from .attention import Attention
from .errors import AttnscopeError, Disagreement
from .recording import Recording, is_recording, load

RTOL, ATOL = 1e-5, 1e-6


@dataclass(frozen=True)
class Stage:
    """The result of comparing one stage."""

    layer: int
    name: str
    agrees: bool
    max_abs: float | None  # None: the shapes differ
    where: str  # "head 0, row 4, column 4"
    shape: str


@dataclass
class Report:
    """The result of a comparison; truthy if everything agrees."""

    agrees: bool
    first: str | None  # the first stage that differs
    causes: list[str]  # names of mistakes that together explain every tensor, as in `attnscope mistakes`
    stages: list[Stage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    layer: int | None = None  # of the first difference, where several were compared

    def __bool__(self) -> bool:
        return self.agrees

    @property
    def report(self) -> str:
        """Full report as text."""
        width = max([5, *(len(s.name) for s in self.stages)])
        lines = []
        for s in self.stages:
            layer = f"layer {s.layer}  " if self._has_layers else ""
            size = "" if s.max_abs is None else f"{s.max_abs:.3g}" + (f" at {s.where}" if s.max_abs else "")
            lines.append(
                f"{layer}{s.name:<{width}}  {s.shape:<16}  {'agrees ' if s.agrees else 'DIFFERS'}  {size}".rstrip()
            )
        return "\n".join([self.summary, "", *lines, *self.notes])

    @property
    def summary(self) -> str:
        """Result in a sentence or two."""
        if self.agrees:
            return f"Everything agrees: {len(self.stages)} stage{'' if len(self.stages) == 1 else 's'} compared."
        layer = f" of layer {self.layer}" if self.layer is not None and self._has_layers else ""
        text = f"First stage that differs: {self.first}{layer}."
        if not self.causes:
            return text + " None of the known mistakes explains all of it."
        about = descriptions()
        return text + "".join(f"\nLikely cause: {c}. {about.get(c, '')}".rstrip() for c in self.causes)

    @property
    def _has_layers(self) -> bool:
        return len({s.layer for s in self.stages}) > 1

    def __str__(self) -> str:
        return self.report

    def __repr__(self) -> str:
        return f"<Report: {self.summary.splitlines()[0]}>"

    def _repr_html_(self) -> str:
        e = _html.escape
        rows = "".join(
            f"<tr><td style='text-align:left'>{e(f'layer {s.layer} ' if self._has_layers else '')}{e(s.name)}</td><td>{e(s.shape)}</td>"
            f"<td style='text-align:left'>{'agrees' if s.agrees else '<b>differs</b>'}</td>"
            f"<td style='text-align:left'>{'' if s.max_abs is None else f'{s.max_abs:.3g}'} {e(s.where if s.max_abs else '')}</td></tr>"
            for s in self.stages
        )
        words = "<br>".join(e(line) for line in self.summary.splitlines())
        notes = "".join(f"<p>{e(n)}</p>" for n in self.notes)
        head = "<tr><th style='text-align:left'>stage</th><th>shape</th><th></th><th style='text-align:left'>largest difference</th></tr>"
        return f"<div><p><b>{'✓' if self.agrees else '✗'}</b> {words}</p><table>{head}{rows}</table>{notes}</div>"


@lru_cache(maxsize=1)
def descriptions() -> Mapping[str, str]:
    """Returns the description of each known mistake by name."""
    lines = program.run(["mistakes"]).stdout.splitlines()
    return dict(line.split("\t", 1) for line in lines if "\t" in line)


def check(
    ours: Any,
    theirs: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    causal: bool | None = None,
    heads: int | None = None,
) -> Report:
    """Compares ours with theirs, the reference; names the first stage that differs and the mistake that explains it.

    Each is a capture, an attention, a mapping of stages to tensors or a file (.safetensors, .npz, a session .json). The
    reference must be computable: queries and keys, or a session. check(module, x) compares a module with the attention
    that its parameters define: its projections, 1/√d_head, and the mask of causal= (as recorded, unless given)."""
    if _is_module(ours):
        from .modules import check_module

        return check_module(ours, theirs, causal=causal, heads=heads, rtol=rtol, atol=atol)
    if causal is not None or heads is not None:
        raise AttnscopeError("causal= and heads= belong to check(module, x).")
    reference = _as_model(theirs)
    if isinstance(reference, Path):
        return _run(reference, _as_tensors(ours)[0], 0, rtol, atol)
    tensors, models = _as_tensors(ours), list(reference)
    if len(tensors) != len(models):
        raise AttnscopeError(f"There are {len(tensors)} attentions on one side and {len(models)} on the other.")
    total = Report(True, None, [])
    for i, (model, stages) in enumerate(zip(models, tensors)):
        one = _compare(model, stages, i, rtol, atol)
        total.stages += one.stages
        total.notes += [n for n in one.notes if n not in total.notes]
        if not one.agrees:  # later ones differ because of this one
            total.agrees, total.first, total.causes, total.layer = False, one.first, one.causes, i
            break
    return total


def assert_same(ours: Any, theirs: Any, *, rtol: float | None = None, atol: float | None = None) -> None:
    """Raises Disagreement, an AssertionError with the report as its message, unless ours agrees with theirs."""
    __tracebackhide__ = True  # pytest shows the line of the test
    report = check(ours, theirs, rtol=rtol, atol=atol)
    if not report:
        raise Disagreement("\n" + report.report)


def _is_module(x: Any) -> bool:
    import sys

    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.nn.Module)


def _as_model(x: Any) -> Recording | Path:
    if isinstance(x, Recording):
        x._require_some()
        return x
    if isinstance(x, Attention):
        return Recording([x])
    if isinstance(x, (str, Path)):
        path = Path(x)
        return load(path) if path.suffix == ".safetensors" else path
    if isinstance(x, Mapping):
        from .showing import from_mapping

        return from_mapping(x)
    raise AttnscopeError(
        f"The reference is of type {type(x).__name__}; expected a capture, an attention, a mapping of stages or a file."
    )


def _as_tensors(x: Any) -> list[dict[str, Array] | Path]:
    if isinstance(x, Recording):
        x._require_some()
        return [a.stages() for a in x]
    if isinstance(x, Attention):
        return [x.stages()]
    if isinstance(x, (str, Path)):
        path = Path(x)
        return [a.stages() for a in load(path)] if path.suffix == ".safetensors" and is_recording(path) else [path]
    if isinstance(x, Mapping):
        return [{str(name): to_numpy(a, str(name)) for name, a in x.items()}]
    if is_torch(x) or hasattr(x, "__array__"):
        raise AttnscopeError('A single tensor does not say which stage it is; give a mapping, such as {"weights": w}.')
    raise AttnscopeError(f"Expected a capture, an attention, a mapping of stages or a file, got {type(x).__name__}.")


def _compare(model: Attention, tensors: dict[str, Array] | Path, layer: int, rtol: float | None, atol: float | None) -> Report:
    """Compares with the numbers that the reference recorded; the program is asked for others, and for the cause of a difference."""
    if isinstance(tensors, Path):
        return _run(model.session_file(), tensors, layer, rtol, atol)
    recorded = _against_recorded(model, tensors, layer, rtol, atol)
    if len(recorded) == len(tensors) and all(s.agrees for s in recorded.values()):
        return Report(True, None, [], list(recorded.values()), layer=layer)
    if "output" in recorded and (model.editable is None or model.editable.output is None):
        tensors = {name: a for name, a in tensors.items() if name != "output"}  # the session has no output projection
    report = _run(model.session_file(), tensors, layer, rtol, atol) if tensors else Report(True, None, [], layer=layer)
    named = {s.name for s in report.stages}
    report.stages = [recorded[s.name] if s.name in recorded and recorded[s.name].agrees else s for s in report.stages]
    report.stages += [s for name, s in recorded.items() if name not in named]
    report.first = next((s.name for s in report.stages if not s.agrees), None)
    report.agrees = report.first is None
    if report.agrees:
        report.causes = []
    return report


def _against_recorded(
    model: Attention, tensors: dict[str, Array], layer: int, rtol: float | None, atol: float | None
) -> dict[str, Stage]:
    """Compares stages with those that an attention recorded or computes, where the shapes are the same."""
    found: dict[str, Stage] = {}
    theirs = model.stages()
    for name, a in tensors.items():
        if name not in theirs or _without_ones(a) != _without_ones(theirs[name]):
            continue
        b = theirs[name].astype(np.float64)
        a = a.reshape(b.shape).astype(np.float64)
        same = (a == b) | np.isnan(a) & np.isnan(b)  # infinity minus infinity is NaN
        with np.errstate(invalid="ignore"):
            off = np.where(same, 0.0, np.abs(a - b))
        size = np.where(np.isfinite(b), np.abs(b), 0.0)
        close = (RTOL if rtol is None else rtol) * size + (ATOL if atol is None else atol)
        found[name] = _stage(name, layer, bool((off <= close).all()), off)
    return found


def _stage(name: str, layer: int, within: bool, off: Array) -> Stage:
    at = np.unravel_index(int(np.argmax(np.nan_to_num(off, nan=np.inf))), off.shape)
    *_, row, column = map(int, at)
    head = f"head {int(at[1])}, " if off.ndim == 4 else ""
    return Stage(layer, name, within, float(off[at]), f"{head}row {row}, column {column}", shape_text(off))


def _without_ones(a: Array) -> list[int]:
    return [n for n in a.shape if n != 1]


def _run(model: Path, tensors: dict[str, Array] | Path, layer: int, rtol: float | None, atol: float | None) -> Report:
    with tempfile.TemporaryDirectory(prefix="attnscope-") as folder:
        if isinstance(tensors, Path):
            against = tensors
        else:
            against = Path(folder) / "ours.safetensors"
            safetensors.write(
                against, {name: a.astype(np.uint8) if a.dtype == bool else a for name, a in tensors.items()}
            )
        tolerance = ["--rtol", repr(RTOL if rtol is None else rtol), "--atol", repr(ATOL if atol is None else atol)]
        done = program.run(["check", model, "--against", against, *tolerance, "--json"], accept=(0, 1))
    if not done.stdout.strip():
        raise AttnscopeError(program._error_line(done))
    said = json.loads(done.stdout)
    stages = [
        Stage(
            layer,
            s["stage"],
            bool(s["within"]),
            s.get("max_abs"),
            ", ".join(f"{k} {s[k]}" for k in ("head", "row", "column") if s.get(k) is not None),
            str(s.get("shape") or ""),
        )
        for s in said["stages"]
    ]
    notes = [f"Left out: {line}." for line in said.get("left_out", [])]
    if said.get("pattern"):
        notes.append(str(said["pattern"]))
    return Report(said["agrees"], said["first_difference"], list(said["causes"]), stages, notes, layer)
