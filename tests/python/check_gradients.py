"""Compares the gradients of random numbers of random sessions, with every option that PyTorch has, with those of autograd in the emitted program.

usage: check_gradients.py ATTNSCOPE [SESSIONS]    exit status: 0 equal, 1 different, 77 PyTorch or NumPy is missing
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
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from any_session import difference, session

TOLERANCE = 1e-12  # of the largest number of each tensor
LEAST = 1e-2  # of the largest number of all: smaller ones may be the rest of a difference
NOISE = 1e-10  # of a key bias: 0 in theory, as a softmax ignores a constant


def run(program, *arguments):
    return subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def random_target(random, stages):
    """Returns the options that name a number: a cell, or the sum of a row, a column or all cells."""
    names = [name for name in stages if name not in ("embeddings", "key_embeddings", "mask", "dropout_mask", "position_bias")]
    name = "output" if random.random() < 0.4 else names[int(random.integers(len(names)))]
    shape = stages[name].shape
    row, column = (int(random.integers(n)) if random.random() < 0.8 else ":" for n in shape[-2:])
    return f"{name}[{row},{column}]"


def check(program, source, random, directory):
    """Returns the largest difference, and how many tensors were compared and how many have a NaN."""
    stages_file, script, archive = (directory / name for name in ("stages.npz", "program.py", "gradients.npz"))
    run(program, "export", source, "--out", stages_file)
    described = json.loads(source.read_text(encoding="utf-8"))
    heads, batch = described["n_heads"], len(numpy.shape(described["embeddings"])) > 2
    stages = {name: a for name, a in numpy.load(stages_file).items() if "." not in name and not name.endswith("tokens")}
    of = random_target(random, stages)
    sequence = int(random.integers(len(described["embeddings"]))) if batch else 0
    place = ["--sequence", sequence]
    if of.split("[")[0] not in ("concatenated", "output"):
        place += ["--head", int(random.integers(heads))]
    run(program, "gradient", source, "--of", of, *place, "--out", archive)
    run(program, "program", source, "--gradient-of", of, *place, "--out", script)
    with contextlib.redirect_stdout(io.StringIO()):
        result = runpy.run_path(str(script))
    ours, worst, compared, with_nan = numpy.load(archive), 0.0, 0, 0
    # What is NaN in another sequence, as 0 · NaN, autograd adds to the gradients of what sequences share.
    has_foreign_nan = batch and any(
        numpy.isnan(numpy.delete(result["gradients"]["d_" + name].numpy(), sequence, axis=0)).any()
        for name in result["stages"]
        if result["gradients"]["d_" + name] is not None and result["gradients"]["d_" + name].shape[0] == len(described["embeddings"])
    )
    heads_of_bias = [name for name in ours if name.startswith("d_score_bias.head")]
    least = LEAST * max([1.0, *(float(numpy.abs(a[numpy.isfinite(a)]).max(initial=0)) for a in ours.values())])
    seen = set()
    for name, theirs in result["gradients"].items():
        tensor = result["stages"].get(name[2:])
        if tensor is not None and id(tensor) in seen:
            continue  # an output without a projection is the concatenated tensor itself, and has its gradient
        seen.add(id(tensor))
        if name == "d_score_bias" and heads_of_bias:
            own = numpy.stack([ours[head] for head in heads_of_bias])
        else:
            own = ours[name]
        theirs = numpy.zeros_like(own) if theirs is None else theirs.detach().numpy()
        if theirs.size > own.size:  # of every sequence, unlike the position bias
            others = numpy.delete(theirs, sequence, axis=0)
            assert not others[numpy.isfinite(others)].any(), f"{of} {place}: {name} depends on another sequence"
            theirs = theirs[sequence]
        theirs = theirs.reshape(own.shape)
        if has_foreign_nan and name[2:] not in result["stages"]:
            own = numpy.where(numpy.isnan(theirs), theirs, own)
        apart = difference(own, theirs, least)
        limit = NOISE if name == "d_key_bias" else TOLERANCE
        assert apart <= limit, f"{of} {place}: {name} differs by {apart}\n{own}\n{theirs}"
        worst = max(worst, apart if name != "d_key_bias" else 0)
        compared, with_nan = compared + 1, with_nan + bool(numpy.isnan(own).any())
    return worst, compared, with_nan


def main(program, count=100):
    worst, compared, with_nan = 0.0, 0, 0
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for seed in range(int(count)):
            random = numpy.random.default_rng(seed)
            path = directory / "session.json"
            path.write_text(json.dumps(session(random)), encoding="utf-8")
            try:
                found = check(program, path, random, directory)
            except AssertionError as error:
                print(f"session {seed}: {error}")
                sys.exit(1)
            worst, compared, with_nan = max(worst, found[0]), compared + found[1], with_nan + found[2]
    assert compared > 10 * int(count)
    print(f"{count} sessions, {compared} gradients, {with_nan} with NaN: largest difference {worst:.1e}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(*sys.argv[1:])
