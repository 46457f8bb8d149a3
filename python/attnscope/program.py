"""The native program: finding its executable, running its commands, and starting its window."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from .errors import AttnscopeError, ProgramNotFound

INSIDE = Path(__file__).parent / "bin" / "attnscope"


def executable() -> Path:
    """Returns the executable: $ATTNSCOPE if set, else the one inside the package, else the one on PATH."""
    if named := os.environ.get("ATTNSCOPE"):
        path = Path(named)
        if not os.access(path, os.X_OK) or path.is_dir():
            raise ProgramNotFound(f"$ATTNSCOPE is {named!r}, which is not an executable file.")
        return path
    if os.access(INSIDE, os.X_OK):
        return INSIDE
    # pip installs a script under the same name, which would call this package again.
    own_scripts = Path(sys.executable).parent
    for folder in os.get_exec_path():
        found = shutil.which("attnscope", path=folder)
        if found and (Path(folder) != own_scripts or not _is_script(Path(found))):
            return Path(found)
    raise ProgramNotFound(
        "The native program, which draws the window and finds bugs, is neither inside this package nor on PATH; the wheel of Linux on x86-64 "
        "has it, and the environment variable ATTNSCOPE selects another. capture(), html() and check() of tensors work without it."
    )


def is_here() -> bool:
    try:
        return bool(executable())
    except ProgramNotFound:
        return False


def _is_script(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"#!"


def run(
    arguments: Sequence[str | Path], *, accept: Sequence[int] = (0,), environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a command of the program and returns its output; raises its error line on an exit status not accepted."""
    command = [str(executable()), *map(str, arguments)]
    env = None if environment is None else {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", stdin=subprocess.DEVNULL, env=env)
    if done.returncode not in accept:
        raise AttnscopeError(_error_line(done))
    return done


def _error_line(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in done.stderr.splitlines() if line and not line.startswith("attnscope: note:")]
    if not lines:
        return f"attnscope {done.args[1]} ended with status {done.returncode} and said nothing."
    return lines[0].removeprefix("attnscope: ")


def notes(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Returns the notes that a command wrote to stderr."""
    mark = "attnscope: note: "
    return [line.removeprefix(mark) for line in done.stderr.splitlines() if line.startswith(mark)]


def has_display() -> bool:
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def start_window(
    arguments: Sequence[str | Path], log: Path, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Starts the window in a separate process, which outlives Python; its output goes into log."""
    with log.open("wb") as said:  # a pipe would break when Python ends, and end the window
        return subprocess.Popen(
            [str(executable()), *map(str, arguments)],
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,  # Ctrl+C in the terminal ends the cell, not the window
        )


def main() -> int:
    """Becomes the native program: the command line `attnscope` of the package."""
    try:
        path = str(executable())
    except ProgramNotFound as error:
        print(f"attnscope: {error}", file=sys.stderr)
        return 1
    os.execv(path, [path, *sys.argv[1:]])
