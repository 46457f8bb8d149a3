"""capture(), show(module, x) and check(module, x) with PyTorch: hand-written modules with arbitrary names."""

import copy
import pickle
import threading
import unittest
import warnings
from unittest import mock

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
            with attnscope.capture(right) as reference:
                right(x)
            with attnscope.capture(wrong) as observed:
                wrong(x)
        self.assertEqual(observed.check(reference).causes, ["no_scale"])
        attnscope.assert_same(reference, reference)


@needs_torch
class Guests(unittest.TestCase):
    """A capture never stops the caller's model and never changes a bit of its numbers."""

    def test_flex_attention(self):
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        q, k, v = (torch.randn(2, 4, 7, 8) for _ in range(3))
        causal = create_block_mask(lambda b, h, i, j: i >= j, None, None, 7, 7, device="cpu")
        lengths, slopes = torch.tensor([7, 4]), torch.tensor([1.0, 0.5, 0.25, 0.125])
        padded = create_block_mask(lambda b, h, i, j: j < lengths[b], 2, None, 7, 7, device="cpu")
        for name, mask, options in (
            ("plain", "no key is masked", {}),
            ("causal", "causal", {"block_mask": causal}),
            ("padding", "padding", {"block_mask": padded, "scale": 0.3}),
            ("alibi", "causal", {"block_mask": causal, "score_mod": lambda s, b, h, i, j: s + slopes[h] * (j - i)}),
            ("softcap", "no key is masked", {"score_mod": lambda s, b, h, i, j: 2 * torch.tanh(s / 2)}),
            ("grouped", "causal", {"block_mask": causal, "enable_gqa": True}),
        ):
            kk, vv = (k[:, :2], v[:, :2]) if name == "grouped" else (k, v)
            with self.subTest(name), torch.no_grad():
                expected = flex_attention(q, kk, vv, **options)
                with attnscope.capture() as c:
                    out = flex_attention(q, kk, vv, **options)
                self.assertTrue(torch.equal(out, expected))
                self.assertEqual((len(c), c.problems, str(c[0].mask), c[0].notes), (1, [], mask, []))
                np.testing.assert_allclose(c[0].context, out.numpy(), atol=1e-5)

    def test_the_fast_path_of_encoders_is_taken_and_recorded(self):
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
        x, padding = torch.randn(2, 6, 16), torch.zeros(2, 6, dtype=torch.bool)
        padding[1, 4:] = True
        stack = nn.TransformerEncoder(layer, 2).eval()
        for name, module, arguments, n in (
            ("stack, padded", stack, {"src": x, "src_key_padding_mask": padding}, 2),
            ("stack", stack, {"src": x}, 2),
            ("layer", layer.eval(), {"src": x}, 1),
            ("attention", layer.self_attn, {"query": x, "key": x, "value": x, "need_weights": False}, 1),
        ):
            with self.subTest(name), torch.no_grad():
                expected = module(**arguments)
                with attnscope.capture(module) as c:
                    out = module(**arguments)
                first = lambda t: t[0] if isinstance(t, tuple) else t
                self.assertTrue(torch.equal(first(out), first(expected)))
                self.assertEqual((len(c), c.problems), (n, []))
                self.assertEqual(any("rows of padding" in note for note in c[0].notes), name == "stack, padded")

    def test_hooks_of_the_caller_run_once(self):
        module = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval()
        calls = []
        module.linear1.register_forward_hook(lambda *_: calls.append(1))
        with torch.no_grad(), attnscope.capture(module) as c:
            module(torch.randn(1, 5, 16))
        self.assertEqual((len(calls), len(c)), (1, 1))

    def test_code_of_the_caller_runs_once_and_the_slower_path_is_named(self):
        calls = []

        class Counting(nn.TransformerEncoderLayer):
            def forward(self, *args, **kwargs):
                calls.append(1)
                return super().forward(*args, **kwargs)

        layer = Counting(16, 4, 32, batch_first=True).eval()
        padding = torch.arange(6).expand(2, 6) >= torch.tensor([[6], [4]])
        for module, options, n in (
            (layer, {}, 1), (nn.TransformerEncoder(layer, 2).eval(), {}, 2), (nn.TransformerEncoder(layer, 2).eval(), {"src_key_padding_mask": padding}, 2),
        ):  # fmt: skip
            calls.clear()
            with torch.no_grad(), attnscope.capture(module) as c:
                module(torch.randn(2, 6, 16), **options)
            self.assertEqual((len(calls), len(c)), (n, n))
            self.assertIn("without PyTorch's fast path", c.problems[0])

    def test_checkpoints_inference_mode_and_functorch(self):
        from torch.utils.checkpoint import checkpoint

        module = MultiHeadAttention(8, 8, 6, 0.0, 2)
        x = torch.rand(1, 6, 8, requires_grad=True)
        with attnscope.capture(module) as c:
            checkpoint(module, x, use_reentrant=False).sum().backward()
        self.assertEqual(len(c), 1)  # what is computed again for gradients is the same attention
        for make, run in (
            (torch.inference_mode, torch.inference_mode), (torch.inference_mode, torch.no_grad), (torch.no_grad, torch.inference_mode),
        ):  # fmt: skip
            with make():
                made = MultiHeadAttention(8, 8, 6, 0.0, 2)
            with self.subTest(make=make.__name__, run=run.__name__), run():
                expected = made(x.detach())
                with attnscope.capture(made) as c:
                    out = made(x.detach())
                self.assertTrue(torch.equal(out, expected))
            self.assertEqual(c[0].not_editable, "")
            np.testing.assert_allclose(exported(c[0])["output"].reshape(-1), out.numpy().reshape(-1), atol=1e-6)
        with torch.no_grad(), attnscope.capture(module) as c:
            out = torch.vmap(module)(torch.rand(3, 1, 6, 8))
        self.assertEqual(out.shape, (3, 1, 6, 8))
        self.assertTrue(c.problems)

    def test_a_compiled_model_is_named(self):
        module = MultiHeadAttention(8, 8, 6, 0.0, 2)
        in_place, with_forward = copy.deepcopy(module), copy.deepcopy(module)
        in_place.compile()
        with_forward.forward = torch.compile(with_forward.forward)
        attend = torch.compile(lambda x: (x @ x.mT).softmax(-1) @ x)
        for name, compiled in {
            "wrapped": torch.compile(module), "in place": in_place, "forward": with_forward, "a function": attend, "inside": nn.Sequential(in_place),
        }.items():  # fmt: skip
            with self.subTest(name), torch.no_grad(), attnscope.capture() as c:
                compiled(torch.rand(1, 6, 8))
            self.assertEqual((len(c), len(c.problems)), (1, 1))
            self.assertIn("ran eagerly", c.problems[0])

    def test_only_the_capturing_thread_is_recorded_and_nothing_stays_patched(self):
        hooks, module = len(nn.modules.module._global_forward_hooks), MultiHeadAttention(8, 8, 6, 0.0, 2)
        x, started, stopped = torch.rand(1, 6, 8), threading.Event(), threading.Event()

        def other():
            with torch.no_grad(), attnscope.capture(module) as c:
                started.set()
                stopped.wait()
                module(x)
            found.append(len(c))

        found = []
        thread = threading.Thread(target=other)
        with torch.no_grad(), attnscope.capture(module) as c:
            thread.start()
            started.wait()
            module(x)
        stopped.set()
        thread.join()
        self.assertEqual((len(c), found), (1, [1]))
        self.assertEqual(len(nn.modules.module._global_forward_hooks), hooks)
        self.assertEqual(torch._dynamo.eval_frame._stance.stance, "default")
        with attnscope.capture(module) as c:
            thread = threading.Thread(target=module, args=(x,))
            thread.start()
            thread.join()
        self.assertIn("another thread", c.problems[0])

    def test_captures_that_overlap_record_what_ran_while_they_ran(self):
        q = torch.randn(1, 2, 5, 4)
        for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
            captures = [attnscope.capture() for _ in order]
            for c in captures:
                c.__enter__()
                F.scaled_dot_product_attention(q, q, q)
            for i in order:
                captures[i].__exit__(None, None, None)
                F.scaled_dot_product_attention(q, q, q)
            self.assertEqual([len(c) for c in captures], [3 - i + order.index(i) for i in range(3)])
        self.assertIsNone(torch.overrides._get_current_function_mode())

    def test_the_heads_of_a_rank_are_named_and_no_process_is_waited_for(self):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import DTensor, Shard
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
        from torch.testing._internal.distributed.fake_pg import FakeStore

        module = MultiHeadAttention(18, 8, 6, 0.0, 2)  # of six heads, two are here
        module.W_query, module.W_key, module.W_value, module.out_proj = (*(nn.Linear(18, 24) for _ in range(3)), nn.Linear(24, 18))
        plan = dict.fromkeys(("W_query", "W_key", "W_value"), ColwiseParallel()) | {"out_proj": RowwiseParallel()}
        waits = mock.patch.object(DTensor, "full_tensor", side_effect=AssertionError("waits for other processes"))
        for rank, heads in ((0, "0 to 1"), (1, "2 to 3"), (2, "4 to 5")):
            torch.distributed.init_process_group("fake", store=FakeStore(), rank=rank, world_size=3)
            try:
                mesh = init_device_mesh("cpu", (3,))
                mine = parallelize_module(copy.deepcopy(module), mesh, plan, src_data_rank=None)
                q = DTensor.from_local(torch.randn(1, 2, 6, 4), mesh, [Shard(1)], run_check=False)
                with self.subTest(rank), torch.no_grad(), waits:
                    with attnscope.capture(mine) as c:
                        mine(torch.randn(1, 6, 18))
                    self.assertEqual((len(c), c[0].n_heads, c[0].not_editable), (1, 2, ""))
                    self.assertIn(f"are heads {heads} of the model's 6", c.problems[0])
                    for f in (lambda: F.scaled_dot_product_attention(q, q, q), lambda: (q @ q.mT).softmax(-1) @ q):
                        with attnscope.capture() as c:
                            f()
                        self.assertEqual((len(c), len(c.problems)), (0, 1))
                        self.assertIn("are DTensors", c.problems[0])
            finally:
                torch.distributed.destroy_process_group()


@needs_torch
class Axes(unittest.TestCase):
    def test_sequences_heads_and_tokens_are_told_by_the_projections(self):
        w, d, heads = nn.Linear(16, 48), 4, 4

        def sequence_first(x):
            b, t, _ = x.shape
            return (m.reshape(b, t, heads, d).transpose(1, 2).reshape(b * heads, t, d) for m in w(x).chunk(3, -1))

        def time_first(x):
            t, b, _ = x.shape
            return (m.reshape(t, b * heads, d).transpose(0, 1) for m in w(x).chunk(3, -1))

        def heads_first(x):
            return (torch.cat(m.split(d, -1)) for m in w(x).chunk(3, -1))

        def heads_before_sequences(x):
            b, t, _ = x.shape
            return (m.reshape(b, t, heads, d).permute(2, 0, 1, 3) for m in w(x).chunk(3, -1))

        def flat(x):
            b, t, _ = x.shape
            return (m.reshape(b, t, heads, d).transpose(1, 2).reshape(b * heads, t, d) for m in w(x.reshape(-1, 16)).chunk(3, -1))

        for f, shape in (
            (sequence_first, (2, 6)), (time_first, (6, 2)), (time_first, (3, 3)), (heads_first, (2, 6)), (heads_before_sequences, (4, 6)),
            (flat, (2, 6)), (sequence_first, (3, 3)), (sequence_first, (1, 6)),
        ):  # fmt: skip
            for by_hand in (True, False):
                with self.subTest(f.__name__, shape=shape, by_hand=by_hand), torch.no_grad(), attnscope.capture() as c:
                    x = torch.randn(*shape, 16)
                    q, k, v = f(x)
                    if by_hand:
                        torch.softmax(q @ k.transpose(-1, -2) / 2, -1) @ v
                    else:
                        F.scaled_dot_product_attention(q, k, v)
                x = x.transpose(0, 1) if f is time_first else x
                want = w(x)[..., :16].reshape(*x.shape[:2], heads, d).transpose(1, 2).detach().numpy()
                self.assertEqual(c[0].notes, [])
                np.testing.assert_allclose(c[0].queries, want, atol=1e-6)
                self.assertEqual(c[0].not_editable, "")
                np.testing.assert_allclose(c[0].editable.embeddings, x.numpy())

    def test_a_guess_is_said(self):
        q, x = torch.randn(6, 5, 4), torch.randn(2, 5, 12)
        with torch.no_grad(), attnscope.capture() as c:
            F.scaled_dot_product_attention(q, q, q)
            nn.Linear(12, 12)(x)
            F.scaled_dot_product_attention(q, q, q)
            h = nn.Linear(12, 12)(x).reshape(2, 5, 3, 4)
            F.scaled_dot_product_attention(h, h, h)
        self.assertIn("6 maps are taken for sequences of one head", c[0].notes[0])
        self.assertIn("2 sequences of 3 heads", c[1].notes[0])
        self.assertIn("between the 3 heads of each token", c[2].notes[0])

    def test_einsums(self):
        x = [torch.randn(2, 7, 4, 8) for _ in range(3)]

        def ellipsis(q, k, v):
            return torch.einsum("...khe,...hqk->...qhe", v, torch.einsum("...qhe,...khe->...hqk", q, k).softmax(-1))

        def grouped(q, k, v):
            q, k, v = q.view(2, 7, 2, 2, 8), k[:, :, :2], v[:, :, :2]
            w = torch.einsum("bqgrd,bkgd->bgrqk", q, k).softmax(-1)
            return torch.einsum("bgrqk,bkgd->bqgrd", w, v).reshape(2, 7, 4, 8)

        def interleaved(q, k, v):
            q, k, v = q.view(2, 7, 2, 2, 8), k[:, :, :2], v[:, :, :2]
            w = torch.einsum("bqrgd,bkgd->brgqk", q, k).softmax(-1)
            return torch.einsum("brgqk,bkgd->bqrgd", w, v).reshape(2, 7, 4, 8)

        def heads_last(q, k, v):
            return torch.einsum("bijh,bjhd->bihd", torch.einsum("bihd,bjhd->bijh", q, k).softmax(2), v)

        for f in (ellipsis, grouped, interleaved, heads_last):
            with self.subTest(f.__name__), torch.no_grad(), attnscope.capture() as c:
                out = f(*x)
            self.assertEqual((c.problems, [n for a in c for n in a.notes]), ([], []))
            np.testing.assert_allclose(c[0].context.transpose(0, 2, 1, 3), out.numpy(), atol=1e-5)


@needs_torch
class Masks(unittest.TestCase):
    def test_attention_by_hand_in_sixteen_bits_keeps_its_mask(self):
        causal = torch.ones(8, 8).tril().bool()
        for dtype in (torch.bfloat16, torch.float16, "autocast"):
            for how in ("fill", "lowest", "add", "add -10000", "fill -1e4"):
                module = MultiHeadAttention(16, 16, 8, 0.0, 2)

                def attend(x, module=module, how=how):
                    q, k, v = (module.split(m(x)) for m in (module.W_query, module.W_key, module.W_value))
                    scores = q @ k.transpose(-1, -2) / 8**0.5
                    if how.startswith("add"):
                        number = -10000.0 if "10000" in how else torch.finfo(scores.dtype).min
                        scores = scores + torch.zeros(8, 8).masked_fill(~causal, number).to(scores.dtype)
                    else:
                        number = {"fill": -torch.inf, "lowest": torch.finfo(scores.dtype).min}.get(how, -1e4)
                        scores = scores.masked_fill(~causal, number)
                    return scores.softmax(-1) @ v

                x = torch.randn(2, 8, 16)
                with self.subTest(dtype=str(dtype), how=how), torch.no_grad():
                    if dtype == "autocast":
                        with torch.autocast("cpu", torch.bfloat16), attnscope.capture() as c:
                            attend(3 * x)
                    else:
                        module.to(dtype)
                        with attnscope.capture() as c:
                            attend((3 * x).to(dtype))
                    self.assertEqual((str(c[0].mask), c[0].bias, c[0].given, c[0].scale), ("causal", None, {}, None))

    def test_masks_of_minus_ten_thousand(self):
        q, k, v = (torch.randn(2, 4, 6, 8) for _ in range(3))
        added = torch.zeros(2, 1, 1, 6)
        added[1, ..., 4:] = -10000
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            with self.subTest(str(dtype)), attnscope.capture() as c:
                qq, kk, vv, mask = (t.to(dtype) for t in (q, k, v, added))
                out = F.scaled_dot_product_attention(qq, kk, vv, attn_mask=mask)
            self.assertEqual((c[0].mask.hidden_keys, c[0].bias), (((), (4, 5)), None))
            np.testing.assert_allclose(c[0].context, out.float().numpy(), atol=5e-2)

    def test_padding_shared_by_all_sequences_keeps_its_rule(self):
        x, keys = torch.randn(2, 6, 8), torch.ones(2, 6, dtype=torch.bool)
        module = nn.MultiheadAttention(8, 2, batch_first=True)
        causal = torch.ones(6, 6).triu(1).bool()
        for hidden in (([4, 5], [4, 5]), ([5], [3, 4, 5]), ([0], [0]), ([], [])):
            keys = torch.zeros(2, 6, dtype=torch.bool)
            for s, columns in enumerate(hidden):
                keys[s, columns] = True
            for mask, words in ((None, ""), (causal, "causal")):
                with self.subTest(hidden, mask=words), torch.no_grad(), attnscope.capture(module) as c:
                    module(x, x, x, key_padding_mask=keys, attn_mask=mask)
                expected = [words] * bool(words) + ["padding"] * any(hidden)
                self.assertEqual(str(c[0].mask), ", ".join(expected) or "no key is masked")
                self.assertEqual(c[0].not_editable, "")
                if any(hidden):
                    self.assertEqual(c[0].mask.hidden_keys, tuple(map(tuple, hidden)))

    def test_an_ablated_head_keeps_the_weights_of_the_model(self):
        q, k, v = (torch.randn(1, 4, 6, 8) for _ in range(3))
        for factors in ([0.0, 1, 1, 1], [0.5, 1, 1, 1], [float("nan"), 1, 1, 1]):
            with self.subTest(factors), attnscope.capture() as c:
                w = (q @ k.mT / 8**0.5).softmax(-1) * torch.tensor(factors).view(1, 4, 1, 1)
                w @ v
            np.testing.assert_allclose(c[0].weights, w.numpy(), atol=1e-6)
            self.assertTrue(c[0].notes)


def forms():
    """Returns ways to write softmax(q·kᵀ)·v: whether they are a plain softmax, with sinks, or weights that are given."""
    size, mix, conv, linear = 8**-0.5, torch.randn(4, 4), nn.Conv2d(4, 4, 1), nn.Linear(4, 4)
    sinks = torch.arange(4.0).view(1, 4, 1, 1)

    def divided(e, keys=-1):
        return e / e.sum(keys, keepdim=True)

    def shifted(s):
        return s - s.amax(-1, keepdim=True)

    def causal(q, k, v):
        s = (q @ k.mT * size).masked_fill(torch.ones(7, 7).triu(1).bool(), -torch.inf)
        return divided(torch.exp(s - s.max(-1, keepdim=True).values)) @ v

    def in_place(q, k, v):
        s = q @ k.mT * size
        s -= s.amax(-1, keepdim=True)
        s.exp_()
        s /= s.sum(-1, keepdim=True)
        return s @ v

    def divided_last(q, k, v):
        e = (q @ k.mT * size).exp()
        return (e @ v) / e.sum(-1, keepdim=True)

    def one_more(q, k, v):
        s = q @ k.mT * size
        m = s.amax(-1, keepdim=True).clamp(min=0)
        e = (s - m).exp()
        return e / ((-m).exp() + e.sum(-1, keepdim=True)) @ v

    def sinks_last(q, k, v):
        s = shifted(torch.cat([q @ k.mT * size, sinks.expand(2, 4, 7, 1)], -1))
        return F.softmax(s, dim=-1)[..., :-1] @ v

    def differential(q, k, v):
        w = (q @ k.mT).softmax(-1).view(2, 2, 2, 7, 7)
        return (w[:, :, 0] - 0.3 * w[:, :, 1]) @ v[:, :2]

    def of_linear(q, k, v):
        s = linear((q @ k.mT * size).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return linear(s.softmax(-1).permute(0, 2, 3, 1)).permute(0, 3, 1, 2) @ v

    def heads_last(q, k, v):
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        w = torch.einsum("bihd,bjhd->bijh", q, k).softmax(2)
        return torch.einsum("bijh,bjhd->bihd", w, v).transpose(1, 2)

    return {
        "plain": [
            lambda q, k, v: divided((q @ k.mT * size).exp()) @ v,
            lambda q, k, v: divided(shifted(q @ k.mT * size).exp()) @ v,
            lambda q, k, v: F.log_softmax(q @ k.mT * size, -1).exp() @ v,
            lambda q, k, v: (v.mT @ (q @ k.mT * size).softmax(-1).mT).mT,
            causal, in_place, divided_last, heads_last,
        ],
        "sinks": [
            lambda q, k, v: torch.cat([q @ k.mT * size, torch.zeros(2, 4, 7, 1)], -1).softmax(-1)[..., :-1] @ v,
            lambda q, k, v: torch.cat([sinks.expand(2, 4, 7, 1), q @ k.mT * size], -1).softmax(-1)[..., 1:] @ v,
            sinks_last, one_more,
        ],
        "given": [
            lambda q, k, v: ((q[..., :4] @ k[..., :4].mT).softmax(-1) - 0.5 * (q[..., 4:] @ k[..., 4:].mT).softmax(-1)) @ v,
            lambda q, k, v: torch.einsum("bhij,hg->bgij", (q @ k.mT * size).softmax(-1), mix) @ v,
            lambda q, k, v: torch.einsum("bhij,hg->bgij", q @ k.mT * size, mix).softmax(-1) @ v,
            lambda q, k, v: conv(conv(q @ k.mT * size).softmax(-1)) @ v,
            differential, of_linear,
        ],
    }  # fmt: skip


@needs_torch
class SoftmaxByHand(unittest.TestCase):
    def test_every_form_is_recorded(self):
        torch.manual_seed(0)
        q, k, v = (torch.randn(2, 4, 7, 8) for _ in range(3))
        for kind, functions in forms().items():
            for number, f in enumerate(functions):
                with self.subTest(kind, number=number):
                    with torch.no_grad(), attnscope.capture() as c:
                        out = f(q, k, v)
                    self.assertEqual((len(c), c.problems), (1, []))
                    np.testing.assert_allclose(c[0].context, out.numpy(), atol=1e-6)
                    self.assertEqual((list(c[0].given), c[0].sinks is not None), (["weights"] * (kind == "given"), kind == "sinks"))
                    self.assertEqual(len(c[0].notes), kind == "given")
                    if c[0].given:
                        np.testing.assert_allclose(exported(c[0])["contexts"], out.numpy(), atol=1e-6)


@needs_torch
class Reasons(unittest.TestCase):
    def test_what_is_not_recorded_is_named(self):
        q, k, v = (torch.randn(1, 4, 7, 8) for _ in range(3))
        for words, f in (
            ("not divided by their sum", lambda q, k, v: (q @ k.mT).exp() @ v),
            ("made by sigmoid", lambda q, k, v: torch.sigmoid(q @ k.mT) @ v),
            ("changed by pow", lambda q, k, v: (q @ k.mT).softmax(-1).pow(2) @ v),
            ("led to no product with values", lambda q, k, v: (q @ k.mT).softmax(-1).argmax(-1)),
            ("called directly", lambda q, k, v: torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v)[0]),
            ("no attention to record", lambda q, k, v: q + k),
        ):
            with self.subTest(words), attnscope.capture() as c:
                f(q, k, v)
            self.assertEqual(len(c), 0)
            self.assertIn(words, c.problems[0])
        with attnscope.capture(max_tokens=3) as c:
            (q @ k.mT).softmax(-1) @ v
        self.assertIn("max_tokens=3", c.problems[0])

    def test_other_uses_of_weights_are_no_problem(self):
        q, k, v = (torch.randn(1, 4, 7, 8) for _ in range(3))
        with attnscope.capture() as c:
            w = (q @ k.mT).softmax(-1)
            w @ v
            w @ w
            -(w * w.log()).sum(-1)
        self.assertEqual((len(c), c.problems), (1, []))


@needs_torch
class Copies(unittest.TestCase):
    def test_pickle_and_deepcopy(self):
        module = MultiHeadAttention(8, 8, 6, 0.0, 2)
        with torch.no_grad(), attnscope.capture(module) as c:
            module(torch.rand(1, 6, 8))
        for copied in (pickle.loads(pickle.dumps(c)), copy.deepcopy(c), [pickle.loads(pickle.dumps(c[0]))]):
            self.assertEqual((len(copied), copied[0].not_editable), (1, ""))
            np.testing.assert_array_equal(copied[0].weights, c[0].weights)
            np.testing.assert_allclose(exported(copied[0])["output"], exported(c[0])["output"])
        module.W_query.weight.data.mul_(2)
        late = pickle.loads(pickle.dumps(c))[0]
        self.assertIsNone(late.editable)
        self.assertIn("have changed", late.not_editable)

    def test_parameters_changed_through_data(self):
        def scaled(m):
            m.W_query.weight.data.mul_(2)

        def swapped(m):
            m.W_key.weight.data.copy_(m.W_key.weight.data.flip(0))

        def stepped(m):
            m.out_proj.bias.data -= 1e-3

        def freed(m):  # as FSDP does after each call
            m.W_value.weight.untyped_storage().resize_(0)

        for change in (scaled, swapped, stepped, freed):
            module = MultiHeadAttention(8, 8, 6, 0.0, 2)
            with torch.no_grad(), attnscope.capture(module) as c:
                module(torch.rand(1, 6, 8))
            weights = c[0].weights.copy()
            change(module)
            with self.subTest(change.__name__):
                np.testing.assert_allclose(exported(c[0])["weights"], weights[0], atol=1e-6)
                self.assertTrue(any("have changed" in note for note in c[0].notes))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main()
