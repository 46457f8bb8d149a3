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

FLOAT32 = float(numpy.finfo(numpy.float32).eps)


def difference(ours, theirs):
    """The largest difference of two arrays as a share of the largest number, NaN and infinities being equal to themselves."""
    if not numpy.array_equal(numpy.isnan(ours), numpy.isnan(theirs)):
        return float("inf")
    infinite = numpy.isinf(ours) | numpy.isinf(theirs)
    if not numpy.array_equal(ours[infinite], theirs[infinite]):
        return float("inf")
    finite = numpy.isfinite(ours)
    if not finite.any():
        return 0.0
    return float(numpy.abs(ours[finite] - theirs[finite]).max() / max(1.0, numpy.abs(ours[finite]).max()))


def check(program, source, directory):
    script, archive = directory / "program.py", directory / "stages.npz"
    subprocess.run([program, "program", *source, "--out", script], check=True)
    subprocess.run([program, "export", *source, "--out", archive], check=True)
    compile(script.read_text(encoding="utf-8"), script, "exec")
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        stages = runpy.run_path(str(script))["stages"]
    exported = {name: a for name, a in numpy.load(archive).items() if not name.startswith("projections.") and not name.endswith("tokens")}
    assert list(stages) == list(exported), f"{source}: stages {list(stages)} instead of {list(exported)}"
    worst = 0.0
    for name, ours in exported.items():
        theirs = stages[name].numpy().astype(numpy.float64).reshape(ours.shape)
        worst = max(worst, difference(ours, theirs))
        assert difference(ours, theirs) <= FLOAT32, f"{source}: {name} differs by {difference(ours, theirs)}"
        assert f"{name} {tuple(stages[name].shape)}\ntensor(" in output.getvalue(), f"{source}: {name} is not printed"
    return worst


def pick(random, *choices):
    return choices[random.integers(len(choices))]


def rules(random, batch, tokens):
    """Some of the mask's rules beside the causal one."""
    hidden = [sorted({int(random.integers(tokens)) for _ in range(int(random.integers(3)))}) for _ in range(batch)]
    every = {
        "window": [int(random.integers(-1, 3)), int(random.integers(-1, 3))],
        "prefix": int(random.integers(tokens + 1)),
        "documents": [int(number) for number in random.integers(3, size=tokens)],
        "hidden_keys": hidden if batch > 1 else hidden[0],
    }
    return {name: rule for name, rule in every.items() if random.random() < 0.3}


def session(random):
    """A session with options chosen at random, small enough for its numbers to be written out."""
    batch, heads, tokens, d_in = (int(random.integers(1, n)) for n in (4, 4, 6, 5))
    d_out = heads * int(random.integers(1, 4))
    embeddings = random.normal(size=(batch, tokens, d_in)) * pick(random, 1, 1e-3, 50)
    projections = None

    def linear(rows, columns):
        bias = random.normal(size=columns).tolist() if random.random() < 0.5 else None
        return {"weight": random.normal(size=(rows, columns)).tolist(), "bias": bias}

    if random.random() < 0.8:
        projections = {name: linear(d_in, d_out) for name in ("query", "key", "value")}
        projections["output"] = linear(d_out, int(pick(random, d_out, 2, 7))) if random.random() < 0.5 else None
    else:
        heads = 1
    cells = sorted({(int(random.integers(tokens)), int(random.integers(tokens))) for _ in range(int(random.integers(4)))})
    if random.random() < 0.3:  # a query that sees no key
        cells = [(0, column) for column in range(tokens)]
    dropout = {
        "rate": pick(random, 0, 0.1, 0.5, 1),
        "training": bool(random.random() < 0.8),
        "seed": int(random.integers(2**32)),
        "stream": pick(random, "mt19937", "mt19937", "mkl"),
    }
    if random.random() < 0.3:
        mask = random.integers(2, size=(batch, heads, tokens, tokens))
        dropout["mask"] = (mask if batch > 1 else mask[0]).tolist()
    return {
        "attnscope": 1,
        "tokens": pick(random, ['"', "\\n", "naïve", "\t", "🙂"][:tokens] + [str(i) for i in range(5, tokens)], [str(i) for i in range(tokens)]),
        "embeddings": (embeddings if batch > 1 else embeddings[0]).tolist(),
        "projections": projections,
        "n_heads": heads,
        "scores": pick(random, "query_key", "query_key", "uniform"),
        "scale": pick(random, "inverse_sqrt_d_head", "none", "inverse_sqrt_d_model", 0.37, -2),
        "mask": {
            "causal": bool(random.random() < 0.6),
            "method": pick(random, "negative_infinity", "renormalise", "zero_after_softmax", "large_negative"),
            "empty_rows": pick(random, "nan", "zeros"),
            "cells": [[row, column, bool(random.random() < 0.2)] for row, column in cells],
            **rules(random, batch, tokens),
        },
        "dropout": dropout,
        "merge_heads": pick(random, "concatenate", "reshape_without_transpose"),
        "context_length": pick(random, None, tokens, 1024),
    }


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
