"""Gradients that capture() records, also of a hand-written autograd.Function, and check() of them."""

import unittest

from support import needs_torch, torch

import attnscope
from attnscope.attention import of_stages

if torch:
    import torch.nn.functional as F

    class HandWritten(torch.autograd.Function):
        """Attention whose backward forgets a transpose: dK is dS·Q."""

        @staticmethod
        def forward(ctx, q, k, v):
            weights = (q @ k.transpose(-2, -1) / 2).softmax(-1)
            ctx.save_for_backward(q, k, v, weights)
            return weights @ v

        @staticmethod
        def backward(ctx, d_out):
            q, k, v, weights = ctx.saved_tensors
            dp = d_out @ v.transpose(-2, -1)
            ds = weights * (dp - (dp * weights).sum(-1, keepdim=True)) / 2
            return ds @ k, ds @ q, weights.transpose(-2, -1) @ d_out


def inputs(dtype):
    torch.manual_seed(3)
    return [torch.randn(1, 2, 5, 4, dtype=torch.float64).to(dtype).requires_grad_() for _ in range(3)]


@needs_torch
class Gradients(unittest.TestCase):
    def test_of_an_autograd_function_tell_its_bug(self):
        for dtype in (torch.float64, torch.float32):
            with self.subTest(str(dtype)):
                q, k, v = inputs(dtype)
                with attnscope.capture(gradients=True) as c:
                    out = HandWritten.apply(q, k, v)
                    loss = (out * torch.randn(out.shape, dtype=dtype)).sum()
                loss.backward()  # the hooks stay after the capture
                self.assertEqual(set(c[0].recorded_gradients), {"d_queries", "d_keys", "d_values", "d_contexts"})
                report = attnscope.check(c[0], of_stages(*(t.detach() for t in (q, k, v))))
                self.assertEqual(report.first, "d_keys")
                self.assertEqual(report.causes, ["backward_untransposed"])
                self.assertIn("dK is dS·Q, without the transpose.", report.report)

    def test_of_pytorch_agree(self):
        q, k, v = inputs(torch.float32)
        with attnscope.capture(gradients=True) as c:
            F.scaled_dot_product_attention(q, k, v, is_causal=True).square().sum().backward()
        report = attnscope.check(c[0], of_stages(*(t.detach() for t in (q, k, v)), causal=True))
        self.assertTrue(report, report.report)
        self.assertIn("d_queries", [stage.name for stage in report.stages])

    def test_are_not_recorded_unless_wanted(self):
        q, k, v = inputs(torch.float32)
        with attnscope.capture() as c:
            F.scaled_dot_product_attention(q, k, v).sum().backward()
        self.assertEqual(c[0].recorded_gradients, {})


if __name__ == "__main__":
    unittest.main()
