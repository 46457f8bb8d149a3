"""check_verdicts.py ATTNSCOPE [--part K/N | --only FAMILY | --key KEY] [--jobs N] [--record]: verdicts of `attnscope check --json` on several
thousand dumps, held against recorded ones (fixtures/check/verdicts).

Without an option: a sample of questions that are answered long before a search ends. --part K/N asks every Nth question, from the Kth on;
--only those of a family (reports, inferred, fixtures, seeds, strange, sizes, half); --key one, and prints its answer. --record writes the
answers into the record, which is then to be reviewed.

A verdict is compared by its meaning: the sets of causes, each with its names and sentences; partial explanations; descriptions; whether
it agrees and is harmless. reviewed.tsv lists synonyms and differences that are right, each with its reason, and questions whose bug hides in
half precision, of which only is expected that they do not agree.
"""
import argparse
import collections
import concurrent.futures
import csv
import functools
import gzip
import io
import json
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    sys.exit(77)

import check_inference
import check_reports
from asking import bfloat16

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures" / "check"
VERDICTS = FIXTURES / "verdicts"
CAST = {"float64": lambda x: np.asarray(x, np.float64), "float32": lambda x: np.asarray(x, np.float32),
        "bfloat16": lambda x: bfloat16(x).astype(np.float32), "float16": lambda x: np.asarray(x).astype(np.float16)}
GIVEN = {"all": None, "attn": ["weights"], "out": ["output"]}

# Questions: (key, function that returns a session, a dict or a path, and a dump, a dict). Keys begin with the family.


def kept(stages, given, precision):
    names = GIVEN[given] or list(stages)
    return {name: CAST[precision](stages[name]) for name in names if name in stages}


def of_reports():
    for where, _, s, steps, _ in check_reports.reports():
        session = s | steps.get("session", {})
        stages = functools.cache(lambda s=session, steps=steps: check_reports.attention(s, **steps))
        for given in GIVEN:
            if given == "attn" and "whole" in steps:
                continue
            for precision in ("float64", "float32", "bfloat16"):
                yield f"reports/{where}/{given}/{precision}", lambda s=s, stages=stages, g=given, p=precision: (s, kept(stages(), g, p))


def of_inferred():
    for path in sorted((FIXTURES / "inferred").glob("s*.json")):
        number = path.stem[1:]
        dumps = functools.cache(lambda number=number: {n: a for which in ("out", "all") for n, a in
                                                       np.load(FIXTURES / "inferred" / f"d{number}_{which}.npz").items()})
        for given in GIVEN:
            for precision in ("float64", "float32", "bfloat16"):
                yield f"inferred/{number}/{given}/{precision}", lambda path=path, d=dumps, g=given, p=precision: (path, kept(d(), g, p))


def of_fixtures():
    for path in sorted(FIXTURES.glob("*.npz")):
        if not path.with_suffix(".json").exists():
            continue
        file = np.load(path)
        cases = collections.defaultdict(list)
        for name in file.files:
            case, stage = name.rsplit("/", 1)
            cases[case].append(stage)
        for case, stages in cases.items():
            for given in [stages, *([one] for one in stages if len(stages) > 1)]:
                what = "all" if given is stages else given[0]
                yield f"fixtures/{path.stem}/{case}/{what}", lambda p=path, f=file, c=case, g=given: (
                    p.with_suffix(".json"), {stage: f[f"{c}/{stage}"] for stage in g})


def of_seeds():
    """Rows of the table of bugs, each drawn by name and injected into a random model, and pairs of them."""
    texts = json.loads(gzip.decompress((VERDICTS / "seeds.json.gz").read_bytes()))
    numbers, at = dict(np.load(VERDICTS / "seeds.npz")), collections.Counter()
    for k, seed in enumerate(texts["seeds"]):
        dtype, dump = "float64" if seed["precision"] == "float64" else "float32", {}
        for stage, shape in seed["stages"].items():
            size = int(np.prod(shape))
            dump[stage] = numbers[dtype][at[dtype]:at[dtype] + size].reshape(shape)
            at[dtype] += size
        yield f"seeds/{k:03}/{'+'.join(seed['names'])}", lambda seed=seed, dump=dump: (texts["models"][seed["model"]], dump)


def of_strange():
    """Changes that no rule describes, which must have no cause."""
    for k in range(120):
        g = np.random.default_rng(7000 + k)
        s, strange = check_inference.session(g), check_inference.STRANGE[k % len(check_inference.STRANGE)]
        given, precision = list(GIVEN)[k // 8 % 3], ("float64", "float32", "bfloat16")[k // 24 % 3]

        def made(s=s, strange=strange, given=given, precision=precision):
            return s, kept(check_inference.theirs(s, dict(strange=strange), precision), given, precision)
        yield f"strange/{k:03}/{strange}/{given}/{precision}", made


def doubled_value_bias(name, x, weight, bias):
    return check_reports.linear(name, x, weight, bias * 2 if name == "value" else bias)


def head_times(weights, values):
    return check_reports.mix(weights, values) * np.where(np.arange(weights.shape[1]) == 1, 1.1, 1)[:, None, None]


SIZED = dict(
    scale=dict(scaled=lambda scores, scale: scores * 0.31),
    window=dict(visible=check_reports.with_mask(window=[4, 0])),
    base=dict(frequencies=lambda rotary, d: check_reports.plain(50000.0, d)),
    bias=dict(linear=doubled_value_bias),
    head=dict(mix=head_times),
    pair=dict(linear=doubled_value_bias, visible=check_reports.with_mask(window=[4, 0])))


@functools.lru_cache(1)
def sized(n_tokens, heads, d, name):
    session = check_reports.session(90, n_tokens, heads, d=d, width=64, bias=True, positions=check_reports.rope())
    return session, check_reports.attention(session, **SIZED[name])


def of_sizes():
    for n_tokens, heads, d in ((16, 8, 16), (32, 8, 16), (64, 8, 16), (256, 12, 64)):
        for name in SIZED:
            for given in ("all", "out"):
                def made(size=(n_tokens, heads, d, name), given=given):
                    session, stages = sized(*size)
                    return session, kept(stages, given, "float64")
                yield f"sizes/{n_tokens}x{heads}/{name}/{given}", made


def of_half():
    """Attention in half precision, rounded after every product and the softmax, right and with a bug that hardly shows."""
    def one_key_dropped(s, n_queries, n_keys, n_batch):
        seen = check_reports.visible(s, n_queries, n_keys, n_batch)
        seen[..., n_queries - 3:, n_keys // 4] = False
        return seen

    for precision, n_tokens, bugs in (
            ("bfloat16", 256, dict(right={}, dropped_key=dict(visible=one_key_dropped), head=dict(mix=head_times))),
            ("float16", 96, dict(right={}, fill=dict(masked=lambda a, seen, cap: np.where(seen, a, -10.0)), head=dict(mix=head_times)))):
        def r(x, cast=CAST[precision]):
            return cast(x).astype(np.float64)
        s = check_reports.session(91, n_tokens, 4, d=16, width=64)
        s["embeddings"] = r(s["embeddings"]).tolist()
        for p in s["projections"].values():
            p["weight"] = r(p["weight"]).tolist()
        for bug, steps in bugs.items():
            rounded = {name: lambda *given, f=steps.get(name, getattr(check_reports, name)), r=r: r(f(*given))
                       for name in ("linear", "dots", "scaled", "softmax", "mix")}
            stages = functools.cache(lambda s=s, steps=steps | rounded: check_reports.attention(s, **steps))
            for what, names in (("out", ["output"]), ("qkv+out", ["queries", "keys", "values", "output"])):
                yield f"half/{precision}/{bug}/{what}", lambda s=s, stages=stages, names=names, p=precision: (
                    s, {name: CAST[p](stages()[name]) for name in names})


def questions():
    for family in (of_reports, of_inferred, of_fixtures, of_seeds, of_strange, of_sizes, of_half):
        yield from family()


# Answers.

def size_of(dump):
    """Returns a number that tells one dump from another, whatever the last bits of its products are."""
    return float(sum(np.abs(np.where(np.isfinite(a), a, 0)).sum(dtype=np.float64) for a in dump.values()))


def asked(program, make, timeout=3600):
    session, dump = make()
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(session, dict):
            path = pathlib.Path(folder, "session.json")
            path.write_text(json.dumps(session))
            session = path
        np.savez(pathlib.Path(folder, "dump.npz"), **dump)
        run = subprocess.run([program, "check", session, pathlib.Path(folder, "dump.npz"), "--json"],
                             capture_output=True, text=True, timeout=timeout)
    if run.returncode not in (0, 1) or not run.stdout:
        return dict(failed=run.stderr.strip() or f"exit code {run.returncode}")
    report = json.loads(run.stdout)
    answer = dict(agrees=report["agrees"], harmless=report["harmless"], partly=report["partly"], described=report["described"],
                  causes=[dict(names=names, sentences=sentences) for names, sentences in zip(report["explanations"], report["sentences"])],
                  inferred=[note for note in report["notes"] if note.startswith("Inferred: ")], dump=round(size_of(dump), 4))
    return {name: value for name, value in answer.items() if value}


def meaning(answer, synonyms):
    """Returns what is compared: sets of texts in which synonyms are replaced by one word."""
    def texts(all_of, sort=True):
        replaced = []
        for text in all_of:
            for pattern, word in synonyms:
                text = re.sub(pattern, word, text)
            replaced.append(text)
        return tuple(sorted(replaced) if sort else replaced)
    causes = frozenset((texts(set(c["names"])), texts(c["sentences"])) for c in answer.get("causes", []))
    return dict(agrees=answer.get("agrees", False), harmless=answer.get("harmless", False), causes=causes,
                partly=texts(answer.get("partly", [])), described=texts(answer.get("described", [])),
                inferred=texts(answer.get("inferred", [])), failed=answer.get("failed", ""))


NUMBER = re.compile(r"[−-]?\d+(?:\.\d+)?(?:e[+−-]?\d+)?")


def differ_in_digits(a, b):
    """Returns whether two texts differ in nothing but the last digits of numbers that were fitted."""
    def numbers(text):
        return [float(x.replace("−", "-")) for x in NUMBER.findall(text)]
    return NUMBER.sub("#", a) == NUMBER.sub("#", b) and np.allclose(numbers(a), numbers(b), rtol=0.01, atol=1.1e-3)


def words_of(m):
    causes = " | ".join(sorted("; and ".join(sentences) or "+".join(names) for names, sentences in m["causes"]))
    parts = ["agrees" * m["agrees"], "harmless" * m["harmless"], causes and "causes: " + causes, m["failed"] and "failed: " + m["failed"],
             *(f"{name}: " + " | ".join(m[name]) for name in ("partly", "described", "inferred") if m[name])]
    return "; ".join(part for part in parts if part) or "differs, by nothing known"


class Reviewed:
    """Rows of reviewed.tsv: kind, question (a pattern), what the record says and what is right (patterns), reason."""

    def __init__(self):
        text = (VERDICTS / "reviewed.tsv").read_text(encoding="utf-8")
        rows = [row for row in csv.reader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE) if row and not row[0].startswith("#")]
        for row in rows:
            if len(row) != 5 or row[0] not in ("synonym", "difference", "hidden") or not row[4].strip():
                sys.exit(f"reviewed.tsv: expected kind, question, before, now, reason, got {row}")
        self.synonyms = [(row[2], row[3]) for row in rows if row[0] == "synonym"]
        self.differences = [row for row in rows if row[0] == "difference"]
        self.hidden = [row for row in rows if row[0] == "hidden"]

    def reason(self, key, before, now):
        """Returns why a difference is right, or "" if nobody has said so."""
        for _, question, was, is_now, reason in self.differences:
            if re.search(question, key) and re.search(was, before) and re.search(is_now, now):
                return reason
        return ""

    def is_hidden(self, key):
        return any(re.search(row[1], key) for row in self.hidden)


def compared(key, answer, record, reviewed):
    """Returns same, as at the usual limit, reviewed, seen, or DIFFERS, and words."""
    now = meaning(answer, reviewed.synonyms)
    if reviewed.is_hidden(key):
        return ("DIFFERS" if now["agrees"] else "seen in half precision"), words_of(now)
    before = record.get(key)
    if before is None:
        return "not recorded", ""
    if abs(answer.get("dump", 0) - before.get("dump", 0)) > 1e-6 * before.get("dump", 0):
        return "DIFFERS", "the question is another one: its numbers differ from those of the record"
    was = meaning(before, reviewed.synonyms)
    if now == was:
        return "same", ""
    if "usual" in before and now == meaning(before["usual"], reviewed.synonyms):
        return "same as at the usual limit", ""
    if was == now | {"causes": frozenset((names, ()) for names, _ in now["causes"])}:  # the record has names alone
        return "same, and its sentences", ""
    if differ_in_digits(words_of(was), words_of(now)):
        return "same but for digits", ""
    reason = reviewed.reason(key, words_of(was), words_of(now))
    return ("reviewed", reason) if reason else ("DIFFERS", f"\n    before: {words_of(was)}\n    now:    {words_of(now)}")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("program")
    options.add_argument("--part")
    options.add_argument("--only")
    options.add_argument("--key")
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--record", nargs="?", const=VERDICTS / "verdicts.json.gz", type=pathlib.Path)
    given = options.parse_args()
    path = VERDICTS / "verdicts.json.gz"
    record = json.loads(gzip.decompress(path.read_bytes())) if path.exists() else {}
    reviewed = Reviewed()
    all_questions = dict(questions())
    if given.key:
        answer = asked(given.program, all_questions[given.key])
        print(json.dumps(answer, indent=1, ensure_ascii=False), *compared(given.key, answer, record, reviewed))
        return 0
    keys = [key for key in all_questions if not given.only or key.startswith(given.only)]
    if given.part:
        k, n = map(int, given.part.split("/"))
        keys = [key for key in keys if given.record or key in record or reviewed.is_hidden(key)][k - 1::n]
    elif not given.only:
        keys = [key for key in keys if record.get(key, {}).get("sample")]
    count, different = collections.Counter(), []
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        for key, answer in zip(keys, pool.map(lambda key: asked(given.program, all_questions[key]), keys)):
            if given.record:
                record[key] = answer | {name: record[key][name] for name in ("sample",) if name in record.get(key, {})}
                continue
            what, words = compared(key, answer, record, reviewed)
            count[what] += 1
            if what == "DIFFERS":
                different.append(f"{what}: {key}: {words}")
    if given.record:
        text = json.dumps(record, ensure_ascii=False, sort_keys=True, indent=0)
        given.record.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{len(keys)} questions:", ", ".join(f"{n} {what}" for what, n in count.most_common()))
    print("\n".join(different))
    return 1 if count["DIFFERS"] or not keys else 0


if __name__ == "__main__":
    sys.exit(main())
