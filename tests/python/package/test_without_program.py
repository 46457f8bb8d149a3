"""The package where the native program is not: it captures, compares tensors and makes pages, and says what is missing."""

import contextlib
import io
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from support import needs_torch, np, random, torch

import attnscope
from attnscope import program


class WithoutProgram(unittest.TestCase):
    def setUp(self):
        hidden = {k: v for k, v in os.environ.items() if k not in ("ATTNSCOPE", "DISPLAY", "WAYLAND_DISPLAY")}
        patches = [mock.patch.dict(os.environ, {**hidden, "PATH": "/nowhere"}, clear=True),
                   mock.patch.object(program, "INSIDE", Path("/nowhere/attnscope"))]  # fmt: skip
        for patch in patches:
            patch.start()
            self.addCleanup(patch.stop)
        self.a = attnscope.reference(*random(3, 2, 6, 4), causal=True)

    def test_the_window_says_what_is_missing(self):
        self.assertFalse(program.is_here())
        for show in (lambda: attnscope.show(self.a), lambda: self.a.svg(), lambda: attnscope.show(weights=self.a.weights)):
            with self.assertRaisesRegex(attnscope.ProgramNotFound, "^The native program, which draws the window .* work without it.$"):
                show()
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(program.main(), 1)
        self.assertIn("attnscope: The native program", said.getvalue())

    def test_a_notebook_shows_maps_and_pages(self):
        self.assertIsNone(self.a._repr_svg_() or self.a._repr_png_())
        self.assertIn("data:image/png", self.a._repr_html_())
        self.assertGreater(len(attnscope.html(self.a).text), 50_000)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "a.safetensors"
            attnscope.Recording([self.a]).save(file)
            np.testing.assert_array_equal(attnscope.load(file)[0].weights, self.a.weights)

    def test_tensors_are_compared_without_a_search(self):
        same = attnscope.check({"weights": self.a.weights, "scores": self.a.scores.astype(np.float32)}, self.a)
        self.assertTrue(same)
        self.assertEqual([s.name for s in same.stages], ["scores", "weights"])
        uncausal = attnscope.reference(self.a.queries, self.a.keys, self.a.values)
        report = attnscope.check(uncausal, self.a)
        self.assertEqual((report.agrees, report.first, report.searched, report.causes), (False, "weights", False, []))
        self.assertIn("No bug was looked for. The native program", str(report))
        self.assertNotIn("None of the known bugs", str(report))
        half = self.a.weights.astype(np.float16)
        self.assertEqual(attnscope.check({"weights": half}, self.a).stages[0].rounding, "float16")
        with self.assertRaises(attnscope.Disagreement):
            attnscope.assert_same({"contexts": uncausal.context}, self.a)
        with self.assertRaises(attnscope.ProgramNotFound):
            attnscope.check({"my_own_name": self.a.weights}, self.a)

    @needs_torch
    def test_models_are_captured(self):
        x = torch.randn(1, 5, 8)
        module = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        with attnscope.capture(module) as c:
            module(x, x, x)
        self.assertTrue(c.check(c))
        self.assertIn("data:image/png", c._repr_html_())
        self.assertGreater(len(c.html().text), 50_000)


if __name__ == "__main__":
    unittest.main()
