"""Heads over many texts: models of transformers and of one's own against NumPy, two ranks against one, and the program's folders."""

import json
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

from support import ROOT, np, torch

import attnscope
from attnscope import AttnscopeError, program, scanning
from attnscope.scanning import MEASURES, UNIT, load

try:
    import transformers
except ImportError:
    transformers = None

TINY = ROOT / "assets/examples/tiny_gpt"
TEXTS = ["egg jam fig and egg jam f", "", "to be or not to be or not to be", "a", *(f"the fig {i} and the jam {i * i}" for i in range(12))]
RANKS = """
import json, sys
import torch, transformers
from torch import distributed
sys.path[:0] = [{python!r}, {here!r}]
from test_scan import TEXTS, attnscope, model_and_tokenizer
torch.set_num_threads(1)
distributed.init_process_group("gloo")
found = attnscope.scan(*(lambda m, t: (m, TEXTS, t))(*model_and_tokenizer()), folder={folder!r})
print(json.dumps([distributed.get_rank(), found.sums, found.counts, found.n_tokens, [[e["sequence_id"] for e in of] for of in found._examples]]), flush=True)
distributed.destroy_process_group()
"""


def model_and_tokenizer():
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_embd=32, n_layer=3, n_head=4, vocab_size=1024, n_positions=32, bos_token_id=None, eos_token_id=None)
    model = transformers.GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model, transformers.PreTrainedTokenizerFast(tokenizer_file=str(TINY / "tokenizer.json"))


def by_hand(patterns):
    """Returns the means of the measures over pairs of weights [T, T] and token IDs."""
    values = [[] for _ in MEASURES]
    for w, ids in patterns:
        for i in range(len(ids)):
            earlier = [j for j in range(i) if ids[j] == ids[i]]
            if i:
                values[0].append(w[i, i - 1])
                values[1].append(w[i, 0])
            values[2].append(w[i, i])
            if earlier:
                values[3].append(sum(w[i, j] for j in earlier))
                values[4].append(sum(w[i, j + 1] for j in earlier if j + 1 < i))
            values[5].append(-sum(x * np.log2(x) for x in w[i] if x > 0))
            values[6].append(sum(x * abs(i - j) for j, x in enumerate(w[i])))
    return [np.mean(of) for of in values]


@unittest.skipUnless(program.is_here(), "the program is not here")
class OfPaths(unittest.TestCase):
    def test_the_program_scans_and_its_folder_is_read(self):
        found = attnscope.scan(TINY, TEXTS)
        self.assertEqual((found.n_sequences, found.measures.shape), (15, (4, 4)))
        self.assertGreater(found.measures.induction[2, 0], found.measures.induction[0].max())
        example = found.examples(2, 0)[0]
        self.assertIn(example["text"], TEXTS)
        self.assertEqual(TEXTS[example["line"] - 1], example["text"])
        self.assertEqual(example["pattern"].shape, (len(example["tokens"]),) * 2)
        self.assertLessEqual(abs(example["pattern"].sum(1) - 1).max(), 0.1)

    def test_bad_input_is_one_line(self):
        for texts, length, said in (([], None, "expected texts"), (["egg"], 1000, "1 to 256 tokens")):
            with self.assertRaisesRegex(AttnscopeError, said):
                attnscope.scan(TINY, texts, length=length)


@unittest.skipUnless(program.is_here() and torch and transformers, "the program, PyTorch or transformers is not here")
class OfModels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model, cls.tokenizer = model_and_tokenizer()
        cls.found = attnscope.scan(cls.model, TEXTS, cls.tokenizer, length=8)

    def test_measures_are_means_of_the_captured_weights(self):
        patterns = []
        for text in TEXTS:
            ids = self.tokenizer(text)["input_ids"][:8]
            if ids:
                with torch.no_grad(), attnscope.capture(self.model) as c:
                    self.model(torch.tensor([ids]))
                patterns.append(([a.weights[0] for a in c], ids))
        for layer in range(3):
            for head in range(4):
                wanted = by_hand([(weights[layer][head], ids) for weights, ids in patterns])
                np.testing.assert_allclose(list(self.found.measures[layer, head]), wanted, atol=1e-6)

    def test_the_program_and_pytorch_agree_and_their_folders_merge(self):
        with tempfile.TemporaryDirectory() as folder:
            self.model.save_pretrained(f"{folder}/model")
            self.tokenizer.save_pretrained(f"{folder}/model")
            there = attnscope.scan(f"{folder}/model", TEXTS, length=8)
            for name in MEASURES:
                np.testing.assert_allclose(self.found.measures[name], there.measures[name], atol=2e-5)
            self.found.save(f"{folder}/saved")
            again = load(f"{folder}/saved")
            self.assertEqual((again.sums, again.counts, again.n_sequences), (self.found.sums, self.found.counts, 15))
            self.assertEqual([e["line"] for e in again.examples(1, 1)], [e["line"] for e in self.found.examples(1, 1)])
            other = attnscope.scan(self.model, ["fig fig fig", "jam and jam"], self.tokenizer, length=8)
            other.save(f"{folder}/other")
            program.run(["scan", "--merge", f"{folder}/saved", f"{folder}/other", "--out", f"{folder}/both"])
            self.assertEqual(load(f"{folder}/both").sums, [[a + b for a, b in zip(x, y)] for x, y in zip(self.found.sums, other.sums)])

    def test_two_ranks_give_the_numbers_of_one(self):
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        one = attnscope.scan(self.model, TEXTS, self.tokenizer)
        torch.set_num_threads(threads)
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "ranks.py"
            script.write_text(RANKS.format(folder=f"{folder}/heads", python=str(ROOT / "python"), here=str(Path(__file__).parent)), "utf-8")
            said = subprocess.run([sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", str(script)],
                                  capture_output=True, text=True, timeout=300)  # fmt: skip
        self.assertEqual(said.returncode, 0, said.stderr)
        ranks = sorted(json.loads(line) for line in said.stdout.splitlines() if line.startswith("["))
        self.assertEqual([rank[0] for rank in ranks], [0, 1])
        for _, sums, counts, n_tokens, examples in ranks:
            self.assertEqual((sums, counts, n_tokens), (one.sums, one.counts, one.n_tokens))
            self.assertEqual(examples, [[e["sequence_id"] for e in of] for of in one._examples])

    def test_a_killed_scan_goes_on_where_it_was(self):
        def stop(done, of):
            read.append(done)
            if len(read) == 10:
                raise KeyboardInterrupt

        with tempfile.TemporaryDirectory() as temporary, unittest.mock.patch.object(scanning, "BETWEEN_WRITES", 0):
            folder, read = f"{temporary}/heads", []
            with self.assertRaises(KeyboardInterrupt):
                attnscope.scan(self.model, TEXTS, self.tokenizer, length=8, folder=folder, progress=stop)
            with self.assertRaisesRegex(AttnscopeError, "expected another folder"):
                attnscope.scan(self.model, TEXTS[1:], self.tokenizer, length=8, folder=folder)
            found = attnscope.scan(self.model, TEXTS, self.tokenizer, length=8, folder=folder, progress=stop)
            self.assertEqual(read[10:], list(range(9, 17)))
            self.assertEqual((found.sums, found._examples), (self.found.sums, self.found._examples))
            self.assertEqual((load(folder).sums, [p.name for p in Path(temporary).iterdir()]), (found.sums, ["heads"]))
            self.assertEqual(attnscope.scan(self.model, TEXTS, self.tokenizer, length=8, folder=folder, progress=stop).sums, found.sums)
            self.assertEqual(len(read), 18)
            path = attnscope.scan(TINY, TEXTS, folder=f"{temporary}/tiny")
            self.assertEqual(attnscope.scan(TINY, TEXTS, folder=f"{temporary}/tiny").sums, path.sums)

    def test_texts_that_cannot_be_read_are_named(self):
        def encode(text):
            if "x" in text:
                raise ValueError("no x")
            return [1 + ord(c) % 7 for c in text]

        found = attnscope.scan(self.model, ["abab", "xx", "ab"], encode=encode)
        self.assertEqual((found.n_sequences, len(found.skipped), found.skipped[0][0]), (2, 1, 2))
        self.assertIn("no x", found.skipped[0][1])
        with self.assertRaisesRegex(AttnscopeError, "1 to 32 tokens"):
            attnscope.scan(self.model, ["ab"], encode=encode, length=33)

    def test_sums_are_whole_units(self):
        one, other = (attnscope.scan(self.model, texts, self.tokenizer) for texts in (TEXTS, TEXTS[::-1]))
        self.assertEqual(one.sums, other.sums)
        self.assertAlmostEqual(one.measures.itself[0, 0] * one.counts[2] / UNIT, one.sums[0][2], 3)


if __name__ == "__main__":
    unittest.main()
