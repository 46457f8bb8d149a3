"""show(): its arguments, its result without a display, and the window in a separate process."""

import contextlib
import copy
import io
import os
import pickle
import time
import unittest
from unittest import mock

from support import np, random, softmax

import attnscope
from attnscope.showing import recording


def quietly(*what, **options):
    with (
        contextlib.redirect_stderr(io.StringIO()) as said,
        mock.patch.object(attnscope.program, "has_display", lambda: False),
    ):
        return attnscope.show(*what, **options), said.getvalue()


class Dlpack:
    """An array with no interface but DLPack, as of other libraries."""

    def __init__(self, a):
        self.a = a

    def __dlpack__(self, **options):
        return self.a.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.a.__dlpack_device__()


class Show(unittest.TestCase):
    def test_without_a_display_it_is_a_picture_and_says_so_in_a_line(self):
        shown, said = quietly(*random(3, 2, 6, 4), causal=True)
        self.assertIn("<svg", shown._repr_svg_())
        self.assertEqual(len(said.splitlines()), 1, said)
        self.assertIn("no display", said)

    def test_short_names_lists_and_dlpack(self):
        q, k, v = random(3, 6, 4)
        expected = recording(q, k, v, causal=True)[0].weights
        for found in (
            recording(q=q, k=k, v=v, is_causal=True),
            recording(q.tolist(), k.tolist(), causal=True),
            recording(Dlpack(q), Dlpack(k), causal=True),
        ):
            np.testing.assert_array_equal(found[0].weights, expected)

    def test_transformer_lens_names(self):
        q, k, v = random(3, 1, 6, 2, 4)  # [batch, tokens, heads, d_head]
        expected = recording(*(x.transpose(0, 2, 1, 3) for x in (q, k, v)), causal=True)[0].weights
        cache = {
            f"blocks.{i}.attn.hook_{n}": x
            for i in (0, 1, 10)
            for n, x in (("q", q), ("k", k), ("v", v), ("pattern", expected))
        }
        cache["blocks.0.hook_resid_pre"] = random(1, 6, 8)
        found = recording(cache)
        self.assertEqual(found.names, ["blocks.0.attn", "blocks.1.attn", "blocks.10.attn"])
        np.testing.assert_allclose(found[0].weights, expected)
        self.assertEqual(found[0].given, {})
        cache["blocks.0.attn.hook_pattern"] = np.roll(expected, 1, -2)
        self.assertIn("as they are", recording(cache)[0].notes[0])

    def test_stages_by_name_and_layer(self):
        w = softmax(random(2, 5, 5))
        for mapping, names in (
            ({"weights": w}, ["attention"]),
            ({"layers.0.attn_weights": w, "layers.1.attn_weights": w}, ["layer 0", "layer 1"]),
        ):
            self.assertEqual(recording(mapping).names, names)

    def test_wrong_input_is_one_sentence(self):
        q = random(6, 4)
        for what, options, words in (
            ((), {}, "Give queries and keys"),
            ((q,), {}, "does not say what it is"),
            ((q, q, q, q), {}, "got 4"),
            ((q, q), {"casual": True}, "There is no argument 'casual'; did you mean 'causal'?"),
            ((q, q), {"inputs": {}}, "belongs to a module"),
            (("model.safetensors",), {}, "attnscope.load"),
            (({"x": q},), {}, "No name says"),
            (({},), {}, "none"),
            ((recording(q, q)[0],), {"causal": True}, "without further arguments"),
        ):
            with self.subTest(words), self.assertRaises(attnscope.AttnscopeError) as raised:
                recording(*what, **options)
            self.assertIn(words, str(raised.exception))

    def test_messages_are_logged(self):
        with self.assertLogs("attnscope") as logged:
            quietly(*random(3, 2, 6, 4).astype(np.float16))
        self.assertEqual(len(logged.output), 4)

    def test_a_recording_in_a_notebook_is_a_list_with_a_map_of_every_head(self):
        layers = [recording(*random(3, 2, 300, 4), causal=True)[0] for _ in range(50)]
        layers[0].notes.append("<a note>")
        r = attnscope.Recording(layers, ["a problem"])
        shown = r._repr_html_()
        for words in ("a problem", "&lt;a note&gt;", "max-width:640px", "2 heads, 300 tokens, causal", "… 2 more"):
            self.assertIn(words, shown)
        self.assertEqual(shown.count("<img"), 48)
        self.assertNotIn("weights", layers[0].__dict__)  # nothing large is kept
        self.assertIn("0 attentions", attnscope.Recording()._repr_html_())

    def test_some_rows_are_those_of_the_whole(self):
        a = recording(*random(3, 2, 9, 4), causal=True, softcap=2.0)[0]
        np.testing.assert_array_equal(a.of_rows(np.array([0, 4, 8])).weights, a.weights[:, :, [0, 4, 8]])

    def test_capture_says_what_it_needs(self):
        with (
            mock.patch.dict("sys.modules", {"torch": None}),
            self.assertRaisesRegex(attnscope.AttnscopeError, "needs PyTorch"),
        ):
            import sys

            for name in ("attnscope.capturing", "attnscope.projections"):
                sys.modules.pop(name, None)
            attnscope.capture()


@unittest.skipUnless(os.environ.get("DISPLAY"), "there is no display")
class Windows(unittest.TestCase):
    def test_the_window_opens_and_is_replaced_by_name(self):
        with contextlib.redirect_stderr(io.StringIO()):
            begin = time.monotonic()
            first = attnscope.show(*random(3, 2, 6, 4), causal=True, name="mine")
            self.assertLess(time.monotonic() - begin, 5)
            self.assertTrue(first.is_open)
            second = attnscope.show(*random(3, 2, 6, 4), name="mine")
        self.addCleanup(second.close)
        self.assertFalse(first.is_open)
        self.assertTrue(second.is_open)
        self.assertIn("open", repr(second))
        second.close()
        self.assertFalse(second.is_open)

    def test_misspelt_arguments_raise(self):
        a = recording(*random(3, 2, 6, 4))[0]
        for call in (
            lambda: a.html(titel="x"), lambda: attnscope.Recording([a]).html(layer=1), lambda: attnscope.html(a, titel="x"),
            lambda: attnscope.check(a, a, rtoll=1), lambda: recording(*random(3, 2, 6, 4), casual=True), lambda: a.check(a, tol=1),
        ):  # fmt: skip
            with self.assertRaises((TypeError, attnscope.AttnscopeError)):
                call()

    def test_a_page_and_copies_are_short_to_print(self):
        a = recording(*random(3, 2, 6, 4), causal=True)[0]
        self.assertLess(len(str(a.html())), 500)
        for copied in (pickle.loads(pickle.dumps(a)), copy.deepcopy(a), copy.copy(a)):
            np.testing.assert_array_equal(copied.weights, a.weights)


if __name__ == "__main__":
    unittest.main()
