"""The page: its contents and size, and in headless Chromium its numbers, keys, themes and frames."""

import base64
import json
import re
import tempfile
import unittest
import warnings
import zlib
from pathlib import Path

from browser import CHROMIUM, Browser
from support import np, random, softmax

import attnscope
from attnscope.attention import of_stages
from attnscope.page import script

TOKENS = ["The", " cat", " </script>", ' "&amp;"', " 東京", " 🙂", " مرحبا", "\n", " the"]
T = len(TOKENS)


def layers(n=2, heads=3, **options):
    """Returns attentions; the second has its own sliding window, scale, softcap, sink and bias."""
    made = [
        of_stages(*random(3, heads, T, 4, seed=i).astype(np.float32), causal=True, tokens=TOKENS, name=f"layer {i}")
        for i in range(n)
    ]
    if n > 1:
        made[1].mask, made[1].scale, made[1].softcap = attnscope.Mask(causal=True, window=(3, 0)), 0.7, 2.0
        made[1].sinks, made[1].bias = np.array([0.1, 0.2, 0.3]), random(heads, T, T, seed=9)
    return attnscope.Recording(made)


def data_of(text):
    return json.loads(re.search(r'id="data">(.*)</script>', text)[1])


def decoded(stage, masks):
    """Returns the numbers of a stored stage: [layers, heads, rows, columns], 0 where nothing was stored."""
    kind = np.dtype({"f64": "<f8", "f32": "<f4", "q16": "<u2"}[stage["store"]])
    planes = np.frombuffer(zlib.decompress(base64.b64decode(stage["data"]), -15), np.uint8).reshape(kind.itemsize, -1)
    numbers = np.ascontiguousarray(planes.T).view(kind).reshape(-1).astype(float)
    if not stage["seen"]:
        return numbers.reshape(stage["shape"])
    whole, at = np.zeros(stage["shape"]), 0
    for layer, seen in zip(whole, masks):
        for head in layer:
            head[seen] = numbers[at : at + seen.sum()]
            at += seen.sum()
    return whole


class Page(unittest.TestCase):
    def test_the_program_writes_the_same_page(self):
        from attnscope import program

        a = layers()[1]
        file = a.session_file()
        program.run(["export", file, "--format", "html", "--out", file.parent / "page.html"])
        theirs, ours = data_of((file.parent / "page.html").read_text("utf-8")), data_of(a.html().text)
        for key in ("layers", "heads", "tokens", "masks", "softcap"):
            self.assertEqual(theirs[key], ours[key], key)
        np.testing.assert_allclose(theirs["scale"], ours["scale"])
        np.testing.assert_allclose(theirs["sinks"], ours["sinks"])
        for stage in ours["stages"]:
            with self.subTest(stage["id"]):
                same = next(s for s in theirs["stages"] if s["id"] == stage["id"])
                numbers = decoded(stage, [a.visible[0]]), decoded(same, [a.visible[0]])
                if stage["id"] == "bias":
                    numbers = [np.where(a.visible[0], n, 0) for n in numbers]
                np.testing.assert_allclose(*numbers, atol=1e-6)
        text = (file.parent / "page.html").read_text("utf-8")
        self.assertEqual(re.search(r"<script>\n(.*?)</script>", text, re.S)[1].strip(), script(True).strip())

    def test_what_it_computes_is_what_a_model_with_a_bug_computes(self):
        from attnscope import program

        stored = {}
        with tempfile.TemporaryDirectory() as folder:
            page, archive = Path(folder) / "page.html", Path(folder) / "stages.npz"
            for preset, bug in (
                ("modern-llama", None),
                ("modern-cap", None),
                ("modern-llama", "groups_tiled"),
                ("modern-llama", "scale_twice"),
                ("modern-cap", "half_precision"),
                ("004-causal-dropout", "dropout_before_softmax"),
            ):
                made = ["export", "--preset", preset, *(["--mistake", bug] if bug else [])]
                program.run([*made, "--format", "html", "--out", page])
                program.run([*made, "--out", archive])
                data = data_of(page.read_text("utf-8"))
                with self.subTest(preset=preset, bug=bug), np.load(archive) as file:
                    truth = {k: file[k] for k in file.files}
                    visible = truth["mask"] != 0
                    stages = {s["id"]: decoded(s, [visible])[0] for s in data["stages"]}
                    heads = range(data["heads"])
                    of_head = lambda stage, h: stages[stage][h * len(stages[stage]) // data["heads"]]
                    if "scale" in data:
                        for h in heads:
                            scores = of_head("queries", h) @ of_head("keys", h).T * data["scale"][0]
                            cap = data.get("softcap", [0])[0]
                            scores = cap * np.tanh(scores / cap) if cap else scores
                            np.testing.assert_allclose(scores[visible], truth["masked_scores"][h][visible], atol=1e-4)
                    if "contexts" not in stages:
                        weights = "dropped_weights" if "dropped_weights" in stages else "weights"
                        for h in heads:
                            contexts = of_head(weights, h) @ of_head("values", h)
                            np.testing.assert_allclose(contexts, truth["contexts"][h], atol=1e-4)
                    stored[preset, bug] = [s for s in ("masked_scores", "contexts") if s in stages]
        both = ["masked_scores", "contexts"]
        self.assertEqual(list(stored.values()), [[], [], [], ["masked_scores"], both, ["masked_scores"]])

    def test_a_whole_model_is_a_page_of_all_layers(self):
        from support import ROOT

        from attnscope import program

        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "model.html"
            program.run(["export", ROOT / "assets/examples/tiny_gpt", "--text", "Once upon a time", "--out", out])
            data = data_of(out.read_text("utf-8"))
            self.assertEqual((data["layers"], data["heads"], "".join(data["tokens"])), (4, 4, "Once upon a time"))
            program.run(
                [
                    "export",
                    ROOT / "assets/examples/tiny_gpt",
                    "--text",
                    "Once upon a time",
                    "--layer",
                    2,
                    "--out",
                    Path(folder) / "w.npz",
                ]
            )
            weights = np.load(Path(folder) / "w.npz")["weights"]
        stored = decoded(
            next(s for s in data["stages"] if s["id"] == "weights"), [np.tril(np.ones(weights.shape[1:], bool))] * 4
        )
        np.testing.assert_allclose(stored[2], weights, atol=1e-6)

    def test_the_script_is_small_and_smaller_without_stages(self):
        self.assertLess(len(script(True).encode()), 60_000)
        self.assertLess(len(script(False).encode()), len(script(True).encode()) - 5000)
        self.assertIn("workedOut", layers().html().text)
        self.assertNotIn("workedOut", attnscope.html(weights_only()).text)

    def test_nothing_in_a_token_ends_the_script(self):
        text = layers().html(title="</title><script>").text
        self.assertEqual(len(re.findall("</script>", text)), 2)
        self.assertEqual(data_of(text)["tokens"], TOKENS)

    def test_twelve_layers_of_twelve_heads_are_at_most_0_7_MB(self):
        w = softmax(random(12, 12, 64, 64) * 3)
        w = np.tril(w) / np.tril(w).sum(-1, keepdims=True)
        page = attnscope.Recording([of_stages(weights=x) for x in w]).html()
        self.assertLess(len(page.text.encode()), 700_000 + 400_000)  # random numbers hardly compress; those of models do
        data = data_of(page.text)
        self.assertEqual(data["masks"], [{"left": -1, "right": 0}])
        self.assertEqual(data["stages"][0]["store"], "q16")

    def test_a_page_of_many_cells_is_pooled_and_says_so(self):
        w = np.tril(softmax(random(4, 10, 512, 512) * 3).astype(np.float32))
        w /= w.sum(-1, keepdims=True)
        page = attnscope.Recording([of_stages(weights=x, causal=True) for x in w]).html(note="mine")
        self.assertLess(len(page.text.encode()), 15_000_000 * 4 * 10 / 144 * 1.2)  # 12 layers of 12 heads: 15 MB
        data = data_of(page.text)
        self.assertRegex(data["note"], "^mine Large maps are pooled: the 32 strongest cells of each row have their own numbers")
        stage = data["stages"][0]
        most = np.frombuffer(zlib.decompress(base64.b64decode(stage["most"]), -15), np.uint8).reshape(4, -1)
        most = np.ascontiguousarray(most.T).view("<f4").reshape(4, 10, 512, 1)
        shown = decoded(stage, [np.tril(np.ones((512, 512), bool))] * 4) / 65535 * most
        strong = w >= np.sort(w, -1)[..., -32, None]
        self.assertLess(np.abs(shown - w)[strong].max(), 1e-5)
        np.testing.assert_allclose(shown[..., 400:, :].sum((-2, -1)), w[..., 400:, :].sum((-2, -1)), rtol=1e-3)  # means keep sums

    def test_what_is_stored_is_what_was_given(self):
        r = layers()
        stage = next(s for s in data_of(r.html().text)["stages"] if s["id"] == "queries")
        planes = np.frombuffer(zlib.decompress(base64.b64decode(stage["data"]), -15), np.uint8).reshape(4, -1)
        numbers = np.ascontiguousarray(planes.T).view("<f4").reshape(stage["shape"])
        np.testing.assert_array_equal(numbers, np.stack([a.queries[0] for a in r]))

    def test_a_large_page_warns_and_offers_fewer_layers(self):
        w = softmax(random(6, 12, 256, 256))
        r = attnscope.Recording([of_stages(weights=x) for x in w])
        with self.assertWarnsRegex(UserWarning, r"html\(layers=range\(\d\)\)"):
            r.html()

    def test_it_takes_what_show_takes(self):
        q, k, v = random(3, 2, 5, 4)
        a = of_stages(q, k, v, causal=True)
        for page in (attnscope.html(q, k, v, causal=True), attnscope.html(weights=a.weights, tokens=list("abcde")), attnscope.html(q=q, k=k, attn_mask=a.visible)):
            weights = next(s for s in data_of(page.text)["stages"] if s["id"] == "weights")
            np.testing.assert_array_equal(decoded(weights, [a.visible[0]])[0], a.weights[0])

    def test_choices_that_do_not_exist(self):
        r = layers()
        for options, words in (
            ({"layers": []}, "empty"),
            ({"layers": [5]}, "there are 2"),
            ({"sequence": 1}, "no sequence 1"),
            ({"stages": "x"}, "expected"),
        ):
            with self.assertRaisesRegex(attnscope.AttnscopeError, words):
                r.html(**options)

    def test_attentions_of_other_shapes_are_left_out_and_said(self):
        with self.assertWarnsRegex(UserWarning, "another shape"):
            attnscope.Recording([*layers(), of_stages(*random(3, 2, 4, 4))]).html()

    def test_in_a_notebook_it_is_a_frame_over_a_picture(self):
        shown = layers().html()._repr_html_()
        self.assertIn("<iframe srcdoc=", shown)
        self.assertIn("data:image/png;base64", shown)


def weights_only():
    w = np.tril(softmax(random(2, T, T)))
    return of_stages(weights=w / w.sum(-1, keepdims=True), tokens=TOKENS)


@unittest.skipUnless(CHROMIUM, "there is no Chromium")
class InTheBrowser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = Path(cls.folder.name)
        cls.recording = layers()
        cls.page = cls.recording.html(title="test")
        cls.page.save(cls.path / "page.html")

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def setUp(self):
        self.browser.size(1000, 520)
        self.browser.dark(False)
        self.browser.move(3, 3)
        self.browser.open(self.path / "page.html")

    def matrix(self, stage, layer, head, shape=(T, T)):
        numbers = self.browser.run(
            f"Array.from(attnscope.matrix('{stage}', {layer}, {head}).v, x => Number.isFinite(x) ? x : String(x))"
        )
        return np.array([float(str(x).replace("Infinity", "inf")) for x in numbers]).reshape(shape)

    def to_cell(self, row, col):
        place = f"[r.left + p.x0 + ({col} - p.box.c + .5) * p.cw, r.top + p.y0 + ({row} - p.box.r + .5) * p.ch]"
        self.browser.move(
            *self.browser.run(
                f"(() => {{ const p = attnscope.P(), r = document.getElementById('over').getBoundingClientRect(); return {place} }})()"
            )
        )

    def text(self, name):
        return self.browser.run(f"document.getElementById('{name}').textContent")

    def test_it_needs_nothing_else_and_is_ready_soon(self):
        self.assertEqual([r for r in self.browser.requests if not r.startswith(("file:", "about:", "data:"))], [])
        self.assertLess(self.browser.run("attnscope.readyAt"), 2000)
        self.assertEqual(self.browser.run("attnscope.D.tokens"), TOKENS)
        self.assertEqual(self.browser.errors, [])

    def test_stages_are_stored_or_computed_as_numpy_has_them(self):
        for layer, a in enumerate(self.recording):
            seen = a.visible[0]
            for head in range(3):
                np.testing.assert_array_equal(self.matrix("queries", layer, head, (T, 4)), a.queries[0, head])
                np.testing.assert_allclose(
                    self.matrix("weights", layer, head)[seen], a.weights[0, head][seen], rtol=1e-7
                )
                np.testing.assert_allclose(self.matrix("scores", layer, head), a.scores[0, head], atol=1e-12)
                np.testing.assert_allclose(
                    self.matrix("masked_scores", layer, head)[seen], a.masked_scores[0, head][seen], atol=1e-6
                )
                np.testing.assert_allclose(self.matrix("contexts", layer, head, (T, 4)), a.context[0, head], atol=1e-6)

    def test_the_number_under_the_pointer_is_that_of_the_export(self):
        w = self.recording[0].weights[0, 0]
        self.to_cell(5, 2)
        self.assertEqual(self.text("number"), f"{w[5, 2]:.4f}")
        exact = self.browser.run("document.getElementById('number').dataset.exact")
        self.assertEqual(np.float32(exact), np.float32(w[5, 2]))
        self.assertIn(exact, self.text("tip"))
        self.assertIn("🙂", self.text("pair"))
        self.to_cell(2, 6)
        self.assertEqual(self.text("number"), "0")
        self.assertIn("masked", self.text("fine"))

    def test_why_works_the_number_out(self):
        self.browser.key("]")
        self.to_cell(8, 6)
        a = self.recording[1]
        raw = a.scores[0, 0, 8, 6]
        capped = 2 * np.tanh(raw * 0.7 / 2)
        steps = [
            float(x.replace("−", "-"))
            for x in self.browser.run("[...document.querySelectorAll('#steps dd')].map(e => e.textContent)")
        ]
        np.testing.assert_allclose(
            steps, [raw, raw * 0.7, capped, capped + a.bias[0, 8, 6], a.weights[0, 0, 8, 6]], atol=6e-5
        )
        self.assertIn("a sink", self.text("steps"))
        self.assertIn("sink", self.text("top"))

    def test_every_key_does_what_its_help_says(self):
        w = self.recording[1].weights[0, 1]
        for key, wanted in (
            ("]", "layer === 1"), ("2", "head === 2"), (",", "head === 1"), ("l", "log"), ("s", "stage === 'contexts'"), ("S", "stage === 'weights'"), ("d", "by"),
            ("m", "mode === 'layer'"), ("r", "relative"), ("+", "zoom"), ("f", "zoom === null"), ("ArrowUp", "q === 7"), ("Escape", "pinned === false"),
        ):  # fmt: skip
            self.browser.key(key)
            self.assertTrue(self.browser.run(f"!!(attnscope.S.{wanted})"), key)
        self.browser.key("d")
        x, y = self.browser.run(
            "(() => { const r = document.querySelector('[data-i=\"6\"]').getBoundingClientRect(); return [r.left + r.width / 2, r.top + 8] })()"
        )
        self.browser.move(x, y)
        self.assertEqual(self.browser.run("[attnscope.S.hover.q, attnscope.S.hover.k]"), [6, int(w[6].argmax())])
        self.browser.key("?")
        self.assertIn("32-bit floats", self.text("keys"))
        self.assertEqual(self.browser.errors, [])

    def test_it_follows_the_theme_and_t_switches(self):
        theme = "document.documentElement.dataset.theme"
        self.assertEqual(self.browser.run(theme), "light")
        self.browser.dark(True)
        self.browser.frames()
        self.assertEqual(self.browser.run(theme), "dark")
        self.browser.key("t")
        self.assertEqual(self.browser.run(theme), "light")

    def test_everything_fits(self):
        look = """(() => { const out = []; for (const e of document.querySelectorAll('#theme, #help, #number, #over, #grid, #words, #legend, #high')) {
            const r = e.getBoundingClientRect(); if (r.right > innerWidth + .5 || r.bottom > innerHeight + .5 || !r.width) out.push(e.id) }
            if (document.documentElement.scrollHeight > innerHeight) out.push('scrolls');
            const p = attnscope.P(); if (p.x0 + p.pw > p.w + .5 || p.y0 + p.ph > p.h + .5) out.push('plot'); return out })()"""
        for width, height in ((600, 440), (640, 480), (800, 460), (1000, 520), (1440, 900)):
            self.browser.size(width, height)
            self.browser.frames(6)
            self.assertEqual(self.browser.run(look), [], f"{width} × {height}")

    def test_in_the_frame_of_a_notebook(self):
        frame = self.page.iframe()
        for body, theme in (
            ('data-jp-theme-light="false" style="background:#111"', "dark"),
            ('class="vscode-dark" style="background:#1e1e1e"', "dark"),
            ('style="background:#222"', "dark"),
            ('style="background:#fff"', "light"),
        ):
            (self.path / "host.html").write_text(f'<!doctype html><meta charset="utf-8"><body {body}>{frame}', "utf-8")
            self.browser.open(self.path / "host.html", "frames[0].attnscope")
            self.assertEqual(self.browser.run("frames[0].document.documentElement.dataset.theme"), theme)

    def test_cross_attention_with_any_mask(self):
        seen = random(3, 5, seed=3) > -0.4
        seen[:, 1] = True
        a = of_stages(
            random(1, 3, 4),
            random(1, 5, 4, seed=1),
            mask=seen,
            tokens=["Le", " chat", " dort"],
            key_tokens=["The", " cat", " is", " fast", " asleep"],
        )
        a.html().save(self.path / "cross.html")
        self.browser.open(self.path / "cross.html")
        self.to_cell(2, 1)
        self.assertEqual(self.browser.run("Array.from(attnscope.maskOf(0).sees)"), seen.astype(int).ravel().tolist())
        self.assertEqual(self.text("pair"), "'dort' 2 attends to 'cat' 1")
        self.assertEqual(self.text("number"), f"{a.weights[0, 0, 2, 1]:.4f}")

    def test_sixteen_bits_are_within_half_a_step(self):
        w = np.tril(softmax(random(4, 8, 64, 64)))
        w /= w.sum(-1, keepdims=True)
        attnscope.Recording([of_stages(weights=x) for x in w]).html().save(self.path / "large.html")
        self.browser.open(self.path / "large.html")
        for layer, head in ((0, 0), (3, 7)):
            error = np.abs(self.matrix("weights", layer, head, (64, 64)) - w[layer, head]) / w[layer, head].max(
                -1, keepdims=True
            )
            self.assertLess(error.max(), 0.5001 / 65535 + 1e-7)


if __name__ == "__main__":
    warnings.simplefilter("ignore", ResourceWarning)
    unittest.main()
