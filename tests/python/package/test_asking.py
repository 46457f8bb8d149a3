"""What the window knows, asked for in Python: predictions, roles, lens, effects; heads ablated and stages edited in a with block."""

import contextlib
import io
import pickle
import unittest
from unittest import mock

from support import needs_torch, np, random, torch

import attnscope
from attnscope import AttnscopeError, program

try:
    import transformers
except ImportError:
    transformers = None

TEXT = "1 2 3 4 5 1 2 3"


class Letters:
    """Letters as tokens; as much of a tokenizer as is needed."""

    all_special_ids = ()

    def __len__(self):
        return 50

    def __call__(self, text, **_):
        return {"input_ids": [ord(c) - ord("a") for c in text]}

    def convert_ids_to_tokens(self, ids):
        return [chr(ord("a") + int(i)) for i in ids]

    def decode(self, ids, **_):
        return "".join(self.convert_ids_to_tokens(ids))


class Chatty(Letters):
    """Writes a chat as its contents between letters, and begins every text with "a"."""

    bos_token, bos_token_id, chat_template = "a", 0, "yes"

    def __call__(self, text, add_special_tokens=True, **_):
        return super().__call__(("a" if add_special_tokens else "") + text)

    def apply_chat_template(self, messages, *, tokenize, add_generation_prompt, continue_final_message):
        assert not tokenize and add_generation_prompt != continue_final_message
        if messages[0]["role"] not in ("user", "system"):
            raise ValueError("a conversation begins with the user")
        return "a" + "".join(f"b{m['content']}" for m in messages) + "c" * add_generation_prompt


def llama(**options):
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 50}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**(sizes | options))).eval()


class Reference(unittest.TestCase):
    def test_the_public_reference_is_the_attention_of_tensors(self):
        q, k, v = random(3, 2, 6, 4)
        self.assertIs(attnscope.reference, attnscope.attention.of_stages)
        np.testing.assert_allclose(attnscope.reference(q, k, v, causal=True).weights.sum(-1), 1)


@needs_torch
@unittest.skipUnless(transformers, "transformers is not installed")
class Asking(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = llama()
        cls.ids = torch.tensor([[int(x) for x in TEXT.split()]])
        with torch.no_grad():
            cls.logits = cls.model(cls.ids).logits[0, -1]
        with mock.patch.object(program, "has_display", lambda: False), contextlib.redirect_stderr(io.StringIO()):
            cls.at = attnscope.attach(cls.model)

    @classmethod
    def tearDownClass(cls):
        cls.at.close()

    def by_hand(self, layer, head):
        """Returns the logits with a head's context vectors set to 0 by a hook."""

        def silence(module, inputs):
            x = inputs[0].clone()
            x[..., 8 * head : 8 * head + 8] = 0
            return (x,)

        handle = self.model.model.layers[layer].self_attn.o_proj.register_forward_pre_hook(silence)
        try:
            with torch.no_grad():
                return self.model(self.ids).logits[0, -1]
        finally:
            handle.remove()

    def test_predictions_are_the_models(self):
        p = self.at.predict(TEXT, top=3)
        most = self.logits.topk(3)
        self.assertEqual(p.token.tolist(), [f" {i}" for i in most.indices.tolist()])
        np.testing.assert_array_equal(p.logit, most.values)
        np.testing.assert_allclose(p.probability, self.logits.double().softmax(-1)[most.indices])
        off = self.at.predict(TEXT, off=[(1, 2)], top=1)
        self.assertEqual(off.logit[0], self.by_hand(1, 2).max())

    def test_roles_are_means_of_the_captured_weights(self):
        heads = self.at.heads(TEXT)
        with torch.no_grad(), attnscope.capture(self.model) as c:
            self.model(self.ids)
        self.assertEqual(heads.shape, (3, 4))
        for layer, a in enumerate(c):
            w = a.weights[0]
            np.testing.assert_allclose(heads.previous_token[layer], np.diagonal(w, -1, 1, 2).mean(-1), atol=1e-6)
            np.testing.assert_allclose(heads.induction[layer], (w[:, 5, 1] + w[:, 6, 2] + w[:, 7, 3]) / 3, atol=1e-6)

    def test_the_lens_ends_with_the_prediction(self):
        lens = self.at.lens(TEXT)
        self.assertEqual((len(lens), lens.rank[-1]), (3, 0))
        self.assertEqual(lens.token[-1], self.at.predict(TEXT).token[0])

    def test_effects_are_those_of_hooks_by_hand(self):
        effects = self.at.effects(TEXT, answer="7", against=9)
        for layer, head in ((0, 0), (1, 2), (2, 3)):
            expected = (self.by_hand(layer, head) - self.logits)[[7, 9]]
            self.assertAlmostEqual(effects[layer, head], float(expected[0] - expected[1]), places=6)
        self.assertEqual(self.at.effects(TEXT).shape, (3, 4))

    def test_heads_are_ablated_in_a_block(self):
        with torch.no_grad():
            with attnscope.ablate(self.model, [(1, 2)]):
                self.assertTrue(torch.equal(self.model(self.ids).logits[0, -1], self.by_hand(1, 2)))
                self.assertEqual(len(self.model._forward_hooks), 0)
            self.assertTrue(torch.equal(self.model(self.ids).logits[0, -1], self.logits))

    def test_stages_are_edited_in_a_block(self):
        for implementation in ("sdpa", "eager"):
            model = llama(attn_implementation=implementation)
            batch = torch.cat([self.ids, self.ids.flip(1)])
            with torch.no_grad():
                plain, off = model(batch).logits, self.by_hand(1, 2)
                for stage in ("queries", "keys", "values", "weights", "contexts"):
                    with attnscope.edit(model, f"1.2.{stage}", lambda x: x):
                        torch.testing.assert_close(model(batch).logits, plain)
                for stage in ("weights", "contexts"):
                    with attnscope.edit(model, f"1.2.{stage}", torch.zeros_like):
                        torch.testing.assert_close(model(batch).logits[0, -1], off)
                seen = []
                with attnscope.edit(model, "1.2.weights", lambda w: seen.append(w) or w):
                    model(batch)
                with attnscope.capture(model) as c:
                    model(batch)
            np.testing.assert_allclose(seen[0], c[1].weights[:, 2], atol=1e-6)

    def test_wrong_input_is_one_sentence(self):
        for call, words in (
            (lambda: self.at.predict(TEXT, off=[(7, 0)]), "There is no layer 7; there are 3"),
            (lambda: self.at.predict(TEXT, off=[(0, 4)]), "no head 4 in layer 0"),
            (lambda: self.at.predict("99"), "beyond the vocabulary"),
            (lambda: self.at.effects(TEXT, answer=50), "expected one token"),
            (lambda: attnscope.ablate(self.model, [(3, 0)]).__enter__(), "There is no layer 3"),
            (lambda: attnscope.edit(self.model, "1.weights", id), "LAYER.HEAD.STAGE"),
            (lambda: attnscope.edit(self.model, "1.1.score", id).__enter__(), "There is no stage 'score'"),
        ):
            with self.subTest(words), self.assertRaises(AttnscopeError) as raised:
                call()
            self.assertIn(words, str(raised.exception))

    def test_a_capture_with_a_tokenizer_has_words(self):
        ids = torch.tensor(Letters()("abcab")["input_ids"])
        with torch.no_grad():
            with attnscope.capture(self.model, Letters()) as c:
                self.model(ids[None])
            self.assertEqual([a.tokens for a in c], [list("abcab")] * 3)
            with attnscope.capture(self.model, Letters()) as c:
                self.model(torch.stack([ids, ids.flip(0)]))
            self.assertEqual(c[0].tokens, [list("abcab"), list("bacba")])
            with attnscope.capture(self.model, Letters()) as c:
                cache = self.model(ids[None, :4], use_cache=True).past_key_values
                self.model(ids[None, 4:], past_key_values=cache)
            self.assertEqual((c[3].tokens, c[3].key_tokens), (["b"], list("abcab")))


    def test_a_chat_is_a_text_by_the_tokenizers_template(self):
        from attnscope.serving import attach

        with attach(self.model, Chatty()) as at:
            asked = [{"role": "user", "content": "de"}]
            np.testing.assert_array_equal(at.predict(chat=asked), at.predict("bdec"))  # "a" is there once
            answered = [*asked, {"role": "assistant", "content": "f"}]
            np.testing.assert_array_equal(at.lens(chat=answered), at.lens("bdebf"))
            self.assertEqual((at.heads(chat=asked).shape, at.effects(chat=asked, answer="d").shape), ((3, 4), (3, 4)))
            for call, words in (
                (lambda: at.predict(chat=answered[1:]), "refuses these messages: a conversation begins with the user"),
                (lambda: at.predict("de", chat=asked), "a text or chat="),
                (lambda: self.at.predict(chat=asked), "has no chat template"),
            ):
                with self.subTest(words), self.assertRaises(AttnscopeError) as raised:
                    call()
                self.assertIn(words, str(raised.exception))

    def test_a_capture_is_asked_about_its_text(self):
        with torch.no_grad(), attnscope.capture(self.model) as c:
            self.model(torch.cat([self.ids.flip(1), self.ids]))
        np.testing.assert_array_equal(c.predict(sequence=1, top=3), self.at.predict(TEXT, top=3))
        np.testing.assert_array_equal(c.predict(TEXT, off=[(1, 2)]), self.at.predict(TEXT, off=[(1, 2)]))
        np.testing.assert_array_equal(c.heads(sequence=1), self.at.heads(TEXT))
        np.testing.assert_array_equal(c.lens(sequence=1), self.at.lens(TEXT))
        np.testing.assert_array_equal(c.effects(sequence=1, answer=7), self.at.effects(TEXT, answer=7))
        with torch.no_grad(), attnscope.ablate(c, [(1, 2)]):
            self.assertTrue(torch.equal(self.model(self.ids).logits[0, -1], self.by_hand(1, 2)))
        with torch.no_grad(), attnscope.capture(self.model) as parts:  # a text read in two parts, with a cache
            cache = self.model(self.ids[:, :5], use_cache=True).past_key_values
            self.model(self.ids[:, 5:], past_key_values=cache)
        np.testing.assert_array_equal(parts.predict(), self.at.predict(TEXT))
        with torch.no_grad(), attnscope.capture() as nameless:
            self.model(self.ids)
        for recording in (pickle.loads(pickle.dumps(c)), nameless):
            for ask in (recording.predict, recording.heads, recording.lens, recording.effects, attnscope.ablate(recording, []).__enter__):
                with self.assertRaises(AttnscopeError) as raised:
                    ask()
                self.assertIn("attnscope.attach(model, tokenizer)", str(raised.exception))


if __name__ == "__main__":
    unittest.main()
