"""Checkpoints of transformers' families: small models with random parameters are saved, and the program opens them.

Each layer's weights must equal eager attention, and the model's logits its own, to 1e-4; else a sentence must say why not.
With a scale, an adapter or a gate beside its weights each is refused by the name of that tensor.
`python3 test_checkpoints.py [FAMILY …]` prints the table, --markdown that of docs/models-and-files.md; wrong results are errors.
ATTNSCOPE names the program."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

from support import np, torch

import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForMaskedLM

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
warnings.simplefilter("ignore")

TEXT, LARGEST = "Every family is right or refused: 17 of 17.", 1e-4
T, MASKED = len(TEXT), 10  # the token that bidirectional models predict
N = 264  # bytes, and some tokens that only the model has
IDS = dict(pad_token_id=257, bos_token_id=258, eos_token_id=259)
SIZES = dict(vocab_size=N, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=128) | IDS
GROUPS = SIZES | dict(num_key_value_heads=2)
GPT = dict(vocab_size=N, n_embd=32, n_layer=2, n_head=4, n_positions=128) | IDS
EXPERTS = GROUPS | dict(num_local_experts=4, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24, shared_expert_intermediate_size=24)
BOTH = dict(vocab_size=N, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48,
            decoder_ffn_dim=48, max_position_embeddings=128, decoder_start_token_id=258) | IDS  # fmt: skip
T5 = dict(vocab_size=N, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=258) | IDS


def rope(kind="default", theta=10000.0, **more):
    return dict(rope_parameters=dict(rope_type=kind, rope_theta=theta, **more))


LLAMA3 = rope("llama3", 5e5, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)

# Name: (model_type, config).
CASES = {
    "gpt2": ("gpt2", GPT),
    "gpt2, scaled by layer": ("gpt2", GPT | dict(scale_attn_by_inverse_layer_idx=True)),
    "gpt2, no scale": ("gpt2", GPT | dict(scale_attn_weights=False)),
    "openai-gpt": ("openai-gpt", GPT),
    "imagegpt": ("imagegpt", GPT),
    "gpt_bigcode": ("gpt_bigcode", GPT | dict(multi_query=True)),
    "gpt_bigcode, by head": ("gpt_bigcode", GPT | dict(multi_query=False)),
    "gpt_neo": ("gpt_neo", dict(vocab_size=N, hidden_size=32, num_layers=2, num_heads=4, max_position_embeddings=128, window_size=6,
                                attention_types=[[["global", "local"], 1]]) | IDS),
    "gptj": ("gptj", GPT | dict(rotary_dim=4)),
    "codegen": ("codegen", GPT | dict(n_ctx=128, rotary_dim=4)),
    "gpt_neox": ("gpt_neox", SIZES),
    "gpt_neox, serial": ("gpt_neox", SIZES | dict(use_parallel_residual=False)),
    "gpt_neox_japanese": ("gpt_neox_japanese", SIZES),
    "opt": ("opt", dict(vocab_size=N, hidden_size=32, ffn_dim=48, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=128,
                        word_embed_proj_dim=32) | IDS),
    "opt-350m": ("opt", dict(vocab_size=N, hidden_size=32, ffn_dim=48, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=128,
                             word_embed_proj_dim=16, do_layer_norm_before=False) | IDS),
    "bloom": ("bloom", dict(vocab_size=N, hidden_size=32, n_layer=2, n_head=4) | IDS),
    "bloom, 6 heads": ("bloom", dict(vocab_size=N, hidden_size=48, n_layer=1, n_head=6) | IDS),
    "mpt": ("mpt", dict(vocab_size=N, d_model=32, n_layers=2, n_heads=4, max_seq_len=128) | IDS),
    "mpt, 6 heads": ("mpt", dict(vocab_size=N, d_model=48, n_layers=1, n_heads=6, max_seq_len=128) | IDS),
    "falcon-7b": ("falcon", SIZES | dict(alibi=False, multi_query=True, new_decoder_architecture=False)),
    "falcon-40b": ("falcon", SIZES | dict(alibi=False, num_kv_heads=2, new_decoder_architecture=True)),
    "falcon-rw": ("falcon", SIZES | dict(alibi=True, multi_query=False, parallel_attn=False, bias=True, new_decoder_architecture=False)),
    "llama": ("llama", GROUPS),
    "llama, tied": ("llama", GROUPS | dict(tie_word_embeddings=True)),
    "llama, biases": ("llama", GROUPS | dict(attention_bias=True, mlp_bias=True)),
    "llama, Llama 3": ("llama", GROUPS | LLAMA3),
    "llama, linear": ("llama", GROUPS | rope("linear", factor=4.0)),
    "llama, YaRN": ("llama", GROUPS | rope("yarn", factor=4.0, original_max_position_embeddings=32)),
    "llama, YaRN, mscale": ("llama", GROUPS | rope("yarn", factor=40.0, mscale=0.7, mscale_all_dim=0.5, beta_fast=16.0, beta_slow=2.0,
                                                   original_max_position_embeddings=64)),
    "llama, dynamic": ("llama", GROUPS | rope("dynamic", factor=4.0)),
    "llama, dynamic, longer": ("llama", GROUPS | dict(max_position_embeddings=16) | rope("dynamic", factor=4.0)),
    "llama, partial": ("llama", GROUPS | rope(partial_rotary_factor=0.5)),
    "mistral": ("mistral", GROUPS | dict(sliding_window=6)),
    "ministral": ("ministral", GROUPS | dict(sliding_window=6, head_dim=8)),
    "mixtral": ("mixtral", EXPERTS),
    "qwen2": ("qwen2", GROUPS | dict(use_sliding_window=True, sliding_window=6, max_window_layers=1)),
    "qwen3": ("qwen3", GROUPS | dict(head_dim=12)),
    "qwen2_moe": ("qwen2_moe", EXPERTS),
    "qwen3_moe": ("qwen3_moe", EXPERTS | dict(head_dim=12)),
    "qwen3_next": ("qwen3_next", EXPERTS | dict(head_dim=8, num_hidden_layers=4, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8,
                                                linear_value_head_dim=8)),
    "gemma": ("gemma", GROUPS | dict(head_dim=12)),
    "gemma2": ("gemma2", GROUPS | dict(head_dim=12, query_pre_attn_scalar=20, sliding_window=6, attn_logit_softcapping=3.0, final_logit_softcapping=5.0)),
    "gemma3": ("gemma3_text", GROUPS | dict(head_dim=12, query_pre_attn_scalar=20, sliding_window=6, num_hidden_layers=6)),
    "vaultgemma": ("vaultgemma", GROUPS | dict(head_dim=12, query_pre_attn_scalar=20, sliding_window=6)),
    "gemma3n": ("gemma3n_text", GROUPS | dict(head_dim=8, vocab_size_per_layer_input=N, hidden_size_per_layer_input=8, num_hidden_layers=4, num_kv_shared_layers=2,
                                             laurel_rank=4, sliding_window=6, activation_sparsity_pattern=None)),
    "phi": ("phi", SIZES),
    "phi, groups, norms": ("phi", GROUPS | dict(qk_layernorm=True)),
    "phi3": ("phi3", GROUPS | dict(sliding_window=6)),
    "phi3, partial": ("phi3", GROUPS | rope(partial_rotary_factor=0.5)),
    "phi3, LongRoPE": ("phi3", GROUPS | dict(original_max_position_embeddings=64)
                       | rope("longrope", short_factor=[1.0, 1.1, 1.2, 1.3], long_factor=[1.0, 2.0, 3.0, 4.0], original_max_position_embeddings=64)),
    "phi3, LongRoPE, longer": ("phi3", GROUPS | dict(original_max_position_embeddings=16)
                               | rope("longrope", short_factor=[1.0, 1.1, 1.2, 1.3], long_factor=[1.0, 2.0, 3.0, 4.0], original_max_position_embeddings=16)),
    "phimoe": ("phimoe", EXPERTS),
    "olmo": ("olmo", GROUPS | dict(clip_qkv=None)),
    "olmo, clipped": ("olmo", GROUPS | dict(clip_qkv=0.5)),
    "olmo2": ("olmo2", GROUPS),
    "olmo3": ("olmo3", GROUPS | dict(sliding_window=6, num_hidden_layers=4)),
    "olmo3, YaRN": ("olmo3", GROUPS | dict(sliding_window=6, num_hidden_layers=4, rope_parameters=dict(
        sliding_attention=dict(rope_type="default", rope_theta=5e5),
        full_attention=dict(rope_type="yarn", rope_theta=5e5, factor=8.0, original_max_position_embeddings=32)))),
    "olmoe": ("olmoe", EXPERTS),
    "flex_olmo": ("flex_olmo", EXPERTS),
    "stablelm": ("stablelm", GROUPS | dict(use_qkv_bias=True)),
    "stablelm, parallel, norms": ("stablelm", GROUPS | dict(use_parallel_residual=True, qk_layernorm=True)),
    "starcoder2": ("starcoder2", GROUPS | dict(sliding_window=6)),
    "cohere": ("cohere", GROUPS | dict(logit_scale=0.5)),
    "cohere, norms": ("cohere", GROUPS | dict(use_qk_norm=True)),
    "cohere2": ("cohere2", GROUPS | dict(sliding_window=6, num_hidden_layers=4)),
    "granite": ("granite", GROUPS | dict(attention_multiplier=0.3, embedding_multiplier=3.0, residual_multiplier=0.5, logits_scaling=2.0)),
    "granitemoe": ("granitemoe", EXPERTS | dict(attention_multiplier=0.3)),
    "granitemoehybrid": ("granitemoehybrid", EXPERTS | dict(attention_multiplier=0.3, layer_types=["mamba", "attention"], mamba_n_heads=8, mamba_d_head=8,
                                                            mamba_expand=2)),
    "smollm3": ("smollm3", GROUPS | dict(num_hidden_layers=4)),
    "nemotron": ("nemotron", GROUPS | dict(head_dim=8)),
    "glm": ("glm", GROUPS | dict(head_dim=8)),
    "glm4": ("glm4", GROUPS | dict(head_dim=8)),
    "glm4_moe": ("glm4_moe", EXPERTS | dict(head_dim=8, n_routed_experts=4, first_k_dense_replace=1)),
    "exaone4": ("exaone4", GROUPS | dict(sliding_window=6, num_hidden_layers=4)),
    "helium": ("helium", GROUPS | dict(head_dim=8)),
    "arcee": ("arcee", GROUPS),
    "seed_oss": ("seed_oss", GROUPS | dict(head_dim=8)),
    "apertus": ("apertus", GROUPS),
    "ernie4_5": ("ernie4_5", GROUPS | dict(head_dim=8)),
    "ernie4_5_moe": ("ernie4_5_moe", EXPERTS | dict(moe_num_experts=4, moe_k=2)),
    "nanochat": ("nanochat", GROUPS),
    "doge": ("doge", GROUPS),
    "diffllama": ("diffllama", GROUPS),
    "bitnet": ("bitnet", GROUPS),
    "hunyuan_v1_dense": ("hunyuan_v1_dense", GROUPS | dict(head_dim=8)),
    "minimax": ("minimax", EXPERTS | dict(num_hidden_layers=2, layer_types=["linear_attention", "full_attention"])),
    "lfm2": ("lfm2", GROUPS | dict(num_hidden_layers=2, full_attn_idxs=[1], layer_types=["conv", "full_attention"])),
    "jamba": ("jamba", EXPERTS | dict(num_hidden_layers=4, attn_layer_period=2, attn_layer_offset=1, use_mamba_kernels=False)),
    "persimmon": ("persimmon", SIZES),
    "biogpt": ("biogpt", SIZES),
    "xglm": ("xglm", dict(vocab_size=N, d_model=32, ffn_dim=48, num_layers=2, attention_heads=4, max_position_embeddings=128) | IDS | dict(pad_token_id=1)),
    "gpt_oss": ("gpt_oss", EXPERTS | dict(head_dim=8, sliding_window=6) | rope(theta=150000.0)),
    "gpt_oss, YaRN": ("gpt_oss", EXPERTS | dict(head_dim=8, sliding_window=6)
                      | rope("yarn", 150000.0, factor=32.0, beta_fast=32.0, beta_slow=1.0, truncate=False, original_max_position_embeddings=32)),
    "llama4": ("llama4_text", EXPERTS | dict(head_dim=8, intermediate_size_mlp=48, attention_chunk_size=128)),
    "deepseek_v3": ("deepseek_v3", EXPERTS | dict(num_key_value_heads=4, kv_lora_rank=16, q_lora_rank=24, qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=16,
                                                  first_k_dense_replace=1, n_routed_experts=4, n_group=1, topk_group=1)),
    "dots1": ("dots1", EXPERTS | dict(head_dim=8, n_routed_experts=4, first_k_dense_replace=1, n_shared_experts=1)),
    "jetmoe": ("jetmoe", EXPERTS | dict(kv_channels=8)),
    "dbrx": ("dbrx", dict(vocab_size=N, d_model=32, n_heads=4, n_layers=2, max_seq_len=128, attn_config=dict(kv_n_heads=2, clip_qkv=8.0, rope_theta=5e5),
                          ffn_config=dict(ffn_hidden_size=48, moe_num_experts=4, moe_top_k=2)) | IDS),
    "bert": ("bert", SIZES),
    "bert, decoder": ("bert", SIZES | dict(is_decoder=True)),
    "roberta": ("roberta", SIZES | dict(pad_token_id=1)),
    "xlm-roberta": ("xlm-roberta", SIZES | dict(pad_token_id=1)),
    "camembert": ("camembert", SIZES | dict(pad_token_id=1)),
    "distilbert": ("distilbert", dict(vocab_size=N, dim=32, hidden_dim=48, n_layers=2, n_heads=4, max_position_embeddings=128) | IDS),
    "electra": ("electra", SIZES | dict(embedding_size=32)),
    "electra, narrow": ("electra", SIZES | dict(embedding_size=16)),
    "albert": ("albert", SIZES | dict(embedding_size=16)),
    "ernie": ("ernie", SIZES),
    "layoutlm": ("layoutlm", SIZES),
    "modernbert": ("modernbert", SIZES | dict(local_attention=8, num_hidden_layers=3)),
    "mpnet": ("mpnet", SIZES),
    "deberta": ("deberta", SIZES | dict(relative_attention=True, pos_att_type=["c2p", "p2c"])),
    "deberta-v2": ("deberta-v2", SIZES | dict(relative_attention=True, pos_att_type=["c2p", "p2c"])),
    "roformer": ("roformer", SIZES | dict(embedding_size=32)),
    "esm": ("esm", SIZES | dict(position_embedding_type="rotary", mask_token_id=260)),
    "convbert": ("convbert", SIZES | dict(embedding_size=32)),
    "flaubert": ("flaubert", dict(vocab_size=N, emb_dim=32, n_layers=2, n_heads=4, max_position_embeddings=128) | IDS),
    "flaubert, causal": ("flaubert", dict(vocab_size=N, emb_dim=32, n_layers=2, n_heads=4, max_position_embeddings=128, causal=True) | IDS),
    "xlm": ("xlm", dict(vocab_size=N, emb_dim=32, n_layers=2, n_heads=4, max_position_embeddings=128) | IDS),
    "xlnet": ("xlnet", dict(vocab_size=N, d_model=32, n_layer=2, n_head=4, d_inner=48) | IDS),
    "funnel": ("funnel", dict(vocab_size=N, d_model=32, n_head=4, d_head=8, d_inner=48, block_sizes=[1, 1]) | IDS),
    "rembert": ("rembert", SIZES | dict(input_embedding_size=16, output_embedding_size=16)),
    "squeezebert": ("squeezebert", SIZES | dict(embedding_size=32)),
    "mobilebert": ("mobilebert", SIZES | dict(embedding_size=16, intra_bottleneck_size=32)),
    "eurobert": ("eurobert", GROUPS),
    "jina_v3": ("jina_embeddings_v3", SIZES),
    "nomic_bert": ("nomic_bert", SIZES),
    "megatron-bert": ("megatron-bert", SIZES),
    "t5": ("t5", T5),
    "mt5": ("mt5", T5),
    "umt5": ("umt5", T5),
    "bart": ("bart", BOTH),
    "mbart": ("mbart", BOTH),
    "pegasus": ("pegasus", BOTH),
    "marian": ("marian", BOTH),
    "m2m_100": ("m2m_100", BOTH | dict(pad_token_id=1)),
}  # fmt: skip
# Its eager attention adds ALiBi twice, in the mask and to the scores; the fused one, used in training, adds it once.
FUSED = {"falcon-rw"}


def made(model_type, says):
    config = AutoConfig.for_model(model_type, **says)
    torch.manual_seed(0)
    kinds = [AutoModelForCausalLM, AutoModelForMaskedLM, AutoModel]
    if config.is_encoder_decoder or model_type in ("imagegpt",):
        kinds = [AutoModel]
    elif model_type in ("bert", "roberta", "xlm-roberta", "camembert", "electra", "ernie", "layoutlm", "megatron-bert", "rembert", "roformer", "flaubert", "xlm") and not getattr(config, "is_decoder", False):
        kinds = kinds[1:]
    for kind in kinds:
        try:
            model = kind.from_config(config, attn_implementation="eager")
            break
        except (ValueError, KeyError) as error:
            if kind is AutoModel:
                raise error
    with torch.no_grad():
        for p in model.parameters():  # none is 0 or 1
            if p.requires_grad:
                p.add_(torch.randn_like(p) * (0.15 if p.ndim > 1 else 0.3))
    return model.eval().float()


def run(model, ids, of=None):
    """Returns each attention's input, weights, output and encoder states by name; and the logits."""
    found = {}

    def after(name):
        def hook(module, args, kwargs, output):
            tensors = [t for t in output if isinstance(t, torch.Tensor)] if isinstance(output, (tuple, list)) else []
            square = [t for t in tensors if t.ndim == 4 and t.shape[0] == 1 and t.shape[-2] == T and t.shape[-1] in (T, T + 1)]
            if of is not None:
                square = [torch.zeros(1, 1, T, T)] if name in of else []
            if not square or name in found or any(inner.startswith(name + ".") for inner in found) or name == "":
                return
            states = [a for a in (*args, *kwargs.values()) if isinstance(a, torch.Tensor) and a.ndim == 3]
            if states:
                gives = next((t.detach()[0].numpy() for t in tensors if t.ndim == 3), None)
                residual = next((a for a in states[1:] if of is None and "alibi" in kwargs), None)
                weights = None if of is not None else square[-1].detach()[0, ..., :T].numpy()
                source = kwargs.get("key_value_states", kwargs.get("encoder_hidden_states"))
                if any(isinstance(m, torch.nn.LayerNorm) for m in module.children()):  # ALBERT applies it to the output
                    gives = None
                if residual is not None:  # Bloom adds it to the output
                    gives = gives - residual.detach()[0].numpy()
                found[name] = (states[0].detach()[0].numpy(), weights, gives, None if source is None else source.detach()[0].numpy())

        return hook

    handles = [m.register_forward_hook(after(n), with_kwargs=True) for n, m in model.named_modules()]
    with torch.no_grad():
        more = dict(decoder_input_ids=ids) if model.config.is_encoder_decoder else {}
        try:
            out = model(input_ids=ids, output_attentions=of is None, **more)
        except TypeError:
            out = model(input_ids=ids, **more)
    for handle in handles:
        handle.remove()
    logits = getattr(out, "logits", None)
    if logits is None and hasattr(out, "prediction_logits"):
        logits = out.prediction_logits
    return found, None if logits is None else logits[0].detach().numpy()


def program(*arguments):
    done = subprocess.run([os.environ["ATTNSCOPE"], *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr.strip()


def sentence(err, folder):
    line = [l for l in err.replace(str(folder) + "/", "").splitlines() if l.strip()][0:]
    return re.sub(r"^attnscope: ", "", line[-1] if line else "?")


def layer(folder, name, x, weights, gives, source):
    """Returns "right 1e-07", "refused: …" or "WRONG …"."""
    np.savez(folder / "x.npz", hidden_states=x, **({} if source is None else {"encoder_hidden_states": source}))
    parts = name.split(".")
    number = re.search(r"\.(\d+)\.", name)  # for files with other names than the modules
    for chosen in [".".join(parts[:end]) for end in range(len(parts), max(len(parts) - 3, 0), -1)] + [number[1] if number else "0"]:
        status, _, err = program("export", folder / "model.safetensors", "--layer", chosen, "--embeddings", folder / "x.npz", "--out", folder / "ours.npz")
        if status == 0 or "expected a layer from" not in err:
            break
    if status:
        return "refused: " + sentence(err, folder)
    return compared(np.load(folder / "ours.npz"), x, weights, gives)


def compared(ours, x, weights, gives):
    if weights is not None and ours["weights"].shape != weights.shape:
        return f"WRONG: {ours['weights'].shape} instead of {weights.shape}"
    of_weights = 0 if weights is None else np.abs(ours["weights"] - weights).max()
    # Some attention modules end before their output projection, or after adding their input.
    ends = [ours[stage] + more for stage in ("output", "concatenated", "contexts") if stage in ours for more in (0, x if x.shape == ours[stage].shape else 0)]
    of_output = min((np.abs(end - gives).max() for end in ends if gives is not None and end.shape == gives.shape), default=np.inf)
    if of_weights > LARGEST:
        return f"WRONG weights by {of_weights:.2g}"
    if gives is not None and of_output > LARGEST * max(1, np.abs(gives).max()):
        return f"WRONG output by {of_output:.2g}"
    return f"right {of_weights:.0e}"


def whole(folder, found, logits, text):
    status, out, err = program("predict", folder, "--text", text, "--top", 12, "--json")
    if status:
        return "refused: " + sentence(err, folder)
    if logits is None:
        return "WRONG: transformers has no logits"
    rows = {token["id"]: token["logit"] for token in json.loads(out)["next"]}
    last = logits[-1 if text == TEXT else MASKED]
    worst = max(abs(last[token] - logit) for token, logit in rows.items()) / max(1, np.abs(last).max())
    best = int(np.argmax(last[:257]))
    if not (worst <= LARGEST and best in rows):
        return f"WRONG logits by {worst:.2g}"
    for number, (x, weights, gives, _) in enumerate(found.values()):  # each layer on the text
        status, _, err = program("export", folder, "--text", text, "--layer", number, "--out", folder / "ours.npz")
        words = compared(np.load(folder / "ours.npz"), x, weights, gives) if status == 0 else "WRONG: " + err
        if "WRONG" in words:
            return f"layer {number}: {words}"
    return f"right {worst:.0e}"


def ignored(folder, found, of_layers, of_whole):
    """Returns the scales, adapters and gates beside weights that are not refused by their names where the layer or model is right."""
    path = folder / "model.safetensors"
    at = next((at for at, words in of_layers if words.startswith("right")), None)
    tensors = load_file(path)
    weights = [n for n, t in tensors.items() if at and f".{at}." in f".{n}" and n.endswith(".weight") and t.ndim == 2]
    module = weights[0][: weights[0].index(at) + len(at)] + "." if weights else ""
    beside = [name.removesuffix("weight") + end for name in weights for end in ("weight_scale", "lora_A.weight")]
    missed = []
    for more in beside + [module + "g_proj.weight"] * bool(weights):
        save_file(tensors | {more: torch.ones(1)}, path, {"format": "pt"})
        answers = [layer(folder, at, *found[at])]
        if of_whole.startswith("right"):
            answers.append("refused: " + program("predict", folder, "--text", TEXT)[2])
        missed += [f"{more}: {words}" for words in answers if not words.startswith("refused") or more not in words]
    save_file(tensors, path, {"format": "pt"})
    return missed


def letters():
    """Returns GPT-2's letters for bytes."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in shown]
    return {chr(b) if b in shown else chr(256 + others.index(b)): b for b in range(256)}


TOKENIZER = {
    "version": "1.0", "normalizer": None, "post_processor": None,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}, "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": letters(), "merges": []},
    "added_tokens": [{"id": 256, "content": "[MASK]", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}],
}  # fmt: skip


def rows(chosen=()):
    for name, (model_type, says) in CASES.items():
        if chosen and name not in chosen and model_type not in chosen:
            continue
        with tempfile.TemporaryDirectory() as at:
            folder = pathlib.Path(at)
            try:
                model = made(model_type, says)
                ids, text = torch.tensor([list(TEXT.encode())]), TEXT
                guesses = type(model).__name__.endswith("ForMaskedLM") or (model_type in ("xlm", "flaubert") and not says.get("causal"))
                if guesses:
                    ids[0, MASKED] = 256
                    text = TEXT[:MASKED] + "[MASK]" + TEXT[MASKED + 1 :]
                found, logits = run(model, ids)
                if name in FUSED:
                    model.config._attn_implementation = "sdpa"
                    fused = type(model)(model.config).eval()
                    fused.load_state_dict(model.state_dict())
                    found, logits = run(fused, ids, found)
                model.save_pretrained(folder)
            except Exception as error:  # of transformers: the case itself is wrong
                yield name, f"no model: {type(error).__name__}: {error}"[:200], ""
                continue
            (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
            of_layers = [(n, layer(folder, n, *of)) for n, of in found.items()]
            if not found:
                status, _, err = program("export", folder / "model.safetensors", "--out", folder / "ours.npz")
                of_layers = [("0", "refused: " + sentence(err, folder) if status else "WRONG: nothing to compare with")]
            of_whole = whole(folder, found, logits, text)
            if missed := ignored(folder, found, of_layers, of_whole):
                of_layers.append(("0", "WRONG: ignores " + "; ".join(missed)))
            yield name, of_layers, of_whole


REASONS = [  # Pattern of a sentence, and its short form
    (r"expected a model type whose whole models", "not supported"),
    (r"model_type that is known", "type not known; `--assume`"),
    (r"scaled for longer texts|rope_type: expected", "scaling of rotary positions"),
    (r"norms of queries and keys|use_qk_norm|qk_layernorm", "another QK norm"),
    (r"expected at most \d+ tokens|takes at most", "texts above max_position_embeddings"),
    (r"clip", "clipped queries, keys and values"),
    (r"relative position biases", "its relative positions"),
    (r"embedding_size|do_layer_norm_before", "embeddings of another width"),
    (r"--ignore tensors", "tensors of unknown use"),
    (r"known layout|none of the names tells|expected a layer from", "layout of its tensors"),
]


def in_few_words(words):
    if not words.startswith("refused"):
        return words.split()[0]
    return next(("no: " + few for pattern, few in REASONS if re.search(pattern, words)), words)


def markdown(table):
    """Returns a line per model type, for all its cases."""
    lines = {}
    for name, of_layers, of_whole in table:
        of = lines.setdefault(CASES[name][0], ([], []))
        variant = name.partition(", ")[2] or name.partition("-")[2] * (name not in CASES.keys() & {c[0] for c in CASES.values()})
        for cells, words in ((of[0], [w for _, w in of_layers]), (of[1], [of_whole])):
            for few in dict.fromkeys(map(in_few_words, words)):
                cells.append((few, variant))
    for model_type, columns in sorted(lines.items()):
        shown = []
        for cells in columns:
            usual = cells[0][0]
            others = [f"{few} ({variant})" for few, variant in cells if few != usual and variant]
            mixed = [few for few, variant in cells if few != usual and not variant]
            shown.append("; ".join(dict.fromkeys([usual, *mixed, *others])))
        print(f"| {model_type} | {shown[0]} | {shown[1]} |")


def main():
    if sys.argv[1:] == ["--markdown"]:
        return markdown(list(rows()))
    n_wrong, counts = 0, {"layer": {}, "whole model": {}}
    for name, of_layers, of_whole in rows(sys.argv[1:]):
        if isinstance(of_layers, str):
            n_wrong += 1
            print(f"{name:28}| {of_layers}", flush=True)
            continue
        worst = next((w for _, w in of_layers if "WRONG" in w), next((w for _, w in of_layers if "refused" in w), "right"))
        for what, words in (("layer", worst), ("whole model", of_whole)):
            verdict = re.match(r"\w+", words)[0]
            counts[what][verdict] = counts[what].get(verdict, 0) + 1
        shown = {}
        for at, words in of_layers:
            shown.setdefault(re.sub(r"\d+e-\d+|[\d.]+$|layers\.\d+", "#", words) if "WRONG" not in words else words, []).append((at, words))
        texts = [f"{entries[0][1]}" + (f" ({len(entries)} of {len(of_layers)}: {entries[0][0]})" if len(shown) > 1 else "") for entries in shown.values()]
        n_wrong += any("WRONG" in w for _, w in of_layers) + ("WRONG" in of_whole) + (not of_layers)
        print(f"{name:28}| {'; '.join(texts) or 'no attention found'} | {of_whole}", flush=True)
    print(*(f"{what}: " + ", ".join(f"{n} {verdict}" for verdict, n in sorted(of.items())) for what, of in counts.items()), f"{n_wrong} wrong", sep="; ")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
