"""check_noise.py ATTNSCOPE [--models N] [--tokens T …] [--seed S] [--right]: agreement in half precision is a claim about noise.

Dumps in fixtures/check/half are judged as their names say. Then random models are computed in bfloat16 and float16 by four pipelines of
roundings, right and with a bug that hardly shows. Prints how many right ones are called wrong and how many bugs are seen; fails if more
than 0.5 % (or one) of the right ones are called wrong, or too few of a bug are seen.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    sys.exit(77)

import check_reports as reports
from asking import bfloat16, save_half

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures" / "check" / "half"
SESSIONS = {"bf16": "ref_T200.json", "f16": "ref_T96.json"}
ROUND = {"bfloat16": bfloat16, "float16": lambda x: np.asarray(x, np.float64).astype(np.float16).astype(np.float64)}
PIPELINES = {"all": ("linear", "norm", "turn", "dots", "scaled", "softmax", "mix"), "eager": ("linear", "norm", "turn", "softmax", "mix"),
             "fused": ("linear", "norm", "turn", "mix"), "output": ()}
GIVEN = {"output": ("output",), "some": ("queries", "keys", "values", "output"), "contexts": ("contexts",),
         "all": ("queries", "keys", "values", "weights", "contexts", "output")}
SEEN = dict(dropped=0.98, unmasked=0.9, fill=0.6, head=0.95, window=0.85, scale=0.95)  # of each bug, at least this share


def other_mask(change):
    def seen(s, n_queries, n_keys, n_batch):
        visible = reports.visible(s, n_queries, n_keys, n_batch).copy()
        documents = np.array(s["mask"].get("documents", np.zeros(n_keys)))
        visible &= documents[:, None] == documents
        change(visible)
        return visible
    return seen


def head_times(factor):
    def mix(weights, values):
        contexts = reports.mix(weights, values).copy()
        contexts[:, 0] *= factor
        return contexts
    return mix


def bugs_of(g, n_tokens):
    key = int(g.integers(0, n_tokens // 2))

    def drop(visible):
        visible[..., key + 1:, key] = False

    def show(visible):
        visible[..., key, key + 1] = True

    def narrow(visible):
        visible[..., n_tokens - 1, 0] = False

    return dict(dropped=dict(visible=other_mask(drop)), unmasked=dict(visible=other_mask(show)),
                fill=dict(masked=lambda a, seen, cap: np.where(seen, a, -10.0)), head=dict(mix=head_times(1.01)),
                window=dict(visible=other_mask(narrow)), scale=dict(scaled=lambda scores, scale: scores * scale * 1.02))


def model(g, n_tokens, is_plain):
    """Returns a random session whose numbers are of half precision, and the precision. Plain ones have no option."""
    precision = str(g.choice(["bfloat16", "float16"]))
    heads, d = int(g.choice([2, 4, 8])), 16
    options, mask, kv_heads = {}, {}, heads
    if not is_plain:
        kv_heads = int(g.choice([heads, heads // 2]))
        if g.random() < 0.4:
            options |= dict(positions=reports.rope())
        if g.random() < 0.2:
            options |= dict(score_cap=20.0)
        if g.random() < 0.2:
            options |= dict(normalise=dict(rule="rms", query=(1 + 0.1 * g.standard_normal(d)).tolist(), key=(1 + 0.1 * g.standard_normal(d)).tolist(), epsilon=1e-6))
        if g.random() < 0.2:
            mask = dict(documents=np.sort(g.integers(0, 3, n_tokens)).tolist())
    s = reports.session(int(g.integers(1 << 30)), n_tokens, heads, kv_heads, d=d, width=heads * d, bias=not is_plain and bool(g.random() < 0.5),
                        mask=mask, **options)
    round_ = ROUND[precision]
    ends = 1.0
    if precision == "float16" and not is_plain:
        ends = float(g.choice([1.0, 1.0, 2.0**-18, 2.0**9]))  # subnormal numbers; numbers up to 65504
    s["embeddings"] = round_(s["embeddings"]).tolist()
    for name, p in s["projections"].items():
        size = float(g.choice([0.7, 1.0, 1.6])) / 1.3 * (ends if name == "output" else 1)
        p["weight"] = round_(np.array(p["weight"]) * size).tolist()
        p["bias"] = None if p["bias"] is None else round_(np.array(p["bias"]) * (ends if name == "output" else 1)).tolist()
    return s, precision


def computed(s, precision, pipeline, steps):
    round_ = ROUND[precision]
    steps = dict(visible=other_mask(lambda visible: None)) | steps

    def rounded(name):
        step = steps.get(name, getattr(reports, name))
        return lambda *args: round_(step(*args))
    return reports.attention(s, **steps | {name: rounded(name) for name in PIPELINES[pipeline]})


def verdict(program, folder, s, dump, precision):
    session, file = pathlib.Path(folder, "session.json"), pathlib.Path(folder, "dump.safetensors")
    if not session.exists():
        session.write_text(json.dumps(s))
    save_half(file, dump, precision)
    run = subprocess.run([program, "check", session, file, "--json"], capture_output=True, text=True)
    if run.returncode not in (0, 1) or not run.stdout:
        raise RuntimeError(run.stderr or str(run))
    answer = json.loads(run.stdout)
    if answer["agrees"] != (run.returncode == 0):
        raise RuntimeError(run.stdout)
    return answer


def trial(program, seed, n, lengths, only_right):
    """Returns what was asked of one model: bug or "right", whether it was called wrong, and words."""
    g = np.random.default_rng([seed, n])
    n_tokens = int(g.choice(lengths))
    s, precision = model(g, n_tokens, is_plain=n % 2 == 0)
    bugs = bugs_of(g, n_tokens)
    bug = list(bugs)[n % len(bugs)]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for name in ("right",) if only_right else ("right", bug):
            pipeline, given = str(g.choice(list(PIPELINES))), str(g.choice(list(GIVEN), p=[0.55, 0.15, 0.1, 0.2]))
            steps = {} if name == "right" else bugs[name]
            stages = computed(s, precision, pipeline, steps)
            stages = {stage: stages[stage] for stage in GIVEN[given]}
            if any(not np.isfinite(ROUND[precision](x)).all() for x in stages.values()):
                continue
            answer = verdict(program, folder, s, stages, precision)
            if name == "right" and answer["agrees"] and not (answer["rounding"] and answer["could_hide"]):
                raise RuntimeError(f"an agreement does not say what it could hide: {answer}")
            words = f"{n}: {name} {n_tokens} {precision} {pipeline} {given} {sorted(set(s) & {'positions', 'score_cap', 'normalise'})}"
            results.append((name, given, not answer["agrees"], f"{words}: {answer['described']} {answer['causes']}"))
    return results


def judged_fixtures(program):
    dumps = sorted(FIXTURES.glob("*.safetensors"))
    failed = []
    for dump in dumps:
        session = FIXTURES / SESSIONS[dump.name.split("_")[0]]
        run = subprocess.run([program, "check", session, dump, "--json"], capture_output=True, text=True)
        answer = json.loads(run.stdout)
        is_right = "_right_" in dump.name
        hides = answer["could_hide"]
        says_what = not is_right or (answer["rounding"] and 0 < hides["row"] < 0.1 and 0 < hides["head"] < 0.01)
        if answer["agrees"] != is_right or run.returncode != (not is_right) or not says_what:
            failed.append(f"{dump.name}: {run.stdout}{run.stderr}")
    print("\n".join(failed) or f"{len(dumps)} dumps are judged as they should be")
    return bool(failed) or not dumps


def main():
    options = argparse.ArgumentParser()
    options.add_argument("program")
    options.add_argument("--models", type=int, default=36)
    options.add_argument("--tokens", type=int, nargs="+", default=[16, 32, 64, 128])
    options.add_argument("--seed", type=int, default=7)
    options.add_argument("--right", action="store_true", help="right ones alone")
    options.add_argument("--verbose", action="store_true")
    given = options.parse_args()
    failed = judged_fixtures(given.program)
    wrong, asked = collections.Counter(), collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for results in pool.map(lambda n: trial(given.program, given.seed, n, given.tokens, given.right), range(given.models)):
            for name, stages, is_wrong, words in results:
                asked[name] += 1
                wrong[name] += is_wrong
                if (name == "right") == is_wrong and (given.verbose or name == "right"):
                    print(("called wrong: " if is_wrong else "not seen: ") + words)
    for name, n in sorted(asked.items()):
        failed |= wrong[name] > max(1, 0.005 * n) if name == "right" else n >= 20 and wrong[name] < SEEN[name] * n
        print(f"{name}: {wrong[name]} of {n} called wrong")
    return failed


if __name__ == "__main__":
    sys.exit(main())
