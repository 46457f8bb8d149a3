"""Runs the PyTorch program of every preset, and of random sessions with every option, and compares what it computes with the export.

usage: check_programs.py ATTNSCOPE    exit status: 0 equal, 1 different, 77 PyTorch or NumPy is missing
"""

import contextlib
import io
import json
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy
    import torch  # noqa: F401
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from any_session import difference, session

FLOAT32 = float(numpy.finfo(numpy.float32).eps)


def check(program, source, directory):
    script, archive = directory / "program.py", directory / "stages.npz"
    subprocess.run([program, "program", *source, "--out", script], check=True)
    subprocess.run([program, "export", *source, "--out", archive], check=True)
    compile(script.read_text(encoding="utf-8"), script, "exec")
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        stages = runpy.run_path(str(script))["stages"]
    exported = {name: a for name, a in numpy.load(archive).items() if "." not in name and not name.endswith("tokens")}
    assert list(stages) == list(exported), f"{source}: stages {list(stages)} instead of {list(exported)}"
    worst = 0.0
    for name, ours in exported.items():
        theirs = stages[name].numpy().astype(numpy.float64).reshape(ours.shape)
        worst = max(worst, difference(ours, theirs))
        assert difference(ours, theirs) <= FLOAT32, f"{source}: {name} differs by {difference(ours, theirs)}"
        assert f"{name} {tuple(stages[name].shape)}\ntensor(" in output.getvalue(), f"{source}: {name} is not printed"
    return worst


def main(program):
    lines = subprocess.run([program, "presets"], check=True, capture_output=True, text=True).stdout.splitlines()
    presets = [line.split("\t")[0] for line in lines]
    assert presets
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for preset in presets:
            print(f"{preset}: {check(program, ['--preset', preset], directory):.1e}")
        for seed in range(100):
            path = directory / "session.json"
            path.write_text(json.dumps(session(numpy.random.default_rng(seed))), encoding="utf-8")
            print(f"session {seed}: {check(program, [path], directory):.1e}")


if __name__ == "__main__":
    main(sys.argv[1])
