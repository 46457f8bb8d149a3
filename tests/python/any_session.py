"""Sessions with random options, small enough for their numbers to be written out, and how far their results are apart."""

import math

import numpy


def pick(random, *options):
    return options[int(random.integers(len(options)))]


def mask_rules(random, batch, tokens, keys):
    """Returns some of the mask's rules besides the causal one."""
    hidden = [sorted({int(random.integers(keys)) for _ in range(int(random.integers(3)))}) for _ in range(batch)]
    every = {
        "window": [int(random.integers(-1, 3)), int(random.integers(-1, 3))],
        "prefix": int(random.integers(keys + 1)),
        "hidden_keys": hidden if batch > 1 else hidden[0],
        "align": pick(random, "last", "first"),
    }
    if tokens == keys:
        every["documents"] = [int(number) for number in random.integers(3, size=tokens)]
    return {name: rule for name, rule in every.items() if random.random() < 0.3}


def rotary(random, d_head):
    dimensions = 2 * int(random.integers(1, d_head // 2 + 1))
    rule = {"base": float(pick(random, 10000, 500000, 7)), "pairs": pick(random, "halves", "neighbours"), "dimensions": dimensions}
    if random.random() < 0.5:
        rule["first"] = int(random.integers(-5, 30))
    scaling = pick(random, None, None, "linear", "llama3", "yarn", "dynamic", "longrope")
    if scaling == "linear":
        rule["scaling"] = {"rule": "linear", "factor": 4.0}
    if scaling == "llama3":
        rule["scaling"] = {"rule": "llama3", "factor": 8.0, "low": 1.0, "high": 4.0, "original": 32}
    if scaling == "yarn":
        rule["scaling"] = {"rule": "yarn", "factor": 4.0, "original": 64, "attention_factor": 1.25, "truncate": bool(random.random() < 0.5)}
    if scaling == "dynamic":
        rule["scaling"] = {"rule": "dynamic", "factor": 4.0, "original": 3}
    if scaling == "longrope":
        factors = (1 + random.random(size=(2, dimensions // 2))).tolist()
        rule["scaling"] = {"rule": "longrope", "short_factor": factors[0], "long_factor": factors[1], "original": 3, "attention_factor": 1.5}
    if random.random() < 0.2:
        rule["inverse_frequencies"] = random.normal(size=dimensions // 2).tolist()
    return rule


def score_bias(random, *shape):
    """Returns random numbers, sometimes with −∞ in some cells and in a whole row."""
    bias = random.normal(size=shape)
    if random.random() < 0.4:
        bias[random.random(size=shape) < 0.2] = -numpy.inf
        bias[..., random.integers(shape[-2]), :] = -numpy.inf
    return numpy.where(numpy.isinf(bias), "-inf", bias.astype(object)).tolist()


def additions(random, heads, groups, d_head, tokens, keys):
    """Returns some of the options of modern models."""
    normal = lambda *shape: random.normal(size=shape).tolist()
    positions = {}
    if d_head > 1 and random.random() < 0.5:
        positions["rotary"] = rotary(random, d_head)
    kind = pick(random, None, "alibi", "relative")
    if kind == "alibi":
        positions["alibi"] = pick(random, {}, {"slopes": normal(heads)})
    if kind == "relative":
        buckets = int(pick(random, 4, 6, 8))
        positions["relative"] = {"table": normal(heads, buckets), "max_distance": buckets + int(random.integers(9)),
                                 "bidirectional": bool(random.random() < 0.5)}
    every = {
        "normalise": {"rule": pick(random, "rms", "layer"), "query": normal(d_head), "key": normal(d_head), "epsilon": pick(random, 1e-6, 0.1)},
        "score_cap": pick(random, 0.5, 3.0, 30.0),
        "score_bias": score_bias(random, *pick(random, (tokens, keys), (heads, tokens, keys))),
        "sink": normal(heads),
    }
    over = pick(random, "head", "head", "each_head", "all_heads")
    if over != "head":
        every["normalise"] |= {"over": over, "query": normal(heads * d_head), "key": normal(groups * d_head)}
    chosen = {name: rule for name, rule in every.items() if random.random() < 0.4}
    return {**chosen, **({"positions": positions} if positions else {})}


def session(random):
    batch, tokens, d_in = (int(random.integers(1, n)) for n in (4, 6, 5))
    heads = pick(random, 1, 2, 3, 4, 6)
    d_head = int(random.integers(1, 5))
    d_out, keys, memory, groups = heads * d_head, tokens, None, heads
    normal = lambda *shape: random.normal(size=shape)
    embeddings = normal(batch, tokens, d_in) * pick(random, 1, 1e-3, 50)
    projections, d_memory = None, d_in

    def linear(rows, columns):
        bias = normal(columns).tolist() if random.random() < 0.5 else None
        return {"weight": normal(rows, columns).tolist(), "bias": bias}

    if random.random() < 0.8:
        groups = pick(random, *(g for g in range(1, heads + 1) if heads % g == 0))
        if random.random() < 0.3:
            keys, d_memory = int(random.integers(1, 8)), int(random.integers(1, 5))
            memory = normal(batch, keys, d_memory)
        projections = {"query": linear(d_in, d_out), "key": linear(d_memory, groups * d_head), "value": linear(d_memory, groups * d_head)}
        projections["output"] = linear(d_out, int(pick(random, d_out, 2, 7))) if random.random() < 0.5 else None
    else:
        heads = groups = 1
        d_head = d_in
    cells = sorted({(int(random.integers(tokens)), int(random.integers(keys))) for _ in range(int(random.integers(4)))})
    if random.random() < 0.3:  # a query with no unmasked key
        cells = [(0, column) for column in range(keys)]
    dropout = {
        "rate": pick(random, 0, 0.1, 0.5, 1),
        "training": bool(random.random() < 0.8),
        "seed": int(random.integers(2**32)),
        "stream": pick(random, "mt19937", "mt19937", "mkl"),
    }
    if random.random() < 0.3:
        mask = random.integers(2, size=(batch, heads, tokens, keys))
        dropout["mask"] = (mask if batch > 1 else mask[0]).tolist()
    made = {
        "attnscope": 1,
        "tokens": pick(random, ['"', "\\n", "naïve", "\t", "🙂"][:tokens] + [str(i) for i in range(5, tokens)], [str(i) for i in range(tokens)]),
        "embeddings": (embeddings if batch > 1 else embeddings[0]).tolist(),
        "projections": projections,
        "n_heads": heads,
        "scores": pick(random, "query_key", "query_key", "uniform"),
        "scale": pick(random, "inverse_sqrt_d_head", "none", "inverse_sqrt_d_model", 0.37, -2),
        "mask": {
            "causal": bool(random.random() < 0.6),
            "method": pick(random, "negative_infinity", "renormalise", "zero_after_softmax", "large_negative"),
            "empty_rows": pick(random, "nan", "zeros"),
            "cells": [[row, column, bool(random.random() < 0.2)] for row, column in cells],
            **mask_rules(random, batch, tokens, keys),
        },
        "dropout": dropout,
        "merge_heads": pick(random, "concatenate", "reshape_without_transpose"),
        "context_length": pick(random, None, tokens, 1024),
    }
    if memory is not None:
        made["key_embeddings"] = (memory if batch > 1 else memory[0]).tolist()
    if groups != heads:
        made["n_kv_heads"] = groups
    if random.random() < 0.6:
        made.update(additions(random, heads, groups, d_head, tokens, keys))
    return made


def difference(ours, theirs, least=1.0):
    """Returns the largest difference relative to the largest number, at least that one; NaN and infinities equal themselves."""
    if not numpy.array_equal(numpy.isnan(ours), numpy.isnan(theirs)):
        return float("inf")
    infinite = numpy.isinf(ours) | numpy.isinf(theirs)
    if not numpy.array_equal(ours[infinite], theirs[infinite]):
        return float("inf")
    finite = numpy.isfinite(ours)
    if not finite.any():
        return 0.0
    return float(numpy.abs(ours[finite] - theirs[finite]).max() / max(least, numpy.abs(ours[finite]).max()))
