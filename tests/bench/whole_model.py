"""A GPT-2 of 124 million random numbers in the formats of every program of whole.py: whole_model.py FOLDER

Writes a Hugging Face folder; f32.gguf, f16.gguf and q8_0.gguf if gguf is installed; model.onnx, with a cache, if onnx is;
ctranslate2 if CTranslate2 is.
"""
import importlib.util
import json
import pathlib
import sys

import numpy as np

LAYERS, WIDTH, HEADS, HIDDEN, VOCABULARY, POSITIONS = 12, 768, 12, 3072, 50257, 1024
PRODUCTS = (("attn_qkv", 3 * WIDTH, WIDTH, "attn.c_attn"), ("attn_output", WIDTH, WIDTH, "attn.c_proj"),
            ("ffn_up", HIDDEN, WIDTH, "mlp.c_fc"), ("ffn_down", WIDTH, HIDDEN, "mlp.c_proj"))
NORMS = (("attn_norm", "ln_1"), ("ffn_norm", "ln_2"))


def tokens_of_bytes():
    """Returns a vocabulary of single bytes plus fillers, because the benchmark starts from token IDs."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = [b for b in range(256) if b not in kept]
    table = {b: chr(b) for b in kept} | {b: chr(256 + k) for k, b in enumerate(moved)}
    names = [table[b] for b in range(256)] + ["ab"]
    return names + [f"<{k}>" for k in range(len(names), VOCABULARY)]


def random_weights():
    rng = np.random.default_rng(1)

    def draw(*shape):
        return rng.standard_normal(shape, np.float32) * np.float32(0.03)
    weights = {"token_embd.weight": draw(VOCABULARY, WIDTH), "position_embd.weight": draw(POSITIONS, WIDTH),
               "output_norm.weight": 1 + draw(WIDTH), "output_norm.bias": draw(WIDTH)}
    for layer in range(LAYERS):
        for name, n_out, n_in, _ in PRODUCTS:
            weights[f"blk.{layer}.{name}.weight"], weights[f"blk.{layer}.{name}.bias"] = draw(n_out, n_in), draw(n_out)
        for name, _ in NORMS:
            weights[f"blk.{layer}.{name}.weight"], weights[f"blk.{layer}.{name}.bias"] = 1 + draw(WIDTH), draw(WIDTH)
    return weights


def write_folder(folder, weights):
    """Writes a Hugging Face folder. The safetensors are written by hand, so that nothing needs to be installed."""
    named = {"wte.weight": weights["token_embd.weight"], "wpe.weight": weights["position_embd.weight"],
             "ln_f.weight": weights["output_norm.weight"], "ln_f.bias": weights["output_norm.bias"]}
    for layer in range(LAYERS):
        for name, _, _, theirs in PRODUCTS:
            named[f"h.{layer}.{theirs}.weight"] = np.ascontiguousarray(weights[f"blk.{layer}.{name}.weight"].T)
            named[f"h.{layer}.{theirs}.bias"] = weights[f"blk.{layer}.{name}.bias"]
        for name, theirs in NORMS:
            for part in ("weight", "bias"):
                named[f"h.{layer}.{theirs}.{part}"] = weights[f"blk.{layer}.{name}.{part}"]
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, numbers in named.items():
        header[name] = {"dtype": "F32", "shape": list(numbers.shape), "data_offsets": [at, at + numbers.nbytes]}
        at += numbers.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for numbers in named.values():
            file.write(numbers.tobytes())
    (folder / "config.json").write_text(json.dumps({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_layer": LAYERS, "n_embd": WIDTH, "n_head": HEADS,
                                                    "n_positions": POSITIONS, "n_ctx": POSITIONS, "vocab_size": VOCABULARY, "activation_function": "gelu_new",
                                                    "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True, "torch_dtype": "float32"}))
    vocabulary = {name: k for k, name in enumerate(tokens_of_bytes())}
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "added_tokens": [], "normalizer": None, "post_processor": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": vocabulary, "merges": ["a b"]}}))


def write_gguf(folder, weights):
    import gguf
    for name, kind, file_type in (("f32", None, 0), ("f16", gguf.GGMLQuantizationType.F16, 1), ("q8_0", gguf.GGMLQuantizationType.Q8_0, 7)):
        writer = gguf.GGUFWriter(str(folder / f"{name}.gguf"), "gpt2")
        writer.add_context_length(POSITIONS), writer.add_embedding_length(WIDTH), writer.add_feed_forward_length(HIDDEN)
        writer.add_block_count(LAYERS), writer.add_head_count(HEADS), writer.add_layer_norm_eps(1e-5), writer.add_file_type(file_type)
        writer.add_tokenizer_model("gpt2"), writer.add_tokenizer_pre("gpt-2"), writer.add_token_list(tokens_of_bytes())
        writer.add_token_types([1] * VOCABULARY), writer.add_token_merges(["a b"])
        for tensor, numbers in weights.items():
            if kind is None or numbers.ndim == 1 or tensor.startswith("position"):
                writer.add_tensor(tensor, numbers)
            else:
                writer.add_tensor(tensor, gguf.quantize(numbers, kind), raw_dtype=kind)
        writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()


def write_onnx(folder, weights):
    """Writes the graph with ONNX Runtime's own attention, its cache, and the logits of the last token alone."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    nodes, constants = [], []

    def constant(name, numbers):
        constants.append(numpy_helper.from_array(np.ascontiguousarray(numbers), name))
        return name

    def node(kind, inputs, outputs, domain="", **options):
        nodes.append(helper.make_node(kind, inputs, outputs, domain=domain, **options))
        return outputs[0]

    def product(x, name, y):
        return node("Gemm", [x, constant(name + ".w", weights[name + ".weight"].T), constant(name + ".b", weights[name + ".bias"])], [y])

    def norm(x, name, y):
        return node("LayerNormalization", [x, constant(name + ".g", weights[name + ".weight"]), constant(name + ".s", weights[name + ".bias"])], [y],
                    axis=-1, epsilon=1e-5)

    constant("embeddings", weights["token_embd.weight"]), constant("of_positions", weights["position_embd.weight"])
    constant("three", np.array([1, -1, WIDTH])), constant("two", np.array([-1, WIDTH])), constant("last", np.array([-1]))
    x = node("Add", [node("Gather", ["embeddings", "ids"], ["of_ids"]), node("Gather", ["of_positions", "positions"], ["at"])], ["x"])
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["n"]) for name in ("ids", "positions")]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, VOCABULARY])]
    for layer in range(LAYERS):
        b = f"blk.{layer}."
        all_heads = product(norm(x, b + "attn_norm", b + "n1"), b + "attn_qkv", b + "qkv")
        node("Split", [all_heads], [b + c for c in "qkv"], axis=1, num_outputs=3)
        for c in "qkv":
            node("Reshape", [b + c, "three"], [b + c + "3"])
        node("MultiHeadAttention", [b + "q3", b + "k3", b + "v3", "", "", "", b + "pk", b + "pv"], [b + "a", b + "nk", b + "nv"], "com.microsoft",
             num_heads=HEADS, unidirectional=1)
        x = node("Add", [x, product(node("Reshape", [b + "a", "two"], [b + "a2"]), b + "attn_output", b + "o")], [b + "x1"])
        hidden = node("FastGelu", [product(norm(x, b + "ffn_norm", b + "n2"), b + "ffn_up", b + "u")], [b + "g"], "com.microsoft")
        x = node("Add", [x, product(hidden, b + "ffn_down", b + "d")], [b + "x2"])
        inputs += [helper.make_tensor_value_info(b + c, TensorProto.FLOAT, [1, HEADS, "past", WIDTH // HEADS]) for c in ("pk", "pv")]
        outputs += [helper.make_tensor_value_info(b + c, TensorProto.FLOAT, [1, HEADS, "all", WIDTH // HEADS]) for c in ("nk", "nv")]
    x = norm(node("Gather", [x, "last"], ["x_last"], axis=0), "output_norm", "normed")
    node("MatMul", [x, constant("unembedding", weights["token_embd.weight"].T)], ["logits"])
    graph = helper.make_graph(nodes, "gpt2", inputs, outputs, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)], ir_version=9), folder / "model.onnx")


def write_ctranslate2(folder, weights):
    """Writes the model with CTranslate2's converter; its vocabulary is the token IDs."""
    import ctranslate2
    import transformers
    from ctranslate2.converters import transformers as converters
    model = transformers.AutoModelForCausalLM.from_pretrained(str(folder))
    loader = converters.GPT2Loader()
    specification = loader.get_model_spec(model)
    specification.register_vocabulary([str(k) for k in range(VOCABULARY)])
    specification.config.bos_token, specification.config.eos_token, specification.config.unk_token = "50254", "50255", "50256"
    (folder / "ctranslate2").mkdir()
    specification.validate()
    specification.save(str(folder / "ctranslate2"))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    weights = random_weights()
    write_folder(folder, weights)
    for package, write in (("gguf", write_gguf), ("onnx", write_onnx), ("ctranslate2", write_ctranslate2)):
        if importlib.util.find_spec(package) is None:
            print(f"{package} is not installed", file=sys.stderr)
            continue
        try:
            write(folder, weights)
        except Exception as error:
            print(f"{package}: {type(error).__name__}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
