"""Validates sessions against docs/session.schema.json, and compares its verdict with the program's.

    schema.py PROJECT PROGRAM     exit status: 0 good, 1 different, 77 jsonschema or NumPy is missing

Every session of the fixtures and of the program and the Python package must be valid. Then single values are replaced, removed or
added, and the sessions in the C++ tests are read: the program must refuse what the schema refuses, and the schema what the
program refuses for its type or range.
"""
import concurrent.futures
import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import jsonschema
    import numpy
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

PROJECT, PROGRAM = pathlib.Path(sys.argv[1]).resolve(), str(pathlib.Path(sys.argv[2]).resolve())
sys.path.insert(0, str(PROJECT / "tests/python"))
from any_session import session as any_session  # noqa: E402

SCHEMA = json.loads((PROJECT / "docs/session.schema.json").read_text())
RANDOM_SESSIONS = 100
# Complaints about values that fit the format but not each other, which no schema can express.
CONSISTENCY = re.compile(
    r"as in the first row|one for each|as of the stage before|divides|d_head|each (cell|key|head) once|below \d|at most \d+ keys"
    r"|one of the lists|does not lead to|a stage that the model has|another stage|more than \d+, got|above low|\(.*\), got \d+×"
    r"|even number|as many queries|cannot be (read|opened)|no such file|known width|cells? of \d|matrix of|as there are no projections"
    r"|has no|expected \d+ (columns|numbers|matrices|rows)|expected \d+×\d+|\bgot both\b|does not tell|of each position|tokens\[0\]: expected a string"
    r"|does not lie beside|\(context_length\)|a factor for each of|as many factors as|from 0 to \d+, got \d+$")  # the last: 1e3, which the program does not read as an integer


def program(*arguments, **options):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, **options)


def complaint(document, folder, number):
    """Returns the program's complaint about a session, or "" if it accepts it."""
    path = pathlib.Path(folder) / f"{number}.json"
    path.write_text(json.dumps(document))
    done = program("session", str(path), "--out", str(path.with_suffix(".out")))
    assert done.returncode in (0, 1), done
    path.unlink()
    return done.stderr.replace(str(path), "s").strip() if done.returncode else ""


def fixtures():
    for path in sorted((PROJECT / "tests/fixtures").rglob("*.json")) + sorted((PROJECT / "assets/examples").rglob("*.json")):
        if path.stat().st_size > 300_000:
            continue
        document = json.loads(path.read_text())
        if isinstance(document, dict) and "session" in document:
            document = document["session"]
        if isinstance(document, dict) and "attnscope" in document and "damaged" not in path.name:
            yield str(path.relative_to(PROJECT)), document


def written(folder):
    """Returns sessions that the program writes: presets, one with each mistake, and layers of checkpoints."""
    mistakes = [line.split("\t")[0] for line in program("mistakes").stdout.splitlines()]
    presets = [line.split("\t")[0] for line in program("presets").stdout.splitlines()]
    commands = [["--preset", name] for name in presets]
    commands += [["--preset", preset, "--mistake", name] for name in mistakes for preset in ("multi-head", "modern-llama", "modern-sink")]
    table = [line.split() for line in (PROJECT / "tests/cli/session_hashes.txt").read_text().splitlines()]
    commands += [[str(PROJECT / "tests/fixtures" / words[0]), *words[1:-1]] for words in table if words[-1] != "refused"][::4]

    def write(numbered):
        number, arguments = numbered
        out = pathlib.Path(folder) / f"written{number}.json"
        done = program("session", *arguments, "--out", str(out))
        if done.returncode == 1 and "--mistake" in arguments:
            return None  # the mistake does not apply to this preset
        assert done.returncode == 0, (arguments, done.stderr)
        return " ".join(arguments), out

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for made in filter(None, pool.map(write, enumerate(commands))):
            if made[1].stat().st_size <= 300_000:
                yield made[0], json.loads(made[1].read_text())
            made[1].unlink()


def written_by_python(folder):
    """Returns sessions that the Python package writes: queries, keys and values with every rule, and stages alone."""
    sys.path.insert(0, str(PROJECT / "python"))
    from attnscope.attention import of_stages
    from attnscope.masks import Mask
    random = numpy.random.default_rng(5)
    q, k, v = random.normal(size=(3, 2, 5, 4))
    weights = numpy.full((2, 5, 5), 0.2)
    options = [{"causal": True}, {"mask": Mask(causal=True, window=(2, 0))}, {"scale": 0.3, "softcap": 20.0}, {"sinks": [0.5, -1.0], "causal": True},
               {"mask": numpy.tril(numpy.ones((5, 5), bool), 1)}, {"mask": numpy.where(numpy.eye(5) > 0, -numpy.inf, 0.5)}, {"tokens": list("abcde")}]
    attentions = [of_stages(q, k, v, **chosen) for chosen in options]
    attentions += [of_stages(q, k[:1], v[:1], causal=True), of_stages(q, k[:, :3], v[:, :3]), of_stages(weights=weights)]
    for number, attention in enumerate(attentions):
        path = pathlib.Path(folder) / f"python{number}.json"
        attention.save(path)
        yield f"python {number}", json.loads(path.read_text())


def of_tests():
    """Returns the sessions in the C++ tests, whole or as the members of one, most of them wrong."""
    small = {"embeddings": [[1, 2], [3, 4]]}
    for path in sorted((PROJECT / "tests").rglob("*.cpp")):
        text = path.read_text()
        for whole in re.findall(r'R"\((\{\s*"attnscope".*?\})\)"', text, re.S):
            yield path.name, whole, {}
        for test in re.split(r"\nTEST", text) if path.name == "session_errors_test.cpp" else ():
            for members in re.findall(r'\{R"\((".*?)\)",', test):
                yield path.name, "{" + members + "}", {"attnscope": 1, **(small if "expect_errors_in_small" in test else {})}


def parsed(text, members):
    """Returns the session as JSON, or None if it is none or is of a whole model, which the window opens."""
    try:
        document = {**members, **json.loads(text)}
    except ValueError:
        return None
    return None if "whole_model" in document else document


def with_everything():
    """Returns sessions that together have every key of the format."""
    x = [[1, 2, 3, 4], [0.5, 0, 1, -1], [2, 1, 0, 0.25]]
    square = [[float(i == j) for j in range(4)] for i in range(4)]
    linear = {"weight": square, "bias": [0, 1, 2, 3]}
    yield {
        "attnscope": 1, "tokens": ["a", "b", "c"], "embeddings": x,
        "projections": {"query": linear, "key": linear, "value": linear, "output": linear}, "n_heads": 2, "n_kv_heads": 2,
        "normalise": {"rule": "rms", "query": [1, 2], "key": [1, 1], "epsilon": 1e-6, "over": "head"},
        "positions": {"rotary": {"base": 100, "pairs": "halves", "dimensions": 2, "first": 3, "inverse_frequencies": [0.5],
                                 "scaling": {"rule": "llama3", "factor": 8, "low": 1, "high": 4, "original": 32}},
                      "relative": {"table": [[1, 2, 3, 4], [1, 2, 3, 4]], "max_distance": 9, "bidirectional": True}},
        "scores": "query_key", "scale": 0.5, "score_cap": 3, "score_bias": [[0, "-inf", 1], [0, 1, 2], [1, 1, 1]], "sink": [0, 1],
        "mask": {"causal": True, "method": "renormalise", "empty_rows": "zeros", "cells": [[0, 1, True]], "align": "last",
                 "window": [1, -1], "prefix": 1, "documents": [0, 0, 1], "hidden_keys": [2]},
        "dropout": {"rate": 0.5, "training": True, "seed": 7, "stream": "mkl", "rescale": True,
                    "mask": [[[1, 0, 1], [1, 1, 1], [0, 0, 1]]] * 2},
        "merge_heads": "concatenate", "context_length": 8, "mistakes": [
            "scale_twice", {"name": "rotary_off_by_one", "size": -1}, {"name": "rotary_missing", "sides": "k"},
            {"name": "rotary_base", "numbers": [500]}, {"name": "heads_interleaved", "form": "throughout"}],
        "given": {"cells": [{"stage": "weights", "head": 0, "row": 1, "column": 0, "value": "nan"}]},
        "departures": {"mask_diagonal": 1, "mask_transposed": False, "large_negative": -5, "dropout_place": "weights",
                       "precision": "float32", "product_inputs": "tf32", "sums_rounded": True, "softmax_precision": "bfloat16"},
        "heads_off": [1], "left_out": ["a norm"], "view": {"tab": "stages"},
    }
    yield {
        "attnscope": 1, "embeddings": [x, x], "key_embeddings": [x[:2], x[:2]], "key_tokens": ["k", "l"], "tokens": [["a", "b", "c"], ["d", "e", "f"]],
        "projections": {"query": linear, "key": linear, "value": linear, "output": None}, "n_heads": 2,
        "positions": {"alibi": {"slopes": [1, 0.5]}, "rotary": {"scaling": {"rule": "linear", "factor": 4}}},
        "normalise": {"rule": "rms", "query": [1, 2, 3, 4], "key": [1, 1, 1, 1], "over": "all_heads"},
        "mask": {"hidden_keys": [[0], []]}, "score_bias": [[[0, 1], [1, 2], [2, 3]]] * 2,
    }
    for scaling in ({"rule": "yarn", "factor": 4, "beta_slow": 1, "beta_fast": 32, "original": 8, "attention_factor": 1.25, "truncate": False},
                    {"rule": "yarn", "factor": 4, "original": 8}, {"rule": "dynamic", "factor": 2, "original": 2},
                    {"rule": "longrope", "short_factor": [1], "long_factor": [2], "original": 2, "attention_factor": 1.5}):
        yield {"attnscope": 1, "tokens": ["a", "b", "c"], "embeddings": x, "projections": {"query": linear, "key": linear, "value": linear, "output": None},
               "n_heads": 2, "positions": {"rotary": {"scaling": scaling}}}
    yield {"attnscope": 1, "given": {"queries": x, "keys": [x], "values": [[x]], "dropout_mask": [[1, 1, 1]] * 3}, "scale": "none"}
    yield {"attnscope": 1, "given": {"scores": [[[1, "inf"], [2, "-inf"]]]}, "scale": "none"}
    yield {"attnscope": 1, "embeddings": x, "departures": {
        "softmax_over": "queries", "split_heads": "interleaved", "merge_heads": "bands", "blocks": {"rule": "sum_not_rescaled", "size": 2},
        "query_offset": 1, "scores_swapped": True, "groups_tiled": False}}


def places(value, path=()):
    yield path
    if isinstance(value, list):  # one item represents a list of a single type
        value = dict(enumerate(value[:1] if len({type(item) for item in value}) == 1 else value))
    for key, member in value.items() if isinstance(value, dict) else ():
        if path[:1] != ("view",) and path + (key,) not in [("projections", "key"), ("projections", "value"), ("projections", "output")]:
            yield from places(member, (*path, key))


def changed(document, path, change):
    document = copy.deepcopy(document)
    if not path:
        return change(document)
    parent = document
    for key in path[:-1]:
        parent = parent[key]
    value = change(parent[path[-1]])
    if value is REMOVED:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return document


REMOVED = object()
REPLACEMENTS = [None, True, "no such word", -2, 0, 1.5, [], {}, [["x"]], REMOVED]


def mutations(document):
    for path in places(document):
        for value in REPLACEMENTS:
            if path or value is not REMOVED:
                yield path, changed(document, path, lambda _: value)
        yield path, changed(document, path, lambda old: {**old, "no_such_key": 1} if isinstance(old, dict) else [*old, *old] if isinstance(old, list) else [old])


def main():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    validator = jsonschema.Draft202012Validator(SCHEMA)
    found, counts = [], {"valid": 0, "refused by both": 0, "taken by both": 0, "refused for what does not fit": 0}

    def expect_valid(name, document):
        errors = sorted(validator.iter_errors(document), key=lambda error: len(error.path), reverse=True)
        counts["valid"] += not errors
        if errors:
            found.append(f"{name}: {list(errors[0].path)}: {errors[0].message[:200]}")

    for name, document in fixtures():
        expect_valid(name, document)
    random = numpy.random.default_rng(3)
    for number in range(RANDOM_SESSIONS):
        expect_valid(f"random {number}", any_session(random))
    with tempfile.TemporaryDirectory() as folder:
        for name, document in [*written(folder), *written_by_python(folder)]:
            expect_valid(name, document)
        cases = [(name, document) for name, text, members in of_tests() if (document := parsed(text, members))]
        assert len(cases) > 50, "the C++ tests have other sessions than are looked for here"
        for document in with_everything():
            expect_valid("with everything", document)
            assert not complaint(document, folder, 0), complaint(document, folder, 0)
            cases += mutations(document)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            complaints = pool.map(lambda case: complaint(case[1][1], folder, case[0]), enumerate(cases))
            for (path, document), said in zip(cases, complaints):
                errors = next(validator.iter_errors(document), None)
                if errors and not said:
                    found.append(f"taken by the program, refused by the schema: {path}: {errors.message[:120]}")
                elif said and not errors and not CONSISTENCY.search(said):
                    found.append(f"refused by the program alone: {path}: {said}")
                else:
                    counts["refused by both" if errors else "refused for what does not fit" if said else "taken by both"] += 1
    print("\n".join(found))
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
