"""check() and assert_same(): the first stage that differs, and the mistake that explains it."""

import tempfile
import unittest
from pathlib import Path

from support import needs_torch, np, random, softmax, torch

import attnscope
from attnscope.attention import of_stages

if torch:
    import torch.nn.functional as F


def rounded(x):
    """Returns numbers rounded to bfloat16, as float32."""
    return np.asarray(attnscope.arrays.BFloat16.rounded(x))


class Check(unittest.TestCase):
    def setUp(self):
        q, k, v = random(3, 2, 6, 4)
        self.reference = of_stages(q, k, v, causal=True)
        self.unscaled = of_stages(q, k, v, causal=True, scale=1)

    def test_the_same_agrees(self):
        report = attnscope.check(self.reference, self.reference)
        self.assertTrue(report.agrees and report)
        self.assertIsNone(report.first)
        self.assertIn("Everything agrees", report.report)

    def test_a_missing_scale_is_named(self):
        report = attnscope.check(self.unscaled, self.reference)
        self.assertFalse(report)
        self.assertEqual((report.first, report.causes), ("weights", ["no_scale"]))
        self.assertIn("not divided by √d_head", report.report)
        self.assertIn("<b>differs</b>", report._repr_html_())

    def test_tensors_in_place_of_an_attention(self):
        for observed in ({"weights": self.unscaled.weights}, {"weights": self.unscaled.weights.astype(np.float32)}):
            self.assertEqual(attnscope.check(observed, self.reference).causes, ["no_scale"])

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "model.json"
            self.reference.save(model)
            np.savez(Path(folder) / "observed.npz", weights=self.unscaled.weights)
            self.assertEqual(attnscope.check(Path(folder) / "observed.npz", model).first, "weights")

    def test_layers_until_the_first_that_differs(self):
        report = attnscope.check(
            attnscope.Recording([self.reference, self.unscaled, self.reference]), attnscope.Recording([self.reference] * 3)
        )
        self.assertEqual((report.layer, report.first), (1, "weights"))
        self.assertIn("of layer 1", report.summary)

    def test_assert_same_says_it_in_the_message(self):
        attnscope.assert_same(self.reference, self.reference)
        with self.assertRaises(AssertionError) as raised:
            attnscope.assert_same(self.unscaled, self.reference)
        self.assertIn("no_scale", str(raised.exception))
        attnscope.assert_same(self.unscaled, self.reference, rtol=10, atol=10)

    def test_old_names_work_and_warn(self):
        for old in ({"ours": self.unscaled, "theirs": self.reference}, {"observed": self.unscaled, "theirs": self.reference}):
            with self.assertWarnsRegex(DeprecationWarning, "theirs= is called reference= now"):
                self.assertEqual(attnscope.check(**old).causes, ["no_scale"])
        with self.assertWarns(DeprecationWarning):
            self.assertTrue(self.reference.check(other=self.reference))

    def test_a_tolerance_of_zero_is_zero(self):
        near = self.reference.weights * (1 + 1e-12)
        self.assertTrue(attnscope.check({"weights": near}, self.reference))
        self.assertFalse(attnscope.check({"weights": near}, self.reference, rtol=0, atol=0))

    def test_either_is_not_both(self):
        either = attnscope.check({"weights": rounded(self.reference.weights)}, self.reference)
        self.assertEqual(either.explanations, [["softmax_bfloat16_precision"], ["bfloat16_precision"]])
        self.assertIn("Either of these explains every tensor", either.report)
        both = attnscope.check({"weights": softmax(self.reference.scores)}, self.reference)
        self.assertEqual(both.explanations, [["no_mask", "no_scale"]])
        self.assertIn("no_mask and no_scale, which together explain every tensor", both.report)

    def test_half_precision_is_judged_to_its_rounding(self):
        q, k = self.reference.queries, self.reference.keys
        for half in ("bfloat16", "float16"):
            tensors = {
                name: attnscope.arrays.stored(x, half)
                for name, x in (("queries", q), ("keys", k), ("weights", self.reference.weights), ("contexts", self.reference.context))
            }
            report = attnscope.check(tensors, self.reference)
            with self.subTest(half):
                self.assertTrue(report, report.report)
                self.assertEqual((report.rounding, report.stages[0].dtype), (half, half))
                self.assertGreater(report.could_hide["row"], 0)
                self.assertIn(f"Rounding to {half} could hide a row", report.report)
                self.assertIn(f"agrees as {half}", report.report)
        wide = {name: np.asarray(x, np.float32) for name, x in tensors.items()}
        self.assertFalse(attnscope.check(wide, self.reference))  # as float32 they are not the same

    def test_the_mask_of_a_reference_of_tensors(self):
        q, k, v = (getattr(self.reference, n) for n in ("queries", "keys", "values"))
        mask = np.tril(np.ones((6, 6), bool))
        observed = {"weights": self.reference.weights}
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "reference.npz"
            np.savez(file, queries=q, keys=k, values=v)
            for reference in ({"q": q, "k": k, "v": v}, file, of_stages(q, k, v)):
                for rule in ({"causal": True}, {"mask": mask}):
                    self.assertTrue(attnscope.check(observed, reference, **rule))
                self.assertFalse(attnscope.check(observed, reference, causal=False))
                self.assertFalse(attnscope.check(observed, reference, causal=True, scale=1.0))

    def test_wrong_input_is_one_sentence(self):
        for observed, reference, words in (
            (3, self.reference, "got int"),
            (self.reference, 3, "type int"),
            (np.ones((2, 2)), self.reference, "does not say which stage"),
            (self.reference, {"numbers": np.ones((2, 2))}, "No name says"),
            (self.reference, attnscope.Recording([self.reference] * 2), "and 2 in the reference"),
            ({"nonsense": np.ones((2, 2))}, self.reference, ""),
        ):
            with self.subTest(words), self.assertRaises(attnscope.AttnscopeError) as raised:
                attnscope.check(observed, reference)
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
                for observed, reference in ((c, c), (c, attnscope.load(file)), (attnscope.load(file), c), (file, file), (c[0], c[0])):
                    report = attnscope.check(observed, reference)
                    self.assertTrue(report.agrees, report.report)

    def test_half_precision_is_judged_to_its_rounding(self):
        q, k, v = torch.randn(3, 1, 2, 6, 8)
        q, k, v = (x.bfloat16().float() for x in (q, k, v))
        with torch.no_grad():
            exact = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            with attnscope.capture() as c:
                F.scaled_dot_product_attention(*(x.bfloat16() for x in (q, k, v)), is_causal=True)
            with attnscope.capture() as reference:
                F.scaled_dot_product_attention(q, k, v, is_causal=True)
        self.assertEqual(c[0].halves, dict.fromkeys(("queries", "keys", "values", "contexts"), "bfloat16"))
        with tempfile.TemporaryDirectory() as folder:
            for observed in (c, attnscope.load(c.save(Path(folder) / "run.safetensors")), {"contexts": exact.bfloat16()}):
                report = attnscope.check(observed, reference)
                self.assertTrue(report, report.report)
                self.assertEqual(report.rounding, "bfloat16")

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
