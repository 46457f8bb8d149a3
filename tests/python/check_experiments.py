"""Runs the programs of experiments, ablated heads, edited layers and patches of small models, and compares what they print with `attnscope predict`
and `attnscope patch`, and with a pass of the package's engine whose edited layer `attnscope export` has computed. With TransformerLens if it is installed.

usage: check_experiments.py ATTNSCOPE    exit status: 0 equal, 1 different, 77 PyTorch, transformers or NumPy is missing
"""

import contextlib
import io
import json
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy
    import torch
    import transformers
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "python"))
MODELS = HERE.parent / "fixtures/transformer"
NAMES = ["gpt2", "llama", "mistral", "qwen3", "gemma2", "gpt_neox", "bloom", "cohere2", "bert"]
LENS = ["gpt2", "llama", "qwen3", "gpt_neox"]
LAYER, OFF = 1, [1, 0]
transformers.logging.set_verbosity_error()


def ask(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def printed(script):
    """Runs a program; returns the logit differences after the first prompt, the second, and with edits, and what is recovered, or []; and its rows:
    position, token, probability, logit, probability without edits."""
    compile(script.read_text(encoding="utf-8"), script, "exec")
    output = io.StringIO()
    grad = torch.is_grad_enabled()
    with contextlib.redirect_stdout(output):
        runpy.run_path(str(script))
    torch.set_grad_enabled(grad)
    lines = output.getvalue().splitlines()
    header = next(k for k, line in enumerate(lines) if line.startswith("position\t"))
    differences = [float(x) for line in lines[1:header] for x in line.split("\t")[1:]]
    return differences, [(int(p), json.loads(t), *map(float, rest)) for p, t, *rest in (line.split("\t") for line in lines[header + 1 :])]


def compare(rows, expected, what):
    """expected: probability, logit and probability without edits, by position and ID, the most probable first."""
    assert len(rows) == len(expected), f"{what}: {len(rows)} rows instead of {len(expected)}"
    worst = 0.0
    for row, right in zip(rows, expected):
        worst = max(worst, *(abs(a - b) for a, b in zip(row[2:], right) if b is not None))
    assert worst < 2e-5, f"{what}: differs by {worst:.1e}"
    return worst


def layer_session(program, folder, text):
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "layer.json"
        ask(program, "session", folder, "--text", text, "--layer", LAYER, "--out", path)
        return json.loads(path.read_text(encoding="utf-8"))


def edited_session(layer):
    """Returns the layer with changed numbers of projections and of a stage, another scale, a hidden cell and an ablated head, and the edit of a saved experiment."""
    layer, weights = json.loads(json.dumps(layer)), layer["projections"]
    changes = {"query": [[1, 2, 0.75]], "key": [[3, 0, -0.5], [0, 1, 0.25]], "value": [[2, 2, 0.125]], "output": [[0, 3, 0.5]]}
    for name, cells in changes.items():
        for i, j, number in cells:
            layer["projections"][name]["weight"][i][j] = number
    layer["embeddings"][1][2] = 1.5
    layer["scale"] = 0.4
    layer["given"] = {"cells": [{"stage": "weights", "head": 1, "row": 2, "column": 1, "value": 0.5}]}
    rules = {k: v for k, v in layer.items() if k not in ("view", "heads_off")}
    n = len(layer["tokens"])
    rules["tokens"], rules["embeddings"] = [str(i) for i in range(n)], [[0]] * n
    rules["projections"] = {k: {"weight": [[0]] * len(w["weight"]) if k == "output" else [[0] * len(w["weight"][0])], "bias": None} for k, w in weights.items()}
    rules.pop("normalise", None)
    edit = {
        "layer": LAYER, "words": ["some \"numbers\""], "inputs": [[1, 2, 1.5]],
        "projections": {k: {"weight": {"cells": changes[k]}, "bias": "unchanged" if weights[k].get("bias") is not None else None} for k in weights},
        "keeps_norm": True, "rules": rules,
    }  # fmt: skip
    layer["heads_off"] = [OFF[1]]
    return layer, edit


def fingerprint(file):
    begin, value = file.read_bytes()[: 1 << 20], 0xCBF29CE484222325
    for byte in begin:
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return file.stat().st_size, f"{value:016x}"


def check_patches(program, folder, script, text, library):
    """Patches from a prompt into one of as many tokens, and into a longer one. Returns the largest difference."""
    other, longer = " the".join(text.rsplit(" ferry", 1)), " the the".join(text.rsplit(" the", 1))
    prompts = [other] if folder.name == "mistral" else [other, longer]  # whose window ends behind the inserted word
    return max(check_prompts(program, folder, script, text, corrupt, library) for corrupt in prompts)


def check_prompts(program, folder, script, text, corrupt, library):
    """One patch at a time against the maps of `attnscope patch`; then several whose result is known. Returns the largest difference."""
    tokens, others = ([t["id"] for t in json.loads(ask(program, "tokens", folder, "--text", t, "--json"))["tokens"]] for t in (text, corrupt))
    position = next(i for i, pair in enumerate(zip(tokens, others)) if len(set(pair)) == 2)
    position += len(others) - len(tokens)  # behind the token that the other has not
    worst = 0.0

    def run(patches, off=()):
        size, begin = fingerprint(next(f for f in (folder / "model.safetensors", folder / "model.safetensors.index.json") if f.exists()))
        whole = {
            "model": folder.name, "bytes": size, "begin": begin, "text": corrupt, "made": [], "layer": 0, "heads_off": list(off), "edits": [],
            "first": {"text": text, "answer": "f", "against": "a"}, "patches": patches,
        }  # fmt: skip
        session = folder.parent / "patches.json"
        session.write_text(json.dumps({"attnscope": 1, "whole_model": whole}), encoding="utf-8")
        ask(program, "program", session, "--library", library, "--out", script)
        return printed(script)[0]

    for k, part in enumerate(("head", "pattern", "queries", "keys", "values", "attention", "mlp", "residual")):
        if part == "pattern" and len(tokens) != len(others):
            continue
        by_position = k % 2 == 1
        found = json.loads(
            ask(program, "patch", folder, "--clean", text, "--corrupt", corrupt, "--answer", "f", "--against", "a", "--what", part, "--json",
                *(["--positions"] if by_position else []))
        )  # fmt: skip
        layer, index = 1, 0 if k > 4 else k % 2
        patch = {"layer": layer, "part": part, "index": index}
        recovered = numpy.array(found["recovered"], float)
        if by_position:
            patch["position"] = position
            expected = recovered[layer * (len(recovered) // n_layers(folder)) + index][position]
        else:
            expected = recovered[layer][index]
        before, after, _, share = run([patch])
        off = max(abs(before - found["clean"]), abs(after - found["corrupt"]), abs(share - expected) * abs(before - after))
        assert off < 3e-5, f"{folder.name}, {library}, {part}: {before, after, share} instead of {found['clean'], found['corrupt'], expected}"
        worst = max(worst, off)
    everything = [{"layer": 1, "part": "residual", "index": 0}, {"layer": 0, "part": "keys", "index": 0}, {"layer": 1, "part": "mlp", "index": 0, "position": 2}]
    if len(tokens) != len(others):
        return worst
    before, _, now, share = run(everything)
    assert abs(now - before) < 3e-5 and abs(share - 1) < 1e-4, f"{folder.name}, {library}: {before}, {now}, {share}"
    patched, off = ([{"layer": 1, "part": p, "index": 1} for p in ("head", "pattern")], [OFF[:1] + [1]])
    assert abs(run(patched, off)[2] - run([], off)[2]) < 3e-5, f"{folder.name}, {library}: an ablated head is patched"
    return worst


def n_layers(folder):
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return next(config[k] for k in ("num_hidden_layers", "n_layer", "n_layers") if k in config)


def expected_of(model, ids, logits, plain, places, n=10):
    rows = []
    for row in places:
        now, before = (torch.as_tensor(x[row], dtype=torch.float64).softmax(-1) for x in (logits, plain))
        for token in now.topk(n).indices.tolist():
            rows.append((float(now[token]), float(logits[row][token]), float(before[token])))
    return rows


def check(program, name, directory):
    from attnscope.engine import Edits, Engine
    from attnscope.errors import AttnscopeError

    folder, script = directory / name, directory / f"{name}.py"
    shutil.copytree(MODELS / name, folder)
    text = "the ferry [MASK] the captain" if name == "bert" else (folder / "text.txt").read_text(encoding="utf-8")
    libraries = ["transformers"]
    with contextlib.suppress(ImportError):
        import transformer_lens  # noqa: F401

        libraries += ["transformer-lens"] * (name in LENS)

    asked = json.loads(ask(program, "predict", folder, "--text", text, "--off", "1.0", "--json"))
    next_tokens = [(t["probability"], t["logit"], None) for t in asked["next"]]
    layer, edit = edited_session(layer_session(program, folder, text))
    (directory / "layer.json").write_text(json.dumps(layer), encoding="utf-8")
    ask(program, "export", directory / "layer.json", "--stages", "output", "--out", directory / "layer.npz")
    output = torch.tensor(numpy.load(directory / "layer.npz")["output"], dtype=torch.float32)
    output = output[0] if output.ndim == 3 else output
    kind = transformers.AutoModelForMaskedLM if name == "bert" else transformers.AutoModelForCausalLM
    try:
        engine = Engine(kind.from_pretrained(folder, dtype=torch.float32).eval())
    except AttnscopeError as error:  # as of Bloom
        ask(program, "program", folder, "--text", text, "--off", "1.0", "--out", script)
        worst = compare(printed(script)[1], next_tokens, name)
        return print(f"{name}: {worst:.1e} and {check_patches(program, folder, script, text, 'transformers'):.1e} of patches; {error}")
    ids = torch.tensor([t["id"] for t in asked["tokens"]])
    with torch.no_grad():
        plain, now = (engine.head(engine.run(ids, edits).residuals[-1][0]) for edits in ({}, {LAYER: Edits(frozenset(), output)}))
    places = sorted({t.get("position", len(ids) - 1) for t in asked["next"]})  # of masked tokens, or the last one
    size, begin = fingerprint(next(f for f in (folder / "model.safetensors", folder / "model.safetensors.index.json") if f.exists()))
    session = {"attnscope": 1, "whole_model": {"model": name, "bytes": size, "begin": begin, "text": text, "made": [], "layer": 0, "heads_off": [OFF], "edits": [edit]}}
    (directory / f"{name}.json").write_text(json.dumps(session), encoding="utf-8")

    for library in libraries:
        ask(program, "program", folder, "--text", text, "--off", "1.0", "--library", library, "--out", script)
        worst = compare(printed(script)[1], next_tokens, f"{name}, {library}, an ablated head")
        ask(program, "program", directory / f"{name}.json", "--library", library, "--out", script)
        again = compare(printed(script)[1], expected_of(engine, ids, now.numpy(), plain.numpy(), places), f"{name}, {library}, an edited layer")
        patched = check_patches(program, folder, script, text, library)
        moved = float((now - plain).abs().max())
        print(f"{name} with {library}: {worst:.1e}, {again:.1e} and {patched:.1e} of patches; the edit moves logits by {moved:.2f}")


def main(program):
    with tempfile.TemporaryDirectory() as name:
        for model in NAMES:
            check(program, model, Path(name))


if __name__ == "__main__":
    main(sys.argv[1])
