"""show(): opens tensors, modules and models in the window, or shows a picture without a display."""

from __future__ import annotations

import contextlib
import logging
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import program
from .arrays import Array, to_numpy
from .attention import Attention, of_stages
from .errors import AttnscopeError
from .names import Stages, full_names
from .recording import Recording

if TYPE_CHECKING:
    from typing_extensions import Unpack

log = logging.getLogger("attnscope")
_LIFE_SIGN = 0.4  # seconds in which a window that cannot start reports why


@dataclass(eq=False)
class Window:
    """A window in a separate process; it stays open when Python ends."""

    name: str
    attention: Attention
    process: subprocess.Popen[bytes]

    @property
    def is_open(self) -> bool:
        return self.process.poll() is None

    def close(self) -> None:
        """Closes the window like its close button: edits are kept and offered at the next start."""
        if self.is_open:
            self.process.terminate()
            self.process.wait(10)

    def __repr__(self) -> str:
        return f"<Window {self.name!r}: {'open' if self.is_open else 'closed'}, {self.attention!r}>"

    def _repr_svg_(self) -> str | None:
        return self.attention._repr_svg_()

    def _repr_png_(self) -> bytes | None:
        return self.attention._repr_png_()


class _Windows:
    """Windows started by this process, by name."""

    def __init__(self) -> None:
        self._open: dict[str, Window] = {}
        self._lock = threading.Lock()

    def start(self, a: Attention, name: str) -> Window:
        with self._lock:
            if before := self._open.pop(name, None):
                before.close()
            # The window outlives Python, and its document may be saved, so it gets its own files.
            folder = Path(tempfile.mkdtemp(prefix="attnscope-"))
            file, log = folder / f"{_file_name(a.name)}.json", folder / "messages.log"
            a.write_session(file)
            window = self._open[name] = Window(name, a, open_window([file], log))
            return window


def open_window(
    arguments: Sequence[str | Path], log: Path, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Starts the window. The files in its log's folder are removed with it, unless saved again. Raises the window's
    error if it does not open."""
    written = {f: f.stat().st_mtime_ns for f in log.parent.iterdir()}
    process = program.start_window(arguments, log, environment)
    try:
        process.wait(_LIFE_SIGN)
    except subprocess.TimeoutExpired:
        threading.Thread(target=_watch, args=(process, written, log), daemon=True).start()
        return process
    said = log.read_text("utf-8", errors="replace").strip()
    _remove(written, log)
    ended = f"it ended with status {process.returncode}"
    line = said.splitlines()[0].removeprefix("attnscope: ") if said else ended
    raise AttnscopeError(f"The window did not open: {line.rstrip('.')}.")


def _watch(process: subprocess.Popen[bytes], written: dict[Path, int], log: Path) -> None:
    """Waits for a window to end and removes its files."""
    process.wait()
    _remove(written, log)


def _remove(written: dict[Path, int], log: Path) -> None:
    """Removes the files of a window that has ended, unless they were saved again."""
    log.unlink(missing_ok=True)
    if all(f.exists() and f.stat().st_mtime_ns == time for f, time in written.items()):
        for f in written:
            f.unlink()
        with contextlib.suppress(OSError):
            log.parent.rmdir()


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "attention"


_windows = _Windows()


def show(
    *what: Any, name: str | None = None, layer: int = 0, inputs: Mapping[str, Any] | None = None, **stages: Unpack[Stages]
) -> Window | Attention:
    """Opens the window on an attention and returns at once.

    show(q, k, v, causal=True, scale=…, mask=…, tokens=…)     queries, keys and values: [tokens, d_head] up to [batch, heads, tokens, d_head]
    show(weights=w)                                           attention weights alone
    show(module, x, inputs={…})                               any module of PyTorch with attention in it, called on x and inputs by name
    show(model, tokenizer, "text")                            a model of transformers
    show(cache)                                               a mapping with TransformerLens' names, or of stages to tensors
    show(capture), show(attention)                            what capture() recorded

    layer selects the attention if there are several. A second call with the same name replaces the window; without a name
    each call opens one. Without a display it returns the attention, which a notebook shows as a picture."""
    found = recording(*what, inputs=inputs, **stages)
    found._require_some()
    a = found[layer]
    for note in a.notes:
        log.warning(note)
    if not program.has_display():
        program.executable()  # it draws the picture too
        log.warning("There is no display, so this is a picture; .html() gives a page, .save() a file for the window.")
        return a
    return _windows.start(a, name or f"{a.name} {id(a):x}")


def recording(*what: Any, inputs: Mapping[str, Any] | None = None, **stages: Unpack[Stages]) -> Recording:
    """Returns the attentions described by the arguments of show()."""
    options = full_names(stages)
    first: Any = what[0] if what else None
    if _is_module(first):
        from .modules import record_call

        tokens = options.pop("tokens", None)
        if options:
            name = next(iter(options))
            raise AttnscopeError(f"{name}= belongs to tensors; the arguments of a module are given by name in inputs={{…}}.")
        return record_call(first, what[1:], dict(inputs or {}), tokens)
    if inputs is not None:
        raise AttnscopeError("inputs= belongs to a module, which is called with it.")
    if not what:
        return Recording([of_stages(**options)])
    if isinstance(first, (Attention, Recording)):
        _require_none(what[1:], options)
        return Recording([first]) if isinstance(first, Attention) else first
    if isinstance(first, (str, bytes)):
        raise AttnscopeError(
            "show() takes tensors, modules and captures; files are opened by `attnscope FILE` or attnscope.load()."
        )
    if isinstance(first, Mapping) or hasattr(first, "cache_dict"):
        return from_mapping(getattr(first, "cache_dict", first), *what[1:], **options)
    if len(what) in (2, 3):
        return Recording([of_stages(*what, **options)])
    if len(what) == 1:
        raise AttnscopeError(
            "One tensor alone does not say what it is: show(weights=w) for attention weights, show(q, k, v) for queries, keys, values."
        )
    raise AttnscopeError(f"Expected queries, keys and values, got {len(what)} arguments.")


def _require_none(rest: Sequence[Any], options: Mapping[str, Any]) -> None:
    if rest or options:
        raise AttnscopeError("A capture or an attention is shown as it is, without further arguments.")


def _is_module(x: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.nn.Module)


# -------------------------------------------------------------------- mappings: TransformerLens' cache, stages by name

_HOOK = re.compile(r"^blocks\.(\d+)\.attn\.hook_(q|k|v|z|pattern|attn_scores|rot_q|rot_k|result)$")
_STAGE_NAMES = {
    "q": "queries", "query": "queries", "queries": "queries", "k": "keys", "key": "keys", "keys": "keys", "v": "values", "value": "values",
    "values": "values", "weights": "weights", "attn_weights": "weights", "attention_weights": "weights", "attentions": "weights", "pattern": "weights",
    "attn": "weights",
}  # fmt: skip
_NUMBERED = re.compile(r"^(?:.*?[._])?(\d+)[._](?:.*[._])?([A-Za-z_]+)$")


def from_mapping(mapping: Mapping[Any, Any], tokens: Any = None, **options: Any) -> Recording:
    """Returns the attentions of a mapping with TransformerLens' names, or with stage names after a layer number."""
    layers: dict[int, dict[str, Any]] = {}
    is_lens = False
    for key, x in mapping.items():
        name = str(key)
        if hook := _HOOK.match(name):
            is_lens = True
            layers.setdefault(int(hook[1]), {})[hook[2]] = x
        elif name in _STAGE_NAMES:
            layers.setdefault(-1, {})[_STAGE_NAMES[name]] = x
        elif (numbered := _NUMBERED.match(name)) and numbered[2] in _STAGE_NAMES:
            layers.setdefault(int(numbered[1]), {})[_STAGE_NAMES[numbered[2]]] = x
    if not layers:
        some = ", ".join(repr(str(k)) for k in list(mapping)[:4])
        raise AttnscopeError(
            f"No name says which tensor is an attention stage: there are {some or 'none'}; expected 'weights', 'queries', … or TransformerLens' hooks."
        )
    if is_lens:
        found = [_from_hooks(layer, hooks, tokens, options) for layer, hooks in sorted(layers.items()) if layer >= 0]
        return Recording([a for a in found if a is not None])
    made = []
    for i, (layer, stages) in enumerate(sorted(layers.items())):
        stages = {k: v for k, v in stages.items() if not ("weights" in stages and k in ("queries", "keys"))}
        a = of_stages(**stages, tokens=tokens, **options, name="attention" if layer < 0 else f"layer {layer}")
        a.layer = i
        made.append(a)
    return Recording(made)


def _from_hooks(layer: int, hooks: Mapping[str, Any], tokens: Any, options: dict[str, Any]) -> Attention | None:
    """Returns the attention of TransformerLens' activations: queries, keys, values [batch, tokens, heads, d_head]."""

    def heads(*names: str) -> Array | None:
        for hook in names:
            if hook in hooks:
                a = to_numpy(hooks[hook], f"hook_{hook} of layer {layer}")
                a = a[None] if a.ndim == 3 else a
                return np.ascontiguousarray(a.transpose(0, 2, 1, 3))
        return None

    q, k, v = heads("rot_q", "q"), heads("rot_k", "k"), heads("v")
    pattern = None if "pattern" not in hooks else to_numpy(hooks["pattern"], f"hook_pattern of layer {layer}")
    name = f"blocks.{layer}.attn"
    if pattern is None and (q is None or k is None):
        return None
    if q is not None and k is not None:
        a = of_stages(q, k, v, **{"causal": True, **options}, tokens=tokens, name=name)
        if pattern is not None:
            a.observed["weights"] = pattern if pattern.ndim == 4 else pattern[None]
            if not np.allclose(a.weights, a.observed["weights"], rtol=1e-4, atol=1e-5):
                a.given = {"weights": a.observed["weights"]}
                a.notes.append(
                    f"{name}: hook_pattern is not the causal softmax of these queries and keys, so the weights are shown as they are."
                )
    else:
        a = of_stages(weights=pattern, values=v, tokens=tokens, name=name)
    a.layer = layer
    return a
