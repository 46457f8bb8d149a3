"""capture() of small random models of transformers by family: weights against eager attention, and which parts are editable."""

import inspect
import os
import unittest
import warnings
from unittest import mock

from support import exported, needs_torch, np, torch

import attnscope

try:
    import transformers
    from transformers import CONFIG_MAPPING, AutoModel, AutoModelForCausalLM
except ImportError:
    transformers = None

SIZES = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 128,
    "max_position_embeddings": 64, "head_dim": 16, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64, "d_model": 64, "n_heads": 4, "n_layers": 2,
    "num_layers": 2, "ffn_hidden_size": 96, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "rotary_dim": 8, "d_kv": 16, "d_ff": 96, "num_heads": 4,
    "embedding_size": 64, "decoder_layers": 2, "encoder_layers": 2, "decoder_attention_heads": 4, "encoder_attention_heads": 4, "decoder_ffn_dim": 96,
    "encoder_ffn_dim": 96, "ffn_dim": 96, "word_embed_proj_dim": 64, "num_experts": 4, "num_local_experts": 4, "moe_intermediate_size": 32,
    "num_experts_per_tok": 2, "attention_types": [[["global", "local"], 1]], "kv_lora_rank": 16, "q_lora_rank": 24, "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 16, "v_head_dim": 16, "first_k_dense_replace": 1, "n_routed_experts": 4, "n_group": 1, "topk_group": 1, "max_seq_len": 64,
}  # fmt: skip
EDITABLE = """gpt2 gpt_oss llama mistral qwen2 qwen3 gemma gemma2 gemma3_text phi phi3 olmo gpt_neox gptj gpt_neo falcon bloom opt mpt stablelm starcoder2 granite cohere
    cohere2 smollm3 glm glm4 nemotron mixtral qwen2_moe qwen3_moe codegen gpt_bigcode helium exaone4 ernie4_5 minimax lfm2 bert roberta distilbert electra
    albert mpnet modernbert xlm-roberta t5 bart mt5 pegasus marian biogpt xglm granitemoe phimoe bitnet seed_oss arcee apertus camembert rembert""".split()
GIVEN = "olmo2 deepseek_v3 deberta roformer persimmon olmoe".split()
FEW = ["gpt2", "llama", "qwen3", "gemma2", "bloom", "mpt", "bert", "t5", "gpt_oss", "olmo2"]


def small(family):
    config_of = CONFIG_MAPPING[family]
    known = set(inspect.signature(config_of.__init__).parameters) | set(getattr(config_of, "__annotations__", {}))
    always = ("hidden_size", "num_attention_heads", "num_hidden_layers", "vocab_size")
    sizes = SIZES | ({"num_key_value_heads": 4} if family == "deepseek_v3" else {})
    config = config_of(**{k: v for k, v in sizes.items() if k in known or k in always})
    torch.manual_seed(0)
    try:
        model = AutoModelForCausalLM.from_config(config)
    except (ValueError, KeyError):
        model = AutoModel.from_config(config)
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(0, 0.08) if p.ndim > 1 else p.add_(torch.randn_like(p) * 0.02)
    return model.eval()


@needs_torch
@unittest.skipUnless(transformers, "transformers is not installed")
class Families(unittest.TestCase):
    def reference(self, model, family, inputs):
        """Returns the weights of eager attention, from a copy that uses it."""
        config = model.config
        config._attn_implementation = "eager"
        eager = type(model)(config).eval()
        eager.load_state_dict(model.state_dict())
        with torch.no_grad():
            out = eager(**inputs, output_attentions=True)
        names = ("encoder_attentions", "decoder_attentions", "cross_attentions", "attentions")
        return [x.double().numpy() for name in names for x in (getattr(out, name, None) or []) if x is not None]

    def check(self, family, is_editable):
        model = small(family)
        inputs = {"input_ids": torch.randint(3, 100, (1, 12))}
        if "decoder_input_ids" in inspect.signature(model.forward).parameters:
            inputs["decoder_input_ids"] = torch.randint(3, 100, (1, 9))
        with torch.no_grad():
            expected = model(**inputs)[0]
            with attnscope.capture(model) as c:
                seen = model(**inputs)[0]
        self.assertTrue(torch.equal(expected, seen), "the capture changed the model's numbers")
        self.assertGreater(len(c), 0)
        for a in c:
            self.assertEqual(a.given, {})
            self.assertEqual(a.editable is not None, is_editable, a.not_editable)
            self.assertTrue(is_editable or a.not_editable)
        eager = self.reference(model, family, inputs)
        for a in c:
            worst = min((np.abs(a.weights - x).max() for x in eager if x.shape == a.weights.shape), default=np.inf)
            self.assertLess(worst, 1e-6)
        stages = exported(c[0])
        np.testing.assert_allclose(stages["contexts"], c[0].observed["contexts"][0], atol=2e-5)

    def test_editable_families(self):
        for family in EDITABLE if "ATTNSCOPE_ALL_FAMILIES" in os.environ else [f for f in EDITABLE if f in FEW]:
            with self.subTest(family):
                self.check(family, True)

    def test_families_with_given_stages_and_a_sentence_why(self):
        for family in GIVEN if "ATTNSCOPE_ALL_FAMILIES" in os.environ else [f for f in GIVEN if f in FEW]:
            with self.subTest(family):
                self.check(family, False)

    def test_a_window_padding_and_rotary_positions_by_their_rules(self):
        config = transformers.MistralConfig(**{k: SIZES[k] for k in ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size", "vocab_size")}, sliding_window=5)  # fmt: skip
        model = AutoModelForCausalLM.from_config(config).eval()
        padding = torch.ones(2, 12, dtype=torch.long)
        padding[1, :4] = 0
        with torch.no_grad(), attnscope.capture(model) as c:
            model(torch.randint(3, 100, (2, 12)), attention_mask=padding)
        self.assertEqual(str(c[0].mask), "causal, sliding window of 5 keys, padding")
        self.assertEqual(c[0].editable.settings, {"positions": {"rotary": {"base": 10000.0, "pairs": "halves"}}})

    def test_dropout_is_reproduced_from_its_mask(self):
        for implementation in ("eager", "sdpa"):
            model = AutoModelForCausalLM.from_config(
                transformers.GPT2Config(n_embd=64, n_layer=2, n_head=4, vocab_size=128),
                attn_implementation=implementation,
            )
            with torch.no_grad(), attnscope.capture(model.train()) as c:
                model(torch.randint(3, 100, (2, 12)))
            self.assertEqual((c[0].dropout, c[0].notes), (0.1, []))
            np.testing.assert_allclose(exported(c[0])["contexts"], c[0].observed["contexts"], atol=1e-6)

    def test_bfloat16(self):
        model = small("llama").bfloat16()
        with torch.no_grad(), attnscope.capture(model) as c:
            model(torch.randint(3, 100, (1, 12)))
        self.assertEqual(c[0].not_editable, "")
        self.assertIn("bfloat16", c[0].notes[0])

    def test_a_model_that_the_program_reads_too_has_the_same_numbers(self):
        import tempfile
        from pathlib import Path

        from support import ROOT

        from attnscope import program, safetensors
        from attnscope.showing import recording

        folder, text = ROOT / "assets/examples/tiny_gpt", "Mr. Norris was very sorry to hear it"
        model = AutoModelForCausalLM.from_config(transformers.AutoConfig.from_pretrained(folder)).eval()
        tensors, _ = safetensors.read(folder / "model.fp16.safetensors")
        model.transformer.load_state_dict({name: torch.tensor(a).float() for name, a in tensors.items()}, strict=False)
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
        found = recording(model, tokenizer, text)
        self.assertEqual("".join(found[0].tokens), text)
        with tempfile.TemporaryDirectory() as out:
            for layer, a in enumerate(found):
                file = Path(out) / f"{layer}.npz"
                program.run(["export", folder, "--text", text, "--layer", str(layer), "--out", file])
                stages = np.load(file)
                np.testing.assert_allclose(a.weights[0], stages["weights"], atol=1e-5)
                np.testing.assert_allclose(a.output[0], stages["output"], atol=1e-4)
                self.assertEqual(a.tokens, stages["tokens"].tolist())

    def test_the_heads_of_a_rank_are_named(self):
        ids = torch.arange(3, 9)[None]
        for rank, heads in ((0, "0 to 3"), (1, "4 to 7"), (3, "4 to 7")):
            model = small("llama")
            model.config.num_attention_heads *= 2  # as if this process had half of them
            with self.subTest(rank), mock.patch.multiple(torch.distributed, is_initialized=lambda: True, get_rank=lambda r=rank: r):
                with torch.no_grad(), attnscope.capture(model) as c:
                    model(ids)
                self.assertIn(f"are heads {heads} of the model's 8", c.problems[0])

    def test_a_text_and_the_tokenizer_of_another_model(self):
        class Tokenizer:
            """Letters as tokens; as much of a tokenizer as show() needs."""

            def __init__(self, shift=0):
                self.shift = shift

            def __call__(self, text, return_tensors):
                return {"input_ids": torch.tensor([[ord(c) + self.shift for c in text]])}

            def convert_ids_to_tokens(self, ids):
                return [chr(i) for i in ids]

            def decode(self, ids, **_):
                return "".join(map(chr, ids))

        from attnscope.showing import recording

        found = recording(small("gpt2"), Tokenizer(), "Your journey")
        self.assertEqual("".join(found[0].tokens), "Your journey")
        with self.assertRaisesRegex(attnscope.AttnscopeError, "tokenizer of another model"):
            recording(small("gpt2"), Tokenizer(1000), "Your journey")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main()
