"""Computes backwards with bugs in NumPy, as a kernel of attention does, and has the program name the bug, in float32 and in bfloat16.

usage: check_backward.py ATTNSCOPE    exit status: 0 every bug is named, 1 not, 77 NumPy is missing
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

HEADS, KV_HEADS, TOKENS, WIDTH, D_IN, RATE, CAP = 4, 2, 12, 8, 16, 0.2, 3.0
BUGS = [
    "backward_unmasked",
    "backward_dropout_unscaled",
    "backward_dropout_missing",
    "backward_values_undropped",
    "backward_delta_undropped",
    "backward_delta_missing",
    "backward_softcap_missing",
    "backward_scale_missing",
    "backward_scale_twice",
    "backward_scale_missing_in_queries",
    "backward_scale_missing_in_keys",
    "backward_untransposed",
    "backward_swapped",
    "backward_rotated_forward",
    "backward_rotation_missing",
    "backward_last_head",
    "backward_mean_of_heads",
    "backward_groups_tiled",
]


def bfloat16(x):
    """Returns numbers rounded to bfloat16, ties to even."""
    bits = numpy.ascontiguousarray(x, numpy.float32).view(numpy.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & numpy.uint32(0xFFFF0000)
    return rounded.astype(numpy.uint32).view(numpy.float32).reshape(numpy.shape(x))


def float32(x):
    return numpy.asarray(x, numpy.float32)


class Layer:
    """One random layer of attention: rotated, with KV heads, a causal mask, a softcap and dropout."""

    def __init__(self, seed):
        random = numpy.random.default_rng(seed)
        self.x = float32(random.normal(size=(TOKENS, D_IN)))
        self.weights = [float32(random.normal(size=(D_IN, n * WIDTH)) / 4) for n in (HEADS, KV_HEADS, KV_HEADS)]
        self.kept = random.random(size=(HEADS, TOKENS, TOKENS)) > RATE
        self.d_output = float32(random.normal(size=(TOKENS, HEADS * WIDTH)))
        angles = numpy.arange(TOKENS)[:, None] * 10000.0 ** (-numpy.arange(WIDTH // 2) / (WIDTH / 2))
        self.cosines, self.sines = numpy.cos(angles), numpy.sin(angles)

    def session(self):
        query, key, value = ({"weight": w.astype(float).tolist(), "bias": None} for w in self.weights)
        return {
            "attnscope": 1,
            "tokens": [str(i) for i in range(TOKENS)],
            "embeddings": self.x.astype(float).tolist(),
            "projections": {"query": query, "key": key, "value": value, "output": None},
            "n_heads": HEADS,
            "n_kv_heads": KV_HEADS,
            "mask": {"causal": True},
            "dropout": {"rate": RATE, "training": True, "mask": self.kept.astype(int).tolist()},
            "score_cap": CAP,
            "positions": {"rotary": {"base": 10000.0, "pairs": "halves", "dimensions": WIDTH}},
        }

    def rotated(self, x, sign=1):
        a, b = numpy.split(x, 2, axis=-1)
        return numpy.concatenate([a * self.cosines - sign * b * self.sines, sign * a * self.sines + b * self.cosines], -1)

    def backward(self, rounded, bug=""):
        """Returns the gradients, each result rounded."""
        r, transposed = rounded, lambda a: a.swapaxes(-1, -2)
        split = lambda a: a.reshape(TOKENS, -1, WIDTH).swapaxes(0, 1)
        merged = lambda a: a.swapaxes(0, 1).reshape(TOKENS, -1)
        repeated = lambda a: numpy.repeat(a, HEADS // KV_HEADS, 0)
        x = r(self.x)
        queries, keys, values = (split(r(x @ r(w))) for w in self.weights)
        q, k, v = r(self.rotated(queries)), repeated(r(self.rotated(keys))), repeated(values)
        scale, factors = 1 / numpy.sqrt(WIDTH), self.kept / (1 - RATE)
        hidden = ~numpy.tril(numpy.ones((TOKENS, TOKENS), bool))
        capped = r(CAP * numpy.tanh(r(r(q @ transposed(k)) * scale) / CAP))
        masked = numpy.where(hidden, -numpy.inf, capped)
        sums = numpy.log(numpy.exp(masked).sum(-1, keepdims=True))
        p = r(numpy.exp((capped if bug == "backward_unmasked" else masked) - sums))
        d_out = split(r(self.d_output))
        dropped = p if bug == "backward_values_undropped" else r(p * factors)
        dv = r(transposed(dropped) @ d_out)
        d_dropped = r(d_out @ transposed(v))
        by = {"backward_dropout_unscaled": self.kept, "backward_dropout_missing": 1}.get(bug, factors)
        dp = r(d_dropped * by)
        delta = ((d_dropped if bug == "backward_delta_undropped" else dp) * p).sum(-1, keepdims=True)
        ds = r(p * (dp - (0 if bug == "backward_delta_missing" else delta)))
        if bug != "backward_softcap_missing":
            ds = r(ds * (1 - (capped / CAP) ** 2))
        powers = {
            "backward_scale_missing": (0, 0),
            "backward_scale_twice": (2, 2),
            "backward_scale_missing_in_queries": (0, 1),
            "backward_scale_missing_in_keys": (1, 0),
        }.get(bug, (1, 1))
        dq = r(r(ds * scale ** powers[0]) @ k)
        of_keys = ds if bug == "backward_untransposed" else transposed(ds)
        dk = r(r(of_keys * scale ** powers[1]) @ q)
        if bug == "backward_swapped":
            dq, dk = dk, dq
        grouped = lambda a: a.reshape(KV_HEADS, HEADS // KV_HEADS, TOKENS, WIDTH)
        reduced = {
            "backward_last_head": lambda a: grouped(a)[:, -1],
            "backward_mean_of_heads": lambda a: grouped(a).mean(1),
            "backward_groups_tiled": lambda a: a.reshape(HEADS // KV_HEADS, KV_HEADS, TOKENS, WIDTH).sum(0),
        }.get(bug, lambda a: grouped(a).sum(1))
        dk, dv = r(reduced(dk)), r(reduced(dv))
        if bug != "backward_rotation_missing":
            sign = 1 if bug == "backward_rotated_forward" else -1
            dq, dk = r(self.rotated(dq, sign)), r(self.rotated(dk, sign))
        weights = {f"d_{name}_weight": r(transposed(x) @ merged(d)) for name, d in (("query", dq), ("key", dk), ("value", dv))}
        return {"d_queries": dq, "d_keys": dk, "d_values": dv, **weights}


def report(program, session, tensors, folder):
    file = folder / "gradients.npz"
    numpy.savez(file, **{name: float32(a) for name, a in tensors.items()})
    done = subprocess.run([program, "check", session, "--against", file, "--json"], capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def main(program, count=3):
    asked, wrong = 0, []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        session = folder / "session.json"
        for seed in range(int(count)):
            layer = Layer(seed)
            session.write_text(json.dumps(layer.session()), encoding="utf-8")
            for rounded in (float32, bfloat16):
                for bug in ["", *BUGS]:
                    gradients = layer.backward(rounded, bug)
                    for kept in (lambda n: not n.endswith("_weight"), lambda n: n.endswith("_weight"), lambda n: True):
                        tensors = {n: a for n, a in gradients.items() if kept(n)}
                        said = report(program, session, {**tensors, "d_output": rounded(layer.d_output)}, folder)
                        asked += 1
                        right = said["agrees"] if not bug else said["causes"] == [bug]
                        if not right:
                            wrong.append(f"{seed} {rounded.__name__} {bug or 'right'} {sorted(tensors)}: {said['causes']} {said['described']}")
    print("\n".join(wrong))
    print(f"{asked} backwards, {len(wrong)} wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main(*sys.argv[1:])
