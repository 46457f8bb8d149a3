"""The notebook in assets/examples and the cells of the documents: every cell runs, and its value can be displayed."""

import ast
import contextlib
import io
import json
import os
import re
import tempfile
import unittest
import warnings
from unittest import mock

from support import ROOT, random, torch

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


class Tokenizer:
    """One token per word; as much of a tokenizer as the documents need."""

    def __call__(self, text, **_):
        return {"input_ids": torch.arange(len(text.split()))[None]}

    def convert_ids_to_tokens(self, ids):
        return [f"word{int(i)}" for i in ids]

    def decode(self, ids, **_):
        return " ".join(self.convert_ids_to_tokens(ids))


@unittest.skipUnless(torch and transformers, "PyTorch or transformers is not installed")
class Documents(unittest.TestCase):
    def test_every_cell_of_the_documents_runs(self):
        torch.manual_seed(0)
        config = transformers.GPT2Config(n_embd=48, n_layer=6, n_head=4, vocab_size=64, bos_token_id=0, eos_token_id=0)
        model, tokenizer = transformers.GPT2LMHeadModel(config).eval(), Tokenizer()
        module, x = torch.nn.MultiheadAttention(8, 2, batch_first=True), torch.randn(1, 5, 8)
        q, k, v = random(3, 2, 5, 4)
        a = attnscope.attention.of_stages(q, k, v, causal=True)
        names = {
            "model": model, "tokenizer": tokenizer, "inputs": tokenizer("one two three four"), "module": module, "x": x,
            "q": q, "k": k, "v": v, "observed": a, "reference": a, "w": a.weights, "z": a.context,
            "optimizer": torch.optim.SGD(model.parameters(), lr=0.0), "path": ROOT / "assets/examples/tiny_gpt",
        }  # fmt: skip
        with attnscope.capture(model) as names["other"]:
            model(**names["inputs"])
        cells = [cell for path in ("README.md", "docs/python.md")
                 for cell in re.findall(r"^```python\n(.*?)^```", (ROOT / path).read_text("utf-8"), re.S | re.M)]  # fmt: skip
        self.assertGreaterEqual(len(cells), 4)
        before = os.getcwd()
        with (
            tempfile.TemporaryDirectory() as folder,
            contextlib.redirect_stderr(io.StringIO()),
            mock.patch.object(attnscope.program, "has_display", lambda: False),
            mock.patch.object(attnscope, "attach", mock.MagicMock()),
            mock.patch.object(transformers.AutoModelForCausalLM, "from_pretrained", lambda _: model),
            mock.patch.object(transformers.AutoTokenizer, "from_pretrained", lambda _: tokenizer),
        ):
            os.chdir(folder)
            try:
                for cell in cells:
                    with self.subTest(cell=cell):
                        execute(cell, names)
                names["test_my_attention"]()
            finally:
                os.chdir(before)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main()
