"""Times attnscope's engine, NumPy and PyTorch on the same sizes in turns, and prints the medians as one table.

Called by scripts/bench with the folder of the built programs. NumPy and PyTorch are measured where they are installed.
"""
import argparse
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

SIZES = [(6, 3, 1), (64, 64, 4), (256, 768, 12), (1024, 768, 12), (2048, 768, 12)]
OURS = ["forward", "edit_embedding", "edit_query_weight", "edit_value_weight", "edit_embedding_with_output",
        "edit_query_weight_with_output"]
REFERENCE_UP_TO = 1024  # tokens; beyond, every stage at once takes many seconds and gigabytes


def benchmark(program, pattern, seconds):
    """Runs some of our benchmarks; {name: milliseconds}, and what peak counted."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        subprocess.run([program, f"--benchmark_filter={pattern}", f"--benchmark_min_time={seconds}",
                        f"--benchmark_out={report}", "--benchmark_out_format=json"], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        rows = json.loads(report.read_text())["benchmarks"]
    unit = {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}
    return {row["name"]: row.get("multiply_adds_per_second") or row["real_time"] * unit[row["time_unit"]] for row in rows}


def timed(function, at_least=0.05):
    """Milliseconds of one call, as the mean of as many as fill a twentieth of a second."""
    count, start = 0, time.perf_counter()
    while True:
        function()
        count += 1
        taken = time.perf_counter() - start
        if taken > at_least:
            return taken / count * 1e3


def numpy_pass(size):
    import numpy as np
    n, d, heads = size
    random = np.random.default_rng(1)
    x, (wq, wk, wv, wo) = random.standard_normal((n, d)), random.standard_normal((4, d, d)) / math.sqrt(d)
    hidden = np.triu(np.ones((n, n), bool), 1)

    def call():
        q, k, v = ((x @ w).reshape(n, heads, d // heads).transpose(1, 0, 2) for w in (wq, wk, wv))
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(d // heads)
        scores[:, hidden] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return (weights @ v).transpose(1, 0, 2).reshape(n, d) @ wo

    return call


def book_class(size, dtype):
    """The class as books print it: a mask buffer, masked_fill_, softmax, dropout of rate 0, contexts, projection."""
    import torch
    n, d, heads = size

    class MultiHeadAttention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value, self.out = (torch.nn.Linear(d, d, bias=False) for _ in range(4))
            self.dropout = torch.nn.Dropout(0.0)
            self.register_buffer("mask", torch.triu(torch.ones(n, n), diagonal=1))

        def forward(self, x):
            b, count, _ = x.shape
            q, k, v = (f(x).view(b, count, heads, d // heads).transpose(1, 2) for f in (self.query, self.key, self.value))
            scores = q @ k.transpose(2, 3)
            scores.masked_fill_(self.mask.bool()[:count, :count], -torch.inf)
            weights = self.dropout(torch.softmax(scores / k.shape[-1] ** 0.5, dim=-1))
            return self.out((weights @ v).transpose(1, 2).contiguous().view(b, count, d))

    torch.manual_seed(1)
    module, x = MultiHeadAttention().to(dtype), torch.randn(1, n, d, dtype=dtype)
    return lambda: module(x)


def library_module(size, dtype):
    import torch
    n, d, heads = size
    torch.manual_seed(1)
    module = torch.nn.MultiheadAttention(d, heads, bias=False, batch_first=True).to(dtype)
    x, mask = torch.randn(1, n, d, dtype=dtype), torch.triu(torch.ones(n, n, dtype=torch.bool), 1)
    return lambda: module(x, x, x, attn_mask=mask, need_weights=True, average_attn_weights=False)


def tuned_by_hand(size, dtype):
    """The same numbers with every buffer made beforehand, in place where PyTorch allows it."""
    import torch
    n, d, heads = size
    d_head = d // heads
    torch.manual_seed(1)
    x = torch.randn(n, d, dtype=dtype)
    w, wo = torch.randn(d, 3 * d, dtype=dtype) / math.sqrt(d), torch.randn(d, d, dtype=dtype) / math.sqrt(d)
    qkv, scores, weights = torch.empty(n, 3 * d, dtype=dtype), torch.empty(heads, n, n, dtype=dtype), torch.empty(heads, n, n, dtype=dtype)
    contexts, joined, out = torch.empty(heads, n, d_head, dtype=dtype), torch.empty(n, d, dtype=dtype), torch.empty(n, d, dtype=dtype)
    mask = torch.triu(torch.full((n, n), -torch.inf, dtype=dtype), 1).expand(heads, n, n)

    def call():
        torch.mm(x, w, out=qkv)
        q, k, v = qkv.view(n, 3, heads, d_head).permute(1, 2, 0, 3)
        torch.baddbmm(mask, q, k.transpose(1, 2), alpha=1 / math.sqrt(d_head), out=scores)
        torch.softmax(scores, -1, out=weights)
        torch.bmm(weights, v, out=contexts)
        joined.view(n, heads, d_head).copy_(contexts.transpose(0, 1))
        torch.mm(joined, wo, out=out)

    return call


def others(size):
    """{name: function} of what is installed."""
    found = {}
    try:
        found["NumPy float64"] = numpy_pass(size)
    except ImportError:
        pass
    try:
        import torch
        torch.set_grad_enabled(False)
        for name, dtype in (("float64", torch.float64), ("float32", torch.float32)):
            found[f"PyTorch book class {name}"] = book_class(size, dtype)
            found[f"PyTorch tuned by hand {name}"] = tuned_by_hand(size, dtype)
        found["PyTorch nn.MultiheadAttention float32"] = library_module(size, torch.float32)
    except ImportError:
        pass
    return found


def causal_multiply_adds(size):
    n, d, _ = size
    return 4 * n * d * d + n * (n + 1) * d


def measure(bin_folder, size, rounds):
    """{name: median milliseconds}, each round one turn of everything."""
    program, name = str(bin_folder / "attnscope_bench"), "/".join(map(str, size))
    wanted = OURS + (["reference"] if size[0] <= REFERENCE_UP_TO else [])
    functions, times = others(size), {}
    for function in functions.values():
        function()
    for _ in range(rounds):
        pattern = "^(" + "|".join(wanted) + ")/" + name + "$|^peak$"
        for key, value in benchmark(program, pattern, 0.05).items():
            times.setdefault(key.split("/")[0], []).append(value)
        for key, function in functions.items():
            times.setdefault(key, []).append(timed(function))
    return {key: statistics.median(values) for key, values in times.items()}


def frames(bin_folder):
    """What attnscope_frames prints of the window, line by line; nothing where there is no display to be had."""
    command = ["xvfb-run", "-a", "-s", "-screen 0 1920x1080x24", str(bin_folder / "attnscope_frames")]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return []


def peak_memory(bin_folder, size):
    """Mebibytes at most in memory during a full pass, and all scores of the size in float64."""
    pattern = "^forward/" + "/".join(map(str, size)) + "$"
    code = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, "
            "stderr=subprocess.DEVNULL); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    command = [sys.executable, "-c", code, str(bin_folder / "attnscope_bench"), f"--benchmark_filter={pattern}"]
    kibibytes = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return kibibytes / 1024, size[0] ** 2 * size[2] * 8 / 2**20


def print_table(results, processors):
    names = list(dict.fromkeys(name for times in results.values() for name in times if name != "peak"))
    print(f"{'milliseconds, medians':40}" + "".join(f"{str(size):>17}" for size in results))
    for name in names:
        print(f"{name:40}" + "".join(f"{times[name]:17.4f}" if name in times else f"{'–':>17}" for times in results.values()))
    print("\ntimes as fast, full pass in float64")
    for name in names:
        if name.startswith(("PyTorch", "NumPy", "reference")):
            ratios = (f"{times[name] / times['forward']:17.2f}" if name in times else f"{'–':>17}" for times in results.values())
            print(f"{'than ' + name:40}" + "".join(ratios))
    shares = (causal_multiply_adds(size) / (times["forward"] / 1e3) / (times["peak"] * processors) for size, times in results.items())
    print(f"{'share of the multiply-add peak':40}" + "".join(f"{share:17.0%}" for share in shares))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin_folder", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    processors = len(os.sched_getaffinity(0))
    results = {size: measure(arguments.bin_folder, size, arguments.rounds) for size in SIZES}
    print(f"{platform.machine()}, {processors} processors\n")
    print_table(results, processors)
    memory, scores = peak_memory(arguments.bin_folder, SIZES[-1])
    print(f"\nmost memory at {SIZES[-1]}: {memory:.0f} MiB; all scores in float64: {scores:.0f} MiB")
    window = frames(arguments.bin_folder)
    print("\n".join(window))
    if arguments.json:
        report = {"processors": processors, "milliseconds": {"/".join(map(str, s)): t for s, t in results.items()},
                  "peak_memory_mib": memory, "scores_mib": scores, "window": window}
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


main()
