"""Exports presets in every format and reads the files with NumPy: the numbers are the same to the last bit.

usage: check_numpy.py ATTNSCOPE    exit status: 0 equal, 1 different, 77 NumPy is missing
"""

import csv
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

try:
    import numpy
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

PRESETS = ("multi-head", "001-multi-head", "003-causal-class", "004-renormalise", "002-library")


def from_csv(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    return numpy.array([[float(field) for field in row[1:]] for row in rows[1:]])


def same_bits(a, b):
    return a.shape == b.shape and a.dtype == b.dtype == numpy.float64 and a.tobytes() == b.tobytes()


def matrices(array, per_head, batch):
    """Yields each matrix of an array with the name of the file that holds it alone."""
    sequences = array if batch else array[numpy.newaxis]
    for s, sequence in enumerate(sequences):
        folder = f"sequence{s}/" if batch else ""
        if per_head:
            for h, matrix in enumerate(sequence):
                yield f"{folder}{{}}.head{h}", matrix
        else:
            yield f"{folder}{{}}", sequence


def check(program, preset, directory):
    archive = directory / "all.npz"
    subprocess.run([program, "export", "--preset", preset, "--out", archive], check=True)
    for form in ("csv", "npy"):
        subprocess.run([program, "export", "--preset", preset, "--out", directory / form, "--format", form], check=True)
    assert zipfile.ZipFile(archive).testzip() is None
    arrays = dict(numpy.load(archive))
    batch = arrays["embeddings"].ndim == 3
    tokens = arrays.pop("tokens")
    assert tokens.dtype.kind == "U" and tokens.shape == arrays["embeddings"].shape[:-1], f"{preset}: tokens {tokens!r}"
    session = directory / "session.json"
    subprocess.run([program, "session", "--preset", preset, "--out", session], check=True)
    written = json.loads(session.read_text(encoding="utf-8"))["tokens"]
    assert numpy.array_equal(tokens, numpy.broadcast_to(written, tokens.shape)), f"{preset}: tokens {tokens!r}"
    seen = 0
    for name, array in arrays.items():
        if name.startswith("projections."):
            continue
        per_head = array.ndim - batch == 3
        for pattern, matrix in matrices(array, per_head, batch):
            stem = pattern.format(name)
            npy = numpy.load(directory / "npy" / f"{stem}.npy")
            assert same_bits(npy, numpy.ascontiguousarray(matrix)), f"{preset}: {stem}.npy differs"
            numbers = from_csv(directory / "csv" / f"{stem}.csv")
            assert numpy.array_equal(numbers, matrix, equal_nan=True), f"{preset}: {stem}.csv differs"
            seen += 1
    assert seen == len(list((directory / "npy").rglob("*.npy"))), f"{preset}: an array is missing"
    return seen


def main(program):
    for preset in PRESETS:
        with tempfile.TemporaryDirectory() as directory:
            print(f"{preset}: {check(program, preset, Path(directory))} matrices")


if __name__ == "__main__":
    main(sys.argv[1])
