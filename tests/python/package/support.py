"""Shared by the tests of the package: the package of this source tree, and random numbers."""

import os
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
if "ATTNSCOPE_INSTALLED" not in os.environ:  # otherwise the package of a wheel is tested
    sys.path.insert(0, str(ROOT / "python"))

try:
    import numpy as np
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

try:
    import torch
except ImportError:
    torch = None

needs_torch = unittest.skipUnless(torch, "PyTorch is not installed")


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def softmax(scores):
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def exported(attention, *options):
    """Returns every stage of an attention as the program computes it from the session."""
    from attnscope import program

    file = attention.session_file()
    out = file.parent / "stages.npz"
    program.run(["export", file, "--out", out, *options])
    with np.load(out) as stages:
        return {name: stages[name] for name in stages.files}
