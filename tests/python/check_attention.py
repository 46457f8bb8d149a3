"""Computes random sessions by loops over the definitions, in NumPy and without attnscope's code, and compares every stage
with attnscope's export. tests/golden/make_sessions.py computes its fixtures by the same loops.

usage: check_attention.py ATTNSCOPE    exit status: 0 equal, 1 different, 77 NumPy is missing
"""

import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from any_session import session

SESSIONS = 400
REAL = numpy.float64  # the type of all computations


def matrices(numbers):
    """Returns one matrix per sequence."""
    array = numpy.array(numbers, REAL)
    return array if array.ndim == 3 else array[None]


def project(x, linear):
    if linear is None:
        return x
    y = x @ numpy.array(linear["weight"], REAL)
    return y if linear.get("bias") is None else y + numpy.array(linear["bias"], REAL)


def normed(rows, norm, factors, head, every):
    """Normalizes the rows of a head; every: rows of all heads, for norms over all heads."""
    result, over = [], norm.get("over", "head")
    factors, d = numpy.array(norm[factors]), rows.shape[1]
    for i, row in enumerate(rows):
        together = numpy.concatenate([other[i] for other in every]) if over == "all_heads" else row
        if norm["rule"] == "layer":
            row, together = row - together.mean(), together - together.mean()
        own = factors if over == "head" else factors[head * d : (head + 1) * d]
        result.append(row / numpy.sqrt((together * together).mean() + norm["epsilon"]) * own)
    return numpy.array(result)


def frequency(rule, pair, d, length):
    """Returns the frequency of a pair of d columns for a text of that length, as in transformers."""
    if "inverse_frequencies" in rule:
        return rule["inverse_frequencies"][pair]
    scaling, base = rule.get("scaling") or {}, rule["base"]
    kind, original = scaling.get("rule"), scaling.get("original")
    if kind == "dynamic" and length > original and d > 2:
        base *= (scaling["factor"] * length / original - (scaling["factor"] - 1)) ** (d / (d - 2))
    own = base ** (-2 * pair / d)
    if kind == "longrope":
        return own / scaling["long_factor" if length > original else "short_factor"][pair]
    if kind == "yarn":
        turns = [scaling.get("beta_fast", 32), scaling.get("beta_slow", 1)]
        low, high = (d * math.log(original / (n * 2 * math.pi)) / (2 * math.log(base)) for n in turns)
        if scaling.get("truncate", True):
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, d - 1)
        if low == high:
            high += 0.001
        part = min(max((pair - low) / (high - low), 0), 1)
        return own / scaling["factor"] * part + own * (1 - part)
    if scaling.get("rule") != "llama3":
        return own
    wave = 2 * math.pi / own
    if wave < scaling["original"] / scaling["high"]:
        return own
    if wave > scaling["original"] / scaling["low"]:
        return own / scaling["factor"]
    kept = (scaling["original"] / wave - scaling["low"]) / (scaling["high"] - scaling["low"])
    return (1 - kept) * own / scaling["factor"] + kept * own


def turned(rows, positions, rule, length):
    d, result = rule.get("dimensions", rows.shape[1]), rows.copy()
    scaling = rule.get("scaling") or {}
    for i, position in enumerate(positions):
        at = position / scaling["factor"] if scaling.get("rule") == "linear" else position
        for pair in range(d // 2):
            a, b = (pair, pair + d // 2) if rule["pairs"] == "halves" else (2 * pair, 2 * pair + 1)
            angle, by = at * frequency(rule, pair, d, length), scaling.get("attention_factor", 1)
            cosine, sine = numpy.cos(REAL(angle)) * by, numpy.sin(REAL(angle)) * by
            result[i, a], result[i, b] = rows[i, a] * cosine - rows[i, b] * sine, rows[i, a] * sine + rows[i, b] * cosine
    return result


def slope(heads, head):
    power = 2 ** int(math.log2(heads))
    if head < power:
        return 2 ** (-8 * (head + 1) / power)
    return 2 ** (-8 * (2 * (head - power) + 1) / (2 * power))


def bucket(distance, rule):
    n, first = len(rule["table"][0]), 0
    if rule["bidirectional"]:
        n //= 2
        first, distance = (n if distance > 0 else 0), abs(distance)
    else:
        distance = max(-distance, 0)
    near = n // 2
    if distance < near:
        return first + distance
    steps = math.log(distance / near) / math.log(rule["max_distance"] / near) * (n - near)
    return first + min(near + int(steps), n - 1)


def visible(s, sequence, tokens, keys):
    mask = s.get("mask", {})
    left, right = mask.get("window", [-1, -1])
    place = keys - tokens if mask.get("align", "last") == "last" else 0
    hidden = mask.get("hidden_keys", [])
    if hidden and isinstance(hidden[0], list):
        hidden = hidden[sequence]
    see = numpy.zeros((tokens, keys))
    for i in range(tokens):
        for j in range(keys):
            p = i + place
            ok = not (mask.get("causal", True) and j > p) and not (left >= 0 and j < p - left) and not (right >= 0 and j > p + right)
            ok = ok or j < mask.get("prefix", 0)
            if "documents" in mask:
                ok = ok and mask["documents"][i] == mask["documents"][j]
            see[i, j] = ok and j not in hidden
    for row, column, shown in mask.get("cells", []):
        see[row, column] = shown
    return see


def softmax(row, sink):
    every = list(row) + ([sink] if sink is not None else [])
    top = max(every)
    if top == -math.inf:
        return numpy.full(len(row), REAL("nan"))
    e = [numpy.exp(x - top) for x in every]
    return numpy.array(e[:len(row)]) / sum(e)


def one_head(s, h, x, all_q, all_k, all_v, see, dropout_mask):
    group = h // (len(all_q) // len(all_k))
    q, k, v = all_q[h], all_k[group], all_v[group]
    stages = {"queries": q, "keys": k, "values": v}
    positions, heads = s.get("positions", {}), s.get("n_heads", 1)
    tokens, keys = len(q), len(k)
    if "normalise" in s:
        q, k = normed(q, s["normalise"], "query", h, all_q), normed(k, s["normalise"], "key", group, all_k)
        stages["normed_queries"], stages["normed_keys"] = q, k
    if "rotary" in positions:
        first = positions["rotary"].get("first", 0)
        q = turned(q, [first + i + keys - tokens for i in range(tokens)], positions["rotary"], first + keys)
        k = turned(k, [first + j for j in range(keys)], positions["rotary"], first + keys)
        stages["rotated_queries"], stages["rotated_keys"] = q, k
    z = stages["scores"] = q @ k.T if s.get("scores", "query_key") == "query_key" else numpy.zeros((tokens, keys), REAL)
    scale = s.get("scale", "inverse_sqrt_d_head")
    if isinstance(scale, str):
        scale = {"inverse_sqrt_d_head": 1 / numpy.sqrt(REAL(q.shape[1])), "none": 1, "inverse_sqrt_d_model": 1 / numpy.sqrt(REAL(x.shape[1]))}[scale]
    z = stages["scaled_scores"] = z * REAL(scale)
    if "score_cap" in s:
        z = stages["capped_scores"] = s["score_cap"] * numpy.tanh(z / s["score_cap"])
    bias = numpy.zeros((tokens, keys), REAL)
    for i in range(tokens):
        for j in range(keys):
            distance = j - (i + keys - tokens)
            if "alibi" in positions:
                slopes = positions["alibi"].get("slopes")
                bias[i, j] = -(slopes[h] if slopes else slope(heads, h)) * abs(distance)
            if "relative" in positions:
                bias[i, j] = positions["relative"]["table"][h][bucket(distance, positions["relative"])]
    if "alibi" in positions or "relative" in positions:
        stages["position_bias"] = bias
    if "score_bias" in s:
        given = numpy.array(s["score_bias"], float).astype(REAL)
        bias = bias + (given[h] if given.ndim == 3 else given)
    if "position_bias" in stages or "score_bias" in s:
        z = stages["biased_scores"] = z + bias
    mask = s.get("mask", {})
    method, sink = mask.get("method", "negative_infinity"), REAL(s["sink"][h]) if "sink" in s else None
    fill = {"negative_infinity": -math.inf, "large_negative": -1e9}.get(method)
    z = stages["masked_scores"] = z if fill is None else numpy.where(see == 1, z, fill)
    weights = numpy.array([softmax(row, sink) for row in z])
    if fill is None:
        stages["unmasked_weights"] = weights
        weights = weights * see
    if method == "renormalise":
        stages["zeroed_weights"] = weights
        sums = stages["row_sums"] = weights.sum(axis=1, keepdims=True)
        with numpy.errstate(invalid="ignore"):
            weights = weights / sums
    if mask.get("empty_rows", "nan") == "zeros":
        nothing = ((see == 0) | (z == -math.inf)).all(axis=1, keepdims=True)
        weights = numpy.where(nothing, 0.0, weights)
    stages["weights"], stages["dropout_mask"] = weights, dropout_mask
    stages["dropped_weights"] = weights * dropout_mask
    stages["contexts"] = stages["dropped_weights"] @ v
    return stages


def dropout_masks(s, sequence):
    """Returns the factors of given dropout masks, or ones."""
    batch = numpy.array(s["embeddings"], float).ndim == 3
    dropout, shape = s.get("dropout", {}), matrices(s["embeddings"]).shape
    given = numpy.array(dropout.get("mask", numpy.ones((shape[0] if batch else 1, s.get("n_heads", 1), shape[1], shape[1]))), REAL)
    given = given.reshape(-1, s.get("n_heads", 1), *given.shape[-2:])[sequence]
    rate, active = REAL(dropout.get("rate", 0)), dropout.get("training", True) and dropout.get("rate", 0) > 0
    return numpy.where(given == 0, 0, given / (1 - rate) if rate < 1 else 0) if active else numpy.ones_like(given)


def attention(s, sequence, dropout_masks):
    """Returns every stage of one sequence. Sampled dropout masks are taken as given; other scripts check them."""
    x = matrices(s["embeddings"])[sequence]
    memory = matrices(s["key_embeddings"])[sequence] if "key_embeddings" in s else x
    heads, parts = s.get("n_heads", 1), s.get("projections") or {}
    groups = s.get("n_kv_heads", heads)
    q, k, v = project(x, parts.get("query")), project(memory, parts.get("key")), project(memory, parts.get("value"))
    see = visible(s, sequence, len(x), len(memory))
    split = lambda m, n: numpy.split(m, n, axis=1)
    all_heads = [one_head(s, h, x, split(q, heads), split(k, groups), split(v, groups), see, dropout_masks[h]) for h in range(heads)]
    stages = {name: [head[name] for head in all_heads] for name in all_heads[0]}
    contexts = numpy.array(stages["contexts"])
    merged = numpy.concatenate(list(contexts), axis=1) if s.get("merge_heads", "concatenate") == "concatenate" else contexts.reshape(len(x), -1)
    stages.update(embeddings=x, mask=see, concatenated=merged, output=project(merged, parts.get("output")))
    if "key_embeddings" in s:
        stages["key_embeddings"] = memory
    return stages


def compare(name, found, expected):
    assert found.shape == expected.shape, f"{name}: {found.shape} instead of {expected.shape}"
    same = (found == expected) | (numpy.isnan(found) & numpy.isnan(expected))
    finite = numpy.where(numpy.isfinite(expected), expected, 0)
    size = numpy.abs(finite).max(initial=1)
    with numpy.errstate(invalid="ignore"):
        error = numpy.where(same, 0, numpy.abs(found - expected) / size)
    assert (error <= 1e-12).all(), f"{name}: off by {numpy.nanmax(error):.1e} of its largest number"
    return error.max(initial=0)


def check(program, s, directory):
    path, out = directory / "session.json", directory / "all.npz"
    path.write_text(json.dumps(s), encoding="utf-8")
    subprocess.run([program, "export", path, "--out", out], check=True, stderr=subprocess.DEVNULL)
    arrays = dict(numpy.load(out))
    n = len(matrices(s["embeddings"]))
    found = {name: array if n > 1 else array[None] for name, array in arrays.items()}
    heads, groups = s["n_heads"], s.get("n_kv_heads", s["n_heads"])
    worst = 0
    for sequence in range(n):
        masks = found["dropout_mask"][sequence]
        if "mask" in s["dropout"]:
            masks = dropout_masks(s, sequence)
        for name, expected in attention(s, sequence, masks).items():
            expected = numpy.array(expected)
            if name in ("keys", "values", "normed_keys", "rotated_keys"):
                expected = expected[:: heads // groups]  # one matrix per KV head
            worst = max(worst, compare(name, found[name][sequence], expected))
    return worst


def main(program):
    with tempfile.TemporaryDirectory() as name:
        worst = 0
        for seed in range(SESSIONS):
            made = session(numpy.random.default_rng(seed))
            try:
                worst = max(worst, check(program, made, Path(name)))
            except Exception:
                print(f"session {seed}: {json.dumps(made)}")
                raise
        print(f"{SESSIONS} sessions, largest error {worst:.1e} of a stage's largest number")


if __name__ == "__main__":
    main(sys.argv[1])
