#!/usr/bin/env python3
"""Writes fixtures/sessions: sessions with every option, and the expected numbers of every stage.

tests/python/check_attention.py computes the stages from the paper's formulas in the machine's longest float (64 bits of
mantissa on x86), sharing no code with the program. NAME.json is the session, NAME.expected.json maps "<stage>",
"<stage>.head<h>" or, in a batch, "sequence<s>/<stage>.head<h>" to rows, with "nan" and "-inf", which JSON lacks, as text.
Also writes fixtures/formats/two_by_three.npy with NumPy.

    python3 make_sessions.py
"""
import json
import pathlib
import sys

import numpy as np

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures"
sys.path.insert(0, str(FIXTURES.parent / "python"))
import check_attention  # noqa: E402

check_attention.REAL = np.longdouble


def stages_of(session, sequence):
    """Yields each matrix with its name."""
    with np.errstate(all="ignore"):
        stages = check_attention.attention(session, sequence, check_attention.dropout_masks(session, sequence))
    heads = [name for name, value in stages.items() if np.ndim(value) == 3]
    yield from ((name, stages[name]) for name in ("embeddings", "mask"))
    yield from ((f"{name}.head{h}", stages[name][h]) for h in range(session.get("n_heads", 1)) for name in heads)
    yield from ((name, stages[name]) for name in ("concatenated", "output"))


def plain(number):
    number = float(number)
    return str(number) if np.isnan(number) or np.isinf(number) else number


def write(name, session):
    n = len(check_attention.matrices(session["embeddings"]))
    batch = isinstance(session["embeddings"][0][0], list)
    stages = {(f"sequence{s}/" if batch else "") + stage: [[plain(v) for v in row] for row in m]
              for s in range(n) for stage, m in stages_of(session, s)}
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
