"""The notebook in assets/examples and the cells of the documents: every cell runs, and its value can be displayed."""

import ast
import contextlib
import importlib.util
import io
import json
import os
import tempfile
import unittest
import warnings
from pathlib import Path
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


try:
    import transformers
except ImportError:
    transformers = None


@unittest.skipUnless(torch and transformers, "PyTorch or transformers is not installed")
class Documents(unittest.TestCase):
    def test_every_cell_of_the_documents_runs(self):
        from cells import cells, setting

        self.assertGreaterEqual(len(cells()), 6)
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()), setting() as names:
            os.chdir(folder)
            try:
                for cell in cells():
                    with self.subTest(cell=cell):
                        execute(cell, names)
                names["test_my_attention"]()
            finally:
                os.chdir(before)

    @unittest.skipUnless(importlib.util.find_spec("nbclient") and importlib.util.find_spec("ipykernel"), "no notebook kernel is installed")
    def test_they_run_in_a_notebook_kernel(self):
        import nbformat
        from cells import cells
        from nbclient import NotebookClient

        paths = [str(ROOT / "python"), str(Path(__file__).parent)]
        begin = f"import sys\nsys.path[:0] = {paths}\nfrom cells import setting\nscene = setting()\nglobals().update(scene.__enter__())"
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in (begin, *cells(), "attnscope.reference(q, k, v).html()")])
        with tempfile.TemporaryDirectory() as folder:
            NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}}).execute()
        (shown,) = (o for o in notebook.cells[-1].outputs if o.output_type == "execute_result")
        self.assertIn("<iframe", shown.data["text/html"])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main()
