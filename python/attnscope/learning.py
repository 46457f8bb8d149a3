"""learn(): small transformers that the program trains, their curves and snapshots, and the result as a model of transformers."""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from . import program, safetensors
from .arrays import Array
from .errors import AttnscopeError
from .showing import open_window

log = logging.getLogger("attnscope")
_MODEL = ("config.json", "tokenizer.json", "tokenizer_config.json")


class Setup(TypedDict, total=False):
    """The options of `attnscope learn`; those that are left out are as the task needs them."""

    layers: int
    heads: int
    width: int
    positions: str
    kv_heads: int
    mlp: int
    norm: str
    mask: bool
    dropout: float
    optimizer: str
    rate: float
    batch: int
    mistake: str | None
    steps: int
    seed: int


@dataclass(eq=False)
class LearningRun:
    """A run of `attnscope learn`: curves at the measured steps, snapshots, and the model at each of them."""

    task: str
    setup: dict[str, Any]
    step: Array  # measured steps
    loss: Array  # in training, in nats
    accuracy: Array  # on fresh sequences, 0 to 1
    training_accuracy: Array
    fresh_loss: Array
    heads: dict[str, Array]  # by pattern: attention to its keys, [measurement, layer, head], 0 to 1
    milestones: list[tuple[int, str]]  # what was there from which step on
    diverged: int | None  # the step whose loss or gradient was not a number
    snapshots: list[int]  # steps of which there is a model; none if it is no model of transformers
    example: str  # a text to try it on
    no_model_reason: str = ""
    _folder: Path = field(default_factory=Path, repr=False)
    _kept: Any = field(default=None, repr=False)  # the folder lives as long as the run

    def save(self, folder: str | Path, step: int | None = None) -> Path:
        """Writes the model at a snapshot, by default the last, into a new folder that transformers and attnscope open."""
        if not self.snapshots:
            raise AttnscopeError(f"There is no model: {self.no_model_reason}.")
        if step is not None and step not in self.snapshots:
            raise AttnscopeError(f"There is no snapshot of step {step}; there are {_listed(self.snapshots)}.")
        folder = Path(folder)
        try:
            folder.mkdir()
        except OSError as error:
            raise AttnscopeError(f"{folder} cannot be made: {error.strerror}.") from None
        for name in _MODEL:
            shutil.copy(self._folder / name, folder)
        if step is None:
            shutil.copy(self._folder / "model.safetensors", folder)
            return folder
        tensors, metadata = safetensors.read(self._folder / "snapshots.safetensors")
        k = self.snapshots.index(step)
        chosen = {name: tensor[k] for name, tensor in tensors.items() if name != "steps" and isinstance(tensor, np.ndarray)}
        safetensors.write(folder / "model.safetensors", chosen, metadata)
        return folder

    def model(self, step: int | None = None) -> Any:
        """Returns the model at a snapshot, by default the last, as one of transformers."""
        return self._from_transformers("AutoModelForCausalLM", step)

    def tokenizer(self) -> Any:
        """Returns the tokenizer of the model: a token for each character."""
        return self._from_transformers("AutoTokenizer", None)

    def _from_transformers(self, what: str, step: int | None) -> Any:
        try:
            import transformers
        except ImportError as error:
            raise AttnscopeError(f"This needs transformers, which cannot be imported ({error}).") from None
        with tempfile.TemporaryDirectory(prefix="attnscope-") as parent:
            return getattr(transformers, what).from_pretrained(self.save(Path(parent) / "model", step))

    def show(self, step: int | None = None, text: str | None = None) -> LearningRun:
        """Opens the window on the model at a snapshot, by default the last, on a text of the task; without a display it only says so."""
        if not program.has_display():
            log.warning("There is no display to open a window on.")
            return self
        folder = self.save(Path(tempfile.mkdtemp(prefix="attnscope-")) / self.task, step)
        open_window([folder, "--text", self.example if text is None else text], folder / "messages.log")
        return self

    def __repr__(self) -> str:
        last = f", accuracy {self.accuracy[-1]:.3f}" if len(self.accuracy) else ""
        return f"<LearningRun {self.task!r}: {int(self.step[-1]) if len(self.step) else 0} steps{last}>"


def _listed(steps: list[int]) -> str:
    return ", ".join(map(str, steps)) if len(steps) < 8 else f"{steps[0]}, {steps[1]}, … {steps[-1]}"


def _options(setup: Setup) -> list[str]:
    words = []
    for name, value in setup.items():
        if name not in Setup.__annotations__:
            raise TypeError(f"learn() has no argument {name!r}; it has {', '.join(Setup.__annotations__)}.")
        if value is None:
            continue
        text = ("on" if value else "off") if name == "mask" else str(value)
        words += ["--" + name.replace("_", "-"), text]
    return words


def train(task: str | Path | None, text: str | None, setup: Setup) -> LearningRun:
    """Trains in the program; an interrupt ends the training, and the run until then is returned."""
    if (task is None) == (text is None):
        raise TypeError("learn() takes a task, the path of a text file, or text=…")
    kept = tempfile.TemporaryDirectory(prefix="attnscope-")
    parent = Path(kept.name)
    if text is not None:
        task = parent / "text.txt"
        task.write_text(text, "utf-8")
    command: list[str | Path] = ["learn", str(task), *_options(setup), "--json"]
    folder, reason = parent / "run", ""
    try:
        found = _run([*command, "--out", folder])
    except AttnscopeError as error:
        reason = str(error)
        if "no model of transformers" not in reason:
            raise
        found = _run(command)
    snapshots: list[int] = []
    if (folder / "snapshots.safetensors").exists():
        steps = safetensors.read(folder / "snapshots.safetensors")[0]["steps"]
        snapshots = [int(step) for step in np.asarray(steps)]
    measured = found["heads"]
    return LearningRun(
        task=found["task"],
        setup=found["setup"],
        step=np.array(found["step"]),
        loss=np.array(found["loss"]),
        accuracy=np.array(found["accuracy"]),
        training_accuracy=np.array(found["training_accuracy"]),
        fresh_loss=np.array(found["fresh_loss"]),
        heads={pattern: np.array([each[pattern] for each in measured]) for pattern in (measured[0] if measured else {})},
        milestones=[(each["step"], each["words"]) for each in found["milestones"]],
        diverged=found["diverged"],
        snapshots=snapshots,
        example=found["example"],
        no_model_reason=reason.partition("--out: ")[2].partition(";")[0],
        _folder=folder,
        _kept=kept,
    )


def _run(arguments: list[str | Path]) -> dict[str, Any]:
    process = subprocess.Popen(
        [str(program.executable()), *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,  # an interrupt of Python reaches the program once, from here
    )
    try:
        out, said = process.communicate()
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        out, said = process.communicate()
    except BaseException:
        process.kill()
        raise
    with contextlib.suppress(ValueError):
        return json.loads(out)
    errors = [line for line in said.splitlines() if line.startswith("attnscope: ") and not line.startswith("attnscope: note:")]
    raise AttnscopeError(errors[-1].removeprefix("attnscope: ") if errors else f"attnscope learn ended with {process.returncode}.")
