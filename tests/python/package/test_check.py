"""check() and assert_same(): the first stage that differs, and the mistake that explains it."""

import tempfile
import unittest
from pathlib import Path

from support import np, random

import attnscope
from attnscope.attention import of_stages


class Check(unittest.TestCase):
    def setUp(self):
        q, k, v = random(3, 2, 6, 4)
        self.theirs = of_stages(q, k, v, causal=True)
        self.unscaled = of_stages(q, k, v, causal=True, scale=1)

    def test_the_same_agrees(self):
        report = attnscope.check(self.theirs, self.theirs)
        self.assertTrue(report.agrees and report)
        self.assertIsNone(report.first)
        self.assertIn("Everything agrees", report.report)

    def test_a_missing_scale_is_named(self):
        report = attnscope.check(self.unscaled, self.theirs)
        self.assertFalse(report)
        self.assertEqual((report.first, report.causes), ("weights", ["no_scale"]))
        self.assertIn("not divided by √d_head", report.report)
        self.assertIn("<b>differs</b>", report._repr_html_())

    def test_tensors_in_place_of_an_attention(self):
        for ours in ({"weights": self.unscaled.weights}, {"weights": self.unscaled.weights.astype(np.float32)}):
            self.assertEqual(attnscope.check(ours, self.theirs).causes, ["no_scale"])

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "model.json"
            self.theirs.save(model)
            np.savez(Path(folder) / "ours.npz", weights=self.unscaled.weights)
            self.assertEqual(attnscope.check(Path(folder) / "ours.npz", model).first, "weights")

    def test_layers_until_the_first_that_differs(self):
        report = attnscope.check(
            attnscope.Recording([self.theirs, self.unscaled, self.theirs]), attnscope.Recording([self.theirs] * 3)
        )
        self.assertEqual((report.layer, report.first), (1, "weights"))
        self.assertIn("of layer 1", report.summary)

    def test_assert_same_says_it_in_the_message(self):
        attnscope.assert_same(self.theirs, self.theirs)
        with self.assertRaises(AssertionError) as raised:
            attnscope.assert_same(self.unscaled, self.theirs)
        self.assertIn("no_scale", str(raised.exception))
        attnscope.assert_same(self.unscaled, self.theirs, rtol=10, atol=10)

    def test_wrong_input_is_one_sentence(self):
        for ours, theirs, words in (
            (3, self.theirs, "got int"),
            (self.theirs, 3, "type int"),
            (np.ones((2, 2)), self.theirs, "does not say which stage"),
            (self.theirs, {"numbers": np.ones((2, 2))}, "No name says"),
            (self.theirs, attnscope.Recording([self.theirs] * 2), "2 on the other"),
            ({"nonsense": np.ones((2, 2))}, self.theirs, ""),
        ):
            with self.subTest(words), self.assertRaises(attnscope.AttnscopeError) as raised:
                attnscope.check(ours, theirs)
            self.assertIn(words, str(raised.exception))


if __name__ == "__main__":
    unittest.main()
