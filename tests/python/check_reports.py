"""check_reports.py ATTNSCOPE: reported bugs of public attention code, each rebuilt with small random numbers by replacing single steps of
an attention written here. A row gives the place of the report, the bug, and the contents of a right answer of the check. Each is
checked with all stages, in float32 as usual, and with the output alone. ATTNSCOPE_KEEP=FOLDER keeps sessions and dumps.
"""
import concurrent.futures
import os
import pathlib
import re
import sys
import tempfile
import types

try:
    import numpy as np
except ImportError:
    sys.exit(77)

from asking import asked, bfloat16, numbers_of

# An attention: arrays are [batch, head, row, column]. A report replaces some steps.

def linear(name, x, weight, bias):
    return x @ weight + bias


def split(name, y, n):
    return y.reshape(*y.shape[:2], n, -1).swapaxes(1, 2)


def norm(x, weight, epsilon):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon) * weight


def plain(base, width):
    return base ** (-np.arange(0, width, 2) / width)


def frequencies(rotary, d):
    if "inverse_frequencies" in rotary:
        return np.array(rotary["inverse_frequencies"])
    inverse, scaling = plain(rotary["base"], rotary.get("dimensions", d)), rotary.get("scaling")
    if scaling:  # Llama 3: long wavelengths are stretched, short ones kept
        original, low, high = scaling["original"], scaling["low"], scaling["high"]
        kept = np.clip((original * inverse / (2 * np.pi) - low) / (high - low), 0, 1)
        inverse = kept * inverse + (1 - kept) * inverse / scaling["factor"]
    return inverse


def angles(name, positions, inverse):
    return np.outer(positions, inverse)


def turn(name, x, angle, apart=None):
    """Rotates columns p and p + `apart` (default: half of the rotated columns)."""
    n = angle.shape[-1]
    apart, y = apart or n, x.copy()
    a, b = x[..., :n], x[..., apart:apart + n]
    y[..., :n], y[..., apart:apart + n] = a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)
    return y


def turned(q, k):
    return q, k


def repeat(x, n_heads):
    return np.repeat(x, n_heads // x.shape[1], 1)


def slopes(n):
    return 2.0 ** (-8 * np.arange(1, n + 1) / n)


def t5_bias(table, max_distance, bidirectional, query, key):
    table, distance, start = np.array(table), key - query[:, None], 0
    n = table.shape[1]
    if bidirectional:
        n //= 2
        start = n * (distance > 0)
    distance = np.abs(distance) if bidirectional else np.maximum(-distance, 0)
    half = n // 2
    far = half + (np.log(np.maximum(distance, 1) / half) / np.log(max_distance / half) * (n - half)).astype(int)
    return table[:, start + np.where(distance < half, distance, np.minimum(far, n - 1))]


def position_bias(s, n_queries, n_keys):
    positions, query, key = s.get("positions", {}), np.arange(n_queries) + n_keys - n_queries, np.arange(n_keys)
    if "alibi" in positions:
        return -slopes(s["n_heads"])[:, None, None] * np.abs(query[:, None] - key)
    if "relative" in positions:
        return t5_bias(positions["relative"]["table"], positions["relative"]["max_distance"], positions["relative"]["bidirectional"], query, key)
    return np.array(s["score_bias"]) if "score_bias" in s else None


def visible(s, n_queries, n_keys, n_batch):
    mask = s["mask"]
    query, key = np.arange(n_queries)[:, None] + n_keys - n_queries, np.arange(n_keys)
    seen = np.ones((n_batch, 1, n_queries, n_keys), bool)
    if mask["causal"]:
        seen &= key <= query
    if "window" in mask:
        seen &= key >= query - mask["window"][0]
    if "blocks" in mask:
        seen &= key // mask["blocks"] == query // mask["blocks"]
    seen |= key < mask.get("prefix", 0)
    if "documents" in mask:
        of = np.array(mask["documents"])
        seen &= of[query] == of[key]
    hidden = mask.get("hidden_keys", [])
    for b, keys in enumerate(hidden if hidden and isinstance(hidden[0], list) else [hidden] * n_batch):
        seen[b, ..., keys] = False
    return seen


def dots(q, k):
    return q @ k.swapaxes(2, 3)


def scaled(scores, scale):
    return scores * scale


def biased(scores, bias, scale):
    return scores + bias


def masked(scores, seen, cap):
    return np.where(seen, scores, -np.inf)


def softmax(scores, sink=None):
    with np.errstate(invalid="ignore"):
        top = scores.max(-1, keepdims=True)
        e = np.exp(scores - top)
        return np.nan_to_num(e / (e.sum(-1, keepdims=True) + (0 if sink is None else np.exp(sink - top))), nan=0.0)


def mix(weights, values):
    return weights @ values


def merge(contexts):
    return contexts.swapaxes(1, 2).reshape(len(contexts), contexts.shape[2], -1)


STEPS = (linear, split, norm, frequencies, angles, turn, turned, repeat, dots, scaled, position_bias, biased, visible, masked, softmax, mix, merge)


def attention(s, **replaced):
    """Returns the stages of a session by name. `turn_all` rotates without the model's positions; `whole` computes context vectors at once."""
    step = types.SimpleNamespace(**({f.__name__: f for f in STEPS} | replaced))
    x = np.array(s["embeddings"])
    batched = x.ndim == 3
    x = x if batched else x[None]
    source = np.array(s["key_embeddings"])[None] if "key_embeddings" in s else x
    heads = {"query": s["n_heads"], "key": s["n_kv_heads"], "value": s["n_kv_heads"]}

    def projected(name, rows):
        weight, bias = np.array(s["projections"][name]["weight"]), s["projections"][name]["bias"]
        return step.linear(name, rows, weight, np.zeros(weight.shape[1]) if bias is None else np.array(bias))

    q, k, v = (step.split(name, projected(name, x if name == "query" else source), heads[name]) for name in heads)
    out = dict(queries=q, keys=k, values=v)
    n_keys, n_queries, d = k.shape[2], q.shape[2], q.shape[3]
    if "normalise" in s:
        q, k = (step.norm(y, np.array(s["normalise"][name]), s["normalise"]["epsilon"]) for y, name in ((q, "query"), (k, "key")))
        if step.norm is norm:
            out |= dict(normed_queries=q, normed_keys=k)
    rotary = s.get("positions", {}).get("rotary") or replaced.get("turn_all")
    if rotary:
        inverse = step.frequencies(rotary, d)
        at = rotary.get("first", 0) + np.arange(n_keys)
        q, k = (step.turn(name, y, step.angles(name, p, inverse)) for name, y, p in (("query", q, at[n_keys - n_queries:]), ("key", k, at)))
        q, k = step.turned(q, k)
        if "turn_all" not in replaced:
            out |= dict(rotated_queries=q, rotated_keys=k)
    k, v = step.repeat(k, s["n_heads"]), step.repeat(v, s["n_heads"])
    scale = {"inverse_sqrt_d_head": d**-0.5, "none": 1.0}.get(s.get("scale", "inverse_sqrt_d_head"), s.get("scale"))
    if "whole" in replaced:
        out["contexts"] = replaced["whole"](q, k, v, scale)
    else:
        a = out["scores"] = step.dots(q, k)
        a = out["scaled_scores"] = step.scaled(a, scale)
        if "score_cap" in s:
            a = out["capped_scores"] = s["score_cap"] * np.tanh(a / s["score_cap"])
        bias = step.position_bias(s, n_queries, n_keys)
        if bias is not None:
            a = step.biased(a, bias, scale)
            if "score_bias" in s or "positions" in s:
                out["biased_scores"] = a
        a = out["masked_scores"] = step.masked(a, step.visible(s, n_queries, n_keys, len(x)), s.get("score_cap"))
        a = out["weights"] = step.softmax(a, np.array(s["sink"])[:, None, None]) if "sink" in s else step.softmax(a)
        out["contexts"] = step.mix(a, v)
    out["output"] = projected("output", step.merge(out["contexts"]))
    return out if batched else {name: y[0] for name, y in out.items()}


def session(seed, n_tokens=9, heads=4, kv_heads=None, d=8, n_keys=None, batch=None, bias=False, mask=None, width=20, **more):
    """Returns a random model, causal unless `mask` says otherwise; with `n_keys`, with separate key embeddings."""
    g = np.random.default_rng(seed)
    kv_heads = kv_heads or heads

    def numbers(*shape, size=1.0):
        return np.round(g.standard_normal(shape) * size, 4)

    def projection(n_in, n_out):
        return dict(weight=numbers(n_in, n_out, size=1.3 / n_in**0.5).tolist(), bias=numbers(n_out, size=0.5).tolist() if bias else None)

    s = dict(attnscope=1, embeddings=numbers(*([batch] if batch else []), n_tokens, width).tolist(), n_heads=heads, n_kv_heads=kv_heads,
             projections=dict(query=projection(width, heads * d), key=projection(width, kv_heads * d), value=projection(width, kv_heads * d),
                              output=projection(heads * d, width)),
             mask=dict(causal=True, empty_rows="zeros") | (mask or {}))
    if n_keys:
        s["key_embeddings"] = numbers(n_keys, width).tolist()
    return s | more


def rope(base=10000.0, **more):
    return dict(rotary=dict(base=base, pairs="halves") | more)


ALL = dict(causal=False)


# Steps as in the reported code.

def tables_of_neighbors(name, x, angle):
    c, s = (np.repeat(f(angle), 2, -1) for f in (np.cos, np.sin))
    half = x.shape[-1] // 2
    return x * c + np.concatenate([-x[..., half:], x[..., :half]], -1) * s


def table_of_half_the_head(name, x, angle):
    n = angle.shape[-1]
    part, half = x[..., :n], n // 2
    part = part * np.cos(angle) + np.concatenate([-part[..., half:], part[..., :half]], -1) * np.sin(angle)
    return np.concatenate([part, x[..., n:]], -1)


def t5_across(s, n_queries, n_keys):
    table = np.random.default_rng(7).standard_normal((s["n_heads"], 8))
    return t5_bias(table, 16, True, np.arange(n_queries), np.arange(n_keys))


def t5_uncached(s, n_queries, n_keys):
    relative = s["positions"]["relative"]
    return t5_bias(relative["table"], relative["max_distance"], False, np.arange(n_queries), np.arange(n_keys))


def softmax_with_zeros(n):
    def padded(scores):
        wide = np.concatenate([scores, np.zeros((*scores.shape[:-1], n))], -1)
        return softmax(wide)[..., :-n]
    return padded


def chunks_merged(first):
    """Merges two blocks of keys, taking their base-2 log-sum-exp for a natural one."""
    def merged(scores):
        parts = scores[..., :first], scores[..., first:]
        log2 = [np.log2(np.exp(part).sum(-1, keepdims=True)) for part in parts]
        share = np.exp(log2[0]) / (np.exp(log2[0]) + np.exp(log2[1]))
        return np.concatenate([softmax(parts[0]) * share, softmax(parts[1]) * (1 - share)], -1)
    return merged


def softmax_over(axes):
    def over(scores):
        e = np.exp(scores - scores.max(axes, keepdims=True))
        return e / e.sum(axes, keepdims=True)
    return over


def seen_by_chunks(size):
    def seen(s, n_queries, n_keys, n_batch):
        query, key = np.arange(n_queries)[:, None], np.arange(n_keys)
        return ((key <= query) & (key >= query // size * size - s["mask"]["window"][0]))[None, None]
    return seen


def with_mask(**changed):
    return lambda s, *shape: visible(s | dict(mask=s["mask"] | changed), *shape)


def of_other_sequences(s, n_queries, n_keys, n_batch):
    rows = visible(s, n_queries, n_keys, n_batch)[:, 0]
    return np.concatenate([rows] * s["n_heads"]).reshape(n_batch, s["n_heads"], n_queries, n_keys)


def times(factors):
    return lambda name, y, n: split(name, y, n) * factors.get(name, 1)


def without_bias(name, x, weight, bias):
    return x @ weight + (bias if name == "output" else 0)


def turned_in_bfloat16(name, x, angle):
    """Rotates by angles that session 16 has: positions from 700 on, base 1e6, everything rounded."""
    frequency = bfloat16(plain(1e6, 2 * angle.shape[-1]))
    position = bfloat16(np.round(angle[:, 0]))  # the first frequency is 1
    rounded = bfloat16(position[:, None] * frequency)
    c, s, n = bfloat16(np.cos(rounded)), bfloat16(np.sin(rounded)), angle.shape[-1]
    return np.concatenate([x[..., :n] * c - x[..., n:] * s, x[..., n:] * c + x[..., :n] * s], -1)


def viewed(name, y, n):
    return y.reshape(len(y), n, y.shape[1], -1)


def mixed_batch(contexts):
    b, h, t, d = contexts.shape
    return contexts.reshape(h, b, t, d).transpose(0, 2, 1, 3).reshape(b, t, h * d)


def viewed_back(contexts):
    return contexts.reshape(len(contexts), contexts.shape[2], -1)


def rows_kept(n):
    return lambda weights, values: (weights @ values) * (np.arange(weights.shape[2]) < n)[:, None]


def summed_over(n):
    """Keeps only the heads of the first of `n` processes in the output."""
    return lambda contexts: merge(contexts * (np.arange(contexts.shape[1]) < contexts.shape[1] // n)[:, None, None])


def over_heads(q, k, v, scale):
    """Computes attention between the heads of each token."""
    q, k, v = (y.swapaxes(1, 2) for y in (q, k, v))
    return (softmax(q @ k.swapaxes(2, 3) * scale) @ v).swapaxes(1, 2)


def over_batch(q, k, v, scale):
    """Computes attention between the sequences at each position."""
    q, k, v = (y.transpose(2, 1, 0, 3) for y in (q, k, v))
    return (softmax(q @ k.swapaxes(2, 3) * scale) @ v).transpose(2, 1, 0, 3)


def cached(source):
    """Reads keys and values of a cache: source(keys) gives their rows, −1 for zeros."""
    def read(x, n_heads):
        rows = np.array(source(x.shape[2]))
        return repeat(np.where((rows < 0)[:, None], 0, x[:, :, rows]), n_heads)
    return read


def with_empty_rows(rows):
    """Lets queries without a key attend to others: rows(query, key)."""
    def seen(s, n_queries, n_keys, n_batch):
        own = visible(s, n_queries, n_keys, n_batch)
        query, key = np.arange(n_queries)[:, None], np.arange(n_keys)
        return np.where(own.any(-1, keepdims=True), own, rows(query, key))
    return seen


def nan_rows(scores):
    return np.where(np.isfinite(scores).any(-1, keepdims=True), softmax(scores), np.nan)


def reports():
    """Returns (where, bug, model, replaced steps, right answer: patterns, each with its numbers)."""
    table = []

    def add(where, wrong, s, steps, *answers):
        table.append((where, wrong, s, steps, [(a, []) if isinstance(a, str) else a for a in answers]))

    # Projections and heads.
    add("onnx/onnx#7274", "KV heads were tiled over the query heads instead of each being repeated",
        session(1, heads=6, kv_heads=2), dict(repeat=lambda x, n: np.tile(x, (1, n // x.shape[1], 1, 1))), "tiled")
    add("FlashML-org/FreeToken#177", "tiles of heads cross the border of a group, and their last heads take the KV head of the group before",
        session(2, heads=6, kv_heads=2), dict(repeat=lambda x, n: x[:, [0, 0, 0, 0, 1, 1]]),
        (r"KV heads? \[0, 0, 0, 0, 1, 1\]|KV head h // 4", []))
    add("sbryngelson/ANEForge#253", "the loader read the weights of queries, keys and values but not their biases",
        session(3, kv_heads=2, bias=True, positions=rope(1e6)), dict(linear=without_bias), "bias.* (missing|not added)")
    add("reczoo/FuxiCTR#30", "heads were split by a view that mixes tokens",
        session(4, mask=ALL), dict(split=viewed), "by a view")
    add("jsbaan/transformer-from-scratch#6", "heads were put together by a reshape without the permutation",
        session(5), dict(merge=lambda c: c.reshape(len(c), c.shape[2], -1)), "reshape without")
    add("gazelle93/Transformer-Various-Positional-Encoding#1", "before heads are combined, batch and heads are viewed in the wrong order",
        session(6, n_tokens=6, batch=2, mask=ALL), dict(merge=mixed_batch), r"(batch|sequences?).* heads|heads.* (batch|sequences?)")
    add("lightseekorg/tokenspeed#759", "cached keys and values stay divided by the scales of their FP8 quantization",
        session(7, positions=rope()), dict(split=times({"key": 2.5, "value": 1.6})),
        (r"keys.* multiplied by|scale is", [[2.5, 2.5 * 8**-0.5]]), (r"values|context|output", [1.6]))

    add("huggingface/text-generation-inference#1036", "each of four processes added the bias of the output before their sum",
        session(46, bias=True), dict(linear=lambda name, x, weight, bias: x @ weight + bias * (4 if name == "output" else 1)),
        (r"bias of the output", [4]))
    add("FlashML-org/FreeToken#429", "the output projection of each of two processes was not summed",
        session(47), dict(merge=summed_over(2)), "heads 2(,| and|–) ?3|only heads 0–1 reach")
    add("facebookresearch/jepa#94", "cross-attention had an output projection and did not apply it",
        session(48, n_tokens=5, n_keys=7, d=5, mask=ALL), dict(linear=lambda name, x, weight, bias: x if name == "output" else x @ weight + bias),
        "output projection is missing")
    add("huggingface/diffusers#2011", "the width of a head was taken for the number of heads",
        session(49, d=16, width=32, n_tokens=6, mask=ALL), dict(session=dict(n_heads=16, n_kv_heads=16)), r"(16 heads|heads of width 4|d_head 4)")

    # Norms and rotary positions.
    add("vllm-project/vllm-metal#659", "the norms of queries and keys were looked for by another name and skipped",
        session(8, positions=rope(),
                normalise=dict(rule="rms", query=np.linspace(0.5, 1.7, 8).tolist(), key=np.linspace(1.6, 0.4, 8).tolist(), epsilon=1e-5)),
        dict(norm=lambda x, weight, epsilon: x), "norms? of the queries and (the )?keys (is|are) missing|before norm")
    add("ikawrakow/ik_llama.cpp#2291", "the factors of Llama 3's frequencies were loaded and not passed on",
        session(9, n_tokens=12, d=16, kv_heads=2, positions=rope(5e5, scaling=dict(rule="llama3", factor=32.0, low=1.0, high=4.0, original=64))),
        dict(frequencies=lambda rotary, d: plain(5e5, d)), "scaling of the frequencies is missing")
    add("antonellof/ferrox#39", "the linear scaling of global layers was applied to a local one",
        session(10, kv_heads=2, positions=rope()), dict(frequencies=lambda rotary, d: plain(1e4, d) / 8), (r"multiplied by", [[0.125, 8]]))
    add("lablup/mlxcel#1324", "under dynamic NTK scaling each token was rotated at twice its position",
        session(11, positions=rope(5e7)), dict(angles=lambda name, p, inverse: np.outer(2 * p, inverse)), (r"multiplied by|twice", [2]))
    add("vllm-project/vllm#3488", "dynamic NTK scaling by 4 changed the base of short texts too",
        session(12, positions=rope()), dict(frequencies=lambda rotary, d: plain(1e4 * (4 * 4 - 3) ** (d / (d - 2)), d)),
        (r"rotary base", [1e4 * 13 ** (8 / 6)]))
    short, long = plain(1e4, 8) / [1.0, 1.02, 1.03, 1.05], plain(1e4, 8) / [1.08, 1.5, 12.0, 62.0]
    add("ml-explore/mlx-lm#660", "short texts were rotated by the frequencies for long ones",
        session(13, positions=dict(rotary=dict(pairs="halves", inverse_frequencies=short.tolist()))), dict(frequencies=lambda rotary, d: long),
        (r"frequencies", [long[0], long[1], long[2], long[3]]))
    add("sgl-project/sglang-jax#1472", "inverse frequencies were rounded to bfloat16 before they met the positions",
        session(14, positions=rope(first=4000)), dict(frequencies=lambda rotary, d: bfloat16(plain(1e4, d))), "frequencies are rounded to bfloat16")
    add("huggingface/candle#3520", "positions, frequencies, their product, cosines and sines were all bfloat16",
        session(16, positions=rope(1e6, first=700)), dict(turn=turned_in_bfloat16), "the angle is computed in bfloat16")
    add("nkalyanv99/UNI-D2#6", "positions above 256 were counted in bfloat16",
        session(15, positions=rope(first=300)), dict(angles=lambda name, p, inverse: np.outer(bfloat16(p), inverse)),
        "positions are rounded to bfloat16")
    add("Dao-AILab/flash-attention#45", "columns were paired by halves, their cosines and sines by neighbors",
        session(16, positions=rope()), dict(turn=tables_of_neighbors), "table of cosines")
    add("TransformerLensOrg/TransformerLens#1618", "tables for half a head's columns were taken for a partial rotation",
        session(17, positions=rope(150000.0)), dict(turn=table_of_half_the_head), (r"columns are rotated", [4]))
    add("pie-project/pie#603", "a partial rotation took pairs and frequencies of the whole head",
        session(18, d=16, positions=rope(dimensions=8)),
        dict(turn=lambda name, x, angle: turn(name, x, angle, 8), frequencies=lambda rotary, d: plain(1e4, 16)[:4]),
        "pairs are halves of the whole head", (r"head width|rotary base", [[100, 16]]))
    add("vllm-project/vllm#41185", "the factor of another kind of layer halved how many columns are rotated",
        session(19, positions=rope(6e6)), dict(frequencies=lambda rotary, d: plain(6e6, d // 2)), (r"columns are rotated", [4]))
    add("NeuraLegion/shainet#110", "keys were rotated when cached and again when read",
        session(20, n_tokens=3, n_keys=9, positions=rope()),
        dict(angles=lambda name, p, inverse: np.outer(2 * p if name == "key" else p, inverse)), r"keys.*(rotated twice|multiplied by 2)")
    add("timtoole02/Camelid#535", "a layer without positions was rotated as all the others",
        session(21, kv_heads=2), dict(turn_all=dict(base=5e6)), "rotated.*which the model does not do", (r"base", [5e6]))

    add("ml-explore/mlx-lm#1624", "ε was added to the mean of the squares where their sum was meant",
        session(50, normalise=dict(rule="rms", query=[1.0] * 8, key=[1.0] * 8, epsilon=0.001 / 8)),
        dict(norm=lambda x, weight, epsilon: norm(x, weight, 0.001)), (r"ε", [0.001]))
    add("hpcaitech/ColossalAI#6429", "the rotated second half of the queries came from the keys, the first half of the keys from the queries",
        session(51, positions=rope()), dict(turned=lambda q, k: (np.concatenate([q[..., :4], k[..., 4:]], -1),) * 2),
        r"(half|halves|columns).* of the (queries|keys)")
    add("NVIDIA-NeMo/Megatron-Bridge#4195", "frequencies of zero were left out, so that fewer columns were paired with each other",
        session(52, positions=dict(rotary=dict(pairs="halves", inverse_frequencies=[1.0, 1e6**-0.25, 0.0, 0.0]))),
        dict(frequencies=lambda rotary, d: np.array(rotary["inverse_frequencies"][:2])), (r"columns are rotated", [4]))
    add("hw-native-sys/pypto-lib#462", "all new queries were rotated as the first of them",
        session(53, n_tokens=3, n_keys=9, positions=rope()),
        dict(angles=lambda name, p, inverse: np.outer(p[0] + 0 * p if name == "query" else p, inverse)), (r"(query|queries).*at position", [6]))

    # Scores.
    add("esceptico/perceiver-io#9", "scores were divided by 1/√d instead of multiplied",
        session(22, n_tokens=5, n_keys=8, mask=ALL), dict(scaled=lambda a, scale: a / scale), (r"scale|divided", [[8**0.5, 8]]))
    add("intel/ipex-llm#12619", "heads were padded to a width that the kernel knows, which then took its scale from that",
        session(23, d=6), dict(scaled=lambda a, scale: a / 8**0.5), (r"scale is", [8**-0.5]))
    mscale = 0.1 * 0.707 * np.log(40) + 1
    add("onnxruntime/mobius#548", "YaRN's mscale² was missing in the scale",
        session(24, positions=rope(), scale=8**-0.5 * mscale**2), dict(scaled=lambda a, scale: a * 8**-0.5), (r"scale is", [8**-0.5]))
    add("huggingface/transformers#8518", "cross-attention had a relative position bias, which T5 has in self-attention alone",
        session(25, n_tokens=6, n_keys=8, mask=ALL, scale="none"), dict(position_bias=t5_across),
        "bias.*model (does not have|has none)")
    add("flashinfer-ai/flashinfer#1606", "each of two processes made ALiBi's slopes as if its four heads were all",
        session(26, heads=8, d=4, positions=dict(alibi={})),
        dict(position_bias=lambda s, t, n: np.tile(slopes(4), 2)[:, None, None] * -np.abs(np.arange(t)[:, None] - np.arange(n))),
        (r"slopes", [0.25, 0.0625]))
    add("tenstorrent/tt-metal#42891", "the scale multiplied the given float mask too",
        session(27, mask=ALL, score_bias=np.round(np.random.default_rng(3).standard_normal((9, 9)), 3).tolist()),
        dict(biased=lambda a, bias, scale: a + bias * scale), "before the scale|multiplied by the scale|bias counts")
    add("onnx/onnx#7867", "the softcap came after the mask, so that masked scores are −c",
        session(28, n_tokens=8, mask=dict(hidden_keys=[6, 7]), score_cap=2.0), dict(masked=lambda a, seen, cap: np.where(seen, a, -cap)),
        "mask comes before the softcap|softcap comes after (bias and )?mask|masked scores (are|become) −2")

    add("huggingface/candle#899", "T5's position bias did not count the cached tokens",
        session(54, n_tokens=3, n_keys=10, scale="none", positions=dict(relative=dict(
            table=np.round(np.random.default_rng(5).standard_normal((4, 8)), 3).tolist(), max_distance=16, bidirectional=False))),
        dict(position_bias=t5_uncached), r"bias.*(first key|7)|as if the queries began at the first key")
    add("antirez/ds4#936", "the rotated columns were left out of the scores",
        session(55, positions=rope(dimensions=4)), dict(dots=lambda q, k: q[..., 4:] @ k[..., 4:].swapaxes(2, 3)), "rotated columns|columns .*scores")
    add("keras-team/keras#21714", "attention ran over the heads of each token instead of the tokens",
        session(56, n_tokens=6, mask=ALL), dict(whole=over_heads), r"over the (axis of )?heads")

    # Masks.
    add("Shujun-He/RibonanzaNet#5", "masked scores became −10⁻⁹ where −10⁹ was meant",
        session(29, mask=dict(causal=False, hidden_keys=[7, 8])), dict(masked=lambda a, seen, cap: np.where(seen, a, -1e-9)),
        r"masked scores (are|become) (−1e|0)|become 0")
    add("georg-wolflein/good-features#1", "scores were multiplied by the mask",
        session(30, mask=dict(causal=False, hidden_keys=[6, 7, 8])), dict(masked=lambda a, seen, cap: a * seen), r"multiplied by the mask|become 0")
    add("timeseriesAI/tsai#171", "a mask of 0 and 1 was added to the scores as it was",
        session(31), dict(masked=lambda a, seen, cap: a + ~seen), (r"added to masked|0 and 1", [1]))
    add("line/lighthouse#77", "masks were tiled over batch times heads, so that heads got another sequence's",
        session(32, n_tokens=7, batch=2, mask=dict(causal=False, hidden_keys=[[5, 6], [3, 4, 5, 6]])), dict(visible=of_other_sequences),
        r"laid over heads instead of sequences")
    add("Mikyx-1/TinyLLM#17", "with a cache attached, the prompt had no causal mask",
        session(33, kv_heads=2, positions=rope()), dict(visible=with_mask(causal=False)), "causal mask is missing|mask is missing")
    add("huggingface/transformers#30918", "a given mask of ones took the place of the causal mask behind the prefix",
        session(34, positions=rope(), mask=dict(prefix=4)), dict(visible=with_mask(causal=False)), "causal mask is missing|mask is missing|prefix")
    add("pytorch/executorch#21749", "the second chunk of a prompt was aligned with the first keys",
        session(35, n_tokens=4, n_keys=9), dict(visible=lambda s, t, n, b: np.tri(t, n, dtype=bool)[None, None]), "first keys?|aligned first")
    add("time-series-foundation-models/lag-llama#81", "with a cache, the one query was aligned with the first key and saw that alone",
        session(57, n_tokens=1, n_keys=8), dict(visible=lambda s, t, n, b: np.tri(t, n, dtype=bool)[None, None]), "first keys?|aligned first|key 0")
    add("huggingface/transformers#35896", "a sliding layer was taken for one of full attention",
        session(36, n_tokens=12, kv_heads=2, positions=rope(1e6), mask=dict(window=[3, 0])), dict(visible=with_mask(window=[99, 0])),
        "window (is )?(missing|ignored)")
    add("huggingface/transformers#39408", "the window did not count the query itself",
        session(37, n_tokens=12, kv_heads=2, mask=dict(window=[3, 0])), dict(visible=with_mask(window=[4, 0])),
        r"window.*(one larger|5 keys|\[4, 0\])")
    add("pytorch/executorch#21857", "all rows of a chunk see the cached keys that its first row sees",
        session(38, n_tokens=12, mask=dict(window=[3, 0])), dict(visible=seen_by_chunks(4)), (r"window", [4]))
    add("harvard-edge/cs249r_book#1953", "a generated token did not attend to itself",
        session(39, n_tokens=1, n_keys=8), dict(visible=lambda s, t, n, b: (np.arange(n) < n - 1)[None, None, None]),
        "own key|key 7|last 1 key|last key|diagonal")
    add("vllm-project/vllm-omni#5865", "rows of queries were kept by the mask of the keys, and the others became zero",
        session(40, n_tokens=8, n_keys=5, mask=dict(causal=False, hidden_keys=[4])), dict(mix=rows_kept(4)), r"(rows|queries).* (zero|0)|padded rows")
    add("unslothai/unsloth#9848", "rows of left padding, which attend to nothing, were NaN",
        session(41, mask=dict(hidden_keys=[0, 1]), positions=rope()), dict(softmax=nan_rows), "NaN instead of zeros")

    # Sets of rules.
    packed, padded = [0] * 4 + [1] * 3 + [2] * 5, dict(hidden_keys=[0, 1, 2])
    for n, (own, changed, says) in enumerate([
            ({}, dict(window=[3, 0], prefix=2), (r"window of 3.*first 2 keys", [3])), ({}, dict(window=[4, 0], prefix=1), (r"window of 4.*first 1 key", [4])),
            (dict(window=[4, 0]), dict(window=[3, 0], prefix=2), (r"window.*first 2 keys", [3])),
            ({}, dict(window=[2, 0], blocks=5), (r"window of 2.*block of 5", [2])), ({}, dict(blocks=4, prefix=2), (r"block of 4 keys and the first 2 keys", [4])),
            (dict(window=[3, 0]), dict(blocks=5), (r"own block of 5", [5])), (dict(window=[4, 0]), dict(window=[99, 0], blocks=5), (r"blocks of 5", [5])),
            (dict(documents=packed), dict(documents=[0] * 12, window=[3, 0]), (r"documents are ignored.*window of 3", [3])),
            (dict(documents=[0] * 4 + [1] * 4 + [2] * 4), dict(documents=[0] * 12, window=[5, 0]), (r"documents are ignored.*window of 5", [5])),
            (dict(documents=packed, hidden_keys=[10, 11]), dict(documents=[0] * 12, hidden_keys=[]), "documents are ignored.*padding mask is missing"),
            (dict(window=[3, 0], prefix=2), dict(window=[99, 0], prefix=0), "window is missing.*prefix is not visible|window is missing"),
            (dict(documents=packed), dict(documents=[0] * 4 + [1] * 4 + [2] * 4), (r"begins at 7 begins 1 later", [7])),
            (dict(documents=packed), dict(documents=[0] * 2 + [1] * 5 + [2] * 5), (r"begins at 4 begins 2 earlier", [4])),
            (dict(documents=packed), dict(documents=[0] * 7 + [2] * 5), "begin at 0 and at 4 are one"),
            (dict(documents=packed), dict(documents=[0] * 4 + [1] * 8), "begin at 4 and at 7 are one"),
            (dict(documents=packed), dict(documents=[0] * 4 + [1] * 3 + [0] * 5), "begin at 0 and at 7 are one"),
            (dict(documents=packed), dict(documents=[0] * 4 + [1] * 3 + [2] * 3 + [3] * 2), r"more document begins at 10|own block of 10")]):
        add(f"mask/sets#{n}", "another set of rules masks", session(70 + n, n_tokens=12, kv_heads=2, mask=own), dict(visible=with_mask(**changed)), says)
    for n, (rows, says) in enumerate([(lambda i, j: j >= 0, "without an unmasked key attend to every key"), (lambda i, j: j <= i, "attend to all keys up to their own|padding is a document of its own"),
                                      (lambda i, j: j == i, "attend to their own key")]):
        add(f"mask/empty#{n}", "rows without a key attend to some", session(90 + n, mask=padded), dict(visible=with_empty_rows(rows)), says)
    add("mask/empty#3", "rows without a key are even", session(93, mask=padded), dict(softmax=lambda a: np.where(np.isfinite(a).any(-1, keepdims=True), softmax(a), 1 / 9)),
        "uniform weights")
    for n, (source, says) in enumerate([
            (lambda n: [*range(n - 3), -1, -1, -1], (r"last 3 keys and values are zeros", [3])), (lambda n: [*range(n - 5), *[-1] * 5], (r"last 5 keys", [5])),
            (lambda n: [-1, -1, *range(2, n)], (r"first 2 keys", [2])), (lambda n: [8, 9, *range(2, n)], (r"8 slots", [8])), (lambda n: [6, 7, 8, 9, *range(4, n)], (r"6 slots", [6])),
            (lambda n: [7, 8, 9, 3, 4, 5, 6, 7, 8, 9], (r"7 slots", [7])), (lambda n: np.roll(np.arange(n), 3), (r"rolled by 3", [3])),
            (lambda n: np.roll(np.arange(n), 5), (r"rolled by 5", [5])), (lambda n: np.roll(np.arange(n), 8), (r"rolled by 8", [8]))]):
        add(f"cache/slots#{n}", "slots of the cache are wrong", session(100 + n, n_tokens=4, n_keys=10, kv_heads=2, positions=rope(), bias=True), dict(repeat=cached(source)), says)
    for n in (2, 5, 6):
        add(f"cache/zeros#{n}", "keys of zeros are not masked", session(110 + n, n_tokens=4, n_keys=8, mask=ALL), dict(softmax=softmax_with_zeros(n)), (f"{n} unmasked keys of zeros", [n]))

    # Another axis.
    for n, (shape, says) in enumerate([(dict(batch=3), "over the batch"), (dict(batch=5, kv_heads=2), "over the batch"), (dict(batch=2, mask=ALL), "over the batch")]):
        add(f"axis/batch#{n}", "batch_first was forgotten", session(120 + n, n_tokens=6, **shape), dict(whole=over_batch), says)
    for n, shape in enumerate([dict(heads=2, d=6), dict(n_tokens=5), dict(n_tokens=7, kv_heads=2, mask=ALL)]):
        add(f"axis/heads#{n}", "heads and time were swapped", session(130 + n, **shape),
            dict(whole=over_heads, merge=viewed_back), "over the heads")
    for n, value in enumerate([np.nan, 0.0, 1.0]):
        add(f"axis/one#{n}", "the softmax runs over an axis of length 1", session(140 + n), dict(softmax=lambda a, value=value: np.where(np.isfinite(a), 1, value)),
            "runs over an axis of length 1: every weight is 1")

    # Biases.
    for n, lost in enumerate([["query", "key"], ["value"], ["query", "key", "value"]]):
        add(f"bias/missing#{n}", "biases were forgotten", session(150 + n, bias=True),
            dict(linear=lambda name, x, weight, bias, lost=lost: x @ weight + bias * (name not in lost)), "bias of")

    # Factors of a stage; the output alone does not tell some from others.
    steps = dict(queries=lambda f: dict(linear=lambda name, x, weight, bias: linear(name, x, weight, bias) * (f if name == "query" else 1)),
                 keys=lambda f: dict(linear=lambda name, x, weight, bias: linear(name, x, weight, bias) * (f if name == "key" else 1)),
                 values=lambda f: dict(linear=lambda name, x, weight, bias: linear(name, x, weight, bias) * (f if name == "value" else 1)),
                 scores=lambda f: dict(dots=lambda q, k: dots(q, k) * f), weights=lambda f: dict(softmax=lambda a: softmax(a) * f),
                 contexts=lambda f: dict(mix=lambda w, v: mix(w, v) * f),
                 output=lambda f: dict(linear=lambda name, x, weight, bias: linear(name, x, weight, bias) * (f if name == "output" else 1)))
    of_scores = lambda f: r"(queries|keys|scores) are multiplied by|the scale is|weights are equal"
    of_contexts = lambda f: (r"(values|weights|contexts) are multiplied by", [f])
    same = dict(queries=of_scores, keys=of_scores, scores=of_scores, values=of_contexts, weights=of_contexts, contexts=of_contexts,
                output=lambda f: ("output is multiplied by", [f]))
    for n, (stage, factor) in enumerate([(stage, factor) for stage in steps for factor in (0, 3.7, -1)]):
        add(f"factor/{stage}#{n}", "a stage has a factor", session(160 + n, kv_heads=2, bias=True), dict(steps[stage](factor)), same[stage](factor))

    # Softmax.
    add("labmlai/annotated_deep_learning_paper_implementations#146", "the softmax ran over the queries",
        session(42, mask=ALL), dict(softmax=softmax_over(2)), "over the queries")
    add("facebookresearch/detr#247", "the softmax ran over keys and heads together",
        session(43, n_tokens=5, n_keys=7, mask=ALL), dict(softmax=softmax_over((1, 3))), r"softmax.*(all heads|heads and keys|keys and heads)")
    add("tenstorrent/tt-metal#54833", "keys of zeros that fill the last tile are not masked and join the sum",
        session(44, n_tokens=5), dict(softmax=softmax_with_zeros(3)), (r"softmax adds", [3]))
    add("sgl-project/sglang#40903", "two blocks of keys are put together by a log-sum-exp of base 2 taken for a natural one",
        session(45, n_tokens=4, n_keys=10), dict(softmax=chunks_merged(6)), r"log-sum-exp|blocks of keys are put together")
    add("FrancescoSaverioZuppichini/ViT#2", "the scale came after the softmax",
        session(58, mask=ALL), dict(scaled=lambda a, scale: a, softmax=lambda a: softmax(a) * 8**-0.5),
        r"after the softmax|scale is (1|missing)|not scaled", (r"softmax|weights|values|context|output", [8**-0.5]))
    add("ROCm/rocm-libraries#12227", "the sink was counted by two blocks of keys",
        session(59, sink=[0.5, -0.3, 1.1, 0.2]), dict(softmax=lambda a, sink: softmax(a, sink + np.log(2))), r"sinks?.*(twice|2 times|two)")
    return table


# Not yet named by the check: by report the given tensors, and the check's answer instead.
NOT_YET = {
    "gazelle93/Transformer-Various-Positional-Encoding#1": ("all output", "nothing: no rule mixes a batch and its heads"),
    "lightseekorg/tokenspeed#759": ("output", "two unlikely factors (of the input, of the weights) whose products are the right ones"),
    "ml-explore/mlx-lm#660": ("output", "nothing: listed frequencies are not fitted"),
    "TransformerLensOrg/TransformerLens#1618": ("all output", "nothing: the two columns of a pair have angles of their own"),
    "hpcaitech/ColossalAI#6429": ("all output", "nothing: queries and keys exchange no columns"),
    "huggingface/transformers#8518": ("output", "nothing: such a bias is read off scores, not off the output"),
}


def is_right(cause, answers):
    """Returns whether one cause's sentences contain every pattern with its numbers (a list: one of them)."""
    def holds(sentence, pattern, numbers):
        have = numbers_of(sentence)
        return re.search(pattern, sentence) and all(
            any(abs(abs(x) - abs(y)) <= 1e-3 * abs(y) for x in have for y in (n if isinstance(n, list) else [n])) for n in numbers)
    return all(any(holds(sentence, *answer) for sentence in cause) for answer in answers)


def questions():
    for where, wrong, s, steps, answers in reports():
        theirs = attention(s | steps.get("session", {}), **steps)
        yield where, wrong, "all", s, {name: stage.astype(np.float32) for name, stage in theirs.items()}, answers
        yield where, wrong, "output", s, dict(output=theirs["output"]), answers


def answer(question, folder, program):
    where, _, given, s, dump, answers = question
    report, failure = asked(program, folder / (re.sub(r"[/#]", "-", where) + "." + given), s, dump)
    if not report:
        return False, [failure]
    return any(is_right(cause, answers) for cause in report["sentences"]), report["sentences"] or report["described"]


def main(program):
    failures, named, count = [], 0, 0
    with tempfile.TemporaryDirectory() as temporary, concurrent.futures.ThreadPoolExecutor(2) as pool:
        folder = pathlib.Path(os.environ.get("ATTNSCOPE_KEEP", temporary))
        all_questions = list(questions())
        for question, (right, words) in zip(all_questions, pool.map(lambda q: answer(q, folder, program), all_questions)):
            where, wrong, given = question[:3]
            count, named = count + 1, named + right
            if right == (given in NOT_YET.get(where, ("", ""))[0].split()):
                failures.append((where, given, "is named now: take it off the list" if right else wrong, words))
    print(f"{named} of {count} questions about {len(reports())} reports are answered")
    for failure in failures:
        print(*failure, sep=": ")
    sys.exit(len(failures) > 2)  # searches are limited in processor time, which a slow machine may exhaust


if __name__ == "__main__":
    main(sys.argv[1])
