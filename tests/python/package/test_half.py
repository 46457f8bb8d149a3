"""check() of what PyTorch computes in bfloat16 and float16, by its fused attention and step by step: right ones agree, hardly wrong ones not."""

import itertools
import json
import sys
import tempfile
import unittest
from pathlib import Path

from support import needs_torch, np, torch

from attnscope import program

sys.path.append(str(Path(__file__).resolve().parents[1]))
from asking import save_half
from check_reports import session

if torch:
    import torch.nn.functional as F


def random_session(seed, n_tokens, n_heads, dtype):
    """Returns a session whose numbers a half-precision program would have, and them as tensors."""
    s = session(seed, n_tokens, n_heads, n_heads, d=16, width=16 * n_heads, bias=bool(seed % 2))

    def rounded(numbers):
        return None if numbers is None else torch.tensor(np.asarray(numbers), dtype=dtype)

    x = rounded(s["embeddings"])
    s["embeddings"] = x.double().tolist()
    parts = {}
    for name, p in s["projections"].items():
        weight, bias = parts[name] = rounded(p["weight"]), rounded(p["bias"])
        p["weight"], p["bias"] = weight.double().tolist(), None if bias is None else bias.double().tolist()
    return s, x.reshape(-1, n_tokens, x.shape[-1])[0], parts


def by_steps(q, k, v, mask, scale):
    scores = (q @ k.transpose(-1, -2) * scale).masked_fill(~mask, -torch.inf)
    return torch.softmax(scores.float(), -1).to(q.dtype) @ v


def fused(q, k, v, mask, scale):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)


def output(x, parts, n_heads, attend, bug=None):
    def linear(rows, name):
        weight, bias = parts[name]
        return F.linear(rows, weight.T, bias)

    n_tokens = len(x)
    q, k, v = (linear(x, name).unflatten(-1, (n_heads, -1)).transpose(0, 1) for name in ("query", "key", "value"))
    mask = torch.ones(n_tokens, n_tokens, dtype=torch.bool).tril()
    if bug == "dropped":
        mask[n_tokens // 2 :, 3] = False
    contexts = attend(q, k, v, mask, 16**-0.5 * (1.05 if bug == "scale" else 1))
    if bug == "head":
        contexts[0] *= 1.05
    return linear(contexts.transpose(0, 1).flatten(1), "output")


@needs_torch
class Half(unittest.TestCase):
    def answers(self, bug):
        """Yields which output was checked, and the answer."""
        kinds = itertools.product((torch.bfloat16, torch.float16), (fused, by_steps), ((2, 24), (8, 96)))
        with tempfile.TemporaryDirectory() as folder:
            model, dump = Path(folder, "model.json"), Path(folder, "dump.safetensors")
            for seed, (dtype, attend, (n_heads, n_tokens)) in enumerate(kinds):
                s, x, parts = random_session(seed, n_tokens, n_heads, dtype)
                model.write_text(json.dumps(s))
                name = str(dtype).removeprefix("torch.")
                save_half(dump, {"output": output(x, parts, n_heads, attend, bug).double().numpy()}, name)
                done = program.run(["check", str(model), str(dump), "--json"], accept=(0, 1))
                yield f"{bug}: {name} {attend.__name__}, {n_tokens} tokens", json.loads(done.stdout)

    def test_right_ones_agree(self):
        for which, answer in self.answers(None):
            self.assertTrue(answer["agrees"], f"{which}: {answer}")
            self.assertTrue(answer["rounding"] in which and answer["could_hide"]["row"] > 0)

    def test_a_key_a_head_or_a_scale_that_is_off_does_not(self):
        for bug in ("dropped", "head", "scale"):
            for which, answer in self.answers(bug):
                self.assertFalse(answer["agrees"], f"{which}: {answer}")


if __name__ == "__main__":
    unittest.main()
