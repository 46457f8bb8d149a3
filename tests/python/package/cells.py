"""The cells of README.md and docs/python.md, and a small model, tokenizer and tensors under the names that they use."""

import contextlib
import re
from unittest import mock

from support import ROOT, random, torch

import attnscope


class Tokenizer:
    """One token per word; as much of a tokenizer as the documents need."""

    def __call__(self, text, return_tensors=None, **_):
        ids = [sum(word.encode()) % 64 for word in text.split()]
        return {"input_ids": torch.tensor([ids]) if return_tensors else ids}

    def convert_ids_to_tokens(self, ids):
        return [f"word{int(i)}" for i in ids]

    def decode(self, ids, **_):
        return " ".join(self.convert_ids_to_tokens(ids))


def cells():
    """Returns the cells, without the program that test_large.py runs in two processes."""
    found = [cell for path in ("README.md", "docs/python.md")
             for cell in re.findall(r"^```python\n(.*?)^```", (ROOT / path).read_text("utf-8"), re.S | re.M)]  # fmt: skip
    return [cell for cell in found if not cell.startswith("# two_ranks.py")]


@contextlib.contextmanager
def setting():
    """Yields the names. attach() serves the model without a window; from_pretrained() returns the small model."""
    import transformers

    from attnscope import serving

    torch.manual_seed(0)
    config = transformers.GPT2Config(n_embd=48, n_layer=6, n_head=4, vocab_size=64, bos_token_id=0, eos_token_id=0)
    model, tokenizer = transformers.GPT2LMHeadModel(config).eval(), Tokenizer()
    module, x = torch.nn.MultiheadAttention(8, 2, batch_first=True), torch.randn(1, 5, 8)
    q, k, v = random(3, 2, 5, 4)
    a = attnscope.reference(q, k, v, causal=True)
    names = {
        "model": model, "tokenizer": tokenizer, "inputs": tokenizer("one two three four", return_tensors="pt"), "module": module, "x": x,
        "q": q, "k": k, "v": v, "observed": a, "reference": a, "w": a.weights, "z": a.context, "text": "one two three four",
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.0), "path": ROOT / "assets/examples/tiny_gpt",
    }  # fmt: skip
    with attnscope.capture(model) as names["other"]:
        model(**names["inputs"])
    served = serving.attach(model, tokenizer, port=0)
    with (
        mock.patch.object(attnscope.program, "has_display", lambda: False),
        mock.patch.object(attnscope, "attach", lambda *_, **__: served),
        mock.patch.object(served, "open_window", lambda *_, **__: None),
        mock.patch.object(served, "why", mock.MagicMock(), create=True),  # it saves the tokenizer, which this one cannot be
        mock.patch.object(transformers.AutoModelForCausalLM, "from_pretrained", lambda _: model),
        mock.patch.object(transformers.AutoTokenizer, "from_pretrained", lambda _: tokenizer),
    ):
        yield names
    served.close()
