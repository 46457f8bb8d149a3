"""Compares sources of scores, patches and composition of the tiny GPT with a forward pass in NumPy's float64.

usage: check_circuits.py ATTNSCOPE    exit status: 0 equal, 1 different, 77 NumPy is missing
"""

import json
import subprocess
import sys
from pathlib import Path

try:
    import numpy as np
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

FOLDER = Path(__file__).resolve().parents[2] / "assets/examples/tiny_gpt"
CLEAN, CORRUPT = "egg jam fig and egg jam f", "egg jam food and egg jam f"
TOLERANCE = 1e-9
L, H, D = 4, 4, 128
d = D // H

raw = (FOLDER / "model.fp16.safetensors").read_bytes()
n = int.from_bytes(raw[:8], "little")
W = {
    name.removeprefix("transformer."): np.frombuffer(raw[8 + n + t["data_offsets"][0] : 8 + n + t["data_offsets"][1]], "<f2").reshape(t["shape"]).astype(float)
    for name, t in json.loads(raw[8 : 8 + n]).items()
    if name != "__metadata__"
}


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def spread(x):
    return np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def norm(x, name):
    return (x - x.mean(-1, keepdims=True)) / spread(x) * W[name + ".weight"] + W[name + ".bias"]


def run(ids, change=lambda name, x: x):
    """Returns one pass; change(name, x) may replace what is computed: "token", "mlp 2", "head 2 0", "queries 2 0", "stream 2" …"""
    n_tokens = len(ids)
    made = {}

    def put(name, x):
        made[name] = change(name, x)
        return made[name]

    x = put("token", W["wte.weight"][ids]) + put("position", W["wpe.weight"][:n_tokens])
    for l in range(L):
        p = f"h.{l}."
        x = put(f"stream {l}", x)
        qkv = norm(x, p + "ln_1") @ W[p + "attn.c_attn.weight"] + W[p + "attn.c_attn.bias"]
        attention = W[p + "attn.c_proj.bias"][None].repeat(n_tokens, 0)
        for h in range(H):
            q, k, v = (put(f"{name} {l} {h}", qkv[:, i * D + h * d : i * D + (h + 1) * d]) for i, name in enumerate(("queries", "keys", "values")))
            scores = put(f"scores {l} {h}", np.where(np.tri(n_tokens) > 0, q @ k.T / np.sqrt(d), -np.inf))
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            weights = put(f"pattern {l} {h}", weights / weights.sum(-1, keepdims=True))
            attention = attention + put(f"head {l} {h}", weights @ v @ W[p + "attn.c_proj.weight"][h * d : (h + 1) * d])
        x = x + put(f"attention {l} 0", attention)
        hidden = gelu(norm(x, p + "ln_2") @ W[p + "mlp.c_fc.weight"] + W[p + "mlp.c_fc.bias"])
        x = x + put(f"mlp {l} 0", hidden @ W[p + "mlp.c_proj.weight"] + W[p + "mlp.c_proj.bias"])
    made["logits"] = norm(x, "ln_f") @ W["wte.weight"].T
    return made


def above_row_mean(made, l, h, i, j):
    scores = made[f"scores {l} {h}"]
    return scores[i, j] - scores[i, : i + 1].mean()


def sources(made, l, h, i, j):
    """Returns the names of the parts and [query part, key part]: the score as a sum, and the same less its mean over the keys."""
    p = f"h.{l}."
    parts = [("token", made["token"]), ("position", made["position"])]
    for before in range(l):
        parts += [(f"head {before}.{k}", made[f"head {before} {k}"]) for k in range(H)]
        parts += [(f"output bias {before}", W[f"h.{before}.attn.c_proj.bias"][None].repeat(len(made["token"]), 0))]
        parts += [(f"MLP {before}", made[f"mlp {before} 0"])]
    scale = spread(made[f"stream {l}"])
    weight, bias = W[p + "attn.c_attn.weight"], W[p + "attn.c_attn.bias"]

    def side(first, row):
        own = slice(first + h * d, first + (h + 1) * d)
        rows = [(x - x.mean(-1, keepdims=True))[row] / scale[row] * W[p + "ln_1.weight"] @ weight[:, own] for _, x in parts]
        return np.array([*rows, W[p + "ln_1.bias"] @ weight[:, own] + bias[own]])

    query = side(0, i)
    pairs = [query @ side(D, key).T / np.sqrt(d) for key in range(i + 1)]
    return [name for name, _ in parts] + ["bias"], pairs[j], pairs[j] - np.mean(pairs, 0)


def ask(*arguments):
    return json.loads(subprocess.run([*map(str, arguments), "--json"], check=True, capture_output=True, text=True).stdout)


def close(got, expected, what, tolerance=TOLERANCE):
    assert np.abs(np.asarray(got, float) - expected).max() <= tolerance, f"{what}: {got} instead of {expected}"


def check_score(program, ids, l, h, i, j):
    """Returns the totals of the heads."""
    base = run(ids)
    answer = ask(program, "why", FOLDER, "--text", CLEAN, "--layer", l, "--head", h, "--query", i, "--key", j)
    place = f"head {l}.{h}, {i} to {j}"
    close(answer["score"], base[f"scores {l} {h}"][i, j], place)
    close(answer["weight"], base[f"pattern {l} {h}"][i, j], place)
    close(answer["above_row_mean"], above_row_mean(base, l, h, i, j), place)
    names, direct, above = sources(base, l, h, i, j)
    assert len(answer["pairs"]) == len(names) ** 2
    for pair in answer["pairs"]:
        cell = names.index(pair["query"]), names.index(pair["key"])
        close([pair["direct"], pair["direct_above_row_mean"]], [direct[cell], above[cell]], f"{place}: {pair}")
    close(sum(pair["direct"] for pair in answer["pairs"]), answer["score"], place)
    totals = {}
    for source in answer["sources"]:
        kind, _, number = source["name"].partition(" ")
        name = f"head {number.replace('.', ' ')}" if kind == "head" else f"mlp {number} 0" if kind == "MLP" else kind
        without = run(ids, lambda part, x, name=name: 0 * x if part == name else x)
        close(source["total"], answer["above_row_mean"] - above_row_mean(without, l, h, i, j), f"{place}: total of {name}")
        close(source["weight_without"], without[f"pattern {l} {h}"][i, j], f"{place}: weight without {name}")
        if "read" in source:
            row = base["pattern " + number.replace(".", " ")][j]
            close([source["read"], source["read_weight"]], [row.argmax(), row.max()], f"{place}: read by {name}")
        totals[source["name"]] = source["total"]
    assert len(totals) == 2 + l * (H + 1)
    return answer, totals


def check_patches(program, clean, corrupt, answer, against):
    """Returns what patches of heads recover."""
    right, wrong = run(clean), run(corrupt)
    found = {}

    def difference(made):
        return made["logits"][-1, answer] - made["logits"][-1, against]

    for what in ("head", "pattern", "queries", "keys", "values", "attention", "mlp", "residual"):
        got = ask(program, "patch", FOLDER, "--clean", CLEAN, "--corrupt", CORRUPT, "--answer", "ig", "--against", "ood", "--what", what)
        close([got["clean"], got["corrupt"]], [difference(right), difference(wrong)], what)
        expected = np.zeros((L, {"attention": 1, "mlp": 1, "residual": len(clean)}.get(what, H)))
        for l, k in np.ndindex(expected.shape):

            def change(name, x, l=l, k=k):
                if what == "residual" and name == f"stream {l}":
                    x = x.copy()
                    x[k] = right[name][k]
                return right[name] if name == f"{what} {l} {k}" else x

            expected[l, k] = (difference(run(corrupt, change)) - difference(wrong)) / (difference(right) - difference(wrong))
        close(got["recovered"], expected, what)
        found[what] = expected
    return got["clean"], got["corrupt"], found["head"]


def check_positions_and_paths(program, clean, corrupt, answer, against):
    """One row at a time, and a head's output that reaches only the queries, keys or values of a later one."""
    right, wrong = run(clean), run(corrupt)

    def share(made):
        now, a, b = (m["logits"][-1, answer] - m["logits"][-1, against] for m in (made, wrong, right))
        return (now - a) / (b - a)

    asked = ["patch", FOLDER, "--clean", CLEAN, "--corrupt", CORRUPT, "--answer", "ig", "--against", "ood"]
    for what in ("head", "keys", "pattern", "mlp"):
        got = ask(program, *asked, "--what", what, "--positions")["recovered"]
        n_parts = len(got) // L
        for l, k, i in ((0, 2 % n_parts, 6), (2, 0, 13), (2, 3 % n_parts, 7)):

            def change(name, x, l=l, k=k, i=i):
                if name != f"{what} {l} {k}":
                    return x
                x = x.copy()
                x[i] = right[name][i]
                return x

            close(got[l * n_parts + k][i], share(run(corrupt, change)), f"{what} {l}.{k} at {i}")
    for what, h in (("queries", 0), ("keys", 3), ("values", 2)):
        got = ask(program, *asked, "--through", f"{what}:2.{h}")["recovered"]
        assert len(got) == 2
        for l, k in np.ndindex(2, H):
            sent = f"head {l} {k}"
            frozen = {f"attention {m} 0" for m in range(l + 1, 2)}
            reached = run(corrupt, lambda name, x, sent=sent, frozen=frozen: right[name] if name == sent else wrong[name] if name in frozen else x)
            place = f"{what} 2 {h}"
            made = run(corrupt, lambda name, x, place=place, reached=reached: reached[name] if name == place else x)
            close(got[l][k], share(made), f"{sent} through {place}")


def check_sums(program, ids, answer):
    made = run(ids)
    got = ask(program, "why", FOLDER, "--text", CLEAN, "--token", "ig")
    close(got["value"], made["logits"][-1, answer], "logit")
    u = W["wte.weight"][answer] * W["ln_f.weight"]
    last = made["stream 3"] + made["attention 3 0"] + made["mlp 3 0"]
    direction = (u - u.mean()) / spread(last[-1])
    parts = {part["name"]: part["direct"] for part in got["parts"]}
    close(sum(parts.values()), got["value"], "sum of the logit")
    close(parts["head 2.0"], made["head 2 0"][-1] @ direction, "head 2.0 in the logit")
    by_token = made["pattern 2 0"][-1] * (made["values 2 0"] @ W["h.2.attn.c_proj.weight"][:d] @ direction)
    close(got["heads"][8]["by_token"], by_token, "head 2.0 by token")
    got = ask(program, "why", FOLDER, "--text", CLEAN, "--layer", 2, "--head", 0, "--query", 13)
    rows = made["pattern 2 0"][-1][:, None] * made["values 2 0"]
    close(got["value"], np.linalg.norm(rows.sum(0)), "context vector")
    close({part["name"]: part["direct"] for part in got["parts"]}["6 'ig'"], rows[6] @ rows.sum(0) / got["value"], "its largest part")


def check_composition(program):
    got = ask(program, "composition", FOLDER)
    assert got["heads"] == [f"{l}.{h}" for l in range(L) for h in range(H)]

    def weights(l, h):
        w = W[f"h.{l}.attn.c_attn.weight"] * W[f"h.{l}.ln_1.weight"][:, None]
        w = w - w.mean(0)
        own = slice(h * d, (h + 1) * d)
        return w[:, :D][:, own], w[:, D : 2 * D][:, own], w[:, 2 * D :][:, own], W[f"h.{l}.attn.c_proj.weight"][own]

    def share(written, read):
        return np.linalg.norm(written @ read) / np.linalg.norm(written) / np.linalg.norm(read)

    for a, b in np.ndindex(L * H, L * H):
        cells = [got[name][a][b] for name in ("queries", "keys", "values")]
        if a // H >= b // H:
            assert cells == [None] * 3
            continue
        _, _, v, o = weights(*divmod(a, H))
        query, key, value, output = weights(*divmod(b, H))
        close(cells, [share(v @ o, query @ key.T), share(v @ o, key @ query.T), share(v @ o, value @ output)], f"composition of {a} and {b}")


def main(program):
    vocabulary = json.loads((FOLDER / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    words = ["e", "g", "g", "Ġj", "am", "Ġf", "ig", "Ġand", "Ġe", "g", "g", "Ġj", "am", "Ġf"]
    clean = [vocabulary[word] for word in words]
    corrupt = [*clean[:6], vocabulary["ood"], *clean[7:]]

    # Known circuit: head 0.2 moves a token to the next position, MLP 0 reads it there, heads 2.0 and 2.3 look for it.
    answer, totals = check_score(program, clean, 2, 0, 13, 6)
    close([answer["score"], answer["above_row_mean"], totals["head 0.2"]], [8.5662, 6.8209, 5.0228], "induction", 5e-5)
    largest = max(answer["pairs"], key=lambda pair: pair["direct"])
    assert (largest["query"], largest["key"]) == ("MLP 0", "MLP 0")
    close(largest["direct"], 9.054, "MLP 0 and MLP 0", 5e-4)
    _, totals = check_score(program, clean, 2, 3, 13, 6)
    close(totals["head 0.2"], 3.725, "induction of 2.3", 5e-4)
    answer, _ = check_score(program, clean, 0, 2, 13, 12)
    assert (answer["pairs"][0]["query"], answer["pairs"][0]["key"]) == ("position", "position")
    check_score(program, clean, 3, 1, 9, 9)
    from_clean, from_corrupt, heads = check_patches(program, clean, corrupt, vocabulary["ig"], vocabulary["ood"])
    close([from_clean, from_corrupt], [6.539, -13.7287], "logit differences", 5e-4)
    close([heads[2, 0], heads[2, 3], heads[2, 2], heads[1, 2]], [0.363, 0.357, 0.137, 0.052], "recovered", 5e-4)
    check_positions_and_paths(program, clean, corrupt, vocabulary["ig"], vocabulary["ood"])
    check_sums(program, clean, vocabulary["ig"])
    check_composition(program)


if __name__ == "__main__":
    main(sys.argv[1])
