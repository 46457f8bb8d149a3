"""Compares two computations of one attention: the first stage that differs, and the bug that explains it."""

from __future__ import annotations

import copy
import html as _html
import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from . import program, safetensors
from .arrays import Array, half_of, is_torch, shape_text, stored, to_numpy
from .attention import Attention
from .errors import AttnscopeError, Disagreement, ProgramNotFound
from .masks import as_mask
from .names import renamed
from .recording import Recording, is_recording, load

RTOL, ATOL = 1e-5, 1e-6
_ORDER = ("queries", "keys", "values", "scores", "scaled_scores", "masked_scores", "weights", "contexts", "output")
_ULPS = {"bfloat16": 2.0**-6, "float16": 2.0**-9}  # four roundings of the largest number in a row


@dataclass(frozen=True)
class Stage:
    """The result of comparing one stage."""

    layer: int
    name: str
    agrees: bool
    max_abs: float | None  # None: the shapes differ
    where: str  # "head 0, row 4, column 4"
    shape: str
    dtype: str = ""
    rounding: str | None = None  # the dtype to whose rounding it was judged


@dataclass
class Report:
    """The result of a comparison; truthy if everything agrees. The names are those of `attnscope check --json`."""

    agrees: bool
    first: str | None  # the first stage that differs
    causes: list[str]  # the names of all bugs in `explanations`, as in `attnscope mistakes`
    stages: list[Stage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    layer: int | None = None  # of the first difference, where several were compared
    explanations: list[list[str]] = field(default_factory=list)  # either of them; those in one list together
    sentences: list[list[str]] = field(default_factory=list)  # each explanation in numbers
    details: list[list[str]] = field(default_factory=list)
    partly: list[str] = field(default_factory=list)  # what explains a part, where nothing explains all
    described: list[str] = field(default_factory=list)  # how the numbers differ, where nothing explains them
    pattern: str | None = None
    harmless: bool = False  # for the stages after it
    not_given: list[str] = field(default_factory=list)  # stages that were not compared
    rounding: str | None = None  # the coarsest dtype of tensors that agree up to their rounding
    could_hide: dict[str, float | None] | None = None  # a relative error of a "row" and of a "head" below that rounding
    searched: bool = True  # for the bug; without the native program stages are compared and no bug is looked for

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
            lines.append(f"{layer}{s.name:<{width}}  {s.shape:<16}  {_verdict(s):<7}  {size}".rstrip())
        return "\n".join([self.summary, "", *lines, *self.notes])

    @property
    def summary(self) -> str:
        """Result in a few sentences."""
        if self.agrees:
            missing = f" Not given, and not compared: {', '.join(self.not_given)}." if self.not_given else ""
            counted = f"{len(self.stages)} stage{'' if len(self.stages) == 1 else 's'} compared"
            return f"Everything agrees: {counted}.{missing}{self._hidden()}"
        if self.first is None:
            return f"Each number is within its tolerance, but together they are not: {'; '.join(self.described)}."
        layer = f" of layer {self.layer}" if self.layer is not None and self._has_layers else ""
        text = f"First stage that differs: {self.first}{layer}."
        if self.harmless:
            text += "\nIt is harmless for the stages after it."
        return text + "".join(f"\n{line}" for line in self._explained())

    def _hidden(self) -> str:
        if not self.could_hide:
            return ""
        row, head = self.could_hide.get("row"), self.could_hide.get("head")
        more = "" if head is None else f", and a head by up to {100 * head:.2g} %"
        return f"\nRounding to {self.rounding} could hide a row that is off by up to {100 * (row or 0):.2g} %{more}."

    def _explained(self) -> list[str]:
        if not self.searched:
            return []  # a note says why
        if not self.explanations:
            parts = [f"Explains a part: {w}." for w in self.partly] + [f"Differs: {w}." for w in self.described]
            parts += [f"What differs: {self.pattern}."] if self.pattern else []
            return ["None of the known bugs, alone or in pairs, explains all of the tensors.", *parts]
        if len(self.explanations) > 1:
            lines = ["Either of these explains every tensor; the tensors cannot tell them apart:"]
            for i in range(len(self.explanations)):
                lines += [f"  {'either' if i == 0 else 'or'} {self._named(i)}", *(f"    {w}" for w in self._about(i))]
            return lines
        together = ", which together explain" if len(self.explanations[0]) > 1 else ", which explains"
        return [f"Likely cause: {self._named(0)}{together} every tensor.", *(f"  {w}" for w in self._about(0))]

    def _named(self, i: int) -> str:
        return " and ".join(self.explanations[i]) or "; and ".join(self.sentences[i])

    def _about(self, i: int) -> list[str]:
        about = descriptions()
        lines = [f"{cause}: {about[cause]}" for cause in self.explanations[i] if cause in about]
        if self.details[i]:
            lines.append("; or ".join(self.details[i]))
        if self.sentences[i] and self.explanations[i]:
            of_backward = self.explanations[i][0].startswith("backward_")
            lines.append(f"{'' if of_backward else 'In numbers: '}{'; and '.join(self.sentences[i])}.")
        return lines

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
            f"<td style='text-align:left'>{e(_verdict(s)) if s.agrees else '<b>differs</b>'}</td>"
            f"<td style='text-align:left'>{'' if s.max_abs is None else f'{s.max_abs:.3g}'} {e(s.where if s.max_abs else '')}</td></tr>"
            for s in self.stages
        )
        words = "<br>".join(e(line).replace("  ", "&emsp;") for line in self.summary.splitlines())
        notes = "".join(f"<p>{e(n)}</p>" for n in self.notes)
        head = "<tr><th style='text-align:left'>stage</th><th>shape</th><th></th><th style='text-align:left'>largest difference</th></tr>"
        return f"<div><p><b>{'✓' if self.agrees else '✗'}</b> {words}</p><table>{head}{rows}</table>{notes}</div>"


def _verdict(s: Stage) -> str:
    return "DIFFERS" if not s.agrees else f"agrees as {s.rounding}" if s.rounding and s.max_abs else "agrees"


@lru_cache(maxsize=1)
def descriptions() -> Mapping[str, str]:
    """Returns the description of each known bug by name."""
    lines = program.run(["mistakes"]).stdout.splitlines()
    return dict(line.split("\t", 1) for line in lines if "\t" in line)


@renamed(ours="observed", theirs="reference")
def check(
    observed: Any,
    reference: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    causal: bool | None = None,
    mask: Any = None,
    scale: float | None = None,
    heads: int | None = None,
) -> Report:
    """Compares observed tensors with a reference, which is right: the first stage that differs, and the bug that explains it.

    Each is a capture, an attention, a mapping of stages to tensors or a file (.safetensors, .npz, a session .json). The
    reference must be computable: queries and keys, or a session; causal, mask and scale are those of the reference.
    check(module, x) compares a module with the attention that its parameters define: its projections, its number of
    heads, 1/√d_head, and its mask as recorded, unless one is given."""
    rules: dict[str, Any] = {name: x for name, x in (("causal", causal), ("mask", mask), ("scale", scale)) if x is not None}
    if _is_module(observed):
        from .modules import check_module

        return check_module(observed, reference, heads=heads, rtol=rtol, atol=atol, **rules)
    if heads is not None:
        raise AttnscopeError("heads= belongs to check(module, x).")
    found = _as_reference(reference, rules)
    if isinstance(found, Path):
        return run(found, _as_observed(observed)[0], 0, rtol, atol, _as_options(rules))
    sides, models = _as_observed(observed), list(found)
    if len(sides) != len(models):
        raise AttnscopeError(f"There are {len(sides)} observed attentions and {len(models)} in the reference.")
    reports = []
    for i, (model, side) in enumerate(zip(models, sides)):
        reports.append(_compare(model, side, i, rtol, atol))
        if not reports[-1].agrees:  # later ones differ because of this one
            break
    return _joined(reports)


@renamed(ours="observed", theirs="reference")
def assert_same(
    observed: Any,
    reference: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    causal: bool | None = None,
    mask: Any = None,
    scale: float | None = None,
) -> None:
    """Raises Disagreement, an AssertionError with the report as its message, unless observed tensors agree with the reference."""
    __tracebackhide__ = True  # pytest shows the line of the test
    report = check(observed, reference, rtol=rtol, atol=atol, causal=causal, mask=mask, scale=scale)
    if not report:
        raise Disagreement("\n" + report.report)


def _is_module(x: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.nn.Module)


def _joined(reports: list[Report]) -> Report:
    """Returns the reports of several layers as one; the last of them may differ."""
    last = reports[-1]
    total = copy.copy(last)
    total.stages = [s for r in reports for s in r.stages]
    total.notes = list(dict.fromkeys(n for r in reports for n in r.notes))
    if last.agrees:
        total.layer = None
        worst = max(reports, key=lambda r: (r.could_hide or {}).get("row") or 0)
        total.rounding, total.could_hide = worst.rounding, worst.could_hide
    return total


# -------------------------------------------------------------------- the two sides


@dataclass
class Observed:
    """Tensors that are judged, and those of them that were in half precision."""

    tensors: dict[str, Array]
    halves: dict[str, str] = field(default_factory=dict)


def _as_reference(x: Any, rules: Mapping[str, Any]) -> Recording | Path:
    if isinstance(x, Mapping):
        from .showing import from_mapping

        return from_mapping(x, **rules)
    if isinstance(x, (str, Path)):
        path = Path(x)
        if path.suffix == ".npz" and "mask" in rules:
            with np.load(path) as file:
                return _as_reference({name: file[name] for name in file.files if file[name].dtype.kind in "fiub"}, rules)
        if path.suffix != ".safetensors" and not (path.suffix == ".json" and "mask" in rules):
            return path
        x = load(path)
    if isinstance(x, Recording):
        x._require_some()
        return Recording([_ruled(a, **rules) for a in x]) if rules else x
    if isinstance(x, Attention):
        return Recording([_ruled(x, **rules) if rules else x])
    raise AttnscopeError(
        f"The reference is of type {type(x).__name__}; expected a capture, an attention, a mapping of stages or a file."
    )


def _ruled(a: Attention, causal: bool | None = None, mask: Any = None, scale: float | None = None) -> Attention:
    """Returns an attention with another mask or scale, computed anew from its queries and keys."""
    if a.queries is None or a.keys is None:
        raise AttnscopeError(f"{a.name} has weights alone; a mask or scale belongs to queries and keys.")
    ruled = copy.copy(a)
    ruled.given, ruled.observed = {}, {}
    ruled.scale = a.scale if scale is None else scale
    if causal is not None or mask is not None:
        ruled.mask, ruled.bias = as_mask(mask, *a.shape, causal=causal)
    return ruled


def _as_options(rules: Mapping[str, Any]) -> list[str]:
    """Returns the program's options for a reference that only the program reads."""
    if "mask" in rules:
        raise AttnscopeError("mask= needs a reference of tensors: .safetensors, .npz, or a mapping of stages.")
    causal = [] if "causal" not in rules else ["--causal" if rules["causal"] else "--no-causal"]
    return causal + (["--scale", repr(float(rules["scale"]))] if "scale" in rules else [])


def _as_observed(x: Any) -> list[Observed | Path]:
    if isinstance(x, (str, Path)):
        path = Path(x)
        if path.suffix != ".safetensors" or not is_recording(path):
            return [path]
        x = load(path)
    if isinstance(x, Recording):
        x._require_some()
        return [Observed(a.stages(), a.halves) for a in x]
    if isinstance(x, Attention):
        return [Observed(x.stages(), x.halves)]
    if isinstance(x, Mapping):
        halves = {str(name): half for name, a in x.items() if (half := half_of(a)) is not None}
        return [Observed({str(name): to_numpy(a, str(name)) for name, a in x.items()}, halves)]
    if is_torch(x) or hasattr(x, "__array__"):
        raise AttnscopeError('A single tensor does not say which stage it is; give a mapping, such as {"weights": w}.')
    raise AttnscopeError(f"Expected a capture, an attention, a mapping of stages or a file, got {type(x).__name__}.")


# -------------------------------------------------------------------- comparing


def _compare(model: Attention, side: Observed | Path, layer: int, rtol: float | None, atol: float | None) -> Report:
    """Compares with the numbers that the reference recorded; the program is asked for others, and for the cause of a difference."""
    if isinstance(side, Path):
        return run(model.session_file(), side, layer, rtol, atol)
    recorded = _against_recorded(model, side, layer, rtol, atol)
    if len(recorded) == len(side.tensors) and all(s.agrees for s in recorded.values()):
        return Report(True, None, [], list(recorded.values()), layer=layer)
    if "output" in recorded and (model.editable is None or model.editable.output is None):
        # the session has no output projection
        side = Observed({name: a for name, a in side.tensors.items() if name != "output"}, side.halves)
        recorded["output"] = _rounded(recorded["output"], model.stages()["output"], side.halves.get("output"))
    try:
        report = run(model.session_file(), side, layer, rtol, atol) if side.tensors else Report(True, None, [], layer=layer)
    except ProgramNotFound as missing:
        return _without_program(model, side, layer, rtol, atol, missing)
    is_noise = not report.agrees and report.first is None
    named = {s.name for s in report.stages}
    report.stages = [recorded[s.name] if s.name in recorded and recorded[s.name].agrees else s for s in report.stages]
    report.stages += [s for name, s in recorded.items() if name not in named]
    report.first = next((s.name for s in report.stages if not s.agrees), None)
    report.agrees = report.first is None and not is_noise
    if report.agrees:
        report.causes, report.explanations = [], []
    return report


def _without_program(
    model: Attention, side: Observed, layer: int, rtol: float | None, atol: float | None, missing: ProgramNotFound
) -> Report:
    """Compares the stages that NumPy computes, without a search for the bug."""
    there = model.stages()
    if model.queries is not None:
        there |= {"scores": model.scores, "scaled_scores": model.scores * model.factor, "masked_scores": model.masked_scores}
    found = _against_recorded(model, side, layer, rtol, atol, there)
    if not found:
        raise missing
    stages = [_rounded(found[n], there[n], side.halves.get(n)) for n in _ORDER if n in found]
    first = next((s.name for s in stages if not s.agrees), None)
    others = [name for name in side.tensors if name not in found]
    notes = [f"note: not compared: {', '.join(others)}."] if others else []
    return Report(first is None, first, [], stages, [*notes, f"note: No bug was looked for. {missing}"], layer, searched=False)


def _against_recorded(
    model: Attention, side: Observed, layer: int, rtol: float | None, atol: float | None, there: Mapping[str, Array] | None = None
) -> dict[str, Stage]:
    """Compares stages with those that an attention recorded or computes, where the shapes are the same."""
    found: dict[str, Stage] = {}
    there = model.stages() if there is None else there
    for name, a in side.tensors.items():
        if name not in there or _without_ones(a) != _without_ones(there[name]):
            continue
        b = there[name].astype(np.float64)
        a = a.reshape(b.shape).astype(np.float64)
        same = (a == b) | np.isnan(a) & np.isnan(b)  # infinity minus infinity is NaN
        with np.errstate(invalid="ignore"):
            off = np.where(same, 0.0, np.abs(a - b))
        size = np.where(np.isfinite(b), np.abs(b), 0.0)
        close = (RTOL if rtol is None else rtol) * size + (ATOL if atol is None else atol)
        found[name] = _stage(name, layer, bool((off <= close).all()), off, side.halves.get(name) or str(side.tensors[name].dtype))
    return found


def _rounded(s: Stage, reference: Array, half: str | None) -> Stage:
    """Returns a stage that only a recording knows, judged to the rounding of its dtype."""
    largest = float(np.abs(reference).max())
    if s.agrees or half is None or s.max_abs is None or not s.max_abs <= _ULPS[half] * largest:
        return s
    return Stage(s.layer, s.name, True, s.max_abs, s.where, s.shape, s.dtype, half)


def _stage(name: str, layer: int, within: bool, off: Array, dtype: str) -> Stage:
    at = np.unravel_index(int(np.argmax(np.nan_to_num(off, nan=np.inf))), off.shape)
    *_, row, column = map(int, at)
    head = f"head {int(at[1])}, " if off.ndim == 4 else ""
    return Stage(layer, name, within, float(off[at]), f"{head}row {row}, column {column}", shape_text(off), dtype)


def _without_ones(a: Array) -> list[int]:
    return [n for n in a.shape if n != 1]


def run(
    reference: Path, observed: Observed | Path, layer: int, rtol: float | None, atol: float | None, options: list[str] | None = None
) -> Report:
    """Returns the program's report. Tensors in half precision are written in their own dtype, to whose rounding it judges them."""
    with tempfile.TemporaryDirectory(prefix="attnscope-") as folder:
        if isinstance(observed, Path):
            against = observed
        else:
            against = Path(folder) / "observed.safetensors"
            numbers = {name: a.astype(np.uint8) if a.dtype == bool else a for name, a in observed.tensors.items()}
            safetensors.write(against, {name: stored(a, observed.halves.get(name)) for name, a in numbers.items()})
        tolerance = ["--rtol", repr(RTOL if rtol is None else rtol), "--atol", repr(ATOL if atol is None else atol)]
        command: list[str | Path] = ["check", reference, "--against", against, *tolerance, *(options or []), "--json"]
        done = program.run(command, accept=(0, 1))
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
            str(s.get("dtype") or ""),
            s.get("rounding"),
        )
        for s in said["stages"]
    ]
    notes = [f"ignored: {line}" for line in said.get("left_out", [])] + [f"note: {n}." for n in said.get("notes", [])]
    same = {f.name for f in fields(Report)} - {"stages", "notes", "layer", "searched"}
    return Report(first=said["first_difference"], stages=stages, notes=notes, layer=layer, **{k: said[k] for k in same & set(said)})
