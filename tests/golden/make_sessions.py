#!/usr/bin/env python3
"""Writes fixtures/sessions: sessions with every option, and what every stage of them must be.

The stages are worked out here from the paper's formulas with plain loops in the machine's longest float (64 bits of
mantissa on x86), with no line shared with the program. NAME.json is the session, NAME.expected.json maps
"<stage>", "<stage>.head<h>" or, in a batch, "sequence<s>/<stage>.head<h>" to rows; "nan" and "-inf" stand for what
JSON cannot write. Also writes fixtures/formats/two_by_three.npy, a file of NumPy's own.

    python3 make_sessions.py
"""
import json
import pathlib

import numpy as np

LONG = np.longdouble
FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures"


def long_matrix(rows):
    return [[LONG(v) for v in row] for row in rows]


def product(a, b):
    return [[sum((a[i][k] * b[k][j] for k in range(len(b))), LONG(0)) for j in range(len(b[0]))] for i in range(len(a))]


def project(x, linear):
    y = product(x, long_matrix(linear["weight"]))
    bias = linear.get("bias")
    return [[v + LONG(bias[j]) for j, v in enumerate(row)] for row in y] if bias is not None else y


def softmax(row):
    top = max(row)
    if np.isneginf(top):
        return [LONG("nan")] * len(row)
    e = [np.exp(v - top) for v in row]
    return [v / sum(e) for v in e]


def attend(session, x, given):
    n, n_heads = len(x), session.get("n_heads", 1)
    x = long_matrix(x)
    p = session.get("projections")
    q, k, v = (project(x, p[name]) if p else x for name in ("query", "key", "value"))
    d_out = len(q[0])
    d_head = d_out // n_heads
    scale = session.get("scale", "inverse_sqrt_d_head")
    factor = {"inverse_sqrt_d_head": 1 / np.sqrt(LONG(d_head)), "inverse_sqrt_d_model": 1 / np.sqrt(LONG(len(x[0]))),
              "none": LONG(1)}[scale] if isinstance(scale, str) else LONG(scale)
    mask = session.get("mask", {})
    method = mask.get("method", "negative_infinity")
    visible = [[1 if j <= i or not mask.get("causal", True) else 0 for j in range(n)] for i in range(n)]
    for row, column, shown in mask.get("cells", []):
        visible[row][column] = 1 if shown else 0
    dropout = session.get("dropout", {})
    rate = LONG(dropout.get("rate", 0))
    active = dropout.get("training", True) and rate > 0

    stages = {"embeddings": x, "mask": visible}
    contexts = []
    for h in range(n_heads):
        def put(name, value):
            stages[f"{name}.head{h}"] = value
        bands = [[row[h * d_head:(h + 1) * d_head] for row in m] for m in (q, k, v)]
        for name, m in zip(("queries", "keys", "values"), bands):
            put(name, m)
        uniform = session.get("scores") == "uniform"
        scores = [[LONG(0) if uniform else sum((a * b for a, b in zip(bands[0][i], bands[1][j])), LONG(0))
                   for j in range(n)] for i in range(n)]
        scaled = [[s * factor for s in row] for row in scores]
        before = {"negative_infinity": LONG("-inf"), "large_negative": LONG(-1e9)}.get(method)
        masked = [[s if visible[i][j] or before is None else before for j, s in enumerate(row)]
                  for i, row in enumerate(scaled)]
        weights = [softmax(row) for row in masked]
        put("scores", scores)
        put("scaled_scores", scaled)
        put("masked_scores", masked)
        if before is None:
            put("unmasked_weights", weights)
            weights = [[w * visible[i][j] for j, w in enumerate(row)] for i, row in enumerate(weights)]
        if method == "renormalise":
            put("zeroed_weights", weights)
            sums = [sum(row, LONG(0)) for row in weights]
            put("row_sums", [[s] for s in sums])
            weights = [[w / s if s != 0 else LONG("nan") for w in row] for row, s in zip(weights, sums)]
        if mask.get("empty_rows", "nan") == "zeros":
            weights = [row if any(visible[i]) else [LONG(0)] * n for i, row in enumerate(weights)]
        put("weights", weights)
        kept = [[(LONG(given[h][i][j]) / (1 - rate) if given[h][i][j] else LONG(0)) if active else LONG(1)
                 for j in range(n)] for i in range(n)]
        dropped = [[w * f for w, f in zip(a, b)] for a, b in zip(weights, kept)]
        put("dropout_mask", kept)
        put("dropped_weights", dropped)
        contexts.append(product(dropped, bands[2]))
        put("contexts", contexts[-1])
    if session.get("merge_heads", "concatenate") == "concatenate":
        merged = [sum((contexts[h][i] for h in range(n_heads)), []) for i in range(n)]
    else:
        flat = [v for context in contexts for row in context for v in row]
        merged = [flat[i * d_out:(i + 1) * d_out] for i in range(n)]
    stages["concatenated"] = merged
    stages["output"] = project(merged, p["output"]) if p and p.get("output") else merged
    return stages


def plain(number):
    number = float(number)
    return str(number) if np.isnan(number) or np.isinf(number) else number


def write(name, session):
    x, given = session["embeddings"], session.get("dropout", {}).get("mask")
    if isinstance(x[0][0], list):
        stages = {f"sequence{s}/{stage}": m for s in range(len(x))
                  for stage, m in attend(session, x[s], given[s] if given else None).items()}
    else:
        stages = attend(session, x, given)
    stages = {stage: [[plain(v) for v in row] for row in m] for stage, m in stages.items()}
    folder = FIXTURES / "sessions"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(session, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / f"{name}.expected.json").write_text(json.dumps(stages) + "\n", encoding="utf-8")


def main():
    rng = np.random.default_rng(20240229)

    def numbers(*shape):
        return rng.normal(size=shape).round(4).tolist()

    def linear(d_in, d_out, bias):
        return {"weight": numbers(d_in, d_out), **({"bias": numbers(d_out)} if bias else {})}

    def projections(d_in, d_out, biases="", output=None):
        p = {name: linear(d_in, d_out, name[0] in biases) for name in ("query", "key", "value")}
        return {**p, **({"output": linear(d_out, d_out, output == "biased")} if output else {})}

    def kept(*shape):
        return rng.integers(0, 2, size=shape).tolist()

    journey = ["Your", "journey", "starts"]
    write("only_embeddings", {"attnscope": 1, "embeddings": numbers(4, 3)})
    write("null_projections_scale_none", {
        "attnscope": 1, "tokens": journey, "embeddings": numbers(3, 5), "projections": None, "scale": "none",
        "mask": {"causal": False}, "context_length": None})
    write("negative_infinity_biases_output", {
        "attnscope": 1, "tokens": journey, "embeddings": numbers(3, 3), "n_heads": 2, "context_length": 3,
        "projections": projections(3, 4, "qkv", "biased"), "view": {"head": 1, "stage": "weights"}})
    write("renormalise_query_bias", {
        "attnscope": 1, "tokens": journey, "embeddings": numbers(3, 4), "scale": "inverse_sqrt_d_model",
        "projections": projections(4, 6, "q", "plain"), "n_heads": 3, "mask": {"method": "renormalise"}})
    write("zero_after_softmax_key_bias", {
        "attnscope": 1, "embeddings": numbers(5, 2), "scale": 0.25, "projections": projections(2, 2, "k"),
        "mask": {"method": "zero_after_softmax", "cells": [[4, 4, False], [0, 4, True], [2, 0, False]]}})
    write("large_negative_value_bias", {
        "attnscope": 1, "embeddings": numbers(4, 3), "scale": -1.5, "projections": projections(3, 4, "v"), "n_heads": 4,
        "mask": {"causal": True, "method": "large_negative", "cells": [[0, 0, False], [1, 2, True]]}})
    write("uniform_scores", {
        "attnscope": 1, "embeddings": numbers(6, 2), "scores": "uniform", "mask": {"causal": True}})
    write("reshape_without_transpose", {
        "attnscope": 1, "embeddings": numbers(5, 3), "projections": projections(3, 6, "", "biased"), "n_heads": 3,
        "merge_heads": "reshape_without_transpose"})
    empty = [[0, 0, False], [2, 0, False], [2, 1, False], [2, 2, False]]
    for method in ("negative_infinity", "renormalise", "zero_after_softmax"):
        for rows in ("nan", "zeros"):
            write(f"empty_rows_{method}_{rows}", {
                "attnscope": 1, "tokens": journey, "embeddings": numbers(3, 2), "n_heads": 2,
                "mask": {"method": method, "empty_rows": rows, "cells": empty}})
    write("given_dropout", {
        "attnscope": 1, "embeddings": numbers(4, 4), "projections": projections(4, 4, "qk"), "n_heads": 2,
        "dropout": {"rate": 0.3, "seed": 18446744073709551615, "stream": "mkl", "mask": kept(2, 4, 4)}})
    write("dropout_in_evaluation", {
        "attnscope": 1, "embeddings": numbers(3, 4), "dropout": {"rate": 0.5, "training": False, "mask": kept(1, 3, 3)}})
    write("dropout_of_everything", {
        "attnscope": 1, "embeddings": numbers(3, 2), "dropout": {"rate": 1, "mask": [[[0] * 3] * 3]}})
    write("batch", {
        "attnscope": 1, "tokens": [["a", "b", "c"], ["x, y", "\"q\"", "é\n"]], "embeddings": numbers(2, 3, 4),
        "projections": projections(4, 4, "qkv", "biased"), "n_heads": 2, "merge_heads": "reshape_without_transpose",
        "mask": {"method": "renormalise", "cells": [[0, 2, True]]},
        "dropout": {"rate": 0.25, "mask": kept(2, 2, 3, 3)}})
    write("batch_of_one_text", {
        "attnscope": 1, "tokens": ["a", "b"], "embeddings": numbers(3, 2, 2), "scale": 3})

    (FIXTURES / "formats").mkdir(exist_ok=True)
    np.save(FIXTURES / "formats" / "two_by_three.npy", np.array([[1.5, -0.0, -np.inf], [0.1, 1e300, 5e-324]]))


if __name__ == "__main__":
    main()
