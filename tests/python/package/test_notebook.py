"""The notebook in assets/examples: every cell runs, and what it ends with can be displayed."""

import ast
import contextlib
import io
import json
import unittest
import warnings
from unittest import mock

from support import ROOT, torch

import attnscope

NOTEBOOK = ROOT / "assets" / "examples" / "python.ipynb"


def execute(source, names):
    """Runs a cell and returns its last value, as a notebook does."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)


class Notebook(unittest.TestCase):
    def test_every_cell_runs_and_displays(self):
        names, shown = {}, 0
        cells = [c for c in json.loads(NOTEBOOK.read_text("utf-8"))["cells"] if c["cell_type"] == "code"]
        for cell in cells:
            self.assertEqual(cell["outputs"], [], "the notebook is kept without outputs")
            if "torch" in cell["metadata"].get("tags", []) and torch is None:
                continue
            with (
                contextlib.redirect_stderr(io.StringIO()),
                mock.patch.object(attnscope.program, "has_display", lambda: False),
            ):
                value = execute(cell["source"], names)
            if value is not None:
                forms = [getattr(value, f)() for f in ("_repr_html_", "_repr_svg_", "_repr_png_") if hasattr(value, f)]
                self.assertTrue(any(forms), type(value))
                shown += 1
        self.assertGreaterEqual(shown, 4)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main()
