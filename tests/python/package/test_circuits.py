"""Sources of scores, patches and composition, computed by the program: of paths, and of models of transformers against hooks."""

import tempfile
import unittest

from support import ROOT, np, torch

import attnscope
from attnscope import AttnscopeError, program

try:
    import transformers
except ImportError:
    transformers = None

TINY = ROOT / "assets/examples/tiny_gpt"
CLEAN, CORRUPT = "egg jam fig and egg jam f", "egg jam food and egg jam f"


@unittest.skipUnless(program.is_here(), "the program is not here")
class OfPaths(unittest.TestCase):
    def test_patches_recover_shares_of_the_difference(self):
        found = attnscope.patch(TINY, CLEAN, CORRUPT, answer="ig", against="ood")
        self.assertEqual(found.recovered.shape, (4, 4))
        self.assertAlmostEqual(found.recovered[2, 0], 0.363, 3)
        self.assertGreater(found.clean, 0 > found.corrupt)
        self.assertEqual(attnscope.patch(str(TINY), CLEAN, CORRUPT, answer="ig", against="ood", what="residual").recovered.shape, (4, 14))

    def test_positions_and_paths_are_maps_of_their_own(self):
        asked = {"answer": "ig", "against": "ood"}
        self.assertEqual(attnscope.patch(TINY, CLEAN, CORRUPT, positions=True, **asked).recovered.shape, (16, 14))
        self.assertEqual(attnscope.patch(TINY, CLEAN, CORRUPT, through="queries:2.0", **asked).recovered.shape, (2, 4))

    def test_prompts_of_other_lengths_are_aligned(self):
        longer, asked = "egg jam food and and egg jam f", {"answer": "ig", "against": "ood"}
        found = attnscope.patch(TINY, CLEAN, longer, positions=True, what="mlp", **asked).recovered
        self.assertEqual(np.isnan(found[0]).nonzero()[0].tolist(), [6, 7])
        by_hand = attnscope.patch(TINY, CLEAN, longer, positions=True, what="mlp", align=[(0, 0), (6, 6), (13, 14)], **asked).recovered
        self.assertEqual(np.isfinite(by_hand[0]).nonzero()[0].tolist(), [0, 6, 14])
        self.assertAlmostEqual(by_hand[2, 14], found[2, 14], 9)
        with self.assertRaisesRegex(AttnscopeError, "align: expected positions in order"):
            attnscope.patch(TINY, CLEAN, longer, align=[(3, 2), (2, 3)], **asked)

    def test_pairs_of_tokens_are_sorted(self):
        pairs = attnscope.token_pairs(TINY, "2.0", top=4)
        for found in (pairs.ov, pairs.qk):
            self.assertEqual(len(found), 4)
            self.assertTrue((np.diff(found.value) <= 0).all())

    def test_composition_has_every_pair_of_heads(self):
        found = attnscope.composition(TINY)
        self.assertEqual(found.heads[5], "1.1")
        for name in ("queries", "keys", "values"):
            share = getattr(found, name)
            self.assertEqual(share.shape, (16, 16))
            later = np.arange(16)[:, None] // 4 < np.arange(16) // 4
            self.assertTrue(np.array_equal(np.isfinite(share), later))
            self.assertTrue(((share[later] > 0) & (share[later] <= 1)).all())

    def test_an_answer_of_two_tokens_is_refused_with_them(self):
        with self.assertRaises(AttnscopeError) as refused:
            attnscope.patch(TINY, CLEAN, CORRUPT, answer="egg", against="ood")
        self.assertEqual(str(refused.exception), "--answer: expected one token, got 3: 'e', 'g', 'g'")
        for what, said in (("neurons", "--what: expected one of head"), ("head", "corrupt prompt: expected other tokens")):
            with self.assertRaisesRegex(AttnscopeError, said):
                attnscope.patch(TINY, CLEAN, CORRUPT if what == "neurons" else CLEAN, answer="ig", against="ood", what=what)

    def test_other_objects_are_refused(self):
        with self.assertRaisesRegex(AttnscopeError, "a model of transformers, or the path of one.*not int"):
            attnscope.composition(3)


@unittest.skipUnless(program.is_here() and torch and transformers, "the program, PyTorch or transformers is not here")
class OfModels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(TINY / "tokenizer.json"))
        torch.manual_seed(0)
        config = transformers.GPT2Config(n_embd=32, n_layer=3, n_head=4, vocab_size=1024, n_positions=32, bos_token_id=None, eos_token_id=None)
        cls.model = transformers.GPT2LMHeadModel(config).eval()
        with torch.no_grad():
            for p in cls.model.parameters():
                p.add_(0.2 * torch.randn(p.shape))

    def scores(self, ids, layer, head):
        with torch.no_grad(), attnscope.capture(self.model) as c:
            self.model(ids)
        a = c[layer]
        scores = a.queries[0, head] @ a.keys[0, head].T / np.sqrt(8)
        return scores, a.weights[0, head]

    def test_sources_are_those_of_the_captured_text(self):
        ids = torch.tensor([self.tokenizer(CLEAN)["input_ids"]])
        with torch.no_grad(), attnscope.capture(self.model, self.tokenizer) as c:
            self.model(ids)
        why = c.why(layer=2, head=1, query=13, key=6)
        scores, weights = self.scores(ids, 2, 1)
        self.assertAlmostEqual(why.score, scores[13, 6], 4)
        self.assertAlmostEqual(why.weight, weights[13, 6], 5)
        self.assertAlmostEqual(why.pairs.direct.sum(), why.score, 9)
        self.assertEqual((why.query_token, why.key_token), (" f", "ig"))
        logit = c.sources(token="ig")
        with torch.no_grad():
            self.assertAlmostEqual(logit.value, self.model(ids).logits[0, -1, self.tokenizer("ig")["input_ids"][0]].item(), 4)
        self.assertAlmostEqual(logit.parts.direct.sum(), logit.value, 9)
        self.assertEqual(logit.by_token.shape, (12, 14))
        self.assertAlmostEqual(c.sources(layer=2, head=1, query=13).parts.direct.sum(), c.sources(layer=2, head=1, query=13).value, 9)
        total = dict(zip(why.sources.name, why.sources.total))["head 0.2"]
        with attnscope.ablate(self.model, [(0, 2)]):
            without, _ = self.scores(ids, 2, 1)
        above = scores[13, 6] - scores[13, :14].mean() - (without[13, 6] - without[13, :14].mean())
        self.assertAlmostEqual(total, above, 4)
        self.assertIn("head", repr(why))

    def test_patches_are_those_of_a_hook(self):
        clean, corrupt = (torch.tensor([self.tokenizer(text)["input_ids"]]) for text in (CLEAN, CORRUPT))
        answer, against = (self.tokenizer.convert_tokens_to_ids(token) for token in ("ig", "ood"))

        def difference(ids, hook=None):
            output = self.model.transformer.h[1].attn.c_proj
            handle = output.register_forward_pre_hook(hook) if hook else None
            with torch.no_grad():
                logits = self.model(ids).logits[0, -1].double()
            if handle:
                handle.remove()
            return float(logits[answer] - logits[against])

        kept = {}
        right, wrong = difference(clean, lambda _, args: kept.update(z=args[0].clone())), difference(corrupt)
        found = attnscope.patch(self.model, CLEAN, CORRUPT, answer="ig", against="ood", tokenizer=self.tokenizer)

        def hook(_, args):
            z = args[0].clone()
            z[..., 16:24] = kept["z"][..., 16:24]
            return (z,)

        self.assertAlmostEqual(found.clean, right, 4)
        self.assertAlmostEqual(found.recovered[1, 2] * (right - wrong), difference(corrupt, hook) - wrong, 4)

    def test_other_tokens_than_the_tokenizers_are_refused(self):
        class Other:
            def __call__(self, text):
                return {"input_ids": [1, 2]}

            save_pretrained = self.tokenizer.save_pretrained

        with self.assertRaisesRegex(AttnscopeError, "as other tokens than this tokenizer"):
            attnscope.patch(self.model, CLEAN, CORRUPT, answer="ig", against="ood", tokenizer=Other())

    def test_a_saved_capture_has_no_model(self):
        ids = torch.tensor([self.tokenizer(CLEAN)["input_ids"]])
        with torch.no_grad(), attnscope.capture(self.model, self.tokenizer) as c, tempfile.TemporaryDirectory() as folder:
            self.model(ids)
            c.save(f"{folder}/c.safetensors")
            loaded = attnscope.load(f"{folder}/c.safetensors")
        with self.assertRaisesRegex(AttnscopeError, "has no model to ask"):
            loaded.why(layer=0, head=0, query=1, key=0)


if __name__ == "__main__":
    unittest.main()
