"""Models that are large: what a capture costs, and models that do not fit one device."""

import time
import unittest
import warnings

from support import needs_torch, np, torch

import attnscope

try:
    import transformers
    from transformers import AutoModelForCausalLM
except ImportError:
    transformers = None


def llama(**sizes):
    known = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 50}
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(transformers.LlamaConfig(**(known | sizes))).eval()


@needs_torch
@unittest.skipUnless(transformers, "transformers is not installed")
class Cost(unittest.TestCase):
    def test_a_capture_takes_at_most_half_as_long_again(self):
        models = (
            AutoModelForCausalLM.from_config(transformers.GPT2Config(n_layer=6)).eval(),
            llama(hidden_size=768, intermediate_size=2048, num_hidden_layers=6, num_attention_heads=12, num_key_value_heads=12, vocab_size=8000),
        )
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # threads that wait for each other count as processor time on a busy machine
        self.addCleanup(torch.set_num_threads, threads)
        for model in models:
            for n_tokens in (64, 512):
                ids = torch.randint(3, 1000, (1, n_tokens))
                plain, captured = [], []
                for _ in range(5):
                    start = time.process_time()
                    with torch.no_grad():
                        model(ids)
                    middle = time.process_time()
                    with torch.no_grad(), attnscope.capture(model) as c:
                        model(ids)
                    plain.append(middle - start)
                    captured.append(time.process_time() - middle)
                with self.subTest(type(model).__name__, n_tokens=n_tokens):
                    self.assertLess(min(captured), 1.5 * min(plain))
                    self.assertEqual(len(c), 6)

    def test_projections_are_looked_for_when_they_are_asked_for(self):
        model = llama()
        with torch.no_grad(), attnscope.capture(model) as c:
            model(torch.randint(3, 50, (1, 9)))
        self.assertIsNotNone(c[0]._search)
        self.assertNotIn("editable", repr(c))
        self.assertEqual(c[0].not_editable, "")
        self.assertIsNone(c[0]._search)
        self.assertIn("editable", repr(c[0]))

    def test_a_sample_of_the_rows_of_a_long_text_is_compared_and_said(self):
        model = llama()
        with torch.no_grad(), attnscope.capture(model) as c:
            model(torch.randint(3, 50, (1, 300)))
        self.assertEqual(c[0].notes, ["model.layers.0.self_attn: 48 of its 300 rows were compared with the model's own."])
        self.assertIsNotNone(c[0].editable)

    def test_an_input_that_was_overwritten_makes_no_editable_model(self):
        from classes import MultiHeadAttention

        module, x = MultiHeadAttention(8, 8, 6, 0.0, 2), torch.rand(1, 6, 8)
        with torch.no_grad(), attnscope.capture(module) as c:
            module(x)
            x.mul_(2)
        self.assertIsNone(c[0].editable)
        self.assertIn("overwritten", c[0].not_editable)
        np.testing.assert_allclose(c[0].context, c[0].observed["contexts"], atol=1e-6)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main()
