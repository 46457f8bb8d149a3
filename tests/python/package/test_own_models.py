"""attach() of models outside transformers: the GPT of a notebook, with its own encode() and decode()."""

import contextlib
import os
import unittest

from support import needs_torch, np, torch

import attnscope
from attnscope import AttnscopeError, program

try:
    import transformers
except ImportError:
    transformers = None

if torch is not None:
    import torch.nn.functional as F
    from classes import MultiHeadAttention, MultiHeadAttentionWrapper
    from torch import nn

    class Fused(nn.Module):
        """Several heads of one projection, with PyTorch's attention function or by hand."""

        def __init__(self, heads, width, context, flash=False):
            super().__init__()
            self.heads, self.flash = heads, flash
            self.c_attn, self.c_proj, self.drop = nn.Linear(width, 3 * width), nn.Linear(width, width), nn.Dropout(0.2)
            self.register_buffer("bias", torch.tril(torch.ones(context, context)))

        def forward(self, x):
            b, n, c = x.shape
            q, k, v = (t.view(b, n, self.heads, -1).transpose(1, 2) for t in self.c_attn(x).split(c, 2))
            if self.flash:
                y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.2 if self.training else 0, is_causal=True)
            else:
                scores = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).masked_fill(self.bias[:n, :n] == 0, float("-inf"))
                y = self.drop(F.softmax(scores, -1)) @ v
            return self.c_proj(y.transpose(1, 2).reshape(b, n, c))

    class Projected(nn.Module):
        """The book's single heads, and an output projection."""

        def __init__(self, heads, width, context):
            super().__init__()
            self.attention, self.c_proj = MultiHeadAttentionWrapper(width, width // heads, context, 0.2, heads), nn.Linear(width, width)

        def forward(self, x):
            return self.c_proj(self.attention(x))

    class OfPyTorch(nn.Module):
        def __init__(self, heads, width, context):
            super().__init__()
            self.attention = nn.MultiheadAttention(width, heads, dropout=0.2, batch_first=True)
            self.c_proj = self.attention.out_proj

        def forward(self, x):
            mask = torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), 1)
            return self.attention(x, x, x, attn_mask=mask, need_weights=False)[0]

    class OfTheBook(MultiHeadAttention):
        def __init__(self, heads, width, context):
            super().__init__(width, width, context, 0.2, heads)
            self.c_proj = self.out_proj

    class Block(nn.Module):
        def __init__(self, attention, width):
            super().__init__()
            self.attention, self.mlp = attention, nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)

        def forward(self, x):
            x = x + self.attention(self.ln_1(x))
            return x + self.mlp(self.ln_2(x))

    class GPT(nn.Module):
        """Returns logits and a loss, of all tokens or of the last one."""

        def __init__(self, attention, last=False, width=32, heads=4, context=16):
            super().__init__()
            torch.manual_seed(0)
            self.token, self.position = nn.Embedding(27, width), nn.Embedding(context, width)
            self.blocks = nn.Sequential(*(Block(attention(heads, width, context), width) for _ in range(3)))
            self.ln, self.head, self.last = nn.LayerNorm(width), nn.Linear(width, 27), last

        def forward(self, ids, targets=None):
            x = self.ln(self.blocks(self.token(ids) + self.position(torch.arange(ids.shape[1]))))
            return self.head(x[:, [-1]] if self.last else x), None

    KINDS = {"fused": Fused, "flash": lambda *sizes: Fused(*sizes, flash=True), "one head each": Projected, "nn": OfPyTorch, "book": OfTheBook}

LETTERS = " abcdefghijklmnopqrstuvwxyz"
TEXT = "the cat sat"


def encode(text):
    return [LETTERS.index(c) for c in text]


def decode(ids):
    return "".join(LETTERS[i] for i in ids)


def attached(model, **options):
    from attnscope.serving import attach

    return attach(model, **({"encode": encode, "decode": decode} | options))


def logits_of(model, ids):
    was, _ = model.training, model.eval()
    with torch.no_grad():
        logits = model(torch.tensor([ids]))[0][0]
    model.train(was)
    return logits


@contextlib.contextmanager
def silent_head(model, layer, head, d=8):
    """Takes a head out by hand, by its columns of the output projection."""
    weight = model.blocks[layer].attention.c_proj.weight
    before = weight.detach().clone()
    with torch.no_grad():
        weight[:, d * head : d * head + d] = 0
    yield
    with torch.no_grad():
        weight.copy_(before)


@needs_torch
@unittest.skipUnless(transformers, "transformers is not installed")
class OwnModels(unittest.TestCase):
    def test_numbers_are_the_models_own(self):
        for kind, attention in KINDS.items():
            for last in (False, True):
                with self.subTest(kind, last=last):
                    model = GPT(attention, last)  # in training: its dropout is not applied
                    logits = logits_of(model, encode(TEXT))[-1]
                    with attached(model) as at:
                        p = at.predict(TEXT, top=3)
                        self.assertEqual(p.token.tolist(), [LETTERS[i] for i in logits.topk(3).indices.tolist()])
                        np.testing.assert_allclose(p.logit, logits.topk(3).values, rtol=0, atol=1e-6 if kind == "nn" else 0)
                        lens = at.lens(TEXT)
                        self.assertEqual((lens.token[-1], len(lens), lens.rank[-1]), (p.token[0], 3, 0))
                        self.assertAlmostEqual(lens.probability[-1], p.probability[0], places=6)
                    self.assertTrue(model.training and all(m.training for m in model.modules()))
                    self.assertFalse(any(m._forward_hooks or m._forward_pre_hooks for m in model.modules()))

    def test_heads_are_ablated_as_by_hand(self):
        ids, most = encode(TEXT), LETTERS.index("e")
        for kind, attention in KINDS.items():
            with self.subTest(kind):
                model = GPT(attention)
                before = logits_of(model, ids)[-1]
                with attached(model) as at:
                    effects = at.effects(TEXT, answer="e")
                self.assertEqual(effects.shape, (3, 4))
                for layer, head in ((0, 0), (1, 2), (2, 3)):
                    with silent_head(model, layer, head):
                        off = logits_of(model, ids)[-1]
                    self.assertAlmostEqual(effects[layer, head], float(off[most] - before[most]), places=5)

    def test_roles_are_means_of_the_captured_weights(self):
        model = GPT(KINDS["one head each"]).eval()
        with attached(model) as at:
            heads = at.heads(TEXT)
        with torch.no_grad(), attnscope.capture(model) as c:
            model(torch.tensor([encode(TEXT)]))
        self.assertEqual(heads.shape, (3, 4))
        w = c[4 + 2].weights[0, 0]
        self.assertAlmostEqual(heads.previous_token[1, 2], np.diagonal(w, -1).mean(), places=6)

    def test_a_window_edits_its_layers(self):
        from test_attach import Client

        for kind in ("fused", "flash", "book"):
            model = GPT(KINDS[kind])
            with self.subTest(kind), attached(model) as at, Client(at) as client:
                said = client.description
                self.assertEqual((said["n_context"], said["n_vocabulary"], said["d_model"], said["causal"]), (16, 27, 32, True))
                self.assertEqual([layer["not_editable"] for layer in said["layers"]], [""] * 3)
                ids = np.array(encode(TEXT))
                number = client.run(ids)
                before = client.last["layers"]
                header, arrays = client.of("layer", number, 1)
                self.assertLess(header["difference"], 1e-5)
                self.assertEqual(header["mask"], "causal")
                parameters = client.call("parameters", layer=1)[1]
                rows = arrays["inputs"] @ parameters["query.weight"] + parameters.get("query.bias", 0)
                np.testing.assert_allclose(rows.reshape(len(ids), 4, 8).transpose(1, 0, 2), arrays["queries"], atol=1e-5)
                output = np.random.default_rng(0).normal(size=(len(ids), 32)).astype(np.float32)
                edited = client.run(ids, [{"layer": 1}], {1: output})
                handle = model.blocks[1].attention.register_forward_hook(lambda *_: torch.from_numpy(output)[None])
                expected = logits_of(model, ids.tolist())
                handle.remove()
                for row in (0, len(ids) - 1):
                    got = client.call("next", **{"pass": edited}, row=row)[1]["logits"][0]
                    np.testing.assert_allclose(got, expected[row], atol=1e-6)
                self.assertEqual([a == b for a, b in zip(before, client.last["layers"])], [True, False, False])

    def test_parameters_that_change_are_noticed(self):
        model = GPT(KINDS["fused"])
        with attached(model) as at:
            at.predict(TEXT)
            with torch.no_grad():
                model.blocks[0].attention.c_attn.weight.mul_(3)
            np.testing.assert_array_equal(at.predict(TEXT, top=1).logit, logits_of(model, encode(TEXT))[-1].max())

    def test_the_program_asks_such_a_model(self):
        model = GPT(KINDS["fused"], last=True)
        with attached(model, port=0) as at:
            said = program.run(["predict", at.address, "--token", at.token, "--text", TEXT, "--top", "1", "--off", "1.2"]).stdout
            self.assertIn(at.predict(TEXT, off=[(1, 2)], top=1).token[0], said)

    @unittest.skipUnless(os.environ.get("DISPLAY"), "there is no display")
    def test_a_window_opens_with_a_text_that_fits(self):
        with attnscope.attach(GPT(KINDS["fused"]), encode=encode, decode=decode) as at:
            self.assertEqual(len(at.connections), 1)
            (connection,) = at.connections
            self.assertEqual({len(p.ids) for p in connection.answers.passes.values()}, {len("egg jam f")})

    def test_logits_say_how_the_model_is_called(self):
        class Asked(nn.Module):
            def __init__(self):
                super().__init__()
                self.gpt = GPT(KINDS["fused"])

            def forward(self, ids, temperature):
                return {"scores": self.gpt(ids)[0] / temperature}

        model = Asked()
        with attached(model, logits=lambda ids: model(ids, 2.0)["scores"]) as at:
            expected = logits_of(model.gpt, encode(TEXT))[-1] / 2
            np.testing.assert_array_equal(at.predict(TEXT, top=1).logit, expected.max())
        with attached(GPT(KINDS["fused"]), encode=None, decode=None) as at:  # token IDs
            self.assertEqual(at.predict("20 8 5", top=1).token[0][0], " ")

    def test_what_cannot_be_attached_is_said_in_one_sentence(self):
        class Returns(nn.Module):
            def __init__(self, value):
                super().__init__()
                self.gpt, self.value = GPT(KINDS["fused"]), value

            def forward(self, ids):
                self.gpt(ids)
                return self.value

        for make, words in (
            (lambda: attached(nn.Sequential(nn.Embedding(27, 4), nn.Linear(4, 27))), "No attention was found in Sequential"),
            (lambda: attached(Returns("text")), "give logits=lambda ids"),
            (lambda: attached("gpt"), "takes a module of PyTorch"),
            (lambda: attached(GPT(KINDS["fused"]), encode=None), "Give a tokenizer, or encode= and decode="),
            (lambda: attached(GPT(KINDS["fused"])).predict("É"), "encode() failed on this text (ValueError"),
            (lambda: attached(GPT(KINDS["fused"])).predict("a" * 17), "takes 1 to 16"),
            (lambda: attnscope.ablate(GPT(KINDS["fused"]), [(0, 0)]).__enter__(), "ablate() and edit() need a model of transformers"),
        ):
            with self.subTest(words), self.assertRaises(AttnscopeError) as raised:
                make()
            self.assertIn(words, str(raised.exception))
            self.assertNotIn("\n", str(raised.exception))


if __name__ == "__main__":
    unittest.main()
