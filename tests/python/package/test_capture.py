"""capture(), show(module, x) and check(module, x) with PyTorch: hand-written modules with arbitrary names."""

import copy
import unittest
import warnings

from support import exported, needs_torch, np, torch

import attnscope
from attnscope.showing import recording

if torch:
    import torch.nn.functional as F
    from classes import MultiHeadAttention, everything
    from torch import nn


@needs_torch
class Modules(unittest.TestCase):
    def test_every_class_becomes_an_editable_model_that_computes_the_same(self):
        for name, (module, x) in everything().items():
            with self.subTest(name):
                before = copy.deepcopy(module.state_dict())
                torch.manual_seed(7)
                a = recording(module, x)[0]
                self.assertEqual(a.not_editable, "")
                self.assertEqual(a.notes, [])
                stages = exported(a)
                np.testing.assert_allclose(stages["weights"].reshape(a.shape), a.weights, atol=1e-6)
                torch.manual_seed(7)  # dropout is reproduced from its captured mask
                with torch.no_grad():
                    out = module(x, x, x)[0] if isinstance(module, nn.MultiheadAttention) else module(x)
                out = out.transpose(0, 1) if name == "nn, tokens first" else out
                if name != "nn, layer":
                    np.testing.assert_allclose(stages["output"].reshape(-1), out.numpy().reshape(-1), atol=1e-6)
                self.assertTrue(all(torch.equal(v, before[k]) for k, v in module.state_dict().items()))

    def test_sdpa_with_every_argument(self):
        q, k, v = (torch.randn(2, 4, 6, 8) for _ in range(3))
        bias = torch.randn(4, 6, 6)
        for options in (
            {}, {"is_causal": True}, {"scale": 0.2}, {"attn_mask": torch.tril(torch.ones(6, 6)).bool()}, {"attn_mask": bias},
            {"is_causal": True, "dropout_p": 0.5}, {"is_causal": True, "enable_gqa": True},
        ):  # fmt: skip
            with self.subTest(list(options)):
                kk, vv = (k[:, :2], v[:, :2]) if "enable_gqa" in options else (k, v)
                with attnscope.capture() as c:
                    out = F.scaled_dot_product_attention(q, kk, vv, **options)
                np.testing.assert_allclose(c[0].context, out.numpy(), atol=1e-6)
                np.testing.assert_allclose(exported(c[0])["contexts"], out.numpy(), atol=1e-6)

    def test_fewer_queries_than_keys_as_pytorch_masks_them(self):
        with attnscope.capture() as c:
            out = F.scaled_dot_product_attention(
                torch.ones(1, 1, 2, 4), torch.randn(1, 1, 5, 4), torch.randn(1, 1, 5, 4), is_causal=True
            )
        np.testing.assert_allclose(c[0].context, out.numpy(), atol=1e-6)
        self.assertEqual(c[0].mask.align, "first")

    def test_einsum_and_a_soft_cap(self):
        w = [nn.Parameter(torch.randn(8, 2, 4)) for _ in range(3)]
        x = torch.randn(2, 5, 8)
        with attnscope.capture() as c, torch.no_grad():
            q, k, v = (torch.einsum("btd,dhk->bthk", x, m) for m in w)
            scores = 3 * torch.tanh(torch.einsum("bqhd,bkhd->bhqk", q, k) / 2 / 3)
            out = torch.einsum("bhqk,bkhd->bqhd", torch.softmax(scores, -1), v)
        self.assertEqual((c[0].softcap, c[0].not_editable), (3.0, ""))
        np.testing.assert_allclose(exported(c[0])["contexts"].transpose(0, 2, 1, 3), out.numpy(), atol=1e-6)

    def test_masks_of_multihead_attention(self):
        module = nn.MultiheadAttention(8, 2, batch_first=True).eval()
        x = torch.randn(2, 5, 8)
        padding = torch.zeros(2, 5, dtype=torch.bool)
        padding[1, 3:] = True
        causal = torch.triu(torch.ones(5, 5), 1).bool()
        with attnscope.capture(module) as c, torch.no_grad():
            out, weights = module(x, x, x, attn_mask=causal, key_padding_mask=padding, average_attn_weights=False)
        self.assertEqual(str(c[0].mask), "causal, padding")
        np.testing.assert_allclose(c[0].weights, weights.numpy(), atol=1e-6)
        np.testing.assert_allclose(exported(c[0])["output"], out.numpy(), atol=1e-6)

    def test_cross_attention_is_editable_too(self):
        module = nn.MultiheadAttention(8, 2, batch_first=True).eval()
        x, source = torch.randn(1, 3, 8), torch.randn(1, 5, 8)
        with attnscope.capture(module) as c, torch.no_grad():
            out, _ = module(x, source, source)
        self.assertEqual(c[0].not_editable, "")
        np.testing.assert_allclose(exported(c[0])["output"], out[0].numpy(), atol=1e-6)

    def test_a_compiled_module_runs_eagerly_while_it_is_recorded(self):
        module = MultiHeadAttention(8, 8, 6, 0.0, 2)
        compiled = torch.compile(module)
        with attnscope.capture(compiled) as c, torch.no_grad():
            compiled(torch.rand(1, 6, 8))
        self.assertEqual((len(c), c[0].not_editable), (1, ""))

    def test_dropout_in_place(self):
        q, k, v = torch.randn(3, 1, 2, 6, 4)
        with attnscope.capture() as c:
            weights = torch.softmax(q @ k.transpose(-1, -2) / 2, -1)
            out = F.dropout(weights, 0.5, True, True) @ v
        self.assertEqual((c[0].dropout, c[0].notes), (0.5, []))
        np.testing.assert_allclose(exported(c[0])["contexts"], out[0].numpy(), atol=1e-6)

    def test_gradients_flow_through_what_is_recorded(self):
        module = MultiHeadAttention(8, 8, 6, 0.0, 2)
        x = torch.rand(1, 6, 8, requires_grad=True)
        with attnscope.capture(module):
            module(x).sum().backward()
        self.assertTrue(x.grad.abs().sum() > 0)

    def test_bfloat16_is_widened_and_said(self):
        q = torch.randn(1, 2, 6, 4, dtype=torch.bfloat16)
        a = recording(q, q, q, causal=True)[0]
        self.assertEqual(a.queries.dtype, np.float32)
        self.assertIn("bfloat16", a.notes[0])

    def test_parameters_that_changed_give_stages(self):
        module = MultiHeadAttention(8, 8, 6, 0.0, 2)
        with attnscope.capture(module) as c, torch.no_grad():
            module(torch.rand(1, 6, 8))
            weights = c[0].weights
            module.W_query.weight.add_(1)
        np.testing.assert_allclose(exported(c[0])["weights"], weights[0], atol=1e-6)
        self.assertTrue(any("have changed" in note for note in c[0].notes))

    def test_names_layers_and_tokens(self):
        layers = nn.Sequential(*(MultiHeadAttention(8, 8, 6, 0.0, 2) for _ in range(3)))
        with attnscope.capture(layers, tokens=list("abcdef")) as c, torch.no_grad():
            layers(torch.rand(1, 6, 8))
        self.assertEqual((c.names, [a.layer for a in c]), (["0", "1", "2"], [0, 1, 2]))
        self.assertEqual(c["1"].tokens, list("abcdef"))
        self.assertEqual(c.html().text.count("<script"), 2)

    def test_what_has_no_attention_is_one_sentence(self):
        cases = (
            ((nn.Linear(3, 3), torch.rand(2, 3)), "no attention that could be recorded"),
            ((nn.Linear(3, 3), torch.rand(2, 4)), "failed when it was called"),
            ((nn.Linear(3, 3),), "give what the module is called with"),
            ((nn.Linear(3, 3), "text"), "needs its tokenizer"),
            ((nn.Linear(3, 3, device="meta"), torch.rand(2, 3)), "meta device"),
            ((torch.rand(2, 3, device="meta"), torch.rand(2, 3, device="meta")), "meta device"),
            ((torch.rand(2, 3, dtype=torch.complex64), torch.rand(2, 3)), "complex"),
        )
        for what, words in cases:
            with self.subTest(words), self.assertRaises(attnscope.AttnscopeError) as raised:
                recording(*what)
            self.assertIn(words, str(raised.exception))
        with self.assertRaisesRegex(attnscope.AttnscopeError, "takes a module"):
            attnscope.capture(3)
        with self.assertRaisesRegex(attnscope.AttnscopeError, "was the model called"), attnscope.capture() as c:
            c.save("nothing.safetensors")

    def test_a_model_that_fails_leaves_nothing_behind(self):
        hooks = len(nn.modules.module._global_forward_hooks)
        with self.assertRaises(ZeroDivisionError), attnscope.capture():
            1 / 0
        self.assertEqual(len(nn.modules.module._global_forward_hooks), hooks)


@needs_torch
class Claims(unittest.TestCase):
    def test_a_module_is_the_attention_that_it_claims_to_be_or_the_mistake_is_named(self):
        torch.manual_seed(1)
        x = torch.rand(2, 6, 8)
        for mistake, cause in (
            ("", None), ("no scale", "no_scale"), ("d_model", "scale_sqrt_d_model"), ("no mask", "no_mask"), ("view", "view_without_transpose"),
            ("merge", "merge_without_transpose"), ("queries", "softmax_over_queries"),
        ):  # fmt: skip
            report = attnscope.check(MultiHeadAttention(8, 8, 6, 0.0, 2, mistake), x, causal=True)
            with self.subTest(mistake):
                self.assertEqual(report.causes[:1], [cause] if cause else [])
                self.assertEqual(report.agrees, not mistake)

    def test_other_modules(self):
        for name, (module, x) in everything().items():
            if name not in ("book 3", "nn, layer", "001, heads", "001", "nn, tokens first"):
                with self.subTest(name):
                    torch.manual_seed(3)
                    self.assertIsNot(attnscope.check(module.eval(), x).report, "")

    def test_two_implementations(self):
        right, wrong = (MultiHeadAttention(8, 8, 6, 0.0, 2, m) for m in ("", "no scale"))
        wrong.load_state_dict(right.state_dict())
        x = torch.rand(1, 6, 8)
        with torch.no_grad():
            with attnscope.capture(right) as theirs:
                right(x)
            with attnscope.capture(wrong) as ours:
                wrong(x)
        self.assertEqual(ours.check(theirs).causes, ["no_scale"])
        attnscope.assert_same(theirs, theirs)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main()
