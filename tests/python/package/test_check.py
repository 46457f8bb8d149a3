"""check() and assert_same(): the first stage that differs, and the mistake that explains it."""

import tempfile
import unittest
from pathlib import Path

from support import needs_torch, np, random, torch

import attnscope
from attnscope.attention import of_stages

if torch:
    import torch.nn.functional as F


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


@needs_torch
class Recordings(unittest.TestCase):
    """A recording agrees with itself, and with itself from a file, whatever the model."""

    def recordings(self):
        from torch import nn

        torch.manual_seed(0)
        x = torch.randn(2, 7, 32)
        padding = torch.zeros(2, 7, dtype=torch.bool)
        padding[:, 5:] = True
        padding[1, 0] = True
        causal = torch.ones(7, 7).triu(1).bool()
        attention = nn.MultiheadAttention(32, 4, batch_first=True)

        def cosine(q, k, v, o):
            q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
            return o((q @ k.mT * torch.tensor([1.0, 2, 3, 4]).view(4, 1, 1)).softmax(-1) @ v)

        def ablated(q, k, v, o):
            return o((q @ k.mT).softmax(-1) * torch.tensor([0.0, 1, 1, 1]).view(4, 1, 1) @ v)

        def sunk(q, k, v, o):
            return o(F.scaled_dot_product_attention(q, k, v, attn_mask=torch.randn(7, 7), dropout_p=0.5))

        def by_hand(f, dtype=torch.float32):
            q, k, v, o = (nn.Linear(32, 32, dtype=dtype) for _ in range(4))

            def run():
                heads = lambda m: m(x.to(dtype)).view(2, 7, 4, 8).transpose(1, 2)
                return f(heads(q), heads(k), heads(v), lambda z: o(z.transpose(1, 2).reshape(2, 7, 32)))

            return run

        other = nn.MultiheadAttention(32, 4, kdim=16, vdim=24, batch_first=True)
        for name, run in {
            "cosine": by_hand(cosine),
            "ablated head": by_hand(ablated),
            "bias and dropout": by_hand(sunk),
            "bfloat16": by_hand(lambda q, k, v, o: o(F.scaled_dot_product_attention(q, k, v, is_causal=True)), torch.bfloat16),
            "values of another width": lambda: other(x, torch.randn(2, 5, 16), torch.randn(2, 5, 24)),
            "rows without a key": lambda: attention(x, x, x, key_padding_mask=padding, attn_mask=causal),
        }.items():
            with torch.no_grad(), attnscope.capture() as c:
                run()
                run()
            yield name, c

    def test_with_itself_and_from_a_file(self):
        for name, c in self.recordings():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                self.assertEqual(len(c), 2)
                file = c.save(Path(folder) / "run.safetensors")
                for ours, theirs in ((c, c), (c, attnscope.load(file)), (attnscope.load(file), c), (file, file), (c[0], c[0])):
                    report = attnscope.check(ours, theirs)
                    self.assertTrue(report.agrees, report.report)

    def test_a_difference_is_found_at_its_place(self):
        for name, c in self.recordings():
            for stage in ("queries", "contexts", "output"):
                stages = c[0].stages()
                if stage not in stages:
                    continue
                for change in (np.nan, 1e3):
                    changed = stages[stage].astype(np.float64)
                    changed[(0, 1, 2, 3)[-changed.ndim :]] = change
                    report = attnscope.check(stages | {stage: changed}, c[0])
                    with self.subTest(name, stage=stage, change=change):
                        self.assertEqual((report.agrees, report.first), (False, stage))


if __name__ == "__main__":
    unittest.main()
