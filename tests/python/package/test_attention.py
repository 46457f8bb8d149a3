"""Objects, masks, sessions and files: NumPy computes the same as the program from the session."""

import tempfile
import unittest
from pathlib import Path

from support import exported, np, random, softmax

import attnscope
from attnscope import AttnscopeError, Mask, safetensors
from attnscope.attention import of_stages
from attnscope.masks import as_mask, recognize


class Stages(unittest.TestCase):
    def test_weights_are_the_softmax_of_the_formula(self):
        q, k, v = random(3, 2, 6, 4)
        a = of_stages(q, k, v, causal=True)
        scores = np.where(np.tril(np.ones((6, 6), bool)), q @ k.swapaxes(1, 2) / 2, -np.inf)
        np.testing.assert_allclose(a.weights[0], softmax(scores), atol=1e-15)
        np.testing.assert_allclose(a.context[0], softmax(scores) @ v, atol=1e-14)

    def test_the_program_computes_the_same(self):
        q, k, v = random(2, 4, 6, 8), random(2, 2, 6, 8, seed=1), random(2, 2, 6, 8, seed=2)
        bias, kept = random(4, 6, 6, seed=3), random(2, 4, 6, 6, seed=4) > 0
        padded = np.tril(np.ones((2, 1, 6, 6), bool))
        padded[1, :, :, 0] = False
        for options in (
            {"causal": True},
            {"causal": True, "softcap": 3.0, "sinks": [1, 2, 3, 4]},
            {"mask": bias, "scale": 0.3},
            {"mask": Mask(causal=True, window=(2, 0))},
            {"mask": padded[:, 0, 5]},
            {"causal": True, "dropout_mask": kept, "dropout": 0.25},
            {"mask": random(6, 6, seed=5) > -1},
        ):
            with self.subTest(options=list(options)):
                a = of_stages(q, k, v, **options)
                stages = exported(a)
                np.testing.assert_allclose(stages["weights"], a.weights, atol=1e-14)
                np.testing.assert_allclose(stages["contexts"], a.context, atol=1e-13)

    def test_gradients_are_those_of_the_formula(self):
        q, k, v = random(3, 2, 6, 4)
        a = of_stages(q, k, v, causal=True)
        found = a.gradients("contexts[5,:]", head=1)
        np.testing.assert_allclose(found["d_values"][1], a.weights[0, 1, 5][:, None] * np.ones(4), atol=1e-15)
        self.assertFalse(found["d_values"][0].any())
        towards = v[1].sum(axis=1)
        weights = a.weights[0, 1, 5]
        scores = weights * (towards - weights @ towards) / 2
        np.testing.assert_allclose(found["d_queries"][1, 5], scores @ k[1], atol=1e-14)
        with self.assertRaisesRegex(AttnscopeError, "expected a row below 6"):
            a.gradients("contexts[6,0]")

    def test_weights_alone(self):
        w = softmax(random(3, 5, 5))
        stages = exported(of_stages(weights=w, tokens=list("abcde")))
        np.testing.assert_array_equal(stages["weights"], w)
        self.assertEqual(list(stages["tokens"]), list("abcde"))

    def test_a_large_dropout_mask_stands_in_a_file(self):
        q, k, v = random(3, 8, 60, 4)
        a = of_stages(q, k, v, causal=True, dropout_mask=random(8, 60, 60) > 0, dropout=0.5)
        np.testing.assert_allclose(exported(a)["contexts"], a.context[0], atol=1e-13)

    def test_a_batch_is_named_by_sequences(self):
        a = of_stages(*random(3, 2, 1, 3, 4), tokens=[["a", "b", "c"], ["d", "e", "f"]])
        self.assertEqual(exported(a)["tokens"].tolist(), [["a", "b", "c"], ["d", "e", "f"]])

    def test_wrong_input_is_one_sentence(self):
        q = random(2, 6, 4)
        for arguments, options, words in (
            ((q, random(2, 6, 3)), {}, "differ in d_head"),
            ((q, random(3, 6, 4)), {}, "multiple"),
            ((q, q, random(2, 5, 4)), {}, "do not fit keys"),
            ((q, q), {"tokens": ["a"]}, "1 tokens for 6 rows"),
            ((q, q), {"tokens": "abcdef"}, "one string"),
            ((q, q), {"mask": random(5, 5)}, "does not fit"),
            ((q, q), {"mask": np.full((6, 6), np.nan)}, "NaN"),
            ((q, q), {"sinks": [1, 2, 3]}, "3 sinks for 2 heads"),
            ((random(4), random(4)), {}, "expected [tokens, d_head]"),
            ((q.astype(complex), q), {}, "complex"),
            ((object(), q), {}, "holds no array"),
            (("text", q), {}, "holds no array"),
            ((), {"weights": random(0, 3, 3)}, "empty"),
        ):
            with self.subTest(words), self.assertRaises(AttnscopeError) as raised:
                of_stages(*arguments, **options)
            self.assertIn(words, str(raised.exception))
            self.assertNotIn("\n", str(raised.exception))


class Masks(unittest.TestCase):
    def test_a_rule_is_recognized_and_not_stored_cell_by_cell(self):
        for mask in (
            Mask(),
            Mask(causal=True),
            Mask(causal=True, window=(3, 0)),
            Mask(window=(2, 2)),
            Mask(causal=True, prefix=3),
            Mask(causal=True, hidden_keys=((), (0, 1))),
            Mask(hidden_keys=((7,), ())),
        ):
            with self.subTest(str(mask)):
                found = recognize(mask.visible(8, 8, 2))
                self.assertIsNone(found.cells)
                np.testing.assert_array_equal(found.visible(8, 8, 2), mask.visible(8, 8, 2))
                self.assertEqual((found.causal, found.window, found.prefix), (mask.causal, mask.window, mask.prefix))

    def test_queries_stand_at_the_last_keys_or_the_first(self):
        for align in ("last", "first"):
            found = recognize(Mask(causal=True, align=align).visible(3, 5))
            self.assertEqual((found.causal, found.align, found.cells), (True, align, None))

    def test_any_cells_come_back(self):
        seen = random(7, 7, seed=6) > -0.5
        np.testing.assert_array_equal(recognize(seen).visible(7, 7)[0], seen)

    def test_sequences_that_differ_otherwise_have_no_mask(self):
        self.assertIsNone(recognize(random(2, 5, 5) > 0))

    def test_masks_are_read_as_pytorch_reads_them(self):
        causal = np.tril(np.ones((4, 4), bool))
        for given in (
            causal,
            np.where(causal, 0, -np.inf),
            np.where(causal, 0, np.finfo(np.float32).min),
            causal.astype(float),
            causal[None, None],
        ):
            mask, bias = as_mask(given, 1, 2, 4, 4)
            self.assertEqual((mask.causal, mask.cells, bias), (True, None, None))


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)

    def test_what_is_saved_comes_back(self):
        for options in (
            {"causal": True},
            {"softcap": 2.0, "sinks": [1, 2]},
            {"mask": Mask(causal=True, window=(1, 0))},
            {"mask": random(2, 6, 6, seed=5)},
        ):
            a = of_stages(*random(3, 2, 6, 4), tokens=list("abcdef"), name="layer", **options)
            back = attnscope.load(a.save(self.path / "a.safetensors"))[0]
            np.testing.assert_array_equal(back.weights, a.weights)
            np.testing.assert_array_equal(back.context, a.context)
            self.assertEqual((back.tokens, back.name, str(back.mask)), (a.tokens, a.name, str(a.mask)))

    def test_a_session_comes_back(self):
        kept = random(1, 2, 6, 6, seed=3) > 0
        for options in (
            {"causal": True},
            {"softcap": 2.0, "sinks": [1, 2]},
            {"mask": random(2, 6, 6, seed=5), "scale": 0.3},
            {"causal": True, "dropout": 0.5, "dropout_mask": kept},
        ):
            a = of_stages(*random(3, 2, 6, 4), tokens=list("abcdef"), **options)
            back = attnscope.load(a.save(self.path / "a.json"))[0]
            with self.subTest(list(options)):
                np.testing.assert_allclose(back.weights, a.weights, atol=1e-14)
                np.testing.assert_allclose(back.context, a.context, atol=1e-13)
                self.assertEqual(back.tokens, a.tokens)
        a = of_stages(weights=softmax(random(2, 6, 6)))
        np.testing.assert_array_equal(attnscope.load(a.save(self.path / "a.json"))[0].weights, a.weights)

    def test_the_program_reads_what_is_saved(self):
        for options in (
            {"causal": True},
            {"softcap": 2.0, "sinks": [1, 2]},
            {"mask": Mask(causal=True, window=(1, 0))},
            {"mask": random(2, 6, 6, seed=5), "scale": 0.3},
        ):
            a = of_stages(*random(3, 2, 6, 4), **options)
            a.save(self.path / "a.safetensors")
            attnscope.program.run(["export", self.path / "a.safetensors", "--out", self.path / "a.npz"])
            np.testing.assert_allclose(np.load(self.path / "a.npz")["weights"], a.weights[0], atol=1e-12)

    def test_several_layers_in_one_file(self):
        layers = [of_stages(*random(3, 2, 6, 4, seed=i), causal=True, name=f"layer {i}") for i in range(3)]
        path = attnscope.Recording(layers).save(self.path / "all.safetensors")
        back = attnscope.load(path)
        self.assertEqual(back.names, ["layer 0", "layer 1", "layer 2"])
        attnscope.program.run(["export", path, "--layer", "2", "--out", self.path / "a.npz"])
        np.testing.assert_allclose(np.load(self.path / "a.npz")["weights"], layers[2].weights[0], atol=1e-12)
        with self.assertRaisesRegex(AttnscopeError, "layer="):
            back.save(self.path / "one.json")
        back.save(self.path / "one.json", layer=1)
        with self.assertRaisesRegex(AttnscopeError, "safetensors or .json"):
            back.save(self.path / "one.txt")
        with self.assertRaisesRegex(AttnscopeError, "there are 3"):
            back[7]
        with self.assertRaisesRegex(AttnscopeError, "named 'x'"):
            back["x"]

    def test_damaged_files_are_refused(self):
        path = of_stages(*random(3, 2, 6, 4), causal=True).save(self.path / "a.safetensors")
        whole = path.read_bytes()
        for size in (0, 7, 8, 20, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:size])
            with self.subTest(size=size), self.assertRaises(AttnscopeError):
                attnscope.load(path)
        path.write_bytes((1 << 60).to_bytes(8, "little") + whole[8:])
        with self.assertRaisesRegex(AttnscopeError, "not a whole"):
            attnscope.load(path)
        path.write_bytes(whole.replace(b'"causal', b'"CAUSAL').replace(b'\\"causal', b'\\"CAUSAL'))
        with self.assertRaises(AttnscopeError):
            attnscope.load(path)

    def test_a_folder_that_is_not_there(self):
        with self.assertRaisesRegex(AttnscopeError, "cannot be written"):
            of_stages(*random(3, 2, 6, 4)).save(self.path / "none" / "a.safetensors")
        with self.assertRaisesRegex(AttnscopeError, "cannot be read"):
            attnscope.load(self.path / "none.safetensors")

    def test_bfloat16_is_widened(self):
        bits = np.array([0x3F80, 0xC000], "<u2")  # 1 and −2
        header = b'{"w":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}'
        (self.path / "b.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bits.tobytes())
        self.assertEqual(safetensors.read(self.path / "b.safetensors")[0]["w"].__array__().tolist(), [1.0, -2.0])


class Pictures(unittest.TestCase):
    def test_a_small_one_is_svg_and_a_large_one_png(self):
        small = of_stages(weights=softmax(random(2, 6, 6)))
        self.assertTrue(small._repr_svg_().lstrip().startswith(("<?xml", "<svg")))
        self.assertIsNone(small._repr_png_())
        large = of_stages(weights=softmax(random(8, 64, 64)))
        self.assertIsNone(large._repr_svg_())
        self.assertTrue(large._repr_png_().startswith(b"\x89PNG"))

    def test_an_unknown_stage_is_the_programs_own_sentence(self):
        with self.assertRaisesRegex(AttnscopeError, "stage"):
            of_stages(weights=softmax(random(2, 6, 6))).svg("nonsense")


class Program(unittest.TestCase):
    def test_package_and_program_have_one_version(self):
        said = attnscope.program.run(["--version"]).stdout.split()
        self.assertEqual(said[-1], attnscope.__version__)

    def test_a_missing_executable_is_one_sentence(self):
        import os
        from unittest import mock

        with (
            mock.patch.dict(os.environ, {"ATTNSCOPE": "/no/such/file"}),
            self.assertRaisesRegex(attnscope.ProgramNotFound, "not an executable"),
        ):
            attnscope.program.executable()
        with (
            mock.patch.dict(os.environ, {"ATTNSCOPE": "", "PATH": "/nowhere"}),
            mock.patch.object(attnscope.program, "INSIDE", Path("/none")),
        ):
            with self.assertRaisesRegex(attnscope.ProgramNotFound, "neither inside this package nor on PATH"):
                attnscope.program.executable()


if __name__ == "__main__":
    unittest.main()
