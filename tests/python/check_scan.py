"""Compares a scan of 200 lines of text by the tiny GPT with the same measures in NumPy, merges it from parts, kills and resumes it, and
checks its folder against HeadVis's schema.

usage: check_scan.py ATTNSCOPE    exit status: 0 equal, 1 different, 77 NumPy is missing
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

try:
    import numpy as np
    from check_circuits import FOLDER, H, L, run
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

PROGRAM = sys.argv[1]
TOLERANCE = 1e-6
NAMES = ("previous_token", "first_token", "itself", "same_token", "induction", "entropy_bits", "distance")
DOCS = sorted((Path(__file__).resolve().parents[2] / "docs").glob("*.md"))
LINES = [line for path in DOCS for line in path.read_text("utf-8").splitlines() if 20 < len(line) < 140][:200]


def ask(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def scan(texts, *options):
    return ask("scan", FOLDER, "--texts", texts, "--json", *options)


def by_hand(lines):
    """Returns the means [layer, head, measure], and the strongest line of each head."""
    values = [[[[] for _ in NAMES] for _ in range(H)] for _ in range(L)]
    strength = np.zeros((L, H, len(lines)))
    for number, line in enumerate(lines):
        ids = [token["id"] for token in ask("tokens", FOLDER, f"--text={line}", "--json")["tokens"]]
        made, n = run(ids), len(ids)
        for l in range(L):
            for h in range(H):
                w, of = made[f"pattern {l} {h}"], values[l][h]
                for i in range(n):
                    earlier = [j for j in range(i) if ids[j] == ids[i]]
                    if i:
                        of[0].append(w[i, i - 1])
                        of[1].append(w[i, 0])
                    of[2].append(w[i, i])
                    if earlier:
                        of[3].append(sum(w[i, j] for j in earlier))
                        of[4].append(sum(w[i, j + 1] for j in earlier if j + 1 < i))
                    of[5].append(-sum(x * np.log2(x) for x in w[i] if x > 0))
                    of[6].append(sum(w[i, j] * abs(i - j) for j in range(n)))
                rest = w[1:, 1:] * (1 - np.eye(n - 1))
                strength[l, h, number] = rest.max(initial=0)
    return np.array([[[np.mean(of) for of in head] for head in layer] for layer in values]), strength


def numbers(found):
    return np.array([head[name] for head in found["heads"] for name in NAMES]).reshape(L, H, len(NAMES))


def check_schema(folder, found):
    """The docstrings of data_pipeline.py of github.com/anthropics/headvis are the schema."""
    config = json.loads((folder / "config.json").read_text())
    types = {"model_name": str, "heads": list, "n_layers": int, "n_heads": int, "n_intervals": int, "metrics": list, "metric_descriptions": dict,
             "head_data_pattern": str, "has_umap": bool, "umap_heads": list, "custom_plots": list, "custom_tables": list, "statistics_display": dict}  # fmt: skip
    for key, kind in types.items():
        assert isinstance(config[key], kind), key
    assert config["heads"] == [[l, h] for l in range(L) for h in range(H)]
    assert set(config["metric_descriptions"]) == set(config["metrics"]) >= {"self_attention_score", "previous_token_score", "pattern_entropy", "qk_distance", "induction_score"}
    rows = json.loads((folder / "scatter_data.json").read_text())
    assert [[row["layer"], row["head"]] for row in rows] == config["heads"]
    np.testing.assert_array_equal([[row[name] for name in config["metrics"]] for row in rows], numbers(found).reshape(L * H, -1))
    for l, h in config["heads"]:
        head = json.loads((folder / "heads" / config["head_data_pattern"].format(layer=l, head=h)).read_text())
        for plot in config["custom_plots"]:
            assert len(head[plot["key"]]["bin_edges"]) == len(head[plot["key"]]["bin_values"]) + 1
        for table in config["custom_tables"]:
            assert all(set(row) == {"token", "weight"} for row in head[table["key"]])
        assert isinstance(head["histogram"], dict) and isinstance(head["statistics"], dict)
        for s in head["sequences"]:
            n = s["seq_len"]
            assert n == len(s["tokens"]) and len(s["attention_indices"]) == len(s["attention_values"]) and 1 <= s["interval"] <= config["n_intervals"]
            assert isinstance(s["sequence_id"], int) and all(isinstance(token, str) for token in s["tokens"])
            rows, values = np.array(s["attention_indices"]) // n, np.array(s["attention_values"])
            assert rows.max() < n and np.bincount(rows).max() <= 8 and values.min() >= 0.005 - 5e-5
            assert max(np.bincount(rows, values)) <= 1.001


def check_refusals(root, texts):
    for options, status, said in (
        (["--texts", texts], 2, "scan: MODEL: expected, or --merge FOLDER..."),
        ([FOLDER], 2, "scan: --texts: expected, or --merge FOLDER..."),
        ([FOLDER, "--texts", texts, "--resume"], 2, "scan: --resume: expected with --out FOLDER"),
        (["--merge", root / "all", "--length", "3"], 2, "scan: --length: expected without --merge"),
        (["--merge", root / "all", root / "all"], 1, f"{root}/all and {root}/all: expected scans of different texts, but both are of texts.txt"),
        ([FOLDER, "--texts", texts, "--out", root / "all"], 1, f"{root}/all: it holds a scan of 200 of these texts; --resume goes on with it"),
        ([FOLDER, "--texts", root / "none"], 1, f"{root}/none: no such file"),
    ):  # fmt: skip
        done = subprocess.run([PROGRAM, "scan", *map(str, options)], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (status, f"attnscope: {said}\n"), done.stderr


def main():
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        texts = root / "texts.txt"
        texts.write_text("\n".join(LINES) + "\n", "utf-8")
        found = scan(texts, "--out", root / "all")
        wanted, strength = by_hand(LINES)
        worst = np.abs(numbers(found) - wanted).max()
        print(f"{len(LINES)} lines: largest difference {worst:.1e}")
        assert found["sequences"] == 200 and worst <= TOLERANCE
        for k, head in enumerate(found["heads"]):
            of = strength[k // H, k % H]
            np.testing.assert_allclose([e["strength"] for e in head["examples"]], np.sort(of)[::-1][:10], atol=2e-6)
            np.testing.assert_allclose([of[e["line"] - 1] for e in head["examples"]], [e["strength"] for e in head["examples"]], atol=2e-6)
        check_schema(root / "all", found)
        check_refusals(root, texts)

        for k in range(3):
            (root / f"{k}.txt").write_text("\n".join(LINES[70 * k : 70 * (k + 1)]), "utf-8")
            scan(root / f"{k}.txt", "--out", root / f"part{k}")
        merged = ask("scan", "--merge", *(root / f"part{k}" for k in range(3)), "--out", root / "merged", "--json")
        sums = [json.loads((root / name / "config.json").read_text())["attnscope"]["sums"] for name in ("all", "merged")]
        assert sums[0] == sums[1] and merged["tokens"] == found["tokens"]

        # Killed at several moments, it ends as one that was not.
        command = [PROGRAM, "scan", FOLDER, "--texts", texts, "--out", root / "killed", "--resume", "--json"]
        for signal in ("terminate", "kill", "terminate"):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.4)
            getattr(process, signal)()
            process.wait()
        said = subprocess.run(command, capture_output=True, text=True, check=True)
        assert json.loads(said.stdout) == found


if __name__ == "__main__":
    main()
